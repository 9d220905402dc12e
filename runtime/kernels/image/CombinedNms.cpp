// CombinedNonMaxSuppression: suppression class by class, then the best of all classes.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/image/Boxes.h"

namespace lathe::rt {
namespace {

struct Detection {
  float score;
  int64_t type, box;
  Box corners;
};

absl::Status combinedNms(KernelContext &context) {
  Tensor boxes = context.input(0), scores = context.input(1);
  if (boxes.rank() != 4 || boxes.dim(3) != 4)
    return invalid("boxes must be 4-D with 4 columns, found ", dimsToString(boxes.dims()));
  if (scores.rank() != 3 || scores.dim(0) != boxes.dim(0) || scores.dim(1) != boxes.dim(1))
    return invalid("scores must be 3-D and have as many batches and boxes as boxes, found ", dimsToString(scores.dims()));
  int64_t batches = boxes.dim(0), number = boxes.dim(1), q = boxes.dim(2), classes = scores.dim(2);
  if (q != 1 && q != classes)
    return invalid("third dimension of boxes must be either 1 or num classes");
  LATHE_TRY_VALUE(perClass, oneInt(context.input(2), "max_output_size_per_class"));
  LATHE_TRY_VALUE(total, oneInt(context.input(3), "max_total_size"));
  if (perClass <= 0)
    return invalid("max_size_per_class must be positive");
  if (total <= 0)
    return invalid("max_total_size must be > 0");
  if (context.input(4).numElements() != 1 || context.input(5).numElements() != 1)
    return invalid("iou_threshold and score_threshold must be 0-D");
  float iou = static_cast<float>(realAt(context.input(4), 0)), threshold = static_cast<float>(realAt(context.input(5), 0));
  if (!(iou >= 0 && iou <= 1))
    return invalid("iou_threshold must be in [0, 1]");
  const bool *padFlag = attrOf<bool>(*context.node, "pad_per_class"), *clipFlag = attrOf<bool>(*context.node, "clip_boxes");
  bool padPerClass = padFlag && *padFlag, clip = !clipFlag || *clipFlag;
  int64_t most = padPerClass && classes > 0 && perClass < total / classes + 1 ? std::min(total, perClass * classes) : total;

  LATHE_TRY_VALUE(outBoxes, context.allocateOutput(0, {batches, most, 4}));
  LATHE_TRY_VALUE(outScores, context.allocateOutput(1, {batches, most}));
  LATHE_TRY_VALUE(outClasses, context.allocateOutput(2, {batches, most}));
  LATHE_TRY_VALUE(outCount, context.allocateOutput(3, {batches}));
  for (int64_t b = 0; b < batches; ++b) {
    std::vector<Detection> kept;
    for (int64_t k = 0; k < classes; ++k) {
      std::vector<Detection> candidates;
      for (int64_t i = 0; i < number; ++i) {
        float score = scores.data<float>()[(b * number + i) * classes + k];
        if (!(score > threshold))
          continue;
        const float *c = boxes.data<float>() + ((b * number + i) * q + (q == 1 ? 0 : k)) * 4;
        candidates.push_back({score, k, i, {c[0], c[1], c[2], c[3]}});
      }
      std::stable_sort(candidates.begin(), candidates.end(),
                       [](const Detection &x, const Detection &y) { return x.score > y.score; });
      size_t first = kept.size();
      for (const Detection &d : candidates) {
        if (static_cast<int64_t>(kept.size() - first) >= perClass)
          break;
        if (std::none_of(kept.begin() + first, kept.end(),
                         [&](const Detection &other) { return overlap(d.corners, other.corners) > iou; }))
          kept.push_back(d);
      }
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Detection &x, const Detection &y) { return x.score > y.score; });
    int64_t count = std::min<int64_t>(kept.size(), most);
    outCount.data<int32_t>()[b] = static_cast<int32_t>(count);
    for (int64_t i = 0; i < count; ++i) {
      const Detection &d = kept[i];
      auto edge = [&](float v) { return clip ? std::max(std::min(v, 1.0f), 0.0f) : v; };
      float *to = outBoxes.data<float>() + (b * most + i) * 4;
      to[0] = edge(d.corners.y1), to[1] = edge(d.corners.x1), to[2] = edge(d.corners.y2), to[3] = edge(d.corners.x2);
      outScores.data<float>()[b * most + i] = d.score;
      outClasses.data<float>()[b * most + i] = static_cast<float>(d.type);
    }
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(CombinedNonMaxSuppression, combinedNms);

} // namespace
} // namespace lathe::rt
