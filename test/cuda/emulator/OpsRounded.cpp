// f32 and f64 arithmetic rounded towards zero, down or up: the host's rounding mode is set around it. Built
// with -frounding-math, so that no operation moves out of that range.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

#include <cfenv>

namespace lathe::emu {
namespace {

enum Operation : uint8_t { Add, Sub, Mul, Fma, Div, Rcp, Sqrt };

template <class T>
__attribute__((noinline)) T compute(Operation op, volatile T a, volatile T b, volatile T c) {
  switch (op) {
  case Add:
    return a + b;
  case Sub:
    return a - b;
  case Mul:
    return a * b;
  case Fma:
    return std::fma(a, b, c);
  case Div:
    return a / b;
  case Rcp:
    return T(1) / a;
  case Sqrt:
    return std::sqrt(a);
  }
  return a;
}

/// imm: the operation, the host's mode, .ftz, .sat.
template <class T>
void rounded(Exec &x, const Instr &i, Mask m) {
  auto op = static_cast<Operation>(i.imm & 255);
  int mode = static_cast<int>(i.imm >> 8 & 0xffff);
  bool ftz = i.imm >> 24 & 1, sat = i.imm >> 25 & 1;
  const T *a = x.reg<T>(i.a), *b = x.reg<T>(i.b == None ? i.a : i.b), *c = x.reg<T>(i.c == None ? i.a : i.c);
  T *d = x.reg<T>(i.d);
  std::fesetround(mode);
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    T p = a[l], q = b[l], r = c[l];
    if constexpr (sizeof(T) == 4)
      if (ftz) {
        p = flush(p);
        q = flush(q);
        r = flush(r);
      }
    T v = compute<T>(op, p, q, r);
    if constexpr (sizeof(T) == 4) {
      if (sat)
        v = saturate(v);
      if (ftz)
        v = flush(v);
    }
    d[l] = canonical(v);
  }
  std::fesetround(FE_TONEAREST);
}

} // namespace

/// Takes .rz, .rm or .rp; false without one.
bool decodeRoundedForm(Decoder &d, Type t) {
  int mode = d.takeOneOf({"rz", "rm", "rp"});
  if (mode < 0)
    return false;
  static const std::unordered_map<std::string, Operation> operations = {
      {"add", Add}, {"sub", Sub}, {"mul", Mul}, {"fma", Fma},
      {"mad", Fma}, {"div", Div}, {"rcp", Rcp}, {"sqrt", Sqrt}};
  auto op = operations.find(d.name());
  if (op == operations.end() || t.kind != 'f' || t.packed || t.bits < 32)
    d.fail("no such rounding");
  static const int hostModes[] = {FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  size_t sources = op->second == Fma ? 3 : op->second >= Rcp ? 1 : 2;
  d.i.imm = op->second | hostModes[mode] << 8 | (d.take("ftz") ? 1 << 24 : 0) | (d.take("sat") ? 1 << 25 : 0);
  if (t.bits == 64 && d.i.imm >> 24)
    d.fail("no such modifier");
  d.done(sources + 1);
  d.i.fn = t.bits == 32 ? rounded<float> : rounded<double>;
  d.i.a = d.source(1, t);
  if (sources > 1)
    d.i.b = d.source(2, t);
  if (sources > 2)
    d.i.c = d.source(3, t);
  d.i.d = d.destination(0, t);
  return true;
}

} // namespace lathe::emu
