// What inputs to come will bring, from the few that were seen: the errors of results and the ends of ranges.
#ifndef LATHE_COMPILER_QUANTIZE_TAIL_H
#define LATHE_COMPILER_QUANTIZE_TAIL_H

#include "llvm/ADT/ArrayRef.h"

namespace lathe::quantize {

/// With fewer samples nothing is said beyond the largest of them.
inline constexpr size_t fewestSamples = 8;

/// An upper limit of errors and the distribution that it was taken from.
struct ErrorLimit {
  double value = 0;
  const char *law = "largest"; ///< largest, log-normal or normal
};

/// What 99 of 100 inputs stay below, with a confidence of 90 %, from the largest error of each of some inputs: a one-sided limit of
/// tolerance, at least the largest of them. It is the smaller one of two. Errors are sums of many roundings, so that their tails are at most
/// those of magnitudes of normal numbers around 0; where an output has many elements, the largest errors are of one size, and taken to
/// be log-normal. That says nothing for outputs of one or two numbers, which are now and then right by chance. Of two, all errors
/// count (`meanSquare`, of `numbers` for each input), since the larger one of each pair says less.
ErrorLimit errorLimit(llvm::ArrayRef<double> peaks, double meanSquare, double numbers);

/// The end of a range that 999 of 1000 inputs are expected to stay within, from the highest value in each of
/// some inputs: highest values of many elements have Gumbel's distribution. `width` is that of the range
/// seen, half of which is the most that is added.
double expectedEnd(llvm::ArrayRef<double> highest, double width);

} // namespace lathe::quantize

#endif
