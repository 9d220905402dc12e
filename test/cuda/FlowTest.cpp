// Branches within a warp: where lanes meet, loops that end at different times, locks that need both sides to
// go on, returns from calls, deadlocks.
#include "test/cuda/CudaTest.h"

using namespace lathe::test;

namespace {

const std::string place =
    "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd1, %rd2;\n";

TEST(Flow, NestedBranchesMeetAgain) {
  for (const char *seed : {"1", "2", "3", "4"}) {
    CudaDevice device(Setting{{"SEED", seed}});
    // after both branches all lanes shuffle: without meeting again they would wait for each other
    lathe_cu_function f = device.function(
        device.load(entry(
            1, place + "mov.u32 %r9, 0;\nand.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra A;\n"
                       "add.u32 %r9, %r9, 1;\nand.b32 %r3, %r1, 2;\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra B;\n"
                       "add.u32 %r9, %r9, 10;\nbra C;\nB:\nadd.u32 %r9, %r9, 100;\nC:\nactivemask.b32 %r5;\n"
                       "bra D;\nA:\nmov.u32 %r5, 0;\nD:\nactivemask.b32 %r4;\nsetp.eq.u32 %p3, %r4, -1;\n"
                       "@%p3 add.u32 %r9, %r9, 1000;\nsetp.eq.u32 %p4, %r5, 0xaaaaaaaa;\n"
                       "@%p4 add.u32 %r9, %r9, 5000;\nst.global.b32 [%rd2], %r9;")),
        "k");
    lathe_cu_deviceptr p = device.upload(nullptr, 128);
    ASSERT_EQ(device.run(f, 1, 32, {p}), 0);
    std::vector<uint32_t> v = device.download<uint32_t>(p, 32);
    for (unsigned t = 0; t < 32; ++t)
      EXPECT_EQ(v[t], 1000 + (t & 1 ? 5001 + (t & 2 ? 10u : 100u) : 0u)) << t;
  }
}

TEST(Flow, LoopsOfDifferentLengths) {
  CudaDevice device;
  lathe_cu_function f = device.function(
      device.load(entry(
          1, place + "mov.u32 %r9, 0;\nmov.u32 %r2, 0;\nLOOP:\nadd.u32 %r9, %r9, %r2;\nadd.u32 %r2, %r2, 1;\n"
                     "setp.le.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nst.global.b32 [%rd2], %r9;")),
      "k");
  lathe_cu_deviceptr p = device.upload(nullptr, 400);
  ASSERT_EQ(device.run(f, 1, 100, {p}), 0);
  std::vector<uint32_t> v = device.download<uint32_t>(p, 100);
  for (unsigned t = 0; t < 100; ++t)
    EXPECT_EQ(v[t], t * (t + 1) / 2);
}

TEST(Flow, ALockWithinAWarp) {
  // each lane takes the lock, adds and gives it back: lanes that spin must not keep the holder from going on
  for (const char *seed : {"1", "2"}) {
    CudaDevice device(Setting{{"SEED", seed}, {"MAX_BRANCHES", "20000000"}});
    lathe_cu_function f = device.function(
        device.load(
            entry(1, "ld.param.b64 %rd1, [p0];\nTAKE:\natom.global.acquire.gpu.cas.b32 %r2, [%rd1], 0, 1;\n"
                     "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra TAKE;\nld.volatile.global.u32 %r3, [%rd1+4];\n"
                     "add.u32 %r3, %r3, 1;\nst.volatile.global.u32 [%rd1+4], %r3;\nmembar.gl;\n"
                     "atom.global.release.gpu.exch.b32 %r4, [%rd1], 0;")),
        "k");
    lathe_cu_deviceptr p = device.upload(std::vector<int>{0, 0});
    ASSERT_EQ(device.run(f, 2, 40, {p}), 0);
    EXPECT_EQ(device.download<int>(p, 2)[1], 80);
  }
}

TEST(Flow, ExitsBeforeABarrierAreFound) {
  CudaDevice device;
  lathe_cu_function f = device.function(
      device.load(
          entry(1, place + "setp.ge.u32 %p1, %r1, 50;\n@%p1 ret;\nbar.sync 0;\nst.global.b32 [%rd2], %r1;")),
      "k");
  lathe_cu_deviceptr p = device.upload(nullptr, 256);
  EXPECT_EQ(device.run(f, 1, 64, {p}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(
      holds(device.findings(), {"synccheck", "barrier 0 has 50 of 64 threads", "14 threads have ended"}));
}

TEST(Flow, PredicatesSetToConstants) {
  CudaDevice device;
  lathe_cu_function f = device.function(
      device.load(entry(1, place + "mov.pred %p1, 0;\nmov.pred %p2, -1;\nmov.u32 %r9, 7;\n@%p1 add.u32 %r9, %r9, 100;\n"
                                   "@%p2 add.u32 %r9, %r9, 10;\nst.global.b32 [%rd2], %r9;")),
      "k");
  lathe_cu_deviceptr p = device.upload(nullptr, 128);
  ASSERT_EQ(device.run(f, 1, 32, {p}), 0);
  EXPECT_EQ(device.download<uint32_t>(p, 32), std::vector<uint32_t>(32, 17));
}

TEST(Flow, AMissingLaneIsFound) {
  CudaDevice device;
  lathe_cu_function f = device.function(
      device.load(entry(
          1, place + "setp.eq.u32 %p1, %r1, 5;\n@%p1 bra WAIT;\nshfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;\n"
                     "st.global.b32 [%rd2], %r9;\nbra END;\nWAIT:\nbar.sync 0;\nEND:")),
      "k");
  lathe_cu_deviceptr p = device.upload(nullptr, 128);
  EXPECT_EQ(device.run(f, 1, 32, {p}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"synccheck", "lanes 0x00000020 of warp 0 never arrive"}));
}

TEST(Flow, AKernelThatDoesNotEnd) {
  CudaDevice device(Setting{{"MAX_BRANCHES", "100000"}});
  lathe_cu_function f = device.function(
      device.load(entry(1, "LOOP:\nld.param.b64 %rd1, [p0];\nld.volatile.global.u32 %r1, [%rd1];\n"
                           "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra LOOP;")),
      "k");
  lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
  EXPECT_EQ(device.run(f, 1, 32, {p}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"synccheck", "does not end"}));
}

TEST(Flow, BlocksWaitForThoseThatAreResident) {
  // all blocks wait for each other, and a multiprocessor's shared memory is enough for one
  constexpr unsigned shared = 100 << 10;
  for (const char *sms : {"1", "4", "132"}) {
    CudaDevice device(Setting{{"MAX_BRANCHES", "5000000"}, {"SMS", sms}});
    lathe_cu_function f = device.function(
        device.load(entry(1, "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
                             "mov.u32 %r2, %nctaid.x;\natom.global.add.u32 %r3, [%rd1], 1;\nLOOP:\n"
                             "ld.volatile.global.u32 %r4, [%rd1];\nsetp.lt.u32 %p2, %r4, %r2;\n@%p2 bra LOOP;\nEND:")),
        "k");
    ASSERT_EQ(device->cuFuncSetAttribute(f, LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared), 0);
    lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
    if (std::string(sms) == "1") {
      EXPECT_EQ(device.run(f, 3, 32, {p}, shared), LATHE_CU_ERROR_LAUNCH_FAILED);
      EXPECT_TRUE(holds(device.findings(), {"synccheck", "does not end"}));
    } else {
      ASSERT_EQ(device.run(f, 3, 32, {p}, shared), 0) << sms;
      EXPECT_EQ(device.download<int>(p, 1)[0], 3);
    }
  }
}

} // namespace
