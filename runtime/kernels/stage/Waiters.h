// Operations that wait for a staging area to change: each is tried again, in order, after every change.
#ifndef LATHE_RUNTIME_KERNELS_STAGE_WAITERS_H
#define LATHE_RUNTIME_KERNELS_STAGE_WAITERS_H

#include "runtime/core/Kernel.h"

#include <list>

namespace lathe::rt {

/// Base of the staging areas: `limits` on the number of elements and their bytes (0: none), and the waiting.
class StagingArea : public Resource, public std::enable_shared_from_this<StagingArea> {
public:
  using Done = std::function<void(absl::Status)>;
  /// Called with the lock held: true when it is done (successfully or not), with its status.
  using Attempt = std::function<bool(absl::Status &)>;

  StagingArea(int64_t capacity, int64_t memoryLimit) : capacity(capacity), memoryLimit(memoryLimit) {}

  const int64_t capacity, memoryLimit;

protected:
  /// Tries now, and again after changes until the attempt is done or the step is cancelled. A finished attempt counts as
  /// a change.
  void submit(Attempt attempt, Cancellation *cancellation, Done done) {
    if (cancellation && cancellation->isCancelled())
      return done(cancelled());
    auto waiter = std::make_shared<Waiter>();
    waiter->attempt = std::move(attempt);
    waiter->done = std::move(done);
    waiter->cancellation = cancellation;
    std::vector<WaiterPtr> finished;
    {
      std::lock_guard<std::mutex> lock(mutex);
      waiters.push_back(waiter);
      retry(finished);
      if (!waiter->finished && cancellation) {
        waiter->hasToken = cancellation->add(&waiter->token, [self = shared_from_this(), waiter] { self->cancel(waiter); });
        if (!waiter->hasToken) {
          waiter->finished = true;
          waiter->status = cancelled();
          waiters.remove(waiter);
          finished.push_back(waiter);
        }
      }
    }
    complete(finished);
  }

  mutable std::mutex mutex;

private:
  struct Waiter {
    Attempt attempt;
    Done done;
    Cancellation *cancellation = nullptr;
    Cancellation::Token token = 0;
    bool hasToken = false, finished = false;
    absl::Status status;
  };
  using WaiterPtr = std::shared_ptr<Waiter>;

  static absl::Status cancelled() { return absl::CancelledError("the step was cancelled while it waited for a staging area"); }

  void retry(std::vector<WaiterPtr> &finished) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = waiters.begin(); it != waiters.end();) {
        if (!(*it)->attempt((*it)->status)) {
          ++it;
          continue;
        }
        (*it)->finished = changed = true;
        finished.push_back(std::move(*it));
        it = waiters.erase(it);
      }
    }
  }

  void cancel(const WaiterPtr &waiter) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (waiter->finished)
        return;
      waiter->finished = true;
      waiter->status = cancelled();
      waiters.remove(waiter);
    }
    complete({waiter});
  }

  static void complete(const std::vector<WaiterPtr> &finished) {
    for (const WaiterPtr &waiter : finished) {
      if (waiter->hasToken)
        waiter->cancellation->tryRemove(waiter->token);
      waiter->attempt = nullptr;
      Done done = std::move(waiter->done);
      waiter->done = nullptr;
      done(waiter->status);
    }
  }

  std::list<WaiterPtr> waiters;
};

/// Base of the nodes that name a staging area by their attributes: the first of them that runs makes it.
template <typename Area>
class StagingNode : public AsyncHostKernel {
public:
  explicit StagingNode(KernelInit &init)
      : container(init.attr<std::string>("container")), name(init.attr<std::string>("shared_name")),
        capacity(init.attr<int64_t>("capacity")), memoryLimit(init.attr<int64_t>("memory_limit")),
        types(init.attr<std::vector<DType>>("dtypes")) {
    if (name.empty())
      name = init.node().name;
    if (container.empty())
      container = ResourceManager::kDefaultContainer;
  }
  void computeAsync(KernelContext &context, Done done) override {
    auto area = context.resources->template lookupOrCreate<Area>(
        container, name, [&]() -> absl::StatusOr<std::shared_ptr<Area>> {
          return std::make_shared<Area>(capacity, memoryLimit, types);
        });
    if (!area.ok())
      return done(area.status());
    run(**area, context, std::move(done));
  }

protected:
  virtual void run(Area &area, KernelContext &context, Done done) = 0;

private:
  std::string container, name;
  int64_t capacity, memoryLimit;
  std::vector<DType> types;
};

} // namespace lathe::rt

#endif
