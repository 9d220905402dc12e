// nvptx-split-scans: running reductions of few long lines as several kernels, since blocks of one cannot hand on what they have.
//
// Before:  %r = hlo.reduce_window(%x, %init)              running along n
// After:   %p = hlo.reduce_window(%x, %init)              running along the parts of [parts, length]
//          %t = kernel.loop(%p)                           the last of each part
//          %b = hlo.reduce_window(%t, %init)              what comes before each: running along [parts]
//          %r = kernel.loop(%p, %b)                       both together
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/NvptxBackend.h"
#include "passes/codegen/nvptx/Scan.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITSCANS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

struct Parts {
  int64_t count = 0, length = 0;
};

/// Whether all that a body does is done element by element, to its arguments and constants, which may lie outside.
bool isElementwiseBody(Block &body) {
  auto isKnown = [&](Value v) { return v.getParentBlock() == &body || v.getDefiningOp<hlo::ConstantOp>(); };
  return llvm::all_of(body, [&](Operation &op) {
    const bool isElement = op.hasTrait<OpTrait::IsTerminator>() || isa<hlo::ConstantOp>(op) || codegen::isElementwise(&op);
    return isElement && llvm::all_of(op.getOperands(), isKnown);
  });
}

/// Whether combining `init` with anything gives that, where this is known.
bool isIdentity(hlo::ReduceWindowOp op) {
  auto ops = op.getBody().front().without_terminator();
  if (!llvm::hasSingleElement(ops) || !isa<hlo::AddOp, hlo::MulOp>(*ops.begin()))
    return op.getInputs().size() > 1; // what carries several numbers was made with such a start
  Type element = hlo::elementType(op.getInitValues()[0]);
  auto constant = op.getInitValues()[0].getDefiningOp<hlo::ConstantOp>();
  if (!constant)
    return false;
  auto value = cast<ElementsAttr>(constant.getValue());
  const bool isProduct = isa<hlo::MulOp>(*ops.begin());
  if (isa<FloatType>(element)) {
    const APFloat number = *value.value_begin<APFloat>();
    return isProduct ? number.isExactlyValue(1) : number.isZero();
  }
  if (isa<IntegerType>(element)) {
    const APInt number = *value.value_begin<APInt>();
    return isProduct ? number.isOne() : number.isZero();
  }
  return false;
}

std::string whyNotSplitScan(hlo::ReduceWindowOp op, const ScannedSpace &space, Parts &parts) {
  if (!space.isRunning)
    return "windows of their own";
  const std::optional<int64_t> outer = hlo::constantValue(space.outer), inner = hlo::constantValue(space.inner),
                               length = hlo::constantValue(space.length);
  if (!outer || !inner || !length)
    return "sizes known at run time only";
  if (*outer == 0 || *inner == 0 || *length == 0)
    return "no elements";
  if (!isIdentity(op) || !isElementwiseBody(op.getBody().front()))
    return "a combination that cannot begin in the middle";
  // blocks of lines that lie side by side, or threads
  constexpr int64_t enoughBlocks = 96, blocks = 192, shortestLine = 1024, enoughThreads = 12288, threads = 24576, shortest = 32;
  int64_t wanted = 0;
  if (*inner == 1)
    wanted = *outer >= enoughBlocks ? 1 : std::min<int64_t>(llvm::divideCeil(blocks, *outer), *length / shortestLine);
  else
    wanted = *outer * *inner >= enoughThreads ? 1 : std::min<int64_t>(llvm::divideCeil(threads, *outer * *inner), *length / shortest);
  if (wanted < 4)
    return "enough lines, or short ones";
  parts.length = llvm::divideCeil(*length, wanted);
  if (*inner == 1)
    parts.length = llvm::alignTo(parts.length, 4); // for wide accesses
  parts.count = llvm::divideCeil(*length, parts.length);
  return {};
}

class ScanSplitter {
public:
  ScanSplitter(hlo::ReduceWindowOp op, const ScannedSpace &space, const Parts &parts)
      : op(op), window(space.window), parts(parts), dim(space.window.dim), b(op), loc(op.getLoc()) {
    shape = llvm::to_vector(hlo::tensorType(op.getInputs()[0]).getShape());
    padding = parts.count * parts.length - shape[dim];
    divided = shape;
    divided[dim] = parts.length;
    divided.insert(divided.begin() + dim, parts.count);
    kept = shape;
    kept[dim] = parts.count;
  }
  void run();

private:
  /// A running reduction along dimension `along`.
  SmallVector<Value> running(ValueRange inputs, int64_t along, bool exclusive);
  /// Loops, one for each of some tensors.
  SmallVector<Value> each(ValueRange tensors, ArrayRef<int64_t> result, llvm::function_ref<Value(OpBuilder &, Value, Value)> make);
  SmallVector<Value> reshape(ValueRange tensors, ArrayRef<int64_t> to);
  SmallVector<Value> combine(OpBuilder &inner, ValueRange x, ValueRange y);
  SmallVector<Value> finish(ValueRange before, ValueRange inParts);

  hlo::ReduceWindowOp op;
  const hlo::RunningWindow window;
  const Parts parts;
  const int64_t dim;
  int64_t padding;
  OpBuilder b;
  Location loc;
  SmallVector<int64_t> shape, divided, kept;
};

} // namespace

SmallVector<Value> ScanSplitter::running(ValueRange inputs, int64_t along, bool exclusive) {
  ArrayRef<int64_t> sizes = hlo::tensorType(inputs[0]).getShape();
  SmallVector<int64_t> windows(sizes.size(), 1);
  windows[along] = sizes[along];
  const int64_t far = sizes[along] - 1 + exclusive, near = exclusive ? -1 : 0;
  hlo::PaddingList list(sizes.size(), {0, 0});
  list[along] = window.reverse ? std::pair(near, far) : std::pair(far, near);
  OperationState state(loc, hlo::ReduceWindowOp::getOperationName());
  state.addOperands(inputs);
  state.addOperands(op.getInitValues());
  state.addTypes(TypeRange(inputs));
  IRMapping map;
  op.getBody().cloneInto(state.addRegion(), map);
  auto made = cast<hlo::ReduceWindowOp>(b.create(state));
  made.setWindowDimensions(windows);
  made.setPaddingAttr(hlo::makePaddingAttr(b.getContext(), list));
  return SmallVector<Value>(made->getResults());
}

SmallVector<Value> ScanSplitter::each(ValueRange tensors, ArrayRef<int64_t> result,
                                      llvm::function_ref<Value(OpBuilder &, Value, Value)> make) {
  SmallVector<Value> made;
  for (auto [x, init] : llvm::zip_equal(tensors, op.getInitValues())) {
    auto fill = init.getDefiningOp<hlo::ConstantOp>();
    auto type = RankedTensorType::get(result, hlo::elementType(x));
    SmallVector<Value> operands{x};
    if (!fill)
      operands.push_back(init);
    made.push_back(kernel::LoopOp::create(b, loc, TypeRange(type), operands, [&](OpBuilder &inner, Location, ValueRange args) {
                     Value with = fill ? hlo::makeConstant(inner, loc, cast<ElementsAttr>(fill.getValue())) : args[1];
                     return SmallVector<Value>{make(inner, args[0], with)};
                   })->getResult(0));
  }
  return made;
}

SmallVector<Value> ScanSplitter::reshape(ValueRange tensors, ArrayRef<int64_t> to) {
  SmallVector<Value> made;
  for (Value x : tensors)
    made.push_back(hlo::ReshapeOp::create(b, loc, RankedTensorType::get(to, hlo::elementType(x)), x));
  return made;
}

/// The body of the reduction over whole tensors.
SmallVector<Value> ScanSplitter::combine(OpBuilder &inner, ValueRange x, ValueRange y) {
  Block &body = op.getBody().front();
  ArrayRef<int64_t> sizes = hlo::tensorType(x[0]).getShape();
  IRMapping map;
  for (auto [arg, v] : llvm::zip_equal(body.getArguments(), llvm::concat<const Value>(SmallVector<Value>(x), SmallVector<Value>(y))))
    map.map(arg, v);
  auto whole = [&](Value v) { return RankedTensorType::get(sizes, hlo::elementType(v)); };
  auto mapConstant = [&](Value v) {
    if (auto constant = v.getDefiningOp<hlo::ConstantOp>(); constant && !map.contains(v))
      map.map(v, hlo::makeConstant(inner, loc, cast<DenseElementsAttr>(constant.getValue()).resizeSplat(whole(v))));
  };
  for (Operation &one : body) {
    llvm::for_each(one.getOperands(), mapConstant);
    if (isa<hlo::ConstantOp>(one) || one.hasTrait<OpTrait::IsTerminator>())
      continue;
    Operation *copy = inner.clone(one, map);
    for (auto [result, old] : llvm::zip_equal(copy->getResults(), one.getResults()))
      result.setType(whole(old));
  }
  SmallVector<Value> results;
  for (Value v : body.getTerminator()->getOperands())
    results.push_back(map.lookup(v));
  return results;
}

/// What comes before each part with what comes before each element in it.
SmallVector<Value> ScanSplitter::finish(ValueRange before, ValueRange inParts) {
  SmallVector<Value> operands(before);
  llvm::append_range(operands, inParts);
  SmallVector<Type> types;
  for (Value x : inParts)
    types.push_back(x.getType());
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < static_cast<int64_t>(divided.size()); ++i)
    if (i != dim + 1)
      places.push_back(i);
  auto loop = kernel::LoopOp::create(b, loc, types, operands, [&](OpBuilder &inner, Location, ValueRange args) {
    SmallVector<Value> spread;
    for (auto [x, type] : llvm::zip(args, types))
      spread.push_back(hlo::BroadcastInDimOp::create(inner, loc, cast<RankedTensorType>(type), x, inner.getDenseI64ArrayAttr(places)));
    return combine(inner, spread, args.drop_front(spread.size()));
  });
  return SmallVector<Value>(loop->getResults());
}

void ScanSplitter::run() {
  SmallVector<Value> x(op.getInputs());
  SmallVector<int64_t> none(shape.size(), 0), padded(shape);
  padded[dim] += padding;
  if (padding) // behind the last in order
    x = each(x, padded, [&](OpBuilder &inner, Value v, Value fill) -> Value {
      SmallVector<int64_t> low(none), high(none);
      (window.reverse ? low : high)[dim] = padding;
      return hlo::PadOp::create(inner, loc, RankedTensorType::get(padded, hlo::elementType(v)), v, fill, low, high, none);
    });
  SmallVector<Value> sums = running(reshape(x, divided), dim + 1, /*exclusive=*/false);
  SmallVector<int64_t> from(divided.size(), 0), to(divided), ones(divided.size(), 1), last(divided);
  from[dim + 1] = window.reverse ? 0 : parts.length - 1;
  to[dim + 1] = from[dim + 1] + 1;
  last[dim + 1] = 1;
  SmallVector<Value> totals = each(sums, last, [&](OpBuilder &inner, Value v, Value) -> Value {
    return hlo::SliceOp::create(inner, loc, v, from, to, ones);
  });
  SmallVector<Value> before = running(reshape(totals, kept), dim, /*exclusive=*/true);
  if (window.exclusive) // each has what the one before it had, and the first of a part nothing
    sums = each(sums, divided, [&](OpBuilder &inner, Value v, Value fill) -> Value {
      SmallVector<int64_t> zero(divided.size(), 0), begin(zero), end(divided), low(zero), high(zero);
      (window.reverse ? begin[dim + 1] : low[dim + 1]) = 1;
      if (window.reverse)
        high[dim + 1] = 1;
      else
        --end[dim + 1];
      Value most = hlo::SliceOp::create(inner, loc, v, begin, end, ones);
      return hlo::PadOp::create(inner, loc, RankedTensorType::get(divided, hlo::elementType(v)), most, fill, low, high, zero);
    });
  SmallVector<Value> results = reshape(finish(before, sums), padded);
  if (padding)
    results = each(results, shape, [&](OpBuilder &inner, Value v, Value) -> Value {
      SmallVector<int64_t> begin(none), end(shape), step(shape.size(), 1);
      if (window.reverse) {
        begin[dim] = padding;
        end[dim] += padding;
      }
      return hlo::SliceOp::create(inner, loc, v, begin, end, step);
    });
  op->replaceAllUsesWith(results);
  op->erase();
}

namespace {

struct SplitScans : impl::SplitScansBase<SplitScans> {
  void runOnOperation() override {
    SmallVector<hlo::ReduceWindowOp> ops;
    getOperation().walk([&](hlo::ReduceWindowOp op) { ops.push_back(op); });
    for (hlo::ReduceWindowOp op : ops) {
      const ScannedSpace space(op);
      Parts parts;
      if (!whyNotSplitScan(op, space, parts).empty()) {
        ++numRefused;
        continue;
      }
      ScanSplitter(op, space, parts).run();
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
