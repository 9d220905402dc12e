// Instructions against the host's IEEE arithmetic, MPFR, and what PTX's manual says of the corners.
#include "test/cuda/CudaTest.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <mpfr.h>
#include <random>

using namespace lathe::test;

namespace {

template <class To, class From>
To bits(From v) {
  To r;
  static_assert(sizeof(To) == sizeof(From), "size");
  std::memcpy(&r, &v, sizeof(r));
  return r;
}

/// Runs `body` for each element: %r1 %r2 %r3 (or %rd4.. for 64 bits) hold the operands, the result is in %r4
/// (%rd7).
template <class T>
std::vector<T> each(const std::string &instruction, const std::vector<T> &a, const std::vector<T> &b,
                    const std::vector<T> &c, const std::string &target = "sm_80",
                    const std::string &version = "7.0") {
  CudaDevice device(Setting{{"ARCH", target.substr(3)}});
  std::string w = sizeof(T) == 8 ? "64" : "32", r = sizeof(T) == 8 ? "%rd" : "%r",
              shift = sizeof(T) == 8 ? "3" : "2";
  std::string o = sizeof(T) == 8 ? "1" : "";
  std::string body = "mov.u32 %r10, %tid.x;\nmov.u32 %r11, %ctaid.x;\nmov.u32 %r12, %ntid.x;\n"
                     "mad.lo.u32 %r13, %r11, %r12, %r10;\nmul.wide.u32 %rd0, %r13, " +
                     std::to_string(sizeof(T)) + ";\n";
  for (int k = 0; k < 4; ++k) {
    std::string n = std::to_string(k);
    body += "ld.param.b64 %rd8, [p" + n + "];\ncvta.to.global.u64 %rd8, %rd8;\nadd.u64 %rd" +
            std::to_string(10 + k) + ", %rd8, %rd0;\n";
  }
  for (int k = 0; k < 3; ++k)
    body += "ld.global.b" + w + " " + r + std::to_string(k + 1) + ", [%rd" + std::to_string(10 + k) + "];\n";
  body += instruction + "\nst.global.b" + w + " [%rd13], " + r + "4;\n";
  lathe_cu_function f =
      device.function(device.load(entry(4, body, "", "", target.c_str(), version.c_str())), "k");
  size_t n = a.size();
  EXPECT_EQ(n % 64, 0u);
  lathe_cu_deviceptr out = device.upload(std::vector<T>(n, T(0)));
  EXPECT_EQ(device.run(f, static_cast<unsigned>(n / 64), 64,
                       {device.upload(a), device.upload(b), device.upload(c), out}),
            0);
  EXPECT_TRUE(device.findings().empty()) << device.findings()[0];
  return device.download<T>(out, n);
}

/// Bit patterns of floats: special values and random ones, subnormal ones among them.
std::vector<uint32_t> floats(size_t n, unsigned seed) {
  std::vector<uint32_t> v = {0,           0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u,
                             0xff800000u, 0x7fc00000u, 0x00000001u, 0x80000001u, 0x007fffffu,
                             0x00800000u, 0x7f7fffffu, 0x4b000000u, 0x3f7fffffu};
  std::mt19937 random(seed);
  while (v.size() < n)
    v.push_back(random() % 4 ? random() : (random() & 0x80ffffffu));
  std::shuffle(v.begin(), v.end(), random);
  return v;
}

float value(uint32_t b) { return bits<float>(b); }
uint32_t canonical(float v) { return v != v ? 0x7fffffffu : bits<uint32_t>(v); }
float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

template <class F>
void compare32(const std::string &instruction, F expected) {
  std::vector<uint32_t> a = floats(2048, 1), b = floats(2048, 2), c = floats(2048, 3);
  std::vector<uint32_t> got = each<uint32_t>(instruction, a, b, c);
  for (size_t k = 0; k < a.size(); ++k) {
    uint32_t want = expected(a[k], b[k], c[k]);
    ASSERT_EQ(got[k], want) << instruction << " of " << std::hex << a[k] << " " << b[k] << " " << c[k];
  }
}

TEST(Arithmetic, SingleRoundedToNearest) {
  compare32("add.rn.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return canonical(value(a) + value(b)); });
  compare32("sub.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return canonical(value(a) - value(b)); });
  compare32("mul.rn.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return canonical(value(a) * value(b)); });
  compare32("div.rn.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return canonical(value(a) / value(b)); });
  compare32("fma.rn.f32 %r4, %r1, %r2, %r3;",
            [](auto a, auto b, auto c) { return canonical(std::fma(value(a), value(b), value(c))); });
  compare32("sqrt.rn.f32 %r4, %r1;", [](auto a, auto, auto) { return canonical(std::sqrt(value(a))); });
  compare32("rcp.rn.f32 %r4, %r1;", [](auto a, auto, auto) { return canonical(1.0f / value(a)); });
}

TEST(Arithmetic, SingleFlushedAndSaturated) {
  compare32("add.rn.ftz.f32 %r4, %r1, %r2;",
            [](auto a, auto b, auto) { return canonical(flushed(flushed(value(a)) + flushed(value(b)))); });
  compare32("mul.rn.ftz.f32 %r4, %r1, %r2;",
            [](auto a, auto b, auto) { return canonical(flushed(flushed(value(a)) * flushed(value(b)))); });
  compare32("add.rn.sat.f32 %r4, %r1, %r2;", [](auto a, auto b, auto) {
    float r = value(a) + value(b);
    return bits<uint32_t>(r != r ? 0.0f : r <= 0 ? 0.0f : r > 1 ? 1.0f : r);
  });
}

uint32_t exactly(mpfr_rnd_t mode, int operation, float a, float b, float c) {
  mpfr_t x, y, z, r;
  mpfr_inits2(24, x, y, z, r, static_cast<mpfr_ptr>(nullptr));
  mpfr_set_emin(-148);
  mpfr_set_emax(128);
  mpfr_set_flt(x, a, MPFR_RNDN);
  mpfr_set_flt(y, b, MPFR_RNDN);
  mpfr_set_flt(z, c, MPFR_RNDN);
  int t = operation == 0   ? mpfr_add(r, x, y, mode)
          : operation == 1 ? mpfr_mul(r, x, y, mode)
          : operation == 2 ? mpfr_fma(r, x, y, z, mode)
                           : mpfr_div(r, x, y, mode);
  mpfr_subnormalize(r, t, mode);
  float v = mpfr_get_flt(r, MPFR_RNDN);
  mpfr_clears(x, y, z, r, static_cast<mpfr_ptr>(nullptr));
  return canonical(v);
}

TEST(Arithmetic, SingleInOtherRoundingsAgainstMpfr) {
  const std::pair<const char *, mpfr_rnd_t> modes[] = {
      {"rz", MPFR_RNDZ}, {"rm", MPFR_RNDD}, {"rp", MPFR_RNDU}, {"rn", MPFR_RNDN}};
  for (const auto &m : modes) {
    std::string mode = m.first;
    mpfr_rnd_t r = m.second;
    compare32("add." + mode + ".f32 %r4, %r1, %r2;",
              [r](auto a, auto b, auto) { return exactly(r, 0, value(a), value(b), 0); });
    compare32("mul." + mode + ".f32 %r4, %r1, %r2;",
              [r](auto a, auto b, auto) { return exactly(r, 1, value(a), value(b), 0); });
    compare32("fma." + mode + ".f32 %r4, %r1, %r2, %r3;",
              [r](auto a, auto b, auto c) { return exactly(r, 2, value(a), value(b), value(c)); });
    compare32("div." + mode + ".f32 %r4, %r1, %r2;",
              [r](auto a, auto b, auto) { return exactly(r, 3, value(a), value(b), 0); });
  }
}

TEST(Arithmetic, MinimumAndMaximum) {
  auto least = [](float a, float b) {
    return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b;
  };
  compare32("min.f32 %r4, %r1, %r2;",
            [&](auto a, auto b, auto) { return canonical(least(value(a), value(b))); });
  compare32("max.f32 %r4, %r1, %r2;",
            [&](auto a, auto b, auto) { return canonical(-least(-value(a), -value(b))); });
  compare32("max.NaN.f32 %r4, %r1, %r2;", [&](auto a, auto b, auto) {
    return value(a) != value(a) || value(b) != value(b) ? 0x7fffffffu
                                                        : canonical(-least(-value(a), -value(b)));
  });
}

TEST(Arithmetic, ConversionsOfFloats) {
  compare32("cvt.rzi.s32.f32 %r4, %r1;", [](auto a, auto, auto) {
    float v = value(a);
    return static_cast<uint32_t>(v != v                ? 0
                                 : v >= 2147483648.0f  ? 0x7fffffff
                                 : v <= -2147483648.0f ? INT32_MIN
                                                       : static_cast<int32_t>(v));
  });
  compare32("cvt.rpi.u32.f32 %r4, %r1;", [](auto a, auto, auto) {
    float v = std::ceil(value(a));
    return v != v || v <= 0 ? 0 : v >= 4294967296.0f ? 0xffffffffu : static_cast<uint32_t>(v);
  });
  compare32("cvt.rni.f32.f32 %r4, %r1;",
            [](auto a, auto, auto) { return canonical(std::nearbyint(value(a))); });
  compare32("cvt.sat.f32.f32 %r4, %r1;", [](auto a, auto, auto) {
    float r = value(a);
    return bits<uint32_t>(r != r || r <= 0 ? 0.0f : r > 1 ? 1.0f : r);
  });
  // to half and back in each rounding
  for (const char *mode : {"rn", "rz", "rm", "rp"}) {
    mpfr_rnd_t r = mode[1] == 'n'   ? MPFR_RNDN
                   : mode[1] == 'z' ? MPFR_RNDZ
                   : mode[1] == 'm' ? MPFR_RNDD
                                    : MPFR_RNDU;
    if (mode[1] == 'm' || mode[1] == 'p')
      continue; // ptxas has them for later targets only
    compare32(std::string("cvt.") + mode + ".f16.f32 %h1, %r1;\ncvt.f32.f16 %r4, %h1;",
              [r](auto a, auto, auto) {
                float v = value(a);
                if (v != v || std::isinf(v))
                  return canonical(v);
                mpfr_t x;
                mpfr_init2(x, 11);
                mpfr_set_emin(-23);
                mpfr_set_emax(16);
                int t = mpfr_set_flt(x, v, r);
                t = mpfr_check_range(x, t, r);
                mpfr_subnormalize(x, t, r);
                float w = mpfr_get_flt(x, MPFR_RNDN);
                mpfr_clear(x);
                return bits<uint32_t>(w == 0 ? std::copysign(0.0f, v) : w);
              });
  }
  compare32("cvt.rn.bf16.f32 %h1, %r1;\nmov.b16 %h2, 0;\nmov.b32 %r4, {%h2, %h1};", [](auto a, auto, auto) {
    float v = value(a);
    if (v != v)
      return 0x7fff0000u;
    uint32_t b = bits<uint32_t>(v);
    return (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
  });
}

TEST(Arithmetic, DoublesAndWideIntegers) {
  std::mt19937_64 random(5);
  std::vector<uint64_t> a(1024), b(1024), c(1024);
  for (size_t k = 0; k < a.size(); ++k) {
    a[k] = random();
    b[k] = random() % 3 ? random() : random() % 70;
    c[k] = random();
  }
  auto check = [&](const std::string &instruction, auto expected) {
    std::vector<uint64_t> got = each<uint64_t>(instruction, a, b, c);
    for (size_t k = 0; k < a.size(); ++k) {
      uint64_t want = expected(a[k], b[k], c[k]);
      double w = bits<double>(want), g = bits<double>(got[k]);
      if (instruction.find("f64") != std::string::npos && w != w && g != g)
        continue;
      ASSERT_EQ(got[k], want) << instruction << " of " << std::hex << a[k] << " " << b[k] << " " << c[k];
    }
  };
  auto d = [](uint64_t v) { return bits<double>(v); };
  check("add.rn.f64 %rd4, %rd1, %rd2;", [&](auto x, auto y, auto) { return bits<uint64_t>(d(x) + d(y)); });
  check("fma.rn.f64 %rd4, %rd1, %rd2, %rd3;",
        [&](auto x, auto y, auto z) { return bits<uint64_t>(std::fma(d(x), d(y), d(z))); });
  check("mul.lo.s64 %rd4, %rd1, %rd2;", [](auto x, auto y, auto) { return x * y; });
  check("mul.hi.u64 %rd4, %rd1, %rd2;", [](auto x, auto y, auto) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(x) * y >> 64);
  });
  check("add.cc.u64 %rd4, %rd1, %rd2;\naddc.u64 %rd4, %rd3, %rd3;",
        [](auto x, auto y, auto z) { return z + z + (x + y < x); });
  check("cvt.u32.u64 %r1, %rd2;\nshl.b64 %rd4, %rd1, %r1;", [](auto x, auto y, auto) {
    uint32_t n = static_cast<uint32_t>(y);
    return n >= 64 ? 0 : x << n;
  });
  check("cvt.u32.u64 %r1, %rd2;\nshr.s64 %rd4, %rd1, %r1;", [](auto x, auto y, auto) {
    uint32_t n = static_cast<uint32_t>(y);
    return static_cast<uint64_t>(static_cast<int64_t>(x) >> (n >= 64 ? 63 : n));
  });
  check("cvt.rn.f32.u64 %r1, %rd1;\ncvt.u64.u32 %rd4, %r1;",
        [](auto x, auto, auto) { return static_cast<uint64_t>(bits<uint32_t>(static_cast<float>(x))); });
  check("cvt.rn.f64.s64 %rd4, %rd1;",
        [](auto x, auto, auto) { return bits<uint64_t>(static_cast<double>(static_cast<int64_t>(x))); });
}

TEST(Arithmetic, IntegersOf32Bits) {
  compare32("shl.b32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return b >= 32 ? 0u : a << b; });
  compare32("shr.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return b >= 32 ? 0u : a >> b; });
  compare32("mul.hi.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>(static_cast<int64_t>(static_cast<int32_t>(a)) * static_cast<int32_t>(b) >>
                                 32);
  });
  compare32("mad.lo.s32 %r4, %r1, %r2, %r3;", [](auto a, auto b, auto c) { return a * b + c; });
  compare32("or.b32 %r2, %r2, 1;\ndiv.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) {
    int32_t q = static_cast<int32_t>(b | 1);
    return q == -1 ? 0u - a : static_cast<uint32_t>(static_cast<int32_t>(a) / q);
  });
  compare32("or.b32 %r2, %r2, 1;\nrem.u32 %r4, %r1, %r2;", [](auto a, auto b, auto) { return a % (b | 1); });
  compare32("popc.b32 %r4, %r1;",
            [](auto a, auto, auto) { return static_cast<uint32_t>(__builtin_popcount(a)); });
  compare32("clz.b32 %r4, %r1;",
            [](auto a, auto, auto) { return a ? static_cast<uint32_t>(__builtin_clz(a)) : 32u; });
  compare32("add.sat.s32 %r4, %r1, %r2;", [](auto a, auto b, auto) {
    int64_t s = static_cast<int64_t>(static_cast<int32_t>(a)) + static_cast<int32_t>(b);
    return static_cast<uint32_t>(std::min<int64_t>(std::max<int64_t>(s, INT32_MIN), INT32_MAX));
  });
  compare32("lop3.b32 %r4, %r1, %r2, %r3, 0xe8;",
            [](auto a, auto b, auto c) { return (a & b) | (b & c) | (a & c); });
  compare32("prmt.b32 %r4, %r1, %r2, 0x0715;", [](auto a, auto b, auto) {
    uint32_t byte[4] = {b >> 8 & 255, a >> 8 & 255, b >> 24, a & 255};
    return byte[0] | byte[1] << 8 | byte[2] << 16 | byte[3] << 24;
  });
  compare32("shf.l.wrap.b32 %r4, %r1, %r2, %r3;", [](auto a, auto b, auto c) {
    return static_cast<uint32_t>((static_cast<uint64_t>(b) << 32 | a) << (c & 31) >> 32);
  });
  compare32("bfe.s32 %r4, %r1, 5, 9;",
            [](auto a, auto, auto) { return static_cast<uint32_t>(static_cast<int32_t>(a << 18) >> 23); });
  compare32("bfi.b32 %r4, %r1, %r2, 7, 11;",
            [](auto a, auto b, auto) { return (b & ~(0x7ffu << 7)) | (a & 0x7ff) << 7; });
}

TEST(Arithmetic, HalvesInPairs) {
  auto half = [](uint32_t v) { return static_cast<float>(bits<_Float16>(static_cast<uint16_t>(v))); };
  auto round = [](double v) -> uint32_t {
    if (v != v)
      return 0x7fff;
    // through MPFR: a double would be rounded twice
    mpfr_t x;
    mpfr_init2(x, 11);
    mpfr_set_emin(-23);
    mpfr_set_emax(16);
    int t = mpfr_set_d(x, v, MPFR_RNDN);
    t = mpfr_check_range(x, t, MPFR_RNDN);
    mpfr_subnormalize(x, t, MPFR_RNDN);
    double w = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return bits<uint16_t>(static_cast<_Float16>(w == 0 ? std::copysign(0.0, v) : w));
  };
  auto pair = [&](auto f) {
    return [=](uint32_t a, uint32_t b, uint32_t c) {
      return round(f(half(a), half(b), half(c))) | round(f(half(a >> 16), half(b >> 16), half(c >> 16)))
                                                       << 16;
    };
  };
  compare32("add.rn.f16x2 %r4, %r1, %r2;", pair([](double a, double b, double) { return a + b; }));
  compare32("mul.rn.f16x2 %r4, %r1, %r2;", pair([](double a, double b, double) { return a * b; }));
  compare32("fma.rn.f16x2 %r4, %r1, %r2, %r3;",
            pair([](double a, double b, double c) { return std::fma(a, b, c); }));
  auto bf = [](uint32_t v) { return bits<float>(v << 16); };
  compare32("fma.rn.bf16x2 %r4, %r1, %r2, %r3;", [&](uint32_t a, uint32_t b, uint32_t c) {
    auto one = [&](uint32_t x, uint32_t y, uint32_t z) -> uint32_t {
      mpfr_t p, q, r;
      mpfr_inits2(8, p, q, r, static_cast<mpfr_ptr>(nullptr));
      mpfr_set_emin(-132);
      mpfr_set_emax(128);
      mpfr_set_flt(p, bf(x), MPFR_RNDN);
      mpfr_set_flt(q, bf(y), MPFR_RNDN);
      mpfr_set_flt(r, bf(z), MPFR_RNDN);
      int t = mpfr_fma(r, p, q, r, MPFR_RNDN);
      mpfr_subnormalize(r, t, MPFR_RNDN);
      float v = mpfr_get_flt(r, MPFR_RNDN);
      mpfr_clears(p, q, r, static_cast<mpfr_ptr>(nullptr));
      return v != v ? 0x7fff : bits<uint32_t>(v) >> 16;
    };
    return one(a & 0xffff, b & 0xffff, c & 0xffff) | one(a >> 16, b >> 16, c >> 16) << 16;
  });
}

TEST(Arithmetic, ApproximateFunctionsAreClose) {
  std::vector<uint32_t> a(1024), none(1024, 0);
  std::mt19937 random(7);
  for (uint32_t &v : a)
    v = bits<uint32_t>(std::uniform_real_distribution<float>(0.01f, 10.0f)(random));
  auto check = [&](const std::string &instruction, auto f) {
    std::vector<uint32_t> got = each<uint32_t>(instruction + " %r4, %r1;", a, none, none);
    for (size_t k = 0; k < a.size(); ++k) {
      double want = f(static_cast<double>(value(a[k])));
      ASSERT_NEAR(value(got[k]), want, std::fabs(want) * 1e-6 + 1e-7) << instruction << " of " << value(a[k]);
    }
  };
  check("ex2.approx.f32", [](double v) { return std::exp2(v); });
  check("lg2.approx.f32", [](double v) { return std::log2(v); });
  check("sin.approx.f32", [](double v) { return std::sin(v); });
  check("cos.approx.f32", [](double v) { return std::cos(v); });
  check("rsqrt.approx.f32", [](double v) { return 1 / std::sqrt(v); });
  check("rcp.approx.ftz.f32", [](double v) { return 1 / v; });
  check("tanh.approx.f32", [](double v) { return std::tanh(v); });
}

TEST(Arithmetic, DivisionByZeroIsAFinding) {
  CudaDevice device;
  lathe_cu_function f =
      device.function(device.load(entry(1, "ld.param.b64 %rd1, [p0];\nld.global.b32 %r1, [%rd1];\ndiv.s32 "
                                           "%r2, 7, %r1;\nst.global.b32 [%rd1], %r2;")),
                      "k");
  lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
  EXPECT_EQ(device.run(f, 1, 1, {p}), LATHE_CU_ERROR_ILLEGAL_INSTRUCTION);
  EXPECT_TRUE(holds(device.findings(), {"instruction", "division by zero", "div.s32"}));
}

} // namespace
