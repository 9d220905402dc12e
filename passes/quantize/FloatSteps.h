// Rounding in f32 that gives what integers give for each sum of 32 bits, without a test: both are functions that never fall, so they are
// the same if each number of the output begins at the same sum. There are no more than 255 such places; numbers for f32 are
// looked for until they hold at all of them.
#ifndef LATHE_PASSES_QUANTIZE_FLOATSTEPS_H
#define LATHE_PASSES_QUANTIZE_FLOATSTEPS_H

#include "passes/quantize/Arithmetic.h"

#include <optional>

namespace lathe::quantize {

/// x * factor + (x < 0 ? below : add), rounded to nearest with ties to even.
struct FloatSteps {
  float factor = 0, add = 0, below = 0;
};

/// What gives exact(x), clamped to the range, for every x of 32 bits, whether or not the product is rounded before the sum; none where
/// that is not found. `exact` never falls; about, it is x * factor + zeroPoint rounded to nearest, with halves `tie` closer to the zero
/// point. Without `tie` both numbers added are the same.
std::optional<FloatSteps> findFloatSteps(llvm::function_ref<int64_t(int32_t x)> exact, double factor, double tie, int64_t zeroPoint,
                                         Range range);

} // namespace lathe::quantize

#endif
