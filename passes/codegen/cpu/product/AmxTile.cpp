// Register tiles over operands in groups of four bytes.
//
// Two tiles of rows by two of columns, four accumulators, in tile registers
//   0 1   sums of the first tile of rows      4 5   rows
//   2 3   sums of the second one              6 7   columns of a panel
// The sums go through a buffer that stays in L1 to the epilogue.
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

constexpr unsigned lanes = 16;

AmxTiles::AmxTiles(KernelBuilder &b, const AmxLayout &layout, Epilogue &epilogue, unsigned columnDim)
    : b(b), layout(layout), epilogue(epilogue), columnDim(columnDim) {
  buffer = b.alloca(2 * 16 * layout.panel * 4);
}

void AmxTiles::intrinsic(llvm::StringRef name, ValueRange args) {
  LLVM::CallIntrinsicOp::create(b, b.getStringAttr(name), args);
}

Value AmxTiles::tileNumber(unsigned n) { return b.cstI(b.getI8Type(), n); }

void AmxTiles::begin(unsigned height) {
  // palette 1: bytes of a row from byte 16 on, two bytes each; rows from byte 48 on
  std::string config(64, 0);
  config[0] = 1;
  auto shape = [&](unsigned tile, unsigned rows, unsigned bytes) {
    config[16 + 2 * tile] = static_cast<char>(bytes);
    config[48 + tile] = static_cast<char>(rows);
  };
  for (unsigned t = 0; t < 4; ++t)
    shape(t, height, 64);
  for (unsigned t = 4; t < 6; ++t)
    shape(t, height, layout.step * layout.elemBytes());
  for (unsigned t = 6; t < 8; ++t)
    shape(t, layout.step / layout.group, 64);
  intrinsic("llvm.x86.ldtilecfg", b.constantData(config));
}

void AmxTiles::end() { intrinsic("llvm.x86.tilerelease", {}); }

/// The nest of runs around `body(sum of the left operand's offsets, panel, next)`; `next` may be null.
static void nestRuns(KernelBuilder &b, Type elem, ArrayRef<ReductionLoop> loops, Value aOffset, Value panel, Value next,
                     function_ref<void(Value aOffset, Value panel, Value next)> body) {
  if (loops.empty())
    return body(aOffset, panel, next);
  const ReductionLoop &l = loops.front();
  auto at = [&](Value i) {
    auto move = [&](Value p) { return p ? b.ptrAt(p, elem, b.mul(i, l.bStride)) : p; };
    nestRuns(b, elem, loops.drop_front(), b.add(aOffset, b.mul(i, l.aStride)), move(panel), move(next), body);
  };
  if (constantOf(l.trips) == 1)
    return at(b.i64(0));
  b.loop(b.i64(0), l.trips, at);
}

void AmxTiles::sumTiles(const AmxRows &rows, ArrayRef<Value> a, Value panel, unsigned vecs, ArrayRef<ReductionLoop> outer,
                        Value tile, Value next) {
  Type elem = layout.elem(b), sum = layout.sumElem(b);
  StringRef multiply = !layout.isBytes() ? "llvm.x86.tdpbf16ps" : layout.isUnsigned ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbssd";
  // all groups of tiles together fetch what comes next; many of them would mostly ask for what is there
  std::optional<int64_t> count = constantOf(rows.tiles);
  int64_t prefetchLines = 0;
  if (!count || *count > 32) {
    next = Value();
  } else if (next) {
    prefetchLines = llvm::divideCeil(layout.step * layout.panel / layout.fullStep(), llvm::divideCeil(*count, 2));
    next = b.ptrBytes(next, b.mul(b.divU(tile, b.i64(2)), b.i64(prefetchLines * 64)));
  }
  Value rowBytes = b.mul(rows.rowStride, b.i64(layout.elemBytes())), panelBytes = b.i64(layout.panel * 4);
  for (unsigned r = 0; r < a.size(); ++r)
    for (unsigned v = 0; v < vecs; ++v)
      intrinsic("llvm.x86.tilezero", tileNumber(2 * r + v));
  nestRuns(b, elem, outer, b.i64(0), panel, next, [&](Value aOffset, Value bRun, Value next) {
    auto step = [&](Value k) {
      Value bStep = b.ptrAt(bRun, elem, b.mul(k, b.i64(layout.step * layout.panel)));
      Value aStep = b.add(aOffset, b.mul(k, b.i64(layout.step)));
      for (unsigned r = 0; r < a.size(); ++r) {
        for (unsigned v = 0; v < vecs; ++v) {
          if (r == 0)
            intrinsic("llvm.x86.tileloadd64", {tileNumber(6 + v), b.ptrBytes(bStep, b.i64(v * 64)), panelBytes});
          if (v == 0)
            intrinsic("llvm.x86.tileloadd64", {tileNumber(4 + r), b.ptrAt(a[r], elem, aStep), rowBytes});
          intrinsic(multiply, {tileNumber(2 * r + v), tileNumber(4 + r), tileNumber(6 + v)});
        }
      }
      if (next) {
        // as far behind the start of the next panel as this step is behind that of its own
        Value from = b.ptrAt(next, elem, b.mul(k, b.i64(layout.step * layout.panel)));
        for (int64_t line = 0; line < prefetchLines; ++line)
          LLVM::Prefetch::create(b, b.ptrBytes(from, b.i64(line * 64)), 0, 2, 1);
      }
    };
    int64_t trips = layout.paddedRun() / layout.step;
    if (trips == 1)
      step(b.i64(0));
    else
      b.loop(b.i64(0), b.i64(trips), step);
  });
  for (unsigned r = 0; r < a.size(); ++r)
    for (unsigned v = 0; v < vecs; ++v) {
      Value at = b.ptrAt(buffer, sum, b.i64(r * rows.height * layout.panel + v * lanes));
      intrinsic("llvm.x86.tilestored64", {tileNumber(2 * r + v), at, panelBytes});
    }
}

LogicalResult AmxTiles::finishRow(ArrayRef<Value> index, Value sums, int64_t columns) {
  Type sum = layout.sumElem(b);
  auto piece = [&](Value column, unsigned n) {
    SmallVector<Value> at(index);
    at[columnDim] = b.add(at[columnDim], column);
    return epilogue.emit(at, b.loadElem(sum, sums, column, n), n);
  };
  int64_t done = 0;
  if (epilogue.isVector() && columnDim + 1 == index.size()) {
    if (columns >= 2 * lanes) { // all whole vectors at once
      SmallVector<SmallVector<Value>> indices;
      SmallVector<Value> accs;
      for (; columns - done >= lanes; done += lanes) {
        indices.emplace_back(index).back() = b.add(index.back(), b.i64(done));
        accs.push_back(b.loadElem(sum, sums, b.i64(done), lanes));
      }
      if (failed(epilogue.emitVectors(indices, accs)))
        return failure();
    }
    for (unsigned n = lanes; n >= 4; n /= 2)
      for (; columns - done >= n; done += n)
        if (failed(piece(b.i64(done), n)))
          return failure();
  }
  LogicalResult ok = success();
  if (done < columns)
    b.loop(b.i64(done), b.i64(columns), [&](Value c) {
      if (failed(piece(c, 1)))
        ok = failure();
    });
  return ok;
}

LogicalResult AmxTiles::finish(const AmxRows &rows, Value tile, Value sums, int64_t columns) {
  const auto bounds = rows.bounds(tile);
  const Value first = bounds.first, last = bounds.second;
  LogicalResult ok = success();
  auto sumsAt = [&](Value r, int64_t column) {
    return b.ptrAt(sums, layout.sumElem(b), b.add(b.mul(r, b.i64(layout.panel)), b.i64(column)));
  };
  if (!rows.exists && epilogue.isVector() && columns == 2 * lanes && columnDim + 1 == epilogue.type().getRank()) {
    // two rows of two vectors at once; with an odd number the first one alone
    Value even = b.add(first, b.remU(b.sub(last, first), b.i64(2)));
    auto pair = [&](Value r) {
      SmallVector<SmallVector<Value>> indices;
      SmallVector<Value> accs;
      for (Value row : {r, b.add(r, b.i64(1))})
        for (int64_t column = 0; column < columns; column += lanes) {
          indices.push_back(rows.index(tile, row));
          indices.back().back() = b.add(indices.back().back(), b.i64(column));
          accs.push_back(b.loadElem(layout.sumElem(b), sumsAt(row, column), b.i64(0), lanes));
        }
      if (failed(epilogue.emitVectors(indices, accs)))
        ok = failure();
    };
    if (constantOf(even) != constantOf(first) || !constantOf(first))
      b.ifThen(b.lt(first, even), [&] {
        if (failed(finishRow(rows.index(tile, first), sumsAt(first, 0), columns)))
          ok = failure();
      });
    b.loop(even, last, b.i64(2), pair);
    return ok;
  }
  b.loop(first, last, [&](Value r) {
    auto row = [&] {
      if (failed(finishRow(rows.index(tile, r), sumsAt(r, 0), columns)))
        ok = failure();
    };
    if (rows.exists)
      b.ifThen(rows.exists(tile, r), row);
    else
      row();
  });
  return ok;
}

LogicalResult AmxTiles::emit(const AmxRows &rows, Value tile, unsigned count, Value panel, int64_t columns,
                              ArrayRef<ReductionLoop> outer, Value next) {
  unsigned vecs = llvm::divideCeil(columns, lanes);
  SmallVector<Value> a;
  for (unsigned i = 0; i < count; ++i)
    a.push_back(rows.pointer(b.add(tile, b.i64(i))));
  sumTiles(rows, a, panel, vecs, outer, tile, next);
  LogicalResult ok = success();
  for (unsigned i = 0; i < count; ++i) {
    Value sums = b.ptrAt(buffer, layout.sumElem(b), b.i64(i * rows.height * layout.panel));
    if (failed(finish(rows, b.add(tile, b.i64(i)), sums, columns)))
      ok = failure();
  }
  return ok;
}

void AmxTiles::forEachGroup(const AmxRows &rows, function_ref<void(Value tile, unsigned count)> body) {
  constexpr unsigned atOnce = 2;
  std::optional<int64_t> count = constantOf(rows.tiles);
  Value whole = b.mul(b.divU(rows.tiles, b.i64(atOnce)), b.i64(atOnce));
  if (!count || *count >= atOnce)
    b.loop(b.i64(0), whole, b.i64(atOnce), [&](Value t) { body(t, atOnce); });
  if (!count || *count % atOnce)
    b.ifThen(b.lt(whole, rows.tiles), [&] { body(whole, 1); });
}

} // namespace lathe::cpu
