// NonMaxSuppressionV5 and NonMaxSuppressionWithOverlaps: a box that overlaps chosen ones loses score, or is dropped.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/image/Boxes.h"

#include <cmath>
#include <queue>

namespace lathe::rt {
namespace {

template <typename T>
struct Candidate {
  int64_t box;
  T score;
  /// How many of the chosen boxes have lowered the score already.
  size_t compared;
};

/// The best first; of equals the first box.
template <typename T>
struct Later {
  bool operator()(const Candidate<T> &a, const Candidate<T> &b) const {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

template <typename T>
struct Choice {
  std::vector<int64_t> boxes;
  std::vector<T> scores;
};

/// `similarity(i, j)` compares box i with chosen box j. With a sigma of 0, boxes more similar than `threshold` are dropped.
template <typename T, typename Similarity>
Choice<T> choose(const T *scores, int64_t count, int64_t most, T threshold, T leastScore, T sigma, Similarity similarity) {
  std::priority_queue<Candidate<T>, std::vector<Candidate<T>>, Later<T>> queue;
  for (int64_t i = 0; i < count; ++i)
    if (scores[i] > leastScore)
      queue.push({i, scores[i], 0});
  const bool soft = sigma > T(0.0f);
  const T scale = soft ? T(-0.5f / sigma) : T(0.0f);
  Choice<T> chosen;
  while (static_cast<int64_t>(chosen.boxes.size()) < most && !queue.empty()) {
    Candidate<T> next = queue.top();
    queue.pop();
    const T before = next.score;
    bool dropped = false;
    for (size_t j = chosen.boxes.size(); j > next.compared && !dropped; --j) {
      // each step rounds to the scores' type
      const T s(similarity(next.box, chosen.boxes[j - 1]));
      const T weight(std::exp(T(T(scale * s) * s)));
      next.score = T(next.score * (soft || s <= threshold ? weight : T(0.0f)));
      dropped = !soft && s > threshold;
      if (next.score <= leastScore)
        break;
    }
    next.compared = chosen.boxes.size();
    if (dropped)
      continue;
    if (next.score == before) {
      chosen.boxes.push_back(next.box);
      chosen.scores.push_back(next.score);
    } else if (next.score > leastScore) {
      queue.push(next);
    }
  }
  return chosen;
}

absl::Status checkScalars(KernelContext &context, int from, int to) {
  for (int i = from; i < to; ++i)
    if (context.input(i).rank() != 0)
      return invalid("input ", i, " must be a scalar, found shape ", dimsToString(context.input(i).dims()));
  return absl::OkStatus();
}

absl::Status checkScores(const Tensor &scores, int64_t boxes) {
  if (scores.rank() != 1 || scores.dim(0) != boxes)
    return invalid("scores must be 1-D with ", boxes, " elements, found shape ", dimsToString(scores.dims()));
  return absl::OkStatus();
}

template <typename T>
absl::Status softNmsAs(KernelContext &context) {
  Tensor boxes = context.input(0), scores = context.input(1);
  for (int i : {1, 3, 4, 5})
    if (context.input(i).dtype() != boxes.dtype())
      return invalid("boxes, scores and thresholds must be of one type");
  auto number = [&](int i) { return context.input(i).template data<T>()[0]; };
  const T threshold = number(3), leastScore = number(4), sigma = number(5);
  if (!(threshold >= T(0.0f) && threshold <= T(1.0f)))
    return invalid("iou_threshold must be in [0, 1]");
  if (!(sigma >= T(0.0f)))
    return invalid("soft_nms_sigma must be >= 0");
  LATHE_TRY_VALUE(most, oneInt(context.input(2), "max_output_size"));
  if (most < 0)
    return invalid("output size must be non-negative");
  auto box = [data = boxes.data<T>()](int64_t i) {
    const T *c = data + i * 4;
    return Box{static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]), static_cast<float>(c[3])};
  };
  auto chosen = choose<T>(scores.data<T>(), scores.dim(0), most, threshold, leastScore, sigma,
                          [&](int64_t i, int64_t j) { return overlap(box(i), box(j)); });
  const bool *pad = attrOf<bool>(*context.node, "pad_to_max_output_size");
  const int64_t valid = static_cast<int64_t>(chosen.boxes.size()), size = pad && *pad ? most : valid;
  LATHE_TRY_VALUE(outBoxes, context.allocateOutput(0, {size}));
  LATHE_TRY_VALUE(outScores, context.allocateOutput(1, {size}));
  LATHE_TRY_VALUE(outCount, context.allocateOutput(2, {}));
  std::fill_n(outBoxes.template data<int32_t>(), size, 0);
  std::fill_n(outScores.template data<T>(), size, T(0.0f));
  std::copy(chosen.boxes.begin(), chosen.boxes.end(), outBoxes.template data<int32_t>());
  std::copy(chosen.scores.begin(), chosen.scores.end(), outScores.template data<T>());
  outCount.template data<int32_t>()[0] = static_cast<int32_t>(valid);
  return absl::OkStatus();
}

absl::Status softNms(KernelContext &context) {
  Tensor boxes = context.input(0);
  if (boxes.rank() != 2 || boxes.dim(1) != 4)
    return invalid("boxes must be 2-D with 4 columns, found shape ", dimsToString(boxes.dims()));
  LATHE_TRY(checkScores(context.input(1), boxes.dim(0)));
  LATHE_TRY(checkScalars(context, 2, 6));
  if (boxes.dtype() == DType::Float32)
    return softNmsAs<float>(context);
  if (boxes.dtype() == DType::Float16)
    return softNmsAs<Half>(context);
  return absl::UnimplementedError(absl::StrCat("no form for boxes of type ", dtypeName(boxes.dtype())));
}
LATHE_HOST_FUNCTION(NonMaxSuppressionV5, softNms);

absl::Status nmsWithOverlaps(KernelContext &context) {
  Tensor overlaps = context.input(0), scores = context.input(1);
  if (overlaps.rank() != 2 || overlaps.dim(0) != overlaps.dim(1))
    return invalid("overlaps must be square, found shape ", dimsToString(overlaps.dims()));
  const int64_t count = overlaps.dim(0);
  LATHE_TRY(checkScores(scores, count));
  LATHE_TRY(checkScalars(context, 2, 5));
  LATHE_TRY_VALUE(most, oneInt(context.input(2), "max_output_size"));
  if (most < 0)
    return invalid("output size must be non-negative");
  for (int i : {0, 1, 3, 4})
    if (context.input(i).dtype() != DType::Float32)
      return invalid("overlaps, scores and thresholds must be float32");
  const float *data = overlaps.data<float>();
  auto chosen = choose<float>(scores.data<float>(), count, most, context.input(3).data<float>()[0], context.input(4).data<float>()[0], 0,
                              [&](int64_t i, int64_t j) { return data[i * count + j]; });
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {static_cast<int64_t>(chosen.boxes.size())}));
  std::copy(chosen.boxes.begin(), chosen.boxes.end(), out.data<int32_t>());
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(NonMaxSuppressionWithOverlaps, nmsWithOverlaps);

} // namespace
} // namespace lathe::rt
