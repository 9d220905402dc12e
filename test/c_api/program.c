/* One source for either library: what it prints is the same with TensorFlow's and with ours. `program SAMPLES` works with the sample
 * models in that folder. Names that a library makes up and messages are not printed. */
#include "support.h"

static void operations(void) {
  TF_Graph *g = TF_NewGraph();
  int64_t xs[] = {-1, 3}, ws[] = {3, 2};
  float w[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 0, -1, 2, 2, 2};
  TF_Operation *px = placeholder(g, "x", TF_FLOAT, xs, 2), *pw = constant(g, "w", floats(ws, 2, w));
  TF_Operation *y = binary(g, "MatMul", "y", at(px, 0), at(pw, 0));
  TF_OperationDescription *d = TF_NewOperation(g, "Relu", "r");
  TF_AddInput(d, at(y, 0));
  TF_AddControlInput(d, pw);
  TF_ColocateWith(d, y);
  TF_SetDevice(d, "/device:CPU:0");
  TF_Operation *r = TF_FinishOperation(d, status);
  ok("r");
  d = TF_NewOperation(g, "ConcatV2", "c");
  TF_Output list[] = {at(y, 0), at(r, 0)};
  TF_AddInputList(d, list, 2);
  TF_AddInput(d, at(constant(g, "axis", int32(1)), 0));
  TF_Operation *c = TF_FinishOperation(d, status);
  ok("c");
  printShape(g, at(y, 0));
  printShape(g, at(c, 0));
  size_t pos = 0;
  TF_Operation *op;
  while ((op = TF_GraphNextOperation(g, &pos)))
    printf("%s %s inputs %d outputs %d controls %d/%d device '%s'\n", TF_OperationName(op), TF_OperationOpType(op), TF_OperationNumInputs(op),
           TF_OperationNumOutputs(op), TF_OperationNumControlInputs(op), TF_OperationNumControlOutputs(op), TF_OperationDevice(op));
  TF_Input consumers[4];
  int n = TF_OperationOutputConsumers(at(y, 0), consumers, 4);
  printf("consumers of y: %d of %d, first %s:%d\n", n, TF_OperationOutputNumConsumers(at(y, 0)), TF_OperationName(consumers[0].oper), consumers[0].index);
  printf("list 'values' of c: %d, type %d\n", TF_OperationInputListLength(c, "values", status), (int)TF_OperationOutputType(at(c, 0)));
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(r, "_class", status);
  ok("_class");
  printf("_class: list %d of %lld, type %d, %lld bytes\n", m.is_list, (long long)m.list_size, (int)m.type, (long long)m.total_size);
  m = TF_OperationGetAttrMetadata(px, "shape", status);
  int64_t dims[2];
  TF_OperationGetAttrShape(px, "shape", dims, 2, status);
  printf("shape of x: %lld dims [%lld,%lld]\n", (long long)m.total_size, (long long)dims[0], (long long)dims[1]);
  TF_Session *s = newSession(g);
  int64_t feed[] = {2, 3};
  TF_Tensor *in = floats(feed, 2, x), *out[2];
  TF_Output inputs[] = {at(px, 0)}, outputs[] = {at(c, 0), at(y, 0)};
  TF_SessionRun(s, NULL, inputs, &in, 1, outputs, out, 2, NULL, 0, NULL, status);
  ok("run");
  printFloats("c", out[0]);
  printf("dims %d: %lld x %lld, %zu bytes\n", TF_NumDims(out[0]), (long long)TF_Dim(out[0], 0), (long long)TF_Dim(out[0], 1), TF_TensorByteSize(out[0]));
  TF_DeleteTensor(out[0]);
  TF_DeleteTensor(out[1]);
  /* the graph grows, the session follows */
  TF_Operation *z = binary(g, "Add", "z", at(y, 0), at(y, 0));
  TF_Output more[] = {at(z, 0)};
  TF_SessionRun(s, NULL, inputs, &in, 1, more, out, 1, NULL, 0, NULL, status);
  ok("run z");
  printFloats("z", out[0]);
  TF_DeleteTensor(out[0]);
  TF_Tensor *value;
  printf("constant: w %d", TF_TryEvaluateConstant(g, at(pw, 0), &value, status));
  TF_DeleteTensor(value);
  printf(", y %d\n", TF_TryEvaluateConstant(g, at(y, 0), &value, status));
  TF_DeviceList *devices = TF_SessionListDevices(s, status);
  printf("devices: %d, %s\n", TF_DeviceListCount(devices), TF_DeviceListType(devices, 0, status));
  TF_DeleteDeviceList(devices);
  TF_DeleteTensor(in);
  TF_CloseSession(s, status);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void strings(void) {
  TF_Graph *g = TF_NewGraph();
  int64_t dims[] = {3};
  TF_Tensor *t = TF_AllocateTensor(TF_STRING, dims, 1, 3 * sizeof(TF_TString));
  TF_TString *s = TF_TensorData(t);
  const char *texts[] = {"a", "twenty-two characters!", "a string that is longer than the small ones are"};
  for (int i = 0; i < 3; ++i) {
    TF_StringInit(&s[i]);
    TF_StringCopy(&s[i], texts[i], strlen(texts[i]));
    printf("string %d: type %d size %zu\n", i, (int)TF_StringGetType(&s[i]), TF_StringGetSize(&s[i]));
  }
  TF_Operation *p = placeholder(g, "s", TF_STRING, NULL, -1);
  TF_OperationDescription *d = TF_NewOperation(g, "StringUpper", "u");
  TF_AddInput(d, at(p, 0));
  TF_Operation *u = TF_FinishOperation(d, status);
  ok("u");
  TF_Session *session = newSession(g);
  TF_Output in = at(p, 0), out = at(u, 0);
  TF_Tensor *result;
  TF_SessionRun(session, NULL, &in, &t, 1, &out, &result, 1, NULL, 0, NULL, status);
  ok("strings");
  TF_TString *r = TF_TensorData(result);
  for (int i = 0; i < 3; ++i)
    printf("%.*s\n", (int)TF_StringGetSize(&r[i]), TF_StringGetDataPointer(&r[i]));
  for (int i = 0; i < 3; ++i)
    TF_StringDealloc(&s[i]);
  TF_DeleteTensor(t);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(g);
}

static void loop(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = placeholder(g, "b", TF_INT32, NULL, 0);
  TF_Output start[] = {at(a, 0), at(b, 0)}, end[2];
  TF_WhileParams p = TF_NewWhile(g, start, 2, status);
  ok("while");
  p.name = "loop";
  p.cond_output = at(binary(p.cond_graph, "Less", "less", p.cond_inputs[0], at(constant(p.cond_graph, "limit", int32(100)), 0)), 0);
  p.body_outputs[0] = at(binary(p.body_graph, "Add", "sum", p.body_inputs[0], p.body_inputs[1]), 0);
  p.body_outputs[1] = at(binary(p.body_graph, "Add", "next", p.body_inputs[1], at(constant(p.body_graph, "one", int32(1)), 0)), 0);
  TF_FinishWhile(&p, status, end);
  ok("finish while");
  TF_Session *s = newSession(g);
  TF_Tensor *in[] = {int32(3), int32(4)}, *out[2];
  TF_SessionRun(s, NULL, start, in, 2, end, out, 2, NULL, 0, NULL, status);
  ok("loop");
  printf("loop: %d %d\n", *(int32_t *)TF_TensorData(out[0]), *(int32_t *)TF_TensorData(out[1]));
  for (int i = 0; i < 2; ++i) {
    TF_DeleteTensor(in[i]);
    TF_DeleteTensor(out[i]);
  }
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void functions(void) {
  TF_Graph *body = TF_NewGraph(), *g = TF_NewGraph();
  TF_Operation *p = placeholder(body, "Feed", TF_INT32, NULL, -1);
  TF_Operation *two = constant(body, "two", int32(2)), *mul = binary(body, "Mul", "mul", at(p, 0), at(two, 0));
  TF_Output in = at(p, 0), out = at(mul, 0);
  TF_Function *f = TF_GraphToFunction(body, "Twice", 0, -1, NULL, 1, &in, 1, &out, NULL, NULL, "doubles", status);
  ok("function");
  printf("function %s\n", TF_FunctionName(f));
  TF_GraphCopyFunction(g, f, NULL, status);
  ok("copy");
  printf("functions: %d\n", TF_GraphNumFunctions(g));
  TF_Operation *x = placeholder(g, "x", TF_INT32, NULL, -1);
  TF_OperationDescription *d = TF_NewOperation(g, "Twice", "call");
  TF_AddInput(d, at(x, 0));
  TF_Operation *call = TF_FinishOperation(d, status);
  ok("call");
  TF_Session *s = newSession(g);
  TF_Tensor *value = int32(21), *result;
  TF_Output from = at(x, 0), to = at(call, 0);
  TF_SessionRun(s, NULL, &from, &value, 1, &to, &result, 1, NULL, 0, NULL, status);
  ok("run function");
  printf("twice 21 is %d\n", *(int32_t *)TF_TensorData(result));
  TF_DeleteTensor(value);
  TF_DeleteTensor(result);
  TF_DeleteFunction(f);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
  TF_DeleteGraph(body);
}

static void partial(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = placeholder(g, "b", TF_INT32, NULL, 0);
  TF_Operation *two = constant(g, "two", int32(2)), *first = binary(g, "Add", "first", at(a, 0), at(two, 0));
  TF_Operation *second = binary(g, "Mul", "second", at(first, 0), at(b, 0));
  TF_Session *s = newSession(g);
  TF_Output ins[] = {at(a, 0), at(b, 0)}, outs[] = {at(first, 0), at(second, 0)};
  const char *handle;
  TF_SessionPRunSetup(s, ins, 2, outs, 2, NULL, 0, &handle, status);
  ok("setup");
  TF_Tensor *in[] = {int32(5), int32(6)}, *out[2];
  for (int i = 0; i < 2; ++i) {
    TF_SessionPRun(s, handle, &ins[i], &in[i], 1, &outs[i], &out[i], 1, NULL, 0, status);
    ok("part");
    printf("part %d: %d\n", i, *(int32_t *)TF_TensorData(out[i]));
    TF_DeleteTensor(in[i]);
    TF_DeleteTensor(out[i]);
  }
  TF_DeletePRunHandle(handle);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static TF_Operation *variableOp(TF_Graph *g, const char *type, const char *name, TF_Operation *handle, TF_Operation *value) {
  TF_OperationDescription *d = TF_NewOperation(g, type, name);
  TF_AddInput(d, at(handle, 0));
  if (value)
    TF_AddInput(d, at(value, 0));
  else
    TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Operation *op = TF_FinishOperation(d, status);
  ok(name);
  return op;
}

/* A softmax regression on four points, by gradient descent. */
static void training(void) {
  TF_Graph *g = TF_NewGraph();
  int64_t xs[] = {4, 2}, ws[] = {2, 3}, ls[] = {4, 3};
  float points[] = {1, 0, 0, 1, -1, -1, 1, 1}, zeros[6] = {0}, labels[] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0}, rate = 0.5f;
  TF_Operation *x = constant(g, "x", floats(xs, 2, points)), *l = constant(g, "labels", floats(ls, 2, labels));
  TF_OperationDescription *d = TF_NewOperation(g, "VarHandleOp", "w");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_SetAttrShape(d, "shape", ws, 2);
  TF_SetAttrString(d, "shared_name", "w", 1);
  TF_Operation *w = TF_FinishOperation(d, status);
  ok("w");
  TF_Operation *init = variableOp(g, "AssignVariableOp", "init", w, constant(g, "zeros", floats(ws, 2, zeros)));
  TF_Operation *read = variableOp(g, "ReadVariableOp", "read", w, NULL);
  printShape(g, at(read, 0));
  TF_Operation *logits = binary(g, "MatMul", "logits", at(x, 0), at(read, 0));
  TF_Operation *each = binary(g, "SoftmaxCrossEntropyWithLogits", "each", at(logits, 0), at(l, 0));
  TF_Operation *loss = binary(g, "Mean", "loss", at(each, 0), at(constant(g, "over", int32(0)), 0));
  TF_Output y = at(loss, 0), by[] = {at(read, 0)}, grad[1];
  TF_AddGradients(g, &y, 1, by, 1, NULL, status, grad);
  ok("gradients");
  printf("gradient of type %d\n", (int)TF_OperationOutputType(grad[0]));
  printf("gradient of rank %d\n", TF_GraphGetTensorNumDims(g, grad[0], status));
  d = TF_NewOperation(g, "ResourceApplyGradientDescent", "step");
  TF_AddInput(d, at(w, 0));
  TF_AddInput(d, at(constant(g, "rate", floats(NULL, 0, &rate)), 0));
  TF_AddInput(d, grad[0]);
  TF_Operation *step = TF_FinishOperation(d, status);
  ok("step");
  TF_Session *s = newSession(g);
  const TF_Operation *inits[] = {init}, *steps[] = {step};
  TF_SessionRun(s, NULL, NULL, NULL, 0, NULL, NULL, 0, inits, 1, NULL, status);
  ok("initialise");
  for (int i = 0; i < 20; ++i) {
    TF_SessionRun(s, NULL, NULL, NULL, 0, NULL, NULL, 0, steps, 1, NULL, status);
    ok("train");
    TF_Tensor *value;
    TF_SessionRun(s, NULL, NULL, NULL, 0, &y, &value, 1, NULL, 0, NULL, status);
    ok("loss");
    if (i % 5 == 4)
      printFloats("loss", value);
    TF_DeleteTensor(value);
  }
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void digits(const char *samples) {
  char path[4096];
  snprintf(path, sizeof path, "%s/digits_cnn", samples);
  TF_Buffer *def = readFile(path, "graph.pb");
  TF_Graph *g = TF_NewGraph();
  TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "net");
  TF_GraphImportGraphDef(g, def, o, status);
  ok("import");
  TF_Operation *in = NULL, *op, *last = TF_GraphOperationByName(g, "net/Identity_2");
  size_t pos = 0;
  int count = 0;
  while ((op = TF_GraphNextOperation(g, &pos))) {
    ++count;
    if (!strcmp(TF_OperationOpType(op), "Placeholder"))
      in = op;
    for (int i = 0; i < TF_OperationNumOutputs(op); ++i)
      printShape(g, at(op, i));
  }
  printf("digits: %d operations, input %s, output %s\n", count, TF_OperationName(in), last ? TF_OperationName(last) : "none");
  int64_t dims[4];
  int rank = TF_GraphGetTensorNumDims(g, at(in, 0), status);
  TF_GraphGetTensorShape(g, at(in, 0), dims, rank, status);
  ok("input shape");
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) {
    dims[i] = dims[i] < 0 ? 1 : dims[i];
    n *= dims[i];
  }
  float *pixels = malloc((size_t)n * sizeof(float));
  for (int64_t i = 0; i < n; ++i)
    pixels[i] = (float)(i % 17) / 16;
  TF_Tensor *t = floats(dims, rank, pixels), *result;
  free(pixels);
  TF_Session *s = newSession(g);
  TF_Output from = at(in, 0), to = at(last, 0);
  TF_SessionRun(s, NULL, &from, &t, 1, &to, &result, 1, NULL, 0, NULL, status);
  ok("digits");
  printFloats("digits", result);
  TF_DeleteTensor(t);
  TF_DeleteTensor(result);
  TF_DeleteSession(s, status);
  TF_DeleteBuffer(def);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteGraph(g);
}

static void savedModel(const char *samples) {
  char path[4096];
  snprintf(path, sizeof path, "%s/text_classifier/saved_model", samples);
  const char *tags[] = {"serve"};
  TF_Graph *g = TF_NewGraph();
  TF_Buffer *meta = TF_NewBuffer();
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_Session *s = TF_LoadSessionFromSavedModel(o, NULL, path, tags, 1, g, meta, status);
  ok("load");
  printf("loaded: meta graph %d\n", meta->length > 0);
  TF_Operation *in = TF_GraphOperationByName(g, "serving_default_text"), *out = TF_GraphOperationByName(g, "StatefulPartitionedCall");
  if (!in || !out) {
    printf("the signature's operations are missing\n");
    exit(1);
  }
  int64_t dims[] = {2};
  TF_Tensor *t = TF_AllocateTensor(TF_STRING, dims, 1, 2 * sizeof(TF_TString));
  TF_TString *texts = TF_TensorData(t);
  const char *lines[] = {"this film was wonderful and the actors great", "a dull and terrible waste of time"};
  for (int i = 0; i < 2; ++i) {
    TF_StringInit(&texts[i]);
    TF_StringCopy(&texts[i], lines[i], strlen(lines[i]));
  }
  TF_Output from = at(in, 0), to = at(out, 0);
  TF_Tensor *result;
  TF_SessionRun(s, NULL, &from, &t, 1, &to, &result, 1, NULL, 0, NULL, status);
  ok("text");
  printFloats("text", result);
  for (int i = 0; i < 2; ++i)
    TF_StringDealloc(&texts[i]);
  TF_DeleteTensor(t);
  TF_DeleteTensor(result);
  TF_DeleteBuffer(meta);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void wrongOperations(TF_Graph *g, TF_Operation *x, TF_Operation *i) {
  TF_OperationDescription *d;
  TF_FinishOperation(TF_NewOperation(g, "NoSuchOp", "n1"), status);
  code("unknown op");
  TF_FinishOperation(TF_NewOperation(g, "Placeholder", "n2"), status);
  code("missing attribute");
  d = TF_NewOperation(g, "Placeholder", "x");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_FinishOperation(d, status);
  code("duplicate name");
  tryBinary(g, "Add", "n3", at(x, 0), at(i, 0));
  code("types differ");
  d = TF_NewOperation(g, "Add", "n4");
  TF_AddInput(d, at(x, 0));
  TF_FinishOperation(d, status);
  code("too few inputs");
  d = TF_NewOperation(g, "Neg", "n5");
  TF_AddInput(d, at(x, 0));
  TF_AddInput(d, at(x, 0));
  TF_FinishOperation(d, status);
  code("too many inputs");
  d = TF_NewOperation(g, "AddN", "n6");
  TF_AddInput(d, at(x, 0));
  TF_FinishOperation(d, status);
  code("one value for a list");
  d = TF_NewOperation(g, "Neg", "n7");
  TF_Output list[] = {at(x, 0)};
  TF_AddInputList(d, list, 1);
  TF_FinishOperation(d, status);
  code("a list for one value");
  d = TF_NewOperation(g, "Neg", "n8");
  TF_AddInput(d, at(x, 3));
  TF_FinishOperation(d, status);
  code("output that is not there");
  d = TF_NewOperation(g, "MatMul", "n9");
  TF_AddInput(d, at(i, 0));
  TF_AddInput(d, at(i, 0));
  TF_FinishOperation(d, status);
  code("scalars multiplied as matrices");
  d = TF_NewOperation(g, "LogicalNot", "n10");
  TF_AddInput(d, at(x, 0));
  TF_FinishOperation(d, status);
  code("type that the op refuses");
  d = TF_NewOperation(g, "Placeholder", "n11");
  TF_SetAttrInt(d, "dtype", 1);
  TF_FinishOperation(d, status);
  code("attribute of another kind");
  d = TF_NewOperation(g, "Softmax", "n12");
  TF_AddInput(d, at(i, 0));
  TF_FinishOperation(d, status);
  code("softmax of integers");
  d = TF_NewOperation(g, "Const", "n13");
  TF_SetAttrTensorShapeProto(d, "value", "\xff\xff", 2, status);
  code("unparseable shape");
  TF_SetAttrValueProto(d, "value", "\xff\xff", 2, status);
  code("unparseable attribute");
  TF_FinishOperation(d, status);
  code("constant without a value");
}

static void wrongGraphs(TF_Graph *g, TF_Operation *x) {
  int64_t dims[] = {5, 5}, got[4];
  TF_GraphSetTensorShape(g, at(x, 0), dims, 1, status);
  code("shape of another rank");
  TF_GraphGetTensorShape(g, at(x, 0), got, 4, status);
  code("wrong number of dimensions");
  TF_OperationGetAttrMetadata(x, "none", status);
  code("no such attribute");
  int64_t number;
  TF_OperationGetAttrInt(x, "dtype", &number, status);
  code("attribute read as another kind");
  TF_OperationInputListLength(x, "none", status);
  code("no such argument");
  TF_Buffer *junk = TF_NewBufferFromString("\xff\xff\xff", 3), *empty = TF_NewBuffer();
  TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, junk, options, status);
  code("unparseable GraphDef");
  TF_Buffer *def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, status);
  TF_GraphImportGraphDef(g, def, options, status);
  code("import of names that are there");
  TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "copy");
  TF_ImportGraphDefOptionsAddReturnOutput(o, "none", 0);
  TF_GraphImportGraphDefWithResults(g, def, o, status);
  code("return output that is not there");
  TF_GraphGetOpDef(g, "NoSuchOp", empty, status);
  code("definition of an unknown op");
  TF_Function *f = TF_GraphToFunction(g, "F", 0, 0, NULL, 0, NULL, 1, (TF_Output[]){at(x, 0)}, NULL, NULL, NULL, status);
  code("output outside the function");
  TF_DeleteFunction(f);
  TF_Output none = at(x, 0);
  TF_NewWhile(g, &none, 0, status);
  code("a loop without inputs");
  TF_FunctionImportFunctionDef("\xff\xff", 2, status);
  code("unparseable FunctionDef");
}

static void wrongRuns(TF_Graph *g, TF_Operation *x, TF_Operation *neg) {
  TF_Session *s = newSession(g);
  TF_Output from = at(x, 0), to = at(neg, 0);
  TF_Tensor *result = NULL, *wrong = int32(1);
  TF_SessionRun(s, NULL, NULL, NULL, 0, &to, &result, 1, NULL, 0, NULL, status);
  code("a placeholder that is not fed");
  TF_SessionRun(s, NULL, &from, &wrong, 1, &to, &result, 1, NULL, 0, NULL, status);
  code("a feed of another type");
  TF_SessionRun(s, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, status);
  code("nothing to run");
  TF_Buffer *junk = TF_NewBufferFromString("\xff\xff\xff", 3);
  int64_t dims[] = {1, 3};
  float values[] = {1, 2, 3};
  TF_Tensor *good = floats(dims, 2, values);
  TF_SessionRun(s, junk, &from, &good, 1, &to, &result, 1, NULL, 0, NULL, status);
  code("unparseable RunOptions");
  TF_SessionPRun(s, "no such handle", &from, &good, 1, &to, &result, 1, NULL, 0, status);
  code("part of a run that is not set up");
  TF_CloseSession(s, status);
  ok("close");
  TF_SessionRun(s, NULL, &from, &good, 1, &to, &result, 1, NULL, 0, NULL, status);
  code("run of a closed session");
  TF_DeleteSession(s, status);
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_SetConfig(o, "\xff\xff", 2, status);
  code("unparseable ConfigProto");
  TF_SetTarget(o, "nowhere://there");
  TF_NewSession(g, o, status);
  code("unknown target");
  TF_DeleteSessionOptions(o);
  const char *tags[] = {"serve"};
  TF_Graph *other = TF_NewGraph();
  o = TF_NewSessionOptions();
  TF_LoadSessionFromSavedModel(o, NULL, "/no/such/folder", tags, 1, other, NULL, status);
  code("SavedModel that is not there");
  TF_DeleteGraph(other);
  TF_DeleteTensor(good);
  TF_DeleteTensor(wrong);
}

int main(int argc, char **argv) {
  const char *samples = argc > 1 ? argv[1] : ".";
  setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed before a crash is seen */
  status = TF_NewStatus();
  printf("sizes: %zu %zu %zu %zu\n", TF_DataTypeSize(TF_FLOAT), TF_DataTypeSize(TF_COMPLEX128), TF_DataTypeSize(TF_STRING), TF_DataTypeSize(TF_BFLOAT16));
  operations();
  strings();
  loop();
  functions();
  partial();
  training();
  digits(samples);
  savedModel(samples);
  TF_Graph *g = TF_NewGraph();
  int64_t dims[] = {-1, 3};
  TF_Operation *x = placeholder(g, "x", TF_FLOAT, dims, 2), *i = placeholder(g, "i", TF_INT32, NULL, 0);
  TF_OperationDescription *d = TF_NewOperation(g, "Neg", "neg");
  TF_AddInput(d, at(x, 0));
  TF_Operation *neg = TF_FinishOperation(d, status);
  ok("neg");
  wrongOperations(g, x, i);
  wrongGraphs(g, x);
  wrongRuns(g, x, neg);
  TF_DeleteGraph(g);
  TF_DeleteStatus(status);
  return 0;
}
