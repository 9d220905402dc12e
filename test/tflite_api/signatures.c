/* Two signatures of one interpreter share its variable. */
#include "tensorflow/lite/c/c_api.h"

#include <stdio.h>

static void run(TfLiteSignatureRunner *r, const char *input, const void *data, size_t bytes, const char *output) {
  float out[2] = {0, 0};
  const TfLiteTensor *t;
  printf("set: %d", TfLiteTensorCopyFromBuffer(TfLiteSignatureRunnerGetInputTensor(r, input), data, bytes));
  printf(" invoke: %d", TfLiteSignatureRunnerInvoke(r));
  t = TfLiteSignatureRunnerGetOutputTensor(r, output);
  printf(" get: %d", TfLiteTensorCopyToBuffer(t, out, sizeof out));
  printf(" %s = %g %g\n", output, (double)out[0], (double)out[1]);
}

int main(int argc, char **argv) {
  const float x[2] = {1, 2}, factor = 3;
  TfLiteModel *model = argc == 2 ? TfLiteModelCreateFromFile(argv[1]) : NULL;
  TfLiteInterpreter *it = TfLiteInterpreterCreate(model, NULL);
  if (!it)
    return 1;
  TfLiteSignatureRunner *add = TfLiteInterpreterGetSignatureRunner(it, "add"), *scaled = TfLiteInterpreterGetSignatureRunner(it, "scaled");
  printf("other: %s\n", TfLiteInterpreterGetSignatureRunner(it, "other") ? "there" : "not there");
  printf("allocate: %d %d\n", TfLiteSignatureRunnerAllocateTensors(add), TfLiteSignatureRunnerAllocateTensors(scaled));
  run(add, "x", x, sizeof x, "sum");
  run(scaled, "factor", &factor, sizeof factor, "scaled");
  run(add, "x", x, sizeof x, "sum");
  run(add, "x", x, sizeof x, "sum");
  run(scaled, "factor", &factor, sizeof factor, "scaled");
  printf("no such input: %s\n", TfLiteSignatureRunnerGetInputTensor(add, "y") ? "there" : "not there");
  TfLiteSignatureRunnerDelete(add);
  TfLiteSignatureRunnerDelete(scaled);
  TfLiteInterpreterDelete(it);
  TfLiteModelDelete(model);
  return 0;
}
