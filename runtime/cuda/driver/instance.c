/* Workplaces: what instances have for their runs, and what becomes of runs that were left in a stream. */
#include "runtime/cuda/driver/internal.h"

#include <stdlib.h>
#include <string.h>

static int32_t in(workplace *w) {
  const lathe_cuda_driver *d = w->module->driver;
  return lathe_cuda_result(d, "cuCtxPushCurrent", d->cuCtxPushCurrent(w->module->context));
}

static void out(workplace *w) {
  lathe_cu_context before;
  w->module->driver->cuCtxPopCurrent(&before);
}

void lathe_cuda_strip(workplace *w) {
  const lathe_cuda_driver *d = w->module->driver;
  lathe_cuda_collect(w, 0);
  lathe_cuda_drop_graphs(w);
  if (w->stream)
    d->cuStreamDestroy(w->stream);
  for (int i = 0; i < MOST_PENDING; ++i)
    if (w->events[i])
      d->cuEventDestroy(w->events[i]);
  if (w->memory)
    d->cuMemFree(w->memory);
  if (w->host)
    d->cuMemFreeHost(w->host);
  memset(w->events, 0, sizeof(w->events));
  w->stream = w->queue = NULL;
  w->memory = 0;
  w->bytes = 0;
  w->host = NULL;
}

int32_t lathe_cuda_furnish(workplace *w, int64_t bytes) {
  const lathe_cuda_driver *d = w->module->driver;
  const int64_t slots = w->borrowed ? 1 : MOST_PENDING, slot = slotBytes(w->module->module);
  int32_t code = LATHE_OK;
  if (!w->stream)
    code = lathe_cuda_result(d, "cuStreamCreate", d->cuStreamCreate(&w->stream, LATHE_CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < MOST_PENDING && !w->borrowed && !code; ++i)
    if (!w->events[i])
      code = lathe_cuda_result(d, "cuEventCreate", d->cuEventCreate(&w->events[i], LATHE_CU_EVENT_DISABLE_TIMING));
  if (!code && slot && !w->host) {
    void *host = NULL;
    code = lathe_cuda_result(d, "cuMemHostAlloc", d->cuMemHostAlloc(&host, (size_t)(slots * slot), 0));
    w->host = code ? NULL : host;
  }
  if (code || w->bytes >= bytes)
    return code;
  lathe_cuda_collect(w, 0); /* they use the memory */
  lathe_cuda_drop_graphs(w);
  if (w->memory)
    code = lathe_cuda_result(d, "cuMemFree", d->cuMemFree(w->memory));
  w->memory = 0;
  w->bytes = 0;
  if (code)
    return code;
  lathe_cu_result result = d->cuMemAlloc(&w->memory, (size_t)bytes);
  if (result == LATHE_CU_ERROR_OUT_OF_MEMORY)
    return lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED, "the device has no %lld bytes for the run", (long long)bytes);
  if (result == LATHE_CU_SUCCESS)
    w->bytes = bytes;
  return lathe_cuda_result(d, "cuMemAlloc", result);
}

void lathe_cuda_collect(workplace *w, int left) {
  const lathe_cuda_driver *d = w->module->driver;
  for (; w->pending > left; --w->pending, w->first = (w->first + 1) % MOST_PENDING) {
    lathe_cu_result result = d->cuEventQuery(w->events[w->first]);
    if (result != LATHE_CU_SUCCESS) /* most often it is over */
      result = d->cuEventSynchronize(w->events[w->first]);
    if (result != LATHE_CU_SUCCESS) /* once more: the caller takes for over what this has waited for, and frees its memory */
      d->cuEventSynchronize(w->events[w->first]);
    if (w->failure)
      continue;
    if (result != LATHE_CU_SUCCESS) {
      size_t size;
      w->failure = lathe_cuda_result(d, "cuEventSynchronize", result);
      w->site = -1;
      strncpy(w->text, lathe_cuda_message(&size), sizeof(w->text) - 1);
      continue;
    }
    const cells *c = &w->ran[w->first];
    for (int32_t i = 0; i < c->count && !w->failure; ++i)
      if (c->host[i]) {
        w->failure = LATHE_INTERNAL;
        w->site = c->sites[i];
        w->said = (int32_t)c->host[i];
      }
  }
}

int32_t lathe_cuda_open_2(lathe_cuda_module *module, const void *constants, int32_t device, lathe_device_instance **instance,
                          lathe_error *error) {
  workplace *w = calloc(1, sizeof(*w));
  *instance = NULL;
  if (!w)
    return lathe_cuda_failed(error, lathe_cuda_refuse(LATHE_RESOURCE_EXHAUSTED, "out of memory"));
  lathe_cuda_lock();
  loaded *l = lathe_cuda_find(module, device);
  int32_t code = l ? lathe_cuda_ensure(l, constants) : LATHE_RESOURCE_EXHAUSTED;
  if (!code) {
    w->module = l;
    w->next = l->workplaces;
    l->workplaces = w;
    ++l->instances;
  } else if (l && !l->instances) {
    lathe_cuda_forget(l);
  }
  lathe_cuda_unlock();
  if (code) {
    free(w);
    return lathe_cuda_failed(error, code);
  }
  code = in(w);
  if (!code) {
    code = lathe_cuda_furnish(w, 0);
    out(w);
  }
  if (code) {
    lathe_cuda_failed(error, code);
    lathe_cuda_close_2(w);
    return code;
  }
  *instance = w;
  return LATHE_OK;
}

void lathe_cuda_close_2(lathe_device_instance *w) {
  if (!w)
    return;
  loaded *l = w->module;
  lathe_cuda_lock();
  if (lathe_cuda_enter(l)) {
    lathe_cuda_strip(w);
    out(w);
  }
  workplace **link = &l->workplaces;
  while (*link != w)
    link = &(*link)->next;
  *link = w->next;
  free(w->recorded.words);
  free(w);
  if (--l->instances == 0 && !l->kept)
    lathe_cuda_forget(l);
  lathe_cuda_unlock();
}

/* For whatever is done to an instance between runs: what was unloaded meanwhile is not there. */
static int32_t enter(workplace *w) {
  if (w->args)
    return lathe_cuda_refuse(LATHE_FAILED_PRECONDITION, "the instance is in use");
  if (!w->module->context)
    return lathe_cuda_refuse(LATHE_FAILED_PRECONDITION, "the module was unloaded");
  return in(w);
}

/* For what waits or gives back: its caller takes for over what is under way, and for free what he hands in, whatever this
 * returns, so that a context which cannot be entered is tried again. */
static int32_t insist(workplace *w) {
  int32_t code = enter(w);
  return code && !w->args && lathe_cuda_enter(w->module) ? LATHE_OK : code;
}

int32_t lathe_cuda_reserve_2(lathe_device_instance *w, int64_t bytes, lathe_error *error) {
  if (bytes < 0)
    return lathe_cuda_failed(error, lathe_cuda_refuse(LATHE_INVALID_ARGUMENT, "a run-time size is out of range"));
  if (!w->module->context) /* the next run brings all */
    return LATHE_OK;
  int32_t code = enter(w);
  if (!code) {
    code = lathe_cuda_furnish(w, bytes);
    out(w);
  }
  return lathe_cuda_failed(error, code);
}

int32_t lathe_cuda_finish_2(lathe_device_instance *w, lathe_error *error) {
  if (w->pending) {
    int32_t code = insist(w);
    if (code)
      return lathe_cuda_failed(error, code);
    lathe_cuda_collect(w, 0);
    out(w);
  }
  const int32_t failure = w->failure;
  w->failure = LATHE_OK;
  if (!failure)
    return LATHE_OK;
  if (w->site < 0)
    return lathe_cuda_failed(error, lathe_cuda_refuse(failure, "%s", w->text));
  lathe_run_args args;
  memset(&args, 0, sizeof(args));
  args.error = error;
  return w->module->module->fail(&args, w->site, w->said);
}

int32_t lathe_cuda_get_memory_2(lathe_device_instance *w, void **memory, int64_t bytes, lathe_error *error) {
  *memory = NULL;
  int32_t code = bytes < 0 ? lathe_cuda_refuse(LATHE_INVALID_ARGUMENT, "a negative number of bytes") : enter(w);
  if (!code) {
    lathe_cu_deviceptr at = 0;
    code = lathe_cuda_result(w->module->driver, "cuMemAlloc", w->module->driver->cuMemAlloc(&at, bytes ? (size_t)bytes : 1));
    out(w);
    *memory = code ? NULL : (void *)(uintptr_t)at;
  }
  return lathe_cuda_failed(error, code);
}

int32_t lathe_cuda_free_memory_2(lathe_device_instance *w, void *memory, lathe_error *error) {
  if (!memory)
    return LATHE_OK;
  int32_t code = insist(w);
  if (!code) {
    lathe_cuda_collect(w, 0);
    code = lathe_cuda_result(w->module->driver, "cuMemFree", w->module->driver->cuMemFree((uintptr_t)memory));
    out(w);
  }
  return lathe_cuda_failed(error, code);
}

int32_t lathe_cuda_transfer_2(lathe_device_instance *w, void *to, int32_t to_on_device, const void *from, int32_t from_on_device,
                              int64_t bytes, lathe_error *error) {
  if (bytes <= 0)
    return LATHE_OK;
  if (!to_on_device && !from_on_device) {
    memcpy(to, from, (size_t)bytes);
    return LATHE_OK;
  }
  int32_t code = enter(w);
  if (!code) {
    const lathe_cuda_driver *d = w->module->driver;
    lathe_cuda_collect(w, 0);
    if (!from_on_device)
      code = lathe_cuda_result(d, "cuMemcpyHtoDAsync", d->cuMemcpyHtoDAsync((uintptr_t)to, from, (size_t)bytes, w->stream));
    else if (!to_on_device)
      code = lathe_cuda_result(d, "cuMemcpyDtoHAsync", d->cuMemcpyDtoHAsync(to, (uintptr_t)from, (size_t)bytes, w->stream));
    else
      code = lathe_cuda_result(d, "cuMemcpyDtoDAsync",
                               d->cuMemcpyDtoDAsync((uintptr_t)to, (uintptr_t)from, (size_t)bytes, w->stream));
    /* also after a failure: nothing may be under way when this returns */
    int32_t waited = lathe_cuda_result(d, "cuStreamSynchronize", d->cuStreamSynchronize(w->stream));
    if (waited) /* once more, as above */
      d->cuStreamSynchronize(w->stream);
    code = code ? code : waited;
    out(w);
  }
  return lathe_cuda_failed(error, code);
}
