/* What a module says of quantized inputs and outputs beside module_abi.h, whose structs stay as they are. C11 and C++17, and
 * may stand in one file with headers that do not know it, before or after them. */
#ifndef LATHE_QUANTIZED_ABI_V2
#define LATHE_QUANTIZED_ABI_V2

#ifdef __cplusplus
extern "C" {
#endif

/* A lathe_tensor_info that goes on: info.struct_size tells whether it does. The elements are integers that stand for
 * real = (element - zero_points[k]) * scales[k], where k is 0 for one scale, else the element's index in dimension `axis`. */
typedef struct lathe_quantized_info {
  lathe_tensor_info info;
  int32_t num_scales; /* at least 1 */
  int32_t axis;       /* 0 for one scale */
  const float *scales;
  const int64_t *zero_points;
} lathe_quantized_info;

/* Scales and zero points of an input or output; NULL where it has none. */
static inline const lathe_quantized_info *lathe_quantization(const lathe_tensor_info *info) {
  return info->struct_size >= sizeof(lathe_quantized_info) ? (const lathe_quantized_info *)(const void *)info : NULL;
}

/* The element of [low, high] that is nearest to `real`, away from the zero point where two are; NaN gives the zero point. */
static inline int64_t lathe_quantize(float real, float scale, int64_t zero_point, int64_t low, int64_t high) {
  const float steps = real / scale;
  int64_t whole, element;
  if (steps >= 1073741824.0f)
    return high;
  if (steps <= -1073741824.0f)
    return low;
  if (!(steps == steps))
    return zero_point;
  whole = (int64_t)steps;
  if (steps - (float)whole >= 0.5f)
    ++whole;
  else if ((float)whole - steps >= 0.5f)
    --whole;
  element = whole + zero_point;
  return element < low ? low : element > high ? high : element;
}

static inline float lathe_dequantize(int64_t element, float scale, int64_t zero_point) {
  return (float)(element - zero_point) * scale;
}

#ifdef __cplusplus
}
#endif

#endif /* LATHE_QUANTIZED_ABI_V2 */
