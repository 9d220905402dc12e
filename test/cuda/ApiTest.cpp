// The driver's interface: modules and what they are refused for, limits of launches, streams and events,
// failing calls.
#include "test/cuda/CudaTest.h"

#include <cstdlib>
#include <set>

using namespace lathe::test;

namespace {

const char *addOne =
    "ld.param.b64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"
    "ld.global.b32 %r2, [%rd1];\nadd.u32 %r2, %r2, 1;\nst.global.b32 [%rd1], %r2;";

lathe_cu_result loads(const Setting &setting, const std::string &ptx) {
  CudaDevice device(setting);
  lathe_cu_module m = nullptr;
  lathe_cu_result r = device->cuModuleLoadDataEx(&m, ptx.c_str(), 0, nullptr, nullptr);
  if (!r)
    device->cuModuleUnload(m);
  return r;
}

TEST(Api, ModulesForOtherDevicesAndDrivers) {
  EXPECT_EQ(loads({{"ARCH", "80"}}, entry(0, "", "", "", "sm_90", "7.8")), LATHE_CU_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(loads({{"ARCH", "90"}}, entry(0, "", "", "", "sm_80")), 0);
  EXPECT_EQ(loads({{"ARCH", "100"}}, entry(0, "", "", "", "sm_90a", "8.0")),
            LATHE_CU_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(loads({{"ARCH", "90"}}, entry(0, "", "", "", "sm_90a", "8.0")), 0);
  EXPECT_EQ(loads({{"DRIVER", "11040"}, {"ARCH", "90"}}, entry(0, "", "", "", "sm_90", "7.8")),
            LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(loads({{"DRIVER", "12020"}, {"ARCH", "90"}}, entry(0, "", "", "", "sm_90", "7.8")), 0);
  EXPECT_EQ(loads({{"DRIVER", "12020"}, {"ARCH", "100"}}, entry(0, "", "", "", "sm_100", "8.6")),
            LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(loads({{"ARCH", "100"}}, entry(0, "", "", "", "sm_100", "8.6")), 0);
  EXPECT_EQ(loads({}, "\177ELF"), LATHE_CU_ERROR_NO_BINARY_FOR_GPU);
}

TEST(Api, UnknownTextIsAFinding) {
  const char *bodies[] = {"frobnicate.b32 %r1, %r2;",
                          "add.u32.fast %r1, %r2, %r3;",
                          "add.u32 %r1, %r2;",
                          "add.u32 %r1, %rd2, %r3;",
                          "mov.u32 %r1, nothing;",
                          "bra NOWHERE;",
                          "add.f32 %r1, %r2, 1;",
                          "ld.global.b32 %h1, [%rd1];",
                          "call foo;",
                          "st.shared.b32 [p0], %r1;",
                          "mov.u32 %r1, 1"};
  for (const char *body : bodies) {
    CudaDevice device;
    lathe_cu_module m = nullptr;
    char text[256] = "";
    lathe_cu_jit_option options[] = {LATHE_CU_JIT_ERROR_LOG_BUFFER, LATHE_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {text, reinterpret_cast<void *>(sizeof(text))};
    EXPECT_EQ(device->cuModuleLoadDataEx(&m, entry(1, body).c_str(), 2, options, values),
              LATHE_CU_ERROR_INVALID_PTX)
        << body;
    EXPECT_TRUE(holds(device.findings(), {"instruction: PTX: line 1"})) << body;
    EXPECT_EQ(std::string(text).compare(0, 5, "line "), 0) << body << ": " << text;
  }
}

TEST(Api, LimitsOfLaunches) {
  CudaDevice device;
  lathe_cu_function f = device.function(device.load(entry(1, addOne, ".reqntid 32")), "k");
  lathe_cu_deviceptr p = device.upload(std::vector<int>(64, 0));
  EXPECT_EQ(device.run(f, 1, 64, {p}), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device.run(f, 0, 32, {p}), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device.run(f, 1, 2048, {p}), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device.run(f, 1, 32, {p}, 49153), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      device->cuFuncSetAttribute(f, LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024 + 1),
      LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device->cuFuncSetAttribute(f, LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024),
            0);
  EXPECT_EQ(device.run(f, 1, 32, {p}, 163 * 1024), 0);
  EXPECT_EQ(device.download<int>(p, 1)[0], 1);
}

TEST(Api, LimitsOfMemoryInModules) {
  for (const char *arch : {"90", "100"}) {
    CudaDevice device(Setting{{"ARCH", arch}});
    lathe_cu_function f = device.function(device.load(entry(1, addOne)), "k");
    lathe_cu_deviceptr p = device.upload(std::vector<int>(32, 4));
    const auto most = LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    EXPECT_EQ(device->cuFuncSetAttribute(f, most, 227 * 1024 + 1), LATHE_CU_ERROR_INVALID_VALUE) << arch;
    EXPECT_EQ(device->cuFuncSetAttribute(f, most, 227 * 1024), 0) << arch;
    EXPECT_EQ(device.run(f, 1, 32, {p}, 227 * 1024), 0) << arch;
    EXPECT_EQ(device.download<int>(p, 1)[0], 5);
  }
  EXPECT_EQ(loads({}, entry(0, "", "", ".const .align 4 .b8 c[65536];")), 0);
  EXPECT_EQ(loads({}, entry(0, "", "", ".const .align 4 .b8 c[65536];\n.const .align 4 .b8 d[4];")), LATHE_CU_ERROR_INVALID_PTX);
  // 48 KB of shared memory that a kernel declares itself
  CudaDevice device;
  lathe_cu_deviceptr p = device.upload(std::vector<int>(32, 4));
  lathe_cu_module fits = nullptr, large = nullptr;
  auto text = [](const char *size) { return entry(1, std::string(".shared .align 4 .b8 s[") + size + "];\n" + addOne); };
  ASSERT_EQ(device->cuModuleLoadDataEx(&fits, text("49152").c_str(), 0, nullptr, nullptr), 0);
  EXPECT_EQ(device.run(device.function(fits, "k"), 1, 32, {p}), 0);
  if (device->cuModuleLoadDataEx(&large, text("49156").c_str(), 0, nullptr, nullptr) == 0)
    EXPECT_EQ(device.run(device.function(large, "k"), 1, 32, {p}), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device.download<int>(p, 1)[0], 5);
  device->cuModuleUnload(fits);
  if (large)
    device->cuModuleUnload(large);
}

TEST(Api, MemoryIsBoundedAndChecked) {
  CudaDevice device(Setting{{"MEMORY", "1000000"}});
  lathe_cu_deviceptr p = 0, q = 0;
  ASSERT_EQ(device->cuMemAlloc(&p, 900000), 0);
  EXPECT_EQ(device->cuMemAlloc(&q, 200000), LATHE_CU_ERROR_OUT_OF_MEMORY);
  int x = 0;
  EXPECT_EQ(device->cuMemcpyHtoD(p + 899997, &x, 4), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_TRUE(holds(device.findings(), {"memcheck", "cuMemcpyHtoD of 4 bytes"}));
  EXPECT_EQ(device->cuMemFree(p), 0);
  EXPECT_EQ(device->cuMemFree(p), LATHE_CU_ERROR_INVALID_VALUE);
  EXPECT_EQ(device->cuMemAlloc(&q, 200000), 0);
  EXPECT_NE(p, q);
  // a stale pointer is found in a kernel
  lathe_cu_function f = device.function(device.load(entry(1, addOne)), "k");
  EXPECT_EQ(device.run(f, 1, 32, {p}), LATHE_CU_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(holds(device.findings(), {"memcheck", "freed memory"}));
  // nothing works any more, but memory can be given back
  EXPECT_EQ(device->cuMemAlloc(&p, 16), LATHE_CU_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(device->cuMemFree(q), LATHE_CU_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(holds(device.close(), {"left behind", "allocations"}));
}

TEST(Api, CopiesHappenWhenTheyAreWaitedFor) {
  CudaDevice device;
  lathe_cu_stream s = nullptr;
  ASSERT_EQ(device->cuStreamCreate(&s, LATHE_CU_STREAM_NON_BLOCKING), 0);
  lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
  int in = 1, out = 0;
  ASSERT_EQ(device->cuMemcpyHtoDAsync(p, &in, 4, s), 0);
  ASSERT_EQ(device->cuMemcpyDtoHAsync(&out, p, 4, s), 0);
  in = 2; // too early: the copy may not have read it
  EXPECT_EQ(out, 0);
  ASSERT_EQ(device->cuStreamSynchronize(s), 0);
  EXPECT_EQ(out, 2);
  EXPECT_EQ(device->cuStreamDestroy(s), 0);
}

TEST(Api, EventsOrderStreams) {
  for (const char *seed : {"1", "2", "3", "4", "5"}) {
    CudaDevice device(Setting{{"SEED", seed}});
    lathe_cu_stream a = nullptr, b = nullptr;
    lathe_cu_event e = nullptr;
    ASSERT_EQ(device->cuStreamCreate(&a, 1), 0);
    ASSERT_EQ(device->cuStreamCreate(&b, 1), 0);
    ASSERT_EQ(device->cuEventCreate(&e, LATHE_CU_EVENT_DISABLE_TIMING), 0);
    lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
    int first = 10, second = 20, out = 0;
    ASSERT_EQ(device->cuMemcpyHtoDAsync(p, &first, 4, a), 0);
    ASSERT_EQ(device->cuEventRecord(e, a), 0);
    ASSERT_EQ(device->cuStreamWaitEvent(b, e, 0), 0);
    ASSERT_EQ(device->cuMemcpyHtoDAsync(p, &second, 4, b), 0);
    ASSERT_EQ(device->cuMemcpyDtoHAsync(&out, p, 4, b), 0);
    ASSERT_EQ(device->cuStreamSynchronize(b), 0);
    EXPECT_EQ(out, 20);
    EXPECT_EQ(device->cuEventQuery(e), 0);
    device->cuEventDestroy(e);
    device->cuStreamDestroy(a);
    device->cuStreamDestroy(b);
    EXPECT_TRUE(device.close().empty());
  }
}

TEST(Api, WithoutAnEventTheOrderVaries) {
  std::set<int> seen;
  for (int seed = 1; seed < 40; ++seed) {
    CudaDevice device(Setting{{"SEED", std::to_string(seed)}});
    lathe_cu_stream a = nullptr, b = nullptr;
    ASSERT_EQ(device->cuStreamCreate(&a, 1), 0);
    ASSERT_EQ(device->cuStreamCreate(&b, 1), 0);
    lathe_cu_deviceptr p = device.upload(std::vector<int>{0});
    int first = 10, second = 20;
    device->cuMemcpyHtoDAsync(p, &first, 4, a);
    device->cuMemcpyHtoDAsync(p, &second, 4, b);
    device->cuCtxSynchronize();
    seen.insert(device.download<int>(p, 1)[0]);
    device->cuStreamDestroy(a);
    device->cuStreamDestroy(b);
  }
  EXPECT_EQ(seen, (std::set<int>{10, 20}));
}

/// A small program: 0 when all calls succeed. It gives back what it has whatever fails.
int program(const lathe_cuda_driver &d, const std::string &ptx) {
  lathe_cu_context context = nullptr;
  lathe_cu_module m = nullptr;
  lathe_cu_function f = nullptr;
  lathe_cu_stream s = nullptr;
  lathe_cu_deviceptr p = 0;
  int data[32] = {}, result = 0;
  if (d.cuInit(0) || d.cuDevicePrimaryCtxRetain(&context, 0))
    return 1;
  if (d.cuCtxPushCurrent(context)) {
    d.cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  void *parameters[] = {&p};
  if (d.cuModuleLoadDataEx(&m, ptx.c_str(), 0, nullptr, nullptr) || d.cuModuleGetFunction(&f, m, "k") ||
      d.cuStreamCreate(&s, 1) || d.cuMemAlloc(&p, 128) || d.cuMemcpyHtoDAsync(p, data, 128, s) ||
      d.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, parameters, nullptr) ||
      d.cuMemcpyDtoHAsync(data, p, 128, s) || d.cuStreamSynchronize(s) || data[5] != 1)
    result = 1;
  if (p)
    result |= d.cuMemFree(p);
  if (s)
    result |= d.cuStreamDestroy(s);
  if (m)
    result |= d.cuModuleUnload(m);
  d.cuCtxPopCurrent(nullptr);
  return result | d.cuDevicePrimaryCtxRelease(0);
}

TEST(Api, EveryCallCanFail) {
  std::string ptx = entry(1, addOne);
  std::set<int> failing;
  for (int n = 0; n < 20; ++n) {
    CudaDevice device(Setting{{"FAIL_CALL", "0"}});
    const lathe_cuda_driver *driver = &*device;
    device.close();
    setenv("LATHE_EMU_FAIL_CALL", std::to_string(n).c_str(), 1);
    if (program(*driver, ptx))
      failing.insert(n);
    EXPECT_TRUE(device.findings().empty()) << n << ": " << device.findings()[0];
  }
  // popping the context tells nothing
  EXPECT_EQ(failing, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16}));
}

TEST(Api, WhatIsLeftBehindIsTold) {
  CudaDevice device;
  lathe_cu_stream s = nullptr;
  lathe_cu_deviceptr p = 0;
  device->cuStreamCreate(&s, 0);
  device->cuMemAlloc(&p, 10);
  std::vector<std::string> lines = device.close();
  EXPECT_TRUE(holds(lines, {"left behind: 1 allocations of device memory"}));
  EXPECT_TRUE(holds(lines, {"left behind: 1 streams"}));
}

} // namespace
