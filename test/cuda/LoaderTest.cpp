// The loader of the product: what it says without a driver and with one that is too old, and what it
// resolves.
#include "test/cuda/CudaTest.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace lathe::test;

namespace {

/// Runs in a child, since a process keeps the driver that it has found.
void expectRefusal(const Setting &setting, const std::string &words) {
  EXPECT_EXIT(
      {
        for (const auto &s : setting)
          setenv(s.first.c_str(), s.second.c_str(), 1);
        char message[512] = "";
        const lathe_cuda_driver *d = lathe_cuda_open(message, sizeof(message));
        std::fprintf(stderr, "%s\n", message);
        std::exit(d == nullptr && std::strstr(message, words.c_str()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CudaLoader, NoLibraryIsAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expectRefusal({{"LATHE_CUDA_DRIVER", "/nonexistent/libcuda.so.1"}},
                "no CUDA driver: /nonexistent/libcuda.so.1");
  expectRefusal({{"LATHE_CUDA_DRIVER", "libm.so.6"}}, "is older than 11.4");
}

TEST(CudaLoader, NoDeviceAndOldDriversAreMessages) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expectRefusal({{"LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA}, {"LATHE_EMU_NO_DEVICE", "1"}},
                "finds no device");
  // CUDA 11.3 has no cuGraphInstantiateWithFlags
  expectRefusal({{"LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA}, {"LATHE_EMU_DRIVER", "11030"}},
                "has no cuGraphInstantiateWithFlags of version 11.4");
  expectRefusal({{"LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA},
                 {"LATHE_EMU_FAIL_CALL", "1"},
                 {"LATHE_EMU_FAIL_RESULT", "2"}},
                "cuInit: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)");
}

TEST(CudaLoader, EmulatorExportsTheInterfaceAndNothingElse) {
  CudaDevice device;
  void *library = dlopen(LATHE_EMULATED_CUDA, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_TRUE(library);
  int count = 0;
#define LATHE_CU(name, version, parameters)                                                                  \
  EXPECT_TRUE(dlsym(library, #name)) << #name;                                                               \
  ++count;
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU
  EXPECT_LE(count, 60);
  // symbols that are defined and visible: one more, cuGetProcAddress
  std::string command = std::string("nm -D --defined-only ") + LATHE_EMULATED_CUDA + " | grep -c ' T '";
  FILE *pipe = popen(command.c_str(), "r");
  int exported = 0;
  ASSERT_EQ(std::fscanf(pipe, "%d", &exported), 1);
  pclose(pipe);
  EXPECT_EQ(exported, count + 1);
  dlclose(library);
}

TEST(CudaLoader, DescribesResults) {
  CudaDevice device;
  ASSERT_TRUE(device.ok());
  char text[128];
  lathe_cuda_describe(&*device, "cuMemAlloc", LATHE_CU_ERROR_OUT_OF_MEMORY, text, sizeof(text));
  EXPECT_STREQ(text, "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)");
  lathe_cuda_describe(&*device, "cuX", 12345, text, sizeof(text));
  EXPECT_STREQ(text, "cuX: unknown error (unknown, 12345)");
}

} // namespace
