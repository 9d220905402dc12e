// Marks on ops of hlo: what whoever made them knows and later passes may use. Dropping one is always right.
#ifndef LATHE_DIALECTS_HLO_MARKS_H
#define LATHE_DIALECTS_HLO_MARKS_H

namespace lathe::hlo {

/// On a conversion from floats to integers, a unit: every number is finite and inside what the integers hold. Code need not saturate.
constexpr const char *inRangeAttr = "hlo.in_range";

/// On a select, a unit: its first value is right everywhere, the second one where the condition does not hold and cheaper; the
/// condition seldom holds. What reads the result does not tell them apart where both are right. Code that tests conditions
/// for many elements at once computes the first value only where one holds, other code never needs the second.
constexpr const char *shortcutAttr = "hlo.shortcut";

/// On an addition of floats, a unit: a product that it adds need not be rounded before.
constexpr const char *contractAttr = "hlo.contract";

} // namespace lathe::hlo

#endif
