// Why operations that the registry knows run nowhere: no compiled form and no host kernel. Absent.def has "reason: Op Op ...;".
#ifndef LATHE_OPS_ABSENT_H
#define LATHE_OPS_ABSENT_H

#include <string>
#include <string_view>
#include <vector>

namespace lathe::ops {

/// "it is about TPUs", for messages; empty for an op that runs, or that nobody knows.
std::string_view whyAbsent(std::string_view op);

/// "no host kernel", with the reason where there is one.
std::string noHostKernel(std::string_view op);

/// The ops with a reason, in order.
std::vector<std::string_view> absentOps();

} // namespace lathe::ops

#endif
