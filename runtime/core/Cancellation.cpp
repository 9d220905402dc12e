#include "runtime/core/Cancellation.h"

#include <utility>

namespace lathe::rt {

void Cancellation::cancel() {
  std::lock_guard<std::mutex> whileRunning(running);
  std::map<Token, std::function<void()>> todo;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (cancelled)
      return;
    cancelled = true;
    todo.swap(callbacks);
  }
  for (auto &[token, callback] : todo)
    callback();
}

bool Cancellation::add(Token *token, std::function<void()> callback) {
  std::lock_guard<std::mutex> lock(mutex);
  if (cancelled)
    return false;
  *token = next++;
  callbacks.emplace(*token, std::move(callback));
  return true;
}

bool Cancellation::remove(Token token) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (callbacks.erase(token))
      return true;
    if (!cancelled)
      return false;
  }
  // cancel() took it: wait until it has run
  std::lock_guard<std::mutex> wait(running);
  return false;
}

bool Cancellation::tryRemove(Token token) {
  std::lock_guard<std::mutex> lock(mutex);
  return callbacks.erase(token) != 0;
}

} // namespace lathe::rt
