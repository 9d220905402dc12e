// Loops, poolings and depthwise convolutions whose neighbours are made alike: several a thread, one access of up to 16 bytes for
// them. Rows are of whole vectors and stay rows: ops that move elements move whole rows.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"

#include "llvm/ADT/DenseSet.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

constexpr int64_t widestAccess = 16, computedLanes = 4;

static int64_t lastDim(Value v) {
  RankedTensorType type = hlo::tensorType(v);
  return type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1) ? -1 : type.getShape().back();
}

/// Whether neighbours of a broadcast's result are neighbours of its operand, or all the same element of it; `along`: the former.
static bool keepsNeighbours(hlo::BroadcastInDimOp op, bool &along) {
  RankedTensorType in = hlo::tensorType(op->getOperand(0)), out = hlo::tensorType(op->getResult(0));
  along = false;
  for (auto [i, d] : llvm::enumerate(op.getBroadcastDimensions()))
    if (static_cast<int64_t>(d) + 1 == out.getRank()) {
      along = in.getDimSize(i) != 1;
      return !along || (static_cast<int64_t>(i) + 1 == in.getRank() && in.getDimSize(i) == out.getShape().back());
    }
  return true;
}

/// The windows of a gather are whole rows of its operand, and only the places of rows are looked up.
static bool gathersRows(hlo::GatherOp op) {
  auto d = op.getDimensionNumbers();
  const int64_t last = hlo::tensorType(op.getOperand()).getRank() - 1;
  return !d.getOffsetDims().empty() && d.getOffsetDims().back() == hlo::tensorType(op.getResult()).getRank() - 1 &&
         !llvm::is_contained(d.getCollapsedSliceDims(), last) && !llvm::is_contained(d.getOperandBatchingDims(), last) &&
         !llvm::is_contained(d.getStartIndexMap(), last);
}

/// Of an op that moves elements: whether each row of its result is a row of an operand, and how many of its leading operands have
/// rows at all (the others say where these are).
static std::optional<unsigned> movesRows(Operation *op) {
  const int64_t rank = op->getNumResults() == 1 ? hlo::tensorType(op->getResult(0)).getRank() : 0, last = rank - 1;
  unsigned rows = 1;
  bool whole = rank > 0;
  if (auto s = dyn_cast<hlo::SliceOp>(op))
    whole = whole && s.getStrides().back() == 1;
  else if (auto p = dyn_cast<hlo::PadOp>(op))
    whole = whole && !p.getEdgePaddingLow()[last] && !p.getEdgePaddingHigh()[last] && !p.getInteriorPadding()[last];
  else if (auto t = dyn_cast<hlo::TransposeOp>(op))
    whole = whole && t.getPermutation().back() == last;
  else if (auto r = dyn_cast<hlo::ReverseOp>(op))
    whole = whole && !llvm::is_contained(r.getDimensions(), last);
  else if (auto g = dyn_cast<hlo::GatherOp>(op))
    whole = whole && gathersRows(g);
  else if (auto c = dyn_cast<hlo::ConcatenateOp>(op)) {
    constexpr unsigned many = 16; // each takes code of its own
    whole = whole && static_cast<int64_t>(c.getDimension()) != last && c->getNumOperands() <= many && !c->hasAttr(kernel::joinedAttr);
    rows = c->getNumOperands();
  } else if (isa<hlo::DynamicUpdateSliceOp>(op))
    rows = 2;
  else if (!isa<hlo::DynamicSliceOp, hlo::ReshapeOp>(op))
    return std::nullopt;
  for (Value operand : op->getOperands().take_front(rows))
    whole = whole && lastDim(operand) >= 0 && lastDim(operand) == lastDim(op->getResult(0));
  return whole ? std::optional(rows) : std::nullopt;
}

static bool isRealOf(Value v, unsigned bits) {
  Type t = hlo::elementType(v);
  return (isa<FloatType>(t) || isa<IntegerType>(t)) && t.getIntOrFloatBitWidth() <= bits;
}

/// Pools and depthwise convolutions compute channels apart from each other.
static std::string whyNoChannels(Operation *op) {
  if (!isRealOf(op->getOperand(0), 32))
    return "elements of more than 32 bits";
  if (auto conv = dyn_cast<kernel::DepthwiseConvOp>(op)) {
    if (!isRealOf(conv.getFilter(), 32) || conv.getAccType().getElementType().isInteger(1))
      return "elements of more than 32 bits, or bits";
    if (conv.getBatchGroups() != 1)
      return "groups of the batch";
    if (lastDim(conv.getInput()) <= 0 || lastDim(conv.getFilter()) != conv.getAccType().getShape().back())
      return "channels whose number is known at run time only, or none";
  }
  return whyNoEpilogue(op);
}

std::string whyNoNeighbours(Operation *op, ValueRange values, bool &computes, int64_t &bytes) {
  const bool isKernel = kernel::isKernelOp(op);
  SmallVector<Value> work(values);
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v).second)
      continue;
    if (!isRealOf(v, 64))
      return "complex elements";
    bytes = std::max(bytes, codegen::elemBytes(hlo::elementType(v)));
    Operation *made = v.getDefiningOp();
    if (!made || (!isKernel && made != op)) // a buffer, or the core's sums
      continue;
    if (auto constant = dyn_cast<hlo::ConstantOp>(made)) {
      if (!constant.getValue().isSplat())
        return "a table of constants";
    } else if (codegen::isElementwise(made)) {
      auto narrow = [](Value x) { return isRealOf(x, 32); };
      if (!llvm::all_of(made->getOperands(), narrow) || !narrow(v))
        return "elements of more than 32 bits";
      computes = true;
      llvm::append_range(work, made->getOperands());
    } else if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(made)) {
      bool along;
      if (!keepsNeighbours(broadcast, along))
        return "a broadcast that parts neighbours";
      if (along)
        work.push_back(made->getOperand(0));
    } else if (std::optional<unsigned> rows = movesRows(made)) {
      llvm::append_range(work, made->getOperands().take_front(*rows));
    } else {
      return ("an op that moves elements: " + made->getName().getStringRef()).str();
    }
  }
  return {};
}

/// How many neighbours a thread has; 0, and why it can have but one.
static int64_t lanesOf(Operation *op, std::string &why) {
  auto refuse = [&](const Twine &reason) {
    why = reason.str();
    return int64_t(0);
  };
  const bool isKernel = kernel::isKernelOp(op);
  ValueRange roots = isKernel ? ValueRange(op->getRegion(0).front().getTerminator()->getOperands()) : ValueRange(op->getResults());
  int64_t bytes = 1;
  bool computes = isKernel && kernel::hasCore(op);
  if (why = whyNoNeighbours(op, roots, computes, bytes); !why.empty())
    return 0;
  if (computes && bytes > 4)
    return refuse("elements of more than 32 bits");
  const int64_t row = lastDim(roots[0]);
  int64_t lanes = computes ? computedLanes : std::max<int64_t>(2, widestAccess / bytes);
  while (!computes && lanes > 2 && row % lanes != 0)
    lanes /= 2;
  return row > 0 && row % lanes == 0 ? lanes : refuse("rows that are not of whole vectors");
}

/// The ops of hlo that are such a kernel alone.
static bool isMove(Operation *op) {
  return !isa<hlo::ReshapeOp, hlo::DynamicUpdateSliceOp>(op) && movesRows(op).has_value();
}

std::string whyNoWide(Operation *op) {
  const bool channels = isa<kernel::PoolOp, kernel::DepthwiseConvOp>(op);
  if (!channels && !isa<kernel::LoopOp>(op) && !isMove(op))
    return "no loop, and nothing whose channels are apart";
  if (channels)
    if (std::string why = whyNoChannels(op); !why.empty())
      return why;
  RankedTensorType type = hlo::tensorType(op->getResult(0));
  for (Value result : op->getResults())
    if (hlo::getDims(hlo::tensorType(result)) != hlo::getDims(type))
      return "results of several shapes";
  for (Value root : kernel::isKernelOp(op) ? op->getRegion(0).front().getTerminator()->getOperands() : ValueRange(op->getResults()))
    if ((isa<BlockArgument>(root) && !channels) || hlo::elementType(root).isInteger(1))
      return "copies, or bits";
  std::string why;
  const int64_t lanes = lanesOf(op, why);
  if (!lanes)
    return why;
  const int64_t fewest = 96 * 128 * lanes; // else more threads are worth more than wider accesses
  if (type.hasStaticShape() && type.getNumElements() < fewest)
    return "few elements";
  return {};
}

void alignVectors(KernelBuilder &b, int64_t lanes) {
  auto isWide = [&](Type t) { return isa<VectorType>(t) && cast<VectorType>(t).getNumElements() == lanes; };
  auto bytes = [&](Type t) { return lanes * cast<VectorType>(t).getElementTypeBitWidth() / 8; };
  b.func.walk([&](Operation *inner) {
    if (auto load = dyn_cast<LLVM::LoadOp>(inner); load && isWide(load.getType()))
      load.setAlignment(bytes(load.getType()));
    if (auto store = dyn_cast<LLVM::StoreOp>(inner); store && isWide(store.getValue().getType()))
      store.setAlignment(bytes(store.getValue().getType()));
  });
}

/// A vector for each unit, or two where there are so many that the device is busy with half the threads: 128 threads then have
/// 256 vectors, and each asks for both of its own before it waits.
static int64_t vectorsOf(RankedTensorType type, int64_t lanes) {
  constexpr int64_t busy = 2 * 132 * 2048; // vectors that two halves of a thread's work keep many devices busy with
  const int64_t vectors = type.hasStaticShape() ? type.getNumElements() / lanes : 0;
  return vectors >= busy && vectors % (2 * unitThreads) == 0 ? 2 : 1;
}

LogicalResult emitWide(Operation *op, KernelBuilder &b) {
  std::string why;
  const int64_t lanes = lanesOf(op, why);
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  int64_t steps = 0;
  if (kernel::isKernelOp(op) && kernel::hasCore(op)) {
    FailureOr<int64_t> core = plain::bindCore(op, b, e);
    if (failed(core))
      return failure();
    steps = *core;
  }
  RankedTensorType type = hlo::tensorType(elements.roots[0]);
  SmallVector<AffineExpr> counts = hlo::getDims(type);
  counts.back() = counts.back().floorDiv(lanes);
  const int64_t vectors = steps ? 1 : vectorsOf(type, lanes);
  b.setExtent(hlo::simplify(hlo::numElements(counts, b.getContext()).floorDiv(vectors)));
  b.setWork((plain::costOf(elements.roots) + 2 * steps) * 8 * lanes * vectors);
  SmallVector<Value> sizes;
  for (AffineExpr count : counts)
    sizes.push_back(b.dim(count));
  LogicalResult ok = success();
  b.units([&](Value unit) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> places, values;
    Value first = vectors == 1 ? unit
                               : b.add(b.mul(b.divU(unit, b.i64(unitThreads)), b.i64(vectors * unitThreads)), b.remU(unit, b.i64(unitThreads)));
    // all is read before anything is written: a result may lie where an operand does
    for (int64_t k = 0; k < vectors; ++k) {
      places.push_back(b.add(first, b.i64(k * unitThreads)));
      SmallVector<Value> index = b.delinearize(places.back(), sizes);
      index.back() = b.mul(index.back(), b.i64(lanes));
      for (Value root : elements.roots) {
        FailureOr<Value> v = e.emit(root, index, lanes);
        if (failed(v)) {
          ok = failure();
          return;
        }
        values.push_back(*v);
      }
    }
    for (auto [n, v] : llvm::enumerate(values)) {
      const size_t k = n % elements.roots.size();
      b.storeElem(hlo::elementType(elements.roots[k]), v, b.results[k], b.mul(places[n / elements.roots.size()], b.i64(lanes)));
    }
  });
  alignVectors(b, lanes);
  return ok;
}

} // namespace lathe::nvptx
