// Inside the evaluator: a table of handlers by op, element access, region programs. Users see Evaluator.h.
//
// Element values are held in one of three kinds, whatever the element type: double (all floats), int64_t (bool and all
// integers, unsigned 64-bit as its bits) and complex<double>. A result is rounded or wrapped to its element type when it
// is stored. Kernels work on chunks of up to chunkSize elements.
#ifndef LATHE_DIALECTS_HLO_EVAL_H
#define LATHE_DIALECTS_HLO_EVAL_H

#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Infer.h"

#include "llvm/ADT/DenseMap.h"

#include <complex>
#include <memory>

namespace lathe::hlo::eval {

using Complex = std::complex<double>;
using Tensors = llvm::SmallVector<Tensor>;
using Dims = std::vector<int64_t>;

enum class Kind { Float, Int, Complex };
Kind kindOf(DType type);
/// Bits and sign of an integer type (bool: 1 bit).
struct IntInfo {
  unsigned width;
  bool isSigned;
};
IntInfo intInfo(DType type);

constexpr int64_t chunkSize = 1024;

/// `count` elements from the start of the memory, to the kind's type. A float is exact in double.
void loadFloats(DType type, const void *from, int64_t count, double *to);
void loadInts(DType type, const void *from, int64_t count, int64_t *to);
void loadComplexes(DType type, const void *from, int64_t count, Complex *to);
/// Rounds to nearest even, or wraps.
void storeFloats(DType type, const double *from, int64_t count, void *to);
void storeInts(DType type, const int64_t *from, int64_t count, void *to);
void storeComplexes(DType type, const Complex *from, int64_t count, void *to);
/// The same without memory in between: rounds values in place.
void roundFloats(DType type, double *values, int64_t count);
void wrapInts(DType type, int64_t *values, int64_t count);
void roundComplexes(DType type, Complex *values, int64_t count);

/// All elements of a tensor.
std::vector<double> loadFloats(const Tensor &t);
std::vector<int64_t> loadInts(const Tensor &t);
std::vector<Complex> loadComplexes(const Tensor &t);
template <typename T>
std::vector<T> loadAs(const Tensor &t);
template <typename T>
void storeAs(DType type, const T *from, int64_t count, void *to);

//===----------------------------------------------------------------------===//
// Elementwise kernels
//===----------------------------------------------------------------------===//

/// out[i] = f(in[0][i], ...) on one kind; null where the op has no meaning for the kind.
struct Kernel {
  void (*f)(const double *const *in, double *out, int64_t n) = nullptr;
  void (*i)(const int64_t *const *in, int64_t *out, int64_t n, IntInfo info) = nullptr;
  void (*c)(const Complex *const *in, Complex *out, int64_t n) = nullptr;
};
/// Ops whose operands and result have one element type.
const Kernel *findKernel(mlir::OperationName name);

/// A chunk of values of one element type.
struct Chunk {
  DType type = DType::Invalid;
  std::vector<double> f;
  std::vector<int64_t> i;
  std::vector<Complex> c;
  void reset(DType newType);
  void load(const void *from, int64_t n);
  void store(void *to, int64_t n) const;
};

/// Evaluates an elementwise op on chunks of n elements; false if the op is not elementwise or has no meaning for the
/// type. Scalar operands (select's pred, clamp's bounds) must have been repeated.
bool evalChunk(mlir::Operation *op, llvm::ArrayRef<const Chunk *> operands, Chunk &result, int64_t n);

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

class Evaluation {
public:
  explicit Evaluation(const EvalOptions &options) : options(options), symbols(options.symbols) {}

  /// Runs one op; `results` gets its results.
  llvm::LogicalResult run(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, Tensors &results);
  /// Runs a block on arguments; `results` gets the terminator's operands.
  llvm::LogicalResult runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments, Tensors &results,
                               bool useTap = false);

  /// An error at the op unless silent; always a failure.
  llvm::LogicalResult fail(mlir::Operation *op, const llvm::Twine &message);
  /// A zeroed result; fails with a message if it is too big.
  llvm::LogicalResult allocate(mlir::Operation *op, DType type, Dims dims, Tensor &tensor);
  /// Counts work against the budget.
  llvm::LogicalResult work(mlir::Operation *op, double amount);
  /// Refuses scratch memory beyond the limit on results.
  llvm::LogicalResult scratch(mlir::Operation *op, double bytes);
  llvm::LogicalResult iteration(mlir::Operation *op);
  /// The sizes of a result type from the symbols known; -1 for unknown.
  Dims dimsOf(mlir::Type type) const;
  /// Learns symbols from a value's type and its actual sizes.
  void bind(mlir::Type type, const Tensor &tensor);
  llvm::LogicalResult setSymbol(mlir::Operation *op, int64_t symbol, int64_t value);
  int64_t symbolValue(AffineExpr expr) const;

  /// A value seen by a region from outside; null if unknown (constants are read).
  mlir::FailureOr<Tensor> lookup(mlir::Value value);

  const EvalOptions &options;
  std::vector<int64_t> symbols;

private:
  struct BlockPlan {
    // values to drop after each op
    std::vector<llvm::SmallVector<mlir::Value, 2>> dead;
  };
  const BlockPlan &planOf(mlir::Block &block);
  void define(mlir::Value value, const Tensor &tensor);
  void drop(mlir::Value value);

  llvm::DenseMap<mlir::Value, Tensor> environment;
  llvm::DenseMap<mlir::Block *, std::unique_ptr<BlockPlan>> plans;
  int64_t aliveBytes = 0;
  int64_t iterations = 0;
  double workDone = 0;
  unsigned depth = 0;
};

using Handler = llvm::LogicalResult (*)(Evaluation &, mlir::Operation *, llvm::ArrayRef<Tensor>, Tensors &);
using HandlerTable = llvm::DenseMap<mlir::TypeID, Handler>;


/// Registers `fn(Evaluation &, OpT, ArrayRef<Tensor>, Tensors &)` for OpT.
template <typename OpT, llvm::LogicalResult (*fn)(Evaluation &, OpT, llvm::ArrayRef<Tensor>, Tensors &)>
void add(HandlerTable &table) {
  table[mlir::TypeID::get<OpT>()] = [](Evaluation &e, mlir::Operation *op, llvm::ArrayRef<Tensor> in, Tensors &out) {
    return fn(e, llvm::cast<OpT>(op), in, out);
  };
}

void registerElementwise(HandlerTable &table);
void registerShape(HandlerTable &table);
void registerGather(HandlerTable &table);
void registerReduce(HandlerTable &table);
void registerSort(HandlerTable &table);
void registerDot(HandlerTable &table);
void registerMatrix(HandlerTable &table);
void registerSvd(HandlerTable &table);
void registerEig(HandlerTable &table);
void registerFft(HandlerTable &table);
void registerNorm(HandlerTable &table);
void registerControl(HandlerTable &table);
void registerRandom(HandlerTable &table);
void registerQuant(HandlerTable &table);

//===----------------------------------------------------------------------===//
// Region programs
//===----------------------------------------------------------------------===//

/// The body of a reduction, scatter or comparator: rank-0 elementwise ops, applied to chunks of n independent groups of
/// arguments. Falls back to running the block on scalars.
class RegionProgram {
public:
  llvm::LogicalResult compile(Evaluation &evaluation, mlir::Region &region);
  /// results[k] gets n elements; arguments are chunks of the argument's type.
  llvm::LogicalResult run(llvm::ArrayRef<const Chunk *> arguments, llvm::MutableArrayRef<Chunk> results, int64_t n);
  /// The single op of a body `op(arg0, arg1)` (either order for commutative ones), else null.
  mlir::Operation *singleOp() const { return single; }
  /// The body returns its second argument (a scatter that overwrites).
  bool returnsSecond() const { return second; }

private:
  struct Step {
    mlir::Operation *op;
    llvm::SmallVector<unsigned, 3> operands;
    unsigned result;
  };
  Evaluation *evaluation = nullptr;
  mlir::Block *block = nullptr;
  mlir::Operation *single = nullptr;
  bool second = false, general = false;
  std::vector<Step> steps;
  std::vector<Chunk> values; // arguments, constants, results of steps
  unsigned numArguments = 0;
  llvm::SmallVector<unsigned> returned;
};

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// Row-major strides in elements.
Dims stridesOf(llvm::ArrayRef<int64_t> dims);
/// dst[i . dstStrides] = src[i . srcStrides] for all i below dims; strides in elements, may be 0 or negative (src).
void copyStrided(const char *src, Dims srcStrides, char *dst, Dims dstStrides, Dims dims, size_t elementSize);
/// The dimensions permuted: result dim k is the tensor's dim permutation[k].
Tensor transposed(const Tensor &t, llvm::ArrayRef<int64_t> permutation);
int64_t product(llvm::ArrayRef<int64_t> dims);
Dims toVector(llvm::ArrayRef<int64_t> dims);

} // namespace lathe::hlo::eval

#endif
