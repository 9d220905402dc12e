/* Structures of TensorFlow Lite's C interface that operators of a program's own see, with the layouts that programs are built for, and
 * functions on them. Where a function takes a pointer, NULL is what it says or nothing is done. */
#ifndef TENSORFLOW_LITE_C_COMMON_H_
#define TENSORFLOW_LITE_C_COMMON_H_

#include "tensorflow/lite/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays. Those that Create and Copy give belong to the caller; Copy of NULL is NULL. */
typedef struct TfLiteIntArray {
  int size;
#ifdef __cplusplus
  int data[1]; /* `size` of them */
#else
  int data[];
#endif
} TfLiteIntArray;
typedef struct TfLiteFloatArray {
  int size;
#ifdef __cplusplus
  float data[1]; /* `size` of them */
#else
  float data[];
#endif
} TfLiteFloatArray;
TFL_CAPI_EXPORT size_t TfLiteIntArrayGetSizeInBytes(int size);
TFL_CAPI_EXPORT TfLiteIntArray *TfLiteIntArrayCreate(int size);
TFL_CAPI_EXPORT int TfLiteIntArrayEqual(const TfLiteIntArray *a, const TfLiteIntArray *b);
TFL_CAPI_EXPORT int TfLiteIntArrayEqualsArray(const TfLiteIntArray *a, int b_size, const int b_data[]);
TFL_CAPI_EXPORT TfLiteIntArray *TfLiteIntArrayCopy(const TfLiteIntArray *from);
TFL_CAPI_EXPORT void TfLiteIntArrayFree(TfLiteIntArray *a);
TFL_CAPI_EXPORT int TfLiteFloatArrayGetSizeInBytes(int size);
TFL_CAPI_EXPORT TfLiteFloatArray *TfLiteFloatArrayCreate(int size);
TFL_CAPI_EXPORT TfLiteFloatArray *TfLiteFloatArrayCopy(const TfLiteFloatArray *from);
TFL_CAPI_EXPORT void TfLiteFloatArrayFree(TfLiteFloatArray *a);

typedef enum TfLiteQuantizationType { kTfLiteNoQuantization = 0, kTfLiteAffineQuantization = 1 } TfLiteQuantizationType;
/* params is a TfLiteAffineQuantization for kTfLiteAffineQuantization, else NULL. */
typedef struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void *params;
} TfLiteQuantization;
typedef struct TfLiteAffineQuantization {
  TfLiteFloatArray *scale;
  TfLiteIntArray *zero_point;
  int32_t quantized_dimension;
} TfLiteAffineQuantization;

typedef union TfLitePtrUnion {
  int32_t *i32;
  uint32_t *u32;
  int64_t *i64;
  uint64_t *u64;
  float *f;
  double *f64;
  char *raw;
  const char *raw_const;
  uint8_t *uint8;
  bool *b;
  int16_t *i16;
  uint16_t *ui16;
  int8_t *int8;
  void *data;
} TfLitePtrUnion;

typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo,
  kTfLiteArenaRw,
  kTfLiteArenaRwPersistent,
  kTfLiteDynamic,
  kTfLitePersistentRo,
  kTfLiteCustom,
  kTfLiteVariantObject
} TfLiteAllocationType;
typedef enum TfLiteAllocationStrategy {
  kTfLiteAllocationStrategyUnknown,
  kTfLiteAllocationStrategyNone,
  kTfLiteAllocationStrategyMMap,
  kTfLiteAllocationStrategyArena,
  kTfLiteAllocationStrategyMalloc,
  kTfLiteAllocationStrategyNew
} TfLiteAllocationStrategy;
typedef enum TfLiteRunStability {
  kTfLiteRunStabilityUnknown,
  kTfLiteRunStabilityUnstable,
  kTfLiteRunStabilitySingleRun,
  kTfLiteRunStabilityAcrossRuns
} TfLiteRunStability;
typedef enum TfLiteRunStep { kTfLiteRunStepUnknown, kTfLiteRunStepInit, kTfLiteRunStepPrepare, kTfLiteRunStepEval } TfLiteRunStep;

typedef int TfLiteBufferHandle;
enum { kTfLiteNullBufferHandle = -1 };
typedef enum { kTfLiteDimDense = 0, kTfLiteDimSparseCSR } TfLiteDimensionType;
typedef struct TfLiteDimensionMetadata {
  TfLiteDimensionType format;
  int dense_size;
  TfLiteIntArray *array_segments;
  TfLiteIntArray *array_indices;
} TfLiteDimensionMetadata;
typedef struct TfLiteSparsity {
  TfLiteIntArray *traversal_order;
  TfLiteIntArray *block_map;
  TfLiteDimensionMetadata *dim_metadata;
  int dim_metadata_size;
} TfLiteSparsity;
typedef struct TfLiteCustomAllocation {
  void *data;
  size_t bytes;
} TfLiteCustomAllocation;
typedef enum TfLiteCustomAllocationFlags {
  kTfLiteCustomAllocationFlagsNone = 0,
  kTfLiteCustomAllocationFlagsSkipAlignCheck = 1
} TfLiteCustomAllocationFlags;

struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  TfLiteIntArray *dims;
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void *allocation;
  const char *name;
  TfLiteDelegate *delegate;
  TfLiteBufferHandle buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity *sparsity;
  const TfLiteIntArray *dims_signature;
};

typedef struct TfLiteNode {
  TfLiteIntArray *inputs;
  TfLiteIntArray *outputs;
  TfLiteIntArray *intermediates;
  TfLiteIntArray *temporaries;
  void *user_data;
  void *builtin_data;
  const void *custom_initial_data;
  int custom_initial_data_size;
  TfLiteDelegate *delegate;
  bool might_have_side_effect;
} TfLiteNode;

/* Tensors of a program's own. Only dynamic tensors (kTfLiteDynamic) are resized: others are left as they are with kTfLiteOk. Copy gives
 * kTfLiteError where sizes differ. */
TFL_CAPI_EXPORT void TfLiteTensorDataFree(TfLiteTensor *t);
TFL_CAPI_EXPORT void TfLiteQuantizationFree(TfLiteQuantization *quantization);
TFL_CAPI_EXPORT void TfLiteSparsityFree(TfLiteSparsity *sparsity);
TFL_CAPI_EXPORT void TfLiteTensorFree(TfLiteTensor *t);
TFL_CAPI_EXPORT void TfLiteTensorReset(TfLiteType type, const char *name, TfLiteIntArray *dims, TfLiteQuantizationParams quantization,
                                       char *buffer, size_t size, TfLiteAllocationType allocation_type, const void *allocation,
                                       bool is_variable, TfLiteTensor *tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopy(const TfLiteTensor *from, TfLiteTensor *to);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor *tensor, bool preserve_data);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor *tensor);
TFL_CAPI_EXPORT TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor *t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor *t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor *t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor *t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor *t);

/* What operators are called with. Operators of a program's own find their tensors at `tensors`; ResizeTensor takes the array over. What a
 * compiled model cannot do for them (delegates, other subgraphs) gives kTfLiteError. */
struct TfLiteContext;
typedef struct TfLiteContext TfLiteContext;
struct TfLiteRegistration;
struct TfLiteDelegateParams;
struct TfLiteEvalTensor;
struct TfLiteExternalContext;
struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext *context, TfLiteIntArray **execution_plan);
  TfLiteTensor *tensors;
  void *impl_;
  TfLiteStatus (*ResizeTensor)(TfLiteContext *context, TfLiteTensor *tensor, TfLiteIntArray *new_size);
  void (*ReportError)(TfLiteContext *context, const char *format, ...);
  TfLiteStatus (*AddTensors)(TfLiteContext *context, int tensors_to_add, int *first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext *context, int node_index, TfLiteNode **node,
                                         struct TfLiteRegistration **registration);
  void *ReplaceNodeSubsetsWithDelegateKernels;
  int recommended_num_threads;
  struct TfLiteExternalContext *(*GetExternalContext)(TfLiteContext *context, int type);
  void (*SetExternalContext)(TfLiteContext *context, int type, struct TfLiteExternalContext *external);
  bool allow_fp32_relax_to_fp16;
  void *profiler;
  void *(*AllocatePersistentBuffer)(TfLiteContext *context, size_t bytes);
  TfLiteStatus (*AllocateBufferForEval)(TfLiteContext *context, size_t bytes, void **data);
  TfLiteStatus (*RequestScratchBufferInArena)(TfLiteContext *context, size_t bytes, int *buffer_index);
  void *(*GetScratchBuffer)(TfLiteContext *context, int buffer_index);
  TfLiteStatus (*ResizeTensorExplicit)(TfLiteContext *context, TfLiteTensor *tensor, int rank, const int *shape);
  TfLiteStatus (*PreviewDelegatePartitioning)(TfLiteContext *context, const TfLiteIntArray *nodes_to_replace,
                                              struct TfLiteDelegateParams **params, int *num_partitions);
  TfLiteTensor *(*GetTensor)(const TfLiteContext *context, int tensor_index);
  struct TfLiteEvalTensor *(*GetEvalTensor)(const TfLiteContext *context, int tensor_index);
  TfLiteStatus (*GetModelMetadata)(const TfLiteContext *context, const char *name, const char **data, size_t *bytes);
  TfLiteStatus (*AcquireSubgraphContext)(TfLiteContext *context, int subgraph_index, TfLiteContext **acquired);
  TfLiteStatus (*ReleaseSubgraphContext)(TfLiteContext *context, int subgraph_index);
};

typedef struct TfLiteOperator TfLiteOperator;
typedef TfLiteOperator TfLiteRegistrationExternal;
typedef struct TfLiteRegistration {
  void *(*init)(TfLiteContext *context, const char *buffer, size_t length);
  void (*free)(TfLiteContext *context, void *buffer);
  TfLiteStatus (*prepare)(TfLiteContext *context, TfLiteNode *node);
  TfLiteStatus (*invoke)(TfLiteContext *context, TfLiteNode *node);
  const char *(*profiling_string)(const TfLiteContext *context, const TfLiteNode *node);
  int32_t builtin_code;
  const char *custom_name;
  int version;
  TfLiteOperator *registration_external;
  struct TfLiteAsyncKernel *(*async_kernel)(TfLiteContext *context, TfLiteNode *node);
  uint64_t inplace_operator;
} TfLiteRegistration;

typedef struct TfLiteOpaqueContext TfLiteOpaqueContext;
typedef struct TfLiteOpaqueNode TfLiteOpaqueNode;
typedef struct TfLiteOpaqueTensor TfLiteOpaqueTensor;
typedef struct TfLiteOpaqueDelegateStruct TfLiteOpaqueDelegate;
typedef struct TfLiteOpaqueDelegateBuilder {
  void *data;
  TfLiteStatus (*Prepare)(TfLiteOpaqueContext *context, TfLiteOpaqueDelegate *delegate, void *data);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext *context, TfLiteOpaqueDelegate *delegate, void *data,
                                       TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor *tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext *context, TfLiteOpaqueDelegate *delegate, void *data,
                                     TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor *tensor);
  void (*FreeBufferHandle)(TfLiteOpaqueContext *context, TfLiteOpaqueDelegate *delegate, void *data, TfLiteBufferHandle *handle);
  int64_t flags;
} TfLiteOpaqueDelegateBuilder;

#ifdef __cplusplus
}
#endif
#endif
