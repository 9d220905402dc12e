// The table from TensorFlow op types to the functions that translate them.
#ifndef LATHE_PASSES_LEGALIZE_HANDLERTABLE_H
#define LATHE_PASSES_LEGALIZE_HANDLERTABLE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <string>
#include <vector>

namespace lathe::legalize {

class NodeContext;

using HandlerFn = std::function<mlir::LogicalResult(NodeContext &)>;

/// How one op type is translated.
struct Handler {
  HandlerFn fn;
  /// Number of data inputs the function counts on; negative -n: at least n - 1.
  int numInputs = -1;
  /// Takes values that are no tensors (lists, variables, ...): looks at NodeContext::value itself.
  bool anyKind = false;
};

class HandlerTable {
public:
  /// Registers `fn` for ops with exactly `numInputs` data inputs (atLeast(n) for variadic ones).
  void add(llvm::StringRef op, int numInputs, HandlerFn fn) { table[op] = {std::move(fn), numInputs, false}; }
  /// The same for ops on lists, variables and functions.
  void addAnyKind(llvm::StringRef op, int numInputs, HandlerFn fn) { table[op] = {std::move(fn), numInputs, true}; }
  static int atLeast(int n) { return -n - 1; }

  const Handler *lookup(llvm::StringRef op) const {
    auto it = table.find(op);
    return it == table.end() ? nullptr : &it->second;
  }
  /// All op types, sorted.
  std::vector<std::string> ops() const;

private:
  llvm::StringMap<Handler> table;
};

/// The table with all families, made once.
const HandlerTable &allHandlers();

// One function a family file.
void registerBasic(HandlerTable &);
void registerMath(HandlerTable &);
void registerSpecial(HandlerTable &);
void registerRecurrent(HandlerTable &);
void registerReduce(HandlerTable &);
void registerProduct(HandlerTable &);
void registerConv(HandlerTable &);
void registerPool(HandlerTable &);
void registerNorm(HandlerTable &);
void registerSoftmax(HandlerTable &);
void registerControl(HandlerTable &);
void registerGradient(HandlerTable &);
void registerLists(HandlerTable &);
void registerState(HandlerTable &);
void registerOptimizers(HandlerTable &);

} // namespace lathe::legalize

#endif
