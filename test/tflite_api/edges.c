/* Calls in an order that few programs have: before tensors are allocated, between a resize and the next allocation, with memory of the
 * program's own, on one signature while another waits. Prints what it sees, the same with LiteRT's library and with ours. */
#include "tensorflow/lite/c/c_api_experimental.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int errors = 0;

static void report(void *user, const char *format, va_list args) {
  (void)user, (void)format, (void)args;
  ++errors;
}

static void status(const char *what, int s) {
  printf("%s: %d\n", what, s);
  fflush(stdout);
}

static TfLiteInterpreter *make(const TfLiteModel *model, int threads, int cancel) {
  TfLiteInterpreterOptions *options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, report, NULL);
  TfLiteInterpreterOptionsSetNumThreads(options, threads);
  if (cancel)
    status("enable", TfLiteInterpreterOptionsEnableCancellation(options, 1));
  TfLiteInterpreter *it = TfLiteInterpreterCreate(model, options);
  TfLiteInterpreterOptionsDelete(options);
  return it;
}

static void show(const TfLiteTensor *t) {
  printf("%s [", TfLiteTensorName(t));
  for (int i = 0; i < TfLiteTensorNumDims(t); ++i)
    printf(" %d", TfLiteTensorDim(t, i));
  printf(" ] bytes %d data %s", (int)TfLiteTensorByteSize(t), TfLiteTensorData(t) ? "there" : "none");
  for (size_t i = 0; TfLiteTensorData(t) && i < TfLiteTensorByteSize(t) / 4; ++i)
    printf(" %g", (double)((const float *)TfLiteTensorData(t))[i]);
  printf("\n");
}

static void fill(TfLiteTensor *t) {
  for (size_t i = 0; i < TfLiteTensorByteSize(t) / 4; ++i)
    ((float *)TfLiteTensorData(t))[i] = (float)i - 1;
}

static void resized(const TfLiteModel *model, const int *dims, int rank) {
  TfLiteInterpreter *it = make(model, 1, 0);
  TfLiteTensor *x = TfLiteInterpreterGetInputTensor(it, 0);
  status("resize", TfLiteInterpreterResizeInputTensor(it, 0, dims, rank));
  show(x);
  status("invoke", TfLiteInterpreterInvoke(it));
  status("allocate", TfLiteInterpreterAllocateTensors(it));
  fill(x);
  status("invoke", TfLiteInterpreterInvoke(it));
  show(TfLiteInterpreterGetOutputTensor(it, 0));
  TfLiteInterpreterDelete(it);
}

/* Memory of the program is used at once, without another allocation of tensors; what is too small is told by the next one. */
static void ownMemory(const TfLiteModel *model) {
  TfLiteInterpreter *it = make(model, 1, 0);
  float *memory = aligned_alloc(64, 256);
  const int in = TfLiteInterpreterGetInputTensorIndex(it, 0), big[2] = {16, 8};
  TfLiteCustomAllocation all = {memory, 256}, askew = {memory + 1, 192};
  status("allocate", TfLiteInterpreterAllocateTensors(it));
  status("askew", TfLiteInterpreterSetCustomAllocationForTensor(it, in, &askew, 0));
  status("nothing", TfLiteInterpreterSetCustomAllocationForTensor(it, in, NULL, 0));
  status("own", TfLiteInterpreterSetCustomAllocationForTensor(it, in, &all, 0));
  printf("%s\n", TfLiteTensorData(TfLiteInterpreterGetInputTensor(it, 0)) == (void *)memory ? "used" : "not used");
  memory[0] = 5, memory[1] = 7;
  status("invoke", TfLiteInterpreterInvoke(it));
  show(TfLiteInterpreterGetOutputTensor(it, 0));
  status("resize", TfLiteInterpreterResizeInputTensor(it, 0, big, 2));
  status("allocate", TfLiteInterpreterAllocateTensors(it));
  TfLiteInterpreterDelete(it);
  free(memory);
}

/* Resizing one signature leaves the other as it is. */
static void signatures(const TfLiteModel *model) {
  TfLiteInterpreter *it = make(model, 1, 1);
  TfLiteSignatureRunner *sum = TfLiteInterpreterGetSignatureRunner(it, "sum"), *product = TfLiteInterpreterGetSignatureRunner(it, "product");
  const int dims[2] = {2, 2};
  status("cancel", TfLiteSignatureRunnerCancel(product));
  status("invoke", TfLiteSignatureRunnerInvoke(product));
  status("allocate", TfLiteSignatureRunnerAllocateTensors(sum));
  status("allocate", TfLiteSignatureRunnerAllocateTensors(product));
  fill(TfLiteSignatureRunnerGetInputTensor(product, "a"));
  fill(TfLiteSignatureRunnerGetInputTensor(product, "b"));
  status("resize", TfLiteSignatureRunnerResizeInputTensor(sum, "x", dims, 2));
  status("no such input", TfLiteSignatureRunnerResizeInputTensor(sum, "y", dims, 2));
  status("sum", TfLiteSignatureRunnerInvoke(sum));
  status("product", TfLiteSignatureRunnerInvoke(product));
  show(TfLiteSignatureRunnerGetOutputTensor(product, "ab"));
  status("allocate", TfLiteSignatureRunnerAllocateTensors(sum));
  fill(TfLiteSignatureRunnerGetInputTensor(sum, "x"));
  status("sum", TfLiteSignatureRunnerInvoke(sum));
  show(TfLiteSignatureRunnerGetOutputTensor(sum, "xxx"));
  status("product", TfLiteSignatureRunnerInvoke(product));
  show(TfLiteSignatureRunnerGetOutputTensor(product, "ab"));
  TfLiteSignatureRunnerDelete(sum);
  TfLiteSignatureRunnerDelete(product);
  TfLiteInterpreterDelete(it);
}

int main(int argc, char **argv) {
  TfLiteModel *model = argc == 2 ? TfLiteModelCreateFromFile(argv[1]) : NULL;
  if (!model)
    return 1;
  for (int threads = -2; threads < 2; ++threads) {
    errors = 0;
    TfLiteInterpreter *it = make(model, threads, 0);
    printf("%d threads: %s, %s\n", threads, it ? "made" : "not made", errors ? "an error" : "no error");
    TfLiteInterpreterDelete(it);
  }
  TfLiteInterpreter *it = make(model, 1, 0);
  show(TfLiteInterpreterGetInputTensor(it, 0));
  status("invoke", TfLiteInterpreterInvoke(it));
  status("cancel", TfLiteInterpreterCancel(it));
  status("reset", TfLiteInterpreterResetVariableTensors(it));
  TfLiteInterpreterDelete(it);
  const int wide[2] = {3, 4}, cube[3] = {2, 1, 2}, negative[2] = {-1, 2};
  resized(model, wide, 2);
  resized(model, cube, 3);
  resized(model, NULL, 0);
  it = make(model, 1, 0);
  status("negative", TfLiteInterpreterResizeInputTensor(it, 0, negative, 2));
  TfLiteInterpreterDelete(it);
  ownMemory(model);
  signatures(model);
  TfLiteModelDelete(model);
  return 0;
}
