// Matrix products as register tiles over panels of the right operand.
//
// Units of work are numbered (batch, row block, panel), the panel innermost: within a row block the left operand
// stays in L2, and each panel is used for all of the block's tiles while it is hot ("ji" order). A call
// covers a range of units. Per row block the left operand may be copied to scratch (converted, or to break
// cache aliasing); per unit the panel may be packed to scratch.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/product/Format.h"
#include "passes/codegen/cpu/product/Strassen.h"
#include "passes/codegen/cpu/target/Blocking.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

class ProductEmitter {
public:
  ProductEmitter(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue)
      : b(b), spec(spec), epilogue(epilogue), aElem(spec.aElem), bElem(spec.bElem), accElem(spec.accElem), format(formatOf(b.target, spec)) {}
  LogicalResult emit();

private:
  void plan();
  void choosePacking();
  void emitUnits();
  void emitRowBlock(Value group, Value firstPanel, Value lastPanel);
  void emitTiles(Value first, Value last, Value firstPanel, Value lastPanel);
  void emitPanel(Value panel, TileShape shape, Value validColumns);
  void placePanel(TileOperands &operands, ReductionLoop &reduction, const TileShape &shape, Value column, Value validColumns);
  void copyRows();
  void copyGroups(Value from, Value to);
  /// Cache lines for four steps of a panel; of f32, a quarter of the columns.
  int64_t linesOfSteps(int64_t columns) const {
    return format.isInteger() ? llvm::divideCeil(columns * perStep * elemBytes(bElem) * 4, 64) : columns / 4;
  }
  SmallVector<Value> startOf(const TileShape &shape) const;
  void fillStarts(const TileShape &shape, Value rowCount);

  KernelBuilder &b;
  const ProductSpec &spec;
  Epilogue &epilogue;
  LogicalResult ok = success();

  Type aElem, bElem, accElem;
  const OperandFormat format;
  Type operandElem;        // of operands in scratch: the accumulator's, or the format's on the left
  bool grouped = false;    // operands in groups of `perStep`
  int64_t perStep = 1;     // elements of k that a step of a tile takes
  std::optional<int64_t> m, n, k; // static sizes; k: as it is in panels
  Value mValue, nValue, kValue, panels;
  SmallVector<Value> batchDims;
  Value bStep;

  TileShape tile;
  bool packed = false;     // the right operand comes in panels
  bool packB = false;      // panels are packed to scratch
  bool copyA = false;      // row blocks are copied to scratch
  int64_t tailColumns = 0; // static width of the last panel, 0 if full
  RowTiles rows;
  int64_t tilesPerBlock = 1;
  bool staysInL1 = false, exceedsL2 = false; // all of the right operand; by so much that hardly any of it stays
  bool severalPanels = true;                 // of the right operand, or others behind them
  int64_t depthBlock = 0; // steps of k done for all tiles of a panel before the next ones; 0: all at once
  AffineExpr blocks;   // row blocks per batch entry
  Value scratchB;      // panel scratch
  Value scratchC;      // sums of a panel between blocks of k
  Value scratchRow;  // stride of the copied rows
  Value panelHead;   // of the panel being multiplied: what its sums start with, or null

  // of the row block being emitted
  SmallVector<Value> batchIndex;
  Value firstTile, lastTile, blockRow, endRow;
  Value aBase, bBase;
};

void ProductEmitter::plan() {
  m = hlo::constantValue(spec.m);
  n = hlo::constantValue(spec.n);
  k = hlo::constantValue(spec.k);
  mValue = b.dim(spec.m);
  nValue = b.dim(spec.n);
  kValue = b.dim(spec.k);
  operandElem = accElem;
  if (format.isGrouped()) {
    grouped = true;
    perStep = format.group();
    operandElem = format.leftElem(accElem);
    k = *spec.pairedDepth;
    kValue = b.i64(*k);
  }
  for (AffineExpr e : spec.batch)
    batchDims.push_back(b.dim(e));
  tile = productTile(b, spec);
  packed = spec.panel.has_value();
  bStep = packed || grouped ? b.i64(tile.columns()) : spec.bStep;
  choosePacking();
}

/// Very long sums are cut so that a block of the panel stays near: equal blocks of a multiple of four where there are.
static int64_t chooseDepthBlock(int64_t k) {
  if (k <= 1024)
    return 0;
  const int64_t least = llvm::divideCeil(k, 768), most = llvm::divideCeil(k, 256);
  for (int64_t count = least; count <= most; ++count)
    if (k % (4 * count) == 0)
      return k / count;
  int64_t count = least;
  return llvm::alignTo(llvm::divideCeil(k, count), 4);
}

void ProductEmitter::choosePacking() {
  int64_t accBytes = elemBytes(accElem), width = tile.columns(), operandBytes = elemBytes(operandElem);
  int64_t depth = k.value_or(512), panelCount = n ? llvm::divideCeil(*n, width) : 16;
  tailColumns = n ? *n % width : 0;
  panels = n ? b.i64(panelCount) : b.max(b.i64(1), b.divU(b.add(nValue, b.i64(width - 1)), b.i64(width)));

  staysInL1 = !spec.panelsFollow && n && k && panelCount * width * depth * operandBytes <= b.target.l1 / 2;
  severalPanels = panelCount > 1 || !spec.batch.empty() || spec.panelsFollow;
  exceedsL2 = n && k && panelCount * width * depth * operandBytes > 2 * b.target.l2;
  rows = RowTiles(m, tile.rows);
  int64_t tileBytes = std::max<int64_t>(1, depth * rows.height * operandBytes);
  int64_t fitting = std::max<int64_t>(1, b.target.ofL2(b.target.l2Tiles) / tileBytes);
  if (m) {
    int64_t batches = 1;
    for (AffineExpr e : spec.batch)
      batches *= std::max<int64_t>(1, hlo::constantValue(e).value_or(1));
    BlockedWork work;
    work.outer = batches;
    work.rows = rows.numTiles;
    work.panels = panelCount;
    work.rowCycles = depth * rows.height * tile.vecs / (b.target.fmas * perStep);
    work.rowBytes = tileBytes;
    work.panelBytes = depth * width * operandBytes;
    tilesPerBlock = std::max<int64_t>(1, rowsPerBlock(b.target, work, fitting));
    if (spec.plan.block && b.target.threads <= 1)
      tilesPerBlock = std::clamp<int64_t>(*spec.plan.block, 1, std::max<int64_t>(1, rows.numTiles));
    if (spec.tiles)
      tilesPerBlock = spec.tiles->atOnce;
    blocks = getAffineConstantExpr(llvm::divideCeil(rows.numTiles, tilesPerBlock), b.getContext());
  } else {
    tilesPerBlock = std::min<int64_t>(fitting, 16);
    blocks = hlo::ceilDiv(spec.m, tilesPerBlock * rows.height);
  }

  if (k && tile.lanes > 1 && tilesPerBlock > 1 && tile.steps == 1)
    depthBlock = !spec.plan.depth ? perStep * chooseDepthBlock(*k / perStep) : *spec.plan.depth < *k ? *spec.plan.depth : 0;

  chooseSpecial(b, grouped ? "product-groups" : depthBlock ? "product-deep" : packed ? "product-packed" : "product", WhyNot::none());

  bool narrowB = memType(bElem) != memType(accElem);
  bool masked = tailColumns % tile.lanes != 0;
  bool manyTiles = !m || tilesPerBlock >= 3;
  packB = !packed && tile.lanes > 1 &&
          (grouped || tile.steps > 1 || constantOf(spec.bColumn) != 1 || !n || manyTiles ||
           (masked && !b.target.hasMaskedMemory(bElem)) || (narrowB && rows.numTiles > 1));

  // Narrow left operands are converted once per block. Rows a multiple of 4 KiB apart fall in the same L1 sets.
  bool narrowA = !isa<ComplexType>(aElem) && memType(aElem) != memType(operandElem);
  std::optional<int64_t> row = constantOf(spec.aRow);
  bool aliasing = row && constantOf(spec.aStep) == 1 && *row * elemBytes(aElem) % 4096 == 0 && (!m || *m >= 8) &&
                  panelCount >= 4;
  copyA = spec.aRowStart || spec.fillRow || (tile.lanes > 1 && (narrowA || aliasing));
  copyA |= grouped && (format.biased || constantOf(spec.aStep) != 1 || k != hlo::constantValue(spec.k));

  AffineExpr scratch = getAffineConstantExpr(0, b.getContext());
  if (copyA) {
    const int64_t line = 64 / operandBytes;
    AffineExpr rowElements = hlo::ceilDiv(grouped ? getAffineConstantExpr(*k, b.getContext()) : spec.k, line) * line + line;
    scratchRow = b.dim(hlo::simplify(rowElements));
    scratch = scratch + rowElements * (tilesPerBlock * rows.height * operandBytes);
  }
  if (depthBlock) {
    scratchC = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
    scratch = scratch + tilesPerBlock * rows.height * width * accBytes;
  }
  scratchB = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
  if (packB)
    scratch = scratch + (grouped ? getAffineConstantExpr(*k, b.getContext()) : spec.k) * (width * operandBytes);
  b.setScratch(hlo::simplify(scratch));
  // a few rows wait for the panel rather than for arithmetic, even where it lies in L2
  b.setWork(b.multiplyAddWork(depth * width * std::max<int64_t>(rows.height * tilesPerBlock, 4) / perStep));
  AffineExpr units = blocks * hlo::ceilDiv(spec.n, width);
  for (AffineExpr e : spec.batch)
    units = units * e;
  b.setExtent(hlo::simplify(units));
}

void ProductEmitter::emitUnits() {
  if (const auto &range = spec.tiles) {
    aBase = spec.a;
    bBase = spec.b;
    batchIndex = range->batch;
    b.loop(range->first, range->last, b.i64(range->atOnce), [&](Value first) {
      emitTiles(first, b.min(b.add(first, b.i64(range->atOnce)), range->last), b.i64(0), panels);
    });
    return;
  }
  Value firstGroup = b.divU(b.begin, panels);
  Value lastGroup = b.divU(b.add(b.end, b.sub(panels, b.i64(1))), panels);
  b.loop(firstGroup, lastGroup, [&](Value group) {
    Value base = b.mul(group, panels);
    Value firstPanel = b.max(b.sub(b.begin, base), b.i64(0));
    Value lastPanel = b.min(b.sub(b.end, base), panels);
    emitRowBlock(group, firstPanel, lastPanel);
  });
}

void ProductEmitter::emitRowBlock(Value group, Value firstPanel, Value lastPanel) {
  SmallVector<Value> sizes(batchDims);
  sizes.push_back(b.max(b.dim(blocks), b.i64(1)));
  batchIndex = b.delinearize(group, sizes);
  Value block = batchIndex.pop_back_val();
  std::tie(aBase, bBase) = operandsOf(b, spec, batchIndex);
  // positions: tiles when the number of rows is static, else rows
  if (m) {
    auto first = [&](Value i) { return firstOfBlock(b, i, *hlo::constantValue(blocks), rows.numTiles); };
    emitTiles(first(block), first(b.add(block, b.i64(1))), firstPanel, lastPanel);
    return;
  }
  Value perBlock = b.i64(tilesPerBlock * rows.height), first = b.mul(block, perBlock);
  emitTiles(first, b.min(b.add(first, perBlock), mValue), firstPanel, lastPanel);
}

void ProductEmitter::emitTiles(Value first, Value last, Value firstPanel, Value lastPanel) {
  firstTile = first;
  lastTile = last;
  blockRow = rows.rowAt(b, firstTile);
  if (copyA)
    copyRows();

  Value width = b.i64(tile.columns());
  Value full = b.divU(nValue, width); // panels without tail
  if (!n || *n >= tile.columns())
    b.loop(firstPanel, b.min(lastPanel, full), [&](Value p) { emitPanel(p, tile, Value()); });
  if (n && !tailColumns)
    return;
  TileShape shape = tile;
  if (n)
    shape.vecs = llvm::divideCeil(tailColumns * tile.steps, tile.lanes);
  Value valid = b.remU(nValue, width);
  Value here = b.both(b.lt(full, lastPanel), b.ge(full, firstPanel));
  if (!n)
    here = b.both(here, b.lt(b.i64(0), valid));
  b.ifThen(here, [&] { emitPanel(full, shape, valid); });
}

void ProductEmitter::copyRows() {
  b.loop(b.i64(0), b.sub(rows.rowAt(b, lastTile), blockRow), [&](Value r) {
    Value row = b.add(blockRow, r);
    Value to = b.ptrAt(b.scratch, operandElem, b.mul(r, scratchRow));
    if (spec.fillRow)
      return spec.fillRow(row, to);
    Value from = b.ptrAt(aBase, aElem, spec.aRowStart ? spec.aRowStart(row) : b.mul(row, spec.aRow));
    if (grouped)
      return copyGroups(from, to);
    if (constantOf(spec.aStep) == 1)
      return copyRun(b, aElem, from, accElem, to, kValue);
    b.loop(b.i64(0), kValue, [&](Value x) {
      Value v = b.loadElem(aElem, from, b.mul(x, spec.aStep));
      b.storeElem(accElem, toAccumulator(b, v, aElem, accElem), to, x);
    });
  });
}

/// A row in the format. Bf16 has zeros up to the depth of the panels; of integers what meets the panels' zeros there is never seen.
void ProductEmitter::copyGroups(Value from, Value to) {
  if (format.isInteger()) {
    if (constantOf(spec.aStep) == 1)
      return copyToFormat(b, format, accElem, aElem, from, to, b.dim(spec.k));
    return b.loop(b.i64(0), b.dim(spec.k), [&](Value x) {
      copyToFormat(b, format, accElem, aElem, b.ptrAt(from, aElem, b.mul(x, spec.aStep)), b.ptrAt(to, operandElem, x), b.i64(1));
    });
  }
  Type i16 = b.getI16Type();
  const int64_t run = *hlo::constantValue(spec.k);
  if (constantOf(spec.aStep) == 1)
    copyToBf16(b, aElem, from, to, b.i64(run));
  else
    b.loop(b.i64(0), b.i64(run), [&](Value x) { b.storeElem(i16, loadBf16Bits(b, aElem, from, b.mul(x, spec.aStep)), to, x); });
  if (int64_t end = constantOf(spec.aStep) == 1 ? llvm::alignTo(run, 32) : run; end < *k)
    zeroRun(b, i16, b.ptrAt(to, operandElem, b.i64(end)), b.i64(*k - end));
}

/// Where the panel at `column` lies, or a copy of it; for those that are packed here.
void ProductEmitter::placePanel(TileOperands &operands, ReductionLoop &reduction, const TileShape &shape, Value column,
                                Value validColumns) {
  if (packed) {
    operands.b = b.ptrAt(bBase, bElem, b.mul(column, format.biased ? b.i64(*k + format.headSteps()) : kValue));
    if (format.biased) {
      panelHead = operands.b;
      operands.b = b.ptrAt(operands.b, bElem, b.i64(format.headSteps() * tile.columns()));
    }
  } else {
    operands.b = b.ptrAt(bBase, bElem, b.mul(column, spec.bColumn));
    if (grouped) {
      AmxLayout layout;
      layout.panel = tile.columns();
      layout.run = *hlo::constantValue(spec.k);
      layout.step = *k;
      AmxPanelSource source{bElem, operands.b, spec.bStep, spec.bColumn, validColumns ? tailColumns : tile.columns()};
      packAmxPanel(b, layout, source, scratchB, format.isInteger() ? tile.lanes : 16);
      operands.b = scratchB;
    } else if (packB) {
      packPanel(b, shape, accElem, {bElem, operands.b, kValue, spec.bStep, spec.bColumn, validColumns}, scratchB);
      operands.b = scratchB;
      reduction.bStride = b.i64(shape.columns());
    } else if (validColumns && tailColumns % shape.lanes) {
      operands.bTailMask = b.tailMask(b.i64(tailColumns % shape.lanes), shape.lanes);
    }
  }
}

/// What the sums of a tile start with; nothing where it is zeros.
SmallVector<Value> ProductEmitter::startOf(const TileShape &shape) const {
  return panelHead ? loadHead(b, shape, accElem, panelHead) : SmallVector<Value>();
}

/// The same for all rows of sums in scratch.
void ProductEmitter::fillStarts(const TileShape &shape, Value rowCount) {
  if (!panelHead)
    return zeroRun(b, accElem, scratchC, b.mul(rowCount, b.i64(shape.columns())));
  TileShape row = shape;
  row.rows = 1;
  b.loop(b.i64(0), rowCount, [&](Value r) {
    storeTile(b, row, accElem, startOf(row), b.ptrAt(scratchC, accElem, b.mul(r, b.i64(shape.columns()))));
  });
}

void ProductEmitter::emitPanel(Value panel, TileShape shape, Value validColumns) {
  Value column = b.mul(panel, b.i64(tile.columns()));
  TileOperands operands;
  operands.aElem = copyA ? operandElem : aElem;
  operands.bElem = packB ? operandElem : bElem;
  operands.pairs = grouped;
  operands.aRowStride = copyA ? scratchRow : spec.aRow;
  Value steps = b.divU(kValue, b.i64(perStep));
  ReductionLoop reduction{steps, copyA ? b.i64(perStep) : b.mul(spec.aStep, b.i64(perStep)), b.mul(bStep, b.i64(perStep))};
  placePanel(operands, reduction, shape, column, validColumns);
  if (shape.steps > 1) {
    Value steps = b.i64(shape.steps);
    reduction = {b.divU(kValue, steps), steps, b.mul(reduction.bStride, steps)};
    operands.lastSteps = *k % shape.steps;
    if (!validColumns && shape.folded().columns() != shape.columns())
      validColumns = b.i64(shape.columns());
  }
  auto indexFrom = [&](Value row) {
    return [&, row](Value r) { return spec.index(batchIndex, b.add(row, r), column); };
  };
  auto tileAt = [&](unsigned height, Value row) {
    TileShape s = shape;
    s.rows = height;
    operands.a = copyA ? b.ptrAt(b.scratch, operandElem, b.mul(b.sub(row, blockRow), scratchRow))
                       : b.ptrAt(aBase, aElem, b.mul(row, spec.aRow));
    return s;
  };
  const int64_t width = shape.columns();
  if (!depthBlock) {
    const bool streams = spec.resultRow && spec.columnDim + 1 == epilogue.type().getRank();
    // the tiles of a panel together fetch the panel that comes next: the first one behind the last, for the
    // next block
    Value next;
    if (packed && rows.numTiles > 1 && !staysInL1 && severalPanels) {
      next = b.ptrAt(operands.b, bElem, b.mul(kValue, bStep));
      if (!spec.panelsFollow && spec.batch.empty())
        next = b.select(b.lt(b.add(panel, b.i64(1)), panels), next, bBase);
    }
    operands.prefetchLines = llvm::divideCeil(linesOfSteps(shape.columns()), tilesPerBlock);
    // One tile waits for the panel, and what processors fetch ahead by themselves starts anew in each page. From memory it is
    // faster without.
    const bool fetchAhead =
        b.target.weightsInCache && b.target.fmas > 1; // Zen 4 reads 100 GB/s without, 79 with
    operands.ahead = fetchAhead && packed && rows.numTiles == 1 && exceedsL2 ? 4096 : 0;
    rows.forEach(b, firstTile, lastTile, [&](unsigned height, Value row) {
      TileShape s = tileAt(height, row);
      if (next) {
        Value share = b.mul(b.divU(steps, b.i64(4)), b.i64(64 * operands.prefetchLines));
        operands.prefetch = b.ptrBytes(next, b.mul(b.divU(b.sub(row, blockRow), b.i64(rows.low)), share));
      }
      operands.streams.clear();
      if (const auto &more = spec.fetched)
        operands.streams.push_back(
            {b.ptrBytes(more->first, b.mul(row, more->rowBytes)), more->rowBytes, more->bytes});
      if (streams) {
        const int64_t ahead = k ? rowsAhead(b.target, s, *k / perStep) : 0;
        SmallVector<Value> at = spec.index(batchIndex, row, column);
        for (const Epilogue::Stream &stream : epilogue.streams()) {
          Value rowBytes = epilogue.streamStep(stream, spec.resultRow), first = epilogue.streamAt(stream, at);
          operands.streams.push_back(
              {b.ptrBytes(first, b.mul(rowBytes, b.i64(ahead))), rowBytes, elemBytes(stream.elem) * width});
        }
      }
      SmallVector<Value> accs = emitTile(b, s, accElem, operands, reduction, startOf(s));
      if (failed(epilogue.emitTile(s.folded(), accs, spec.columnDim, validColumns, indexFrom(row))))
        ok = failure();
    });
    return;
  }
  Value rowCount = b.sub(rows.rowAt(b, lastTile), blockRow);
  fillStarts(shape, rowCount);
  Value bFirst = operands.b, rowOfA = copyA ? b.i64(1) : spec.aStep, rowOfB = packB && !grouped ? b.i64(shape.columns()) : bStep;
  b.loop(b.i64(0), kValue, b.i64(depthBlock), [&](Value k0) {
    Value left = *k % depthBlock ? b.min(b.i64(depthBlock), b.sub(kValue, k0)) : b.i64(depthBlock);
    reduction.trips = b.divU(left, b.i64(perStep));
    operands.b = b.ptrAt(bFirst, operands.bElem, b.mul(k0, rowOfB));
    Value next = packed ? b.ptrAt(operands.b, bElem, b.mul(b.i64(depthBlock), rowOfB)) : Value();
    // all tiles together fetch the block that comes next
    operands.prefetchLines = llvm::divideCeil(linesOfSteps(width), tilesPerBlock);
    rows.forEach(b, firstTile, lastTile, [&](unsigned height, Value row) {
      TileShape s = tileAt(height, row);
      if (next) {
        Value done = b.mul(b.divU(b.sub(row, blockRow), b.i64(rows.low)), b.i64(depthBlock / (4 * perStep) * 64 * operands.prefetchLines));
        operands.prefetch = b.ptrBytes(next, done);
      }
      operands.a = b.ptrAt(operands.a, operands.aElem, b.mul(k0, rowOfA));
      Value sums = b.ptrAt(scratchC, accElem, b.mul(b.sub(row, blockRow), b.i64(shape.columns())));
      addToTile(b, s, accElem, emitTile(b, s, accElem, operands, reduction), sums);
    });
  });
  if (failed(epilogue.emitBuffered(shape, scratchC, rowCount, spec.columnDim, validColumns, indexFrom(blockRow))))
    ok = failure();
}

LogicalResult ProductEmitter::emit() {
  SmallVector<AffineExpr> sizes(spec.batch);
  sizes.append({spec.m, spec.n});
  for (AffineExpr e : sizes)
    if (hlo::constantValue(e) == 0) {
      b.setExtent(getAffineConstantExpr(0, b.getContext()));
      return success();
    }
  plan();
  emitUnits();
  return ok;
}

} // namespace

std::pair<Value, Value> operandsOf(KernelBuilder &b, const ProductSpec &spec, ValueRange batchIndex) {
  Value aOffset = b.i64(0), bOffset = b.i64(0);
  for (auto [i, x] : llvm::enumerate(batchIndex)) {
    aOffset = b.add(aOffset, b.mul(x, spec.aBatchStrides[i]));
    bOffset = b.add(bOffset, b.mul(x, spec.bBatchStrides[i]));
  }
  return {b.ptrAt(spec.a, spec.aElem, aOffset), b.ptrAt(spec.b, spec.bElem, bOffset)};
}

TileShape productTile(KernelBuilder &b, const ProductSpec &spec) {
  std::optional<int64_t> m = hlo::constantValue(spec.m), n = hlo::constantValue(spec.n),
                         k = hlo::constantValue(spec.k);
  if (spec.panel || spec.pairedDepth) {
    const OperandFormat format = formatOf(b.target, spec);
    const KernelTarget target = tileTarget(b.target, format);
    const int64_t panel = spec.panel          ? *spec.panel
                          : format.isInteger() ? chooseTile(target, spec.accElem, m, n, spec.plan).columns()
                          : *n <= 16           ? 16
                                               : 32;
    return panelTile(target, spec.accElem, panel, m, spec.plan, spec.interleaved);
  }
  TileShape tile = chooseTile(b.target, spec.accElem, m, n, spec.plan);
  // with fewer rows the copy, which a packed operand does not need, would cost more than it brings
  if (m && n && k && *m >= 32 && !spec.plan.vecs && constantOf(spec.aStep) == 1)
    chooseSpecial(b, "few-columns", whyNotFewColumns(b.target, {spec.aElem, spec.bElem, spec.accElem}, m, *n, *k, /*padded=*/false, tile));
  return tile;
}

LogicalResult emitProduct(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue) {
  return spec.strassen ? emitStrassen(b, spec, epilogue) : ProductEmitter(b, spec, epilogue).emit();
}

} // namespace lathe::cpu
