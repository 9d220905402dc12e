/* The one layout shared by generated code, generated headers, the JIT and the runtime. C11 and C++17, nothing but
 * stdint and stddef. Structs grow only at their end and carry their size in struct_size; arrays of structs are arrays
 * of pointers, so that a reader built against an older text still finds every element.
 *
 * Words: an *entry* is one callable function of a module; a *symbol* is a size known at run time only (input symbols
 * are set by the caller, data symbols are written by run()); *variables* are state that outlives a call; the
 * *workspace* is scratch memory whose content means nothing between calls; a *site* is an operation that can fail.
 * Tensors are dense and row-major; bool is one byte (0 or 1), int4 one byte an element, complex two reals. */
#ifndef LATHE_ABI_V1
#define LATHE_ABI_V1

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_ABI_VERSION 1
/* Buffers aligned so run fastest; what run() requires is the alignment of the element type. The workspace must be
 * aligned so. */
#define LATHE_ALIGNMENT 64
/* A dimension in lathe_tensor_info.dims: >= 0 is the size; -1-k means "the value of symbol k"; LATHE_DIM_COMPUTED is an
 * expression of symbols, told by lathe_entry.dims. */
#define LATHE_DIM_COMPUTED INT64_MIN

/* Element types, by TensorFlow's numbers. */
typedef enum lathe_dtype {
  LATHE_FLOAT32 = 1,
  LATHE_FLOAT64 = 2,
  LATHE_INT32 = 3,
  LATHE_UINT8 = 4,
  LATHE_INT16 = 5,
  LATHE_INT8 = 6,
  LATHE_STRING = 7,
  LATHE_COMPLEX64 = 8,
  LATHE_INT64 = 9,
  LATHE_BOOL = 10,
  LATHE_QINT8 = 11,
  LATHE_QUINT8 = 12,
  LATHE_QINT32 = 13,
  LATHE_BFLOAT16 = 14,
  LATHE_QINT16 = 15,
  LATHE_QUINT16 = 16,
  LATHE_UINT16 = 17,
  LATHE_COMPLEX128 = 18,
  LATHE_FLOAT16 = 19,
  LATHE_UINT32 = 22,
  LATHE_UINT64 = 23,
  LATHE_FLOAT8_E5M2 = 24,
  LATHE_FLOAT8_E4M3FN = 25,
  LATHE_INT4 = 29,
  LATHE_UINT4 = 30
} lathe_dtype;

/* Return codes, by TensorFlow's numbers. */
typedef enum lathe_code {
  LATHE_OK = 0,
  LATHE_INVALID_ARGUMENT = 3,
  LATHE_RESOURCE_EXHAUSTED = 8,
  LATHE_FAILED_PRECONDITION = 9,
  LATHE_OUT_OF_RANGE = 11,
  LATHE_UNIMPLEMENTED = 12,
  LATHE_INTERNAL = 13
} lathe_code;

/* Calls fn(arg, begin, end) on disjoint ranges that cover [0, n), from any threads, and returns when all have returned;
 * 0 is success. Anything else makes run() fail with LATHE_INTERNAL. */
typedef int (*lathe_parallel_for)(void *ctx, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg, int64_t n);

typedef struct lathe_tensor_info {
  uint32_t struct_size;
  int32_t dtype;        /* a lathe_dtype */
  int32_t element_size; /* bytes */
  int32_t rank;
  const char *name;    /* the user's key: signature key, else node name */
  const char *tensor;  /* TensorFlow's tensor name "x:0", or "" */
  const int64_t *dims; /* see LATHE_DIM_COMPUTED */
} lathe_tensor_info;

typedef struct lathe_symbol_info {
  uint32_t struct_size;
  int32_t is_data; /* 0: set by the caller before run(); 1: written by run() */
  int64_t bound;   /* largest value allowed, -1 when there is none at compile time */
  const char *name;
} lathe_symbol_info;

/* A place that can fail. */
typedef struct lathe_site_info {
  uint32_t struct_size;
  int32_t reserved;
  const char *node; /* name of the node in the user's graph */
  const char *op;   /* its operation */
} lathe_site_info;

/* Written by run() when it fails. */
typedef struct lathe_error {
  uint32_t struct_size;
  int32_t code;        /* a lathe_code; equals what run() returned */
  int32_t site;        /* index into lathe_module.sites, -1: the arguments themselves */
  int32_t reserved;
  const char *message; /* static storage: "node 'x' (Op): what" */
} lathe_error;

/* Called by modules emitted for profiling before (phase 0) and after (phase 1) each kernel. */
typedef void (*lathe_trace)(void *ctx, int32_t step, int32_t phase);

typedef struct lathe_run_args {
  uint32_t struct_size;
  int32_t threads;           /* how many threads parallel_for has; 1 without */
  const void *const *inputs; /* num_inputs pointers */
  void *const *outputs;      /* num_outputs pointers, none overlapping an input, a variable or another output */
  void *const *variables;    /* num_variables pointers, read and updated in place; NULL when there are none */
  int64_t *sizes;            /* num_symbols values; NULL when there are none */
  void *workspace;           /* aligned to LATHE_ALIGNMENT */
  int64_t workspace_size;
  lathe_parallel_for parallel_for; /* NULL: run on the calling thread */
  void *parallel_ctx;
  lathe_error *error; /* may be NULL */
  lathe_trace trace;  /* may be NULL */
  void *trace_ctx;
} lathe_run_args;

typedef struct lathe_entry {
  uint32_t struct_size;
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t reserved;
  const char *name;
  const lathe_tensor_info *const *inputs;
  const lathe_tensor_info *const *outputs;
  /* Bytes of workspace that run() needs at these sizes with that many threads; < 0 when a size is out of bounds. Only
   * the input symbols are read. Does not allocate. */
  int64_t (*workspace_size)(const int64_t *sizes, int32_t threads);
  /* Sets the data symbols to the largest value they can take, given the input symbols: what buffers must hold. */
  void (*bound_sizes)(int64_t *sizes);
  /* Writes the dimensions of all inputs, then all outputs, one after the other. */
  void (*dims)(const int64_t *sizes, int64_t *dims);
  /* 0 is success, else a lathe_code. Allocates nothing, locks nothing, makes no system call, apart from what
   * parallel_for does. May run concurrently on different arguments. */
  int32_t (*run)(const lathe_run_args *args);
} lathe_entry;

typedef struct lathe_variable_info {
  uint32_t struct_size;
  int32_t reserved;
  const lathe_tensor_info *tensor;
  int64_t initial_offset; /* of the initial value in the constants, -1: none, an entry initialises it */
} lathe_variable_info;

/* A step is a kernel call, in program order; for profiles. */
typedef struct lathe_step_info {
  uint32_t struct_size;
  int32_t entry;
  const char *nodes; /* names of the nodes it computes, separated by ';' */
  const char *kernel;
  /* Work of one call: operations (convolutions as if computed directly), bytes of constants it reads, bytes of other
   * operands and results. All 0 when a size is known at run time only. */
  int64_t flops, constant_bytes, other_bytes;
} lathe_step_info;

typedef struct lathe_module {
  uint32_t struct_size;
  uint32_t abi_version;
  const char *name;     /* the symbol prefix */
  const char *producer; /* compiler version */
  const char *target;   /* triple and CPU */
  int32_t num_entries;
  int32_t num_symbols;
  int32_t num_variables;
  int32_t num_sites;
  int32_t num_steps; /* 0 unless emitted for profiling */
  int32_t reserved;
  const lathe_entry *const *entries;
  const lathe_symbol_info *const *symbols;
  const lathe_variable_info *const *variables;
  const lathe_site_info *const *sites;
  const lathe_step_info *const *steps;
  uint64_t constants_size;
  const void *constants; /* NULL when they are in an external file: then *bound_weights, once bound */
  /* External weights, else NULL: the constants are the content of a file (see lathe_weights_header). The memory must
   * stay valid and unchanged; shared by all users of the module. 0 is success. */
  int32_t (*bind_weights)(const void *data, uint64_t size);
  const void *const *bound_weights; /* where bind_weights keeps the address of the constants; NULL without it */
} lathe_module;

/* First LATHE_WEIGHTS_OFFSET bytes of an external weights file; the constants follow. */
#define LATHE_WEIGHTS_OFFSET 4096
typedef struct lathe_weights_header {
  char magic[8]; /* "LATHEWT1" */
  uint64_t constants_size;
  uint64_t hash; /* of the constants; the module knows which one it was compiled with */
} lathe_weights_header;

/* What a shared library exports under the name lathe_module_query. */
typedef const lathe_module *(*lathe_module_query_fn)(void);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_ABI_V1 */
