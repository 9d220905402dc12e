/* TensorFlow Lite's C interface. A model is compiled when tensors are allocated; see docs/tflite.md. Functions that give a pointer
 * give NULL after an error, those of type TfLiteStatus kTfLiteError; the error reporter of the options hears why. */
#ifndef TENSORFLOW_LITE_C_C_API_H_
#define TENSORFLOW_LITE_C_C_API_H_

#include "tensorflow/lite/c/c_api_types.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

TFL_CAPI_EXPORT extern const char *TfLiteVersion(void);
TFL_CAPI_EXPORT extern int TfLiteSchemaVersion(void);
TFL_CAPI_EXPORT extern const char *TfLiteExtensionApisVersion(void);

/* Models. The bytes must live as long as the model. */
TFL_CAPI_EXPORT extern TfLiteModel *TfLiteModelCreate(const void *model_data, size_t model_size);
TFL_CAPI_EXPORT extern TfLiteModel *TfLiteModelCreateWithErrorReporter(
    const void *model_data, size_t model_size, void (*reporter)(void *user_data, const char *format, va_list args), void *user_data);
TFL_CAPI_EXPORT extern TfLiteModel *TfLiteModelCreateFromFile(const char *model_path);
TFL_CAPI_EXPORT extern TfLiteModel *TfLiteModelCreateFromFileWithErrorReporter(
    const char *model_path, void (*reporter)(void *user_data, const char *format, va_list args), void *user_data);
TFL_CAPI_EXPORT extern void TfLiteModelDelete(TfLiteModel *model);

/* Options. A delegate's Prepare is called and finds no operator that it could take: they are compiled. */
TFL_CAPI_EXPORT extern TfLiteInterpreterOptions *TfLiteInterpreterOptionsCreate(void);
TFL_CAPI_EXPORT extern TfLiteInterpreterOptions *TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions *from);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions *options);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions *options, int32_t num_threads);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions *options, TfLiteDelegate *delegate);
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetErrorReporter(
    TfLiteInterpreterOptions *options, void (*reporter)(void *user_data, const char *format, va_list args), void *user_data);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions *options, bool enable);

/* Interpreters. The model and the options may be deleted before; the model's bytes may not. */
TFL_CAPI_EXPORT extern TfLiteInterpreter *TfLiteInterpreterCreate(const TfLiteModel *model,
                                                                  const TfLiteInterpreterOptions *optional_options);
TFL_CAPI_EXPORT extern void TfLiteInterpreterDelete(TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern const int *TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern TfLiteTensor *TfLiteInterpreterGetInputTensor(const TfLiteInterpreter *interpreter, int32_t input_index);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter *interpreter, int32_t input_index,
                                                                       const int *input_dims, int32_t input_dims_size);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern const int *TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern const TfLiteTensor *TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter *interpreter,
                                                                            int32_t output_index);
/* Inputs and outputs by the index that the file has for them; NULL for others. */
TFL_CAPI_EXPORT extern TfLiteTensor *TfLiteInterpreterGetTensor(const TfLiteInterpreter *interpreter, int index);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter *interpreter);

/* Signatures. */
TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter *interpreter);
TFL_CAPI_EXPORT extern const char *TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter *interpreter, int32_t signature_index);
TFL_CAPI_EXPORT extern TfLiteSignatureRunner *TfLiteInterpreterGetSignatureRunner(const TfLiteInterpreter *interpreter,
                                                                                  const char *signature_key);
TFL_CAPI_EXPORT extern size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner *runner);
TFL_CAPI_EXPORT extern const char *TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner *runner, int32_t input_index);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner *runner, const char *input_name,
                                                                           const int *input_dims, int32_t input_dims_size);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner *runner);
TFL_CAPI_EXPORT extern TfLiteTensor *TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner *runner, const char *input_name);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner *runner);
TFL_CAPI_EXPORT extern size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner *runner);
TFL_CAPI_EXPORT extern const char *TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner *runner, int32_t output_index);
TFL_CAPI_EXPORT extern const TfLiteTensor *TfLiteSignatureRunnerGetOutputTensor(const TfLiteSignatureRunner *runner,
                                                                                const char *output_name);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner *runner);
TFL_CAPI_EXPORT extern void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner *runner);

/* Tensors. */
TFL_CAPI_EXPORT extern TfLiteType TfLiteTensorType(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorNumDims(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorDim(const TfLiteTensor *tensor, int32_t dim_index);
TFL_CAPI_EXPORT extern size_t TfLiteTensorByteSize(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern void *TfLiteTensorData(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern const char *TfLiteTensorName(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor *tensor);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor *tensor, const void *input_data, size_t input_data_size);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor *output_tensor, void *output_data,
                                                             size_t output_data_size);
TFL_CAPI_EXPORT extern const char *TfLiteTypeGetName(TfLiteType type);

#ifdef __cplusplus
}
#endif
#endif
