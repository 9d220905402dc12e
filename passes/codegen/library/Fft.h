// Fourier transforms of one line, or of as many lines side by side as a vector has lanes, for fft
// (Fft.cpp).
#ifndef LATHE_PASSES_CODEGEN_LIBRARY_FFT_H
#define LATHE_PASSES_CODEGEN_LIBRARY_FFT_H

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Complex.h"

#include <complex>
#include <functional>
#include <memory>

namespace lathe::codegen {

/// How a transform of n = s m numbers goes: passes of radices `first` with vectors along what each leaves to
/// do, which leave s transforms of m numbers; a transpose; passes of radices `second` with vectors along the
/// s results so far.
struct FftPlan {
  int64_t n = 1, s = 1, m = 1;
  unsigned lanes = 1;
  mlir::SmallVector<int64_t> first, second;
  double cost = 0; ///< in vector operations, about
};

/// The cheapest plan for vectors of at most `lanes` lanes; nothing where n has a large prime factor. Lines
/// side by side take `lanes` lanes and passes of the second kind only.
std::optional<FftPlan> planFft(const KernelTarget &target, int64_t n, unsigned lanes, bool sideBySide);

/// exp(-2 pi i k / n)
std::complex<long double> rootOfUnity(int64_t k, int64_t n);

/// Lanes of complex numbers by parts, beginning at an index; only the first `valid` of them matter where
/// there are fewer.
using FftLoad = llvm::function_ref<C(mlir::Value index, unsigned valid)>;
using FftStore = llvm::function_ref<void(C x, mlir::Value index, unsigned valid)>;

/// Complex numbers in scratch, all real parts first.
struct FftBuffer {
  KernelBuilder &b;
  mlir::Type real;
  mlir::Value re, im;

  FftBuffer(KernelBuilder &b, mlir::Type real, mlir::Value base, int64_t count);
  C load(mlir::Value i, unsigned lanes) const;
  void store(C x, mlir::Value i, unsigned valid) const;
  /// Bytes of a buffer that holds `count` numbers and that vectors of any width may overrun.
  static int64_t bytes(mlir::Type real, int64_t count);
};

/// Threads that transform a line together, each a part of every pass: `member` of `size`. Numbers are then single ones.
struct FftTeam {
  mlir::Value member;
  int64_t size;
  std::function<void()> barrier; ///< all members reach it
};

/// x * w with fused multiply-adds where there are any.
C timesC(C x, C w);

/// Transposes as many vectors as each has lanes.
void transposeVectors(KernelBuilder &b, mlir::MutableArrayRef<mlir::Value> v);

/// The code of transforms of n numbers (unscaled). Side by side an index is that of a number of every line.
class FftLine {
public:
  /// With a team for lengths that have a plan, in one lane; all that a team stores is written once it has met again.
  FftLine(KernelBuilder &b, mlir::Type real, int64_t n, bool inverse, bool sideBySide, unsigned lanes = 0, const FftTeam *team = nullptr);

  unsigned lanes() const { return convolution ? convolution->lanes() : plan.lanes; }
  double cost() const;
  int64_t scratchBytes() const;
  /// All of the input is read before the first of the output is written, unless one pass does it all.
  void emit(FftLoad load, FftStore store, mlir::Value scratch);
  /// What reads or writes a buffer as one line, or side by side.
  C get(const FftBuffer &from, mlir::Value i) const;
  void put(C x, const FftBuffer &to, mlir::Value i, unsigned valid) const;
  /// Runs over all indices of 0 to count, a whole vector's or fewer; a team's members share them.
  void forAll(int64_t count, llvm::function_ref<void(mlir::Value, unsigned)> body);
  /// The buffer in `scratch` that the last pass does not read, and that the first one does not write.
  FftBuffer notRead(mlir::Value scratch) const;
  FftBuffer notWritten(mlir::Value scratch) const;

private:
  int64_t bufferCount() const;
  void emitPasses(FftLoad load, FftStore store, mlir::Value scratch);
  void emitConvolution(FftLoad load, FftStore store, mlir::Value scratch);
  void firstPass(int64_t p, int64_t done, int64_t length, bool outermost, FftLoad load, FftLoad from,
                 const FftBuffer &to);
  void transpose(const FftBuffer &from, const FftBuffer &to);
  void secondPass(int64_t p, int64_t done, int64_t length, FftLoad from, FftStore to, bool last);
  mlir::Value table(const std::vector<std::complex<long double>> &values, bool byParts);
  int64_t padded(int64_t count) const { return (count + plan.lanes - 1) / plan.lanes * plan.lanes; }

  KernelBuilder &b;
  mlir::Type real;
  int64_t n;
  bool inverse, sideBySide;
  const FftTeam *team;
  FftPlan plan;
  /// By Bluestein's convolution of this length where n has no plan.
  std::unique_ptr<FftLine> convolution;
};

/// Why a team cannot make the lines of an hlo.fft in `shared` bytes; empty if it can.
std::string whyNoTeamFft(mlir::Operation *op, int64_t shared);
/// Whether only that keeps it from transforms of `n` numbers, or of a spectrum, whose parts are `real`: their lines are too long.
bool isTooLongForTeam(hlo::FftType kind, int64_t n, mlir::Type real, int64_t shared);
/// Bytes that a line takes there, and what its widest pass has to do at once.
int64_t teamFftBytes(mlir::Operation *op);
int64_t teamFftWidth(mlir::Operation *op);
mlir::AffineExpr countFftLines(mlir::Operation *op);
/// A line of an hlo.fft of one dimension, made by a team in `scratch`; its results are stored where `isLine` holds (null: always).
void emitTeamFft(mlir::Operation *op, KernelBuilder &b, const FftTeam &team, mlir::Value scratch, mlir::Value line, mlir::Value isLine);

} // namespace lathe::codegen

#endif // LATHE_PASSES_CODEGEN_LIBRARY_FFT_H
