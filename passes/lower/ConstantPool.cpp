// Reads attributes the way memory wants them: bool and int4 a byte each, complex as two reals, little-endian.
#include "passes/lower/ConstantPool.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include <cstring>

using namespace mlir;

namespace lathe::lower {
namespace {

int64_t bytesPerElement(Type t) {
  if (auto c = dyn_cast<ComplexType>(t))
    return 2 * bytesPerElement(c.getElementType());
  return (t.getIntOrFloatBitWidth() + 7) / 8;
}

void appendInt(std::string &out, const APInt &v) {
  unsigned bytes = (v.getBitWidth() + 7) / 8;
  // int4 is kept as a sign- or zero-extended byte by the importer; here the value alone decides nothing, so the low
  // bits are what counts and kernels extend them.
  for (unsigned i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>(v.extractBitsAsZExtValue(std::min(8u, v.getBitWidth() - 8 * i), 8 * i)));
}

void appendElement(std::string &out, Attribute a) {
  if (auto i = dyn_cast<IntegerAttr>(a)) {
    APInt v = i.getValue();
    if (v.getBitWidth() == 4)
      v = i.getType().isUnsignedInteger() ? v.zext(8) : v.sext(8);
    appendInt(out, v);
  } else if (auto f = dyn_cast<FloatAttr>(a)) {
    appendInt(out, f.getValue().bitcastToAPInt());
  } else if (auto pair = dyn_cast<ArrayAttr>(a)) {
    for (Attribute part : pair)
      appendElement(out, part);
  }
}

} // namespace

std::string splatBytes(ElementsAttr value) {
  std::string out;
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.isSplat())
    return out;
  if (isa<ComplexType>(dense.getElementType())) {
    llvm::ArrayRef<char> raw = dense.getRawData();
    return std::string(raw.begin(), raw.begin() + bytesPerElement(dense.getElementType()));
  }
  appendElement(out, dense.getSplatValue<Attribute>());
  return out;
}

int64_t ConstantPool::place(llvm::ArrayRef<char> bytes, AsmResourceBlob *blob) {
  llvm::XXH128_hash_t h =
      llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  auto [it, isNew] = byContent.try_emplace({h.low64 ^ bytes.size(), h.high64}, int64_t(pieces.size()));
  if (!isNew) {
    const Piece &p = pieces[it->second];
    if (p.bytes == bytes)
      return p.offset;
  }
  if (!blob && !bytes.empty()) {
    owned.emplace_back(new char[bytes.size()]);
    std::memcpy(owned.back().get(), bytes.data(), bytes.size());
    bytes = llvm::ArrayRef<char>(owned.back().get(), bytes.size());
  }
  int64_t offset = llvm::alignTo(total, 64);
  pieces.push_back({offset, bytes, blob});
  total = offset + bytes.size();
  return offset;
}

int64_t ConstantPool::addBytes(llvm::StringRef bytes) {
  return place(llvm::ArrayRef<char>(bytes.data(), bytes.size()), nullptr);
}

FailureOr<int64_t> ConstantPool::add(ElementsAttr value, Location loc) {
  auto found = byAttribute.find(value);
  if (found != byAttribute.end())
    return found->second;
  Type elem = value.getElementType();
  int64_t elemBytes = bytesPerElement(elem), n = value.getNumElements(), offset;
  if (n < 0 || n > (int64_t(1) << 40) / elemBytes || total > (int64_t(1) << 40))
    return emitError(loc, "constant is too large: ") << n << " elements", failure();
  if (auto res = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = res.getRawHandle().getBlob();
    if (!blob || static_cast<int64_t>(blob->getData().size()) != n * elemBytes)
      return emitError(loc, "content of constant does not have the size of its type"), failure();
    offset = place(blob->getData(), blob);
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    std::string bytes;
    unsigned bits = isa<ComplexType>(elem) ? 0 : elem.getIntOrFloatBitWidth();
    if (dense.isSplat()) {
      std::string one = splatBytes(value);
      bytes.reserve(one.size() * n);
      for (int64_t i = 0; i < n; ++i)
        bytes += one;
    } else if (bits == 1 || bits == 4) {
      for (Attribute a : dense.getValues<Attribute>())
        appendElement(bytes, a);
    } else {
      llvm::ArrayRef<char> raw = dense.getRawData();
      bytes.assign(raw.begin(), raw.end());
    }
    if (static_cast<int64_t>(bytes.size()) != n * elemBytes)
      return emitError(loc, "content of constant does not have the size of its type"), failure();
    offset = addBytes(bytes);
  } else {
    return emitError(loc, "constant has an attribute that cannot be emitted"), failure();
  }
  byAttribute[value] = offset;
  added.push_back(value);
  return offset;
}

void ConstantPool::append(std::string &out, bool release) {
  const size_t start = out.size();
  out.reserve(start + total);
  for (Piece &p : pieces) {
    out.resize(start + p.offset, 0);
    out.append(p.bytes.data(), p.bytes.size());
    if (release && p.blob) {
      p.bytes = {};
      *p.blob = AsmResourceBlob();
    }
  }
}

uint64_t ConstantPool::hash() const {
  uint64_t h = total;
  for (const Piece &p : pieces)
    h = llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(p.bytes.data()), p.bytes.size())) +
        31 * h + p.offset;
  return h;
}

} // namespace lathe::lower
