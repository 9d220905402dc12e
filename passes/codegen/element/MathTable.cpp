// f32 functions by tables that fit one or two registers: a permutation picks each lane's entries. For AVX-512 only.
#include "passes/codegen/element/MathParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

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

// exp(x) = 2^(K/16) exp(r), the fraction of the first factor from the table: an error of one unit, half of it the entries'.
static const float expTable[16] = {
    1.0f, 1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
    1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};

static E exp16(E x) {
  E tiny = x < expUnderflow, top = sel(x > 89.0, 89.0, x);
  // the sum rounds to sixteenths and leaves K mod 16 in the low bits
  E k = fma(top, top.c(kLog2e), top.c(786432.0)), n = k - 786432.0;
  E r = fma(n, 1.904654299957768e-09, fma(n, -0.693147182464599609375, top));
  E s = lookUp(expTable, k.bits());
  return scaleBy(fma(s, r * poly(r, {1.0, 0.500016195, 0.16666667}), s), n, !tiny);
}

E expByTable(E x) { return bySixteen(x, exp16); }

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

// What a GELU is below relu, as a function of t = |x|: t/2 erfc(t/sqrt(2)), or t/2 (1 - tanh(...)), around the middle of
// stretch i, i / 4. Minimax fits of the relative error, 2e-7 up to t = 3.5, where results are within three units. In the
// tails it grows, to 2e-5 of results of 1e-13 and to 7e-4 of results of 1e-18; from 7.625 on the results are 0.
constexpr double geluStretch = 0.25, geluEnd = 7.75;
static const float geluErfTable[6][32] = {
    {0.0f, 0.10032342f, 0.15426877f, 0.16997051f, 0.15865526f, 0.13206221f, 0.1002108f, 0.070103526f, 0.045500264f,
     0.027505063f, 0.015524163f, 0.008194349f, 0.004049694f, 0.0018753314f, 8.142018e-4f, 3.3156484e-4f,
     1.2668499e-4f, 4.5426244e-5f, 1.5289535e-5f, 4.8311485e-6f, 1.4332593e-6f, 3.99261e-7f, 1.04442805e-7f,
     2.5657561e-8f, 5.9195475e-9f, 1.2826707e-9f, 2.6104163e-10f, 4.989813e-11f, 8.958775e-12f, 1.5108153e-12f,
     2.3932036e-13f, 0.0f},
    {0.5f, 0.30462667f, 0.13250488f, 7.742802e-4f, -0.08331547f, -0.12266158f, -0.1274692f, -0.11092615f,
     -0.0852318f, -0.059189748f, -0.03761109f, -0.022027535f, -0.011945648f, -0.0060173813f, -0.0028217603f,
     -0.0012338161f, -5.0364935e-4f, -1.9211545e-4f, -6.852902e-5f, -2.2873e-5f, -7.1469103e-6f, -2.0913824e-6f,
     -5.733413e-7f, -1.4729221e-7f, -3.5468027e-8f, -8.007081e-9f, -1.6949954e-9f, -3.3650163e-10f, -6.2659815e-11f,
     -1.0945265e-11f, -1.7936786e-12f, 0.0f},
    {-0.39894202f, -0.37458366f, -0.30805674f, -0.21644287f, -0.12098619f, -0.039955407f, 0.016189031f, 0.04583455f,
     0.053991023f, 0.04860158f, 0.0372479f, 0.025291666f, 0.015511573f, 0.008686895f, 0.0044724923f, 0.0021265727f,
     9.367923e-4f, 3.8322675e-4f, 1.4584373e-4f, 5.170561e-5f, 1.709546e-5f, 5.275963e-6f, 1.5209545e-6f,
     4.0981442e-7f, 1.03260994e-7f, 2.4341757e-8f, 5.3702687e-9f, 1.1091968e-9f, 2.1454187e-10f, 3.886991e-11f,
     6.5979314e-12f, 0.0f},
    {-1.5409847e-5f, 0.06343304f, 0.11001906f, 0.12939419f, 0.12098452f, 0.09275067f, 0.056663435f, 0.023591442f,
     4.4648462e-7f, -0.012645575f, -0.016432106f, -0.0148476f, -0.011079379f, -0.0072125825f, -0.0041998434f,
     -0.0022175887f, -0.0010707251f, -4.7538115e-4f, -1.9483703e-4f, -7.392866e-5f, -2.602627e-5f, -8.51543e-6f,
     -2.5928966e-6f, -7.355737e-7f, -1.9459172e-7f, -4.8040793e-8f, -1.1075502e-8f, -2.385742e-9f, -4.803933e-10f,
     -9.046144e-11f, -1.5936055e-11f, 0.0f},
    {0.066833034f, 0.057272743f, 0.033851564f, 0.004810969f, -0.020022748f, -0.034060113f, -0.035975333f,
     -0.028922427f, -0.01800724f, -0.007722846f, -5.4742995e-4f, 0.0030936762f, 0.0040444923f, 0.003513804f,
     0.002485157f, 0.0015214207f, 8.286919e-4f, 4.076402e-4f, 1.8276015e-4f, 7.513691e-5f, 2.8448416e-5f,
     9.951077e-6f, 3.2235687e-6f, 9.689006e-7f, 2.706166e-7f, 7.032322e-8f, 1.701989e-8f, 3.8397387e-9f,
     8.08073e-10f, 1.5873604e-10f, 2.9121375e-11f, 0.0f},
    {-0.003119225f, -0.013673957f, -0.022340227f, -0.02274136f, -0.016067842f, -0.0061562518f, 0.0027337393f,
     0.007911418f, 0.0089572845f, 0.007134221f, 0.0042356336f, 0.0016477425f, -6.4488772e-6f, -7.338591e-4f,
     -8.431794e-4f, -6.677887e-4f, -4.3319818e-4f, -2.4341905e-4f, -1.2159182e-4f, -5.4778247e-5f, -2.2458496e-5f,
     -8.4306785e-6f, -2.9102994e-6f, -9.268476e-7f, -2.729941e-7f, -7.451171e-8f, -1.8875987e-8f, -4.4439936e-9f,
     -9.733899e-10f, -1.9853988e-10f, -3.773948e-11f, 0.0f},
};
static const float geluTanhTable[6][32] = {
    {0.0f, 0.100324646f, 0.154286f, 0.17003945f, 0.15880801f, 0.1322858f, 0.100428425f, 0.070204616f, 0.045402307f,
     0.02720133f, 0.015084266f, 0.007723144f, 0.003637392f, 0.0015686271f, 6.1619765e-4f, 2.1925209e-4f,
     7.0245966e-5f, 2.0142048e-5f, 5.136744e-6f, 1.1578035e-6f, 2.2918066e-7f, 3.9584943e-8f, 5.9277143e-9f,
     7.6459666e-10f, 8.439891e-11f, 7.9206815e-12f, 6.278608e-13f, 4.176244e-14f, 2.315635e-15f, 1.0632854e-16f,
     4.0165442e-18f, 0.0f},
    {0.5f, 0.30464593f, 0.1326301f, 0.0010617458f, -0.08296408f, -0.12249263f, -0.12771079f, -0.11159698f,
     -0.08609926f, -0.059914537f, -0.037951577f, -0.021948924f, -0.011584168f, -0.005564346f, -0.0024226436f,
     -9.513594e-4f, -3.3512272e-4f, -1.05281826e-4f, -2.932206e-5f, -7.19571e-6f, -1.5463213e-6f, -2.8916986e-7f,
     -4.676179e-8f, -6.4975962e-9f, -7.708326e-10f, -7.757488e-11f, -6.5800694e-12f, -4.6738075e-13f,
     -2.7619344e-14f, -1.3490197e-15f, -5.4104752e-17f, 0.0f},
    {-0.39894202f, -0.3744732f, -0.30775306f, -0.21615411f, -0.12107495f, -0.040591393f, 0.015258476f, 0.045139182f,
     0.05393759f, 0.049189284f, 0.03812293f, 0.0260332f, 0.015883945f, 0.008698503f, 0.00427473f, 0.0018800854f,
     7.370077e-4f, 2.5625486e-4f, 7.860692e-5f, 2.1154372e-5f, 4.965609e-6f, 1.0106546e-6f, 1.7728493e-7f,
     2.6639462e-8f, 3.4078518e-9f, 3.6883377e-10f, 3.3562077e-11f, 2.5514803e-12f, 1.6102928e-13f, 8.383414e-15f,
     3.5774008e-16f, 0.0f},
    {-1.5759013e-5f, 0.063693814f, 0.110201605f, 0.12913178f, 0.12028592f, 0.092093706f, 0.05660318f, 0.024248453f,
     9.559161e-4f, -0.011975555f, -0.016349712f, -0.015239849f, -0.011613379f, -0.0076081487f, -0.0043620584f,
     -0.0022014976f, -9.784695e-4f, -3.8214243e-4f, -1.3067515e-4f, -3.8953596e-5f, -1.00733505e-5f, -2.2481008e-6f,
     -4.3064188e-7f, -7.041156e-8f, -9.770356e-9f, -1.1438859e-9f, -1.12329285e-10f, -9.196986e-12f, -6.240537e-13f,
     -3.488075e-14f, -1.5961923e-15f, 0.0f},
    {0.067169905f, 0.057400104f, 0.033560216f, 0.004289985f, -0.020274661f, -0.033707716f, -0.035225652f,
     -0.02835007f, -0.018015258f, -0.008225502f, -0.0011344672f, 0.0027745902f, 0.004067149f, 0.003729548f,
     0.0027064467f, 0.0016484655f, 8.601457e-4f, 3.8725318e-4f, 1.5066369e-4f, 5.0589508e-5f, 1.4619353e-5f,
     3.6222698e-6f, 7.661561e-7f, 1.376723e-7f, 2.0909196e-8f, 2.6696305e-9f, 2.8494754e-10f, 2.5280578e-11f,
     1.8534e-12f, 1.1161311e-13f, 5.487669e-15f, 0.0f},
    {-0.003190198f, -0.013961141f, -0.022660842f, -0.022741642f, -0.015659248f, -0.005679112f, 0.002833418f,
     0.0075484887f, 0.008462007f, 0.0068882974f, 0.0043419115f, 0.001930481f, 2.2177245e-4f, -6.6441693e-4f,
     -8.9569396e-4f, -7.530907e-4f, -4.922939e-4f, -2.64665e-4f, -1.1944798e-4f, -4.561298e-5f, -1.4770915e-5f,
     -4.0537457e-6f, -9.40641e-7f, -1.8392237e-7f, -3.017878e-8f, -4.136358e-9f, -4.712105e-10f, -4.4381415e-11f,
     -3.4370846e-12f, -2.1763076e-13f, -1.1201296e-14f, 0.0f},
};

static E gelu16(E x, const float (&table)[6][32]) {
  E ax = absE(x);
  E lack = piecewise(table, geluStretch, sel(ax > geluEnd, geluEnd, ax));
  return sel(x > 0.0, x, x * 0.0) - lack; // by the product zeros keep their sign, and -inf gives NaN as in the formulas
}

E geluByTable(E x, bool tanh) {
  if (tanh)
    return bySixteen(x, +[](E v) { return gelu16(v, geluTanhTable); });
  return bySixteen(x, +[](E v) { return gelu16(v, geluErfTable); });
}

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
  if (x.b->target.fastDivision())
    return s / d;
  // the estimate has 17 bits and s five, so u is exact and Newton's step the only rounding
  E estimate = reciprocal14(d), u = s * estimate;
  return fma(u, fma(-d, estimate, 1.0), u);
}

E logisticByTable(E x) { return bySixteen(x, logistic16); }

// x / (1 + exp(-x)). With -x = K ln2/16 + f the exponential is 2^(K/16) exp(f): an entry of the table, to whose exponent whole
// octaves are added, times a polynomial. The factor 1.6762706 that moved from the table into the polynomial is one with which
// the entries are near floats. An entry lacks the bits of its place, which K, shifted, brings along.
static const float swishTable[16] = {
    0.5965624f,  0.59172446f, 0.5880559f, 0.5856085f,  0.58443624f, 0.5845957f, 0.5861457f, 0.5891479f,
    0.5936666f, 0.59976894f, 0.607525f,  0.617008f, 0.6266472f,  0.617607f,  0.6095501f, 0.6025201f};

static E swish16(E x) {
  constexpr double magic = 12582912; // adding it rounds
  E t = sel(x > 60.0, 60.0, x);
  // Only K has a limit below: there f grows, and with it the divisor, so that results become -0, and NaN for -inf as in the
  // formula. ln2/16 in one float is off by 3e-9 of x.
  E k = fma(t, t.c(-16 * kLog2e), t.c(magic));
  k = sel(k > magic + 2047, magic + 2047, k);
  E f = fma(k - magic, 0.693147182464599609375 / 16, t);
  E p = poly(f, {1.676270604133606, -1.676270604133606, 0.8381626009941101, -0.27936846017837524});
  E octaves = k.bits() << 19;
  E e = (lookUp(swishTable, k.bits()).bits() + octaves).asFloat();
  return x / fma(e, p, 1.0);
}

E swishByTable(E x) { return bySixteen(x, swish16); }

} // namespace lathe::codegen
