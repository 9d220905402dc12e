// gather, scatter, unique and where of the evaluator.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {

// Index vectors: for each place in the batch shape a vector of starts, stored along `vectorDim`.
struct IndexVectors {
  std::vector<int64_t> values;
  Dims batchDims;    // dims of the indices without the vector dimension
  Dims batchStrides; // their strides within `values`
  int64_t vectorStride = 1, vectorSize = 1;

  IndexVectors(const Tensor &t, int64_t vectorDim) : values(loadInts(t)) {
    Dims strides = stridesOf(t.dims());
    for (int64_t i = 0; i < t.rank(); ++i) {
      if (i == vectorDim) {
        vectorStride = strides[i];
        vectorSize = t.dim(i);
        continue;
      }
      batchDims.push_back(t.dim(i));
      batchStrides.push_back(strides[i]);
    }
  }
};

// Odometer over dims; false after the last.
bool advance(Dims &index, const Dims &dims) {
  for (size_t k = dims.size(); k-- > 0;) {
    if (++index[k] < dims[k])
      return true;
    index[k] = 0;
  }
  return false;
}

} // namespace

static LogicalResult gather(Evaluation &e, Operation *op, const Tensor &t, const Tensor &indices,
                            GatherDimensionNumbersAttr numbers, Dims sizes, Tensors &out) {
  IndexVectors starts(indices, numbers.getIndexVectorDim());
  if (starts.vectorSize < static_cast<int64_t>(numbers.getStartIndexMap().size()))
    return e.fail(op, "index vectors are too short");
  size_t rank = t.rank(), resultRank = starts.batchDims.size() + numbers.getOffsetDims().size();
  auto dropped = [&](int64_t dim) {
    return llvm::is_contained(numbers.getCollapsedSliceDims(), dim) ||
           llvm::is_contained(numbers.getOperandBatchingDims(), dim);
  };
  Dims dims(resultRank), windowDims, windowSrcStrides, srcStrides = stridesOf(t.dims());
  SmallVector<int64_t> batchPlaces;
  unsigned next = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0 || sizes[i] > t.dim(i))
      return e.fail(op, "slice size " + Twine(sizes[i]) + " does not fit dimension " + Twine(i));
    if (dropped(i))
      continue;
    dims[numbers.getOffsetDims()[next++]] = sizes[i];
    windowDims.push_back(sizes[i]);
    windowSrcStrides.push_back(srcStrides[i]);
  }
  size_t batch = 0;
  for (size_t i = 0; i < resultRank; ++i)
    if (!llvm::is_contained(numbers.getOffsetDims(), static_cast<int64_t>(i))) {
      dims[i] = starts.batchDims[batch++];
      batchPlaces.push_back(i);
    }
  Tensor result;
  if (failed(e.work(op, product(dims))) || failed(e.allocate(op, t.dtype(), dims, result)))
    return failure();
  out.push_back(result);
  if (result.numElements() == 0)
    return success();
  Dims dstStrides = stridesOf(dims), windowDstStrides;
  for (int64_t place : numbers.getOffsetDims())
    windowDstStrides.push_back(dstStrides[place]);
  size_t size = dtypeSize(t.dtype());
  const char *src = static_cast<const char *>(t.data());
  char *dst = static_cast<char *>(result.data());
  // a start index dimension's place among the batch dimensions
  auto batchOf = [&](int64_t indicesDim) { return indicesDim - (indicesDim > numbers.getIndexVectorDim() ? 1 : 0); };
  Dims index(starts.batchDims.size(), 0);
  do {
    int64_t at = 0, to = 0, from = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      at += index[k] * starts.batchStrides[k];
      to += index[k] * dstStrides[batchPlaces[k]];
    }
    for (auto [k, dim] : llvm::enumerate(numbers.getStartIndexMap()))
      from += std::clamp<int64_t>(starts.values[at + k * starts.vectorStride], 0, t.dim(dim) - sizes[dim]) * srcStrides[dim];
    for (auto [dim, indicesDim] : llvm::zip(numbers.getOperandBatchingDims(), numbers.getStartIndicesBatchingDims()))
      from += std::min(index[batchOf(indicesDim)], t.dim(dim) - 1) * srcStrides[dim];
    copyStrided(src + from * size, windowSrcStrides, dst + to * size, windowDstStrides, windowDims, size);
  } while (advance(index, starts.batchDims));
  return success();
}

static LogicalResult evalGather(Evaluation &e, GatherOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims sizes = toVector(op.getSliceSizes());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == ShapedType::kDynamic)
      sizes[i] = in[0].dim(i);
  return gather(e, op, in[0], in[1], op.getDimensionNumbers(), sizes, out);
}
static LogicalResult evalDynamicGather(Evaluation &e, DynamicGatherOp op, ArrayRef<Tensor> in, Tensors &out) {
  Dims sizes = loadInts(in[2]);
  if (static_cast<int64_t>(sizes.size()) != in[0].rank())
    return e.fail(op, "slice_sizes do not fit");
  return gather(e, op, in[0], in[1], op.getDimensionNumbers(), sizes, out);
}

static LogicalResult evalTorchIndexSelect(Evaluation &e, TorchIndexSelectOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0], &index = in[1];
  int64_t dim = op.getDim(), batch = op.getBatchDims();
  Dims dims(t.dims().begin(), t.dims().begin() + dim);
  dims.insert(dims.end(), index.dims().begin() + batch, index.dims().end());
  dims.insert(dims.end(), t.dims().begin() + dim + 1, t.dims().end());
  Tensor result;
  if (failed(e.allocate(op, t.dtype(), dims, result)))
    return failure();
  auto values = loadInts(index);
  int64_t batches = product(ArrayRef<int64_t>(t.dims()).take_front(batch));
  int64_t middle = product(ArrayRef<int64_t>(t.dims()).slice(batch, dim - batch));
  int64_t inner = product(ArrayRef<int64_t>(t.dims()).drop_front(dim + 1)), n = t.dim(dim);
  int64_t count = product(ArrayRef<int64_t>(index.dims()).drop_front(batch));
  size_t size = dtypeSize(t.dtype());
  const char *src = static_cast<const char *>(t.data());
  char *dst = static_cast<char *>(result.data());
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t m = 0; m < middle; ++m)
      for (int64_t k = 0; k < count; ++k) {
        int64_t i = values[b * count + k];
        if (i < 0 || i >= n)
          return e.fail(op, "index " + Twine(i) + " is not in [0, " + Twine(n) + ")");
        std::memcpy(dst, src + ((b * middle + m) * n + i) * inner * size, inner * size);
        dst += inner * size;
      }
  out.push_back(result);
  return success();
}

//===----------------------------------------------------------------------===//
// scatter
//===----------------------------------------------------------------------===//

static LogicalResult evalScatter(Evaluation &e, ScatterOp op, ArrayRef<Tensor> in, Tensors &out) {
  size_t count = op.getInputs().size();
  ArrayRef<Tensor> inputs = in.take_front(count), updates = in.take_back(count);
  const Tensor &indices = in[count];
  ScatterDimensionNumbersAttr numbers = op.getScatterDimensionNumbers();
  IndexVectors starts(indices, numbers.getIndexVectorDim());
  if (starts.vectorSize < static_cast<int64_t>(numbers.getScatterDimsToOperandDims().size()))
    return e.fail(op, "index vectors are too short");
  const Dims &dims = inputs[0].dims(), &updateDims = updates[0].dims();
  if (failed(e.work(op, updates[0].numElements() * 4.0 + inputs[0].numElements())))
    return failure();
  Dims strides = stridesOf(dims), updateStrides = stridesOf(updateDims);
  Dims windowDims, windowUpdateStrides, windowStrides, windowInputDims;
  unsigned next = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = i;
    if (llvm::is_contained(numbers.getInsertedWindowDims(), dim) || llvm::is_contained(numbers.getInputBatchingDims(), dim))
      continue;
    int64_t place = numbers.getUpdateWindowDims()[next++];
    windowDims.push_back(updateDims[place]);
    windowUpdateStrides.push_back(updateStrides[place]);
    windowStrides.push_back(strides[i]);
    windowInputDims.push_back(dims[i]);
  }
  Dims batchUpdateStrides;
  for (size_t i = 0; i < updateDims.size(); ++i)
    if (!llvm::is_contained(numbers.getUpdateWindowDims(), static_cast<int64_t>(i)))
      batchUpdateStrides.push_back(updateStrides[i]);
  if (batchUpdateStrides.size() != starts.batchDims.size())
    return e.fail(op, "updates do not fit the indices");

  RegionProgram program;
  if (failed(program.compile(e, op.getUpdateComputation())))
    return failure();
  SmallVector<char *> dst;
  for (const Tensor &t : inputs) {
    out.push_back(t.clone());
    dst.push_back(static_cast<char *>(out.back().data()));
  }
  if (updates[0].numElements() == 0)
    return success();

  SmallVector<Chunk> old(count), fresh(count), results(count);
  SmallVector<const Chunk *> arguments;
  for (size_t k = 0; k < count; ++k) {
    old[k].reset(inputs[k].dtype());
    fresh[k].reset(inputs[k].dtype());
    results[k].reset(inputs[k].dtype());
  }
  for (Chunk &chunk : old)
    arguments.push_back(&chunk);
  for (Chunk &chunk : fresh)
    arguments.push_back(&chunk);

  auto batchOf = [&](int64_t indicesDim) { return indicesDim - (indicesDim > numbers.getIndexVectorDim() ? 1 : 0); };
  Dims index(starts.batchDims.size(), 0);
  if (product(starts.batchDims) == 0)
    return success();
  do {
    int64_t at = 0, from = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      at += index[k] * starts.batchStrides[k];
      from += index[k] * batchUpdateStrides[k];
    }
    // the start of the window in each dimension
    Dims start(dims.size(), 0);
    for (auto [k, dim] : llvm::enumerate(numbers.getScatterDimsToOperandDims()))
      start[dim] = starts.values[at + k * starts.vectorStride];
    for (auto [dim, indicesDim] : llvm::zip(numbers.getInputBatchingDims(), numbers.getScatterIndicesBatchingDims()))
      start[dim] = index[batchOf(indicesDim)];
    // inserted and batching dimensions must be inside; window dimensions are tested for each element
    bool inside = true;
    int64_t base = 0;
    Dims windowStart;
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t dim = i;
      if (llvm::is_contained(numbers.getInsertedWindowDims(), dim) ||
          llvm::is_contained(numbers.getInputBatchingDims(), dim)) {
        inside &= start[i] >= 0 && start[i] < dims[i];
        if (inside)
          base += start[i] * strides[i];
      } else {
        windowStart.push_back(start[i]);
      }
    }
    if (!inside)
      continue;
    // rows of the window along its last dimension, in chunks: elements of a row are distinct
    size_t windowRank = windowDims.size();
    int64_t rowLength = windowRank ? windowDims.back() : 1, rowBegin = 0, rowEnd = rowLength;
    int64_t rowStride = windowRank ? windowStrides.back() : 1, rowUpdateStride = windowRank ? windowUpdateStrides.back() : 1;
    if (windowRank) {
      int64_t first = windowStart.back(), size = windowInputDims.back();
      if (first >= size || first <= -rowLength)
        continue;
      rowBegin = std::max<int64_t>(0, -first);
      rowEnd = std::min(rowLength, size - first);
      base += first * rowStride;
    }
    Dims outer(windowDims.begin(), windowDims.begin() + (windowRank ? windowRank - 1 : 0)), w(outer.size(), 0);
    do {
      bool rowInside = true;
      int64_t to = base, source = from;
      for (size_t k = 0; k < outer.size(); ++k) {
        bool ok = w[k] + windowStart[k] >= 0 && w[k] + windowStart[k] < windowInputDims[k];
        rowInside &= ok;
        if (!ok)
          break;
        to += (w[k] + windowStart[k]) * windowStrides[k];
        source += w[k] * windowUpdateStrides[k];
      }
      if (!rowInside)
        continue;
      for (int64_t begin = rowBegin; begin < rowEnd; begin += chunkSize) {
        int64_t n = std::min(chunkSize, rowEnd - begin);
        for (size_t k = 0; k < count; ++k) {
          size_t size = dtypeSize(inputs[k].dtype());
          const char *update = static_cast<const char *>(updates[k].data()) + (source + begin * rowUpdateStride) * size;
          char *target = dst[k] + (to + begin * rowStride) * size;
          std::vector<char> gathered(n * size);
          copyStrided(update, {rowUpdateStride}, gathered.data(), {1}, {n}, size);
          fresh[k].load(gathered.data(), n);
          if (!program.returnsSecond()) {
            copyStrided(target, {rowStride}, gathered.data(), {1}, {n}, size);
            old[k].load(gathered.data(), n);
          }
        }
        if (failed(program.run(arguments, results, n)))
          return failure();
        for (size_t k = 0; k < count; ++k) {
          size_t size = dtypeSize(inputs[k].dtype());
          std::vector<char> gathered(n * size);
          results[k].store(gathered.data(), n);
          copyStrided(gathered.data(), {1}, dst[k] + (to + begin * rowStride) * size, {rowStride}, {n}, size);
        }
      }
    } while (advance(w, outer));
  } while (advance(index, starts.batchDims));
  return success();
}

//===----------------------------------------------------------------------===//
// unique, where
//===----------------------------------------------------------------------===//

static LogicalResult evalUnique(Evaluation &e, UniqueOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0];
  int64_t axis = op.getAxis(), n = t.dim(axis);
  if (failed(e.work(op, t.numElements() * 4.0)))
    return failure();
  // the axis first: slices are contiguous
  SmallVector<int64_t> permutation{axis};
  for (int64_t i = 0; i < t.rank(); ++i)
    if (i != axis)
      permutation.push_back(i);
  Tensor moved = transposed(t, permutation);
  size_t sliceBytes = n == 0 ? 0 : moved.sizeBytes() / n;
  // equal values of floats have equal bits but for zero's sign; a slice with NaN equals none, not even itself
  std::string zeroed(static_cast<const char *>(moved.data()), moved.sizeBytes());
  std::vector<bool> hasNan(n, false);
  if (kindOf(t.dtype()) != Kind::Int) {
    DType part = t.dtype() == DType::Complex64    ? DType::Float32
                 : t.dtype() == DType::Complex128 ? DType::Float64
                                                  : t.dtype();
    size_t size = dtypeSize(part);
    for (size_t i = 0; i < zeroed.size(); i += size) {
      double value;
      loadFloats(part, zeroed.data() + i, 1, &value);
      if (value == 0)
        std::memset(zeroed.data() + i, 0, size);
      if (std::isnan(value))
        hasNan[i / sliceBytes] = true;
    }
  }
  std::unordered_map<std::string, int64_t> seen;
  std::vector<int64_t> first, indices(n), counts;
  for (int64_t i = 0; i < n; ++i) {
    std::string key = zeroed.substr(i * sliceBytes, sliceBytes);
    if (hasNan[i])
      key += "#" + std::to_string(i);
    auto [it, isNew] = seen.try_emplace(std::move(key), first.size());
    if (isNew) {
      first.push_back(i);
      counts.push_back(0);
    }
    indices[i] = it->second;
    ++counts[it->second];
  }
  Dims movedDims = moved.dims();
  movedDims[0] = first.size();
  Tensor values, indexTensor, countTensor;
  DType indexType = toDType(elementType(op.getIndices()));
  if (failed(e.allocate(op, t.dtype(), movedDims, values)) || failed(e.allocate(op, indexType, {n}, indexTensor)) ||
      failed(e.allocate(op, indexType, {static_cast<int64_t>(first.size())}, countTensor)))
    return failure();
  for (size_t i = 0; i < first.size(); ++i)
    std::memcpy(static_cast<char *>(values.data()) + i * sliceBytes,
                static_cast<const char *>(moved.data()) + first[i] * sliceBytes, sliceBytes);
  storeInts(indexType, indices.data(), n, indexTensor.data());
  storeInts(indexType, counts.data(), counts.size(), countTensor.data());
  SmallVector<int64_t> back(t.rank());
  for (auto [i, dim] : llvm::enumerate(permutation))
    back[dim] = i;
  out.push_back(transposed(values, back));
  out.push_back(indexTensor);
  out.push_back(countTensor);
  return e.setSymbol(op, op.getSymbol(), first.size());
}

static LogicalResult evalWhere(Evaluation &e, WhereOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0];
  if (failed(e.work(op, t.numElements())))
    return failure();
  std::vector<int64_t> hits;
  Chunk chunk;
  chunk.reset(t.dtype());
  size_t size = dtypeSize(t.dtype());
  for (int64_t at = 0; at < t.numElements(); at += chunkSize) {
    int64_t n = std::min(chunkSize, t.numElements() - at);
    chunk.load(static_cast<const char *>(t.data()) + at * size, n);
    for (int64_t k = 0; k < n; ++k) {
      bool hit = kindOf(t.dtype()) == Kind::Float ? chunk.f[k] != 0
                 : kindOf(t.dtype()) == Kind::Int ? chunk.i[k] != 0
                                                  : chunk.c[k] != Complex();
      if (hit)
        hits.push_back(at + k);
    }
  }
  Tensor result;
  DType type = toDType(elementType(op.getIndices()));
  int64_t rank = t.rank();
  if (failed(e.allocate(op, type, {static_cast<int64_t>(hits.size()), rank}, result)))
    return failure();
  Dims strides = stridesOf(t.dims());
  std::vector<int64_t> values;
  values.reserve(hits.size() * rank);
  for (int64_t hit : hits)
    for (int64_t i = 0; i < rank; ++i) {
      values.push_back(hit / strides[i]);
      hit %= strides[i];
    }
  storeInts(type, values.data(), values.size(), result.data());
  out.push_back(result);
  return e.setSymbol(op, op.getSymbol(), hits.size());
}

void registerGather(HandlerTable &table) {
  add<GatherOp, evalGather>(table);
  add<DynamicGatherOp, evalDynamicGather>(table);
  add<TorchIndexSelectOp, evalTorchIndexSelect>(table);
  add<ScatterOp, evalScatter>(table);
  add<UniqueOp, evalUnique>(table);
  add<WhereOp, evalWhere>(table);
}

} // namespace lathe::hlo::eval
