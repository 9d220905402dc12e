// What passes know of loops beside their regions.
#ifndef LATHE_DIALECTS_HLO_LOOPS_H
#define LATHE_DIALECTS_HLO_LOOPS_H

#include "llvm/ADT/StringRef.h"

namespace lathe::hlo {

/// Of a while loop, i64: how often its body runs (hlo-count-loops).
constexpr llvm::StringLiteral tripsAttrName = "hlo.trips";

} // namespace lathe::hlo

#endif
