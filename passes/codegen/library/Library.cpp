// Which generator makes the function of which hlo op that stays outside kernels.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Library.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace lathe::codegen {

LogicalResult emitLibraryOp(Operation *op, KernelBuilder &b) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<hlo::ConcatenateOp>([&](auto) { return emitConcatenate(op, b); })
      .Case<hlo::BitcastConvertOp>([&](auto) { return emitBitcastConvert(op, b); })
      .Case<hlo::AssumeShapeOp>([&](auto) { return emitAssumeShape(op, b); })
      .Case<hlo::SetSizeOp>([&](auto) { return emitSetSize(op, b); })
      .Case<hlo::CheckOp>([&](auto) { return emitCheck(op, b); })
      .Case<hlo::DynamicUpdateSliceOp>([&](auto) { return emitDynamicUpdateSlice(op, b); })
      .Case<hlo::ScatterOp>([&](auto) { return emitScatter(op, b); })
      .Case<hlo::SortOp>([&](auto) { return emitSort(op, b); })
      .Case<hlo::TopKOp>([&](auto) { return emitTopK(op, b); })
      .Case<hlo::UniqueOp>([&](auto) { return emitUnique(op, b); })
      .Case<hlo::WhereOp>([&](auto) { return emitWhere(op, b); })
      .Case<hlo::ReduceWindowOp>([&](auto) { return emitReduceWindow(op, b); })
      .Case<hlo::SelectAndScatterOp>([&](auto) { return emitSelectAndScatter(op, b); })
      .Case<hlo::DotGeneralOp, hlo::DotOp>([&](auto) { return emitDotGeneral(op, b); })
      .Case<hlo::ConvolutionOp>([&](auto) { return emitConvolution(op, b); })
      .Case<hlo::RngBitGeneratorOp>([&](auto) { return emitRngBits(op, b); })
      .Case<hlo::FftOp>([&](auto) { return emitFft(op, b); })
      .Case<hlo::CholeskyOp>([&](auto) { return emitCholesky(op, b); })
      .Case<hlo::TriangularSolveOp>([&](auto) { return emitTriangularSolve(op, b); })
      .Case<hlo::LuOp>([&](auto) { return emitLu(op, b); })
      .Case<hlo::QrOp>([&](auto) { return emitQr(op, b); })
      .Case<hlo::EighOp>([&](auto) { return emitEigh(op, b); })
      .Case<hlo::EigOp>([&](auto) { return emitEig(op, b); })
      .Case<hlo::SvdOp>([&](auto) { return emitSvd(op, b); })
      .Default([](Operation *o) -> LogicalResult { return o->emitError() << "no code for " << o->getName(); });
}

} // namespace lathe::codegen
