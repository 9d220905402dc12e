/* How long a program waits for its first result: a frozen graph through TensorFlow's C interface.
 *
 *   cc -O2 -I runtime/c_api/include bench/first_run.c -o build/bin/first_run -L build/lib -ltensorflow -Wl,-rpath,build/lib
 *   LATHE_CACHE_DIR=/tmp/cache build/bin/first_run graph.pb image:0=1x28x28x1 Identity:0
 *
 * Prints milliseconds: reading the graph and making the session, the first run (which compiles, or takes what the cache has), the
 * median of the next 20. Links with TensorFlow's library as well. */
#include <tensorflow/c/c_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void check(TF_Status *s) {
  if (TF_GetCode(s) != TF_OK) {
    fprintf(stderr, "%s\n", TF_Message(s));
    exit(1);
  }
}

static TF_Output find(TF_Graph *graph, char *name) {
  char *colon = strchr(name, ':');
  TF_Output out = {NULL, colon ? atoi(colon + 1) : 0};
  if (colon)
    *colon = 0;
  out.oper = TF_GraphOperationByName(graph, name);
  if (!out.oper) {
    fprintf(stderr, "the graph has no node '%s'\n", name);
    exit(1);
  }
  return out;
}

static int order(const void *a, const void *b) {
  const double d = *(const double *)a - *(const double *)b;
  return (d > 0) - (d < 0);
}

int main(int argc, char **argv) {
  if (argc != 4 || !strchr(argv[2], '=')) {
    fprintf(stderr, "usage: first_run GRAPH.pb INPUT=1x28x28x1 OUTPUT\n");
    return 2;
  }
  const double start = now();
  FILE *file = fopen(argv[1], "rb");
  if (!file) {
    perror(argv[1]);
    return 1;
  }
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char *bytes = malloc((size_t)size);
  if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
    return 1;
  fclose(file);

  TF_Status *s = TF_NewStatus();
  TF_Graph *graph = TF_NewGraph();
  TF_Buffer *buffer = TF_NewBufferFromString(bytes, (size_t)size);
  TF_ImportGraphDefOptions *import = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, buffer, import, s);
  check(s);
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_NewSession(graph, options, s);
  check(s);

  char *shape = strchr(argv[2], '=');
  *shape++ = 0;
  int64_t dims[8], count = 1;
  int rank = 0;
  for (char *d = strtok(shape, "x"); d && rank < 8; d = strtok(NULL, "x"))
    count *= dims[rank++] = atoll(d);
  const TF_Output in = find(graph, argv[2]), out = find(graph, argv[3]);
  TF_Tensor *x = TF_AllocateTensor(TF_OperationOutputType(in), dims, rank, sizeof(float) * (size_t)count);
  if (!x || TF_TensorType(x) != TF_FLOAT)
    return 1;
  for (int64_t i = 0; i < count; ++i)
    ((float *)TF_TensorData(x))[i] = (float)(i % 17) / 17;

  double made = now() - start, first = 0, later[20];
  for (int run = 0; run <= 20; ++run) {
    TF_Tensor *y = NULL;
    const double before = now();
    TF_SessionRun(session, NULL, &in, &x, 1, &out, &y, 1, NULL, 0, NULL, s);
    const double took = now() - before;
    check(s);
    TF_DeleteTensor(y);
    if (run == 0)
      first = took;
    else
      later[run - 1] = took;
  }
  qsort(later, 20, sizeof(double), order);
  printf("graph and session %.1f ms, first run %.1f ms, later runs %.3f ms\n", made, first, later[10]);
  TF_DeleteTensor(x);
  TF_CloseSession(session, s);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteImportGraphDefOptions(import);
  TF_DeleteBuffer(buffer);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(s);
  free(bytes);
  return 0;
}
