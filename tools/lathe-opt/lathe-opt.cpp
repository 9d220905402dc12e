// lathe-opt: every pass and pipeline on textual IR, for tests and for looking at what a pass does.
#include "compiler/driver/Compiler.h"
#include "compiler/export/tflite/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::registerTransformsPasses();
  lathe::registerAllPasses();
  lathe::tflwrite::registerTflitePhase();
  mlir::DialectRegistry registry;
  lathe::registerDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Lathe's optimizer driver\n", registry));
}
