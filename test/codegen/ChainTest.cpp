// kernel.chain against its product and its depthwise convolution: strips of any height, borders, strides, images.
#include "Text.h"

namespace lathe::test {
namespace {

struct Chain {
  int64_t images, height, width, depth, channels, taps, stride, low, high, dilation, rows;
};

std::string list(std::initializer_list<int64_t> values) {
  std::string s;
  for (int64_t v : values)
    s += (s.empty() ? "" : ", ") + std::to_string(v);
  return "array<i64: " + s + ">";
}

std::string type(std::initializer_list<int64_t> dims) {
  std::string s = "tensor<";
  for (int64_t d : dims)
    s += std::to_string(d) + "x";
  return s + "f32>";
}

std::string text(const Chain &c) {
  auto outOf = [&](int64_t in) { return (in + c.low + c.high - (c.taps - 1) * c.dilation - 1) / c.stride + 1; };
  const std::string pixels = type({c.images * c.height * c.width, c.depth}), weights = type({c.depth, c.channels}),
                    bias = type({c.channels}), filter = type({c.taps, c.taps, 1, c.channels}),
                    product = type({c.images * c.height * c.width, c.channels}),
                    image = type({c.images, c.height, c.width, c.channels}),
                    result = type({c.images, outOf(c.height), outOf(c.width), c.channels});
  const std::string types = pixels + ", " + weights + ", " + bias + ", " + filter;
  return function({pixels, weights, bias, filter}, result,
                  "%r = kernel.chain(%x0, %x1, %x2, %x3) {rows = " + std::to_string(c.rows) + " : i64} : (" + types + ") -> " + result +
                      " {\n^bb0(%a: " + pixels + ", %b: " + weights + ", %c: " + bias + ", %d: " + filter + "):\n" +
                      "%0 = kernel.dot(%a, %b, %c) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = "
                      "array<i64: 0, 1>} : (" + pixels + ", " + weights + ", " + bias + ") -> " + product + " {\n^bb0(%acc: " + product +
                      ", %e: " + bias + "):\n" + "%s = \"hlo.broadcast_in_dim\"(%e) {broadcast_dimensions = array<i64: 1>} : (" + bias +
                      ") -> " + product + "\n%t = \"hlo.add\"(%acc, %s) : (" + product + ", " + product + ") -> " + product +
                      "\n%z = \"hlo.constant\"() {value = dense<0.25> : " + product + "} : () -> " + product +
                      "\n%m = \"hlo.maximum\"(%t, %z) : (" + product + ", " + product + ") -> " + product +
                      "\nkernel.yield %m : " + product + "\n}\n%1 = \"hlo.reshape\"(%0) : (" + product + ") -> " + image +
                      "\n%2 = kernel.depthwise_conv(%1, %d) {groups = " + std::to_string(c.channels) + " : i64, lhs_dilation = " + list({1, 1}) +
                      ", rhs_dilation = " + list({c.dilation, c.dilation}) + ", strides = " + list({c.stride, c.stride}) + ", padding = " +
                      list({c.low, c.high, c.low, c.high}) + "} : (" + image + ", " + filter + ") -> " + result + " {\n^bb0(%acc: " + result +
                      "):\nkernel.yield %acc : " + result + "\n}\nkernel.yield %2 : " + result + "\n}");
}

class ChainTest : public testing::TestWithParam<Chain> {};

TEST_P(ChainTest, MatchesItsParts) {
  const Chain &c = GetParam();
  const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {c.images * c.height * c.width, c.depth}, 1),
                                      randomTensor(DType::Float32, {c.depth, c.channels}, 2), randomTensor(DType::Float32, {c.channels}, 3),
                                      randomTensor(DType::Float32, {c.taps, c.taps, 1, c.channels}, 4)};
  EXPECT_MATCH(text(c), inputs, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Strips, ChainTest,
                         testing::Values(Chain{1, 12, 9, 5, 32, 3, 1, 1, 1, 1, 4},   // borders on both sides
                                         Chain{1, 12, 9, 5, 32, 3, 1, 1, 1, 1, 5},   // a shorter last strip
                                         Chain{2, 14, 8, 16, 48, 3, 2, 0, 1, 1, 3},  // strides, images
                                         Chain{3, 7, 7, 3, 20, 3, 2, 1, 1, 1, 1},    // a row each, channels that fill no vector
                                         Chain{1, 11, 10, 4, 16, 5, 1, 2, 2, 1, 2},  // wide windows
                                         Chain{1, 16, 9, 4, 16, 3, 1, 2, 2, 2, 3},   // dilated
                                         Chain{1, 13, 9, 4, 16, 3, 3, 0, 0, 1, 2},   // strides as wide as windows
                                         Chain{2, 3, 4, 2, 17, 5, 1, 4, 4, 1, 7},    // the whole image, more padding than image
                                         Chain{1, 9, 9, 70, 33, 3, 1, 0, 0, 1, 7})); // one strip, no padding

} // namespace
} // namespace lathe::test
