/* What a device holds of a module: code, functions, constants; once a device, by whomever it is used. */
#include "runtime/cuda/driver/internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[768];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lathe_cuda_lock(void) { pthread_mutex_lock(&lock); }
void lathe_cuda_unlock(void) { pthread_mutex_unlock(&lock); }

char *lathe_cuda_message(size_t *size) {
  *size = sizeof(message);
  return message;
}

int32_t lathe_cuda_failed(lathe_error *error, int32_t code) {
  if (error && code) {
    error->code = code;
    error->site = -1;
    error->message = message;
  }
  return code;
}

int32_t lathe_cuda_refuse(int32_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  return code;
}

int32_t lathe_cuda_result(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result) {
  if (result != LATHE_CU_SUCCESS)
    lathe_cuda_describe(driver, call, result, message, sizeof(message));
  switch (result) {
  case LATHE_CU_SUCCESS:
    return LATHE_OK;
  case LATHE_CU_ERROR_OUT_OF_MEMORY:
    return LATHE_RESOURCE_EXHAUSTED;
  case LATHE_CU_ERROR_INVALID_DEVICE:
    return LATHE_INVALID_ARGUMENT;
  case LATHE_CU_ERROR_NO_BINARY_FOR_GPU:
  case LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION:
    return LATHE_FAILED_PRECONDITION;
  default:
    return LATHE_INTERNAL;
  }
}

loaded *lathe_cuda_find(lathe_cuda_module *module, int32_t ordinal) {
  for (loaded *l = module->loaded; l; l = l->next)
    if (l->ordinal == ordinal)
      return l;
  const size_t kernels = (size_t)module->num_kernels;
  loaded *l = calloc(1, sizeof(loaded) + (sizeof(lathe_cu_function) + sizeof(uint32_t)) * kernels);
  if (!l) {
    lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED, "out of memory");
    return NULL;
  }
  l->module = module;
  l->shared = (uint32_t *)(void *)(l->functions + kernels);
  l->ordinal = ordinal;
  l->next = module->loaded;
  module->loaded = l;
  return l;
}

static int32_t loadImage(loaded *l, const void *image) {
  const lathe_cuda_driver *d = l->driver;
  char log[512] = "";
  lathe_cu_jit_option options[] = {LATHE_CU_JIT_ERROR_LOG_BUFFER, LATHE_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
  int32_t code = lathe_cuda_result(d, "cuModuleLoadDataEx", d->cuModuleLoadDataEx(&l->code, image, 2, options, values));
  if (!code)
    return LATHE_OK;
  l->code = NULL;
  size_t used = strlen(message);
  log[sizeof(log) - 1] = 0;
  if (log[0])
    snprintf(message + used, sizeof(message) - used, ": %s", log);
  return code;
}

/* How much an image is to be preferred on a device; 0: it does not run there. */
static int32_t rank(const lathe_cuda_image *image, int32_t device) {
  const int own = image->flags & LATHE_CUDA_IMAGE_OWN, machine = image->flags & LATHE_CUDA_IMAGE_MACHINE_CODE;
  if (own ? image->arch != device : image->arch > device || (machine && image->arch / 10 != device / 10))
    return 0;
  return 8 * image->arch + (own ? 4 : 0) + (machine ? 1 << 20 : 0);
}

/* The best image that the driver takes. */
static int32_t loadBest(loaded *l) {
  const lathe_cuda_module *m = l->module;
  const lathe_cuda_driver *d = l->driver;
  int major = 0, minor = 0;
  if (m->struct_size < sizeof(*m) || m->num_images <= 0)
    return loadImage(l, m->image);
  int32_t code = lathe_cuda_result(d, "cuDeviceGetAttribute",
                                   d->cuDeviceGetAttribute(&major, LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, l->device));
  if (!code)
    code = lathe_cuda_result(d, "cuDeviceGetAttribute",
                             d->cuDeviceGetAttribute(&minor, LATHE_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, l->device));
  if (code)
    return code;
  for (int32_t below = INT32_MAX;;) {
    const lathe_cuda_image *best = NULL;
    int32_t highest = 0;
    for (int32_t i = 0; i < m->num_images; ++i) {
      const int32_t r = rank(m->images[i], 10 * major + minor);
      if (r > highest && r < below) {
        best = m->images[i];
        highest = r;
      }
    }
    if (!best)
      return loadImage(l, m->image);
    code = loadImage(l, best->code);
    if (!code || code == LATHE_RESOURCE_EXHAUSTED)
      return code;
    below = highest;
  }
}

/* What the kernels are launched with: the table of the code that was taken, if it has one. */
static int32_t readShared(loaded *l) {
  const lathe_cuda_driver *d = l->driver;
  lathe_cu_deviceptr table = 0;
  size_t bytes = 0;
  const size_t expected = sizeof(uint32_t) * (size_t)l->module->num_kernels;
  memset(l->shared, 0, expected);
  if (l->module->struct_size < sizeof(*l->module) || l->module->num_images <= 0)
    return LATHE_OK;
  const lathe_cu_result found = d->cuModuleGetGlobal(&table, &bytes, l->code, LATHE_CUDA_SHARED_TABLE);
  if (found == LATHE_CU_ERROR_NOT_FOUND)
    return LATHE_OK;
  int32_t code = lathe_cuda_result(d, "cuModuleGetGlobal", found);
  if (!code && bytes != expected)
    code = lathe_cuda_refuse(LATHE_INTERNAL, "a module's table of shared memory has another number of kernels");
  if (!code)
    code = lathe_cuda_result(d, "cuMemcpyDtoH", d->cuMemcpyDtoH(l->shared, table, bytes));
  for (int32_t i = 0; i < l->module->num_kernels && !code; ++i)
    if (l->shared[i])
      code = lathe_cuda_result(
          d, "cuFuncSetAttribute",
          d->cuFuncSetAttribute(l->functions[i], LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)l->shared[i]));
  return code;
}

/* The code and its functions, in the current context. */
static int32_t loadCode(loaded *l) {
  const lathe_cuda_driver *d = l->driver;
  int32_t code = loadBest(l);
  for (int32_t i = 0; i < l->module->num_kernels && !code; ++i)
    code = lathe_cuda_result(d, "cuModuleGetFunction", d->cuModuleGetFunction(&l->functions[i], l->code, l->module->kernels[i]->name));
  return code ? code : readShared(l);
}

/* Large constants go through two pieces of pinned memory: while one is on its way the other is filled, from a file perhaps that
 * nobody has read yet. */
static int32_t uploadInPieces(const lathe_cuda_driver *d, lathe_cu_deviceptr to, const char *from, size_t bytes) {
  enum { Piece = 1 << 22 };
  lathe_cu_stream stream = NULL;
  lathe_cu_event sent[2] = {NULL, NULL};
  void *pieces = NULL;
  int32_t code = lathe_cuda_result(d, "cuStreamCreate", d->cuStreamCreate(&stream, LATHE_CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 2 && !code; ++i)
    code = lathe_cuda_result(d, "cuEventCreate", d->cuEventCreate(&sent[i], LATHE_CU_EVENT_DISABLE_TIMING));
  if (!code)
    code = lathe_cuda_result(d, "cuMemHostAlloc", d->cuMemHostAlloc(&pieces, 2 * (size_t)Piece, 0));
  for (size_t at = 0, n = 0; at < bytes && !code; at += Piece, ++n) {
    const size_t now = bytes - at < Piece ? bytes - at : Piece;
    char *piece = (char *)pieces + n % 2 * Piece;
    if (n >= 2)
      code = lathe_cuda_result(d, "cuEventSynchronize", d->cuEventSynchronize(sent[n % 2]));
    if (code)
      break;
    memcpy(piece, from + at, now);
    code = lathe_cuda_result(d, "cuMemcpyHtoDAsync", d->cuMemcpyHtoDAsync(to + at, piece, now, stream));
    if (!code)
      code = lathe_cuda_result(d, "cuEventRecord", d->cuEventRecord(sent[n % 2], stream));
  }
  if (stream) {
    int32_t waited = lathe_cuda_result(d, "cuStreamSynchronize", d->cuStreamSynchronize(stream));
    /* the device may still read the pieces: without a wait that says otherwise they are never given back */
    if (waited && d->cuStreamSynchronize(stream) != LATHE_CU_SUCCESS)
      pieces = NULL;
    code = code ? code : waited;
    d->cuStreamDestroy(stream);
  }
  for (int i = 0; i < 2; ++i)
    if (sent[i])
      d->cuEventDestroy(sent[i]);
  if (pieces)
    d->cuMemFreeHost(pieces);
  return code;
}

static int32_t upload(const lathe_cuda_driver *d, lathe_cu_deviceptr to, const void *from, size_t bytes) {
  return bytes < (1 << 20) ? lathe_cuda_result(d, "cuMemcpyHtoD", d->cuMemcpyHtoD(to, from, bytes))
                           : uploadInPieces(d, to, from, bytes);
}

/* The same and the constants. */
static int32_t fill(loaded *l, const void *constants) {
  const lathe_cuda_driver *d = l->driver;
  /* a module that only copies has no code */
  int32_t code = l->module->num_kernels ? loadCode(l) : LATHE_OK;
  if (!code && l->module->constants_size) {
    code = lathe_cuda_result(d, "cuMemAlloc", d->cuMemAlloc(&l->constants, l->module->constants_size));
    if (!code)
      code = upload(d, l->constants, constants, (size_t)l->module->constants_size);
  }
  return code;
}

int lathe_cuda_enter(const loaded *l) {
  for (int i = 0; l->context && i < 2; ++i)
    if (l->driver->cuCtxPushCurrent(l->context) == LATHE_CU_SUCCESS)
      return 1;
  return 0;
}

/* Releases what the device holds, in its context. Workplaces of instances stay, with nothing in them. */
static void drop(loaded *l) {
  const lathe_cuda_driver *d = l->driver;
  lathe_cu_context before;
  const int current = lathe_cuda_enter(l);
  for (workplace **link = &l->workplaces; *link;) {
    workplace *w = *link;
    if (current)
      lathe_cuda_strip(w);
    if (!w->borrowed) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    free(w->recorded.words);
    free(w);
  }
  if (current) {
    if (l->constants)
      d->cuMemFree(l->constants);
    if (l->code)
      d->cuModuleUnload(l->code);
    d->cuCtxPopCurrent(&before);
  }
  if (l->context)
    d->cuDevicePrimaryCtxRelease(l->device);
  l->constants = 0;
  l->code = NULL;
  l->context = NULL;
  l->kept = 0;
}

void lathe_cuda_forget(loaded *l) {
  loaded **link = (loaded **)&l->module->loaded;
  while (*link != l)
    link = &(*link)->next;
  *link = l->next;
  drop(l);
  free(l);
}

int32_t lathe_cuda_ensure(loaded *l, const void *constants) {
  if (l->context)
    return LATHE_OK;
  const lathe_cuda_driver *d = l->driver = lathe_cuda_open(message, sizeof(message));
  if (!d)
    return LATHE_FAILED_PRECONDITION;
  if (l->module->constants_size && !constants)
    return lathe_cuda_refuse(LATHE_FAILED_PRECONDITION, "the weights have not been bound");
  int32_t code = lathe_cuda_result(d, "cuDeviceGet", d->cuDeviceGet(&l->device, l->ordinal));
  if (!code) {
    code = lathe_cuda_result(d, "cuDevicePrimaryCtxRetain", d->cuDevicePrimaryCtxRetain(&l->context, l->device));
    if (code)
      l->context = NULL;
  }
  if (!code)
    code = lathe_cuda_result(d, "cuCtxPushCurrent", d->cuCtxPushCurrent(l->context));
  if (!code) {
    lathe_cu_context before;
    code = fill(l, constants);
    d->cuCtxPopCurrent(&before);
  }
  if (code) {
    const int kept = l->kept;
    drop(l);
    l->kept = kept;
  }
  return code;
}

int32_t lathe_cuda_load_2(lathe_cuda_module *module, int32_t device, const void *constants) {
  lathe_cuda_lock();
  loaded *l = lathe_cuda_find(module, device);
  int32_t code = l ? lathe_cuda_ensure(l, constants) : LATHE_RESOURCE_EXHAUSTED;
  if (!code)
    l->kept = 1;
  else if (l && !l->instances)
    lathe_cuda_forget(l);
  lathe_cuda_unlock();
  return code;
}

void lathe_cuda_unload_2(lathe_cuda_module *module) {
  lathe_cuda_lock();
  for (loaded *l = module->loaded, *next; l; l = next) {
    next = l->next;
    if (l->instances)
      drop(l);
    else
      lathe_cuda_forget(l);
  }
  lathe_cuda_unlock();
}
