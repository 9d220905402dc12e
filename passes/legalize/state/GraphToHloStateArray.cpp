// Gathering from variables and scattering into them.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/state/State.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

LogicalResult lowerResourceGather(NodeContext &c, bool nd) {
  Value params = readInput(c, 0), indices = c.input(1);
  if (!params || !indices)
    return failure();
  if (nd)
    return c.setResult(0, gatherNd(c, params, indices));
  int64_t batch = c.attrInt("batch_dims");
  if (c.rank(params) <= batch)
    return c.error("the variable has too few dimensions");
  return c.setResult(0, gather(c, params, indices, batch, batch));
}

LogicalResult lowerScatter(NodeContext &c, Combine combine, bool nd) {
  Value x = readInput(c, 0), indices = c.input(1), updates = c.input(2);
  if (!x || !indices || !updates)
    return failure();
  Value next = nd ? scatterNd(c, x, indices, updates, combine) : scatterRows(c, x, indices, updates, combine);
  if (!next || failed(writeInput(c, 0, next)))
    return failure();
  return returnReference(c, 0);
}

LogicalResult lowerStridedSliceAssign(NodeContext &c) {
  Value x = readInput(c, 0), update = c.input(4);
  if (!x || !update)
    return failure();
  Value next = stridedSliceUpdate(c, x, 1, update);
  if (!next || failed(writeInput(c, 0, next)))
    return failure();
  return returnReference(c, 0);
}

Value combineDiv(OpBuilder &b, Location loc, Value x, Value y) { return hlo::DivOp::create(b, loc, x, y); }

} // namespace

void registerStateArray(HandlerTable &t) {
  t.addAnyKind("ResourceGather", 2, [](NodeContext &c) { return lowerResourceGather(c, false); });
  t.addAnyKind("ResourceGatherNd", 2, [](NodeContext &c) { return lowerResourceGather(c, true); });
  struct {
    const char *name;
    Value (*combine)(OpBuilder &, Location, Value, Value);
  } kinds[] = {{"Update", nullptr},     {"Add", combineAdd}, {"Sub", combineSub}, {"Mul", combineMul},
               {"Div", combineDiv},     {"Min", combineMin}, {"Max", combineMax}};
  for (auto &k : kinds) {
    auto combine = k.combine;
    auto rows = [combine](NodeContext &c) { return lowerScatter(c, combine ? Combine(combine) : Combine(), false); };
    auto nd = [combine](NodeContext &c) { return lowerScatter(c, combine ? Combine(combine) : Combine(), true); };
    for (const char *prefix : {"ResourceScatter", "Scatter"}) {
      t.addAnyKind((Twine(prefix) + k.name).str(), 3, rows);
      t.addAnyKind((Twine(prefix) + "Nd" + k.name).str(), 3, nd);
    }
  }
  t.addAnyKind("ResourceStridedSliceAssign", 5, lowerStridedSliceAssign);
  t.addAnyKind("StridedSliceAssign", 5, lowerStridedSliceAssign);
}

} // namespace lathe::legalize
