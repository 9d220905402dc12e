// kernel.loop, kernel.reduce and kernel.rows against the reference evaluator.
#include "Text.h"

#include <complex>

namespace lathe::test {

TEST(Loop, UnaryFloats) {
  for (std::string e : {"f32", "f64", "bf16", "f16"}) {
    double tolerance = e == "f32" ? 2e-6 : e == "f64" ? 1e-12 : 2e-2;
    for (const char *name : {"abs", "negate", "exponential", "tanh", "logistic", "sine", "floor", "ceil", "sign", "rsqrt",
                             "round_nearest_even", "round_nearest_afz", "erf", "cbrt", "square"}) {
      std::string t = "tensor<5x37x" + e + ">";
      EXPECT_HOST_MATCH(kernelOf("loop", {t}, t, unaryOp(name, t, t)), {randomTensor(dtypeOf(e), {5, 37}, 1)}, tolerance)
          << name << " " << e;
    }
  }
}

TEST(Loop, BinaryEveryType) {
  for (std::string e : {"f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64",
                        "complex<f32>", "complex<f64>"}) {
    bool isComplex = e[0] == 'c', isFloat = e.find('f') != std::string::npos;
    for (std::string name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "and",
                             "shift_left", "shift_right_arithmetic", "shift_right_logical", "power"}) {
      bool bits = name == "and" || (name[0] == 's' && name[1] == 'h');
      if ((bits && isFloat) || (isComplex && (name == "remainder" || name == "maximum" || name == "minimum" || name == "power")))
        continue;
      if (name == "power" && isFloat)
        continue;
      std::string t = "tensor<131x" + e + ">";
      std::string text = kernelOf("loop", {t, t}, t, "%y = \"hlo." + name + "\"(%a0, %a1) : (" + t + ", " + t + ") -> " + t);
      double scale = isFloat ? 4 : name == "power" ? 5 : 120;
      EXPECT_HOST_MATCH(text, {randomTensor(dtypeOf(e), {131}, 1, scale), randomTensor(dtypeOf(e), {131}, 7, isFloat ? 4 : 9)},
                   isFloat ? 1e-2 * (e == "bf16" || e == "f16") + 1e-5 : 0)
          << name << " " << e;
    }
  }
}

// Bases of 0 and infinity under exponents of any size.
TEST(Loop, PowerOfZeroAndInfinity) {
  std::vector<float> base, exponent;
  for (float b : {0.0f, -0.0f, INFINITY, -INFINITY, 2.0f, 1.0f})
    for (float e : {1e-45f, 9.6e-6f, -2e-4f, 0.03f, 3.0f, -3.0f, 2.0f, 1e30f, INFINITY, -INFINITY}) {
      base.push_back(b);
      exponent.push_back(e);
    }
  std::string t = "tensor<60xf32>";
  EXPECT_MATCH(kernelOf("loop", {t, t}, t, "%y = \"hlo.power\"(%a0, %a1) : (" + t + ", " + t + ") -> " + t),
               {Tensor::vector<float>(DType::Float32, base), Tensor::vector<float>(DType::Float32, exponent)}, 1e-6);
}

// Infinities, NaN and signed zeros of complex functions, by the rules of C (and Eigen's where C has none).
TEST(Loop, ComplexSpecials) {
  const double values[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 2.5, -0.5};
  Tensor narrow = Tensor::allocate(DType::Complex64, {81}), wide = Tensor::allocate(DType::Complex128, {81});
  for (int i = 0; i < 81; ++i) {
    narrow.data<std::complex<float>>()[i] = {float(values[i / 9]), float(values[i % 9])};
    wide.data<std::complex<double>>()[i] = {values[i / 9], values[i % 9]};
  }
  for (std::string e : {"complex<f32>", "complex<f64>"})
    for (const char *name : {"exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "cosine",
                             "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sign"}) {
      std::string t = "tensor<81x" + e + ">";
      EXPECT_HOST_MATCH(kernelOf("loop", {t}, t, unaryOp(name, t, t)), {e == "complex<f32>" ? narrow : wide},
                        e == "complex<f32>" ? 2e-6 : 1e-12)
          << name << " " << e;
    }
}

// A NaN that is a constant reaches the result like any other.
TEST(Loop, ConstantNan) {
  std::string t = "tensor<37xf32>", h = "tensor<37xbf16>";
  for (std::string name : {"maximum", "minimum"}) {
    EXPECT_MATCH(kernelOf("loop", {t}, t, "%n = \"hlo.constant\"() {value = dense<0x7FC00000> : " + t + "} : () -> " + t +
                                              "\n%y = \"hlo." + name + "\"(%a0, %n) : (" + t + ", " + t + ") -> " + t),
                 {randomTensor(DType::Float32, {37}, 1)}, 0);
    EXPECT_MATCH(kernelOf("loop", {h}, h, "%n = \"hlo.constant\"() {value = dense<0x7FC0> : " + h + "} : () -> " + h +
                                              "\n%y = \"hlo." + name + "\"(%n, %a0) : (" + h + ", " + h + ") -> " + h),
                 {randomTensor(DType::BFloat16, {37}, 1)}, 0);
  }
  EXPECT_MATCH(kernelOf("loop", {t}, t, "%n = \"hlo.constant\"() {value = dense<0x7FC00000> : tensor<f32>} : () -> tensor<f32>"
                                        "\n%h = \"hlo.constant\"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>"
                                        "\n%y = \"hlo.clamp\"(%n, %a0, %h) : (tensor<f32>, " + t + ", tensor<f32>) -> " + t),
               {randomTensor(DType::Float32, {37}, 1)}, 0);
}

TEST(Loop, Converts) {
  const char *all[] = {"f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "i1",
                       "complex<f32>"};
  for (std::string from : all)
    for (std::string to : all) {
      std::string a = "tensor<71x" + from + ">", r = "tensor<71x" + to + ">";
      EXPECT_EQ(compareWithReference(kernelOf("loop", {a}, r, unaryOp("convert", a, r)),
                                     {randomTensor(dtypeOf(from), {71}, 3, 300)}, 0),
                "")
          << from << " to " << to;
    }
}

// Vectors of complex numbers, with rests, and what moves them.
TEST(Loop, ComplexVectors) {
  for (std::string real : {"f32", "f64"}) {
    std::string c = "tensor<3x37xcomplex<" + real + ">>", r = "tensor<3x37x" + real + ">",
                i = "tensor<3x37xi1>";
    std::string wide = "tensor<3x41xcomplex<" + real + ">>", one = "tensor<complex<" + real + ">>";
    auto op = [](const std::string &to, const std::string &name, const std::string &args,
                 const std::string &in, const std::string &out, const std::string &attrs = "") {
      return to + " = \"hlo." + name + "\"(" + args + ") {" + attrs + "} : (" + in + ") -> " + out + "\n";
    };
    std::string sums = op("%p", "multiply", "%a0, %a1", c + ", " + c, c) + op("%q", "conj", "%a0", c, c) +
                       op("%s", "subtract", "%p, %q", c + ", " + c, c);
    std::vector<Tensor> in{randomTensor(dtypeOf("complex<" + real + ">"), {3, 37}, 1),
                           randomTensor(dtypeOf("complex<" + real + ">"), {3, 37}, 2)};
    EXPECT_MATCH(kernelOf("loop", {c, c}, r, sums + op("%y", "abs", "%s", c, r)), in, 1e-6) << real;
    EXPECT_MATCH(kernelOf("loop", {c, c}, c,
                          sums + op("%e", "real", "%s", c, r) + op("%f", "imag", "%a1", c, r) +
                              op("%l", "compare", "%e, %f", r + ", " + r, i,
                                 "comparison_direction = #hlo<comparison_direction LT>") +
                              op("%d", "divide", "%a0, %a1", c + ", " + c, c) +
                              op("%m", "complex", "%f, %e", r + ", " + r, c) +
                              op("%k", "select", "%l, %d, %m", i + ", " + c + ", " + c, c) +
                              op("%y", "reverse", "%k", c, c, "dimensions = array<i64: 1>")),
                 in, 1e-5)
        << real;
    EXPECT_MATCH(kernelOf("loop", {c, one}, wide,
                          op("%n", "negate", "%a0", c, c) +
                              op("%y", "pad", "%n, %a1", c + ", " + one, wide,
                                 "edge_padding_low = array<i64: 0, 3>, edge_padding_high = array<i64: 0, 1>, "
                                 "interior_padding = "
                                 "array<i64: 0, 0>")),
                 {in[0], randomTensor(dtypeOf("complex<" + real + ">"), {}, 3)}, 0)
        << real;
  }
  // squares that a float does not hold
  Tensor far = randomTensor(DType::Complex64, {40}, 1);
  for (int64_t k = 0; k < 80; ++k)
    far.data<float>()[k] *= std::ldexp(1.0f, static_cast<int>(k / 2 % 5 * 61 - 122));
  KernelRun run = runKernel(kernelOf("loop", {"tensor<40xcomplex<f32>>"}, "tensor<40xf32>",
                                     unaryOp("abs", "tensor<40xcomplex<f32>>", "tensor<40xf32>")),
                            {far});
  for (int64_t k = 0; k < 40; ++k) {
    double exact = std::hypot(double(far.data<float>()[2 * k]), double(far.data<float>()[2 * k + 1]));
    EXPECT_LE(std::abs(run.outputs[0].data<float>()[k] / exact - 1), 1.2e-7) << k;
  }
}

TEST(Loop, BroadcastBiasAndActivation) {
  std::string x = "tensor<2x3x5x24xf32>", c = "tensor<24xf32>";
  EXPECT_MATCH(kernelOf("loop", {x, c}, x,
                        "%b = \"hlo.broadcast_in_dim\"(%a1) {broadcast_dimensions = array<i64: 3>} : (" + c + ") -> " + x +
                            "\n%s = \"hlo.add\"(%a0, %b) : (" + x + ", " + x + ") -> " + x +
                            "\n%z = \"hlo.constant\"() {value = dense<0.0> : " + x + "} : () -> " + x +
                            "\n%y = \"hlo.maximum\"(%s, %z) : (" + x + ", " + x + ") -> " + x),
               {randomTensor(DType::Float32, {2, 3, 5, 24}, 1), randomTensor(DType::Float32, {24}, 2)}, 1e-6);
}

// Rows of a few elements with numbers of their own for each place in the row, and for each row.
TEST(Loop, ShortRows) {
  for (std::string e : {"f32", "f16", "i32"})
    for (int64_t n : {2, 3, 4, 7, 8, 11})
      for (int64_t rows : {5, 32, 77, 1000}) {
        std::string r = std::to_string(rows), x = "tensor<2x" + r + "x" + std::to_string(n) + "x" + e + ">",
                    c = "tensor<" + std::to_string(n) + "x" + e + ">", m = "tensor<2x" + r + "x" + e + ">";
        auto spread = [&](const char *to, const char *from, const std::string &type, const char *dims) {
          return std::string(to) + " = \"hlo.broadcast_in_dim\"(" + from + ") {broadcast_dimensions = array<i64: " + dims + ">} : (" +
                 type + ") -> " + x + "\n";
        };
        auto bin = [&](const char *to, const char *op, const char *a, const char *b) {
          return std::string(to) + " = \"hlo." + op + "\"(" + a + ", " + b + ") : (" + x + ", " + x + ") -> " + x + "\n";
        };
        EXPECT_MATCH(kernelOf("loop", {x, c, m}, x,
                              spread("%b", "%a1", c, "2") + bin("%s", "add", "%a0", "%b") + spread("%k", "%a2", m, "0, 1") +
                                  bin("%p", "multiply", "%s", "%k") + bin("%y", "maximum", "%p", "%b")),
                     {randomTensor(dtypeOf(e), {2, rows, n}, 1, 3), randomTensor(dtypeOf(e), {n}, 2, 3),
                      randomTensor(dtypeOf(e), {2, rows}, 3, 3)},
                     e == "f16" ? 1e-2 : 1e-6)
            << x;
      }
}

TEST(Loop, SymbolicBatch) {
  std::string x = "tensor<?x19xf32, affine_map<()[s0] -> (s0, 19)>>";
  std::string text = "module attributes {hlo.symbols = [{name = \"n\", bound = -1 : i64, kind = \"input\"}]} {\n" +
                     kernelOf("loop", {x}, x, unaryOp("tanh", x, x)) + "}";
  for (int64_t n : {0, 1, 7})
    EXPECT_MATCH(text, {randomTensor(DType::Float32, {n, 19}, 1)}, 1e-6);
}

TEST(Loop, MovesData) {
  struct Case {
    const char *in, *out, *op;
    std::vector<int64_t> dims;
  };
  for (const Case &c : {
           Case{"tensor<7x33xf32>", "tensor<33x7xf32>", "\"hlo.transpose\"(%a0) {permutation = array<i64: 1, 0>}", {7, 33}},
           Case{"tensor<3x21x35xf32>", "tensor<3x35x21xf32>", "\"hlo.transpose\"(%a0) {permutation = array<i64: 0, 2, 1>}", {3, 21, 35}},
           Case{"tensor<16x9x24xf32>", "tensor<24x9x16xf32>", "\"hlo.transpose\"(%a0) {permutation = array<i64: 2, 1, 0>}", {16, 9, 24}},
           Case{"tensor<2x3x40xf32>", "tensor<3x2x40xf32>", "\"hlo.transpose\"(%a0) {permutation = array<i64: 1, 0, 2>}", {2, 3, 40}},
           Case{"tensor<4x50xf32>", "tensor<2x20xf32>",
                "\"hlo.slice\"(%a0) {start_indices = array<i64: 1, 5>, limit_indices = array<i64: 3, 45>, strides = array<i64: 1, 2>}", {4, 50}},
           Case{"tensor<4x50xf32>", "tensor<4x50xf32>", "\"hlo.reverse\"(%a0) {dimensions = array<i64: 0, 1>}", {4, 50}},
           Case{"tensor<4x50xf32>", "tensor<10x5x4xf32>", "\"hlo.reshape\"(%a0)", {4, 50}},
           Case{"tensor<1x50xf32>", "tensor<3x50xf32>",
                "\"hlo.broadcast_in_dim\"(%a0) {broadcast_dimensions = array<i64: 0, 1>}", {1, 50}},
       })
    EXPECT_MATCH(kernelOf("loop", {c.in}, c.out,
                          "%t = \"hlo.negate\"(%a0) : (" + std::string(c.in) + ") -> " + c.in + "\n%y = " +
                              std::string(c.op).replace(std::string(c.op).find("%a0"), 3, "%t") + " : (" + c.in + ") -> " + c.out),
                 {randomTensor(DType::Float32, c.dims, 5)}, 0)
        << c.op;
}

// Runs of a few elements: pixels from channels and back, shuffled channels, channels first and last; blocks
// that overlap the one before, rows of several units, one element too few for a block, and none.
TEST(Loop, TransposesShortRuns) {
  using Sizes = std::vector<int64_t>;
  struct Case {
    Sizes dims, order;
  };
  auto list = [](const Sizes &sizes, const char *between) {
    std::string s;
    for (size_t i = 0; i < sizes.size(); ++i)
      s += (i ? between : "") + std::to_string(sizes[i]);
    return s;
  };
  for (const Case &c : {
           Case{{1, 5, 20, 3, 3, 1}, {0, 1, 3, 2, 4, 5}},
           Case{{2, 5, 33, 2, 2, 3}, {0, 1, 3, 2, 4, 5}},
           Case{{3, 16, 2, 4, 1}, {0, 2, 1, 4, 3}},
           Case{{4, 2, 58}, {0, 2, 1}},
           Case{{4, 3, 17, 2}, {0, 2, 1, 3}},
           Case{{3, 4000}, {1, 0}},
           Case{{4001, 3}, {1, 0}},
           Case{{2, 3, 19, 4}, {2, 0, 1, 3}},
           Case{{3, 19, 4, 2}, {2, 0, 1, 3}},
           Case{{7, 3, 3}, {0, 2, 1}},
           Case{{2, 8, 5, 8, 5}, {0, 1, 3, 2, 4}},
           Case{{19, 7, 8}, {1, 0, 2}},
           Case{{2, 3, 5, 7}, {3, 2, 1, 0}},
           Case{{1, 16, 1, 6, 1, 2}, {4, 3, 2, 0, 1, 5}},
           Case{{4, 20, 0}, {1, 0, 2}},
       })
    for (std::string e : {"f32", "f64", "i8", "i64", "bf16"}) {
      Sizes to;
      for (int64_t p : c.order)
        to.push_back(c.dims[p]);
      std::string in = "tensor<" + list(c.dims, "x") + "x" + e + ">", out = "tensor<" + list(to, "x") + "x" + e + ">";
      std::string two = e[0] == 'i' ? "2" : "2.0", turn = "{permutation = array<i64: " + list(c.order, ", ") + ">} : (" + in + ") -> " + out;
      EXPECT_MATCH(kernelOf("loop", {in}, out, "%y = \"hlo.transpose\"(%a0) " + turn), {randomTensor(dtypeOf(e), c.dims, 5)}, 0)
          << in << out;
      // ops on both sides
      EXPECT_MATCH(kernelOf("loop", {in}, out,
                            "%c = \"hlo.constant\"() {value = dense<" + two + "> : " + in + "} : () -> " + in +
                                "\n%s = \"hlo.add\"(%a0, %c) : (" + in + ", " + in + ") -> " + in +
                                "\n%t = \"hlo.transpose\"(%s) " + turn + "\n%y = \"hlo.multiply\"(%t, %t) : (" + out + ", " +
                                out + ") -> " + out),
                   {randomTensor(dtypeOf(e), c.dims, 5)}, e == "bf16" ? 1e-2 : 1e-6)
          << in << out;
    }
  std::string x = "tensor<?x9x2x2x3xf32, affine_map<()[s0] -> (s0, 9, 2, 2, 3)>>",
              y = "tensor<2x?x9x2x3xf32, affine_map<()[s0] -> (2, s0, 9, 2, 3)>>";
  for (int64_t n : {0, 1, 7})
    EXPECT_MATCH("module attributes {hlo.symbols = [{name = \"n\", bound = -1 : i64, kind = \"input\"}]} {\n" +
                     kernelOf("loop", {x}, y, "%y = \"hlo.transpose\"(%a0) {permutation = array<i64: 2, 0, 1, 3, 4>} : (" + x + ") -> " + y) + "}",
                 {randomTensor(DType::Float32, {n, 9, 2, 2, 3}, 1)}, 0);
}

TEST(Loop, PadAndConcatenate) {
  for (std::string e : {"f32", "i8", "f64"}) {
    std::string x = "tensor<3x21x" + e + ">", s = "tensor<" + e + ">", o = "tensor<7x45x" + e + ">";
    std::string zero = "%z = \"hlo.constant\"() {value = dense<1" + std::string(e[0] == 'f' ? ".0" : "") + "> : " + s +
                       "} : () -> " + s + "\n";
    EXPECT_MATCH(kernelOf("loop", {x}, o,
                          zero + "%y = \"hlo.pad\"(%a0, %z) {edge_padding_low = array<i64: 1, 2>, edge_padding_high = "
                                 "array<i64: 1, 2>, interior_padding = array<i64: 1, 1>} : (" + x + ", " + s + ") -> " + o),
                 {randomTensor(dtypeOf(e), {3, 21}, 1)}, 0);
    std::string p = "tensor<4x40x" + e + ">";
    EXPECT_MATCH(kernelOf("loop", {x}, p,
                          zero + "%y = \"hlo.pad\"(%a0, %z) {edge_padding_low = array<i64: 0, 3>, edge_padding_high = "
                                 "array<i64: 1, 16>, interior_padding = array<i64: 0, 0>} : (" + x + ", " + s + ") -> " + p),
                 {randomTensor(dtypeOf(e), {3, 21}, 1)}, 0);
    std::string y2 = "tensor<3x17x" + e + ">", cc = "tensor<3x38x" + e + ">";
    EXPECT_MATCH(function({x, y2}, cc, "%r = \"hlo.concatenate\"(%x0, %x1) {dimension = 1 : i64} : (" + x + ", " + y2 +
                                           ") -> " + cc),
                 {randomTensor(dtypeOf(e), {3, 21}, 1), randomTensor(dtypeOf(e), {3, 17}, 2)}, 0);
  }
}

static std::string reduceOp(const std::string &name, const std::string &value, const std::string &e,
                            const std::string &dims, const std::string &in, const std::string &out,
                            const std::string &result) {
  std::string s = "tensor<" + e + ">";
  return "%i = \"hlo.constant\"() {value = dense<" + value + "> : " + s + "} : () -> " + s + "\n" + result +
         " = \"hlo.reduce\"(" + (result == "%r" ? "%x0" : "%v") + ", %i) ({\n^bb0(%p: " + s + ", %q: " + s +
         "):\n%w = \"hlo." + name + "\"(%p, %q) : (" + s + ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s +
         ") -> ()\n}) {dimensions = array<i64: " + dims + ">} : (" + in + ", " + s + ") -> " + out;
}

TEST(Reduce, EveryDirection) {
  struct Case {
    std::string dims, out;
  };
  for (std::string e : {"f32", "f64", "i32", "i8", "bf16", "complex<f32>"})
    for (const Case &c : {Case{"2", "4x5x"}, Case{"0", "5x67x"}, Case{"1", "4x67x"}, Case{"0, 1", "67x"},
                          Case{"1, 2", "4x"}, Case{"0, 2", "5x"}, Case{"0, 1, 2", ""}})
      for (std::string name : {"add", "maximum", "multiply"}) {
        if (e[0] == 'c' && name == "maximum")
          continue;
        bool f = e.find('f') != std::string::npos;
        std::string init = e[0] == 'c' ? "(2.0, 0.0)" : f ? "2.0" : "2";
        std::string in = "tensor<4x5x67x" + e + ">", out = "tensor<" + c.out + e + ">";
        EXPECT_HOST_MATCH(function({in}, out, reduceOp(name, init, e, c.dims, in, out, "%r")),
                     {randomTensor(dtypeOf(e), {4, 5, 67}, 3, name == "multiply" ? 1.5 : 3)},
                     e == "bf16" ? 1.0 : f ? 5e-4 : 0)
            << name << " " << e << " over " << c.dims;
      }
}

TEST(Reduce, WithProducerAndConsumer) {
  std::string in = "tensor<6x131xf32>", out = "tensor<6xf32>", s = "tensor<f32>";
  std::string body = "%v = \"hlo.multiply\"(%a0, %a0) : (" + in + ", " + in + ") -> " + in + "\n" +
                     reduceOp("add", "0.0", "f32", "1", in, out, "%t") + "\n%y = \"hlo.sqrt\"(%t) : (" + out + ") -> " + out;
  EXPECT_MATCH(kernelOf("reduce", {in}, out, body), {randomTensor(DType::Float32, {6, 131}, 9)}, 1e-5);
}

TEST(Reduce, ArgMax) {
  std::string in = "tensor<5x77xf32>", pos = "tensor<5x77xi32>", s = "tensor<f32>", i = "tensor<i32>", o = "tensor<5xi32>";
  std::string body =
      "%n = \"hlo.iota\"() {iota_dimension = 1 : i64} : () -> " + pos +
      "\n%l = \"hlo.constant\"() {value = dense<0xFF800000> : " + s + "} : () -> " + s +
      "\n%z = \"hlo.constant\"() {value = dense<0> : " + i + "} : () -> " + i +
      "\n%m, %y = \"hlo.reduce\"(%a0, %n, %l, %z) ({\n^bb0(%p: " + s + ", %pi: " + i + ", %q: " + s + ", %qi: " + i +
      "):\n%g = \"hlo.compare\"(%p, %q) {comparison_direction = #hlo<comparison_direction GT>} : (" + s + ", " + s +
      ") -> tensor<i1>\n%e = \"hlo.compare\"(%p, %q) {comparison_direction = #hlo<comparison_direction EQ>} : (" + s +
      ", " + s + ") -> tensor<i1>\n%k = \"hlo.compare\"(%pi, %qi) {comparison_direction = #hlo<comparison_direction LT>} : (" +
      i + ", " + i + ") -> tensor<i1>\n%t = \"hlo.and\"(%e, %k) : (tensor<i1>, tensor<i1>) -> tensor<i1>\n%u = \"hlo.or\"(%g, %t) : "
      "(tensor<i1>, tensor<i1>) -> tensor<i1>\n%v = \"hlo.select\"(%u, %p, %q) : (tensor<i1>, " + s + ", " + s + ") -> " + s +
      "\n%vi = \"hlo.select\"(%u, %pi, %qi) : (tensor<i1>, " + i + ", " + i + ") -> " + i + "\n\"hlo.return\"(%v, %vi) : (" +
      s + ", " + i + ") -> ()\n}) {dimensions = array<i64: 1>} : (" + in + ", " + pos + ", " + s + ", " + i +
      ") -> (tensor<5xf32>, " + o + ")";
  EXPECT_MATCH(kernelOf("reduce", {in}, o, body), {randomTensor(DType::Float32, {5, 77}, 4, 3)}, 0);
}

/// `last`: what becomes of d = x - max(x), e = exp(d), sb = sum(e) in all of the row; %y is the result.
static std::string softmax(const std::string &lead, const std::string &n, const std::string &dims, const std::string &over,
                           const std::string &last = "\"hlo.divide\"(%e, %sb)") {
  std::string x = "tensor<" + lead + n + "xf32>", m = "tensor<" + lead.substr(0, lead.size() - 1) + "xf32>",
              s = "tensor<f32>";
  auto reduce = [&](const char *r, const char *in, const char *name, const char *init) {
    std::string i = std::string(r) + "_i";
    return i + " = \"hlo.constant\"() {value = dense<" + init + "> : " + s + "} : () -> " + s + "\n" + r +
           " = \"hlo.reduce\"(" + in + ", " + i + ") ({\n^bb0(%p: " + s + ", %q: " + s + "):\n%w = \"hlo." + name +
           "\"(%p, %q) : (" + s + ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s + ") -> ()\n}) {dimensions = array<i64: " +
           over + ">} : (" + x + ", " + s + ") -> " + m + "\n";
  };
  auto spread = [&](const char *r, const char *v) {
    return std::string(r) + " = \"hlo.broadcast_in_dim\"(" + v + ") {broadcast_dimensions = array<i64: " + dims + ">} : (" + m +
           ") -> " + x + "\n";
  };
  auto bin = [&](const char *r, const char *op, const char *a, const char *c) {
    return std::string(r) + " = \"hlo." + op + "\"(" + a + ", " + c + ") : (" + x + ", " + x + ") -> " + x + "\n";
  };
  return kernelOf("rows", {x}, x,
                  reduce("%m", "%a0", "maximum", "0xFF800000") + spread("%mb", "%m") + bin("%d", "subtract", "%a0", "%mb") +
                      "%e = \"hlo.exponential\"(%d) : (" + x + ") -> " + x + "\n" + reduce("%s", "%e", "add", "0.0") +
                      spread("%sb", "%s") + "%lb = \"hlo.log\"(%sb) : (" + x + ") -> " + x + "\n%y = " + last + " : (" + x + ", " + x +
                      ") -> " + x);
}

TEST(Rows, Softmax) {
  for (std::string n : {"1", "10", "64", "131", "1000"})
    EXPECT_MATCH(softmax("7x3x", n, "0, 1", "2"), {randomTensor(DType::Float32, {7, 3, std::stoll(n)}, 3, 5)}, 1e-6) << n;
  EXPECT_MATCH(softmax("7x", "3x20", "0", "1, 2"), {randomTensor(DType::Float32, {7, 3, 20}, 3, 5)}, 1e-6);
}

// Rows that go together, those left over, and each on its own (chunks are compared): every length of tails and of loops.
TEST(Rows, LengthsAndCounts) {
  for (int64_t n = 1; n <= 70; ++n) {
    const int64_t rows = n % 9 + 1;
    EXPECT_HOST_MATCH(softmax(std::to_string(rows) + "x", std::to_string(n), "0", "1"),
                      {randomTensor(DType::Float32, {rows, n}, n, 5)}, 1e-6)
        << rows << " " << n;
  }
  for (int64_t rows : {2, 4, 5, 8, 11})
    for (int64_t n : {7, 32, 128, 133})
      EXPECT_MATCH(softmax(std::to_string(rows) + "x", std::to_string(n), "0", "1"),
                   {randomTensor(DType::Float32, {rows, n}, n, 5)}, 1e-6);
}

// NaNs and infinities spoil their rows in the same way whether the maximum has looked for NaNs or left them to the sum.
TEST(Rows, SoftmaxOfSpecials) {
  for (int64_t n : {1, 5, 16, 33, 64, 70, 130}) {
    const int64_t rows = 42;
    Tensor x = randomTensor(DType::Float32, {rows, n}, 1, 5);
    for (int64_t r = 0; r < rows; ++r) {
      const float special[] = {NAN, INFINITY, -INFINITY, -NAN, 3e38f, -3e38f};
      x.data<float>()[r * n + r * 7 % n] = special[r % 6];
      for (int64_t i = 0; r % 7 == 6 && i < n; ++i)
        x.data<float>()[r * n + i] = r % 2 ? -INFINITY : NAN;
    }
    // in the last but one a NaN must come from the maximum
    for (const char *last : {"\"hlo.divide\"(%e, %sb)", "\"hlo.subtract\"(%d, %lb)", "\"hlo.add\"(%d, %d)",
                             "\"hlo.maximum\"(%e, %sb)"})
      EXPECT_MATCH(softmax("42x", std::to_string(n), "0", "1", last), {x}, 1e-6) << n << last;
  }
}

// The same exponentials divided by something else, or something else by their sum.
TEST(Rows, NotQuiteSoftmax) {
  Tensor x = randomTensor(DType::Float32, {9, 50}, 1, 5);
  for (const char *last : {"\"hlo.divide\"(%d, %sb)", "\"hlo.divide\"(%e, %mb)", "\"hlo.divide\"(%sb, %e)", "\"hlo.multiply\"(%e, %sb)"})
    EXPECT_MATCH(softmax("9x", "50", "0", "1", last), {x}, 1e-6) << last;
}

// A NaN anywhere reaches the extremum of its row and no other; so do infinities.
TEST(Rows, ExtremaOfSpecials) {
  for (int64_t n : {1, 5, 16, 33, 64, 70, 130})
    for (const char *name : {"maximum", "minimum"}) {
      const int64_t rows = 40;
      Tensor x = randomTensor(DType::Float32, {rows, n}, 1, 5);
      for (int64_t r = 0; r < rows; ++r) {
        const float special[] = {NAN, INFINITY, -INFINITY, -NAN};
        if (r % 5 < 4)
          x.data<float>()[r * n + r * 7 % n] = special[r % 5];
      }
      std::string t = "tensor<40x" + std::to_string(n) + "xf32>", m = "tensor<40xf32>";
      std::string init = name[1] == 'a' ? "0xFF800000" : "0x7F800000";
      EXPECT_MATCH(kernelOf("rows", {t}, m,
                            "%i = \"hlo.constant\"() {value = dense<" + init + "> : tensor<f32>} : () -> tensor<f32>\n" +
                                "%y = \"hlo.reduce\"(%a0, %i) ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%w = \"hlo." + name +
                                "\"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n\"hlo.return\"(%w) : (tensor<f32>) -> ()\n}) " +
                                "{dimensions = array<i64: 1>} : (" + t + ", tensor<f32>) -> " + m),
                   {x}, 0)
          << name << " " << n;
    }
}

// Rows of a few elements, as many at once as a vector has lanes: whole blocks, several units, and what is left over.
TEST(Rows, ShortRows) {
  for (int64_t n : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16})
    for (int64_t rows : {32, 39, 75, 1500}) {
      Tensor x = randomTensor(DType::Float32, {rows, n}, n, 5);
      for (int64_t r = 3; r < rows; r += 7)
        x.data<float>()[r * n + r % n] = r % 2 ? NAN : r % 4 ? INFINITY : -INFINITY;
      const std::string lead = std::to_string(rows) + "x", length = std::to_string(n);
      EXPECT_MATCH(softmax(lead, length, "0", "1"), {x}, 1e-6) << rows << " " << n;
      for (const char *last : {"\"hlo.subtract\"(%d, %lb)", "\"hlo.maximum\"(%e, %mb)"})
        EXPECT_HOST_MATCH(softmax(lead, length, "0", "1", last), {x}, 1e-6) << rows << " " << n << last;
    }
  // as many rows as elements of one; several dimensions; a number of rows that is known when it runs
  EXPECT_MATCH(softmax("16x", "16", "0", "1"), {randomTensor(DType::Float32, {16, 16}, 3, 5)}, 1e-6);
  EXPECT_MATCH(softmax("7x9x", "5", "0, 1", "2"), {randomTensor(DType::Float32, {7, 9, 5}, 3, 5)}, 1e-6);
  std::string t = "tensor<37x?x3xi32, affine_map<()[s0] -> (37, s0, 3)>>", m = "tensor<37x?xi32, affine_map<()[s0] -> (37, s0)>>";
  std::string text = kernelOf("rows", {t}, m,
                              "%i = \"hlo.constant\"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>\n"
                              "%s = \"hlo.reduce\"(%a0, %i) ({\n^bb0(%p: tensor<i32>, %q: tensor<i32>):\n%w = \"hlo.add\"(%p, %q) : "
                              "(tensor<i32>, tensor<i32>) -> tensor<i32>\n\"hlo.return\"(%w) : (tensor<i32>) -> ()\n}) "
                              "{dimensions = array<i64: 2>} : (" + t + ", tensor<i32>) -> " + m + "\n%y = \"hlo.multiply\"(%s, %s) : (" +
                                  m + ", " + m + ") -> " + m);
  for (int64_t n : {0, 1, 3, 16})
    EXPECT_MATCH("module attributes {hlo.symbols = [{name = \"n\", bound = -1 : i64, kind = \"input\"}]} {\n" + text + "}",
                 {randomTensor(DType::Int32, {37, n, 3}, 1)}, 0);
}

// Mean, variance, scale: several reductions one after the other, in every type; of the sum of three tensors
// too, which is kept.
static void normalize(bool ofSum) {
  for (std::string e : {"f32", "f64", "f16", "bf16"})
    for (auto [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
             {3, 1}, {3, 20}, {3, 64}, {3, 200}, {8, 1}, {8, 20}, {8, 64}, {8, 200}, {8, 8}, {70, 3}, {70, 8}, {33, 2}}) {
      std::string x = "tensor<" + std::to_string(rows) + "x" + std::to_string(n) + "x" + e + ">",
                  v = "tensor<" + std::to_string(n) + "x" + e + ">", m = "tensor<" + std::to_string(rows) + "x" + e + ">",
                  s = "tensor<" + e + ">";
      auto sum = [&](std::string r, std::string in) {
        return r + " = \"hlo.reduce\"(" + in + ", %z) ({\n^bb0(%p: " + s + ", %q: " + s + "):\n%w = \"hlo.add\"(%p, %q) : (" + s +
               ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s + ") -> ()\n}) {dimensions = array<i64: 1>} : (" + x + ", " +
               s + ") -> " + m + "\n";
      };
      auto bin = [&](std::string r, std::string op, std::string a, std::string b, std::string t) {
        return r + " = \"hlo." + op + "\"(" + a + ", " + b + ") : (" + t + ", " + t + ") -> " + t + "\n";
      };
      auto spread = [&](std::string r, std::string a, std::string from, int dim) {
        return r + " = \"hlo.broadcast_in_dim\"(" + a + ") {broadcast_dimensions = array<i64: " + std::to_string(dim) + ">} : (" +
               from + ") -> " + x + "\n";
      };
      const std::string values = ofSum ? "%xs" : "%a0";
      std::string body =
          "%z = \"hlo.constant\"() {value = dense<0.0> : " + s + "} : () -> " + s + "\n" +
          "%n = \"hlo.constant\"() {value = dense<" + std::to_string(n) + ".0> : " + m + "} : () -> " + m +
          "\n" + "%h = \"hlo.constant\"() {value = dense<0.125> : " + m + "} : () -> " + m + "\n" +
          (ofSum ? bin("%x01", "add", "%a0", "%a2", x) + bin("%xs", "add", "%x01", "%a3", x) : "") +
          sum("%s", values) + bin("%mean", "divide", "%s", "%n", m) + spread("%mb", "%mean", m, 0) +
          bin("%d", "subtract", values, "%mb", x) + bin("%dd", "multiply", "%d", "%d", x) + sum("%v", "%dd") +
          bin("%vn", "divide", "%v", "%n", m) + bin("%ve", "add", "%vn", "%h", m) +
          "%rs = \"hlo.rsqrt\"(%ve) : (" + m + ") -> " + m + "\n" + spread("%rb", "%rs", m, 0) +
          spread("%g", "%a1", v, 1) + bin("%k", "multiply", "%rb", "%g", x) +
          bin("%y", "multiply", "%d", "%k", x);
      double tolerance = e == "f32" ? 1e-5 : e == "f64" ? 1e-12 : e == "f16" ? 2e-2 : 1e-1;
      std::vector<std::string> types = {x, v};
      std::vector<Tensor> inputs = {randomTensor(dtypeOf(e), {rows, n}, 2, 3),
                                    randomTensor(dtypeOf(e), {n}, 5, 2)};
      for (unsigned seed = 6; ofSum && seed < 8; ++seed) {
        types.push_back(x);
        inputs.push_back(randomTensor(dtypeOf(e), {rows, n}, seed));
      }
      EXPECT_MATCH(kernelOf("rows", types, x, body), inputs, tolerance) << e << " " << rows << " " << n;
    }
}

TEST(Rows, Normalization) { normalize(false); }
TEST(Rows, NormalizationOfSums) { normalize(true); }

// Rows picked by places in memory, some beyond the end, with a tail behind whole vectors; dimensions around them stay apart.
TEST(Loop, GathersRows) {
  for (int n : {1, 3, 16, 19, 40}) {
    std::string c = std::to_string(n), x = "tensor<2x4x" + c + "xf32>", y = "tensor<2x6x" + c + "xf32>", p = "tensor<6xi32>";
    std::string body = "%g = \"hlo.gather\"(%a0, %a1) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2], collapsed_slice_dims = "
                       "[1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1, " +
                       c + ">}> : (" + x + ", " + p + ") -> " + y + "\n%y = \"hlo.multiply\"(%g, %a2) : (" + y + ", " + y + ") -> " + y;
    EXPECT_MATCH(kernelOf("loop", {x, p, y}, y, body),
                 {randomTensor(DType::Float32, {2, 4, n}, 1), tensorOf(std::vector<int32_t>{3, 0, 0, 2, 9, -1}, {6}),
                  randomTensor(DType::Float32, {2, 6, n}, 2)},
                 1e-7)
        << n;
  }
}

// LLVM takes the sign for the result from the double, by a library call if it is left to it.
TEST(Loop, RoundsHalvesOfDoubles) {
  std::string from = "tensor<19xf64>", to = "tensor<19xf16>";
  EXPECT_MATCH(kernelOf("loop", {from}, to,
                        "%h = \"hlo.convert\"(%a0) : (" + from + ") -> " + to + "\n%y = \"hlo.round_nearest_afz\"(%h) : (" + to + ") -> " + to),
               {randomTensor(DType::Float64, {19}, 1, 20)}, 0);
}

// Short rows whose results or values on the way are complex numbers are left to plain loops: as vectors they have no lanes.
TEST(Loop, ShortRowsOfComplexNumbers) {
  for (std::string part : {"f32", "f64"})
    for (std::string size : {"2", "3", "5", "8"}) {
      const std::string x = "tensor<200x" + size + "x" + part + ">", z = "tensor<200x" + size + "xcomplex<" + part + ">>",
                        bias = "tensor<" + size + "x" + part + ">";
      const int64_t n = std::stoll(size);
      const std::vector<Tensor> in = {randomTensor(dtypeOf(part), {200, n}, 1), randomTensor(dtypeOf(part), {200, n}, 2),
                                      randomTensor(dtypeOf(part), {n}, 3)};
      const std::string spread = "%b = \"hlo.broadcast_in_dim\"(%a2) {broadcast_dimensions = array<i64: 1>} : (" + bias + ") -> " + x +
                                 "\n%c = \"hlo.add\"(%a0, %b) : (" + x + ", " + x + ") -> " + x + "\n",
                        complex = "\"hlo.complex\"(%c, %a1) : (" + x + ", " + x + ") -> " + z + "\n";
      EXPECT_MATCH(kernelOf("loop", {x, x, bias}, z, spread + "%y = " + complex), in, 1e-5);
      EXPECT_MATCH(kernelOf("loop", {x, x, bias}, x,
                            spread + "%z = " + complex + "%w = \"hlo.multiply\"(%z, %z) : (" + z + ", " + z + ") -> " + z +
                                "\n%y = \"hlo.real\"(%w) : (" + z + ") -> " + x),
                   in, 1e-5);
    }
}

} // namespace lathe::test
