/* The rest of TensorFlow Lite's C interface; docs/tflite.md says what each function does here. */
#ifndef TENSORFLOW_LITE_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_LITE_C_C_API_EXPERIMENTAL_H_

#include "tensorflow/lite/c/c_api_opaque.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operators by their functions. Registrations are copied; builtin operators are compiled in any case. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions *options, TfLiteBuiltinOperator op,
                                                          const TfLiteRegistration *registration, int32_t min_version,
                                                          int32_t max_version);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions *options, const char *name,
                                                         const TfLiteRegistration *registration, int32_t min_version,
                                                         int32_t max_version);
typedef const TfLiteRegistration *(*TfLiteFindBuiltinOp)(void *user_data, TfLiteBuiltinOperator op, int version);
typedef const TfLiteRegistration *(*TfLiteFindCustomOp)(void *user_data, const char *custom_op, int version);
typedef const TfLiteOperator *(*TfLiteFindBuiltinOpExternal)(void *user_data, int op, int version);
typedef const TfLiteOperator *(*TfLiteFindCustomOpExternal)(void *user_data, const char *custom_op, int version);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolver(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp find_builtin_op,
                                                           TfLiteFindCustomOp find_custom_op, void *user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV1(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp find_builtin_op,
                                                             TfLiteFindCustomOp find_custom_op, void *user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV2(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp find_builtin_op,
                                                             TfLiteFindCustomOp find_custom_op, void *user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV3(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp find_builtin_op,
                                                             TfLiteFindCustomOp find_custom_op, void *user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverExternal(TfLiteInterpreterOptions *options,
                                                                   TfLiteFindBuiltinOpExternal find_builtin_op,
                                                                   TfLiteFindCustomOpExternal find_custom_op, void *user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
    TfLiteInterpreterOptions *options, TfLiteFindBuiltinOpExternal find_builtin_op_external,
    TfLiteFindCustomOpExternal find_custom_op_external, TfLiteFindBuiltinOp find_builtin_op, TfLiteFindCustomOp find_custom_op,
    void *user_data);
/* NULL where the options have an operator resolver or operators and one of the model's is not among them. */
TFL_CAPI_EXPORT TfLiteInterpreter *TfLiteInterpreterCreateWithSelectedOps(const TfLiteModel *model,
                                                                          const TfLiteInterpreterOptions *options);

TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions *options, bool enable);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions *options, bool enable);
struct TfLiteTelemetryProfilerStruct;
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetTelemetryProfiler(TfLiteInterpreterOptions *options,
                                                                  struct TfLiteTelemetryProfilerStruct *profiler);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter *interpreter, TfLiteDelegate *delegate);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter *interpreter, int32_t input_index);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter *interpreter, int32_t output_index);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT TfLiteTensor *TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter *interpreter, int32_t index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter *interpreter, TfLiteTensor *tensor,
                                                              TfLiteBufferHandle handle, TfLiteOpaqueDelegate *delegate);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter *interpreter, int tensor_index,
                                                              TfLiteBufferHandle *handle, TfLiteOpaqueDelegate **delegate);
TFL_CAPI_EXPORT void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter *interpreter, bool allow);
/* Memory of the program for an input or output: enough bytes at an address that is a multiple of 64 (any with the flag), kept as long as
 * the interpreter. Too few are an error of the next AllocateTensors. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter *interpreter, int tensor_index,
                                                                           const TfLiteCustomAllocation *allocation, int64_t flags);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter *interpreter, int tensor_index);

/* Pointers for hardware buffers, which nothing here uses. */
typedef struct TfLiteBackendBuffer TfLiteBackendBuffer;
TFL_CAPI_EXPORT TfLiteBackendBuffer *TfLiteBackendBufferCreate(void);
TFL_CAPI_EXPORT void TfLiteBackendBufferDelete(TfLiteBackendBuffer *buffer);
TFL_CAPI_EXPORT void TfLiteBackendBufferSetPtr(TfLiteBackendBuffer *buffer, void *pointer);
TFL_CAPI_EXPORT void *TfLiteBackendBufferGetPtr(const TfLiteBackendBuffer *buffer);
typedef struct TfLiteSynchronization TfLiteSynchronization;
TFL_CAPI_EXPORT TfLiteSynchronization *TfLiteSynchronizationCreate(void);
TFL_CAPI_EXPORT void TfLiteSynchronizationDelete(TfLiteSynchronization *sync);
TFL_CAPI_EXPORT void TfLiteSynchronizationSetPtr(TfLiteSynchronization *sync, void *pointer);
TFL_CAPI_EXPORT void *TfLiteSynchronizationGetPtr(const TfLiteSynchronization *sync);

#ifdef __cplusplus
}
#endif
#endif
