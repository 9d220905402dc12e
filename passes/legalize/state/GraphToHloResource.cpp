// Reads and writes of parts of a variable: ResourceGather, Scatter... and their reference forms.
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/state/State.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

using CombineFn = Value (*)(OpBuilder &, Location, Value, Value);

Value combineDiv(OpBuilder &b, Location loc, Value x, Value y) { return hlo::DivOp::create(b, loc, x, y); }

LogicalResult lowerGather(NodeContext &c, bool nd) {
  Value params = readInput(c, 0), indices = c.input(1);
  if (!params || !indices)
    return failure();
  int64_t batch = c.attrInt("batch_dims");
  if (!nd && batch < 0)
    batch += Emitter::rank(indices);
  return c.setResult(0, nd ? gatherNd(c, params, indices) : gather(c, params, indices, batch, batch));
}

LogicalResult lowerScatter(NodeContext &c, bool nd, CombineFn combine) {
  Value old = readInput(c, 0), indices = c.input(1), updates = c.input(2);
  if (!old || !indices || !updates)
    return failure();
  if (!nd && Emitter::rank(updates) == 0) {
    Dims dims = c.dims(indices), rest = c.dims(old);
    if (rest.empty())
      return c.error("a scalar variable has no rows");
    dims.append(rest.begin() + 1, rest.end());
    updates = c.broadcastTo(updates, dims);
  }
  Combine fn = combine ? Combine(combine) : Combine(nullptr);
  Value now = nd ? scatterNd(c, old, indices, updates, fn) : scatterRows(c, old, indices, updates, fn);
  if (failed(writeInput(c, 0, now)))
    return failure();
  return returnReference(c, 0);
}

LogicalResult lowerSliceAssign(NodeContext &c) {
  Value old = readInput(c, 0), update = c.input(4);
  if (!old || !update || failed(writeInput(c, 0, stridedSliceUpdate(c, old, 1, update))))
    return failure();
  return returnReference(c, 0);
}

} // namespace

void registerResource(HandlerTable &t) {
  t.addAnyKind("ResourceGather", 2, [](NodeContext &c) { return lowerGather(c, false); });
  t.addAnyKind("ResourceGatherNd", 2, [](NodeContext &c) { return lowerGather(c, true); });
  const std::pair<const char *, CombineFn> kinds[] = {{"Update", nullptr},     {"Add", combineAdd}, {"Sub", combineSub},
                                                      {"Mul", combineMul},     {"Div", combineDiv}, {"Min", combineMin},
                                                      {"Max", combineMax}};
  for (auto [kind, combine] : kinds)
    for (std::string prefix : {"Scatter", "ResourceScatter"}) {
      CombineFn fn = combine;
      t.addAnyKind(prefix + kind, 3, [fn](NodeContext &c) { return lowerScatter(c, false, fn); });
      t.addAnyKind(prefix + "Nd" + kind, 3, [fn](NodeContext &c) { return lowerScatter(c, true, fn); });
    }
  t.addAnyKind("ResourceStridedSliceAssign", 5, lowerSliceAssign);
  t.addAnyKind("StridedSliceAssign", 5, lowerSliceAssign);
}

} // namespace lathe::legalize
