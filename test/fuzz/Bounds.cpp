// How far a compiled op may be from the evaluator on the same operands.
#include "Check.h"

#include "base/Float.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace lathe::fuzz {

double valueAt(const Tensor &t, int64_t i) {
  switch (t.dtype()) {
  case DType::Float32: return t.data<float>()[i];
  case DType::Float64: return t.data<double>()[i];
  case DType::Float16: return halfToFloat(t.data<uint16_t>()[i]);
  case DType::BFloat16: return bfloat16ToFloat(t.data<uint16_t>()[i]);
  case DType::Bool:
  case DType::UInt8: return t.data<uint8_t>()[i];
  case DType::Int8: return t.data<int8_t>()[i];
  case DType::Int16: return t.data<int16_t>()[i];
  case DType::UInt16: return t.data<uint16_t>()[i];
  case DType::Int32: return t.data<int32_t>()[i];
  case DType::UInt32: return t.data<uint32_t>()[i];
  case DType::Int64: return static_cast<double>(t.data<int64_t>()[i]);
  case DType::UInt64: return static_cast<double>(t.data<uint64_t>()[i]);
  default: return 0;
  }
}


static std::string at(const Tensor &got, const Tensor &want, int64_t i) {
  char text[160];
  snprintf(text, sizeof(text), "element %lld of %s%s: got %.17g, expected %.17g", (long long)i, dtypeName(want.dtype()),
           dimsToString(want.dims()).c_str(), valueAt(got, i), valueAt(want, i));
  return text;
}

static std::string sameType(const Tensor &got, const Tensor &want) {
  if (got.dtype() == want.dtype() && got.dims() == want.dims())
    return "";
  return std::string("got ") + dtypeName(got.dtype()) + dimsToString(got.dims()) + ", expected " +
         dtypeName(want.dtype()) + dimsToString(want.dims());
}

/// Complex numbers as pairs of real ones.
static Tensor partsOf(const Tensor &t) {
  std::vector<int64_t> dims(t.dims().begin(), t.dims().end());
  dims.push_back(2);
  Tensor parts = Tensor::allocate(t.dtype() == DType::Complex64 ? DType::Float32 : DType::Float64, dims);
  std::memcpy(parts.data(), t.data(), t.sizeBytes());
  return parts;
}

std::string compareEqual(const Tensor &got, const Tensor &want, bool bits) {
  if (std::string s = sameType(got, want); !s.empty())
    return s;
  if (!std::memcmp(got.data(), want.data(), want.sizeBytes()))
    return "";
  if (isComplex(want.dtype()))
    return compareEqual(partsOf(got), partsOf(want), bits);
  size_t size = dtypeSize(want.dtype());
  for (int64_t i = 0; i < want.numElements(); ++i) {
    if (!std::memcmp(got.data<char>() + i * size, want.data<char>() + i * size, size))
      continue;
    double g = valueAt(got, i), w = valueAt(want, i);
    if (isFloating(want.dtype()) && ((std::isnan(g) && std::isnan(w)) || (!bits && g == w)))
      continue;
    return at(got, want, i);
  }
  return "";
}

std::string compareNear(const Tensor &got, const Tensor &want, double tolerance) {
  if (!isFloating(want.dtype()))
    return compareEqual(got, want, false);
  if (std::string s = sameType(got, want); !s.empty())
    return s;
  double scale = 1e-30;
  for (int64_t i = 0; i < want.numElements(); ++i)
    if (std::isfinite(valueAt(want, i)))
      scale = std::max(scale, std::abs(valueAt(want, i)));
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double g = valueAt(got, i), w = valueAt(want, i);
    if (g != w && !(std::isnan(g) && std::isnan(w)) && !(std::abs(g - w) <= tolerance * scale))
      return at(got, want, i);
  }
  return "";
}

/// Distance to the next larger magnitude of the type.
static double ulp(DType t, double v) {
  int bits = t == DType::Float64 ? 53 : t == DType::Float32 ? 24 : t == DType::Float16 ? 11 : 8;
  int least = t == DType::Float64 ? -1074 : t == DType::Float16 ? -24 : t == DType::BFloat16 ? -133 : -149;
  if (!std::isfinite(v))
    return 0;
  int exponent;
  std::frexp(v, &exponent);
  return std::ldexp(1.0, v == 0 ? least : std::max(exponent - bits, least));
}

/// Units in the last place that an elementwise op may be off; 0 for those IEEE 754 rounds correctly.
static double allowedUlps(Operation *op, DType type) {
  bool narrow = type == DType::Float16 || type == DType::BFloat16;
  if (isa<hlo::PowOp>(op))
    return narrow ? 1 : 8;
  if (isa<hlo::ExpOp, hlo::LogOp, hlo::Log1pOp, hlo::Expm1Op, hlo::TanhOp, hlo::LogisticOp, hlo::RsqrtOp, hlo::CbrtOp,
          hlo::SineOp, hlo::CosineOp, hlo::ErfOp, hlo::AtanOp, hlo::Atan2Op>(op))
    return narrow ? 1 : 4;
  return 0;
}

/// Whether a reduction gives one of its operands, as the largest is.
static bool takesOne(Operation *op) {
  return isa<hlo::ReduceOp, hlo::ReduceWindowOp>(op) && llvm::all_of(op->getRegion(0).front().without_terminator(), [](Operation &o) {
           return isa<hlo::MaxOp, hlo::MinOp>(o);
         });
}

static Tensor magnitudes(const Tensor &t) {
  if (!isFloating(t.dtype()))
    return t;
  Tensor out = t.clone();
  size_t size = dtypeSize(t.dtype());
  for (int64_t i = 0; i < t.numElements(); ++i)
    out.data<uint8_t>()[i * size + size - 1] &= 0x7f;
  return out;
}

// Sums may be formed in any order: (terms + 2) roundings of the sum of magnitudes. Winograd's and Strassen's
// algorithms round those of a whole tile together, so that one that adds nothing but padding is not zero.
static std::string compareSum(Operation *op, ArrayRef<Tensor> operands, const Tensor &got, const Tensor &want, const hlo::EvalOptions &eval) {
  if (!isFloating(want.dtype()))
    return compareEqual(got, want, false);
  SmallVector<Tensor> absolute;
  int64_t terms = 2;
  for (const Tensor &t : operands) {
    absolute.push_back(magnitudes(t));
    terms += want.numElements() ? t.numElements() : 0;
  }
  auto sums = hlo::evaluateOp(op, absolute, eval);
  if (failed(sums))
    return "the evaluator refuses magnitudes";
  // no output adds more terms than the larger operand has elements
  double each = ulp(want.dtype(), 1.0);
  double n = std::min<double>(static_cast<double>(terms), 4096);
  double mixed = 0;
  if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
    for (int64_t i = 0; i < want.numElements(); ++i)
      if (double m = valueAt((*sums)[0], i); std::isfinite(m))
        mixed = std::max(mixed, 4 * each * m);
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double g = valueAt(got, i), w = valueAt(want, i), m = valueAt((*sums)[0], i);
    // infinities may meet in another order, and padding need not be multiplied
    if (!std::isfinite(m))
      continue;
    if (!(std::abs(g - w) <= n * each * m + mixed + ulp(want.dtype(), 0)) && g != w)
      return at(got, want, i);
  }
  return "";
}

std::string compareOp(Operation *op, ArrayRef<Tensor> operands, ArrayRef<Tensor> got, const std::vector<int64_t> &symbols) {
  hlo::EvalOptions eval;
  eval.symbols = symbols;
  auto want = hlo::evaluateOp(op, operands, eval);
  if (failed(want))
    return "the evaluator refuses the op";
  for (size_t r = 0; r < got.size(); ++r) {
    const Tensor &g = got[r], &w = (*want)[r];
    std::string s;
    if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp, hlo::ReduceOp, hlo::ReduceWindowOp>(op)) {
      s = takesOne(op) ? compareEqual(g, w, false) : compareSum(op, operands, g, w, eval);
    } else if (double ulps = isFloating(w.dtype()) ? allowedUlps(op, w.dtype()) : 0; ulps == 0) {
      s = compareEqual(g, w, false);
    } else {
      s = sameType(g, w);
      for (int64_t i = 0; s.empty() && i < w.numElements(); ++i) {
        double x = valueAt(g, i), y = valueAt(w, i);
        if (x == y || (std::isnan(x) && std::isnan(y)))
          continue;
        // next to the largest number a rounding decides between it and infinity
        bool edge = std::isinf(x) != std::isinf(y) && (x > 0) == (y > 0) &&
                    std::abs(std::isinf(x) ? y : x) > (w.dtype() == DType::Float64 ? 1.79e308 : w.dtype() == DType::Float16 ? 65400 : 3.3e38);
        if (!edge && !(std::abs(x - y) <= ulps * ulp(w.dtype(), y)))
          s = at(g, w, i);
      }
    }
    if (!s.empty()) {
      std::string text = op->getName().getStringRef().str() + ": " + s;
      return text;
    }
  }
  return "";
}

} // namespace lathe::fuzz
