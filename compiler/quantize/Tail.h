// What inputs to come will bring, from the few that were seen: the errors of results and the ends of ranges.
#ifndef LATHE_COMPILER_QUANTIZE_TAIL_H
#define LATHE_COMPILER_QUANTIZE_TAIL_H

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace lathe::quantize {

/// With fewer samples nothing is said beyond the largest of them.
inline constexpr size_t fewestSamples = 8;

/// An upper limit of errors and the distribution that it was taken from.
struct ErrorLimit {
  double value = 0;
  const char *law = "largest"; ///< largest, Gumbel or normal
};

/// What 99 of 100 inputs stay below, with a confidence of 95 %, from the largest error of each of some inputs: a one-sided limit of
/// tolerance, at least the largest of them. It is the smaller one of two. Largest numbers of many have Gumbel's distribution. And errors
/// are sums of many roundings, so that their tails are at most those of magnitudes of normal numbers around 0, also where an output
/// has one number or two, which are now and then right by chance. Of two, all errors count (`meanSquare`, of `numbers` for each
/// input), since the larger one of each pair says less.
ErrorLimit errorLimit(llvm::ArrayRef<double> peaks, double meanSquare, double numbers);

/// The highest number of one value in each of some inputs (NaN: the value was not computed), and how wide the range seen is.
struct Extremes {
  std::vector<double> highest;
  double width = 0;
};

struct Reach {
  double deviations = 0; ///< how many above the mean of the highest numbers an end lies; 0 where too few were seen
  double outside = 0;    ///< the share of ends that an input passes where they are made from the other inputs
};

/// How far the ends of all ranges of a model have to be moved for 199 of 200 inputs to leave none of them. Each input is left out in
/// turn: how many deviations its highest numbers lie above the mean of the others', and the largest of these over all ranges. That
/// is a largest number of many, and so has Gumbel's distribution. So what is found counts how many ranges there are, how they depend on
/// each other, how heavy their tails are, and how little a few inputs tell of mean and deviation.
Reach expectedReach(llvm::ArrayRef<Extremes> ranges);

/// The end of one range: that many deviations above the mean, at least the highest number seen, at most half of the width more.
double expectedEnd(const Extremes &range, const Reach &reach);

} // namespace lathe::quantize

#endif
