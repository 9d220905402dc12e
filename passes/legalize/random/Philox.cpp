#include "passes/legalize/random/Philox.h"

#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {

static Value shiftRight(NodeContext &c, Value v, int64_t by) {
  return c.make<hlo::ShiftRightLogicalOp>(v, c.likeInt(v, by));
}
static Value shiftLeft(NodeContext &c, Value v, int64_t by) { return c.make<hlo::ShiftLeftOp>(v, c.likeInt(v, by)); }
static Value exclusiveOr(NodeContext &c, Value x, Value y) { return c.binary<hlo::XorOp>(x, y); }
static Value bitcast(NodeContext &c, Value v, Type element) {
  return c.elementType(v) == element ? v : c.make<hlo::BitcastConvertOp>(v, element);
}

/// Low and high halves of 64-bit numbers.
static Value lowHalf(NodeContext &c, Value v) {
  return c.convert(c.logicalAnd(v, c.likeInt(v, 0xffffffff)), c.b.getIntegerType(32, false));
}
static Value highHalf(NodeContext &c, Value v) {
  return c.convert(shiftRight(c, v, 32), c.b.getIntegerType(32, false));
}
static Value join(NodeContext &c, Value low, Value high) {
  Type u64 = c.b.getIntegerType(64, false);
  return c.logicalOr(c.convert(low, u64), shiftLeft(c, c.convert(high, u64), 32));
}

/// Entry i of a vector as a ui64 scalar, whatever integer type it has.
static Value word(NodeContext &c, Value v, int64_t i) {
  Type u64 = c.b.getIntegerType(64, false);
  Value e = c.reshape(c.sliceDim(v, 0, c.size(i), c.size(i + 1)), ArrayRef<AffineExpr>());
  if (c.isUnsigned(e))
    return c.convert(e, u64);
  return bitcast(c, c.convert(e, c.b.getI64Type()), u64);
}

/// The node's name, within its function if that is the body of a loop or a branch: nodes of two functions may share a name,
/// but not a generator.
static std::string nameOfGenerator(NodeContext &c) {
  auto function = c.node->getParentOfType<graph::FuncOp>();
  return ((function && function.isPrivate() ? function.getSymName() + "/" : Twine()) + c.name()).str();
}

PhiloxEmitter PhiloxEmitter::fromAttributes(NodeContext &c, AffineExpr blocks) {
  std::string name = nameOfGenerator(c);
  uint64_t seed = c.attrInt("seed"), seed2 = c.attrInt("seed2");
  if (!seed && !seed2) {
    // FNV-1a: any seed will do, but the same one each time the model is compiled
    seed = 0xcbf29ce484222325u;
    for (char ch : name)
      seed = (seed ^ static_cast<uint8_t>(ch)) * 0x100000001b3u;
  }
  Type u32 = c.b.getIntegerType(32, false), u64 = c.b.getIntegerType(64, false);
  StringRef state = c.ctx.intern(name + ":blocks");
  auto type = RankedTensorType::get({}, u64);
  if (failed(c.ctx.declareVariable(state, type, DenseElementsAttr::get(type, uint64_t(0)))))
    return {c, {}, {}};
  auto used = c.ctx.readVariable(state, c.loc);
  if (failed(used))
    return {c, {}, {}};
  Value now = c.ctx.materialize(*used, c.loc);
  c.ctx.state[state] = GraphValue::ofTensor(c.add(now, c.sizeValue(blocks, u64)));
  return {c,
          {c.scalarInt(seed & 0xffffffff, u32), c.scalarInt(seed >> 32, u32)},
          {now, c.scalarInt(seed2, u64)}};
}

PhiloxEmitter PhiloxEmitter::fromSeedInput(NodeContext &c, unsigned input) {
  Value seed = c.input(input);
  if (c.rank(seed) != 1 || !c.ctx.unify(c.dim(seed, 0), c.size(2), c.name())) {
    (void)c.error("the seed must be a vector of two numbers");
    return {c, {}, {}};
  }
  Type u32 = c.b.getIntegerType(32, false), u64 = c.b.getIntegerType(64, false);
  PhiloxEmitter mixer(c, {c.scalarInt(0x3ec8f720, u32), c.scalarInt(0x02461e29, u32)}, {word(c, seed, 0), word(c, seed, 1)});
  RandomBlock mix = mixer.blocks(c.scalarInt(0, u64));
  return {c, {mix[0], mix[1]}, {c.scalarInt(0, u64), join(c, mix[2], mix[3])}};
}

PhiloxEmitter PhiloxEmitter::fromKeyCounter(NodeContext &c, unsigned keyInput, unsigned counterInput) {
  Value key = c.input(keyInput), counter = c.input(counterInput);
  if (c.rank(key) != 1 || c.rank(counter) != 1 || !c.ctx.unify(c.dim(key, 0), c.size(1), c.name())) {
    (void)c.error("the key must be a vector of one number, the counter of two");
    return {c, {}, {}};
  }
  auto n = constantOf(c.dim(counter, 0));
  if (!n || *n < 2) {
    (void)c.error("the counter must be a vector of two numbers");
    return {c, {}, {}};
  }
  Value k = word(c, key, 0);
  return {c, {lowHalf(c, k), highHalf(c, k)}, {word(c, counter, 0), word(c, counter, 1)}};
}

RandomBlock PhiloxEmitter::blocks(Value offsets) {
  Value low = c.add(counter[0], offsets);
  Value carry = c.convert(c.compare(Compare::LT, low, offsets), u64());
  Value high = c.add(counter[1], carry);
  RandomBlock x{lowHalf(c, low), highHalf(c, low), lowHalf(c, high), highHalf(c, high)};
  Value k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    auto product = [&](Value v, int64_t by) {
      Value wide = c.convert(v, u64());
      return c.mul(wide, c.likeInt(wide, by));
    };
    Value p0 = product(x[0], 0xD2511F53), p1 = product(x[2], 0xCD9E8D57);
    x = {exclusiveOr(c, exclusiveOr(c, highHalf(c, p1), x[1]), k0), lowHalf(c, p1),
         exclusiveOr(c, exclusiveOr(c, highHalf(c, p0), x[3]), k1), lowHalf(c, p0)};
    k0 = c.add(k0, c.scalarInt(0x9E3779B9, u32()));
    k1 = c.add(k1, c.scalarInt(0xBB67AE85, u32()));
  }
  return x;
}

Value PhiloxEmitter::offsetsFor(AffineExpr n, int64_t perBlock) {
  return c.iota({hlo::simplify((n + (perBlock - 1)).floorDiv(perBlock))}, 0, u64());
}

Value PhiloxEmitter::interleave(ArrayRef<Value> words, AffineExpr n) {
  Dims column = c.dims(words[0]);
  column.push_back(c.size(1));
  SmallVector<Value> columns;
  for (Value w : words)
    columns.push_back(c.reshape(w, column));
  Value flat = c.concat(columns, 1);
  flat = c.reshape(flat, ArrayRef<AffineExpr>{hlo::simplify(column[0] * int64_t(words.size()))});
  return c.sliceDim(flat, 0, c.size(0), n);
}

/// The mantissa's bits of a word, with the exponent of 1, minus 1.
Value PhiloxEmitter::unitFloat(Value w, Type element) {
  auto f = dyn_cast<FloatType>(element);
  if (!f)
    return c.poison("expected a floating-point type");
  int64_t mantissa = f.getFPMantissaWidth() - 1, width = f.getWidth();
  int64_t bias = (int64_t(1) << (width - mantissa - 2)) - 1;
  Value bits = c.logicalOr(c.logicalAnd(w, c.likeInt(w, (int64_t(1) << mantissa) - 1)), c.likeInt(w, bias << mantissa));
  Value v = bitcast(c, c.convert(bits, c.b.getIntegerType(width, false)), element);
  return c.sub(v, c.like(v, 1));
}

Value PhiloxEmitter::unitDouble(Value high, Value low) {
  Value top = c.logicalAnd(high, c.likeInt(high, 0xfffff));
  Value bits = join(c, low, c.logicalOr(top, c.likeInt(top, int64_t(1023) << 20)));
  Value v = bitcast(c, bits, c.b.getF64Type());
  return c.sub(v, c.like(v, 1));
}

Value PhiloxEmitter::uniform(AffineExpr n, Type element) {
  if (element.isF64()) {
    RandomBlock x = blocks(offsetsFor(n, 2));
    return interleave({unitDouble(x[0], x[1]), unitDouble(x[2], x[3])}, n);
  }
  RandomBlock x = blocks(offsetsFor(n, 4));
  SmallVector<Value> parts;
  for (Value w : x)
    parts.push_back(unitFloat(w, element));
  return interleave(parts, n);
}

/// Two normal numbers from two (f32) or four (f64) words.
std::pair<Value, Value> PhiloxEmitter::boxMuller(const RandomBlock &x, unsigned first, Type element) {
  Value u, v;
  if (element.isF64()) {
    u = unitDouble(x[0], x[1]);
    v = unitDouble(x[2], x[3]);
  } else {
    u = unitFloat(x[first], element);
    v = unitFloat(x[first + 1], element);
  }
  u = c.max(u, c.like(u, 1e-7));
  Value angle = c.mul(v, c.like(v, 2 * M_PI));
  Value radius = c.unary<hlo::SqrtOp>(c.mul(c.unary<hlo::LogOp>(u), c.like(u, -2)));
  return {c.mul(c.unary<hlo::SineOp>(angle), radius), c.mul(c.unary<hlo::CosineOp>(angle), radius)};
}

Value PhiloxEmitter::normal(AffineExpr n, Type element) {
  if (element.isF64()) {
    auto [a, b] = boxMuller(blocks(offsetsFor(n, 2)), 0, element);
    return interleave({a, b}, n);
  }
  Type f32 = c.b.getF32Type();
  RandomBlock x = blocks(offsetsFor(n, 4));
  auto [p, q] = boxMuller(x, 0, f32);
  auto [r, s] = boxMuller(x, 2, f32);
  return c.convert(interleave({p, q, r, s}, n), element);
}

Value PhiloxEmitter::truncatedNormal(AffineExpr n, Type element) {
  // A group of results draws from 256 words for each of them until all lie within the limits.
  bool f64 = element.isF64();
  int64_t size = f64 ? 2 : 4, stride = 64 * size;
  Type wide = f64 ? element : Type(c.b.getF32Type()), i32 = c.b.getI32Type();
  Value group = offsetsFor(n, size);
  Value base = c.mul(group, c.likeInt(group, stride));
  Dims groups = c.dims(group), table = groups;
  table.push_back(c.size(size));
  Value column = c.iota(table, 1, i32);
  SmallVector<Value> init{c.scalarInt(0, u64()), c.splatInt(0, groups, i32), c.splat(0, table, wide)};
  SmallVector<Value> done = whileLoop(
      c, init,
      [&](ValueRange v) -> Value {
        Value missing = c.reduceOr(c.compare(Compare::LT, v[1], c.likeInt(v[1], size)), {0});
        // the reserved words are never used up in practice, but the loop must end
        return c.logicalAnd(missing, c.compare(Compare::LT, v[0], c.scalarInt(stride, u64())));
      },
      [&](ValueRange v) -> SmallVector<Value> {
        Value round = v[0], count = v[1], results = v[2];
        RandomBlock x = blocks(c.add(base, round));
        SmallVector<Value> candidates;
        auto [a, b] = boxMuller(x, 0, wide);
        candidates.append({a, b});
        if (!f64) {
          auto [d, e] = boxMuller(x, 2, wide);
          candidates.append({d, e});
        }
        for (Value candidate : candidates) {
          Value small = c.compare(Compare::LT, c.unary<hlo::AbsOp>(candidate), c.like(candidate, 2));
          Value here = c.compare(Compare::EQ, column, c.broadcastInDim(count, table, {0}));
          Value take = c.logicalAnd(here, c.broadcastInDim(small, table, {0}));
          results = c.select(take, c.broadcastInDim(candidate, table, {0}), results);
          count = c.add(count, c.convert(small, i32));
        }
        return {c.add(round, c.scalarInt(1, u64())), count, results};
      });
  Value flat = c.reshape(done[2], ArrayRef<AffineExpr>{hlo::simplify(groups[0] * size)});
  return c.convert(c.sliceDim(flat, 0, c.size(0), n), element);
}

Value PhiloxEmitter::bits(AffineExpr n, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  Value v;
  if (width == 64) {
    RandomBlock x = blocks(offsetsFor(n, 2));
    v = interleave({join(c, x[0], x[1]), join(c, x[2], x[3])}, n);
  } else {
    RandomBlock x = blocks(offsetsFor(n, 4));
    v = interleave({x[0], x[1], x[2], x[3]}, n);
  }
  return bitcast(c, v, element);
}

Value PhiloxEmitter::uniformInt(AffineExpr n, Value lo, Value hi) {
  Type element = c.elementType(lo), plain = c.b.getIntegerType(element.getIntOrFloatBitWidth(), false);
  Value range = c.sub(bitcast(c, hi, plain), bitcast(c, lo, plain));
  Value v = bits(n, plain);
  v = c.binary<hlo::RemOp>(v, range);
  return bitcast(c, c.add(v, bitcast(c, lo, plain)), element);
}

} // namespace lathe::legalize
