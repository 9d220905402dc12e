/* What a program asks of the compiler's library to compile a whole model into its own memory. C, structs grow only at their end and
 * carry their size in struct_size. */
#ifndef LATHE_LOAD_MODEL_V1
#define LATHE_LOAD_MODEL_V1

#include "runtime/abi/cluster_compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lathe_load_request {
  uint32_t struct_size;
  int32_t num_options;
  lathe_bytes model; /* the bytes of a GraphDef, MetaGraph, SavedModel or TensorFlow Lite file; checkpoints are not looked for */
  const char *const *options; /* num_options pairs: the name of an option of `lathe compile` without its dashes, its value */
  /* Inputs that become constants, by their tensors' names: num_values of them. The module then lacks them. */
  int32_t num_values;
  const char *const *value_names;
  const lathe_cluster_arg *const *values;
} lathe_load_request;

/* A model in memory, with one set of variables. */
typedef struct lathe_loaded_model {
  uint32_t struct_size;
  const lathe_module *module;
  void *const *variables; /* as lathe_run_args takes them, with their initial values */
  void *owner;
} lathe_loaded_model;

/* Exported as lathe_load_model. Returns 0 or a lathe_code; `messages` gets what is wrong, one problem a line, to be released by
 * release_bytes of the library's lathe_cluster_compiler. May be called from several threads. */
typedef int32_t (*lathe_load_model_fn)(const lathe_load_request *request, lathe_loaded_model *loaded, lathe_bytes *messages);
/* Exported as lathe_release_model: nothing of the model may be used afterwards. */
typedef void (*lathe_release_model_fn)(lathe_loaded_model *loaded);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_LOAD_MODEL_V1 */
