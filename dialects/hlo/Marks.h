// Marks on ops of hlo: what whoever made them knows and later passes may use. Dropping one is always right.
#ifndef LATHE_DIALECTS_HLO_MARKS_H
#define LATHE_DIALECTS_HLO_MARKS_H

namespace lathe::hlo {

/// On a conversion from floats to integers, a unit: every number is finite and inside what the integers hold. Code need not saturate.
constexpr const char *inRangeAttr = "hlo.in_range";

} // namespace lathe::hlo

#endif
