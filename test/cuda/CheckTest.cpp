// The tester tested: kernels that are right are told nothing, and each of their mutants (a barrier left out,
// a mask without a lane, a bound moved by one) is found, by a check or by a wrong result.
#include "test/cuda/CudaTest.h"

#include <functional>
#include <numeric>

using namespace lathe::test;

namespace {

struct Subject {
  const char *name;
  std::string globals, body;
  unsigned grid, block;
  size_t inputs, outputs; // 32-bit words at p0 and p1
  std::function<uint32_t(const std::vector<uint32_t> &in, size_t k)> expected;
  std::vector<std::pair<std::string, std::string>> mutations; // what is replaced by what
};

/// Sum of each block of 128 by shared memory, then by shuffles.
const Subject blockSum = {
    "block sum",
    ".shared .align 4 .b8 buffer[512];",
    "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
    "mad.lo.u32 %r3, %r2, 128, %r1;\nmul.wide.u32 %rd3, %r3, 4;\nadd.u64 %rd3, %rd1, %rd3;\nld.global.u32 "
    "%r4, [%rd3];\n"
    "mov.u64 %rd4, buffer;\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd5, %rd4, %rd5;\nst.shared.u32 [%rd5], "
    "%r4;\n"
    "bar.sync 0;\n"
    "setp.ge.u32 %p1, %r1, 64;\n@%p1 bra SKIP;\nld.shared.u32 %r5, [%rd5+256];\nadd.u32 %r4, %r4, %r5;\n"
    "st.shared.u32 [%rd5], %r4;\nSKIP:\nbar.sync 0; // second\n"
    "setp.ge.u32 %p2, %r1, 32;\n@%p2 bra END;\nld.shared.u32 %r5, [%rd5+128];\nadd.u32 %r4, %r4, %r5;\n"
    "shfl.sync.bfly.b32 %r6, %r4, 16, 31, 0xffffffff;\nadd.u32 %r4, %r4, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r4, 8, 31, 0xffffffff;\nadd.u32 %r4, %r4, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r4, 4, 31, 0xffffffff;\nadd.u32 %r4, %r4, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r4, 2, 31, 0xffffffff;\nadd.u32 %r4, %r4, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r4, 1, 31, 0xffffffff;\nadd.u32 %r4, %r4, %r6;\n"
    "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra END;\nmul.wide.u32 %rd6, %r2, 4;\nadd.u64 %rd6, %rd2, %rd6;\n"
    "st.global.u32 [%rd6], %r4;\nEND:",
    3,
    128,
    384,
    3,
    [](const std::vector<uint32_t> &in, size_t k) {
      return std::accumulate(in.begin() + 128 * k, in.begin() + 128 * (k + 1), 0u);
    },
    {{"bar.sync 0;\nsetp", "setp"},
     {"bar.sync 0; // second", ""},
     {"bar.sync 0; // second", "bar.sync 0, 96;"},
     {"16, 31, 0xffffffff", "16, 31, 0xfffffffe"},
     {"8, 31, 0xffffffff", "8, 31, 0x7fffffff"},
     {"16, 31, 0xffffffff", "16, 15, 0xffffffff"},
     {"[%rd5+256]", "[%rd5+260]"},
     {"[%rd5+128]", "[%rd5+124]"},
     {"setp.ge.u32 %p1, %r1, 64", "setp.gt.u32 %p1, %r1, 64"},
     {"setp.ge.u32 %p2, %r1, 32", "setp.ge.u32 %p2, %r1, 31"},
     {"setp.ne.u32 %p3, %r1, 0", "setp.ne.u32 %p3, %r1, 40"},
     {"%r2, 128, %r1;", "%r2, 129, %r1;"},
     {"[%rd6], %r4", "[%rd6+4], %r4"}}};

/// A transpose of a 40 x 24 matrix by tiles of 8 x 8 through shared memory.
const Subject transpose = {
    "transpose",
    ".shared .align 4 .b8 tile[288];",
    "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 7;\nshr.u32 "
    "%r3, %r1, 3;\n"
    "mov.u32 %r4, %ctaid.x;\nrem.u32 %r5, %r4, 3;\ndiv.u32 %r6, %r4, 3;\nmad.lo.u32 %r7, %r5, 8, %r2;\n"
    "mad.lo.u32 %r8, %r6, 8, %r3;\nmad.lo.u32 %r9, %r8, 24, %r7;\nmul.wide.u32 %rd3, %r9, 4;\nadd.u64 %rd3, "
    "%rd1, %rd3;\n"
    "ld.global.u32 %r10, [%rd3];\nmov.u64 %rd4, tile;\nmad.lo.u32 %r11, %r3, 9, %r2;\nmul.wide.u32 %rd5, "
    "%r11, 4;\n"
    "add.u64 %rd5, %rd4, %rd5;\nst.shared.u32 [%rd5], %r10;\nbar.sync 0;\nmad.lo.u32 %r12, %r2, 9, %r3;\n"
    "mul.wide.u32 %rd6, %r12, 4;\nadd.u64 %rd6, %rd4, %rd6;\nld.shared.u32 %r13, [%rd6];\nmad.lo.u32 %r14, "
    "%r5, 8, %r3;\n"
    "mad.lo.u32 %r15, %r6, 8, %r2;\nmad.lo.u32 %r16, %r14, 40, %r15;\nmul.wide.u32 %rd7, %r16, 4;\nadd.u64 "
    "%rd7, %rd2, %rd7;\n"
    "st.global.u32 [%rd7], %r13;",
    15,
    64,
    960,
    960,
    [](const std::vector<uint32_t> &in, size_t k) { return in[k % 40 * 24 + k / 40]; },
    {{"bar.sync 0;", ""},
     {"bar.sync 0;", "bar.warp.sync 0xffffffff;"},
     {"[%rd5], %r10", "[%rd5+4], %r10"},
     {"%r13, [%rd6]", "%r13, [%rd6+-4]"},
     {"%r10, [%rd3]", "%r10, [%rd3+4]"},
     {"[%rd7], %r13", "[%rd7+-4], %r13"},
     {"%r14, 40, %r15", "%r14, 41, %r15"},
     {"rem.u32 %r5, %r4, 3", "rem.u32 %r5, %r4, 2"},
     {"%r3, 9, %r2;", "%r3, 10, %r2;"}}};

/// Rows of 32 within one warp, in steps with bar.warp.sync between the lanes: a running sum through shared
/// memory.
const Subject runningSum = {
    "running sum",
    ".shared .align 4 .b8 row[128];",
    "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
    "mad.lo.u32 %r3, %r2, 32, %r1;\nmul.wide.u32 %rd3, %r3, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, "
    "%rd2, %rd3;\n"
    "ld.global.u32 %r4, [%rd4];\nmul.wide.u32 %rd6, %r1, 4;\nmov.u64 %rd7, row;\nadd.u64 %rd7, %rd7, %rd6;\n"
    "mov.u32 %r5, 1;\nLOOP:\nst.shared.u32 [%rd7], %r4;\nbar.warp.sync 0xffffffff; // first\n"
    "setp.lt.u32 %p1, %r1, %r5;\n@%p1 bra SKIP;\nsub.u32 %r6, %r1, %r5;\nmul.wide.u32 %rd8, %r6, 4;\n"
    "mov.u64 %rd9, row;\nadd.u64 %rd9, %rd9, %rd8;\nld.shared.u32 %r7, [%rd9];\nadd.u32 %r4, %r4, "
    "%r7;\nSKIP:\n"
    "bar.warp.sync 0xffffffff; // second\nshl.b32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 32;\n@%p2 bra LOOP;\n"
    "st.global.u32 [%rd5], %r4;",
    4,
    32,
    128,
    128,
    [](const std::vector<uint32_t> &in, size_t k) {
      return std::accumulate(in.begin() + k / 32 * 32, in.begin() + k + 1, 0u);
    },
    {{"bar.warp.sync 0xffffffff; // first", ""},
     {"bar.warp.sync 0xffffffff; // second", ""},
     {"bar.warp.sync 0xffffffff; // first", "bar.warp.sync 0xffff7fff;"},
     {"setp.lt.u32 %p1, %r1, %r5", "setp.le.u32 %p1, %r1, %r5"},
     {"setp.lt.u32 %p2, %r5, 32", "setp.lt.u32 %p2, %r5, 16"},
     {"%r7, [%rd9]", "%r7, [%rd9+4]"}}};

/// "" when the kernel ends without findings and with the expected numbers, else what was wrong.
std::string trouble(const Subject &s, const std::string &body, const char *seed) {
  CudaDevice device(Setting{{"SEED", seed}, {"CHECKS", "init,race"}, {"MAX_BRANCHES", "1000000"}});
  lathe_cu_module m = nullptr;
  std::string ptx = entry(2, body, "", s.globals);
  if (device->cuModuleLoadDataEx(&m, ptx.c_str(), 0, nullptr, nullptr))
    return "not loaded: " + device.findings()[0];
  lathe_cu_function f = device.function(m, "k");
  std::vector<uint32_t> in(s.inputs);
  for (size_t k = 0; k < in.size(); ++k)
    in[k] = static_cast<uint32_t>(k * 2654435761u >> 7);
  lathe_cu_deviceptr pi = device.upload(in), po = device.upload(nullptr, 4 * s.outputs);
  std::string text;
  if (device.run(f, s.grid, s.block, {pi, po})) {
    text = device.findings().empty() ? "failed" : device.findings()[0];
  } else {
    std::vector<uint32_t> got = device.download<uint32_t>(po, s.outputs);
    for (size_t k = 0; k < got.size() && text.empty(); ++k)
      if (got[k] != s.expected(in, k))
        text = "wrong number " + std::to_string(k);
  }
  device->cuModuleUnload(m);
  return text;
}

TEST(Check, RightKernelsAreToldNothing) {
  for (const Subject *s : {&blockSum, &transpose, &runningSum}) {
    EXPECT_EQ(assemble(entry(2, s->body, "", s->globals)), "") << s->name;
    for (const char *seed : {"1", "2", "3"})
      EXPECT_EQ(trouble(*s, s->body, seed), "") << s->name;
  }
}

TEST(Check, MutantsAreFound) {
  for (const Subject *s : {&blockSum, &transpose, &runningSum})
    for (const auto &m : s->mutations) {
      std::string body = s->body;
      size_t at = body.find(m.first);
      ASSERT_NE(at, std::string::npos) << s->name << ": " << m.first;
      body.replace(at, m.first.size(), m.second);
      std::string found = trouble(*s, body, "1");
      EXPECT_NE(found, "") << s->name << ": '" << m.first << "' -> '" << m.second << "'";
      EXPECT_NE(found.compare(0, 10, "not loaded"), 0) << found;
    }
}

TEST(Check, UndefinedRegisters) {
  CudaDevice device(Setting{{"CHECKS", "init"}});
  lathe_cu_function f = device.function(
      device.load(entry(
          1, "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 bra SKIP;\n"
             "mov.u32 %r2, 5;\nSKIP:\nst.global.b32 [%rd1], %r2;")),
      "k");
  lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
  EXPECT_EQ(device.run(f, 1, 32, {p}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"initcheck", "thread (3,0,0)", "register %r2"}));
}

TEST(Check, MemoryThatNobodyWrote) {
  CudaDevice device(Setting{{"CHECKS", "init"}});
  lathe_cu_function g = device.function(
      device.load(
          entry(1, "ld.param.b64 %rd1, [p0];\nld.global.b32 %r1, [%rd1+4];\nst.global.b32 [%rd1], %r1;")),
      "k");
  lathe_cu_deviceptr q = device.upload(nullptr, 8);
  EXPECT_EQ(device.run(g, 1, 1, {q}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"initcheck", "nobody has written", "byte 4"}));
}

TEST(Check, RacesOfBlocks) {
  CudaDevice device(Setting{{"CHECKS", "race"}});
  lathe_cu_function f = device.function(
      device.load(entry(1, "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %ctaid.x;\nst.global.b32 [%rd1], %r1;")),
      "k");
  lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
  EXPECT_EQ(device.run(f, 2, 1, {p}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"racecheck", "write races with a write"}));
}

TEST(Check, Alignment) {
  CudaDevice device;
  lathe_cu_function f = device.function(
      device.load(entry(
          1, "ld.param.b64 %rd1, [p0];\nld.global.v2.b32 {%r1, %r2}, [%rd1+4];\nst.global.b32 [%rd1], %r1;")),
      "k");
  EXPECT_EQ(device.run(f, 1, 1, {device.upload(std::vector<int>(8, 1))}), LATHE_CU_ERROR_MISALIGNED_ADDRESS);
  EXPECT_TRUE(holds(device.findings(), {"memcheck", "not aligned"}));
}

TEST(Check, ReadOnlyMemory) {
  CudaDevice device;
  lathe_cu_function g =
      device.function(device.load(entry(1, "mov.u64 %rd1, c;\ncvta.const.u64 %rd1, %rd1;\nst.b32 [%rd1], 1;",
                                        "", ".const .align 4 .b8 c[4] = {1, 2, 3, 4};")),
                      "k");
  EXPECT_EQ(device.run(g, 1, 1, {0}), LATHE_CU_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(holds(device.findings(), {"memcheck", "constant memory"}));
}

} // namespace
