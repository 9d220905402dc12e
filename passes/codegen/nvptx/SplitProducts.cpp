// nvptx-split-products: deep products of few results as a batch of products and the sum of that.
//
// Before:  %r = kernel.dot(%x, %y, extras) { epilogue }   of [m, k] and [k, n]
// After:   %p = kernel.dot(%x as [m, parts, q], %y as [parts, q, n]) { }, a batch of `parts`
//          %r = kernel.reduce(%p, extras) { hlo.reduce over [parts]; epilogue }
//
// A convolution is divided by channels of its input, which makes it one in groups: they read the images side by side, and the filter's
// channels, which are constants, are put behind each other for them.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/NvptxBackend.h"
#include "passes/codegen/nvptx/Product.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

#include <cstring>

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITPRODUCTS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

/// Of a product of so many tiles of 32x32: the divisor of `divided`, which is all of `depth` steps or a share of it, that makes parts of whole
/// accesses and stages; or why there is none.
std::string chooseParts(int64_t tiles, int64_t depth, int64_t divided, int64_t &parts) {
  constexpr int64_t enough = 96, wanted = 192, shortest = 256; // tiles; steps of a part
  if (tiles == 0 || tiles >= enough)
    return "enough tiles, or none";
  const int64_t most = std::min(wanted / tiles, depth / shortest);
  for (int64_t whole : {16, 4, 1})
    for (parts = most; parts > std::max<int64_t>(1, most / 4); --parts)
      if (divided % (parts * whole) == 0)
        return {};
  return "a depth of too few steps, or one that does not divide";
}

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
  int64_t tiles = llvm::divideCeil(roles.rows(), 32) * llvm::divideCeil(roles.columns(), 32);
  for (int64_t d : roles.batch)
    tiles *= out.getDimSize(d);
  return chooseParts(tiles, roles.depth(), roles.depth(), parts);
}

std::string whyNotSplit(kernel::ConvOp op, int64_t &parts) {
  if (std::string why = whyNoConv(op); !why.empty())
    return why;
  if (op.getGroups() != 1)
    return "groups";
  RankedTensorType filter = hlo::tensorType(op.getFilter()), out = op.getAccType();
  if (!out.hasStaticShape() || !op.getFilter().getDefiningOp<hlo::ConstantOp>())
    return "sizes or a filter known at run time only";
  const int64_t columns = filter.getShape().back(), pixels = out.getNumElements() / columns;
  const int64_t tiles = llvm::divideCeil(pixels, 32) * llvm::divideCeil(columns, 32);
  return chooseParts(tiles, filter.getNumElements() / columns, filter.getDimSize(filter.getRank() - 2), parts);
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

/// The sum over a dimension.
Value sumOf(OpBuilder &b, Location loc, Value x, int64_t dim, RankedTensorType result) {
  Type element = result.getElementType();
  auto scalar = RankedTensorType::get({}, element);
  Attribute zero = b.getZeroAttr(element);
  if (auto type = dyn_cast<FloatType>(element)) // -0 is what changes no sum
    zero = FloatAttr::get(type, APFloat::getZero(type.getFloatSemantics(), true));
  Value init = hlo::makeConstant(b, loc, DenseElementsAttr::get(scalar, ArrayRef<Attribute>(zero)));
  auto sum =
      hlo::ReduceOp::create(b, loc, TypeRange(result), ValueRange(x), ValueRange(init), ArrayRef<int64_t>{dim});
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&sum.getBody(), {}, {scalar, scalar}, {loc, loc});
  Value next = hlo::AddOp::create(b, loc, scalar, body->getArgument(0), body->getArgument(1));
  hlo::ReturnOp::create(b, loc, next);
  return sum->getResult(0);
}

/// Sums `partial` over dimension `dim`, does the op's epilogue, and puts that in its place.
template <class Op>
void finish(Op op, Value partial, int64_t dim) {
  OpBuilder b(op);
  RankedTensorType sums = op.getAccType();
  SmallVector<Value> operands{partial};
  llvm::append_range(operands, op.getExtras());
  Block &body = op->getRegion(0).front();
  auto whole = kernel::ReduceOp::create(
      b, op.getLoc(), op->getResultTypes(), operands, [&](OpBuilder &b, Location loc, ValueRange args) {
        IRMapping map;
        map.map(body.getArgument(0), sumOf(b, loc, args[0], dim, sums));
        for (auto [from, to] : llvm::zip_equal(body.getArguments().drop_front(), args.drop_front()))
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
  finish(op, product->getResult(0), 0);
}

/// [taps..., channels, columns] as [taps..., channels of a part, parts * columns].
FailureOr<Value> divideFilter(OpBuilder &b, Location loc, Value filter, int64_t parts) {
  FailureOr<Tensor> all = hlo::readConstant(filter);
  if (failed(all))
    return failure();
  std::vector<int64_t> dims = all->dims();
  const int64_t columns = dims.back(), channels = dims[dims.size() - 2] / parts;
  const int64_t taps = columns > 0 ? all->numElements() / (columns * channels * parts) : 0;
  dims[dims.size() - 2] = channels;
  dims.back() = parts * columns;
  Tensor divided = Tensor::allocate(all->dtype(), dims);
  const size_t line = static_cast<size_t>(columns) * dtypeSize(all->dtype());
  const char *from = static_cast<const char *>(all->data());
  char *to = static_cast<char *>(divided.data());
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t c = 0; c < channels; ++c, from += line)
        std::memcpy(to + ((tap * channels + c) * parts + part) * static_cast<int64_t>(line), from, line);
  return hlo::makeConstant(b, loc, divided);
}

LogicalResult split(kernel::ConvOp op, int64_t parts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  FailureOr<Value> filter = divideFilter(b, loc, op.getFilter(), parts);
  if (failed(filter) || !*filter)
    return failure();
  RankedTensorType sums = op.getAccType();
  SmallVector<int64_t> shape(sums.getShape()), apart(shape);
  shape.back() *= parts;
  apart.insert(apart.end() - 1, parts);
  auto product = kernel::ConvOp::create(b, loc, TypeRange(RankedTensorType::get(shape, sums.getElementType())), op.getInput(), *filter,
                                        ValueRange(), op.getStrides(), op.getPadding(), op.getLhsDilation(), op.getRhsDilation(), parts,
                                        /*batchGroups=*/1, sums.getElementType(),
                                        [](OpBuilder &, Location, ValueRange args) { return SmallVector<Value>(args); });
  if (Attribute cost = op->getAttr("kernel.cost"))
    product->setAttr("kernel.cost", cost);
  Value partial = hlo::ReshapeOp::create(b, loc, RankedTensorType::get(apart, sums.getElementType()), product->getResult(0));
  Operation *weights = op.getFilter().getDefiningOp();
  finish(op, partial, sums.getRank() - 1);
  if (weights->use_empty())
    weights->erase();
  return success();
}

struct SplitProducts : impl::SplitProductsBase<SplitProducts> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<kernel::DotOp, kernel::ConvOp>(op) && !op->getParentOfType<kernel::ChainOp>() && !op->getParentOfType<kernel::AttentionOp>())
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      int64_t parts = 0;
      auto dot = dyn_cast<kernel::DotOp>(op);
      auto conv = dyn_cast<kernel::ConvOp>(op);
      // what is prepared for another backend is no form's of this one
      if (!plain::foreignForm(op).empty() || !(dot ? whyNotSplit(dot, parts) : whyNotSplit(conv, parts)).empty()) {
        ++numRefused;
        continue;
      }
      if (dot)
        split(dot, parts);
      else if (failed(split(conv, parts)))
        return signalPassFailure();
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
