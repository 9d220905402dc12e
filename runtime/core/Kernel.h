// Host kernels: what runs a node that is not compiled. The session, hosted objects and the tests make kernels from the
// same registry and call them through the same context.
//
// A kernel lives as long as its graph and is called by many steps at once: members set in the constructor are constant,
// anything else is guarded or lives in a Resource. Statuses need no node name: the caller adds "node 'x' (Op): ".
#ifndef LATHE_RUNTIME_CORE_KERNEL_H
#define LATHE_RUNTIME_CORE_KERNEL_H

#include "ops/Registry.h"
#include "runtime/core/Attr.h"
#include "runtime/core/Cancellation.h"
#include "runtime/core/Resource.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::rt {

/// What travels along an edge: a tensor, or a reference to a variable (then `tensor` is unused).
struct Value {
  Tensor tensor;
  std::shared_ptr<Variable> ref;
  Value() = default;
  Value(Tensor t) : tensor(std::move(t)) {}
  Value(std::shared_ptr<Variable> r) : ref(std::move(r)) {}
  bool present() const { return ref || tensor.valid(); }
};

/// Flat positions of a named argument (a list argument has several).
struct ArgRange {
  int start = 0, count = 0;
};

/// A node, resolved against the op table: attribute defaults filled in, types known.
struct NodeInfo {
  std::string name, op, device;
  const ops::OpInfo *info = nullptr; ///< null for ops that only the executor knows
  AttrMap attrs;
  std::vector<DType> inputTypes, outputTypes;
  std::vector<bool> inputIsRef, outputIsRef;

  /// The range of an argument by the name that the op table gives it; {0, 0} when there is none.
  ArgRange inputRange(std::string_view name) const;
  ArgRange outputRange(std::string_view name) const;
};

/// Fills info, attribute defaults and types from the op table. NOT_FOUND for an op that is not in it, INVALID_ARGUMENT
/// for an attribute that is missing or of another type.
absl::Status resolveNode(NodeInfo &node);

/// Calls library functions, from kernels and from things that outlive a step (dataset iterators).
class FunctionCaller {
public:
  using Done = std::function<void(absl::StatusOr<std::vector<Tensor>>)>;
  virtual ~FunctionCaller() = default;
  /// Calls `done` exactly once, from any thread. `cancellation` may be null.
  virtual void call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *cancellation, Done done) = 0;
  /// Waits for the result. Not for use on the executor's threads of a synchronous kernel that the function may need:
  /// such kernels are asynchronous.
  absl::StatusOr<std::vector<Tensor>> callAndWait(const FunctionRef &function, std::vector<Tensor> args,
                                                  Cancellation *cancellation = nullptr);
  /// Types of the function's arguments and results; NOT_FOUND when the library lacks it.
  virtual absl::Status signature(const FunctionRef &function, std::vector<DType> *args, std::vector<DType> *results) = 0;
};

/// What a kernel is made from. Errors of attr() are collected: the factory's caller checks status() once.
class KernelInit {
public:
  KernelInit(const NodeInfo &node, ResourceManager *resources, std::shared_ptr<FunctionCaller> functions)
      : nodeInfo(node), resourceManager(resources), caller(std::move(functions)) {}

  const NodeInfo &node() const { return nodeInfo; }
  ResourceManager *resources() const { return resourceManager; }
  /// Null where there is no function library.
  const std::shared_ptr<FunctionCaller> &functions() const { return caller; }

  /// The value of an attribute (defaults are filled in); T() and an error in status() when absent or of another type.
  template <typename T>
  T attr(std::string_view name);
  bool hasAttr(std::string_view name) const { return nodeInfo.attrs.find(name) != nodeInfo.attrs.end(); }

  /// Refuses the node; the first refusal counts.
  void fail(absl::Status why) {
    if (state.ok())
      state = std::move(why);
  }
  const absl::Status &status() const { return state; }

private:
  const NodeInfo &nodeInfo;
  ResourceManager *resourceManager;
  std::shared_ptr<FunctionCaller> caller;
  absl::Status state;
};

/// What a kernel sees of one execution. Inputs are by flat position.
class KernelContext {
public:
  /// Runs a closure on the device's threads, now or later.
  using Schedule = std::function<void(std::function<void()>)>;

  const NodeInfo *node = nullptr;
  std::vector<Value> inputs, outputs; ///< outputs has the node's number of outputs
  ResourceManager *resources = nullptr;
  Cancellation *cancellation = nullptr; ///< may be null
  FunctionCaller *functions = nullptr;  ///< may be null
  int64_t stepId = 0;
  /// Resources of this step alone (TensorArrays, stacks); dropped when the step ends. May be null.
  ResourceManager *stepResources = nullptr;
  Schedule schedule; ///< null: run on the calling thread
  /// Frame and iteration of the execution, unique within the step ("" outside loops): part of rendezvous keys.
  std::string frame;
  int64_t iteration = 0;
  void *executor = nullptr; ///< the session's own per-step state, for its control-flow and transfer kernels

  int numInputs() const { return static_cast<int>(inputs.size()); }
  int numOutputs() const { return static_cast<int>(outputs.size()); }
  /// The value of an input; of a reference input the variable's present value (FAILED_PRECONDITION texts are the
  /// executor's: it checks that references are initialised before it calls). Shares the buffer.
  Tensor input(int i) const;
  Tensor input(std::string_view name) const { return input(node->inputRange(name).start); }
  /// All values of a list argument.
  std::vector<Tensor> inputList(std::string_view name) const;
  const std::shared_ptr<Variable> &refInput(int i) const { return inputs[i].ref; }

  /// An output that the node does not have (its attributes decide how many there are) makes the execution fail.
  void setOutput(int i, Tensor t) {
    if (hasOutput(i))
      outputs[i] = Value(std::move(t));
  }
  void setRefOutput(int i, std::shared_ptr<Variable> v) {
    if (hasOutput(i))
      outputs[i] = Value(std::move(v));
  }
  /// INTERNAL when a kernel set an output that is not there.
  absl::Status outputsKnown() const { return unknownOutput ? outputUnknown() : absl::OkStatus(); }
  /// Zero-filled; an error when the size overflows or passes the limit of a tensor (kMaxTensorBytes).
  absl::StatusOr<Tensor> allocate(DType type, std::vector<int64_t> dims) const;
  /// allocate() and setOutput() in one.
  absl::StatusOr<Tensor> allocateOutput(int i, std::vector<int64_t> dims);

  /// The resource of input i: a Resource handle, or the [container, name] strings of a TF1 reference handle.
  template <typename T>
  absl::StatusOr<std::shared_ptr<T>> resource(int i) const {
    auto any = anyResource(i);
    if (!any.ok())
      return any.status();
    auto typed = std::dynamic_pointer_cast<T>(*any);
    if (!typed)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is a ", (*any)->describe(), ", not what '",
                                                     node ? node->op : "", "' works on"));
    return typed;
  }
  absl::StatusOr<std::shared_ptr<Resource>> anyResource(int i) const;

private:
  bool hasOutput(int i) {
    if (i >= 0 && i < numOutputs())
      return true;
    unknownOutput = i;
    return false;
  }
  absl::Status outputUnknown() const;
  std::optional<int> unknownOutput;
};

/// Largest tensor that a host kernel may make; all together stay within memoryBudget() (base/Memory.h).
constexpr int64_t kMaxTensorBytes = INT64_C(1) << 36;

class HostKernel {
public:
  virtual ~HostKernel() = default;
  /// Sets every output it has, or returns an error. Synchronous: must not block on other nodes.
  virtual absl::Status compute(KernelContext &context) = 0;
  /// Non-null for kernels that may wait for others (queues, receives, function calls).
  virtual class AsyncHostKernel *asAsync() { return nullptr; }
  /// Worth a thread of its own; cheap kernels run on the thread that made them ready.
  virtual bool isExpensive() const { return true; }
  /// Takes reference inputs as they are, initialised or not (Assign, IsVariableInitialized).
  virtual bool allowsUninitialized(int input) const { return false; }
};

class AsyncHostKernel : public HostKernel {
public:
  using Done = std::function<void(absl::Status)>;
  /// Calls `done` exactly once, from any thread; the context lives until then.
  virtual void computeAsync(KernelContext &context, Done done) = 0;
  /// Waits for computeAsync.
  absl::Status compute(KernelContext &context) final;
  AsyncHostKernel *asAsync() final { return this; }
};

struct KernelFactory {
  const char *op;
  std::unique_ptr<HostKernel> (*make)(KernelInit &init);
};

/// Null for an op without a host kernel.
const KernelFactory *findKernel(std::string_view op);
/// Names of all ops with a host kernel, sorted.
std::vector<std::string_view> allKernels();
/// A kernel of a resolved node; UNIMPLEMENTED when its op has none.
absl::StatusOr<std::unique_ptr<HostKernel>> makeKernel(KernelInit &init);

struct KernelRegistrar {
  explicit KernelRegistrar(const KernelFactory *factory);
};

/// Registers CLASS, constructed from a KernelInit &, for an op. The symbol lathe_host_kernel_OP lets a hosted object pull
/// just its kernels out of the archive.
#define LATHE_HOST_KERNEL(OP, ...)                                                                                     \
  extern "C" const ::lathe::rt::KernelFactory lathe_host_kernel_##OP;                                                  \
  extern "C" const ::lathe::rt::KernelFactory lathe_host_kernel_##OP = {                                               \
      #OP, [](::lathe::rt::KernelInit &init) -> std::unique_ptr<::lathe::rt::HostKernel> {                             \
        return std::make_unique<__VA_ARGS__>(init);                                                                    \
      }};                                                                                                              \
  static const ::lathe::rt::KernelRegistrar lathe_host_registrar_##OP(&lathe_host_kernel_##OP)

/// Registers a plain function `absl::Status FN(KernelContext &)` for an op without state or attributes read beforehand.
#define LATHE_HOST_FUNCTION(OP, FN) LATHE_HOST_KERNEL(OP, ::lathe::rt::FunctionKernel<FN>)

template <absl::Status (*fn)(KernelContext &)>
class FunctionKernel : public HostKernel {
public:
  explicit FunctionKernel(KernelInit &) {}
  absl::Status compute(KernelContext &context) override { return fn(context); }
};

/// Attribute of the context's node, for function kernels; nullptr when absent or of another type.
template <typename T>
const T *attrOf(const NodeInfo &node, std::string_view name) {
  auto it = node.attrs.find(name);
  return it == node.attrs.end() ? nullptr : std::get_if<T>(&it->second);
}

/// Makes the resource that a node like FIFOQueueV2 or HashTable names (container, shared_name, else its own name), once,
/// and gives its handle: a Resource tensor, or for TF1 ops a reference to the strings [container, name].
template <typename T>
class ResourceKernel : public HostKernel {
public:
  explicit ResourceKernel(KernelInit &init) {
    if (init.hasAttr("container"))
      container = init.attr<std::string>("container");
    if (init.hasAttr("shared_name"))
      name = init.attr<std::string>("shared_name");
    if (name.empty())
      name = init.node().name;
    if (container.empty())
      container = ResourceManager::kDefaultContainer;
  }
  absl::Status compute(KernelContext &context) override {
    absl::StatusOr<std::shared_ptr<T>> made = context.resources->template lookupOrCreate<T>(
        container, name, [&] { return create(context); });
    if (!made.ok())
      return made.status();
    if (absl::Status same = check(**made); !same.ok())
      return same;
    if (!context.node->outputIsRef[0]) {
      context.setOutput(0, makeHandle(container, name, *made));
      return absl::OkStatus();
    }
    auto handle = std::make_shared<Variable>(DType::String);
    handle->value = Tensor::fromStrings({2}, {container, name});
    context.setRefOutput(0, std::move(handle));
    return absl::OkStatus();
  }
  bool isExpensive() const override { return false; }

protected:
  virtual absl::StatusOr<std::shared_ptr<T>> create(KernelContext &context) = 0;
  /// Whether a resource found under the name fits this node's attributes.
  virtual absl::Status check(const T &) { return absl::OkStatus(); }
  std::string container, name;
};

template <typename T>
T KernelInit::attr(std::string_view name) {
  auto it = nodeInfo.attrs.find(name);
  if (it == nodeInfo.attrs.end()) {
    fail(absl::InvalidArgumentError(absl::StrCat("attribute '", std::string(name), "' is missing")));
    return T();
  }
  if (const T *value = std::get_if<T>(&it->second))
    return *value;
  fail(absl::InvalidArgumentError(absl::StrCat("attribute '", std::string(name), "' has another type")));
  return T();
}

} // namespace lathe::rt

#endif
