/* What the programs of this folder share: making and running small graphs and printing. */
#ifndef LATHE_TEST_C_API_SUPPORT_H
#define LATHE_TEST_C_API_SUPPORT_H

#include "tensorflow/c/c_api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TF_Status *status;

/* Of a call that has to work. */
static inline void ok(const char *what) {
  if (TF_GetCode(status) == TF_OK)
    return;
  printf("%s: code %d: %s\n", what, (int)TF_GetCode(status), TF_Message(status));
  exit(1);
}
/* Of a call whose code is what is tested. */
static inline void code(const char *what) {
  printf("wrong: %-34s %d\n", what, (int)TF_GetCode(status));
  TF_SetStatus(status, TF_OK, ""); /* not every function of TensorFlow's does */
}

static inline TF_Buffer *readFile(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f) {
    printf("cannot read %s\n", path);
    exit(1);
  }
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *data = malloc((size_t)size + 1);
  size_t got = fread(data, 1, (size_t)size, f);
  fclose(f);
  TF_Buffer *buffer = TF_NewBufferFromString(data, got);
  free(data);
  return buffer;
}

static inline TF_Tensor *floats(const int64_t *dims, int rank, const float *values) {
  size_t n = 1;
  for (int i = 0; i < rank; ++i)
    n *= (size_t)dims[i];
  TF_Tensor *t = TF_AllocateTensor(TF_FLOAT, dims, rank, n * sizeof(float));
  memcpy(TF_TensorData(t), values, n * sizeof(float));
  return t;
}
static inline TF_Tensor *int32(int32_t value) {
  TF_Tensor *t = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  memcpy(TF_TensorData(t), &value, sizeof value);
  return t;
}
static inline TF_Operation *placeholder(TF_Graph *g, const char *name, TF_DataType type, const int64_t *dims, int rank) {
  TF_OperationDescription *d = TF_NewOperation(g, "Placeholder", name);
  TF_SetAttrType(d, "dtype", type);
  if (rank >= 0)
    TF_SetAttrShape(d, "shape", dims, rank);
  TF_Operation *op = TF_FinishOperation(d, status);
  ok(name);
  return op;
}
static inline TF_Operation *constant(TF_Graph *g, const char *name, TF_Tensor *value) {
  TF_OperationDescription *d = TF_NewOperation(g, "Const", name);
  TF_SetAttrTensor(d, "value", value, status);
  ok(name);
  TF_SetAttrType(d, "dtype", TF_TensorType(value));
  TF_Operation *op = TF_FinishOperation(d, status);
  ok(name);
  TF_DeleteTensor(value);
  return op;
}
static inline TF_Output at(TF_Operation *op, int i) {
  TF_Output o = {op, i};
  return o;
}
/* NULL with the status set where it does not work. */
static inline TF_Operation *tryBinary(TF_Graph *g, const char *type, const char *name, TF_Output a, TF_Output b) {
  TF_OperationDescription *d = TF_NewOperation(g, type, name);
  TF_AddInput(d, a);
  TF_AddInput(d, b);
  return TF_FinishOperation(d, status);
}
static inline TF_Operation *binary(TF_Graph *g, const char *type, const char *name, TF_Output a, TF_Output b) {
  TF_Operation *op = tryBinary(g, type, name, a, b);
  ok(name);
  return op;
}
static inline TF_Session *newSession(TF_Graph *g) {
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_Session *s = TF_NewSession(g, o, status);
  ok("session");
  TF_DeleteSessionOptions(o);
  return s;
}
static inline void printShape(TF_Graph *g, TF_Output o) {
  int rank = TF_GraphGetTensorNumDims(g, o, status);
  ok("rank");
  int64_t dims[16];
  printf("shape of %s:%d:", TF_OperationName(o.oper), o.index);
  if (rank < 0) {
    printf(" unknown\n");
    return;
  }
  TF_GraphGetTensorShape(g, o, dims, rank, status);
  ok("shape");
  printf(" [");
  for (int i = 0; i < rank; ++i)
    printf("%s%lld", i ? "," : "", (long long)dims[i]);
  printf("]\n");
}
static inline void printFloats(const char *what, TF_Tensor *t) {
  printf("%s:", what);
  for (int64_t i = 0; i < TF_TensorElementCount(t) && i < 12; ++i)
    printf(" %.4f", fabs(((float *)TF_TensorData(t))[i]) < 5e-5 ? 0.0 : ((float *)TF_TensorData(t))[i]);
  printf("\n");
}

#endif
