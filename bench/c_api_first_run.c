/* The first runs of a graph through TensorFlow's C interface: prints the milliseconds of import and session, of the first run and of the
 * fastest of the next hundred. For bench/c_api.py. usage: c_api_first_run GRAPH.pb INPUT OUTPUT DIMENSION... */
#include "tensorflow/c/c_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void check(TF_Status *status, const char *what) {
  if (TF_GetCode(status) == TF_OK)
    return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 12) {
    fprintf(stderr, "usage: %s GRAPH.pb INPUT OUTPUT DIMENSION...\n", argv[0]);
    return 1;
  }
  FILE *file = fopen(argv[1], "rb");
  static char bytes[1 << 24];
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (!size) {
    fprintf(stderr, "cannot read '%s'\n", argv[1]);
    return 1;
  }
  fclose(file);
  double start = now();
  TF_Status *status = TF_NewStatus();
  TF_Graph *graph = TF_NewGraph();
  TF_Buffer *buffer = TF_NewBufferFromString(bytes, size);
  TF_ImportGraphDefOptions *import = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, buffer, import, status);
  check(status, "import");
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_NewSession(graph, options, status);
  check(status, "session");
  double opened = now();
  TF_Output input = {TF_GraphOperationByName(graph, argv[2]), 0}, output = {TF_GraphOperationByName(graph, argv[3]), 0};
  if (!input.oper || !output.oper) {
    fprintf(stderr, "the graph has no '%s' or no '%s'\n", argv[2], argv[3]);
    return 1;
  }
  int64_t dims[8], count = 1;
  for (int i = 4; i < argc; ++i)
    count *= dims[i - 4] = atoll(argv[i]);
  TF_Tensor *value = TF_AllocateTensor(TF_FLOAT, dims, argc - 4, (size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; ++i)
    ((float *)TF_TensorData(value))[i] = (float)(i % 17) / 17;
  double first = 0, best = 1e30;
  for (int i = 0; i < 101; ++i) {
    TF_Tensor *result = NULL;
    double before = now();
    TF_SessionRun(session, NULL, &input, &value, 1, &output, &result, 1, NULL, 0, NULL, status);
    double spent = now() - before;
    check(status, "run");
    TF_DeleteTensor(result);
    if (i == 0)
      first = spent;
    else if (spent < best)
      best = spent;
  }
  printf("%.2f %.2f %.4f\n", opened - start, first, best);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteImportGraphDefOptions(import);
  TF_DeleteBuffer(buffer);
  TF_DeleteGraph(graph);
  TF_DeleteTensor(value);
  TF_DeleteStatus(status);
  return 0;
}
