// DLPack, version 1: tensors of other libraries as ours and the other way round, without a copy where the memory allows it.
// The structs are those of the protocol; Python passes them in capsules, "dltensor" (version 0) or "dltensor_versioned".
#include "runtime/python/Bindings.h"

#include "absl/strings/str_cat.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>

namespace nb = nanobind;

namespace lathe::py {
namespace {

constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11, kCudaManaged = 13;
constexpr uint64_t kReadOnly = 1, kCopied = 2;
constexpr int kMaxRank = 254;

struct Device {
  int32_t type = kCpu, id = 0;
};
struct DataType {
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
};
struct DlTensor {
  void *data = nullptr;
  Device device;
  int32_t ndim = 0;
  DataType dtype;
  int64_t *shape = nullptr, *strides = nullptr;
  uint64_t byteOffset = 0;
};
struct Managed {
  DlTensor tensor;
  void *context = nullptr;
  void (*deleter)(Managed *) = nullptr;
};
struct ManagedVersioned {
  uint32_t major = 1, minor = 0;
  void *context = nullptr;
  void (*deleter)(ManagedVersioned *) = nullptr;
  uint64_t flags = 0;
  DlTensor tensor;
};

struct Code {
  DType type;
  uint8_t code, bits;
};
// int 0, uint 1, float 2, bfloat 4, complex 5, bool 6, float8_e4m3fn 10, float8_e5m2 12
constexpr Code kCodes[] = {
    {DType::Int8, 0, 8},      {DType::Int16, 0, 16},     {DType::Int32, 0, 32},       {DType::Int64, 0, 64},
    {DType::UInt8, 1, 8},     {DType::UInt16, 1, 16},    {DType::UInt32, 1, 32},      {DType::UInt64, 1, 64},
    {DType::Float16, 2, 16},  {DType::Float32, 2, 32},   {DType::Float64, 2, 64},     {DType::BFloat16, 4, 16},
    {DType::Complex64, 5, 64}, {DType::Complex128, 5, 128}, {DType::Bool, 6, 8},      {DType::Float8E4M3FN, 10, 8},
    {DType::Float8E5M2, 12, 8},
};

/// What an exported tensor keeps: the memory and the sizes.
template <typename M>
struct Exported {
  M managed;
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <typename M>
nb::object makeCapsule(const Tensor &t, const char *name, uint64_t flags) {
  auto *e = new Exported<M>;
  e->tensor = t;
  e->shape = t.dims();
  e->strides.resize(e->shape.size());
  int64_t stride = 1;
  for (size_t i = e->shape.size(); i-- > 0;) {
    e->strides[i] = stride;
    stride *= e->shape[i];
  }
  DlTensor &d = e->managed.tensor;
  d.data = e->tensor.data();
  d.ndim = static_cast<int32_t>(e->shape.size());
  d.shape = e->shape.data();
  d.strides = e->strides.data();
  for (const Code &c : kCodes)
    if (c.type == dtypeCarrier(t.dtype()))
      d.dtype = {c.code, c.bits, 1};
  e->managed.context = e;
  e->managed.deleter = [](M *m) { delete static_cast<Exported<M> *>(m->context); };
  if constexpr (std::is_same_v<M, ManagedVersioned>)
    e->managed.flags = flags;
  PyObject *capsule = PyCapsule_New(&e->managed, name, [](PyObject *c) {
    // a capsule that nobody took is ours to free
    for (const char *n : {"dltensor", "dltensor_versioned"})
      if (PyCapsule_IsValid(c, n)) {
        auto *m = static_cast<M *>(PyCapsule_GetPointer(c, n));
        m->deleter(m);
      }
  });
  if (!capsule) {
    delete e;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

bool hasCode(DType type) {
  for (const Code &c : kCodes)
    if (c.type == dtypeCarrier(type))
      return true;
  return false;
}

[[noreturn]] void bufferError(const std::string &text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw nb::python_error();
}

nb::object exportTensor(const PyTensor &t, nb::object, std::optional<nb::tuple> maxVersion, std::optional<nb::tuple> device,
                        std::optional<bool> copy) {
  if (!hasCode(t.tensor.dtype()))
    bufferError(absl::StrCat("DLPack has no form for a tensor of type ", dtypeName(t.tensor.dtype())));
  if (device && nb::cast<int>((*device)[0]) != kCpu)
    bufferError("the tensor is in the host's memory and is not moved");
  bool versioned = maxVersion && nb::cast<int>((*maxVersion)[0]) >= 1;
  // version 0 cannot say that memory is read-only; whoever could write to it before may get it
  bool mustCopy = copy.value_or(false) || (!versioned && !t.writable && !t.lent);
  if (mustCopy && copy && !*copy)
    bufferError("the tensor is read-only, which DLPack before version 1 cannot say; copy=False was asked for");
  Tensor shared = mustCopy ? t.tensor.clone() : t.tensor;
  if (!versioned)
    return makeCapsule<Managed>(shared, "dltensor", 0);
  return makeCapsule<ManagedVersioned>(shared, "dltensor_versioned", mustCopy ? kCopied : t.writable ? 0 : kReadOnly);
}

/// Row-major bytes of a strided tensor.
void gather(const DlTensor &d, size_t itemSize, int axis, const char *from, char *&to) {
  if (axis == d.ndim) {
    std::memcpy(to, from, itemSize);
    to += itemSize;
    return;
  }
  for (int64_t i = 0; i < d.shape[axis]; ++i)
    gather(d, itemSize, axis + 1, from + i * d.strides[axis] * static_cast<int64_t>(itemSize), to);
}

/// Takes `managed` over; `release` frees it.
PyTensor import(const DlTensor &d, void *managed, void (*release)(void *), bool lent) {
  struct Free {
    void *managed;
    void (*release)(void *);
    ~Free() {
      if (managed)
        release(managed);
    }
  } guard{managed, release};
  if (d.device.type != kCpu && d.device.type != kCudaHost && d.device.type != kRocmHost && d.device.type != kCudaManaged)
    bufferError(absl::StrCat("the tensor is on a device of DLPack's type ", d.device.type, ", not in the host's memory"));
  std::optional<DType> type;
  for (const Code &c : kCodes)
    if (c.code == d.dtype.code && c.bits == d.dtype.bits && d.dtype.lanes == 1)
      type = c.type;
  if (!type)
    bufferError(absl::StrCat("DLPack's type code ", d.dtype.code, " with ", d.dtype.bits, " bits and ", d.dtype.lanes, " lanes has no dtype here"));
  if (d.ndim < 0 || d.ndim > kMaxRank)
    bufferError(absl::StrCat("the tensor has rank ", d.ndim));
  std::vector<int64_t> dims(d.shape, d.shape + d.ndim);
  int64_t count = take(checkedNumElements(dims));
  size_t itemSize = dtypeSize(*type), align = isComplex(*type) ? itemSize / 2 : itemSize;
  bool rowMajor = true;
  int64_t stride = 1;
  for (int i = d.ndim; d.strides && i-- > 0;) {
    rowMajor &= dims[i] == 1 || d.strides[i] == stride;
    stride *= dims[i];
  }
  char *data = static_cast<char *>(d.data) + d.byteOffset;
  if (count == 0 || !rowMajor || reinterpret_cast<uintptr_t>(data) % align != 0) {
    Tensor own = take(Tensor::tryAllocate(*type, dims, INT64_MAX));
    char *to = own.data<char>();
    if (count && rowMajor)
      std::memcpy(to, data, static_cast<size_t>(own.sizeBytes()));
    else if (count)
      gather(d, itemSize, 0, data, to);
    return {std::move(own), true};
  }
  guard.managed = nullptr;
  return {Tensor::wrap(*type, std::move(dims), data, keepManaged(data, managed, release)), false, lent};
}

PyTensor importCapsule(nb::object capsule) {
  releaseDropped();
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto *m = static_cast<ManagedVersioned *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (m->major != 1)
      bufferError(absl::StrCat("DLPack's version ", m->major, " is not known here"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return import(m->tensor, m, [](void *p) {
      auto *managed = static_cast<ManagedVersioned *>(p);
      if (managed->deleter)
        managed->deleter(managed);
    }, !(m->flags & kReadOnly));
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto *m = static_cast<Managed *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    return import(m->tensor, m, [](void *p) {
      auto *managed = static_cast<Managed *>(p);
      if (managed->deleter)
        managed->deleter(managed);
    }, false); // it may be read-only
  }
  throw nb::type_error("expected a DLPack capsule that nobody has used");
}

} // namespace

void addDlpack(nb::module_ &m, nb::class_<PyTensor> &tensor) {
  tensor.def("__dlpack__", exportTensor, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
             nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(), "The tensor as a DLPack capsule");
  tensor.def("__dlpack_device__", [](const PyTensor &) { return nb::make_tuple(kCpu, 0); }, "DLPack's device: the host");
  m.def("import_capsule", importCapsule, nb::arg("capsule"), "The tensor of a DLPack capsule");
}

} // namespace lathe::py
