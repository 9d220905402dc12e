// Tensors in Python: memory shared with numpy by the buffer protocol, both ways.
#include "runtime/python/Bindings.h"

#include "absl/strings/str_cat.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <mutex>

namespace nb = nanobind;

namespace lathe::py {
namespace {

/// What to give back, and how; made without the GIL, emptied with it.
struct Dropped {
  void *thing;
  void (*release)(void *);
};
std::mutex droppedMutex;
std::vector<Dropped> dropped;

void drop(void *thing, void (*release)(void *)) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    release(thing);
    return;
  }
  // taking the GIL here could wait for a thread that waits for this one
  std::lock_guard<std::mutex> lock(droppedMutex);
  dropped.push_back({thing, release});
}

void releaseView(void *view) {
  PyBuffer_Release(static_cast<Py_buffer *>(view));
  delete static_cast<Py_buffer *>(view);
}

/// struct's code of the type that stores the elements.
const char *formatOf(DType type) {
  switch (dtypeCarrier(type)) {
  case DType::Float32:
    return "f";
  case DType::Float64:
    return "d";
  case DType::Float16:
    return "e";
  case DType::Bool:
    return "?";
  case DType::Int8:
  case DType::Int4:
    return "b";
  case DType::UInt8:
  case DType::UInt4:
  case DType::Float8E5M2:
  case DType::Float8E4M3FN:
    return "B";
  case DType::Int16:
    return "h";
  case DType::UInt16:
  case DType::BFloat16:
    return "H";
  case DType::Int32:
    return "i";
  case DType::UInt32:
    return "I";
  // of two types with 64 bits numpy takes the one that int64 is, where they have the same name
  case DType::Int64:
    return sizeof(long) == 8 ? "l" : "q";
  case DType::UInt64:
    return sizeof(long) == 8 ? "L" : "Q";
  case DType::Complex64:
    return "Zf";
  case DType::Complex128:
    return "Zd";
  default:
    return nullptr;
  }
}

struct ViewSizes {
  std::vector<Py_ssize_t> shape, strides;
};

int getBuffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = nullptr;
  PyTensor *t = nb::inst_ptr<PyTensor>(self);
  const char *format = formatOf(t->tensor.dtype());
  if (!format) {
    PyErr_Format(PyExc_BufferError, "a tensor of type %s has no memory to show", dtypeName(t->tensor.dtype()));
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) && !t->writable) {
    PyErr_SetString(PyExc_BufferError, "the tensor is read-only");
    return -1;
  }
  static char nothing[64];
  auto *sizes = new ViewSizes;
  Py_ssize_t itemSize = static_cast<Py_ssize_t>(dtypeSize(t->tensor.dtype())), stride = itemSize;
  sizes->shape.assign(t->tensor.dims().begin(), t->tensor.dims().end());
  sizes->strides.resize(sizes->shape.size());
  for (size_t i = sizes->shape.size(); i-- > 0;) {
    sizes->strides[i] = stride;
    stride *= sizes->shape[i] ? sizes->shape[i] : 1;
  }
  view->buf = t->tensor.data() ? t->tensor.data() : nothing;
  view->obj = Py_NewRef(self);
  view->len = t->tensor.sizeBytes();
  view->itemsize = itemSize;
  view->readonly = !t->writable;
  view->ndim = static_cast<int>(t->tensor.rank());
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char *>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) ? sizes->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? sizes->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = sizes;
  return 0;
}

void releaseBuffer(PyObject *, Py_buffer *view) { delete static_cast<ViewSizes *>(view->internal); }

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)},
                       {Py_bf_releasebuffer, reinterpret_cast<void *>(releaseBuffer)},
                       {0, nullptr}};

DType typeOf(int number) {
  auto type = dtypeFromNumber(number);
  if (!type || *type == DType::Invalid)
    throw nb::value_error(absl::StrCat(number, " is the number of no dtype").c_str());
  return *type;
}

/// A tensor on the memory of an object with the buffer protocol, whose elements are those of `dtype` (a type that Python does not
/// know comes as one of its size). Copied where the memory is not row-major, or not aligned to its elements.
PyTensor wrapBuffer(nb::handle array, int dtype, std::vector<int64_t> dims, bool copy) {
  releaseDropped();
  DType type = typeOf(dtype);
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_C_CONTIGUOUS) != 0)
    throw nb::python_error();
  void *data = view->buf;
  Py_ssize_t size = view->len;
  bool lent = !view->readonly;
  std::shared_ptr<void> owner = keepBuffer(view.release());
  auto count = checkedNumElements(dims);
  if (!count.ok() || dtypeSize(type) == 0 || *count * static_cast<int64_t>(dtypeSize(type)) != size)
    throw nb::value_error("the buffer's size is not that of the shape");
  size_t align = isComplex(type) ? dtypeSize(type) / 2 : dtypeSize(type);
  if (!copy && reinterpret_cast<uintptr_t>(data) % align == 0)
    return {Tensor::wrap(type, std::move(dims), data, std::move(owner)), false, lent};
  Tensor own = take(Tensor::tryAllocate(type, std::move(dims), INT64_MAX));
  if (size)
    std::memcpy(own.data(), data, static_cast<size_t>(size));
  return {std::move(own), true};
}

PyTensor fromStrings(nb::sequence values, std::vector<int64_t> dims) {
  std::vector<std::string> strings;
  strings.reserve(nb::len(values));
  for (nb::handle value : values) {
    if (PyBytes_Check(value.ptr())) {
      strings.emplace_back(PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr())));
    } else if (PyUnicode_Check(value.ptr())) {
      Py_ssize_t size = 0;
      const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
      if (!text)
        throw nb::python_error();
      strings.emplace_back(text, static_cast<size_t>(size));
    } else {
      throw nb::type_error(absl::StrCat("expected bytes or str in a string tensor, found ", Py_TYPE(value.ptr())->tp_name).c_str());
    }
  }
  auto count = checkedNumElements(dims);
  if (!count.ok() || *count != static_cast<int64_t>(strings.size()))
    throw nb::value_error("the number of strings is not that of the shape");
  return {Tensor::fromStrings(std::move(dims), std::move(strings)), false};
}

nb::list stringsOf(const PyTensor &t) {
  nb::list list;
  for (const std::string &s : t.tensor.strings())
    list.append(nb::bytes(s.data(), s.size()));
  return list;
}

} // namespace

std::shared_ptr<void> keepBuffer(Py_buffer *view) {
  return std::shared_ptr<void>(view->buf, [view](void *) { drop(view, releaseView); });
}

std::shared_ptr<void> keepManaged(void *data, void *managed, void (*release)(void *)) {
  return std::shared_ptr<void>(data, [managed, release](void *) { drop(managed, release); });
}

void releaseDropped() {
  std::vector<Dropped> now;
  {
    std::lock_guard<std::mutex> lock(droppedMutex);
    if (dropped.empty())
      return;
    now.swap(dropped);
  }
  for (Dropped &d : now)
    d.release(d.thing);
}

std::vector<PyTensor> toPython(std::vector<Tensor> outputs, const std::vector<std::shared_ptr<void>> &borrowed) {
  std::vector<PyTensor> result;
  result.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor t = std::move(outputs[i]);
    bool shares = false;
    for (const std::shared_ptr<void> &b : borrowed)
      shares |= !b.owner_before(t.owner()) && !t.owner().owner_before(b);
    if (shares)
      t = t.clone();
    bool alone = t.isUnique();
    result.push_back({std::move(t), alone});
  }
  return result;
}

std::vector<Tensor> fromPython(const std::vector<PyTensor *> &values, std::vector<std::shared_ptr<void>> *borrowed) {
  std::vector<Tensor> feeds;
  feeds.reserve(values.size());
  for (PyTensor *value : values) {
    feeds.push_back(value->tensor);
    if (value->tensor.owner())
      borrowed->push_back(value->tensor.owner());
  }
  return feeds;
}

void addTensor(nb::module_ &m) {
  nb::class_<PyTensor> tensor(m, "Tensor", nb::type_slots(slots));
  tensor
      .def_prop_ro("dtype_number", [](const PyTensor &t) { return static_cast<int>(t.tensor.dtype()); }, "TensorFlow's number of the dtype")
      .def_prop_ro("shape", [](const PyTensor &t) { return nb::tuple(nb::cast(t.tensor.dims())); }, "The dimensions")
      .def_prop_ro("nbytes", [](const PyTensor &t) { return t.tensor.sizeBytes(); }, "Bytes of the memory; 0 for strings")
      .def_prop_ro("writable", [](const PyTensor &t) { return t.writable; }, "Whether numpy may change the memory")
      .def_prop_ro("data_ptr", [](const PyTensor &t) { return reinterpret_cast<uintptr_t>(t.tensor.data()); }, "Address of the memory")
      .def("_strings", stringsOf, "The elements of a string tensor, row-major")
      .def("_copy", [](const PyTensor &t) { return PyTensor{t.tensor.clone(), true}; }, "A copy with memory of its own")
      .def(
          "_describe",
          [](const PyTensor &t) {
            const ObjectPtr *first = t.tensor.objects().empty() ? nullptr : &t.tensor.objects().front();
            return first && *first ? (*first)->describe() : std::string();
          },
          "What the first element of a resource or variant tensor is");
  addDlpack(m, tensor);
  m.def("wrap_buffer", wrapBuffer, nb::arg("array"), nb::arg("dtype"), nb::arg("shape"), nb::arg("copy") = false,
        "A tensor on an array's memory");
  m.def("from_strings", fromStrings, nb::arg("values"), nb::arg("shape"), "A tensor of bytes or str");
  m.def("zeros", [](int dtype, std::vector<int64_t> dims) {
    DType type = typeOf(dtype);
    return PyTensor{take(Tensor::tryAllocate(type, std::move(dims), INT64_C(1) << 42)), true};
  }, nb::arg("dtype"), nb::arg("shape"), "A tensor of zeros");
}

} // namespace lathe::py
