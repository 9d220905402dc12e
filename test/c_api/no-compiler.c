/* A run that needs no compiler, and one that does. */
#include "tensorflow/c/c_api.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  TF_Status *status = TF_NewStatus();
  TF_Graph *g = TF_NewGraph();
  TF_TString text;
  float one = 1;
  int64_t dims[] = {1, 1};
  TF_StringInit(&text);
  TF_StringCopy(&text, "a", 1);
  TF_Tensor *values[] = {TF_AllocateTensor(TF_STRING, NULL, 0, sizeof text), TF_AllocateTensor(TF_FLOAT, dims, 2, sizeof one)};
  memcpy(TF_TensorData(values[0]), &text, sizeof text);
  memcpy(TF_TensorData(values[1]), &one, sizeof one);
  for (int i = 0; i < 2; ++i) {
    const char *op = i ? "MatMul" : "StringUpper";
    TF_OperationDescription *d = TF_NewOperation(g, "Placeholder", i ? "x" : "s");
    TF_SetAttrType(d, "dtype", i ? TF_FLOAT : TF_STRING);
    TF_Output in = {TF_FinishOperation(d, status), 0};
    d = TF_NewOperation(g, op, i ? "z" : "u");
    TF_AddInput(d, in);
    if (i)
      TF_AddInput(d, in);
    TF_Output out = {TF_FinishOperation(d, status), 0};
    TF_SessionOptions *o = TF_NewSessionOptions();
    TF_Session *s = TF_NewSession(g, o, status);
    TF_Tensor *result = NULL;
    TF_SessionRun(s, NULL, &in, &values[i], 1, &out, &result, 1, NULL, 0, NULL, status);
    printf("%s: %d: %s\n", op, (int)TF_GetCode(status), TF_Message(status));
    TF_DeleteTensor(result);
    TF_DeleteTensor(values[i]);
    TF_DeleteSession(s, status);
    TF_DeleteSessionOptions(o);
  }
  TF_DeleteGraph(g);
  TF_DeleteStatus(status);
  return 0;
}
