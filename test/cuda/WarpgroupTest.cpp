// Products of warpgroups (wgmma) of matrices that lie in shared memory in each way that descriptors know, against products on
// the host; and what the emulator must find when something that they need is left out.
#include "test/cuda/CudaTest.h"

#include <cstring>
#include <functional>
#include <random>

using namespace lathe::test;

namespace {

/// Where element [line, k] of a matrix of 16-bit numbers lies, in bytes, and what its descriptor says beside the address.
struct Layout {
  const char *name;
  bool across;
  uint64_t descriptor;
  std::function<unsigned(unsigned line, unsigned k)> place;
};

uint64_t descriptor(uint64_t leading, uint64_t stride, uint64_t swizzle) {
  return leading / 16 << 16 | stride / 16 << 32 | swizzle << 62;
}

// Rows of 128 or 64 bytes of steps; or, of each step, 64 lines in 128 bytes, with 32 steps in memory. The pieces of a row of 128
// bytes change places by its number in eight, those of 64 bytes by the number of its pair in four.
const Layout along128 = {"along, 128", false, descriptor(16, 1024, 1),
                         [](unsigned line, unsigned k) { return line * 128 + ((k / 8 ^ line % 8) * 16) + k % 8 * 2; }};
const Layout along64 = {"along, 64", false, descriptor(16, 512, 2),
                        [](unsigned line, unsigned k) { return line * 64 + ((k / 8 ^ line / 2 % 4) * 16) + k % 8 * 2; }};
const Layout across128 = {"across, 128", true, descriptor(32 * 128, 1024, 1), [](unsigned line, unsigned k) {
                            return line / 64 * 32 * 128 + k * 128 + ((line % 64 / 8 ^ k % 8) * 16) + line % 8 * 2;
                          }};

constexpr unsigned rows = 64, columns = 128, steps = 32, half1 = 16384; // bytes of an operand's memory
constexpr unsigned threads = 128;

std::string list(const char *name, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + (name + std::to_string(i));
  return text + "}";
}

/// p0: the image of shared memory; p1: a descriptor's fixed bits of A, p2: of B, p3: the sums; two products of 16 steps each, `next`
/// further in pieces of 16 bytes.
std::string body(const std::string &type, const Layout &a, const Layout &b) {
  auto pieces = [](const Layout &l) { return l.place(0, 16) == 32 ? 2 : l.across ? 128 : 0; };
  std::string text = "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nld.param.b64 %rd3, [p2];\nld.param.b64 %rd4, [p3];\n"
                     "mov.u32 %r1, %tid.x;\nmov.u64 %rd5, tile;\nmul.wide.u32 %rd6, %r1, 16;\n";
  // 32 KiB, 16 bytes a thread at a time; half of them asynchronously
  for (unsigned at = 0; at < 2 * half1; at += threads * 16) {
    const std::string offset = std::to_string(at);
    text += "add.u64 %rd7, %rd1, %rd6;\nadd.u64 %rd7, %rd7, " + offset + ";\nadd.u64 %rd8, %rd5, %rd6;\nadd.u64 %rd8, %rd8, " + offset + ";\n";
    if (at % (threads * 32))
      text += "cp.async.cg.shared.global [%rd8], [%rd7], 16;\n";
    else
      text += "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd7];\nst.shared.v4.b32 [%rd8], {%r4, %r5, %r6, %r7};\n";
  }
  text += "cp.async.commit_group;\ncp.async.wait_group 0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n.reg .f32 sum<64>;\n.reg .pred add;\n"
          "setp.eq.u32 add, 0, 0;\n";
  for (unsigned i = 0; i < 64; ++i)
    text += "mov.f32 sum" + std::to_string(i) + ", 0f3F000000;\n";
  text += "shr.u64 %rd9, %rd5, 4;\nor.b64 %rd10, %rd9, %rd2;\nadd.u64 %rd9, %rd9, " + std::to_string(half1 / 16) +
          ";\nor.b64 %rd11, %rd9, %rd3;\nadd.u64 %rd12, %rd10, " + std::to_string(pieces(a)) + ";\nadd.u64 %rd13, %rd11, " +
          std::to_string(pieces(b)) + ";\nwgmma.fence.sync.aligned;\n";
  for (const char *operands : {"%rd10, %rd11", "%rd12, %rd13"})
    text += "wgmma.mma_async.sync.aligned.m64n128k16.f32." + type + "." + type + " " + list("sum", 64) + ", " + operands + ", add, 1, 1, " +
            std::to_string(a.across) + ", " + std::to_string(b.across) + ";\n";
  text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
          // a warp has 16 rows; a thread rows lane / 4 and 8 further, columns 2 (lane % 4) and its neighbour of each 8
          "shr.u32 %r8, %r1, 5;\nand.b32 %r9, %r1, 31;\nshr.u32 %r10, %r9, 2;\nand.b32 %r11, %r9, 3;\nmad.lo.u32 %r12, %r8, 16, %r10;\n"
          "mul.lo.u32 %r13, %r12, 128;\nmad.lo.u32 %r13, %r11, 2, %r13;\nmul.wide.u32 %rd14, %r13, 4;\nadd.u64 %rd14, %rd4, %rd14;\n";
  for (unsigned i = 0; i < 64; ++i)
    text += "st.global.f32 [%rd14+" + std::to_string(i / 4 * 32 + i % 4 / 2 * 4096 + i % 2 * 4) + "], sum" + std::to_string(i) + ";\n";
  return text;
}

struct Outcome {
  lathe_cu_result result;
  bool same;
  std::vector<std::string> findings;
};

Outcome multiply(const std::string &type, const Layout &a, const Layout &b, const std::string &text, bool assembles = true) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}, {"ARCH", "90"}});
  std::mt19937 random(1);
  std::vector<int> x(rows * steps), y(columns * steps);
  for (std::vector<int> *v : {&x, &y})
    for (int &n : *v)
      n = static_cast<int>(random() % 17) - 8;
  std::vector<uint8_t> image(2 * half1, 0xee);
  auto convert = type == "f16" ? half : bfloat;
  auto put = [&](unsigned at, int value) {
    const uint16_t bits = convert(static_cast<float>(value));
    std::memcpy(&image[at], &bits, 2);
  };
  for (unsigned k = 0; k < steps; ++k) {
    for (unsigned m = 0; m < rows; ++m)
      put(a.place(m, k), x[m * steps + k]);
    for (unsigned n = 0; n < columns; ++n)
      put(half1 + b.place(n, k), y[n * steps + k]);
  }
  const std::string module = entry(4, text, "", ".shared .align 1024 .b8 tile[32768];", "sm_90a", "8.0");
  if (assembles)
    EXPECT_EQ(assemble(module), "");
  lathe_cu_module m = nullptr;
  if (int refused = device->cuModuleLoadDataEx(&m, module.c_str(), 0, nullptr, nullptr))
    return {refused, false, device.findings()};
  lathe_cu_deviceptr out = device.upload(nullptr, rows * columns * 4);
  const lathe_cu_result result =
      device.run(device.function(m, "k"), 1, threads, {device.upload(image), a.descriptor, b.descriptor, out});
  bool same = true;
  if (!result) {
    std::vector<float> sums = device.download<float>(out, rows * columns);
    for (unsigned i = 0; i < rows; ++i)
      for (unsigned j = 0; j < columns; ++j) {
        float sum = 0.5f;
        for (unsigned k = 0; k < steps; ++k)
          sum += static_cast<float>(x[i * steps + k] * y[j * steps + k]);
        same &= sums[i * columns + j] == sum;
      }
  }
  return {result, same, device.findings()};
}

/// Two products of 64x8 of 32 bytes of steps along rows of 128, of words or bytes, whose low bits do not count or are all. They are the same
/// but for their sums; the first one's are stored while the second is under way.
template <class T, class Sum>
void narrow(const char *shape, const char *scales, const char *reg, std::function<T(int)> convert) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}, {"ARCH", "90"}});
  constexpr unsigned depth = 32 / sizeof(T), lines = 8;
  std::mt19937 random(2);
  std::vector<uint8_t> image(72 * 128, 0xee);
  std::vector<int> v(72 * depth);
  for (unsigned line = 0; line < 72; ++line) // 64 of A, then 8 of B
    for (unsigned k = 0; k < depth; ++k) {
      const int n = v[line * depth + k] = static_cast<int>(random() % 17) - 8;
      const T bits = convert(n);
      const unsigned at = k * sizeof(T);
      std::memcpy(&image[line * 128 + ((at / 16 ^ line % 8) * 16) + at % 16], &bits, sizeof(T));
    }
  std::string text = "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nld.param.b64 %rd4, [p2];\nmov.u32 %r1, %tid.x;\n"
                     "mov.u64 %rd5, tile;\nmul.wide.u32 %rd6, %r1, 4;\n";
  for (unsigned at = 0; at < image.size(); at += threads * 4)
    text += "add.u64 %rd7, %rd1, %rd6;\nadd.u64 %rd8, %rd5, %rd6;\nld.global.b32 %r4, [%rd7+" + std::to_string(at) +
            "];\nst.shared.b32 [%rd8+" + std::to_string(at) + "], %r4;\n";
  text += std::string("fence.proxy.async.shared::cta;\nbar.sync 0;\n.reg .") + reg + " sum<8>;\n.reg .pred keep;\nsetp.ne.u32 keep, 0, 0;\n";
  for (unsigned i = 0; i < 8; ++i) // not kept
    text += "mov.b32 sum" + std::to_string(i) + ", 5;\n";
  text += "shr.u64 %rd9, %rd5, 4;\nor.b64 %rd10, %rd9, %rd2;\nadd.u64 %rd11, %rd10, 512;\nwgmma.fence.sync.aligned;\n"
          "shr.u32 %r8, %r1, 5;\nand.b32 %r9, %r1, 31;\nshr.u32 %r10, %r9, 2;\nand.b32 %r11, %r9, 3;\nmad.lo.u32 %r12, %r8, 16, %r10;\n"
          "mul.lo.u32 %r13, %r12, 8;\nmad.lo.u32 %r13, %r11, 2, %r13;\nmul.wide.u32 %rd14, %r13, 4;\nadd.u64 %rd14, %rd4, %rd14;\n";
  for (const char *sums : {"{sum0, sum1, sum2, sum3}", "{sum4, sum5, sum6, sum7}"})
    text += "wgmma.mma_async.sync.aligned.m64n8" + std::string(shape) + " " + sums + ", %rd10, %rd11, keep" + scales +
            ";\nwgmma.commit_group.sync.aligned;\n";
  for (unsigned i = 0; i < 8; ++i) {
    if (i % 4 == 0)
      text += "wgmma.wait_group.sync.aligned " + std::to_string(1 - i / 4) + ";\n";
    text += "st.global.b32 [%rd14+" + std::to_string(i / 4 * 2048 + i % 4 / 2 * 256 + i % 2 * 4) + "], sum" + std::to_string(i) + ";\n";
  }
  lathe_cu_module m = device.load(entry(3, text, "", ".shared .align 1024 .b8 tile[9216];", "sm_90a", "8.0"));
  ASSERT_TRUE(m);
  lathe_cu_deviceptr out = device.upload(nullptr, 2 * 64 * lines * 4);
  ASSERT_EQ(device.run(device.function(m, "k"), 1, threads, {device.upload(image), descriptor(16, 1024, 1), out}), 0);
  EXPECT_TRUE(device.findings().empty()) << device.findings()[0];
  std::vector<Sum> sums = device.download<Sum>(out, 2 * 64 * lines);
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < lines; ++j) {
      Sum sum = 0;
      for (unsigned k = 0; k < depth; ++k)
        sum += static_cast<Sum>(v[i * depth + k] * v[(64 + j) * depth + k]);
      for (unsigned product : {0, 1})
        ASSERT_EQ(sums[(product * 64 + i) * lines + j], sum) << product << " " << i << " " << j;
    }
}

TEST(Warpgroup, Tf32) {
  narrow<uint32_t, float>("k8.f32.tf32.tf32", ", 1, 1", "f32", [](int n) {
    const float v = static_cast<float>(n);
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    return bits | 0x1fff; // these do not count
  });
}
TEST(Warpgroup, Bytes) {
  narrow<int8_t, int32_t>("k32.s32.s8.s8", "", "b32", [](int n) { return static_cast<int8_t>(n); });
}

TEST(Warpgroup, EachLayoutAndType) {
  for (const char *type : {"bf16", "f16"})
    for (const Layout *a : {&along128, &along64, &across128})
      for (const Layout *b : {&along128, &along64, &across128}) {
        Outcome o = multiply(type, *a, *b, body(type, *a, *b));
        EXPECT_EQ(o.result, 0) << type << " " << a->name << " " << b->name;
        EXPECT_TRUE(o.same) << type << " " << a->name << " " << b->name;
        EXPECT_TRUE(o.findings.empty()) << o.findings[0];
      }
}

/// What the kernel's text lacks or has otherwise, and words of what must be found.
TEST(Warpgroup, FindsWhatIsLeftOut) {
  const struct {
    const char *from, *to, *found;
  } cases[] = {
      {"fence.proxy.async.shared::cta;", "", "asynchronous proxy"},
      {"fence.proxy.async.shared::cta;\nbar.sync 0;", "bar.sync 0;\nfence.proxy.async.shared::cta;", "asynchronous proxy"},
      {"bar.sync 0;", "", "racecheck"},
      {"cp.async.wait_group 0;", "", "asynchronous copy"},
      {"wgmma.fence.sync.aligned;", "", "no wgmma.fence"},
      {"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", ""}, // sums are poison
      {"wgmma.commit_group.sync.aligned;", "", ""},
      {"wgmma.wait_group", "mov.f32 sum3, 0f00000000;\nwgmma.wait_group", "a register of sums is written"},
      {"sum62, sum63}, %rd12", "sum63, sum62}, %rd12", "belongs to another product"},
      {"wgmma.wait_group", "st.shared.b32 [%rd5], %r1;\nwgmma.wait_group", "was to read it"},
      {"or.b64 %rd10, %rd9, %rd2;", "or.b64 %rd10, %rd9, %rd2;\ncvt.u64.u32 %rd15, %r1;\nor.b64 %rd10, %rd10, %rd15;", "different descriptors"},
      {"or.b64 %rd10, %rd9, %rd2;",
       "or.b64 %rd10, %rd9, %rd2;\nand.b32 %r20, %r1, 32;\ncvt.u64.u32 %rd15, %r20;\nadd.u64 %rd10, %rd10, %rd15;", "begin different products"},
      {"or.b64 %rd10, %rd9, %rd2;", "or.b64 %rd10, %rd9, %rd2;\nor.b64 %rd10, %rd10, 562949953421312;", "base offset"},
      {"or.b64 %rd11, %rd9, %rd3;", "or.b64 %rd11, %rd9, %rd3;\nadd.u64 %rd11, %rd11, 1024;", "not within shared memory"},
  };
  const std::string whole = body("bf16", along128, across128);
  for (const auto &c : cases) {
    std::string text = whole;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    Outcome o = multiply("bf16", along128, across128, text.replace(at, std::strlen(c.from), c.to), /*assembles=*/false);
    if (*c.found)
      EXPECT_TRUE(holds(o.findings, {c.found})) << c.from << (o.findings.empty() ? "" : o.findings[0]);
    else
      EXPECT_FALSE(o.same && o.findings.empty()) << c.from;
  }
}

// Which devices have them.
TEST(Warpgroup, OnlyOnItsOwnArchitecture) {
  const std::string text = "wgmma.fence.sync.aligned;\n";
  for (auto [arch, target, fits] : {std::tuple("90", "sm_90a", true), {"90", "sm_90", false}, {"80", "sm_90a", false}, {"100", "sm_90a", false}}) {
    CudaDevice device(Setting{{"ARCH", arch}});
    lathe_cu_module m = nullptr;
    EXPECT_EQ(device->cuModuleLoadDataEx(&m, entry(1, text, "", "", target, "8.0").c_str(), 0, nullptr, nullptr) == 0, fits) << arch << target;
    if (m)
      device->cuModuleUnload(m);
  }
}

} // namespace
