// kernel.attention: for each block of rows of each entry of the batch, the scores go to scratch, their rows
// are computed in place, and the second product reads them there.
//
// The right operands of an entry, keys and values, are packed in panels when a call comes to its first block:
// all of its rows read them.
#include "passes/codegen/cpu/passes/Attention.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/cpu/rows/Rows.h"
#include "passes/codegen/cpu/target/Blocking.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// One of the products.
struct Part {
  kernel::DotOp dot;
  ProductSpec spec; ///< with the right operand as it is
  TileShape tile;
  int64_t n = 0, k = 0;
  Value panels; ///< of the right operand, of the entry at hand

  int64_t bytes() const { return llvm::alignTo(panelBytes(tile, spec.accElem, n, k), 64); }
};

class AttentionEmitter {
public:
  AttentionEmitter(kernel::AttentionOp op, KernelBuilder &b)
      : b(b), op(op), operands(b.operands), results(b.results), begin(b.begin), end(b.end),
        scratch(b.scratch), full(cast<RankedTensorType>(op.getScoresArg().getType())),
        m(full.getShape().drop_back().back()), stride(scoreStride(full.getShape().back())) {}
  LogicalResult emit();

private:
  Part makePart(kernel::DotOp dot, Value lhsRow);
  SmallVector<Value> pointersOf(Operation *inner, Value scores) const;
  SmallVector<Value> entryIndex(const Part &part) {
    SmallVector<Value> dims;
    for (AffineExpr e : part.spec.batch)
      dims.push_back(b.dim(e));
    return b.delinearize(entry, dims);
  }
  void pack(Part &part);
  void emitBlock(Value block);
  void emitPart(const Part &part, Value lhs, Value rowStride);

  KernelBuilder &b;
  kernel::AttentionOp op;
  const SmallVector<Value> operands, results;
  const Value begin, end, scratch;
  RankedTensorType full; ///< of the scores
  int64_t m, stride;
  Part scores, product;
  RowTiles tiles; ///< of the rows of an entry, for both products
  int64_t blocks = 1, tilesEach = 1;
  Value scoreRows, innerScratch; ///< in scratch
  // of the block being emitted
  Value entry, firstTile, lastTile;
  int64_t innerBytes = 0, work = 0;
  LogicalResult ok = success();
};

/// Pointers to the operands of an op of the region, `scores` for the one that is none of the kernel's.
SmallVector<Value> AttentionEmitter::pointersOf(Operation *inner, Value scores) const {
  SmallVector<Value> pointers;
  for (Value v : inner->getOperands()) {
    auto arg = dyn_cast<BlockArgument>(v);
    pointers.push_back(arg ? operands[arg.getArgNumber()] : scores);
  }
  return pointers;
}

Part AttentionEmitter::makePart(kernel::DotOp dot, Value lhsRow) {
  Part part;
  part.dot = dot;
  b.operands = pointersOf(dot, scratch);
  part.spec = dotSpec(dot, b);
  if (lhsRow)
    part.spec.aRow = lhsRow;
  part.tile = productTile(b, part.spec);
  part.n = *hlo::constantValue(part.spec.n);
  part.k = *hlo::constantValue(part.spec.k);
  return part;
}

void AttentionEmitter::pack(Part &part) {
  const ProductSpec &spec = part.spec;
  Value first = operandsOf(b, spec, entryIndex(part)).second;
  packPanels(b, part.tile, spec.accElem,
             {spec.bElem, first, b.i64(part.k), spec.bStep, spec.bColumn, Value()}, part.n, part.panels);
}

/// The block's rows of a product, with `lhs` where the entry's left operand starts; `rowStride` of the
/// result, if it is not dense.
void AttentionEmitter::emitPart(const Part &part, Value lhs, Value rowStride) {
  ProductSpec spec = part.spec;
  spec.a = lhs;
  spec.b = part.panels;
  spec.bElem = spec.accElem;
  spec.panel = part.tile.columns();
  spec.interleaved = part.tile.steps;
  spec.tiles = {firstTile, lastTile, tilesEach, entryIndex(part)};
  Epilogue epilogue(b, part.dot);
  if (rowStride) {
    epilogue.setRowStride(rowStride);
    spec.resultRow = Value(); // rows of scratch need no fetching ahead
  }
  if (failed(emitProduct(b, spec, epilogue)))
    ok = failure();
  innerBytes = std::max(innerBytes, b.attribute("kernel.scratch"));
  work += b.attribute("kernel.work") * llvm::divideCeil(part.n, part.tile.columns());
}

void AttentionEmitter::emitBlock(Value block) {
  firstTile = firstOfBlock(b, block, blocks, tiles.numTiles);
  lastTile = firstOfBlock(b, b.add(block, b.i64(1)), blocks, tiles.numTiles);
  Value firstRow = tiles.rowAt(b, firstTile), lastRow = tiles.rowAt(b, lastTile),
        before = b.mul(entry, b.i64(m));
  // where the rows of the entry, and those of all entries, would start
  Value entryRows = b.ptrAt(scoreRows, full.getElementType(), b.mul(firstRow, b.i64(-stride)));
  Value allRows = b.ptrAt(entryRows, full.getElementType(), b.mul(before, b.i64(-stride)));
  b.scratch = innerScratch;
  work = 0;

  b.operands = pointersOf(scores.dot, Value());
  b.results = {allRows};
  emitPart(scores, operandsOf(b, scores.spec, entryIndex(scores)).first, b.i64(stride));

  b.operands = pointersOf(op.getRows(), allRows);
  if (failed(emitRowsPart(op.getRows(), b,
                          {op.getScoresArg(), stride, b.add(before, firstRow), b.add(before, lastRow)})))
    ok = failure();
  innerBytes = std::max(innerBytes, b.attribute("kernel.scratch"));
  work += b.attribute("kernel.work") * tilesEach * tiles.height;

  b.operands = pointersOf(product.dot, Value());
  b.results = results;
  emitPart(product, entryRows, Value());
}

LogicalResult AttentionEmitter::emit() {
  scores = makePart(op.getScores(), Value());
  product = makePart(op.getProduct(), b.i64(stride));
  const unsigned height = std::min(scores.tile.rows, product.tile.rows);
  scores.spec.plan.rows = product.spec.plan.rows = height;
  tiles = RowTiles(m, height);
  blocks = std::min<int64_t>(op.getBlocks(), tiles.numTiles);
  tilesEach = llvm::divideCeil(tiles.numTiles, blocks);

  const int64_t scoreBytes =
      llvm::alignTo(tilesEach * tiles.height * stride * elemBytes(full.getElementType()), 64);
  scores.panels = scratch;
  product.panels = b.ptrBytes(scratch, b.i64(scores.bytes()));
  scoreRows = b.ptrBytes(product.panels, b.i64(product.bytes()));
  innerScratch = b.ptrBytes(scoreRows, b.i64(scoreBytes));
  Value count = b.i64(blocks);
  b.loop(b.divU(begin, count), b.divU(b.add(end, b.i64(blocks - 1)), count), [&](Value e) {
    entry = e;
    pack(scores);
    pack(product);
    Value before = b.mul(entry, count);
    b.loop(b.max(b.sub(begin, before), b.i64(0)), b.min(b.sub(end, before), count),
           [&](Value block) { emitBlock(block); });
  });
  b.operands = operands;
  b.results = results;
  b.scratch = scratch;
  b.setExtent(
      getAffineConstantExpr(full.getNumElements() / (m * full.getShape().back()) * blocks, b.getContext()));
  b.setScratch(scores.bytes() + product.bytes() + scoreBytes + innerBytes);
  b.setWork(work);
  return ok;
}

} // namespace

int64_t scoreStride(int64_t columns) {
  constexpr int64_t line = 16;
  return (llvm::divideCeil(columns, line) | 1) * line;
}

LogicalResult emitAttention(kernel::AttentionOp op, KernelBuilder &b) {
  return AttentionEmitter(op, b).emit();
}

} // namespace lathe::cpu
