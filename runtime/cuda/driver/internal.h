/* What the files of the archive share. Words: a *module* is a compiled model; *loaded* is what one device holds of it; a
 * *workplace* is memory and a stream, either an instance's or lent to one run after the other; a *run* is pending when it is
 * in a stream of the caller and nobody has asked yet what came of it. */
#ifndef LATHE_RUNTIME_CUDA_DRIVER_INTERNAL_H
#define LATHE_RUNTIME_CUDA_DRIVER_INTERNAL_H

#include "runtime/abi/cuda_abi.h"
#include "runtime/cuda/driver/driver.h"

/* Archives of several versions may meet in one program. */
#define lathe_cuda_message lathe_cuda_message_2
#define lathe_cuda_lock lathe_cuda_lock_2
#define lathe_cuda_unlock lathe_cuda_unlock_2
#define lathe_cuda_refuse lathe_cuda_refuse_2
#define lathe_cuda_result lathe_cuda_result_2
#define lathe_cuda_failed lathe_cuda_failed_2
#define lathe_cuda_enter lathe_cuda_enter_2
#define lathe_cuda_find lathe_cuda_find_2
#define lathe_cuda_ensure lathe_cuda_ensure_2
#define lathe_cuda_forget lathe_cuda_forget_2
#define lathe_cuda_furnish lathe_cuda_furnish_2
#define lathe_cuda_strip lathe_cuda_strip_2
#define lathe_cuda_collect lathe_cuda_collect_2
#define lathe_cuda_flush lathe_cuda_flush_2
#define lathe_cuda_record_launch lathe_cuda_record_launch_2
#define lathe_cuda_record_copy lathe_cuda_record_copy_2
#define lathe_cuda_record_fill lathe_cuda_record_fill_2
#define lathe_cuda_drop_graphs lathe_cuda_drop_graphs_2

/* How many runs of an instance may be pending; one more waits for the oldest. */
#define MOST_PENDING 8
/* Of a workplace, the ones used last: a run has one for each stretch between two things that the host moves or must know. */
#define MOST_GRAPHS 32
/* A kernel's parameters may take 4352 bytes before PTX 8.1. */
#define MOST_PARAMETERS 544

/* Memory that a run asked for beside its own. */
typedef struct piece {
  lathe_cu_deviceptr memory;
  struct piece *next;
} piece;

/* Where a run's kernels say that they failed: on the device, and in pinned memory once that was asked for. */
typedef struct cells {
  lathe_cu_deviceptr device;
  const int64_t *host;
  const int32_t *sites;
  int32_t count;
} cells;

/* Commands for the device (graph.c) in `count` words. */
typedef struct stretch {
  uint64_t *words;
  size_t count, capacity, commands;
} stretch;

typedef struct graph {
  stretch of;
  uint64_t used; /* when; 0: nothing is here */
  int refused;   /* by the driver */
  lathe_cu_graph source;
  lathe_cu_graph_exec exec;   /* null: was seen once, or refused */
  lathe_cu_graph_node *nodes; /* by command; null: not known */
} graph;

typedef struct lathe_device_instance {
  struct loaded *module;
  int borrowed;                      /* of no instance */
  const lathe_run_args *args;        /* of the run in progress; null: there is none */
  const lathe_device_run_args *more; /* the same, where they are of version 2 */
  lathe_cu_stream stream, queue;     /* its own; that of the run in progress or the last one */
  lathe_cu_deviceptr memory;
  int64_t bytes;
  char *host; /* pinned: a slot for each run that can be pending */
  int slot;   /* of the run in progress */
  cells cells;
  lathe_cu_event events[MOST_PENDING]; /* the end of the run in that slot */
  struct cells ran[MOST_PENDING];      /* of the pending runs */
  int first, pending;
  int32_t failure, site; /* the first of runs that are over: a code; its site and what its kernel said, else -1 */
  int32_t said;
  char text[256]; /* without a site */
  piece *pieces;
  stretch recorded; /* what is not in the stream yet */
  graph graphs[MOST_GRAPHS];
  uint64_t tick;
  struct lathe_device_instance *next;
} workplace;

typedef struct loaded {
  lathe_cuda_module *module;
  int32_t ordinal;
  const lathe_cuda_driver *driver;
  lathe_cu_device device;
  lathe_cu_context context; /* null: nothing is loaded */
  lathe_cu_module code;
  lathe_cu_deviceptr constants;
  workplace *workplaces;
  int instances;
  int kept; /* stays without instances */
  struct loaded *next; /* on another device */
  uint32_t *shared;    /* bytes that each kernel is launched with, behind `functions` */
  lathe_cu_function functions[]; /* one a kernel */
} loaded;

/* Guards `loaded` of all modules and the lists of workplaces. */
void lathe_cuda_lock(void);
void lathe_cuda_unlock(void);

/* Outlives the run that it is about: stays until the thread's next failure. */
char *lathe_cuda_message(size_t *size);
/* Fills the error, if there is one to fill, with the thread's message. Returns the code. */
int32_t lathe_cuda_failed(lathe_error *error, int32_t code);
/* Writes the message by a format; returns the code. */
__attribute__((format(printf, 2, 3))) int32_t lathe_cuda_refuse(int32_t code, const char *format, ...);
/* The code of what a call of the driver came to, with its message where that is no success. */
int32_t lathe_cuda_result(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result);

/* Makes the context current, to give things back in it: tries again, since nobody else will. Whether it is. */
int lathe_cuda_enter(const loaded *l);
/* What there is of the module on a device, made when there is nothing; null without memory. Under the lock. */
loaded *lathe_cuda_find(lathe_cuda_module *module, int32_t ordinal);
/* Loads what is not loaded. Under the lock. */
int32_t lathe_cuda_ensure(loaded *l, const void *constants);
/* Takes it out of its module's list, with all that it has. Under the lock. */
void lathe_cuda_forget(loaded *l);

/* Gives a workplace a stream, so much memory, and what else it needs, in the current context. */
int32_t lathe_cuda_furnish(workplace *w, int64_t bytes);
/* Takes all that from it, in the current context. */
void lathe_cuda_strip(workplace *w);
/* Notes a command of the run in progress, whose arguments get the error; what is noted goes to the stream by flush, which whoever
 * transfers or waits calls first. */
int32_t lathe_cuda_record_launch(workplace *w, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count);
int32_t lathe_cuda_record_copy(workplace *w, lathe_cu_deviceptr to, lathe_cu_deviceptr from, size_t bytes);
int32_t lathe_cuda_record_fill(workplace *w, lathe_cu_deviceptr to, unsigned value, int bytesOfValue, size_t count);
int32_t lathe_cuda_flush(workplace *w);
/* Forgets all graphs, in the current context. */
void lathe_cuda_drop_graphs(workplace *w);
/* Waits for the oldest pending runs, until `left` are pending, and notes the first failure. In the current context. */
void lathe_cuda_collect(workplace *w, int left);

/* Bytes of pinned memory of a run: the generated code's, then the cells. */
static inline int64_t slotBytes(const lathe_cuda_module *m) {
  return (m->host_bytes + 63) / 64 * 64 + (8 * (int64_t)m->num_cells + 63) / 64 * 64;
}
static inline char *slotOf(const workplace *w, int slot) {
  return w->host ? w->host + slot * slotBytes(w->module->module) : NULL;
}

#endif
