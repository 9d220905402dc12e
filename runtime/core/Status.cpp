#include "runtime/core/Status.h"

#include "absl/strings/cord.h"

namespace lathe::rt {

// the name, a zero byte, the op
static constexpr const char *kPayload = "lathe/node";

void setStatusNode(absl::Status &status, std::string_view name, std::string_view op) {
  if (status.ok() || status.GetPayload(kPayload))
    return;
  std::string text(name);
  text.push_back('\0');
  text.append(op);
  status.SetPayload(kPayload, absl::Cord(text));
}

StatusNode statusNode(const absl::Status &status) {
  auto payload = status.GetPayload(kPayload);
  if (!payload)
    return {};
  std::string text(*payload);
  size_t end = text.find('\0');
  return {text.substr(0, end), text.substr(end + 1)};
}

} // namespace lathe::rt
