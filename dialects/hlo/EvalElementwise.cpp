// Elementwise ops of the evaluator: kernels of one element type, and those that change it.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/EvalMath.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace lathe::hlo::eval {

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

static bool holds(ComparisonDirection direction, bool less, bool equal, bool unordered) {
  switch (direction) {
  case ComparisonDirection::EQ: return equal;
  case ComparisonDirection::NE: return !equal;
  case ComparisonDirection::GE: return !unordered && !less;
  case ComparisonDirection::GT: return !unordered && !less && !equal;
  case ComparisonDirection::LE: return less || equal;
  case ComparisonDirection::LT: return less;
  }
  return false;
}

// -NaN < -inf < ... < -0 < 0 < ... < inf < NaN
static int64_t totalOrderKey(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits < 0 ? std::numeric_limits<int64_t>::min() - bits - 1 : bits;
}

static bool compareChunk(CompareOp op, const Chunk &a, const Chunk &b, Chunk &result, int64_t n) {
  ComparisonDirection direction = op.getComparisonDirection();
  bool total = op.getCompareType() == ComparisonType::TOTALORDER;
  switch (kindOf(a.type)) {
  case Kind::Float:
    for (int64_t k = 0; k < n; ++k) {
      double x = a.f[k], y = b.f[k];
      if (total)
        result.i[k] = holds(direction, totalOrderKey(x) < totalOrderKey(y), totalOrderKey(x) == totalOrderKey(y), false);
      else
        result.i[k] = holds(direction, x < y, x == y, std::isnan(x) || std::isnan(y));
    }
    return true;
  case Kind::Int: {
    IntInfo info = intInfo(a.type);
    for (int64_t k = 0; k < n; ++k) {
      int64_t x = a.i[k], y = b.i[k];
      bool less = info.isSigned ? x < y : static_cast<uint64_t>(x) < static_cast<uint64_t>(y);
      result.i[k] = holds(direction, less, x == y, false);
    }
    return true;
  }
  case Kind::Complex:
    for (int64_t k = 0; k < n; ++k) {
      Complex x = a.c[k], y = b.c[k];
      bool less = x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
      bool unordered = std::isnan(x.real()) || std::isnan(x.imag()) || std::isnan(y.real()) || std::isnan(y.imag());
      result.i[k] = holds(direction, less && !unordered, x == y, unordered);
    }
    return true;
  }
  return false;
}

static int64_t floatToInt(double x, IntInfo info) {
  if (info.width == 1)
    return x != 0;
  if (std::isnan(x))
    return 0;
  double t = std::trunc(x);
  if (info.isSigned) {
    double limit = std::ldexp(1.0, info.width - 1);
    int64_t most = info.width == 64 ? INT64_MAX : (int64_t(1) << (info.width - 1)) - 1;
    return t >= limit ? most : (t < -limit ? -most - 1 : static_cast<int64_t>(t));
  }
  uint64_t most = info.width == 64 ? UINT64_MAX : (uint64_t(1) << info.width) - 1;
  return static_cast<int64_t>(t >= std::ldexp(1.0, info.width) ? most : (t <= 0 ? 0 : static_cast<uint64_t>(t)));
}

// a 64-bit integer to double may round: narrower floats then round the integer itself
static double intToFloat(int64_t x, IntInfo info, DType to) {
  if (to == DType::Float64)
    return info.isSigned ? static_cast<double>(x) : static_cast<double>(static_cast<uint64_t>(x));
  return info.isSigned ? static_cast<float>(x) : static_cast<float>(static_cast<uint64_t>(x));
}

static bool convertChunk(const Chunk &a, Chunk &result, int64_t n) {
  Kind from = kindOf(a.type), to = kindOf(result.type);
  IntInfo fromInfo = intInfo(a.type), toInfo = intInfo(result.type);
  for (int64_t k = 0; k < n; ++k) {
    switch (to) {
    case Kind::Float:
      result.f[k] = from == Kind::Float ? a.f[k] : from == Kind::Int ? intToFloat(a.i[k], fromInfo, result.type) : a.c[k].real();
      break;
    case Kind::Int:
      if (from == Kind::Int)
        result.i[k] = toInfo.width == 1 ? a.i[k] != 0 : a.i[k];
      else if (from == Kind::Complex && toInfo.width == 1)
        result.i[k] = a.c[k] != Complex();
      else
        result.i[k] = floatToInt(from == Kind::Float ? a.f[k] : a.c[k].real(), toInfo);
      break;
    case Kind::Complex:
      result.c[k] = from == Kind::Complex ? a.c[k]
                    : from == Kind::Float ? Complex(a.f[k])
                                          : Complex(intToFloat(a.i[k], fromInfo, DType::Float64));
      break;
    }
  }
  return true;
}

static void round(Chunk &chunk, int64_t n) {
  switch (kindOf(chunk.type)) {
  case Kind::Float: return roundFloats(chunk.type, chunk.f.data(), n);
  case Kind::Int: return wrapInts(chunk.type, chunk.i.data(), n);
  case Kind::Complex: return roundComplexes(chunk.type, chunk.c.data(), n);
  }
}

// to `exponent` and `mantissa` bits, ties to even; too big becomes infinite, too small zero
static double reducePrecision(double x, int exponent, int mantissa) {
  if (x == 0 || !std::isfinite(x))
    return x;
  int e;
  double m = std::frexp(x, &e); // m in [0.5, 1)
  double scaled = std::nearbyint(std::ldexp(m, mantissa + 1));
  double value = std::ldexp(scaled, e - mantissa - 1);
  int bias = (1 << (std::min(exponent, 11) - 1)) - 1;
  int top = std::ilogb(value);
  if (top > bias)
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (top < 1 - bias)
    return std::copysign(0.0, x);
  return value;
}

// the neighbour of x towards y in the element type
static double nextAfter(double x, double y, DType type) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == y)
    return y;
  if (type == DType::Float64)
    return std::nextafter(x, y);
  if (type == DType::Float32)
    return std::nextafterf(static_cast<float>(x), static_cast<float>(y));
  // 16- and 8-bit floats: step the bits
  size_t size = dtypeSize(type);
  uint32_t bits = 0;
  storeFloats(type, &x, 1, &bits);
  uint32_t sign = 1u << (size * 8 - 1);
  if ((bits & ~sign) == 0)
    bits = (y < 0 ? sign : 0) | 1;
  else
    bits += ((y > x) == (x > 0)) ? 1 : -1;
  double result;
  loadFloats(type, &bits, 1, &result);
  return result;
}

bool evalChunk(Operation *op, ArrayRef<const Chunk *> in, Chunk &result, int64_t n) {
  if (const Kernel *kernel = findKernel(op->getName())) {
    if (in.empty() || in.size() > 2)
      return false;
    if (isa<AbsOp>(op) && kindOf(in[0]->type) == Kind::Complex) {
      for (int64_t k = 0; k < n; ++k)
        result.f[k] = std::abs(in[0]->c[k]);
      round(result, n);
      return true;
    }
    Kind kind = kindOf(in[0]->type);
    if (kind == Kind::Float && kernel->f) {
      const double *args[2] = {in[0]->f.data(), in.size() > 1 ? in[1]->f.data() : nullptr};
      kernel->f(args, result.f.data(), n);
    } else if (kind == Kind::Int && kernel->i) {
      const int64_t *args[2] = {in[0]->i.data(), in.size() > 1 ? in[1]->i.data() : nullptr};
      kernel->i(args, result.i.data(), n, intInfo(in[0]->type));
    } else if (kind == Kind::Complex && kernel->c) {
      const Complex *args[2] = {in[0]->c.data(), in.size() > 1 ? in[1]->c.data() : nullptr};
      kernel->c(args, result.c.data(), n);
    } else {
      return false;
    }
    round(result, n);
    return true;
  }
  auto predicate = [&](auto f) {
    if (kindOf(in[0]->type) != Kind::Float)
      return false;
    for (int64_t k = 0; k < n; ++k)
      result.i[k] = f(in[0]->f[k]);
    return true;
  };
  auto part = [&](bool imaginary) {
    for (int64_t k = 0; k < n; ++k)
      if (kindOf(in[0]->type) == Kind::Complex)
        result.f[k] = imaginary ? in[0]->c[k].imag() : in[0]->c[k].real();
      else
        result.f[k] = imaginary ? 0 : in[0]->f[k];
    return true;
  };
  auto pick = [&](auto member) {
    auto &out = result.*member;
    for (int64_t k = 0; k < n; ++k)
      out[k] = in[0]->i[k] ? (in[1]->*member)[k] : (in[2]->*member)[k];
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](CompareOp compare) { return compareChunk(compare, *in[0], *in[1], result, n); })
      .Case([&](ConvertOp) {
        convertChunk(*in[0], result, n);
        round(result, n);
        return true;
      })
      .Case([&](SelectOp) {
        switch (kindOf(result.type)) {
        case Kind::Float: return pick(&Chunk::f);
        case Kind::Int: return pick(&Chunk::i);
        case Kind::Complex: return pick(&Chunk::c);
        }
        return false;
      })
      .Case([&](ClampOp) {
        // min(max(operand, min), max)
        OperationName maximum(MaxOp::getOperationName(), op->getContext());
        OperationName minimum(MinOp::getOperationName(), op->getContext());
        const Kernel *high = findKernel(maximum), *low = findKernel(minimum);
        switch (kindOf(result.type)) {
        case Kind::Float: {
          const double *first[2] = {in[1]->f.data(), in[0]->f.data()}, *second[2] = {result.f.data(), in[2]->f.data()};
          high->f(first, result.f.data(), n);
          low->f(second, result.f.data(), n);
          return true;
        }
        case Kind::Int: {
          const int64_t *first[2] = {in[1]->i.data(), in[0]->i.data()}, *second[2] = {result.i.data(), in[2]->i.data()};
          high->i(first, result.i.data(), n, intInfo(result.type));
          low->i(second, result.i.data(), n, intInfo(result.type));
          return true;
        }
        case Kind::Complex: {
          const Complex *first[2] = {in[1]->c.data(), in[0]->c.data()}, *second[2] = {result.c.data(), in[2]->c.data()};
          high->c(first, result.c.data(), n);
          low->c(second, result.c.data(), n);
          return true;
        }
        }
        return false;
      })
      .Case([&](IsFiniteOp) { return predicate([](double x) { return std::isfinite(x); }); })
      .Case([&](IsInfOp) { return predicate([](double x) { return std::isinf(x); }); })
      .Case([&](IsNanOp) { return predicate([](double x) { return std::isnan(x); }); })
      .Case([&](IsNegInfOp) { return predicate([](double x) { return std::isinf(x) && x < 0; }); })
      .Case([&](IsPosInfOp) { return predicate([](double x) { return std::isinf(x) && x > 0; }); })
      .Case([&](RealOp) { return part(false); })
      .Case([&](ImagOp) { return part(true); })
      .Case([&](ComplexOp) {
        for (int64_t k = 0; k < n; ++k)
          result.c[k] = Complex(in[0]->f[k], in[1]->f[k]);
        return true;
      })
      .Case([&](NextAfterOp) {
        for (int64_t k = 0; k < n; ++k)
          result.f[k] = nextAfter(in[0]->f[k], in[1]->f[k], result.type);
        return true;
      })
      .Case([&](RegularizedIncompleteBetaOp) {
        for (int64_t k = 0; k < n; ++k)
          result.f[k] = betaincOf(in[0]->f[k], in[1]->f[k], in[2]->f[k]);
        round(result, n);
        return true;
      })
      .Case([&](ReducePrecisionOp reduce) {
        int exponent = reduce.getExponentBits(), mantissa = reduce.getMantissaBits();
        for (int64_t k = 0; k < n; ++k)
          result.f[k] = reducePrecision(in[0]->f[k], exponent, mantissa);
        round(result, n);
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Whole tensors
//===----------------------------------------------------------------------===//

// f32 without the way over double: the commonest ops, which give the same bits, and those whose rounding shows.
static bool fastFloat(Operation *op, ArrayRef<Tensor> in, Tensor &out) {
  if (out.dtype() != DType::Float32 || in.empty() || in[0].dtype() != DType::Float32)
    return false;
  int64_t n = out.numElements();
  const float *a = in[0].data<float>(), *b = in.size() > 1 ? in[1].data<float>() : nullptr;
  float *r = out.data<float>();
  auto loop = [&](auto f) {
    for (int64_t k = 0; k < n; ++k)
      r[k] = f(k);
    return true;
  };
  if (isa<AddOp>(op))
    return loop([=](int64_t k) { return a[k] + b[k]; });
  if (isa<SubtractOp>(op))
    return loop([=](int64_t k) { return a[k] - b[k]; });
  if (isa<MulOp>(op))
    return loop([=](int64_t k) { return a[k] * b[k]; });
  if (isa<DivOp>(op))
    return loop([=](int64_t k) { return a[k] / b[k]; });
  if (isa<NegOp>(op))
    return loop([=](int64_t k) { return -a[k]; });
  if (isa<IgammaOp>(op))
    return loop([=](int64_t k) { return igammaOf(a[k], b[k]); });
  if (isa<IgammacOp>(op))
    return loop([=](int64_t k) { return igammacOf(a[k], b[k]); });
  if (isa<IgammaGradAOp>(op))
    return loop([=](int64_t k) { return igammaGradAOf(a[k], b[k]); });
  if (isa<RandomGammaGradOp>(op))
    return loop([=](int64_t k) { return randomGammaGradOf(a[k], b[k]); });
  if (isa<PolygammaOp>(op))
    return loop([=](int64_t k) { return polygammaOf(a[k], b[k]); });
  if (isa<ZetaOp>(op))
    return loop([=](int64_t k) { return zetaOf(a[k], b[k]); });
  return false;
}

static LogicalResult evalElementwise(Evaluation &e, Operation *op, ArrayRef<Tensor> in, Tensors &out) {
  // the result has the shape of any operand that is no scalar stand-in
  const Tensor *shape = &in[0];
  for (const Tensor &t : in)
    if (t.rank() > shape->rank())
      shape = &t;
  for (const Tensor &t : in)
    if (t.dims() != shape->dims() && !(t.rank() == 0 && isa<SelectOp, ClampOp>(op)))
      return e.fail(op, "shapes differ at run time: " + dimsToString(shape->dims()) + " and " + dimsToString(t.dims()));
  DType type = toDType(elementType(op->getResult(0)));
  Tensor result;
  int64_t n = shape->numElements();
  if (failed(e.work(op, n)) || failed(e.allocate(op, type, shape->dims(), result)))
    return failure();
  out.push_back(result);
  if (fastFloat(op, in, result))
    return success();
  SmallVector<Chunk, 3> chunks(in.size());
  SmallVector<const Chunk *, 3> pointers;
  SmallVector<bool, 3> isScalar;
  for (auto [t, chunk] : llvm::zip(in, chunks)) {
    chunk.reset(t.dtype());
    pointers.push_back(&chunk);
    isScalar.push_back(t.rank() < shape->rank());
    if (isScalar.back())
      for (int64_t k = 0; k < chunkSize && k < n; ++k) {
        switch (kindOf(t.dtype())) {
        case Kind::Float: loadFloats(t.dtype(), t.data(), 1, &chunk.f[k]); break;
        case Kind::Int: loadInts(t.dtype(), t.data(), 1, &chunk.i[k]); break;
        case Kind::Complex: loadComplexes(t.dtype(), t.data(), 1, &chunk.c[k]); break;
        }
      }
  }
  Chunk chunk;
  chunk.reset(type);
  size_t resultSize = dtypeSize(type);
  for (int64_t at = 0; at < n; at += chunkSize) {
    int64_t count = std::min(chunkSize, n - at);
    for (size_t k = 0; k < in.size(); ++k)
      if (!isScalar[k])
        chunks[k].load(static_cast<const char *>(in[k].data()) + at * dtypeSize(in[k].dtype()), count);
    if (!evalChunk(op, pointers, chunk, count))
      return e.fail(op, "cannot evaluate elements of type " + Twine(dtypeName(in[0].dtype())));
    chunk.store(static_cast<char *>(result.data()) + at * resultSize, count);
  }
  return success();
}

// Same bits: int4 and bool have bytes of their own, so those widths go through values.
static LogicalResult evalBitcast(Evaluation &e, BitcastConvertOp op, ArrayRef<Tensor> in, Tensors &out) {
  DType from = in[0].dtype(), to = toDType(elementType(op.getResult()));
  auto width = [](DType type) { return kindOf(type) == Kind::Int ? intInfo(type).width : 8 * dtypeSize(type); };
  unsigned a = width(from), b = width(to);
  Dims dims = in[0].dims();
  if (a > b)
    dims.push_back(a / b);
  else if (b > a)
    dims.pop_back();
  Tensor result;
  if (failed(e.allocate(op, to, dims, result)))
    return failure();
  if (a >= 8 && b >= 8) {
    std::memcpy(result.data(), in[0].data(), result.sizeBytes());
  } else {
    // through a stream of bits, low bits first
    auto bytesOf = [](DType type) { return dtypeSize(type); };
    const uint8_t *src = static_cast<const uint8_t *>(in[0].data());
    uint8_t *dst = static_cast<uint8_t *>(result.data());
    int64_t bits = in[0].numElements() * a;
    for (int64_t k = 0; k < bits; ++k) {
      int64_t se = k / a, sb = k % a, de = k / b, db = k % b;
      bool bit = src[se * bytesOf(from) + sb / 8] >> (sb % 8) & 1;
      if (bit)
        dst[de * bytesOf(to) + db / 8] |= 1 << (db % 8);
    }
    if (to == DType::Int4)
      for (int64_t k = 0; k < result.numElements(); ++k)
        dst[k] = static_cast<uint8_t>(static_cast<int8_t>(dst[k] << 4) >> 4);
  }
  out.push_back(result);
  return success();
}

static LogicalResult evalConvert(Evaluation &e, ConvertOp op, ArrayRef<Tensor> in, Tensors &out) {
  if (in[0].dtype() == toDType(elementType(op.getResult()))) {
    out.push_back(in[0]);
    return success();
  }
  return evalElementwise(e, op, in, out);
}

template <typename OpT>
static void addElementwise(HandlerTable &table) {
  table[TypeID::get<OpT>()] = evalElementwise;
}
template <typename... OpTs>
static void addAll(HandlerTable &table) {
  (addElementwise<OpTs>(table), ...);
}

void registerElementwise(HandlerTable &table) {
  addAll<AbsOp, CbrtOp, CeilOp, ClzOp, CosineOp, ExpOp, Expm1Op, FloorOp, ImagOp, IsFiniteOp, LogOp, Log1pOp,
         LogisticOp, NegOp, NotOp, PopulationCountOp, RealOp, RoundOp, RoundNearestEvenOp, RsqrtOp, SignOp, SineOp,
         SqrtOp, TanOp, TanhOp>(table);
  addAll<AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, BesselI0eOp, BesselI1eOp, ConjOp, CoshOp, DigammaOp, ErfOp,
         ErfInvOp, ErfcOp, IsInfOp, IsNanOp, IsNegInfOp, IsPosInfOp, LgammaOp, SinhOp, SquareOp>(table);
  addAll<AddOp, AndOp, Atan2Op, ComplexOp, DivOp, MaxOp, MinOp, MulOp, OrOp, PowOp, RemOp, ShiftLeftOp,
         ShiftRightArithmeticOp, ShiftRightLogicalOp, SubtractOp, XorOp>(table);
  addAll<IgammaOp, IgammacOp, IgammaGradAOp, RandomGammaGradOp, NextAfterOp, PolygammaOp, ZetaOp,
         RegularizedIncompleteBetaOp, CompareOp, SelectOp, ClampOp, ReducePrecisionOp>(table);
  add<BitcastConvertOp, evalBitcast>(table);
  add<ConvertOp, evalConvert>(table);
}

} // namespace lathe::hlo::eval
