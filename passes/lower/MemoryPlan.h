// Where every tensor of one function lives.
//
// Words: a *root* is a value that owns content (function argument, constant, op result, loop-carried value);
// views (hlo.reshape ...) share their operand's root. A *buffer* holds several roots whose contents are never
// needed at the same time: a loop-carried value, its initial value and the value the body yields; an update
// and what it updates; a result and the output it becomes; a concatenation and the parts that lie in it
// (kernel.joined), which begin at an offset. Buffers of kind Arena get a place in the workspace: an offset in
// a *group*, whose buffers all have sizes that are multiples of one expression (1 for static sizes).
#ifndef LATHE_PASSES_LOWER_MEMORYPLAN_H
#define LATHE_PASSES_LOWER_MEMORYPLAN_H

#include "passes/lower/ConstantPool.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe::lower {

struct Buffer {
  enum Kind { Arena, Input, Output, Constant, Variable, Fill };
  struct Span {
    int64_t begin, end;
    int root;
  };
  Kind kind = Arena;
  int64_t index = 0; ///< input, output, variable number; constant: offset in the pool
  mlir::AffineExpr bytes;
  std::vector<Span> spans;
  std::string fill; ///< Fill: the repeated element (a splat that is only copied from)
  // Arena
  int64_t begin = INT64_MAX, end = -1, offset = 0;
  int group = -1;
};

/// One step of a parallel copy that has been put in order: source to destination, through buffers.
struct Copy {
  mlir::Value source;  ///< null: from buffer `from`
  int from = -1, to = -1;
  mlir::AffineExpr bytes;
};

struct ArenaGroup {
  mlir::AffineExpr unit;
  int64_t bytes = 0; ///< times unit
};

struct PlanStatistics {
  int64_t arenaBytes = 0, sumOfBuffers = 0, copies = 0, buffers = 0, inPlace = 0;
};

class MemoryPlan {
public:
  /// `variableNumber` maps the name in hlo.variable to the module's index. Diagnoses what cannot be planned.
  static mlir::FailureOr<MemoryPlan> create(mlir::func::FuncOp func, ConstantPool &pool,
                                            const llvm::StringMap<int64_t> &variableNumber);

  const Buffer &of(mlir::Value v) const { return buffers[bufferIndex(v)]; }
  int bufferIndex(mlir::Value v) const;
  const Buffer &buffer(int i) const { return buffers[i]; }
  /// Where in its buffer a value begins, in bytes.
  int64_t offsetOf(mlir::Value v) const;
  int numBuffers() const { return static_cast<int>(buffers.size()); }
  llvm::ArrayRef<ArenaGroup> groups() const { return arenaGroups; }

  /// The copies to make before `op` (loop: initial values; terminators: what the construct yields; updates: the
  /// operand that could not be updated in place), in this order.
  llvm::ArrayRef<Copy> copiesAt(mlir::Operation *op) const;
  /// For a constant too large for the pool: what to fill its arena buffer with.
  const std::string *fillAt(mlir::Operation *op) const;

  const PlanStatistics &statistics() const { return stats; }
  void print(llvm::raw_ostream &os) const;

private:
  friend class Planner;
  mlir::func::FuncOp func;
  std::vector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, int> rootOf;  ///< roots only
  std::vector<int> bufferOfRoot;
  std::vector<int64_t> offsetOfRoot; ///< bytes from the buffer's begin
  llvm::DenseMap<mlir::Operation *, std::vector<Copy>> copies;
  llvm::DenseMap<mlir::Operation *, std::string> fills;
  std::vector<ArenaGroup> arenaGroups;
  PlanStatistics stats;
};

/// The operand that `v` is another view of, or null.
mlir::Value viewSource(mlir::Value v);
/// Whether the op's result is its operand under another type: no code, no buffer.
bool isView(mlir::Operation *op);
/// Whether the op holds code of the main function in its regions (while, if, case).
bool isControlFlow(mlir::Operation *op);
/// Whether the op is a concatenation of parts that all lie in its result: no code.
bool isJoin(mlir::Operation *op);
/// dynamic_update_slice and scatter: results start as copies of the first operands.
unsigned numUpdatedOperands(mlir::Operation *op);
/// Bytes of a tensor in memory.
mlir::AffineExpr tensorBytes(mlir::Type type);
int64_t elementBytes(mlir::Type elem);

} // namespace lathe::lower

#endif
