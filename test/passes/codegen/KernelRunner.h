// Compiles the functions of the CPU kernel generator in this process and calls them: for tests and benchmarks.
#ifndef LATHE_TEST_PASSES_CODEGEN_KERNELRUNNER_H
#define LATHE_TEST_PASSES_CODEGEN_KERNELRUNNER_H

#include "passes/codegen/cpu/Emit.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe::testing {

/// A processor to generate for, by LLVM's names.
struct Processor {
  std::string cpu = "x86-64", features;
  codegen::KernelTarget target() const;
  /// All that this machine has.
  static Processor host();
  static Processor avx2() { return {"haswell", ""}; }
  static Processor baseline() { return {"x86-64", ""}; }
  /// Whether this machine can run its code.
  bool isRunnable() const;
};

/// A context for compileOnce, with the dialects of kernels.
mlir::MLIRContext &testContext();

/// One compiled kernel function.
class CompiledKernel {
public:
  /// Empty on failure (diagnostics were emitted).
  static std::unique_ptr<CompiledKernel> compile(mlir::Operation *op, const Processor &processor);
  /// The same, kept by the text of the op and the processor: run-time sizes need one compilation. The context of
  /// the op must live as long as the process.
  static CompiledKernel *compileOnce(mlir::Operation *op, const Processor &processor);

  /// Calls units [begin, end) with freshly allocated scratch; end < 0: all units. Returns *err.
  int64_t run(const std::vector<const void *> &operands, const std::vector<void *> &results,
              const std::vector<int64_t> &symbols = {}, int64_t begin = 0, int64_t end = -1);
  int64_t units(const std::vector<int64_t> &symbols = {}) const;
  /// Assembly of the function.
  const std::string &assembly() const { return asmText; }
  double compileSeconds = 0;

private:
  mlir::AffineMap extent, scratch;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*entry)(void **) = nullptr;
  std::string asmText;
  std::vector<char> scratchBuffer;
};

/// Compiles the op, of one result, for a result whose rows lie apart, where no vector is aligned, and says
/// how that differs from `dense`, which the same operands gave: in a bit, between units, or beside the rows.
/// Empty: not at all.
std::string compareRowsApart(mlir::Operation *op, const Processor &processor,
                             const std::vector<const void *> &operands, const void *dense,
                             const std::vector<int64_t> &symbols = {});

} // namespace lathe::testing

#endif
