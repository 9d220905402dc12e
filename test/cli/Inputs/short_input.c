/* Runs the module `loop` on heap blocks, the first input argv[1] bytes too short. */
#include "loop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *block(const lathe_tensor_info *t, long missing) {
  long bytes = t->element_size;
  for (int d = 0; d < t->rank; ++d)
    bytes *= t->dims[d] < 0 ? 1 : t->dims[d];
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes - missing))
    exit(9);
  memset(p, 0, bytes - missing);
  return p;
}

int main(int argc, char **argv) {
  long missing = argc > 1 ? atol(argv[1]) : 0;
  const lathe_entry *e = loop_module()->entries[0];
  const void *inputs[16];
  void *outputs[16];
  for (int i = 0; i < e->num_inputs; ++i)
    inputs[i] = block(e->inputs[i], i == 0 ? missing : 0);
  for (int i = 0; i < e->num_outputs; ++i)
    outputs[i] = block(e->outputs[i], 0);
  int64_t sizes[16];
  for (int i = 0; i < 16; ++i)
    sizes[i] = 1;
  lathe_error error = {0};
  error.struct_size = sizeof(error);
  lathe_run_args args = {0};
  args.struct_size = sizeof(args);
  args.inputs = inputs;
  args.outputs = outputs;
  args.sizes = sizes;
  args.threads = 1;
  args.error = &error;
  args.workspace_size = e->workspace_size(sizes, 1);
  void *workspace = NULL;
  if (posix_memalign(&workspace, 64, args.workspace_size))
    return 9;
  args.workspace = workspace;
  printf("ran: %d\n", e->run(&args));
  for (int i = 0; i < e->num_inputs; ++i)
    free((void *)inputs[i]);
  for (int i = 0; i < e->num_outputs; ++i)
    free(outputs[i]);
  free(workspace);
  return 0;
}
