// Reductions over whole dimensions, the largest element's place, running sums.
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/MaxNumber.h"
#include "dialects/hlo/Shape.h"
#include "passes/simplify/Match.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflwrite {
namespace {

/// The operator of a reduction's body, the operator that joins two results, and the number that changes nothing.
struct Kind {
  StringRef reduce, join;
  double neutral;
};

std::optional<Kind> kindOf(Region &body, Type element) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (hlo::isMaxNumber(body))
    return Kind{"REDUCE_MAX", "MAXIMUM", -infinity};
  Operation *op = simpleCombiner(body);
  if (!op)
    return std::nullopt;
  const bool boolean = element.isInteger(1);
  if (boolean && isa<hlo::AndOp, hlo::MinOp, hlo::MulOp>(op))
    return Kind{"REDUCE_ALL", "LOGICAL_AND", 1};
  if (boolean && isa<hlo::OrOp, hlo::MaxOp, hlo::AddOp>(op))
    return Kind{"REDUCE_ANY", "LOGICAL_OR", 0};
  if (isa<hlo::AddOp>(op))
    return Kind{"SUM", "ADD", 0};
  if (isa<hlo::MulOp>(op))
    return Kind{"REDUCE_PROD", "MUL", 1};
  if (isa<hlo::MaxOp>(op))
    return Kind{"REDUCE_MAX", "MAXIMUM", -infinity};
  if (isa<hlo::MinOp>(op))
    return Kind{"REDUCE_MIN", "MINIMUM", infinity};
  return std::nullopt;
}

/// Whether starting from a number is starting from nothing: the lowest of a type is as good as minus infinity.
bool isNeutral(Value init, const Kind &kind, Type element) {
  auto number = splatNumber(init);
  if (!number)
    return false;
  if (!std::isinf(kind.neutral))
    return *number == kind.neutral;
  if (auto integer = dyn_cast<IntegerType>(element)) {
    const bool isUnsigned = integer.isUnsigned();
    const int width = integer.getWidth();
    double limit = kind.neutral < 0 ? (isUnsigned ? 0 : -std::ldexp(1.0, width - 1)) : std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
    return *number == limit;
  }
  return *number == kind.neutral || *number == (kind.neutral < 0 ? -3.4028234663852886e38 : 3.4028234663852886e38);
}

/// a before b when it is larger (smaller), or equal and earlier, as legalization writes it.
bool isFirstExtreme(Region &region, hlo::ComparisonDirection better) {
  if (!llvm::hasSingleElement(region) || region.front().getNumArguments() != 4)
    return false;
  Block &block = region.front();
  Value a = block.getArgument(0), ai = block.getArgument(1), b = block.getArgument(2), bi = block.getArgument(3);
  Operation *end = block.getTerminator();
  if (end->getNumOperands() != 2)
    return false;
  auto value = definedBy<hlo::SelectOp>(end->getOperand(0)), index = definedBy<hlo::SelectOp>(end->getOperand(1));
  if (!value || !index || value.getPred() != index.getPred() || value.getOnTrue() != a || value.getOnFalse() != b ||
      index.getOnTrue() != ai || index.getOnFalse() != bi)
    return false;
  auto compares = [&](Value v, Value x, Value y, hlo::ComparisonDirection direction) {
    auto compare = definedBy<hlo::CompareOp>(v);
    return compare && compare.getLhs() == x && compare.getRhs() == y && compare.getComparisonDirection() == direction;
  };
  auto outer = definedBy<hlo::OrOp>(value.getPred());
  if (!outer || !compares(outer.getLhs(), a, b, better))
    return false;
  auto tie = definedBy<hlo::AndOp>(outer.getRhs());
  if (!tie || !compares(tie.getRhs(), ai, bi, hlo::ComparisonDirection::LE))
    return false;
  if (compares(tie.getLhs(), a, b, hlo::ComparisonDirection::EQ))
    return true;
  auto no = definedBy<hlo::NotOp>(tie.getLhs());
  auto differ = no ? definedBy<hlo::OrOp>(no.getOperand()) : hlo::OrOp();
  return differ && compares(differ.getLhs(), a, b, better) && compares(differ.getRhs(), b, a, better);
}

/// Whether each element is its own index along `dim`: an iota, one that is broadcast, or what folding has made of it.
bool countsAlong(Value v, int64_t dim) {
  if (auto iota = definedBy<hlo::IotaOp>(v))
    return static_cast<int64_t>(iota.getIotaDimension()) == dim;
  if (auto broadcast = definedBy<hlo::BroadcastInDimOp>(v)) {
    auto *from = llvm::find(broadcast.getBroadcastDimensions(), dim);
    if (from == broadcast.getBroadcastDimensions().end())
      return false;
    const int64_t inner = from - broadcast.getBroadcastDimensions().begin();
    return hlo::equalDims(hlo::getDim(hlo::tensorType(broadcast.getOperand()), inner), hlo::getDim(hlo::tensorType(v), dim)) &&
           countsAlong(broadcast.getOperand(), inner);
  }
  auto tensor = hlo::readConstant(v);
  if (failed(tensor))
    return false;
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < tensor->rank(); ++d)
    inner *= tensor->dim(d);
  auto counts = [&](auto *values) {
    for (int64_t i = 0; i < tensor->numElements(); ++i)
      if (static_cast<int64_t>(values[i]) != i / inner % tensor->dim(dim))
        return false;
    return true;
  };
  if (tensor->dtype() == DType::Int32)
    return counts(tensor->data<int32_t>());
  return tensor->dtype() == DType::Int64 && counts(tensor->data<int64_t>());
}

LogicalResult place(hlo::ReduceOp op, Raiser &r) {
  using D = hlo::ComparisonDirection;
  bool max = isFirstExtreme(op.getBody(), D::GT), min = !max && isFirstExtreme(op.getBody(), D::LT);
  if ((!max && !min) || op.getDimensions().size() != 1)
    return r.refuse("a reduction of several tensors");
  const int64_t dim = op.getDimensions()[0];
  if (!countsAlong(op.getInputs()[1], dim))
    return r.refuse("a reduction of several tensors");
  Value x = op.getInputs()[0];
  if (auto integer = dyn_cast<IntegerType>(hlo::elementType(x)); integer && integer.getWidth() < 32 && integer.getWidth() > 1)
    x = r.cast(x, r.b.getI32Type());
  auto type = cast<RankedTensorType>(op.getResult(1).getType());
  Type index = type.getElementType();
  Value axis = r.reshape(r.numbers({dim}), ArrayRef<AffineExpr>());
  if (!index.isSignlessInteger(32) && !index.isSignlessInteger(64))
    return r.refuse("indices are of 32 or 64 bits");
  SmallVector<Value> results(2);
  if (!op.getResult(0).use_empty())
    results[0] = r.make(max ? "REDUCE_MAX" : "REDUCE_MIN", {x, r.numbers({dim})}, cast<RankedTensorType>(op.getResult(0).getType()));
  else
    results[0] = op.getInitValues()[0]; // nobody reads it
  results[1] = r.make(max ? "ARG_MAX" : "ARG_MIN", {x, axis}, type);
  if (!results[0] || !results[1])
    return failure();
  if (!op.getResult(0).use_empty())
    op.getResult(0).replaceAllUsesWith(results[0]);
  op.getResult(1).replaceAllUsesWith(results[1]);
  return success();
}

LogicalResult reduce(Operation *operation, Raiser &r) {
  auto op = cast<hlo::ReduceOp>(operation);
  if (op.getInputs().size() == 2)
    return place(op, r);
  if (op.getInputs().size() != 1)
    return r.refuse("a reduction of several tensors");
  Value x = op.getInputs()[0], init = op.getInitValues()[0];
  RankedTensorType type = hlo::tensorType(op.getResult(0));
  Type element = type.getElementType(), work = element;
  auto kind = kindOf(op.getBody(), element);
  if (!kind)
    return r.refuse("its body is no sum, product, minimum or maximum");
  if (auto integer = dyn_cast<IntegerType>(element); integer && integer.getWidth() < 32 && integer.getWidth() > 1)
    work = r.b.getI32Type();
  Value y = r.cast(x, work);
  if (!op.getDimensions().empty())
    y = y ? r.make(kind->reduce, {y, r.numbers(op.getDimensions())}, hlo::withElementType(type, work)) : y;
  if (y && !isNeutral(init, *kind, element))
    y = r.make(kind->join, {y, r.cast(init, work)}, hlo::withElementType(type, work));
  return r.replace(op, r.cast(y, element));
}

/// A sum divided by the number of its terms.
LogicalResult mean(Operation *op, Raiser &r) {
  if (!hlo::elementType(op->getResult(0)).isF32())
    return failure();
  for (unsigned i : {0u, 1u}) {
    auto number = splatNumber(op->getOperand(1 - i));
    auto reduce = definedBy<hlo::ReduceOp>(op->getOperand(i));
    if (!number || !reduce || reduce.getInputs().size() != 1 || !reduce->hasOneUse() || (i == 1 && isa<hlo::DivOp>(op)))
      continue;
    Operation *combiner = simpleCombiner(reduce.getBody());
    if (!combiner || !isa<hlo::AddOp>(combiner) || !isSplat(reduce.getInitValues()[0], 0))
      continue;
    Value x = reduce.getInputs()[0];
    int64_t count = 1;
    for (int64_t d : reduce.getDimensions())
      count *= hlo::tensorType(x).isDynamicDim(d) ? 0 : hlo::tensorType(x).getDimSize(d);
    if (count <= 0 || *number != (isa<hlo::DivOp>(op) ? double(count) : double(float(1.0 / double(count)))))
      continue;
    return r.replace(op, r.make("MEAN", {x, r.numbers(reduce.getDimensions())}, hlo::tensorType(op->getResult(0))));
  }
  return failure();
}

} // namespace

void addReduceHandlers(HandlerTable &t) {
  t["reduce"].push_back(reduce);
  t["multiply"].push_back(mean);
  t["divide"].push_back(mean);
}

} // namespace lathe::tflwrite
