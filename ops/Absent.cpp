#include "ops/Absent.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include <map>
#include <string>

namespace lathe::ops {
namespace {

constexpr std::string_view kTable =
#include "ops/Absent.def"
    ;

std::string_view view(absl::string_view s) { return {s.data(), s.size()}; }

const std::map<std::string_view, std::string_view> &table() {
  static const std::map<std::string_view, std::string_view> reasons = [] {
    std::map<std::string_view, std::string_view> made;
    for (absl::string_view entry : absl::StrSplit(absl::string_view(kTable.data(), kTable.size()), ';')) {
      entry = absl::StripAsciiWhitespace(entry);
      const size_t colon = entry.find(": ");
      if (colon == entry.npos)
        continue;
      for (absl::string_view op : absl::StrSplit(entry.substr(colon + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty()))
        made[view(op)] = view(entry.substr(0, colon));
    }
    return made;
  }();
  return reasons;
}

} // namespace

std::string_view whyAbsent(std::string_view op) {
  auto it = table().find(op);
  return it == table().end() ? std::string_view() : it->second;
}

std::string noHostKernel(std::string_view op) {
  const std::string_view why = whyAbsent(op);
  return "no host kernel" + (why.empty() ? std::string() : ": " + std::string(why));
}

std::vector<std::string_view> absentOps() {
  std::vector<std::string_view> names;
  for (auto &[op, reason] : table())
    names.push_back(op);
  return names;
}

} // namespace lathe::ops
