// What iterations of linear algebra stop at, the same in the evaluator and in generated code.
#ifndef LATHE_DIALECTS_HLO_FLOATLIMITS_H
#define LATHE_DIALECTS_HLO_FLOATLIMITS_H

#include <limits>

namespace lathe::hlo {

/// The smallest normal number and the distance of 1 to the next one, of float where `narrow` and else of double.
struct FloatLimits {
  double least, epsilon;
  explicit FloatLimits(bool narrow)
      : least(narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min()),
        epsilon(narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()) {}
};

} // namespace lathe::hlo

#endif
