// The node that a status is about, beside its message: programs ask for it, people read the message.
#ifndef LATHE_RUNTIME_CORE_STATUS_H
#define LATHE_RUNTIME_CORE_STATUS_H

#include "absl/status/status.h"

#include <string>
#include <string_view>

namespace lathe::rt {

struct StatusNode {
  std::string name, op; ///< "" where the status is about no node
};

/// Notes the node; a status that is fine, or names one already, stays as it is.
void setStatusNode(absl::Status &status, std::string_view name, std::string_view op);
StatusNode statusNode(const absl::Status &status);

} // namespace lathe::rt

#endif
