// What shape functions are made of.
#include "ops/Shapes.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

absl::Status differ(const PartialShape &a, const PartialShape &b) {
  return absl::InvalidArgumentError(absl::StrCat("shapes ", shapeToString(a), " and ", shapeToString(b), " differ"));
}

} // namespace

std::string shapeToString(const PartialShape &shape) {
  if (!shape)
    return "unknown";
  std::string out = "[";
  for (size_t i = 0; i < shape->size(); ++i)
    absl::StrAppend(&out, i ? "," : "", (*shape)[i] < 0 ? std::string("?") : absl::StrCat((*shape)[i]));
  return out + "]";
}

std::optional<int64_t> mergeSizes(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0 && a != b)
    return std::nullopt;
  return std::max(a, b);
}

absl::StatusOr<PartialShape> mergeShapes(const PartialShape &a, const PartialShape &b) {
  if (!a || !b)
    return a ? a : b;
  if (a->size() != b->size())
    return differ(a, b);
  std::vector<int64_t> out(a->size());
  for (size_t i = 0; i < out.size(); ++i) {
    std::optional<int64_t> size = mergeSizes((*a)[i], (*b)[i]);
    if (!size)
      return differ(a, b);
    out[i] = *size;
  }
  return PartialShape(out);
}

absl::StatusOr<PartialShape> broadcastShapes(const PartialShape &a, const PartialShape &b) {
  if (!a || !b)
    return PartialShape();
  const size_t rank = std::max(a->size(), b->size());
  std::vector<int64_t> out(rank);
  for (size_t i = 0; i < rank; ++i) {
    auto sizeOf = [&](const std::vector<int64_t> &s) { return i < rank - s.size() ? 1 : s[i - (rank - s.size())]; };
    int64_t x = sizeOf(*a), y = sizeOf(*b);
    if (x == 1 || y == 1)
      out[i] = x == 1 ? y : x;
    else if (x < 0 || y < 0)
      out[i] = std::max(x, y); // the unknown one is 1 or the same
    else if (x == y)
      out[i] = x;
    else
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", shapeToString(a), " and ", shapeToString(b), " cannot be broadcast together"));
  }
  return PartialShape(out);
}

absl::Status expectRank(const PartialShape &shape, int64_t rank, std::string_view what) {
  if (!shape || static_cast<int64_t>(shape->size()) == rank)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(what), " has shape ", shapeToString(shape), ", expected rank ", rank));
}

absl::Status expectRankAtLeast(const PartialShape &shape, int64_t rank, std::string_view what) {
  if (!shape || static_cast<int64_t>(shape->size()) >= rank)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(what), " has shape ", shapeToString(shape), ", expected a rank of at least ", rank));
}

PartialShape unknownOfRank(int64_t rank) { return std::vector<int64_t>(static_cast<size_t>(rank), -1); }

int64_t numElements(const PartialShape &shape) {
  int64_t count = shape ? 1 : -1;
  for (size_t i = 0; count >= 0 && i < shape->size(); ++i)
    if ((*shape)[i] < 0 || __builtin_mul_overflow(count, (*shape)[i], &count))
      count = -1;
  return count;
}

PartialShape shapeOfValues(const std::optional<PartialValues> &values) {
  if (!values)
    return std::nullopt;
  std::vector<int64_t> out;
  for (const std::optional<int64_t> &value : *values)
    out.push_back(value && *value >= 0 ? *value : -1);
  return out;
}

} // namespace lathe::ops
