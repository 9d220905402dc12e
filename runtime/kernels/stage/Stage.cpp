// Stage, Unstage, StagePeek, StageSize, StageClear: a bounded line of tuples.
#include "runtime/core/Elements.h"
#include "runtime/kernels/stage/Waiters.h"

#include <deque>

namespace lathe::rt {
namespace {

class Buffer : public StagingArea {
public:
  using Tuple = std::vector<Tensor>;
  Buffer(int64_t capacity, int64_t memoryLimit, std::vector<DType>) : StagingArea(capacity, memoryLimit) {}
  std::string describe() const override { return "staging area"; }

  void put(Tuple tuple, Cancellation *cancellation, Done done) {
    int64_t size = 0;
    for (const Tensor &t : tuple)
      size += totalBytes(t);
    if (memoryLimit > 0 && size > memoryLimit)
      return done(absl::ResourceExhaustedError(absl::StrCat("attempted to insert tensors with combined size of ", size,
                                                            " bytes into a staging area with a memory limit of ",
                                                            memoryLimit)));
    submit(
        [this, tuple = std::move(tuple), size](absl::Status &) mutable {
          if ((capacity > 0 && static_cast<int64_t>(items.size()) >= capacity) ||
              (memoryLimit > 0 && bytes + size > memoryLimit))
            return false;
          items.push_back({std::move(tuple), size});
          bytes += size;
          return true;
        },
        cancellation, std::move(done));
  }

  void take(Tuple *out, Cancellation *cancellation, Done done) {
    submit(
        [this, out](absl::Status &) {
          if (items.empty())
            return false;
          *out = std::move(items.front().tuple);
          bytes -= items.front().bytes;
          items.pop_front();
          return true;
        },
        cancellation, std::move(done));
  }

  void peek(int64_t index, Tuple *out, Cancellation *cancellation, Done done) {
    submit(
        [this, out, index](absl::Status &) {
          if (index >= static_cast<int64_t>(items.size()))
            return false;
          *out = items[index].tuple;
          return true;
        },
        cancellation, std::move(done));
  }

  void clear(Done done) {
    submit(
        [this](absl::Status &) {
          items.clear();
          bytes = 0;
          return true;
        },
        nullptr, std::move(done));
  }

  int64_t size() const {
    std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int64_t>(items.size());
  }

private:
  struct Item {
    Tuple tuple;
    int64_t bytes;
  };
  std::deque<Item> items;
  int64_t bytes = 0;
};

/// Sets the outputs from `*tuple`, which lives as long as the callback.
AsyncHostKernel::Done toOutputs(KernelContext &context, std::shared_ptr<Buffer::Tuple> tuple, AsyncHostKernel::Done done) {
  return [&context, tuple = std::move(tuple), done = std::move(done)](absl::Status status) {
    if (status.ok() && tuple->size() != context.outputs.size())
      status = absl::InvalidArgumentError(absl::StrCat("mismatch of the number of tensors: ", tuple->size(), " staged, ",
                                                       context.outputs.size(), " asked for"));
    for (size_t i = 0; status.ok() && i < tuple->size(); ++i)
      context.setOutput(static_cast<int>(i), std::move((*tuple)[i]));
    done(std::move(status));
  };
}

struct Stage : StagingNode<Buffer> {
  using StagingNode::StagingNode;
  void run(Buffer &area, KernelContext &context, Done done) override {
    area.put(context.inputList("values"), context.cancellation, std::move(done));
  }
};

struct Unstage : StagingNode<Buffer> {
  using StagingNode::StagingNode;
  void run(Buffer &area, KernelContext &context, Done done) override {
    auto tuple = std::make_shared<Buffer::Tuple>();
    area.take(tuple.get(), context.cancellation, toOutputs(context, tuple, std::move(done)));
  }
};

struct StagePeek : StagingNode<Buffer> {
  using StagingNode::StagingNode;
  void run(Buffer &area, KernelContext &context, Done done) override {
    auto index = integerScalar(context.input(0), "index");
    if (!index.ok())
      return done(index.status());
    if (*index < 0)
      return done(absl::InvalidArgumentError(absl::StrCat("index ", *index, " is negative")));
    auto tuple = std::make_shared<Buffer::Tuple>();
    area.peek(*index, tuple.get(), context.cancellation, toOutputs(context, tuple, std::move(done)));
  }
};

struct StageSize : StagingNode<Buffer> {
  using StagingNode::StagingNode;
  void run(Buffer &area, KernelContext &context, Done done) override {
    context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>(area.size())));
    done(absl::OkStatus());
  }
};

struct StageClear : StagingNode<Buffer> {
  using StagingNode::StagingNode;
  void run(Buffer &area, KernelContext &, Done done) override { area.clear(std::move(done)); }
};

LATHE_HOST_KERNEL(Stage, Stage);
LATHE_HOST_KERNEL(Unstage, Unstage);
LATHE_HOST_KERNEL(StagePeek, StagePeek);
LATHE_HOST_KERNEL(StageSize, StageSize);
LATHE_HOST_KERNEL(StageClear, StageClear);

} // namespace
} // namespace lathe::rt
