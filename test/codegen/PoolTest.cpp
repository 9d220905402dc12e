// Pools over images: by blocks of rows and pixels, by tiles of a row, and pixel by pixel.
#include "Text.h"

#include <cmath>

namespace lathe::test {
namespace {

struct Pool {
  int64_t height, width, channels, window, stride, low, high, dilation = 1;
  int64_t results(int64_t size) const {
    return (size + low + high - (window - 1) * dilation - 1) / stride + 1;
  }
};

std::string text(const Pool &p, const std::string &kind, const char *elem) {
  const std::string x = type({2, p.height, p.width, p.channels}, elem),
                    y = type({2, p.results(p.height), p.results(p.width), p.channels}, elem);
  return function({x}, y,
                  "%r = kernel.pool(%x0) {kind = \"" + kind + "\", window = " + list({p.window, p.window}) +
                      ", strides = " + list({p.stride, p.stride}) +
                      ", padding = " + list({p.low, p.high, p.low, p.high}) +
                      ", window_dilation = " + list({p.dilation, p.dilation}) + "} : (" + x + ") -> " + y +
                      " {\n^bb0(%acc: " + y + "):\n%z = \"hlo.add\"(%acc, %acc) : (" + y + ", " + y +
                      ") -> " + y + "\nkernel.yield %z : " + y + "\n}");
}

// Sizes at which blocks are whole, lower, or narrower, at all borders and with windows beside the image.
const Pool pools[] = {{9, 8, 48, 3, 1, 1, 1}, {13, 9, 32, 3, 2, 0, 0}, {12, 11, 20, 2, 2, 0, 0},
                      {7, 6, 24, 3, 2, 1, 1}, {5, 5, 16, 5, 1, 2, 2},  {10, 9, 16, 3, 1, 2, 2, 2},
                      {3, 2, 64, 2, 1, 0, 1}, {17, 1, 16, 1, 1, 0, 0}, {12, 12, 16, 9, 1, 4, 4},
                      {8, 7, 33, 3, 1, 1, 1}, {6, 6, 3, 3, 1, 1, 1},   {4, 4, 16, 2, 1, 3, 3}};

TEST(Pool, LikeTheEvaluator) {
  for (const Pool &p : pools)
    for (const char *cpu : cpus)
      for (const char *kind : {"max", "min", "sum", "avg"})
        if (hostRuns(cpu) && (std::string(kind) != "avg" || p.low < p.window)) // none of nothing
          EXPECT_EQ(compareWithReference(
                        text(p, kind, "f32"),
                        {randomTensor(DType::Float32, {2, p.height, p.width, p.channels}, 1)}, 1e-5, cpu),
                    "")
              << cpu << "\n"
              << text(p, kind, "f32");
}

TEST(Pool, OtherTypes) {
  for (const char *elem : {"bf16", "i32", "f64"})
    for (const char *kind : {"max", "sum"})
      EXPECT_EQ(compareWithReference(text(pools[0], kind, elem),
                                     {randomTensor(dtypeOf(elem), {2, 9, 8, 48}, 1)}, 2e-2),
                "")
          << kind << " " << elem;
}

/// A NaN is a number less than all others to `max_number`, wherever in a window it is.
TEST(Pool, LeavesNanOut) {
  for (const Pool &p : pools) {
    if (p.low)
      continue;
    const std::vector<int64_t> dims = {2, p.height, p.width, p.channels};
    Tensor with = randomTensor(DType::Float32, dims, 1), without = randomTensor(DType::Float32, dims, 1);
    for (int64_t i = 0; i < with.numElements(); i += 3) {
      with.data<float>()[i] = NAN;
      without.data<float>()[i] = -1e30f;
    }
    for (const char *cpu : cpus) {
      if (!hostRuns(cpu))
        continue;
      KernelRun a = runKernel(text(p, "max_number", "f32"), {with}, cpu),
                b = runKernel(text(p, "max", "f32"), {without}, cpu);
      ASSERT_TRUE(a.ok && b.ok) << a.message << b.message;
      for (int64_t i = 0; i < a.outputs[0].numElements(); ++i)
        if (const float x = b.outputs[0].data<float>()[i]; x > -1e29f)
          ASSERT_EQ(a.outputs[0].data<float>()[i], x) << cpu;
        else
          ASSERT_LT(a.outputs[0].data<float>()[i], -1e29f) << cpu; // nothing but NaNs
    }
  }
}

} // namespace
} // namespace lathe::test
