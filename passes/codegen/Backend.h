// What a target gives the compiler. Everything between fusion and the object (passes/lower, compiler/emit, tuning, the
// tools) sees a Backend and nothing of the folders that implement one; Backends.cpp is the only file that names them.
// docs/backends.md leads from the plain backend to a new one.
//
// The order of calls, for one module of kernels:
//   addPreparePasses        they give ops their algorithm, layout and place in memory, and pack constants
//   loadDialects
//   beginKernels            what generators learn from the module as a whole
//   emitKernel              once for each distinct op
//
// A kernel is a function
//   func.func private @name(%operand..., %result..., %scratch, %sizes, %err: !llvm.ptr, %begin, %end: i64)
// of the units of work [begin, end): they read nothing of each other, and results do not depend on how the range is cut.
// Its body uses arith, func, LLVM pointers, math, scf and one-dimensional vectors.
//
// Where kernels are launched on a device (`launches`), they are a module of their own. Lowering converts it to the LLVM
// dialect and hands it to `makeImages`, once; tensors, sizes and the error cell lie in the device's memory.
#ifndef LATHE_PASSES_CODEGEN_BACKEND_H
#define LATHE_PASSES_CODEGEN_BACKEND_H

#include "passes/codegen/Plan.h"
#include "passes/codegen/ProcessorModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <vector>

namespace lathe::codegen {

/// The processor that code is made for, in LLVM's terms, how many of its threads share a kernel, and how exact kernels are.
struct Processor {
  std::string triple;
  std::string cpu;      ///< LLVM's name; for messages
  std::string features; ///< all that it has: "+avx,+avx2,..."
  int threads = 1;      ///< never changes a result but by which algorithm pays
  bool exact = false;   ///< no algorithm that trades accuracy for speed
  bool bf16 = false;    ///< products and convolutions of bf16 operands, where the processor has them
  bool tf32 = false;    ///< the same of operands rounded to 11 bits, as TensorFlow has them on GPUs; not with bf16
  std::vector<std::string> archs;  ///< of a device: images for these ("sm_90a") beside the one that is always there
  std::vector<std::string> cubins; ///< and machine code for these
};

/// What others ask about the code that a backend makes.
struct Properties {
  int vectorBits = 0;       ///< of the widest vectors in kernels; 0: none
  bool fma = false;         ///< multiplies and adds in one instruction
  double multiplyAdds = 1;  ///< of f32, that a thread does in a cycle at best
  ProcessorModel model;     ///< of a core: its caches, rates of memory, and what its units do
  bool bf16 = false;        ///< Processor::bf16 is a wish that can be granted
  bool tf32 = false;        ///< Processor::tf32 is
  bool imagesFirst = true;  ///< convolutions over images are faster than the same work over volumes (hlo-fold-depth)
};

struct PrepareOptions {
  bool releaseConstants = false; ///< free constants that only exist packed from then on; no other module may use them
  const PlanTable *plans = nullptr; ///< what a tuning file says; must live as long as the passes
};

/// A kernel and what calls of it need to know.
struct EmittedKernel {
  mlir::func::FuncOp function;
  mlir::AffineExpr extent;  ///< units of work
  mlir::AffineExpr scratch; ///< bytes of one call
  int64_t workPerUnit = 0;  ///< in operations of vectorised elementwise code, some sixteen a cycle; 0: not worth sharing
  bool mayFail = false;     ///< it may store a KernelError to %err
  bool writesSizes = false; ///< it may store to %sizes
  std::vector<std::string> fallbacks; ///< as fallbackAttribute lists them
};
/// Of a kernel op or a kernel's function: "FORM: REASON" of each special form that it would have, but for what that lacks.
constexpr llvm::StringLiteral fallbackAttribute = "kernel.fallbacks";

/// A kernel of a device's image. Its parameters are those of its function up to %err, then three i64: the units; how many
/// threads do them; how far the pieces of scratch of two threads lie apart. Without scratch a thread does one unit.
struct Launch {
  std::string name;
  bool hasScratch = false;
  int threads = 0; ///< of a block
};

/// Code of kernels for devices.
struct Image {
  std::string target;       ///< "sm_90a"
  int arch = 0;             ///< 90
  bool own = false;         ///< runs on devices of just this architecture, not on later ones
  bool machineCode = false; ///< a file of the device's own code, which only devices of its generation run; else text
  std::string code;
};

/// What a kernel takes of a device, for listings.
struct KernelFacts {
  std::string name;
  int threads = 0;                 ///< of a block
  int64_t shared = 0;              ///< bytes of shared memory that a block has
  int registers = -1;              ///< of a thread; -1: not known
  int64_t spilled = 0;             ///< bytes of registers that went to memory; where `registers` is known
  std::vector<std::string> arrays; ///< names of what is in shared memory
};

/// The same of a function whose generator left it in attributes (`kernel.extent`, `kernel.scratch`, `kernel.work`,
/// `kernel.fallbacks`).
EmittedKernel describeKernel(mlir::func::FuncOp function);

class Backend {
public:
  virtual ~Backend();

  virtual Properties properties() const = 0;
  /// Loads the dialects of emitted functions.
  virtual void loadDialects(mlir::MLIRContext &context) const = 0;
  /// Adds the passes that rewrite kernel ops to the forms that emitKernel is to take; they warn of wishes that they cannot
  /// grant. A backend needs none.
  virtual void addPreparePasses(mlir::OpPassManager &pm, const PrepareOptions &options) const {}
  /// Whether a prepared module's kernels use tile registers, which a Linux process must ask for.
  virtual bool usesTiles(mlir::ModuleOp module) const { return false; }
  /// Called before the first kernel of a prepared module.
  virtual void beginKernels(mlir::ModuleOp module) {}
  /// The last part of the kernel's name, which profiles show: the op's, and what tells its algorithm.
  virtual std::string kernelName(mlir::Operation *op) const;
  /// Emits the function of a kernel op or a bare hlo op into `module`. Diagnoses what it cannot.
  virtual mlir::FailureOr<EmittedKernel> emitKernel(mlir::Operation *op, mlir::ModuleOp module, llvm::StringRef name) const = 0;

  /// Whether kernels are launched on a device with memory of its own.
  virtual bool launches() const { return false; }
  /// Of a backend that launches: the code of `launches`, whose functions lie in `kernels`, in the LLVM dialect, for the device's
  /// driver; the first image is the one that the most devices take. Sets their blocks. Diagnoses.
  virtual mlir::FailureOr<std::vector<Image>> makeImages(mlir::ModuleOp kernels, llvm::MutableArrayRef<Launch> launches) const;
  /// Why Processor::archs and cubins cannot be made, or nothing.
  virtual std::string refuseImages() const;
  /// Tools of others that images are made with, "ptxas 13.0.88": part of what an object says that it was made by.
  virtual std::string tools() const { return {}; }
  /// What is known of the kernels of an image.
  virtual std::vector<KernelFacts> kernelFacts(const Image &image) const { return {}; }

  /// Whether there is anything for --tune to choose.
  virtual bool hasPlans() const { return false; }
  /// Plans of a tunable op (isTunable) that are worth measuring in a round, counted from 0, where `best` is the fastest
  /// so far. Nothing behind the last round.
  virtual std::optional<mlir::SmallVector<KernelPlan>> plansToTry(mlir::Operation *op, const KernelPlan &best, int round,
                                                                  bool exact) const {
    return std::nullopt;
  }
};

/// A backend of this build.
struct BackendInfo {
  llvm::StringRef name;
  std::unique_ptr<Backend> (*create)(const Processor &processor);
  void (*registerPasses)(); ///< for lathe-opt; null: it has none
  void (*registerDialects)(mlir::DialectRegistry &registry); ///< of attributes that its passes leave; null: it has none
  bool launches = false;    ///< what its Backend::launches says
};

/// All of them, the default one first.
llvm::ArrayRef<BackendInfo> backends();
/// Their names, joined by ", ".
std::string backendNames();
/// The dialects that emitted functions use.
void registerKernelDialects(mlir::DialectRegistry &registry);
/// Null where the build has no backend of that name; "" is the default one.
std::unique_ptr<Backend> makeBackend(llvm::StringRef name, const Processor &processor);
/// The backend that the module's target names (Target.h); diagnoses where there is none.
mlir::FailureOr<std::unique_ptr<Backend>> backendOf(mlir::ModuleOp module);
/// Whether the backend of that name launches kernels on a device; of "", the default one.
bool launchesKernels(llvm::StringRef name);
/// The dialects of what backends leave in modules, so that these can be read again.
void registerBackendDialects(mlir::DialectRegistry &registry);
/// Registers the passes of all backends and kernel-set-target.
void registerBackendPasses();

} // namespace lathe::codegen

#endif
