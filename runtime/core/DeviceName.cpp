#include "runtime/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cctype>

namespace lathe::rt {

absl::StatusOr<DeviceName> DeviceName::parse(std::string_view text) {
  DeviceName name;
  auto bad = [&] { return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is not the name of a device")); };
  auto number = [](absl::string_view digits, std::optional<int64_t> &out) {
    if (digits == "*")
      return true;
    int64_t n;
    if (!absl::SimpleAtoi(digits, &n) || n < 0)
      return false;
    out = n;
    return true;
  };
  auto upper = [](absl::string_view s) {
    std::string t(s);
    std::transform(t.begin(), t.end(), t.begin(), [](unsigned char c) { return std::toupper(c); });
    return t;
  };
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), '/', absl::SkipEmpty())) {
    std::vector<absl::string_view> words = absl::StrSplit(part, ':');
    if (words[0] == "job" && words.size() == 2)
      name.job = std::string(words[1]);
    else if (words[0] == "replica" && words.size() == 2 && number(words[1], name.replica))
      continue;
    else if (words[0] == "task" && words.size() == 2 && number(words[1], name.task))
      continue;
    else if (words[0] == "device" && (words.size() == 2 || (words.size() == 3 && number(words[2], name.id)))) {
      if (words[1] != "*")
        name.type = upper(words[1]);
    } else if (std::string type = upper(words[0]); (type == "CPU" || type == "GPU") && (words.size() == 1 || (words.size() == 2 && number(words[1], name.id))))
      name.type = type;
    else
      return bad();
  }
  return name;
}

std::string DeviceName::text() const {
  std::string s;
  if (job)
    absl::StrAppend(&s, "/job:", *job);
  if (replica)
    absl::StrAppend(&s, "/replica:", *replica);
  if (task)
    absl::StrAppend(&s, "/task:", *task);
  if (type || id)
    absl::StrAppend(&s, "/device:", type.value_or("*"), ":", id ? absl::StrCat(*id) : "*");
  return s;
}

bool DeviceName::matches(const DeviceName &full) const {
  return (!job || job == full.job) && (!type || type == full.type) && (!replica || replica == full.replica) &&
         (!task || task == full.task) && (!id || id == full.id);
}

} // namespace lathe::rt
