// Matrix products in tile registers: kernel.dot and 1x1 convolutions marked bf16 or of bytes. Units of work are numbered (batch, block of rows, panel), the panel innermost: the rows of
// a block stay in L2 while the panels pass. Rows that the tiles cannot read in place are copied to scratch once a
// block: f32, of odd length, not contiguous, of unknown number, or 4 KiB apart.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/Product.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

class AmxProductEmitter {
public:
  AmxProductEmitter(KernelBuilder &b, const ProductSpec &spec, const AmxLayout &layout, Epilogue &epilogue)
      : b(b), spec(spec), layout(layout), tiles(b, layout, epilogue, spec.columnDim), aElem(spec.aElem), bElem(spec.bElem) {}
  LogicalResult emit();

private:
  void plan();
  LogicalResult emitBlock(Value group, Value firstPanel, Value lastPanel);
  void copyRows(Value rows);

  KernelBuilder &b;
  const ProductSpec &spec;
  const AmxLayout &layout;
  AmxTiles tiles;

  Type aElem, bElem;
  std::optional<int64_t> m;
  int64_t n = 0, panels = 0;
  Value mValue;
  SmallVector<Value> batchDims;
  bool packed = false, copyA = false;
  unsigned height = 16;
  int64_t tilesPerBlock = 1, pitch = 0;
  AffineExpr blocks;
  Value scratchB;
  // of the block being emitted
  Value aBase;
};

void AmxProductEmitter::plan() {
  packed = spec.panel.has_value();
  m = hlo::constantValue(spec.m);
  mValue = b.dim(spec.m);
  n = *hlo::constantValue(spec.n);
  panels = llvm::divideCeil(n, layout.panel);
  for (AffineExpr e : spec.batch)
    batchDims.push_back(b.dim(e));
  height = AmxTiles::maxHeight;
  int64_t rowTiles = 1;
  if (m) {
    rowTiles = llvm::divideCeil(*m, height);
    height = llvm::divideCeil(*m, rowTiles);
  }
  std::optional<int64_t> row = constantOf(spec.aRow);
  const int64_t bytes = layout.elemBytes();
  bool aliasing = row && *row * bytes % 4096 == 0 && rowTiles * panels > 2;
  copyA = layout.gathered || (!layout.isBytes() && !aElem.isBF16()) || constantOf(spec.aStep) != 1 || !m || aliasing;
  pitch = llvm::alignTo(layout.paddedRun(), layout.fullStep());
  if (pitch * bytes % 4096 == 0)
    pitch += layout.fullStep();

  int64_t tileBytes = layout.paddedRun() * bytes * height, fitting = std::max<int64_t>(2, b.target.ofL2(b.target.l2Rows) / tileBytes);
  tilesPerBlock = m ? std::min(rowTiles, fitting) : std::min<int64_t>(fitting, 16);
  if (m) {
    // enough units for some threads, but tiles that share what is done for a panel
    int64_t units = panels;
    for (AffineExpr e : spec.batch)
      units *= std::max<int64_t>(1, hlo::constantValue(e).value_or(1));
    if (units < 16 && packed)
      tilesPerBlock = std::min(tilesPerBlock, std::max<int64_t>(llvm::divideCeil(rowTiles * units, 16), 8));
    tilesPerBlock += tilesPerBlock % 2;
    blocks = getAffineConstantExpr(llvm::divideCeil(rowTiles, tilesPerBlock), b.getContext());
    tilesPerBlock = std::min(tilesPerBlock, rowTiles);
  } else {
    blocks = hlo::ceilDiv(spec.m, tilesPerBlock * height);
  }
  int64_t scratch = copyA ? tilesPerBlock * height * pitch * bytes : 0;
  scratchB = b.ptrBytes(b.scratch, b.i64(scratch));
  if (!packed)
    scratch += layout.depth() * layout.panel * bytes;
  b.setScratch(scratch);
  // about a fourth of what f32 takes, and half of that
  b.setWork(layout.depth() * layout.panel * height * tilesPerBlock / (4 * layout.group));
  AffineExpr units = blocks * panels;
  for (AffineExpr e : spec.batch)
    units = units * e;
  b.setExtent(hlo::simplify(units));
}

void AmxProductEmitter::copyRows(Value rows) {
  b.loop(b.i64(0), rows, [&](Value r) {
    Value from = b.ptrAt(aBase, aElem, b.mul(r, spec.aRow));
    Value to = b.ptrAt(b.scratch, layout.elem(b), b.mul(r, b.i64(pitch)));
    Value k = b.i64(layout.run);
    if (constantOf(spec.aStep) == 1)
      return copyToRow(b, layout, aElem, from, to, k);
    Type bits = layout.isBytes() ? b.getI8Type() : b.getI16Type();
    b.loop(b.i64(0), k, [&](Value x) {
      Value at = b.mul(x, spec.aStep);
      b.storeElem(bits, layout.isBytes() ? b.loadElem(bits, from, at) : loadBf16Bits(b, aElem, from, at), to, x);
    });
    if (layout.run < layout.paddedRun())
      b.loop(k, b.i64(layout.paddedRun()), [&](Value x) { b.storeElem(bits, b.cstI(bits, 0), to, x); });
  });
}

LogicalResult AmxProductEmitter::emitBlock(Value group, Value firstPanel, Value lastPanel) {
  SmallVector<Value> sizes(batchDims);
  sizes.push_back(b.max(b.dim(blocks), b.i64(1)));
  SmallVector<Value> batchIndex = b.delinearize(group, sizes);
  Value block = batchIndex.pop_back_val();
  Value aOffset = b.i64(0), bOffset = b.i64(0);
  for (auto [i, x] : llvm::enumerate(batchIndex)) {
    aOffset = b.add(aOffset, b.mul(x, spec.aBatchStrides[i]));
    bOffset = b.add(bOffset, b.mul(x, spec.bBatchStrides[i]));
  }
  Value firstRow = b.mul(block, b.i64(tilesPerBlock * height)), h = b.i64(height);
  Value rowCount = b.min(b.i64(tilesPerBlock * height), b.sub(mValue, firstRow));
  aBase = b.ptrAt(b.ptrAt(spec.a, aElem, aOffset), aElem, b.mul(firstRow, spec.aRow));
  Value bBase = b.ptrAt(spec.b, bElem, bOffset);

  AmxRows rows;
  rows.height = height;
  rows.rowStride = copyA ? b.i64(pitch) : spec.aRow;
  rows.tiles = b.divU(b.add(rowCount, b.i64(height - 1)), h);
  if (m && *m == tilesPerBlock * height)
    rows.tiles = b.i64(tilesPerBlock);
  // In place the last tile of all ends with the last row and repeats some of the one before; only new rows are stored.
  bool even = m && *m % height == 0;
  auto firstOf = [&, h](Value tile) {
    Value first = b.mul(tile, h);
    return even || copyA ? first : b.min(first, b.sub(rowCount, h));
  };
  rows.pointer = [&, firstOf](Value tile) {
    return copyA ? b.ptrAt(b.scratch, layout.elem(b), b.mul(firstOf(tile), b.i64(pitch)))
                 : b.ptrAt(aBase, aElem, b.mul(firstOf(tile), spec.aRow));
  };
  rows.bounds = [&, firstOf](Value tile) -> std::pair<Value, Value> {
    if (even)
      return {b.i64(0), h};
    if (copyA)
      return {b.i64(0), b.min(h, b.sub(rowCount, b.mul(tile, h)))};
    return {b.sub(b.mul(tile, h), firstOf(tile)), h};
  };
  Value column;
  rows.index = [&, firstOf](Value tile, Value row) {
    return spec.index(batchIndex, b.add(b.add(firstRow, firstOf(tile)), row), column);
  };
  if (copyA)
    copyRows(rowCount);

  LogicalResult ok = success();
  int64_t panelElements = layout.depth() * layout.panel, full = n / layout.panel;
  auto panelAt = [&](Value p) { return b.ptrAt(bBase, layout.elem(b), b.mul(p, b.i64(panelElements))); };
  auto emit = [&](Value tile, unsigned count, Value panel, int64_t columns, Value next) {
    if (failed(tiles.emit(rows, tile, count, panel, columns, {}, next)))
      ok = failure();
  };
  auto forEachPanel = [&](function_ref<void(Value p, int64_t columns)> body) {
    auto at = [&](Value p, int64_t columns) {
      column = b.mul(p, b.i64(layout.panel));
      body(p, columns);
    };
    if (full)
      b.loop(firstPanel, b.min(lastPanel, b.i64(full)), [&](Value p) { at(p, layout.panel); });
    if (n % layout.panel)
      b.ifThen(b.lt(b.i64(full), lastPanel), [&] { at(b.i64(full), n % layout.panel); });
  };
  if (packed && AmxTiles::rowsFirst(b.target, layout, panels)) {
    tiles.forEachGroup(rows, [&](Value tile, unsigned count) {
      forEachPanel([&](Value p, int64_t columns) { emit(tile, count, panelAt(p), columns, Value()); });
    });
    return ok;
  }
  forEachPanel([&](Value p, int64_t columns) {
    Value from = scratchB, next;
    if (packed) {
      from = panelAt(p);
      next = b.ptrAt(from, layout.elem(b), b.i64(panelElements));
    } else {
      AmxPanelSource source{bElem, b.ptrAt(bBase, bElem, b.mul(column, spec.bColumn)), spec.bStep, spec.bColumn, columns};
      packAmxPanel(b, layout, source, scratchB);
    }
    tiles.forEachGroup(rows, [&](Value tile, unsigned count) { emit(tile, count, from, columns, next); });
  });
  return ok;
}

LogicalResult AmxProductEmitter::emit() {
  plan();
  Value panelCount = b.i64(panels);
  LogicalResult ok = success();
  tiles.begin(height);
  b.loop(b.divU(b.begin, panelCount), b.divU(b.add(b.end, b.i64(panels - 1)), panelCount), [&](Value group) {
    Value base = b.mul(group, panelCount);
    if (failed(emitBlock(group, b.max(b.sub(b.begin, base), b.i64(0)), b.min(b.sub(b.end, base), panelCount))))
      ok = failure();
  });
  tiles.end();
  return ok;
}

} // namespace

LogicalResult emitAmxProduct(KernelBuilder &b, const ProductSpec &spec, const AmxLayout &layout, Epilogue &epilogue) {
  return AmxProductEmitter(b, spec, layout, epilogue).emit();
}

LogicalResult emitAmxDot(kernel::DotOp op, KernelBuilder &b) {
  Epilogue epilogue(b, op);
  return emitAmxProduct(b, dotSpec(op, b), amxLayout(op), epilogue);
}

} // namespace lathe::cpu
