/* Runs the module `m` on files: FOLDER/in<i> holds the bytes of input i, FOLDER/out<i> gets those of output i. */
#include "m.h"
#include <stdio.h>
#include <stdlib.h>

static long bytesOf(const lathe_tensor_info *t) {
  long bytes = t->element_size;
  for (int d = 0; d < t->rank; ++d)
    bytes *= t->dims[d] < 0 ? 1 : t->dims[d];
  return bytes;
}

static void *block(long bytes) {
  void *p = NULL;
  return posix_memalign(&p, 64, bytes ? bytes : 64) ? NULL : p;
}

static FILE *openFile(const char *folder, const char *kind, int i, const char *mode) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s%d", folder, kind, i);
  return fopen(path, mode);
}

int main(int argc, char **argv) {
  const lathe_entry *e = m_module()->entries[0];
  const void *inputs[64];
  void *outputs[64];
  int64_t sizes[1] = {1};
  if (argc != 2 || e->num_inputs > 64 || e->num_outputs > 64)
    return 9;
  for (int i = 0; i < e->num_inputs; ++i) {
    long bytes = bytesOf(e->inputs[i]);
    void *p = block(bytes);
    FILE *f = openFile(argv[1], "in", i, "rb");
    if (!p || !f || fread(p, 1, bytes, f) != (size_t)bytes)
      return 9;
    fclose(f);
    inputs[i] = p;
  }
  for (int i = 0; i < e->num_outputs; ++i)
    outputs[i] = block(bytesOf(e->outputs[i]));
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
  args.workspace = block(args.workspace_size);
  if (e->run(&args))
    return 1;
  for (int i = 0; i < e->num_outputs; ++i) {
    FILE *f = openFile(argv[1], "out", i, "wb");
    if (!f || fwrite(outputs[i], 1, bytesOf(e->outputs[i]), f) != (size_t)bytesOf(e->outputs[i]))
      return 9;
    fclose(f);
  }
  return 0;
}
