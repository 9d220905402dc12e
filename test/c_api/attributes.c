/* Attributes, tensors, buffers and statuses; what it prints is the same with TensorFlow's library and with ours. */
#include "support.h"

#include <errno.h>

static void metadata(TF_Operation *op, const char *name) {
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(op, name, status);
  ok(name);
  printf("%s: list %d of %lld, type %d, size %lld", name, m.is_list, (long long)m.list_size, (int)m.type, (long long)m.total_size);
  TF_Buffer *proto = TF_NewBuffer();
  TF_OperationGetAttrValueProto(op, name, proto, status);
  ok(name);
  /* tensors have more than one form */
  printf(", %zu bytes\n", m.type == TF_ATTR_TENSOR ? 0 : TF_GetBuffer(proto).length);
  TF_DeleteBuffer(proto);
}

static void setAll(TF_OperationDescription *d) {
  static const char shape[] = {0x12, 0x02, 0x08, 0x05}; /* a TensorShapeProto: [5] */
  const void *strings[] = {"one", "three", ""}, *shapes[] = {shape, shape};
  size_t lengths[] = {3, 5, 0}, shapeLengths[] = {4, 0};
  int64_t ints[] = {7, -8}, a[] = {2, -1}, b[] = {3};
  float reals[] = {0.5f, -2};
  unsigned char truths[] = {1, 0, 1};
  TF_DataType types[] = {TF_FLOAT, TF_STRING};
  const int64_t *dims[] = {a, b, NULL};
  int ranks[] = {2, 1, -1};
  TF_Tensor *tensors[] = {int32(4), int32(5)};
  TF_SetAttrString(d, "_s", "text", 4);
  TF_SetAttrStringList(d, "_ss", strings, lengths, 3);
  TF_SetAttrInt(d, "_i", -3);
  TF_SetAttrIntList(d, "_is", ints, 2);
  TF_SetAttrFloat(d, "_f", 1.5f);
  TF_SetAttrFloatList(d, "_fs", reals, 2);
  TF_SetAttrBool(d, "_b", 1);
  TF_SetAttrBoolList(d, "_bs", truths, 3);
  TF_SetAttrType(d, "_t", TF_HALF);
  TF_SetAttrTypeList(d, "_ts", types, 2);
  TF_SetAttrFuncName(d, "_fn", "Other", 5);
  TF_SetAttrShape(d, "_h", a, 2);
  TF_SetAttrShapeList(d, "_hs", dims, ranks, 3);
  TF_SetAttrTensor(d, "_v", tensors[0], status);
  ok("_v");
  TF_SetAttrTensorList(d, "_vs", tensors, 2, status);
  ok("_vs");
  TF_SetAttrTensorShapeProto(d, "_hp", shape, sizeof shape, status);
  ok("_hp");
  TF_SetAttrTensorShapeProtoList(d, "_hps", shapes, shapeLengths, 2, status);
  ok("_hps");
  TF_SetAttrValueProto(d, "_i2", "\x18\x09", 2, status); /* i: 9 */
  ok("_i2");
  TF_DeleteTensor(tensors[0]);
  TF_DeleteTensor(tensors[1]);
}

static void getStrings(TF_Operation *op) {
  char text[16], storage[64];
  TF_OperationGetAttrString(op, "_s", text, sizeof text, status);
  ok("_s");
  printf("_s %.4s\n", text);
  void *values[3];
  size_t lengths[3];
  TF_OperationGetAttrStringList(op, "_ss", values, lengths, 3, storage, sizeof storage, status);
  ok("_ss");
  for (int i = 0; i < 3; ++i)
    printf("_ss %d '%.*s'\n", i, (int)lengths[i], (const char *)values[i]);
  TF_OperationGetAttrStringList(op, "_ss", values, lengths, 3, storage, 4, status);
  code("strings into too little room");
}

static void getNumbers(TF_Operation *op) {
  int64_t i, is[2];
  float f, fs[2];
  unsigned char b, bs[3];
  TF_DataType t, ts[2];
  TF_OperationGetAttrInt(op, "_i", &i, status);
  ok("_i");
  TF_OperationGetAttrIntList(op, "_is", is, 2, status);
  ok("_is");
  printf("ints %lld, %lld %lld\n", (long long)i, (long long)is[0], (long long)is[1]);
  TF_OperationGetAttrInt(op, "_i2", &i, status);
  ok("_i2");
  printf("i2 %lld\n", (long long)i);
  TF_OperationGetAttrFloat(op, "_f", &f, status);
  ok("_f");
  TF_OperationGetAttrFloatList(op, "_fs", fs, 2, status);
  ok("_fs");
  printf("floats %g, %g %g\n", (double)f, (double)fs[0], (double)fs[1]);
  TF_OperationGetAttrBool(op, "_b", &b, status);
  ok("_b");
  TF_OperationGetAttrBoolList(op, "_bs", bs, 3, status);
  ok("_bs");
  printf("bools %d, %d %d %d\n", b, bs[0], bs[1], bs[2]);
  TF_OperationGetAttrType(op, "_t", &t, status);
  ok("_t");
  TF_OperationGetAttrTypeList(op, "_ts", ts, 2, status);
  ok("_ts");
  printf("types %d, %d %d\n", (int)t, (int)ts[0], (int)ts[1]);
}

static void getShapesAndTensors(TF_Operation *op) {
  int64_t dims[8], *lists[3];
  int ranks[3];
  TF_OperationGetAttrShape(op, "_h", dims, 2, status);
  ok("_h");
  printf("shape %lld %lld\n", (long long)dims[0], (long long)dims[1]);
  TF_OperationGetAttrShapeList(op, "_hs", lists, ranks, 3, dims, 8, status);
  ok("_hs");
  printf("shapes of rank %d %d %d, first %lld %lld, second %lld\n", ranks[0], ranks[1], ranks[2], (long long)lists[0][0], (long long)lists[0][1],
         (long long)lists[1][0]);
  TF_OperationGetAttrShapeList(op, "_hs", lists, ranks, 3, dims, 1, status);
  code("shapes into too little room");
  TF_Buffer *proto = TF_NewBuffer(), *protos[2];
  TF_OperationGetAttrTensorShapeProto(op, "_hp", proto, status);
  ok("_hp");
  TF_OperationGetAttrTensorShapeProtoList(op, "_hps", protos, 2, status);
  ok("_hps");
  printf("shape messages of %zu, %zu %zu bytes\n", proto->length, protos[0]->length, protos[1]->length);
  TF_DeleteBuffer(proto);
  TF_DeleteBuffer(protos[0]);
  TF_DeleteBuffer(protos[1]);
  TF_Tensor *v, *vs[2];
  TF_OperationGetAttrTensor(op, "_v", &v, status);
  ok("_v");
  TF_OperationGetAttrTensorList(op, "_vs", vs, 2, status);
  ok("_vs");
  printf("tensors %d, %d %d\n", *(int32_t *)TF_TensorData(v), *(int32_t *)TF_TensorData(vs[0]), *(int32_t *)TF_TensorData(vs[1]));
  TF_DeleteTensor(v);
  TF_DeleteTensor(vs[0]);
  TF_DeleteTensor(vs[1]);
  TF_OperationGetAttrTensor(op, "_i", &v, status);
  code("a tensor of an attribute of integers");
}

static int byName(const void *a, const void *b) { return strcmp(a, b); }

static void attributes(void) {
  TF_Graph *g = TF_NewGraph();
  TF_OperationDescription *d = TF_NewOperation(g, "NoOp", "all");
  setAll(d);
  TF_Operation *op = TF_FinishOperation(d, status);
  ok("all");
  int n = TF_OperationGetNumAttrs(op);
  char names[32][16];
  for (int i = 0; i < n && i < 32; ++i) {
    int length = TF_OperationGetAttrNameLength(op, i);
    TF_OperationGetAttrName(op, i, names[i], status);
    ok("name");
    names[i][length] = 0; /* it comes without */
  }
  qsort(names, (size_t)n, sizeof names[0], byName);
  for (int i = 0; i < n; ++i)
    metadata(op, names[i]);
  getStrings(op);
  getNumbers(op);
  getShapesAndTensors(op);
  d = TF_NewOperation(g, "NoOp", "later");
  TF_SetAttrPlaceholder(d, "_p", "T");
  op = TF_FinishOperation(d, status);
  ok("later");
  metadata(op, "_p");
  TF_DeleteGraph(g);
}

static int freed;
static void release(void *data, size_t length, void *argument) {
  ++freed;
  *(size_t *)argument = length;
  free(data);
}

static void tensors(void) {
  size_t length = 0;
  int64_t dims[] = {2, 3}, other[] = {3, 2}, bytes[] = {24};
  float *data = aligned_alloc(64, 64);
  for (int i = 0; i < 6; ++i)
    data[i] = (float)i;
  TF_Tensor *t = TF_NewTensor(TF_FLOAT, dims, 2, data, 6 * sizeof(float), release, &length);
  printf("tensor: %d dims, %lld elements, %zu bytes, aligned %d, default %zu\n", TF_NumDims(t), (long long)TF_TensorElementCount(t),
         TF_TensorByteSize(t), TF_TensorIsAligned(t), TF_TensorDefaultAlignment() >= 16 ? (size_t)1 : (size_t)0);
  TF_SetShape(t, other, 2);
  printf("new shape %lld x %lld\n", (long long)TF_Dim(t, 0), (long long)TF_Dim(t, 1));
  TF_Tensor *to = TF_AllocateTensor(TF_UINT8, bytes, 1, 24);
  TF_TensorBitcastFrom(t, TF_UINT8, to, bytes, 1, status);
  ok("bitcast");
  printf("bitcast: %d bytes, the same memory %d\n", (int)TF_TensorElementCount(to), TF_TensorData(to) == TF_TensorData(t));
  TF_TensorBitcastFrom(t, TF_DOUBLE, to, bytes, 1, status);
  code("bitcast to another number of bytes");
  TF_DeleteTensor(to);
  printf("moved from the caller's memory %d\n", TF_TensorMaybeMove(t) != NULL);
  TF_DeleteTensor(t);
  t = TF_TensorMaybeMove(int32(1));
  printf("moved %d\n", t != NULL);
  TF_DeleteTensor(t);
  printf("freed %d of %zu bytes\n", freed, length);
  /* dtype: DT_INT32, int_val: 6; a scalar */
  static const char message[] = {0x08, 0x03, 0x12, 0x00, 0x3a, 0x01, 0x06};
  TF_Buffer *proto = TF_NewBufferFromString(message, sizeof message);
  t = TF_AllocateTensor(TF_INT32, NULL, 0, 4);
  TF_TensorFromProto(proto, t, status);
  ok("from a message");
  printf("from a message: %d\n", *(int32_t *)TF_TensorData(t));
  TF_DeleteBuffer(proto);
  proto = TF_NewBufferFromString("\xff\xff", 2);
  TF_TensorFromProto(proto, t, status);
  code("unparseable TensorProto");
  TF_DeleteBuffer(proto);
  TF_DeleteTensor(t);
  TF_TString s;
  TF_StringInit(&s);
  TF_StringAssignView(&s, "seen, not copied, and longer than small", 40);
  printf("view: type %d, %zu bytes, capacity %d\n", (int)TF_StringGetType(&s), TF_StringGetSize(&s), TF_StringGetCapacity(&s) == 0);
  TF_StringDealloc(&s);
}

static void visit(const char *key, const char *value, void *capture) {
  ++*(int *)capture;
  printf("payload %s=%s\n", key, value);
}

static void statuses(void) {
  TF_Status *s = TF_NewStatus();
  int n = 0, numbers[] = {0, ENOENT, EEXIST, EACCES, ENOSPC, EINVAL, EAGAIN, ENOSYS, ECANCELED, ETIMEDOUT, ERANGE, 9999};
  TF_SetPayload(s, "k", "of no error");
  TF_ForEachPayload(s, visit, &n);
  TF_SetStatus(s, TF_ABORTED, "stopped");
  TF_SetPayload(s, "k", "v");
  TF_ForEachPayload(s, visit, &n);
  printf("status %d '%s' with %d payloads\n", (int)TF_GetCode(s), TF_Message(s), n);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    TF_SetStatusFromIOError(s, numbers[i], "file");
    printf("errno %d: %d\n", numbers[i], (int)TF_GetCode(s));
  }
  TF_DeleteStatus(s);
  printf("version %.2s\n", TF_Version());
  for (int type = 1; type <= TF_UINT4; ++type)
    printf("%zu ", TF_DataTypeSize((TF_DataType)type));
  printf("\n");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  status = TF_NewStatus();
  attributes();
  tensors();
  statuses();
  TF_DeleteStatus(status);
  return 0;
}
