// lathe-opt: every pass and pipeline on textual IR, for tests and for looking at what a pass does.
#include "dialects/graph/Graph.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/cluster/Passes.h"
#include "passes/codegen/Backend.h"
#include "passes/fusion/Passes.h"
#include "passes/legalize/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::registerTransformsPasses();
  lathe::cluster::registerClusterPhase();
  lathe::legalize::registerLegalizePhase();
  lathe::simplify::registerSimplifyPhase();
  lathe::fusion::registerFusionPhase();
  lathe::lower::registerLowerPhase();
  lathe::codegen::registerBackendPasses();
  mlir::DialectRegistry registry;
  registry.insert<lathe::graph::GraphDialect, lathe::hlo::HloDialect, lathe::kernel::KernelDialect, mlir::func::FuncDialect,
                  mlir::scf::SCFDialect, mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::math::MathDialect,
                  mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Lathe's optimizer driver\n", registry));
}
