// StringLower, StringUpper, StringStrip, StringLength, Substr.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/strings/Utf8.h"

#include "absl/strings/ascii.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>

namespace lathe::rt {
namespace {

/// Applies fn to each string of the input.
template <typename Fn>
absl::Status each(KernelContext &context, Fn fn) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i)
    out.mutableStrings()[i] = fn(in.strings()[i]);
  return absl::OkStatus();
}

template <bool upper>
absl::Status changeCase(KernelContext &context) {
  const std::string &encoding = *attrOf<std::string>(*context.node, "encoding");
  if (encoding.empty())
    return each(context, [](const std::string &s) { return upper ? absl::AsciiStrToUpper(s) : absl::AsciiStrToLower(s); });
  if (encoding != "utf-8")
    return invalid("only utf-8 or '' (no encoding) is supported for encoding, found: '", encoding, "'");
  return each(context, [](const std::string &s) {
    icu::UnicodeString text = icu::UnicodeString::fromUTF8(s.c_str()); // up to the first zero, as in TensorFlow
    upper ? text.toUpper(icu::Locale::getRoot()) : text.toLower(icu::Locale::getRoot());
    std::string out;
    text.toUTF8String(out);
    return out;
  });
}
LATHE_HOST_FUNCTION(StringLower, changeCase<false>);
LATHE_HOST_FUNCTION(StringUpper, changeCase<true>);

absl::Status strip(KernelContext &context) {
  return each(context, [](const std::string &s) { return std::string(absl::StripAsciiWhitespace(s)); });
}
LATHE_HOST_FUNCTION(StringStrip, strip);

absl::StatusOr<bool> countsCharacters(const NodeInfo &node) {
  const std::string &unit = *attrOf<std::string>(node, "unit");
  if (unit != "BYTE" && unit != "UTF8_CHAR")
    return invalid("unit must be BYTE or UTF8_CHAR, found '", unit, "'");
  return unit == "UTF8_CHAR";
}

absl::Status length(KernelContext &context) {
  LATHE_TRY_VALUE(characters, countsCharacters(*context.node));
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i) {
    const std::string &s = in.strings()[i];
    out.data<int32_t>()[i] = static_cast<int32_t>(characters ? utf8Length(s) : s.size());
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(StringLength, length);

/// The start of the piece, and where it ends; false when `pos` is outside of the string. Negative positions count from the end.
bool pieceOf(const std::string &s, int64_t pos, int64_t len, bool characters, size_t &begin, size_t &end) {
  int64_t n = static_cast<int64_t>(characters ? utf8Length(s) : s.size());
  if (pos < -n || pos > n)
    return false;
  int64_t first = pos < 0 ? pos + n : pos;
  // a negative length reaches to the end when bytes are counted, and nowhere when characters are
  if (len < 0)
    len = characters ? 0 : n;
  int64_t last = first + std::min(len, n - first);
  if (characters) {
    begin = utf8Position(s, first);
    end = utf8Position(s, last);
  } else {
    begin = first;
    end = last;
  }
  return true;
}

/// The shape that two shapes broadcast to.
absl::StatusOr<std::vector<int64_t>> broadcastDims(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank], y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      return invalid("incompatible shapes for broadcasting: ", dimsToString(a), " and ", dimsToString(b));
    dims[i] = x == 1 ? y : x;
  }
  return dims;
}

/// Flat position in a tensor of `dims` that broadcasts to `full`, of the element at `at`.
int64_t broadcastIndex(const std::vector<int64_t> &dims, const std::vector<int64_t> &full, int64_t at) {
  int64_t index = 0, stride = 1;
  for (size_t i = full.size(), j = dims.size(); i-- > 0 && j-- > 0;) {
    int64_t coordinate = at % full[i];
    at /= full[i];
    if (dims[j] != 1)
      index += coordinate * stride;
    stride *= dims[j];
  }
  return index;
}

absl::Status substr(KernelContext &context) {
  LATHE_TRY_VALUE(characters, countsCharacters(*context.node));
  Tensor in = context.input(0), pos = context.input(1), len = context.input(2);
  if (pos.dims() != len.dims())
    return invalid("pos and len should have the same shape, got: ", dimsToString(pos.dims()), " vs. ",
                   dimsToString(len.dims()));
  LATHE_TRY_VALUE(dims, broadcastDims(in.dims(), pos.dims()));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < out.numElements(); ++i) {
    const std::string &s = in.strings()[broadcastIndex(in.dims(), dims, i)];
    int64_t at = broadcastIndex(pos.dims(), dims, i);
    size_t begin, end;
    if (!pieceOf(s, intAt(pos, at), intAt(len, at), characters, begin, end))
      return invalid("pos ", intAt(pos, at), " out of range for string at index ", i);
    out.mutableStrings()[i] = s.substr(begin, end - begin);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Substr, substr);

} // namespace
} // namespace lathe::rt
