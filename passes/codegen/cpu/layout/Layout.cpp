// Layouts: what fits which op, and what profiles say of them.
#include "passes/codegen/cpu/layout/Layout.h"

#include "passes/codegen/cpu/conv/Winograd.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "passes/codegen/cpu/layout/LayoutDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "passes/codegen/cpu/layout/LayoutAttrs.cpp.inc"

namespace lathe::cpu {

void CpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "passes/codegen/cpu/layout/LayoutAttrs.cpp.inc"
      >();
}

static bool clash(int64_t a, int64_t b) { return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b; }

/// Panels of a right operand: steps of the sum behind each other, `width` elements each.
static LogicalResult verifyPanels(kernel::DotOp op, int64_t columns, int64_t depth, int64_t width) {
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  const int64_t n = op.getAccType().getDimSize(op.getResultDims().back());
  ArrayRef<int64_t> shape = rhs.getShape().take_back(3);
  if (columns < 1 || shape[2] != width || clash(shape[1], depth) ||
      (!ShapedType::isDynamic(n) && clash(shape[0], llvm::divideCeil(n, columns))))
    return op.emitOpError() << "packed rhs does not fit: expected ceil(" << n << "/" << columns << ") panels of " << depth << " x " << width
                            << ", found " << rhs;
  return success();
}

/// Elements of the sum of a product, as the left operand has them.
static int64_t depthOf(kernel::DotOp op) {
  return cast<RankedTensorType>(op.getLhs().getType()).getDimSize(op.getLhsDims().back());
}

/// Panels of groups, whose depth the emitter has padded.
static LogicalResult verifyGroups(kernel::DotOp op, int64_t columns, int64_t group) {
  const int64_t depth = cast<RankedTensorType>(op.getRhs().getType()).getShape().take_back(2)[0], k = depthOf(op);
  if (!ShapedType::isDynamic(k) && group * depth < k)
    return op.emitOpError() << "a packed rhs needs groups of " << group << " for " << k << " steps, found " << op.getRhs().getType();
  return verifyPanels(op, columns, depth, group * columns);
}

static LogicalResult verifyPanels(kernel::DotOp op, PanelsAttr layout) {
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  const Type acc = op.getAccType().getElementType();
  const int64_t k = depthOf(op), columns = layout.getColumns(), group = layout.getGroup();
  if (op.getBf16())
    return group == 2 ? verifyGroups(op, columns, 2) : op.emitOpError() << "bf16 lies in pairs, found groups of " << group << " in " << rhs;
  if (group < 1 || (group > 1 && (ShapedType::isDynamic(k) || !(acc.isF32() || acc.isInteger(32)))))
    return op.emitOpError() << "groups of " << group << " steps need a known depth and sums of 32 bits, found a depth of " << k;
  if (ShapedType::isDynamic(k))
    return verifyPanels(op, columns, k, columns);
  // where an instruction wants the other sign than the bytes on the left have, what takes that back lies before the steps
  const int64_t depth = llvm::alignTo(k, group), found = rhs.getShape().take_back(2)[0];
  return verifyPanels(op, columns, acc.isInteger(32) && group == 4 && found == depth + 4 ? found : depth, columns);
}

static LogicalResult verifyPanels(kernel::ConvOp op, int64_t columns, int64_t width) {
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  if (filter.getRank() != 4)
    return op.emitOpError() << "expected a packed filter of rank 4, found " << filter;
  if (columns < 1 || filter.getDimSize(3) != width)
    return op.emitOpError() << "expected panels of " << columns << " columns in a packed filter, found " << filter;
  return success();
}

static LogicalResult notFor(Operation *op, Attribute layout) {
  return op->emitOpError() << "has a layout that is none of it: " << layout;
}

LogicalResult PanelsAttr::verifyLayout(Operation *op) const {
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return verifyPanels(dot, *this);
  if (auto conv = dyn_cast<kernel::ConvOp>(op))
    return verifyPanels(conv, getColumns(), getColumns() * (conv.getBf16() ? 2 : 1));
  return notFor(op, *this);
}

LogicalResult TilesAttr::verifyLayout(Operation *op) const {
  auto dot = dyn_cast<kernel::DotOp>(op);
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!dot && !conv)
    return notFor(op, *this);
  const bool bf16 = dot ? dot.getBf16() : conv.getBf16();
  const RankedTensorType acc = dot ? dot.getAccType() : conv.getAccType();
  const Type left = getElementTypeOrSelf(op->getOperand(0).getType()), right = getElementTypeOrSelf(op->getOperand(1).getType());
  const bool bytes = left.isInteger(8) && right.isInteger(8) && !right.isUnsignedInteger() && acc.getElementType().isInteger(32);
  if (bf16 ? getGroup() != 2 || !right.isBF16() : getGroup() != 4 || !bytes)
    return op->emitOpError() << "tiles take pairs of bf16, or four bytes that are signed on the right, with sums of 32 bits";
  if (dot)
    return verifyGroups(dot, getColumns(), getGroup());
  return verifyPanels(conv, getColumns(), getColumns() * getGroup());
}

LogicalResult StrassenAttr::verifyLayout(Operation *op) const {
  auto dot = dyn_cast<kernel::DotOp>(op);
  if (!dot)
    return notFor(op, *this);
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType()), rhs = cast<RankedTensorType>(dot.getRhs().getType());
  RankedTensorType acc = dot.getAccType();
  if (dot.getBf16() || rhs.getRank() != 3 || !lhs.hasStaticShape() || !rhs.hasStaticShape() || !acc.hasStaticShape() ||
      lhs.getNumElements() == 0 || acc.getNumElements() == 0 || dot.getLhsDims().back() != lhs.getRank() - 1 ||
      !lhs.getElementType().isF32() || !rhs.getElementType().isF32())
    return dot.emitOpError(
        "strassen needs static f32 operands that are not empty, one matrix on the right, rows of lhs along memory");
  return verifyPanels(dot, getColumns(), llvm::alignTo(depthOf(dot), 2), getColumns());
}

LogicalResult WinogradAttr::verifyLayout(Operation *op) const {
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!conv)
    return notFor(op, *this);
  auto ones = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t v) { return v == 1; }); };
  const ArrayRef<int64_t> window = *conv.getKernelShape();
  if (window.size() != 2 || !ones(conv.getStrides()) || !ones(conv.getLhsDilation()) || conv.getGroups() != 1 || conv.getBatchGroups() != 1)
    return conv.emitOpError("winograd needs two spatial dimensions, strides of 1, no dilated input and no groups");
  int64_t points = 1;
  for (int64_t taps : window) {
    const int64_t along = winogradPoints(getTile(), taps);
    if (!along)
      return conv.emitOpError() << "winograd of " << getTile() << " does not fit " << taps << " taps";
    points *= along;
  }
  if (points == 1)
    return conv.emitOpError("winograd needs several taps");
  auto in = cast<RankedTensorType>(conv.getInput().getType()), filter = cast<RankedTensorType>(conv.getFilter().getType());
  const Type from = in.getElementType();
  const bool integers = from.isInteger(8) && conv.getAccType().getElementType().isInteger(32);
  if (integers ? filter.getElementType() != IntegerType::get(getContext(), 16) || points > 16
               : !(from.isF32() || from.isBF16() || from.isF16()) || !conv.getAccType().getElementType().isF32() ||
                     !(conv.getBf16() ? filter.getElementType().isBF16() : filter.getElementType().isF32()))
    return conv.emitOpError("winograd needs floats, a filter in f32, or in bf16 where it is marked so; or bytes, four points and a filter in i16");
  const int64_t columns = getColumns(), oc = conv.getAccType().getShape().back();
  if (in.isDynamicDim(3) || ShapedType::isDynamic(oc) || columns < 1 || !filter.hasStaticShape() || filter.getRank() != 5)
    return conv.emitOpError("winograd needs known channels, panels and a packed filter of rank 5");
  ArrayRef<int64_t> shape = filter.getShape();
  const int64_t pair = conv.getBf16() || integers ? 2 : 1;
  if (shape[0] * shape[2] != static_cast<int64_t>(llvm::divideCeil(oc, columns)) || shape[1] != points ||
      shape[3] * pair != static_cast<int64_t>(llvm::alignTo(in.getDimSize(3), integers ? 2 : 1)) || shape[4] != columns * pair)
    return conv.emitOpError() << "transformed filter does not fit: found " << filter;
  return success();
}

LogicalResult SpreadAttr::verifyLayout(Operation *op) const {
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!conv)
    return notFor(op, *this);
  const int64_t oc = conv.getAccType().getShape().back();
  const ArrayRef<int64_t> window = *conv.getKernelShape();
  if (window.empty() || conv.getStrides().back() != 1 || llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }) ||
      conv.getGroups() != 1 || conv.getBatchGroups() != 1 || conv.getBf16() || ShapedType::isDynamic(oc) || oc * window.back() > getColumns())
    return conv.emitOpError("spread needs a packed filter with all taps of a row in one panel, stride 1, no dilated input and no groups");
  return verifyPanels(conv, getColumns(), getColumns());
}

std::string PanelsAttr::nameSuffix() const { return ""; }
std::string TilesAttr::nameSuffix() const { return ""; }
std::string StrassenAttr::nameSuffix() const { return "_strassen"; }
std::string WinogradAttr::nameSuffix() const { return "_winograd" + std::to_string(getTile()); }
std::string SpreadAttr::nameSuffix() const { return "_spread"; }

static std::optional<int64_t> columnsOf(kernel::LayoutAttr layout) {
  return llvm::TypeSwitch<Attribute, std::optional<int64_t>>(layout)
      .Case<PanelsAttr, TilesAttr, StrassenAttr, WinogradAttr, SpreadAttr>([](auto own) -> std::optional<int64_t> { return own.getColumns(); })
      .Default(std::optional<int64_t>());
}

std::optional<int64_t> panelColumns(kernel::DotOp op) { return op.getLayout() ? columnsOf(op.getLayoutAttr()) : std::nullopt; }
std::optional<int64_t> panelColumns(kernel::ConvOp op) { return op.getLayout() ? columnsOf(op.getLayoutAttr()) : std::nullopt; }

int64_t panelGroup(kernel::DotOp op) {
  auto panels = dyn_cast_if_present<PanelsAttr>(op.getLayoutAttr());
  return panels ? panels.getGroup() : 1;
}

bool isStrassen(kernel::DotOp op) { return isa_and_present<StrassenAttr>(op.getLayoutAttr()); }
bool isSpread(kernel::ConvOp op) { return isa_and_present<SpreadAttr>(op.getLayoutAttr()); }

std::optional<int64_t> winogradTile(kernel::ConvOp op) {
  auto winograd = dyn_cast_if_present<WinogradAttr>(op.getLayoutAttr());
  return winograd ? std::optional(winograd.getTile()) : std::nullopt;
}

} // namespace lathe::cpu
