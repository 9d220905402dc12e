// nvptx-split-reductions: long reductions to few results as two kernels, since blocks of one cannot add up
// what they made together.
//
// Before:  %r = kernel.reduce(%x) { producers; hlo.reduce over [n]; consumers }
// After:   %p = kernel.reduce(%x) { producers; hlo.pad; hlo.reshape to [parts, length]; hlo.reduce over
// [length] }
//          %r = kernel.reduce(%p) { hlo.reduce over [parts]; consumers }
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/NvptxBackend.h"
#include "passes/codegen/nvptx/Team.h"
#include "passes/codegen/plain/Nest.h"
#include "passes/codegen/plain/Rows.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

/// Dimension `dim` of what is reduced becomes [parts, length].
struct Split {
  int64_t dim = 0, parts = 0, length = 0;
};

/// The only op of a reduction's body, or null.
Operation *combinerOf(hlo::ReduceOp r) {
  auto ops = r.getBody().front().without_terminator();
  return llvm::hasSingleElement(ops) ? &*ops.begin() : nullptr;
}

/// What a partial result starts with: the initial value only where it may count several times.
Attribute startOf(hlo::ReduceOp r) {
  Type element = hlo::elementType(r.getInputs()[0]);
  Operation *combiner = combinerOf(r);
  if (!combiner || element.isInteger(1) || !isa<hlo::AddOp, hlo::MulOp, hlo::XorOp>(combiner))
    return {};
  const bool isProduct = isa<hlo::MulOp>(combiner);
  if (auto type = dyn_cast<FloatType>(element)) // -0 is what changes no sum
    return FloatAttr::get(type, isProduct ? APFloat::getOne(type.getFloatSemantics())
                                          : APFloat::getZero(type.getFloatSemantics(), true));
  return IntegerAttr::get(element, isProduct);
}

/// The ops of a kernel's region that values are computed by, in order, without those behind `stop`.
llvm::SetVector<Operation *> opsBehind(Block &body, ValueRange values,
                                       llvm::function_ref<bool(Operation *)> stop) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> work(values);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && !stop(op) && found.insert(op))
      llvm::append_range(work, op->getOperands());
  }
  llvm::SetVector<Operation *> inOrder;
  for (Operation &op : body)
    if (found.contains(&op))
      inOrder.insert(&op);
  return inOrder;
}

bool isReduction(Operation *op) { return isa<hlo::ReduceOp>(op); }

std::string whyNotSplit(kernel::ReduceOp op, Split &split) {
  if (!plain::foreignForm(op).empty())
    return "prepared for another backend";
  SmallVector<hlo::ReduceOp> reductions = plain::reductionsOf(op);
  if (reductions.empty())
    return "no reductions";
  hlo::ReduceOp first = reductions[0];
  RankedTensorType in = hlo::tensorType(first.getInputs()[0]);
  if (!in.hasStaticShape())
    return "sizes known at run time only";
  for (hlo::ReduceOp r : reductions) {
    if (r.getDimensions() != first.getDimensions())
      return "reductions over different dimensions";
    if (!isReorderable(r))
      return "a reduction whose order matters";
    for (auto [input, init] : llvm::zip_equal(r.getInputs(), r.getInitValues())) {
      Type element = hlo::elementType(input);
      if (isa<ComplexType>(element) ||
          (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32 && startOf(r)))
        return "sums that would be rounded in between, or complex ones";
      if (!init.getDefiningOp<hlo::ConstantOp>())
        return "an initial value that is not constant";
    }
    if (llvm::any_of(opsBehind(op.getBody().front(), r.getInputs(), [](Operation *) { return false; }),
                     isReduction))
      return "a reduction of reductions";
  }
  int64_t count = 1, largest = 0;
  for (int64_t d : first.getDimensions()) {
    count *= in.getDimSize(d);
    largest = std::max(largest, in.getDimSize(d));
  }
  constexpr int64_t enough = 96, wanted = 192, shortest = 512; // blocks; elements of a part
  const int64_t results = count == 0 ? 0 : in.getNumElements() / count;
  // 32 neighbouring results a block, or one, or several where a warp is enough for one: see Rows.cpp
  const bool inStrips = !llvm::is_contained(first.getDimensions(), in.getRank() - 1);
  const int64_t blocks = inStrips && results >= warpThreads ? llvm::divideCeil(results, warpThreads)
                         : count <= 1024                    ? llvm::divideCeil(results, 4)
                                                            : results;
  if (results == 0 || blocks >= enough)
    return "enough results, or none";
  int64_t parts = std::min<int64_t>(llvm::divideCeil(inStrips ? wanted * warpThreads : wanted, results),
                                    count / shortest);
  if (parts < 4)
    return "too few elements a result";
  // the outermost dimension that has as many: parts then lie side by side
  for (int64_t d : first.getDimensions())
    if (in.getDimSize(d) >= std::min(parts, largest)) {
      split.dim = d;
      break;
    }
  const int64_t size = in.getDimSize(split.dim);
  parts = std::min(parts, size);
  split.parts = parts;
  for (int64_t p = parts; p > parts / 2; --p)
    if (size % p == 0) {
      split.parts = p;
      break;
    }
  split.length = llvm::divideCeil(size, split.parts);
  split.parts = llvm::divideCeil(size, split.length);
  return split.parts < 2 ? "dimensions that do not divide" : "";
}

SmallVector<int64_t> withParts(ArrayRef<int64_t> shape, const Split &split) {
  SmallVector<int64_t> divided(shape);
  divided[split.dim] = split.length;
  divided.insert(divided.begin() + split.dim, split.parts);
  return divided;
}

/// The op's arguments that some ops use, and the operands that they stand for.
SmallVector<unsigned> argumentsOf(Block &body, ArrayRef<Operation *> ops, ValueRange values) {
  SmallVector<unsigned> used;
  for (BlockArgument arg : body.getArguments())
    if (llvm::is_contained(values, arg) ||
        llvm::any_of(ops, [&](Operation *op) { return llvm::is_contained(op->getOperands(), arg); }))
      used.push_back(arg.getArgNumber());
  return used;
}

/// A copy of `r` over other inputs and dimensions, whose results have this shape.
hlo::ReduceOp reduceAgain(OpBuilder &b, hlo::ReduceOp r, ValueRange inputs, ValueRange inits,
                          ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  auto copy = cast<hlo::ReduceOp>(b.clone(*r));
  SmallVector<Value> operands(inputs);
  llvm::append_range(operands, inits);
  copy->setOperands(operands);
  copy.setDimensions(dims);
  for (Value result : copy->getResults())
    result.setType(RankedTensorType::get(shape, hlo::elementType(result)));
  return copy;
}

class Splitter {
public:
  Splitter(kernel::ReduceOp op, const Split &split)
      : op(op), split(split), body(op.getBody().front()), reductions(plain::reductionsOf(op)) {}
  void run();

private:
  kernel::ReduceOp makeParts(OpBuilder &b);
  kernel::ReduceOp makeWhole(OpBuilder &b, kernel::ReduceOp parts);
  Value divide(OpBuilder &b, Value x, Value padding);

  kernel::ReduceOp op;
  const Split split;
  Block &body;
  SmallVector<hlo::ReduceOp> reductions;
  int64_t place = 0; ///< of the parts among the dimensions that are kept
};

/// [.., n, ..] as [.., parts, length, ..].
Value Splitter::divide(OpBuilder &b, Value x, Value padding) {
  RankedTensorType type = hlo::tensorType(x);
  SmallVector<int64_t> shape(type.getShape()), none(shape.size(), 0), high(none);
  high[split.dim] = split.parts * split.length - shape[split.dim];
  shape[split.dim] += high[split.dim];
  if (high[split.dim])
    x = hlo::PadOp::create(b, op.getLoc(), RankedTensorType::get(shape, type.getElementType()), x, padding,
                           none, high, none);
  return hlo::ReshapeOp::create(
      b, op.getLoc(), RankedTensorType::get(withParts(type.getShape(), split), type.getElementType()), x);
}

kernel::ReduceOp Splitter::makeParts(OpBuilder &b) {
  SmallVector<Value> needed;
  for (hlo::ReduceOp r : reductions)
    llvm::append_range(needed, startOf(r) ? ValueRange(r.getInputs()) : ValueRange(r->getOperands()));
  llvm::SetVector<Operation *> ops = opsBehind(body, needed, [](Operation *) { return false; });
  SmallVector<unsigned> used = argumentsOf(body, ops.getArrayRef(), needed);
  SmallVector<int64_t> dims, shape;
  ArrayRef<int64_t> over = reductions[0].getDimensions(),
                    whole = hlo::tensorType(reductions[0].getInputs()[0]).getShape();
  for (int64_t d : over) // behind the parts all dimensions are one further
    dims.push_back(d + (d >= split.dim));
  for (auto [d, size] : llvm::enumerate(whole)) {
    if (static_cast<int64_t>(d) == split.dim) {
      place = shape.size();
      shape.push_back(split.parts);
    } else if (!llvm::is_contained(over, static_cast<int64_t>(d))) {
      shape.push_back(size);
    }
  }
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (unsigned i : used)
    operands.push_back(op->getOperand(i));
  for (hlo::ReduceOp r : reductions)
    for (Value input : r.getInputs())
      types.push_back(RankedTensorType::get(shape, hlo::elementType(input)));
  return kernel::ReduceOp::create(
      b, op.getLoc(), types, operands, [&](OpBuilder &b, Location loc, ValueRange args) {
        IRMapping map;
        for (auto [i, arg] : llvm::zip_equal(used, args))
          map.map(body.getArgument(i), arg);
        for (Operation *inner : ops)
          b.clone(*inner, map);
        SmallVector<Value> results;
        for (hlo::ReduceOp r : reductions) {
          SmallVector<Value> inputs, inits;
          for (auto [input, init] : llvm::zip_equal(r.getInputs(), r.getInitValues())) {
            Attribute start = startOf(r);
            auto scalar = RankedTensorType::get({}, hlo::elementType(init));
            inits.push_back(
                start ? hlo::makeConstant(b, loc, DenseElementsAttr::get(scalar, ArrayRef<Attribute>(start)))
                      : map.lookup(init));
            inputs.push_back(divide(b, map.lookup(input), inits.back()));
          }
          llvm::append_range(results, reduceAgain(b, r, inputs, inits, dims, shape)->getResults());
        }
        return results;
      });
}

kernel::ReduceOp Splitter::makeWhole(OpBuilder &b, kernel::ReduceOp parts) {
  Operation *yield = body.getTerminator();
  llvm::SetVector<Operation *> ops = opsBehind(body, yield->getOperands(), isReduction);
  for (hlo::ReduceOp r : reductions)
    for (Value init : r.getInitValues())
      ops.insert(init.getDefiningOp());
  SmallVector<unsigned> used = argumentsOf(body, ops.getArrayRef(), yield->getOperands());
  SmallVector<Value> operands(parts->getResults());
  for (unsigned i : used)
    operands.push_back(op->getOperand(i));
  return kernel::ReduceOp::create(
      b, op.getLoc(), op->getResultTypes(), operands, [&](OpBuilder &b, Location loc, ValueRange args) {
        IRMapping map;
        for (auto [i, arg] : llvm::zip_equal(used, args.drop_front(parts->getNumResults())))
          map.map(body.getArgument(i), arg);
        auto constants =
            llvm::make_filter_range(ops, [](Operation *inner) { return isa<hlo::ConstantOp>(inner); });
        for (Operation *inner : constants)
          b.clone(*inner, map);
        for (hlo::ReduceOp r : reductions) {
          SmallVector<Value> starts;
          for (Value init : r.getInitValues())
            starts.push_back(map.lookup(init));
          auto again = reduceAgain(b, r, args.take_front(starts.size()), starts, {place},
                                   hlo::tensorType(r.getResult(0)).getShape());
          args = args.drop_front(starts.size());
          map.map(r->getResults(), again->getResults());
        }
        for (Operation *inner : ops)
          if (!isa<hlo::ConstantOp>(inner))
            b.clone(*inner, map);
        SmallVector<Value> results;
        for (Value v : yield->getOperands())
          results.push_back(map.lookup(v));
        return results;
      });
}

void Splitter::run() {
  OpBuilder b(op);
  kernel::ReduceOp parts = makeParts(b), whole = makeWhole(b, parts);
  if (Attribute cost = op->getAttr("kernel.cost"))
    parts->setAttr("kernel.cost", cost);
  op->replaceAllUsesWith(whole->getResults());
  op->erase();
}

struct SplitReductions : impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    SmallVector<kernel::ReduceOp> ops;
    getOperation().walk([&](kernel::ReduceOp op) { ops.push_back(op); });
    for (kernel::ReduceOp op : ops) {
      Split split;
      if (!whyNotSplit(op, split).empty()) {
        ++numRefused;
        continue;
      }
      Splitter(op, split).run();
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
