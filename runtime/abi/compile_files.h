/* What a program asks of the compiler's library to compile a model ahead of time, as `lathe compile` does. C, structs grow only at
 * their end and carry their size in struct_size. */
#ifndef LATHE_COMPILE_FILES_V1
#define LATHE_COMPILE_FILES_V1

#include "runtime/abi/cluster_compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lathe_files_request {
  uint32_t struct_size;
  int32_t num_options;
  const char *path;   /* of the model; NULL: the bytes below */
  lathe_bytes model;  /* of a GraphDef, MetaGraph, SavedModel or TensorFlow Lite file; checkpoints are not looked for */
  const char *prefix; /* path and stem of the files to write */
  const char *emit;   /* what to write: "obj,header,so,a,asm,llvm,ptx" or some of these, or "tflite" */
  const char *const *options; /* num_options pairs: the name of an option of `lathe compile` without its dashes, its value */
  /* Ops with a host kernel, and those that the executor runs itself, for the option allow-host; both sorted. */
  int32_t num_host_ops, num_executor_ops;
  const char *const *host_ops;
  const char *const *executor_ops;
} lathe_files_request;

/* What a shared library exports under the name lathe_compile_files. Returns 0 or a lathe_code. `report` gets a JSON object as
 * `lathe compile --json` prints it, `messages` warnings, or what is wrong, one problem a line; both are to be released by
 * release_bytes of the library's lathe_cluster_compiler. May be called from several threads. */
typedef int32_t (*lathe_compile_files_fn)(const lathe_files_request *request, lathe_bytes *report, lathe_bytes *messages);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_COMPILE_FILES_V1 */
