// Random ops, stateless and seeded, with the numbers that TensorFlow's CPU kernels give.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"
#include "passes/legalize/random/Philox.h"

#include <cmath>

using namespace mlir;

namespace lathe::legalize {
namespace {

enum class Kind { Uniform, Normal, Truncated, Int, FullInt };
enum class Source { Attributes, Seed, KeyCounter };

LogicalResult lowerRandom(NodeContext &c, Kind kind, Source source) {
  auto shape = c.shapeInput(0);
  if (failed(shape))
    return failure();
  unsigned next = 1;
  AffineExpr n = productOf(*shape, c.b.getContext());
  // TensorFlow's kernels set aside 256 blocks an element, whatever they need
  AffineExpr aside = hlo::simplify(c.attrBool(kOnlyUsedBlocks) ? n.ceilDiv(4) : n * 256);
  PhiloxEmitter g = source == Source::Attributes ? PhiloxEmitter::fromAttributes(c, aside)
                    : source == Source::Seed     ? PhiloxEmitter::fromSeedInput(c, 1)
                                                 : PhiloxEmitter::fromKeyCounter(c, 1, 2);
  next = source == Source::Attributes ? 1 : source == Source::Seed ? 2 : 4;
  if (!g.keyWords()[0])
    return failure();
  if (source == Source::KeyCounter) {
    auto algorithm = c.constantInt(3);
    if (failed(algorithm))
      return failure();
    if (*algorithm != 1 && *algorithm != 3)
      return c.error("algorithm " + Twine(*algorithm) + " is not supported; 1 (Philox) and 3 (automatic) are");
  }
  Type element = c.resultType(0);
  if (constantOf(n) == int64_t(0))
    return c.setResult(0, c.splat(0, *shape, element));
  Value v;
  switch (kind) {
  case Kind::Uniform:
    v = g.uniform(n, element);
    break;
  case Kind::Normal:
    v = g.normal(n, element);
    break;
  case Kind::Truncated:
    v = g.truncatedNormal(n, element);
    break;
  case Kind::FullInt:
    v = g.bits(n, element);
    break;
  case Kind::Int: {
    Value lo = c.input(next), hi = c.input(next + 1);
    if (c.rank(lo) != 0 || c.rank(hi) != 0)
      return c.error("the limits must be scalars");
    c.check(c.compare(Compare::LT, lo, hi), "minval must be less than maxval");
    v = g.uniformInt(n, lo, hi);
    break;
  }
  }
  return c.setResult(0, v ? c.reshape(v, *shape) : Value());
}

/// Both halves of the state that a pair of seeds stands for.
LogicalResult lowerKeyCounter(NodeContext &c) {
  PhiloxEmitter g = PhiloxEmitter::fromSeedInput(c, 0);
  if (!g.keyWords()[0])
    return failure();
  Type u64 = c.b.getIntegerType(64, false);
  Value high = c.convert(g.keyWords()[1], u64);
  Value key = c.logicalOr(c.convert(g.keyWords()[0], u64), c.make<hlo::ShiftLeftOp>(high, c.likeInt(high, 32)));
  auto vector = [&](Value v) { return c.reshape(v, ArrayRef<int64_t>{1}); };
  Value counter = c.concat({vector(g.counterWords()[0]), vector(g.counterWords()[1])}, 0);
  if (failed(c.setResult(0, vector(key))) || failed(c.setResult(1, counter)))
    return failure();
  return c.numResults() > 2 ? c.setResult(2, c.scalarInt(1, c.b.getI32Type())) : success();
}

LogicalResult lowerMultinomial(NodeContext &c, bool stateless) {
  Value logits = c.input(0);
  auto samples = c.constantInt(1);
  if (failed(samples) || failed(c.expectRank(0, 2)))
    return failure();
  if (*samples < 0)
    return c.error("the number of samples is negative");
  // numbers of a row are set aside by fours of two words each
  AffineExpr aside = hlo::simplify(c.dim(logits, 0) * (int64_t((*samples + 3) / 4 * 8) * 256));
  PhiloxEmitter g = stateless ? PhiloxEmitter::fromSeedInput(c, 2) : PhiloxEmitter::fromAttributes(c, aside);
  if (!g.keyWords()[0])
    return failure();
  // A sample is the number of classes whose cumulated probability lies below a uniform number.
  Type f64 = c.b.getF64Type(), i32 = c.b.getI32Type();
  AffineExpr rows = c.dim(logits, 0), classes = c.dim(logits, 1);
  Value x = c.convert(logits, f64), finite = c.unary<hlo::IsFiniteOp>(x);
  Value most = c.reduceMax(c.select(finite, x, c.lowest(f64)), {1});
  Value p = c.unary<hlo::ExpOp>(c.sub(x, c.broadcastInDim(most, c.dims(x), {0})));
  p = c.select(finite, p, c.scalar(0, f64));
  Dims square{classes, classes};
  Value upper = c.compare(Compare::LE, c.iota(square, 0, i32), c.iota(square, 1, i32));
  Value cdf = c.dot(p, c.convert(upper, f64), {}, {}, {1}, {0});
  Value total = c.reduceSum(p, {1});
  Dims table{rows, c.size(*samples)}, cube{rows, c.size(*samples), classes};
  if (*samples == 0)
    return c.setResult(0, c.splat(0, table, c.resultType(0)));
  Value u = c.reshape(g.uniform(hlo::simplify(rows * *samples), f64), table);
  Value find = c.mul(u, c.broadcastInDim(total, table, {0}));
  Value below = c.compare(Compare::LE, c.broadcastInDim(cdf, cube, {0, 2}), c.broadcastInDim(find, cube, {0, 1}));
  return c.setResult(0, c.reduceSum(c.convert(below, c.resultType(0)), {2}));
}

/// The place of index in a pseudo-random permutation of [0, max_index]: Simon's block cipher on blocks that just hold the
/// numbers, repeated until the result is one of them.
class IndexShuffle {
public:
  IndexShuffle(NodeContext &c, int64_t width) : c(c), width(width), mask((uint64_t(1) << width) - 1) {}

  Value rotateLeft(Value v, int64_t by) {
    Value high = c.make<hlo::ShiftLeftOp>(v, c.likeInt(v, by)), low = c.make<hlo::ShiftRightLogicalOp>(v, c.likeInt(v, width - by));
    return c.logicalAnd(c.logicalOr(high, low), c.likeInt(v, mask));
  }
  Value exclusiveOr(Value x, Value y) { return c.binary<hlo::XorOp>(x, y); }
  Value mix(Value v) {
    return exclusiveOr(c.logicalAnd(rotateLeft(v, 1), rotateLeft(v, 8)), rotateLeft(v, 2));
  }

  SmallVector<Value> schedule(ArrayRef<Value> key, int64_t rounds) {
    SmallVector<Value> keys;
    for (Value k : key)
      keys.push_back(c.logicalAnd(k, c.likeInt(k, mask)));
    uint64_t z = 0x7369f885192c0ef5u & mask, constant = 0xfffffffcu & mask;
    for (int64_t i = 3; i < rounds; ++i, z >>= 1) {
      Value last = keys[i - 1];
      Value turned = exclusiveOr(rotateLeft(last, width - 3), rotateLeft(last, width - 4));
      keys.push_back(exclusiveOr(exclusiveOr(keys[i - 3], turned), c.likeInt(last, constant ^ (z & 1))));
    }
    return keys;
  }

  Value encrypt(Value v, ArrayRef<Value> keys) {
    Value right = c.logicalAnd(v, c.likeInt(v, mask));
    Value left = c.logicalAnd(c.make<hlo::ShiftRightLogicalOp>(v, c.likeInt(v, width)), c.likeInt(v, mask));
    for (size_t i = 0; i + 1 < keys.size(); i += 2) {
      left = exclusiveOr(exclusiveOr(left, mix(right)), keys[i]);
      right = exclusiveOr(exclusiveOr(right, mix(left)), keys[i + 1]);
    }
    return c.logicalOr(c.make<hlo::ShiftLeftOp>(left, c.likeInt(left, width)), right);
  }

private:
  NodeContext &c;
  int64_t width;
  uint64_t mask;
};

LogicalResult lowerIndexShuffle(NodeContext &c) {
  Value index = c.input(0), seed = c.input(1);
  auto limits = c.constantInts(2);
  int64_t rounds = c.attrInt("rounds", 4);
  if (failed(limits))
    return failure();
  if (rounds < 4 || rounds % 2 || rounds > 64)
    return c.error("rounds must be even, from 4 to 64");
  int64_t seedRank = c.rank(seed);
  if (seedRank < 1 || !c.ctx.unify(c.dim(seed, seedRank - 1), c.size(3), c.name()))
    return c.error("the seed must be three numbers");
  int64_t bits = 16;
  for (int64_t limit : *limits) {
    if (limit < 0)
      return c.error("max_index is negative");
    int64_t need = limit > 0 ? int64_t(std::ceil(std::log2(double(limit)))) : 0;
    bits = std::max(bits, need + need % 2);
  }
  for (int64_t limit : *limits) {
    int64_t need = limit > 0 ? int64_t(std::ceil(std::log2(double(limit)))) : 0;
    if (std::max<int64_t>(need + need % 2, 16) != bits)
      return c.error("limits of different block sizes are not supported");
  }
  if (bits > 62)
    return c.error("max_index is too large");
  Type i64 = c.b.getI64Type(), u64 = c.b.getIntegerType(64, false);
  auto wide = [&](Value v) { return c.convert(c.isUnsigned(v) ? v : c.convert(v, i64), u64); };
  Dims dims = c.rank(index) ? c.dims(index) : seedRank > 1 ? Dims{c.dim(seed, 0)} : c.dims(c.input(2));
  Value start = c.broadcastTo(wide(index), dims), most = c.broadcastTo(wide(c.input(2)), dims);
  if (!start || !most)
    return failure();
  // of what lies beyond, no repetition might ever come back
  c.check(c.compare(Compare::LE, start, most), "index must be in [0, max_index]");
  start = c.min(start, most);
  IndexShuffle cipher(c, bits / 2);
  SmallVector<Value> key;
  for (int64_t k = 0; k < 3; ++k) {
    Value part = c.sliceDim(seed, seedRank - 1, c.size(k), c.size(k + 1));
    Dims rest = c.dims(part);
    rest.pop_back();
    part = c.broadcastTo(wide(c.reshape(part, rest)), dims);
    if (!part)
      return failure();
    key.push_back(part);
  }
  SmallVector<Value> keys = cipher.schedule(key, rounds);
  auto tooLarge = [&](Value v) { return c.compare(Compare::GT, v, most); };
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, dims.size()));
  Value result = whileLoop(
      c, {cipher.encrypt(start, keys)}, [&](ValueRange v) { return c.reduceOr(tooLarge(v[0]), all); },
      [&](ValueRange v) -> SmallVector<Value> {
        return {c.select(tooLarge(v[0]), cipher.encrypt(v[0], keys), v[0])};
      })[0];
  return c.setResult(0, c.convert(result, c.resultType(0)));
}

} // namespace

void registerRandom(HandlerTable &t) {
  auto add = [&](StringRef op, int inputs, Kind kind, Source source) {
    t.add(op, inputs, [kind, source](NodeContext &c) { return lowerRandom(c, kind, source); });
  };
  add("RandomUniform", 1, Kind::Uniform, Source::Attributes);
  add("RandomStandardNormal", 1, Kind::Normal, Source::Attributes);
  add("TruncatedNormal", 1, Kind::Truncated, Source::Attributes);
  add("RandomUniformInt", 3, Kind::Int, Source::Attributes);
  add("StatelessRandomUniform", 2, Kind::Uniform, Source::Seed);
  add("StatelessRandomNormal", 2, Kind::Normal, Source::Seed);
  add("StatelessTruncatedNormal", 2, Kind::Truncated, Source::Seed);
  add("StatelessRandomUniformInt", 4, Kind::Int, Source::Seed);
  add("StatelessRandomUniformFullInt", 2, Kind::FullInt, Source::Seed);
  add("StatelessRandomUniformV2", 4, Kind::Uniform, Source::KeyCounter);
  add("StatelessRandomNormalV2", 4, Kind::Normal, Source::KeyCounter);
  add("StatelessTruncatedNormalV2", 4, Kind::Truncated, Source::KeyCounter);
  add("StatelessRandomUniformIntV2", 6, Kind::Int, Source::KeyCounter);
  add("StatelessRandomUniformFullIntV2", 4, Kind::FullInt, Source::KeyCounter);
  t.add("StatelessRandomGetKeyCounter", 1, lowerKeyCounter);
  t.add("StatelessRandomGetKeyCounterAlg", 1, lowerKeyCounter);
  t.add("StatelessRandomGetAlg", 0, [](NodeContext &c) { return c.setResult(0, c.scalarInt(1, c.resultType(0))); });
  t.add("RandomIndexShuffle", 3, lowerIndexShuffle);
  t.add("Multinomial", 2, [](NodeContext &c) { return lowerMultinomial(c, false); });
  t.add("StatelessMultinomial", 3, [](NodeContext &c) { return lowerMultinomial(c, true); });
}

} // namespace lathe::legalize
