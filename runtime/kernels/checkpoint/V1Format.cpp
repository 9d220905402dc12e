#include "runtime/kernels/checkpoint/V1Format.h"

#include "base/ProtoWire.h"
#include "base/SortedTable.h"
#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"
#include "runtime/kernels/checkpoint/Glob.h"

#include <cstring>
#include <unistd.h>

namespace lathe::rt {
namespace {

absl::Status damaged(const std::string &path) {
  return absl::DataLossError(absl::StrCat("'", path, "' is damaged"));
}

/// How a type's elements stand in a TensorProto: the field, and the bytes of one number there (0: varint).
struct Coding {
  int field = 0, width = 0, perElement = 1;
};

Coding codingOf(DType type) {
  switch (type) {
  case DType::Float32:
    return {5, 4};
  case DType::Float64:
    return {6, 8};
  case DType::Complex64:
    return {9, 4, 2};
  case DType::Complex128:
    return {12, 8, 2};
  case DType::Int64:
    return {10, 0};
  case DType::Bool:
    return {11, 0};
  case DType::Float16:
  case DType::BFloat16:
    return {13, 0};
  case DType::UInt32:
    return {16, 0};
  case DType::UInt64:
    return {17, 0};
  case DType::Int32:
  case DType::Int16:
  case DType::Int8:
  case DType::UInt16:
  case DType::UInt8:
  case DType::QInt8:
  case DType::QUInt8:
  case DType::QInt16:
  case DType::QUInt16:
  case DType::QInt32:
    return {7, 0};
  default:
    return {};
  }
}

bool isSignedCarrier(DType type) { return isSignedInteger(dtypeCarrier(type)); }

std::string encodeTensor(const Tensor &t) {
  std::string out, packed;
  if (t.dtype() == DType::String) {
    for (const std::string &s : t.strings())
      appendProtoBytes(out, 8, s);
    return out;
  }
  Coding coding = codingOf(t.dtype());
  if (coding.width) {
    packed.assign(t.data<char>(), static_cast<size_t>(t.sizeBytes()));
  } else {
    size_t size = dtypeSize(t.dtype());
    for (int64_t i = 0; i < t.numElements(); ++i) {
      uint64_t v = 0;
      std::memcpy(&v, t.data<char>() + i * size, size);
      if (isSignedCarrier(t.dtype()) && size < 8 && v >> (8 * size - 1))
        v |= ~UINT64_C(0) << (8 * size);
      appendVarint(packed, v);
    }
  }
  if (!packed.empty())
    appendProtoBytes(out, coding.field, packed);
  return out;
}

/// False when the bytes do not hold just the elements.
bool decodeTensor(std::string_view bytes, Tensor &t) {
  ByteReader in(bytes);
  ProtoField f;
  int64_t at = 0;
  Coding coding = codingOf(t.dtype());
  size_t size = dtypeSize(t.dtype());
  auto put = [&](uint64_t v) {
    if (at >= t.numElements())
      return false;
    std::memcpy(t.data<char>() + at++ * size, &v, size);
    return true;
  };
  while (in.remaining()) {
    if (!readProtoField(in, f))
      return false;
    if (t.dtype() == DType::String) {
      if (f.number != 8)
        continue;
      if (f.wire != 2 || at >= t.numElements())
        return false;
      t.mutableStrings()[at++] = std::string(f.bytes);
      continue;
    }
    if (f.number != static_cast<uint64_t>(coding.field))
      continue;
    if (coding.width && f.wire == 2) {
      int64_t count = static_cast<int64_t>(f.bytes.size() / size);
      if (f.bytes.size() % size || count > t.numElements() - at)
        return false;
      std::memcpy(t.data<char>() + at * size, f.bytes.data(), f.bytes.size());
      at += count;
    } else if (f.wire == 2) {
      ByteReader numbers(f.bytes);
      uint64_t v;
      while (numbers.remaining())
        if (!numbers.readVarint(v) || !put(v))
          return false;
    } else if (coding.width || !put(f.value)) {
      return false;
    }
  }
  return at == t.numElements();
}

TensorSlice wholeOf(size_t rank) { return {std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, -1)}; }

} // namespace

absl::Status V1Writer::add(const std::string &name, const std::vector<int64_t> &shape, const TensorSlice &slice,
                           const Tensor &part) {
  auto dims = slice.apply(shape);
  if (!dims.ok())
    return dims.status();
  if (*dims != part.dims())
    return absl::InvalidArgumentError(absl::StrCat("Slice in shape_and_slice of '", name, "' has shape ",
                                                   dimsToString(*dims), ", the tensor ", dimsToString(part.dims())));
  if (part.dtype() != DType::String && !codingOf(part.dtype()).field)
    return absl::UnimplementedError(absl::StrCat("tensors of type ", dtypeName(part.dtype()), " cannot be saved"));
  auto [it, isNew] = tensors.try_emplace(name, Described{part.dtype(), shape, {}});
  if (!isNew && (it->second.type != part.dtype() || it->second.shape != shape))
    return absl::InvalidArgumentError(absl::StrCat("the slices of '", name, "' disagree about shape or type"));
  it->second.slices.push_back(slice);
  std::string saved, message;
  appendProtoBytes(saved, 1, name);
  appendProtoBytes(saved, 2, encodeSlice(slice));
  appendProtoBytes(saved, 3, encodeTensor(part));
  appendProtoBytes(message, 2, saved);
  data[sliceKey(name, slice)] = std::move(message);
  return absl::OkStatus();
}

absl::Status V1Writer::write(const std::string &path) const {
  std::string meta, version, header;
  for (const auto &[name, tensor] : tensors) {
    std::string message;
    appendProtoBytes(message, 1, name);
    appendProtoBytes(message, 2, encodeShape(tensor.shape));
    appendProtoNumber(message, 3, static_cast<uint64_t>(tensor.type));
    for (const TensorSlice &slice : tensor.slices)
      appendProtoBytes(message, 4, encodeSlice(slice));
    appendProtoBytes(meta, 1, message);
  }
  appendProtoNumber(version, 1, 1); // producer
  appendProtoBytes(meta, 2, version);
  appendProtoBytes(header, 1, meta);
  TableEntries table = {{"", header}};
  table.insert(table.end(), data.begin(), data.end());
  std::string temporary = absl::StrCat(path, ".tempstate", getpid());
  if (absl::Status written = writeFile(temporary, writeSortedTable(table)); !written.ok())
    return written;
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    return absl::UnknownError(absl::StrCat("cannot create '", path, "': ", std::strerror(errno)));
  return absl::OkStatus();
}

absl::StatusOr<V1Reader> V1Reader::open(const std::string &pattern) {
  constexpr int64_t kMostBytes = INT64_C(1) << 36;
  std::vector<std::string> paths = matchingFiles(pattern);
  if (paths.empty())
    return absl::NotFoundError(absl::StrCat("failed to find any matching files for '", pattern, "'"));
  V1Reader reader;
  for (const std::string &path : paths) {
    auto file = readFile(path);
    if (!file.ok())
      return file.status();
    auto table = parseSortedTable(*file, kMostBytes);
    if (!table.ok())
      return absl::Status(table.status().code(), absl::StrCat("'", path, "': ", table.status().message()));
    for (const auto &[key, value] : *table) {
      ByteReader in(value);
      ProtoField f, g, h;
      while (in.remaining()) {
        if (!readProtoField(in, f) || f.wire != 2)
          return damaged(path);
        ByteReader body(f.bytes);
        if (key.empty() && f.number == 1) { // SavedTensorSliceMeta
          while (body.remaining()) {
            if (!readProtoField(body, g))
              return damaged(path);
            if (g.number != 1 || g.wire != 2)
              continue;
            std::string name;
            Stored stored;
            ByteReader tensor(g.bytes);
            while (tensor.remaining()) {
              if (!readProtoField(tensor, h))
                return damaged(path);
              if (h.number == 1)
                name = std::string(h.bytes);
              else if (h.number == 2 && !parseShape(h.bytes, stored.shape))
                return damaged(path);
              else if (h.number == 3)
                stored.type = dtypeFromNumber(static_cast<int64_t>(h.value)).value_or(DType::Invalid);
            }
            auto [it, isNew] = reader.tensors.try_emplace(name, stored);
            if (!isNew && (it->second.shape != stored.shape || it->second.type != stored.type))
              return absl::InvalidArgumentError(absl::StrCat("'", path, "' describes '", name, "' otherwise than another shard"));
          }
        } else if (!key.empty() && f.number == 2) { // SavedSlice
          std::string name;
          TensorSlice slice;
          std::string_view proto;
          while (body.remaining()) {
            if (!readProtoField(body, g))
              return damaged(path);
            if (g.number == 1)
              name = std::string(g.bytes);
            else if (g.number == 2 && !parseSlice(g.bytes, slice))
              return damaged(path);
            else if (g.number == 3)
              proto = g.bytes;
          }
          auto it = reader.tensors.find(name);
          if (it == reader.tensors.end())
            return damaged(path);
          it->second.parts.emplace_back(std::move(slice), std::string(proto));
        }
      }
    }
  }
  return reader;
}

const std::vector<int64_t> *V1Reader::shapeOf(const std::string &name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second.shape;
}

absl::StatusOr<Tensor> V1Reader::read(const std::string &name, const TensorSlice *wanted) const {
  auto it = tensors.find(name);
  if (it == tensors.end())
    return absl::NotFoundError(absl::StrCat("Tensor name \"", name, "\" not found in checkpoint"));
  const Stored &stored = it->second;
  size_t rank = stored.shape.size();
  TensorSlice whole = wholeOf(rank), slice = wanted ? *wanted : whole;
  auto dims = slice.apply(stored.shape);
  if (!dims.ok())
    return dims.status();
  auto origin = [&](const TensorSlice &s, size_t d) { return s.length[d] < 0 ? 0 : s.start[d]; };
  // parts first: they bound what is allocated
  int64_t covered = 0;
  struct Piece {
    Tensor part;
    std::vector<int64_t> to, from, size;
  };
  std::vector<Piece> pieces;
  for (const auto &[place, proto] : stored.parts) {
    auto partDims = place.apply(stored.shape);
    if (!partDims.ok())
      return partDims.status();
    Piece piece;
    int64_t count = 1;
    for (size_t d = 0; d < rank; ++d) {
      int64_t a = std::max(origin(slice, d), origin(place, d));
      int64_t b = std::min(origin(slice, d) + (*dims)[d], origin(place, d) + (*partDims)[d]);
      piece.to.push_back(a - origin(slice, d));
      piece.from.push_back(a - origin(place, d));
      piece.size.push_back(std::max<int64_t>(b - a, 0));
      count *= piece.size.back();
    }
    if (count == 0 && rank)
      continue;
    // every element takes at least a byte there
    auto elements = checkedNumElements(*partDims);
    if (!elements.ok() || *elements > static_cast<int64_t>(proto.size()))
      return absl::DataLossError(absl::StrCat("the data of '", name, "' is damaged"));
    auto part = Tensor::tryAllocate(stored.type, *partDims, kMaxTensorBytes);
    if (!part.ok())
      return part.status();
    if (!decodeTensor(proto, *part))
      return absl::DataLossError(absl::StrCat("the data of '", name, "' is damaged"));
    piece.part = *std::move(part);
    covered += count;
    pieces.push_back(std::move(piece));
  }
  auto total = checkedNumElements(*dims);
  if (!total.ok())
    return total.status();
  if (covered != *total)
    return absl::NotFoundError(absl::StrCat("the checkpoint does not hold all of the slice of '", name, "'"));
  Tensor out = Tensor::allocate(stored.type, *dims);
  for (const Piece &piece : pieces)
    copyBox(out, piece.to, piece.part, piece.from, piece.size);
  return out;
}

} // namespace lathe::rt
