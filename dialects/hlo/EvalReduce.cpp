// reduce, reduce_window, select_and_scatter, map of the evaluator.
//
// Windows and reductions work on chunks of results: for each place within the window (or reduced range) one step of the
// body on all results of the chunk.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/Running.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {

// One element of a tensor into place k of a chunk.
void loadElement(Chunk &chunk, int64_t k, const Tensor &t, int64_t index) {
  const char *from = static_cast<const char *>(t.data()) + index * dtypeSize(t.dtype());
  switch (kindOf(t.dtype())) {
  case Kind::Float: return loadFloats(t.dtype(), from, 1, &chunk.f[k]);
  case Kind::Int: return loadInts(t.dtype(), from, 1, &chunk.i[k]);
  case Kind::Complex: return loadComplexes(t.dtype(), from, 1, &chunk.c[k]);
  }
}

void copyChunk(const Chunk &from, Chunk &to, int64_t n) {
  switch (kindOf(from.type)) {
  case Kind::Float: std::copy_n(from.f.begin(), n, to.f.begin()); break;
  case Kind::Int: std::copy_n(from.i.begin(), n, to.i.begin()); break;
  case Kind::Complex: std::copy_n(from.c.begin(), n, to.c.begin()); break;
  }
}

SmallVector<Chunk> makeChunks(ArrayRef<Tensor> tensors) {
  SmallVector<Chunk> chunks(tensors.size());
  for (auto [chunk, t] : llvm::zip(chunks, tensors))
    chunk.reset(t.dtype());
  return chunks;
}

// Groups of elements to be reduced one after another: element `step` of result `k`, -1 for "take the initial value".
using IndexFn = llvm::function_ref<int64_t(int64_t result, int64_t step)>;

} // namespace

// A chunk of results by the body. `indexOf(k, step)` is the input's element for result `first + k`.
static LogicalResult reduceChunk(RegionProgram &program, ArrayRef<Tensor> inputs, ArrayRef<Tensor> inits,
                                 int64_t first, int64_t n, int64_t steps, IndexFn indexOf, SmallVector<Chunk> &acc,
                                 SmallVector<Chunk> &element, SmallVector<Chunk> &next) {
  size_t count = inputs.size();
  SmallVector<const Chunk *> arguments;
  for (Chunk &chunk : acc)
    arguments.push_back(&chunk);
  for (Chunk &chunk : element)
    arguments.push_back(&chunk);
  for (size_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < n; ++k)
      loadElement(acc[i], k, inits[i], 0);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t k = 0; k < n; ++k) {
      int64_t index = indexOf(first + k, step);
      for (size_t i = 0; i < count; ++i)
        if (index >= 0)
          loadElement(element[i], k, inputs[i], index);
        else
          loadElement(element[i], k, inits[i], 0);
    }
    if (failed(program.run(arguments, next, n)))
      return failure();
    for (size_t i = 0; i < count; ++i)
      copyChunk(next[i], acc[i], n);
  }
  return success();
}

// A body of one add, multiply, maximum or minimum on floats: sums in double, rounded once at the end.
template <typename F>
static void reduceFloats(const Tensor &input, const Tensor &init, Tensor &result, int64_t outer, int64_t steps,
                         ArrayRef<int64_t> baseOf, ArrayRef<int64_t> stepOf, F f) {
  double initial = loadFloats(init)[0];
  size_t size = dtypeSize(input.dtype());
  const char *data = static_cast<const char *>(input.data());
  char *to = static_cast<char *>(result.data());
  bool contiguous = true;
  for (int64_t step = 0; step < steps && contiguous; ++step)
    contiguous = stepOf[step] == step;
  std::vector<double> row(std::min(steps, chunkSize));
  for (int64_t k = 0; k < outer; ++k) {
    double acc = initial;
    if (contiguous) {
      for (int64_t step = 0; step < steps; step += chunkSize) {
        int64_t n = std::min(chunkSize, steps - step);
        loadFloats(input.dtype(), data + (baseOf[k] + step) * size, n, row.data());
        for (int64_t i = 0; i < n; ++i)
          acc = f(acc, row[i]);
      }
    } else if (input.dtype() == DType::Float32) {
      const float *from = input.data<float>() + baseOf[k];
      for (int64_t step = 0; step < steps; ++step)
        acc = f(acc, from[stepOf[step]]);
    } else {
      for (int64_t step = 0; step < steps; ++step) {
        double x;
        loadFloats(input.dtype(), data + (baseOf[k] + stepOf[step]) * size, 1, &x);
        acc = f(acc, x);
      }
    }
    storeFloats(result.dtype(), &acc, 1, to + k * size);
  }
}

static double maxOf(double x, double y) { return std::isnan(x) || x > y ? x : y; }
static double minOf(double x, double y) { return std::isnan(x) || x < y ? x : y; }

// True if done.
static bool reduceFast(RegionProgram &program, ArrayRef<Tensor> inputs, ArrayRef<Tensor> inits, Tensors &results,
                       int64_t steps, ArrayRef<int64_t> baseOf, ArrayRef<int64_t> stepOf) {
  Operation *op = program.singleOp();
  if (!op || inputs.size() != 1 || kindOf(inputs[0].dtype()) != Kind::Float)
    return false;
  auto go = [&](auto f) {
    reduceFloats(inputs[0], inits[0], results[0], baseOf.size(), steps, baseOf, stepOf, f);
    return true;
  };
  if (isa<AddOp>(op))
    return go([](double x, double y) { return x + y; });
  if (isa<MulOp>(op))
    return go([](double x, double y) { return x * y; });
  if (isa<MaxOp>(op))
    return go(maxOf);
  if (isa<MinOp>(op))
    return go(minOf);
  return false;
}

// Offsets of all places of the dimensions in row-major order.
static Dims offsetsOf(const Dims &dims, const Dims &strides) {
  Dims offsets{0};
  for (size_t i = 0; i < dims.size(); ++i) {
    Dims next;
    next.reserve(offsets.size() * dims[i]);
    for (int64_t offset : offsets)
      for (int64_t k = 0; k < dims[i]; ++k)
        next.push_back(offset + k * strides[i]);
    offsets = std::move(next);
  }
  return offsets;
}

static LogicalResult checkShapes(Evaluation &e, Operation *op, ArrayRef<Tensor> inputs) {
  for (const Tensor &t : inputs)
    if (t.dims() != inputs[0].dims())
      return e.fail(op, "shapes differ at run time: " + dimsToString(inputs[0].dims()) + " and " +
                            dimsToString(t.dims()));
  return success();
}

static LogicalResult evalReduce(Evaluation &e, ReduceOp op, ArrayRef<Tensor> in, Tensors &out) {
  size_t count = op.getInputs().size();
  ArrayRef<Tensor> inputs = in.take_front(count), inits = in.drop_front(count);
  RegionProgram program;
  if (failed(checkShapes(e, op, inputs)) || failed(program.compile(e, op.getBody())))
    return failure();
  Dims kept, keptStrides, reduced, reducedStrides, strides = stridesOf(inputs[0].dims());
  for (int64_t i = 0; i < inputs[0].rank(); ++i) {
    bool isReduced = llvm::is_contained(op.getDimensions(), i);
    (isReduced ? reduced : kept).push_back(inputs[0].dim(i));
    (isReduced ? reducedStrides : keptStrides).push_back(strides[i]);
  }
  if (failed(e.work(op, inputs[0].numElements())))
    return failure();
  for (const Tensor &init : inits)
    if (failed(e.allocate(op, init.dtype(), kept, out.emplace_back())))
      return failure();
  Dims baseOf = offsetsOf(kept, keptStrides), stepOf = offsetsOf(reduced, reducedStrides);
  if (reduceFast(program, inputs, inits, out, stepOf.size(), baseOf, stepOf))
    return success();
  auto acc = makeChunks(inits), element = makeChunks(inputs), next = makeChunks(inits);
  for (int64_t first = 0; first < static_cast<int64_t>(baseOf.size()); first += chunkSize) {
    int64_t n = std::min<int64_t>(chunkSize, baseOf.size() - first);
    if (failed(reduceChunk(
            program, inputs, inits, first, n, stepOf.size(),
            [&](int64_t k, int64_t step) { return baseOf[k] + stepOf[step]; }, acc, element, next)))
      return failure();
    for (auto [t, chunk] : llvm::zip(out, acc))
      chunk.store(static_cast<char *>(t.data()) + first * dtypeSize(t.dtype()), n);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

// Where windows of a (dilated, padded) input lie.
struct Windows {
  Dims input, strides, window, step, base, dilation, low, result;

  // the input's element for a place in the result and a place in the window, -1 outside
  int64_t at(const Dims &place, const Dims &tap) const {
    int64_t index = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      int64_t p = place[i] * step[i] + tap[i] * dilation[i] - low[i];
      if (p < 0 || p % base[i] != 0 || p / base[i] >= input[i])
        return -1;
      index += p / base[i] * strides[i];
    }
    return index;
  }
};

void unravel(int64_t index, const Dims &dims, Dims &place) {
  for (size_t i = dims.size(); i-- > 0;) {
    place[i] = index % dims[i];
    index /= dims[i];
  }
}

} // namespace

static Windows makeWindows(const Tensor &t, Dims window, Dims step, Dims base, Dims dilation, const PaddingList &padding) {
  Windows w{t.dims(), stridesOf(t.dims()), window, step, base, dilation, {}, {}};
  for (int64_t i = 0; i < t.rank(); ++i) {
    int64_t size = t.dim(i) == 0 ? 0 : (t.dim(i) - 1) * base[i] + 1;
    int64_t padded = size + padding[i].first + padding[i].second, reach = (window[i] - 1) * dilation[i] + 1;
    w.low.push_back(padding[i].first);
    w.result.push_back(padded < reach ? 0 : (padded - reach) / step[i] + 1);
  }
  return w;
}

// Whether combining the initial value with itself leaves it as it is.
static bool keeps(RegionProgram &program, const Tensor &init) {
  auto start = makeChunks(ArrayRef<Tensor>(init)), next = start;
  loadElement(start[0], 0, init, 0);
  const Chunk *arguments[2] = {&start[0], &start[0]};
  if (failed(program.run(arguments, next, 1)))
    return false;
  std::vector<char> before(dtypeSize(init.dtype())), after(before.size());
  start[0].store(before.data(), 1);
  next[0].store(after.data(), 1);
  return before == after;
}

static LogicalResult evalReduceWindow(Evaluation &e, ReduceWindowOp op, ArrayRef<Tensor> in, Tensors &out) {
  size_t count = op.getInputs().size(), rank = in[0].rank();
  ArrayRef<Tensor> inputs = in.take_front(count), inits = in.drop_front(count);
  RegionProgram program;
  if (failed(checkShapes(e, op, inputs)) || failed(program.compile(e, op.getBody())))
    return failure();
  auto list = [&](std::optional<ArrayRef<int64_t>> values) { return toVector(getListOr(values, rank, 1)); };
  Windows w = makeWindows(inputs[0], toVector(op.getWindowDimensions()), list(op.getWindowStrides()),
                          list(op.getBaseDilations()), list(op.getWindowDilations()),
                          getPadding(dyn_cast_or_null<DenseIntElementsAttr>(op.getPaddingAttr()), rank));
  auto total = checkedNumElements(w.result);
  if (!total.ok())
    return e.fail(op, "window is too big");
  for (const Tensor &init : inits)
    if (failed(e.allocate(op, init.dtype(), w.result, out.emplace_back())))
      return failure();

  // a running reduction along one dimension (cumulative sums): each result continues the one before
  SmallVector<AffineExpr> sizes;
  for (int64_t size : w.input)
    sizes.push_back(getAffineConstantExpr(size, op.getContext()));
  // the padding repeats the initial value: harmless only where that changes nothing
  if (auto running = runningWindow(op, sizes); running && count == 1 && keeps(program, inits[0])) {
    int64_t scan = running->dim;
    bool forward = !running->reverse;
    if (failed(e.work(op, inputs[0].numElements())))
      return failure();
    int64_t stride = w.strides[scan], length = w.input[scan], lines = length ? *total / length : 0;
    auto acc = makeChunks(inits), element = makeChunks(inputs), next = makeChunks(inits);
    const Chunk *arguments[2] = {&acc[0], &element[0]};
    // sums in double as in reduce
    bool isFloat =
        kindOf(inits[0].dtype()) == Kind::Float && isa_and_nonnull<AddOp, MulOp>(program.singleOp());
    bool adds = isa_and_nonnull<AddOp>(program.singleOp());
    for (int64_t first = 0; first < lines; first += chunkSize) {
      int64_t n = std::min(chunkSize, lines - first);
      for (int64_t k = 0; k < n; ++k)
        loadElement(acc[0], k, inits[0], 0);
      for (int64_t s = 0; s < length; ++s) {
        int64_t position = forward ? s : length - 1 - s;
        auto indexOf = [&](int64_t k) {
          int64_t line = first + k;
          return line / stride * stride * length + line % stride + position * stride;
        };
        auto put = [&] {
          size_t size = dtypeSize(inits[0].dtype());
          std::vector<char> values(n * size);
          acc[0].store(values.data(), n);
          for (int64_t k = 0; k < n; ++k)
            std::memcpy(static_cast<char *>(out[0].data()) + indexOf(k) * size, values.data() + k * size,
                        size);
        };
        if (running->exclusive)
          put();
        for (int64_t k = 0; k < n; ++k)
          loadElement(element[0], k, inputs[0], indexOf(k));
        if (isFloat) {
          for (int64_t k = 0; k < n; ++k)
            acc[0].f[k] = adds ? acc[0].f[k] + element[0].f[k] : acc[0].f[k] * element[0].f[k];
        } else {
          if (failed(program.run(arguments, next, n)))
            return failure();
          copyChunk(next[0], acc[0], n);
        }
        if (!running->exclusive)
          put();
      }
    }
    return success();
  }
  auto taps = checkedNumElements(w.window);
  if (!taps.ok())
    return e.fail(op, "window is too big");

  if (failed(e.work(op, static_cast<double>(*taps) * *total)))
    return failure();
  std::vector<Dims> tapPlaces(*taps, Dims(rank));
  for (int64_t t = 0; t < *taps; ++t)
    unravel(t, w.window, tapPlaces[t]);
  // one op on floats: accumulate in double
  Operation *single = inputs.size() == 1 && kindOf(inputs[0].dtype()) == Kind::Float ? program.singleOp() : nullptr;
  if (single && isa<AddOp, MaxOp, MinOp, MulOp>(single)) {
    int kind = isa<AddOp>(single) ? 0 : isa<MaxOp>(single) ? 1 : isa<MinOp>(single) ? 2 : 3;
    double initial = loadFloats(inits[0])[0];
    auto values = loadFloats(inputs[0]);
    std::vector<double> results(*total);
    Dims place(rank);
    for (int64_t k = 0; k < *total; ++k) {
      unravel(k, w.result, place);
      double acc = initial;
      for (const Dims &tap : tapPlaces) {
        int64_t index = w.at(place, tap);
        double x = index < 0 ? initial : values[index];
        acc = kind == 0 ? acc + x : kind == 1 ? maxOf(acc, x) : kind == 2 ? minOf(acc, x) : acc * x;
      }
      results[k] = acc;
    }
    storeFloats(out[0].dtype(), results.data(), *total, out[0].data());
    return success();
  }
  auto acc = makeChunks(inits), element = makeChunks(inputs), next = makeChunks(inits);
  Dims place(rank);
  for (int64_t first = 0; first < *total; first += chunkSize) {
    int64_t n = std::min(chunkSize, *total - first);
    auto indexOf = [&](int64_t k, int64_t step) {
      unravel(k, w.result, place);
      return w.at(place, tapPlaces[step]);
    };
    if (failed(reduceChunk(program, inputs, inits, first, n, *taps, indexOf, acc, element, next)))
      return failure();
    for (auto [t, chunk] : llvm::zip(out, acc))
      chunk.store(static_cast<char *>(t.data()) + first * dtypeSize(t.dtype()), n);
  }
  return success();
}

static LogicalResult evalSelectAndScatter(Evaluation &e, SelectAndScatterOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &operand = in[0], &source = in[1], &init = in[2];
  size_t rank = operand.rank();
  RegionProgram select, scatter;
  if (failed(select.compile(e, op.getSelect())) || failed(scatter.compile(e, op.getScatter())))
    return failure();
  auto list = [&](std::optional<ArrayRef<int64_t>> values) { return toVector(getListOr(values, rank, 1)); };
  Windows w = makeWindows(operand, list(op.getWindowDimensions()), list(op.getWindowStrides()), Dims(rank, 1),
                          Dims(rank, 1), getPadding(dyn_cast_or_null<DenseIntElementsAttr>(op.getPaddingAttr()), rank));
  if (w.result != source.dims())
    return e.fail(op, "source does not fit the windows");
  auto taps = checkedNumElements(w.window);
  if (!taps.ok() || failed(e.work(op, static_cast<double>(*taps) * source.numElements())))
    return e.fail(op, "window is too big");
  Tensor result;
  if (failed(e.allocate(op, operand.dtype(), operand.dims(), result)))
    return failure();
  size_t size = dtypeSize(operand.dtype());
  copyStrided(static_cast<const char *>(init.data()), {0}, static_cast<char *>(result.data()), {1},
              {result.numElements()}, size);
  std::vector<Dims> tapPlaces(*taps, Dims(rank));
  for (int64_t t = 0; t < *taps; ++t)
    unravel(t, w.window, tapPlaces[t]);
  int64_t total = source.numElements();
  Chunk best, candidate, chosen, old, value, sum;
  for (Chunk *chunk : {&best, &candidate, &old, &value, &sum})
    chunk->reset(operand.dtype());
  chosen.reset(DType::Bool);
  std::vector<int64_t> where(chunkSize);
  Dims place(rank);
  for (int64_t first = 0; first < total; first += chunkSize) {
    int64_t n = std::min(chunkSize, total - first);
    std::fill(where.begin(), where.end(), -1);
    for (const Dims &tap : tapPlaces) {
      SmallVector<int64_t> index(n);
      for (int64_t k = 0; k < n; ++k) {
        unravel(first + k, w.result, place);
        index[k] = w.at(place, tap);
        if (index[k] >= 0)
          loadElement(candidate, k, operand, index[k]);
      }
      const Chunk *arguments[2] = {&best, &candidate};
      if (failed(select.run(arguments, chosen, n)))
        return failure();
      // select(a, b) true keeps a
      for (int64_t k = 0; k < n; ++k)
        if (index[k] >= 0 && (where[k] < 0 || !chosen.i[k])) {
          where[k] = index[k];
          loadElement(best, k, operand, index[k]);
        }
    }
    for (int64_t k = 0; k < n; ++k) {
      if (where[k] < 0)
        continue;
      loadElement(old, 0, result, where[k]);
      loadElement(value, 0, source, first + k);
      const Chunk *arguments[2] = {&old, &value};
      if (failed(scatter.run(arguments, sum, 1)))
        return failure();
      sum.store(static_cast<char *>(result.data()) + where[k] * size, 1);
    }
  }
  out.push_back(result);
  return success();
}

static LogicalResult evalMap(Evaluation &e, MapOp op, ArrayRef<Tensor> in, Tensors &out) {
  RegionProgram program;
  if (failed(checkShapes(e, op, in)) || failed(program.compile(e, op.getComputation())))
    return failure();
  Tensor result;
  if (failed(e.work(op, in[0].numElements())) ||
      failed(e.allocate(op, toDType(elementType(op.getResult())), in[0].dims(), result)))
    return failure();
  auto chunks = makeChunks(in);
  Chunk next;
  next.reset(result.dtype());
  SmallVector<const Chunk *> arguments;
  for (Chunk &chunk : chunks)
    arguments.push_back(&chunk);
  for (int64_t at = 0; at < result.numElements(); at += chunkSize) {
    int64_t n = std::min(chunkSize, result.numElements() - at);
    for (auto [chunk, t] : llvm::zip(chunks, in))
      chunk.load(static_cast<const char *>(t.data()) + at * dtypeSize(t.dtype()), n);
    if (failed(program.run(arguments, next, n)))
      return failure();
    next.store(static_cast<char *>(result.data()) + at * dtypeSize(result.dtype()), n);
  }
  out.push_back(result);
  return success();
}

void registerReduce(HandlerTable &table) {
  add<ReduceOp, evalReduce>(table);
  add<ReduceWindowOp, evalReduceWindow>(table);
  add<SelectAndScatterOp, evalSelectAndScatter>(table);
  add<MapOp, evalMap>(table);
}

} // namespace lathe::hlo::eval
