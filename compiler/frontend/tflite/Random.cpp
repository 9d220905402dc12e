// Random numbers: those of the reference kernels, which are TensorFlow's generator, and StableHLO's bits of a state.
#include "compiler/frontend/tflite/OpTable.h"
#include "passes/legalize/random/Philox.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// TensorFlow's op with the seeds of the options. The generator goes on from run to run as the kernel's does.
LogicalResult seeded(OpContext &c, const char *op) {
  const auto &o = c.options<tfl::RandomOptions>();
  GraphValues values;
  for (unsigned i = 0; i < c.numInputs(); ++i)
    values.push_back(c.value(i));
  auto result = c.call(op, values, {c.attr("seed", o.seed()), c.attr("seed2", o.seed2()), c.attr(legalize::kOnlyUsedBlocks, true)});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

/// Generators of blocks of 32-bit words from a key and a counter, element by element.
class Bits {
public:
  explicit Bits(OpContext &c) : c(c), u32(c.b.getIntegerType(32, false)), u64(c.b.getIntegerType(64, false)) {}

  Value low(Value v) { return c.convert(c.logicalAnd(v, c.likeInt(v, 0xffffffff)), u32); }
  Value high(Value v) { return c.convert(right(v, 32), u32); }
  Value wide(Value lowWord, Value highWord) { return c.logicalOr(c.convert(lowWord, u64), left(c.convert(highWord, u64), 32)); }
  Value left(Value v, int64_t by) { return c.make<hlo::ShiftLeftOp>(v, c.likeInt(v, by)); }
  Value right(Value v, int64_t by) { return c.make<hlo::ShiftRightLogicalOp>(v, c.likeInt(v, by)); }
  Value exclusiveOr(Value x, Value y) { return c.binary<hlo::XorOp>(x, y); }

  /// Threefry2x32 with 20 rounds: two words of each counter.
  SmallVector<Value> threefry(Value key, Value counter) {
    constexpr int64_t rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
    Value keys[3] = {low(key), high(key), {}};
    keys[2] = exclusiveOr(exclusiveOr(keys[0], keys[1]), c.likeInt(keys[0], 0x1BD11BDA));
    Value x = c.add(low(counter), keys[0]), y = c.add(high(counter), keys[1]);
    for (int64_t round = 0; round < 20; ++round) {
      x = c.add(x, y);
      const int64_t by = rotations[round % 8];
      y = exclusiveOr(c.logicalOr(left(y, by), right(y, 32 - by)), x);
      if (round % 4 != 3)
        continue;
      const int64_t s = round / 4 + 1;
      x = c.add(x, keys[s % 3]);
      y = c.add(c.add(y, keys[(s + 1) % 3]), c.likeInt(y, s));
    }
    return {x, y};
  }

  /// Philox4x32 with 10 rounds: four words of each counter of 128 bits.
  SmallVector<Value> philox(Value key, Value counter, Value counterHigh) {
    Value word[4] = {low(counter), high(counter), low(counterHigh), high(counterHigh)}, keys[2] = {low(key), high(key)};
    for (int64_t round = 0; round < 10; ++round) {
      Value first = product(word[0], 0xD2511F53), second = product(word[2], 0xCD9E8D57);
      Value next[4] = {exclusiveOr(exclusiveOr(high(second), word[1]), keys[0]), low(second),
                       exclusiveOr(exclusiveOr(high(first), word[3]), keys[1]), low(first)};
      std::copy(next, next + 4, word);
      keys[0] = c.add(keys[0], c.likeInt(keys[0], 0x9E3779B9));
      keys[1] = c.add(keys[1], c.likeInt(keys[1], 0xBB67AE85));
    }
    return {word[0], word[1], word[2], word[3]};
  }

private:
  Value product(Value x, int64_t by) {
    Value w = c.convert(x, u64);
    return c.mul(w, c.likeInt(w, by));
  }

  OpContext &c;
  Type u32, u64;
};

/// The numbers of a state of two or three words: a key, a counter and for Philox its upper half. Each block takes the next counter.
LogicalResult bitGenerator(OpContext &c) {
  const auto algorithm = c.options2<tfl::StablehloRngBitGeneratorOptions>().algorithm();
  Type u32 = c.b.getIntegerType(32, false), u64 = c.b.getIntegerType(64, false), element = c.elementOf(c.outputInfo(1));
  Value state = c.input(0);
  if (!state)
    return failure();
  auto words = Emitter::rank(state) == 1 ? constantOf(c.dim(state, 0)) : std::nullopt;
  const bool threefry = algorithm == tfl::RngAlgorithm::THREEFRY;
  if (Emitter::elementType(state) != u64 || !words || *words < 2 || *words > (threefry ? 2 : 3))
    return c.error("expected a state of two 64-bit words (or three for Philox)");
  if (!element.isInteger(32) && !element.isInteger(64) && element != u32 && element != u64)
    return c.error("expected 32-bit or 64-bit integers as its result");
  SmallVector<int64_t> dims(c.outputInfo(1).dims);
  int64_t count = element.getIntOrFloatBitWidth() / 32;
  for (int64_t d : dims)
    if (d < 0 || llvm::MulOverflow(count, d, count))
      return c.error("the sizes of its result must be known");
  Bits bits(c);
  const int64_t perBlock = threefry ? 2 : 4, blocks = (count + perBlock - 1) / perBlock;
  auto word = [&](int64_t i) { return c.reshape(c.sliceDim(state, 0, c.size(i), c.size(i + 1)), ArrayRef<AffineExpr>()); };
  Value start = word(1), from = c.iota(c.sizes({blocks}), 0, u64), counter = c.add(from, start);
  // without an upper half of its own the counter has the key there; the lower half alone counts
  Value upper = *words > 2 ? word(2) : word(0);
  SmallVector<Value> block = threefry ? bits.threefry(word(0), counter)
                                      : bits.philox(word(0), counter, c.broadcastInDim(upper, c.dims(counter), {}));
  if (element.getIntOrFloatBitWidth() == 64) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i < block.size(); i += 2)
      pairs.push_back(bits.wide(block[i], block[i + 1]));
    block = pairs;
    count /= 2;
  }
  for (Value &v : block)
    v = c.reshape(v, {blocks, 1});
  Value all = c.concat(block, 1);
  all = c.sliceDim(c.reshape(all, ArrayRef<int64_t>{blocks * int64_t(block.size())}), 0, c.size(0), c.size(count));
  if (Emitter::elementType(all) != element)
    all = c.make<hlo::BitcastConvertOp>(all, element);
  Value last = c.add(start, c.scalarInt(blocks, u64));
  SmallVector<Value> next{word(0), last};
  if (*words > 2)
    next.push_back(upper);
  for (Value &v : next)
    v = c.reshape(v, ArrayRef<int64_t>{1});
  return failed(c.setResult(0, c.concat(next, 0))) ? failure() : c.setResult(1, c.reshape(all, dims));
}

} // namespace

void registerRandom(OpTable &t) {
  t.add(Op::RANDOM_UNIFORM, 1, 1, 1, Ints, [](OpContext &c) { return seeded(c, "RandomUniform"); });
  t.add(Op::RANDOM_STANDARD_NORMAL, 1, 1, 1, Ints, [](OpContext &c) { return seeded(c, "RandomStandardNormal"); });
  t.add(Op::MULTINOMIAL, 2, 2, 1, Float32, [](OpContext &c) { return seeded(c, "Multinomial"); });
  t.add(Op::STABLEHLO_RNG_BIT_GENERATOR, 1, 1, 1, Ints, bitGenerator);
}

} // namespace lathe::tflite
