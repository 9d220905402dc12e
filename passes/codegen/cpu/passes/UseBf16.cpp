// kernel-bf16: what is computed from bf16 operands, the layout of its constants, and which tensors stay in bf16.
//
//   %0 = kernel.dot(%x, %w) : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32> {..}
//   %1 = kernel.dot(%0, %v) : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32> {..}
// becomes
//   %0 = kernel.dot(%x, %p) {bf16, layout = #cpu.tiles<32, 2>} : (tensor<4x64xf32>, tensor<1x32x64xbf16>) -> tensor<4x32xbf16> {..}
//   %1 = kernel.dot(%0, %q) {bf16, layout = #cpu.tiles<16, 2>} : (tensor<4x32xbf16>, tensor<1x16x32xbf16>) -> tensor<4x8xf32> {..}
#include "base/Float.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/target/CpuTarget.h"
#include "passes/codegen/cpu/product/Amx.h"

#include <cstring>
#include <map>

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_USEBF16
#include "passes/codegen/cpu/passes/Passes.h.inc"

//===----------------------------------------------------------------------===//
// Policy
//===----------------------------------------------------------------------===//

static bool isConstantBehindViews(Value v) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return v.getDefiningOp<hlo::ConstantOp>() != nullptr;
}

static WhyNot whyNotTypes(Operation *op, RankedTensorType acc) {
  auto narrow = [](Value v) {
    Type e = getElementTypeOrSelf(v.getType());
    return e.isF32() || e.isBF16();
  };
  if (!narrow(op->getOperand(0)) || !narrow(op->getOperand(1)) || !acc.getElementType().isF32())
    return WhyNot::notMeant("operands or sums are not f32");
  if (llvm::is_contained(acc.getShape(), 0))
    return WhyNot::notMeant("it has no elements");
  return WhyNot::none();
}

static WhyNot whyNotDot(kernel::DotOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  RankedTensorType acc = op.getAccType();
  if (WhyNot why = whyNotTypes(op, acc); !why.takes())
    return why;
  int64_t k = lhs.getDimSize(op.getLhsDims().back()), n = acc.getDimSize(op.getResultDims().back());
  int64_t m = acc.getDimSize(op.getResultDims()[op.getBatchRank()]);
  if (ShapedType::isDynamic(k) || ShapedType::isDynamic(n))
    return WhyNot::lacks("depth or columns are known at run time only");
  if (k < 8 || n < 8)
    return WhyNot::notMeant("depth or columns are fewer than a vector");
  // rounding and packing a matrix costs more than few rows against it bring
  if (!isConstantBehindViews(op.getRhs()) && !ShapedType::isDynamic(m) && m < 8)
    return WhyNot::notMeant("too few rows for a right operand that is not constant");
  return WhyNot::none();
}

static WhyNot whyNotConv(kernel::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  if (WhyNot why = whyNotTypes(op, acc); !why.takes())
    return why;
  if (!isConstantBehindViews(op.getFilter()))
    return WhyNot::lacks("the filter is not constant");
  auto dynamic = [](RankedTensorType t) { return llvm::any_of(t.getShape().drop_front(), ShapedType::isDynamic); };
  if (dynamic(input) || dynamic(acc) || !filter.hasStaticShape() || filter.getNumElements() == 0 || llvm::is_contained(input.getShape(), 0))
    return WhyNot::lacks("image sizes are known at run time only");
  if (op.getBatchGroups() != 1 || llvm::any_of(op.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return WhyNot::lacks("it has batch groups or a dilated input");
  int64_t groups = op.getGroups(), perGroup = input.getShape().back() / groups, columns = acc.getShape().back() / groups;
  if (acc.getShape().back() % groups || columns < 8)
    return WhyNot::notMeant("a group has fewer channels than a vector");
  if (groups > 1 && (perGroup % 2 || perGroup < 8))
    return WhyNot::lacks("a group has few or an odd number of input channels");
  return WhyNot::none();
}

WhyNot whyNotBf16(Operation *op) {
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return dot.getLayout() ? WhyNot::notMeant("it is packed") : whyNotDot(dot);
  if (auto conv = dyn_cast<kernel::ConvOp>(op))
    return conv.getLayout() ? WhyNot::notMeant("it is packed") : whyNotConv(conv);
  return WhyNot::notMeant("it is no product");
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {

/// [batch, k, n] in a blob of f32 or bf16; strides in elements.
struct View {
  int64_t k = 0, n = 0, kStride = 0, nStride = 1;
  SmallVector<int64_t> batch = {0}; ///< offsets
};

/// Panels of pairs: each run of the sum's steps is padded by zeros.
struct PairPanels {
  int64_t columns = 0, run = 0, runs = 1, padded = 0;
  int64_t depth() const { return runs * padded; }
};

class Bf16Packer {
public:
  Bf16Packer(MLIRContext *context, const KernelTarget &target) : context(context), target(target) {}
  LogicalResult pack(kernel::DotOp op);
  LogicalResult pack(kernel::ConvOp op);
  LogicalResult pack(kernel::ConvOp op, const WinogradPlan &plan);

private:
  LogicalResult replace(Operation *op, const View &view, const PairPanels &panels, std::vector<int64_t> batchDims);
  PairPanels panelsOf(const AmxLayout &layout) const { return {layout.panel, layout.run, layout.runs, layout.paddedRun()}; }
  PairPanels panelsOf(kernel::DotOp op, const View &view) const;
  PairPanels panelsOf(kernel::ConvOp op, const View &view) const;
  kernel::LayoutAttr layoutAttr(int64_t columns) const {
    if (target.amxBf16)
      return TilesAttr::get(context, columns, 2);
    return PanelsAttr::get(context, columns, 2);
  }

  MLIRContext *context;
  const KernelTarget &target;
  std::map<std::pair<const void *, std::string>, Value> done;
};

static std::optional<int64_t> staticSize(int64_t size) { return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size); }

PairPanels Bf16Packer::panelsOf(kernel::DotOp op, const View &view) const {
  if (target.amxBf16)
    return panelsOf(amxLayout(op));
  const int64_t rows = op.getAccType().getDimSize(op.getResultDims()[op.getBatchRank()]);
  return {chooseTile(target, op.getAccType().getElementType(), staticSize(rows), view.n).columns(), view.k, 1,
          bf16Format().paddedDepth(view.k)};
}

PairPanels Bf16Packer::panelsOf(kernel::ConvOp op, const View &view) const {
  if (target.amxBf16)
    return panelsOf(amxLayout(op));
  const ConvRuns runs = convRuns(op);
  return {chooseTile(target, op.getAccType().getElementType(), rowsOfTiles(op), view.n).columns(), runs.run, runs.runs,
          bf16Format().paddedDepth(runs.run)};
}

Tensor packPairs(const Tensor &from, const View &view, const PairPanels &panels, std::vector<int64_t> dims) {
  Tensor to = Tensor::allocate(DType::BFloat16, std::move(dims));
  auto *out = static_cast<uint16_t *>(to.data());
  std::memset(out, 0, to.sizeBytes());
  const bool wide = from.dtype() == DType::Float32;
  auto *in32 = static_cast<const float *>(from.data());
  auto *in16 = static_cast<const uint16_t *>(from.data());
  const int64_t width = panels.columns, count = llvm::divideCeil(view.n, width), panelSize = panels.depth() * width;
  for (size_t i = 0; i < view.batch.size(); ++i)
    for (int64_t p = 0; p < count; ++p) {
      uint16_t *panel = out + (i * count + p) * panelSize;
      int64_t columns = std::min(width, view.n - p * width);
      for (int64_t k = 0; k < view.k; ++k) {
        int64_t padded = k / panels.run * panels.padded + k % panels.run;
        uint16_t *row = panel + padded / 2 * width * 2 + padded % 2;
        int64_t source = view.batch[i] + k * view.kStride + p * width * view.nStride;
        for (int64_t c = 0; c < columns; ++c, source += view.nStride)
          row[2 * c] = wide ? floatToBFloat16(in32[source]) : in16[source];
      }
    }
  return to;
}

LogicalResult Bf16Packer::replace(Operation *op, const View &view, const PairPanels &panels, std::vector<int64_t> dims) {
  Value source = op->getOperand(1);
  while (auto reshape = source.getDefiningOp<hlo::ReshapeOp>())
    source = reshape->getOperand(0);
  auto constant = source.getDefiningOp<hlo::ConstantOp>();
  dims.insert(dims.end(), {int64_t(llvm::divideCeil(view.n, panels.columns)), panels.depth() / 2, 2 * panels.columns});
  std::string key;
  llvm::raw_string_ostream os(key);
  os << view.k << ' ' << view.n << ' ' << view.kStride << ' ' << view.nStride << ' ' << panels.columns << ' ' << panels.run << ' '
     << panels.padded << ' ' << constant->getBlock();
  for (int64_t o : view.batch)
    os << ' ' << o;
  for (int64_t d : dims)
    os << ' ' << d;
  Value &value = done[{constant.getValue().getAsOpaquePointer(), os.str()}];
  if (!value) {
    FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
    if (failed(tensor))
      return op->emitOpError("constant operand cannot be read");
    OpBuilder b(constant->getContext());
    b.setInsertionPointToStart(constant->getBlock());
    value = hlo::makeConstant(b, constant.getLoc(), packPairs(*tensor, view, panels, dims));
    if (!value)
      return failure();
  }
  op->setOperand(1, value);
  return success();
}

LogicalResult Bf16Packer::pack(kernel::DotOp op) {
  if (!isConstantBehindViews(op.getRhs()))
    return success();
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  SmallVector<int64_t> strides(rhs.getRank(), 1);
  for (int64_t i = rhs.getRank() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * rhs.getDimSize(i + 1);
  ArrayRef<int64_t> dims = op.getRhsDims();
  View view;
  view.k = rhs.getDimSize(dims[dims.size() - 2]);
  view.n = rhs.getDimSize(dims.back());
  view.kStride = strides[dims[dims.size() - 2]];
  view.nStride = strides[dims.back()];
  std::vector<int64_t> shape;
  for (int64_t d : dims.drop_back(2)) {
    SmallVector<int64_t> next;
    for (int64_t base : view.batch)
      for (int64_t x = 0; x < rhs.getDimSize(d); ++x)
        next.push_back(base + x * strides[d]);
    view.batch = next;
    shape.push_back(rhs.getDimSize(d));
  }
  const PairPanels panels = panelsOf(op, view);
  if (failed(replace(op, view, panels, shape)))
    return failure();
  op.setLayoutAttr(layoutAttr(panels.columns));
  op.setRhsDims(llvm::to_vector(llvm::seq<int64_t>(0, shape.size() + 3)));
  return success();
}

LogicalResult Bf16Packer::pack(kernel::ConvOp op) {
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  SmallVector<int64_t> taps(filter.getShape().drop_back(2));
  int64_t oc = filter.getShape().back(), groups = op.getGroups();
  View view;
  view.k = filter.getNumElements() / oc;
  view.n = oc / groups;
  view.kStride = oc;
  view.batch.clear();
  for (int64_t g = 0; g < groups; ++g)
    view.batch.push_back(g * view.n);
  const PairPanels panels = panelsOf(op, view);
  if (failed(replace(op, view, panels, {groups})))
    return failure();
  op.setLayoutAttr(layoutAttr(panels.columns));
  op.setKernelShape(taps);
  return success();
}

/// The constant filter in its own shape.
FailureOr<Tensor> filterOf(kernel::ConvOp op) {
  Value v = op.getFilter();
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  FailureOr<Tensor> tensor = hlo::readConstant(v.getDefiningOp<hlo::ConstantOp>().getValue());
  if (failed(tensor))
    return failure();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getFilter().getType()).getShape();
  return tensor->reshaped({shape.begin(), shape.end()});
}

/// Transformed for Winograd's algorithm.
LogicalResult Bf16Packer::pack(kernel::ConvOp op, const WinogradPlan &plan) {
  Value source = op.getFilter();
  while (auto reshape = source.getDefiningOp<hlo::ReshapeOp>())
    source = reshape->getOperand(0);
  auto constant = source.getDefiningOp<hlo::ConstantOp>();
  std::string key;
  llvm::raw_string_ostream(key) << "winograd " << plan.tile << ' ' << plan.panel << ' ' << plan.panelsPerUnit << ' ' << op.getFilter().getType()
                                << ' ' << constant->getBlock();
  Value &value = done[{constant.getValue().getAsOpaquePointer(), key}];
  if (!value) {
    FailureOr<Tensor> filter = filterOf(op);
    if (failed(filter))
      return op.emitOpError("constant operand cannot be read");
    OpBuilder b(constant->getContext());
    b.setInsertionPointToStart(constant->getBlock());
    value = hlo::makeConstant(b, constant.getLoc(), pairFilter(transformFilter(*filter, plan)));
    if (!value)
      return failure();
  }
  op.setKernelShape(cast<RankedTensorType>(op.getFilter().getType()).getShape().take_front(2));
  op->setOperand(1, value);
  op.setLayoutAttr(WinogradAttr::get(op.getContext(), plan.tile, plan.panel));
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors between kernels
//===----------------------------------------------------------------------===//

bool isMarked(Operation *op) {
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return dot.getBf16();
  if (auto conv = dyn_cast<kernel::ConvOp>(op))
    return conv.getBf16();
  return false;
}

/// Operands in front of those that the region sees.
unsigned coreOperands(Operation *op) { return op->getNumOperands() + (kernel::hasCore(op) ? 1 : 0) - op->getRegion(0).getNumArguments(); }

struct Uses {
  SmallVector<OpOperand *> kernels;
  SmallVector<Value> views;
  bool onlyKernels = true, product = false, others = false;
};

void collectUses(Value v, Uses &uses) {
  for (OpOperand &use : v.getUses()) {
    Operation *user = use.getOwner();
    if (isa<hlo::ReshapeOp>(user)) {
      uses.views.push_back(user->getResult(0));
      collectUses(user->getResult(0), uses);
    } else if (kernel::isKernelOp(user)) {
      uses.kernels.push_back(&use);
      auto conv = dyn_cast<kernel::ConvOp>(user);
      // Winograd's algorithm rounds what it has transformed
      bool rounds = isMarked(user) && use.getOperandNumber() < 2 && !(conv && winogradTile(conv));
      (rounds ? uses.product : uses.others) = true;
    } else {
      uses.onlyKernels = false;
    }
  }
}

RankedTensorType narrowType(Type t) {
  auto tensor = cast<RankedTensorType>(t);
  return tensor.clone(BFloat16Type::get(t.getContext()));
}

/// A tensor that only products read loses nothing by being rounded at the store. Where others read it too the rounding
/// costs accuracy, and pays by half the traffic only if the tensor (of one image) is large.
constexpr int64_t smallestLossyBytes = 512 << 10;

static bool isLarge(RankedTensorType t) {
  double bytes = 4;
  for (int64_t d : t.getShape())
    bytes *= ShapedType::isDynamic(d) ? 1 : d;
  return bytes >= smallestLossyBytes;
}

/// Lets a kernel write its result `number` in bf16 and all readers take it so. False when that does not pay or fit.
bool storeNarrow(Operation *op, unsigned number) {
  OpResult result = op->getResult(number);
  if (!getElementTypeOrSelf(result.getType()).isF32())
    return false;
  Uses uses;
  collectUses(result, uses);
  if (!uses.onlyKernels || !(uses.product || isMarked(op)) || uses.kernels.empty())
    return false;
  if (uses.others && !isLarge(cast<RankedTensorType>(result.getType())))
    return false;
  Operation *yield = op->getRegion(0).front().getTerminator();
  OpBuilder b(yield);
  Value wide = yield->getOperand(number);
  yield->setOperand(number, hlo::ConvertOp::create(b, wide.getLoc(), wide, b.getBF16Type()));
  result.setType(narrowType(result.getType()));
  for (Value v : uses.views)
    v.setType(narrowType(v.getType()));
  for (OpOperand *use : uses.kernels) {
    Operation *user = use->getOwner();
    unsigned core = coreOperands(user);
    if (use->getOperandNumber() < core)
      continue;
    Block &body = user->getRegion(0).front();
    BlockArgument arg = body.getArgument(use->getOperandNumber() - core + (kernel::hasCore(user) ? 1 : 0));
    arg.setType(narrowType(arg.getType()));
    OpBuilder inside = OpBuilder::atBlockBegin(&body);
    auto widened = hlo::ConvertOp::create(inside, arg.getLoc(), arg, inside.getF32Type());
    arg.replaceAllUsesExcept(widened, widened);
  }
  return true;
}

/// Multiply-adds of an op that whyNotBf16 lets pass; sizes known at run time only count as 1.
double multiplyAdds(Operation *op) {
  auto acc = cast<RankedTensorType>(isa<kernel::DotOp>(op) ? cast<kernel::DotOp>(op).getAccType() : cast<kernel::ConvOp>(op).getAccType());
  double n = isa<kernel::DotOp>(op) ? amxLayout(cast<kernel::DotOp>(op)).depth() : amxLayout(cast<kernel::ConvOp>(op)).depth();
  for (int64_t d : acc.getShape())
    n *= ShapedType::isDynamic(d) ? 1 : d;
  return n;
}

constexpr double smallLastProduct = 4e6, smallLastShare = 0.01;

/// The last of several products on a way to the results, whose roundings nothing averages out any more: where they are a
/// small part of the work they stay f32.
llvm::SmallPtrSet<Operation *, 4> smallLastProducts(ArrayRef<Operation *> products) {
  llvm::SmallPtrSet<Operation *, 16> isProduct(products.begin(), products.end()), leads;
  llvm::SmallPtrSet<Operation *, 4> found;
  double total = 0;
  for (Operation *op : products)
    total += multiplyAdds(op);
  llvm::SmallPtrSet<Block *, 4> blocks;
  for (Operation *op : products)
    if (isa<func::FuncOp>(op->getParentOp()))
      blocks.insert(op->getBlock());
  for (Block *block : blocks) {
    llvm::SmallPtrSet<Operation *, 16> fed;
    for (Operation &op : *block)
      if (llvm::any_of(op.getOperands(), [&](Value v) {
            Operation *from = v.getDefiningOp();
            return from && (isProduct.contains(from) || fed.contains(from));
          }))
        fed.insert(&op);
    for (Operation &op : llvm::reverse(*block)) {
      // what a loop or call does with a value is not followed
      bool toProduct = llvm::any_of(op.getUsers(), [&](Operation *user) {
        return user->getBlock() != block || isProduct.contains(user) || leads.contains(user) ||
               !(kernel::isKernelOp(user) || isa<hlo::ReshapeOp>(user) || user->hasTrait<OpTrait::IsTerminator>());
      });
      if (toProduct)
        leads.insert(&op);
      else if (isProduct.contains(&op) && fed.contains(&op) && multiplyAdds(&op) <= std::max(smallLastProduct, smallLastShare * total))
        found.insert(&op);
    }
  }
  return found;
}

struct UseBf16 : impl::UseBf16Base<UseBf16> {
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    if (!target->kernels.avx512bf16)
      emitWarning(UnknownLoc::get(&getContext())) << "--precision bf16: CPU '" << target->processor.cpu
                                                  << "' has no AVX512_BF16: products and convolutions stay f32";
    FailureOr<unsigned> n = useBf16(getOperation(), target->kernels, target->processor.exact);
    if (failed(n))
      return signalPassFailure();
    numMarked += *n;
  }
};

} // namespace

FailureOr<unsigned> useBf16(ModuleOp module, const KernelTarget &target, bool exact) {
  if (!target.avx512bf16)
    return 0u;
  Bf16Packer packer(module.getContext(), target);
  SmallVector<Operation *> kernels;
  SmallVector<hlo::ConstantOp> constants;
  module.walk([&](Operation *op) {
    if (kernel::isKernelOp(op))
      kernels.push_back(op);
    else if (auto c = dyn_cast<hlo::ConstantOp>(op))
      constants.push_back(c);
  });
  unsigned marked = 0;
  SmallVector<Operation *> products;
  llvm::copy_if(kernels, std::back_inserter(products), [](Operation *op) {
    return isa<kernel::DotOp, kernel::ConvOp>(op) && chooseSpecial(op, "bf16", whyNotBf16(op));
  });
  const auto wide = smallLastProducts(products);
  for (Operation *op : products) {
    if (wide.contains(op))
      continue;
    Bf16Choice choice;
    if (auto conv = dyn_cast<kernel::ConvOp>(op); conv && !exact && !target.amxBf16)
      choice = chooseBf16(conv, target, [&] { return filterOf(conv); });
    if (choice.winogradF32)
      continue;
    LogicalResult ok = success();
    if (auto dot = dyn_cast<kernel::DotOp>(op)) {
      dot.setBf16(true);
      ok = packer.pack(dot);
    } else {
      auto conv = cast<kernel::ConvOp>(op);
      conv.setBf16(true);
      ok = choice.paired ? packer.pack(conv, *choice.paired) : packer.pack(conv);
    }
    if (failed(ok))
      return failure();
    ++marked;
  }
  for (Operation *op : kernels)
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      storeNarrow(op, i);
  for (hlo::ConstantOp c : constants) {
    for (Operation *user : llvm::make_early_inc_range(c->getUsers()))
      if (isa<hlo::ReshapeOp>(user) && user->use_empty())
        user->erase();
    if (c->use_empty())
      c->erase();
  }
  return marked;
}

} // namespace lathe::cpu
