// Copies to scratch for products in groups: rows, rounded to bf16 or bytes as they are, and panels of pairs of a right operand that
// is known at run time only: floats rounded to bf16, integers extended to 16 bits.
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/Format.h"
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/element/NarrowFloat.h"
#include "passes/codegen/library/Fft.h"

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

void repeatInRow(KernelBuilder &b, const AmxLayout &layout, int64_t value, Value to, Value count) {
  repeatInFormat(b, {layout.isBytes() ? OperandFormat::Kind::Bytes : OperandFormat::Kind::Bf16}, b.getI32Type(), value, to, count);
}

namespace {

/// Vectors of `lanes` columns, each lane two steps of the sum.
class PanelPacker {
public:
  PanelPacker(KernelBuilder &b, const AmxLayout &layout, const AmxPanelSource &from, unsigned lanes, Value to)
      : b(b), layout(layout), from(from), lanes(lanes), to(to), masked(from.elem.isInteger() ? b.target.hasMaskedMemory(from.elem) : true) {}

  void emit() {
    if (constantOf(from.column) == 1)
      return interleaveRows();
    if (constantOf(from.step) == 1)
      return transposeColumns();
    singly(0, 0);
  }

private:
  unsigned vecs() const { return llvm::divideCeil(from.columns, lanes); }
  int64_t pairs() const { return layout.paddedRun() / 2; }
  /// Elements as 16 bits: floats rounded to bf16, integers extended.
  Value load(Value at, unsigned count = 1, Value mask = {}) {
    if (!from.elem.isInteger())
      return loadBf16Bits(b, from.elem, from.pointer, at, count, mask);
    return toAccumulator(b, b.loadElem(from.elem, from.pointer, at, count, mask), from.elem, b.getI16Type());
  }
  void store(Value pairs, Value row, int64_t column) {
    b.storeElem(b.getI32Type(), pairs, to, b.add(b.mul(row, b.i64(layout.panel)), b.i64(column)));
  }
  Value join(Value low, Value high, unsigned count) {
    Type i32 = widen(b.getI32Type(), count);
    low = arith::ExtUIOp::create(b, i32, low);
    high = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i32, high), b.cstI(i32, 16));
    return arith::OrIOp::create(b, low, high);
  }

  /// Columns lie together: two rows make a row of pairs.
  void interleaveRows() {
    const int64_t whole = masked ? from.columns : from.columns / lanes * lanes;
    auto row = [&](Value pair, bool hasHigh) {
      for (int64_t v = 0; v < whole; v += lanes) {
        Value mask = whole - v < lanes ? b.tailMask(b.i64(whole - v), lanes) : Value();
        auto half = [&](int64_t i) {
          return load(b.add(b.mul(b.add(b.mul(pair, b.i64(2)), b.i64(i)), from.step), b.i64(v)), lanes, mask);
        };
        Value low = half(0);
        store(join(low, hasHigh ? half(1) : b.cstI(low.getType(), 0), lanes), pair, v);
      }
    };
    if (whole) {
      b.loop(b.i64(0), b.i64(layout.run / 2), [&](Value p) { row(p, true); });
      if (layout.run % 2)
        row(b.i64(layout.run / 2), false);
      zeros(llvm::divideCeil(layout.run, 2));
    }
    if (whole < from.columns)
      singly(0, whole);
  }

  void zeros(int64_t firstPair) {
    if (firstPair < pairs())
      b.loop(b.i64(firstPair), b.i64(pairs()), [&](Value p) {
        for (unsigned v = 0; v < vecs(); ++v)
          store(b.cstI(widen(b.getI32Type(), lanes), 0), p, v * lanes);
      });
  }

  /// k lies together: squares of columns and pairs, turned in registers.
  void transposeColumns() {
    auto block = [&](Value k0, Value mask, int64_t count) {
      for (unsigned v = 0; v < vecs(); ++v) {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < lanes; ++i) {
          // a column that does not exist repeats the last one: what it gives is not stored
          int64_t column = std::min<int64_t>(v * lanes + i, from.columns - 1);
          Value bits = load(b.add(b.mul(b.i64(column), from.column), k0), 2 * lanes, mask);
          rows.push_back(vector::BitCastOp::create(b, VectorType::get({lanes}, b.getI32Type()), bits));
        }
        codegen::transposeVectors(b, rows);
        for (int64_t i = 0; i < count; ++i)
          store(rows[i], b.add(b.divU(k0, b.i64(2)), b.i64(i)), v * lanes);
      }
    };
    const int64_t steps = 2 * lanes, whole = layout.run / steps * steps;
    if (whole)
      b.loop(b.i64(0), b.i64(whole), b.i64(steps), [&](Value k0) { block(k0, Value(), lanes); });
    if (whole == layout.run)
      return zeros(whole / 2);
    if (!masked)
      return singly(whole, 0);
    block(b.i64(whole), b.tailMask(b.i64(layout.run - whole), steps), std::min<int64_t>(lanes, pairs() - whole / 2));
    zeros(std::min<int64_t>(pairs(), whole / 2 + lanes));
  }

  /// Pair by pair, from step `firstStep` (an even one) on and from column `firstColumn` on.
  void singly(int64_t firstStep, int64_t firstColumn) {
    Type i32 = b.getI32Type();
    Value columns = b.i64(from.columns), first = b.i64(firstColumn);
    auto forColumns = [&](Value p, llvm::function_ref<Value(Value c)> body) {
      b.loop(first, columns, [&](Value c) { b.storeElem(i32, body(c), to, b.add(b.mul(p, b.i64(layout.panel)), c)); });
    };
    auto half = [&](Value p, Value c, int64_t i) {
      return load(b.add(b.mul(b.add(b.mul(p, b.i64(2)), b.i64(i)), from.step), b.mul(c, from.column)));
    };
    b.loop(b.i64(firstStep / 2), b.i64(layout.run / 2), [&](Value p) {
      forColumns(p, [&](Value c) { return join(half(p, c, 0), half(p, c, 1), 1); });
    });
    if (layout.run % 2) {
      Value p = b.i64(layout.run / 2);
      forColumns(p, [&](Value c) { return join(half(p, c, 0), b.cstI(b.getI16Type(), 0), 1); });
    }
    if (int64_t done = llvm::divideCeil(layout.run, 2); done < pairs())
      b.loop(b.i64(done), b.i64(pairs()), [&](Value p) { forColumns(p, [&](Value) { return b.cstI(i32, 0); }); });
  }

  KernelBuilder &b;
  const AmxLayout &layout;
  const AmxPanelSource &from;
  const int64_t lanes;
  Value to;
  const bool masked; // loads of some elements only are one instruction
};

} // namespace

void packAmxPanel(KernelBuilder &b, const AmxLayout &layout, const AmxPanelSource &from, Value to, unsigned lanes) {
  PanelPacker(b, layout, from, lanes, to).emit();
}

} // namespace lathe::cpu
