// LevelDB's table format: the index file of a checkpoint.
#ifndef LATHE_BASE_SORTEDTABLE_H
#define LATHE_BASE_SORTEDTABLE_H

#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

using TableEntries = std::vector<std::pair<std::string, std::string>>;

/// Every key and value in order; block CRCs are checked, and the uncompressed blocks together bounded.
absl::StatusOr<TableEntries> parseSortedTable(std::string_view file, int64_t maxBytes);

/// The file of these entries, sorted by key, without compression.
std::string writeSortedTable(const TableEntries &entries);

} // namespace lathe

#endif
