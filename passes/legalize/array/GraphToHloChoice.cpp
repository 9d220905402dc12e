// Choosing among points and numbers of seeded generators: nearest neighbours, chains of candidates, states of generators.
#include "base/Philox.h"
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/random/Philox.h"
#include "passes/legalize/state/State.h"

#include <cstring>

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Squared distances [points, centers].
Value squaredDistances(NodeContext &c, Value points, Value centers) {
  Dims table{c.dim(points, 0), c.dim(centers, 0), c.dim(points, 1)};
  Value d = c.sub(c.broadcastInDim(points, table, {0, 2}), c.broadcastInDim(centers, table, {1, 2}));
  return d ? c.reduceSum(c.mul(d, d), {2}) : d;
}

LogicalResult lowerNearest(NodeContext &c) {
  Value points = c.input(0), centers = c.input(1);
  auto k = c.constantInt(2);
  if (failed(k) || failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  if (!c.ctx.unify(c.dim(points, 1), c.dim(centers, 1), c.name()))
    return c.error("points and centers differ in their number of coordinates");
  auto count = constantOf(c.dim(centers, 0));
  if (!count || *count < 1 || *k < 1)
    return c.error("the number of centers must be known, and k positive");
  Value distances = squaredDistances(c, points, centers);
  auto top = hlo::TopKOp::create(c.b, c.loc, c.neg(distances), std::min(*k, *count));
  if (failed(c.setResult(0, c.convert(top->getResult(1), c.b.getI64Type()))))
    return failure();
  return c.setResult(1, c.neg(top->getResult(0)));
}

/// The floats in [0, 1) that TensorFlow's generator of one seed gives one after the other.
Tensor uniformFloats(int64_t seed, int64_t n) {
  Tensor t = Tensor::allocate(DType::Float32, {n});
  Philox random = Philox::fromSeeds(uint64_t(seed), 0);
  Philox::Block block{};
  for (int64_t i = 0; i < n; ++i) {
    if (i % 4 == 0)
      block = random.next();
    uint32_t bits = 0x3f800000u | (block[i % 4] & 0x7fffffu);
    float value;
    std::memcpy(&value, &bits, 4);
    t.data<float>()[i] = value - 1;
  }
  return t;
}

/// A chain of candidates, each taken with the probability of its distance over that of the one before.
LogicalResult lowerChain(NodeContext &c) {
  Value distances = c.input(0);
  auto seed = c.constantInt(1);
  if (failed(seed) || failed(c.expectRank(0, 1)))
    return failure();
  auto n = constantOf(c.dim(distances, 0));
  if (!n || *n < 1 || *n > (int64_t(1) << 24))
    return c.error("the number of points must be known and positive");
  Type i64 = c.b.getI64Type();
  Value floats = c.constant(uniformFloats(*seed, *n));
  auto at = [&](Value v, Value i) { return c.reshape(c.takeRow(v, i), ArrayRef<AffineExpr>()); };
  Value zero = c.scalarInt(0, i64), one = c.scalarInt(1, i64);
  SmallVector<Value> done = whileLoop(
      c, {one, zero, at(distances, zero)}, [&](ValueRange v) { return c.compare(Compare::LT, v[0], c.scalarInt(*n, i64)); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value candidate = at(distances, v[0]), draw = at(floats, c.sub(v[0], one));
        Value take = c.compare(Compare::GT, candidate, c.mul(draw, v[2]));
        return {c.add(v[0], one), c.select(take, v[0], v[1]), c.select(take, candidate, v[2])};
      });
  return c.setResult(0, done[1]);
}

/// The state as it was; 256 numbers are passed over for each of `delta`.
LogicalResult lowerReadAndSkip(NodeContext &c) {
  Value state = readInput(c, 0), delta = c.input(2);
  auto algorithm = c.constantInt(1);
  if (!state || !delta || failed(algorithm))
    return failure();
  if (*algorithm != 1 && *algorithm != 3)
    return c.error("algorithm " + Twine(*algorithm) + " is not supported: only Philox is");
  if (c.rank(state) != 1 || constantOf(c.dim(state, 0)).value_or(0) < 3)
    return c.error("the state must be a vector of three numbers at least");
  Type u64 = IntegerType::get(c.b.getContext(), 64, IntegerType::Unsigned), i64 = c.b.getI64Type();
  Value words = c.make<hlo::BitcastConvertOp>(state, u64);
  auto word = [&](int64_t k) { return c.sliceDim(words, 0, c.size(k), c.size(k + 1)); };
  Value step = c.mul(c.reshape(c.convert(delta, u64), Dims{c.size(1)}), c.splatInt(256, Dims{c.size(1)}, u64));
  Value low = c.add(word(0), step), carry = c.convert(c.compare(Compare::LT, low, step), u64);
  Value rest = c.sliceDim(words, 0, c.size(2), c.dim(words, 0));
  Value next = c.make<hlo::BitcastConvertOp>(c.concat({low, c.add(word(1), carry), rest}, 0), i64);
  if (failed(writeInput(c, 0, next)))
    return failure();
  return c.setResult(0, c.sliceDim(state, 0, c.size(0), c.size(3)));
}

/// Rows in the order of a permutation made anew by each run: position i changes places with one of those from i on.
LogicalResult lowerShuffle(NodeContext &c) {
  Value x = c.input(0);
  if (c.rank(x) == 0 || constantOf(c.dim(x, 0)).value_or(2) <= 1)
    return c.setResult(0, x);
  AffineExpr n = c.dim(x, 0);
  PhiloxEmitter g = PhiloxEmitter::fromAttributes(c, hlo::simplify((n + 2).floorDiv(4)));
  if (!g.keyWords()[0])
    return failure();
  Type i64 = c.b.getI64Type(), u32 = c.b.getIntegerType(32, false);
  Value places = c.iota({n}, 0, i64), rows = c.sizeValue(n, i64), zero = c.scalarInt(0, i64), one = c.scalarInt(1, i64);
  Value room = c.convert(c.sub(c.broadcastInDim(rows, {n}, {}), places), u32);
  Value jumps = c.add(places, c.convert(c.binary<hlo::RemOp>(g.bits(n, u32), room), i64));
  auto at = [&](Value v, Value i) { return c.reshape(c.takeRow(v, i), ArrayRef<AffineExpr>()); };
  SmallVector<Value> done = whileLoop(
      c, {zero, places}, [&](ValueRange v) { return c.compare(Compare::LT, c.add(v[0], one), rows); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value other = at(jumps, v[0]), here = at(v[1], v[0]), there = at(v[1], other);
        Value order = c.putRow(v[1], c.reshape(there, Dims{c.size(1)}), v[0]);
        return {c.add(v[0], one), c.putRow(order, c.reshape(here, Dims{c.size(1)}), other)};
      });
  return c.setResult(0, gather(c, x, done[1], 0, 0, /*checked=*/false));
}

LogicalResult lowerFakeParam(NodeContext &c) {
  auto shape = c.attrShape("shape");
  Type element = c.attrType("dtype");
  if (!element || !isa<FloatType, IntegerType, ComplexType>(element))
    return c.error("a parameter of this type has no compiled form");
  if (!shape || llvm::any_of(*shape, [](int64_t d) { return d < 0; }))
    return c.error("the shape of a parameter that no branch sets must be known (UNIMPLEMENTED)");
  return c.setResult(0, c.splat(0, c.sizes(*shape), element));
}

LogicalResult lowerGlobalNormGrad(NodeContext &c) {
  Value x = c.input(0), mean = c.input(1), variance = c.input(2), gamma = c.input(3), grad = c.input(4);
  int64_t r = c.rank(x);
  if (failed(c.expectRank(0, 4)) || !sameDims(c, {x, grad}))
    return failure();
  for (unsigned i = 1; i < 4; ++i)
    if (failed(c.expectRank(i, 1)) || !c.ctx.unify(c.dim(c.input(i), 0), c.dim(x, r - 1), c.name()))
      return c.error("expected a number for each channel");
  bool scaled = c.attrBool("scale_after_normalization");
  auto wide = [&](Value v) { return c.broadcastInDim(v, c.dims(x), {r - 1}); };
  Value spread = c.add(variance, c.like(variance, c.attrFloat("variance_epsilon")));
  Value inverse = c.unary<hlo::RsqrtOp>(spread), factor = scaled ? c.mul(inverse, gamma) : inverse;
  Value centred = c.sub(x, wide(mean));
  Value sum = c.reduceSum(grad, {0, 1, 2}), moment = c.reduceSum(c.mul(grad, centred), {0, 1, 2});
  Value results[5] = {c.mul(grad, wide(factor)), c.neg(c.mul(sum, factor)),
                      c.mul(c.mul(moment, c.like(moment, -0.5)), c.div(factor, spread)), sum,
                      scaled ? c.mul(moment, inverse) : c.like(gamma, 0)};
  for (unsigned i = 0; i < 5; ++i)
    if (failed(c.setResult(i, results[i])))
      return failure();
  return success();
}

} // namespace

void registerChoice(HandlerTable &t) {
  t.add("NearestNeighbors", 3, lowerNearest);
  t.add("KMC2ChainInitialization", 2, lowerChain);
  t.addAnyKind("RngReadAndSkip", 3, lowerReadAndSkip);
  t.add("RandomShuffle", 1, lowerShuffle);
  t.add("FakeParam", 0, lowerFakeParam);
  t.add("BatchNormWithGlobalNormalizationGrad", 5, lowerGlobalNormGrad);
}

} // namespace lathe::legalize
