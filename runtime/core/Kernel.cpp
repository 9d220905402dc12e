#include "runtime/core/Compute.h"

#include "ops/Absent.h"
#include "runtime/core/InvalidUse.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>

namespace lathe::rt {
namespace {

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};

/// The op table's view of a node's attributes.
class NodeAttrs : public ops::AttrSource {
public:
  explicit NodeAttrs(const AttrMap &attrs) : attrs(attrs) {}
  std::optional<int64_t> intAttr(std::string_view name) const override { return get<int64_t>(name); }
  std::optional<DType> typeAttr(std::string_view name) const override { return get<DType>(name); }
  std::optional<std::vector<DType>> typeListAttr(std::string_view name) const override {
    return get<std::vector<DType>>(name);
  }
  std::optional<std::string> stringAttr(std::string_view name) const override { return get<std::string>(name); }
  std::optional<int64_t> listSize(std::string_view name) const override {
    auto it = attrs.find(name);
    if (it == attrs.end())
      return std::nullopt;
    return std::visit(
        [](const auto &v) -> std::optional<int64_t> {
          if constexpr (IsList<std::decay_t<decltype(v)>>::value)
            return static_cast<int64_t>(v.size());
          else
            return std::nullopt;
        },
        it->second);
  }

private:
  template <typename T>
  std::optional<T> get(std::string_view name) const {
    auto it = attrs.find(name);
    if (it == attrs.end())
      return std::nullopt;
    const T *value = std::get_if<T>(&it->second);
    return value ? std::optional<T>(*value) : std::nullopt;
  }
  const AttrMap &attrs;
};

ArgRange rangeOf(const NodeInfo &node, const std::vector<ops::Arg> &args, std::string_view name) {
  std::vector<int64_t> counts;
  if (!ops::resolveTypes(*node.info, args, NodeAttrs(node.attrs), &counts).ok())
    return {};
  int start = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == name)
      return {start, static_cast<int>(counts[i])};
    start += static_cast<int>(counts[i]);
  }
  return {};
}

absl::Status resolveArgs(const NodeInfo &node, const std::vector<ops::Arg> &args, std::vector<DType> &types,
                         std::vector<bool> &isRef) {
  std::vector<int64_t> counts;
  auto resolved = ops::resolveTypes(*node.info, args, NodeAttrs(node.attrs), &counts);
  if (!resolved.ok())
    return resolved.status();
  types = *std::move(resolved);
  isRef.clear();
  for (size_t i = 0; i < args.size(); ++i)
    isRef.insert(isRef.end(), counts[i], args[i].isRef);
  return absl::OkStatus();
}

/// Filled by static registrars, so made on first use.
std::map<std::string_view, const KernelFactory *> &registry() {
  static auto *all = new std::map<std::string_view, const KernelFactory *>();
  return *all;
}

} // namespace

ArgRange NodeInfo::inputRange(std::string_view name) const { return rangeOf(*this, info->inputs, name); }
ArgRange NodeInfo::outputRange(std::string_view name) const { return rangeOf(*this, info->outputs, name); }

absl::Status resolveNode(NodeInfo &node) {
  node.info = ops::findOp(node.op);
  if (!node.info)
    return absl::NotFoundError(absl::StrCat("op '", node.op, "' is not known"));
  for (const ops::Attr &attr : node.info->attrs) {
    auto it = node.attrs.find(attr.name);
    if (it == node.attrs.end()) {
      if (!attr.hasDefault)
        return absl::InvalidArgumentError(absl::StrCat("attribute '", std::string(attr.name), "' is missing"));
      it = node.attrs.emplace(std::string(attr.name), AttrValue()).first;
      if (!parseAttr(attr.type, attr.defaultText, it->second))
        return absl::InternalError(absl::StrCat("default of '", std::string(attr.name), "' does not parse"));
    } else if (!fitsAttrType(attr.type, it->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", std::string(attr.name), "' is not of type ", std::string(attr.type)));
    }
  }
  if (absl::Status allowed = ops::checkAttrs(*node.info, NodeAttrs(node.attrs)); !allowed.ok())
    return allowed;
  if (absl::Status inputs = resolveArgs(node, node.info->inputs, node.inputTypes, node.inputIsRef); !inputs.ok())
    return inputs;
  return resolveArgs(node, node.info->outputs, node.outputTypes, node.outputIsRef);
}

absl::StatusOr<std::vector<Tensor>> FunctionCaller::callAndWait(const FunctionRef &function, std::vector<Tensor> args,
                                                                Cancellation *cancellation) {
  std::mutex mutex;
  std::condition_variable ready;
  bool finished = false;
  absl::StatusOr<std::vector<Tensor>> result = absl::InternalError("no result");
  call(function, std::move(args), cancellation, [&](absl::StatusOr<std::vector<Tensor>> r) {
    std::lock_guard<std::mutex> lock(mutex);
    result = std::move(r);
    finished = true;
    ready.notify_one(); // under the lock: the waiter owns the condition variable
  });
  std::unique_lock<std::mutex> lock(mutex);
  ready.wait(lock, [&] { return finished; });
  return result;
}

Tensor KernelContext::input(int i) const {
  if (i < 0 || i >= numInputs())
    throw InvalidUse(absl::StrCat("input ", i, " is missing, found ", inputs.size()));
  const Value &value = inputs[i];
  if (!value.ref)
    return value.tensor;
  std::lock_guard<std::mutex> lock(value.ref->mutex);
  return value.ref->value;
}

std::vector<Tensor> KernelContext::inputList(std::string_view name) const {
  ArgRange range = node->inputRange(name);
  std::vector<Tensor> all;
  for (int i = 0; i < range.count; ++i)
    all.push_back(input(range.start + i));
  return all;
}

absl::StatusOr<Tensor> KernelContext::allocate(DType type, std::vector<int64_t> dims) const {
  return Tensor::tryAllocate(type, std::move(dims), kMaxTensorBytes);
}

absl::Status KernelContext::outputUnknown() const {
  return absl::InternalError(absl::StrCat("output ", *unknownOutput, " was set, of ", outputs.size()));
}

absl::StatusOr<Tensor> KernelContext::allocateOutput(int i, std::vector<int64_t> dims) {
  if (!hasOutput(i))
    return outputsKnown();
  auto t = allocate(node->outputTypes[i], std::move(dims));
  if (t.ok())
    setOutput(i, *t);
  return t;
}

absl::StatusOr<std::shared_ptr<Resource>> KernelContext::anyResource(int i) const {
  Tensor handle = input(i);
  if (handle.dtype() == DType::Resource && handle.numElements() == 1) {
    if (auto *h = dynamic_cast<ResourceHandle *>(handle.objects()[0].get()); h && h->resource)
      return h->resource;
    return absl::NotFoundError(absl::StrCat("input ", i, " is a handle to nothing"));
  }
  if (handle.dtype() == DType::String && handle.numElements() == 2)
    return resources->lookup(handle.strings()[0], handle.strings()[1]);
  return absl::InvalidArgumentError(absl::StrCat("input ", i, " is not the handle of a resource"));
}

absl::Status computeGuarded(HostKernel &kernel, KernelContext &context) {
  try {
    absl::Status status = kernel.compute(context);
    return status.ok() ? context.outputsKnown() : status;
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const InvalidUse &e) {
    return absl::InvalidArgumentError(e.what());
  } catch (const std::length_error &) { // a vector or string beyond what there can be
    return absl::ResourceExhaustedError("out of memory: a size is beyond any");
  }
}

absl::Status AsyncHostKernel::compute(KernelContext &context) {
  std::mutex mutex;
  std::condition_variable ready;
  bool finished = false;
  absl::Status result;
  computeAsync(context, [&](absl::Status s) {
    std::lock_guard<std::mutex> lock(mutex);
    result = std::move(s);
    finished = true;
    ready.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  ready.wait(lock, [&] { return finished; });
  return result;
}

KernelRegistrar::KernelRegistrar(const KernelFactory *factory) { registry()[factory->op] = factory; }

const KernelFactory *findKernel(std::string_view op) {
  auto it = registry().find(op);
  return it == registry().end() ? nullptr : it->second;
}

std::vector<std::string_view> allKernels() {
  std::vector<std::string_view> names;
  for (auto &[name, factory] : registry())
    names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<HostKernel>> makeKernel(KernelInit &init) {
  const KernelFactory *factory = findKernel(init.node().op);
  if (!factory)
    return absl::UnimplementedError(ops::noHostKernel(init.node().op));
  std::unique_ptr<HostKernel> kernel = factory->make(init);
  if (!init.status().ok())
    return init.status();
  return kernel;
}

} // namespace lathe::rt
