/* What a run asks the device for is written down until the host has to move or know something; such a *stretch* of launches,
 * fills and copies within the device is then one CUDA graph, or is issued call by call. Transfers from and to the host are never
 * in a graph, so that only addresses on the device are. A stretch is found again by what it says: same calls of the same kernels
 * with the same parameters, whatever entry and sizes it came from. Where few calls differ (a tensor of the caller lies elsewhere)
 * the graph's parameters are changed. */
#define _GNU_SOURCE
#include "runtime/cuda/driver/internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer stretches are cut: 64 bits times so many are a thousand launches or so. */
#define MOST_WORDS 16384
/* A launch of a graph costs as much as two or three of kernels. */
#define LEAST_COMMANDS 4

enum { Launch = 1, Copy, FillBytes, FillWords };
enum { Never, SecondTime, FirstTime };

static _Atomic int mode = -1;

void lathe_cuda_graphs_2(int32_t when) { atomic_store(&mode, when < Never ? Never : when > FirstTime ? FirstTime : when); }

static int when(void) {
  int now = atomic_load(&mode);
  if (now >= 0)
    return now;
  const char *text = secure_getenv("LATHE_CUDA_GRAPHS");
  lathe_cuda_graphs_2(text && *text >= '0' && *text <= '2' && !text[1] ? *text - '0' : SecondTime);
  return atomic_load(&mode);
}

/* A command is a word that says its kind, length and kernel, and the values; stretches of the same shape agree in the former. */
static uint64_t head(int kind, size_t words, int32_t kernel) {
  return (uint64_t)kind | (uint64_t)words << 8 | (uint64_t)(uint32_t)kernel << 32;
}
static int kindOf(const uint64_t *c) { return (int)(*c & 0xff); }
static size_t wordsOf(const uint64_t *c) { return (size_t)(*c >> 8 & 0xffffff); }
static int32_t kernelOf(const uint64_t *c) { return (int32_t)(uint32_t)(*c >> 32); }

/* Where the parameters of a launch are. */
static void point(const uint64_t *c, void **pointers) {
  const size_t count = wordsOf(c) - 2;
  for (size_t i = 0; i < count; ++i)
    pointers[i] = (void *)(uintptr_t)&c[2 + i];
}

static lathe_cu_result issue(const workplace *w, const uint64_t *c, lathe_cu_stream stream) {
  const lathe_cuda_driver *d = w->module->driver;
  void *pointers[MOST_PARAMETERS];
  switch (kindOf(c)) {
  case Launch:
    point(c, pointers);
    return d->cuLaunchKernel(w->module->functions[kernelOf(c)], (unsigned)c[1], 1, 1,
                             (unsigned)w->module->module->kernels[kernelOf(c)]->threads, 1, 1, w->module->shared[kernelOf(c)], stream,
                             pointers, NULL);
  case Copy:
    return d->cuMemcpyDtoDAsync(c[1], c[2], (size_t)c[3], stream);
  case FillBytes:
    return d->cuMemsetD8Async(c[1], (unsigned char)c[2], (size_t)c[3], stream);
  default:
    return d->cuMemsetD32Async(c[1], (unsigned)c[2], (size_t)c[3], stream);
  }
}

/* The failure of a command as that of the run. */
static int32_t refused(const workplace *w, const uint64_t *c, lathe_cu_result result) {
  static const char *const calls[] = {"", "cuLaunchKernel", "cuMemcpyDtoDAsync", "cuMemsetD8Async", "cuMemsetD32Async"};
  char where[160];
  if (kindOf(c) == Launch)
    snprintf(where, sizeof(where), "cuLaunchKernel of '%.100s'", w->module->module->kernels[kernelOf(c)]->name);
  else
    snprintf(where, sizeof(where), "%s", calls[kindOf(c)]);
  return lathe_cuda_failed(w->args->error, lathe_cuda_result(w->module->driver, where, result));
}

static int32_t plainly(const workplace *w, const uint64_t *words, size_t count) {
  for (size_t at = 0; at < count; at += wordsOf(words + at)) {
    lathe_cu_result result = issue(w, words + at, w->queue);
    if (result != LATHE_CU_SUCCESS)
      return refused(w, words + at, result);
  }
  return LATHE_OK;
}

static void destroy(workplace *w, graph *g) {
  if (g->exec)
    w->module->driver->cuGraphExecDestroy(g->exec);
  if (g->source)
    w->module->driver->cuGraphDestroy(g->source);
  free(g->nodes);
  g->exec = NULL;
  g->source = NULL;
  g->nodes = NULL;
}

/* The stretch as a graph, null where the driver refuses; the nodes of its commands where it tells them and `nodes` is given. The
 * workplace's own stream lends itself to that: a caller's may be one that can't. */
static lathe_cu_graph capture(workplace *w, const stretch *s, lathe_cu_graph_node **nodes) {
  const lathe_cuda_driver *d = w->module->driver;
  lathe_cu_graph made = NULL;
  if (d->cuStreamBeginCapture(w->stream, LATHE_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != LATHE_CU_SUCCESS)
    return NULL;
  lathe_cu_graph_node *list = nodes ? calloc(s->commands, sizeof(*list)) : NULL;
  int fine = 1, known = list != NULL;
  size_t n = 0;
  for (size_t at = 0; at < s->count && fine; at += wordsOf(s->words + at), ++n) {
    fine = issue(w, s->words + at, w->stream) == LATHE_CU_SUCCESS;
    lathe_cu_capture_status status;
    const lathe_cu_graph_node *last = NULL;
    size_t count = 0;
    known = known && fine && d->cuStreamGetCaptureInfo(w->stream, &status, NULL, NULL, &last, &count) == LATHE_CU_SUCCESS && count == 1;
    if (known)
      list[n] = last[0];
  }
  lathe_cu_result ended = d->cuStreamEndCapture(w->stream, &made);
  if ((ended != LATHE_CU_SUCCESS || !fine) && made) {
    d->cuGraphDestroy(made);
    made = NULL;
  }
  if (!made || !known) {
    free(list);
    list = NULL;
  }
  if (nodes)
    *nodes = list;
  return made;
}

static int instantiate(workplace *w, graph *g, const stretch *s) {
  const lathe_cuda_driver *d = w->module->driver;
  destroy(w, g);
  g->source = capture(w, s, &g->nodes);
  if (g->source && d->cuGraphInstantiateWithFlags(&g->exec, g->source, 0) == LATHE_CU_SUCCESS)
    return 1;
  g->exec = NULL;
  destroy(w, g);
  return 0;
}

/* Node by node where only parameters of kernels differ. */
static int setParameters(workplace *w, graph *g, const stretch *s) {
  const lathe_cuda_driver *d = w->module->driver;
  void *pointers[MOST_PARAMETERS];
  size_t n = 0;
  if (!g->nodes)
    return 0;
  for (size_t at = 0; at < s->count; at += wordsOf(s->words + at), ++n) {
    const uint64_t *c = s->words + at;
    if (!memcmp(c, g->of.words + at, 8 * wordsOf(c)))
      continue;
    if (kindOf(c) != Launch)
      return 0;
    lathe_cu_kernel_node_params p;
    memset(&p, 0, sizeof(p));
    p.function = w->module->functions[kernelOf(c)];
    p.grid_x = (unsigned)c[1];
    p.block_x = (unsigned)w->module->module->kernels[kernelOf(c)]->threads;
    p.grid_y = p.grid_z = p.block_y = p.block_z = 1;
    p.shared = w->module->shared[kernelOf(c)];
    point(c, pointers);
    p.parameters = pointers;
    if (d->cuGraphExecKernelNodeSetParams(g->exec, g->nodes[n], &p) != LATHE_CU_SUCCESS)
      return 0;
  }
  return 1;
}

/* Makes the graph say what the stretch says. */
static int update(workplace *w, graph *g, const stretch *s) {
  const lathe_cuda_driver *d = w->module->driver;
  if (setParameters(w, g, s))
    return 1;
  lathe_cu_graph now = capture(w, s, NULL);
  lathe_cu_update_result why;
  lathe_cu_graph_node node;
  int fine = now && d->cuGraphExecUpdate(g->exec, now, &node, &why) == LATHE_CU_SUCCESS;
  if (now)
    d->cuGraphDestroy(now);
  /* which nodes it has now is not said, so from here on it changes as a whole */
  free(g->nodes);
  g->nodes = NULL;
  return fine || instantiate(w, g, s);
}

static int remember(graph *g, const stretch *s) {
  if (g->of.capacity < s->count) {
    uint64_t *words = realloc(g->of.words, 8 * s->count);
    if (!words)
      return 0;
    g->of.words = words;
    g->of.capacity = s->count;
  }
  memcpy(g->of.words, s->words, 8 * s->count);
  g->of.count = s->count;
  g->of.commands = s->commands;
  return 1;
}

/* How many commands differ; more than there are where the shapes do. */
static size_t difference(const stretch *a, const stretch *b) {
  if (a->count != b->count || a->commands != b->commands)
    return (size_t)-1;
  size_t differ = 0;
  for (size_t at = 0; at < a->count; at += wordsOf(a->words + at)) {
    if (a->words[at] != b->words[at])
      return (size_t)-1;
    differ += memcmp(a->words + at, b->words + at, 8 * wordsOf(a->words + at)) != 0;
  }
  return differ;
}

/* The graph that says the same or nearly so (more changes cost more than launches), else null and the one to give up. */
static graph *find(workplace *w, const stretch *s, size_t *differ, graph **oldest) {
  graph *best = NULL;
  *differ = s->commands < 4 ? 1 : s->commands / 4;
  *oldest = &w->graphs[0];
  for (int i = 0; i < MOST_GRAPHS; ++i) {
    graph *g = &w->graphs[i];
    if (g->used < (*oldest)->used)
      *oldest = g;
    size_t here = g->used ? difference(&g->of, s) : (size_t)-1;
    if (here > *differ || (best && here == *differ))
      continue;
    best = g;
    *differ = here;
    if (!here)
      break;
  }
  return best;
}

/* Whether the stream of the caller is one that graphs can go to now: he may be making a graph of his own from our calls. */
static int takesGraphs(const workplace *w) {
  lathe_cu_capture_status status;
  return w->queue == w->stream || (w->module->driver->cuStreamIsCapturing(w->queue, &status) == LATHE_CU_SUCCESS &&
                                   status == LATHE_CU_STREAM_CAPTURE_STATUS_NONE);
}

/* The graph to launch for the stretch, null where it is to be issued call by call. */
static graph *graphOf(workplace *w, const stretch *s) {
  const int early = when() == FirstTime;
  if (s->commands < (early ? 1 : LEAST_COMMANDS) || !takesGraphs(w))
    return NULL;
  size_t differ;
  graph *oldest, *g = find(w, s, &differ, &oldest);
  if (!g) {
    g = oldest;
    destroy(w, g);
    g->refused = 0;
    g->used = remember(g, s) ? ++w->tick : 0;
    if (!early || !g->used)
      return NULL;
    g->refused = !instantiate(w, g, s);
    return g->refused ? NULL : g;
  }
  g->used = ++w->tick;
  if (g->refused)
    return NULL;
  int fine = g->exec ? !differ || update(w, g, s) : instantiate(w, g, s);
  if (fine && differ)
    fine = remember(g, s);
  if (!fine) { /* it isn't tried again */
    destroy(w, g);
    g->refused = 1;
  }
  return fine ? g : NULL;
}

int32_t lathe_cuda_flush(workplace *w) {
  stretch s = w->recorded;
  if (!s.commands)
    return LATHE_OK;
  w->recorded.count = w->recorded.commands = 0;
  graph *g = graphOf(w, &s);
  if (!g)
    return plainly(w, s.words, s.count);
  lathe_cu_result result = w->module->driver->cuGraphLaunch(g->exec, w->queue);
  return result == LATHE_CU_SUCCESS
             ? LATHE_OK
             : lathe_cuda_failed(w->args->error, lathe_cuda_result(w->module->driver, "cuGraphLaunch", result));
}

static int32_t record(workplace *w, int kind, int32_t kernel, uint64_t first, const uint64_t *more, size_t count) {
  uint64_t one[2 + MOST_PARAMETERS];
  const size_t words = 2 + count;
  const int now = when() == Never;
  int32_t code = LATHE_OK;
  if (!now && !w->recorded.words) {
    w->recorded.words = malloc(8 * MOST_WORDS);
    w->recorded.capacity = w->recorded.words ? MOST_WORDS : 0;
  }
  if (w->recorded.count + words > w->recorded.capacity || now)
    code = lathe_cuda_flush(w);
  if (code)
    return code;
  const int plain = now || !w->recorded.words;
  uint64_t *c = plain ? one : w->recorded.words + w->recorded.count;
  c[0] = head(kind, words, kernel);
  c[1] = first;
  memcpy(c + 2, more, 8 * count);
  if (plain)
    return plainly(w, c, words);
  w->recorded.count += words;
  ++w->recorded.commands;
  return LATHE_OK;
}

int32_t lathe_cuda_record_launch(workplace *w, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count) {
  return record(w, Launch, kernel, (uint64_t)blocks, parameters, (size_t)count);
}

int32_t lathe_cuda_record_copy(workplace *w, lathe_cu_deviceptr to, lathe_cu_deviceptr from, size_t bytes) {
  const uint64_t more[] = {from, bytes};
  return record(w, Copy, 0, to, more, 2);
}

int32_t lathe_cuda_record_fill(workplace *w, lathe_cu_deviceptr to, unsigned value, int bytesOfValue, size_t count) {
  const uint64_t more[] = {value, count};
  return record(w, bytesOfValue == 1 ? FillBytes : FillWords, 0, to, more, 2);
}

void lathe_cuda_drop_graphs(workplace *w) {
  for (int i = 0; i < MOST_GRAPHS; ++i) {
    destroy(w, &w->graphs[i]);
    free(w->graphs[i].of.words);
  }
  memset(w->graphs, 0, sizeof(w->graphs));
}
