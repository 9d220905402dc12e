/* What operators of a program's own use of their node, its tensors and the context they are called in. Functions that give an index
 * give -1, those that give a pointer NULL where there is nothing. */
#ifndef TENSORFLOW_LITE_C_C_API_OPAQUE_H_
#define TENSORFLOW_LITE_C_C_API_OPAQUE_H_

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operators. The caller keeps them, and for longer than any interpreter that has them. Set...WithData gives kTfLiteError where the
 * operator has the other form of the function already. */
typedef int TfLiteBuiltinOperator;
enum { kTfLiteBuiltinCustom = 32 };
TFL_CAPI_EXPORT TfLiteOperator *TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char *custom_name, int version);
TFL_CAPI_EXPORT TfLiteOperator *TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code, const char *custom_name, int version,
                                                             void *user_data);
TFL_CAPI_EXPORT void TfLiteOperatorDelete(TfLiteOperator *op);
TFL_CAPI_EXPORT TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator *op);
TFL_CAPI_EXPORT const char *TfLiteOperatorGetCustomName(const TfLiteOperator *op);
TFL_CAPI_EXPORT int TfLiteOperatorGetVersion(const TfLiteOperator *op);
TFL_CAPI_EXPORT void *TfLiteOperatorGetUserData(const TfLiteOperator *op);
TFL_CAPI_EXPORT void TfLiteOperatorSetInit(TfLiteOperator *op, void *(*init)(TfLiteOpaqueContext *, const char *buffer, size_t length));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInitWithData(
    TfLiteOperator *op, void *(*init)(void *user_data, TfLiteOpaqueContext *, const char *buffer, size_t length));
TFL_CAPI_EXPORT void TfLiteOperatorSetFree(TfLiteOperator *op, void (*free)(TfLiteOpaqueContext *, void *data));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator *op,
                                                           void (*free)(void *user_data, TfLiteOpaqueContext *, void *data));
TFL_CAPI_EXPORT void TfLiteOperatorSetPrepare(TfLiteOperator *op, TfLiteStatus (*prepare)(TfLiteOpaqueContext *, TfLiteOpaqueNode *));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetPrepareWithData(
    TfLiteOperator *op, TfLiteStatus (*prepare)(void *user_data, TfLiteOpaqueContext *, TfLiteOpaqueNode *));
TFL_CAPI_EXPORT void TfLiteOperatorSetInvoke(TfLiteOperator *op, TfLiteStatus (*invoke)(TfLiteOpaqueContext *, TfLiteOpaqueNode *));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInvokeWithData(
    TfLiteOperator *op, TfLiteStatus (*invoke)(void *user_data, TfLiteOpaqueContext *, TfLiteOpaqueNode *));
/* Kept and never called: nothing runs asynchronously. */
TFL_CAPI_EXPORT void TfLiteOperatorSetAsyncKernel(TfLiteOperator *op,
                                                  struct TfLiteAsyncKernel *(*kernel)(TfLiteOpaqueContext *, TfLiteOpaqueNode *));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(
    TfLiteOperator *op, struct TfLiteAsyncKernel *(*kernel)(void *user_data, TfLiteOpaqueContext *, TfLiteOpaqueNode *));
TFL_CAPI_EXPORT void TfLiteOperatorSetInplaceOperator(TfLiteOperator *op, uint64_t inplace_operator);
/* Custom operators of that name run by these functions, between the compiled parts; builtin ones are compiled in any case. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions *options, TfLiteOperator *op);

/* Tensors. */
TFL_CAPI_EXPORT TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor *t, int32_t dim_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor *t, int32_t *num_dims);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor *t, int32_t dim_index, int32_t *dim_length);
TFL_CAPI_EXPORT int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT void *TfLiteOpaqueTensorData(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT const char *TfLiteOpaqueTensorName(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor *t, const void *data, size_t size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor *t, void *data, size_t size);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor *t);
/* Strings: a count, offsets of count + 1 places, characters. -1 and kTfLiteError for tensors of other types or without data. */
TFL_CAPI_EXPORT int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor *t);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor *t, int index, const char **str, int *len);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor *t, const char *const *strings, int count, const int *lengths);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor *t, const char *str, int len);
typedef struct TfLiteOpaqueTensorBuilder TfLiteOpaqueTensorBuilder;
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderCreate(void);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder *b);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder *b, TfLiteType type);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder *b, void *data);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetAllocationType(TfLiteOpaqueTensorBuilder *b, TfLiteAllocationType type);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetQuantizationParams(TfLiteOpaqueTensorBuilder *b,
                                                                                          TfLiteQuantizationParams params);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetQuantization(TfLiteOpaqueTensorBuilder *b, TfLiteQuantization q);

/* Nodes. */
TFL_CAPI_EXPORT const TfLiteOpaqueTensor *TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int index);
TFL_CAPI_EXPORT TfLiteOpaqueTensor *TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int index);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode *n);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode *n);
TFL_CAPI_EXPORT void *TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode *n);
TFL_CAPI_EXPORT void *TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode *n);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode *n, const void **data, int *size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode *n, const int **inputs, int *count);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode *n, const int **outputs, int *count);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode *n, const int **temporaries, int *count);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode *n, const int *temporaries, int count);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode *n, int index);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode *n, int index);

/* Contexts. The plan and the nodes are those that run by functions of the program: compiled ones have no nodes. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext *c, TfLiteIntArray **plan);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext *c, int node_index, TfLiteOpaqueNode **node,
                                                                       TfLiteOperator **op);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(TfLiteOpaqueContext *c, TfLiteOperator *op,
                                                                                      const TfLiteIntArray *nodes,
                                                                                      TfLiteOpaqueDelegate *delegate);
TFL_CAPI_EXPORT TfLiteOpaqueTensor *TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext *c, int index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext *c, const int **inputs, int *count);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext *c, const int **outputs, int *count);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext *c, const int **variables, int *count);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext *c);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext *c);
TFL_CAPI_EXPORT const char *TfLiteOpaqueContextGetName(const TfLiteOpaqueContext *c);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext *c, TfLiteOpaqueTensor *t, TfLiteIntArray *new_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext *c, int subgraph, TfLiteOpaqueContext **acquired);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext *c, int subgraph);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext *c, int subgraph);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int *fd,
                                                                        int64_t *offset, int64_t *size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext *c, TfLiteOpaqueTensorBuilder *b, int *new_tensor_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext *c, TfLiteType type, size_t *bytes);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportError(TfLiteOpaqueContext *c, const char *format, ...);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext *c, const char *format, va_list args);

TFL_CAPI_EXPORT TfLiteOpaqueDelegate *TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder *builder);
TFL_CAPI_EXPORT void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate *delegate);
TFL_CAPI_EXPORT void *TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate *delegate);

#ifdef __cplusplus
}
#endif
#endif
