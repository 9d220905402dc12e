// Depthwise convolutions of bytes, whose taps are multiplied several at once, with epilogues that end in
// bytes or numbers of 32 bits.
#include "Text.h"

#include <random>

namespace lathe::test {
namespace {

struct Window {
  std::vector<int64_t> size, taps, strides, dilation; ///< by spatial dimension
  int64_t images = 1, channels = 16, cropLow = 0,
          cropHigh = 0; ///< pixels left out at the ends of each dimension; below 0: zeros added
  std::string input = "i8", filter = "i8", result = "i8";
  std::string rounding = "fast"; ///< of the epilogue: fast (f32), exact (f64), none (the sums themselves), real (times the factors)
  int64_t low = -128, high = 127, zeroPoint = -3;

  int64_t results(size_t i) const {
    return (size[i] - cropLow - cropHigh - (taps[i] - 1) * dilation[i] - 1) / strides[i] + 1;
  }
};

std::string textOf(const Window &w) {
  std::vector<int64_t> in = {w.images}, filter = w.taps, out = {w.images}, crop;
  for (size_t i = 0; i < w.size.size(); ++i) {
    in.push_back(w.size[i]);
    out.push_back(w.results(i));
    crop.insert(crop.end(), {-w.cropLow, -w.cropHigh});
  }
  in.push_back(w.channels);
  out.push_back(w.channels);
  filter.insert(filter.end(), {1, w.channels});
  const bool isFast = w.rounding != "exact", isPlain = w.rounding == "none", isReal = w.rounding == "real";
  const char *real = isFast ? "f32" : "f64";
  const std::string x = type(in, w.input.c_str()), f = type(filter, w.filter.c_str()),
                    sums = type(out, "i32"), y = type(out, isPlain ? "i32" : isReal ? "f32" : w.result.c_str());
  const std::string bias = type({w.channels}, "i32"), factors = type({w.channels}, real),
                    reals = type(out, real);
  const std::string dims = " {broadcast_dimensions = array<i64: " + std::to_string(out.size() - 1) + ">} : (";
  const std::string splat = "\"hlo.constant\"() {value = dense<";
  std::string body = "%b = \"hlo.broadcast_in_dim\"(%bias)" + dims + bias + ") -> " + sums +
                     "\n%s = \"hlo.add\"(%acc, %b) : (" + sums + ", " + sums + ") -> " + sums + "\n";
  if (isPlain) {
    body += "kernel.yield %s : " + sums;
  } else if (isReal) {
    body += "%r = \"hlo.convert\"(%s) : (" + sums + ") -> " + reals + "\n%m = \"hlo.broadcast_in_dim\"(%factors)" + dims + factors + ") -> " +
            reals + "\n%p = \"hlo.multiply\"(%r, %m) : (" + reals + ", " + reals + ") -> " + reals + "\nkernel.yield %p : " + y;
  } else {
    auto limit = [&](int64_t v) {
      return splat + std::to_string(v) + "> : " + sums + "} : () -> " + sums + "\n";
    };
    auto binary = [&](const char *name, const char *a, const char *c) {
      return std::string("\"hlo.") + name + "\"(" + a + ", " + c + ") : (" + sums + ", " + sums + ") -> " +
             sums + "\n";
    };
    body += "%r = \"hlo.convert\"(%s) : (" + sums + ") -> " + reals +
            "\n%m = \"hlo.broadcast_in_dim\"(%factors)" + dims + factors + ") -> " + reals +
            "\n%p = \"hlo.multiply\"(%r, %m) : (" + reals + ", " + reals + ") -> " + reals + "\n%q = \"hlo." +
            (isFast ? "round_nearest_even" : "round_nearest_afz") + "\"(%p) : (" + reals + ") -> " + reals +
            "\n%i = \"hlo.convert\"(%q) {hlo.in_range} : (" + reals + ") -> " + sums +
            "\n%z = " + limit(w.zeroPoint) + "%j = " + binary("add", "%i", "%z") + "%l = " + limit(w.low) +
            "%k = " + binary("maximum", "%j", "%l") + "%h = " + limit(w.high) +
            "%n = " + binary("minimum", "%k", "%h") + "%o = \"hlo.convert\"(%n) : (" + sums + ") -> " + y +
            "\nkernel.yield %o : " + y;
  }
  return function({x, f, bias, factors}, y,
                  "%r = kernel.depthwise_conv(%x0, %x1, %x2, %x3) {groups = " + std::to_string(w.channels) +
                      " : i64, strides = " + list(w.strides) + ", padding = " + list(crop) +
                      ", lhs_dilation = " + list(std::vector<int64_t>(w.size.size(), 1)) +
                      ", rhs_dilation = " + list(w.dilation) + "} : (" + x + ", " + f + ", " + bias + ", " +
                      factors + ") -> " + y + " {\n^bb0(%acc: " + sums + ", %bias: " + bias +
                      ", %factors: " + factors + "):\n" + body + "\n}");
}

/// All values of a byte, the outermost often: where a sum could saturate or a sign be lost.
Tensor bytes(const std::string &elem, std::vector<int64_t> dims, std::mt19937 &random) {
  Tensor t = Tensor::allocate(dtypeOf(elem), std::move(dims));
  const int64_t low = elem == "ui8" ? 0 : elem == "i16" ? -255 : -128, high = elem == "i8" ? 127 : 255;
  for (int64_t i = 0; i < t.numElements(); ++i) {
    const int64_t draw = random() % 4, v = draw == 0   ? low
                                           : draw == 1 ? high
                                                       : low + int64_t(random() % (high - low + 1));
    if (elem == "i16")
      t.data<int16_t>()[i] = int16_t(v);
    else
      t.data<uint8_t>()[i] = uint8_t(v);
  }
  return t;
}

std::vector<Tensor> inputsOf(const Window &w, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> in = {w.images}, filter = w.taps;
  in.insert(in.end(), w.size.begin(), w.size.end());
  in.push_back(w.channels);
  filter.insert(filter.end(), {1, w.channels});
  Tensor bias = Tensor::allocate(DType::Int32, {w.channels});
  const bool isFast = w.rounding != "exact";
  Tensor factors = Tensor::allocate(isFast ? DType::Float32 : DType::Float64, {w.channels});
  for (int64_t c = 0; c < w.channels; ++c) {
    bias.data<int32_t>()[c] = int32_t(random() % 20001) - 10000;
    // some that cut nothing off, some whose products often lie between two integers
    const double factor = random() % 3 == 0 ? 1.0 / 1024 : (1 + random() % 1000) / 400000.0;
    if (isFast)
      factors.data<float>()[c] = float(factor);
    else
      factors.data<double>()[c] = factor;
  }
  Tensor x = bytes(w.input, in, random), f = bytes(w.filter, filter, random);
  return {x, f, bias, factors};
}

const char *processors[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "icelake-server"};

void check(const Window &w, unsigned seed) {
  const std::string text = textOf(w);
  for (const char *cpu : processors)
    if (hostRuns(cpu))
      EXPECT_EQ(compareWithReference(text, inputsOf(w, seed), 0, cpu), "") << cpu << "\n" << text;
}

TEST(ByteWindows, Sizes) {
  unsigned seed = 1;
  for (int64_t channels : {16, 24, 63, 100, 144})
    check({{6, 7}, {3, 3}, {1, 1}, {1, 1}, 2, channels}, ++seed);
  for (int64_t taps : {1, 3, 5, 8})
    for (int64_t stride : {1, 2, 3})
      check({{9, 13}, {std::min<int64_t>(taps, 3), taps}, {1, stride}, {1, 1}, 1, 80}, ++seed);
  for (int64_t width : {3, 6, 9})
    check({{4, width}, {2, 3}, {2, 1}, {1, 1}, 1, 32}, ++seed);
}

TEST(ByteWindows, TypesAndLimits) {
  unsigned seed = 100;
  for (const char *input : {"i8", "ui8"})
    for (const char *filter : {"i8", "ui8", "i16"}) {
      check({{5, 6}, {3, 3}, {1, 1}, {1, 1}, 1, 80, 0, 0, input, filter, "i8", "exact"}, ++seed);
      check({{5, 6}, {3, 3}, {1, 2}, {1, 1}, 1, 40, 0, 0, input, filter, "ui8", "fast", 0, 255, 100}, ++seed);
    }
  for (const char *rounding : {"none", "real"})
    for (const char *filter : {"i8", "i16"})
      for (int64_t channels : {24, 64, 100})
        check({{5, 6}, {3, 3}, {1, 1}, {1, 1}, 1, channels, 0, 0, "i8", filter, "i8", rounding}, ++seed);
  check({{5, 6}, {3, 3}, {1, 1}, {1, 1}, 1, 64, 0, 0, "i8", "i8", "i8", "fast", -3, 90}, ++seed);
  check({{5, 6}, {3, 3}, {1, 1}, {1, 1}, 1, 64, 0, 0, "i8", "i8", "ui8", "fast", 7, 90, 12}, ++seed);
  check({{9, 9}, {3, 3}, {1, 1}, {2, 2}, 1, 64}, ++seed);
  check({{9, 12}, {3, 3}, {2, 2}, {1, 3}, 1, 48}, ++seed);
  check({{9, 9}, {3, 3}, {1, 1}, {1, 1}, 2, 64, 1, 2}, ++seed);
  check({{9, 9}, {3, 3}, {1, 1}, {1, 1}, 2, 64, -1, -1}, ++seed);
  check({{5, 6}, {3, 5}, {2, 1}, {1, 2}, 1, 80, -3, -2, "ui8", "i8", "ui8", "exact", 0, 255, 9}, ++seed);
  check({{2, 3}, {3, 3}, {1, 1}, {1, 1}, 1, 32, -4, -4}, ++seed); // windows that hold no pixel
  check({{3, 4, 5}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, 2, 32, -1, -2}, ++seed);
  check({{19}, {5}, {1}, {1}, 3, 48, -2, -3}, ++seed);
  check({{19}, {5}, {1}, {1}, 3, 48}, ++seed);
  check({{4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, 2, 32}, ++seed);
}

TEST(ByteWindows, Random) {
  std::mt19937 random(7);
  auto below = [&](int64_t n) { return int64_t(random() % n); };
  for (unsigned i = 0; i < 16; ++i) {
    Window w;
    for (int64_t d = 0, rank = 1 + below(3); d < rank; ++d) {
      w.taps.push_back(1 + below(4));
      w.strides.push_back(1 + below(3));
      w.dilation.push_back(1 + below(2));
      w.size.push_back((w.taps.back() - 1) * w.dilation.back() + 1 + below(7));
    }
    w.images = 1 + below(2);
    w.channels = 16 + below(130);
    w.cropLow = -below(3);
    w.cropHigh = -below(3);
    w.input = below(2) ? "i8" : "ui8";
    w.filter = below(3) ? "i8" : below(2) ? "ui8" : "i16";
    if (below(2)) {
      w.result = "ui8";
      w.low = below(2) ? 0 : below(100);
      w.high = below(2) ? 255 : 100 + below(155);
      w.zeroPoint = below(256);
    }
    w.rounding = below(3) ? "fast" : "exact";
    if (below(3) == 0)
      w.rounding = below(2) ? "none" : "real";
    check(w, 1000 + i);
  }
}

} // namespace
} // namespace lathe::test
