//===- Problems.h - the list of what is wrong with a model ------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_PROBLEMS_H
#define LATHE_COMPILER_IMPORT_PROBLEMS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace lathe::import {

/// Which node a problem is about; `function` is empty in the main graph.
struct NodeId {
  llvm::StringRef name, op, function;
};

/// Reports problems as diagnostics and counts them; the first hundred are printed.
class Problems {
public:
  explicit Problems(mlir::MLIRContext *context) : context(context) {}

  /// "node 'x' (Op) in function 'f': text"
  void add(const NodeId &node, const llvm::Twine &text);
  /// A problem of the model as a whole.
  void add(const llvm::Twine &text);
  /// Says how many were not printed; call once at the end.
  void finish();

  bool any() const { return count != 0; }
  mlir::MLIRContext *getContext() const { return context; }

private:
  mlir::MLIRContext *context;
  unsigned count = 0;
};

/// A name from a file for a message: control characters and bytes beyond ASCII escaped, cut when very long.
std::string printable(llvm::StringRef name);

} // namespace lathe::import

#endif
