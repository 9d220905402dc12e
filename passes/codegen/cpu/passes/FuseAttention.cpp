// kernel-attention: which scores, what their rows become and the product with it are one kernel.
#include "passes/codegen/cpu/passes/Attention.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/passes/Parts.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/target/CpuTarget.h"
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/cpu/rows/Rows.h"

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/codegen/cpu/passes/Passes.h.inc"

namespace {

/// Blocks of the rows of an entry of the batch, or 0: better apart.
int64_t chooseBlocks(const KernelTarget &target, kernel::DotOp scores, kernel::DotOp product) {
  RankedTensorType type = scores.getAccType();
  const int64_t bytes = elemBytes(type.getElementType()), threads = std::max(target.threads, 1);
  const int64_t m = type.getShape().drop_back().back(), n = type.getShape().back(),
                entries = type.getNumElements() / (m * n);
  const int64_t width = product.getAccType().getShape()[product.getResultDims().back()];
  auto rowsOf = [&](int64_t columns) { return chooseTile(target, type.getElementType(), m, columns).rows; };
  const RowTiles tiles(m, std::min(rowsOf(n), rowsOf(width)));
  // With fewer the second product would read its right operand in place: to pack it costs more than the rest
  // brings.
  constexpr int64_t leastTiles = 3;
  if (tiles.numTiles < leastTiles || n <= longestShortRow(target)) // short rows are faster all at once
    return 0;
  // scores that stay near as it is, and no other thread to wait for between the kernels
  if (threads == 1 && type.getNumElements() * bytes <= target.ofL2(target.l2Rows))
    return 0;
  // L2 holds keys and values beside the scores, as far as it can
  const int64_t tileBytes = tiles.height * scoreStride(n) * bytes;
  int64_t blocks = llvm::divideCeil(tiles.numTiles, std::max<int64_t>(1, target.ofL2(target.l2Scores) / tileBytes));
  // Threads take whole blocks: more of them where they share these evenly, but not so many that a thread
  // which begins within an entry packs for a few rows.
  auto largestShare = [&](int64_t count) {
    return double(llvm::divideCeil(entries * count, threads)) / count;
  };
  for (int64_t count = blocks + 1; count <= std::min(tiles.numTiles / leastTiles, blocks + 8); ++count)
    if (largestShare(count) < 0.95 * largestShare(blocks))
      blocks = count;
  return blocks;
}

/// The product behind reshapes that only `rows` read, if an operand of them is one; these are added to
/// `between`.
kernel::DotOp scoresOf(kernel::RowsOp rows, SmallVectorImpl<Operation *> &between) {
  for (Value v : rows.getInputs()) {
    between.clear();
    while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>()) {
      if (!v.hasOneUse())
        break;
      between.insert(between.begin(), reshape);
      v = reshape->getOperand(0);
    }
    if (auto dot = v.getDefiningOp<kernel::DotOp>(); dot && dot->getNumResults() == 1 && v.hasOneUse())
      return dot;
  }
  return {};
}

/// What keeps the scores, their rows and the product from being one kernel; else sets `blocks`.
WhyNot whyNotAttention(const KernelTarget &target, kernel::DotOp scores, kernel::RowsOp rows, kernel::DotOp product, int64_t &blocks) {
  SmallVector<Type> types;
  for (Operation *op : {scores.getOperation(), rows.getOperation(), product.getOperation()}) {
    llvm::append_range(types, op->getOperandTypes());
    llvm::append_range(types, op->getResultTypes());
  }
  for (Type t : types)
    if (!cast<RankedTensorType>(t).hasStaticShape() || cast<RankedTensorType>(t).getNumElements() == 0)
      return WhyNot::notMeant("sizes are known at run time, or 0");
  blocks = chooseBlocks(target, scores, product);
  if (blocks == 0)
    return WhyNot::notMeant("better apart");
  Type elem = scores.getAccType().getElementType();
  if (!elem.isF32() && isa<FloatType>(elem))
    return WhyNot::lacks("scores are not f32");
  if (target.lanes(elem) == 1)
    return WhyNot::notMeant("there are no vectors");
  if (StringRef why = kernel::AttentionOp::whyNot(scores, rows, product); !why.empty())
    return WhyNot::notMeant(why);
  return WhyNot::none();
}

bool makeAttention(const KernelTarget &target, kernel::RowsOp rows) {
  SmallVector<Operation *> parts;
  kernel::DotOp scores = scoresOf(rows, parts);
  if (!scores)
    return false;
  parts.insert(parts.begin(), scores);
  parts.push_back(rows);
  Operation *reader = rows;
  while (reader && reader->getNumResults() == 1 && reader->getResult(0).hasOneUse()) {
    reader = *reader->getResult(0).user_begin();
    parts.push_back(reader);
    if (!isa<hlo::ReshapeOp>(reader))
      break;
  }
  auto product = dyn_cast<kernel::DotOp>(reader);
  if (!product || llvm::any_of(parts, [&](Operation *part) { return part->getBlock() != rows->getBlock(); }))
    return false;
  int64_t blocks = 0;
  if (!chooseSpecial(rows, "attention", whyNotAttention(target, scores, rows, product, blocks)))
    return false;
  joinParts<kernel::AttentionOp>(parts, 4 * scores.getAccType().getNumElements() * 4, blocks);
  return true;
}

struct FuseAttention : impl::FuseAttentionBase<FuseAttention> {
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    numFused += fuseAttention(getOperation(), target->kernels);
  }
};

} // namespace

unsigned fuseAttention(ModuleOp module, const KernelTarget &target) {
  SmallVector<kernel::RowsOp> all;
  module.walk([&](kernel::RowsOp op) {
    if (!isa<kernel::AttentionOp>(op->getParentOp()))
      all.push_back(op);
  });
  unsigned made = 0;
  for (kernel::RowsOp rows : all)
    made += makeAttention(target, rows);
  return made;
}

} // namespace lathe::cpu
