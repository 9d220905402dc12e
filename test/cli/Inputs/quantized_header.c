#include "q.h"

/* What the table says of the first input of the first entry. */
float scale_in_c(int64_t *zero_point);
float scale_in_c(int64_t *zero_point) {
  const lathe_quantized_info *info = lathe_quantization(q_module()->entries[0]->inputs[0]);
  if (!info || info->num_scales != 1)
    return 0;
  *zero_point = info->zero_points[0];
  return info->scales[0];
}
