// How the operands of a product lie where its tiles read them, and the instruction that multiplies them.
//
// A format with groups has `group` steps of the sum side by side, four bytes on the left, which a tile repeats over a vector, and
// as many elements for each column on the right: [ceil(k / group)][columns][group]. One instruction multiplies the elements of a
// lane and adds their products to the lane's sum.
#ifndef LATHE_PASSES_CODEGEN_CPU_PRODUCT_FORMAT_H
#define LATHE_PASSES_CODEGEN_CPU_PRODUCT_FORMAT_H

#include "base/Tensor.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/product/Product.h"

namespace lathe::cpu {

struct OperandFormat {
  enum class Kind {
    Single, ///< a step at a time, of operands converted to the type of the sums
    Bf16,   ///< pairs of bf16, sums in f32 (vdpbf16ps)
    Words,  ///< pairs of 16 bits, the right ones extended from 8 where they have no more, sums of 32 bits that wrap (vpmaddwd, vpdpwssd)
    Bytes,  ///< four of 8 bits, the right ones signed, sums of 32 bits that wrap (vpdpbusd, sdot, usdot)
  };
  Kind kind = Kind::Single;
  /// Bytes on the left that have not the sign which the instruction wants are read plus `bias`, which changes their upper bit. A
  /// panel starts with what takes that back: for each column -bias times the sum of the right operand, in 32 bits, where the sums begin.
  bool biased = false;
  bool leftUnsigned = false; ///< what AArch64's instruction multiplies on the left
  int64_t bias = 128;

  int64_t group() const { return kind == Kind::Single ? 1 : kind == Kind::Bytes ? 4 : 2; }
  bool isGrouped() const { return kind != Kind::Single; }
  bool isInteger() const { return kind == Kind::Words || kind == Kind::Bytes; }
  /// Steps of the sum as they lie in panels: those of groups that are begun, and the corrections.
  int64_t paddedDepth(int64_t depth) const { return llvm::alignTo(depth, group()); }
  int64_t headSteps() const { return biased ? 4 : 0; }
  /// The left operand's elements in scratch.
  mlir::Type leftElem(mlir::Type accElem) const;
};

/// The format of an op marked `bf16` where no tile registers multiply.
inline OperandFormat bf16Format() { return {OperandFormat::Kind::Bf16, false}; }

/// The format of products of packed narrow integers (x86, and bytes with AArch64's dotprod); Single where the types are none, or the target has no instruction for them.
OperandFormat integerFormat(const KernelTarget &target, mlir::Type aElem, mlir::Type bElem, mlir::Type accElem);

/// The format of such products whose right operand is known at run time only: pairs of 16 bits, which are packed panel by panel.
OperandFormat runTimeFormat(const KernelTarget &target, mlir::Type aElem, mlir::Type bElem, mlir::Type accElem);
/// Why they stay loops of single multiplications. Sizes that are not static are none.
WhyNot whyNotRunTimeGroups(const KernelTarget &target, const ProductTypes &types, std::optional<int64_t> rows, std::optional<int64_t> columns,
                           std::optional<int64_t> depth);

/// The format of what a tile reads.
OperandFormat formatOf(const TileOperands &operands);
/// The format of a product.
OperandFormat formatOf(const KernelTarget &target, const ProductSpec &spec);

/// The target as the choice of tiles sees it: without an instruction that adds too, a product takes a register.
KernelTarget tileTarget(const KernelTarget &target, const OperandFormat &format);

/// acc + the products of groups; x and y as vectors of the operands' elements, `group` for each lane of acc. Words may come as
/// bytes on the right.
mlir::Value multiplyGroups(KernelBuilder &b, const OperandFormat &format, mlir::Value x, mlir::Value y, mlir::Value acc);

/// The accumulators that start with a row of sums, for all rows of the tile the same.
mlir::SmallVector<mlir::Value> loadHead(KernelBuilder &b, TileShape shape, mlir::Type accElem, mlir::Value head);

/// The number at an index of a constant of narrow integers (i8, u8 or i16).
int64_t narrowAt(const Tensor &t, int64_t i);

/// Copies `count` elements at unit stride to the left operand's format. May write zeros behind them: of integers up to a whole group,
/// of bf16 up to 64 bytes.
void copyToFormat(KernelBuilder &b, const OperandFormat &format, mlir::Type accElem, mlir::Type elem, mlir::Value from,
                  mlir::Value to, mlir::Value count);
/// What stands for a number of the left operand, `count` times; for floats 0 alone.
void repeatInFormat(KernelBuilder &b, const OperandFormat &format, mlir::Type accElem, int64_t value, mlir::Value to, mlir::Value count);
inline void zerosOfFormat(KernelBuilder &b, const OperandFormat &format, mlir::Type accElem, mlir::Value to, mlir::Value count) {
  repeatInFormat(b, format, accElem, 0, to, count);
}

} // namespace lathe::cpu

#endif
