// A model ready to run, from whatever the user named: a graph (compiled here and now for this CPU) or a shared library.
#ifndef LATHE_TOOLS_LATHE_SESSION_H
#define LATHE_TOOLS_LATHE_SESSION_H

#include "compiler/driver/Compiler.h"
#include "compiler/jit/Jit.h"
#include "compiler/jit/RunModule.h"
#include "runtime/cpu/ThreadPool.h"
#include "tools/lathe/Commands.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace lathe::cli {

struct Loaded {
  std::unique_ptr<llvm::MemoryBuffer> weights; ///< of a library that left its constants out
  std::shared_ptr<LoadedModule> module;
  double compileSeconds = 0;
  CompiledArtifact artifact; ///< empty for a shared library
};

/// An MLIR context with our dialects and a handler that prints "error: node 'x' (Op): ..." on stderr.
/// (`errors` instead, if given).
std::unique_ptr<mlir::MLIRContext> makeContext(llvm::raw_ostream *errors = nullptr);

/// Loads `args.options.model`; prints why not (into `errors`, if given) and returns an exit status instead.
int load(ModelArgs &args, Loaded &out, std::string *errors = nullptr);

/// Prints why compiling failed, with an example of --input where sizes that are open may be the reason; returns BadInput.
int failWith(const ModelArgs &args, Compiler &compiler, const std::string &why);
/// What failWith adds to `why`: empty, or a line.
std::string sizesHint(const ModelArgs &args, Compiler &compiler, const std::string &why);

/// A runner of one entry with a thread pool of its own when `threads` > 1.
class Runner {
public:
  Runner(std::shared_ptr<LoadedModule> module, int entry, int threads);
  ModuleRunner *operator->() { return &runner; }

private:
  std::unique_ptr<ThreadPool> pool;
  ModuleRunner runner;
};

/// Prints an llvm::Error as ours.
int fail(llvm::Error error);

/// Lets a compiler search for plans (--tune); what it found is told on stderr.
void useTuning(Compiler &compiler);

/// Prints the table of what was quantized, if anything was; false (said) if its file cannot be written.
bool tellQuantized(const Compiler &compiler);

/// Applies MLIR's command-line flags to a compiler's pass managers.
void useMlirFlags(Compiler &compiler);

} // namespace lathe::cli

#endif
