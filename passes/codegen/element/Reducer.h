// A reduction's combiner on scalars and vectors of partial results.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_REDUCER_H
#define LATHE_PASSES_CODEGEN_ELEMENT_REDUCER_H

#include "passes/codegen/element/ElementEmitter.h"

namespace lathe::hlo {
class ReduceOp;
}

namespace lathe::codegen {

class Reducer {
public:
  /// `inits` are scalar register values.
  Reducer(KernelBuilder &b, mlir::Block &body, mlir::SmallVector<mlir::Type> elems,
          mlir::SmallVector<mlir::Value> inits);

  /// Whether partial results may be formed in any order and number: sums, products, extrema, arg-extrema.
  bool reorderable() const { return kind != Kind::Other; }
  /// Whether it adds up floats or complex numbers: long sums are made in blocks (LongSums.h).
  bool adds() const { return addsUp; }
  unsigned size() const { return elems.size(); }
  /// Of an extremum of floats: NaNs may be lost, where that takes fewer instructions.
  void loseNans();
  /// What an accumulator starts with.
  mlir::SmallVector<mlir::Value> start(unsigned lanes);
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> combine(mlir::ValueRange acc, mlir::ValueRange values,
                                                          unsigned lanes);
  /// Vectors to scalars, by halves, for several rows at once.
  mlir::FailureOr<mlir::SmallVector<mlir::SmallVector<mlir::Value>>>
  horizontal(mlir::SmallVector<mlir::SmallVector<mlir::Value>> rows, unsigned lanes);
  /// Brings the initial values in where start() left them out.
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> finish(mlir::SmallVector<mlir::Value> acc, unsigned lanes = 1);

private:
  enum class Kind { Accumulate, Select, Other }; // Select: combining a value with itself changes nothing
  KernelBuilder &b;
  mlir::Block &body;
  mlir::SmallVector<mlir::Type> elems;
  mlir::SmallVector<mlir::Value> inits;
  Kind kind = Kind::Other;
  mlir::Operation *extremum = nullptr; ///< the one op of the body: a maximum or minimum of floats
  bool losesNans = false, addsUp = false;
  int64_t identity = 0;
};

/// A loop over what `r` reduces, with accumulators of all it reduces at once: sums in blocks. `perStep`: how many
/// times a step adds to an accumulator.
mlir::SmallVector<mlir::Value>
reduceLoop(KernelBuilder &b, const Reducer &r, mlir::Value lo, mlir::Value hi, int64_t step, int64_t perStep,
           mlir::ValueRange inits,
           llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

/// Independent accumulators of a row.
constexpr unsigned reduceChains = 4;

/// Accumulates a row: for `over` in [0, n) vectors of `lanes` in independent chains, rest masked or one by one.
/// `values(at, lanes, mask)` gives the operands. Returns scalars that still lack the initial values.
mlir::FailureOr<mlir::SmallVector<mlir::Value>>
reduceRow(KernelBuilder &b, Reducer &r, mlir::Value n, unsigned lanes, bool masked,
          llvm::function_ref<mlir::FailureOr<mlir::SmallVector<mlir::Value>>(mlir::Value, unsigned, mlir::Value)> values,
          mlir::ValueRange carried = {});

/// The same for several rows at once: states of all rows, one row after the other. A row's are the same bits as alone.
mlir::FailureOr<mlir::SmallVector<mlir::Value>>
reduceRows(KernelBuilder &b, Reducer &r, unsigned rows, mlir::Value n, unsigned lanes, bool masked,
           llvm::function_ref<mlir::FailureOr<mlir::SmallVector<mlir::Value>>(unsigned row, mlir::Value at, unsigned lanes,
                                                                             mlir::Value mask)>
               values,
           mlir::ValueRange carried = {});

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_REDUCER_H
