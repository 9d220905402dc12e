// How reductions are cut for tile registers, and which products of bytes take them.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Amx.h"

using namespace mlir;

namespace lathe::cpu {

/// Groups of four bytes that one of `op`'s tiles takes of an operand: two of bf16, four bytes where the sums are integers.
static AmxLayout emptyLayout(Operation *op, RankedTensorType acc) {
  AmxLayout layout;
  if (acc.getElementType().isInteger(32)) {
    layout.group = 4;
    layout.isUnsigned = getElementTypeOrSelf(op->getOperand(0).getType()).isUnsignedInteger();
  }
  return layout;
}

/// The longest step of whole groups that divides a run; 0 if there is none.
static int64_t stepOf(const AmxLayout &layout, int64_t run) {
  for (int64_t s = layout.fullStep(); s >= layout.group; s -= layout.group)
    if (run % s == 0)
      return s;
  return 0;
}

/// One run of gathered rows: full steps, the last one filled up with zeros.
static AmxLayout gatheredLayout(AmxLayout layout, int64_t depth, int64_t columns) {
  layout.panel = columns <= 16 ? 16 : 32;
  layout.run = depth;
  layout.runs = 1;
  layout.step = depth < layout.fullStep() ? llvm::alignTo(depth, layout.group) : layout.fullStep();
  layout.gathered = true;
  return layout;
}

/// Whether `steps` of a reduction of that length are too few elements each: a copy to full steps is faster.
static bool wasteful(const AmxLayout &layout, int64_t steps, int64_t depth) {
  return 2 * steps > 3 * int64_t(llvm::divideCeil(depth, layout.fullStep()));
}

AmxLayout amxLayout(kernel::DotOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  int64_t k = lhs.getDimSize(op.getLhsDims().back()), n = op.getAccType().getDimSize(op.getResultDims().back());
  AmxLayout layout = gatheredLayout(emptyLayout(op, op.getAccType()), k, n);
  if (int64_t step = stepOf(layout, k); step && !wasteful(layout, k / step, k)) {
    layout.step = step;
    layout.gathered = false;
  }
  return layout;
}

static SmallVector<int64_t> tapsOf(kernel::ConvOp op) {
  if (op.getLayout())
    return SmallVector<int64_t>(*op.getKernelShape());
  return SmallVector<int64_t>(cast<RankedTensorType>(op.getFilter().getType()).getShape().drop_back(2));
}

AmxLayout amxLayout(kernel::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  int64_t groups = op.getGroups(), channels = input.getShape().back(), perGroup = channels / groups;
  int64_t taps = 1, columns = op.getAccType().getShape().back() / groups;
  SmallVector<int64_t> sizes = tapsOf(op);
  for (int64_t t : sizes)
    taps *= t;
  const AmxLayout empty = emptyLayout(op, op.getAccType());
  AmxLayout layout = gatheredLayout(empty, taps * perGroup, columns);
  // every other pixel: gathered once they are plain rows for all panels
  if (groups == 1 && taps == 1 && llvm::any_of(op.getStrides(), [](int64_t s) { return s > 1; }))
    return layout;
  // one run a tap, or one for a whole row of taps where their channels touch
  int64_t steps = 0;
  auto consider = [&](int64_t run, int64_t runs) {
    int64_t step = stepOf(layout, run);
    if (!step || (steps && run / step * runs >= steps))
      return;
    steps = run / step * runs;
    layout.run = run;
    layout.runs = runs;
    layout.step = step;
    layout.gathered = false;
  };
  consider(perGroup, taps);
  bool touching = groups == 1 && !sizes.empty() && op.getRhsDilation().back() == 1 && channels * layout.elemBytes() % 1024 != 0;
  if (touching)
    consider(sizes.back() * perGroup, taps / sizes.back());
  if (groups == 1 && (!steps || wasteful(layout, steps, taps * perGroup)))
    return gatheredLayout(empty, taps * perGroup, columns);
  return layout;
}

/// What a product of bytes needs for tiles to win: a copy of its rows and a way of the sums through memory come with them.
constexpr int64_t fewestRows = 4, fewestColumns = 16, shortestSum = 32;

static WhyNot whyNotTypes(Operation *op, RankedTensorType acc, bool rightIsSigned) {
  if (!acc.getElementType().isInteger(32) || !getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(8) || !rightIsSigned)
    return WhyNot::notMeant("operands are no bytes");
  return llvm::is_contained(acc.getShape(), 0) ? WhyNot::notMeant("it has no elements") : WhyNot::none();
}

static WhyNot whyNotDot(kernel::DotOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  RankedTensorType acc = op.getAccType();
  const int64_t k = lhs.getDimSize(op.getLhsDims().back()), n = acc.getDimSize(op.getResultDims().back());
  const int64_t m = acc.getDimSize(op.getResultDims()[op.getBatchRank()]);
  if (ShapedType::isDynamic(k) || ShapedType::isDynamic(n))
    return WhyNot::notMeant("depth or columns are known at run time only");
  if (k < shortestSum || n < fewestColumns || (!ShapedType::isDynamic(m) && m < fewestRows))
    return WhyNot::notMeant("few rows, columns or steps of the sum");
  return WhyNot::none();
}

static WhyNot whyNotConv(kernel::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  auto isDynamic = [](RankedTensorType t) { return llvm::any_of(t.getShape().drop_front(), ShapedType::isDynamic); };
  if (isDynamic(input) || isDynamic(acc) || !filter.hasStaticShape() || filter.getNumElements() == 0 || llvm::is_contained(input.getShape(), 0))
    return WhyNot::notMeant("image sizes are known at run time only");
  if (op.getBatchGroups() != 1 || llvm::any_of(op.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return WhyNot::notMeant("it has batch groups or a dilated input");
  const int64_t groups = op.getGroups(), perGroup = input.getShape().back() / groups, oc = acc.getShape().back();
  int64_t depth = perGroup;
  for (int64_t t : filter.getShape().drop_back(2))
    depth *= t;
  if (oc % groups || oc / groups < fewestColumns || depth < shortestSum)
    return WhyNot::notMeant("few columns or steps of the sum");
  if (groups > 1 && (perGroup % 4 || perGroup < shortestSum))
    return WhyNot::notMeant("a group has few input channels, or no whole groups of four");
  return WhyNot::none();
}

WhyNot whyNotByteTiles(Operation *op, const KernelTarget &target, bool rightIsSigned) {
  if (!target.amxInt8)
    return WhyNot::notMeant("the target has no AMX_INT8");
  auto dot = dyn_cast<kernel::DotOp>(op);
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (WhyNot why = whyNotTypes(op, dot ? dot.getAccType() : conv.getAccType(), rightIsSigned); !why.takes())
    return why;
  return dot ? whyNotDot(dot) : whyNotConv(conv);
}

bool inTileRegisters(Operation *op, const KernelTarget &target) {
  return op->getAttrOfType<TilesAttr>("layout") || (target.amxBf16 && op->hasAttr("bf16"));
}

} // namespace lathe::cpu
