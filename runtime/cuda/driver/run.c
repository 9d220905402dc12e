/* One run: its workplace, and what generated code does with it between begin and end. */
#include "runtime/cuda/driver/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BLOCKS 0x7fffffff

static int32_t defaultDevice;

void lathe_cuda_default_device_2(int32_t device) { defaultDevice = device; }

static int32_t tell(const lathe_run_args *args, int32_t code) { return lathe_cuda_failed(args->error, code); }

/* What a call of the driver within a run came to. */
static int32_t done(const workplace *w, const char *call, lathe_cu_result result) {
  if (result == LATHE_CU_SUCCESS)
    return LATHE_OK;
  return tell(w->args, lathe_cuda_result(w->module->driver, call, result));
}

/* The idle workplace that fits best: the smallest that is large enough, else the largest. Under the lock. */
static workplace *choose(loaded *l, int64_t bytes) {
  workplace *best = NULL;
  for (workplace *w = l->workplaces; w; w = w->next) {
    if (w->args || !w->borrowed)
      continue;
    int fits = w->bytes >= bytes, had = best && best->bytes >= bytes;
    if (!best || (fits && !had) || (fits == had && (fits ? w->bytes < best->bytes : w->bytes > best->bytes)))
      best = w;
  }
  return best;
}

/* A workplace for a run without an instance. Under the lock. */
static int32_t borrow(loaded *l, int64_t bytes, workplace **result) {
  workplace *w = choose(l, bytes);
  if (!w) {
    w = calloc(1, sizeof(*w));
    if (!w)
      return lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED, "out of memory");
    w->module = l;
    w->borrowed = 1;
    w->next = l->workplaces;
    l->workplaces = w;
  }
  *result = w;
  return LATHE_OK;
}

/* Finds or makes what the arguments ask for, and marks it as in use. */
static int32_t take(lathe_cuda_module *module, const lathe_run_args *args, const lathe_device_run_args *more, const void *constants,
                    int64_t bytes, workplace **result) {
  workplace *w = more ? more->instance : NULL;
  int32_t code;
  if (!w && more && more->enqueue)
    return lathe_cuda_refuse(LATHE_FAILED_PRECONDITION, "a run is left in a stream only for an instance");
  if (w && w->module->module != module)
    return lathe_cuda_refuse(LATHE_INVALID_ARGUMENT, "the instance is another module's");
  if (w && w->args)
    return lathe_cuda_refuse(LATHE_FAILED_PRECONDITION, "the instance is in use");
  lathe_cuda_lock();
  loaded *l = w ? w->module : lathe_cuda_find(module, more ? more->device : defaultDevice);
  code = l ? lathe_cuda_ensure(l, constants) : LATHE_RESOURCE_EXHAUSTED;
  if (!code && !w) {
    code = borrow(l, bytes, &w);
    l->kept = 1;
  }
  if (!code) {
    w->args = args;
    w->more = more;
  } else if (l && !l->context && !l->instances) {
    lathe_cuda_forget(l);
  }
  lathe_cuda_unlock();
  *result = w;
  return code;
}

/* Which stream, and which slot; the stream goes on after runs of the instance that are in another. */
static int32_t queue(workplace *w) {
  const lathe_cuda_driver *d = w->module->driver;
  const int last = (w->first + w->pending + MOST_PENDING - 1) % MOST_PENDING;
  lathe_cu_stream before = w->queue;
  w->queue = w->more && w->more->enqueue ? (lathe_cu_stream)w->more->stream : w->stream;
  int32_t code = LATHE_OK;
  if (w->pending && before != w->queue)
    code = lathe_cuda_result(d, "cuStreamWaitEvent", d->cuStreamWaitEvent(w->queue, w->events[last], 0));
  if (!code)
    lathe_cuda_collect(w, MOST_PENDING - 1);
  w->slot = w->borrowed ? 0 : (w->first + w->pending) % MOST_PENDING;
  return code;
}

/* Idle again. */
static void leave(workplace *w) {
  lathe_cuda_lock();
  w->args = NULL;
  w->more = NULL;
  lathe_cuda_unlock();
}

int32_t lathe_cuda_begin_2(lathe_cuda_module *module, const lathe_run_args *args, const void *constants, int64_t bytes,
                           lathe_cuda_frame *frame) {
  workplace *w = NULL;
  const lathe_device_run_args *more =
      args->struct_size >= sizeof(lathe_device_run_args) ? (const lathe_device_run_args *)(const void *)args : NULL;
  int32_t code = take(module, args, more, constants, bytes, &w);
  if (code)
    return tell(args, code);
  const loaded *l = w->module;
  code = lathe_cuda_result(l->driver, "cuCtxPushCurrent", l->driver->cuCtxPushCurrent(l->context));
  if (!code) {
    code = lathe_cuda_furnish(w, bytes);
    if (!code)
      code = queue(w);
    if (code) {
      lathe_cu_context before;
      l->driver->cuCtxPopCurrent(&before);
    }
  }
  if (code) {
    leave(w);
    return tell(args, code);
  }
  memset(&w->cells, 0, sizeof(w->cells));
  w->recorded.count = w->recorded.commands = 0; /* of a run that failed */
  frame->call = w;
  frame->memory = (void *)(uintptr_t)w->memory;
  frame->constants = (void *)(uintptr_t)l->constants;
  frame->host = slotOf(w, w->slot);
  return LATHE_OK;
}

int32_t lathe_cuda_cells_2(void *call, void *at, const int32_t *sites, int32_t count) {
  workplace *w = call;
  if (count > w->module->module->num_cells)
    return tell(w->args, lathe_cuda_refuse(LATHE_INTERNAL, "more places that can fail than the module has"));
  char *host = slotOf(w, w->slot) + (w->module->module->host_bytes + 63) / 64 * 64;
  w->cells.device = (uintptr_t)at;
  w->cells.host = (const int64_t *)(const void *)host;
  w->cells.sites = sites;
  w->cells.count = count;
  return lathe_cuda_record_fill(w, (uintptr_t)at, 0, 1, 8 * (size_t)count);
}

/* Asks for the cells. */
static int32_t fetch(workplace *w) {
  int32_t code = lathe_cuda_flush(w);
  if (code || !w->cells.count)
    return code;
  return done(w, "cuMemcpyDtoHAsync",
              w->module->driver->cuMemcpyDtoHAsync((void *)(uintptr_t)w->cells.host, w->cells.device,
                                                   8 * (size_t)w->cells.count, w->queue));
}

/* Waits, and looks at the cells when they were asked for. */
static int32_t settle(workplace *w) {
  int32_t code = done(w, "cuStreamSynchronize", w->module->driver->cuStreamSynchronize(w->queue));
  for (int32_t i = 0; i < w->cells.count && !code; ++i)
    if (w->cells.host[i])
      code = w->module->module->fail(w->args, w->cells.sites[i], (int32_t)w->cells.host[i]);
  return code;
}

int32_t lathe_cuda_check_2(void *call) {
  int32_t code = fetch(call);
  return code ? code : settle(call);
}

/* Of the piece at `*link`, which leaves the list. */
static int32_t release(workplace *w, piece **link) {
  piece *p = *link;
  lathe_cu_result result = w->module->driver->cuMemFree(p->memory);
  *link = p->next;
  free(p);
  return done(w, "cuMemFree", result);
}

/* Leaves the run in the stream. */
static int32_t leavePending(workplace *w) {
  int32_t code = fetch(w);
  if (!code)
    code = done(w, "cuEventRecord", w->module->driver->cuEventRecord(w->events[w->slot], w->queue));
  if (!code) {
    w->ran[w->slot] = w->cells;
    ++w->pending;
  }
  return code;
}

int32_t lathe_cuda_end_2(void *call, int32_t code) {
  workplace *w = call;
  const lathe_cuda_driver *d = w->module->driver;
  lathe_cu_context before;
  int pending = 0;
  if (!code && w->more && w->more->enqueue && !w->pieces) {
    code = leavePending(w);
    pending = !code;
  }
  if (!pending) {
    if (!code)
      code = lathe_cuda_check_2(w);
    if (code) /* the stream may still read and write memory of the caller */
      d->cuStreamSynchronize(w->queue);
  }
  while (w->pieces) {
    int32_t freed = release(w, &w->pieces);
    code = code ? code : freed;
  }
  d->cuCtxPopCurrent(&before);
  leave(w);
  return code;
}

int32_t lathe_cuda_allocate_2(void *call, void **slot, int64_t bytes) {
  workplace *w = call;
  *slot = NULL;
  piece *p = calloc(1, sizeof(*p));
  if (!p)
    return tell(w->args, lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED, "out of memory"));
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

int32_t lathe_cuda_release_2(void *call, void **slot) {
  workplace *w = call;
  if (!*slot)
    return LATHE_OK;
  int32_t code = lathe_cuda_flush(w);
  if (!code)
    code = done(w, "cuStreamSynchronize", w->module->driver->cuStreamSynchronize(w->queue));
  for (piece **link = &w->pieces; !code && *link; link = &(*link)->next)
    if ((*link)->memory == (uintptr_t)*slot) {
      code = release(w, link);
      *slot = NULL;
      break;
    }
  return code;
}

int32_t lathe_cuda_upload_2(void *call, void *device, const void *host, int64_t bytes) {
  workplace *w = call;
  int32_t code = bytes > 0 ? lathe_cuda_flush(w) : LATHE_OK;
  if (code || bytes <= 0)
    return code;
  return done(w, "cuMemcpyHtoDAsync",
              w->module->driver->cuMemcpyHtoDAsync((uintptr_t)device, host, (size_t)bytes, w->queue));
}

static int32_t download(workplace *w, void *host, const void *device, int64_t bytes) {
  int32_t code = bytes > 0 ? lathe_cuda_flush(w) : LATHE_OK;
  if (code || bytes <= 0)
    return code;
  return done(w, "cuMemcpyDtoHAsync",
              w->module->driver->cuMemcpyDtoHAsync(host, (uintptr_t)device, (size_t)bytes, w->queue));
}

int32_t lathe_cuda_read_2(void *call, void *host, const void *device, int64_t bytes) {
  int32_t code = download(call, host, device, bytes);
  return code ? code : lathe_cuda_check_2(call);
}

int32_t lathe_cuda_copy_2(void *call, void *to, const void *from, int64_t bytes) {
  return bytes > 0 ? lathe_cuda_record_copy(call, (uintptr_t)to, (uintptr_t)from, (size_t)bytes) : LATHE_OK;
}

enum { Inputs, Outputs, Variables };

/* The caller's pointer to a tensor; whether it is one of the device. */
static void *pointerOf(const workplace *w, int32_t list, int32_t number, int *onDevice) {
  const lathe_device_run_args *more = w->more;
  const uint8_t *flags = !more              ? NULL
                         : list == Inputs   ? more->inputs_on_device
                         : list == Outputs  ? more->outputs_on_device
                                            : more->variables_on_device;
  *onDevice = flags && flags[number];
  return list == Inputs    ? (void *)(uintptr_t)w->args->inputs[number]
         : list == Outputs ? w->args->outputs[number]
                           : w->args->variables[number];
}

int32_t lathe_cuda_bind_2(void *call, int32_t list, int32_t number, void **slot, int64_t bytes) {
  workplace *w = call;
  int onDevice;
  void *pointer = pointerOf(w, list, number, &onDevice);
  if (onDevice && !pointer && bytes > 0)
    return tell(w->args, lathe_cuda_refuse(LATHE_INVALID_ARGUMENT, "%s %d has no memory on the device",
                                           list == Inputs ? "input" : list == Outputs ? "output" : "variable", number));
  if (onDevice && (uintptr_t)pointer % LATHE_ALIGNMENT == 0) {
    *slot = pointer;
    return LATHE_OK;
  }
  if (list == Outputs)
    return LATHE_OK;
  return onDevice ? lathe_cuda_copy_2(call, *slot, pointer, bytes) : lathe_cuda_upload_2(call, *slot, pointer, bytes);
}

int32_t lathe_cuda_store_2(void *call, int32_t list, int32_t number, void **slot, int64_t bytes) {
  workplace *w = call;
  int onDevice;
  void *pointer = pointerOf(w, list, number, &onDevice);
  if (!onDevice)
    return download(w, pointer, *slot, bytes);
  return pointer == *slot ? LATHE_OK : lathe_cuda_copy_2(call, pointer, *slot, bytes);
}

int32_t lathe_cuda_fill_2(void *call, void *device, const void *element, int64_t size, int64_t bytes) {
  const unsigned char *e = element;
  int same = 1;
  if (bytes <= 0)
    return LATHE_OK;
  for (int64_t i = 1; i < size; ++i)
    same &= e[i] == e[0];
  if (same)
    return lathe_cuda_record_fill(call, (uintptr_t)device, e[0], 1, (size_t)bytes);
  if (size == 4) {
    unsigned word;
    memcpy(&word, e, 4);
    return lathe_cuda_record_fill(call, (uintptr_t)device, word, 4, (size_t)bytes / 4);
  }
  /* one element, then ever twice as many */
  int32_t code = lathe_cuda_upload_2(call, device, element, size);
  for (int64_t have = size; !code && have < bytes; have *= 2)
    code = lathe_cuda_copy_2(call, (char *)device + have, device, have < bytes - have ? have : bytes - have);
  return code;
}

static atomic_llong launches;
int64_t lathe_cuda_launches_2(void) { return atomic_load_explicit(&launches, memory_order_relaxed); }

int32_t lathe_cuda_launch_2(void *call, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count) {
  workplace *w = call;
  if (blocks <= 0)
    return LATHE_OK;
  if (blocks > MOST_BLOCKS || count > MOST_PARAMETERS)
    return tell(w->args, lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED,
                                           "kernel '%s' is too large for a launch: %lld blocks, %d parameters",
                                           w->module->module->kernels[kernel]->name, (long long)blocks, count));
  atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed);
  return lathe_cuda_record_launch(w, kernel, blocks, parameters, count);
}
