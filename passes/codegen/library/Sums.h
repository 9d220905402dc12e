// Sums of products, one result at a time: what contractions and convolutions of any element type and layout are.
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_SUMS_H
#define LATHE_PASSES_CODEGEN_LIBRARY_SUMS_H

#include "passes/codegen/element/KernelBuilder.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace lathe::hlo {
class ConvolutionOp;
}

namespace lathe::codegen {

/// Multiply and add in the type that products are summed in: f32 for narrower floats, which are rounded once.
class Accumulator {
public:
  Accumulator(KernelBuilder &b, mlir::Type lhs, mlir::Type rhs, mlir::Type result);
  mlir::Value zero(unsigned lanes = 1);
  mlir::Value step(mlir::Value sum, mlir::Value x, mlir::Value y);
  mlir::Value finish(mlir::Value sum);
  /// As KernelBuilder::loop, for one sum: those of floats in blocks (LongSums.h). `additions`: of a step of the loop.
  mlir::Value loop(mlir::Value lo, mlir::Value hi, int64_t additions, mlir::Value init,
                   llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> body);

private:
  KernelBuilder &b;
  mlir::Type lhs, rhs, result, acc;
};

/// result[index] = sum over `summed` of lhs * rhs.
struct Contraction {
  mlir::RankedTensorType lhs, rhs;
  mlir::Type result; ///< element type
  mlir::SmallVector<int64_t> lhsDims, rhsDims; ///< for each dimension of the result that of the operand, or -1
  mlir::SmallVector<std::pair<int64_t, int64_t>> summed; ///< of lhs and rhs, the outermost first
};

/// That of an hlo.dot_general or hlo.dot.
Contraction contractionOf(mlir::Operation *op);

class ContractionSum {
public:
  ContractionSum(KernelBuilder &b, Contraction what);
  /// The result at `index`, from operands in the kernel's first two pointers; emits loops.
  mlir::Value at(mlir::ValueRange index);
  /// Products of one result; nothing where it depends on run-time sizes.
  std::optional<int64_t> steps() const;

private:
  KernelBuilder &b;
  Contraction what;
  mlir::SmallVector<mlir::Value> lhsSizes, rhsSizes;
  Accumulator accumulator;
};

/// A convolution in StableHLO's terms.
struct Convolution {
  struct Spatial {
    int64_t lhs, rhs, result; ///< dimensions
    int64_t stride = 1, padLow = 0, lhsDilation = 1, rhsDilation = 1;
    bool reversed = false;
  };
  mlir::RankedTensorType lhs, rhs, result; ///< the result's element type is that of the sum
  int64_t lhsBatch, lhsFeature, rhsInput, rhsOutput, resultBatch, resultFeature;
  mlir::SmallVector<Spatial> spatial;
  int64_t groups = 1, batchGroups = 1;

  static Convolution of(hlo::ConvolutionOp op);
};

/// What `lanes` neighbouring features from `feature` on read of a tensor, where each channel has `each` of them. `index`: of the first one's
/// element. Where `each` is more than one, `feature` is a multiple of `lanes`.
mlir::Value loadChannels(KernelBuilder &b, mlir::Type element, mlir::Value base, mlir::Value index, mlir::Value feature, int64_t each,
                         unsigned lanes);

class ConvolutionSum {
public:
  ConvolutionSum(KernelBuilder &b, Convolution what);
  /// `lanes`: of as many neighbours from `index` on, a multiple of `lanes`. Features have to be last everywhere, groups of one channel.
  mlir::Value at(mlir::ValueRange index, unsigned lanes = 1);
  std::optional<int64_t> steps() const;

  // the same of parts that a caller adds up: the accumulator, the sum's steps, and what one of them adds at `index`
  Accumulator accumulator;
  mlir::Value count();
  mlir::Value addStep(mlir::ValueRange index, mlir::Value number, mlir::Value sum);

private:
  /// Where a result's features and batch are read.
  struct Start {
    mlir::SmallVector<mlir::Value> lhs, rhs;
    mlir::Value firstChannel;
  };
  Start startOf(mlir::ValueRange index);
  /// Sets the places along spatial dimension `d` at tap `k`; whether that of lhs exists.
  mlir::Value setTap(Start &start, const Convolution::Spatial &d, mlir::ValueRange index, mlir::Value k);
  mlir::Value addProduct(const Start &start, mlir::Value feature, mlir::Value sum, unsigned lanes);

  KernelBuilder &b;
  Convolution what;
  mlir::SmallVector<mlir::Value> lhsSizes, rhsSizes, resultSizes;
};

} // namespace lathe::codegen

#endif
