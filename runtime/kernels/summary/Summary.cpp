// ScalarSummary, HistogramSummary, TensorSummary, TensorSummaryV2 and MergeSummary: Summary messages as strings.
#include "runtime/kernels/summary/Summary.h"

#include "base/ProtoWire.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <set>

namespace lathe::rt {
namespace summary {

void writeDouble(std::string &out, uint32_t field, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (!bits)
    return;
  appendVarint(out, field << 3 | 1);
  appendLittle(out, bits, 8);
}

void writeFloat(std::string &out, uint32_t field, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  appendProtoFixed32(out, static_cast<int>(field), bits);
}

bool isMessage(std::string_view bytes) {
  WireReader reader(bytes);
  while (reader.next()) {
  }
  return !reader.failed();
}

std::string ofValue(std::string_view value) {
  std::string out;
  writeBytesField(out, 1, value);
  return out;
}

std::string scalar(std::string_view tag, float value) {
  std::string out;
  if (!tag.empty())
    writeBytesField(out, kTag, tag);
  writeFloat(out, kNumber, value);
  return ofValue(out);
}

namespace {

/// Upper ends of the buckets: growing by a tenth from 1e-12 to 1e20, in both directions, and 0.
const std::vector<double> &bucketLimits() {
  static const std::vector<double> limits = [] {
    std::vector<double> above, all;
    for (double v = 1e-12; v < 1e20; v *= 1.1)
      above.push_back(v);
    above.push_back(DBL_MAX);
    for (size_t i = above.size(); i--;)
      all.push_back(-above[i]);
    all.push_back(0);
    all.insert(all.end(), above.begin(), above.end());
    return all;
  }();
  return limits;
}

/// A HistogramProto; a run of empty buckets is written as the last of them.
std::string histogramMessage(const Tensor &values) {
  const std::vector<double> &limits = bucketLimits();
  std::vector<double> counts(limits.size());
  double low = DBL_MAX, high = -DBL_MAX, sum = 0, squares = 0;
  int64_t n = values.numElements();
  for (int64_t i = 0; i < n; ++i) {
    double v = realAt(values, i);
    size_t at = std::upper_bound(limits.begin(), limits.end(), v) - limits.begin();
    counts[std::min(at, limits.size() - 1)] += 1;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    squares += v * v;
  }
  std::string ends, numbers, out;
  auto put = [](std::string &to, double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    appendLittle(to, bits, 8);
  };
  for (size_t i = 0; i < limits.size(); ++i) {
    while (counts[i] <= 0 && i + 1 < limits.size() && counts[i + 1] <= 0)
      ++i;
    put(ends, limits[i]);
    put(numbers, counts[i]);
  }
  writeDouble(out, 1, low);
  writeDouble(out, 2, high);
  writeDouble(out, 3, static_cast<double>(n));
  writeDouble(out, 4, sum);
  writeDouble(out, 5, squares);
  writeBytesField(out, 6, ends);
  writeBytesField(out, 7, numbers);
  return out;
}

} // namespace

absl::StatusOr<std::string> histogram(std::string_view tag, const Tensor &values) {
  for (int64_t i = 0; i < values.numElements(); ++i) {
    double v = realAt(values, i);
    if (std::isnan(v))
      return invalid("Nan in summary histogram for: ", av(tag));
    if (std::isinf(v))
      return invalid("Infinity in summary histogram for: ", av(tag));
  }
  std::string out;
  if (!tag.empty())
    writeBytesField(out, kTag, tag);
  writeBytesField(out, kHistogram, histogramMessage(values));
  return ofValue(out);
}

absl::StatusOr<std::string> tensor(std::string_view tag, const Tensor &value, std::string_view metadata, bool kept) {
  if (!isMessage(metadata))
    return invalid("the summary metadata of '", av(tag), "' is no message");
  LATHE_TRY_VALUE(bytes, writeTensor(value, false));
  std::string out;
  if (!tag.empty())
    writeBytesField(out, kTag, tag);
  writeBytesField(out, kTensor, bytes);
  if (kept || !metadata.empty())
    writeBytesField(out, kMetadata, metadata);
  return ofValue(out);
}

namespace {

void give(KernelContext &context, std::string bytes) { context.setOutput(0, Tensor::fromStrings({}, {std::move(bytes)})); }

absl::Status scalarSummary(KernelContext &context) {
  Tensor tags = context.input(0), values = context.input(1);
  if (tags.dims() != values.dims())
    return invalid("tags and values are not the same shape: ", dimsToString(tags.dims()), " != ", dimsToString(values.dims()),
                   tags.numElements() ? absl::StrCat(" (tag '", tags.strings()[0], "')") : "");
  std::string out;
  for (int64_t i = 0; i < tags.numElements(); ++i)
    out += scalar(tags.strings()[i], static_cast<float>(realAt(values, i)));
  give(context, std::move(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(ScalarSummary, scalarSummary);

absl::Status histogramSummary(KernelContext &context) {
  LATHE_TRY_VALUE(tag, oneString(context.input(0), "tags"));
  LATHE_TRY_VALUE(out, histogram(tag, context.input(1)));
  give(context, std::move(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(HistogramSummary, histogramSummary);

absl::Status tensorSummary(KernelContext &context) {
  LATHE_TRY_VALUE(bytes, writeTensor(context.input(0), false));
  std::string out;
  writeBytesField(out, kNodeName, context.node->name);
  writeBytesField(out, kTensor, bytes);
  give(context, ofValue(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(TensorSummary, tensorSummary);

absl::Status tensorSummaryV2(KernelContext &context) {
  LATHE_TRY_VALUE(tag, oneString(context.input(0), "tag"));
  LATHE_TRY_VALUE(metadata, oneString(context.input(2), "serialized_summary_metadata"));
  LATHE_TRY_VALUE(out, tensor(tag, context.input(1), metadata, true));
  give(context, std::move(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(TensorSummaryV2, tensorSummaryV2);

/// The tag of a Summary's value; tags of tensors from TensorSummary are empty.
absl::StatusOr<std::string> tagOf(std::string_view value) {
  WireReader reader(value);
  std::string tag;
  while (reader.next())
    if (reader.field() == kTag && reader.wireType() == 2)
      tag = std::string(reader.bytes());
  if (reader.failed())
    return invalid("Could not parse one of the summary inputs");
  return tag;
}

absl::Status mergeSummary(KernelContext &context) {
  std::string out;
  std::set<std::string> tags;
  for (const Tensor &input : context.inputList("inputs"))
    for (const std::string &bytes : input.strings()) {
      WireReader reader(bytes);
      while (reader.next()) {
        if (reader.field() != 1 || reader.wireType() != 2)
          continue;
        LATHE_TRY_VALUE(tag, tagOf(reader.bytes()));
        // values without tags, such as TensorSummary's, may be many
        if (!tag.empty() && !tags.insert(tag).second)
          return invalid("Duplicate tag ", tag, " found in summary inputs");
        writeBytesField(out, 1, reader.bytes());
      }
      if (reader.failed())
        return invalid("Could not parse one of the summary inputs");
    }
  give(context, std::move(out));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(MergeSummary, mergeSummary);

} // namespace
} // namespace summary
} // namespace lathe::rt
