// What objects call (runtime/abi/cuda_abi.h), with a module written by hand: one kernel that doubles 32 numbers and says that
// it failed where one of them is 77.
#include "test/cuda/CudaTest.h"

#include "runtime/abi/cuda_abi.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace lathe::test;

namespace {

using Numbers = std::array<int32_t, 32>;

const std::string ptx = entry(3, R"(
  .reg .b64 %a<8>;
  .reg .b32 %n<4>;
  .reg .pred %p;
  ld.param.u64 %a1, [p0];
  ld.param.u64 %a2, [p1];
  ld.param.u64 %a6, [p2];
  mov.u32 %n1, %tid.x;
  mul.wide.u32 %a3, %n1, 4;
  add.s64 %a4, %a1, %a3;
  add.s64 %a5, %a2, %a3;
  ld.global.u32 %n2, [%a4];
  add.s32 %n3, %n2, %n2;
  st.global.u32 [%a5], %n3;
  setp.ne.s32 %p, %n2, 77;
  @%p bra done;
  mov.b64 %a7, 2;
  atom.global.max.u64 %a7, [%a6], %a7;
done:
  ret;
)");

int32_t fail(const lathe_run_args *args, int32_t site, int32_t failure) {
  args->error->code = LATHE_INVALID_ARGUMENT;
  args->error->site = site;
  args->error->message = failure == 2 ? "told" : "something else";
  return LATHE_INVALID_ARGUMENT;
}

lathe_cuda_kernel kernel = {sizeof(kernel), 32, "k"};
const lathe_cuda_kernel *const kernels[] = {&kernel};
lathe_cuda_module module = {sizeof(module), 1, ptx.c_str(), kernels, 0, 0, 1, 0, fail, nullptr, 0, 0, nullptr};

int32_t runOf(lathe_cuda_module *of, const lathe_run_args *args) {
  static const int32_t sites[] = {4};
  lathe_cuda_frame frame;
  int32_t code = lathe_cuda_begin_2(of, args, nullptr, 1024, &frame);
  if (code)
    return code;
  char *base = static_cast<char *>(frame.memory);
  void *in = base, *out = base + 256, *cells = base + 512;
  code = lathe_cuda_cells_2(frame.call, cells, sites, 1);
  if (!code)
    code = lathe_cuda_bind_2(frame.call, 0, 0, &in, sizeof(Numbers));
  if (!code)
    code = lathe_cuda_bind_2(frame.call, 1, 0, &out, sizeof(Numbers));
  const uint64_t parameters[] = {reinterpret_cast<uint64_t>(in), reinterpret_cast<uint64_t>(out), reinterpret_cast<uint64_t>(cells)};
  if (!code)
    code = lathe_cuda_launch_2(frame.call, 0, 1, parameters, 3);
  if (!code)
    code = lathe_cuda_store_2(frame.call, 1, 0, &out, sizeof(Numbers));
  return lathe_cuda_end_2(frame.call, code);
}

int32_t run(const lathe_run_args *args) { return runOf(&module, args); }

struct Arguments {
  Arguments() {
    std::memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    std::memset(&more, 0, sizeof(more));
    more.args.struct_size = sizeof(lathe_run_args);
    more.args.inputs = inputs;
    more.args.outputs = outputs;
    more.args.error = &error;
    for (int i = 0; i < 32; ++i)
      in[size_t(i)] = i;
    inputs[0] = in.data();
  }
  int32_t run(Numbers &out, bool withInstance = true) {
    out.fill(-1);
    outputs[0] = out.data();
    more.args.struct_size = withInstance ? sizeof(more) : sizeof(lathe_run_args);
    return ::run(&more.args);
  }
  lathe_device_run_args more;
  lathe_error error;
  const void *inputs[1];
  void *outputs[1];
  Numbers in;
};

bool doubled(const Numbers &out, const Numbers &in) {
  for (size_t i = 0; i < in.size(); ++i)
    if (out[i] != 2 * in[i])
      return false;
  return true;
}

TEST(CudaRuntime, ArgumentsOfVersion1) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}});
  Arguments a;
  Numbers out;
  EXPECT_EQ(a.run(out, false), 0);
  EXPECT_TRUE(doubled(out, a.in));
  a.in[9] = 77;
  EXPECT_EQ(a.run(out, false), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(a.error.site, 4);
  EXPECT_STREQ(a.error.message, "told");
  a.in[9] = 1;
  EXPECT_EQ(a.run(out, false), 0);
  // they have no instance to leave a run with
  a.more.enqueue = 1;
  EXPECT_EQ(a.run(out), LATHE_FAILED_PRECONDITION);
  lathe_cuda_unload_2(&module);
  EXPECT_EQ(device.close(), std::vector<std::string>());
}

TEST(CudaRuntime, RunsStayInTheStream) {
  for (const char *seed : {"1", "2", "3"}) {
    CudaDevice device(Setting{{"CHECKS", "init,race"}, {"SEED", seed}});
    Arguments a;
    ASSERT_EQ(lathe_cuda_open_2(&module, nullptr, 0, &a.more.instance, &a.error), 0);
    lathe_cu_stream stream = nullptr;
    ASSERT_EQ(device->cuStreamCreate(&stream, LATHE_CU_STREAM_NON_BLOCKING), 0);
    a.more.enqueue = 1;
    a.more.stream = stream;
    std::array<Numbers, 20> out;
    for (Numbers &o : out)
      EXPECT_EQ(a.run(o), 0);
    EXPECT_NE(out[19][3], 6); // nobody has waited
    EXPECT_EQ(lathe_cuda_finish_2(a.more.instance, &a.error), 0);
    for (const Numbers &o : out)
      EXPECT_TRUE(doubled(o, a.in));
    // the first failure is told once, however many runs came after it, here or in another stream
    const Numbers right = a.in;
    Numbers wrong = right;
    wrong[30] = 77;
    a.inputs[0] = wrong.data();
    EXPECT_EQ(a.run(out[0]), 0);
    a.inputs[0] = right.data();
    a.more.stream = nullptr;
    for (size_t i = 1; i < 12; ++i)
      EXPECT_EQ(a.run(out[i]), 0);
    a.more.enqueue = 0;
    EXPECT_EQ(a.run(out[12]), 0);
    EXPECT_TRUE(doubled(out[12], right));
    EXPECT_EQ(lathe_cuda_finish_2(a.more.instance, &a.error), LATHE_INVALID_ARGUMENT);
    EXPECT_EQ(a.error.site, 4);
    EXPECT_TRUE(doubled(out[11], right));
    EXPECT_EQ(lathe_cuda_finish_2(a.more.instance, &a.error), 0);
    device->cuStreamDestroy(stream);
    lathe_cuda_close_2(a.more.instance);
    EXPECT_EQ(module.loaded, nullptr); // the last one has left
    EXPECT_EQ(device.close(), std::vector<std::string>());
  }
}

TEST(CudaRuntime, TensorsOnTheDevice) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}});
  Arguments a;
  Numbers out;
  ASSERT_EQ(lathe_cuda_open_2(&module, nullptr, 0, &a.more.instance, &a.error), 0);
  void *memory = nullptr;
  ASSERT_EQ(lathe_cuda_get_memory_2(a.more.instance, &memory, 512, &a.error), 0);
  char *there = static_cast<char *>(memory);
  const uint8_t yes[] = {1};
  a.more.inputs_on_device = a.more.outputs_on_device = yes;
  for (size_t shift : {size_t(0), size_t(4)}) { // in place, and through the run's own memory
    ASSERT_EQ(lathe_cuda_transfer_2(a.more.instance, there + shift, 1, a.in.data(), 0, sizeof(Numbers), &a.error), 0);
    a.inputs[0] = there + shift;
    a.outputs[0] = there + 256 + shift;
    a.more.args.struct_size = sizeof(a.more);
    EXPECT_EQ(run(&a.more.args), 0);
    ASSERT_EQ(lathe_cuda_transfer_2(a.more.instance, out.data(), 0, there + 256 + shift, 1, sizeof(Numbers), &a.error), 0);
    EXPECT_TRUE(doubled(out, a.in));
  }
  a.inputs[0] = nullptr;
  EXPECT_EQ(run(&a.more.args), LATHE_INVALID_ARGUMENT);
  EXPECT_STREQ(a.error.message, "input 0 has no memory on the device");
  EXPECT_EQ(lathe_cuda_free_memory_2(a.more.instance, memory, &a.error), 0);
  // what is unloaded comes back with the next run
  lathe_cuda_unload_2(&module);
  a.more.inputs_on_device = a.more.outputs_on_device = nullptr;
  a.inputs[0] = a.in.data();
  EXPECT_EQ(a.run(out), 0);
  EXPECT_TRUE(doubled(out, a.in));
  lathe_cuda_close_2(a.more.instance);
  EXPECT_EQ(module.loaded, nullptr);
  EXPECT_EQ(device.close(), std::vector<std::string>());
}

TEST(CudaRuntime, EachDeviceHasItsOwn) {
  CudaDevice device(Setting{{"DEVICES", "2"}});
  Arguments a, b;
  Numbers out;
  ASSERT_EQ(lathe_cuda_open_2(&module, nullptr, 0, &a.more.instance, &a.error), 0);
  ASSERT_EQ(lathe_cuda_open_2(&module, nullptr, 1, &b.more.instance, &b.error), 0);
  EXPECT_EQ(a.run(out), 0);
  EXPECT_TRUE(doubled(out, a.in));
  EXPECT_EQ(b.run(out), 0);
  EXPECT_TRUE(doubled(out, b.in));
  lathe_device_instance *none = nullptr;
  EXPECT_EQ(lathe_cuda_open_2(&module, nullptr, 2, &none, &a.error), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  lathe_cuda_default_device_2(1); // for arguments that name none
  EXPECT_EQ(a.run(out, false), 0);
  lathe_cuda_default_device_2(0);
  lathe_cuda_close_2(a.more.instance);
  lathe_cuda_close_2(b.more.instance);
  lathe_cuda_unload_2(&module);
  EXPECT_EQ(device.close(), std::vector<std::string>());
}

// Whatever the caller has made current, no context among it, is so again when a function returns, also where it failed.
TEST(CudaRuntime, LeavesTheContextOfTheCaller) {
  CudaDevice device(Setting{{"DEVICES", "2"}});
  lathe_cu_context other = nullptr, own = nullptr, now = nullptr;
  ASSERT_EQ(device->cuDevicePrimaryCtxRetain(&other, 1), 0);
  for (bool none : {false, true}) {
    if (none)
      ASSERT_EQ(device->cuCtxPopCurrent(&own), 0);
    else
      ASSERT_EQ(device->cuCtxPushCurrent(other), 0);
    auto isSame = [&](int line) {
      EXPECT_EQ(device->cuCtxGetCurrent(&now), 0);
      EXPECT_EQ(now, none ? nullptr : other) << line;
    };
    Arguments a;
    Numbers out;
    void *memory = nullptr;
    ASSERT_EQ(lathe_cuda_open_2(&module, nullptr, 0, &a.more.instance, &a.error), 0);
    isSame(__LINE__);
    EXPECT_EQ(lathe_cuda_reserve_2(a.more.instance, 1 << 20, &a.error), 0);
    isSame(__LINE__);
    EXPECT_EQ(a.run(out), 0);
    EXPECT_TRUE(doubled(out, a.in));
    isSame(__LINE__);
    a.in[9] = 77;
    EXPECT_EQ(a.run(out), LATHE_INVALID_ARGUMENT);
    isSame(__LINE__);
    EXPECT_EQ(lathe_cuda_get_memory_2(a.more.instance, &memory, 512, &a.error), 0);
    isSame(__LINE__);
    EXPECT_EQ(lathe_cuda_transfer_2(a.more.instance, memory, 1, a.in.data(), 0, sizeof(Numbers), &a.error), 0);
    isSame(__LINE__);
    EXPECT_EQ(lathe_cuda_free_memory_2(a.more.instance, memory, &a.error), 0);
    isSame(__LINE__);
    EXPECT_EQ(lathe_cuda_finish_2(a.more.instance, &a.error), 0);
    isSame(__LINE__);
    lathe_cuda_close_2(a.more.instance);
    isSame(__LINE__);
    EXPECT_NE(lathe_cuda_open_2(&module, nullptr, 7, &a.more.instance, &a.error), 0);
    isSame(__LINE__);
    if (none)
      EXPECT_EQ(device->cuCtxPushCurrent(own), 0);
    else
      EXPECT_EQ(device->cuCtxPopCurrent(&now), 0);
  }
  EXPECT_EQ(device->cuDevicePrimaryCtxRelease(1), 0);
  EXPECT_EQ(device.close(), std::vector<std::string>());
}

/// The body of a kernel that multiplies by `factor`.
std::string times(int factor, const char *target, const char *version) {
  return entry(3, R"(
  .reg .b64 %a<6>;
  .reg .b32 %n<4>;
  ld.param.u64 %a1, [p0];
  ld.param.u64 %a2, [p1];
  mov.u32 %n1, %tid.x;
  mul.wide.u32 %a3, %n1, 4;
  add.s64 %a4, %a1, %a3;
  add.s64 %a5, %a2, %a3;
  ld.global.u32 %n2, [%a4];
  mul.lo.u32 %n3, %n2, )" + std::to_string(factor) + ";\n  st.global.u32 [%a5], %n3;\n", "", "", target, version);
}

// Modules side by side, each with instances on several threads: each is loaded once and goes with its last instance.
TEST(CudaRuntime, SeveralModulesAndInstances) {
  const std::string counts = "/tmp/lathe-modules-" + std::to_string(getpid()), text = times(3, "sm_80", "7.0");
  lathe_cuda_module third = module;
  third.image = text.c_str();
  std::vector<std::string> lines;
  {
    CudaDevice device(Setting{{"CHECKS", "init,race"}, {"COUNTS", counts}});
    std::vector<lathe_device_instance *> opened(8);
    lathe_error error = {sizeof(error), 0, -1, 0, nullptr};
    auto moduleOf = [&](size_t i) { return i % 2 ? &third : &module; };
    for (size_t i = 0; i < opened.size(); ++i)
      ASSERT_EQ(lathe_cuda_open_2(moduleOf(i), nullptr, 0, &opened[i], &error), 0);
    std::vector<int> right(opened.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < opened.size(); ++i)
      threads.emplace_back([&, i] {
        Arguments a;
        a.more.instance = opened[i];
        a.more.args.struct_size = sizeof(a.more);
        for (int turn = 0; turn < 5; ++turn) {
          Numbers out;
          out.fill(-1);
          a.outputs[0] = out.data();
          bool good = runOf(moduleOf(i), &a.more.args) == 0;
          for (size_t k = 0; k < out.size(); ++k)
            good &= out[k] == (i % 2 ? 3 : 2) * a.in[k];
          right[i] += good;
        }
      });
    for (std::thread &t : threads)
      t.join();
    EXPECT_EQ(right, std::vector<int>(opened.size(), 5));
    for (size_t i = 0; i < opened.size(); ++i) {
      EXPECT_NE(moduleOf(i)->loaded, nullptr);
      lathe_cuda_close_2(opened[i]);
    }
    EXPECT_EQ(module.loaded, nullptr);
    EXPECT_EQ(third.loaded, nullptr);
    EXPECT_EQ(device.close(), std::vector<std::string>());
  }
  std::ifstream in(counts);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  EXPECT_TRUE(holds(lines, {"cuModuleLoadDataEx 2"}));
  EXPECT_TRUE(holds(lines, {"cuModuleUnload 2"}));
  std::remove(counts.c_str());
}

// Machine code first, the device's own PTX, later PTX, what all take; each time that of what the driver does not refuse.
TEST(CudaRuntime, TakesTheBestImageThatTheDriverTakes) {
  const std::string own = times(3, "sm_90a", "8.0"), newer = times(4, "sm_90", "7.8"), machine = "\177ELF, of no device";
  const lathe_cuda_image images[] = {{sizeof(lathe_cuda_image), 80, LATHE_CUDA_IMAGE_MACHINE_CODE, 0, machine.c_str()},
                                     {sizeof(lathe_cuda_image), 90, LATHE_CUDA_IMAGE_MACHINE_CODE, 0, machine.c_str()},
                                     {sizeof(lathe_cuda_image), 90, 0, 0, newer.c_str()},
                                     {sizeof(lathe_cuda_image), 90, LATHE_CUDA_IMAGE_OWN, 0, own.c_str()}};
  const lathe_cuda_image *const list[] = {&images[0], &images[1], &images[2], &images[3]};
  struct {
    const char *arch, *driver;
    int32_t factor;
    const char *loads;
  } cases[] = {{"80", "13000", 2, "cuModuleLoadDataEx 2"},
               {"90", "13000", 3, "cuModuleLoadDataEx 2"},
               {"90", "11040", 2, "cuModuleLoadDataEx 4"},
               {"100", "13000", 4, "cuModuleLoadDataEx 1"}};
  const std::string counts = "/tmp/lathe-loads-" + std::to_string(getpid());
  module.num_images = 4;
  module.images = list;
  for (auto c : cases) {
    CudaDevice device(Setting{{"ARCH", c.arch}, {"DRIVER", c.driver}, {"COUNTS", counts}});
    Arguments a;
    Numbers out;
    EXPECT_EQ(a.run(out, false), 0) << a.error.message;
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], c.factor * a.in[i]) << c.arch << " " << c.driver;
    lathe_cuda_unload_2(&module);
    EXPECT_EQ(device.close(), std::vector<std::string>());
    std::ifstream in(counts);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(line);
    EXPECT_TRUE(holds(lines, {c.loads})) << c.arch << " " << c.driver;
    std::remove(counts.c_str());
  }
  // no memory is no refusal
  CudaDevice device(Setting{{"ARCH", "90"}, {"FAIL_CALL", "10"}, {"FAIL_RESULT", "2"}});
  Arguments a;
  Numbers out;
  EXPECT_EQ(a.run(out, false), LATHE_RESOURCE_EXHAUSTED);
  lathe_cuda_unload_2(&module);
  module.num_images = 0;
  module.images = nullptr;
  // an object made before there were images
  module.struct_size = offsetof(lathe_cuda_module, num_images);
  module.num_images = 5;
  CudaDevice again(Setting{{"ARCH", "90"}});
  EXPECT_EQ(a.run(out, false), 0);
  lathe_cuda_unload_2(&module);
  module.struct_size = sizeof(module);
  module.num_images = 0;
}

// Constants of more than a piece: all of them arrive, whichever call fails nothing is left.
TEST(CudaRuntime, ConstantsGoInPieces) {
  std::vector<int32_t> constants((9 << 20) / 4 + 3);
  for (size_t i = 0; i < constants.size(); ++i)
    constants[i] = int32_t(i * 2654435761u);
  lathe_cuda_module large = module;
  large.constants_size = constants.size() * 4;
  int failed = 0;
  for (int n : {0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}) {
    CudaDevice device(Setting{{"FAIL_CALL", std::to_string(n)}, {"FAIL_RESULT", "2"}});
    lathe_device_run_args args;
    lathe_error error = {sizeof(error), 0, -1, 0, nullptr};
    std::memset(&args, 0, sizeof(args));
    args.args.struct_size = sizeof(args);
    args.args.error = &error;
    int32_t code = lathe_cuda_open_2(&large, constants.data(), 0, &args.instance, &error);
    lathe_cuda_frame frame;
    if (!code && !lathe_cuda_begin_2(&large, &args.args, constants.data(), 0, &frame)) {
      std::vector<int32_t> there(constants.size());
      int32_t read = lathe_cuda_read_2(frame.call, there.data(), frame.constants, int64_t(4 * there.size()));
      EXPECT_TRUE(read || there == constants);
      EXPECT_EQ(lathe_cuda_end_2(frame.call, 0) | (n ? 0 : read), 0);
    }
    failed += code != 0;
    EXPECT_TRUE(code == 0 || code == LATHE_RESOURCE_EXHAUSTED);
    if (!code)
      lathe_cuda_close_2(args.instance);
    EXPECT_EQ(large.loaded, nullptr);
    EXPECT_EQ(device.close(), std::vector<std::string>()) << n;
    CudaDevice none;
  }
  EXPECT_GT(failed, 12);
}

// Whichever call fails: a code, and nothing is left behind.
TEST(CudaRuntime, EveryCallMayFail) {
  int failed = 0;
  for (int n = 6; n < 80; ++n) {
    CudaDevice device(Setting{{"FAIL_CALL", std::to_string(n)}, {"FAIL_RESULT", "2"}});
    ASSERT_TRUE(device.ok()) << n;
    Arguments a;
    std::array<Numbers, 3> out;
    int32_t code = lathe_cuda_open_2(&module, nullptr, 0, &a.more.instance, &a.error);
    if (!code) {
      a.more.enqueue = 1;
      for (Numbers &o : out)
        code = code ? code : a.run(o);
      int32_t waited = lathe_cuda_finish_2(a.more.instance, &a.error);
      code = code ? code : waited;
      const std::array<Numbers, 3> after = out; // also where the wait failed: the caller may free these now
      void *memory = nullptr;
      waited = lathe_cuda_get_memory_2(a.more.instance, &memory, 512, &a.error);
      code = code ? code : waited;
      lathe_cuda_free_memory_2(a.more.instance, memory, &a.error);
      lathe_cuda_close_2(a.more.instance);
      EXPECT_EQ(out, after) << n;
    }
    if (code) {
      ++failed;
      EXPECT_EQ(code, LATHE_RESOURCE_EXHAUSTED) << n << ": " << a.error.message;
    } else {
      for (const Numbers &o : out)
        EXPECT_TRUE(doubled(o, a.in)) << n;
    }
    EXPECT_EQ(module.loaded, nullptr);
    EXPECT_EQ(device.close(), std::vector<std::string>()) << n;
    CudaDevice none; // where fewer calls were made, its first one is the one that fails
  }
  EXPECT_GT(failed, 30);
}

} // namespace
