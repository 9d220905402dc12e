// Ops outside kernels against the reference evaluator.
#include "Text.h"

namespace lathe::test {

TEST(Library, Gather) {
  std::string t = "tensor<9x37xf32>", i = "tensor<4x2xi32>", o = "tensor<4x2x37xf32>";
  EXPECT_MATCH(function({t, i}, o,
                        "%r = \"hlo.gather\"(%x0, %x1) {dimension_numbers = #hlo.gather<offset_dims = [2], collapsed_slice_dims = "
                        "[0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 37>} : (" + t + ", " + i +
                            ") -> " + o),
               {randomTensor(DType::Float32, {9, 37}, 1), randomTensor(DType::Int32, {4, 2}, 2, 12)}, 0);
}

TEST(Library, ScatterAdds) {
  std::string t = "tensor<9x37xf32>", i = "tensor<6x1xi32>", u = "tensor<6x37xf32>", s = "tensor<f32>";
  EXPECT_MATCH(function({t, i, u}, t,
                        "%r = \"hlo.scatter\"(%x0, %x1, %x2) ({\n^bb0(%p: " + s + ", %q: " + s +
                            "):\n%w = \"hlo.add\"(%p, %q) : (" + s + ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s +
                            ") -> ()\n}) {scatter_dimension_numbers = #hlo.scatter<update_window_dims = [1], inserted_window_dims = "
                            "[0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (" + t + ", " + i + ", " + u + ") -> " + t),
               {randomTensor(DType::Float32, {9, 37}, 1), randomTensor(DType::Int32, {6, 1}, 2, 12),
                randomTensor(DType::Float32, {6, 37}, 3)},
               1e-6);
}

// So many inputs that the kernel finds them in a table: along the rows and as whole pieces.
TEST(Library, ConcatenatesMany) {
  for (bool rows : {false, true}) {
    std::vector<std::string> types;
    std::vector<Tensor> inputs;
    std::string names, operands;
    int64_t total = 0;
    for (int64_t i = 0; i < 40; ++i) {
      int64_t n = 1 + i % 5 * 7;
      total += n;
      types.push_back(rows ? "tensor<3x" + std::to_string(n) + "xf32>" : "tensor<" + std::to_string(n) + "x3xf32>");
      inputs.push_back(randomTensor(DType::Float32, rows ? std::vector<int64_t>{3, n} : std::vector<int64_t>{n, 3}, i));
      names += (i ? ", %x" : "%x") + std::to_string(i);
      operands += (i ? ", " : "") + types.back();
    }
    std::string out = rows ? "tensor<3x" + std::to_string(total) + "xf32>" : "tensor<" + std::to_string(total) + "x3xf32>";
    EXPECT_MATCH(function(types, out,
                          "%r = \"hlo.concatenate\"(" + names + ") {dimension = " + (rows ? "1" : "0") + " : i64} : (" + operands +
                              ") -> " + out),
                 inputs, 0);
  }
}

TEST(Library, SortsStably) {
  for (std::string e : {"f32", "i32", "i8"}) {
    std::string t = "tensor<3x101x2x" + e + ">", s = "tensor<" + e + ">";
    EXPECT_MATCH(function({t}, t,
                          "%r = \"hlo.sort\"(%x0) ({\n^bb0(%p: " + s + ", %q: " + s +
                              "):\n%w = \"hlo.compare\"(%p, %q) {comparison_direction = #hlo<comparison_direction LT>} : (" + s +
                              ", " + s + ") -> tensor<i1>\n\"hlo.return\"(%w) : (tensor<i1>) -> ()\n}) {dimension = 1 : i64, is_stable = "
                              "true} : (" + t + ") -> " + t),
                 {randomTensor(dtypeOf(e), {3, 101, 2}, 1, 100)}, 0);
  }
}

TEST(Library, TopK) {
  auto topK = [](const std::string &elem, int64_t n, int64_t k, const char *result) {
    const std::string rows = "tensor<3x", t = rows + std::to_string(n) + "x" + elem + ">",
                      r = rows + std::to_string(k) + "x", v = r + elem + ">", o = r + "i32>";
    return function({t}, *result == 'v' ? v : o,
                    "%" + std::string(*result == 'v' ? "r, %i" : "v, %r") + " = \"hlo.top_k\"(%x0) {k = " +
                        std::to_string(k) + " : i64} : (" + t + ") -> (" + v + ", " + o + ")");
  };
  // in vectors of one, some and too many registers; as many as there are
  for (std::string elem : {"f32", "f64", "i32", "i64", "bf16"})
    for (auto [n, k] : {std::pair(301, 1),
                        {301, 5},
                        {301, 16},
                        {301, 33},
                        {301, 64},
                        {301, 100},
                        {64, 64},
                        {7, 7},
                        {7, 3},
                        {1, 1}})
      for (const char *result : {"values", "indices"}) {
        const double range = k == 5 ? 3 : 100; // many alike
        EXPECT_MATCH(topK(elem, n, k, result), {randomTensor(dtypeOf(elem), {3, n}, 1, range)}, 0);
      }
  Tensor odd = randomTensor(DType::Float32, {3, 301}, 1, 100);
  float *x = static_cast<float *>(odd.data());
  for (int64_t i = 0; i < 301; i += 40)
    x[i] = NAN;
  for (int64_t i = 301; i < 602; ++i)
    x[i] = i % 50 ? -INFINITY : -3e38f;
  x[700] = INFINITY;
  for (int64_t k : {3, 12, 20})
    EXPECT_MATCH(topK("f32", 301, k, "indices"), {odd}, 0);
}

static std::string window(const std::string &in, const std::string &out, const std::string &e, const std::string &op,
                          const std::string &init, const std::string &attrs) {
  std::string s = "tensor<" + e + ">";
  return function({in}, out,
                  "%i = \"hlo.constant\"() {value = dense<" + init + "> : " + s + "} : () -> " + s +
                      "\n%r = \"hlo.reduce_window\"(%x0, %i) ({\n^bb0(%p: " + s + ", %q: " + s + "):\n%w = \"hlo." + op +
                      "\"(%p, %q) : (" + s + ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s + ") -> ()\n}) {" + attrs + "} : (" +
                      in + ", " + s + ") -> " + out);
}

TEST(Library, ReduceWindow) {
  EXPECT_MATCH(window("tensor<2x9x11x5xf32>", "tensor<2x5x6x5xf32>", "f32", "maximum", "0xFF800000",
                      "window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = "
                      "dense<[[0, 0], [1, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>"),
               {randomTensor(DType::Float32, {2, 9, 11, 5}, 1)}, 0);
}

// Running sums and the like: along rows and across them, from both ends, with and without the element itself,
// in vectors with rests and without, of sizes known or not.
TEST(Library, RunningReductions) {
  auto running = [](const std::vector<int64_t> &dims, size_t axis, bool reverse, bool exclusive,
                    const std::string &e, const std::string &op, const std::string &init, bool known = true) {
    int64_t reach = known ? dims[axis] : int64_t(1) << 40, far = exclusive ? reach : reach - 1,
            near = exclusive ? -1 : 0;
    std::vector<int64_t> windows(dims.size(), 1);
    windows[axis] = reach;
    std::string padding, t = "tensor<", map;
    for (size_t i = 0; i < dims.size(); ++i) {
      auto pair = i != axis ? std::pair<int64_t, int64_t>(0, 0)
                  : reverse ? std::pair(near, far)
                            : std::pair(far, near);
      padding += (i ? ", [" : "[") + std::to_string(pair.first) + ", " + std::to_string(pair.second) + "]";
      t += (known || i != axis ? std::to_string(dims[i]) : "?") + "x";
      map += (i ? ", " : "") + (known || i != axis ? std::to_string(dims[i]) : "s0");
    }
    t += e + (known ? ">" : ", affine_map<()[s0] -> (" + map + ")>>");
    return window(t, t, e, op, init,
                  "window_dimensions = " + list(windows) + ", padding = dense<[" + padding + "]> : tensor<" +
                      std::to_string(dims.size()) + "x2xi64>");
  };
  struct {
    std::vector<int64_t> dims;
    size_t axis;
  } cases[] = {{{3, 17, 19}, 1}, {{2, 5, 601}, 1}, {{9, 4}, 0}, {{5, 83}, 1},
               {{32}, 0},        {{4, 3}, 1},      {{6, 1}, 1}};
  for (auto &[dims, axis] : cases)
    for (bool reverse : {false, true})
      for (bool exclusive : {false, true}) {
        if (dims[axis] == 1 && !exclusive)
          continue;
        std::string what = list(dims) + (reverse ? " reverse" : "") + (exclusive ? " exclusive" : "");
        EXPECT_MATCH(running(dims, axis, reverse, exclusive, "f32", "add", "0.0"),
                     {randomTensor(DType::Float32, dims, 1)}, 1e-5)
            << what;
        EXPECT_HOST_MATCH(running(dims, axis, reverse, exclusive, "i16", "multiply", "1"),
                          {randomTensor(DType::Int16, dims, 1, 3)}, 0)
            << what;
        EXPECT_HOST_MATCH(
            running(dims, axis, reverse, exclusive, "f64", "maximum", "0xFFF0000000000000", false),
            {randomTensor(DType::Float64, dims, 1)}, 0)
            << what;
      }
  EXPECT_HOST_MATCH(running({2, 40}, 1, false, false, "complex<f32>", "add", "(0.0, 0.0)"),
                    {randomTensor(DType::Complex64, {2, 40}, 1)}, 1e-5);
  EXPECT_HOST_MATCH(running({2, 40}, 1, false, true, "bf16", "maximum", "0xFF80"),
                    {randomTensor(DType::BFloat16, {2, 40}, 1)}, 0);
}

TEST(Library, DotGeneral) {
  for (std::string e : {"f32", "i32", "complex<f32>", "bf16"}) {
    std::string a = "tensor<2x5x7x" + e + ">", c = "tensor<7x2x3x" + e + ">", o = "tensor<2x5x3x" + e + ">";
    EXPECT_MATCH(function({a, c}, o,
                          "%r = \"hlo.dot_general\"(%x0, %x1) {dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0], "
                          "rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (" +
                              a + ", " + c + ") -> " + o),
                 {randomTensor(dtypeOf(e), {2, 5, 7}, 1, 3), randomTensor(dtypeOf(e), {7, 2, 3}, 2, 3)},
                 e == "bf16" ? 5e-2 : 1e-5)
        << e;
  }
}

TEST(Library, Convolution) {
  std::string x = "tensor<2x6x7x4xf32>", w = "tensor<3x2x2x6xf32>", o = "tensor<2x3x7x6xf32>";
  EXPECT_MATCH(function({x, w}, o,
                        "%r = \"hlo.convolution\"(%x0, %x1) {window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 1]]> : "
                        "tensor<2x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
                        "feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (" + x + ", " + w + ") -> " + o),
               {randomTensor(DType::Float32, {2, 6, 7, 4}, 1), randomTensor(DType::Float32, {3, 2, 2, 6}, 2)}, 1e-5);
}

// One op with given operand types and attributes; result %r is result `pick` of several.
static std::string plain(const std::string &name, const std::vector<std::string> &in, const std::vector<std::string> &out,
                         const std::string &attrs, size_t pick = 0) {
  std::string ops, types, results, outs;
  for (size_t i = 0; i < in.size(); ++i) {
    ops += (i ? ", %x" : "%x") + std::to_string(i);
    types += (i ? ", " : "") + in[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    results += std::string(i ? ", " : "") + (i == pick ? "%r" : "%o" + std::to_string(i));
    outs += (i ? ", " : "") + out[i];
  }
  return function(in, out[pick], results + " = \"hlo." + name + "\"(" + ops + ") {" + attrs + "} : (" + types + ") -> (" + outs + ")");
}

// a matrix with a dominant diagonal
static Tensor wellConditioned(DType type, int64_t batch, int64_t n) {
  Tensor t = randomTensor(type, {batch, n, n}, 11, 1);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = (b * n + i) * n + i;
      if (type == DType::Float32)
        t.data<float>()[at] = 4 + n;
      else if (type == DType::Float64)
        t.data<double>()[at] = 4 + n;
      else
        t.data<float>()[2 * at] = 4 + n, t.data<float>()[2 * at + 1] = 0;
    }
  return t;
}

TEST(Linalg, Factorisations) {
  for (std::string e : {"f32", "f64", "complex<f32>"}) {
    std::string a = "tensor<2x5x5x" + e + ">", r = "tensor<2x5x3x" + e + ">", real = e == "f64" ? "f64" : "f32";
    double tol = e == "f64" ? 1e-10 : 1e-4;
    Tensor x = wellConditioned(dtypeOf(e), 2, 5), y = randomTensor(dtypeOf(e), {2, 5, 3}, 5);
    for (const char *lower : {"true", "false"}) {
      EXPECT_HOST_MATCH(plain("cholesky", {a}, {a}, std::string("lower = ") + lower), {x}, tol);
      for (const char *t : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"})
        EXPECT_HOST_MATCH(plain("triangular_solve", {a, r}, {r}, std::string("left_side = true, unit_diagonal = false, lower = ") +
                                                                     lower + ", transpose_a = #hlo<transpose " + t + ">"),
                          {x, y}, tol)
            << t << lower;
    }
    std::string wide = "tensor<2x3x5x" + e + ">";
    EXPECT_HOST_MATCH(plain("triangular_solve", {a, wide}, {wide},
                            "left_side = false, unit_diagonal = true, lower = true, transpose_a = #hlo<transpose TRANSPOSE>"),
                      {x, randomTensor(dtypeOf(e), {2, 3, 5}, 5)}, tol);
    Tensor z = randomTensor(dtypeOf(e), {2, 5, 5}, 6);
    EXPECT_HOST_MATCH(plain("cholesky", {a}, {a}, "lower = true"), {z}, tol) << "NaN: not positive definite";
    for (size_t k : {0, 1})
      EXPECT_HOST_MATCH(plain("lu", {a}, {a, "tensor<2x5xi32>"}, "", k), {z}, tol);
    for (size_t k : {0, 1})
      EXPECT_HOST_MATCH(plain("qr", {r}, {r, "tensor<2x3x3x" + e + ">"}, "full_matrices = false", k), {y}, tol);
    for (size_t k : {0, 1})
      EXPECT_HOST_MATCH(plain("eigh", {a}, {"tensor<2x5x" + real + ">", a}, "", k), {z}, tol) << e << k;
    std::string general = e.find("complex") == 0 ? e : "complex<" + e + ">";
    for (size_t k : {0, 1})
      EXPECT_HOST_MATCH(plain("eig", {a}, {"tensor<2x5x" + general + ">", "tensor<2x5x5x" + general + ">"}, "", k), {z}, tol) << e << k;
    for (size_t k : {0, 1, 2})
      EXPECT_HOST_MATCH(plain("svd", {r}, {"tensor<2x3x" + real + ">", r, "tensor<2x3x3x" + e + ">"}, "full_matrices = false", k),
                        {y}, tol)
          << e << k;
    EXPECT_HOST_MATCH(plain("svd", {wide}, {"tensor<2x3x" + real + ">", "tensor<2x3x3x" + e + ">", a}, "full_matrices = true", 0),
                      {randomTensor(dtypeOf(e), {2, 3, 5}, 5)}, tol);
    // from 16 columns on a bidiagonal form comes first, and a triangular one before it where there are few rows
    for (int rows : {1, 3, 5})
      for (size_t k : {0, 1, 2}) {
        std::string n = std::to_string(rows), low = "tensor<2x" + n + "x17x" + e + ">";
        EXPECT_HOST_MATCH(plain("svd", {low}, {"tensor<2x" + n + "x" + real + ">", "tensor<2x" + n + "x" + n + "x" + e + ">",
                                               "tensor<2x17x" + n + "x" + e + ">"}, "full_matrices = false", k),
                          {randomTensor(dtypeOf(e), {2, rows, 17}, 5)}, tol)
            << e << rows << k;
      }
  }
}

// The root of the mean square of what a kernel's transform differs by from the evaluator's in double,
// relative to that of the transform itself; more than 1 for what does not run.
static double fourierError(const std::string &text, const Tensor &in, const std::string &cpu = "host") {
  KernelRun run = runKernel(text, {in}, cpu), reference = runReference(text, {in});
  if (!run.ok || !reference.ok || run.outputs[0].dims() != reference.outputs[0].dims())
    return 2;
  Tensor &x = run.outputs[0], &y = reference.outputs[0];
  bool wide = x.dtype() == DType::Float64 || x.dtype() == DType::Complex128;
  size_t count = x.numElements() * (x.dtype() == DType::Complex64 || x.dtype() == DType::Complex128 ? 2 : 1);
  double off = 0, all = 1e-300;
  for (size_t i = 0; i < count; ++i) {
    double a = wide ? static_cast<double *>(x.data())[i] : static_cast<float *>(x.data())[i];
    double b = wide ? static_cast<double *>(y.data())[i] : static_cast<float *>(y.data())[i];
    off += (a - b) * (a - b);
    all += b * b;
  }
  return std::sqrt(off / all);
}

// fft of one kind over the last dimensions, of these lengths; `rows` are the dimensions before, '?' among
// them at will.
static std::string fourier(const std::string &kind, const std::string &real, const std::string &rows,
                           const std::vector<int64_t> &lengths, const std::string &encoding = "") {
  std::string inner = rows, values;
  for (size_t i = 0; i + 1 < lengths.size(); ++i)
    inner += std::to_string(lengths[i]) + "x";
  int64_t n = lengths.back();
  auto tensor = [&](int64_t size, bool complex) {
    std::string e = encoding;
    if (size_t at = e.find("LAST"); at != std::string::npos)
      e.replace(at, 4, std::to_string(size));
    return "tensor<" + inner + std::to_string(size) + "x" + (complex ? "complex<" + real + ">" : real) + e +
           ">";
  };
  return function({tensor(kind == "IRFFT" ? n / 2 + 1 : n, kind != "RFFT")},
                  tensor(kind == "RFFT" ? n / 2 + 1 : n, kind != "IRFFT"),
                  "%r = \"hlo.fft\"(%x0) {fft_type = #hlo<fft_type " + kind + ">, fft_length = " +
                      list(lengths) + "} : (" + tensor(kind == "IRFFT" ? n / 2 + 1 : n, kind != "RFFT") +
                      ") -> " + tensor(kind == "RFFT" ? n / 2 + 1 : n, kind != "IRFFT"));
}

static Tensor samples(const std::string &kind, const std::string &real, std::vector<int64_t> dims) {
  if (kind == "IRFFT")
    dims.back() = dims.back() / 2 + 1;
  return randomTensor(dtypeOf(kind == "RFFT" ? real : "complex<" + real + ">"), dims, 3);
}

// Powers of two, mixed radices with and without whole vectors, primes and lengths that are convolutions, even
// and odd.
TEST(Fft, EveryKindAndLength) {
  for (int64_t n : {1, 2, 3, 8, 17, 34, 48, 75, 143, 200, 256, 509, 1000})
    for (const char *kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
      EXPECT_LT(fourierError(fourier(kind, "f32", "3x", {n}), samples(kind, "f32", {3, n})), 3e-7)
          << kind << n;
      if (n < 60)
        EXPECT_LT(fourierError(fourier(kind, "f64", "2x", {n}), samples(kind, "f64", {2, n})), 3e-15)
            << kind << n;
    }
}

// Tables of roots in two steps.
TEST(Fft, LongLines) {
  EXPECT_LT(fourierError(fourier("FFT", "f32", "1x", {65536}), samples("FFT", "f32", {1, 65536})), 3e-7);
  EXPECT_LT(fourierError(fourier("IRFFT", "f64", "1x", {155520}), samples("IRFFT", "f64", {1, 155520})),
            3e-15);
}

// Columns fewer and more than lanes, with a rest; a convolution across.
TEST(Fft, SeveralDimensions) {
  for (const char *kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
    for (auto [d, h, w] : {std::tuple(1, 6, 1), {1, 12, 7}, {1, 32, 48}, {1, 19, 38}, {3, 6, 34}}) {
      std::vector<int64_t> lengths{d, h, w};
      EXPECT_LT(fourierError(fourier(kind, "f32", "2x", lengths), samples(kind, "f32", {2, d, h, w})), 3e-7)
          << kind << d << h << w;
      lengths.erase(lengths.begin());
      EXPECT_LT(fourierError(fourier(kind, "f64", std::to_string(d) + "x", lengths),
                             samples(kind, "f64", {d, h, w})),
                3e-15)
          << kind << h << w;
    }
  }
}

TEST(Fft, OtherProcessors) {
  for (const char *cpu : cpus)
    if (hostRuns(cpu))
      for (const char *kind : {"FFT", "IFFT", "RFFT", "IRFFT"})
        for (int64_t n : {34, 120})
          EXPECT_LT(fourierError(fourier(kind, "f32", "2x", {6, n}), samples(kind, "f32", {2, 6, n}), cpu),
                    3e-7)
              << cpu << kind << n;
}

// Nothing to transform, and the number of rows known at run time only.
TEST(Fft, EmptyAndUnknownRows) {
  EXPECT_HOST_MATCH(plain("fft", {"tensor<3x0xf32>"}, {"tensor<3x0xcomplex<f32>>"},
                          "fft_type = #hlo<fft_type RFFT>, fft_length = array<i64: 0>"),
                    {randomTensor(DType::Float32, {3, 0}, 1)}, 0);
  for (const char *kind : {"FFT", "IFFT", "RFFT", "IRFFT"})
    for (int64_t rows : {0, 1, 5})
      EXPECT_LT(fourierError(fourier(kind, "f32", "?x", {24}, ", affine_map<()[s0] -> (s0, LAST)>"),
                             samples(kind, "f32", {rows, 24})),
                3e-7)
          << kind << rows;
}

TEST(Library, RandomBits) {
  for (const char *algorithm : {"PHILOX", "THREE_FRY", "DEFAULT"})
    for (std::string e : {"ui32", "i64", "ui8", "f32"})
      for (size_t k : {0, 1}) {
        std::string n = algorithm[0] == 'T' ? "2" : "3";
        std::string state = "tensor<" + n + "xui64>";
        EXPECT_HOST_MATCH(plain("rng_bit_generator", {state}, {state, "tensor<7x333x" + e + ">"},
                                std::string("rng_algorithm = #hlo<rng_algorithm ") + algorithm + ">", k),
                          {randomTensor(DType::UInt64, {std::stoll(n)}, 3, 1e18)}, 0)
            << algorithm << e;
      }
}

static const char *symbols = "module attributes {hlo.symbols = [{name = \"k\", bound = 60 : i64, kind = \"data\"}]} {\n";

TEST(Library, WhereAndUnique) {
  EXPECT_HOST_MATCH(symbols + plain("where", {"tensor<6x10xi1>"}, {"tensor<?x2xi64, affine_map<()[s0] -> (s0, 2)>>"}, "symbol = 0 : i64") + "}",
                    {randomTensor(DType::Bool, {6, 10}, 3)}, 0);
  std::string v = "tensor<?xi32, affine_map<()[s0] -> (s0)>>", c = "tensor<?xi64, affine_map<()[s0] -> (s0)>>";
  for (size_t k : {0, 1, 2})
    EXPECT_HOST_MATCH(symbols + plain("unique", {"tensor<60xi32>"}, {v, "tensor<60xi64>", c}, "symbol = 0 : i64, axis = 0 : i64", k) + "}",
                      {randomTensor(DType::Int32, {60}, 3, 9)}, 0);
}

TEST(Library, BitcastsAndUpdates) {
  EXPECT_HOST_MATCH(plain("bitcast_convert", {"tensor<5x4xui8>"}, {"tensor<5xf32>"}, ""), {randomTensor(DType::UInt8, {5, 4}, 3, 60)}, 0);
  EXPECT_HOST_MATCH(plain("bitcast_convert", {"tensor<5xf64>"}, {"tensor<5x4xi16>"}, ""), {randomTensor(DType::Float64, {5}, 3)}, 0);
  std::string x = "tensor<7x9x4xf32>", u = "tensor<2x3x4xf32>", i = "tensor<i32>";
  for (const char *attrs : {"", "kernel.inplace"})
    EXPECT_HOST_MATCH(plain("dynamic_update_slice", {x, u, i, i, i}, {x}, attrs),
                      {randomTensor(DType::Float32, {7, 9, 4}, 3), randomTensor(DType::Float32, {2, 3, 4}, 4), tensorOf(std::vector<int32_t>{9}, {}),
                       tensorOf(std::vector<int32_t>{2}, {}), tensorOf(std::vector<int32_t>{0}, {})},
                      0);
  EXPECT_HOST_MATCH(plain("dynamic_slice", {x, i, i, i}, {u}, "slice_sizes = array<i64: 2, 3, 4>"),
                    {randomTensor(DType::Float32, {7, 9, 4}, 3), tensorOf(std::vector<int32_t>{-2}, {}),
                     tensorOf(std::vector<int32_t>{5}, {}), tensorOf(std::vector<int32_t>{1}, {})},
                    0);
}

TEST(Library, SelectAndScatter) {
  std::string x = "tensor<1x6x6x3xf32>", g = "tensor<1x3x3x3xf32>", s = "tensor<f32>";
  EXPECT_HOST_MATCH(function({x, g}, x,
                             "%i = \"hlo.constant\"() {value = dense<0.0> : " + s + "} : () -> " + s +
                                 "\n%r = \"hlo.select_and_scatter\"(%x0, %x1, %i) ({\n^bb0(%p: " + s + ", %q: " + s +
                                 "):\n%w = \"hlo.compare\"(%p, %q) {comparison_direction = #hlo<comparison_direction GE>} : (" + s +
                                 ", " + s + ") -> tensor<i1>\n\"hlo.return\"(%w) : (tensor<i1>) -> ()\n}, {\n^bb0(%p: " + s + ", %q: " + s +
                                 "):\n%w = \"hlo.add\"(%p, %q) : (" + s + ", " + s + ") -> " + s + "\n\"hlo.return\"(%w) : (" + s +
                                 ") -> ()\n}) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (" +
                                 x + ", " + g + ", " + s + ") -> " + x),
                    {randomTensor(DType::Float32, {1, 6, 6, 3}, 3), randomTensor(DType::Float32, {1, 3, 3, 3}, 4)}, 0);
}

} // namespace lathe::test
