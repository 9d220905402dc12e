// The part of the zip format that npz files use: stored and deflated entries, zip64 sizes.
#ifndef LATHE_BASE_ZIP_H
#define LATHE_BASE_ZIP_H

#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

using ZipEntries = std::vector<std::pair<std::string, std::string>>;

/// Names and contents in the order of the directory. Checks CRCs; the contents together may not exceed maxBytes.
absl::StatusOr<ZipEntries> parseZip(std::string_view bytes, int64_t maxBytes);

/// A zip of stored entries without times, so equal entries give equal bytes.
std::string zipBytes(const ZipEntries &entries);

} // namespace lathe

#endif
