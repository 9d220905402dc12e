// What the generators of the op families share: the values made so far and how operands are chosen.
#ifndef LATHE_TEST_FUZZ_GRAPHBUILDER_H
#define LATHE_TEST_FUZZ_GRAPHBUILDER_H

#include "GraphGenerator.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace lathe::fuzz {

/// A value and, in Exact graphs, the largest magnitude that it can have.
struct Known {
  mlir::Value value;
  double bound;

  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  mlir::Type element() const { return type().getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
};

class GraphBuilder {
public:
  GraphBuilder(mlir::ModuleOp module, llvm::StringRef name, uint64_t seed, Kind kind);

  Kind kind;
  mlir::func::FuncOp function;
  mlir::ImplicitLocOpBuilder b;
  std::mt19937_64 random;
  std::vector<Known> values;
  std::vector<Tensor> inputs;

  int64_t below(int64_t n) { return n <= 1 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); } ///< both included
  bool chance(int percent) { return below(100) < percent; }
  int64_t randomDim();
  llvm::SmallVector<int64_t> randomShape(int64_t maxRank = 5);
  mlir::Type randomElement();

  bool isFloat(mlir::Type t) const { return mlir::isa<mlir::FloatType>(t); }
  bool isInt(mlir::Type t) const { return mlir::isa<mlir::IntegerType>(t) && t.getIntOrFloatBitWidth() > 1; }
  bool isBool(mlir::Type t) const { return t.isInteger(1); }
  /// Largest integer up to which every integer is a value of the type; infinite for integers, which wrap.
  double exactLimit(mlir::Type t) const;
  /// Whether a result of magnitude `bound` may be made in this graph.
  bool fits(mlir::Type t, double bound) const {
    return kind == Kind::Elementwise || bound <= (kind == Kind::Exact ? exactLimit(t) : 1e5);
  }

  /// A recent value that satisfies the condition, or a new input.
  Known pick();
  std::optional<Known> pickIf(llvm::function_ref<bool(const Known &)> ok);
  Known input(mlir::RankedTensorType type);
  Known constant(mlir::RankedTensorType type);
  /// An operand of this type: an equal one, one broadcast to it, a constant or an input.
  Known match(mlir::RankedTensorType type);
  /// Integer indices around [0, limit), some outside.
  Known indices(llvm::ArrayRef<int64_t> shape, int64_t limit);

  /// Records a result; false and no value where the builder could not infer a type.
  bool push(mlir::Value value, double bound);
  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }
};

// The families; each adds at most a few ops and returns whether it did.
bool addUnary(GraphBuilder &g);
bool addBinary(GraphBuilder &g);
bool addTernary(GraphBuilder &g);
bool addConvert(GraphBuilder &g);
bool addMovement(GraphBuilder &g);
bool addUpdate(GraphBuilder &g);
bool addIndexed(GraphBuilder &g);
bool addReduce(GraphBuilder &g);
bool addWindow(GraphBuilder &g);
bool addProduct(GraphBuilder &g);
bool addConvolution(GraphBuilder &g);
bool addSort(GraphBuilder &g);

} // namespace lathe::fuzz

#endif
