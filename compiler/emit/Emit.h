// From kernels to files: one object of machine code with its constants, the header that describes it, and what can be
// made of the object (archive, shared library).
#ifndef LATHE_COMPILER_EMIT_EMIT_H
#define LATHE_COMPILER_EMIT_EMIT_H

#include "base/DType.h"
#include "passes/codegen/Backend.h"
#include "passes/lower/KernelTimes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lathe {

/// The host part of an object (compiler/hosted).
struct HostedPayload {
  struct Tensor {
    std::string name;
    DType dtype;
    int rank; ///< -1: any
    std::vector<float> scales; ///< of integers that stand for real numbers; one, or one for each index of a dimension
    std::vector<int64_t> zeroPoints;
  };
  struct Entry {
    std::string name;
    std::vector<Tensor> inputs, outputs;
  };
  std::string graph;                ///< what runtime/hosted reads
  std::vector<std::string> kernels; ///< ops whose host kernels the object names
  std::vector<Entry> entries;       ///< for the header
  bool hasClusters = false;
};

struct EmitOptions {
  std::string backend;               ///< a name in codegen::backends(); empty: the default one
  std::string triple;                ///< empty: this machine's
  std::string cpu = "x86-64-v3";     ///< LLVM's name, "v2".."v4" for x86-64-vN, or "host"
  std::string features;              ///< "+a,-b", added to the CPU's
  std::string symbolPrefix = "model"; ///< a C identifier (see makeIdentifier)
  std::string className;             ///< "ns::Name"; empty: PREFIX::Model
  int threads = 1;                   ///< 1: no parallel code at all; more: kernels go through parallel_for
  int optLevel = 3;
  bool exact = false;                ///< no algorithm that trades accuracy for speed
  int64_t parallelWork = 140000;     ///< work (EmittedKernel::workPerUnit) from which a call is spread over threads
  std::string sanitize;              ///< "address" or empty
  bool bf16 = false;                 ///< products and convolutions of bf16 operands, where the CPU has them
  bool profile = false;              ///< call lathe_run_args.trace around each kernel
  std::vector<std::string> archs, cubins; ///< of a device: codegen::Processor
  bool releaseConstants = false;     ///< free what is packed or written: nothing else may use the module's constants
  bool externalWeights = false;      ///< constants go to CompiledArtifact::weights instead of into the object
  bool tf32 = false;                 ///< products and convolutions of operands rounded to tf32, where the backend is a device's
  codegen::PlanTable plans;          ///< of a tuning file, for this target
  lower::KernelTimes *emitted = nullptr;   ///< if not null: what the backend takes for each group of kernels is added
  lower::KernelTimes *optimized = nullptr; ///< the same of LLVM's optimiser
  const HostedPayload *hosted = nullptr; ///< the object calls host kernels
  bool wantAsm = false, wantLlvm = false;
  bool wantObject = true;
};

/// What `compile --json` tells.
struct EmitReport {
  int64_t arenaBytes = 0;     ///< workspace of the largest entry; for run-time sizes: with each size at 1
  int64_t sumOfBuffers = 0;   ///< what the same buffers would take without reuse
  int64_t constantBytes = 0;
  int64_t kernels = 0;        ///< distinct kernels
  int64_t kernelCalls = 0;
  int64_t codeBytes = 0;      ///< executable sections of the object
  int64_t deviceCodeBytes = 0; ///< of kernels that are launched, all images
  int64_t bf16Kernels = 0;    ///< kernel calls that take bf16 operands
  int64_t planned = 0;        ///< kernel calls whose plan a tuning file named
  int64_t copies = 0;         ///< memcpy steps that the plan could not avoid
  std::map<std::string, int64_t> fallbacks; ///< kernels by the special form that each lacks, and why
  double emitKernelsSeconds = 0, optimizeSeconds = 0, codegenSeconds = 0;
};

struct CompiledArtifact {
  std::string object;  ///< ELF relocatable
  std::string header;
  std::string weights; ///< content of the external file, with externalWeights
  std::string assembly, llvmIr;
  std::vector<codegen::Image> deviceCode; ///< of kernels that are launched, PTX for most devices first
  std::vector<std::pair<std::string, std::string>> steps; ///< with EmitOptions::profile: each call's kernel, and the nodes that it computes
  bool onDevice = false;  ///< the object calls liblathe_cuda.a
  std::string triple, prefix;
  int vectorBits = 512; ///< of the vectors that kernels use
  bool fma = true;      ///< whether they multiply and add in one instruction
  EmitReport report;
};

struct ResolvedTarget;

/// What options mean for the IR: the passes from fused kernels to prepared ones, and from these to the LLVM dialect. Both read
/// the module's target (passes/codegen/Target.h). `options` must live as long as the passes.
void buildPreparePipeline(mlir::PassManager &pm, const ResolvedTarget &target, const EmitOptions &options);
void buildLowerPipeline(mlir::OpPassManager &pm, const EmitOptions &options);
/// Emits a lowered module. The module is consumed.
llvm::Expected<CompiledArtifact> emitLowered(mlir::ModuleOp module, const ResolvedTarget &target, const EmitOptions &options);

/// All three for the public functions of a module of kernels. The module is consumed (left in an unspecified state).
/// Problems with the model are reported as diagnostics at their op's location as well as in the error.
llvm::Expected<CompiledArtifact> emitModule(mlir::ModuleOp kernelModule, const EmitOptions &options);

/// `name` as a C identifier.
std::string makeIdentifier(llvm::StringRef name);

/// The object in an archive (`ar`), deterministic.
llvm::Expected<std::string> makeArchive(const CompiledArtifact &artifact, llvm::StringRef memberName);

/// Links the object to a shared library that exports PREFIX_module and lathe_module_query, with the first linker found
/// (cc, ld.lld, ld). Writes to `path`.
llvm::Error linkSharedLibrary(const CompiledArtifact &artifact, llvm::StringRef path);

} // namespace lathe

#endif
