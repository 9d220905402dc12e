// The kernels that this backend has of its own, each with the reason why an op is not one of them.
#ifndef LATHE_PASSES_CODEGEN_NVPTX_FORMS_H
#define LATHE_PASSES_CODEGEN_NVPTX_FORMS_H

#include "passes/codegen/plain/Nest.h"

namespace lathe::nvptx {

struct Form {
  const char *name; ///< what the kernel's name ends with
  /// Why an op that is prepared for no other backend is no such kernel; empty if it is.
  std::string (*whyNot)(mlir::Operation *op);
  mlir::LogicalResult (*emit)(mlir::Operation *op, codegen::KernelBuilder &b);
  /// The same for the code of images for sm_90a, which is launched as the other is; null: it is the other.
  std::string (*whyNotHopper)(mlir::Operation *op) = nullptr;
  mlir::LogicalResult (*emitHopper)(mlir::Operation *op, codegen::KernelBuilder &b) = nullptr;
};

/// The first form that takes the op; null: its nest serves, or says that the op is another backend's (plain::foreignForm).
const Form *findForm(mlir::Operation *op);

// kernel.dot and products of hlo as tiles (Product.cpp)
std::string whyNoProduct(mlir::Operation *op);
mlir::LogicalResult emitProduct(mlir::Operation *op, codegen::KernelBuilder &b);

// the same, and convolutions, on tensor cores
std::string whyNoMmaProduct(mlir::Operation *op);
mlir::LogicalResult emitMmaProduct(mlir::Operation *op, codegen::KernelBuilder &b);
std::string whyNoMmaConv(mlir::Operation *op);
mlir::LogicalResult emitMmaConv(mlir::Operation *op, codegen::KernelBuilder &b);
// and by warpgroups
std::string whyNoWgmmaProduct(mlir::Operation *op);
mlir::LogicalResult emitWgmmaProduct(mlir::Operation *op, codegen::KernelBuilder &b);
std::string whyNoWgmmaConv(mlir::Operation *op);
mlir::LogicalResult emitWgmmaConv(mlir::Operation *op, codegen::KernelBuilder &b);
// products of few rows or columns (Skinny.cpp)
std::string whyNoSkinny(mlir::Operation *op);
mlir::LogicalResult emitSkinny(mlir::Operation *op, codegen::KernelBuilder &b);
// kernel.conv as tiles (Conv.cpp)
std::string whyNoConv(mlir::Operation *op);
mlir::LogicalResult emitConv(mlir::Operation *op, codegen::KernelBuilder &b);
// convolutions of few results (TeamConv.cpp)
std::string whyNoTeamConv(mlir::Operation *op);
mlir::LogicalResult emitTeamConv(mlir::Operation *op, codegen::KernelBuilder &b);
// kernel.rows and reductions (Rows.cpp)
std::string whyNoRows(mlir::Operation *op);
mlir::LogicalResult emitRows(mlir::Operation *op, codegen::KernelBuilder &b);
// the same where threads keep the rows (KeptRows.cpp)
std::string whyNoKeptRows(mlir::Operation *op);
mlir::LogicalResult emitKeptRows(mlir::Operation *op, codegen::KernelBuilder &b);
std::string whyNoReduceColumns(mlir::Operation *op);
mlir::LogicalResult emitReduceColumns(mlir::Operation *op, codegen::KernelBuilder &b);
std::string whyNoReduceRows(mlir::Operation *op);
mlir::LogicalResult emitReduceRows(mlir::Operation *op, codegen::KernelBuilder &b);
// transposes in loops (Transpose.cpp)
std::string whyNoTranspose(mlir::Operation *op);
mlir::LogicalResult emitTranspose(mlir::Operation *op, codegen::KernelBuilder &b);
// poolings and depthwise convolutions, several pixels a thread (Strip.cpp)
std::string whyNoStrip(mlir::Operation *op);
mlir::LogicalResult emitStrip(mlir::Operation *op, codegen::KernelBuilder &b);
// elementwise loops (Wide.cpp)
std::string whyNoWide(mlir::Operation *op);
mlir::LogicalResult emitWide(mlir::Operation *op, codegen::KernelBuilder &b);
// what moves elements and is neither (Moves.cpp)
std::string whyNoMove(mlir::Operation *op);
mlir::LogicalResult emitMove(mlir::Operation *op, codegen::KernelBuilder &b);
// scatters, and what selects elements of windows (Scatter.cpp)
std::string whyNoScatter(mlir::Operation *op);
mlir::LogicalResult emitScatter(mlir::Operation *op, codegen::KernelBuilder &b);
std::string whyNoSelect(mlir::Operation *op);
mlir::LogicalResult emitSelect(mlir::Operation *op, codegen::KernelBuilder &b);
// running reductions (Scan.cpp)
std::string whyNoScan(mlir::Operation *op);
mlir::LogicalResult emitScan(mlir::Operation *op, codegen::KernelBuilder &b);
// sorts of lines and merges of sorted halves (Sort.cpp)
std::string whyNoSort(mlir::Operation *op);
mlir::LogicalResult emitSort(mlir::Operation *op, codegen::KernelBuilder &b);
// Fourier transforms of lines (Fft.cpp)
std::string whyNoFft(mlir::Operation *op);
mlir::LogicalResult emitFft(mlir::Operation *op, codegen::KernelBuilder &b);
constexpr int64_t fftSharedBytes = 48 << 10; ///< that a block has for its lines

/// Why neighbours along the last dimension of `values`, of an op's region or its results, are not made of neighbours of the op's
/// operands; empty if they are. `computes` is set where an elementwise op is among what makes them, `bytes` is at least those of the
/// widest element.
std::string whyNoNeighbours(mlir::Operation *op, mlir::ValueRange values, bool &computes, int64_t &bytes);
/// Tells the accesses of vectors of so many elements in `b`'s function that these lie on their own size: tensors begin on 16 bytes.
void alignVectors(codegen::KernelBuilder &b, int64_t lanes);

/// Why elements of a kernel's results are not made of `from`'s at the same index alone; empty if they are. The answers say
/// `moves` with the op that does, or that a result has another shape than `what`.
std::string whyNotElementByElement(mlir::Block &body, mlir::Value from, llvm::StringRef moves, llvm::StringRef what);
/// Why the epilogue of an op with a core cannot be given one sum at a time, at its own index; empty if it
/// can.
std::string whyNoEpilogue(mlir::Operation *op);
/// Stores an op's results at `index`, where the core's result is `sum`. `place`: the index as one number, if
/// it is known.
mlir::LogicalResult storeResults(codegen::KernelBuilder &b, const plain::Elements &elements, mlir::Value core,
                                 mlir::ArrayRef<mlir::Value> index, mlir::Value sum, mlir::Value place = {});
/// How many neighbours of the last dimension may be stored together by storeConverted: 1 where an epilogue takes one sum at a time, that is
/// does more than convert.
int64_t storedLanes(mlir::Operation *op, mlir::Value core);
/// Stores sums of such an op, elements of the core, as those of its only result from `place` on.
void storeConverted(codegen::KernelBuilder &b, mlir::Operation *op, mlir::Value core, mlir::Value place, mlir::Value sums);
/// As KernelBuilder::loadElem, of elements that lie on a boundary of `align` bytes.
mlir::Value loadAligned(codegen::KernelBuilder &b, mlir::Type element, mlir::Value pointer, mlir::Value index,
                        unsigned lanes, unsigned align);

} // namespace lathe::nvptx

#endif
