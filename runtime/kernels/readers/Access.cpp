// ReaderRead(UpTo), ReaderNumRecordsProduced, ReaderNumWorkUnitsCompleted, ReaderSerializeState, ReaderRestoreState,
// ReaderReset, and their V2 forms.
#include "runtime/core/Elements.h"
#include "runtime/kernels/readers/Reader.h"

namespace lathe::rt {
namespace {

template <bool many>
class Read : public AsyncHostKernel {
public:
  explicit Read(KernelInit &) {}
  void computeAsync(KernelContext &context, Done done) override {
    auto reader = context.resource<Reader>(0);
    if (!reader.ok())
      return done(reader.status());
    auto queue = context.resource<Queue>(1);
    if (!queue.ok())
      return done(queue.status());
    int64_t count = 1;
    if (many) {
      auto given = integerScalar(context.input(2), "num_records");
      if (!given.ok())
        return done(given.status());
      if ((count = *given) <= 0)
        return done(absl::InvalidArgumentError(absl::StrCat("num_records must be positive, found ", count)));
    }
    (*reader)->read(count, *queue, context.cancellation,
                    [&context, done = std::move(done)](absl::StatusOr<Reader::Records> records) {
                      if (!records.ok())
                        return done(records.status());
                      std::vector<std::string> keys, values;
                      for (auto &[key, value] : *records) {
                        keys.push_back(std::move(key));
                        values.push_back(std::move(value));
                      }
                      std::vector<int64_t> dims;
                      if (many)
                        dims.push_back(static_cast<int64_t>(keys.size()));
                      context.setOutput(0, Tensor::fromStrings(dims, std::move(keys)));
                      context.setOutput(1, Tensor::fromStrings(dims, std::move(values)));
                      done(absl::OkStatus());
                    });
  }
};

template <int64_t (Reader::*count)() const>
absl::Status counter(KernelContext &context) {
  auto reader = context.resource<Reader>(0);
  if (!reader.ok())
    return reader.status();
  context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, ((**reader).*count)()));
  return absl::OkStatus();
}

absl::Status serializeState(KernelContext &context) {
  auto reader = context.resource<Reader>(0);
  if (!reader.ok())
    return reader.status();
  auto state = (*reader)->serializeState();
  if (!state.ok())
    return state.status();
  context.setOutput(0, Tensor::fromStrings({}, {*std::move(state)}));
  return absl::OkStatus();
}

absl::Status restoreState(KernelContext &context) {
  auto reader = context.resource<Reader>(0);
  if (!reader.ok())
    return reader.status();
  auto state = stringScalar(context.input(1), "state");
  if (!state.ok())
    return state.status();
  return (*reader)->restoreState(*state);
}

absl::Status reset(KernelContext &context) {
  auto reader = context.resource<Reader>(0);
  return reader.ok() ? (*reader)->reset() : reader.status();
}

LATHE_HOST_KERNEL(ReaderRead, Read<false>);
LATHE_HOST_KERNEL(ReaderReadV2, Read<false>);
LATHE_HOST_KERNEL(ReaderReadUpTo, Read<true>);
LATHE_HOST_KERNEL(ReaderReadUpToV2, Read<true>);
LATHE_HOST_FUNCTION(ReaderNumRecordsProduced, counter<&Reader::recordsProduced>);
LATHE_HOST_FUNCTION(ReaderNumRecordsProducedV2, counter<&Reader::recordsProduced>);
LATHE_HOST_FUNCTION(ReaderNumWorkUnitsCompleted, counter<&Reader::workUnitsCompleted>);
LATHE_HOST_FUNCTION(ReaderNumWorkUnitsCompletedV2, counter<&Reader::workUnitsCompleted>);
LATHE_HOST_FUNCTION(ReaderSerializeState, serializeState);
LATHE_HOST_FUNCTION(ReaderSerializeStateV2, serializeState);
LATHE_HOST_FUNCTION(ReaderRestoreState, restoreState);
LATHE_HOST_FUNCTION(ReaderRestoreStateV2, restoreState);
LATHE_HOST_FUNCTION(ReaderReset, reset);
LATHE_HOST_FUNCTION(ReaderResetV2, reset);

} // namespace
} // namespace lathe::rt
