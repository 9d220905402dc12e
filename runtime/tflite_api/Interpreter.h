// Models compiled and run as TensorFlow Lite's C interface shows them.
#ifndef LATHE_RUNTIME_TFLITE_API_INTERPRETER_H
#define LATHE_RUNTIME_TFLITE_API_INTERPRETER_H

#include "graph/tflite/Cut.h"
#include "runtime/abi/load_model.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/tflite_api/Model.h"
#include "runtime/tflite_api/Operators.h"

#include <cstdarg>
#include <map>
#include <set>

namespace lathe::tflite_api {

/// Who hears of errors; stderr by default.
struct Reporter {
  void (*function)(void *user, const char *format, va_list args) = nullptr;
  void *user = nullptr;
  void report(const absl::Status &status) const;
};

/// A tensor of the interface, and the memory of its elements and sizes.
class Slot {
public:
  explicit Slot(const Port &port);
  ~Slot();
  Slot(const Slot &) = delete;
  Slot &operator=(const Slot &) = delete;

  /// New sizes, of elements that are where they were.
  absl::Status resize(const int64_t *dims, int rank);
  /// There are no elements before the next allocate(): those of other sizes would be too few.
  void forget() {
    if (tensor.allocation_type != kTfLiteDynamic)
      tensor.data.data = nullptr;
  }
  /// Memory for `bytes` bytes, zeroed; none is given back before the slot goes.
  absl::Status allocate(size_t bytes);

  /// Memory of the program in place of the slot's own, from now on; too little of it is an error of the next allocate().
  absl::Status use(void *data, size_t bytes, bool checked);

  const Port &port;
  TfLiteTensor tensor = {};

private:
  void *given = nullptr;
  size_t givenBytes = 0;
  std::vector<char> sizes; ///< a TfLiteIntArray
  void *memory = nullptr;
  size_t capacity = 0;
};

/// The model compiled for the sizes of its inputs; all callables of an interpreter share it and its variables.
class Interpreter;

/// One subgraph as callers see it.
class Runner {
public:
  Runner(Interpreter &owner, const Callable &callable);
  absl::Status resizeInput(size_t i, const int *dims, int rank);
  absl::Status allocate();
  absl::Status invoke();

  Interpreter &owner;
  const Callable &callable;
  std::vector<std::unique_ptr<Slot>> inputs, outputs;
  bool isAllocated = false;
  /// Inputs whose values, those at allocate(), are compiled in; what they have later changes nothing.
  std::set<size_t> fixed;

private:
  friend class Interpreter;
  absl::Status bind(const lathe_module &module);

  const lathe_entry *entry = nullptr;
  std::vector<int64_t> sizes, dims;
  std::vector<char> workspace;
  void *scratch = nullptr;
  int64_t scratchBytes = 0;
};

class HostGraph;
struct SharedState;

class Interpreter {
public:
  /// How to compile: names of options of `lathe compile` without dashes, and their values.
  using CompileOptions = std::vector<std::pair<std::string, std::string>>;

  /// `part`: of a compiled part of another interpreter's model, what all parts share.
  Interpreter(std::shared_ptr<const Model> model, int threads, Reporter reporter, CompileOptions options = {}, std::shared_ptr<SharedState> part = {});
  /// Lets the operators that the program gives run the model's custom operators, where it has such, and kernels for the host those
  /// of strings and tables.
  absl::Status host(const OperatorTable &operators);
  ~Interpreter();

  /// The runner of subgraph 0; null where the file's signatures leave it out.
  Runner *main();
  /// The runner of a signature, made at the first call; null for unknown keys.
  Runner *runner(const std::string &key);
  const Model &model() const { return *file; }
  const Reporter &reporter() const { return report; }
  absl::Status resetVariables();
  /// Lets a delegate of the program look at each subgraph that can be called, where it finds the operators of the program alone, and cannot
  /// take them. What its Prepare says is the result.
  absl::Status prepareDelegate(TfLiteDelegate *delegate);

private:
  friend class Runner;
  absl::Status compile();
  absl::Status shareVariables();
  bool hostNamed(const std::string &why);
  bool hostMore(size_t callable, const tflgraph::Apart &more);
  absl::Status hosts();
  absl::StatusOr<std::unique_ptr<HostGraph>> graphOf(size_t callable, bool always);
  void release();
  Runner &of(size_t callable);
  size_t numberOf(const Callable &callable) const { return static_cast<size_t>(&callable - file->callables.data()); }

  std::shared_ptr<const Model> file;
  Reporter report;
  std::unique_ptr<ThreadPool> pool;
  std::vector<std::unique_ptr<Runner>> runners; ///< by callable
  const CompileOptions compileOptions;
  std::vector<std::unique_ptr<HostGraph>> hosted; ///< by callable; empty where the model is compiled as a whole
  std::map<size_t, std::unique_ptr<HostGraph>> shown; ///< by callable: what delegates have seen of models that are compiled as a whole
  OperatorTable operators;
  std::map<unsigned, tflgraph::Apart> apart;    ///< by subgraph: operators that did not compile with those around them
  std::shared_ptr<SharedState> shared;          ///< of the parts; in a part, of the whole
  const bool isPart;
  lathe_loaded_model loaded = {};
  std::vector<void *> variables; ///< of `loaded`, those that parts share in their memory
  bool isStale = true; ///< sizes changed since it was compiled
};

} // namespace lathe::tflite_api

#endif
