// Tells blocked operations (queues, receives, barriers) that their step was cancelled.
#ifndef LATHE_RUNTIME_CORE_CANCELLATION_H
#define LATHE_RUNTIME_CORE_CANCELLATION_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace lathe::rt {

class Cancellation {
public:
  using Token = int64_t;

  /// Runs every callback once, on this thread. Later registrations fail.
  void cancel();
  bool isCancelled() const { return cancelled.load(std::memory_order_acquire); }

  /// False when already cancelled: the callback will not run, the caller gives up by itself.
  bool add(Token *token, std::function<void()> callback);
  /// After this returns the callback neither runs nor is running. False when it ran or was not there. Must not be called
  /// from inside a callback or while holding a lock that the callback takes.
  bool remove(Token token);
  /// Forgets the callback if it was not taken yet, without waiting: it may still run, or be running, when this returns
  /// false, so it must own what it uses. Allowed anywhere.
  bool tryRemove(Token token);

private:
  mutable std::mutex mutex;
  std::map<Token, std::function<void()>> callbacks;
  Token next = 1;
  std::atomic<bool> cancelled{false}; ///< written under the mutex
  std::mutex running; ///< held while callbacks run
};

} // namespace lathe::rt

#endif
