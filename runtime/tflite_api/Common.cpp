// Arrays and tensors that programs make and free themselves.
#include "tensorflow/lite/c/common.h"

#include <climits>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Array>
Array *create(int size) {
  if (size < 0 || static_cast<size_t>(size) > (INT_MAX - sizeof(Array)) / 4)
    return nullptr;
  auto *a = static_cast<Array *>(std::malloc(sizeof(Array) + 4 * static_cast<size_t>(size)));
  if (a)
    a->size = size;
  return a;
}

template <typename Array>
Array *copy(const Array *from) {
  Array *a = from ? create<Array>(from->size) : nullptr;
  if (a && from->size)
    std::memcpy(a->data, from->data, 4 * static_cast<size_t>(from->size));
  return a;
}

} // namespace

extern "C" {

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return sizeof(int) + sizeof(int) * static_cast<size_t>(size < 0 ? 0 : size);
}
TfLiteIntArray *TfLiteIntArrayCreate(int size) { return create<TfLiteIntArray>(size); }
int TfLiteIntArrayEqual(const TfLiteIntArray *a, const TfLiteIntArray *b) {
  if (a == b)
    return 1;
  return a && b && TfLiteIntArrayEqualsArray(a, b->size, b->data);
}
int TfLiteIntArrayEqualsArray(const TfLiteIntArray *a, int size, const int data[]) {
  if (!a)
    return size == 0;
  return a->size == size && (size <= 0 || std::memcmp(a->data, data, sizeof(int) * static_cast<size_t>(size)) == 0);
}
TfLiteIntArray *TfLiteIntArrayCopy(const TfLiteIntArray *from) { return copy(from); }
void TfLiteIntArrayFree(TfLiteIntArray *a) { std::free(a); }

int TfLiteFloatArrayGetSizeInBytes(int size) {
  return static_cast<int>(sizeof(int) + sizeof(float) * static_cast<size_t>(size < 0 ? 0 : size));
}
TfLiteFloatArray *TfLiteFloatArrayCreate(int size) { return create<TfLiteFloatArray>(size); }
TfLiteFloatArray *TfLiteFloatArrayCopy(const TfLiteFloatArray *from) { return copy(from); }
void TfLiteFloatArrayFree(TfLiteFloatArray *a) { std::free(a); }

void TfLiteTensorDataFree(TfLiteTensor *t) {
  if (t->allocation_type == kTfLiteDynamic || t->allocation_type == kTfLitePersistentRo)
    std::free(t->data.data);
  t->data.data = nullptr;
}

void TfLiteQuantizationFree(TfLiteQuantization *quantization) {
  if (quantization->type == kTfLiteAffineQuantization && quantization->params) {
    auto *q = static_cast<TfLiteAffineQuantization *>(quantization->params);
    TfLiteFloatArrayFree(q->scale);
    TfLiteIntArrayFree(q->zero_point);
    std::free(q);
  }
  *quantization = {kTfLiteNoQuantization, nullptr};
}

void TfLiteSparsityFree(TfLiteSparsity *sparsity) {
  if (!sparsity)
    return;
  TfLiteIntArrayFree(sparsity->traversal_order);
  TfLiteIntArrayFree(sparsity->block_map);
  for (int i = 0; sparsity->dim_metadata && i < sparsity->dim_metadata_size; ++i) {
    if (sparsity->dim_metadata[i].format != kTfLiteDimSparseCSR)
      continue;
    TfLiteIntArrayFree(sparsity->dim_metadata[i].array_segments);
    TfLiteIntArrayFree(sparsity->dim_metadata[i].array_indices);
  }
  std::free(sparsity->dim_metadata);
  std::free(sparsity);
}

void TfLiteTensorFree(TfLiteTensor *t) {
  TfLiteTensorDataFree(t);
  TfLiteIntArrayFree(t->dims);
  TfLiteIntArrayFree(const_cast<TfLiteIntArray *>(t->dims_signature));
  TfLiteQuantizationFree(&t->quantization);
  TfLiteSparsityFree(t->sparsity);
  t->dims = nullptr;
  t->dims_signature = nullptr;
  t->sparsity = nullptr;
}

void TfLiteTensorReset(TfLiteType type, const char *name, TfLiteIntArray *dims, TfLiteQuantizationParams quantization, char *buffer,
                       size_t size, TfLiteAllocationType allocation_type, const void *allocation, bool is_variable,
                       TfLiteTensor *tensor) {
  TfLiteTensorFree(tensor);
  tensor->type = type;
  tensor->name = name;
  tensor->dims = dims;
  tensor->params = quantization;
  tensor->data.raw = buffer;
  tensor->bytes = size;
  tensor->allocation_type = allocation_type;
  tensor->allocation = allocation;
  tensor->is_variable = is_variable;
}

TfLiteStatus TfLiteTensorCopy(const TfLiteTensor *from, TfLiteTensor *to) {
  if (!from || !to || from == to)
    return kTfLiteOk;
  if (from->bytes != to->bytes)
    return kTfLiteError;
  to->type = from->type;
  TfLiteIntArrayFree(to->dims);
  to->dims = TfLiteIntArrayCopy(from->dims);
  if (from->bytes && from->data.data && to->data.data)
    std::memcpy(to->data.data, from->data.data, from->bytes);
  to->buffer_handle = from->buffer_handle;
  to->data_is_stale = from->data_is_stale;
  to->delegate = from->delegate;
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor *tensor, bool preserve_data) {
  if (!tensor)
    return kTfLiteError;
  if (tensor->allocation_type != kTfLiteDynamic && tensor->allocation_type != kTfLitePersistentRo)
    return kTfLiteOk;
  if (!tensor->data.data || num_bytes > tensor->bytes) {
    if (!preserve_data) {
      std::free(tensor->data.data);
      tensor->data.data = nullptr;
    }
    void *grown = std::realloc(tensor->data.data, num_bytes ? num_bytes : 1);
    if (!grown)
      return kTfLiteError;
    tensor->data.data = grown;
  }
  tensor->bytes = num_bytes;
  return kTfLiteOk;
}
TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor *tensor) { return TfLiteTensorResizeMaybeCopy(num_bytes, tensor, true); }

TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor *t) {
  switch (t->allocation_type) {
  case kTfLiteMemNone: return kTfLiteAllocationStrategyNone;
  case kTfLiteMmapRo: return kTfLiteAllocationStrategyMMap;
  case kTfLiteArenaRw:
  case kTfLiteArenaRwPersistent: return kTfLiteAllocationStrategyArena;
  case kTfLiteDynamic: return kTfLiteAllocationStrategyMalloc;
  case kTfLiteVariantObject: return kTfLiteAllocationStrategyNew;
  default: return kTfLiteAllocationStrategyUnknown;
  }
}
TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor *t) {
  switch (t->allocation_type) {
  case kTfLiteMemNone:
  case kTfLiteMmapRo:
  case kTfLiteVariantObject: return kTfLiteRunStabilityAcrossRuns;
  case kTfLiteArenaRw:
  case kTfLiteArenaRwPersistent: return kTfLiteRunStabilityUnstable;
  case kTfLiteDynamic:
  case kTfLitePersistentRo: return kTfLiteRunStabilitySingleRun;
  default: return kTfLiteRunStabilityUnknown;
  }
}
TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor *t) {
  switch (t->allocation_type) {
  case kTfLiteMemNone:
  case kTfLiteMmapRo:
  case kTfLiteArenaRwPersistent: return kTfLiteRunStabilityAcrossRuns;
  case kTfLiteArenaRw:
  case kTfLiteDynamic:
  case kTfLitePersistentRo:
  case kTfLiteVariantObject: return kTfLiteRunStabilitySingleRun;
  default: return kTfLiteRunStabilityUnknown;
  }
}
TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor *t) {
  switch (t->allocation_type) {
  case kTfLiteMemNone:
  case kTfLiteMmapRo: return kTfLiteRunStepInit;
  case kTfLitePersistentRo: return kTfLiteRunStepPrepare;
  case kTfLiteArenaRw:
  case kTfLiteArenaRwPersistent:
  case kTfLiteDynamic:
  case kTfLiteVariantObject: return kTfLiteRunStepEval;
  default: return kTfLiteRunStepUnknown;
  }
}
TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor *t) {
  switch (t->allocation_type) {
  case kTfLiteMemNone:
  case kTfLiteMmapRo: return kTfLiteRunStepInit;
  case kTfLiteArenaRw:
  case kTfLiteArenaRwPersistent:
  case kTfLitePersistentRo: return kTfLiteRunStepPrepare;
  case kTfLiteDynamic:
  case kTfLiteVariantObject: return kTfLiteRunStepEval;
  default: return kTfLiteRunStepUnknown;
  }
}

} // extern "C"
