// f32 functions by tables that fit one or two registers: a permutation picks each lane's entries. For AVX-512 only.
#include "passes/codegen/cpu/MathParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

/// The entries of `table`, 16 or 32 of them, at the low four or five bits of each of 16 indices.
static E lookUp(ArrayRef<float> table, E index) {
  KernelBuilder &b = *index.b;
  auto type = VectorType::get({16}, b.getF32Type());
  auto half = [&](size_t from) -> Value {
    return arith::ConstantOp::create(b, type, DenseElementsAttr::get(type, table.slice(from, 16)));
  };
  auto call = [&](StringRef name, ValueRange args) {
    return E(b, LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), args).getResult(0));
  };
  if (table.size() == 16)
    return call("llvm.x86.avx512.permvar.sf.512", {half(0), index.v});
  return call("llvm.x86.avx512.vpermi2var.ps.512", {half(0), index.v, half(16)});
}

/// `f`, which takes 16 lanes, for any power of two of them: the same instructions, so that results do not depend on it.
static E bySixteen(E x, E (*f)(E)) {
  KernelBuilder &b = *x.b;
  unsigned lanes = x.lanes();
  auto part = [&](Value v, unsigned from, unsigned count) {
    SmallVector<int64_t> pick;
    for (unsigned i = 0; i < count; ++i)
      pick.push_back(std::min<int64_t>(from + i, lanesOf(v.getType()) - 1));
    return E(b, vector::ShuffleOp::create(b, v, v, pick));
  };
  if (lanes == 1) {
    Value wide = vector::BroadcastOp::create(b, VectorType::get({16}, x.type()), x);
    return E(b, vector::ExtractOp::create(b, f(E(b, wide)), int64_t(0)));
  }
  if (lanes < 16)
    return part(f(part(x, 0, 16)), 0, lanes);
  if (lanes == 16)
    return f(x);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, lanes));
  E low = bySixteen(part(x, 0, lanes / 2), f), high = bySixteen(part(x, lanes / 2, lanes / 2), f);
  return E(b, vector::ShuffleOp::create(b, low, high, all));
}

bool hasTables(E x) { return x.b->target.avx512 && llvm::isPowerOf2_32(x.lanes()); }

/// The piece of a table around the nearest multiple of `stretch` to t, from 0 to the last of the table: a polynomial of what
/// is left, coefficient k of piece i at [k][i].
template <size_t pieces> static E piecewise(const float (&table)[6][pieces], double stretch, E t) {
  // the sum rounds to a whole number of stretches and leaves it in the low bits
  E k = fma(t, 1 / stretch, 12582912.0), n = k - 12582912.0, index = k.bits();
  E r = fma(n, -stretch, t);
  E p = lookUp(table[5], index);
  for (int i = 4; i >= 0; --i)
    p = fma(p, r, lookUp(table[i], index));
  return p;
}

// erf(t) / t - 1/2 around the middle of stretch i, i * 67/256: coefficient k of stretch i in row k. Minimax fits of the relative
// error of erf, 3e-9. Beyond 3.925 erf is 1 in f32. The half that is taken off keeps the rounding of the last step small.
constexpr double erfStretch = 67.0 / 256, erfEnd = 3.925;
static const float erfTable[6][16] = {
    {6.2837917e-1f, 6.0313666e-1f, 5.332717e-1f, 4.3378115e-1f, 3.226975e-1f, 2.151015e-1f, 1.2002473e-1f,
     4.0616874e-2f, -2.3852574e-2f, -7.5823255e-2f, -1.17992416e-1f, -1.526621e-1f, -1.8159488e-1f, -2.060854e-1f,
     -2.2707894e-1f, -2.4527363e-1f},
    {-3.5470716e-8f, -1.889818e-1f, -3.3493492e-1f, -4.134585e-1f, -4.256166e-1f, -3.9088458e-1f, -3.3381066e-1f,
     -2.73619e-1f, -2.2068897e-1f, -1.782161e-1f, -1.4550418e-1f, -1.20550685e-1f, -1.01364024e-1f, -8.638281e-2f,
     -7.448546e-2f, -6.488546e-2f},
    {-3.7612322e-1f, -3.3159393e-1f, -2.1807876e-1f, -8.256027e-2f, 2.9426346e-2f, 9.5112115e-2f, 1.1673828e-1f,
     1.10015154e-1f, 9.132441e-2f, 7.1266636e-2f, 5.4399893e-2f, 4.1590016e-2f, 3.2216374e-2f, 2.5378589e-2f,
     2.032697e-2f, 1.65278e-2f},
    {-1.0350307e-4f, 1.08842775e-1f, 1.6965537e-1f, 1.653866e-1f, 1.1501233e-1f, 5.3070135e-2f, 5.6468076e-3f,
     -1.9161412e-2f, -2.6205646e-2f, -2.3977282e-2f, -1.88515e-2f, -1.3934738e-2f, -1.01412665e-2f, -7.436165e-3f,
     -5.543742e-3f, -4.2097857e-3f},
    {1.1436796e-1f, 8.644141e-2f, 2.654069e-2f, -3.0841881e-2f, -5.865232e-2f, -5.4765075e-2f, -3.446009e-2f,
     -1.3986678e-2f, -1.1159234e-3f, 4.1948217e-3f, 5.0507043e-3f, 4.1958434e-3f, 3.0684464e-3f, 2.1535011e-3f,
     1.508979e-3f, 1.0669417e-3f},
    {-1.0444685e-2f, -3.691218e-2f, -4.958596e-2f, -3.442496e-2f, -7.810244e-3f, 1.1684239e-2f, 1.7209288e-2f,
     1.3106783e-2f, 6.6086194e-3f, 1.9227718e-3f, -2.688037e-4f, -8.653331e-4f, -8.036211e-4f, -5.904989e-4f,
     -4.0305432e-4f, -2.9958916e-4f},
};

static E erf16(E x) {
  E ax = absE(x);
  E t = sel(ax > erfEnd, erfEnd, ax);
  return copysignE(fma(t, piecewise(erfTable, erfStretch, t), t * 0.5), x);
}

E erfByTable(E x) { return bySixteen(x, erf16); }

// tanh around the middle of stretch i, i * 37/128, coefficient k in row k: errors of 0.8 units at most, in the second stretch.
// Beyond the last one, 1 from its middle on, tanh is 1 in f32. The first has no constant term, so that small results stay exact.
constexpr double tanhStretch = 37.0 / 128, tanhEnd = 9.1;
static const float tanhTable[6][32] = {
    {0.0f, 0.2812717f, 0.5213013f, 0.69994235f, 0.819814f, 0.8947621f, 0.93957084f, 0.96564656f, 0.9805831f, 0.9890615f,
     0.9938493f, 0.9965451f, 0.9980605f, 0.99891156f, 0.9993893f, 0.9996574f, 0.9998078f, 0.9998922f, 0.9999395f,
     0.9999661f, 0.999981f, 0.99998933f, 0.99999404f, 0.99999666f, 0.9999981f, 0.9999989f, 0.9999994f, 0.99999964f,
     0.9999998f, 0.9999999f, 0.99999994f, 1.0f},
    {1.0f, 0.9208866f, 0.72824496f, 0.5100807f, 0.32790497f, 0.19940078f, 0.11720666f, 0.067526676f, 0.038456887f,
     0.021757446f, 0.012263648f, 0.006897898f, 0.0038752463f, 0.0021756685f, 0.0012210228f, 6.851154e-4f, 3.8437272e-4f,
     2.1563175e-4f, 1.2096418e-4f, 6.7856556e-5f, 3.8064645e-5f, 2.1352509e-5f, 1.1977728e-5f, 6.7189144e-6f,
     3.768975e-6f, 2.114205e-6f, 1.1859621e-6f, 6.652646e-7f, 3.731797e-7f, 2.0933484e-7f, 1.1742621e-7f, 0.0f},
    {9.2139845e-7f, -0.25900325f, -0.37963524f, -0.3570292f, -0.2688249f, -0.17841813f, -0.11012444f, -0.065206856f,
     -0.03771001f, -0.021519313f, -0.012188123f, -0.0068740076f, -0.0038676956f, -0.0021732803f, -0.0012202658f,
     -6.8487425e-4f, -3.842952e-4f, -2.1560646e-4f, -1.20955716e-4f, -6.785361e-5f, -3.8063557e-5f, -2.1352078e-5f,
     -1.1977542e-5f, -6.718828e-6f, -3.768932e-6f, -2.1141827e-6f, -1.1859502e-6f, -6.652581e-7f, -3.7317608e-7f,
     -2.0933282e-7f, -1.1742508e-7f, 0.0f},
    {-0.33338f, -0.2341729f, -0.044867508f, 0.0798687f, 0.11108596f, 0.09317581f, 0.06440134f, 0.04045817f,
     0.024158994f, 0.01403153f, 0.008025325f, 0.0045509883f, 0.0025684617f, 0.0014457012f, 8.12518e-4f, 4.5627065e-4f,
     2.5609872e-4f, 1.4370687e-4f, 8.062751e-5f, 4.523274e-5f, 2.5374778e-5f, 1.4234437e-5f, 7.984945e-6f,
     4.4791955e-6f, 2.5126158e-6f, 1.4094543e-6f, 7.906337e-7f, 4.4350577e-7f, 0.0f, 0.0f, 0.0f, 0.0f},
    {7.9246244e-4f, 0.15001035f, 0.14922322f, 0.06345655f, -9.1061654e-4f, -0.023627877f, -0.023732511f, -0.01734012f,
     -0.011143261f, -0.006725042f, -0.003926915f, -0.0022523752f, -0.001279239f, -7.225811e-4f, -4.0690784e-4f,
     -2.2875165e-4f, -1.2847461e-4f, -7.211702e-5f, -4.0469502e-5f, -2.2706217e-5f, -1.273857e-5f, -7.146174e-6f,
     -4.0087925e-6f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
    {0.1286756f, 0.058110695f, -0.045268357f, -0.059093595f, -0.028776485f, -0.005440899f, 0.0034179243f, 0.0047297445f,
     0.0037047742f, 0.0024419224f, 0.0014904094f, 8.7512285e-4f, 5.0339877e-4f, 2.8635038e-4f, 1.618834e-4f,
     9.120452e-5f, 5.1285962e-5f, 2.8808141e-5f, 1.6172282e-5f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
     0.0f, 0.0f, 0.0f, 0.0f},
};

static E tanh16(E x) {
  E ax = absE(x);
  return copysignE(piecewise(tanhTable, tanhStretch, sel(ax > tanhEnd, tanhEnd, ax)), x);
}

E tanhByTable(E x) { return bySixteen(x, tanh16); }

// With x = K ln2/16 + f the bits of K + 2412, shifted, read as the float s = 2^(K/16) up to a constant and with a straight
// line between powers of two. s / (s + s exp(-x)) is the result, and s exp(-x) is exp(-f) times one of 16 ratios of that
// line to the exponential, those of the table. 2412 rather than a multiple of 16 keeps their sum below one up to x = -2, where
// rounding is half as large; it also makes s 0 where the result is. exp(-f) comes times 0.946737, of all factors the one
// with which the table's entries are nearest to floats (a quarter of their possible error).
constexpr double logisticBias = 2412;
static const float logisticTable[16] = {
    14901605.0f, 15161690.0f, 15372936.0f, 15539017.0f, 15663383.0f, 15749272.0f, 15799724.0f, 15817589.0f,
    15805539.0f, 15766079.0f, 15701555.0f, 15614163.0f, 15505958.0f, 15378862.0f, 15234671.0f, 15075063.0f};

static E logistic16(E x) {
  constexpr double magic = 12582912 + logisticBias; // adding it rounds
  E t = sel(x < -logisticBias * kLn2 / 16, -logisticBias * kLn2 / 16, x);
  t = sel(t > 60.0, 60.0, t);
  E k = fma(t, t.c(16 * kLog2e), t.c(magic)), n = k - magic;
  E f = fma(n, 1.904654299957768e-09 / 16, fma(n, -0.693147182464599609375 / 16, t));
  E p = poly(f, {0.946737, -0.946737, 0.47338393, -0.1577787});
  E s = (k.bits() << 19).asFloat();
  E d = fma(lookUp(logisticTable, k.bits()), p, s);
  // the estimate has 17 bits and s five, so u is exact and Newton's step the only rounding
  E estimate = reciprocal14(d), u = s * estimate;
  return fma(u, fma(-d, estimate, 1.0), u);
}

E logisticByTable(E x) { return bySixteen(x, logistic16); }

} // namespace lathe::cpu
