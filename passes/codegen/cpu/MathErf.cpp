// erf in f32 by a table: sixteen stretches of the positive axis, a polynomial each.
#include "passes/codegen/cpu/MathParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

// erf(t) / t - 1/2 around the middle of stretch i, i * 67/256: coefficient k of stretch i in row k. Minimax fits of the relative
// error of erf, 3e-9. Beyond 3.925 erf is 1 in f32. The half that is taken off keeps the rounding of the last step small.
constexpr double stretch = 67.0 / 256, erfEnd = 3.925;
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

/// Row `k` of the table at the low four bits of each index.
static E lookUp(int k, E index) {
  KernelBuilder &b = *index.b;
  auto type = VectorType::get({16}, b.getF32Type());
  Value row = arith::ConstantOp::create(b, type, DenseElementsAttr::get(type, ArrayRef<float>(erfTable[k])));
  auto name = b.getStringAttr("llvm.x86.avx512.permvar.sf.512");
  return E(b, LLVM::CallIntrinsicOp::create(b, type, name, ValueRange{row, index.v}).getResult(0));
}

E erfByTable(E x) {
  KernelBuilder &b = *x.b;
  unsigned lanes = x.lanes();
  auto part = [&](Value v, unsigned from, unsigned count) {
    SmallVector<int64_t> pick;
    for (unsigned i = 0; i < count; ++i)
      pick.push_back(std::min<int64_t>(from + i, lanesOf(v.getType()) - 1));
    return E(b, vector::ShuffleOp::create(b, v, v, pick));
  };
  // the same instructions for any number of lanes, so that results do not depend on it
  if (lanes == 1) {
    Value wide = vector::BroadcastOp::create(b, VectorType::get({16}, x.type()), x);
    return E(b, vector::ExtractOp::create(b, erfByTable(E(b, wide)), int64_t(0)));
  }
  if (lanes < 16)
    return part(erfByTable(part(x, 0, 16)), 0, lanes);
  if (lanes > 16) {
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, lanes));
    E low = erfByTable(part(x, 0, lanes / 2)), high = erfByTable(part(x, lanes / 2, lanes / 2));
    return E(b, vector::ShuffleOp::create(b, low, high, all));
  }
  E ax = absE(x);
  E t = sel(ax > erfEnd, erfEnd, ax);
  // the sum rounds to a whole number of stretches and leaves it in the low bits
  E k = fma(t, 1 / stretch, 12582912.0), n = k - 12582912.0, index = k.bits();
  E r = fma(n, -stretch, t);
  E p = lookUp(5, index);
  for (int i = 4; i >= 0; --i)
    p = fma(p, r, lookUp(i, index));
  return copysignE(fma(t, p, t * 0.5), x);
}

} // namespace lathe::cpu
