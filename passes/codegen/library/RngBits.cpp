// rng_bit_generator: Philox 4x32-10 (also DEFAULT) and Threefry 2x32-20 on a state [key, counter...] of 64-bit words.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/library/Library.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

static E lowWord(E x) { return truncI(x, 32); }
static E highWord(E x) { return truncI(x >> 32, 32); }

static SmallVector<E> philox(E key, E counter, E high) {
  E k0 = lowWord(key), k1 = highWord(key);
  E c[4] = {lowWord(counter), highWord(counter), lowWord(high), highWord(high)};
  for (int round = 0; round < 10; ++round) {
    E p0 = extU(c[0], 64) * int64_t(0xD2511F53), p1 = extU(c[2], 64) * int64_t(0xCD9E8D57);
    E n0 = highWord(p1) ^ c[1] ^ k0, n2 = highWord(p0) ^ c[3] ^ k1;
    c[0] = n0;
    c[1] = lowWord(p1);
    c[2] = n2;
    c[3] = lowWord(p0);
    k0 = k0 + int64_t(int32_t(0x9E3779B9));
    k1 = k1 + int64_t(int32_t(0xBB67AE85));
  }
  return {c[0], c[1], c[2], c[3]};
}

static SmallVector<E> threefry(E key, E counter) {
  static const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  E keys[3] = {lowWord(key), highWord(key), E()};
  keys[2] = keys[0] ^ keys[1] ^ int64_t(0x1BD11BDA);
  E x0 = lowWord(counter) + keys[0], x1 = highWord(counter) + keys[1];
  for (int round = 0; round < 20; ++round) {
    int by = rotations[round % 8];
    x0 = x0 + x1;
    x1 = ((x1 << by) | (x1 >> (32 - by))) ^ x0;
    if (round % 4 == 3) {
      int s = round / 4 + 1;
      x0 = x0 + keys[s % 3];
      x1 = x1 + keys[(s + 1) % 3] + s;
    }
  }
  return {x0, x1};
}

LogicalResult emitRngBits(Operation *op, KernelBuilder &b) {
  auto r = cast<hlo::RngBitGeneratorOp>(op);
  bool isThreefry = r.getRngAlgorithm() == hlo::RngAlgorithm::THREE_FRY;
  auto out = tensorType(r.getOutput());
  int64_t state = tensorType(r.getInitialState()).getDimSize(0);
  Type elem = out.getElementType(), i64 = b.getI64Type();
  unsigned bits = elem.getIntOrFloatBitWidth(), bytes = elemBytes(elem);
  int64_t words = bytes == 8 ? 2 : 1, block = isThreefry ? 2 : 4, perBlock = block / words;
  Type carrier = IntegerType::get(b.getContext(), std::max(8u, bits));
  AffineExpr count = hlo::numElements(out), blocks = hlo::ceilDiv(count, perBlock);
  // the state is written by each unit alike, so there may be many
  constexpr int64_t unitBlocks = 1024;
  b.setExtent(hlo::simplify(hlo::ceilDiv(blocks, unitBlocks) + 1));
  b.setWork(unitBlocks * 60);
  Value n = b.dim(count), nBlocks = b.dim(blocks);
  b.units([&](Value unit) {
    E key(b, b.loadElem(i64, b.operands[0], b.i64(0))), counter(b, b.loadElem(i64, b.operands[0], b.i64(1)));
    E high = state > 2 ? E(b, b.loadElem(i64, b.operands[0], b.i64(2))) : counter.cI(0);
    auto advance = [&](Value by) {
      E low = counter + E(b, by);
      E carry = cmpI(arith::CmpIPredicate::ult, low, counter);
      return std::make_pair(low, high + extU(carry, 64));
    };
    b.ifThen(b.eq(unit, b.i64(0)), [&] {
      auto [low, up] = advance(nBlocks);
      b.storeElem(i64, key, b.results[0], b.i64(0));
      b.storeElem(i64, low, b.results[0], b.i64(1));
      if (state > 2)
        b.storeElem(i64, up, b.results[0], b.i64(2));
    });
    Value lo = b.mul(unit, b.i64(unitBlocks)), hi = b.min(b.add(lo, b.i64(unitBlocks)), nBlocks);
    b.loop(lo, hi, [&](Value k) {
      auto [low, up] = advance(k);
      SmallVector<E> w = isThreefry ? threefry(key, low) : philox(key, low, up);
      for (int64_t i = 0; i < perBlock; ++i) {
        Value at = b.add(b.mul(k, b.i64(perBlock)), b.i64(i));
        b.ifThen(b.lt(at, n), [&] {
          E v = words == 2 ? extU(w[2 * i], 64) | (extU(w[2 * i + 1], 64) << 32) : w[i];
          if (bits < 8) { // one four-bit number a byte, in its own signedness
            b.storeElem(elem, truncI(v, bits), b.results[1], at);
            return;
          }
          if (bytes < 4)
            v = truncI(v, bits);
          b.storeElem(carrier, v, b.results[1], at);
        });
      }
    });
  });
  return success();
}

} // namespace lathe::codegen
