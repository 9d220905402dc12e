// Tensors and strings. Memory is aligned for every kernel, so that what the caller hands in is never looked at twice.
#include "runtime/c_api/Internal.h"

#include "base/Memory.h"
#include "graph/Values.h"
#include "proto/types.pb.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <cstring>
#include <limits>

using namespace lathe;
using namespace lathe::c_api;

namespace lathe::c_api {
namespace {

constexpr size_t kAlignment = 64;

bool isObjects(TF_DataType type) { return type == TF_RESOURCE || type == TF_VARIANT; }
size_t elementSize(TF_DataType type) { return type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type); }
bool isAligned(const void *data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

std::shared_ptr<void> alignedMemory(size_t size) {
  size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size)
    return nullptr;
  void *data = std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
  if (!data)
    return nullptr;
  std::memset(data, 0, rounded);
  return std::shared_ptr<void>(data, std::free);
}

TF_TString *stringsOf(const TF_Tensor &t) { return static_cast<TF_TString *>(t.memory.get()); }

/// Whether the type is one, the dimensions are sizes and `len` bytes hold all elements.
bool fits(TF_DataType type, const int64_t *dims, int numDims, size_t len) {
  int64_t count = elementCount(dims, numDims);
  if (count < 0)
    return false;
  if (isObjects(type))
    return true;
  size_t size = elementSize(type);
  if (size == 0 || static_cast<size_t>(count) > std::numeric_limits<size_t>::max() / size)
    return false;
  size_t needed = static_cast<size_t>(count) * size;
  return type == TF_STRING ? len == needed : len >= needed;
}

} // namespace

int64_t elementCount(const int64_t *dims, int numDims) {
  if (numDims < 0 || numDims > graphdef::kMaxRank || (numDims > 0 && !dims))
    return -1;
  auto count = checkedNumElements(numDims ? std::vector<int64_t>(dims, dims + numDims) : std::vector<int64_t>());
  return count.ok() ? *count : -1;
}

absl::StatusOr<Tensor> toTensor(const TF_Tensor &t) {
  if (isObjects(t.type))
    return t.objects.valid() ? absl::StatusOr<Tensor>(t.objects)
                             : absl::InvalidArgumentError("a tensor of resources or variants that no session made");
  std::optional<DType> type = dtypeFromNumber(t.type);
  if (!type || *type == DType::Invalid)
    return absl::UnimplementedError(absl::StrCat("tensors of type ", static_cast<int>(t.type), " cannot be computed with"));
  if (!fits(t.type, t.dims.data(), static_cast<int>(t.dims.size()), t.size))
    return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", dimsToString(t.dims), " and type ", dtypeName(*type), " has ", t.size, " bytes"));
  if (*type != DType::String)
    return Tensor::wrap(*type, t.dims, t.memory.get(), t.memory);
  int64_t count = elementCount(t.dims.data(), static_cast<int>(t.dims.size()));
  std::vector<std::string> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const TF_TString &s = stringsOf(t)[i];
    if (size_t size = TF_TString_GetSize(&s))
      values[i].assign(TF_TString_GetDataPointer(&s), size);
  }
  return Tensor::fromStrings(t.dims, std::move(values));
}

TF_Tensor *fromTensor(const Tensor &tensor) {
  auto out = std::make_unique<TF_Tensor>();
  out->type = static_cast<TF_DataType>(tensor.dtype());
  out->dims = tensor.dims();
  if (isObjects(out->type)) {
    out->objects = tensor;
  } else if (tensor.dtype() == DType::String) {
    size_t count = tensor.strings().size();
    out->size = count * sizeof(TF_TString);
    std::shared_ptr<void> memory = alignedMemory(out->size);
    if (!memory)
      return nullptr;
    auto *strings = static_cast<TF_TString *>(memory.get());
    for (size_t i = 0; i < count; ++i)
      TF_TString_Copy(&strings[i], tensor.strings()[i].data(), tensor.strings()[i].size());
    // the strings go when the tensor does
    out->memory = std::shared_ptr<void>(strings, [memory, count](void *data) {
      for (size_t i = 0; i < count; ++i)
        TF_TString_Dealloc(static_cast<TF_TString *>(data) + i);
    });
  } else {
    out->size = static_cast<size_t>(tensor.sizeBytes());
    out->memory = std::shared_ptr<void>(tensor.owner(), const_cast<void *>(tensor.data()));
  }
  return out.release();
}

} // namespace lathe::c_api

extern "C" {

TF_Tensor *TF_NewTensor(TF_DataType type, const int64_t *dims, int num_dims, void *data, size_t len,
                        void (*deallocator)(void *data, size_t len, void *arg), void *deallocator_arg) {
  auto done = [=](void *) {
    if (deallocator)
      deallocator(data, len, deallocator_arg);
  };
  auto tensor = std::make_unique<TF_Tensor>();
  if (!fits(type, dims, num_dims, len) || isObjects(type) || (!data && len)) {
    done(data);
    return nullptr;
  }
  tensor->type = type;
  tensor->dims.assign(dims, dims + num_dims);
  tensor->size = static_cast<size_t>(elementCount(dims, num_dims)) * elementSize(type);
  if (isAligned(data) || type == TF_STRING) {
    tensor->memory = std::shared_ptr<void>(data, done);
    tensor->isBorrowed = true;
  } else {
    tensor->memory = alignedMemory(tensor->size);
    if (tensor->memory && tensor->size)
      std::memcpy(tensor->memory.get(), data, tensor->size);
    done(data);
    if (!tensor->memory)
      return nullptr;
  }
  return tensor.release();
}

size_t TF_TensorDefaultAlignment(void) { return kAlignment; }

TF_Tensor *TF_AllocateTensor(TF_DataType type, const int64_t *dims, int num_dims, size_t len) {
  if (!fits(type, dims, num_dims, len) || isObjects(type))
    return nullptr;
  auto tensor = std::make_unique<TF_Tensor>();
  tensor->type = type;
  tensor->dims.assign(dims, dims + num_dims);
  tensor->size = static_cast<size_t>(elementCount(dims, num_dims)) * elementSize(type);
  tensor->memory = len <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? alignedMemory(len) : nullptr;
  return tensor->memory ? tensor.release() : nullptr;
}

TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor) {
  if (!tensor || isObjects(tensor->type) || tensor->isBorrowed || tensor->memory.use_count() != 1)
    return nullptr;
  auto *moved = new TF_Tensor(std::move(*tensor));
  delete tensor;
  return moved;
}

void TF_DeleteTensor(TF_Tensor *tensor) { delete tensor; }
TF_DataType TF_TensorType(const TF_Tensor *tensor) { return tensor ? tensor->type : static_cast<TF_DataType>(0); }

void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims) {
  if (tensor && elementCount(dims, num_dims) >= 0 && !isObjects(tensor->type))
    tensor->dims.assign(dims, dims + num_dims);
}

int TF_NumDims(const TF_Tensor *tensor) { return tensor ? static_cast<int>(tensor->dims.size()) : 0; }

int64_t TF_Dim(const TF_Tensor *tensor, int dim_index) {
  return tensor && dim_index >= 0 && dim_index < TF_NumDims(tensor) ? tensor->dims[dim_index] : -1;
}

size_t TF_TensorByteSize(const TF_Tensor *tensor) { return tensor ? tensor->size : 0; }
void *TF_TensorData(const TF_Tensor *tensor) { return tensor ? tensor->memory.get() : nullptr; }

int64_t TF_TensorElementCount(const TF_Tensor *tensor) {
  return tensor ? elementCount(tensor->dims.data(), TF_NumDims(tensor)) : 0;
}

void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to, const int64_t *new_dims, int num_new_dims,
                          TF_Status *status) {
  if (!present(status, "from, to", from, to))
    return;
  size_t oldSize = TF_DataTypeSize(from->type), newSize = TF_DataTypeSize(type);
  int64_t oldCount = TF_TensorElementCount(from), newCount = elementCount(new_dims, num_new_dims);
  if (!oldSize || !newSize || newCount < 0 || oldCount < 0)
    return setInvalid(status, "types without a size, or impossible dimensions");
  if (static_cast<double>(oldCount) * static_cast<double>(oldSize) != static_cast<double>(newCount) * static_cast<double>(newSize))
    return setInvalid(status, absl::StrCat(oldCount, " elements of ", oldSize, " bytes are not ", newCount, " of ", newSize));
  TF_Tensor made = *from;
  made.type = type;
  made.dims.assign(new_dims, new_dims + num_new_dims);
  *to = std::move(made);
}

bool TF_TensorIsAligned(const TF_Tensor *tensor) { return tensor && isAligned(tensor->memory.get()); }

void TF_TensorFromProto(const TF_Buffer *from, TF_Tensor *to, TF_Status *status) {
  tf::TensorProto proto;
  if (!present(status, "from, to", from, to) || !parseMessage(from->data, from->length, "TensorProto", &proto, status))
    return;
  auto tensor = graphdef::decodeTensor(proto, memoryBudget());
  if (!tensor.ok())
    return set(status, tensor.status());
  std::unique_ptr<TF_Tensor> made(fromTensor(*tensor));
  if (!made)
    return set(status, absl::ResourceExhaustedError("no memory for the strings of a tensor"));
  *to = std::move(*made);
}

void TF_StringInit(TF_TString *t) {
  if (t)
    TF_TString_Init(t);
}
void TF_StringCopy(TF_TString *dst, const char *src, size_t size) {
  if (dst && (src || !size))
    TF_TString_Copy(dst, src, size);
}
void TF_StringAssignView(TF_TString *dst, const char *src, size_t size) {
  if (dst && (src || !size))
    TF_TString_AssignView(dst, src, size);
}
const char *TF_StringGetDataPointer(const TF_TString *tstr) { return tstr ? TF_TString_GetDataPointer(tstr) : nullptr; }
TF_TString_Type TF_StringGetType(const TF_TString *str) { return str ? TF_TString_GetType(str) : TF_TSTR_SMALL; }
size_t TF_StringGetSize(const TF_TString *tstr) { return tstr ? TF_TString_GetSize(tstr) : 0; }
size_t TF_StringGetCapacity(const TF_TString *str) { return str ? TF_TString_GetCapacity(str) : 0; }
void TF_StringDealloc(TF_TString *tstr) {
  if (tstr)
    TF_TString_Dealloc(tstr);
}

} // extern "C"
