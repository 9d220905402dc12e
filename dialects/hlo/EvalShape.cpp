// Ops of the evaluator that move elements.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cstring>

using namespace mlir;

namespace lathe::hlo::eval {

//===----------------------------------------------------------------------===//
// Strided copies
//===----------------------------------------------------------------------===//

Dims toVector(ArrayRef<int64_t> dims) { return Dims(dims.begin(), dims.end()); }

int64_t product(ArrayRef<int64_t> dims) {
  int64_t p = 1;
  for (int64_t dim : dims)
    p *= dim;
  return p;
}

Dims stridesOf(ArrayRef<int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

template <typename T>
static void copyRow(const char *src, int64_t srcStride, char *dst, int64_t dstStride, int64_t n) {
  const T *from = reinterpret_cast<const T *>(src);
  T *to = reinterpret_cast<T *>(dst);
  for (int64_t i = 0; i < n; ++i)
    to[i * dstStride] = from[i * srcStride];
}

namespace {
struct Wide {
  uint64_t a, b;
};
} // namespace

void copyStrided(const char *src, Dims srcStrides, char *dst, Dims dstStrides, Dims dims, size_t elementSize) {
  for (int64_t dim : dims)
    if (dim <= 0)
      return;
  // drop dimensions of one and join those that are contiguous in both
  Dims d, ss, ds;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1)
      continue;
    if (!d.empty() && ss.back() == srcStrides[i] * dims[i] && ds.back() == dstStrides[i] * dims[i]) {
      d.back() *= dims[i];
      ss.back() = srcStrides[i];
      ds.back() = dstStrides[i];
      continue;
    }
    d.push_back(dims[i]);
    ss.push_back(srcStrides[i]);
    ds.push_back(dstStrides[i]);
  }
  if (d.empty()) {
    std::memcpy(dst, src, elementSize);
    return;
  }
  int64_t n = d.back(), srcStride = ss.back(), dstStride = ds.back();
  size_t outer = d.size() - 1;
  Dims index(outer, 0);
  while (true) {
    if (srcStride == 1 && dstStride == 1) {
      std::memcpy(dst, src, n * elementSize);
    } else {
      switch (elementSize) {
      case 1: copyRow<uint8_t>(src, srcStride, dst, dstStride, n); break;
      case 2: copyRow<uint16_t>(src, srcStride, dst, dstStride, n); break;
      case 4: copyRow<uint32_t>(src, srcStride, dst, dstStride, n); break;
      case 8: copyRow<uint64_t>(src, srcStride, dst, dstStride, n); break;
      case 16: copyRow<Wide>(src, srcStride, dst, dstStride, n); break;
      }
    }
    size_t k = outer;
    while (k > 0) {
      --k;
      src += ss[k] * static_cast<int64_t>(elementSize);
      dst += ds[k] * static_cast<int64_t>(elementSize);
      if (++index[k] < d[k])
        break;
      src -= ss[k] * d[k] * static_cast<int64_t>(elementSize);
      dst -= ds[k] * d[k] * static_cast<int64_t>(elementSize);
      index[k] = 0;
      if (k == 0)
        return;
    }
    if (outer == 0)
      return;
  }
}

static const char *bytes(const Tensor &t) { return static_cast<const char *>(t.data()); }
static char *bytes(Tensor &t) { return static_cast<char *>(t.data()); }

Tensor transposed(const Tensor &t, ArrayRef<int64_t> permutation) {
  Dims dims, strides = stridesOf(t.dims()), srcStrides;
  for (int64_t dim : permutation) {
    dims.push_back(t.dim(dim));
    srcStrides.push_back(strides[dim]);
  }
  Tensor result = Tensor::allocate(t.dtype(), dims);
  copyStrided(bytes(t), srcStrides, bytes(result), stridesOf(dims), dims, dtypeSize(t.dtype()));
  return result;
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

static LogicalResult evalConstant(Evaluation &e, ConstantOp op, ArrayRef<Tensor>, Tensors &out) {
  if (product(op.getType().getShape()) > e.options.maxBytes)
    return e.fail(op, "constant is too big");
  auto tensor = readConstant(op.getValue());
  if (failed(tensor))
    return e.fail(op, "constant cannot be read");
  out.push_back(*tensor);
  return success();
}

static LogicalResult evalSize(Evaluation &e, SizeOp op, ArrayRef<Tensor>, Tensors &out) {
  std::vector<int64_t> values;
  for (AffineExpr expr : op.getMap().getResults()) {
    auto value = evaluate(expr, e.symbols);
    if (!value)
      return e.fail(op, "size " + dimToString(expr) + " is not known");
    values.push_back(*value);
  }
  Tensor result;
  auto type = cast<RankedTensorType>(op.getType());
  if (failed(e.allocate(op, toDType(type.getElementType()), toVector(type.getShape()), result)))
    return failure();
  storeInts(result.dtype(), values.data(), values.size(), result.data());
  out.push_back(result);
  return success();
}

static LogicalResult evalSetSize(Evaluation &e, SetSizeOp op, ArrayRef<Tensor> in, Tensors &) {
  int64_t value = loadInts(in[0])[0];
  if (value < 0)
    return e.fail(op, "size " + Twine(value) + " is negative");
  if (auto module = op->getParentOfType<ModuleOp>())
    if (auto info = lookupSymbol(module, op.getSymbol()))
      if ((info->bound >= 0 && value > info->bound) ||
          (info->boundExpr && e.symbolValue(info->boundExpr) >= 0 && value > e.symbolValue(info->boundExpr)))
        return e.fail(op, "size " + Twine(value) + " is above its bound");
  return e.setSymbol(op, op.getSymbol(), value);
}

static LogicalResult iota(Evaluation &e, Operation *op, Dims dims, int64_t axis, Tensors &out) {
  Tensor result;
  DType type = toDType(elementType(op->getResult(0)));
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, type, dims, result)))
    return failure();
  int64_t n = result.numElements(), inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i)
    inner *= dims[i];
  size_t size = dtypeSize(type);
  Chunk chunk;
  chunk.reset(type);
  for (int64_t at = 0; at < n; at += chunkSize) {
    int64_t count = std::min(chunkSize, n - at);
    for (int64_t k = 0; k < count; ++k) {
      int64_t value = (at + k) / inner % dims[axis];
      switch (kindOf(type)) {
      case Kind::Float: chunk.f[k] = static_cast<double>(value); break;
      case Kind::Int: chunk.i[k] = value; break;
      case Kind::Complex: chunk.c[k] = static_cast<double>(value); break;
      }
    }
    chunk.store(bytes(result) + at * size, count);
  }
  out.push_back(result);
  return success();
}
static LogicalResult evalIota(Evaluation &e, IotaOp op, ArrayRef<Tensor>, Tensors &out) {
  return iota(e, op, e.dimsOf(op.getType()), op.getIotaDimension(), out);
}
static LogicalResult evalDynamicIota(Evaluation &e, DynamicIotaOp op, ArrayRef<Tensor> in, Tensors &out) {
  return iota(e, op, loadInts(in[0]), op.getIotaDimension(), out);
}

//===----------------------------------------------------------------------===//
// Reshapes and broadcasts
//===----------------------------------------------------------------------===//

static LogicalResult reshape(Evaluation &e, Operation *op, const Tensor &t, Dims dims, Tensors &out) {
  // one size that is not known follows from the others
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0)
      known *= dims[i];
    else if (unknown < 0)
      unknown = i;
    else
      return e.fail(op, "the size of a dimension is not known");
  }
  if (unknown >= 0 && known > 0)
    dims[unknown] = t.numElements() / known;
  if (unknown >= 0 && known == 0)
    return e.fail(op, "the size of a dimension is not known");
  auto count = checkedNumElements(dims);
  if (!count.ok() || *count != t.numElements())
    return e.fail(op, "cannot reshape " + dimsToString(t.dims()) + " to " + dimsToString(dims));
  out.push_back(t.reshaped(dims));
  return success();
}
static LogicalResult evalReshape(Evaluation &e, ReshapeOp op, ArrayRef<Tensor> in, Tensors &out) {
  return reshape(e, op, in[0], e.dimsOf(op.getType()), out);
}
static LogicalResult evalDynamicReshape(Evaluation &e, DynamicReshapeOp op, ArrayRef<Tensor> in, Tensors &out) {
  return reshape(e, op, in[0], loadInts(in[1]), out);
}
static LogicalResult evalAssumeShape(Evaluation &e, AssumeShapeOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims dims = e.dimsOf(op.getType());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] >= 0 && dims[i] != in[0].dim(i))
      return e.fail(op, "sizes differ: expected " + dimsToString(dims) + ", found " + dimsToString(in[0].dims()) +
                            (op.getMessage().empty() ? Twine() : " (" + op.getMessage() + ")"));
  out.push_back(in[0]);
  return success();
}

static LogicalResult broadcast(Evaluation &e, Operation *op, const Tensor &t, Dims dims, ArrayRef<int64_t> map,
                               Tensors &out) {
  Dims srcStrides(dims.size(), 0), strides = stridesOf(t.dims());
  for (auto [i, dim] : llvm::enumerate(map)) {
    if (dims[dim] < 0 && t.dim(i) != 1)
      dims[dim] = t.dim(i);
    if (t.dim(i) == 1)
      continue;
    if (t.dim(i) != dims[dim])
      return e.fail(op, "cannot broadcast " + dimsToString(t.dims()) + " to " + dimsToString(dims));
    srcStrides[dim] = strides[i];
  }
  Tensor result;
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, t.dtype(), dims, result)))
    return failure();
  copyStrided(bytes(t), srcStrides, bytes(result), stridesOf(dims), dims, dtypeSize(t.dtype()));
  out.push_back(result);
  return success();
}
static LogicalResult evalBroadcastInDim(Evaluation &e, BroadcastInDimOp op, ArrayRef<Tensor> in, Tensors &out) {
  return broadcast(e, op, in[0], e.dimsOf(op.getType()), op.getBroadcastDimensions(), out);
}
static LogicalResult evalDynamicBroadcast(Evaluation &e, DynamicBroadcastInDimOp op, ArrayRef<Tensor> in,
                                          Tensors &out) {
  return broadcast(e, op, in[0], loadInts(in[1]), op.getBroadcastDimensions(), out);
}
static LogicalResult evalBroadcast(Evaluation &e, BroadcastOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims dims = toVector(op.getBroadcastSizes());
  SmallVector<int64_t> map;
  for (int64_t dim : in[0].dims()) {
    map.push_back(dims.size());
    dims.push_back(dim);
  }
  return broadcast(e, op, in[0], dims, map, out);
}

static LogicalResult evalTranspose(Evaluation &e, TransposeOp op, ArrayRef<Tensor> in, Tensors &out) {
  if (failed(e.work(op, in[0].numElements())))
    return failure();
  out.push_back(transposed(in[0], op.getPermutation()));
  return success();
}

static LogicalResult evalReverse(Evaluation &e, ReverseOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0];
  Tensor result;
  if (failed(e.work(op, t.numElements())) || failed(e.allocate(op, t.dtype(), t.dims(), result)))
    return failure();
  Dims strides = stridesOf(t.dims()), srcStrides = strides;
  size_t size = dtypeSize(t.dtype());
  int64_t offset = 0;
  for (int64_t dim : op.getDimensions()) {
    offset += strides[dim] * (t.dim(dim) - 1);
    srcStrides[dim] = -strides[dim];
  }
  if (t.numElements() > 0)
    copyStrided(bytes(t) + offset * static_cast<int64_t>(size), srcStrides, bytes(result), strides, t.dims(), size);
  out.push_back(result);
  return success();
}

static LogicalResult evalConcatenate(Evaluation &e, ConcatenateOp op, ArrayRef<Tensor> in, Tensors &out) {
  int64_t axis = op.getDimension();
  Dims dims = in[0].dims();
  dims[axis] = 0;
  for (const Tensor &t : in) {
    for (int64_t i = 0; i < t.rank(); ++i)
      if (i != axis && t.dim(i) != dims[i])
        return e.fail(op, "shapes differ at run time");
    dims[axis] += t.dim(axis);
  }
  Tensor result;
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, in[0].dtype(), dims, result)))
    return failure();
  Dims strides = stridesOf(dims);
  size_t size = dtypeSize(result.dtype());
  int64_t offset = 0;
  for (const Tensor &t : in) {
    copyStrided(bytes(t), stridesOf(t.dims()), bytes(result) + offset * size, strides, t.dims(), size);
    offset += t.dim(axis) * strides[axis];
  }
  out.push_back(result);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static LogicalResult slice(Evaluation &e, Operation *op, const Tensor &t, Dims starts, Dims limits, Dims steps,
                           Tensors &out) {
  Dims dims, strides = stridesOf(t.dims()), srcStrides;
  int64_t offset = 0;
  for (int64_t i = 0; i < t.rank(); ++i) {
    if (steps[i] <= 0 || starts[i] < 0 || limits[i] < starts[i] || limits[i] > t.dim(i))
      return e.fail(op, "slice [" + Twine(starts[i]) + ", " + Twine(limits[i]) + ") of dimension " + Twine(i) +
                            " leaves " + dimsToString(t.dims()));
    dims.push_back((limits[i] - starts[i] + steps[i] - 1) / steps[i]);
    srcStrides.push_back(strides[i] * steps[i]);
    offset += starts[i] * strides[i];
  }
  Tensor result;
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, t.dtype(), dims, result)))
    return failure();
  size_t size = dtypeSize(t.dtype());
  if (result.numElements() > 0)
    copyStrided(bytes(t) + offset * size, srcStrides, bytes(result), stridesOf(dims), dims, size);
  out.push_back(result);
  return success();
}
static LogicalResult evalSlice(Evaluation &e, SliceOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims starts, limits;
  for (auto [start, limit] : llvm::zip(op.getStartExprs(), op.getLimitExprs())) {
    int64_t size = in[0].dim(starts.size());
    starts.push_back(start ? e.symbolValue(start) : 0);
    limits.push_back(limit ? e.symbolValue(limit) : size);
    bool wholeDim = op.getLimitIndices()[limits.size() - 1] == ShapedType::kDynamic && !op.getLimitMap();
    if (wholeDim)
      limits.back() = size;
  }
  return slice(e, op, in[0], starts, limits, toVector(op.getStrides()), out);
}
static LogicalResult evalRealDynamicSlice(Evaluation &e, RealDynamicSliceOp op, ArrayRef<Tensor> in, Tensors &out) {
  return slice(e, op, in[0], loadInts(in[1]), loadInts(in[2]), loadInts(in[3]), out);
}

static LogicalResult evalDynamicSlice(Evaluation &e, DynamicSliceOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0];
  Dims starts, limits;
  for (int64_t i = 0; i < t.rank(); ++i) {
    int64_t size = op.getSliceSizes()[i];
    if (size == ShapedType::kDynamic)
      size = op.getSizeMap() ? e.symbolValue(op.getSizeMap()->getResult(i)) : t.dim(i);
    if (size < 0 || size > t.dim(i))
      return e.fail(op, "slice size " + Twine(size) + " does not fit dimension " + Twine(i) + " of " +
                            dimsToString(t.dims()));
    starts.push_back(std::clamp<int64_t>(loadInts(in[1 + i])[0], 0, t.dim(i) - size));
    limits.push_back(starts.back() + size);
  }
  return slice(e, op, t, starts, limits, Dims(t.rank(), 1), out);
}

static LogicalResult evalDynamicUpdateSlice(Evaluation &e, DynamicUpdateSliceOp op, ArrayRef<Tensor> in,
                                            Tensors &out) {
  const Tensor &t = in[0], &update = in[1];
  Dims strides = stridesOf(t.dims());
  int64_t offset = 0;
  for (int64_t i = 0; i < t.rank(); ++i) {
    if (update.dim(i) > t.dim(i))
      return e.fail(op, "update " + dimsToString(update.dims()) + " is larger than " + dimsToString(t.dims()));
    offset += std::clamp<int64_t>(loadInts(in[2 + i])[0], 0, t.dim(i) - update.dim(i)) * strides[i];
  }
  if (failed(e.work(op, t.numElements())))
    return failure();
  Tensor result = t.clone();
  size_t size = dtypeSize(t.dtype());
  copyStrided(bytes(update), stridesOf(update.dims()), bytes(result) + offset * size, strides, update.dims(), size);
  out.push_back(result);
  return success();
}

static LogicalResult evalSetDimensionSize(Evaluation &e, SetDimensionSizeOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims limits = in[0].dims();
  limits[op.getDimension()] = loadInts(in[1])[0];
  return slice(e, op, in[0], Dims(limits.size(), 0), limits, Dims(limits.size(), 1), out);
}
static LogicalResult evalGetDimensionSize(Evaluation &, GetDimensionSizeOp op, ArrayRef<Tensor> in, Tensors &out) {
  int64_t size = in[0].dim(op.getDimension());
  out.push_back(Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(size)));
  return success();
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

static LogicalResult pad(Evaluation &e, Operation *op, const Tensor &t, const Tensor &value, Dims low, Dims high,
                         Dims interior, Tensors &out) {
  Dims dims, dstStrides, copyDims, first;
  for (int64_t i = 0; i < t.rank(); ++i) {
    if (interior[i] < 0)
      return e.fail(op, "interior padding is negative");
    int64_t step = interior[i] + 1, spread = t.dim(i) == 0 ? 0 : (t.dim(i) - 1) * step + 1;
    dims.push_back(spread + low[i] + high[i]);
    if (dims.back() < 0)
      return e.fail(op, "padding makes dimension " + Twine(i) + " negative");
    // source elements that land inside
    int64_t begin = low[i] < 0 ? (-low[i] + step - 1) / step : 0;
    int64_t end = t.dim(i);
    while (end > begin && low[i] + (end - 1) * step >= dims.back())
      --end;
    first.push_back(begin);
    copyDims.push_back(std::max<int64_t>(end - begin, 0));
  }
  Tensor result;
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, t.dtype(), dims, result)))
    return failure();
  size_t size = dtypeSize(t.dtype());
  copyStrided(bytes(value), {0}, bytes(result), {1}, {result.numElements()}, size);
  Dims strides = stridesOf(dims), srcStrides = stridesOf(t.dims());
  int64_t src = 0, dst = 0;
  for (int64_t i = 0; i < t.rank(); ++i) {
    src += first[i] * srcStrides[i];
    dst += (low[i] + first[i] * (interior[i] + 1)) * strides[i];
    dstStrides.push_back(strides[i] * (interior[i] + 1));
  }
  if (product(copyDims) > 0)
    copyStrided(bytes(t) + src * size, srcStrides, bytes(result) + dst * size, dstStrides, copyDims, size);
  out.push_back(result);
  return success();
}
static LogicalResult evalPad(Evaluation &e, PadOp op, ArrayRef<Tensor> in, Tensors &out) {
  return pad(e, op, in[0], in[1], toVector(op.getEdgePaddingLow()), toVector(op.getEdgePaddingHigh()),
             toVector(op.getInteriorPadding()), out);
}
static LogicalResult evalDynamicPad(Evaluation &e, DynamicPadOp op, ArrayRef<Tensor> in, Tensors &out) {
  return pad(e, op, in[0], in[1], loadInts(in[2]), loadInts(in[3]), loadInts(in[4]), out);
}

void registerShape(HandlerTable &table) {
  add<ConstantOp, evalConstant>(table);
  add<SizeOp, evalSize>(table);
  add<SetSizeOp, evalSetSize>(table);
  add<AssumeShapeOp, evalAssumeShape>(table);
  add<IotaOp, evalIota>(table);
  add<DynamicIotaOp, evalDynamicIota>(table);
  add<ReshapeOp, evalReshape>(table);
  add<DynamicReshapeOp, evalDynamicReshape>(table);
  add<BroadcastInDimOp, evalBroadcastInDim>(table);
  add<DynamicBroadcastInDimOp, evalDynamicBroadcast>(table);
  add<BroadcastOp, evalBroadcast>(table);
  add<TransposeOp, evalTranspose>(table);
  add<ReverseOp, evalReverse>(table);
  add<ConcatenateOp, evalConcatenate>(table);
  add<SliceOp, evalSlice>(table);
  add<RealDynamicSliceOp, evalRealDynamicSlice>(table);
  add<DynamicSliceOp, evalDynamicSlice>(table);
  add<DynamicUpdateSliceOp, evalDynamicUpdateSlice>(table);
  add<SetDimensionSizeOp, evalSetDimensionSize>(table);
  add<GetDimensionSizeOp, evalGetDimensionSize>(table);
  add<PadOp, evalPad>(table);
  add<DynamicPadOp, evalDynamicPad>(table);
}

} // namespace lathe::hlo::eval
