// Random numbers of the evaluator.
//
// rng_bit_generator: state [key, counter...] of 64-bit words. PHILOX (and DEFAULT) is Philox 4x32-10 with the 128-bit
// counter (counter, high or 0), four 32-bit words a block in order; THREE_FRY is Threefry 2x32-20 with the 64-bit counter,
// two words a block. 64-bit outputs take two words (low first), narrower ones the low bits of one. The counter
// advances by the number of blocks.
#include "base/Philox.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace lathe::hlo::eval {

static void threefry(uint32_t k0, uint32_t k1, uint32_t &x0, uint32_t &x1) {
  static const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t keys[3] = {k0, k1, 0x1BD11BDAu ^ k0 ^ k1};
  x0 += keys[0];
  x1 += keys[1];
  for (int round = 0; round < 20; ++round) {
    int by = rotations[round % 8];
    x0 += x1;
    x1 = (x1 << by | x1 >> (32 - by)) ^ x0;
    if (round % 4 == 3) {
      int s = round / 4 + 1;
      x0 += keys[s % 3];
      x1 += keys[(s + 1) % 3] + s;
    }
  }
}

static LogicalResult evalRngBitGenerator(Evaluation &e, RngBitGeneratorOp op, ArrayRef<Tensor> in, Tensors &out) {
  Tensor output;
  DType type = toDType(elementType(op.getOutput()));
  if (failed(e.allocate(op, type, e.dimsOf(op.getOutput().getType()), output)) ||
      failed(e.work(op, output.numElements() * 10.0)))
    return failure();
  Tensor state = in[0].clone();
  uint64_t *words = state.data<uint64_t>();
  size_t size = dtypeSize(type), wordsEach = size == 8 ? 2 : 1;
  uint64_t needed = output.numElements() * wordsEach;
  std::vector<uint32_t> bits;
  bits.reserve(needed + 4);
  uint32_t key[2] = {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[0] >> 32)};
  if (op.getRngAlgorithm() == RngAlgorithm::THREE_FRY) {
    while (bits.size() < needed) {
      uint32_t x0 = static_cast<uint32_t>(words[1]), x1 = static_cast<uint32_t>(words[1] >> 32);
      threefry(key[0], key[1], x0, x1);
      bits.push_back(x0);
      bits.push_back(x1);
      ++words[1];
    }
  } else {
    uint64_t high = state.numElements() > 2 ? words[2] : 0;
    while (bits.size() < needed) {
      Philox philox({key[0], key[1]}, {static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32),
                                       static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)});
      for (uint32_t word : philox.peek())
        bits.push_back(word);
      if (++words[1] == 0)
        ++high;
    }
    if (state.numElements() > 2)
      words[2] = high;
  }
  char *to = static_cast<char *>(output.data());
  bool narrow = type == DType::Int4 || type == DType::UInt4;
  for (int64_t i = 0; i < output.numElements(); ++i) {
    uint64_t value = bits[i * wordsEach] | (wordsEach == 2 ? static_cast<uint64_t>(bits[i * 2 + 1]) << 32 : 0);
    int64_t asInt = static_cast<int64_t>(value);
    if (narrow)
      storeInts(type, &asInt, 1, to + i);
    else
      std::memcpy(to + i * size, &value, size);
  }
  out.push_back(state);
  out.push_back(output);
  return success();
}

// Implementation-defined numbers: a Philox stream with a fixed key, so that two runs agree.
static LogicalResult evalRng(Evaluation &e, RngOp op, ArrayRef<Tensor> in, Tensors &out) {
  Tensor output;
  DType type = toDType(elementType(op.getResult()));
  if (failed(e.allocate(op, type, loadInts(in[2]), output)))
    return failure();
  Philox philox({0x12345678u, 0x9abcdef0u}, {0, 0, 0, 0});
  int64_t n = output.numElements();
  auto uniform = [&, block = Philox::Block(), at = 4]() mutable {
    if (at >= 4) {
      block = philox.next();
      at = 0;
    }
    uint64_t high = block[at], low = block[at + 1];
    at += 2;
    return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
  };
  if (kindOf(type) == Kind::Float) {
    double a = loadFloats(in[0])[0], b = loadFloats(in[1])[0];
    std::vector<double> values(n);
    for (double &value : values) {
      double u = uniform();
      if (op.getRngDistribution() == RngDistribution::NORMAL)
        value = a + b * std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * M_PI * uniform());
      else
        value = a + (b - a) * u;
    }
    storeFloats(type, values.data(), n, output.data());
  } else {
    int64_t a = loadInts(in[0])[0], b = loadInts(in[1])[0];
    std::vector<int64_t> values(n);
    uint64_t span = static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
    for (int64_t &value : values)
      value = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(uniform() * static_cast<double>(span)));
    storeInts(type, values.data(), n, output.data());
  }
  out.push_back(output);
  return success();
}

void registerRandom(HandlerTable &table) {
  add<RngOp, evalRng>(table);
  add<RngBitGeneratorOp, evalRngBitGenerator>(table);
}

} // namespace lathe::hlo::eval
