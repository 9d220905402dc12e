/* A program for TensorFlow Lite's C interface: runs a model for some steps on numbers of its own and prints what it sees. The same
 * source runs on LiteRT's library and on ours; what it prints does not tell which. */
#include "tensorflow/lite/c/c_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report(void *user, const char *format, va_list args) {
  (void)format;
  (void)args;
  ++*(int *)user;
}

static void show(const char *what, const TfLiteTensor *t) {
  TfLiteQuantizationParams q = TfLiteTensorQuantizationParams(t);
  printf("%s %s type %s dims", what, TfLiteTensorName(t), TfLiteTypeGetName(TfLiteTensorType(t)));
  for (int32_t i = 0; i < TfLiteTensorNumDims(t); ++i)
    printf(" %d", TfLiteTensorDim(t, i));
  printf(" bytes %d scale %.6g zero %d\n", (int)TfLiteTensorByteSize(t), (double)q.scale, q.zero_point);
}

/* Whole numbers are printed as they are, floats with the digits that are the same everywhere. */
static void values(const TfLiteTensor *t) {
  size_t bytes = TfLiteTensorByteSize(t);
  unsigned char *data = malloc(bytes + 1);
  if (TfLiteTensorCopyToBuffer(t, data, bytes) != kTfLiteOk)
    printf("no copy\n");
  if (TfLiteTensorType(t) == kTfLiteFloat32)
    for (size_t i = 0; i < bytes / 4 && i < 8; ++i)
      printf(" %.3f", (double)((float *)(void *)data)[i] + 0.0);
  else
    for (size_t i = 0; i < bytes && i < 16; ++i)
      printf(" %d", data[i]);
  printf("\n");
  free(data);
}

static void fill(TfLiteTensor *t, unsigned seed) {
  size_t bytes = TfLiteTensorByteSize(t);
  unsigned char *data = malloc(bytes + 1);
  for (size_t i = 0; i < bytes; ++i)
    data[i] = (unsigned char)(seed = seed * 1103515245u + 12345u, seed >> 16);
  if (TfLiteTensorType(t) == kTfLiteFloat32)
    for (size_t i = 0; i < bytes / 4; ++i)
      ((float *)(void *)data)[i] = (float)(data[4 * i] - 128) / 64;
  if (TfLiteTensorCopyFromBuffer(t, data, bytes) != kTfLiteOk)
    printf("no copy\n");
  free(data);
}

int main(int argc, char **argv) {
  int errors = 0;
  if (argc != 2)
    return 1;
  printf("schema %d\n", TfLiteSchemaVersion());
  printf("bad model: %s\n", TfLiteModelCreateWithErrorReporter("nothing", 7, report, &errors) ? "made" : "refused");
  TfLiteModel *model = TfLiteModelCreateFromFile(argv[1]);
  TfLiteInterpreterOptions *options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetNumThreads(options, 2);
  TfLiteInterpreterOptionsSetErrorReporter(options, report, &errors);
  TfLiteInterpreter *it = TfLiteInterpreterCreate(model, options);
  TfLiteInterpreterOptionsDelete(options);
  TfLiteModelDelete(model);
  if (!it)
    return 1;
  printf("%d inputs, %d outputs, %d signatures\n", TfLiteInterpreterGetInputTensorCount(it), TfLiteInterpreterGetOutputTensorCount(it),
         TfLiteInterpreterGetSignatureCount(it));
  printf("allocate: %d\n", TfLiteInterpreterAllocateTensors(it));
  for (int i = 0; i < TfLiteInterpreterGetInputTensorCount(it); ++i)
    show("input", TfLiteInterpreterGetInputTensor(it, i));
  for (int i = 0; i < TfLiteInterpreterGetOutputTensorCount(it); ++i)
    show("output", TfLiteInterpreterGetOutputTensor(it, i));
  for (unsigned step = 0; step < 4; ++step) {
    for (int i = 0; i < TfLiteInterpreterGetInputTensorCount(it); ++i)
      fill(TfLiteInterpreterGetInputTensor(it, i), 7 * step + (unsigned)i);
    printf("invoke: %d\n", TfLiteInterpreterInvoke(it));
    for (int i = 0; i < TfLiteInterpreterGetOutputTensorCount(it); ++i)
      values(TfLiteInterpreterGetOutputTensor(it, i));
  }
  printf("wrong size: %d\n", TfLiteTensorCopyFromBuffer(TfLiteInterpreterGetInputTensor(it, 0), "x", 1));
  if (TfLiteInterpreterGetSignatureCount(it) > 0) {
    const char *key = TfLiteInterpreterGetSignatureKey(it, 0);
    TfLiteSignatureRunner *r = TfLiteInterpreterGetSignatureRunner(it, key);
    printf("signature %s: %d inputs, first %s; %d outputs, first %s\n", key, (int)TfLiteSignatureRunnerGetInputCount(r),
           TfLiteSignatureRunnerGetInputName(r, 0), (int)TfLiteSignatureRunnerGetOutputCount(r),
           TfLiteSignatureRunnerGetOutputName(r, 0));
    printf("allocate: %d\n", TfLiteSignatureRunnerAllocateTensors(r));
    fill(TfLiteSignatureRunnerGetInputTensor(r, TfLiteSignatureRunnerGetInputName(r, 0)), 99);
    printf("invoke: %d\n", TfLiteSignatureRunnerInvoke(r));
    values(TfLiteSignatureRunnerGetOutputTensor(r, TfLiteSignatureRunnerGetOutputName(r, 0)));
    TfLiteSignatureRunnerDelete(r);
  }
  TfLiteInterpreterDelete(it);
  printf("errors told: %s\n", errors ? "yes" : "no");
  return 0;
}
