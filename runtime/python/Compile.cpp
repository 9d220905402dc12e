// The compiler's library, from Python: loaded when it is first needed.
#include "runtime/python/Bindings.h"

#include "runtime/abi/compile_files.h"
#include "runtime/core/Kernel.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/Executable.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace lathe::py {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Pointers to texts, for C.
struct Texts {
  std::vector<std::string> texts;
  std::vector<const char *> pointers;
  explicit Texts(std::vector<std::string> all) : texts(std::move(all)) {
    for (const std::string &text : texts)
      pointers.push_back(text.c_str());
  }
};

std::vector<std::string> copies(const std::vector<std::string_view> &views) { return {views.begin(), views.end()}; }

const lathe_cluster_compiler *compiler() {
  absl::StatusOr<const lathe_cluster_compiler *> table;
  {
    nb::gil_scoped_release release;
    table = loadClusterCompiler();
  }
  return take(std::move(table));
}

/// The report and the messages of a compilation.
nb::tuple compileFiles(nb::object model, const std::string &prefix, const std::string &emit, const Pairs &options) {
  const lathe_cluster_compiler *table = compiler();
  auto compile = reinterpret_cast<lathe_compile_files_fn>(take(compilerFunction("lathe_compile_files")));
  std::vector<std::string> flat;
  for (auto &[name, value] : options) {
    flat.push_back(name);
    flat.push_back(value);
  }
  Texts given(std::move(flat)), hostOps(copies(rt::allKernels())), executorOps(copies(rt::allExecutorOps()));
  std::string path;
  lathe_files_request request = {};
  request.struct_size = sizeof(request);
  if (nb::isinstance<nb::bytes>(model)) {
    nb::bytes bytes = nb::cast<nb::bytes>(model);
    request.model = {static_cast<const char *>(bytes.data()), bytes.size()};
  } else {
    path = nb::cast<std::string>(model);
    request.path = path.c_str();
  }
  request.prefix = prefix.c_str();
  request.emit = emit.c_str();
  request.num_options = static_cast<int32_t>(options.size());
  request.options = given.pointers.data();
  request.num_host_ops = static_cast<int32_t>(hostOps.pointers.size());
  request.host_ops = hostOps.pointers.data();
  request.num_executor_ops = static_cast<int32_t>(executorOps.pointers.size());
  request.executor_ops = executorOps.pointers.data();
  lathe_bytes report = {}, messages = {};
  int32_t code;
  {
    nb::gil_scoped_release release;
    code = compile(&request, &report, &messages);
  }
  auto text = [&](lathe_bytes &bytes) {
    std::string s = bytes.data ? std::string(bytes.data, bytes.size) : std::string();
    table->release_bytes(table->context, &bytes);
    return s;
  };
  std::string told = text(report), said = text(messages);
  if (code != 0)
    check(absl::Status(static_cast<absl::StatusCode>(code), said));
  return nb::make_tuple(told, said);
}

} // namespace

void addCompile(nb::module_ &m) {
  m.def("cluster_compiler", [] { return reinterpret_cast<int64_t>(compiler()); },
        "The address of the compiler that sessions use, loaded at the first call");
  m.def("compile_files", compileFiles, nb::arg("model"), nb::arg("prefix"), nb::arg("emit"), nb::arg("options"),
        "Compiles a model (a path, or bytes) ahead of time; a JSON report, and warnings");
}

} // namespace lathe::py
