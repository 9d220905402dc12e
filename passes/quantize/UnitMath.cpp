// Questions about one unit: its work, the range that its kind fixes, its function as numbers.
#include "passes/quantize/Units.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Shape.h"
#include "passes/simplify/Match.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe::quantize {

int64_t multiplyAdds(const Unit &unit) {
  if (!unit.isProduct())
    return 0;
  auto elements = [](Value v) {
    int64_t n = 1;
    for (int64_t size : cast<RankedTensorType>(v.getType()).getShape())
      if (!ShapedType::isDynamic(size) && size > 0 && n < (int64_t(1) << 40))
        n *= size;
    return n;
  };
  const int64_t results = elements(unit.root->getResult(0));
  if (unit.kind == UnitKind::Conv) {
    auto filter = cast<RankedTensorType>(unit.weights.getType());
    return results * (elements(unit.weights) / std::max<int64_t>(filter.getShape().back(), 1));
  }
  auto dot = cast<hlo::DotGeneralOp>(unit.root);
  const int64_t inner = cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dot.getDotDimensionNumbers().getLhsContractingDimensions()[0]);
  return results * std::max<int64_t>(inner, 1);
}

std::optional<std::pair<double, double>> fixedRange(const Unit &unit) {
  if (unit.kind == UnitKind::Softmax || (unit.kind == UnitKind::Table && unit.ops.size() == 1 && isa<hlo::LogisticOp>(unit.root)))
    return std::make_pair(0.0, 255.0 / 256);
  if (unit.kind == UnitKind::Table && unit.ops.size() == 1 && isa<hlo::TanhOp>(unit.root))
    return std::make_pair(-1.0, 127.0 / 128);
  return std::nullopt;
}

FailureOr<std::vector<float>> evaluateTable(const Unit &unit, ArrayRef<float> points) {
  MLIRContext *context = unit.root->getContext();
  const int64_t n = points.size();
  OwningOpRef<ModuleOp> module = ModuleOp::create(unit.root->getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto typeOf = [&](Value v) { return RankedTensorType::get({n}, hlo::elementType(v)); };
  Type type = RankedTensorType::get({n}, Float32Type::get(context));
  auto function = func::FuncOp::create(b, unit.root->getLoc(), "f", b.getFunctionType({type}, {type}));
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping map;
  map.map(unit.inputs[0], function.getArgument(0));
  for (Operation *op : unit.ops) {
    for (Value v : op->getOperands())
      if (Attribute element = splatElement(v); element && !map.contains(v))
        map.map(v, makeSplatLike(b, op->getLoc(), typeOf(v), element));
    Operation *copy = op->clone(map);
    copy->getResult(0).setType(typeOf(op->getResult(0)));
    b.insert(copy);
    map.map(op->getResult(0), copy->getResult(0));
  }
  func::ReturnOp::create(b, unit.root->getLoc(), map.lookup(unit.out));
  Tensor x = Tensor::allocate(DType::Float32, {n});
  llvm::copy(points, x.data<float>());
  auto result = hlo::evaluateFunction(function, {x});
  if (failed(result))
    return failure();
  const float *y = (*result)[0].data<float>();
  return std::vector<float>(y, y + n);
}

} // namespace lathe::quantize
