/* Objects that also call host kernels: what a generated object holds, and the functions of liblathe_host.a that run it. C11
 * and C++17. Structs grow only at their end and carry their size in struct_size. */
#ifndef LATHE_HOSTED_V1
#define LATHE_HOSTED_V1

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_HOSTED_VERSION 2

/* An element of a LATHE_STRING tensor; bytes, not terminated. */
typedef struct lathe_host_string {
  const char *data;
  uint64_t size;
} lathe_host_string;

/* A dense row-major tensor: elements, or lathe_host_string for LATHE_STRING. */
typedef struct lathe_host_tensor {
  uint32_t struct_size;
  int32_t dtype; /* a lathe_dtype */
  int32_t rank;
  int32_t reserved;
  const int64_t *dims;
  const void *data;
} lathe_host_tensor;

/* What a generated object exports as PREFIX_hosted(). */
typedef struct lathe_hosted_module {
  uint32_t struct_size;
  uint32_t version;
  const char *name;
  const lathe_module *(*clusters)(void); /* the compiled parts: an entry each; NULL when nothing is compiled */
  const void *graph;                     /* nodes and constants, see runtime/hosted/Graph.h */
  uint64_t graph_size;
  int32_t num_kernels;
  int32_t reserved;
  const void *const *kernels; /* the host kernels that the graph uses: this is what makes a linker take them */
  /* Where the compiled parts run on devices, else NULL; tables may end before them. */
  const struct lathe_device_module *(*device)(void);
  const void *devices; /* what liblathe_host.a has for such devices, taken by the linker for the same reason */
} lathe_hosted_module;

/* An input or output of an entry. */
typedef struct lathe_hosted_info {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank; /* -1: any */
  int32_t reserved;
  const char *name;    /* the user's key */
  const char *tensor;  /* TensorFlow's tensor name "x:0" */
  const int64_t *dims; /* -1: any size */
} lathe_hosted_info;

/* An instance: tables, queues and other state of its own. For one thread at a time. */
typedef struct lathe_hosted lathe_hosted;

/* Makes an instance and runs the model's initialiser, if it has one. `threads`: 1 runs everything on the caller's thread.
 * NULL only without memory; lathe_hosted_error tells whether it can run. */
lathe_hosted *lathe_hosted_new(const lathe_hosted_module *module, int32_t threads);
void lathe_hosted_delete(lathe_hosted *model);
/* Why the last call failed, "" when it did not; valid until the next call. The code is a lathe_code. */
const char *lathe_hosted_error(const lathe_hosted *model);
int32_t lathe_hosted_code(const lathe_hosted *model);

int32_t lathe_hosted_num_entries(const lathe_hosted *model);
const char *lathe_hosted_entry_name(const lathe_hosted *model, int32_t entry);
int32_t lathe_hosted_num_inputs(const lathe_hosted *model, int32_t entry);
int32_t lathe_hosted_num_outputs(const lathe_hosted *model, int32_t entry);
const lathe_hosted_info *lathe_hosted_input(const lathe_hosted *model, int32_t entry, int32_t index);
const lathe_hosted_info *lathe_hosted_output(const lathe_hosted *model, int32_t entry, int32_t index);

/* Runs an entry on its inputs, which are read during the call only. 0 is success, else a lathe_code. */
int32_t lathe_hosted_run(lathe_hosted *model, int32_t entry, const lathe_host_tensor *const *inputs, int32_t num_inputs);
/* A result of the last successful run, valid until the next one; NULL when there is none. */
const lathe_host_tensor *lathe_hosted_result(const lathe_hosted *model, int32_t index);

/* What a shared library exports under the name lathe_hosted_query. */
typedef const lathe_hosted_module *(*lathe_hosted_query_fn)(void);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_HOSTED_V1 */

#ifndef LATHE_HOSTED_DEVICE_V1
#define LATHE_HOSTED_DEVICE_V1
#ifdef __cplusplus
extern "C" {
#endif

/* lathe_hosted_new for objects whose compiled parts run on a device: on the one with this number, where lathe_hosted_new takes number 0.
 * What keeps it from being used is told by runs that come to a compiled part. */
lathe_hosted *lathe_hosted_new_on(const lathe_hosted_module *module, int32_t threads, int32_t device);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_HOSTED_DEVICE_V1 */
