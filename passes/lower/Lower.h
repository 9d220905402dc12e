// From a module of kernels on tensors to a module in the LLVM dialect, and everything the ABI tables must tell.
//
// Before: public func.funcs of kernel ops, bare hlo ops, constants, views and while/if/case.
// After: one internal llvm.func per distinct kernel, and per entry k the functions
//   lathe_run<k>(args) -> i32, lathe_workspace<k>(sizes, threads) -> i64, lathe_bound<k>(sizes), lathe_dims<k>(sizes, dims)
// which refer to three symbols that emission defines: the constants, lathe_fail and (with external weights) the bound
// address of the constants.
// The pass kernel-to-llvm does this in place; the attribute `lathe.lowered` (LoweredAttrs.cpp) then holds the rest of
// LoweredModule, so that the module alone says all that emission needs.
// Where the backend launches kernels, they become `images` instead, and the functions of the entries are host code that calls
// lathe_cuda_* (runtime/abi/cuda_abi.h) and refers to one more symbol, the description of the image.
#ifndef LATHE_PASSES_LOWER_LOWER_H
#define LATHE_PASSES_LOWER_LOWER_H

#include "base/DType.h"
#include "passes/codegen/Backend.h"
#include "passes/lower/KernelTimes.h"
#include "passes/lower/ConstantPool.h"
#include "passes/lower/MemoryPlan.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>

namespace lathe::lower {

struct LowerOptions {
  KernelTimes *times = nullptr; ///< for --timing: what the backend takes for each group of kernels is added to it
  codegen::Backend *backend = nullptr; ///< emits the kernels
  int threads = 1;
  bool profile = false;
  bool externalWeights = false;
  bool amx = false; ///< kernels use AMX: run() fails unless PREFIX_module() obtained the permission
  /// Below this much work (EmittedKernel::workPerUnit) a call stays on one thread: waking others costs more than it brings.
  int64_t parallelWork = 140000;
  /// Every buffer of the plan, constant and scratch is a heap block of its own (posix_memalign), so that an address
  /// sanitizer sees an access outside it; inside one arena it would be silent.
  bool separateBuffers = false;
};

struct TensorDesc {
  std::string name, tensor;
  DType dtype;
  int32_t elementSize;
  llvm::SmallVector<mlir::AffineExpr> dims;
  /// Of integers that stand for real numbers: one scale and zero point, or one for each index of `quantizedDim`. Empty for others.
  llvm::SmallVector<float, 0> scales;
  llvm::SmallVector<int64_t, 0> zeroPoints;
  int32_t quantizedDim = 0;
};

struct EntryDesc {
  std::string name;
  std::vector<TensorDesc> inputs, outputs;
};

/// A place that can fail; `message` is empty when the kernel's code tells it.
struct SiteDesc {
  std::string node, op, message;
};

struct StepDesc {
  int entry;
  std::string nodes, kernel;
  int64_t flops = 0, constantBytes = 0, otherBytes = 0; ///< from the op's attribute kernel.cost, if it has one
};

struct SymbolDesc {
  std::string name;
  bool isData;
  int64_t bound;
};

struct VariableDesc {
  TensorDesc tensor;
  int64_t initialOffset;
};

struct LoweredModule {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< null where readLowered made it
  ConstantPool pool;
  std::vector<EntryDesc> entries;
  std::vector<SiteDesc> sites;
  std::vector<StepDesc> steps;
  std::vector<SymbolDesc> symbols;
  std::vector<VariableDesc> variables;
  bool onDevice = false;                 ///< kernels are launched; then these:
  std::vector<codegen::Image> images;    ///< their code, the first what most devices take; none without kernels
  std::string tools;                     ///< of others, that the images were made with
  std::vector<codegen::Launch> launches; ///< their entries
  int64_t hostBytes = 0, cells = 0;      ///< of a run, the most: pinned memory; calls that may fail
  PlanStatistics plan; ///< of the entry with the largest arena
  int64_t kernels = 0, kernelCalls = 0, scratchBytes = 0;
  int64_t bf16Kernels = 0, planned = 0; ///< kernel ops of bf16 operands; those whose plan a tuning file named
  std::map<std::string, int64_t> fallbacks; ///< kernels by the special form that each would have, and what that lacks
};

/// Failures of a site, passed to lathe_fail; 1..6 are the kernels' codes (KernelError).
constexpr int siteSizeCheck = 7;
/// Failures of the call as a whole (site -1).
enum CallFailure { callWorkspace = 1, callSizes, callWeights, callParallel, callAmx };
constexpr int failuresPerSite = 8;
/// The constants; emission gives the symbol a name of the module's own.
constexpr const char *constantsSymbol = "lathe_constants";
/// With LowerOptions::amx: an i32 that emission defines, nonzero when the system lets this process use AMX.
constexpr const char *amxGranted = "lathe_amx_granted";
/// Of a backend that launches: a lathe_cuda_module that emission defines.
constexpr const char *deviceModule = "lathe_device_module";

/// Lowers the module; all problems are diagnosed at their ops. `input` is changed (attributes on ops) but stays valid:
/// the constant pool refers to its attributes.
mlir::FailureOr<LoweredModule> lowerModule(mlir::ModuleOp input, const LowerOptions &options);

/// Writes what lowering learnt into the attribute `lathe.lowered` of `module`.
void noteLowered(mlir::ModuleOp module, const LoweredModule &lowered);
/// Reads it back, without `module`; diagnoses where there is none or a part is missing.
mlir::FailureOr<LoweredModule> readLowered(mlir::ModuleOp module);

/// Converts func, scf, cf, arith, math and vector to the LLVM dialect in place.
mlir::LogicalResult convertKernelsToLlvm(mlir::ModuleOp module);

} // namespace lathe::lower

#endif
