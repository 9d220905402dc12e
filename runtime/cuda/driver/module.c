/* The device side of compiled modules: what is loaded once a module (code, functions, constants) and what a run needs
 * (memory, a stream). Memory and streams of finished runs are kept for later ones, so that a run which follows one of the
 * same sizes allocates nothing. */
#include "runtime/abi/cuda_abi.h"
#include "runtime/cuda/driver/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel's parameters may take 4352 bytes before PTX 8.1. */
#define MOST_PARAMETERS 544
#define MOST_BLOCKS 0x7fffffff

/* A message outlives the run that it is about: it stays until the thread's next failure. */
static _Thread_local char message[768];

struct loaded;

/* Memory that a run asked for beside its own. */
typedef struct piece {
  lathe_cu_deviceptr memory;
  struct piece *next;
} piece;

/* Memory and a stream: of the run in progress, or of none. */
typedef struct workplace {
  struct loaded *module;
  const lathe_run_args *args; /* null: idle */
  lathe_cu_stream stream;
  lathe_cu_deviceptr memory;
  int64_t bytes;
  piece *pieces;
  struct workplace *next;
} workplace;

typedef struct loaded {
  const lathe_cuda_driver *driver;
  lathe_cu_device device;
  lathe_cu_context context;
  lathe_cu_module code;
  lathe_cu_deviceptr constants;
  workplace *workplaces;
  const lathe_cuda_module *module;
  lathe_cu_function functions[]; /* one a kernel */
} loaded;

/* Guards `loaded` of all modules and the lists of workplaces. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int32_t tell(const lathe_run_args *args, int32_t code) {
  lathe_error *error = args ? args->error : NULL;
  if (error) {
    error->code = code;
    error->site = -1;
    error->message = message;
  }
  return code;
}

static int32_t codeOf(lathe_cu_result result) {
  switch (result) {
  case LATHE_CU_SUCCESS:
    return LATHE_OK;
  case LATHE_CU_ERROR_OUT_OF_MEMORY:
    return LATHE_RESOURCE_EXHAUSTED;
  case LATHE_CU_ERROR_NO_BINARY_FOR_GPU:
  case LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION:
    return LATHE_FAILED_PRECONDITION;
  default:
    return LATHE_INTERNAL;
  }
}

/* Writes the message for a result that is no success; returns its code. */
static int32_t describe(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result) {
  if (result != LATHE_CU_SUCCESS)
    lathe_cuda_describe(driver, call, result, message, sizeof(message));
  return codeOf(result);
}

/* Releases what there is of it, in its context. */
static void drop(loaded *l) {
  const lathe_cuda_driver *d = l->driver;
  lathe_cu_context before;
  if (l->context && d->cuCtxPushCurrent(l->context) == LATHE_CU_SUCCESS) {
    for (workplace *w = l->workplaces, *next; w; w = next) {
      next = w->next;
      if (w->stream)
        d->cuStreamDestroy(w->stream);
      if (w->memory)
        d->cuMemFree(w->memory);
      free(w);
    }
    if (l->constants)
      d->cuMemFree(l->constants);
    if (l->code)
      d->cuModuleUnload(l->code);
    d->cuCtxPopCurrent(&before);
  }
  if (l->context)
    d->cuDevicePrimaryCtxRelease(l->device);
  free(l);
}

/* The code and its functions, in the current context. */
static int32_t loadCode(loaded *l, const lathe_cuda_module *module) {
  const lathe_cuda_driver *d = l->driver;
  char log[512] = "";
  lathe_cu_jit_option options[] = {LATHE_CU_JIT_ERROR_LOG_BUFFER, LATHE_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
  int32_t code = describe(d, "cuModuleLoadDataEx", d->cuModuleLoadDataEx(&l->code, module->image, 2, options, values));
  if (code) {
    size_t used = strlen(message);
    log[sizeof(log) - 1] = 0;
    if (log[0])
      snprintf(message + used, sizeof(message) - used, ": %s", log);
    return code;
  }
  for (int32_t i = 0; i < module->num_kernels && !code; ++i)
    code = describe(d, "cuModuleGetFunction", d->cuModuleGetFunction(&l->functions[i], l->code, module->kernels[i]->name));
  return code;
}

/* The same and the constants. */
static int32_t fill(loaded *l, const lathe_cuda_module *module, const void *constants) {
  const lathe_cuda_driver *d = l->driver;
  /* a module that only copies has no code */
  int32_t code = module->num_kernels ? loadCode(l, module) : LATHE_OK;
  if (!code && module->constants_size) {
    code = describe(d, "cuMemAlloc", d->cuMemAlloc(&l->constants, module->constants_size));
    if (!code)
      code = describe(d, "cuMemcpyHtoD", d->cuMemcpyHtoD(l->constants, constants, module->constants_size));
  }
  return code;
}

/* Under the lock. */
static int32_t load(lathe_cuda_module *module, const void *constants, loaded **result) {
  *result = module->loaded;
  if (*result)
    return LATHE_OK;
  const lathe_cuda_driver *d = lathe_cuda_open(message, sizeof(message));
  if (!d)
    return LATHE_FAILED_PRECONDITION;
  loaded *l = calloc(1, sizeof(loaded) + sizeof(lathe_cu_function) * (size_t)module->num_kernels);
  if (!l) {
    snprintf(message, sizeof(message), "out of memory");
    return LATHE_RESOURCE_EXHAUSTED;
  }
  l->driver = d;
  l->module = module;
  int32_t code = describe(d, "cuDeviceGet", d->cuDeviceGet(&l->device, 0));
  if (!code)
    code = describe(d, "cuDevicePrimaryCtxRetain", d->cuDevicePrimaryCtxRetain(&l->context, l->device));
  if (!code)
    code = describe(d, "cuCtxPushCurrent", d->cuCtxPushCurrent(l->context));
  if (!code) {
    lathe_cu_context before;
    code = fill(l, module, constants);
    d->cuCtxPopCurrent(&before);
  }
  if (code) {
    drop(l);
    return code;
  }
  *result = module->loaded = l;
  return LATHE_OK;
}

int32_t lathe_cuda_load_1(lathe_cuda_module *module, const void *constants) {
  loaded *l;
  pthread_mutex_lock(&lock);
  int32_t code = load(module, constants, &l);
  pthread_mutex_unlock(&lock);
  return code;
}

void lathe_cuda_unload_1(lathe_cuda_module *module) {
  pthread_mutex_lock(&lock);
  loaded *l = module->loaded;
  module->loaded = NULL;
  pthread_mutex_unlock(&lock);
  if (l)
    drop(l);
}

/* The idle workplace that fits best: the smallest that is large enough, else the largest. Under the lock. */
static workplace *choose(loaded *l, int64_t bytes) {
  workplace *best = NULL;
  for (workplace *w = l->workplaces; w; w = w->next) {
    if (w->args)
      continue;
    int fits = w->bytes >= bytes, had = best && best->bytes >= bytes;
    if (!best || (fits && !had) || (fits == had && (fits ? w->bytes < best->bytes : w->bytes > best->bytes)))
      best = w;
  }
  return best;
}

/* Gives it a stream and so much memory, in the current context. */
static int32_t furnish(workplace *w, int64_t bytes) {
  const lathe_cuda_driver *d = w->module->driver;
  int32_t code = LATHE_OK;
  if (!w->stream)
    code = describe(d, "cuStreamCreate", d->cuStreamCreate(&w->stream, LATHE_CU_STREAM_NON_BLOCKING));
  if (code || w->bytes >= bytes)
    return code;
  if (w->memory)
    code = describe(d, "cuMemFree", d->cuMemFree(w->memory));
  w->memory = 0;
  w->bytes = 0;
  if (code)
    return code;
  lathe_cu_result result = d->cuMemAlloc(&w->memory, (size_t)bytes);
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY) {
    snprintf(message, sizeof(message), "the device has no %lld bytes for the run", (long long)bytes);
    return LATHE_RESOURCE_EXHAUSTED;
  }
  if (result == LATHE_CU_SUCCESS)
    w->bytes = bytes;
  return describe(d, "cuMemAlloc", result);
}

int32_t lathe_cuda_begin_1(lathe_cuda_module *module, const lathe_run_args *args, const void *constants, int64_t bytes,
                           lathe_cuda_frame *frame) {
  loaded *l;
  workplace *w = NULL;
  pthread_mutex_lock(&lock);
  int32_t code = load(module, constants, &l);
  if (!code) {
    w = choose(l, bytes);
    if (!w && (w = calloc(1, sizeof(*w)))) {
      w->module = l;
      w->next = l->workplaces;
      l->workplaces = w;
    }
    if (w) {
      w->args = args;
    } else {
      snprintf(message, sizeof(message), "out of memory");
      code = LATHE_RESOURCE_EXHAUSTED;
    }
  }
  pthread_mutex_unlock(&lock);
  if (code)
    return tell(args, code);
  code = describe(l->driver, "cuCtxPushCurrent", l->driver->cuCtxPushCurrent(l->context));
  if (!code) {
    code = furnish(w, bytes);
    if (code) {
      lathe_cu_context before;
      l->driver->cuCtxPopCurrent(&before);
    }
  }
  if (code) {
    pthread_mutex_lock(&lock);
    w->args = NULL;
    pthread_mutex_unlock(&lock);
    return tell(args, code);
  }
  frame->call = w;
  frame->memory = (void *)(uintptr_t)w->memory;
  frame->constants = (void *)(uintptr_t)l->constants;
  return LATHE_OK;
}

/* What a call of the driver within a run came to. */
static int32_t done(workplace *w, const char *call, lathe_cu_result result) {
  if (result == LATHE_CU_SUCCESS)
    return LATHE_OK;
  return tell(w->args, describe(w->module->driver, call, result));
}

/* Of the piece at `*link`, which leaves the list. */
static int32_t release(workplace *w, piece **link) {
  piece *p = *link;
  lathe_cu_result result = w->module->driver->cuMemFree(p->memory);
  *link = p->next;
  free(p);
  return done(w, "cuMemFree", result);
}

int32_t lathe_cuda_allocate_1(void *call, void **slot, int64_t bytes) {
  workplace *w = call;
  *slot = NULL;
  piece *p = calloc(1, sizeof(*p));
  if (!p) {
    snprintf(message, sizeof(message), "out of memory");
    return tell(w->args, LATHE_RESOURCE_EXHAUSTED);
  }
  int32_t code = done(w, "cuMemAlloc", w->module->driver->cuMemAlloc(&p->memory, bytes > 0 ? (size_t)bytes : 1));
  if (code) {
    free(p);
    return code;
  }
  p->next = w->pieces;
  w->pieces = p;
  *slot = (void *)(uintptr_t)p->memory;
  return LATHE_OK;
}

int32_t lathe_cuda_release_1(void *call, void **slot) {
  workplace *w = call;
  if (!*slot)
    return LATHE_OK;
  int32_t code = lathe_cuda_wait_1(call);
  for (piece **link = &w->pieces; !code && *link; link = &(*link)->next)
    if ((*link)->memory == (uintptr_t)*slot) {
      code = release(w, link);
      *slot = NULL;
      break;
    }
  return code;
}

int32_t lathe_cuda_end_1(void *call, int32_t code) {
  workplace *w = call;
  const lathe_cuda_driver *d = w->module->driver;
  lathe_cu_context before;
  /* also after a failure: the stream may still read and write memory of the caller */
  lathe_cu_result result = d->cuStreamSynchronize(w->stream);
  if (!code)
    code = done(w, "cuStreamSynchronize", result);
  while (w->pieces) {
    int32_t freed = release(w, &w->pieces);
    code = code ? code : freed;
  }
  d->cuCtxPopCurrent(&before);
  pthread_mutex_lock(&lock);
  w->args = NULL;
  pthread_mutex_unlock(&lock);
  return code;
}

int32_t lathe_cuda_upload_1(void *call, void *device, const void *host, int64_t bytes) {
  workplace *w = call;
  if (bytes <= 0)
    return LATHE_OK;
  return done(w, "cuMemcpyHtoDAsync",
              w->module->driver->cuMemcpyHtoDAsync((uintptr_t)device, host, (size_t)bytes, w->stream));
}

int32_t lathe_cuda_download_1(void *call, void *host, const void *device, int64_t bytes) {
  workplace *w = call;
  if (bytes <= 0)
    return LATHE_OK;
  return done(w, "cuMemcpyDtoHAsync",
              w->module->driver->cuMemcpyDtoHAsync(host, (uintptr_t)device, (size_t)bytes, w->stream));
}

int32_t lathe_cuda_wait_1(void *call) {
  workplace *w = call;
  return done(w, "cuStreamSynchronize", w->module->driver->cuStreamSynchronize(w->stream));
}

int32_t lathe_cuda_read_1(void *call, void *host, const void *device, int64_t bytes) {
  int32_t code = lathe_cuda_download_1(call, host, device, bytes);
  return code ? code : lathe_cuda_wait_1(call);
}

int32_t lathe_cuda_copy_1(void *call, void *to, const void *from, int64_t bytes) {
  workplace *w = call;
  if (bytes <= 0)
    return LATHE_OK;
  return done(w, "cuMemcpyDtoDAsync",
              w->module->driver->cuMemcpyDtoDAsync((uintptr_t)to, (uintptr_t)from, (size_t)bytes, w->stream));
}

int32_t lathe_cuda_fill_1(void *call, void *device, const void *element, int64_t size, int64_t bytes) {
  workplace *w = call;
  const lathe_cuda_driver *d = w->module->driver;
  const unsigned char *e = element;
  int same = 1;
  if (bytes <= 0)
    return LATHE_OK;
  for (int64_t i = 1; i < size; ++i)
    same &= e[i] == e[0];
  if (same)
    return done(w, "cuMemsetD8Async", d->cuMemsetD8Async((uintptr_t)device, e[0], (size_t)bytes, w->stream));
  if (size == 4) {
    unsigned word;
    memcpy(&word, e, 4);
    return done(w, "cuMemsetD32Async", d->cuMemsetD32Async((uintptr_t)device, word, (size_t)bytes / 4, w->stream));
  }
  /* one element, then ever twice as many */
  int32_t code = lathe_cuda_upload_1(call, device, element, size);
  for (int64_t have = size; !code && have < bytes; have *= 2)
    code = lathe_cuda_copy_1(call, (char *)device + have, device, have < bytes - have ? have : bytes - have);
  return code;
}

int32_t lathe_cuda_launch_1(void *call, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count) {
  workplace *w = call;
  const loaded *l = w->module;
  const lathe_cuda_kernel *k = l->module->kernels[kernel];
  void *pointers[MOST_PARAMETERS];
  if (blocks <= 0)
    return LATHE_OK;
  if (blocks > MOST_BLOCKS || count > MOST_PARAMETERS) {
    snprintf(message, sizeof(message), "kernel '%s' is too large for a launch: %lld blocks, %d parameters", k->name,
             (long long)blocks, count);
    return tell(w->args, LATHE_RESOURCE_EXHAUSTED);
  }
  for (int32_t i = 0; i < count; ++i)
    pointers[i] = (void *)(uintptr_t)&parameters[i];
  lathe_cu_result result = l->driver->cuLaunchKernel(l->functions[kernel], (unsigned)blocks, 1, 1, (unsigned)k->threads,
                                                     1, 1, 0, w->stream, pointers, NULL);
  if (result == LATHE_CU_SUCCESS)
    return LATHE_OK;
  char where[160];
  snprintf(where, sizeof(where), "cuLaunchKernel of '%.100s'", k->name);
  return done(w, where, result);
}
