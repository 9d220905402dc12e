// MapStage and OrderedMapStage with their Unstage, UnstageNoKey, Peek, Size, IncompleteSize and Clear: tuples under keys,
// whose components may be inserted and taken in parts.
#include "runtime/core/Elements.h"
#include "runtime/kernels/stage/Waiters.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace lathe::rt {
namespace {

/// `Ordered`: taking without a key takes the smallest.
template <bool Ordered>
class StagingMap : public StagingArea {
public:
  using Tuple = std::vector<std::optional<Tensor>>;
  StagingMap(int64_t capacity, int64_t memoryLimit, std::vector<DType> types)
      : StagingArea(capacity, memoryLimit), types(std::move(types)) {}
  std::string describe() const override { return Ordered ? "ordered staging map" : "staging map"; }

  void put(int64_t key, std::vector<int64_t> indices, std::vector<Tensor> values, Cancellation *cancellation, Done done) {
    if (absl::Status valid = checkIndices(indices); !valid.ok())
      return done(valid);
    if (indices.size() != values.size())
      return done(absl::InvalidArgumentError(
          absl::StrCat("number of indices ", indices.size(), " differs from the number of values ", values.size())));
    int64_t size = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].dtype() != types[indices[i]])
        return done(absl::InvalidArgumentError(absl::StrCat("value ", i, " has type ", dtypeName(values[i].dtype()),
                                                            ", expected ", dtypeName(types[indices[i]]))));
      size += totalBytes(values[i]);
    }
    if (memoryLimit > 0 && size > memoryLimit)
      return done(absl::ResourceExhaustedError(absl::StrCat("attempted to insert tensors with combined size of ", size,
                                                            " bytes into a staging area with a memory limit of ",
                                                            memoryLimit)));
    submit(
        [this, key, size, indices = std::move(indices), values = std::move(values)](absl::Status &status) mutable {
          return tryPut(key, size, indices, values, status);
        },
        cancellation, std::move(done));
  }

  /// Takes (or copies) some components of a key's tuple once it is complete.
  void get(std::optional<int64_t> key, std::vector<int64_t> indices, bool remove, int64_t *keyOut,
           std::vector<Tensor> *out, Cancellation *cancellation, Done done) {
    if (absl::Status valid = checkIndices(indices); !valid.ok())
      return done(valid);
    submit(
        [this, key, indices = std::move(indices), remove, keyOut, out](absl::Status &status) {
          auto it = key ? complete.find(*key) : complete.begin();
          if (it == complete.end())
            return false;
          *keyOut = it->first;
          for (int64_t index : indices)
            if (!it->second[index]) {
              status = absl::InvalidArgumentError(
                  absl::StrCat("tensor at index ", index, " for key ", it->first, " has already been removed"));
              return true;
            }
          for (int64_t index : indices) {
            out->push_back(*it->second[index]);
            if (remove) {
              bytes -= totalBytes(*it->second[index]);
              it->second[index].reset();
            }
          }
          for (const auto &component : it->second)
            if (component)
              return true;
          complete.erase(it);
          return true;
        },
        cancellation, std::move(done));
  }

  void clear(Done done) {
    submit(
        [this](absl::Status &) {
          complete.clear();
          incomplete.clear();
          bytes = 0;
          return true;
        },
        nullptr, std::move(done));
  }
  int64_t size() const {
    std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int64_t>(complete.size());
  }
  int64_t incompleteSize() const {
    std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int64_t>(incomplete.size());
  }
  size_t numComponents() const { return types.size(); }

private:
  using Map = std::conditional_t<Ordered, std::map<int64_t, Tuple>, std::unordered_map<int64_t, Tuple>>;

  absl::Status checkIndices(const std::vector<int64_t> &indices) const {
    for (int64_t index : indices)
      if (index < 0 || index >= static_cast<int64_t>(types.size()))
        return absl::InvalidArgumentError(
            absl::StrCat("index '", index, "' is out of range for ", types.size(), " components"));
    return absl::OkStatus();
  }

  bool tryPut(int64_t key, int64_t size, const std::vector<int64_t> &indices, const std::vector<Tensor> &values,
              absl::Status &status) {
    bool whole = indices.size() == types.size();
    if (memoryLimit > 0 && bytes + size > memoryLimit)
      return false;
    bool full = capacity > 0 && static_cast<int64_t>(complete.size()) >= capacity;
    if (whole && full)
      return false;
    auto it = incomplete.find(key);
    if (it != incomplete.end())
      for (int64_t index : indices)
        if (it->second[index]) {
          status = absl::InvalidArgumentError(
              absl::StrCat("the tensor for index '", index, "' for key '", key, "' was already initialized"));
          return true;
        }
    Tuple tuple = it == incomplete.end() ? Tuple(types.size()) : it->second;
    for (size_t i = 0; i < indices.size(); ++i)
      tuple[indices[i]] = values[i];
    for (const auto &component : tuple)
      if (!component) {
        bytes += size;
        incomplete[key] = std::move(tuple);
        return true;
      }
    if (full)
      return false;
    bytes += size;
    incomplete.erase(key);
    complete.emplace(key, std::move(tuple));
    return true;
  }

  const std::vector<DType> types;
  Map complete;
  std::unordered_map<int64_t, Tuple> incomplete;
  int64_t bytes = 0;
};

template <bool Ordered>
struct Put : StagingNode<StagingMap<Ordered>> {
  using StagingNode<StagingMap<Ordered>>::StagingNode;
  void run(StagingMap<Ordered> &area, KernelContext &context, AsyncHostKernel::Done done) override {
    auto key = integerScalar(context.input(0), "key");
    if (!key.ok())
      return done(key.status());
    area.put(*key, integers(context.input(1)), context.inputList("values"), context.cancellation, std::move(done));
  }
};

enum class How { Take, Peek, TakeAny };

template <bool Ordered, How how>
struct Get : StagingNode<StagingMap<Ordered>> {
  using StagingNode<StagingMap<Ordered>>::StagingNode;
  void run(StagingMap<Ordered> &area, KernelContext &context, AsyncHostKernel::Done done) override {
    std::optional<int64_t> key;
    if (how != How::TakeAny) {
      auto given = integerScalar(context.input(0), "key");
      if (!given.ok())
        return done(given.status());
      key = *given;
    }
    struct Result {
      int64_t key = 0;
      std::vector<Tensor> values;
    };
    auto result = std::make_shared<Result>();
    std::vector<int64_t> indices = integers(context.input(how == How::TakeAny ? 0 : 1));
    area.get(key, std::move(indices), how != How::Peek, &result->key, &result->values, context.cancellation,
             [&context, result, done = std::move(done)](absl::Status status) {
               size_t first = how == How::TakeAny;
               if (status.ok() && result->values.size() + first != context.outputs.size())
                 status = absl::InvalidArgumentError("the number of outputs differs from the number of indices");
               if (status.ok() && first)
                 context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, result->key));
               for (size_t i = 0; status.ok() && i < result->values.size(); ++i)
                 context.setOutput(static_cast<int>(i + first), std::move(result->values[i]));
               done(std::move(status));
             });
  }
};

template <bool Ordered, bool incomplete>
struct Size : StagingNode<StagingMap<Ordered>> {
  using StagingNode<StagingMap<Ordered>>::StagingNode;
  void run(StagingMap<Ordered> &area, KernelContext &context, AsyncHostKernel::Done done) override {
    int64_t n = incomplete ? area.incompleteSize() : area.size();
    context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(n)));
    done(absl::OkStatus());
  }
};

template <bool Ordered>
struct Clear : StagingNode<StagingMap<Ordered>> {
  using StagingNode<StagingMap<Ordered>>::StagingNode;
  void run(StagingMap<Ordered> &area, KernelContext &, AsyncHostKernel::Done done) override { area.clear(std::move(done)); }
};

LATHE_HOST_KERNEL(MapStage, Put<false>);
LATHE_HOST_KERNEL(OrderedMapStage, Put<true>);
LATHE_HOST_KERNEL(MapUnstage, Get<false, How::Take>);
LATHE_HOST_KERNEL(OrderedMapUnstage, Get<true, How::Take>);
LATHE_HOST_KERNEL(MapPeek, Get<false, How::Peek>);
LATHE_HOST_KERNEL(OrderedMapPeek, Get<true, How::Peek>);
LATHE_HOST_KERNEL(MapUnstageNoKey, Get<false, How::TakeAny>);
LATHE_HOST_KERNEL(OrderedMapUnstageNoKey, Get<true, How::TakeAny>);
LATHE_HOST_KERNEL(MapSize, Size<false, false>);
LATHE_HOST_KERNEL(OrderedMapSize, Size<true, false>);
LATHE_HOST_KERNEL(MapIncompleteSize, Size<false, true>);
LATHE_HOST_KERNEL(OrderedMapIncompleteSize, Size<true, true>);
LATHE_HOST_KERNEL(MapClear, Clear<false>);
LATHE_HOST_KERNEL(OrderedMapClear, Clear<true>);

} // namespace
} // namespace lathe::rt
