// Which nest an op has, and the one of most: an element of the results a unit.
#include "passes/codegen/plain/Nest.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/Lanes.h"

using namespace mlir;

namespace lathe::plain {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

LogicalResult checkSizes(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) { llvm::append_range(values, inner->getResults()); });
  for (Value v : values) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type || !hlo::hasKnownDims(type))
      return op->emitError() << "code generation needs ranked tensors of known sizes, found " << v.getType();
  }
  return success();
}

/// hlo ops outside kernels whose elements an ElementEmitter knows.
static bool isElemental(Operation *op) {
  return codegen::isElementwise(op) ||
         isa<hlo::BroadcastInDimOp, hlo::BroadcastOp, hlo::ReshapeOp, hlo::TransposeOp, hlo::SliceOp, hlo::DynamicSliceOp,
             hlo::PadOp, hlo::IotaOp, hlo::ReverseOp, hlo::GatherOp, hlo::MapOp, hlo::SizeOp, hlo::GetDimensionSizeOp,
             hlo::OptimizationBarrierOp>(op);
}

bool hasNest(Operation *op) {
  return kernel::isKernelOp(op) || isElemental(op) ||
         isa<hlo::ReduceOp, hlo::DotOp, hlo::DotGeneralOp, hlo::ConvolutionOp>(op);
}

StringRef foreignForm(Operation *op) {
  if (isa<kernel::ChainOp, kernel::AttentionOp>(op))
    return "a group of kernels";
  for (StringRef name : {"layout", "bf16", "kernel.result_rows", "kernel.operand_rows"})
    if (op->hasAttr(name))
      return name;
  return "";
}

Elements bindOperands(Operation *op, KernelBuilder &b) {
  Elements elements{std::make_shared<ElementEmitter>(b), {}};
  if (!kernel::isKernelOp(op)) {
    for (auto [operand, pointer] : llvm::zip(op->getOperands(), b.operands))
      elements.emitter->bindBuffer(operand, pointer);
    elements.roots.assign(op->result_begin(), op->result_end());
    return elements;
  }
  Block &body = op->getRegion(0).front();
  // an op with a core has the accumulator first, and what the core reads has no argument
  ArrayRef<BlockArgument> arguments = body.getArguments();
  if (kernel::hasCore(op))
    arguments = arguments.drop_front();
  for (auto [argument, pointer] : llvm::zip(arguments, ArrayRef<Value>(b.operands).take_back(arguments.size())))
    elements.emitter->bindBuffer(argument, pointer);
  elements.roots.assign(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end());
  return elements;
}

LogicalResult storeRoot(KernelBuilder &b, const Elements &elements, size_t k, ArrayRef<Value> index, Value place) {
  Value root = elements.roots[k];
  FailureOr<Value> v = elements.emitter->emit(root, index);
  if (failed(v))
    return failure();
  b.storeElem(hlo::elementType(root), *v, b.results[k], place);
  return success();
}

// Everything is read before anything is written: a result may lie where an operand does.
LogicalResult storeRoots(KernelBuilder &b, const Elements &elements, ArrayRef<Value> index, Value place) {
  SmallVector<Value> values;
  for (Value root : elements.roots) {
    FailureOr<Value> v = elements.emitter->emit(root, index);
    if (failed(v))
      return failure();
    values.push_back(*v);
  }
  for (auto [root, v, pointer] : llvm::zip(elements.roots, values, b.results))
    b.storeElem(hlo::elementType(root), v, pointer, place ? place : b.linearize(index, b.dims(hlo::tensorType(root))));
  return success();
}

int64_t costOf(ValueRange roots) {
  for (Value root : roots)
    if (Operation *op = root.getDefiningOp(); op && !kernel::isKernelOp(op->getParentOp()))
      return 4;
  return codegen::elementCost(SmallVector<Value>(roots));
}

Nest elementNest(KernelBuilder &b, Elements elements, int64_t steps) {
  RankedTensorType type = hlo::tensorType(elements.roots[0]);
  Nest nest;
  nest.units = hlo::numElements(type);
  nest.work = costOf(elements.roots) + 2 * steps;
  nest.emit = [&b, elements, type](Value unit) -> LogicalResult {
    ElementEmitter::Scope scope(*elements.emitter);
    return storeRoots(b, elements, b.delinearize(unit, b.dims(type)), unit);
  };
  return nest;
}

/// Results of several shapes cannot share a numbering: all of them are one unit.
static Nest wholeNest(KernelBuilder &b, Elements elements) {
  Nest nest;
  nest.units = b.getAffineConstantExpr(1);
  nest.emit = [&b, elements](Value) -> LogicalResult {
    LogicalResult ok = success();
    for (auto [root, pointer] : llvm::zip(elements.roots, b.results)) {
      Value to = pointer;
      SmallVector<Value> sizes = b.dims(hlo::tensorType(root));
      b.nest(sizes, [&, root = root](ValueRange index) {
        ElementEmitter::Scope scope(*elements.emitter);
        FailureOr<Value> v = elements.emitter->emit(root, SmallVector<Value>(index));
        if (failed(v))
          ok = failure();
        else
          b.storeElem(hlo::elementType(root), *v, to, b.linearize(index, sizes));
      });
    }
    return ok;
  };
  return nest;
}

FailureOr<Nest> makeNest(Operation *op, KernelBuilder &b) {
  if (StringRef form = foreignForm(op); !form.empty())
    return op->emitError() << "no plain loops: prepared for another backend (" << form << ")";
  Elements elements = bindOperands(op, b);
  if (isa<kernel::ReduceOp, hlo::ReduceOp>(op))
    return reduceNest(op, b, elements);
  if (isa<kernel::RowsOp>(op) && !op->getRegion(0).getOps<hlo::ReduceOp>().empty())
    return rowsNest(op, b, elements);
  if (kernel::hasCore(op) || isa<hlo::DotOp, hlo::DotGeneralOp, hlo::ConvolutionOp>(op)) {
    FailureOr<int64_t> steps = bindCore(op, b, *elements.emitter);
    if (failed(steps))
      return failure();
    return elementNest(b, elements, *steps);
  }
  auto same = [&](Value root) { return hlo::getDims(hlo::tensorType(root)) == hlo::getDims(hlo::tensorType(elements.roots[0])); };
  return llvm::all_of(elements.roots, same) ? elementNest(b, elements) : wholeNest(b, elements);
}

LogicalResult emitNest(Operation *op, KernelBuilder &b) {
  // Work is counted in operations of vectorised code; one of a single element takes as long as so many.
  constexpr int64_t scalarWork = 8;
  FailureOr<Nest> nest = makeNest(op, b);
  if (failed(nest))
    return failure();
  b.setExtent(nest->units);
  b.setWork(nest->work * scalarWork);
  LogicalResult ok = success();
  b.units([&](Value unit) { ok = nest->emit(unit); });
  return ok;
}

} // namespace lathe::plain
