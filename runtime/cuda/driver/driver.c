/* Where the driver comes from: the library that LATHE_CUDA_DRIVER names, else libcuda.so.1. Nothing else in
 * the product knows how one is found. A library stays loaded: contexts and streams of other users may depend
 * on it. */
#define _GNU_SOURCE
#include "runtime/cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cuGetProcAddress as CUDA 11.3 introduced it; later drivers export this form under this name. */
typedef lathe_cu_result (*get_proc_address)(const char *name, void **function, int version, uint64_t flags);

/* a function of the table: what to ask for and where it goes */
typedef struct wanted {
  const char *name;
  int version;
  size_t offset;
} wanted;

static const wanted functions[] = {
#define LATHE_CU(name, version, parameters) {#name, version, offsetof(lathe_cuda_driver, name)},
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU
};

static _Atomic(lathe_cuda_driver *) opened;

static int resolve(void *library, const char *path, lathe_cuda_driver *driver, char *message, size_t size) {
  get_proc_address get;
  void *symbol = dlsym(library, "cuGetProcAddress");
  memcpy(&get, &symbol, sizeof(get));
  if (!get) {
    snprintf(message, size, "the CUDA driver '%s' is older than %d.%d", path,
             LATHE_CUDA_MINIMUM_DRIVER / 1000, LATHE_CUDA_MINIMUM_DRIVER % 1000 / 10);
    return 0;
  }
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    void *function = NULL;
    if (get(functions[i].name, &function, functions[i].version, 0) != LATHE_CU_SUCCESS || !function) {
      snprintf(message, size, "the CUDA driver '%s' has no %s of version %d.%d", path, functions[i].name,
               functions[i].version / 1000, functions[i].version % 1000 / 10);
      return 0;
    }
    memcpy((char *)driver + functions[i].offset, &function, sizeof(function));
  }
  return 1;
}

static int start(lathe_cuda_driver *driver, const char *path, char *message, size_t size) {
  lathe_cu_result result = driver->cuInit(0);
  if (result == LATHE_CU_ERROR_NO_DEVICE) {
    snprintf(message, size, "the CUDA driver '%s' finds no device", path);
    return 0;
  }
  if (result != LATHE_CU_SUCCESS) {
    lathe_cuda_describe(driver, "cuInit", result, message, size);
    return 0;
  }
  result = driver->cuDriverGetVersion(&driver->version);
  if (result != LATHE_CU_SUCCESS) {
    lathe_cuda_describe(driver, "cuDriverGetVersion", result, message, size);
    return 0;
  }
  if (driver->version < LATHE_CUDA_MINIMUM_DRIVER) {
    snprintf(message, size, "the CUDA driver '%s' is of version %d.%d, older than %d.%d", path,
             driver->version / 1000, driver->version % 1000 / 10, LATHE_CUDA_MINIMUM_DRIVER / 1000,
             LATHE_CUDA_MINIMUM_DRIVER % 1000 / 10);
    return 0;
  }
  return 1;
}

const lathe_cuda_driver *lathe_cuda_open(char *message, size_t size) {
  lathe_cuda_driver *driver = atomic_load_explicit(&opened, memory_order_acquire);
  if (driver)
    return driver;
  const char *path = secure_getenv("LATHE_CUDA_DRIVER");
  if (!path || !*path)
    path = "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    snprintf(message, size, "no CUDA driver: %s", reason ? reason : path);
    return NULL;
  }
  driver = calloc(1, sizeof(*driver));
  if (!driver) {
    snprintf(message, size, "out of memory");
    return NULL;
  }
  if (!resolve(library, path, driver, message, size) || !start(driver, path, message, size)) {
    free(driver);
    return NULL;
  }
  lathe_cuda_driver *first = NULL;
  if (!atomic_compare_exchange_strong(&opened, &first, driver)) {
    /* another thread was quicker; both tables are of the same library */
    free(driver);
    return first;
  }
  return driver;
}

void lathe_cuda_describe(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result,
                         char *message, size_t size) {
  const char *name = NULL, *text = NULL;
  if (driver->cuGetErrorName(result, &name) != LATHE_CU_SUCCESS || !name)
    name = "unknown";
  if (driver->cuGetErrorString(result, &text) != LATHE_CU_SUCCESS || !text)
    text = "unknown error";
  snprintf(message, size, "%s: %s (%s, %d)", call, text, name, result);
}
