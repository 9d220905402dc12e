// Scatters, and the gradients of poolings that select an element. Each element of a result belongs to one thread, which goes over all that is
// written there in the order in which one thread alone would: so bits are the same, whatever indices repeat.
//
// Of a scatter, whose result begins as its operand, a warp has some rows, and of these 32 neighbours or vectors. It looks where 32 updates
// go at a time, and does those that go to its rows one after the other.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/library/Library.h"
#include "passes/codegen/library/Selected.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Team.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

namespace {

/// The dimensions of a scatter by what they are.
struct Scattered {
  explicit Scattered(hlo::ScatterOp s);

  hlo::ScatterDimensionNumbersAttr numbers;
  RankedTensorType type, updates;
  SmallVector<int64_t> placed;       ///< of the operand: indices say where, or the batch
  SmallVector<int64_t> window;       ///< of the operand: those of windows
  SmallVector<int64_t> updateWindow; ///< the same of the updates
  SmallVector<int64_t> updatePlaced; ///< of the updates: a window each

  /// Whether windows begin anywhere along a dimension of theirs, else where it does.
  bool isMoved(int64_t dim) const { return llvm::is_contained(numbers.getScatterDimsToOperandDims(), dim); }
};

/// How it is shared by warps.
struct ScatterShares {
  int64_t lanes = 1; ///< neighbours of a thread
  int64_t parts = 1; ///< rows with the same remainder by it are one warp's
};

} // namespace

Scattered::Scattered(hlo::ScatterOp s)
    : numbers(s.getScatterDimensionNumbers()), type(hlo::tensorType(s.getInputs()[0])), updates(hlo::tensorType(s.getUpdates()[0])),
      updateWindow(numbers.getUpdateWindowDims()) {
  for (int64_t i = 0; i < type.getRank(); ++i) {
    const bool isPlaced = llvm::is_contained(numbers.getInsertedWindowDims(), i) || llvm::is_contained(numbers.getInputBatchingDims(), i);
    (isPlaced ? placed : window).push_back(i);
  }
  for (int64_t i = 0; i < updates.getRank(); ++i)
    if (!llvm::is_contained(updateWindow, i))
      updatePlaced.push_back(i);
}

std::string whyNoScatter(Operation *op) {
  auto s = dyn_cast<hlo::ScatterOp>(op);
  if (!s)
    return "no scatter";
  if (!op->hasAttr("kernel.inplace"))
    return "a result of its own";
  return {};
}

/// Elements of so many dimensions, or a number for those known at run time only.
static int64_t elementsOf(RankedTensorType type, ArrayRef<int64_t> dims, int64_t unknown) {
  double count = 1;
  for (int64_t d : dims)
    count *= type.isDynamicDim(d) ? double(unknown) : double(type.getDimSize(d));
  return static_cast<int64_t>(std::min(count, 1e15));
}

static ScatterShares sharesOf(hlo::ScatterOp s, const Scattered &what) {
  constexpr int64_t warps = 4096, vector = 4, unknownRow = 256, manyRows = 1 << 20;
  auto isNarrow = [](Value v) {
    Type t = hlo::elementType(v);
    return (isa<FloatType>(t) || isa<IntegerType>(t)) && t.getIntOrFloatBitWidth() >= 8 && t.getIntOrFloatBitWidth() <= 32;
  };
  ScatterShares shares;
  const int64_t rank = what.type.getRank();
  const bool endsRows = !what.window.empty() && what.window.back() == rank - 1 && !what.isMoved(rank - 1) &&
                        what.updateWindow.back() == what.updates.getRank() - 1;
  if (endsRows && !what.type.isDynamicDim(rank - 1) && what.type.getShape().back() % vector == 0 &&
      what.updates.getShape().back() == what.type.getShape().back() && llvm::all_of(s.getInputs(), isNarrow))
    shares.lanes = vector;
  const int64_t row = elementsOf(what.type, what.window, unknownRow);
  const int64_t chunks = std::max<int64_t>(1, llvm::divideCeil(row, warpThreads * shares.lanes));
  shares.parts = llvm::PowerOf2Ceil(std::max<int64_t>(1, warps / chunks));
  shares.parts = std::min<int64_t>(shares.parts, llvm::PowerOf2Ceil(std::max<int64_t>(1, elementsOf(what.type, what.placed, manyRows))));
  return shares;
}

namespace {

/// The code of a warp.
class ScatterEmitter {
public:
  ScatterEmitter(hlo::ScatterOp s, BlockFrame &frame);
  LogicalResult emit();

private:
  SmallVector<Value> sizesOf(RankedTensorType type, ArrayRef<int64_t> dims);
  /// Where the window of update number `n` begins, in all dimensions of the operand.
  SmallVector<Value> startOf(Value n);
  /// The row where update number `n` goes; -1 if that is none.
  Value rowOf(Value n);
  /// Applies update number `n` to the row at this thread's elements.
  void apply(Value row, Value n, Value column);
  /// The place in the operand of an element of a row.
  Value placeOf(Value row, ArrayRef<Value> inWindow);

  hlo::ScatterOp s;
  BlockFrame &frame;
  KernelBuilder &b;
  const Scattered what;
  const ScatterShares shares;
  const unsigned inputs;
  SmallVector<Value> sizes, placedSizes, windowSizes, updateSizes, updatePlacedSizes, updateWindowSizes, indexSizes;
  Value updates, columns; ///< updates, and vectors of a row
  Value mine;             ///< whether this thread has elements of a row; null: it has
  LogicalResult ok = success();
};

} // namespace

ScatterEmitter::ScatterEmitter(hlo::ScatterOp s, BlockFrame &frame)
    : s(s), frame(frame), b(frame.b), what(s), shares(sharesOf(s, what)), inputs(s.getInputs().size()), sizes(b.dims(what.type)),
      placedSizes(sizesOf(what.type, what.placed)), windowSizes(sizesOf(what.type, what.window)), updateSizes(b.dims(what.updates)),
      updatePlacedSizes(sizesOf(what.updates, what.updatePlaced)), updateWindowSizes(sizesOf(what.updates, what.updateWindow)),
      indexSizes(b.dims(hlo::tensorType(s.getScatterIndices()))) {
  auto product = [&](ArrayRef<Value> factors) {
    Value all = b.i64(1);
    for (Value f : factors)
      all = b.mul(all, f);
    return all;
  };
  updates = product(updatePlacedSizes);
  columns = b.divU(product(windowSizes), b.i64(shares.lanes));
}

SmallVector<Value> ScatterEmitter::sizesOf(RankedTensorType type, ArrayRef<int64_t> dims) {
  SmallVector<Value> of;
  const SmallVector<Value> all = b.dims(type);
  for (int64_t d : dims)
    of.push_back(all[d]);
  return of;
}

SmallVector<Value> ScatterEmitter::startOf(Value n) {
  const SmallVector<Value> outer = b.delinearize(n, updatePlacedSizes);
  const RankedTensorType indices = hlo::tensorType(s.getScatterIndices());
  const int64_t vectorDim = what.numbers.getIndexVectorDim();
  SmallVector<Value> start(what.type.getRank(), b.i64(0));
  for (auto [k, dim] : llvm::enumerate(what.numbers.getScatterDimsToOperandDims())) {
    SmallVector<Value> at;
    unsigned next = 0;
    for (int64_t i = 0; i < indices.getRank(); ++i)
      at.push_back(i == vectorDim ? b.i64(k) : outer[next++]);
    start[dim] = codegen::loadIndex(b, indices.getElementType(), b.operands[inputs], b.linearize(at, indexSizes));
  }
  for (auto [dim, inIndices] : llvm::zip(what.numbers.getInputBatchingDims(), what.numbers.getScatterIndicesBatchingDims()))
    start[dim] = outer[inIndices > vectorDim ? inIndices - 1 : inIndices];
  return start;
}

Value ScatterEmitter::rowOf(Value n) {
  const SmallVector<Value> start = startOf(n);
  SmallVector<Value> placed;
  Value inside = b.cstI(b.getI1Type(), 1);
  for (int64_t d : what.placed) {
    inside = b.both(inside, b.inRange(start[d], b.i64(0), sizes[d]));
    placed.push_back(start[d]);
  }
  return b.select(inside, b.linearize(placed, placedSizes), b.i64(-1));
}

Value ScatterEmitter::placeOf(Value row, ArrayRef<Value> inWindow) {
  SmallVector<Value> at(what.type.getRank());
  for (auto [d, v] : llvm::zip(what.placed, b.delinearize(row, placedSizes)))
    at[d] = v;
  for (auto [d, v] : llvm::zip(what.window, inWindow))
    at[d] = v;
  return b.linearize(at, sizes);
}

void ScatterEmitter::apply(Value row, Value n, Value column) {
  const SmallVector<Value> inWindow = b.delinearize(b.mul(column, b.i64(shares.lanes)), windowSizes);
  SmallVector<Value> from(what.updates.getRank());
  for (auto [d, v] : llvm::zip(what.updatePlaced, b.delinearize(n, updatePlacedSizes)))
    from[d] = v;
  Value inside = mine;
  SmallVector<Value> start;
  if (llvm::any_of(what.window, [&](int64_t d) { return what.isMoved(d); }))
    start = startOf(n);
  for (auto [i, v] : llvm::enumerate(inWindow)) {
    if (what.isMoved(what.window[i])) {
      Value in = b.sub(v, start[what.window[i]]), within = b.inRange(in, b.i64(0), updateWindowSizes[i]);
      from[what.updateWindow[i]] = in;
      inside = inside ? b.both(inside, within) : within;
      continue;
    }
    from[what.updateWindow[i]] = v;
    if (hlo::getDim(what.type, what.window[i]) == hlo::getDim(what.updates, what.updateWindow[i]))
      continue;
    Value within = b.lt(v, updateWindowSizes[i]);
    inside = inside ? b.both(inside, within) : within;
  }
  auto one = [&] {
    Value to = placeOf(row, inWindow), source = b.linearize(from, updateSizes);
    SmallVector<Value> args;
    for (unsigned k = 0; k < inputs; ++k)
      args.push_back(b.loadElem(hlo::elementType(s.getInputs()[k]), b.results[k], to, shares.lanes));
    for (unsigned k = 0; k < inputs; ++k)
      args.push_back(b.loadElem(hlo::elementType(s.getUpdates()[k]), b.operands[inputs + 1 + k], source, shares.lanes));
    auto values = codegen::emitScalarBody(b, s.getUpdateComputation().front(), args, shares.lanes);
    if (failed(values)) {
      ok = failure();
      return;
    }
    for (unsigned k = 0; k < inputs; ++k)
      b.storeElem(hlo::elementType(s.getInputs()[k]), (*values)[k], b.results[k], to);
  };
  if (inside)
    b.ifThen(inside, one);
  else
    one();
}

LogicalResult ScatterEmitter::emit() {
  MLIRContext *context = b.getContext();
  SmallVector<AffineExpr> inRow;
  for (int64_t d : what.window)
    inRow.push_back(hlo::getDim(what.type, d));
  const int64_t together = warpThreads * shares.lanes;
  const AffineExpr chunks = hlo::simplify(hlo::numElements(inRow, context).ceilDiv(together));
  Team warp(frame, warpThreads);
  Type word = b.getI32Type();
  warp.eachOf(hlo::simplify(chunks * shares.parts), [&](Value number) {
    Value across = b.dim(chunks), part = b.divU(number, across);
    Value column = b.add(b.mul(b.remU(number, across), b.i64(warpThreads)), warp.member);
    if (auto known = codegen::constantOf(columns); !known || *known % warpThreads != 0)
      mine = b.lt(column, columns);
    b.loop(b.i64(0), updates, b.i64(warpThreads), [&](Value first) {
      Value n = b.add(first, warp.member);
      Value row = b.ifElse(b.lt(n, updates), b.getI64Type(), [&] { return SmallVector<Value>{rowOf(n)}; },
                           [&] { return SmallVector<Value>{b.i64(-1)}; })[0];
      Value hits = frame.ballot(b.both(b.ge(row, b.i64(0)), b.eq(b.remU(row, b.i64(shares.parts)), part)));
      b.whileLoop({hits}, [&](ValueRange left) {
        return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, left[0], b.cstI(word, 0)).getResult();
      }, [&](ValueRange left) {
        Value lane = LLVM::CountTrailingZerosOp::create(b, word, left[0], /*is_zero_poison=*/true);
        apply(frame.broadcast(row, lane), b.add(first, arith::ExtUIOp::create(b, b.getI64Type(), lane)), column);
        Value less = arith::SubIOp::create(b, left[0], b.cstI(word, 1));
        return SmallVector<Value>{arith::AndIOp::create(b, left[0], less).getResult()};
      });
    });
  });
  return ok;
}

LogicalResult emitScatter(Operation *op, KernelBuilder &b) {
  BlockFrame frame(b, unitThreads);
  b.setWork(1024);
  ScatterEmitter scatter(cast<hlo::ScatterOp>(op), frame);
  const LogicalResult ok = scatter.emit();
  alignVectors(b, 4);
  return ok;
}

/// Windows along a dimension that an element may be in.
static int64_t windowsAt(const codegen::SelectedWindows &windows, size_t i) {
  return llvm::divideCeil(windows.size[i], windows.stride[i]);
}

std::string whyNoSelect(Operation *op) {
  auto s = dyn_cast<hlo::SelectAndScatterOp>(op);
  if (!s)
    return "no selection from windows";
  constexpr double most = 1 << 14; // elements that are compared for one of the result
  const codegen::SelectedWindows windows(s);
  double compared = 1;
  for (auto [i, size] : llvm::enumerate(windows.size))
    compared *= double(size) * double(windowsAt(windows, i));
  return compared <= most ? "" : "large windows that overlap";
}

// An element of the result a thread, which looks what each window that it is in selects.
LogicalResult emitSelect(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SelectAndScatterOp>(op);
  const RankedTensorType in = hlo::tensorType(s.getOperand()), source = hlo::tensorType(s.getSource());
  const codegen::SelectedWindows windows(s);
  const SmallVector<Value> inSizes = b.dims(in), sourceSizes = b.dims(source);
  const Type element = in.getElementType();
  int64_t compared = 1;
  for (auto [i, size] : llvm::enumerate(windows.size))
    compared *= size * windowsAt(windows, i);
  b.setExtent(hlo::numElements(in));
  b.setWork(4 * compared);
  LogicalResult ok = success();
  b.units([&](Value unit) {
    const SmallVector<Value> at = b.delinearize(unit, inSizes);
    Value init = b.loadElem(element, b.operands[2], b.i64(0));
    SmallVector<Value> index(at.size());
    std::function<SmallVector<Value>(size_t, ValueRange)> nest = [&](size_t i, ValueRange sum) -> SmallVector<Value> {
      if (i == at.size()) {
        FailureOr<Value> chosen = codegen::emitSelected(b, s, windows, init, inSizes, index);
        if (failed(chosen)) {
          ok = failure();
          return {sum[0]};
        }
        return b.ifElse(b.eq(*chosen, unit), sum[0].getType(), [&] {
          Value more = b.loadElem(element, b.operands[1], b.linearize(index, sourceSizes));
          auto next = codegen::emitScalarBody(b, s.getScatter().front(), {sum[0], more});
          if (succeeded(next))
            return *next;
          ok = failure();
          return SmallVector<Value>{sum[0]};
        }, [&] { return SmallVector<Value>{sum[0]}; });
      }
      // windows from (at + low - size + 1) / stride, rounded up, to (at + low) / stride; the padding may be negative
      Value last = b.add(at[i], b.i64(windows.low[i])), stride = b.i64(windows.stride[i]), zero = b.i64(0);
      Value before = b.max(b.add(last, b.i64(windows.stride[i] - windows.size[i])), zero);
      Value end = b.min(b.divU(b.max(b.add(last, stride), zero), stride), sourceSizes[i]);
      return b.loop(b.divU(before, stride), end, b.i64(1), sum, [&](Value window, ValueRange now) {
        index[i] = window;
        return nest(i + 1, now);
      });
    };
    b.storeElem(element, nest(0, ValueRange{init})[0], b.results[0], unit);
  });
  return ok;
}

} // namespace lathe::nvptx
