// Copies to scratch for products in tiles: rows, rounded to bf16 or bytes as they are, and panels of pairs of a right operand of
// floats that is known at run time only.
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/element/NarrowFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

Value loadBf16Bits(KernelBuilder &b, Type elem, Value base, Value index, unsigned lanes, Value mask) {
  if (elem.isBF16())
    return b.loadElem(b.getI16Type(), base, index, lanes, mask);
  return f32ToNarrow(b, b.getBF16Type(), b.loadElem(elem, base, index, lanes, mask));
}

/// Elements of 64 bytes at a time; the last ones with zeros behind them.
static void copyRows(KernelBuilder &b, unsigned lanes, Value count, function_ref<void(Value at, Value mask)> copy) {
  std::optional<int64_t> n = constantOf(count);
  Value whole = b.mul(b.divU(count, b.i64(lanes)), b.i64(lanes));
  if (!n || *n >= lanes)
    b.loop(b.i64(0), whole, b.i64(lanes), [&](Value at) { copy(at, Value()); });
  if (n && *n % lanes == 0)
    return;
  auto rest = [&] { copy(whole, b.tailMask(b.sub(count, whole), lanes)); };
  if (n)
    rest();
  else
    b.ifThen(b.lt(whole, count), rest);
}

void copyToBf16(KernelBuilder &b, Type elem, Value from, Value to, Value count) {
  constexpr unsigned lanes = 32;
  copyRows(b, lanes, count, [&](Value at, Value mask) {
    b.storeElem(b.getI16Type(), loadBf16Bits(b, elem, from, at, lanes, mask), to, at);
  });
}

void copyToRow(KernelBuilder &b, const AmxLayout &layout, Type elem, Value from, Value to, Value count) {
  if (!layout.isBytes())
    return copyToBf16(b, elem, from, to, count);
  const unsigned lanes = layout.fullStep();
  Type byte = b.getI8Type();
  copyRows(b, lanes, count, [&](Value at, Value mask) { b.storeElem(byte, b.loadElem(byte, from, at, lanes, mask), to, at); });
}

void zerosOfRow(KernelBuilder &b, const AmxLayout &layout, Value to, Value count) {
  zeroRun(b, layout.isBytes() ? b.getI8Type() : b.getI16Type(), to, count);
}

namespace {

class PanelPacker {
public:
  PanelPacker(KernelBuilder &b, const AmxLayout &layout, const AmxPanelSource &from, Value to)
      : b(b), layout(layout), from(from), to(to) {}

  void emit() {
    if (constantOf(from.column) == 1)
      return interleaveRows();
    if (constantOf(from.step) == 1)
      return transposeColumns();
    singly();
  }

private:
  unsigned vecs() const { return llvm::divideCeil(from.columns, 16); }
  int64_t pairs() const { return layout.paddedRun() / 2; }
  void store(Value pairs, Value row, int64_t column) {
    b.storeElem(b.getI32Type(), pairs, to, b.add(b.mul(row, b.i64(layout.panel)), b.i64(column)));
  }
  Value join(Value low, Value high, unsigned lanes) {
    Type i32 = widen(b.getI32Type(), lanes);
    low = arith::ExtUIOp::create(b, i32, low);
    high = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i32, high), b.cstI(i32, 16));
    return arith::OrIOp::create(b, low, high);
  }

  /// Columns lie together: two rows make a row of pairs.
  void interleaveRows() {
    auto row = [&](Value pair, bool hasHigh) {
      for (unsigned v = 0; v < vecs(); ++v) {
        int64_t rest = from.columns - v * 16;
        Value mask = rest < 16 ? b.tailMask(b.i64(rest), 16) : Value();
        auto half = [&](int64_t i) {
          Value at = b.mul(b.add(b.mul(pair, b.i64(2)), b.i64(i)), from.step);
          return loadBf16Bits(b, from.elem, from.pointer, b.add(at, b.i64(v * 16)), 16, mask);
        };
        Value low = half(0);
        store(join(low, hasHigh ? half(1) : b.cstI(low.getType(), 0), 16), pair, v * 16);
      }
    };
    b.loop(b.i64(0), b.i64(layout.run / 2), [&](Value p) { row(p, true); });
    int64_t done = layout.run / 2;
    if (layout.run % 2)
      row(b.i64(done++), false);
    zeros(done);
  }

  void zeros(int64_t firstPair) {
    if (firstPair < pairs())
      b.loop(b.i64(firstPair), b.i64(pairs()), [&](Value p) {
        for (unsigned v = 0; v < vecs(); ++v)
          store(b.cstI(widen(b.getI32Type(), 16), 0), p, v * 16);
      });
  }

  /// k lies together: 16 columns of 16 pairs, turned in registers.
  void transposeColumns() {
    auto block = [&](Value k0, Value mask, int64_t count) {
      for (unsigned v = 0; v < vecs(); ++v) {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < 16; ++i) {
          // a column that does not exist repeats the last one: what it gives is not stored
          int64_t column = std::min<int64_t>(v * 16 + i, from.columns - 1);
          Value at = b.add(b.mul(b.i64(column), from.column), k0);
          Value bits = loadBf16Bits(b, from.elem, from.pointer, at, 32, mask);
          rows.push_back(vector::BitCastOp::create(b, widen(b.getI32Type(), 16), bits));
        }
        for (unsigned d = 1; d < 16; d *= 2) {
          SmallVector<int64_t> low(16), high(16);
          for (unsigned i = 0; i < 16; ++i) {
            low[i] = i & d ? 16 + i - d : i;
            high[i] = i & d ? 16 + i : i + d;
          }
          for (unsigned i = 0; i < 16; ++i) {
            if (i & d)
              continue;
            Value x = rows[i], y = rows[i + d];
            rows[i] = vector::ShuffleOp::create(b, x, y, low);
            rows[i + d] = vector::ShuffleOp::create(b, x, y, high);
          }
        }
        for (int64_t i = 0; i < count; ++i)
          store(rows[i], b.add(b.divU(k0, b.i64(2)), b.i64(i)), v * 16);
      }
    };
    int64_t whole = layout.run / 32 * 32;
    if (whole)
      b.loop(b.i64(0), b.i64(whole), b.i64(32), [&](Value k0) { block(k0, Value(), 16); });
    if (whole < layout.run)
      block(b.i64(whole), b.tailMask(b.i64(layout.run - whole), 32), std::min<int64_t>(16, pairs() - whole / 2));
    zeros(std::min(pairs(), whole / 2 + (whole < layout.run ? 16 : 0)));
  }

  void singly() {
    Type i32 = b.getI32Type();
    auto pair = [&](Value p, Value c, bool hasHigh) {
      auto half = [&](int64_t i) {
        Value at = b.add(b.mul(b.add(b.mul(p, b.i64(2)), b.i64(i)), from.step), b.mul(c, from.column));
        return loadBf16Bits(b, from.elem, from.pointer, at);
      };
      Value low = half(0), high = hasHigh ? half(1) : b.cstI(b.getI16Type(), 0);
      b.storeElem(i32, join(low, high, 1), to, b.add(b.mul(p, b.i64(layout.panel)), c));
    };
    Value columns = b.i64(from.columns);
    b.loop(b.i64(0), b.i64(layout.run / 2),
           [&](Value p) { b.loop(b.i64(0), columns, [&](Value c) { pair(p, c, true); }); });
    int64_t done = layout.run / 2;
    if (layout.run % 2) {
      b.loop(b.i64(0), columns, [&](Value c) { pair(b.i64(done), c, false); });
      ++done;
    }
    zeros(done);
  }

  KernelBuilder &b;
  const AmxLayout &layout;
  const AmxPanelSource &from;
  Value to;
};

} // namespace

void packAmxPanel(KernelBuilder &b, const AmxLayout &layout, const AmxPanelSource &from, Value to) {
  PanelPacker(b, layout, from, to).emit();
}

} // namespace lathe::cpu
