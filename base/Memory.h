// How much memory tensors of this process may hold together.
#ifndef LATHE_BASE_MEMORY_H
#define LATHE_BASE_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace lathe {

/// What the environment's LATHE_MAX_MEMORY says, in bytes; else nine tenths of the machine's memory, or of the control group's where that
/// is less, at least 4 GB.
int64_t defaultMemoryBudget();

/// What tensors may hold together; defaultMemoryBudget() until it is set. Beyond it allocation fails as if memory had ended:
/// Linux gives out more than there is and ends the process when it is touched.
int64_t memoryBudget();
void setMemoryBudget(int64_t bytes);

/// What they hold now. Buffers below a page are not counted: they would cost more to count than they are.
int64_t memoryInUse();

/// Counts a buffer; false, and nothing is counted, where it passes the budget.
bool takeMemory(size_t bytes);
void giveMemoryBack(size_t bytes);

} // namespace lathe

#endif
