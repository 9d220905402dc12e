// What hlo's builders say while one node or operator is translated, so that errors name it.
#ifndef LATHE_PASSES_LEGALIZE_COMPLAINTS_H
#define LATHE_PASSES_LEGALIZE_COMPLAINTS_H

#include "passes/legalize/HloContext.h"

#include "llvm/ADT/Twine.h"

namespace lathe::legalize {

/// While it lives, errors that name no node or variable are kept instead of told.
class Complaints {
public:
  explicit Complaints(HloContext &context);
  /// Translates. `error` tells an error of the node; it gets what was kept, or, of a failure that nobody explained, that there is no
  /// compiled form. Failure after any error, whether or not `translate` went on with what stands for the value; what builders say
  /// of that is noise.
  mlir::LogicalResult run(llvm::function_ref<mlir::LogicalResult()> translate,
                          llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)> error);

private:
  HloContext &context;
  llvm::SmallVector<std::string> texts;
  mlir::ScopedDiagnosticHandler collect;
};

} // namespace lathe::legalize

#endif
