// MutexV2, MutexLock, ConsumeMutexLock: one holder at a time. Who waits holds no thread; a lock ends where it is consumed, or when
// nothing has it any more.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>

namespace lathe::rt {
namespace {

class Lock;

class Mutex : public Resource, public std::enable_shared_from_this<Mutex> {
public:
  using Done = std::function<void(std::shared_ptr<Object>)>; ///< null: cancelled
  std::string describe() const override { return "mutex"; }

  /// Calls `done` with the lock, now or once it is free.
  void acquire(Cancellation *cancellation, Done done);
  void release();

private:
  struct Waiter {
    Done done;
    Cancellation *cancellation = nullptr;
    Cancellation::Token token = 0;
    bool hasToken = false;
  };
  void cancel(const std::shared_ptr<Waiter> &waiter);

  std::mutex mutex;
  bool held = false;
  std::list<std::shared_ptr<Waiter>> waiters;
};

class Lock : public Object {
public:
  explicit Lock(std::shared_ptr<Mutex> mutex) : mutex(std::move(mutex)) {}
  ~Lock() override { release(); }
  std::string describe() const override { return "lock of a mutex"; }
  void release() {
    if (!released.exchange(true))
      mutex->release();
  }

private:
  const std::shared_ptr<Mutex> mutex;
  std::atomic<bool> released{false};
};

void Mutex::acquire(Cancellation *cancellation, Done done) {
  auto waiter = std::make_shared<Waiter>();
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (held) {
      waiter->done = std::move(done);
      waiter->cancellation = cancellation;
      if (!cancellation || (waiter->hasToken = cancellation->add(&waiter->token, [self = shared_from_this(), waiter] { self->cancel(waiter); }))) {
        waiters.push_back(waiter);
        return;
      }
      done = std::move(waiter->done);
      done(nullptr);
      return;
    }
    held = true;
  }
  done(std::make_shared<Lock>(shared_from_this()));
}

void Mutex::release() {
  std::shared_ptr<Waiter> next;
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (waiters.empty()) {
      held = false;
      return;
    }
    next = std::move(waiters.front());
    waiters.pop_front();
  }
  if (next->hasToken)
    next->cancellation->tryRemove(next->token);
  next->done(std::make_shared<Lock>(shared_from_this()));
}

void Mutex::cancel(const std::shared_ptr<Waiter> &waiter) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = std::find(waiters.begin(), waiters.end(), waiter);
    if (found == waiters.end())
      return;
    waiters.erase(found);
  }
  waiter->done(nullptr);
}

class MutexNode : public ResourceKernel<Mutex> {
public:
  using ResourceKernel::ResourceKernel;

protected:
  absl::StatusOr<std::shared_ptr<Mutex>> create(KernelContext &) override { return std::make_shared<Mutex>(); }
};
LATHE_HOST_KERNEL(MutexV2, MutexNode);

class MutexLock : public AsyncHostKernel {
public:
  explicit MutexLock(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto mutex = context.resource<Mutex>(0);
    if (!mutex.ok())
      return done(mutex.status());
    (*mutex)->acquire(context.cancellation, [&context, done = std::move(done)](std::shared_ptr<Object> lock) {
      if (!lock)
        return done(absl::CancelledError("the step was cancelled while it waited for a mutex"));
      context.setOutput(0, Tensor::fromObjects(DType::Variant, {}, {std::move(lock)}));
      done(absl::OkStatus());
    });
  }
};
LATHE_HOST_KERNEL(MutexLock, MutexLock);

absl::Status consume(KernelContext &context) {
  Tensor t = context.input(0);
  auto *lock = t.dtype() == DType::Variant && t.numElements() == 1 ? dynamic_cast<Lock *>(t.objects()[0].get()) : nullptr;
  if (!lock)
    return invalid("Expected input to be a MutexLock");
  lock->release();
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ConsumeMutexLock, consume);

} // namespace
} // namespace lathe::rt
