//===- CanonicalizeProducts.cpp - one M, N and K; NHWC x HWIO --------------===//
//
// Before: dot_general with any dimension numbers, convolutions of any layout.
// After: dot_general with one free dimension on each side and one contracted,
// convolutions in the layout of the kernels, 1x1 convolutions as products.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOCANONICALIZEPRODUCTS
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

SmallVector<int64_t> iota(int64_t n) { return llvm::to_vector(llvm::seq<int64_t>(0, n)); }

bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, d] : llvm::enumerate(permutation))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

Value transpose(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return v;
  auto type = cast<RankedTensorType>(v.getType());
  SmallVector<AffineExpr> sizes;
  for (int64_t d : permutation)
    sizes.push_back(hlo::getDim(type, d));
  return hlo::TransposeOp::create(b, loc, hlo::makeType(sizes, type.getElementType()), v,
                                  b.getDenseI64ArrayAttr(permutation));
}

Value reshape(OpBuilder &b, Location loc, Value v, ArrayRef<AffineExpr> sizes) {
  RankedTensorType type = hlo::makeType(sizes, cast<RankedTensorType>(v.getType()).getElementType());
  return v.getType() == type ? v : hlo::ReshapeOp::create(b, loc, type, v).getResult();
}

AffineExpr product(MLIRContext *context, RankedTensorType type, ArrayRef<int64_t> dims) {
  AffineExpr result = hlo::constantExpr(context, 1);
  for (int64_t d : dims) {
    AffineExpr size = hlo::getDim(type, d);
    if (!size)
      return {};
    result = result * size;
  }
  return hlo::simplify(result);
}

/// One operand as [batch..., first..., second...] with the last two runs merged into a dimension each, or the runs the
/// other way round where that saves a transpose. `secondFirst` says which it became.
Value mergeOperand(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> batch, ArrayRef<int64_t> first,
                   ArrayRef<int64_t> second, bool &secondFirst) {
  auto type = cast<RankedTensorType>(v.getType());
  auto join = [&](ArrayRef<int64_t> x, ArrayRef<int64_t> y) {
    SmallVector<int64_t> all(batch);
    all.append(x.begin(), x.end());
    all.append(y.begin(), y.end());
    return all;
  };
  SmallVector<int64_t> straight = join(first, second), turned = join(second, first);
  secondFirst = !isIdentity(straight) && isIdentity(turned);
  SmallVector<AffineExpr> sizes;
  for (int64_t d : batch)
    sizes.push_back(hlo::getDim(type, d));
  AffineExpr x = product(b.getContext(), type, first), y = product(b.getContext(), type, second);
  sizes.push_back(secondFirst ? y : x);
  sizes.push_back(secondFirst ? x : y);
  return reshape(b, loc, transpose(b, loc, v, secondFirst ? turned : straight), sizes);
}

bool canonicalizeDot(hlo::DotGeneralOp op) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType()), rhs = cast<RankedTensorType>(op.getRhs().getType());
  auto d = op.getDotDimensionNumbers();
  SmallVector<int64_t> lhsBatch(d.getLhsBatchingDimensions()), rhsBatch(d.getRhsBatchingDimensions());
  SmallVector<std::pair<int64_t, int64_t>> contracted;
  for (auto [x, y] : llvm::zip(d.getLhsContractingDimensions(), d.getRhsContractingDimensions()))
    contracted.push_back({x, y});
  llvm::sort(contracted);
  SmallVector<int64_t> lhsContracted, rhsContracted, lhsFree, rhsFree;
  for (auto [x, y] : contracted) {
    lhsContracted.push_back(x);
    rhsContracted.push_back(y);
  }
  auto free = [](RankedTensorType type, ArrayRef<int64_t> a, ArrayRef<int64_t> b, SmallVector<int64_t> &out) {
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (!llvm::is_contained(a, i) && !llvm::is_contained(b, i))
        out.push_back(i);
  };
  free(lhs, lhsBatch, lhsContracted, lhsFree);
  free(rhs, rhsBatch, rhsContracted, rhsFree);
  if (lhsFree.size() == 1 && rhsFree.size() == 1 && contracted.size() == 1)
    return false;
  if (!hlo::hasKnownDims(lhs) || !hlo::hasKnownDims(rhs))
    return false;

  OpBuilder b(op);
  Location loc = op.getLoc();
  auto result = cast<RankedTensorType>(op.getType());
  bool lhsTurned, rhsTurned;
  Value x = mergeOperand(b, loc, op.getLhs(), lhsBatch, lhsFree, lhsContracted, lhsTurned);
  Value y = mergeOperand(b, loc, op.getRhs(), rhsBatch, rhsContracted, rhsFree, rhsTurned);
  int64_t batch = lhsBatch.size();
  auto dims = hlo::DotDimensionNumbersAttr::get(b.getContext(), iota(batch), iota(batch),
                                                {lhsTurned ? batch : batch + 1}, {rhsTurned ? batch + 1 : batch});
  SmallVector<AffineExpr> sizes;
  for (int64_t i = 0; i < batch; ++i)
    sizes.push_back(hlo::getDim(result, i));
  sizes.push_back(product(b.getContext(), lhs, lhsFree));
  sizes.push_back(product(b.getContext(), rhs, rhsFree));
  Value made = hlo::DotGeneralOp::create(b, loc, hlo::makeType(sizes, result.getElementType()), x, y, dims,
                                         op.getPrecisionConfigAttr());
  if (made.getType() != result)
    made = hlo::ReshapeOp::create(b, loc, result, made);
  op.getResult().replaceAllUsesWith(made);
  op.erase();
  return true;
}

/// Where dimension `from[i]` has to go: the order batch, spatial..., feature.
SmallVector<int64_t> imageOrder(int64_t batch, int64_t feature, ArrayRef<int64_t> spatial) {
  SmallVector<int64_t> order = {batch};
  order.append(spatial.begin(), spatial.end());
  order.push_back(feature);
  return order;
}

bool canonicalizeLayout(hlo::ConvolutionOp &op) {
  auto d = op.getDimensionNumbers();
  SmallVector<int64_t> in =
      imageOrder(d.getInputBatchDimension(), d.getInputFeatureDimension(), d.getInputSpatialDimensions());
  SmallVector<int64_t> filter(d.getKernelSpatialDimensions());
  filter.push_back(d.getKernelInputFeatureDimension());
  filter.push_back(d.getKernelOutputFeatureDimension());
  SmallVector<int64_t> out =
      imageOrder(d.getOutputBatchDimension(), d.getOutputFeatureDimension(), d.getOutputSpatialDimensions());
  bool reversal = op.getWindowReversal() && llvm::is_contained(*op.getWindowReversal(), true);
  if (isIdentity(in) && isIdentity(filter) && isIdentity(out) && !reversal)
    return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  int64_t rank = in.size();
  auto plain = plainConvDimensions(b.getContext(), rank);
  Value x = transpose(b, loc, op.getLhs(), in), w = transpose(b, loc, op.getRhs(), filter);
  if (reversal) {
    SmallVector<int64_t> turned;
    for (auto [i, on] : llvm::enumerate(*op.getWindowReversal()))
      if (on)
        turned.push_back(i);
    w = hlo::ReverseOp::create(b, loc, w.getType(), w, b.getDenseI64ArrayAttr(turned));
  }
  auto result = cast<RankedTensorType>(op.getType());
  SmallVector<AffineExpr> sizes;
  for (int64_t i : out)
    sizes.push_back(hlo::getDim(result, i));
  auto made = cast<hlo::ConvolutionOp>(b.clone(*op));
  made->setOperands({x, w});
  made.setDimensionNumbersAttr(plain);
  made.removeWindowReversalAttr();
  made.getResult().setType(hlo::makeType(sizes, result.getElementType()));
  SmallVector<int64_t> back(rank);
  for (auto [i, p] : llvm::enumerate(out))
    back[p] = i;
  op.getResult().replaceAllUsesWith(transpose(b, loc, made.getResult(), back));
  op.erase();
  op = made;
  return true;
}

/// A convolution that looks at one pixel at a time is a product over all pixels.
bool convToDot(hlo::ConvolutionOp op) {
  auto in = cast<RankedTensorType>(op.getLhs().getType()), filter = cast<RankedTensorType>(op.getRhs().getType());
  auto result = cast<RankedTensorType>(op.getType());
  int64_t rank = in.getRank();
  if (op.getFeatureGroupCount() != 1 || op.getBatchGroupCount() != 1 || !hlo::hasKnownDims(in) ||
      !hlo::hasKnownDims(result))
    return false;
  for (int64_t i = 0; i < rank - 2; ++i)
    if (filter.getDimSize(i) != 1)
      return false;
  auto ones = [&](std::optional<ArrayRef<int64_t>> list) {
    return llvm::all_of(hlo::getListOr(list, rank - 2, 1), [](int64_t v) { return v == 1; });
  };
  if (!ones(op.getWindowStrides()) || !ones(op.getLhsDilation()))
    return false;
  for (auto [low, high] : hlo::getPadding(op.getPaddingAttr(), rank - 2))
    if (low || high)
      return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<int64_t> pixels = iota(rank - 1);
  AffineExpr m = product(b.getContext(), in, pixels);
  AffineExpr ic = hlo::getDim(filter, rank - 2), oc = hlo::getDim(filter, rank - 1);
  Value x = reshape(b, loc, op.getLhs(), {m, ic}), w = reshape(b, loc, op.getRhs(), {ic, oc});
  auto dims = hlo::DotDimensionNumbersAttr::get(b.getContext(), {}, {}, {1}, {0});
  Value made = hlo::DotGeneralOp::create(b, loc, hlo::makeType(ArrayRef<AffineExpr>{m, oc}, result.getElementType()), x,
                                         w, dims, op.getPrecisionConfigAttr());
  op.getResult().replaceAllUsesWith(hlo::ReshapeOp::create(b, loc, result, made));
  op.erase();
  return true;
}

struct HloCanonicalizeProducts : simplify::impl::HloCanonicalizeProductsBase<HloCanonicalizeProducts> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
        numChanged += !layouts && canonicalizeDot(dot);
        continue;
      }
      auto conv = cast<hlo::ConvolutionOp>(op);
      if (cast<RankedTensorType>(conv.getLhs().getType()).getRank() < 3)
        continue;
      numChanged += canonicalizeLayout(conv);
      numChanged += !layouts && convToDot(conv);
    }
  }
};

} // namespace
