// Real numbers in and out of an object with host kernels whose tensors are quantized.
#include "quant.h"

#include <cstdio>

int main() {
  int8_t x[6];
  for (int i = 0; i < 6; ++i)
    x[i] = Quant::quantize_arg_in0(1.5f * static_cast<float>(i) - 2);
  const int32_t sizes[] = {3, 2};
  Quant model;
  model.set_in0(x, {6});
  model.set_in1(sizes, {2});
  if (!model.Run()) {
    std::printf("error: %s\n", model.error_msg().c_str());
    return 1;
  }
  std::printf("%d x %d:", static_cast<int>(model.out0_dims()[0]), static_cast<int>(model.out0_dims()[1]));
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 2; ++k)
      std::printf(" %g", static_cast<double>(Quant::dequantize_result_out0(model.out0()(i, k))));
  std::printf("\n");
}
