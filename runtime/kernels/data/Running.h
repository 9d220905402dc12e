// What iterators as resources have in common, whoever reads them.
#ifndef LATHE_RUNTIME_KERNELS_DATA_RUNNING_H
#define LATHE_RUNTIME_KERNELS_DATA_RUNNING_H

#include "runtime/kernels/data/Dataset.h"

#include <memory>
#include <thread>

namespace lathe::rt {

/// An iterator that starts over with any dataset. One thread at a time.
class Running {
public:
  /// Forgets what was running. Without an iterator where that fails.
  absl::Status start(const Dataset &dataset) {
    iterator.reset();
    ended = false;
    auto made = dataset.iterate({cancellation.get()});
    if (made.ok())
      iterator = *std::move(made);
    return made.status();
  }
  bool started() const { return iterator != nullptr; }
  /// The next element; OUT_OF_RANGE at the end and ever after. It must have started.
  absl::StatusOr<Element> next() {
    Element element;
    absl::StatusOr<bool> any = false;
    if (!ended)
      any = iterator->next(element);
    if (!any.ok())
      return any.status();
    if (!*any) {
      ended = true;
      return absl::OutOfRangeError("End of sequence");
    }
    return element;
  }
  /// Before what owns it goes. Datasets below may have threads that wait for functions, and functions for a thread of the executor, which
  /// may be this one: so what is left goes on a thread of its own.
  void end() {
    cancellation->cancel();
    if (iterator)
      std::thread([c = std::move(cancellation), i = std::move(iterator)]() mutable { i.reset(); }).detach();
  }

private:
  std::unique_ptr<Cancellation> cancellation = std::make_unique<Cancellation>();
  IteratorPtr iterator;
  bool ended = false;
};

} // namespace lathe::rt

#endif
