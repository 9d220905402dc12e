// TensorFlow's Philox generator as hlo: blocks of four 32-bit numbers computed elementwise from counters, so that any
// number of them is one fused loop; and the distributions on top, bit for bit where they only use integers.
#ifndef LATHE_PASSES_LEGALIZE_RANDOM_PHILOX_H
#define LATHE_PASSES_LEGALIZE_RANDOM_PHILOX_H

#include "passes/legalize/NodeContext.h"

namespace lathe::legalize {

/// An attribute of an op with seeds: runs set the blocks aside that they use, as TensorFlow Lite's kernels do, not as many as
/// TensorFlow's.
constexpr llvm::StringLiteral kOnlyUsedBlocks = "lathe.only_used_blocks";

/// The words of one block for every counter.
using RandomBlock = std::array<Value, 4>;

class PhiloxEmitter {
public:
  /// Two ui32 words of the key and two ui64 words of the counter, all scalars.
  PhiloxEmitter(NodeContext &c, std::array<Value, 2> key, std::array<Value, 2> counter)
      : c(c), key(key), counter(counter) {}

  /// The generator of an op with attributes seed and seed2. Both zero: seeds from the node's name. How many blocks were given
  /// out is a variable of the program, "NODE:blocks", so that each run goes on where the one before it stopped; this run sets
  /// `blocks` aside. Null scalars after an error.
  static PhiloxEmitter fromAttributes(NodeContext &c, AffineExpr blocks);
  /// The generator of a stateless op with two seeds in an input; null scalars after an error.
  static PhiloxEmitter fromSeedInput(NodeContext &c, unsigned input);
  /// The generator of a stateless op with key and counter inputs.
  static PhiloxEmitter fromKeyCounter(NodeContext &c, unsigned keyInput, unsigned counterInput);

  /// Blocks number offsets[i] (ui64, any shape) from the counter on.
  RandomBlock blocks(Value offsets);

  /// [n] numbers of the element type: uniform in [0, 1).
  Value uniform(AffineExpr n, Type element);
  /// Standard normal.
  Value normal(AffineExpr n, Type element);
  /// Standard normal within two standard deviations.
  Value truncatedNormal(AffineExpr n, Type element);
  /// All bits of an integer type.
  Value bits(AffineExpr n, Type element);
  /// Integers in [lo, hi), both scalars of the element type.
  Value uniformInt(AffineExpr n, Value lo, Value hi);

  const std::array<Value, 2> &keyWords() const { return key; }
  const std::array<Value, 2> &counterWords() const { return counter; }

private:
  /// Offsets 0..blocks for `n` elements of `perBlock` a block.
  Value offsetsFor(AffineExpr n, int64_t perBlock);
  /// The first n of the words interleaved: element i of block b is number b * size + i.
  Value interleave(ArrayRef<Value> words, AffineExpr n);
  Value unitFloat(Value word, Type element);
  Value unitDouble(Value high, Value low);
  std::pair<Value, Value> boxMuller(const RandomBlock &block, unsigned first, Type element);
  Type u32() const { return c.b.getIntegerType(32, false); }
  Type u64() const { return c.b.getIntegerType(64, false); }

  NodeContext &c;
  std::array<Value, 2> key, counter;
};

} // namespace lathe::legalize

#endif
