// Special forms: code for ops of certain sizes and types that does better than the plain loops. Each has a `whyNot` that says what
// keeps it from an op, asked once, when the algorithm is chosen and before anything is packed for it. What it takes, it
// must be able to emit.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_SPECIAL_H
#define LATHE_PASSES_CODEGEN_ELEMENT_SPECIAL_H

#include "passes/codegen/element/KernelBuilder.h"

namespace lathe::codegen {

/// What keeps a special form from an op: nothing, that plain loops are the better code, or that it lacks something. The
/// last is a fallback, which is counted and told.
class WhyNot {
public:
  static WhyNot none() { return {}; }
  /// It is not made for ops like this one.
  static WhyNot notMeant(llvm::StringRef reason) { return WhyNot(reason, false); }
  /// It would be faster, but does not know the op's types, ranks or operations, or the target lacks a feature.
  static WhyNot lacks(llvm::StringRef reason) { return WhyNot(reason, true); }

  bool takes() const { return text.empty(); }
  bool isFallback() const { return fallback; }
  llvm::StringRef reason() const { return text; }

private:
  WhyNot() = default;
  WhyNot(llvm::StringRef reason, bool fallback) : text(reason), fallback(fallback) {}
  llvm::StringRef text;
  bool fallback = false;
};

/// Tells what came of asking for a kernel op: a remark (category `kernel`, missed for a fallback). Fallbacks are noted in an
/// attribute (fallbackAttribute), by which lowering counts them. Returns whether the form takes the op.
bool chooseSpecial(mlir::Operation *op, llvm::StringRef form, const WhyNot &why);
/// The same while the op's function is emitted.
bool chooseSpecial(KernelBuilder &b, llvm::StringRef form, const WhyNot &why);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_SPECIAL_H
