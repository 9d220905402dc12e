// Kernels as work on single units.
//
// A *unit* is one element of the results, or one row where results share reductions over it. Units read nothing of each
// other, so any thread may do any of them: a CPU's function loops over [begin, end), a thread of a GPU does one. A nest
// says how many there are and emits the code for one whose number is a value; it knows nothing of what is around.
#ifndef LATHE_PASSES_CODEGEN_PLAIN_NEST_H
#define LATHE_PASSES_CODEGEN_PLAIN_NEST_H

#include "passes/codegen/element/ElementEmitter.h"

#include <functional>
#include <memory>

namespace lathe::hlo {
class ReduceOp;
}

namespace lathe::plain {

struct Nest {
  mlir::AffineExpr units;
  int64_t work = 1; ///< operations of one unit, roughly
  /// Emits one unit at the builder's insertion point; `unit` is an i64 in [0, units). Call it once. Diagnoses.
  std::function<mlir::LogicalResult(mlir::Value unit)> emit;
};

/// Diagnoses an op that has tensors, in its regions too, of sizes that code generation does not know.
mlir::LogicalResult checkSizes(mlir::Operation *op);

/// Whether `op` has a nest: kernel ops, and the hlo ops whose elements are computed one by one.
bool hasNest(mlir::Operation *op);

/// The nest of an op that has one, over the operands and results of `b`'s function, which must outlive it. Failure, with
/// a diagnostic, for ops that another backend's preparations have changed.
mlir::FailureOr<Nest> makeNest(mlir::Operation *op, codegen::KernelBuilder &b);

/// The body of `b`'s function: the nest of `op` for each unit in [begin, end). Sets extent and work. A backend may call it
/// for an op that it has no better code for.
mlir::LogicalResult emitNest(mlir::Operation *op, codegen::KernelBuilder &b);

// --- what nests are made of

/// Operations an element of the roots costs, roughly: of their region alone, not of what the function around computes.
int64_t costOf(mlir::ValueRange roots);

/// Elements of the values of an op's region (or of the op itself), whose operands are bound to their buffers.
struct Elements {
  std::shared_ptr<codegen::ElementEmitter> emitter;
  mlir::SmallVector<mlir::Value> roots; ///< one a result of the op
};

Elements bindOperands(mlir::Operation *op, codegen::KernelBuilder &b);
/// Stores result `k` of the op at `index`, whose number is `place`.
mlir::LogicalResult storeRoot(codegen::KernelBuilder &b, const Elements &elements, size_t k, mlir::ArrayRef<mlir::Value> index,
                              mlir::Value place);
/// Stores all results at one index; `place`: its number, computed of each result's shape if it is null.
mlir::LogicalResult storeRoots(codegen::KernelBuilder &b, const Elements &elements, mlir::ArrayRef<mlir::Value> index, mlir::Value place);
/// Lets the results of a reduction stand for these values wherever their elements are asked for.
void bindReduced(codegen::ElementEmitter &e, hlo::ReduceOp r, mlir::ValueRange values);
/// What preparations for another backend have made of an op, or "".
llvm::StringRef foreignForm(mlir::Operation *op);

/// An element a unit: all roots, of equal shapes, at one index. `steps`: of the longest loop behind an element.
Nest elementNest(codegen::KernelBuilder &b, Elements elements, int64_t steps = 1);
/// kernel.reduce and hlo.reduce: an element of the results a unit.
mlir::FailureOr<Nest> reduceNest(mlir::Operation *op, codegen::KernelBuilder &b, Elements elements);
/// kernel.rows with reductions: a row a unit.
mlir::FailureOr<Nest> rowsNest(mlir::Operation *op, codegen::KernelBuilder &b, Elements elements);

/// Binds the accumulator of a product, convolution or pooling to the loops that compute it; returns their steps. Of poolings
/// whose channels are a multiple of the lanes, and of convolutions as ConvolutionSum says, neighbours can be asked for together.
mlir::FailureOr<int64_t> bindCore(mlir::Operation *op, codegen::KernelBuilder &b, codegen::ElementEmitter &e);

} // namespace lathe::plain

#endif
