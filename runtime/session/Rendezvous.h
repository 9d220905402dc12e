// Where Send and Recv meet. Sending never blocks, receiving does until the value is there.
#ifndef LATHE_RUNTIME_SESSION_RENDEZVOUS_H
#define LATHE_RUNTIME_SESSION_RENDEZVOUS_H

#include "runtime/core/Kernel.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace lathe::rt {

/// "SEND_DEVICE;INCARNATION;RECV_DEVICE;TENSOR;FRAME:ITERATION", as TensorFlow's.
std::string rendezvousKey(std::string_view sendDevice, uint64_t incarnation, std::string_view recvDevice, std::string_view tensor,
                          std::string_view frame, int64_t iteration);

class Rendezvous {
public:
  struct Item {
    Tensor value; ///< invalid when dead
    bool dead = false;
  };
  using Received = std::function<void(absl::StatusOr<Item>)>;

  /// Values of one key are received in the order in which they were sent.
  absl::Status send(const std::string &key, Item item);
  /// Calls `done` once, at once or from the sender's thread.
  void receive(const std::string &key, Received done);
  /// Gives `why` to all who wait and all who come.
  void abort(const absl::Status &why);

private:
  struct Queue {
    std::deque<Item> values;
    std::deque<Received> waiting;
  };
  std::mutex mutex;
  std::unordered_map<std::string, Queue> queues;
  absl::Status aborted;
};

} // namespace lathe::rt

#endif
