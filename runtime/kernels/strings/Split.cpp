// StringSplit, StringSplitV2, StringNGrams.
#include "base/Memory.h"
#include "runtime/kernels/Common.h"

#include "absl/strings/ascii.h"

#include <algorithm>

namespace lathe::rt {
namespace {

using Pieces = std::vector<std::string_view>;

bool isSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

/// Cuts at each of the delimiter's bytes; an empty delimiter cuts everywhere.
void splitAtAny(std::string_view s, std::string_view delimiters, bool skipEmpty, Pieces &pieces) {
  if (s.empty())
    return;
  if (delimiters.empty()) {
    for (size_t i = 0; i < s.size(); ++i)
      pieces.push_back(s.substr(i, 1));
    return;
  }
  for (size_t at = 0;;) {
    size_t next = std::min(s.find_first_of(delimiters, at), s.size());
    if (next > at || !skipEmpty)
      pieces.push_back(s.substr(at, next - at));
    if (next == s.size())
      return;
    at = next + 1;
  }
}

void splitAtSpace(std::string_view s, int64_t most, Pieces &pieces) {
  auto skip = [&] {
    while (!s.empty() && isSpace(s[0]))
      s.remove_prefix(1);
  };
  skip();
  for (int64_t done = 0; !s.empty();) {
    size_t n = std::find_if(s.begin(), s.end(), isSpace) - s.begin();
    pieces.push_back(s.substr(0, n));
    s.remove_prefix(n);
    skip();
    if (most > 0 && ++done == most) {
      pieces.push_back(s);
      return;
    }
  }
}

/// As Python's str.split: an empty separator means runs of white space; at most `most` cuts when it is not negative.
void splitAtString(std::string_view s, std::string_view separator, int64_t most, Pieces &pieces) {
  if (most == 0) {
    pieces.push_back(s);
    return;
  }
  if (separator.empty())
    return splitAtSpace(s, most, pieces);
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    size_t next = s.find(separator);
    if (next == std::string_view::npos)
      break;
    pieces.push_back(s.substr(0, next));
    s.remove_prefix(next + separator.size());
  }
  pieces.push_back(s);
}

/// Sets the three parts of a sparse matrix of strings from each row's pieces.
template <typename Cut>
absl::Status split(KernelContext &context, Cut cut) {
  Tensor in = context.input(0);
  if (in.rank() != 1)
    return invalid("input must be a vector, got shape: ", dimsToString(in.dims()));
  Pieces all;
  std::vector<size_t> ends;
  size_t widest = 0, rows = in.strings().size();
  for (const std::string &s : in.strings()) {
    size_t before = all.size();
    cut(s, all);
    widest = std::max(widest, all.size() - before);
    ends.push_back(all.size());
  }
  int64_t count = static_cast<int64_t>(all.size());
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {count, 2}));
  LATHE_TRY_VALUE(values, context.allocateOutput(1, {count}));
  int64_t *index = indices.template data<int64_t>();
  for (size_t row = 0, i = 0; row < rows; ++row)
    for (size_t start = i; i < ends[row]; ++i) {
      *index++ = row;
      *index++ = i - start;
      values.mutableStrings()[i] = std::string(all[i]);
    }
  context.setOutput(2, int64Vector({static_cast<int64_t>(rows), static_cast<int64_t>(widest)}));
  return absl::OkStatus();
}

absl::Status stringSplit(KernelContext &context) {
  bool skipEmpty = *attrOf<bool>(*context.node, "skip_empty");
  Tensor delimiter = context.input(1);
  if (delimiter.rank() != 0)
    return invalid("delimiter must be a scalar, got shape: ", dimsToString(delimiter.dims()));
  return split(context,
               [&](std::string_view s, Pieces &all) { splitAtAny(s, delimiter.strings()[0], skipEmpty, all); });
}
LATHE_HOST_FUNCTION(StringSplit, stringSplit);

absl::Status stringSplitV2(KernelContext &context) {
  int64_t most = *attrOf<int64_t>(*context.node, "maxsplit");
  Tensor separator = context.input(1);
  if (separator.rank() != 0)
    return invalid("sep must be a scalar, got shape: ", dimsToString(separator.dims()));
  return split(context,
               [&](std::string_view s, Pieces &all) { splitAtString(s, separator.strings()[0], most, all); });
}
LATHE_HOST_FUNCTION(StringSplitV2, stringSplitV2);

class NGrams : public HostKernel {
public:
  explicit NGrams(KernelInit &init)
      : separator(init.attr<std::string>("separator")), left(init.attr<std::string>("left_pad")),
        right(init.attr<std::string>("right_pad")), widths(init.attr<std::vector<int64_t>>("ngram_widths")),
        padWidth(init.attr<int64_t>("pad_width")), keepShort(init.attr<bool>("preserve_short_sequences")) {
    for (int64_t width : widths)
      if (width < 1)
        init.fail(invalid("ngram_widths must be positive, found ", width));
  }

  absl::Status compute(KernelContext &context) override {
    Tensor data = context.input(0), splits = context.input(1);
    std::vector<int64_t> ends = intsOf(splits);
    int64_t total = data.numElements();
    if (!ends.empty()) {
      if (ends[0] != 0)
        return invalid("First split value must be 0, got ", ends[0]);
      for (size_t i = 1; i < ends.size(); ++i)
        if (ends[i] < ends[i - 1] || ends[i] > total)
          return invalid("Invalid split value ", ends[i], ", must be in [", ends[i - 1], ", ", total, "]");
      if (ends.back() != total)
        return invalid("Last split value must be data size. Expected ", total, ", got ", ends.back());
    }
    if (total == 0 || ends.empty()) {
      LATHE_TRY(context.allocateOutput(0, {0}).status());
      context.setOutput(1, indexVector(splits.dtype(), std::vector<int64_t>(ends.size(), 0)));
      return absl::OkStatus();
    }
    std::vector<std::string> grams;
    std::vector<int64_t> outEnds = {0};
    for (size_t row = 0; row + 1 < ends.size(); ++row) {
      LATHE_TRY(rowGrams(data.strings().data() + ends[row], ends[row + 1] - ends[row], grams));
      if (grams.size() > memoryBudget() / sizeof(std::string))
        return absl::ResourceExhaustedError("too many n-grams");
      outEnds.push_back(static_cast<int64_t>(grams.size()));
    }
    context.setOutput(0, Tensor::fromStrings({outEnds.back()}, std::move(grams)));
    context.setOutput(1, indexVector(splits.dtype(), outEnds));
    return absl::OkStatus();
  }

private:
  int64_t padOf(int64_t width) const { return std::min(padWidth < 0 ? width - 1 : padWidth, width - 1); }

  absl::Status rowGrams(const std::string *words, int64_t count, std::vector<std::string> &grams) const {
    size_t before = grams.size();
    for (int64_t width : widths)
      LATHE_TRY(runsOf(words, count, width, padOf(width), grams));
    // a row too short for any width still gives one gram of all it has, pads included
    if (keepShort && grams.size() == before && count > 0) {
      int64_t pad = std::clamp<int64_t>(padWidth, 0, kMostWords);
      return runsOf(words, count, count + 2 * pad, pad, grams);
    }
    return absl::OkStatus();
  }

  /// All runs of `width` words among the words with `pad` pads on each side.
  absl::Status runsOf(const std::string *words, int64_t count, int64_t width, int64_t pad,
                      std::vector<std::string> &grams) const {
    if (pad > kMostWords || width > kMostWords || std::max<int64_t>(count + 2 * pad - width + 1, 0) * width > kMostWords)
      return absl::ResourceExhaustedError(absl::StrCat("n-grams of ", width, " words with ", pad, " pads on each side"));
    for (int64_t start = 0; start + width <= count + 2 * pad; ++start) {
      std::string gram;
      for (int64_t i = start; i < start + width; ++i) {
        if (i > start)
          gram += separator;
        gram += i < pad ? left : i < pad + count ? words[i - pad] : right;
      }
      grams.push_back(std::move(gram));
    }
    return absl::OkStatus();
  }

  static constexpr int64_t kMostWords = 1 << 26; ///< in the n-grams of a row
  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t padWidth;
  bool keepShort;
};
LATHE_HOST_KERNEL(StringNGrams, NGrams);

} // namespace
} // namespace lathe::rt
