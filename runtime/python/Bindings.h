// The extension module `_lathe`: what the Python package is made of. Each file adds its classes to the module; the package's
// Python files turn what users pass (nested fetches, graphs of any kind, arrays) into these plain calls.
#ifndef LATHE_RUNTIME_PYTHON_BINDINGS_H
#define LATHE_RUNTIME_PYTHON_BINDINGS_H

#include "base/Tensor.h"
#include "runtime/session/Session.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lathe::py {

/// A tensor as Python holds it. Its memory is shared with numpy and DLPack; `writable` says whether they may change it, which
/// is so only where nothing else sees the memory. `lent` is that of an object of Python's which its owner may write to anyway.
struct PyTensor {
  Tensor tensor;
  bool writable = false;
  bool lent = false;
};

/// Throws the exception of `lathe.errors` for the status's code, with the node and op that the status names.
void check(const absl::Status &status);
template <typename T>
T take(absl::StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}

/// Memory of a Python object, held by tensors and given back with the GIL held: at once, or by the next call of
/// releaseDropped() where the last tensor went away on another thread.
std::shared_ptr<void> keepBuffer(Py_buffer *view);
/// The same for DLPack's managed tensors: `release` is called with `managed`.
std::shared_ptr<void> keepManaged(void *data, void *managed, void (*release)(void *managed));
/// Gives back what was dropped without the GIL. Called with it, at each entry to the module that makes tensors.
void releaseDropped();

/// Outputs for Python. One that shares its memory with a fed array (`borrowed`) is copied; one that nobody else holds is writable.
/// To be called once the feeds are dropped, so that only state of the session can share.
std::vector<PyTensor> toPython(std::vector<Tensor> outputs, const std::vector<std::shared_ptr<void>> &borrowed);
/// The feeds of a run, and the memory among them that Python may change.
std::vector<Tensor> fromPython(const std::vector<PyTensor *> &values, std::vector<std::shared_ptr<void>> *borrowed);

void addTensor(nanobind::module_ &m);
void addDlpack(nanobind::module_ &m, nanobind::class_<PyTensor> &tensor);
void addSession(nanobind::module_ &m);
void addModels(nanobind::module_ &m);
void addCompile(nanobind::module_ &m);

} // namespace lathe::py

#endif
