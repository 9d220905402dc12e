// What the ops of summaries and the writers of event files share: one value of a Summary message, by kind. A Summary is
// nothing but its values, so messages are joined by joining their bytes.
#ifndef LATHE_RUNTIME_KERNELS_SUMMARY_SUMMARY_H
#define LATHE_RUNTIME_KERNELS_SUMMARY_SUMMARY_H

#include "runtime/kernels/Common.h"
#include "runtime/kernels/Wire.h"

namespace lathe::rt::summary {

/// A Summary of one number.
std::string scalar(std::string_view tag, float value);
/// A Summary with the histogram of all elements of a real tensor. INVALID_ARGUMENT for NaN and infinities.
absl::StatusOr<std::string> histogram(std::string_view tag, const Tensor &values);
/// A Summary of a tensor as it is; `metadata` is a SummaryMetadata, left out where it is empty and not `kept`. INVALID_ARGUMENT where it
/// is none.
absl::StatusOr<std::string> tensor(std::string_view tag, const Tensor &value, std::string_view metadata, bool kept);
/// The first images of [batch, height, width, channels] as PNG; pixels that are not finite get the bad color.
absl::StatusOr<std::string> images(std::string_view tag, const Tensor &value, const Tensor &badColor, int64_t most);
/// The first sounds of [batch, frames] or [batch, frames, channels], between -1 and 1, as WAV of 16 bits.
absl::StatusOr<std::string> sounds(std::string_view tag, const Tensor &value, float rate, int64_t most);

/// Fields that are left out when they are 0, and those that are always there.
void writeDouble(std::string &out, uint32_t field, double value);
void writeFloat(std::string &out, uint32_t field, float value);
/// Whether bytes are fields of a message, without looking into them.
bool isMessage(std::string_view bytes);
/// A Summary of one value.
std::string ofValue(std::string_view value);

constexpr uint32_t kTag = 1, kNumber = 2, kImage = 4, kHistogram = 5, kAudio = 6, kNodeName = 7, kTensor = 8, kMetadata = 9;

} // namespace lathe::rt::summary

#endif
