// Threads of a block that reduce something together: a warp each, or all of the block.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_TEAM_H
#define LATHE_PASSES_CODEGEN_NVPTX_TEAM_H

#include "passes/codegen/element/Reducer.h"
#include "passes/codegen/nvptx/Block.h"

namespace lathe::hlo {
class ReduceOp;
}

namespace lathe::nvptx {

/// Two lists of partial results to one.
using Combine = llvm::function_ref<mlir::FailureOr<mlir::SmallVector<mlir::Value>>(mlir::ValueRange, mlir::ValueRange)>;

class Team {
public:
  /// `size`: warpThreads, or all threads of the block.
  Team(BlockFrame &frame, int64_t size);

  BlockFrame &frame;
  const int64_t size;
  mlir::Value member; ///< number of this thread in its team
  mlir::Value number; ///< of the team in the block

  /// Emits `body` for the one of `count` results that this team makes, given its number; says how many blocks that takes. No barrier may be
  /// in it where several teams share a block.
  void eachOf(mlir::AffineExpr count, llvm::function_ref<void(mlir::Value)> body);
  /// All results of a reduction where the dimensions that it keeps are at `kept`: the same for all members, who must all call
  /// it. The order depends on sizes alone.
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> reduce(codegen::ElementEmitter &e, hlo::ReduceOp r, mlir::ArrayRef<mlir::Value> kept);
  /// What all members' parts, of these element types, are together: for each member the same. `commutes`: to the bit.
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> total(mlir::ArrayRef<mlir::Type> elements, mlir::SmallVector<mlir::Value> parts,
                                                        bool commutes, Combine combine);

private:
  int64_t used = 0; ///< bytes of shared memory: each reduction has its own, so that none waits for readers of the last
};

/// Parts of 32 results that each warp of a block has made, a result a thread, or `lanes` neighbouring ones of the first threads each: `then`
/// is emitted for the threads of the first warp for which `isResult` holds, with the results that the warps' parts give in order. All threads must reach it.
mlir::LogicalResult acrossWarps(BlockFrame &frame, mlir::ArrayRef<mlir::Type> elements, mlir::ValueRange parts, int64_t lanes, mlir::Value isResult,
                                Combine combine, llvm::function_ref<mlir::LogicalResult(mlir::ValueRange)> then);

constexpr int64_t unknownSize = -1;
/// Elements that a result of `r` is made of, or unknownSize.
int64_t reducedCount(hlo::ReduceOp r);
/// The element types of what a reduction reduces.
mlir::SmallVector<mlir::Type> elementsOf(hlo::ReduceOp r);
/// Whether partial results of a reduction may be formed in any order.
bool isReorderable(hlo::ReduceOp r);

/// A reduction's input, cut into what it keeps and what it goes over.
struct ReducedSpace {
  ReducedSpace(codegen::KernelBuilder &b, hlo::ReduceOp r);
  /// The place where the kept dimensions are at `kept` and the others at number `over`.
  mlir::SmallVector<mlir::Value> at(codegen::KernelBuilder &b, mlir::ArrayRef<mlir::Value> kept, mlir::Value over) const;

  mlir::SmallVector<int64_t> overDims, keptDims;
  mlir::SmallVector<mlir::Value> overSizes, keptSizes;
  mlir::Value count; ///< of elements that one result is made of
};

/// The reducer of `r`, with its initial values.
mlir::FailureOr<codegen::Reducer> makeReducer(codegen::ElementEmitter &e, hlo::ReduceOp r);
/// A step of a reduction: the accumulators with the input's elements at `at`, or `lanes` neighbours from there on.
mlir::FailureOr<mlir::SmallVector<mlir::Value>> reduceStep(codegen::ElementEmitter &e, codegen::Reducer &reducer, hlo::ReduceOp r,
                                                           mlir::ArrayRef<mlir::Value> at, mlir::ValueRange sums, unsigned lanes = 1);
/// A loop over elements `first`, `first` + `stride`, ... below `count`, which one thread of several does: `first` < `stride`. What
/// `adds` up is added up in blocks (LongSums.h).
mlir::FailureOr<mlir::SmallVector<mlir::Value>>
stridedLoop(codegen::KernelBuilder &b, mlir::Value first, int64_t stride, mlir::Value count, mlir::ValueRange start, bool adds,
            llvm::function_ref<mlir::FailureOr<mlir::SmallVector<mlir::Value>>(mlir::Value at, mlir::ValueRange sums)> step);

} // namespace lathe::nvptx

#endif
