// nvptx-split-products: deep products of few results as a batch of products and the sum of that.
//
// Before:  %r = kernel.dot(%x, %y, extras) { epilogue }   of [m, k] and [k, n]
// After:   %p = kernel.dot(%x as [m, parts, q], %y as [parts, q, n]) { }, a batch of `parts`
//          %r = kernel.reduce(%p, extras) { hlo.reduce over [parts]; epilogue }
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/NvptxBackend.h"
#include "passes/codegen/nvptx/Product.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITPRODUCTS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

/// Finds how many parts of the depth there are to be, or returns why there are none.
std::string whyNotSplit(kernel::DotOp op, int64_t &parts) {
  if (std::string why = whyNoProduct(op); !why.empty())
    return why;
  RankedTensorType lhs = hlo::tensorType(op.getLhs()), rhs = hlo::tensorType(op.getRhs()),
                   out = op.getAccType();
  if (!lhs.hasStaticShape() || !rhs.hasStaticShape())
    return "sizes known at run time only";
  const int64_t batchRank = op.getBatchRank();
  if (lhs.getRank() != batchRank + 2 || rhs.getRank() != batchRank + 2)
    return "an operand that the batch shares";
  const Roles roles = *rolesOf(op);
  constexpr int64_t enough = 96, wanted = 192, shortest = 256; // tiles of 32x32; steps of a part
  int64_t tiles = llvm::divideCeil(roles.rows(), 32) * llvm::divideCeil(roles.columns(), 32);
  for (int64_t d : roles.batch)
    tiles *= out.getDimSize(d);
  if (tiles == 0 || tiles >= enough)
    return "enough tiles, or none";
  // of divisors one that leaves parts whole accesses and stages
  const int64_t most = std::min(wanted / tiles, roles.depth() / shortest);
  for (int64_t whole : {16, 4, 1})
    for (parts = most; parts > std::max<int64_t>(1, most / 4); --parts)
      if (roles.depth() % (parts * whole) == 0)
        return {};
  return "a depth of too few steps, or one that does not divide";
}

/// `x` with dimension `dim` as [parts, rest].
Value divide(OpBuilder &b, Location loc, Value x, int64_t dim, int64_t parts) {
  RankedTensorType type = hlo::tensorType(x);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= parts;
  shape.insert(shape.begin() + dim, parts);
  return hlo::ReshapeOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), x);
}

/// The dimensions of an operand whose depth `dim` was divided: the parts are the last of the batch.
SmallVector<int64_t> withParts(ArrayRef<int64_t> dims, int64_t dim) {
  SmallVector<int64_t> moved;
  for (int64_t d : dims)
    moved.push_back(d + (d >= dim)); // the depth itself is what is left of it
  moved.insert(moved.end() - 2, dim);
  return moved;
}

/// The sum over the first dimension.
Value sumOf(OpBuilder &b, Location loc, Value x, RankedTensorType result) {
  Type element = result.getElementType();
  auto scalar = RankedTensorType::get({}, element);
  Attribute zero = b.getZeroAttr(element);
  if (auto type = dyn_cast<FloatType>(element)) // -0 is what changes no sum
    zero = FloatAttr::get(type, APFloat::getZero(type.getFloatSemantics(), true));
  Value init = hlo::makeConstant(b, loc, DenseElementsAttr::get(scalar, ArrayRef<Attribute>(zero)));
  auto sum =
      hlo::ReduceOp::create(b, loc, TypeRange(result), ValueRange(x), ValueRange(init), ArrayRef<int64_t>{0});
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&sum.getBody(), {}, {scalar, scalar}, {loc, loc});
  Value next = hlo::AddOp::create(b, loc, scalar, body->getArgument(0), body->getArgument(1));
  hlo::ReturnOp::create(b, loc, next);
  return sum->getResult(0);
}

void split(kernel::DotOp op, int64_t parts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  ArrayRef<int64_t> lhsDims = op.getLhsDims(), rhsDims = op.getRhsDims();
  const int64_t lhsDepth = lhsDims.back(), rhsDepth = rhsDims[rhsDims.size() - 2];
  SmallVector<int64_t> resultDims, shape{parts};
  for (int64_t d : op.getResultDims())
    resultDims.push_back(d + 1);
  resultDims.insert(resultDims.end() - 2, 0);
  RankedTensorType sums = op.getAccType();
  llvm::append_range(shape, sums.getShape());
  auto product = kernel::DotOp::create(
      b, loc, TypeRange(RankedTensorType::get(shape, sums.getElementType())),
      divide(b, loc, op.getLhs(), lhsDepth, parts), divide(b, loc, op.getRhs(), rhsDepth, parts),
      ValueRange(), withParts(lhsDims, lhsDepth), withParts(rhsDims, rhsDepth), resultDims,
      sums.getElementType(), [](OpBuilder &, Location, ValueRange args) { return SmallVector<Value>(args); });
  if (Attribute cost = op->getAttr("kernel.cost"))
    product->setAttr("kernel.cost", cost);
  SmallVector<Value> operands{product->getResult(0)};
  llvm::append_range(operands, op.getExtras());
  Block &body = op.getBody().front();
  auto whole = kernel::ReduceOp::create(
      b, loc, op->getResultTypes(), operands, [&](OpBuilder &b, Location, ValueRange args) {
        IRMapping map;
        map.map(op.getAcc(), sumOf(b, loc, args[0], sums));
        for (auto [from, to] : llvm::zip_equal(op.getExtraArgs(), args.drop_front()))
          map.map(from, to);
        for (Operation &inner : body.without_terminator())
          b.clone(inner, map);
        SmallVector<Value> results;
        for (Value v : body.getTerminator()->getOperands())
          results.push_back(map.lookup(v));
        return results;
      });
  op->replaceAllUsesWith(whole->getResults());
  op->erase();
}

struct SplitProducts : impl::SplitProductsBase<SplitProducts> {
  void runOnOperation() override {
    SmallVector<kernel::DotOp> ops;
    getOperation().walk([&](kernel::DotOp op) {
      if (!op->getParentOfType<kernel::ChainOp>() && !op->getParentOfType<kernel::AttentionOp>())
        ops.push_back(op);
    });
    for (kernel::DotOp op : ops) {
      int64_t parts = 0;
      if (!whyNotSplit(op, parts).empty()) {
        ++numRefused;
        continue;
      }
      split(op, parts);
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
