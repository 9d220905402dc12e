// The builder that generators share: it makes the function of one kernel op, or of one bare hlo op,
//   func.func private @name(%operand..., %result..., %scratch, %sizes, %err: !llvm.ptr, %begin, %end: i64)
// whose body uses scf with i64 induction variables, arith, 1-D vectors, a few math ops, and LLVM pointers.
//
// Register types: a tensor element is held as i1 (bool), iN (integers, unsigned too), f32 (also for f16, bf16
// and f8, always holding a value the narrow type can hold), f64, or vector<2xT> (complex: re, im).
// `lanes` > 1 makes a vector of that; complex has all real parts first, then all imaginary parts.
#ifndef LATHE_PASSES_CODEGEN_ELEMENT_KERNELBUILDER_H
#define LATHE_PASSES_CODEGEN_ELEMENT_KERNELBUILDER_H

#include "passes/codegen/ProcessorModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <optional>

namespace lathe::codegen {

/// What the generators need to know about the processor: its instructions, and the numbers of its model.
struct KernelTarget : ProcessorModel {
  int vectorBits = 256;
  bool x86 = true, avx = true, avx2 = true, fma = true, f16c = true;
  bool rounds = true; ///< floor, ceil and roundeven are instructions (SSE4.1)
  bool avx512 = false; ///< F, BW, DQ and VL together
  bool avx512bf16 = false, avx512vnni = false, neon = false;
  bool dotprod = false; ///< AArch64's sdot and udot: four bytes by four of the same kind
  bool i8mm = false;    ///< AArch64's usdot: four without a sign by four with
  bool amxBf16 = false; ///< AMX_TILE and AMX_BF16, beside AVX512_BF16
  bool amxInt8 = false; ///< AMX_TILE and AMX_INT8, beside AVX512_VNNI
  /// Conversions to bf16 may treat denormals as zero, as vcvtneps2bf16 does (--precision bf16).
  bool fastBf16 = false;
  int numVectorRegs = 16;
  bool weightsInCache = false; ///< all constants together fit the last cache
  int threads = 1; ///< that the work of a kernel is shared by; never changes a result

  /// Elements of a register-typed vector; at least 1. Narrow floats count as f32, bool as one byte.
  unsigned lanes(mlir::Type elem) const;
  /// Whether a masked load or store of this element type is one instruction.
  bool hasMaskedMemory(mlir::Type elem) const;
  /// `features` is the resolved LLVM feature string of the CPU ("+avx2,+fma,...").
  static KernelTarget get(llvm::StringRef triple, llvm::StringRef features);
};

/// Codes a kernel stores to %err (0: fine).
enum KernelError : int64_t {
  kErrIndexOutOfRange = 1,
  kErrCheckFailed = 2,
  kErrSizeOutOfBound = 3,
  kErrNotPositiveDefinite = 4,
};

/// A tensor type's element in a register.
mlir::Type regType(mlir::Type elem, unsigned lanes = 1);
/// The type loads and stores use (bool and int4 -> i8, narrow floats -> i8/i16, complex -> its real type).
mlir::Type memType(mlir::Type elem);
/// Bytes of an element in memory.
int64_t elemBytes(mlir::Type elem);
/// `t` widened to `lanes` (scalar -> vector).
mlir::Type widen(mlir::Type t, unsigned lanes);
/// Lanes of a register value's type (1 for scalars).
unsigned lanesOf(mlir::Type t);
bool isUnsignedElem(mlir::Type elem);
/// An integer value, if it is a constant.
std::optional<int64_t> constantOf(mlir::Value v);

/// A builder inside one kernel function, with the helpers all generators share.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  /// Creates the function for `op` in `module` and leaves the insertion point in its body, before the return.
  KernelBuilder(mlir::Operation *op, mlir::ModuleOp module, llvm::StringRef name, const KernelTarget &target);

  const KernelTarget &target;
  mlir::func::FuncOp func;
  mlir::SmallVector<mlir::Value> operands, results; ///< pointers, in the op's order
  mlir::Value scratch, sizes, err, begin, end;

  /// Attributes of the contract.
  void setExtent(mlir::AffineExpr units);
  void setScratch(mlir::AffineExpr bytes);
  void setScratch(int64_t bytes);
  /// In operations of elementwise code, some sixteen a cycle.
  void setWork(int64_t perUnit);
  /// That of multiply-adds of a product: half an operation each, or a whole one where vectors take a cycle
  /// each.
  int64_t multiplyAddWork(int64_t multiplyAdds) const;
  /// What has been set so far, for parts of a kernel that set what is theirs; 0 where it is not constant.
  int64_t attribute(llvm::StringRef name) const;

  // --- integers (i64 unless said otherwise); operands that are constants fold
  mlir::Value i64(int64_t v);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value divU(mlir::Value a, mlir::Value b); ///< both nonnegative, b > 0
  mlir::Value remU(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b); ///< signed
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value lt(mlir::Value a, mlir::Value b); ///< signed
  mlir::Value ge(mlir::Value a, mlir::Value b);
  mlir::Value eq(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b); ///< i1 and
  mlir::Value select(mlir::Value c, mlir::Value a, mlir::Value b);
  /// lo <= v < hi
  mlir::Value inRange(mlir::Value v, mlir::Value lo, mlir::Value hi);
  /// Splat constant of a scalar or vector type; floats rounded from double, integers truncated.
  mlir::Value cst(mlir::Type t, double v);
  mlir::Value cstI(mlir::Type t, int64_t v);
  /// Splat constant whose bits are given.
  mlir::Value cstBits(mlir::Type floatType, uint64_t bits);
  mlir::Value splat(mlir::Value scalar, unsigned lanes);
  /// Complex splat: vector<2xT> -> vector<2*lanes x T>, parts separated.
  mlir::Value splatElem(mlir::Type elem, mlir::Value v, unsigned lanes);

  // --- sizes
  /// The run-time value of an expression over the symbols (folds when constant).
  mlir::Value dim(mlir::AffineExpr e);
  mlir::SmallVector<mlir::Value> dims(mlir::RankedTensorType t);
  mlir::Value numElements(mlir::RankedTensorType t);
  /// Row-major position of `index` in a tensor with these dims.
  mlir::Value linearize(mlir::ValueRange index, mlir::ValueRange dims);
  /// What linearize takes for dims where the rows of a tensor, of its last dimension, lie `row` elements
  /// apart (0: dense).
  mlir::SmallVector<mlir::Value> rowDims(mlir::RankedTensorType t, int64_t row);
  mlir::SmallVector<mlir::Value> delinearize(mlir::Value linear, mlir::ValueRange dims);

  // --- memory; `index` counts elements of `elem`
  mlir::Value ptrAt(mlir::Value base, mlir::Type elem, mlir::Value index);
  mlir::Value ptrBytes(mlir::Value base, mlir::Value bytes);
  /// One element, or `lanes` consecutive ones, as register values. `mask`: vector<lanes x i1>, off lanes read 0.
  mlir::Value loadElem(mlir::Type elem, mlir::Value base, mlir::Value index, unsigned lanes = 1,
                       mlir::Value mask = {});
  void storeElem(mlir::Type elem, mlir::Value v, mlir::Value base, mlir::Value index, mlir::Value mask = {});
  /// Stack room in the entry block; 64-byte aligned.
  mlir::Value alloca(int64_t bytes);
  /// First `n` lanes on (n an i64 value).
  mlir::Value tailMask(mlir::Value n, unsigned lanes);
  /// A constant array of raw little-endian element data beside the function; returns its address.
  mlir::Value constantData(llvm::StringRef bytes);

  // --- control
  void loop(mlir::Value lb, mlir::Value ub, mlir::Value step, llvm::function_ref<void(mlir::Value)> body);
  void loop(mlir::Value lb, mlir::Value ub, llvm::function_ref<void(mlir::Value)> body);
  mlir::SmallVector<mlir::Value>
  loop(mlir::Value lb, mlir::Value ub, mlir::Value step, mlir::ValueRange inits,
       llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  mlir::SmallVector<mlir::Value>
  whileLoop(mlir::ValueRange inits, llvm::function_ref<mlir::Value(mlir::ValueRange)> cond,
            llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::ValueRange)> body);
  void ifThen(mlir::Value cond, llvm::function_ref<void()> body);
  mlir::SmallVector<mlir::Value> ifElse(mlir::Value cond, mlir::TypeRange types,
                                        llvm::function_ref<mlir::SmallVector<mlir::Value>()> then,
                                        llvm::function_ref<mlir::SmallVector<mlir::Value>()> otherwise);
  /// A loop nest over a whole index space, scalar steps.
  void nest(mlir::ValueRange sizes, llvm::function_ref<void(mlir::ValueRange)> body);
  /// for unit in [%begin, %end)
  void units(llvm::function_ref<void(mlir::Value)> body) { loop(begin, end, body); }
  void setError(KernelError code);

private:
  mlir::Value symbol(unsigned k);
  llvm::DenseMap<unsigned, mlir::Value> symbolCache;
  std::map<int64_t, mlir::Value> constantCache;
  unsigned numGlobals = 0;
};

/// Loads the dialects that emitted functions use.
void loadKernelDialects(mlir::MLIRContext &context);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_ELEMENT_KERNELBUILDER_H
