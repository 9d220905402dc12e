// kernel.chain against its product and its depthwise convolution: any number of strips and panels, borders,
// strides, images.
#include "Text.h"

#include "base/Float.h"

namespace lathe::test {
namespace {

struct Chain {
  int64_t images, height, width, depth, channels, taps, stride, low, high, dilation, strips;
};

/// `panel`: columns of the packed weights' panels, 0 where they are not packed. `pairs`: of bf16, in pairs.
std::string text(const Chain &c, int64_t panel = 0, bool pairs = false) {
  auto outOf = [&](int64_t in) { return (in + c.low + c.high - (c.taps - 1) * c.dilation - 1) / c.stride + 1; };
  const int64_t panels = panel ? (c.channels + panel - 1) / panel : 0;
  const std::string pixels = type({c.images * c.height * c.width, c.depth}, pairs ? "bf16" : "f32"),
                    weights = pairs   ? type({panels, c.depth / 2, 2 * panel}, "bf16")
                              : panel ? type({panels, c.depth, panel})
                                      : type({c.depth, c.channels}),
                    bias = type({c.channels}), filter = type({c.taps, c.taps, 1, c.channels}),
                    product = type({c.images * c.height * c.width, c.channels}),
                    image = type({c.images, c.height, c.width, c.channels}),
                    result = type({c.images, outOf(c.height), outOf(c.width), c.channels});
  const std::string types = pixels + ", " + weights + ", " + bias + ", " + filter;
  return function(
      {pixels, weights, bias, filter}, result,
      "%r = kernel.chain(%x0, %x1, %x2, %x3) {strips = " + std::to_string(c.strips) + " : i64} : (" + types +
          ") -> " + result + " {\n^bb0(%a: " + pixels + ", %b: " + weights + ", %c: " + bias +
          ", %d: " + filter + "):\n" +
          "%0 = kernel.dot(%a, %b, %c) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, "
          "result_dims = "
          "array<i64: 0, 1>" +
          (panel ? ", layout = #cpu.panels<columns = " + std::to_string(panel) + (pairs ? ", group = 2>, bf16" : ">") : "") + "} : (" + pixels + ", " + weights +
          ", " + bias + ") -> " + product + " {\n^bb0(%acc: " + product + ", %e: " + bias + "):\n" +
          "%s = \"hlo.broadcast_in_dim\"(%e) {broadcast_dimensions = array<i64: 1>} : (" + bias + ") -> " +
          product + "\n%t = \"hlo.add\"(%acc, %s) : (" + product + ", " + product + ") -> " + product +
          "\n%z = \"hlo.constant\"() {value = dense<0.25> : " + product + "} : () -> " + product +
          "\n%m = \"hlo.maximum\"(%t, %z) : (" + product + ", " + product + ") -> " + product +
          "\nkernel.yield %m : " + product + "\n}\n%1 = \"hlo.reshape\"(%0) : (" + product + ") -> " + image +
          "\n%2 = kernel.depthwise_conv(%1, %d) {groups = " + std::to_string(c.channels) +
          " : i64, lhs_dilation = " + list({1, 1}) + ", rhs_dilation = " + list({c.dilation, c.dilation}) +
          ", strides = " + list({c.stride, c.stride}) +
          ", padding = " + list({c.low, c.high, c.low, c.high}) + "} : (" + image + ", " + filter + ") -> " +
          result + " {\n^bb0(%acc: " + result + "):\nkernel.yield %acc : " + result +
          "\n}\nkernel.yield %2 : " + result + "\n}");
}

class ChainTest : public testing::TestWithParam<Chain> {};

std::vector<Tensor> inputsOf(const Chain &c) {
  return {randomTensor(DType::Float32, {c.images * c.height * c.width, c.depth}, 1),
          randomTensor(DType::Float32, {c.depth, c.channels}, 2),
          randomTensor(DType::Float32, {c.channels}, 3),
          randomTensor(DType::Float32, {c.taps, c.taps, 1, c.channels}, 4)};
}

/// Long sums differ by more where they cancel.
double tolerance(const Chain &c) { return 2e-5 * std::max<double>(1, c.depth / 100.0); }

Tensor packed(const Tensor &weights, int64_t panel) {
  const int64_t depth = weights.dim(0), columns = weights.dim(1), panels = (columns + panel - 1) / panel;
  Tensor t = Tensor::allocate(DType::Float32, {panels, depth, panel});
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < panel; ++j) {
        const int64_t column = p * panel + j;
        t.data<float>()[(p * depth + k) * panel + j] =
            column < columns ? weights.data<float>()[k * columns + column] : 0;
      }
  return t;
}

TEST_P(ChainTest, MatchesItsParts) {
  EXPECT_MATCH(text(GetParam()), inputsOf(GetParam()), tolerance(GetParam()));
}

TEST_P(ChainTest, MatchesItsPartsWithPanels) {
  std::vector<Tensor> inputs = inputsOf(GetParam());
  const KernelRun expected = runReference(text(GetParam()), inputs);
  ASSERT_TRUE(expected.ok) << expected.message;
  const Tensor weights = inputs[1];
  for (int64_t panel : {16, 32})
    for (const char *cpu : cpus) {
      if (!hostRuns(cpu))
        continue;
      inputs[1] = packed(weights, panel);
      const KernelRun run = runKernel(text(GetParam(), panel), inputs, cpu);
      ASSERT_TRUE(run.ok) << cpu << ": " << run.message;
      EXPECT_LE(difference(run.outputs[0], expected.outputs[0]), tolerance(GetParam()))
          << cpu << ", panels of " << panel;
    }
}

/// The values in bf16; rounds `values` to them.
Tensor narrow(Tensor &values) {
  Tensor t = Tensor::allocate(DType::BFloat16, {values.dim(0), values.dim(1)});
  for (int64_t i = 0; i < values.numElements(); ++i) {
    t.data<uint16_t>()[i] = floatToBFloat16(values.data<float>()[i]);
    values.data<float>()[i] = bfloat16ToFloat(t.data<uint16_t>()[i]);
  }
  return t;
}

TEST_P(ChainTest, MatchesItsPartsWithPairs) {
  if (!hostRuns("cooperlake"))
    GTEST_SKIP() << "no AVX512_BF16";
  Chain c = GetParam();
  c.depth += c.depth % 2; // an odd one is padded, and so in no chain
  constexpr int64_t panel = 32;
  std::vector<Tensor> inputs = inputsOf(c);
  const Tensor pixels = narrow(inputs[0]), bits = narrow(inputs[1]);
  const KernelRun expected = runReference(text(c), inputs);
  ASSERT_TRUE(expected.ok) << expected.message;
  const int64_t panels = (c.channels + panel - 1) / panel;
  Tensor weights = Tensor::allocate(DType::BFloat16, {panels, c.depth / 2, 2 * panel});
  for (int64_t i = 0; i < weights.numElements(); ++i) {
    const int64_t k = i / (2 * panel) % (c.depth / 2) * 2 + i % 2;
    const int64_t column = i / (c.depth * panel) * panel + i % (2 * panel) / 2;
    weights.data<uint16_t>()[i] = column < c.channels ? bits.data<uint16_t>()[k * c.channels + column] : 0;
  }
  inputs[0] = pixels;
  inputs[1] = weights;
  const KernelRun run = runKernel(text(c, panel, true), inputs, "cooperlake");
  ASSERT_TRUE(run.ok) << run.message;
  EXPECT_LE(difference(run.outputs[0], expected.outputs[0]), tolerance(c));
}

INSTANTIATE_TEST_SUITE_P(
    Strips, ChainTest,
    testing::Values(Chain{1, 12, 9, 5, 32, 3, 1, 1, 1, 1, 1},    // borders on both sides
                    Chain{1, 12, 9, 5, 32, 3, 1, 1, 1, 1, 3},    // strips that end within rows
                    Chain{1, 30, 8, 5, 80, 3, 1, 1, 1, 1, 4},    // panels, one not full
                    Chain{2, 14, 8, 16, 48, 3, 2, 0, 1, 1, 3},   // strides, images
                    Chain{3, 7, 7, 3, 20, 3, 2, 1, 1, 1, 2},     // channels that fill no vector
                    Chain{1, 11, 10, 4, 16, 5, 1, 2, 2, 1, 100}, // a tile each
                    Chain{1, 30, 11, 7, 33, 5, 1, 2, 2, 1, 6},   // windows over many strips
                    Chain{1, 16, 9, 4, 16, 3, 1, 2, 2, 2, 3},    // dilated
                    Chain{1, 13, 9, 4, 16, 3, 3, 0, 0, 1, 4},    // strides as wide as windows
                    Chain{1, 23, 9, 4, 40, 2, 5, 0, 0, 1, 4},    // and wider
                    Chain{2, 3, 4, 2, 17, 5, 1, 4, 4, 1, 2},     // more padding than image
                    Chain{1, 20, 6, 1100, 32, 3, 1, 1, 1, 1, 3}, // sums by blocks
                    Chain{1, 9, 9, 70, 33, 3, 1, 0, 0, 1, 1}));  // no padding

} // namespace
} // namespace lathe::test
