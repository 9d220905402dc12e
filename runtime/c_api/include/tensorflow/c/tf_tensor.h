/* Dense arrays. */
#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a tensor is allocated. */
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;
} TF_AllocatorAttributes;

#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

/* Elements of one type in row-major order. Elements of a TF_STRING tensor are TF_TStrings (tf_tstring.h). Tensors of resources
 * and variants hold no bytes: they can be passed on, not looked at. */
typedef struct TF_Tensor TF_Tensor;

/* A tensor over the caller's memory. `deallocator(data, len, deallocator_arg)` is called once nothing uses it, which may be
 * at once: memory that is not aligned to TF_TensorDefaultAlignment is copied. NULL, with the deallocator called, when `len` and the
 * dimensions disagree or the type is none. */
TF_CAPI_EXPORT extern TF_Tensor *TF_NewTensor(TF_DataType, const int64_t *dims, int num_dims, void *data, size_t len,
                                              void (*deallocator)(void *data, size_t len, void *arg), void *deallocator_arg);
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void);
/* A tensor with memory of its own, zeroed, `len` bytes. NULL as above, or when there is not that much memory. */
TF_CAPI_EXPORT extern TF_Tensor *TF_AllocateTensor(TF_DataType, const int64_t *dims, int num_dims, size_t len);
/* The same elements in a new tensor, and `tensor` deleted, when nothing else uses them; NULL and nothing done otherwise. */
TF_CAPI_EXPORT extern TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor);
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor *);
TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor *);
/* Other dimensions for the same elements. */
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims);
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor *);
/* -1 for a dimension that is not there. */
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor *tensor, int dim_index);
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor *);
TF_CAPI_EXPORT extern void *TF_TensorData(const TF_Tensor *);
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor *tensor);
/* Makes `to` share the bytes of `from` under another type and other dimensions. TF_INVALID_ARGUMENT when they take another
 * number of bytes. */
TF_CAPI_EXPORT extern void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to, const int64_t *new_dims,
                                                int num_new_dims, TF_Status *status);
TF_CAPI_EXPORT extern bool TF_TensorIsAligned(const TF_Tensor *);

#ifdef __cplusplus
}
#endif

#endif /* TENSORFLOW_C_TF_TENSOR_H_ */
