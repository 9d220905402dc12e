// Tensors as constants and back, see Constants.h.
#include "dialects/hlo/Constants.h"

#include "dialects/hlo/BlobNames.h"
#include "dialects/hlo/Hlo.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APSInt.h"

#include <cstring>

using namespace mlir;

namespace lathe::hlo {

RankedTensorType typeOfTensor(MLIRContext *context, const Tensor &tensor) {
  Type element = toElementType(context, tensor.dtype());
  if (!element)
    return {};
  return RankedTensorType::get(tensor.dims(), element);
}

std::string nextBlobName(MLIRContext *context, StringRef base) {
  auto *dialect = context->getLoadedDialect<HloDialect>();
  auto *names = dialect ? dialect->getRegisteredInterface<BlobNames>() : nullptr;
  return names ? names->next(base) : base.str();
}

ElementsAttr makeElements(MLIRContext *context, const Tensor &tensor) {
  RankedTensorType type = typeOfTensor(context, tensor);
  if (!type)
    return {};
  int64_t count = tensor.numElements();
  if (count == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  size_t size = dtypeSize(tensor.dtype()), bytes = tensor.sizeBytes();
  const char *data = static_cast<const char *>(tensor.data());
  bool splat = std::memcmp(data, data + size, bytes - size) == 0;
  if (!splat && count > maxInlineElements) {
    // the blob keeps the tensor's buffer alive
    AsmResourceBlob blob(ArrayRef<char>(data, bytes), 64, [keep = tensor](void *, size_t, size_t) {}, false);
    return DenseResourceElementsAttr::get(type, nextBlobName(context, "constant"), std::move(blob));
  }
  int64_t stored = splat ? 1 : count;
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (int64_t i = 0; i < stored; ++i)
      values.push_back(data[i] != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data, stored * size));
}

Value makeConstant(OpBuilder &b, Location loc, const Tensor &tensor) {
  ElementsAttr value = makeElements(b.getContext(), tensor);
  if (!value) {
    emitError(loc) << "a constant of type " << dtypeName(tensor.dtype()) << " has no element type here";
    return {};
  }
  return makeConstant(b, loc, value);
}

Value makeConstant(OpBuilder &b, Location loc, ElementsAttr value) { return ConstantOp::create(b, loc, value); }

static const llvm::fltSemantics &semanticsOf(Type type) { return cast<FloatType>(type).getFloatSemantics(); }

// An element of `type`, null for types that hold no numbers.
static Attribute elementAttr(Type type, const APFloat &value) {
  if (auto complex = dyn_cast<ComplexType>(type)) {
    Attribute real = elementAttr(complex.getElementType(), value);
    Attribute zero = FloatAttr::get(complex.getElementType(), 0.0);
    return ArrayAttr::get(type.getContext(), {real, zero});
  }
  bool inexact;
  if (isa<FloatType>(type)) {
    APFloat converted = value;
    converted.convert(semanticsOf(type), APFloat::rmNearestTiesToEven, &inexact);
    return FloatAttr::get(type, converted);
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return {};
  if (integer.getWidth() == 1)
    return IntegerAttr::get(type, APInt(1, !value.isZero()));
  llvm::APSInt result(integer.getWidth(), integer.isUnsigned());
  value.convertToInteger(result, APFloat::rmTowardZero, &inexact);
  return IntegerAttr::get(type, result);
}

static Attribute elementAttr(Type type, int64_t value) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.getWidth() == 1)
      return IntegerAttr::get(type, APInt(1, value != 0));
    return IntegerAttr::get(type, APInt(64, value, true).trunc(integer.getWidth()));
  }
  APFloat wide(APFloat::IEEEquad());
  wide.convertFromAPInt(APInt(64, value, true), true, APFloat::rmNearestTiesToEven);
  return elementAttr(type, wide);
}

DenseElementsAttr splatAttr(RankedTensorType type, Attribute element) {
  auto pair = dyn_cast<ArrayAttr>(element);
  if (!pair)
    return DenseElementsAttr::get(type, element);
  std::complex<APFloat> value(cast<FloatAttr>(pair[0]).getValue(), cast<FloatAttr>(pair[1]).getValue());
  return DenseElementsAttr::get(type, ArrayRef<std::complex<APFloat>>(value));
}

static Value makeSplatOf(OpBuilder &b, Location loc, Attribute element, RankedTensorType type) {
  if (!element) {
    emitError(loc) << "no constant of " << type;
    return {};
  }
  if (type.hasStaticShape())
    return makeConstant(b, loc, splatAttr(type, element));
  Value scalar = makeConstant(b, loc, splatAttr(RankedTensorType::get({}, type.getElementType()), element));
  return BroadcastInDimOp::create(b, loc, type, scalar, ArrayRef<int64_t>());
}

Value makeSplat(OpBuilder &b, Location loc, double value, RankedTensorType type) {
  return makeSplatOf(b, loc, elementAttr(type.getElementType(), APFloat(value)), type);
}
Value makeSplat(OpBuilder &b, Location loc, int64_t value, RankedTensorType type) {
  return makeSplatOf(b, loc, elementAttr(type.getElementType(), value), type);
}
Value makeSplat(OpBuilder &b, Location loc, const APFloat &value, RankedTensorType type) {
  return makeSplatOf(b, loc, elementAttr(type.getElementType(), value), type);
}
Value makeScalar(OpBuilder &b, Location loc, double value, Type elementType) {
  return makeSplat(b, loc, value, RankedTensorType::get({}, elementType));
}
Value makeScalar(OpBuilder &b, Location loc, int64_t value, Type elementType) {
  return makeSplat(b, loc, value, RankedTensorType::get({}, elementType));
}

Value makeVector(OpBuilder &b, Location loc, ArrayRef<int64_t> values, Type elementType) {
  if (!elementType)
    elementType = b.getI64Type();
  Tensor tensor = Tensor::vector<int64_t>(DType::Int64, std::vector<int64_t>(values.begin(), values.end()));
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, elementType);
  if (elementType.isInteger(64) && !elementType.isUnsignedInteger())
    return makeConstant(b, loc, tensor);
  SmallVector<Attribute> elements;
  for (int64_t value : values)
    elements.push_back(elementAttr(elementType, value));
  if (values.size() > static_cast<size_t>(maxInlineElements))
    return ConvertOp::create(b, loc, makeConstant(b, loc, tensor), elementType);
  return makeConstant(b, loc, DenseElementsAttr::get(type, elements));
}

// The end of an element type's range.
static Value makeEnd(OpBuilder &b, Location loc, Type elementType, bool infinite, bool high) {
  auto type = RankedTensorType::get({}, elementType);
  if (isa<FloatType>(elementType)) {
    const llvm::fltSemantics &semantics = semanticsOf(elementType);
    bool hasInfinity = !isa<Float8E4M3FNType>(elementType);
    APFloat value = infinite && hasInfinity ? APFloat::getInf(semantics, !high) : APFloat::getLargest(semantics, !high);
    return makeConstant(b, loc, DenseElementsAttr::get(type, FloatAttr::get(elementType, value)));
  }
  auto integer = dyn_cast<IntegerType>(elementType);
  if (!integer) {
    emitError(loc) << "no order among elements of " << elementType;
    return makeScalar(b, loc, 0, elementType);
  }
  unsigned width = integer.getWidth();
  bool isUnsigned = integer.isUnsigned() || width == 1;
  APInt value = isUnsigned ? (high ? APInt::getMaxValue(width) : APInt::getMinValue(width))
                           : (high ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
  return makeConstant(b, loc, DenseElementsAttr::get(type, value));
}
Value makeLowest(OpBuilder &b, Location loc, Type elementType, bool infinite) {
  return makeEnd(b, loc, elementType, infinite, false);
}
Value makeHighest(OpBuilder &b, Location loc, Type elementType, bool infinite) {
  return makeEnd(b, loc, elementType, infinite, true);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

// Repeats the first `size` bytes through the buffer.
static void fillSplat(char *data, size_t size, size_t bytes) {
  for (size_t done = size; done < bytes;) {
    size_t step = std::min(done, bytes - done);
    std::memcpy(data + done, data, step);
    done += step;
  }
}

FailureOr<Tensor> readConstant(ElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type || !type.hasStaticShape())
    return failure();
  DType dtype = toDType(type.getElementType());
  if (dtype == DType::Invalid)
    return failure();
  std::vector<int64_t> dims(type.getShape().begin(), type.getShape().end());
  size_t size = dtypeSize(dtype);

  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    auto count = checkedNumElements(dims);
    if (!blob || !count.ok() || blob->getData().size() != *count * size)
      return failure();
    const char *data = blob->getData().data();
    if (reinterpret_cast<uintptr_t>(data) % std::min<size_t>(size, 16) == 0)
      return Tensor::wrap(dtype, dims, const_cast<char *>(data), nullptr); // the context keeps blobs
    auto copy = Tensor::tryAllocate(dtype, dims, INT64_MAX);
    if (!copy.ok())
      return failure();
    std::memcpy(copy->data(), data, blob->getData().size());
    return *copy;
  }

  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return failure();
  // a splat may be of any size: bound what it makes us allocate
  auto tensor = Tensor::tryAllocate(dtype, dims, int64_t(1) << 34);
  if (!tensor.ok())
    return failure();
  if (tensor->numElements() == 0)
    return *tensor;
  char *data = static_cast<char *>(tensor->data());
  if (dtype == DType::Bool) {
    if (dense.isSplat()) {
      std::memset(data, dense.getSplatValue<bool>(), tensor->numElements());
    } else {
      for (auto [i, value] : llvm::enumerate(dense.getValues<bool>()))
        data[i] = value;
    }
    return *tensor;
  }
  ArrayRef<char> raw = dense.getRawData();
  size_t bytes = tensor->sizeBytes();
  if (raw.size() < (dense.isSplat() ? size : bytes))
    return failure();
  if (dense.isSplat()) {
    std::memcpy(data, raw.data(), size);
    fillSplat(data, size, bytes);
  } else {
    std::memcpy(data, raw.data(), bytes);
  }
  if (dtype == DType::Int4 || dtype == DType::UInt4)
    for (size_t i = 0; i < bytes; ++i)
      data[i] = dtype == DType::UInt4 ? (data[i] & 15) : static_cast<char>(static_cast<int8_t>(static_cast<uint8_t>(data[i]) << 4) >> 4);
  return *tensor;
}

FailureOr<Tensor> readConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return failure();
  return readConstant(constant.getValue());
}

} // namespace lathe::hlo
