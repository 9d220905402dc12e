/* What a session asks of the compiler: to cluster a pruned graph, and to compile a cluster for arguments at hand. A table
 * of C functions handed to the session in its options, so that the runtime links without MLIR; compiler/jit fills it in.
 * Structs grow only at their end and carry their size in struct_size. All functions may be called from several threads.
 *
 * A clustered graph is a GraphDef in which each cluster is one node of op "LatheLaunch":
 *   LatheLaunch(args: Targs..., handles: Thandles...) -> (results: Tresults...)
 *               {Targs, Thandles, Tresults: list(type), function: func, variables: int, reads, writes: list(bool),
 *                cluster: string}
 * Its inputs are the arguments, then `variables` handles (DT_RESOURCE, or the type itself for a reference) of variables
 * that the cluster reads and updates in place; the function in the library has the same order and marks references with
 * is_ref. Per handle: `reads`, whether the cluster needs the value that the variable has before (else it need not be
 * initialised), and `writes`, whether it has a value afterwards if it had none. `cluster` names it in dumps. */
#ifndef LATHE_CLUSTER_COMPILER_V1
#define LATHE_CLUSTER_COMPILER_V1

#include "runtime/abi/module_abi.h"

#include "runtime/abi/device_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_CLUSTER_COMPILER_VERSION 1

typedef struct lathe_bytes {
  const char *data;
  uint64_t size;
} lathe_bytes;

/* How to cluster. */
typedef struct lathe_cluster_options {
  uint32_t struct_size;
  int32_t mode; /* 0: only nodes that have no host kernel; 1: everything worth compiling; 2: nothing */
  int32_t min_size; /* smallest number of nodes worth a cluster when each of them has a host kernel; 0: the default */
  int32_t num_host_ops;
  const char *const *host_ops; /* ops that have a host kernel, sorted */
  const char *flags;           /* as LATHE_FLAGS: "force=NODE;forbid=NODE;isolate=NODE;dump=DIR", or NULL */
} lathe_cluster_options;

/* What to cluster: a pruned GraphDef with its library; tensor names ("x:0") of feeds and fetches, node names of targets.
 * Feeds and fetches keep their names in the result. */
typedef struct lathe_cluster_request {
  uint32_t struct_size;
  int32_t num_feeds, num_fetches, num_targets;
  lathe_bytes graph;
  const char *const *feeds;
  const char *const *fetches;
  const char *const *targets;
  const lathe_cluster_options *options;
} lathe_cluster_request;

/* One argument of a cluster, or one of its variables. */
typedef struct lathe_cluster_arg {
  uint32_t struct_size;
  int32_t dtype; /* a lathe_dtype */
  int32_t rank;
  int32_t is_variable;
  const int64_t *dims;
  const void *data; /* the value, which the compiler may fix; NULL: not known (or a variable without a value: rank -1) */
  int32_t same_as;  /* of a variable: 1 + the index of an earlier argument that is the same variable; 0: none */
} lathe_cluster_arg;

typedef struct lathe_compile_request {
  uint32_t struct_size;
  int32_t num_args; /* arguments, then variables */
  lathe_bytes graph; /* a GraphDef whose library holds the function */
  const char *function;
  const lathe_cluster_arg *const *args;
  int32_t threads;
  int32_t dynamic_dims; /* 1: make leading dimensions run-time sizes where possible */
  const char *cache_dir; /* objects kept by content hash; NULL: none */
  const char *cpu;       /* as `lathe compile --cpu`; NULL: the machine that runs this */
  const char *backend;   /* as `lathe compile --backend`; NULL: the default one */
} lathe_compile_request;

/* A compiled cluster. */
typedef struct lathe_compiled {
  uint32_t struct_size;
  int32_t num_args;
  const lathe_module *module; /* one entry; its inputs are named "arg0", "arg1" ... after the arguments that remained, and
                                 so are its variables; its outputs are the function's results */
  const uint8_t *constant;    /* per argument: 1 when its value was compiled in, so that it is part of the key. After a failure: when
                                 its value was; other values of the others fail alike */
  const uint8_t *dynamic;     /* per argument: 1 when any size of its first dimension is accepted */
  void *owner;
  /* Of a compilation that failed: a node of the main graph of the function that it failed at, for the flag
   * "isolate=NODE" of another cluster(), or NULL. Valid until release_compiled, which then is to be called too. */
  const char *failed_node;
  const lathe_device_module *device; /* of a module for a device with a memory of its own, else NULL */
} lathe_compiled;

typedef struct lathe_cluster_compiler {
  uint32_t struct_size;
  uint32_t version;
  void *context;
  /* The clustered GraphDef, or a message; 0 or a lathe_code. Either is released by release_bytes. */
  int32_t (*cluster)(void *context, const lathe_cluster_request *request, lathe_bytes *graph, lathe_bytes *error);
  int32_t (*compile)(void *context, const lathe_compile_request *request, lathe_compiled *compiled, lathe_bytes *error);
  void (*release_compiled)(void *context, lathe_compiled *compiled);
  void (*release_bytes)(void *context, lathe_bytes *bytes);
  /* Whether an op has a compiled form: where nodes without one cannot be. Absent in tables that end before it. */
  int32_t (*compiles_op)(void *context, const char *op);
} lathe_cluster_compiler;

/* What the compiler's shared library exports under the name lathe_compiles_op: whether an op has a compiled form. */
typedef int32_t (*lathe_compiles_op_fn)(const char *op);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_CLUSTER_COMPILER_V1 */
