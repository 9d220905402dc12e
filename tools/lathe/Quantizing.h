// What a quantization did, told on stderr.
#ifndef LATHE_TOOLS_LATHE_QUANTIZING_H
#define LATHE_TOOLS_LATHE_QUANTIZING_H

#include "compiler/quantize/Quantize.h"

namespace lathe::cli {

/// The table as text, and as JSON in the file `path` unless that is empty; false after an error, which was told.
bool tellQuantized(const quantize::Report &report, const std::string &path);

} // namespace lathe::cli

#endif
