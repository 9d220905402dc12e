// ldmatrix and mma.sync. A fragment's elements lie in registers as PTX's manual draws them: with g = lane / 4
// and t = lane % 4, rows are g and g + 8, columns run along t. Products are exact and summed in double, then
// rounded once: within the bounds of any device, whose own order of sums is not documented.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

namespace lathe::emu {
namespace {

/// imm: rows of a matrix in extra->places; flag: transposed.
void loadMatrix(Exec &x, const Instr &i, Mask m) {
  if (!haveAll(x, i, m, Full))
    return;
  uint64_t address[WarpSize];
  accessAddresses(x, i, m, address);
  unsigned n = static_cast<unsigned>(i.extra->places.size());
  // only the first 8 lanes of each matrix give an address
  Mask rows = n == 4 ? Full : (Mask(1) << (8 * n)) - 1;
  uint64_t first = address[0];
  LATHE_LANES address[l] = (rows >> l & 1) ? address[l] : first;
  if (checked(x))
    checkAccess(x, i, rows, i.space, address, 16, Access::Read);
  if (resolve(x, i, rows, i.space, address, 16, false) == Pattern::Failed)
    return;
  for (unsigned k = 0; k < n; ++k) {
    uint16_t matrix[8][8];
    for (unsigned r = 0; r < 8; ++r)
      std::memcpy(matrix[r], reinterpret_cast<const char *>(address[8 * k + r]), 16);
    uint32_t *d = x.reg<uint32_t>(i.extra->places[k]);
    for (unsigned l = 0; l < WarpSize; ++l) {
      unsigned g = l / 4, c = l % 4 * 2;
      uint32_t lo = i.flag ? matrix[c][g] : matrix[g][c], hi = i.flag ? matrix[c + 1][g] : matrix[g][c + 1];
      d[l] = lo | hi << 16;
    }
  }
}

/// How a product's operands are made of registers.
struct Shape {
  int k;
  Type a, b, c, d;
  int perRegister() const { return 32 / a.bits; }
  int registersA() const { return 16 * k / 32 / perRegister(); }
  int registersB() const { return 8 * k / 32 / perRegister(); }
  int registersC(Type t) const { return t.bits == 16 ? 2 : 4; }
};

double elementOf(uint32_t word, int at, Type t) {
  if (t.kind == 't')
    return bitsTo<float>(word & 0xffffe000u);
  if (t.kind == 'h')
    return bfloatToFloat(static_cast<uint16_t>(word >> (16 * at)));
  if (t.kind == 'f')
    return halfToFloat(static_cast<uint16_t>(word >> (16 * at)));
  uint32_t byte = word >> (8 * at) & 255;
  return t.isSigned() ? static_cast<int8_t>(byte) : static_cast<double>(byte);
}

void multiply(Exec &x, const Instr &i, Mask m) {
  if (!haveAll(x, i, m, Full))
    return;
  const auto &p = i.extra->places;
  auto type = [](uint32_t v) { return Type{static_cast<char>(v >> 8), static_cast<uint8_t>(v), false}; };
  Shape s{static_cast<int>(p[0]), type(p[1]), type(p[2]), type(p[3]), type(p[4])};
  const uint32_t *place = p.data() + 5;
  int na = s.registersA(), nb = s.registersB(), nd = s.registersC(s.d), per = s.perRegister();
  const uint32_t *pd = place, *pa = pd + nd, *pb = pa + na, *pc = pb + nb;
  double a[16][32], b[32][8], c[16][8];
  for (int l = 0; l < static_cast<int>(WarpSize); ++l) {
    int g = l / 4, t = l % 4;
    // registers of A alternate between the rows g and g + 8, then go on along k
    for (int r = 0; r < na; ++r)
      for (int e = 0; e < per; ++e)
        a[g + 8 * (r & 1)][t * per + e + 4 * per * (r / 2)] = elementOf(x.reg<uint32_t>(pa[r])[l], e, s.a);
    for (int r = 0; r < nb; ++r)
      for (int e = 0; e < per; ++e)
        b[t * per + e + 4 * per * r][g] = elementOf(x.reg<uint32_t>(pb[r])[l], e, s.b);
    for (int e = 0; e < 4; ++e) {
      uint32_t word = x.reg<uint32_t>(pc[s.c.bits == 16 ? e / 2 : e])[l];
      c[g + 8 * (e / 2)][2 * t + (e & 1)] = s.c.bits == 16
                                                ? halfToFloat(static_cast<uint16_t>(word >> (16 * (e & 1))))
                                            : s.c.kind == 'f' ? static_cast<double>(bitsTo<float>(word))
                                                              : static_cast<int32_t>(word);
    }
  }
  bool saturates = i.flag;
  for (int r = 0; r < 16; ++r)
    for (int n = 0; n < 8; ++n)
      for (int k = 0; k < s.k; ++k)
        c[r][n] += a[r][k] * b[k][n];
  for (int l = 0; l < static_cast<int>(WarpSize); ++l) {
    int g = l / 4, t = l % 4;
    for (int e = 0; e < 4; ++e) {
      double v = c[g + 8 * (e / 2)][2 * t + (e & 1)];
      if (s.d.bits == 16) {
        uint32_t &word = x.reg<uint32_t>(pd[e / 2])[l];
        uint32_t h = static_cast<uint32_t>(roundDouble(v, HalfFormat, Rounding::Nearest)) << (16 * (e & 1));
        word = (e & 1) ? (word & 0xffffu) | h : h;
      } else if (s.d.kind == 'f') {
        x.reg<float>(pd[e])[l] = canonical(static_cast<float>(v));
      } else {
        // sums of s32 wrap unless .satfinite is given; they are exact in a double
        if (saturates)
          v = std::fmin(std::fmax(v, -2147483648.0), 2147483647.0);
        x.reg<uint32_t>(pd[e])[l] = static_cast<uint32_t>(static_cast<int64_t>(v));
      }
    }
  }
}

void takeAligned(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("the form of a whole warp only");
}

void decodeMultiply(Decoder &d) {
  takeAligned(d);
  static const int depths[] = {4, 8, 16, 32};
  int which = d.takeOneOf({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"});
  if (which < 0 || !d.take("row") || !d.take("col"))
    d.fail("no such shape");
  d.i.flag = d.take("satfinite");
  Shape s{depths[which], {}, {}, {}, {}};
  s.d = d.takeType();
  s.a = d.takeType();
  s.b = d.takeType();
  s.c = d.takeType();
  bool bytes = s.a.bits == 8 && s.b.bits == 8 && !s.a.isFloat() && (s.k == 16 || s.k == 32);
  bool halves = s.a.bits == 16 && s.a.isFloat() && s.a == s.b && (s.k == 8 || s.k == 16);
  bool tf32 = s.a.kind == 't' && s.b.kind == 't' && (s.k == 4 || s.k == 8);
  bool sums = bytes ? s.c == Type{'s', 32, false} && s.d == s.c
                    : s.c.kind == 'f' && s.d.kind == 'f' && s.c.bits <= 32 && s.d.bits <= 32 &&
                          (s.a == Type{'f', 16, false} || (s.c.bits == 32 && s.d.bits == 32));
  if (!(bytes || halves || tf32) || !sums || (d.i.flag && !bytes))
    d.fail("no such product");
  d.done(4);
  auto pack = [](Type t) { return static_cast<uint32_t>(static_cast<unsigned char>(t.kind)) << 8 | t.bits; };
  std::vector<uint32_t> places = {static_cast<uint32_t>(s.k), pack(s.a), pack(s.b), pack(s.c), pack(s.d)};
  const int counts[] = {s.registersC(s.d), s.registersA(), s.registersB(), s.registersC(s.c)};
  // fragments of f32 sums may be in f32 registers, all others are words
  const Type types[] = {s.d.bits == 32 ? s.d : Type{'b', 32, false},
                        {'b', 32, false},
                        {'b', 32, false},
                        s.c.bits == 32 ? s.c : Type{'b', 32, false}};
  for (size_t o : {1u, 2u, 3u, 0u}) {
    const Operand &v = d.s.operands[o];
    size_t n = static_cast<size_t>(counts[o]);
    if (v.kind != Operand::Vector || v.elements.size() != n)
      d.fail("expected a vector of " + std::to_string(n));
    std::vector<uint32_t> own;
    for (const Operand &e : v.elements)
      own.push_back(o ? d.sourceOf(e, types[o]) : d.destinationOf(e.name, types[o]));
    places.insert(o ? places.end() : places.begin() + 5, own.begin(), own.end());
  }
  d.extra().places = places;
  d.i.fn = multiply;
}

} // namespace

void addMatrix(DecodeTable &table) {
  table["mma"] = decodeMultiply;
  table["ldmatrix"] = [](Decoder &d) {
    takeAligned(d);
    int n = d.takeOneOf({"x1", "x2", "x4"});
    if (!d.take("m8n8") || n < 0)
      d.fail("no such matrix");
    d.i.flag = d.take("trans");
    d.i.space = d.takeSpace();
    if (d.takeType() != Type{'b', 16, false} || d.i.space != Space::Shared)
      d.fail("matrices of b16 in shared memory only");
    d.done(2);
    d.address(d.s.operands[1], d.i.space);
    const Operand &v = d.s.operands[0];
    if (v.kind != Operand::Vector || v.elements.size() != size_t(1) << n)
      d.fail("another number of registers");
    std::vector<uint32_t> places;
    for (const Operand &e : v.elements)
      places.push_back(d.destinationOf(e.name, Type{'b', 32, false}));
    d.extra().places = places;
    d.i.fn = loadMatrix;
  };
}

} // namespace lathe::emu
