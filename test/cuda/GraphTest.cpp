// CUDA graphs by capture.
#include "test/cuda/CudaTest.h"

using namespace lathe::test;

namespace {

struct Captured {
  CudaDevice device;
  lathe_cu_stream a = nullptr, b = nullptr;
  lathe_cu_event e = nullptr, joined = nullptr;
  lathe_cu_deviceptr p = 0;
  lathe_cu_function f = nullptr;

  explicit Captured(const Setting &setting = {}) : device(setting) {
    f = device.function(
        device.load(entry(2,
                          "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nld.global.b64 %rd3, [%rd1];\n"
                          "mad.lo.u64 %rd3, %rd3, 10, %rd2;\nst.global.b64 [%rd1], %rd3;")),
        "k");
    p = device.upload(std::vector<uint64_t>{0, 0});
    device->cuStreamCreate(&a, 1);
    device->cuStreamCreate(&b, 1);
    device->cuEventCreate(&e, 2);
    device->cuEventCreate(&joined, 2);
  }
  ~Captured() {
    device->cuStreamDestroy(a);
    device->cuStreamDestroy(b);
    device->cuEventDestroy(e);
    device->cuEventDestroy(joined);
  }
  /// Appends a digit to the number at p + 8 * at.
  lathe_cu_result digit(uint64_t d, lathe_cu_stream s, unsigned at = 0) {
    lathe_cu_deviceptr q = p + 8 * at;
    void *parameters[] = {&q, &d};
    lathe_cu_result r = device->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr);
    d = 99; // the launch has its own copy
    return r;
  }
  lathe_cu_graph capture(uint64_t first, uint64_t second) {
    lathe_cu_graph g = nullptr;
    EXPECT_EQ(device->cuStreamBeginCapture(a, LATHE_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    EXPECT_EQ(digit(first, a), 0);
    EXPECT_EQ(device->cuEventRecord(e, a), 0);
    EXPECT_EQ(device->cuStreamWaitEvent(b, e, 0), 0);
    EXPECT_EQ(digit(7, b, 1), 0);
    EXPECT_EQ(digit(second, a), 0);
    EXPECT_EQ(device->cuEventRecord(joined, b), 0);
    EXPECT_EQ(device->cuStreamWaitEvent(a, joined, 0), 0);
    EXPECT_EQ(device->cuStreamEndCapture(a, &g), 0);
    return g;
  }
};

TEST(Graph, CaptureLaunchAndUpdate) {
  for (const char *seed : {"1", "2", "3"}) {
    Captured c({{"SEED", seed}});
    lathe_cu_graph g = c.capture(1, 2), h = c.capture(3, 4);
    lathe_cu_graph_exec exec = nullptr;
    ASSERT_EQ(c.device->cuGraphInstantiateWithFlags(&exec, g, 0), 0);
    // capturing has run nothing
    EXPECT_EQ(c.device.download<uint64_t>(c.p, 1)[0], 0u);
    ASSERT_EQ(c.device->cuGraphLaunch(exec, c.a), 0);
    lathe_cu_graph_node node = nullptr;
    lathe_cu_update_result result = 1;
    ASSERT_EQ(c.device->cuGraphExecUpdate(exec, h, &node, &result), 0);
    EXPECT_EQ(result, LATHE_CU_GRAPH_EXEC_UPDATE_SUCCESS);
    ASSERT_EQ(c.device->cuGraphLaunch(exec, c.a), 0);
    ASSERT_EQ(c.device->cuStreamSynchronize(c.a), 0);
    EXPECT_EQ(c.device.download<uint64_t>(c.p, 2), (std::vector<uint64_t>{1234, 77}));
    EXPECT_EQ(c.device->cuGraphExecDestroy(exec), 0);
    EXPECT_EQ(c.device->cuGraphDestroy(g), 0);
    EXPECT_EQ(c.device->cuGraphDestroy(h), 0);
  }
}

TEST(Graph, AnotherShapeIsNoUpdate) {
  Captured c;
  lathe_cu_graph g = c.capture(1, 2), h = nullptr;
  lathe_cu_graph_exec exec = nullptr;
  ASSERT_EQ(c.device->cuGraphInstantiateWithFlags(&exec, g, 0), 0);
  ASSERT_EQ(c.device->cuStreamBeginCapture(c.a, 1), 0);
  c.digit(5, c.a);
  ASSERT_EQ(c.device->cuStreamEndCapture(c.a, &h), 0);
  lathe_cu_update_result result = 0;
  EXPECT_EQ(c.device->cuGraphExecUpdate(exec, h, nullptr, &result), LATHE_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(result, LATHE_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  c.device->cuGraphExecDestroy(exec);
  c.device->cuGraphDestroy(g);
  c.device->cuGraphDestroy(h);
}

TEST(Graph, CaptureRefusesAllocationAndWaiting) {
  Captured c;
  lathe_cu_graph g = nullptr;
  auto refused = [&](auto call) {
    ASSERT_EQ(c.device->cuStreamBeginCapture(c.a, LATHE_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    EXPECT_EQ(call(), LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    lathe_cu_capture_status status = 0;
    EXPECT_EQ(c.device->cuStreamIsCapturing(c.a, &status), 0);
    EXPECT_EQ(status, LATHE_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(c.device->cuStreamEndCapture(c.a, &g), LATHE_CU_ERROR_STREAM_CAPTURE_INVALIDATED);
  };
  lathe_cu_deviceptr q = 0;
  lathe_cu_module m = nullptr;
  uint64_t host = 0;
  std::string ptx = entry(0, "");
  refused([&] { return c.device->cuMemAlloc(&q, 16); });
  refused([&] { return c.device->cuStreamSynchronize(c.a); });
  refused([&] { return c.device->cuCtxSynchronize(); });
  refused([&] { return c.device->cuMemcpyDtoH(&host, c.p, 8); });
  refused([&] { return c.device->cuModuleLoadDataEx(&m, ptx.c_str(), 0, nullptr, nullptr); });
}

TEST(Graph, AStreamThatIsNotJoined) {
  Captured c;
  lathe_cu_graph g = nullptr;
  ASSERT_EQ(c.device->cuStreamBeginCapture(c.a, 1), 0);
  c.digit(1, c.a);
  c.device->cuEventRecord(c.e, c.a);
  c.device->cuStreamWaitEvent(c.b, c.e, 0);
  c.digit(2, c.b);
  EXPECT_EQ(c.device->cuStreamEndCapture(c.a, &g), LATHE_CU_ERROR_STREAM_CAPTURE_UNJOINED);
}

} // namespace
