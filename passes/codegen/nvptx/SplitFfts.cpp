// nvptx-split-ffts: Fourier transforms of several dimensions, and of lines that do not fit a block's memory, as transforms of shorter lines.
//
// Several dimensions go one after the other, each turned to the end. A line of n = n1 n2 numbers is a matrix [n1, n2]:
//
// Before:  %r = hlo.fft(%x)                               n numbers
// After:   %a = kernel.loop(%x)                           turned, [n2, n1]
//          %b = hlo.fft(%a)                               its lines, of n1 numbers
//          %c = kernel.loop(%b, %roots)                   times exp(-2 pi i j k / n), turned back
//          %d = hlo.fft(%c)                               its lines, of n2 numbers
//          %r = kernel.loop(%d)                           turned, [n2, n1]
//
// A real line that is too long becomes a complex one, and its spectrum the whole one, of which the other half is the conjugate.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/library/Fft.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/NvptxBackend.h"

#include "mlir/Pass/Pass.h"

#include <complex>

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITFFTS
#include "passes/codegen/nvptx/Passes.h.inc"

using hlo::FftType;

namespace {

// The roots are a constant of as many complex numbers.
constexpr int64_t longestSplit = 1 << 20;

Type complexOf(Type element) { return isa<ComplexType>(element) ? element : ComplexType::get(element); }

bool isReal(FftType kind) { return kind == FftType::RFFT || kind == FftType::IRFFT; }

class FftSplitter {
public:
  explicit FftSplitter(hlo::FftOp op) : b(op), loc(op.getLoc()), kind(op.getFftType()) {
    inverse = kind == FftType::IFFT || kind == FftType::IRFFT;
    Type element = hlo::elementType(op.getOperand());
    complex = complexOf(element);
  }
  void run(hlo::FftOp op);

private:
  using Body = llvm::function_ref<Value(OpBuilder &, ValueRange)>;
  Value loop(ValueRange operands, ArrayRef<int64_t> sizes, Type element, Body body) {
    Type type = RankedTensorType::get(sizes, element);
    return kernel::LoopOp::create(b, loc, TypeRange(type), operands, [&](OpBuilder &inner, Location, ValueRange args) {
             return SmallVector<Value>{body(inner, args)};
           })->getResult(0);
  }
  Value reshape(Value x, ArrayRef<int64_t> sizes) {
    auto type = RankedTensorType::get(sizes, hlo::elementType(x));
    return type == x.getType() ? x : hlo::ReshapeOp::create(b, loc, type, x).getResult();
  }
  Value fft(Value x, FftType how, int64_t n) {
    SmallVector<int64_t> sizes(hlo::tensorType(x).getShape());
    sizes.back() = how == FftType::RFFT ? n / 2 + 1 : n;
    Type element = how == FftType::IRFFT ? cast<ComplexType>(complex).getElementType() : complex;
    return hlo::FftOp::create(b, loc, RankedTensorType::get(sizes, element), x, hlo::FftTypeAttr::get(b.getContext(), how),
                              b.getDenseI64ArrayAttr(n));
  }
  /// [lines, p, q] -> [lines, q, p], times `roots` [p, q] where there are some.
  Value turn(Value x, Value roots = {}) {
    SmallVector<int64_t> from(hlo::tensorType(x).getShape()), to{from[0], from[2], from[1]};
    SmallVector<Value> operands{x};
    if (roots)
      operands.push_back(roots);
    return loop(operands, to, complex, [&](OpBuilder &inner, ValueRange args) -> Value {
      Value v = args[0];
      if (roots) {
        Value all = hlo::BroadcastInDimOp::create(inner, loc, cast<RankedTensorType>(v.getType()), args[1], inner.getDenseI64ArrayAttr({1, 2}));
        v = hlo::MulOp::create(inner, loc, v.getType(), v, all);
      }
      return hlo::TransposeOp::create(inner, loc, RankedTensorType::get(to, complex), v, inner.getDenseI64ArrayAttr({0, 2, 1}));
    });
  }
  /// exp(-+2 pi i j k / n) at [j, k].
  Value roots(int64_t n, int64_t rows, int64_t columns) {
    const bool wide = cast<ComplexType>(complex).getElementType().isF64();
    Tensor values = Tensor::allocate(wide ? DType::Complex128 : DType::Complex64, {rows, columns});
    for (int64_t j = 0; j < rows; ++j)
      for (int64_t k = 0; k < columns; ++k) {
        std::complex<long double> w = codegen::rootOfUnity(j * k % n, n);
        std::complex<double> root(double(w.real()), double(inverse ? -w.imag() : w.imag()));
        if (wide)
          values.data<std::complex<double>>()[j * columns + k] = root;
        else
          values.data<std::complex<float>>()[j * columns + k] = std::complex<float>(float(w.real()), float(inverse ? -w.imag() : w.imag()));
      }
    return hlo::makeConstant(b, loc, values);
  }
  Value complexLines(Value x, int64_t n);
  Value lines(Value x, FftType how, int64_t n);
  Value along(Value x, int64_t dim, int64_t n);

  OpBuilder b;
  Location loc;
  FftType kind;
  bool inverse;
  Type complex;
};

/// The factors of n that are nearest to each other; {1, n} where n is not to be cut.
std::pair<int64_t, int64_t> factors(int64_t n) {
  int64_t first = 1;
  if (n <= longestSplit && codegen::planFft(codegen::KernelTarget(), n, 1, false))
    for (int64_t d = 2; d * d <= n; ++d)
      if (n % d == 0)
        first = d;
  return {first, n / first};
}

/// Whether lines are to be cut; `element`: of their complex numbers.
bool isTooLong(FftType kind, int64_t n, Type element) {
  return codegen::isTooLongForTeam(kind, n, cast<ComplexType>(element).getElementType(), fftSharedBytes) && factors(n).first > 1;
}

} // namespace

/// [lines, n], as they come.
Value FftSplitter::complexLines(Value x, int64_t n) {
  const FftType how = inverse ? FftType::IFFT : FftType::FFT;
  if (!isTooLong(how, n, complex))
    return fft(x, how, n);
  auto [n1, n2] = factors(n);
  const int64_t count = hlo::tensorType(x).getDimSize(0);
  Value a = reshape(turn(reshape(x, {count, n1, n2})), {count * n2, n1});
  Value c = turn(reshape(complexLines(a, n1), {count, n2, n1}), roots(n, n2, n1));
  Value d = complexLines(reshape(c, {count * n1, n2}), n2);
  return reshape(turn(reshape(d, {count, n1, n2})), {count, n});
}

Value FftSplitter::lines(Value x, FftType how, int64_t n) {
  if (!isReal(how))
    return complexLines(x, n);
  if (!isTooLong(how, n, complex))
    return fft(x, how, n);
  const int64_t count = hlo::tensorType(x).getDimSize(0), half = n / 2 + 1;
  const SmallVector<int64_t> zero{0, 0}, ones{1, 1};
  Type real = cast<ComplexType>(complex).getElementType();
  if (how == FftType::RFFT) {
    Value y = loop({x}, {count, n}, complex, [&](OpBuilder &inner, ValueRange args) -> Value {
      return hlo::ComplexOp::create(inner, loc, args[0], hlo::makeSplat(inner, loc, 0.0, hlo::tensorType(args[0])));
    });
    return loop({complexLines(y, n)}, {count, half}, complex, [&](OpBuilder &inner, ValueRange args) -> Value {
      return hlo::SliceOp::create(inner, loc, args[0], zero, SmallVector<int64_t>{count, half}, ones);
    });
  }
  Value rest = loop({x}, {count, n - half}, complex, [&](OpBuilder &inner, ValueRange args) -> Value {
    Value v = hlo::SliceOp::create(inner, loc, args[0], SmallVector<int64_t>{0, 1}, SmallVector<int64_t>{count, n - half + 1}, ones);
    v = hlo::ComplexOp::create(inner, loc, hlo::RealOp::create(inner, loc, v), hlo::NegOp::create(inner, loc, hlo::ImagOp::create(inner, loc, v)));
    return hlo::ReverseOp::create(inner, loc, v.getType(), v, inner.getDenseI64ArrayAttr({1}));
  });
  Value y = complexLines(hlo::ConcatenateOp::create(b, loc, SmallVector<Value>{x, rest}, 1), n);
  return loop({y}, {count, n}, real, [&](OpBuilder &inner, ValueRange args) -> Value { return hlo::RealOp::create(inner, loc, args[0]); });
}

/// The complex transform along a dimension that is not the last.
Value FftSplitter::along(Value x, int64_t dim, int64_t n) {
  SmallVector<int64_t> sizes(hlo::tensorType(x).getShape());
  int64_t above = 1, below = 1;
  for (auto [i, size] : llvm::enumerate(sizes))
    (static_cast<int64_t>(i) < dim ? above : below) *= static_cast<int64_t>(i) == dim ? 1 : size;
  Value turned = turn(reshape(x, {above, n, below}));
  Value made = complexLines(reshape(turned, {above * below, n}), n);
  return reshape(turn(reshape(made, {above, below, n})), sizes);
}

void FftSplitter::run(hlo::FftOp op) {
  ArrayRef<int64_t> length = op.getFftLength();
  const int64_t rank = hlo::tensorType(op.getOperand()).getRank(), dims = static_cast<int64_t>(length.size());
  Value x = op.getOperand();
  auto last = [&] {
    SmallVector<int64_t> sizes(hlo::tensorType(x).getShape());
    const int64_t in = sizes.back();
    x = lines(reshape(x, {hlo::tensorType(x).getNumElements() / in, in}), kind, length.back());
    sizes.back() = hlo::tensorType(x).getShape().back();
    x = reshape(x, sizes);
  };
  if (kind != FftType::IRFFT)
    last();
  for (int64_t d = dims - 1; d-- > 0;)
    if (length[d] > 1)
      x = along(x, rank - dims + d, length[d]);
  if (kind == FftType::IRFFT)
    last();
  op.replaceAllUsesWith(x);
  op.erase();
}

namespace {

struct SplitFfts : impl::SplitFftsBase<SplitFfts> {
  void runOnOperation() override {
    SmallVector<hlo::FftOp> ops;
    getOperation().walk([&](hlo::FftOp op) { ops.push_back(op); });
    for (hlo::FftOp op : ops) {
      const RankedTensorType type = hlo::tensorType(op.getOperand()), result = hlo::tensorType(op.getResult());
      const bool isKnown = type.hasStaticShape() && type.getNumElements() > 0 && result.getNumElements() > 0;
      if (!isKnown || (op.getFftLength().size() == 1 && !isTooLong(op.getFftType(), op.getFftLength().back(), complexOf(type.getElementType())))) {
        ++numRefused;
        continue;
      }
      FftSplitter(op).run(op);
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
