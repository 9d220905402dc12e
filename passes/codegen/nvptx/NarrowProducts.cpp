// nvptx-narrow-products: products of bytes that were widened before, as TensorFlow's BatchMatMulV3 is made of them.
//
// Before:  %a = kernel.loop(%x) { hlo.convert }   of i8, to i32; %b likewise
//          kernel.dot(%a, %b)
// After:   kernel.dot(%x, %y), whose sums are i32 as before
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/NvptxBackend.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_NARROWPRODUCTS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

/// The signed bytes that a value widens, and nothing else; null if it is something else.
Value bytesOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto loop = value.getDefiningOp<kernel::LoopOp>();
  if (!loop)
    return {};
  Block &body = loop->getRegion(0).front();
  auto convert = body.getTerminator()->getOperand(result.getResultNumber()).getDefiningOp<hlo::ConvertOp>();
  auto argument = convert ? dyn_cast<BlockArgument>(convert.getOperand()) : BlockArgument();
  if (!argument || argument.getOwner() != &body)
    return {};
  Value bytes = loop->getOperand(argument.getArgNumber());
  RankedTensorType type = hlo::tensorType(bytes);
  const bool isByte = type.getElementType().isSignlessInteger(8) || type.getElementType().isSignedInteger(8);
  return isByte && type.getShape() == hlo::tensorType(value).getShape() ? bytes : Value();
}

struct NarrowProducts : impl::NarrowProductsBase<NarrowProducts> {
  void runOnOperation() override {
    SmallVector<kernel::DotOp> ops;
    getOperation().walk([&](kernel::DotOp op) { ops.push_back(op); });
    for (kernel::DotOp op : ops) {
      if (!op.getAccType().getElementType().isInteger(32))
        continue;
      Value sides[] = {op.getLhs(), op.getRhs()}, bytes[] = {bytesOf(op.getLhs()), bytesOf(op.getRhs())};
      if (!bytes[0] || !bytes[1]) {
        ++numRefused;
        continue;
      }
      for (unsigned i = 0; i < 2; ++i)
        op->setOperand(i, bytes[i]);
      llvm::SmallSetVector<Operation *, 2> loops;
      for (Value side : sides)
        loops.insert(side.getDefiningOp());
      for (Operation *loop : loops)
        if (loop->use_empty())
          loop->erase();
      ++numNarrowed;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
