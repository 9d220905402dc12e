#include "q.h"
#include <cmath>
#include <cstdio>

extern "C" float scale_in_c(int64_t *zero_point);

int main() {
  using Model = q::Model;
  int64_t zero = 0;
  const float scale = scale_in_c(&zero);
  if (scale == Model::arg_image_scale && zero == Model::arg_image_zero_point)
    std::printf("image: one scale, table and class agree\n");
  // ties away from the zero point, limits, no number
  const int64_t near[] = {lathe_quantize(2.5f, 1, 0, -128, 127),     lathe_quantize(-2.5f, 1, 0, -128, 127),
                          lathe_quantize(-1.25f, 0.5f, 0, -128, 127), lathe_quantize(1e30f, 1, 0, -128, 127),
                          lathe_quantize(-1e3f, 1, 5, -128, 127),    lathe_quantize(NAN, 1, -128, -128, 127)};
  std::printf("nearest:");
  for (int64_t n : near)
    std::printf(" %d", int(n));
  std::printf("\n");
  Model model;
  for (int64_t i = 0; i < model.arg_image_count(); ++i)
    model.arg_image_data()[i] = Model::quantize_arg_image(std::sin(float(i)));
  if (!model.Run())
    return std::printf("%s\n", model.error_msg().c_str()), 1;
  float sum = 0;
  for (int64_t i = 0; i < model.result_output_0_count(); ++i)
    sum += Model::dequantize_result_output_0(model.result_output_0_data()[i]);
  if (std::abs(sum - 1) < 0.02f)
    std::printf("probabilities sum up to 1\n");
  return 0;
}
