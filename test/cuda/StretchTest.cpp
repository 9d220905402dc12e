// CUDA graphs of the loader: runs of one hand-written kernel, as graphs and call by call, and which calls that takes.
#include "test/cuda/CudaTest.h"

#include "runtime/abi/cuda_abi.h"

#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace lathe::test;

namespace {

using Numbers = std::vector<int32_t>;
constexpr size_t bytes = 128;

// to[i] = from[i] * 3 + more
const std::string ptx = entry(3, R"(
  .reg .b64 %a<8>;
  .reg .b32 %n<4>;
  ld.param.u64 %a1, [p0];
  ld.param.u64 %a2, [p1];
  ld.param.u64 %a6, [p2];
  mov.u32 %n1, %tid.x;
  mul.wide.u32 %a3, %n1, 4;
  add.s64 %a4, %a1, %a3;
  add.s64 %a5, %a2, %a3;
  ld.global.u32 %n2, [%a4];
  cvt.u32.u64 %n3, %a6;
  mad.lo.u32 %n2, %n2, 3, %n3;
  st.global.u32 [%a5], %n2;
)");

int32_t fail(const lathe_run_args *, int32_t, int32_t) { return LATHE_INTERNAL; }

lathe_cuda_kernel kernel = {sizeof(kernel), 32, "k"};
const lathe_cuda_kernel *const kernels[] = {&kernel};
lathe_cuda_module module = {sizeof(module), 1, ptx.c_str(), kernels, 0, 64, 0, 0, fail, nullptr, 0, 0, nullptr};

/// What the entry does: so many steps, and how its result gets there.
struct Work {
  int steps = 6;
  bool copies = false; ///< the result is a copy of what the last step wrote
  bool waits = false;  ///< half way the host reads a number
  uint64_t more = 1;
};

struct Instance {
  explicit Instance(const Setting &setting = {}, int32_t when = 1) : device(with(setting)) {
    lathe_cuda_graphs_2(when);
    std::memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    std::memset(&args, 0, sizeof(args));
    args.args.struct_size = sizeof(args);
    args.args.inputs = inputs;
    args.args.outputs = outputs;
    args.args.error = &error;
    args.inputs_on_device = args.outputs_on_device = yes;
    code = lathe_cuda_open_2(&module, nullptr, 0, &args.instance, &error);
    for (int32_t i = 0; i < 32; ++i)
      start.push_back(i - 7);
  }
  ~Instance() {
    close();
    std::remove(counts.c_str());
    lathe_cuda_graphs_2(1);
  }
  /// Findings, and how often each function was called.
  std::vector<std::string> close() {
    if (args.instance) {
      for (void *p : memory)
        lathe_cuda_free_memory_2(args.instance, p, &error);
      lathe_cuda_close_2(args.instance);
    }
    args.instance = nullptr;
    std::vector<std::string> found = device.close();
    std::ifstream in(counts);
    std::string name;
    for (int n; in >> name >> n;)
      calls[name] += n;
    return found;
  }
  /// Memory of the device, with the first numbers in it.
  void *allocate() {
    void *p = nullptr;
    if (!code)
      code = lathe_cuda_get_memory_2(args.instance, &p, bytes, &error);
    if (p)
      memory.push_back(p);
    if (!code)
      code = lathe_cuda_transfer_2(args.instance, p, 1, start.data(), 0, bytes, &error);
    return p;
  }
  Numbers read(const void *p) {
    Numbers n(32, 0);
    if (!code)
      code = lathe_cuda_transfer_2(args.instance, n.data(), 0, p, 1, bytes, &error);
    return n;
  }
  void run(const Work &work, const void *from, void *to) {
    inputs[0] = from;
    outputs[0] = to;
    if (!code)
      code = enter(work);
  }
  Numbers expected(const Work &work) const {
    Numbers n = start;
    for (int step = 0; step < work.steps; ++step)
      for (int32_t &v : n)
        v = v * 3 + int32_t(work.more) + step;
    return n;
  }

  std::string counts = "/tmp/lathe-counts-" + std::to_string(getpid());
  CudaDevice device;
  lathe_device_run_args args;
  lathe_error error;
  int32_t code = 0;
  Numbers start;
  std::map<std::string, int> calls;

private:
  Setting with(Setting s) {
    s["COUNTS"] = counts;
    return s;
  }
  int32_t enter(const Work &work) {
    lathe_cuda_frame frame;
    int32_t result = lathe_cuda_begin_2(&module, &args.args, nullptr, 1024, &frame);
    if (result)
      return result;
    char *base = static_cast<char *>(frame.memory);
    void *in = base, *out = base + 256;
    auto next = [&](int32_t r) { result = result ? result : r; };
    next(lathe_cuda_bind_2(frame.call, 0, 0, &in, bytes));
    next(lathe_cuda_bind_2(frame.call, 1, 0, &out, bytes));
    const void *from = in;
    for (int step = 0; step < work.steps && !result; ++step) {
      const bool last = step + 1 == work.steps;
      void *to = last && !work.copies ? out : base + 512 + 128 * (step % 2);
      const uint64_t parameters[] = {reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(to), work.more + uint64_t(step)};
      next(lathe_cuda_launch_2(frame.call, 0, 1, parameters, 3));
      from = to;
      if (work.waits && step == work.steps / 2)
        next(lathe_cuda_read_2(frame.call, frame.host, to, 8));
    }
    if (work.copies)
      next(lathe_cuda_copy_2(frame.call, out, from, bytes));
    next(lathe_cuda_store_2(frame.call, 1, 0, &out, bytes));
    return lathe_cuda_end_2(frame.call, result);
  }

  const void *inputs[1];
  void *outputs[1];
  const uint8_t yes[1] = {1};
  std::vector<void *> memory;
};

TEST(CudaStretch, IsAGraphFromTheSecondTimeOn) {
  for (const char *seed : {"1", "2", "3"}) {
    Instance i({{"CHECKS", "init,race"}, {"SEED", seed}});
    Work work;
    void *from = i.allocate(), *to = i.allocate();
    for (int n = 0; n < 5; ++n) {
      i.run(work, from, to);
      EXPECT_EQ(i.read(to), i.expected(work));
    }
    ASSERT_EQ(i.code, 0) << i.error.message;
    EXPECT_EQ(i.close(), std::vector<std::string>());
    EXPECT_EQ(i.calls["cuGraphInstantiateWithFlags"], 1);
    EXPECT_EQ(i.calls["cuGraphLaunch"], 4);
    EXPECT_EQ(i.calls["cuLaunchKernel"], 12); // the first run, and the recording of the graph
    EXPECT_EQ(i.calls["cuGraphExecKernelNodeSetParams"], 0);
  }
}

TEST(CudaStretch, FollowsTensorsOfTheCaller) {
  Instance i({{"CHECKS", "init,race"}});
  Work work, copying;
  copying.copies = true;
  for (const Work &w : {work, copying})
    for (int n = 0; n < 4; ++n) {
      void *from = i.allocate(), *to = i.allocate();
      i.run(w, from, to);
      EXPECT_EQ(i.read(to), i.expected(w)) << n;
    }
  ASSERT_EQ(i.code, 0) << i.error.message;
  EXPECT_EQ(i.close(), std::vector<std::string>());
  // of 6 launches or 7 calls only one may differ, else it is another graph: these runs differ in two
  EXPECT_EQ(i.calls["cuGraphLaunch"], 0);

  Instance j({{"CHECKS", "init,race"}});
  work.steps = copying.steps = 12;
  for (const Work &w : {work, copying})
    for (int n = 0; n < 4; ++n) {
      void *from = j.allocate(), *to = j.allocate();
      j.run(w, from, to);
      EXPECT_EQ(j.read(to), j.expected(w)) << n;
    }
  ASSERT_EQ(j.code, 0) << j.error.message;
  EXPECT_EQ(j.close(), std::vector<std::string>());
  EXPECT_EQ(j.calls["cuGraphLaunch"], 6);
  EXPECT_EQ(j.calls["cuGraphInstantiateWithFlags"], 2);
  // first and last launch, twice; where the last call is a copy the first launch is changed first, and then all at once
  EXPECT_EQ(j.calls["cuGraphExecKernelNodeSetParams"], 4 + 1);
  EXPECT_EQ(j.calls["cuGraphExecUpdate"], 2);
}

TEST(CudaStretch, OtherParametersAreAnotherGraph) {
  Instance i;
  Work one, two;
  two.more = 100;
  void *from = i.allocate(), *to = i.allocate();
  for (int n = 0; n < 4; ++n)
    for (const Work &w : {one, two}) {
      i.run(w, from, to);
      EXPECT_EQ(i.read(to), i.expected(w));
    }
  ASSERT_EQ(i.code, 0) << i.error.message;
  EXPECT_EQ(i.close(), std::vector<std::string>());
  EXPECT_EQ(i.calls["cuGraphLaunch"], 6);
  EXPECT_EQ(i.calls["cuGraphInstantiateWithFlags"], 2);
}

TEST(CudaStretch, EndsWhereTheHostMustKnow) {
  Instance i({{"CHECKS", "init,race"}});
  Work work;
  work.steps = 12;
  work.waits = true;
  void *from = i.allocate(), *to = i.allocate();
  for (int n = 0; n < 3; ++n) {
    i.run(work, from, to);
    EXPECT_EQ(i.read(to), i.expected(work));
  }
  ASSERT_EQ(i.code, 0) << i.error.message;
  EXPECT_EQ(i.close(), std::vector<std::string>());
  EXPECT_EQ(i.calls["cuGraphInstantiateWithFlags"], 2);
  EXPECT_EQ(i.calls["cuGraphLaunch"], 4);
}

TEST(CudaStretch, GraphsThatAreTooManyOrUnwantedAreCalls) {
  struct {
    int32_t when;
    int shapes, launches;
  } cases[] = {{0, 4, 0}, {1, 20, 40}, {1, 40, 0}, {2, 40, 120}};
  for (auto c : cases) {
    Instance i({}, c.when);
    void *from = i.allocate(), *to = i.allocate();
    for (int n = 0; n < 3; ++n)
      for (int s = 0; s < c.shapes; ++s) {
        Work work;
        work.steps = 4 + s;
        i.run(work, from, to);
        EXPECT_EQ(i.read(to), i.expected(work));
      }
    ASSERT_EQ(i.code, 0) << i.error.message;
    EXPECT_EQ(i.close(), std::vector<std::string>());
    EXPECT_EQ(i.calls["cuGraphLaunch"], c.launches) << c.when << " " << c.shapes;
  }
}

TEST(CudaStretch, LongOnesAreCut) {
  Instance i({}, 2);
  Work work;
  work.steps = 7000;
  void *from = i.allocate(), *to = i.allocate();
  for (int n = 0; n < 2; ++n) {
    i.run(work, from, to);
    EXPECT_EQ(i.read(to), i.expected(work));
  }
  ASSERT_EQ(i.code, 0) << i.error.message;
  EXPECT_EQ(i.close(), std::vector<std::string>());
  EXPECT_EQ(i.calls["cuGraphLaunch"], 2 * 3); // 3276 launches of 5 words are 16384
}

TEST(CudaStretch, InAStreamThatTheCallerCaptures) {
  Instance i({}, 2);
  lathe_cu_stream stream = nullptr;
  ASSERT_EQ(i.device->cuStreamCreate(&stream, LATHE_CU_STREAM_NON_BLOCKING), 0);
  Work work;
  void *from = i.allocate(), *to = i.allocate();
  i.args.enqueue = 1;
  i.args.stream = stream;
  i.run(work, from, to);
  ASSERT_EQ(lathe_cuda_finish_2(i.args.instance, &i.error), 0);
  EXPECT_EQ(i.read(to), i.expected(work));
  ASSERT_EQ(i.device->cuStreamBeginCapture(stream, LATHE_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
  i.run(work, from, to); // call by call, into the caller's graph
  lathe_cu_graph graph = nullptr;
  EXPECT_EQ(i.device->cuStreamEndCapture(stream, &graph), 0);
  i.device->cuGraphDestroy(graph);
  i.device->cuStreamDestroy(stream);
  i.args.enqueue = 0;
  i.close();
  EXPECT_EQ(i.calls["cuGraphLaunch"], 1);
}

// Whichever call fails: a code or the right result, and nothing is left behind.
TEST(CudaStretch, EveryCallMayFail) {
  int failed = 0, right = 0;
  for (int32_t when : {1, 2})
    for (int n = 6; n < 130; ++n) {
      Instance i({{"FAIL_CALL", std::to_string(n)}, {"FAIL_RESULT", "2"}}, when);
      ASSERT_TRUE(i.device.ok()) << n;
      Work work;
      work.copies = true;
      void *from = i.allocate(), *to = i.allocate(), *other = i.allocate();
      for (void *p : {to, to, other}) {
        i.run(work, from, p);
        Numbers numbers = i.read(p);
        if (!i.code)
          EXPECT_EQ(numbers, i.expected(work)) << n;
      }
      i.code ? ++failed : ++right;
      if (i.code)
        EXPECT_EQ(i.code, LATHE_RESOURCE_EXHAUSTED) << n << ": " << i.error.message;
      EXPECT_EQ(i.close(), std::vector<std::string>()) << n;
      EXPECT_EQ(module.loaded, nullptr);
      CudaDevice none; // where fewer calls were made, its first one is the one that fails
    }
  EXPECT_GT(failed, 60);
  EXPECT_GT(right, 30); // a graph that cannot be made is no failure
}

} // namespace
