// The driver's functions that an application of the tests calls itself, for memory and streams that no model made.
#ifndef LATHE_TEST_E2E_DEVICE_DRIVER_H
#define LATHE_TEST_E2E_DEVICE_DRIVER_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

struct Driver {
  void *library = dlopen(std::getenv("LATHE_CUDA_DRIVER"), RTLD_NOW);
  template <typename... Args>
  int call(const char *name, Args... args) const {
    auto f = library ? reinterpret_cast<int (*)(Args...)>(dlsym(library, name)) : nullptr;
    return f ? f(args...) : -1;
  }
  /// Makes the primary context of device 0 current, as the CUDA runtime does.
  bool enter() {
    void *context = nullptr;
    return call("cuInit", 0u) == 0 && call("cuDevicePrimaryCtxRetain", &context, 0) == 0 && call("cuCtxPushCurrent", context) == 0;
  }
  void leave() {
    call("cuCtxPopCurrent", static_cast<void **>(nullptr));
    call("cuDevicePrimaryCtxRelease", 0);
  }
  template <typename T>
  T *allocate(size_t count) {
    uint64_t address = 0;
    call("cuMemAlloc", &address, count * sizeof(T));
    return reinterpret_cast<T *>(address);
  }
  void release(void *memory) { call("cuMemFree", reinterpret_cast<uint64_t>(memory)); }
  template <typename T>
  void upload(T *to, const T *from, size_t count) {
    call("cuMemcpyHtoD", reinterpret_cast<uint64_t>(to), static_cast<const void *>(from), count * sizeof(T));
  }
  template <typename T>
  void download(T *to, const T *from, size_t count) {
    call("cuMemcpyDtoH", static_cast<void *>(to), reinterpret_cast<uint64_t>(from), count * sizeof(T));
  }
  size_t freeBytes() {
    size_t left = 0, total = 0;
    call("cuMemGetInfo", &left, &total);
    return left;
  }
};

#endif
