#include "ops/Flags.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include <cassert>
#include <map>

namespace lathe::ops {
namespace {

constexpr std::string_view kTable =
#include "ops/Flags.def"
    ;

constexpr const char *kNames[] = {
    "Passes", "Gates", "Sizes", "Free", "Idle", "Placeholder", "Feedable", "OldUnknown", "Argument", "End", "PerRun", "Variable",
    "RefVariable", "Handle", "Temporary", "UsesVariable", "ReadsVariable", "AsksVariable", "Assigns", "Branch", "Loop", "Call", "Switch",
    "Merge", "Next", "Enter", "Exit", "Frames", "Effect", "Outside", "Texts", "Forgets", "EndsInput", "Blocks", "Releases", "Transfer"};
constexpr size_t kCount = std::size(kNames);
static_assert(kCount == static_cast<size_t>(Flag::Transfer) + 1 && kCount <= 64, "a name for each flag, a bit for each");

using Bits = std::map<std::string_view, uint64_t>;

std::string_view view(absl::string_view s) { return {s.data(), s.size()}; }

/// "Flag: Op Op ...;". The table is our own; a test finds what is wrong in it.
Bits readTable() {
  Bits bits;
  for (absl::string_view entry : absl::StrSplit(absl::string_view(kTable.data(), kTable.size()), ';')) {
    entry = absl::StripAsciiWhitespace(entry);
    const size_t colon = entry.find(':');
    if (colon == entry.npos)
      continue;
    uint64_t bit = 0;
    for (size_t i = 0; i < kCount; ++i)
      bit |= view(entry.substr(0, colon)) == kNames[i] ? uint64_t(1) << i : 0;
    assert(bit && "unknown flag");
    for (absl::string_view op : absl::StrSplit(entry.substr(colon + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty()))
      bits[view(op)] |= bit;
  }
  return bits;
}

const Bits &table() {
  static const Bits bits = readTable();
  return bits;
}

} // namespace

bool is(std::string_view op, Flag flag) {
  auto it = table().find(op);
  return it != table().end() && (it->second >> static_cast<int>(flag) & 1);
}

bool isBackEdge(std::string_view from, std::string_view to) { return is(from, Flag::Next) && is(to, Flag::Merge); }

std::vector<std::string_view> opsWith(Flag flag) {
  std::vector<std::string_view> ops;
  for (const auto &[op, bits] : table())
    if (bits >> static_cast<int>(flag) & 1)
      ops.push_back(op);
  return ops;
}

} // namespace lathe::ops
