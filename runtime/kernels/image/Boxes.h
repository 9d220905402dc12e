// Boxes by two corners.
#ifndef LATHE_RUNTIME_KERNELS_IMAGE_BOXES_H
#define LATHE_RUNTIME_KERNELS_IMAGE_BOXES_H

#include <algorithm>

namespace lathe::rt {

struct Box {
  float y1, x1, y2, x2;
};

/// Intersection over union; corners in any order, nothing for boxes without area.
inline float overlap(const Box &a, const Box &b) {
  auto sides = [](const Box &v) {
    return Box{std::min(v.y1, v.y2), std::min(v.x1, v.x2), std::max(v.y1, v.y2), std::max(v.x1, v.x2)};
  };
  Box p = sides(a), q = sides(b);
  float areaP = (p.y2 - p.y1) * (p.x2 - p.x1), areaQ = (q.y2 - q.y1) * (q.x2 - q.x1);
  if (areaP <= 0 || areaQ <= 0)
    return 0;
  float height = std::max(std::min(p.y2, q.y2) - std::max(p.y1, q.y1), 0.0f);
  float width = std::max(std::min(p.x2, q.x2) - std::max(p.x1, q.x1), 0.0f);
  float both = height * width;
  return both / (areaP + areaQ - both);
}

} // namespace lathe::rt

#endif
