/* Sessions by names, devices, lists of ops and kernels; what it prints is the same with TensorFlow's library and with ours. */
#include "support.h"

static TF_Buffer *sumGraph(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = placeholder(g, "b", TF_INT32, NULL, 0);
  TF_Operation *first = binary(g, "AddV2", "first", at(a, 0), at(a, 0));
  binary(g, "Mul", "second", at(first, 0), at(b, 0));
  TF_FinishOperation(TF_NewOperation(g, "NoOp", "target"), status);
  ok("target");
  TF_Buffer *def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, status);
  ok("def");
  TF_DeleteGraph(g);
  return def;
}

static void give(const char *what, TF_Tensor *t) {
  printf("%s %d\n", what, *(int32_t *)TF_TensorData(t));
  TF_DeleteTensor(t);
}

static void byNames(void) {
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_DeprecatedSession *s = TF_NewDeprecatedSession(o, status);
  ok("session");
  TF_Buffer *def = sumGraph();
  const char *inputs[] = {"a:0", "b:0"}, *outputs[] = {"first:0", "second:0"}, *targets[] = {"target"}, *none[] = {"none:0"};
  TF_Tensor *in[] = {int32(3), int32(4)}, *out[2];
  TF_ExtendGraph(s, def->data, def->length, status);
  ok("extend");
  TF_Run(s, NULL, inputs, in, 2, outputs, out, 2, targets, 1, NULL, status);
  ok("run");
  give("first", out[0]);
  give("second", out[1]);
  TF_ExtendGraph(s, def->data, def->length, status);
  code("extend by the same nodes");
  TF_ExtendGraph(s, "\xff\xff", 2, status);
  code("extend by junk");
  in[0] = int32(3);
  in[1] = int32(4);
  TF_Run(s, NULL, inputs, in, 2, none, out, 1, NULL, 0, NULL, status);
  code("output that is not there");
  TF_Run(s, NULL, none, in, 1, outputs, out, 1, NULL, 0, NULL, status);
  code("input that is not there");
  TF_Run(s, NULL, NULL, NULL, 0, NULL, NULL, 0, none, 1, NULL, status);
  code("target that is not there");
  const char *handle;
  TF_PRunSetup(s, inputs, 2, outputs, 2, NULL, 0, &handle, status);
  ok("setup");
  in[0] = int32(5);
  TF_PRun(s, handle, inputs, in, 1, outputs, out, 1, NULL, 0, status);
  ok("part");
  give("part 0", out[0]);
  in[1] = int32(6);
  TF_PRun(s, handle, inputs + 1, in + 1, 1, outputs + 1, out, 1, NULL, 0, status);
  ok("part");
  give("part 1", out[0]);
  TF_DeletePRunHandle(handle);
  TF_DeviceList *list = TF_DeprecatedSessionListDevices(s, status);
  ok("devices");
  printf("devices %d: %s, %s, %lld bytes, incarnation %d\n", TF_DeviceListCount(list), TF_DeviceListName(list, 0, status),
         TF_DeviceListType(list, 0, status), (long long)TF_DeviceListMemoryBytes(list, 0, status), TF_DeviceListIncarnation(list, 0, status) != 0);
  ok("device");
  TF_DeviceListName(list, 7, status);
  code("device that is not there");
  TF_DeleteDeviceList(list);
  TF_CloseDeprecatedSession(s, status);
  ok("close");
  in[0] = int32(3);
  TF_Run(s, NULL, inputs, in, 1, outputs, out, 1, NULL, 0, NULL, status);
  code("run of a closed session by names");
  TF_DeleteDeprecatedSession(s, status);
  ok("delete");
  TF_DeleteBuffer(def);
  TF_DeleteSessionOptions(o);
}

static void lists(void) {
  TF_Buffer *ops = TF_GetAllOpList();
  printf("ops: %d\n", ops->length > 100000);
  TF_ApiDefMap *map = TF_NewApiDefMap(ops, status);
  ok("map");
  static const char text[] = "op { graph_op_name: \"MatMul\" endpoint { name: \"product\" } }";
  TF_ApiDefMapPut(map, text, strlen(text), status);
  ok("put");
  TF_ApiDefMapPut(map, "op { nothing", 12, status);
  code("unparseable ApiDefs");
  TF_Buffer *def = TF_ApiDefMapGet(map, "MatMul", 6, status);
  ok("get");
  int found = 0;
  for (size_t i = 0; i + 7 <= def->length; ++i)
    found |= !memcmp((const char *)def->data + i, "product", 7);
  printf("put and got: %d\n", found);
  TF_DeleteBuffer(def);
  printf("unknown op: %d\n", TF_ApiDefMapGet(map, "NoSuchOp", 8, status) != NULL);
  TF_ApiDefMapPut(map, text, strlen(text), status);
  code("put after get");
  TF_DeleteApiDefMap(map);
  TF_DeleteBuffer(ops);
  TF_Buffer *kernels = TF_GetAllRegisteredKernels(status);
  ok("kernels");
  printf("kernels: %d\n", kernels->length > 10000);
  TF_DeleteBuffer(kernels);
  kernels = TF_GetRegisteredKernelsForOp("MatMul", status);
  ok("kernels of an op");
  printf("kernels of MatMul: %d\n", kernels->length > 0);
  TF_DeleteBuffer(kernels);
  kernels = TF_GetRegisteredKernelsForOp("NoSuchOp", status);
  printf("kernels of no op: code %d, %zu bytes\n", (int)TF_GetCode(status), kernels ? kernels->length : 0);
  TF_DeleteBuffer(kernels);
  TF_Graph *g = TF_NewGraph();
  ops = TF_NewBuffer();
  TF_GraphGetOpDef(g, "MatMul", ops, status);
  ok("op");
  printf("MatMul: %d\n", ops->length > 50);
  TF_DeleteBuffer(ops);
  TF_DeleteGraph(g);
}

static void traced(void) {
  TF_Graph *g = TF_NewGraph();
  TF_Operation *a = placeholder(g, "a", TF_INT32, NULL, 0), *b = binary(g, "AddV2", "b", at(a, 0), at(a, 0));
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_SetConfig(o, "\x10\x01\x28\x01", 4, status); /* one thread within and between operations */
  ok("config");
  TF_SetTarget(o, "");
  TF_Session *s = TF_NewSession(g, o, status);
  ok("session");
  TF_Buffer *options = TF_NewBufferFromString("\x08\x03", 2), *traces = TF_NewBuffer(); /* trace_level: FULL_TRACE */
  TF_Output in = at(a, 0), out = at(b, 0);
  TF_Tensor *five = int32(5), *result;
  TF_SessionRun(s, options, &in, &five, 1, &out, &result, 1, NULL, 0, traces, status);
  ok("run");
  give("traced", result);
  printf("traces: %d\n", traces->length > 0);
  TF_SessionRun(s, options, &in, &five, 1, &out, &result, 1, NULL, 0, traces, status);
  code("traces into a buffer that is full");
  TF_DeleteTensor(five);
  TF_DeleteBuffer(options);
  TF_DeleteBuffer(traces);
  TF_SessionPRunSetup(s, NULL, 0, NULL, 0, NULL, 0, (const char *[]){NULL}, status);
  code("partial run of nothing");
  TF_CloseSession(s, status);
  ok("close");
  TF_CloseSession(s, status);
  code("closed twice");
  TF_DeleteSession(s, status);
  TF_DeleteSessionOptions(o);
  TF_DeleteGraph(g);
}

static void resetting(void) {
  TF_SessionOptions *o = TF_NewSessionOptions();
  const char *containers[] = {"c"};
  TF_Reset(o, containers, 1, status);
  ok("reset");
  TF_SetTarget(o, "nowhere://there");
  TF_Reset(o, containers, 1, status);
  code("reset of an unknown target");
  TF_DeleteSessionOptions(o);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  status = TF_NewStatus();
  byNames();
  lists();
  traced();
  resetting();
  TF_DeleteStatus(status);
  return 0;
}
