/* Delegates of the program: when Prepare is called, what it may ask, and what its result does. Prints the same with LiteRT's library and with
 * ours, but for what stands behind "nodes:", where compiled operators are none that a delegate could take. With a second argument one tries to
 * take an operator, which is an error of ours alone. */
#include "tensorflow/lite/c/c_api_experimental.h"
#include "tensorflow/lite/c/c_api_opaque.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the next Prepare does. */
enum { kNothing, kFail, kTakeNone, kTake };
static int what = kNothing, prepared = 0;

static int errors = 0;
static void report(void *user, const char *format, va_list args) {
  (void)user;
  if (what == kTake)
    vprintf(format, args), printf("\n");
  ++errors;
}

static TfLiteStatus invoke(TfLiteOpaqueContext *context, TfLiteOpaqueNode *node) {
  (void)context, (void)node;
  return kTfLiteError;
}

static TfLiteStatus prepare(TfLiteOpaqueContext *context, TfLiteOpaqueDelegate *delegate, void *data) {
  TfLiteIntArray *plan = NULL;
  const int *list = NULL;
  int count = 0;
  ++prepared;
  printf("prepare: data %s, of the delegate %s\n", (const char *)data, (const char *)TfLiteOpaqueDelegateGetData(delegate));
  printf("plan: %d\n", TfLiteOpaqueContextGetExecutionPlan(context, &plan));
  for (int i = 0; i < plan->size; ++i) {
    TfLiteOpaqueNode *node;
    TfLiteOperator *op;
    if (TfLiteOpaqueContextGetNodeAndRegistration(context, plan->data[i], &node, &op) == kTfLiteOk)
      printf("nodes: builtin %d\n", (int)TfLiteOperatorGetBuiltInCode(op));
  }
  printf("inputs: %d", TfLiteOpaqueContextGetInputs(context, &list, &count));
  for (int i = 0; i < count; ++i)
    printf(" %s of type %d", TfLiteOpaqueTensorName(TfLiteOpaqueContextGetOpaqueTensor(context, list[i])),
           (int)TfLiteOpaqueTensorType(TfLiteOpaqueContextGetOpaqueTensor(context, list[i])));
  printf("\noutputs: %d", TfLiteOpaqueContextGetOutputs(context, &list, &count));
  printf(" of %d\n", count);
  if (what == kFail)
    return kTfLiteError;
  if (what == kNothing)
    return kTfLiteOk;
  TfLiteOperator *kernel = TfLiteOperatorCreate((TfLiteBuiltinOperator)51, "Taker", 1);
  TfLiteOperatorSetInvoke(kernel, invoke);
  TfLiteIntArray *nodes = TfLiteIntArrayCreate(what == kTake);
  if (what == kTake)
    nodes->data[0] = 0;
  /* the kernel is the context's from here on */
  TfLiteStatus status = TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes, delegate);
  printf("replace %s: %d\n", what == kTake ? "one" : "none", status);
  TfLiteIntArrayFree(nodes);
  return status;
}

static void run(TfLiteInterpreter *it) {
  printf("allocate: %d\n", TfLiteInterpreterAllocateTensors(it));
  TfLiteTensor *x = TfLiteInterpreterGetInputTensor(it, 0);
  memset(TfLiteTensorData(x), 1, TfLiteTensorByteSize(x));
  const int status = TfLiteInterpreterInvoke(it);
  const unsigned char *out = TfLiteTensorData(TfLiteInterpreterGetOutputTensor(it, 0));
  printf("invoke: %d, %d\n", status, out[0]);
}

static TfLiteInterpreterOptions *optionsWith(TfLiteDelegate *a, TfLiteDelegate *b) {
  TfLiteInterpreterOptions *options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetErrorReporter(options, report, NULL);
  if (a)
    TfLiteInterpreterOptionsAddDelegate(options, a);
  if (b)
    TfLiteInterpreterOptionsAddDelegate(options, b);
  return options;
}

int main(int argc, char **argv) {
  static char mine[] = "mine";
  TfLiteOpaqueDelegateBuilder builder = {mine, prepare, NULL, NULL, NULL, 0};
  if (argc < 2)
    return 2;
  TfLiteModel *model = TfLiteModelCreateFromFile(argv[1]);
  TfLiteOpaqueDelegate *delegate = TfLiteOpaqueDelegateCreate(&builder);
  for (what = argc > 2 ? kTake : kNothing; what <= (argc > 2 ? kTake : kTakeNone); ++what) {
    printf("options, %d\n", what);
    errors = 0;
    TfLiteInterpreterOptions *options = optionsWith(delegate, NULL);
    TfLiteInterpreter *it = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    printf("interpreter: %s, errors: %s\n", it ? "made" : "none", errors ? "some" : "none");
    if (it)
      run(it);
    TfLiteInterpreterDelete(it);
  }
  for (what = kNothing; what <= kTakeNone && argc == 2; ++what) {
    printf("modify, %d\n", what);
    TfLiteInterpreterOptions *options = optionsWith(NULL, NULL);
    TfLiteInterpreter *it = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    printf("allocate: %d\n", TfLiteInterpreterAllocateTensors(it));
    printf("modify: %d\n", TfLiteInterpreterModifyGraphWithDelegate(it, delegate));
    run(it);
    TfLiteInterpreterDelete(it);
  }
  printf("two, one after the other\n");
  what = kNothing;
  prepared = 0;
  TfLiteInterpreterOptions *options = optionsWith(delegate, delegate);
  TfLiteInterpreter *it = TfLiteInterpreterCreate(model, options);
  TfLiteInterpreterOptionsDelete(options);
  printf("prepared: %d, interpreter: %s\n", prepared, it ? "made" : "none");
  if (it) {
    printf("modify: %d\n", TfLiteInterpreterModifyGraphWithDelegate(it, NULL));
    run(it);
    run(it);
    printf("prepared: %d\n", prepared);
  }
  TfLiteInterpreterDelete(it);
  TfLiteOpaqueDelegateDelete(delegate);
  TfLiteModelDelete(model);
  return 0;
}
