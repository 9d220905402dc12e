// Generators whose state a variable holds: two words of the counter, one of the key.
#ifndef LATHE_RUNTIME_KERNELS_RANDOM_HELD_H
#define LATHE_RUNTIME_KERNELS_RANDOM_HELD_H

#include "runtime/kernels/random/Generator.h"

namespace lathe::rt {

/// That the number names an algorithm which we have: 1 is Philox, 2 ThreeFry, 3 whichever suits the device, here Philox.
absl::Status checkAlgorithm(const Tensor &algorithm);

/// The generator in the variable that input 0 names; the variable moves past `numbers` numbers, each of 256 blocks. Where the state
/// `hasAlgorithm`, that is in a word before.
absl::StatusOr<Philox> takeGenerator(KernelContext &context, uint64_t numbers, bool hasAlgorithm = false);

} // namespace lathe::rt

#endif
