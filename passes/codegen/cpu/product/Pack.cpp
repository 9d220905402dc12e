// Copies to scratch: panels of a right operand that was not packed at compile time, rows, windows, zeros.
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/library/Fft.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::cpu {

SmallVector<Value> stridesOf(KernelBuilder &b, RankedTensorType type, int64_t row) {
  SmallVector<Value> dims = b.rowDims(type, row), strides(dims.size());
  Value s = b.i64(1);
  for (int64_t i = dims.size() - 1; i >= 0; --i) {
    strides[i] = s;
    s = b.mul(s, dims[i]);
  }
  return strides;
}

static Value roundDown(KernelBuilder &b, Value v, int64_t multiple) {
  return b.mul(b.divU(v, b.i64(multiple)), b.i64(multiple));
}

/// A loop that is left away when it is known to have no iterations.
static void loopIfAny(KernelBuilder &b, Value lo, Value hi, int64_t step, function_ref<void(Value)> body) {
  if (constantOf(lo) && constantOf(hi) && *constantOf(lo) >= *constantOf(hi))
    return;
  b.loop(lo, hi, b.i64(step), body);
}

void copyRun(KernelBuilder &b, Type fromElem, Value from, Type toElem, Value to, Value count) {
  unsigned lanes = b.target.lanes(toElem);
  auto copy = [&](Value x, unsigned n) {
    b.storeElem(toElem, toAccumulator(b, b.loadElem(fromElem, from, x, n), fromElem, toElem), to, x);
  };
  Value done = b.i64(0);
  if (lanes > 1) {
    done = roundDown(b, count, lanes);
    loopIfAny(b, b.i64(0), done, lanes, [&](Value x) { copy(x, lanes); });
  }
  loopIfAny(b, done, count, 1, [&](Value x) { copy(x, 1); });
}

void zeroRun(KernelBuilder &b, Type elem, Value to, Value count) {
  unsigned lanes = b.target.lanes(elem);
  Value done = b.i64(0);
  if (lanes > 1) {
    done = roundDown(b, count, lanes);
    loopIfAny(b, b.i64(0), done, lanes, [&](Value x) { b.storeElem(elem, b.cst(regType(elem, lanes), 0.0), to, x); });
  }
  loopIfAny(b, done, count, 1, [&](Value x) { b.storeElem(elem, b.cst(regType(elem), 0.0), to, x); });
}

void fillWindow(KernelBuilder &b, ArrayRef<CopiedDim> dims, Value image, Value channels, Type elem, Value to,
                function_ref<void(Value from, Value to, Value count)> copy, function_ref<void(Value to, Value count)> zeros) {
  const CopiedDim &last = dims.back();
  Value zero = b.i64(0), low = zero, high = last.taps;
  if (last.leaves) {
    low = b.min(b.max(b.sub(zero, last.start), zero), last.taps);
    high = b.max(low, b.min(last.taps, b.sub(last.in, last.start)));
  }
  Value run = b.mul(last.taps, channels);
  SmallVector<Value> outer;
  for (const CopiedDim &d : dims.drop_back())
    outer.push_back(d.taps);
  b.nest(outer, [&](ValueRange tap) {
    Value inside, from = image, index = zero;
    for (auto [d, t] : llvm::zip(dims, tap)) {
      Value y = b.add(d.start, b.mul(t, b.i64(d.dilation)));
      if (d.leaves) {
        Value valid = b.inRange(y, zero, d.in);
        inside = inside ? b.both(inside, valid) : valid;
      }
      from = b.add(b.mul(from, d.in), y);
      index = b.add(b.mul(index, d.taps), t);
    }
    Value row = b.ptrAt(to, elem, b.mul(index, run));
    auto at = [&](Value x) { return b.ptrAt(row, elem, b.mul(x, channels)); };
    auto count = [&](Value first, Value end) { return b.mul(b.sub(end, first), channels); };
    auto taps = [&] {
      if (last.leaves)
        zeros(at(zero), count(zero, low));
      Value pixel = b.add(b.mul(from, last.in), b.add(last.start, low));
      copy(b.mul(pixel, channels), at(low), count(low, high));
      if (last.leaves)
        zeros(at(high), count(high, last.taps));
      return SmallVector<Value>();
    };
    if (!inside)
      taps();
    else
      b.ifElse(inside, TypeRange{}, taps, [&] {
        zeros(at(zero), count(zero, last.taps));
        return SmallVector<Value>();
      });
  });
}

/// Square blocks of a panel whose k runs along memory, transposed in registers.
static void transposeBlocks(KernelBuilder &b, TileShape shape, Type accElem, const PanelSource &from, Value mainK, Value to) {
  const unsigned lanes = shape.lanes;
  b.loop(b.i64(0), mainK, b.i64(lanes), [&](Value k0) {
    b.loop(b.i64(0), b.i64(shape.vecs), [&](Value v) {
      SmallVector<Value> rows;
      Value column = b.mul(v, b.i64(lanes));
      for (unsigned i = 0; i < lanes; ++i) {
        Value at = b.add(b.mul(b.add(column, b.i64(i)), from.column), k0);
        rows.push_back(toAccumulator(b, b.loadElem(from.elem, from.pointer, at, lanes), from.elem, accElem));
      }
      codegen::transposeVectors(b, rows);
      for (unsigned i = 0; i < lanes; ++i)
        b.storeElem(accElem, rows[i], to, b.add(b.mul(b.add(k0, b.i64(i)), b.i64(shape.columns())), column));
    });
  });
}

/// Panels of interleaved steps: [k / steps][columns][steps].
static void packInterleaved(KernelBuilder &b, TileShape shape, Type accElem, const PanelSource &from,
                            Value to) {
  const int64_t width = shape.columns(), steps = shape.steps, each = shape.lanes / steps;
  const int64_t valid = from.validColumns ? constantOf(from.validColumns).value_or(0) : width;
  const int64_t wholes = each > 1 && constantOf(from.column) == 1 ? valid / each * each : 0;
  b.loop(b.i64(0), from.k, b.i64(steps), [&](Value k0) {
    Value group = b.ptrAt(to, accElem, b.mul(k0, b.i64(width)));
    for (int64_t c = 0; c < wholes; c += each) {
      SmallVector<Value> parts; // of each step; then of twice as many, interleaved
      for (int64_t s = 0; s < steps; ++s)
        parts.push_back(b.loadElem(from.elem, from.pointer,
                                   b.add(b.mul(b.add(k0, b.i64(s)), from.step), b.i64(c)), each));
      for (int64_t length = each; parts.size() > 1; length *= 2) {
        // steps half of all apart come together first, so that the last round puts the odd ones between the
        // even ones
        SmallVector<int64_t> pick;
        for (int64_t i = 0; i < length; ++i)
          pick.append({i, length + i});
        SmallVector<Value> next;
        for (size_t i = 0; i < parts.size() / 2; ++i)
          next.push_back(vector::ShuffleOp::create(b, parts[i], parts[i + parts.size() / 2], pick));
        parts = std::move(next);
      }
      b.storeElem(accElem, parts[0], group, b.i64(c * steps));
    }
    for (int64_t s = 0; s < steps; ++s) {
      Value row = b.mul(b.add(k0, b.i64(s)), from.step);
      auto place = [&](Value c) { return b.add(b.mul(c, b.i64(steps)), b.i64(s)); };
      loopIfAny(b, b.i64(wholes), b.i64(valid), 1, [&](Value c) {
        b.storeElem(accElem, b.loadElem(from.elem, from.pointer, b.add(row, b.mul(c, from.column))), group,
                    place(c));
      });
      loopIfAny(b, b.i64(valid), b.i64(width), 1,
                [&](Value c) { b.storeElem(accElem, b.cst(accElem, 0.0), group, place(c)); });
    }
  });
}

void packPanel(KernelBuilder &b, TileShape shape, Type accElem, const PanelSource &from, Value to) {
  if (shape.steps > 1)
    return packInterleaved(b, shape, accElem, from, to);
  const int64_t width = shape.columns();
  auto element = [&](Value kk, Value c) {
    Value x = b.loadElem(from.elem, from.pointer, b.add(b.mul(kk, from.step), b.mul(c, from.column)));
    b.storeElem(accElem, toAccumulator(b, x, from.elem, accElem), to, b.add(b.mul(kk, b.i64(width)), c));
  };
  auto vectorAt = [&](Value kk, Value column, Value mask) {
    Value x = b.loadElem(from.elem, from.pointer, b.add(b.mul(kk, from.step), column), shape.lanes, mask);
    b.storeElem(accElem, toAccumulator(b, x, from.elem, accElem), to, b.add(b.mul(kk, b.i64(width)), column));
  };
  bool contiguous = constantOf(from.column) == 1;
  std::optional<int64_t> valid = from.validColumns ? constantOf(from.validColumns) : std::optional<int64_t>(width);
  if (valid == width && !contiguous && constantOf(from.step) == 1) {
    Value mainK = roundDown(b, from.k, shape.lanes);
    if (constantOf(mainK) != 0)
      transposeBlocks(b, shape, accElem, from, mainK, to);
    loopIfAny(b, mainK, from.k, 1, [&](Value kk) { b.loop(b.i64(0), b.i64(width), [&](Value c) { element(kk, c); }); });
    return;
  }
  Value zero = b.cst(regType(accElem, shape.lanes), 0.0);
  b.loop(b.i64(0), from.k, [&](Value kk) {
    Value done = b.i64(0);
    if (contiguous && valid) {
      int64_t wholes = *valid / shape.lanes;
      for (int64_t v = 0; v < wholes; ++v)
        vectorAt(kk, b.i64(v * shape.lanes), Value());
      done = b.i64(wholes * shape.lanes);
      if (int64_t rest = *valid % shape.lanes; rest && b.target.hasMaskedMemory(from.elem)) {
        vectorAt(kk, done, b.tailMask(b.i64(rest), shape.lanes));
        done = b.i64((wholes + 1) * shape.lanes);
      }
    } else if (contiguous) {
      done = roundDown(b, from.validColumns, shape.lanes);
      b.loop(b.i64(0), done, b.i64(shape.lanes), [&](Value c) { vectorAt(kk, c, Value()); });
    }
    if (valid != width)
      loopIfAny(b, done, b.i64(width), shape.lanes,
                [&](Value c) { b.storeElem(accElem, zero, to, b.add(b.mul(kk, b.i64(width)), c)); });
    loopIfAny(b, done, valid ? b.i64(*valid) : from.validColumns, 1, [&](Value c) { element(kk, c); });
  });
}

void packPanels(KernelBuilder &b, TileShape shape, Type accElem, const PanelSource &from, int64_t n,
                Value to) {
  const int64_t width = shape.columns(), full = n / width, tail = n % width;
  auto pack = [&](Value panel, Value valid) {
    Value column = b.mul(panel, b.i64(width));
    PanelSource source = from;
    source.pointer = b.ptrAt(from.pointer, from.elem, b.mul(column, from.column));
    source.validColumns = valid;
    packPanel(b, shape, accElem, source, b.ptrAt(to, accElem, b.mul(column, from.k)));
  };
  loopIfAny(b, b.i64(0), b.i64(full), 1, [&](Value panel) { pack(panel, Value()); });
  if (tail)
    pack(b.i64(full), b.i64(tail));
}

int64_t panelBytes(TileShape shape, Type accElem, int64_t n, int64_t k) {
  return llvm::alignTo(n, shape.columns()) * k * elemBytes(accElem);
}

} // namespace lathe::cpu
