// Convolutions of few results and many products each, as gradients of filters are: the threads of a warp or a block share the products of one
// result, each those of every so many taps and channels.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Team.h"
#include "passes/codegen/plain/Core.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

static codegen::Convolution convolutionOf(Operation *op) {
  if (auto conv = dyn_cast<kernel::ConvOp>(op))
    return plain::convolutionOf(conv);
  return plain::convolutionOf(cast<kernel::DepthwiseConvOp>(op));
}

/// Products of a result; the filter's sizes are known.
static int64_t productsOf(const codegen::Convolution &c) {
  return c.rhs.getNumElements() / std::max<int64_t>(1, c.rhs.getDimSize(c.rhsOutput));
}

std::string whyNoTeamConv(Operation *op) {
  if (!isa<kernel::ConvOp, kernel::DepthwiseConvOp>(op))
    return "no convolution";
  const codegen::Convolution c = convolutionOf(op);
  if (!c.result.hasStaticShape() || !c.rhs.hasStaticShape())
    return "sizes that are known at run time only";
  constexpr int64_t enough = 96 * 128, few = 8 * warpThreads; // threads without sharing; products to share
  if (c.result.getNumElements() >= enough)
    return "many results";
  if (productsOf(c) < few)
    return "few products a result";
  Type sum = c.result.getElementType();
  if (!isa<FloatType>(sum) && !(isa<IntegerType>(sum) && sum.getIntOrFloatBitWidth() >= 8))
    return "sums of complex numbers, or of bits";
  return {};
}

LogicalResult emitTeamConv(Operation *op, KernelBuilder &b) {
  codegen::Convolution c = convolutionOf(op);
  const RankedTensorType type = c.result;
  constexpr int64_t mostOfWarp = 1024, blockThreads = 256;
  const bool isWarp = productsOf(c) <= mostOfWarp;
  plain::Elements elements = plain::bindOperands(op, b);
  BlockFrame frame(b, isWarp ? 4 * warpThreads : blockThreads);
  Team team(frame, isWarp ? warpThreads : blockThreads);
  b.setWork(4096);
  codegen::ConvolutionSum sum(b, std::move(c));
  Value core = kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : Value(op->getResult(0));
  const SmallVector<Value> sizes = b.dims(type);
  LogicalResult ok = success();
  team.eachOf(hlo::numElements(type), [&](Value number) {
    const SmallVector<Value> index = b.delinearize(number, sizes);
    Value zero = sum.accumulator.zero();
    FailureOr<SmallVector<Value>> parts =
        stridedLoop(b, team.member, team.size, sum.count(), {zero}, isa<FloatType>(zero.getType()), [&](Value at, ValueRange now) {
          return FailureOr<SmallVector<Value>>(SmallVector<Value>{sum.addStep(index, at, now[0])});
        });
    auto add = [&](ValueRange x, ValueRange y) {
      return FailureOr<SmallVector<Value>>(SmallVector<Value>{codegen::E(b, x[0]) + codegen::E(b, y[0])});
    };
    FailureOr<SmallVector<Value>> total = failed(parts) ? parts : team.total({zero.getType()}, *parts, /*commutes=*/true, add);
    if (failed(total)) {
      ok = failure();
      return;
    }
    b.ifThen(b.eq(team.member, b.i64(0)), [&] {
      if (failed(storeResults(b, elements, core, index, sum.accumulator.finish((*total)[0]))))
        ok = failure();
    });
  });
  return ok;
}

} // namespace lathe::nvptx
