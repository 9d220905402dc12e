#include "EvalTest.h"

using namespace lathe;
using namespace lathe::hlo;
using eval::Complex;

namespace {

struct EvalLinalg : EvalTest {
  static Tensor c64(std::vector<int64_t> dims, std::vector<Complex> values) {
    Tensor t = Tensor::allocate(DType::Complex64, dims);
    eval::storeComplexes(DType::Complex64, values.data(), values.size(), t.data());
    return t;
  }
  static Tensor c128(std::vector<int64_t> dims, std::vector<Complex> values) {
    Tensor t = Tensor::allocate(DType::Complex128, dims);
    eval::storeComplexes(DType::Complex128, values.data(), values.size(), t.data());
    return t;
  }
};

TEST_F(EvalLinalg, CholeskyAndSolve) {
  auto r = run(R"(func.func @f(%a: tensor<2x2xf64>, %b: tensor<2x1xf64>) -> (tensor<2x2xf64>, tensor<2x1xf64>) {
    %0 = "hlo.cholesky"(%a) <{lower = true}> : (tensor<2x2xf64>) -> tensor<2x2xf64>
    %1 = "hlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #hlo<transpose TRANSPOSE>}> : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    return %0, %1 : tensor<2x2xf64>, tensor<2x1xf64> })",
               {make(DType::Float64, {2, 2}, {4, 99, 2, 5}), make(DType::Float64, {2, 1}, {4, 2})});
  expect(r[0], {2, 2}, {2, 0, 1, 2}, 1e-15);
  expect(r[1], {2, 1}, {1.5, 1}, 1e-15); // [2 1; 0 2] x = [4 2]
}

// TensorFlow's numbers, signs of vectors too.
TEST_F(EvalLinalg, SymmetricEigenvectors) {
  auto r = run(R"(func.func @f(%a: tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>) {
    %w, %v = "hlo.eigh"(%a) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
    return %w, %v : tensor<3xf64>, tensor<3x3xf64> })",
               {make(DType::Float64, {3, 3}, {2, 99, 99, 1, -3, 99, 0, 1, 4})});
  expect(r[0], {3}, {-3.32434738, 2.17474532, 4.14960207}, 1e-7);
  expect(r[1], {3, 3},
         {0.18294927, 0.98072138, 0.06866681, -0.97408546, 0.17137647, 0.14760632, 0.1329928, -0.09389181, 0.98665964}, 1e-7);
}

TEST_F(EvalLinalg, GeneralEigenvalues) {
  // a real matrix with a pair of complex eigenvalues, and a defective one
  std::vector<double> a{1, 2, 0, -3, 1, 1, 0, 1, 2, /**/ 2, 1, 0, 0, 2, 1, 0, 0, 2};
  auto r = run(R"(func.func @f(%a: tensor<2x3x3xf64>) -> (tensor<2x3xcomplex<f64>>, tensor<2x3x3xcomplex<f64>>) {
    %w, %v = "hlo.eig"(%a) : (tensor<2x3x3xf64>) -> (tensor<2x3xcomplex<f64>>, tensor<2x3x3xcomplex<f64>>)
    return %w, %v : tensor<2x3xcomplex<f64>>, tensor<2x3x3xcomplex<f64>> })",
               {make(DType::Float64, {2, 3, 3}, a)});
  auto w = eval::loadComplexes(r[0]), v = eval::loadComplexes(r[1]);
  for (int m = 0; m < 2; ++m)
    for (int j = 0; j < 3; ++j) {
      if (j)
        EXPECT_LE(std::abs(w[m * 3 + j - 1]), std::abs(w[m * 3 + j]) + 1e-12);
      double length = 0;
      for (int i = 0; i < 3; ++i) {
        Complex sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += a[m * 9 + i * 3 + k] * v[m * 9 + k * 3 + j];
        EXPECT_LT(std::abs(sum - w[m * 3 + j] * v[m * 9 + i * 3 + j]), m ? 1e-4 : 1e-12) << m << i << j;
        length += std::norm(v[m * 9 + i * 3 + j]);
      }
      EXPECT_NEAR(length, 1, 1e-12);
    }
}

TEST_F(EvalLinalg, Factorisations) {
  std::vector<double> a{1, 2, 3, 4, 5, 6, 7, 8, 10, -1, 2, 0};
  auto r = run(R"(func.func @f(%a: tensor<4x3xf64>, %s: tensor<3x3xf64>) -> (tensor<4x3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<4x3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>, tensor<3xi32>) {
    %q, %r = "hlo.qr"(%a) : (tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3x3xf64>)
    %sv, %u, %v = "hlo.svd"(%a) : (tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>, tensor<3x3xf64>)
    %w, %x = "hlo.eigh"(%s) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
    %lu, %p = "hlo.lu"(%s) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>)
    return %q, %r, %sv, %u, %v, %w, %x, %lu, %p : tensor<4x3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<4x3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>, tensor<3xi32> })",
               {make(DType::Float64, {4, 3}, a), make(DType::Float64, {3, 3}, {2, 1, 0, 1, 3, -1, 0, -1, 4})});
  auto q = eval::loadFloats(r[0]), rr = eval::loadFloats(r[1]), s = eval::loadFloats(r[2]), u = eval::loadFloats(r[3]),
       v = eval::loadFloats(r[4]), w = eval::loadFloats(r[5]), x = eval::loadFloats(r[6]), l = eval::loadFloats(r[7]);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) {
      double byQr = 0, bySvd = 0;
      for (int k = 0; k < 3; ++k) {
        byQr += q[i * 3 + k] * rr[k * 3 + j];
        bySvd += u[i * 3 + k] * s[k] * v[j * 3 + k];
      }
      EXPECT_NEAR(byQr, a[i * 3 + j], 1e-13);
      EXPECT_NEAR(bySvd, a[i * 3 + j], 1e-13);
    }
  EXPECT_LT(rr[0], 0); // the sign of a Householder reflection of a positive head
  EXPECT_EQ(rr[3], 0);
  std::vector<double> sym{2, 1, 0, 1, 3, -1, 0, -1, 4};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int k = 0; k < 3; ++k)
        sum += x[i * 3 + k] * w[k] * x[j * 3 + k];
      EXPECT_NEAR(sum, sym[i * 3 + j], 1e-13);
    }
  EXPECT_LT(w[0], w[1]);
  EXPECT_NEAR(l[0] * l[4] * l[8], 18, 1e-13);
  expect(r[8], {3}, {0, 1, 2});
}

// What TensorFlow gives, by Eigen's JacobiSVD and (2 rows, 16 columns) BDCSVD.
TEST_F(EvalLinalg, SignsOfSingularVectors) {
  std::vector<double> low;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 16; ++j)
      low.push_back((i * 7 + j * 5) % 11 - 4);
  auto r = run(R"(func.func @f(%a: tensor<3x2xf64>, %b: tensor<2x16xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<16x2xf64>) {
    %s, %u, %v = "hlo.svd"(%a) : (tensor<3x2xf64>) -> (tensor<2xf64>, tensor<3x2xf64>, tensor<2x2xf64>)
    %t, %w, %x = "hlo.svd"(%b) : (tensor<2x16xf64>) -> (tensor<2xf64>, tensor<2x2xf64>, tensor<16x2xf64>)
    return %u, %v, %w, %x : tensor<3x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<16x2xf64> })",
               {make(DType::Float64, {3, 2}, {1, 2, 3, -1, 0, 4}), make(DType::Float64, {2, 16}, low)});
  auto near = [](const Tensor &t, std::vector<double> wanted) {
    std::vector<double> values = eval::loadFloats(t);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(values[i], wanted[i], 1e-6) << i;
  };
  near(r[0], {0.414187, 0.373435, -0.275537, 0.920611, 0.867484, 0.114112});
  near(r[1], {-0.089806, 0.995959, 0.995959, 0.089806});
  near(r[2], {0.875343, 0.483502, -0.483502, 0.875343});
  near(r[3], {-0.336837, 0.057895, 0.158209, -0.179244, 0.291478, 0.389162});
}

TEST_F(EvalLinalg, ComplexFactorisations) {
  std::vector<Complex> a{{1, 1}, {2, 0}, {0, -1}, {3, 2}};
  auto r = run(R"(func.func @f(%a: tensor<2x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) {
    %q, %r = "hlo.qr"(%a) : (tensor<2x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>)
    %s, %u, %v = "hlo.svd"(%a) : (tensor<2x2xcomplex<f32>>) -> (tensor<2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>)
    return %q, %r, %s, %u, %v : tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>> })",
               {c64({2, 2}, a)});
  auto q = eval::loadComplexes(r[0]), rr = eval::loadComplexes(r[1]), u = eval::loadComplexes(r[3]), v = eval::loadComplexes(r[4]);
  auto s = eval::loadFloats(r[2]);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      Complex byQr, bySvd;
      for (int k = 0; k < 2; ++k) {
        byQr += q[i * 2 + k] * rr[k * 2 + j];
        bySvd += u[i * 2 + k] * s[k] * std::conj(v[j * 2 + k]);
      }
      EXPECT_LT(std::abs(byQr - a[i * 2 + j]), 1e-5);
      EXPECT_LT(std::abs(bySvd - a[i * 2 + j]), 1e-5);
    }
}

// op(A) X = B or X op(A) = B for every combination, by putting the solution in.
TEST_F(EvalLinalg, TriangularSolveAllWays) {
  std::vector<Complex> a{{2, 1}, {9, 9}, {1, -1}, {3, 2}}, b{{1, 0}, {2, -1}, {0, 3}, {1, 1}};
  for (bool left : {true, false})
    for (bool lower : {true, false})
      for (bool unit : {true, false})
        for (const char *transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
          auto flag = [](bool value) { return value ? "true" : "false"; };
          auto r = run(std::string(R"(func.func @f(%a: tensor<2x2xcomplex<f64>>, %b: tensor<2x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>> {
            %0 = "hlo.triangular_solve"(%a, %b) <{left_side = )") + flag(left) + ", lower = " + flag(lower) +
                           ", unit_diagonal = " + flag(unit) + ", transpose_a = #hlo<transpose " + transpose +
                           R"(>}> : (tensor<2x2xcomplex<f64>>, tensor<2x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
            return %0 : tensor<2x2xcomplex<f64>> })",
                       {c128({2, 2}, a), c128({2, 2}, b)});
          auto x = eval::loadComplexes(r[0]);
          Complex m[2][2];
          for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
              Complex value = i == j ? (unit ? Complex(1) : a[i * 2 + j]) : (lower == (i > j) ? a[i * 2 + j] : Complex());
              bool swap = transpose[0] != 'N';
              (swap ? m[j][i] : m[i][j]) = transpose[0] == 'A' ? std::conj(value) : value;
            }
          for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
              Complex sum;
              for (int k = 0; k < 2; ++k)
                sum += left ? m[i][k] * x[k * 2 + j] : x[i * 2 + k] * m[k][j];
              EXPECT_LT(std::abs(sum - b[i * 2 + j]), 1e-13) << left << lower << unit << transpose;
            }
        }
}

TEST_F(EvalLinalg, FourierBothWays) {
  std::vector<double> x{1, 2, -3, 4, 5, 0.5};
  auto r = run(R"(func.func @f(%a: tensor<6xf32>, %c: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<6xf32>, tensor<4xcomplex<f32>>) {
    %0 = "hlo.fft"(%a) <{fft_type = #hlo<fft_type RFFT>, fft_length = array<i64: 6>}> : (tensor<6xf32>) -> tensor<4xcomplex<f32>>
    %1 = "hlo.fft"(%0) <{fft_type = #hlo<fft_type IRFFT>, fft_length = array<i64: 6>}> : (tensor<4xcomplex<f32>>) -> tensor<6xf32>
    %2 = "hlo.fft"(%c) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 4>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    return %0, %1, %2 : tensor<4xcomplex<f32>>, tensor<6xf32>, tensor<4xcomplex<f32>> })",
               {f32({6}, x), c64({4}, {1, 0, 0, 0})});
  auto half = eval::loadComplexes(r[0]);
  for (int k = 0; k < 4; ++k) {
    Complex sum;
    for (int j = 0; j < 6; ++j)
      sum += x[j] * std::polar(1.0, -2 * M_PI * k * j / 6);
    EXPECT_LT(std::abs(sum - half[k]), 1e-5);
  }
  expect(r[1], {6}, x, 1e-6);
  for (Complex value : eval::loadComplexes(r[2]))
    EXPECT_LT(std::abs(value - 1.0), 1e-6);
}

TEST_F(EvalLinalg, BatchNorm) {
  auto r = run(R"(func.func @f(%x: tensor<2x2xf32>, %s: tensor<2xf32>, %o: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) {
    %y, %m, %v = "hlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
    return %y, %m, %v : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32> })",
               {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 2}), f32({2}, {0, 1})});
  expect(r[0], {2, 2}, {-1, -1, 1, 3});
  expect(r[1], {2}, {2, 3});
  expect(r[2], {2}, {1, 1});
}

// Threefry 2x32-20 and Philox 4x32-10 of zero key and counter, as published with Random123.
TEST_F(EvalLinalg, RandomBits) {
  auto r = run(R"(func.func @f(%k: tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>, tensor<4xui32>) {
    %s, %a = "hlo.rng_bit_generator"(%k) <{rng_algorithm = #hlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
    %t, %b = "hlo.rng_bit_generator"(%k) <{rng_algorithm = #hlo<rng_algorithm PHILOX>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    return %s, %a, %b : tensor<2xui64>, tensor<2xui32>, tensor<4xui32> })",
               {make<int64_t>(DType::UInt64, {2}, {0, 0})});
  expect(r[0], {2}, {0, 1});
  expect(r[1], {2}, {0x6b200159u, 0x99ba4efeu});
  expect(r[2], {4}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
}

} // namespace
