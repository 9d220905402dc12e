/* Operators of the program: one given as a registration that looks into structures, one as an operator behind functions. Prints what
 * comes out for two sizes of the input, and what goes wrong without one of them. */
#include "tensorflow/lite/c/c_api_experimental.h"

#include <stdio.h>
#include <string.h>

static int freed = 0, reports = 0;

static void *sumsInit(TfLiteContext *c, const char *buffer, size_t length) {
  (void)c, (void)buffer;
  static int data;
  data = 40 + (int)length;
  return &data;
}
static void sumsFree(TfLiteContext *c, void *data) {
  (void)c;
  freed += *(int *)data;
}
static TfLiteStatus sumsPrepare(TfLiteContext *c, TfLiteNode *node) {
  const TfLiteTensor *x = &c->tensors[node->inputs->data[0]];
  if (node->inputs->size != 1 || node->outputs->size != 2 || x->dims->size != 2)
    return kTfLiteError;
  for (int i = 0; i < 2; ++i) {
    TfLiteIntArray *size = TfLiteIntArrayCreate(1);
    size->data[0] = x->dims->data[0];
    if (c->ResizeTensor(c, &c->tensors[node->outputs->data[i]], size) != kTfLiteOk)
      return kTfLiteError;
  }
  return kTfLiteOk;
}
static TfLiteStatus sumsInvoke(TfLiteContext *c, TfLiteNode *node) {
  const TfLiteTensor *x = &c->tensors[node->inputs->data[0]];
  float *sums = c->tensors[node->outputs->data[0]].data.f, *largest = c->tensors[node->outputs->data[1]].data.f;
  const int rows = x->dims->data[0], columns = x->dims->data[1];
  for (int i = 0; i < rows; ++i) {
    sums[i] = 0;
    largest[i] = x->data.f[i * columns];
    for (int j = 0; j < columns; ++j) {
      sums[i] += x->data.f[i * columns + j];
      if (x->data.f[i * columns + j] > largest[i])
        largest[i] = x->data.f[i * columns + j];
    }
  }
  return *(int *)node->user_data == 40 ? kTfLiteOk : kTfLiteError;
}

static TfLiteStatus repeatPrepare(void *user, TfLiteOpaqueContext *c, TfLiteOpaqueNode *node) {
  const void *options;
  int size = 0;
  if (TfLiteOpaqueNodeGetCustomInitialData(node, &options, &size) != kTfLiteOk || size != 1)
    return kTfLiteError;
  *(int *)user = *(const char *)options;
  TfLiteIntArray *dims = TfLiteIntArrayCreate(1);
  dims->data[0] = TfLiteOpaqueTensorDim(TfLiteOpaqueNodeGetInput(c, node, 0), 0) * *(int *)user;
  return TfLiteOpaqueContextResizeTensor(c, TfLiteOpaqueNodeGetOutput(c, node, 0), dims);
}
static TfLiteStatus repeatInvoke(void *user, TfLiteOpaqueContext *c, TfLiteOpaqueNode *node) {
  const TfLiteOpaqueTensor *x = TfLiteOpaqueNodeGetInput(c, node, 0);
  TfLiteOpaqueTensor *y = TfLiteOpaqueNodeGetOutput(c, node, 0);
  const size_t bytes = TfLiteOpaqueTensorByteSize(x);
  for (int i = 0; i < *(int *)user; ++i)
    memcpy((char *)TfLiteOpaqueTensorData(y) + (size_t)i * bytes, TfLiteOpaqueTensorData(x), bytes);
  return TfLiteOpaqueTensorByteSize(y) == (size_t)*(int *)user * bytes ? kTfLiteOk : kTfLiteError;
}

static void print(const char *name, const TfLiteTensor *t) {
  float values[16];
  const size_t count = TfLiteTensorByteSize(t) / sizeof(float);
  if (count > 16 || TfLiteTensorCopyToBuffer(t, values, TfLiteTensorByteSize(t)) != kTfLiteOk)
    return;
  printf("%s [%d]:", name, (int)TfLiteTensorDim(t, 0));
  for (size_t i = 0; i < count; ++i)
    printf(" %g", values[i]);
  printf("\n");
}

static void report(void *user, const char *format, va_list args) {
  (void)format, (void)args;
  ++*(int *)user;
}

static int run(TfLiteInterpreter *interpreter, int rows) {
  const int dims[2] = {rows, 3};
  if (TfLiteInterpreterResizeInputTensor(interpreter, 0, dims, 2) != kTfLiteOk || TfLiteInterpreterAllocateTensors(interpreter) != kTfLiteOk)
    return 0;
  TfLiteTensor *x = TfLiteInterpreterGetInputTensor(interpreter, 0);
  for (int i = 0; i < rows * 3; ++i)
    ((float *)TfLiteTensorData(x))[i] = (float)(i * i) * 0.5f - 1;
  for (int again = 0; again < 2; ++again)
    if (TfLiteInterpreterInvoke(interpreter) != kTfLiteOk)
      return 0;
  print("repeated", TfLiteInterpreterGetOutputTensor(interpreter, 0));
  print("largest", TfLiteInterpreterGetOutputTensor(interpreter, 1));
  return 1;
}

int main(int argc, char **argv) {
  TfLiteModel *model = argc > 1 ? TfLiteModelCreateFromFile(argv[1]) : NULL;
  if (!model)
    return 1;
  TfLiteInterpreterOptions *options = TfLiteInterpreterOptionsCreate();
  const TfLiteRegistration sums = {.init = sumsInit, .free = sumsFree, .prepare = sumsPrepare, .invoke = sumsInvoke};
  TfLiteInterpreterOptionsAddCustomOp(options, "RowSums", &sums, 1, 1);
  TfLiteInterpreterOptionsSetErrorReporter(options, report, &reports);

  int times = 0;
  TfLiteOperator *repeat = TfLiteOperatorCreateWithData(kTfLiteBuiltinCustom, "Repeat", 2, &times);
  printf("operator %s %d\n", TfLiteOperatorGetCustomName(repeat), TfLiteOperatorGetVersion(repeat));
  TfLiteOperatorSetPrepareWithData(repeat, repeatPrepare);
  TfLiteOperatorSetInvokeWithData(repeat, repeatInvoke);
  TfLiteInterpreterOptionsAddOperator(options, repeat);

  TfLiteInterpreter *interpreter = TfLiteInterpreterCreate(model, options);
  if (!interpreter || !run(interpreter, 2) || !run(interpreter, 4))
    return 1;
  printf("index %d %d\n", TfLiteInterpreterGetInputTensorIndex(interpreter, 0), TfLiteInterpreterGetOutputTensorIndex(interpreter, 1));
  TfLiteInterpreterDelete(interpreter);
  printf("freed %d\n", freed);
  TfLiteInterpreterOptionsDelete(options);

  /* Arrays and tensors of the program itself. */
  TfLiteIntArray *a = TfLiteIntArrayCreate(2), *b = TfLiteIntArrayCopy((a->data[0] = 3, a->data[1] = 4, a));
  printf("arrays %d %d %zu\n", TfLiteIntArrayEqual(a, b), TfLiteIntArrayEqualsArray(a, 1, b->data), TfLiteIntArrayGetSizeInBytes(3));
  TfLiteTensor t;
  memset(&t, 0, sizeof t);
  const TfLiteQuantizationParams params = {0.5f, 3};
  TfLiteTensorReset(kTfLiteString, "words", a, params, NULL, 0, kTfLiteDynamic, NULL, false, &t);
  const char *words[3] = {"one", "", "three"};
  const int lengths[3] = {3, 0, 5};
  TfLiteOpaqueTensor *opaque = (TfLiteOpaqueTensor *)&t;
  const char *word = NULL;
  int length = 0;
  TfLiteOpaqueTensorWriteStrings(opaque, words, 3, lengths);
  TfLiteOpaqueTensorGetString(opaque, 2, &word, &length);
  printf("strings %d %.*s %zu %d\n", TfLiteOpaqueTensorGetStringCount(opaque), length, word, t.bytes, (int)TfLiteTensorGetDataKnownStep(&t));
  TfLiteTensorFree(&t);
  TfLiteIntArrayFree(b);

  /* Without Repeat. */
  options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddCustomOp(options, "RowSums", &sums, 1, 1);
  TfLiteInterpreterOptionsSetErrorReporter(options, report, &reports);
  interpreter = TfLiteInterpreterCreate(model, options);
  printf("without: %d\n", !interpreter || TfLiteInterpreterAllocateTensors(interpreter) != kTfLiteOk);
  TfLiteInterpreterDelete(interpreter);
  printf("reported: %d\n", reports > 0);
  interpreter = TfLiteInterpreterCreateWithSelectedOps(model, options);
  printf("selected: %d\n", interpreter != NULL);
  TfLiteInterpreterDelete(interpreter);
  TfLiteInterpreterOptionsDelete(options);
  TfLiteOperatorDelete(repeat);
  TfLiteModelDelete(model);
  return 0;
}
