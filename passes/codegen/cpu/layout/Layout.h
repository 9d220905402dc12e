// The layouts of the CPU's backend (Layout.td), and what emitters ask an op about its own.
#ifndef LATHE_PASSES_CODEGEN_CPU_LAYOUT_LAYOUT_H
#define LATHE_PASSES_CODEGEN_CPU_LAYOUT_LAYOUT_H

#include "dialects/kernel/Kernel.h"

#include <optional>

#include "passes/codegen/cpu/layout/LayoutDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "passes/codegen/cpu/layout/LayoutAttrs.h.inc"

namespace lathe::cpu {

/// Columns of a panel; nullopt where the operand is not packed.
std::optional<int64_t> panelColumns(kernel::DotOp op);
std::optional<int64_t> panelColumns(kernel::ConvOp op);
/// Steps of the sum side by side in a panel; 1 where it is not packed.
int64_t panelGroup(kernel::DotOp op);

bool isStrassen(kernel::DotOp op);
bool isSpread(kernel::ConvOp op);
/// Pixels at once along a dimension; nullopt for other algorithms.
std::optional<int64_t> winogradTile(kernel::ConvOp op);

} // namespace lathe::cpu

#endif
