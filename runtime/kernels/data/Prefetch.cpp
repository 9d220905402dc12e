// PrefetchDataset: a thread of its own fills a bounded buffer.
#include "runtime/kernels/data/Dataset.h"

#include <condition_variable>
#include <deque>
#include <thread>

namespace lathe::rt {
namespace {

class PrefetchDataset : public UnaryDataset {
public:
  PrefetchDataset(Spec spec, DatasetPtr input, int64_t size) : UnaryDataset(std::move(spec), std::move(input)), size(size) {}
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    if (size == 0)
      return input->iterate(env);
    return iterateInput<Iterator>(this, env);
  }

private:
  class Iterator : public UnaryIterator<PrefetchDataset> {
  public:
    using UnaryIterator::UnaryIterator;
    ~Iterator() override {
      {
        std::lock_guard<std::mutex> lock(mutex);
        stopped = true;
        changed.notify_all();
      }
      if (thread.joinable())
        thread.join();
    }
    absl::StatusOr<bool> next(Element &element) override {
      std::unique_lock<std::mutex> lock(mutex);
      if (!thread.joinable())
        thread = std::thread([this] { fill(); });
      changed.wait(lock, [&] { return !buffer.empty() || ended; });
      if (buffer.empty())
        return false;
      absl::StatusOr<Element> first = std::move(buffer.front());
      buffer.pop_front();
      changed.notify_all();
      if (!first.ok())
        return first.status();
      element = *std::move(first);
      return true;
    }

  private:
    void fill() {
      for (;;) {
        {
          std::unique_lock<std::mutex> lock(mutex);
          changed.wait(lock, [&] { return stopped || static_cast<int64_t>(buffer.size()) < dataset->size; });
          if (stopped)
            return;
        }
        Element element;
        auto any = input->next(element);
        std::lock_guard<std::mutex> lock(mutex);
        if (any.ok() && !*any)
          ended = true;
        else if (any.ok())
          buffer.push_back(std::move(element));
        else
          buffer.push_back(any.status());
        changed.notify_all();
        if (ended)
          return;
      }
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<absl::StatusOr<Element>> buffer;
    std::thread thread;
    bool stopped = false, ended = false;
  };
  const int64_t size;
};

absl::StatusOr<std::shared_ptr<Dataset>> prefetch(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  auto size = integerScalar(context.input("buffer_size"), "buffer_size");
  if (!size.ok())
    return size.status();
  constexpr int64_t kAutotune = -1, kAutomatic = 8;
  if (*size < 0 && *size != kAutotune)
    return absl::InvalidArgumentError("buffer_size must be >= 0 or set to be auto-tuned");
  return std::make_shared<PrefetchDataset>(spec, std::move(input), *size == kAutotune ? kAutomatic : *size);
}

LATHE_HOST_KERNEL(PrefetchDataset, UnaryNode<prefetch>);

} // namespace
} // namespace lathe::rt
