// Emits single elements, or `lanes` consecutive ones along the last dimension, of tensors computed by the hlo ops
// of a kernel region. Block arguments (or any value) are bound to buffers or to callbacks first.
//
// With lanes > 1 every index but the last is uniform and the last is that of the first lane. Ops that do not map
// consecutive elements to consecutive elements are evaluated lane by lane into a small stack buffer.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_ELEMENTEMITTER_H
#define LATHE_PASSES_CODEGEN_ELEMENT_ELEMENTEMITTER_H

#include "passes/codegen/element/KernelBuilder.h"

#include <functional>
#include <map>
#include <vector>

namespace lathe::hlo {
class ReduceOp;
}

namespace lathe::codegen {

/// One elementwise hlo op on register values (see KernelBuilder.h for register types). `lanes` > 1: vectors.
mlir::FailureOr<mlir::Value> emitElementwise(KernelBuilder &b, mlir::Operation *op, mlir::ValueRange operands,
                                             unsigned lanes = 1);
/// Whether emitElementwise knows the op.
bool isElementwise(mlir::Operation *op);
/// Element type conversion of register values.
mlir::Value emitConvert(KernelBuilder &b, mlir::Value v, mlir::Type from, mlir::Type to, bool inRange = false);
/// Evaluates a region body of scalar tensors (reducer, comparator, ...) on register values; `lanes` as above.
mlir::FailureOr<mlir::SmallVector<mlir::Value>> emitScalarBody(KernelBuilder &b, mlir::Block &body,
                                                               mlir::ValueRange args, unsigned lanes = 1);

class ElementEmitter {
public:
  using Producer = std::function<mlir::FailureOr<mlir::Value>(mlir::ArrayRef<mlir::Value> index, unsigned lanes)>;

  explicit ElementEmitter(KernelBuilder &b) : b(b) {}

  /// `row`: elements from one row, of the last dimension, to the next; 0: dense.
  void bindBuffer(mlir::Value tensor, mlir::Value ptr, int64_t row = 0) { buffers[tensor] = {ptr, row}; }
  void bindElement(mlir::Value tensor, Producer f) { producers[tensor] = std::move(f); }
  void unbindElement(mlir::Value tensor) { producers.erase(tensor); }

  /// The element(s) of `tensor` at `index` (i64 each) as register values.
  mlir::FailureOr<mlir::Value> emit(mlir::Value tensor, mlir::ArrayRef<mlir::Value> index, unsigned lanes = 1);
  /// All results of a reduction where the dimensions that it keeps are at `index`, in one pass; sums in blocks (LongSums.h).
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> emitReduction(hlo::ReduceOp op, mlir::ArrayRef<mlir::Value> index,
                                                                unsigned lanes = 1);

  /// In lanes mode: lanes that exist. Loads of the other lanes are suppressed. Clear the cache when changing it.
  mlir::Value mask;

  /// Whether emit with lanes > 1 works for `root` (no functions of complex numbers, no unsupported ops).
  static bool canVectorize(mlir::Value root);
  /// Forgets emitted values; call it before emitting at a place that earlier ones do not dominate.
  void clearCache();

  mlir::Value dim(mlir::AffineExpr e) { return b.dim(e); }
  KernelBuilder &builder() { return b; }

  /// Values emitted while this lives are forgotten when it ends: for code inside nested regions.
  class Scope {
  public:
    explicit Scope(ElementEmitter &e) : e(e), mark(e.order.size()) {}
    ~Scope() { e.forgetFrom(mark); }

  private:
    ElementEmitter &e;
    size_t mark;
  };

private:
  using Key = std::pair<mlir::Value, std::vector<void *>>;
  struct KeyLess {
    bool operator()(const Key &x, const Key &y) const {
      auto *p = x.first.getAsOpaquePointer(), *q = y.first.getAsOpaquePointer();
      return p != q ? p < q : x.second < y.second;
    }
  };

  void forgetFrom(size_t mark);
  mlir::FailureOr<mlir::Value> compute(mlir::Value tensor, mlir::ArrayRef<mlir::Value> index, unsigned lanes);
  mlir::FailureOr<mlir::Value> laneByLane(mlir::Value tensor, mlir::ArrayRef<mlir::Value> index, unsigned lanes);
  /// cond ? then() : otherwise(), each in its own region and scope
  mlir::FailureOr<mlir::Value> branch(mlir::Value cond, mlir::Type type,
                                      llvm::function_ref<mlir::FailureOr<mlir::Value>()> then,
                                      llvm::function_ref<mlir::FailureOr<mlir::Value>()> otherwise);
  /// scalar element of a rank-0 or one-element operand, widened
  mlir::FailureOr<mlir::Value> emitSplat(mlir::Value tensor, unsigned lanes);
  struct Buffer {
    mlir::Value ptr;
    int64_t row = 0;
  };
  mlir::FailureOr<mlir::Value> loadBuffer(mlir::Value tensor, const Buffer &buffer,
                                          mlir::ArrayRef<mlir::Value> index, unsigned lanes);

  // one function an op kind; a null Value means: do it lane by lane
  using Index = mlir::ArrayRef<mlir::Value>;
  mlir::FailureOr<mlir::Value> constant(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> broadcast(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> reshape(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> transpose(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> slice(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> dynamicSlice(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> dynamicUpdateSlice(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> pad(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> concatenate(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> iota(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> reverse(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> gather(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> reduce(mlir::Value result, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> bitcast(mlir::Operation *op, Index index, unsigned lanes);
  mlir::FailureOr<mlir::Value> size(mlir::Operation *op, Index index, unsigned lanes);

  KernelBuilder &b;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  std::map<mlir::Value, Producer, bool (*)(mlir::Value, mlir::Value)> producers{
      +[](mlir::Value x, mlir::Value y) { return x.getAsOpaquePointer() < y.getAsOpaquePointer(); }};
  std::map<Key, mlir::Value, KeyLess> cache;
  std::vector<Key> order;
};

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_ELEMENTEMITTER_H
