// Values of constants: plain, of less than a byte an element, and sparse.
#include "compiler/frontend/tflite/ModelFile.h"

#include "absl/status/status.h"

#include <cstring>

namespace lathe::tflite {
namespace {

/// Elements of 2 or 4 bits, the first in the lowest bits of a byte, as bytes.
void unpack(const uint8_t *from, unsigned bits, bool isSigned, int64_t count, uint8_t *to) {
  const unsigned perByte = 8 / bits, mask = (1u << bits) - 1, sign = 1u << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    unsigned v = (from[i / perByte] >> (i % perByte * bits)) & mask;
    to[i] = isSigned && (v & sign) ? uint8_t(v | ~mask) : uint8_t(v);
  }
}

template <typename Vector>
std::vector<int64_t> listOf(const Vector *v) {
  return v && v->values() ? std::vector<int64_t>(v->values()->begin(), v->values()->end()) : std::vector<int64_t>();
}

/// Walks the levels of a sparse tensor: each level is a dimension (or the part of one inside a block), dense or a list of
/// the places that have something.
class SparseReader {
public:
  SparseReader(const TensorInfo &info, Tensor &result) : info(info), result(result) {}
  absl::Status run();

private:
  struct Level {
    bool dense = true;
    int64_t size = 0;
    std::vector<int64_t> segments, indices;
  };
  absl::Status bad(const char *what) { return absl::InvalidArgumentError(std::string("sparse tensor: ") + what); }
  absl::Status readLevels();
  absl::Status walk(size_t level, int64_t position);

  const TensorInfo &info;
  Tensor &result;
  std::vector<int64_t> order, blockOf, blockSize, at;
  std::vector<Level> levels;
  int64_t next = 0, available = 0, steps = 0;
};

absl::Status SparseReader::readLevels() {
  const tfl::SparsityParameters &s = *info.sparsity;
  if (!s.traversal_order() || !s.dim_metadata() || s.traversal_order()->size() != s.dim_metadata()->size())
    return bad("expected as many levels as dimensions and blocks");
  order.assign(s.traversal_order()->begin(), s.traversal_order()->end());
  if (s.block_map())
    blockOf.assign(s.block_map()->begin(), s.block_map()->end());
  const int64_t rank = info.dims.size(), total = rank + blockOf.size();
  if (int64_t(order.size()) != total || total > 64)
    return bad("expected as many levels as dimensions and blocks");
  std::vector<bool> seen(total, false);
  for (int64_t d : order) {
    if (d < 0 || d >= total || seen[d])
      return bad("the order of traversal is no permutation");
    seen[d] = true;
  }
  blockSize.assign(rank, 1);
  for (int64_t i = 0; i < total; ++i) {
    const tfl::DimensionMetadata &m = *s.dim_metadata()->Get(i);
    Level level;
    level.dense = m.format() == tfl::DimensionType::DENSE;
    level.size = m.dense_size();
    auto list = [&](tfl::SparseIndexVector type, const void *v) {
      switch (type) {
      case tfl::SparseIndexVector::Int32Vector: return listOf(static_cast<const tfl::Int32Vector *>(v));
      case tfl::SparseIndexVector::Uint16Vector: return listOf(static_cast<const tfl::Uint16Vector *>(v));
      case tfl::SparseIndexVector::Uint8Vector: return listOf(static_cast<const tfl::Uint8Vector *>(v));
      default: return std::vector<int64_t>();
      }
    };
    level.segments = list(m.array_segments_type(), m.array_segments());
    level.indices = list(m.array_indices_type(), m.array_indices());
    if (order[i] >= rank) { // the inner part of a dimension
      int64_t d = blockOf[order[i] - rank];
      if (d < 0 || d >= rank || !level.dense || level.size <= 0)
        return bad("a block belongs to no dimension");
      blockSize[d] = level.size;
    }
    levels.push_back(std::move(level));
  }
  return absl::OkStatus();
}

absl::Status SparseReader::walk(size_t level, int64_t position) {
  if (++steps > (int64_t(1) << 31))
    return bad("too many levels");
  if (level == levels.size()) {
    const int64_t rank = info.dims.size();
    std::vector<int64_t> index(rank, 0);
    for (size_t i = 0; i < levels.size(); ++i)
      if (order[i] < rank)
        index[order[i]] += at[i] * blockSize[order[i]];
      else
        index[blockOf[order[i] - rank]] += at[i];
    int64_t offset = 0;
    for (int64_t d = 0; d < rank; ++d) {
      if (index[d] < 0 || index[d] >= info.dims[d])
        return bad("an index is out of range");
      offset = offset * info.dims[d] + index[d];
    }
    if (next >= available)
      return bad("has fewer values than places");
    const size_t bytes = dtypeSize(result.dtype());
    memcpy(static_cast<char *>(result.data()) + offset * bytes, info.data.data() + next++ * bytes, bytes);
    return absl::OkStatus();
  }
  const Level &l = levels[level];
  if (l.dense) {
    for (int64_t i = 0; i < l.size; ++i) {
      at[level] = i;
      if (absl::Status s = walk(level + 1, position * l.size + i); !s.ok())
        return s;
    }
    return absl::OkStatus();
  }
  if (position + 1 >= int64_t(l.segments.size()))
    return bad("a segment is missing");
  const int64_t from = l.segments[position], to = l.segments[position + 1];
  if (from < 0 || to < from || to > int64_t(l.indices.size()))
    return bad("a segment is out of range");
  for (int64_t i = from; i < to; ++i) {
    at[level] = l.indices[i];
    if (absl::Status s = walk(level + 1, i); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status SparseReader::run() {
  if (bitsOf(info.type) < 8)
    return bad("of elements smaller than a byte is not supported");
  available = info.data.size() / dtypeSize(result.dtype());
  if (absl::Status s = readLevels(); !s.ok())
    return s;
  at.assign(levels.size(), 0);
  return walk(0, 0);
}

} // namespace

absl::StatusOr<Tensor> readConstant(const TensorInfo &info, int64_t maxBytes) {
  const DType dtype = dtypeOf(info.type);
  if (dtype == DType::Invalid)
    return absl::UnimplementedError("is a constant of " + typeName(info.type) + ", which has no compiled form");
  auto tensor = Tensor::tryAllocate(dtype, {info.dims.begin(), info.dims.end()}, maxBytes);
  if (!tensor.ok())
    return tensor;
  if (info.sparsity) {
    if (absl::Status s = SparseReader(info, *tensor).run(); !s.ok())
      return s;
    return tensor;
  }
  if (const unsigned bits = bitsOf(info.type); bits < 8)
    unpack(info.data.data(), bits, info.type != tfl::TensorType::UINT4, tensor->numElements(), tensor->data<uint8_t>());
  else
    memcpy(tensor->data(), info.data.data(), info.data.size());
  if (dtype == DType::Bool)
    for (int64_t i = 0; i < tensor->numElements(); ++i)
      tensor->data<uint8_t>()[i] = tensor->data<uint8_t>()[i] != 0;
  return tensor;
}

} // namespace lathe::tflite
