//===- Match.cpp - questions that simplifications ask -----------------------===//

#include "passes/simplify/Match.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace lathe;

ElementsAttr lathe::constantValue(Value v) {
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  return constant ? constant.getValue() : ElementsAttr();
}

Attribute lathe::splatElement(Value v) {
  // bounded: every step goes to a defining op further up
  while (Operation *op = v.getDefiningOp()) {
    if (auto constant = dyn_cast<hlo::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!dense || dense.empty() || !dense.isSplat())
        return {};
      return dense.getSplatValue<Attribute>();
    }
    if (!isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::TransposeOp>(op))
      return {};
    v = op->getOperand(0);
  }
  return {};
}

std::optional<double> lathe::splatNumber(Value v) {
  Attribute element = splatElement(v);
  if (auto f = dyn_cast_or_null<FloatAttr>(element))
    return f.getValueAsDouble();
  if (auto i = dyn_cast_or_null<IntegerAttr>(element)) {
    if (i.getType().isInteger(1))
      return i.getValue().isZero() ? 0 : 1;
    return i.getType().isUnsignedInteger() ? i.getValue().roundToDouble(false) : i.getValue().roundToDouble(true);
  }
  return std::nullopt;
}

bool lathe::isSplat(Value v, double number) {
  std::optional<double> found = splatNumber(v);
  return found && *found == number;
}

Value lathe::makeSplatLike(OpBuilder &b, Location loc, RankedTensorType type, Attribute element) {
  if (type.hasStaticShape())
    return hlo::ConstantOp::create(b, loc, type, hlo::splatAttr(type, element));
  // a constant has no run-time sizes: a number is broadcast
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value number = hlo::ConstantOp::create(b, loc, scalar, hlo::splatAttr(scalar, element));
  return hlo::BroadcastInDimOp::create(b, loc, type, number, b.getDenseI64ArrayAttr({}));
}

RankedTensorType lathe::shapeLike(RankedTensorType shape, Type element) {
  return RankedTensorType::get(shape.getShape(), element, shape.getEncoding());
}

Operation *lathe::rebuild(OpBuilder &b, Operation *op, ValueRange operands, RankedTensorType shape) {
  IRMapping map;
  map.map(op->getOperands(), operands);
  Operation *made = b.clone(*op, map);
  // two equal operands would share one entry of the map
  made->setOperands(operands);
  for (Value result : made->getResults())
    result.setType(shapeLike(shape, getElementTypeOrSelf(result.getType())));
  return made;
}

bool lathe::sameSizes(Type a, Type b) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  return x && y && x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

SmallVector<int64_t> lathe::largeDims(RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!isOne(type, i))
      dims.push_back(i);
  return dims;
}

bool lathe::sameLargeDims(RankedTensorType a, RankedTensorType b) {
  SmallVector<int64_t> x = largeDims(a), y = largeDims(b);
  if (x.size() != y.size())
    return false;
  for (auto [i, j] : llvm::zip(x, y))
    if (!hlo::equalDims(hlo::getDim(a, i), hlo::getDim(b, j)))
      return false;
  return true;
}

hlo::ConvDimensionNumbersAttr lathe::plainConvDimensions(MLIRContext *context, int64_t rank) {
  SmallVector<int64_t> image = llvm::to_vector(llvm::seq<int64_t>(1, rank - 1));
  SmallVector<int64_t> filter = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  return hlo::ConvDimensionNumbersAttr::get(context, 0, rank - 1, image, rank - 2, rank - 1, filter, 0, rank - 1, image);
}

Operation *lathe::simpleCombiner(Region &body) {
  if (!llvm::hasSingleElement(body))
    return nullptr;
  Block &block = body.front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2)
    return nullptr;
  Operation &op = block.front();
  if (op.getNumOperands() != 2 || op.getNumResults() != 1 || block.back().getNumOperands() != 1 ||
      block.back().getOperand(0) != op.getResult(0))
    return nullptr;
  Value a = block.getArgument(0), b = block.getArgument(1);
  bool straight = op.getOperand(0) == a && op.getOperand(1) == b;
  bool crossed = op.getOperand(0) == b && op.getOperand(1) == a && op.hasTrait<OpTrait::IsCommutative>();
  return straight || crossed ? &op : nullptr;
}

std::optional<ChannelConstant> lathe::matchChannelConstant(Value v) {
  if (splatElement(v))
    return ChannelConstant{v, -1};
  auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>();
  if (!broadcast || !constantValue(broadcast.getOperand()))
    return std::nullopt;
  auto from = cast<RankedTensorType>(broadcast.getOperand().getType());
  SmallVector<int64_t> large = largeDims(from);
  if (large.size() != 1 || !from.hasStaticShape())
    return std::nullopt;
  int64_t dim = broadcast.getBroadcastDimensions()[large.front()];
  if (cast<RankedTensorType>(broadcast.getType()).getDimSize(dim) != from.getDimSize(large.front()))
    return std::nullopt;
  return ChannelConstant{broadcast.getOperand(), dim};
}

int64_t lathe::bytesOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = type.getElementType();
  int64_t bytes = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    element = complex.getElementType();
    bytes = 2;
  }
  bytes *= element.isIntOrFloat() ? std::max(1u, element.getIntOrFloatBitWidth() / 8) : 8;
  constexpr int64_t most = int64_t(1) << 40;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      bytes = size > 0 && bytes > most / size ? most : bytes * size;
  return bytes;
}

std::optional<int64_t> lathe::tripCount(hlo::WhileOp loop) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  Value decision = cond.getTerminator()->getOperand(0);
  if (std::optional<double> number = splatNumber(decision); number && *number == 0)
    return 0;
  auto compare = decision.getDefiningOp<hlo::CompareOp>();
  if (!compare)
    return std::nullopt;
  using D = hlo::ComparisonDirection;
  D direction = compare.getComparisonDirection();
  auto counter = dyn_cast<BlockArgument>(compare.getLhs());
  std::optional<double> bound = splatNumber(compare.getRhs());
  if (!counter || counter.getOwner() != &cond || !bound || (direction != D::LT && direction != D::LE) ||
      !isa<IntegerType>(getElementTypeOrSelf(counter.getType())))
    return std::nullopt;
  unsigned i = counter.getArgNumber();
  std::optional<double> start = splatNumber(loop->getOperand(i));
  if (!start || *start < -1e9 || *start > 1e9 || *bound < -1e9 || *bound > 1e9)
    return std::nullopt;
  int64_t first = static_cast<int64_t>(*start), last = static_cast<int64_t>(*bound);
  if (direction == D::LE)
    ++last;
  if (first >= last)
    return 0;
  auto next = body.getTerminator()->getOperand(i).getDefiningOp<hlo::AddOp>();
  if (!next || next.getLhs() != body.getArgument(i))
    return std::nullopt;
  std::optional<double> step = splatNumber(next.getRhs());
  if (!step || *step < 1 || *step > 1e9)
    return std::nullopt;
  int64_t stride = static_cast<int64_t>(*step);
  // the last sum must be one that the counter can hold, else it starts again from below
  auto type = cast<IntegerType>(getElementTypeOrSelf(counter.getType()));
  const unsigned bits = std::min(63u, type.getWidth() - (type.isUnsigned() ? 0 : 1));
  if (last - 1 + stride > int64_t((uint64_t(1) << bits) - 1))
    return std::nullopt;
  return (last - first + stride - 1) / stride;
}
