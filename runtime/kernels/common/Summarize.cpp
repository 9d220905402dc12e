// The text of tensors in Print, Assert and StringFormat.
#include "runtime/kernels/Common.h"

#include "absl/strings/escaping.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lathe::rt {

namespace {

/// The fewest of two precisions that reads back as the same number.
std::string shortestFloat(float v) {
  if (std::isnan(v))
    return "nan";
  if (std::isinf(v))
    return v < 0 ? "-inf" : "inf";
  char text[40];
  snprintf(text, sizeof text, "%.6g", v);
  if (std::strtof(text, nullptr) != v)
    snprintf(text, sizeof text, "%.9g", v);
  return text;
}

std::string shortestDouble(double v) {
  if (std::isnan(v))
    return "nan";
  if (std::isinf(v))
    return v < 0 ? "-inf" : "inf";
  char text[40];
  snprintf(text, sizeof text, "%.15g", v);
  if (std::strtod(text, nullptr) != v)
    snprintf(text, sizeof text, "%.17g", v);
  return text;
}

std::string elementText(const Tensor &t, int64_t i, bool v2) {
  switch (t.dtype()) {
  case DType::String:
    return v2 ? absl::StrCat("\"", absl::Utf8SafeCEscape(t.strings()[i]), "\"") : absl::CEscape(t.strings()[i]);
  case DType::Float64:
    return shortestDouble(t.data<double>()[i]);
  case DType::Float32:
  case DType::Float16:
  case DType::BFloat16:
    return shortestFloat(static_cast<float>(realAt(t, i)));
  case DType::UInt64:
    return absl::StrCat(t.data<uint64_t>()[i]);
  case DType::Variant:
  case DType::Resource:
    return t.objects()[i] ? t.objects()[i]->describe() : "<empty>";
  default:
    return isInteger(t.dtype()) || t.dtype() == DType::Bool ? absl::StrCat(intAt(t, i)) : "?";
  }
}

void space(size_t dim, size_t rank, std::string &out) {
  if (dim + 1 == rank) {
    out += ' ';
    return;
  }
  out.append(rank - dim - 1, '\n');
  out.append(dim + 1, ' ');
}

void printEnds(const Tensor &t, int64_t ends, size_t dim, int64_t at, std::string &out) {
  size_t rank = t.rank();
  if (dim == rank) {
    out += elementText(t, at, true);
    return;
  }
  out += '[';
  int64_t count = t.dim(dim), stride = productOf(t.dims(), dim + 1, rank);
  for (int64_t i = 0; i < std::min(ends, count); ++i) {
    if (i > 0)
      space(dim, rank, out);
    printEnds(t, ends, dim + 1, at + i * stride, out);
  }
  if (count > ends && count - ends > ends) {
    space(dim, rank, out);
    out += "...";
  }
  for (int64_t i = std::max(ends, count - ends); i < count; ++i) {
    space(dim, rank, out);
    printEnds(t, ends, dim + 1, at + i * stride, out);
  }
  out += ']';
}

void printFirst(const Tensor &t, int64_t limit, size_t dim, int64_t &at, std::string &out) {
  if (at >= limit)
    return;
  int64_t count = t.dim(dim);
  if (dim + 1 == static_cast<size_t>(t.rank())) {
    for (int64_t i = 0; i < count; ++i) {
      if (at >= limit) {
        if (dim != 0)
          out += "...";
        return;
      }
      if (i > 0)
        out += ' ';
      out += elementText(t, at++, false);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    bool open = at < limit;
    if (open)
      out += '[';
    printFirst(t, limit, dim + 1, at, out);
    if (open)
      out += ']';
  }
}

} // namespace

std::string summarize(const Tensor &t, int64_t limit, bool v2) {
  std::string out;
  if (v2) {
    // of a tensor without elements no end is shown, and so no inner brackets
    int64_t ends = limit < 0 ? t.numElements() : std::min(limit, t.numElements());
    if (t.rank() == 0 && ends == 0)
      return "...";
    printEnds(t, ends, 0, 0, out);
    return out;
  }
  limit = limit < 0 ? t.numElements() : std::min(limit, t.numElements());
  int64_t at = 0;
  if (t.rank() == 0) {
    for (; at < limit; ++at)
      out += elementText(t, at, false);
  } else {
    printFirst(t, limit, 0, at, out);
  }
  if (t.numElements() > limit)
    out += "...";
  return out;
}

} // namespace lathe::rt
