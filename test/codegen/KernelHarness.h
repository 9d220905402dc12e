// Compiles one kernel or bare hlo op from MLIR text for a given CPU, runs it in this process, and checks what the
// convention promises: chunks give the same bits as one call, nothing is written outside the results.
#ifndef LATHE_TEST_CODEGEN_KERNELHARNESS_H
#define LATHE_TEST_CODEGEN_KERNELHARNESS_H

#include "base/Tensor.h"
#include "passes/codegen/cpu/Emit.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace lathe::test {

/// A context with all dialects of the kernels loaded, and threads off.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Machine code of the functions in a module; call by name with pointers and the unit range.
class JitModule {
public:
  /// `cpu`: "host", or an LLVM CPU name such as "x86-64-v3". Null with a message on stderr on failure.
  static std::unique_ptr<JitModule> compile(mlir::ModuleOp module, const std::string &cpu = "host");
  ~JitModule();
  void *lookup(const std::string &name);
  static void call(void *function, std::vector<void *> pointers, int64_t begin, int64_t end);

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

codegen::KernelTarget targetFor(const std::string &cpu);
bool hostRuns(const std::string &cpu);

/// What a run gives.
struct KernelRun {
  bool ok = false;
  std::string message;
  std::vector<Tensor> outputs;
  std::vector<int64_t> symbols;
  int64_t error = 0;
};

/// Compiles and runs the one interesting op of `func.func @f` in `text` (constants are evaluated into operands).
/// Symbols take their values from the inputs' sizes; data symbols from the kernel.
KernelRun runKernel(const std::string &text, const std::vector<Tensor> &inputs, const std::string &cpu = "host");

/// The same function by the reference evaluator.
KernelRun runReference(const std::string &text, const std::vector<Tensor> &inputs);

/// A tensor with reproducible values: floats in [-scale, scale], integers likewise, bools mixed.
Tensor randomTensor(DType type, std::vector<int64_t> dims, unsigned seed, double scale = 2);
Tensor tensorOf(std::vector<float> values, std::vector<int64_t> dims);
Tensor tensorOf(std::vector<int32_t> values, std::vector<int64_t> dims);
/// The largest |a-b| / max(1, |b|), NaN equal to NaN; infinite when types or sizes differ.
double difference(const Tensor &a, const Tensor &b);
/// Runs both and gives a message when they differ by more than `tolerance` (0: bits of integers, values of floats).
std::string compareWithReference(const std::string &text, const std::vector<Tensor> &inputs, double tolerance = 1e-5,
                                 const std::string &cpu = "host");

} // namespace lathe::test

#endif // LATHE_TEST_CODEGEN_KERNELHARNESS_H
