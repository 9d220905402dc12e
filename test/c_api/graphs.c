/* Graphs read, joined, changed and looked at; what it prints is the same with TensorFlow's library and with ours. */
#include "support.h"

static int compareText(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void printGraph(TF_Graph *g) {
  size_t pos = 0;
  TF_Operation *op;
  while ((op = TF_GraphNextOperation(g, &pos))) {
    printf("  %s = %s(", TF_OperationName(op), TF_OperationOpType(op));
    int n = TF_OperationNumInputs(op);
    TF_Output inputs[8];
    TF_OperationAllInputs(op, inputs, 8);
    for (int i = 0; i < n; ++i) {
      TF_Input in = {op, i};
      TF_Output from = TF_OperationInput(in);
      printf("%s%s:%d type %d%s", i ? ", " : "", TF_OperationName(from.oper), from.index, (int)TF_OperationInputType(in),
             from.oper == inputs[i].oper && from.index == inputs[i].index ? "" : " (not what all inputs says)");
    }
    printf(")");
    TF_Operation *controls[8];
    const char *names[8];
    n = TF_OperationGetControlInputs(op, controls, 8);
    for (int i = 0; i < n; ++i)
      names[i] = TF_OperationName(controls[i]);
    qsort(names, (size_t)n, sizeof *names, compareText);
    for (int i = 0; i < n; ++i)
      printf(" ^%s", names[i]);
    n = TF_OperationGetControlOutputs(op, controls, 8);
    printf(" device '%s', %d wait for it\n", TF_OperationDevice(op), n);
  }
}

/* Two placeholders, their sum, its negative after a NoOp. */
static TF_Buffer *smallGraph(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = placeholder(g, "b", TF_INT32, NULL, 0);
  TF_Operation *sum = binary(g, "AddV2", "sum", at(a, 0), at(b, 0));
  TF_Operation *wait = TF_FinishOperation(TF_NewOperation(g, "NoOp", "wait"), status);
  ok("wait");
  TF_OperationDescription *d = TF_NewOperation(g, "Neg", "neg");
  TF_AddInput(d, at(sum, 0));
  TF_AddControlInput(d, wait);
  TF_FinishOperation(d, status);
  ok("neg");
  TF_Buffer *def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, status);
  ok("def");
  TF_Buffer *versions = TF_NewBuffer();
  TF_GraphVersions(g, versions, status);
  ok("versions");
  printf("versions: %d\n", versions->length > 0);
  TF_DeleteBuffer(versions);
  TF_DeleteGraph(g);
  return def;
}

static void importing(void) {
  TF_Buffer *def = smallGraph();
  TF_Graph *g = TF_NewGraph();
  TF_Operation *x = placeholder(g, "x", TF_INT32, NULL, 0);
  TF_Operation *first = TF_FinishOperation(TF_NewOperation(g, "NoOp", "first"), status);
  ok("first");
  TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "p");
  TF_ImportGraphDefOptionsSetDefaultDevice(o, "/device:CPU:0");
  TF_ImportGraphDefOptionsAddInputMapping(o, "a", 0, at(x, 0));
  TF_ImportGraphDefOptionsAddInputMapping(o, "missing", 1, at(x, 0));
  TF_ImportGraphDefOptionsRemapControlDependency(o, "wait", first);
  TF_ImportGraphDefOptionsAddControlDependency(o, x);
  TF_ImportGraphDefOptionsAddReturnOutput(o, "sum", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(o, "a", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(o, "neg");
  printf("asked for %d outputs, %d operations\n", TF_ImportGraphDefOptionsNumReturnOutputs(o), TF_ImportGraphDefOptionsNumReturnOperations(o));
  TF_ImportGraphDefResults *r = TF_GraphImportGraphDefWithResults(g, def, o, status);
  ok("import");
  int n;
  TF_Output *outputs;
  TF_ImportGraphDefResultsReturnOutputs(r, &n, &outputs);
  for (int i = 0; i < n; ++i)
    printf("output %s:%d\n", TF_OperationName(outputs[i].oper), outputs[i].index);
  TF_Operation **ops;
  TF_ImportGraphDefResultsReturnOperations(r, &n, &ops);
  for (int i = 0; i < n; ++i)
    printf("operation %s\n", TF_OperationName(ops[i]));
  const char **names;
  int *indexes;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(r, &n, &names, &indexes);
  for (int i = 0; i < n; ++i)
    printf("not used: %s:%d\n", names[i], indexes[i]);
  TF_DeleteImportGraphDefResults(r);
  printGraph(g);
  TF_ImportGraphDefOptionsSetUniquifyPrefix(o, 1);
  TF_Output two[2];
  TF_GraphImportGraphDefWithReturnOutputs(g, def, o, two, 2, status);
  ok("import again");
  printf("again: %s, %s\n", TF_OperationName(two[0].oper), TF_OperationName(two[1].oper));
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetUniquifyNames(o, 1);
  TF_GraphImportGraphDef(g, def, o, status);
  ok("plain import");
  TF_ImportGraphDefOptionsAddReturnOutput(o, "neg", 0);
  TF_GraphImportGraphDefWithReturnOutputs(g, def, o, two, 1, status);
  ok("uniquified import");
  printf("uniquified: %s\n", TF_OperationName(two[0].oper));
  TF_ImportGraphDefOptionsAddReturnOperation(o, "none");
  TF_GraphImportGraphDefWithResults(g, def, o, status);
  code("return operation that is not there");
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "q");
  TF_ImportGraphDefOptionsAddInputMapping(o, "a", 0, at(first, 0));
  TF_GraphImportGraphDef(g, def, o, status);
  code("input mapped to no output");
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "not a name");
  TF_GraphImportGraphDef(g, def, o, status);
  code("prefix that is no name");
  TF_DeleteImportGraphDefOptions(o);
  printGraph(g);
  TF_DeleteBuffer(def);
  TF_DeleteGraph(g);
}

static void changing(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = placeholder(g, "b", TF_INT32, NULL, 0);
  TF_Operation *f = placeholder(g, "f", TF_FLOAT, NULL, 0), *sum = binary(g, "AddV2", "sum", at(a, 0), at(b, 0));
  TF_Input second = {sum, 1}, beyond = {sum, 5};
  TF_UpdateEdge(g, at(a, 0), second, status);
  ok("update");
  TF_UpdateEdge(g, at(a, 0), beyond, status);
  code("edge to no input");
  TF_AddOperationControlInput(g, sum, f);
  TF_SetRequestedDevice(g, sum, "/device:CPU:0");
  TF_Buffer *value = TF_NewBufferFromString("\x12\x02me", 4); /* s: "me" */
  TF_SetAttr(g, sum, "_who", value, status);
  ok("set");
  printGraph(g);
  char text[2];
  TF_OperationGetAttrString(sum, "_who", text, 2, status);
  ok("who");
  printf("_who %.2s\n", text);
  TF_ClearAttr(g, sum, "_who", status);
  ok("clear");
  TF_OperationGetAttrString(sum, "_who", text, 2, status);
  code("cleared attribute");
  TF_RemoveAllControlInputs(g, sum);
  printGraph(g);
  TF_DeleteBuffer(value);
  TF_Session *s = newSession(g);
  TF_Output in = at(a, 0), out = at(sum, 0);
  TF_Tensor *five = int32(5), *result;
  TF_ExtendSession(s, status);
  ok("extend");
  TF_SessionRun(s, NULL, &in, &five, 1, &out, &result, 1, NULL, 0, NULL, status);
  ok("run");
  printf("5 + 5 = %d\n", *(int32_t *)TF_TensorData(result));
  TF_DeleteTensor(five);
  TF_DeleteTensor(result);
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void locked(void) {
  TF_Graph *g = TF_NewGraph();
  TF_OperationDescription *d = TF_NewOperation(g, "Split", "parts");
  float values[] = {1, 2, 3, 4};
  int64_t dims[] = {4};
  TF_AddInput(d, at(constant(g, "axis", int32(0)), 0));
  TF_AddInput(d, at(constant(g, "values", floats(dims, 1, values)), 0));
  TF_SetAttrInt(d, "num_split", 2);
  TF_Operation *parts = TF_FinishOperation(d, status);
  ok("parts");
  printf("split: %d outputs, list of %d\n", TF_OperationNumOutputs(parts), TF_OperationOutputListLength(parts, "output", status));
  TF_OperationOutputListLength(parts, "none", status);
  code("list that the op lacks");
  printShape(g, at(parts, 1));
  TF_Buffer *node = TF_NewBuffer();
  TF_OperationToNodeDef(parts, node, status);
  ok("node");
  printf("node: %zu bytes\n", node->length);
  TF_OperationToNodeDef(parts, node, status);
  code("message into a buffer that is full");
  TF_DeleteBuffer(node);
  d = TF_NewOperation(g, "VarHandleOp", "variable");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_SetAttrShape(d, "shape", dims, 1);
  TF_Operation *variable = TF_FinishOperation(d, status);
  ok("variable");
  TF_Buffer *data = TF_GetHandleShapeAndType(g, at(variable, 0));
  printf("handle: %d\n", data->length > 0);
  TF_SetHandleShapeAndType(g, at(variable, 0), data->data, data->length, status);
  ok("handle data");
  TF_DeleteBuffer(data);
  TF_SetRequireShapeInferenceFns(g, true);
  TF_DeleteGraph(g);
}

static void functionsOf(void) {
  TF_Graph *body = TF_NewGraph(), *g = TF_NewGraph();
  TF_Operation *a = placeholder(body, "a", TF_INT32, NULL, -1), *b = placeholder(body, "b", TF_INT32, NULL, -1);
  TF_Operation *sum = binary(body, "AddV2", "sum", at(a, 0), at(b, 0)), *product = binary(body, "Mul", "product", at(a, 0), at(b, 0));
  TF_Output inputs[] = {at(a, 0), at(b, 0)}, outputs[] = {at(sum, 0), at(product, 0)};
  const char *names[] = {"s", "p"}, *controlNames[] = {"c"};
  const TF_Operation *controls[] = {sum};
  TF_Function *f = TF_GraphToFunctionWithControlOutputs(body, "Both", 0, -1, NULL, 2, inputs, 2, outputs, names, 1, controls, controlNames, NULL, "both",
                                                        status);
  ok("function");
  TF_FunctionSetAttrValueProto(f, "_note", "\x12\x02hi", 4, status);
  ok("set attribute");
  TF_Buffer *buffer = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(f, "_note", buffer, status);
  ok("get attribute");
  printf("function %s, attribute of %zu bytes\n", TF_FunctionName(f), buffer->length);
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(f, "_none", buffer, status);
  code("attribute that the function lacks");
  TF_FunctionToFunctionDef(f, buffer, status);
  ok("definition");
  TF_Function *again = TF_FunctionImportFunctionDef(buffer->data, buffer->length, status);
  ok("read");
  printf("read: %s\n", TF_FunctionName(again));
  TF_DeleteBuffer(buffer);
  TF_GraphCopyFunction(g, again, NULL, status);
  ok("copy");
  TF_Function *found[4];
  printf("functions %d, got %d", TF_GraphNumFunctions(g), TF_GraphGetFunctions(g, found, 4, status));
  ok("functions");
  printf(": %s\n", TF_FunctionName(found[0]));
  TF_DeleteFunction(found[0]);
  TF_Operation *x = placeholder(g, "x", TF_INT32, NULL, -1);
  TF_OperationDescription *d = TF_NewOperation(g, "PartitionedCall", "call");
  TF_DataType types[] = {TF_INT32, TF_INT32};
  TF_Output args[] = {at(x, 0), at(x, 0)};
  TF_AddInputList(d, args, 2);
  TF_SetAttrTypeList(d, "Tin", types, 2);
  TF_SetAttrTypeList(d, "Tout", types, 2);
  TF_SetAttrFuncName(d, "f", "Both", 4);
  TF_Operation *call = TF_FinishOperation(d, status);
  ok("call");
  TF_Session *s = newSession(g);
  TF_Output from = at(x, 0), to[] = {at(call, 0), at(call, 1)};
  TF_Tensor *value = int32(7), *results[2];
  TF_SessionRun(s, NULL, &from, &value, 1, to, results, 2, NULL, 0, NULL, status);
  ok("run");
  printf("both of 7: %d %d\n", *(int32_t *)TF_TensorData(results[0]), *(int32_t *)TF_TensorData(results[1]));
  TF_DeleteTensor(value);
  TF_DeleteTensor(results[0]);
  TF_DeleteTensor(results[1]);
  TF_DeleteSession(s, status);
  TF_DeleteFunction(f);
  TF_DeleteFunction(again);
  TF_GraphToFunction(body, "Twice", 0, -1, NULL, 2, (TF_Output[]){at(a, 0), at(a, 0)}, 1, outputs, NULL, NULL, NULL, status);
  code("the same input twice");
  TF_GraphToFunction(body, "Named", 0, -1, NULL, 2, inputs, 2, outputs, (const char *[]){"s", "s"}, NULL, NULL, status);
  code("two outputs of one name");
  TF_DeleteGraph(body);
  TF_DeleteGraph(g);
}

static void gradients(void) {
  TF_Graph *g = TF_NewGraph();
  float two = 2;
  TF_Operation *x = placeholder(g, "x", TF_FLOAT, NULL, 0), *c = constant(g, "c", floats(NULL, 0, &two));
  TF_Operation *y = binary(g, "Mul", "y", at(x, 0), at(x, 0)), *z = binary(g, "Mul", "z", at(y, 0), at(c, 0));
  TF_Output ys[] = {at(y, 0), at(z, 0)}, xs[] = {at(x, 0)}, dxs[] = {at(c, 0), at(c, 0)}, dys[1];
  TF_AddGradientsWithPrefix(g, "back", ys, 2, xs, 1, dxs, status, dys);
  ok("gradients");
  printf("prefix kept: %d\n", !strncmp(TF_OperationName(dys[0].oper), "back/", 5));
  TF_Session *s = newSession(g);
  float three = 3;
  TF_Tensor *in = floats(NULL, 0, &three), *out;
  TF_SessionRun(s, NULL, xs, &in, 1, dys, &out, 1, NULL, 0, NULL, status);
  ok("run");
  printFloats("gradient", out);
  TF_DeleteTensor(in);
  TF_DeleteTensor(out);
  TF_AddGradientsWithPrefix(g, "back", ys, 2, xs, 1, dxs, status, dys);
  code("gradients under a prefix that is taken");
  TF_DeleteSession(s, status);
  TF_DeleteGraph(g);
}

static void loops(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0);
  TF_Output start = at(a, 0), end;
  TF_WhileParams p = TF_NewWhile(g, &start, 1, status);
  ok("while");
  TF_AbortWhile(&p);
  TF_WhileParams q = TF_NewWhile(g, &start, 1, status);
  ok("while");
  q.name = "loop";
  q.body_outputs[0] = q.body_inputs[0];
  TF_FinishWhile(&q, status, &end);
  code("loop without a condition");
  TF_WhileParams r = TF_NewWhile(g, &start, 1, status);
  ok("while");
  r.name = "loop";
  r.cond_output = r.cond_inputs[0];
  r.body_outputs[0] = r.body_inputs[0];
  TF_FinishWhile(&r, status, &end);
  code("condition that is a number");
  TF_DeleteGraph(g);
}

static TF_Output constantInts(TF_Graph *g, const char *name, const int32_t *values, int64_t n) {
  TF_Tensor *t = TF_AllocateTensor(TF_INT32, &n, 1, (size_t)n * 4);
  memcpy(TF_TensorData(t), values, (size_t)n * 4);
  return at(constant(g, name, t), 0);
}

static void printConstant(const char *what, TF_Graph *g, TF_Output o) {
  TF_Tensor *value = NULL;
  int known = TF_TryEvaluateConstant(g, o, &value, status);
  printf("constant %s: known %d, code %d", what, known, (int)TF_GetCode(status));
  for (int64_t i = 0; known && i < TF_TensorElementCount(value); ++i)
    printf(" %d", ((int32_t *)TF_TensorData(value))[i]);
  printf("\n");
  TF_DeleteTensor(value);
}

static void constants(void) {
  TF_Graph *g = TF_NewGraph();
  int32_t some[] = {1, 2, 3};
  int64_t known[] = {4, 5}, open[] = {-1, 5};
  TF_Output v = constantInts(g, "v", some, 3);
  TF_Operation *sum = binary(g, "AddV2", "sum", v, v);
  TF_Operation *fixed = placeholder(g, "fixed", TF_FLOAT, known, 2), *loose = placeholder(g, "loose", TF_FLOAT, open, 2);
  TF_OperationDescription *d = TF_NewOperation(g, "Shape", "s1");
  TF_AddInput(d, at(fixed, 0));
  TF_Operation *s1 = TF_FinishOperation(d, status);
  ok("s1");
  d = TF_NewOperation(g, "Shape", "s2");
  TF_AddInput(d, at(loose, 0));
  TF_Operation *s2 = TF_FinishOperation(d, status);
  ok("s2");
  d = TF_NewOperation(g, "Rank", "r");
  TF_AddInput(d, at(loose, 0));
  TF_Operation *r = TF_FinishOperation(d, status);
  ok("r");
  printConstant("sum", g, at(sum, 0));
  printConstant("shape", g, at(s1, 0));
  printConstant("open shape", g, at(s2, 0));
  printConstant("rank", g, at(r, 0));
  TF_DeleteGraph(g);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  status = TF_NewStatus();
  importing();
  changing();
  locked();
  functionsOf();
  gradients();
  loops();
  constants();
  TF_DeleteStatus(status);
  return 0;
}
