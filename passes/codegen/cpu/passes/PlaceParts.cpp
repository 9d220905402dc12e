// kernel-place-parts: which parts of concatenations their producers write where they belong.
//
// Before:  %a = kernel.conv(...)  %b = kernel.loop(...)  %c = hlo.concatenate(%a, %b) along the channels
// After:   the same with kernel.result_rows = [elements of a row of %c] on both producers, with
//          kernel.operand_rows on what else reads them, and with kernel.joined = [true, true] on the
//          concatenation, which is no code any more: the memory plan lets %a and %b lie in the buffer of %c.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/Window.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/target/CpuTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_PLACEPARTS
#include "passes/codegen/cpu/passes/Passes.h.inc"

namespace {

/// Rows that fill no vector are better done across them: see EmitShortRows.cpp.
constexpr int64_t shortestRow = 16;

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }
int64_t lastDim(Value v) { return typeOf(v).getRank() ? typeOf(v).getShape().back() : 1; }

bool isAlongLast(hlo::ConcatenateOp op) {
  auto type = typeOf(op.getResult());
  return static_cast<int64_t>(op.getDimension()) + 1 == type.getRank() &&
         !type.isDynamicDim(op.getDimension());
}

/// Whether the code of a loop goes over its result row by row: transposes of the last dimension are done in
/// squares.
bool isByRows(kernel::LoopOp loop) {
  return lastDim(loop->getResult(0)) >= shortestRow &&
         llvm::all_of(loop.getBody().front().getOps<hlo::TransposeOp>(), [](hlo::TransposeOp op) {
           ArrayRef<int64_t> order = op.getPermutation();
           return order.back() + 1 == static_cast<int64_t>(order.size());
         });
}

/// Whether pixels so far apart fall into sets enough of L1 for kernels that do one vector of channels of
/// many.
bool suitsWindows(const KernelTarget &target, Value v, int64_t row) {
  constexpr int64_t fewestSets = 8;
  const int64_t bytes = row * elemBytes(typeOf(v).getElementType());
  return target.l1SetsBetween(bytes) >= fewestSets;
}

/// Whether an op can write rows that lie apart, and no slower.
bool writesRows(const KernelTarget &target, OpResult result, int64_t row) {
  Operation *op = result.getOwner();
  if (isa<kernel::PoolOp, kernel::DepthwiseConvOp, kernel::ChainOp>(op))
    return suitsWindows(target, result, row);
  if (auto loop = dyn_cast<kernel::LoopOp>(op))
    return isByRows(loop);
  if (auto concat = dyn_cast<hlo::ConcatenateOp>(op))
    return isAlongLast(concat);
  return kernel::hasCore(op);
}

/// Whether what an argument of a region stands for is only read at indices of its own, the last one that of a
/// result.
bool isReadByIndex(BlockArgument argument) {
  return llvm::all_of(argument.getUsers(), [](Operation *user) {
    return user->hasTrait<hlo::HloElementwise>() ||
           isa<hlo::SliceOp, hlo::PadOp, hlo::TransposeOp, kernel::YieldOp>(user);
  });
}

/// Whether the op of a use can read rows that lie apart, and no slower.
bool readsRows(const KernelTarget &target, OpOperand &use, int64_t row) {
  Operation *op = use.getOwner();
  const unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<kernel::LoopOp>(op))
    return isByRows(loop) && isReadByIndex(loop.getBody().getArgument(number));
  if (auto concat = dyn_cast<hlo::ConcatenateOp>(op))
    return isAlongLast(concat);
  if (!kernel::hasCore(op))
    return false;
  Block &body = op->getRegion(0).front();
  const unsigned core = op->getNumOperands() + 1 - body.getNumArguments();
  if (number >= core)
    return isReadByIndex(body.getArgument(number - core + 1));
  if (number > 0)
    return false;
  if (auto conv = dyn_cast<kernel::DepthwiseConvOp>(op))
    return hasWindows(conv) && suitsWindows(target, use.get(), row);
  return isa<kernel::DotOp>(op) || (isa<kernel::PoolOp>(op) && suitsWindows(target, use.get(), row));
}

class Placer {
public:
  explicit Placer(const KernelTarget &target) : target(target) {}
  unsigned run(ModuleOp module);

private:
  /// A part that its producer writes in place: its result, and what else reads it.
  struct Placed {
    OpResult result;
    SmallVector<OpOperand *> readers;
  };
  std::optional<Placed> place(hlo::ConcatenateOp op, OpOperand &part, int64_t row);
  unsigned joinParts(hlo::ConcatenateOp op);
  int64_t bytesBefore(Operation *op);

  const KernelTarget &target;
  llvm::DenseSet<Value> taken; ///< results that lie in a concatenation
  llvm::DenseMap<Operation *, int64_t> traffic;
};

void setRow(Operation *op, StringRef name, unsigned count, unsigned number, int64_t row) {
  SmallVector<int64_t> rows(count, 0);
  if (auto known = op->getAttrOfType<DenseI64ArrayAttr>(name))
    rows.assign(known.asArrayRef().begin(), known.asArrayRef().end());
  rows[number] = row;
  op->setAttr(name, DenseI64ArrayAttr::get(op->getContext(), rows));
}

void setResultRow(OpResult result, int64_t row) {
  Operation *op = result.getOwner();
  setRow(op, kernel::resultRowsAttr, op->getNumResults(), result.getResultNumber(), row);
  if (auto chain = dyn_cast<kernel::ChainOp>(op))
    setResultRow(cast<OpResult>(chain.getConv()->getResult(0)), row);
}

/// Whether each part is in one run.
bool isInRuns(hlo::ConcatenateOp op) {
  return llvm::all_of(typeOf(op.getResult()).getShape().take_front(op.getDimension()),
                      [](int64_t d) { return d == 1; });
}

/// The result behind a part, under other shapes perhaps.
OpResult producerOf(OpOperand &part) {
  Value v = part.get();
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return dyn_cast<OpResult>(v);
}

/// Bytes of static tensors that the ops of its block before this one read and write.
int64_t Placer::bytesBefore(Operation *op) {
  if (auto known = traffic.find(op); known != traffic.end())
    return known->second;
  int64_t sum = 0;
  for (Operation &other : *op->getBlock()) {
    traffic[&other] = sum;
    if (isa<hlo::ReshapeOp, hlo::ConstantOp>(other))
      continue;
    SmallVector<Value> values(other.getOperands());
    values.append(other.result_begin(), other.result_end());
    for (Value v : values)
      if (auto type = dyn_cast<RankedTensorType>(v.getType()); type && type.hasStaticShape())
        sum += type.getNumElements() * elemBytes(type.getElementType());
  }
  return traffic[op];
}

std::optional<Placer::Placed> Placer::place(hlo::ConcatenateOp op, OpOperand &part, int64_t row) {
  const bool inRuns = isInRuns(op);
  auto type = typeOf(part.get());
  if ((type.hasStaticShape() && type.getNumElements() == 0) || (inRuns && !type.hasStaticShape()))
    return std::nullopt;
  Placed placed{producerOf(part), {}};
  if (!placed.result || taken.contains(placed.result))
    return std::nullopt;
  Operation *producer = placed.result.getOwner();
  if (producer->getBlock() != op->getBlock() ||
      !(kernel::isKernelOp(producer) || isa<hlo::ConcatenateOp, hlo::GatherOp>(producer)) ||
      (!inRuns && !writesRows(target, placed.result, row)))
    return std::nullopt;
  // all uses, through reshapes
  SmallVector<Value> work = {placed.result};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!inRuns &&
        (typeOf(v).getRank() < 2 || lastDim(v) != lastDim(part.get()) || ShapedType::isDynamic(lastDim(v))))
      return std::nullopt;
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      if (&use == &part)
        continue;
      if (user->getBlock() != op->getBlock())
        return std::nullopt;
      if (isa<hlo::ReshapeOp>(user))
        work.push_back(user->getResult(0));
      else if (inRuns ? kernel::isKernelOp(user) || isa<hlo::ConcatenateOp>(user) : readsRows(target, use, row))
        placed.readers.push_back(&use);
      else
        return std::nullopt;
    }
  }
  Operation *last = producer;
  for (OpOperand *use : placed.readers)
    if (Operation *user = use->getOwner(); user->isBeforeInBlock(op) && last->isBeforeInBlock(user))
      last = user;
  // What has left the last cache by then is brought back by a copy faster than by a kernel that reads some lines of each row:
  // without a limit unet's first skip connection takes 0.7 ms longer to read, and 0.2 to copy.
  if (bytesBefore(op) - bytesBefore(last) > target.sharedCache)
    return std::nullopt;
  return placed;
}

/// Lets the parts of one concatenation be written in place; returns how many are.
unsigned Placer::joinParts(hlo::ConcatenateOp op) {
  const bool inRuns = isInRuns(op);
  if (!inRuns && !isAlongLast(op))
    return 0;
  // it may lie in another one itself
  const int64_t apart = kernel::resultRow(cast<OpResult>(op.getResult()));
  const int64_t row = inRuns ? 0 : apart ? apart : lastDim(op);
  SmallVector<bool> joined(op->getNumOperands(), false);
  int64_t bytes = 0;
  for (OpOperand &part : op->getOpOperands()) {
    auto type = typeOf(part.get());
    if (std::optional<Placed> placed = place(op, part, row)) {
      joined[part.getOperandNumber()] = true;
      taken.insert(placed->result);
      if (!inRuns)
        setResultRow(placed->result, row);
      for (OpOperand *use : placed->readers)
        if (!inRuns)
          setRow(use->getOwner(), kernel::operandRowsAttr, use->getOwner()->getNumOperands(),
                 use->getOperandNumber(), row);
      if (type.hasStaticShape())
        bytes += type.getNumElements() * elemBytes(type.getElementType());
    }
    // where the next part begins must be known
    if (type.isDynamicDim(op.getDimension()))
      break;
  }
  const unsigned count = llvm::count(joined, true);
  if (!count)
    return 0;
  op->setAttr(kernel::joinedAttr, DenseBoolArrayAttr::get(op.getContext(), joined));
  if (auto cost = op->getAttrOfType<DenseI64ArrayAttr>("kernel.cost"); cost && cost.size() == 3) {
    SmallVector<int64_t> left(cost.asArrayRef());
    left[2] = std::max<int64_t>(0, left[2] - 2 * bytes); // neither read nor written again
    op->setAttr("kernel.cost", DenseI64ArrayAttr::get(op.getContext(), left));
  }
  return count;
}

unsigned Placer::run(ModuleOp module) {
  SmallVector<hlo::ConcatenateOp> concats;
  module.walk([&](hlo::ConcatenateOp op) {
    if (kernel::isKernelOp(op->getParentOp()))
      return;
    if (!op->hasAttr(kernel::joinedAttr))
      return concats.push_back(op);
    for (OpOperand &part : op->getOpOperands())
      if (kernel::isJoined(part))
        taken.insert(producerOf(part));
  });
  // the whole before what is a part of it
  unsigned count = 0;
  for (hlo::ConcatenateOp op : llvm::reverse(concats))
    count += joinParts(op);
  return count;
}

struct PlaceParts : impl::PlacePartsBase<PlaceParts> {
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    numPlaced += Placer(target->kernels).run(getOperation());
  }
};

} // namespace

} // namespace lathe::cpu
