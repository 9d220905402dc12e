//===- Diagnostics.h - messages that name the node --------------*- C++ -*-===//
//
// Node: one op of the user's graph. Its place in our IR is a NameLoc with its name, whose child may be a NameLoc with
// the op type and then one with the function it stands in (dialects/graph/Types.h). MLIR's own handler prints such
// places as "<unknown>:0: loc(...)" or drops the name, so these handlers print
//   error: node 'dense/MatMul' (MatMul): inner dimensions differ: 128 and 64
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_SUPPORT_DIAGNOSTICS_H
#define LATHE_COMPILER_SUPPORT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe {

/// One diagnostic as one line without severity: "node 'x' (Op): text", or "file:line:col: text" for textual IR.
std::string formatDiagnostic(const mlir::Diagnostic &diagnostic);

/// Prints errors, warnings and notes of `context` to `os` as long as the context lives; remarks are left to
/// handlers installed before.
void installDiagnosticPrinter(mlir::MLIRContext &context, llvm::raw_ostream &os = llvm::errs());

/// Swallows and keeps the diagnostics of `context` while it lives, for callers that return messages.
class CollectedDiagnostics {
public:
  explicit CollectedDiagnostics(mlir::MLIRContext &context);

  /// Error messages in order of arrival, their notes indented beneath them.
  const std::vector<std::string> &errors() const { return errorList; }
  const std::vector<std::string> &warnings() const { return warningList; }
  /// All errors, one a line.
  std::string text() const;

private:
  std::vector<std::string> errorList, warningList;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace lathe

#endif
