// RngReadAndSkip: hands out the state of a generator kept in a variable and moves the variable past the numbers.
#include "runtime/kernels/random/Generator.h"
#include "runtime/device.h"

#include <cstring>

namespace lathe::rt {
namespace {

absl::Status readAndSkip(KernelContext &context) {
  LATHE_TRY_VALUE(variable, context.resource<Variable>(0));
  LATHE_TRY_VALUE(algorithm, oneInt(context.input(1), "alg"));
  LATHE_TRY_VALUE(delta, oneInt(context.input(2), "delta"));
  // 1 is Philox, 2 ThreeFry, 3 whichever suits the device: Philox here
  if (algorithm != 1 && algorithm != 3)
    return invalid("Unsupported algorithm id: ", algorithm);
  std::lock_guard<std::mutex> lock(variable->mutex);
  if (!variable->value.valid())
    return absl::FailedPreconditionError("the generator's state is not initialised");
  if (variable->dtype != DType::Int64 || variable->value.rank() != 1 || variable->value.numElements() < 3)
    return invalid("RNG state must be a vector of at least 3 int64, not ", dtypeName(variable->dtype), " of shape ",
                   dimsToString(variable->value.dims()));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {3}));
  LATHE_TRY(valueToHost(*variable));
  int64_t *state = variable->writable().data<int64_t>();
  std::memcpy(out.data(), state, 3 * sizeof(int64_t));
  // the counter has 128 bits; 256 blocks are set aside for a number
  unsigned __int128 counter = static_cast<unsigned __int128>(static_cast<uint64_t>(state[1])) << 64 |
                              static_cast<uint64_t>(state[0]);
  counter += static_cast<unsigned __int128>(static_cast<uint64_t>(delta)) * 256;
  state[0] = static_cast<int64_t>(static_cast<uint64_t>(counter));
  state[1] = static_cast<int64_t>(static_cast<uint64_t>(counter >> 64));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RngReadAndSkip, readAndSkip);

} // namespace
} // namespace lathe::rt
