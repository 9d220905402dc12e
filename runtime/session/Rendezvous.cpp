// The rendezvous, and the kernels that use it.
#include "runtime/session/Rendezvous.h"

#include "runtime/device.h"
#include "runtime/session/Step.h"

#include "absl/strings/str_cat.h"

namespace lathe::rt {

std::string rendezvousKey(std::string_view sendDevice, uint64_t incarnation, std::string_view recvDevice, std::string_view tensor,
                          std::string_view frame, int64_t iteration) {
  auto view = [](std::string_view s) { return absl::string_view(s.data(), s.size()); };
  // outside of loops TensorFlow writes 0:0
  return absl::StrCat(view(sendDevice), ";", absl::Hex(incarnation, absl::kZeroPad16), ";", view(recvDevice), ";", view(tensor), ";",
                      frame.empty() ? absl::string_view("0") : view(frame), ":", iteration);
}

absl::Status Rendezvous::send(const std::string &key, Item item) {
  Received receiver;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!aborted.ok())
      return aborted;
    Queue &queue = queues[key];
    if (queue.waiting.empty()) {
      queue.values.push_back(std::move(item));
      return absl::OkStatus();
    }
    receiver = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    if (queue.waiting.empty() && queue.values.empty())
      queues.erase(key);
  }
  receiver(std::move(item));
  return absl::OkStatus();
}

void Rendezvous::receive(const std::string &key, Received done) {
  absl::StatusOr<Item> answer = Item();
  {
    std::lock_guard<std::mutex> lock(mutex);
    Queue &queue = queues[key];
    if (!aborted.ok()) {
      answer = aborted;
    } else if (queue.values.empty()) {
      queue.waiting.push_back(std::move(done));
      return;
    } else {
      answer = std::move(queue.values.front());
      queue.values.pop_front();
      if (queue.waiting.empty() && queue.values.empty())
        queues.erase(key);
    }
  }
  done(std::move(answer));
}

void Rendezvous::abort(const absl::Status &why) {
  std::unordered_map<std::string, Queue> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!aborted.ok())
      return;
    aborted = why;
    all.swap(queues);
  }
  for (auto &[key, queue] : all)
    for (Received &done : queue.waiting)
      done(why);
}

namespace {

class TransferKernel : public AsyncHostKernel {
public:
  explicit TransferKernel(KernelInit &init)
      : tensor(init.attr<std::string>("tensor_name")), sendDevice(init.attr<std::string>("send_device")),
        recvDevice(init.attr<std::string>("recv_device")), incarnation(static_cast<uint64_t>(init.attr<int64_t>("send_device_incarnation"))) {}
  bool isExpensive() const override { return false; }

protected:
  std::string key(const KernelContext &context) const {
    return rendezvousKey(sendDevice, incarnation, recvDevice, tensor, context.frame, context.iteration);
  }
  static Rendezvous *of(const KernelContext &context) {
    auto *step = static_cast<Step *>(context.executor);
    return step ? step->options().rendezvous : nullptr;
  }
  static absl::Status none() { return absl::InternalError("there is no other device in this run"); }

private:
  const std::string tensor, sendDevice, recvDevice;
  const uint64_t incarnation;
};

class SendKernel : public TransferKernel {
public:
  using TransferKernel::TransferKernel;
  void computeAsync(KernelContext &context, Done done) override {
    Rendezvous *rendezvous = of(context);
    if (!rendezvous)
      return done(none());
    // a dead input comes as no value: the executor runs this one even then
    if (!context.inputs[0].present())
      return done(rendezvous->send(key(context), {Tensor(), true}));
    // in whatever memory it lies: who receives it knows where it is wanted
    done(rendezvous->send(key(context), {context.input(0), false}));
  }
};

class RecvKernel : public TransferKernel {
public:
  using TransferKernel::TransferKernel;
  void computeAsync(KernelContext &context, Done done) override {
    Rendezvous *rendezvous = of(context);
    if (!rendezvous)
      return done(none());
    Device *device = static_cast<Step *>(context.executor)->options().device;
    rendezvous->receive(key(context), [&context, device, done](absl::StatusOr<Rendezvous::Item> item) {
      if (!item.ok() || item->dead)
        return done(item.status()); // without a value the output is dead
      auto give = [&context, done](absl::StatusOr<Tensor> value) {
        if (value.ok())
          context.setOutput(0, *std::move(value));
        done(value.status());
      };
      if (device)
        return device->receive(item->value, give);
      give(hostTensor(item->value));
    });
  }
};

LATHE_HOST_KERNEL(Send, SendKernel);
LATHE_HOST_KERNEL(Recv, RecvKernel);

} // namespace
} // namespace lathe::rt
