// Instructions of a whole warp, barriers, atomics, asynchronous copies.
#include "test/cuda/CudaTest.h"

#include <numeric>

using namespace lathe::test;

namespace {

/// The thread's 32-bit place in p0 is in %rd1; the body leaves a value in %r9.
std::string perThread(const std::string &body) {
  return "ld.param.b64 %rd1, [p0];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, "
         "%r1, 4;\n"
         "add.u64 %rd1, %rd1, %rd2;\n" +
         body + "\nst.global.b32 [%rd1], %r9;";
}

std::vector<uint32_t> run(const std::string &body, unsigned threads, const Setting &setting = {},
                          const std::string &globals = "", const char *target = "sm_80") {
  Setting s = setting;
  s.emplace("CHECKS", "init,race");
  CudaDevice device(s);
  lathe_cu_function f = device.function(device.load(entry(1, perThread(body), "", globals, target)), "k");
  lathe_cu_deviceptr p = device.upload(nullptr, 4 * threads);
  EXPECT_EQ(device.run(f, 1, threads, {p}), 0);
  for (const std::string &line : device.findings())
    ADD_FAILURE() << line;
  return device.download<uint32_t>(p, threads);
}

TEST(Warp, Shuffles) {
  auto down = run("mul.lo.u32 %r2, %r1, 10;\nshfl.sync.down.b32 %r9, %r2, 3, 31, 0xffffffff;", 64);
  auto up = run(
      "mul.lo.u32 %r2, %r1, 10;\nshfl.sync.up.b32 %r9|%p1, %r2, 2, 0, 0xffffffff;\n@!%p1 mov.u32 %r9, 7777;",
      64);
  auto bfly = run("shfl.sync.bfly.b32 %r9, %r1, 5, 31, 0xffffffff;", 64);
  // segments of 8 lanes
  auto idx = run("shfl.sync.idx.b32 %r9, %r1, 3, 0x181f, 0xffffffff;", 64);
  for (unsigned t = 0; t < 64; ++t) {
    unsigned l = t % 32, w = t - l;
    EXPECT_EQ(down[t], 10 * (l + 3 < 32 ? t + 3 : t));
    EXPECT_EQ(up[t], l < 2 ? 7777 : 10 * (t - 2));
    EXPECT_EQ(bfly[t], w + (l ^ 5));
    EXPECT_EQ(idx[t], w + (l & 24) + 3);
  }
}

TEST(Warp, SumByShuffles) {
  for (const char *seed : {"1", "7", "99"}) {
    auto sum = run("mov.u32 %r9, %r1;\nshfl.sync.bfly.b32 %r2, %r9, 16, 31, -1;\nadd.u32 %r9, %r9, %r2;\n"
                   "shfl.sync.bfly.b32 %r2, %r9, 8, 31, -1;\nadd.u32 %r9, %r9, %r2;\n"
                   "shfl.sync.bfly.b32 %r2, %r9, 4, 31, -1;\nadd.u32 %r9, %r9, %r2;\n"
                   "shfl.sync.bfly.b32 %r2, %r9, 2, 31, -1;\nadd.u32 %r9, %r9, %r2;\n"
                   "shfl.sync.bfly.b32 %r2, %r9, 1, 31, -1;\nadd.u32 %r9, %r9, %r2;",
                   32, {{"SEED", seed}});
    for (uint32_t v : sum)
      EXPECT_EQ(v, 496u);
  }
}

TEST(Warp, VotesMatchesAndReductions) {
  auto ballot = run("setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r9, %p1, 0xffffffff;", 32);
  auto any = run(
      "setp.eq.u32 %p1, %r1, 40;\nvote.sync.any.pred %p2, %p1, 0xffffffff;\nselp.u32 %r9, 1, 0, %p2;", 64);
  auto match = run("and.b32 %r2, %r1, 3;\nmatch.any.sync.b32 %r9, %r2, 0xffffffff;", 32);
  auto redux = run("redux.sync.add.u32 %r9, %r1, 0xffffffff;", 64);
  // the two halves of a warp by themselves, on both sides of a branch
  auto apart = run(
      "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nredux.sync.max.u32 %r9, %r1, 0xffff0000;\nbra END;\nLOW:\n"
      "redux.sync.min.u32 %r9, %r1, 0x0000ffff;\nEND:",
      32);
  for (unsigned t = 0; t < 32; ++t) {
    EXPECT_EQ(ballot[t], 31u);
    EXPECT_EQ(any[t], 0u);
    EXPECT_EQ(any[t + 32], 1u);
    EXPECT_EQ(match[t], 0x11111111u << (t & 3));
    EXPECT_EQ(redux[t], 496u);
    EXPECT_EQ(apart[t], t < 16 ? 0u : 31u);
  }
}

TEST(Warp, ReducingBarrier) {
  auto r = run("setp.gt.u32 %p1, %r1, 90;\nbar.red.popc.u32 %r9, 0, %p1;", 100);
  for (uint32_t v : r)
    EXPECT_EQ(v, 9u);
}

TEST(Warp, NamedBarriersOfHalfABlock) {
  // producers arrive, consumers wait
  auto r =
      run("mov.u64 %rd3, buffer;\nadd.u64 %rd4, %rd3, %rd2;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra CONSUMER;\n"
          "mul.lo.u32 %r9, %r1, 3;\nst.shared.b32 [%rd4], %r9;\nbar.arrive 1, 64;\nbra END;\nCONSUMER:\n"
          "bar.sync 1, 64;\nld.shared.b32 %r9, [%rd4+-128];\nEND:",
          64, {}, ".shared .align 4 .b8 buffer[256];");
  for (unsigned t = 0; t < 64; ++t)
    EXPECT_EQ(r[t], t % 32 * 3);
}

TEST(Warp, AtomicsOfManyBlocks) {
  for (const char *sms : {"1", "4", "132"}) {
    CudaDevice device(Setting{{"SMS", sms}, {"CHECKS", "init,race"}});
    lathe_cu_function f = device.function(
        device.load(entry(
            1,
            "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\natom.global.add.u32 %r2, [%rd1], %r1;\n"
            "red.global.max.s32 [%rd1+4], %r1;\nmov.f32 %f1, 0f3F000000;\nred.global.add.f32 [%rd1+8], %f1;\n"
            "atom.global.inc.u32 %r3, [%rd1+12], 9;\natom.global.cas.b32 %r4, [%rd1+16], 0, 5;")),
        "k");
    lathe_cu_deviceptr p = device.upload(std::vector<int>(5, 0));
    ASSERT_EQ(device.run(f, 20, 50, {p}), 0);
    std::vector<uint32_t> v = device.download<uint32_t>(p, 5);
    EXPECT_EQ(v[0], 20u * 1225);
    EXPECT_EQ(v[1], 49u);
    EXPECT_EQ(v[2], 0x43fa0000u); // 500.0
    EXPECT_EQ(v[3], 0u);
    EXPECT_EQ(v[4], 5u);
    EXPECT_TRUE(device.findings().empty());
  }
}

/// Copies 16 bytes a thread to shared memory and reads what its neighbour copied; the parts that mutants
/// leave out.
std::string asyncCopy(const std::string &wait, const std::string &barrier) {
  return "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\nadd.u64 %rd3, %rd1, "
         "%rd2;\n"
         "mov.u64 %rd4, buffer;\nadd.u64 %rd5, %rd4, %rd2;\ncp.async.cg.shared.global [%rd5], [%rd3], 16;\n"
         "cp.async.commit_group;\n" +
         wait + "\n" + barrier +
         "\nxor.b32 %r2, %r1, 33;\nmul.wide.u32 %rd6, %r2, 16;\nadd.u64 %rd7, %rd4, %rd6;\n"
         "ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%rd7];\nadd.u32 %r3, %r3, %r6;\nmul.wide.u32 %rd8, %r1, "
         "4;\n"
         "ld.param.b64 %rd9, [p1];\nadd.u64 %rd9, %rd9, %rd8;\nst.global.b32 [%rd9], %r3;";
}

TEST(Warp, AsynchronousCopies) {
  const std::string globals = ".shared .align 16 .b8 buffer[1024];";
  struct {
    const char *wait, *barrier, *finding;
  } cases[] = {{"cp.async.wait_group 0;", "bar.sync 0;", nullptr},
               {"cp.async.wait_all;", "bar.sync 0;", nullptr},
               {"", "bar.sync 0;", "initcheck"},
               {"cp.async.wait_group 1;", "bar.sync 0;", "initcheck"},
               {"cp.async.wait_group 0;", "", "racecheck"},
               {"st.shared.b32 [%rd5], %r1;\ncp.async.wait_group 0;", "bar.sync 0;", "racecheck"}};
  for (const auto &c : cases) {
    CudaDevice device(Setting{{"CHECKS", "init,race"}});
    lathe_cu_function f =
        device.function(device.load(entry(2, asyncCopy(c.wait, c.barrier), "", globals)), "k");
    std::vector<uint32_t> in(256);
    std::iota(in.begin(), in.end(), 100u);
    lathe_cu_deviceptr pi = device.upload(in), po = device.upload(nullptr, 256);
    lathe_cu_result r = device.run(f, 1, 64, {pi, po});
    if (c.finding) {
      EXPECT_NE(r, 0);
      EXPECT_TRUE(holds(device.findings(), {c.finding})) << c.wait << c.barrier;
      continue;
    }
    ASSERT_EQ(r, 0);
    std::vector<uint32_t> got = device.download<uint32_t>(po, 64);
    for (unsigned t = 0; t < 64; ++t)
      EXPECT_EQ(got[t], in[4 * (t ^ 33)] + in[4 * (t ^ 33) + 3]);
  }
}

} // namespace
