/* Calls as the bindings of other languages make them: what they leave null, whose memory they hand over, in which order they ask. Prints the same
 * with TensorFlow's library. usage: bindings SAMPLES */
#include "support.h"

/* As Go reads an attribute: what it is first, then room of just that size. */
static void printAttr(TF_Operation *op, const char *name) {
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(op, name, status);
  if (TF_GetCode(status) != TF_OK) {
    printf("  %s: code %d\n", name, (int)TF_GetCode(status));
    TF_SetStatus(status, TF_OK, "");
    return;
  }
  printf("  %s: list %d of %lld, type %d, total %lld:", name, m.is_list, (long long)m.list_size, (int)m.type, (long long)m.total_size);
  int n = m.is_list ? (int)m.list_size : 1;
  if (m.type == TF_ATTR_INT) {
    int64_t *v = calloc((size_t)n + 1, sizeof *v);
    if (m.is_list)
      TF_OperationGetAttrIntList(op, name, v, n, status);
    else
      TF_OperationGetAttrInt(op, name, v, status);
    for (int i = 0; i < n; ++i)
      printf(" %lld", (long long)v[i]);
    free(v);
  } else if (m.type == TF_ATTR_TYPE) {
    TF_DataType *v = calloc((size_t)n + 1, sizeof *v);
    if (m.is_list)
      TF_OperationGetAttrTypeList(op, name, v, n, status);
    else
      TF_OperationGetAttrType(op, name, v, status);
    for (int i = 0; i < n; ++i)
      printf(" %d", (int)v[i]);
    free(v);
  } else if (m.type == TF_ATTR_STRING) {
    char *bytes = calloc((size_t)m.total_size + 1, 1);
    if (m.is_list) {
      void **v = calloc((size_t)n + 1, sizeof *v);
      size_t *lengths = calloc((size_t)n + 1, sizeof *lengths);
      TF_OperationGetAttrStringList(op, name, v, lengths, n, bytes, (size_t)m.total_size, status);
      for (int i = 0; i < n; ++i)
        printf(" '%.*s'", (int)lengths[i], (char *)v[i]);
      free(v);
      free(lengths);
    } else {
      TF_OperationGetAttrString(op, name, bytes, (size_t)m.total_size, status);
      printf(" '%.*s'", (int)m.total_size, bytes);
    }
    free(bytes);
  } else if (m.type == TF_ATTR_SHAPE && !m.is_list) {
    int64_t dims[8];
    TF_OperationGetAttrShape(op, name, dims, (int)m.total_size, status);
    for (int i = 0; i < m.total_size; ++i)
      printf(" %lld", (long long)dims[i]);
  } else if (m.type == TF_ATTR_BOOL && !m.is_list) {
    unsigned char v = 9;
    TF_OperationGetAttrBool(op, name, &v, status);
    printf(" %d", v);
  } else if (m.type == TF_ATTR_TENSOR && !m.is_list) {
    TF_Tensor *t = NULL;
    TF_OperationGetAttrTensor(op, name, &t, status);
    if (t)
      printf(" %d dimensions, %zu bytes", TF_NumDims(t), TF_TensorByteSize(t));
    TF_DeleteTensor(t);
  }
  printf(" (%d)\n", (int)TF_GetCode(status));
  TF_SetStatus(status, TF_OK, "");
}

static TF_Operation *convolution(TF_Graph *g, TF_Operation *x, TF_Operation *w) {
  int64_t strides[] = {1, 2, 2, 1};
  TF_OperationDescription *d = TF_NewOperation(g, "Conv2D", "conv");
  TF_AddInput(d, at(x, 0));
  TF_AddInput(d, at(w, 0));
  TF_SetAttrIntList(d, "strides", strides, 4);
  TF_SetAttrString(d, "padding", "SAME", 4);
  TF_Operation *op = TF_FinishOperation(d, status);
  ok("conv");
  return op;
}

/* Go: every operation of a graph with all of its attributes, outputs and consumers. */
static void walk(TF_Graph *g) {
  size_t position = 0;
  TF_Operation *op;
  while ((op = TF_GraphNextOperation(g, &position))) {
    printf("%s (%s) on '%s': %d in, %d out, %d control in\n", TF_OperationName(op), TF_OperationOpType(op), TF_OperationDevice(op),
           TF_OperationNumInputs(op), TF_OperationNumOutputs(op), TF_OperationNumControlInputs(op));
    for (int i = 0; i < TF_OperationNumOutputs(op); ++i) {
      int consumers = TF_OperationOutputNumConsumers(at(op, i)), rank = TF_GraphGetTensorNumDims(g, at(op, i), status);
      TF_Input *list = calloc((size_t)consumers + 1, sizeof *list);
      int64_t dims[8] = {0};
      TF_OperationOutputConsumers(at(op, i), list, consumers);
      if (rank > 0)
        TF_GraphGetTensorShape(g, at(op, i), dims, rank, status);
      printf("  output %d: type %d, rank %d, first %lld, %d consumers%s%s\n", i, (int)TF_OperationOutputType(at(op, i)), rank, (long long)dims[0],
             consumers, consumers ? ", first " : "", consumers ? TF_OperationName(list[0].oper) : "");
      free(list);
    }
    const char *names[] = {"dtype", "shape", "value", "T", "strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "dilations", "missing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
      printAttr(op, names[i]);
  }
}

/* Rust and Go: a graph's bytes come in a buffer that borrows them, so there is nothing to free. */
static void importBorrowed(TF_Graph *from) {
  TF_Buffer *out = TF_NewBuffer();
  TF_GraphToGraphDef(from, out, status);
  ok("graph def");
  TF_Buffer *borrowed = TF_NewBuffer();
  char *copy = malloc(out->length);
  memcpy(copy, out->data, out->length);
  borrowed->data = copy;
  borrowed->length = out->length;
  borrowed->data_deallocator = NULL;
  TF_DeleteBuffer(out);
  TF_Graph *g = TF_NewGraph();
  for (int i = 0; i < 2; ++i) {
    TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(o, i ? "again" : "");
    TF_ImportGraphDefOptionsSetDefaultDevice(o, i ? "/cpu:0" : "");
    TF_ImportGraphDefResults *r = TF_GraphImportGraphDefWithResults(g, borrowed, o, status);
    ok("import");
    TF_DeleteImportGraphDefResults(r);
    TF_DeleteImportGraphDefOptions(o);
  }
  TF_DeleteBuffer(borrowed);
  free(copy);
  TF_Operation *twice = TF_GraphOperationByName(g, "again/conv");
  printf("imported: %d %d, on '%s'\n", TF_GraphOperationByName(g, "conv") != NULL, twice != NULL, twice ? TF_OperationDevice(twice) : "?");
  TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
  TF_Buffer *garbage = TF_NewBufferFromString("no graph", 8);
  TF_GraphImportGraphDef(g, garbage, o, status);
  code("import of garbage");
  TF_DeleteBuffer(garbage);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteGraph(g);
}

/* Go: gradients without a prefix and without what comes in; a session's devices; a run of operations alone, nothing else. */
static void gradientsAndRuns(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *x = placeholder(g, "x", TF_FLOAT, NULL, 0);
  TF_OperationDescription *d = TF_NewOperation(g, "Square", "y");
  TF_AddInput(d, at(x, 0));
  TF_Operation *y = TF_FinishOperation(d, status);
  ok("square");
  TF_Output from = at(y, 0), by = at(x, 0), dy[2];
  TF_AddGradientsWithPrefix(g, NULL, &from, 1, &by, 1, NULL, status, dy);
  ok("gradients");
  TF_AddGradientsWithPrefix(g, "mine", &from, 1, &by, 1, dy, status, dy + 1);
  ok("gradients under a prefix");
  printf("prefix: %d\n", strncmp(TF_OperationName(dy[1].oper), "mine", 4) == 0);
  d = TF_NewOperation(g, "NoOp", "nothing");
  TF_AddControlInput(d, y);
  TF_Operation *nothing = TF_FinishOperation(d, status);
  ok("no-op");
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_SetTarget(o, "");
  TF_SetConfig(o, "", 0, status);
  ok("empty config");
  TF_Session *s = TF_NewSession(g, o, status);
  ok("session");
  TF_DeleteSessionOptions(o);
  TF_DeviceList *devices = TF_SessionListDevices(s, status);
  ok("devices");
  for (int i = 0; i < TF_DeviceListCount(devices); ++i) {
    const char *name = TF_DeviceListName(devices, i, status), *type = TF_DeviceListType(devices, i, status);
    printf("device %s, %s, memory %d\n", name, type, TF_DeviceListMemoryBytes(devices, i, status) >= 0);
  }
  TF_DeviceListName(devices, 99, status);
  code("device 99");
  TF_DeleteDeviceList(devices);
  float three = 3;
  TF_Tensor *in = floats(NULL, 0, &three), *out[2] = {NULL, NULL};
  const TF_Operation *targets[] = {nothing};
  TF_SessionRun(s, NULL, &by, &in, 1, dy, out, 2, targets, 1, NULL, status);
  ok("run");
  printf("gradients %g %g\n", *(float *)TF_TensorData(out[0]), *(float *)TF_TensorData(out[1]));
  TF_SessionRun(s, NULL, &by, &in, 1, NULL, NULL, 0, targets, 1, NULL, status);
  ok("run of a target");
  TF_SessionRun(s, NULL, NULL, NULL, 0, dy, out, 1, NULL, 0, NULL, status);
  code("run without its feed");
  TF_DeleteTensor(in);
  TF_DeleteTensor(out[0]);
  TF_DeleteTensor(out[1]);
  /* Rust: closed and deleted after its graph */
  TF_CloseSession(s, status);
  ok("close");
  TF_DeleteGraph(g);
  TF_DeleteSession(s, status);
  ok("delete");
}

/* Java and Go load models without asking for the MetaGraph, and never look at the options again. */
static void load(const char *samples) {
  char path[4096];
  snprintf(path, sizeof path, "%s/text_classifier/saved_model", samples);
  const char *tags[] = {"serve"}, *wrong[] = {"train"};
  TF_Graph *g = TF_NewGraph();
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_Session *s = TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, NULL, status);
  ok("load");
  TF_DeleteSessionOptions(o);
  TF_Output in = at(TF_GraphOperationByName(g, "serving_default_text"), 0), result = at(TF_GraphOperationByName(g, "StatefulPartitionedCall"), 0);
  int64_t one = 1;
  TF_Tensor *text = TF_AllocateTensor(TF_STRING, &one, 1, sizeof(TF_TString)), *out = NULL;
  TF_StringInit(TF_TensorData(text));
  TF_StringCopy(TF_TensorData(text), "a very good film", 16);
  TF_SessionRun(s, NULL, &in, &text, 1, &result, &out, 1, NULL, 0, NULL, status);
  ok("run");
  printf("scores: %d dimensions, %lld rows\n", TF_NumDims(out), (long long)TF_Dim(out, 0));
  TF_StringDealloc(TF_TensorData(text));
  TF_DeleteTensor(text);
  TF_DeleteTensor(out);
  TF_CloseSession(s, status);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
  g = TF_NewGraph();
  o = TF_NewSessionOptions();
  s = TF_LoadSessionFromSavedModel(o, NULL, path, wrong, 1, g, NULL, status);
  code("tags that no graph has");
  printf("no session: %d\n", s == NULL);
  TF_DeleteSessionOptions(o);
  TF_DeleteGraph(g);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  status = TF_NewStatus();
  TF_Graph *g = TF_NewGraph();
  const int64_t image[] = {-1, 8, 8, 3}, kernel[] = {3, 3, 3, 4};
  float *weights = calloc(3 * 3 * 3 * 4, sizeof *weights);
  TF_Operation *x = placeholder(g, "x", TF_FLOAT, image, 4), *w = constant(g, "w", floats(kernel, 4, weights));
  free(weights);
  convolution(g, x, w);
  walk(g);
  importBorrowed(g);
  TF_DeleteGraph(g);
  gradientsAndRuns();
  load(argv[1]);
  TF_DeleteStatus(status);
  return 0;
}
