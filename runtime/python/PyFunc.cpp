// PyFunc, PyFuncStateless and EagerPyFunc: nodes that call the functions which a program gave to TensorFlow's py_func,
// numpy_function or py_function in this process. The package's _tensorflow.py finds and calls them.
#include "runtime/python/Bindings.h"

#include "runtime/kernels/Common.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace lathe::py {
namespace {

class PyFunc : public rt::HostKernel {
public:
  explicit PyFunc(rt::KernelInit &init) : token(init.attr<std::string>("token")), eager(init.node().op == "EagerPyFunc") {}

  absl::Status compute(rt::KernelContext &context) override {
    if (!Py_IsInitialized())
      return absl::FailedPreconditionError("the interpreter that knows the function has ended");
    nb::gil_scoped_acquire acquire;
    releaseDropped();
    std::vector<PyTensor> arguments;
    for (int i = 0; i < context.numInputs(); ++i)
      arguments.push_back({context.input(i), false});
    std::vector<int> types;
    for (DType type : context.node->outputTypes)
      types.push_back(static_cast<int>(type));
    try {
      nb::object called = nb::module_::import_("lathe._tensorflow").attr("call_function")(token, arguments, types, eager);
      auto [code, message, values] = nb::cast<std::tuple<int, std::string, nb::list>>(called);
      if (code)
        return absl::Status(static_cast<absl::StatusCode>(code), message);
      if (nb::len(values) != static_cast<size_t>(context.numOutputs()))
        return rt::invalid(token, " returns ", nb::len(values), " values, but expects to see ", context.numOutputs(), " values.");
      for (int i = 0; i < context.numOutputs(); ++i) {
        Tensor value = nb::cast<PyTensor &>(values[i]).tensor;
        if (value.dtype() != context.node->outputTypes[i])
          return rt::invalid(i, "-th value returned by ", token, " is ", dtypeName(value.dtype()), ", but expects ",
                             dtypeName(context.node->outputTypes[i]));
        context.setOutput(i, std::move(value));
      }
    } catch (const std::exception &e) {
      return absl::InternalError(absl::StrCat(token, ": ", e.what()));
    }
    return absl::OkStatus();
  }

private:
  const std::string token;
  const bool eager;
};
LATHE_HOST_KERNEL(PyFunc, PyFunc);
LATHE_HOST_KERNEL(PyFuncStateless, PyFunc);
LATHE_HOST_KERNEL(EagerPyFunc, PyFunc);

} // namespace
} // namespace lathe::py
