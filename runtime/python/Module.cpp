// The module itself, and statuses as Python exceptions.
#include "runtime/python/Bindings.h"

#include "base/DType.h"
#include "runtime/core/Status.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace lathe::py {

void check(const absl::Status &status) {
  if (status.ok())
    return;
  rt::StatusNode node = rt::statusNode(status);
  nb::object error = nb::module_::import_("lathe.errors").attr("_make")(static_cast<int>(status.code()), std::string(status.message()),
                                                                        node.name, node.op);
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

} // namespace lathe::py

NB_MODULE(_lathe, m) {
  m.doc() = "What the package lathe is made of; not for direct use.";
  // the interpreter ends with sessions and tensors still alive more often than not
  nb::set_leak_warnings(false);
  m.attr("__version__") = LATHE_VERSION;
  m.def(
      "dtype_number",
      [](const std::string &name) {
        auto type = lathe::parseDType(name);
        return type ? static_cast<int>(*type) : 0;
      },
      nb::arg("name"), "TensorFlow's number of a dtype by its name; 0: there is none");
  m.def(
      "dtype_name",
      [](int number) {
        auto type = lathe::dtypeFromNumber(number);
        return std::string(lathe::dtypeName(type.value_or(lathe::DType::Invalid)));
      },
      nb::arg("number"), "The name of a dtype by TensorFlow's number");
  lathe::py::addTensor(m);
  lathe::py::addSession(m);
  lathe::py::addModels(m);
  lathe::py::addCompile(m);
}
