// A bound on the memory of tensors while it lives.
#ifndef LATHE_TEST_RUNTIME_BUDGET_H
#define LATHE_TEST_RUNTIME_BUDGET_H

#include "base/Memory.h"

namespace lathe {

/// Memory that tensors may take beyond what they hold now.
class Budget {
public:
  explicit Budget(int64_t more) : before(memoryBudget()) { setMemoryBudget(memoryInUse() + more); }
  ~Budget() { setMemoryBudget(before); }

private:
  int64_t before;
};

} // namespace lathe

#endif
