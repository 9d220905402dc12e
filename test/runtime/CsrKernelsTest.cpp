// Sparse matrices in compressed rows against dense arithmetic, and what they refuse. Cases recorded from TensorFlow are in
// test/conform; this covers what TensorFlow has for GPUs alone, and inputs that would end its process.
#include "test/runtime/KernelTest.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>

namespace lathe::rt {
namespace {

using Complex = std::complex<double>;
using Result = absl::StatusOr<std::vector<Tensor>>;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr DType kType = DType::Complex128;

Result run(std::string op, AttrMap attrs, std::vector<Value> inputs) { return KernelTest(std::move(op), std::move(attrs)).run(std::move(inputs)); }
Tensor one(std::string op, AttrMap attrs, std::vector<Value> inputs) {
  Result r = run(op, std::move(attrs), std::move(inputs));
  EXPECT_TRUE(r.ok()) << op << ": " << r.status();
  return r.ok() ? (*r)[0] : Tensor();
}

Tensor full(std::vector<int64_t> dims, const std::vector<Complex> &values) {
  return Tensor::vector<Complex>(kType, values).reshaped(std::move(dims));
}

/// Random numbers, a third of them not 0.
Tensor randomDense(std::vector<int64_t> dims, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::allocate(kType, std::move(dims));
  for (int64_t i = 0; i < t.numElements(); ++i)
    if (random() % 3 == 0)
      t.data<Complex>()[i] = {static_cast<double>(random() % 19) - 9, static_cast<double>(random() % 19) - 9};
  return t;
}

Tensor sparse(const Tensor &dense) {
  std::vector<int64_t> flat;
  for (int64_t i = 0; i < dense.numElements(); ++i) {
    if (dense.data<Complex>()[i] == Complex())
      continue;
    std::vector<int64_t> place(dense.rank());
    int64_t rest = i;
    for (int64_t d = dense.rank(); d-- > 0; rest /= dense.dim(d))
      place[d] = rest % dense.dim(d);
    flat.insert(flat.end(), place.begin(), place.end());
  }
  int64_t n = static_cast<int64_t>(flat.size()) / dense.rank();
  return one("DenseToCSRSparseMatrix", {{"T", kType}}, {dense, longs(flat).reshaped({n, dense.rank()})});
}
Tensor dense(const Tensor &matrix) { return one("CSRSparseMatrixToDense", {{"type", kType}}, {matrix}); }

void expectSame(const Tensor &got, const Tensor &want) {
  ASSERT_EQ(got.dims(), want.dims());
  for (int64_t i = 0; i < want.numElements(); ++i)
    ASSERT_LE(std::abs(got.data<Complex>()[i] - want.data<Complex>()[i]), 1e-9) << i;
}

/// Matrices of a tensor of rank 2 or 3 with rows and columns exchanged and conjugated.
Tensor turned(const Tensor &t, bool transposed, bool conjugate) {
  std::vector<int64_t> dims = t.dims();
  int64_t rows = t.dim(t.rank() - 2), cols = t.dim(t.rank() - 1);
  if (transposed)
    std::swap(dims[t.rank() - 2], dims[t.rank() - 1]);
  Tensor out = Tensor::allocate(kType, dims);
  for (int64_t i = 0; i < t.numElements(); ++i) {
    int64_t b = i / (rows * cols), r = i / cols % rows, c = i % cols;
    Complex v = t.data<Complex>()[i];
    out.data<Complex>()[transposed ? (b * cols + c) * rows + r : i] = conjugate ? std::conj(v) : v;
  }
  return out;
}
Tensor product(const Tensor &a, const Tensor &b) {
  int64_t m = a.dim(a.rank() - 2), k = a.dim(a.rank() - 1), n = b.dim(b.rank() - 1);
  std::vector<int64_t> dims = a.dims();
  dims.back() = n;
  Tensor out = Tensor::allocate(kType, dims);
  for (int64_t i = 0; i < out.numElements(); ++i)
    for (int64_t j = 0; j < k; ++j)
      out.data<Complex>()[i] += a.data<Complex>()[i / n * k + j] * b.data<Complex>()[(i / (m * n) * k + j) * n + i % n];
  return out;
}

AttrMap forms(bool transposeA, bool adjointA, bool transposeB, bool adjointB) {
  return {{"transpose_a", transposeA}, {"adjoint_a", adjointA}, {"transpose_b", transposeB}, {"adjoint_b", adjointB}};
}

TEST(CsrMatrices, productsInAllForms) {
  for (int form = 0; form < 36; ++form) {
    int fa = form % 3, fb = form / 3 % 3, fo = form / 9;
    bool batched = form % 2;
    std::vector<int64_t> ad = fa ? std::vector<int64_t>{5, 4} : std::vector<int64_t>{4, 5};
    std::vector<int64_t> bd = fb ? std::vector<int64_t>{3, 5} : std::vector<int64_t>{5, 3};
    if (batched) {
      ad.insert(ad.begin(), 2);
      bd.insert(bd.begin(), 2);
    }
    Tensor a = randomDense(ad, form), b = randomDense(bd, form + 100);
    Tensor want = product(turned(a, fa > 0, fa == 2), turned(b, fb > 0, fb == 2));
    AttrMap attrs = forms(fa == 1, fa == 2, fb == 1, fb == 2);
    AttrMap both = attrs;
    both["type"] = kType;
    expectSame(dense(one("SparseMatrixSparseMatMul", both, {sparse(a), sparse(b)})), want);
    attrs["T"] = kType;
    attrs["transpose_output"] = (fo & 1) != 0;
    attrs["conjugate_output"] = (fo & 2) != 0;
    expectSame(one("SparseMatrixMatMul", attrs, {sparse(a), b}), turned(want, fo & 1, fo & 2));
  }
}

TEST(CsrMatrices, addMultiplyTransposeAndZeros) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{4, 6}, std::vector<int64_t>{3, 4, 6}}) {
    Tensor a = randomDense(dims, 1), b = randomDense(dims, 2), want = Tensor::allocate(kType, dims);
    Complex alpha(2, -1), beta(0.5, 3);
    for (int64_t i = 0; i < a.numElements(); ++i)
      want.data<Complex>()[i] = alpha * a.data<Complex>()[i] + beta * b.data<Complex>()[i];
    Tensor sum = one("SparseMatrixAdd", {{"T", kType}}, {sparse(a), sparse(b), Tensor::scalar(kType, alpha), Tensor::scalar(kType, beta)});
    expectSame(dense(sum), want);
    for (int64_t i = 0; i < a.numElements(); ++i)
      want.data<Complex>()[i] = 2.0 * a.data<Complex>()[i] + b.data<Complex>()[i];
    expectSame(dense(one("AddN", {{"T", DType::Variant}, {"N", int64_t(3)}}, {sparse(a), sparse(b), sparse(a)})), want);
    for (int64_t i = 0; i < a.numElements(); ++i)
      want.data<Complex>()[i] = alpha * a.data<Complex>()[i];
    expectSame(dense(one("SparseMatrixMul", {{"T", kType}}, {sparse(a), Tensor::scalar(kType, alpha)})), want);
    for (bool conjugate : {false, true})
      expectSame(dense(one("SparseMatrixTranspose", {{"type", kType}, {"conjugate", conjugate}}, {sparse(a)})), turned(a, true, conjugate));
    expectSame(dense(one("Conj", {{"T", DType::Variant}}, {sparse(a)})), turned(a, false, true));
    expectSame(one("Conj", {{"T", kType}}, {a}), turned(a, false, true));
    Tensor zeros = one("ZerosLike", {{"T", DType::Variant}}, {sparse(a)});
    expectSame(dense(zeros), Tensor::allocate(kType, dims));
    expectSame(dense(one("SparseMatrixZeros", {{"type", kType}}, {longs(dims)})), Tensor::allocate(kType, dims));
    int32_t entries = 0, counted = 0;
    for (int64_t i = 0; i < a.numElements(); ++i)
      entries += a.data<Complex>()[i] != Complex();
    Tensor nnz = one("SparseMatrixNNZ", {}, {sparse(a)});
    EXPECT_EQ(nnz.rank(), static_cast<int64_t>(dims.size()) - 2);
    for (int32_t n : elements<int32_t>(nnz))
      counted += n;
    EXPECT_EQ(counted, entries);
  }
  Tensor batch = randomDense({2, 3, 3}, 3), want = batch.clone();
  for (int64_t i = 0; i < 18; ++i)
    want.data<Complex>()[i] *= i < 9 ? Complex(2, 0) : Complex(0, 1);
  expectSame(dense(one("SparseMatrixMul", {{"T", kType}}, {sparse(batch), full({2, 1, 1}, {{2, 0}, {0, 1}})})), want);
  EXPECT_EQ(run("SparseMatrixMul", {{"T", kType}}, {sparse(batch), full({3, 1, 1}, {1, 2, 3})}).status().code(), kInvalid);
  EXPECT_EQ(run("SparseMatrixMul", {{"T", kType}}, {sparse(batch), full({2}, {1, 2})}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CsrMatrices, areElementsOfListsAndTensors) {
  Tensor a = randomDense({2, 3}, 5), b = randomDense({2, 4, 1}, 6);
  const AttrMap element = {{"element_dtype", DType::Variant}};
  AttrMap shaped = element;
  shaped["shape_type"] = DType::Int32;
  Tensor scalar = Tensor::allocate(DType::Int32, {0});
  Tensor list = one("EmptyTensorList", shaped, {scalar, int0(-1)});
  for (const Tensor &t : {a, b})
    list = one("TensorListPushBack", element, {list, sparse(t)});
  Tensor both = one("TensorListGather", element, {list, ints({1, 0, 1}), scalar});
  ASSERT_EQ(both.dims(), std::vector<int64_t>{3});
  const AttrMap gather = {{"Tparams", DType::Variant}, {"Tindices", DType::Int32}, {"Taxis", DType::Int32}};
  for (int32_t i = 0; i < 3; ++i)
    expectSame(dense(one("GatherV2", gather, {both, int0(i), int0(0)})), i == 1 ? a : b);
  expectSame(dense(one("TensorListGetItem", element, {list, int0(1), scalar})), b);
}

TEST(CsrMatrices, softmaxOfWhatIsThere) {
  // row 0: 1 and 2, row 1: nothing, row 2: 5
  Tensor matrix = one("SparseTensorToCSRSparseMatrix", {{"T", DType::Float32}},
                      {longs({0, 0, 0, 2, 2, 1}).reshaped({3, 2}), floats({1, 2, 5}), longs({3, 3})});
  const AttrMap type = {{"type", DType::Float32}};
  Tensor soft = one("SparseMatrixSoftmax", type, {matrix});
  float p = 1 / (1 + std::exp(1.0f));
  std::vector<float> want = {p, 0, 1 - p, 0, 0, 0, 0, 1, 0}, got = elements<float>(one("CSRSparseMatrixToDense", type, {soft}));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-6);
  // the other matrix has no entry at [0, 2] and [2, 1], and one that the softmax lacks
  Tensor grad = one("SparseTensorToCSRSparseMatrix", {{"T", DType::Float32}},
                    {longs({0, 0, 1, 1}).reshaped({2, 2}), floats({3, 7}), longs({3, 3})});
  want = {p * (3 - 3 * p), 0, (1 - p) * (-3 * p), 0, 0, 0, 0, 0, 0};
  got = elements<float>(one("CSRSparseMatrixToDense", type, {one("SparseMatrixSoftmaxGrad", type, {soft, grad})}));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-6);
}

/// A positive definite matrix with a pattern of its own.
Tensor definite(int64_t n, uint32_t seed, std::vector<int64_t> dims) {
  Tensor all = Tensor::allocate(kType, dims);
  for (int64_t b = 0; b < all.numElements() / (n * n); ++b) {
    Tensor half = randomDense({n, n}, seed + static_cast<uint32_t>(b)), square = product(half, turned(half, true, true));
    for (int64_t i = 0; i < n * n; ++i)
      all.data<Complex>()[b * n * n + i] = square.data<Complex>()[i] + (i % (n + 1) == 0 ? 10.0 : 0.0);
  }
  return all;
}

TEST(CsrMatrices, choleskyInTheOrderThatIsFound) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{9, 9}, std::vector<int64_t>{3, 9, 9}}) {
    const int64_t n = 9;
    Tensor a = definite(n, 7, dims), matrix = sparse(a);
    Tensor order = one("SparseMatrixOrderingAMD", {}, {matrix});
    ASSERT_EQ(order.dims(), std::vector<int64_t>(dims.begin(), dims.end() - 1));
    Tensor permuted = Tensor::allocate(kType, dims);
    for (int64_t b = 0; b < a.numElements() / (n * n); ++b) {
      std::vector<int32_t> p(order.data<int32_t>() + b * n, order.data<int32_t>() + (b + 1) * n), sorted = p;
      for (int64_t i = 0; i < n * n; ++i)
        permuted.data<Complex>()[b * n * n + i] = a.data<Complex>()[b * n * n + p[i / n] * n + p[i % n]];
      std::sort(sorted.begin(), sorted.end());
      for (int32_t i = 0; i < n; ++i)
        EXPECT_EQ(sorted[i], i);
    }
    Tensor lower = dense(one("SparseMatrixSparseCholesky", {{"type", kType}}, {matrix, order}));
    for (int64_t i = 0; i < lower.numElements(); ++i)
      if (i % n > i / n % n)
        EXPECT_EQ(lower.data<Complex>()[i], Complex());
    expectSame(product(lower, turned(lower, true, true)), permuted);
  }
}

TEST(CsrMatrices, theOrderKeepsFillAway) {
  // a star whose centre comes first: eliminating it first fills the whole matrix
  const int64_t n = 200;
  std::vector<int64_t> flat;
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    flat.insert(flat.end(), {i, 0});
    values.push_back(i ? 1.0f : 1000.0f);
    if (i) {
      flat.insert(flat.end(), {i, i});
      values.push_back(10);
    }
  }
  Tensor star = one("SparseTensorToCSRSparseMatrix", {{"T", DType::Float32}},
                    {longs(flat).reshaped({2 * n - 1, 2}), floats(values), longs({n, n})});
  Tensor order = one("SparseMatrixOrderingAMD", {}, {star}), natural = ints({});
  natural = Tensor::allocate(DType::Int32, {n});
  for (int32_t i = 0; i < n; ++i)
    natural.data<int32_t>()[i] = i;
  const AttrMap type = {{"type", DType::Float32}};
  auto entries = [&](const Tensor &p) { return *one("SparseMatrixNNZ", {}, {one("SparseMatrixSparseCholesky", type, {star, p})}).data<int32_t>(); };
  EXPECT_EQ(entries(order), 2 * n - 1);
  EXPECT_EQ(entries(natural), n * (n + 1) / 2);
}

TEST(CsrMatrices, refuseWrongInputs) {
  const AttrMap t = {{"T", DType::Float32}}, type = {{"type", DType::Float32}};
  auto made = [&](std::vector<int64_t> indices, int64_t rank, std::vector<int64_t> dims) {
    int64_t n = static_cast<int64_t>(indices.size()) / rank;
    return run("SparseTensorToCSRSparseMatrix", t, {longs(indices).reshaped({n, rank}), floats(std::vector<float>(n, 1)), longs(dims)}).status();
  };
  EXPECT_TRUE(made({0, 1, 1, 0}, 2, {2, 2}).ok());
  for (int64_t bad : {int64_t(-1), int64_t(2), INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(made({bad, 0}, 2, {2, 2}).code(), kInvalid);
    EXPECT_EQ(made({0, bad}, 2, {2, 2}).code(), kInvalid);
    EXPECT_EQ(made({bad, 0, 0}, 3, {2, 2, 2}).code(), kInvalid);
    EXPECT_EQ(run("DenseToCSRSparseMatrix", t, {floats({1, 2, 3, 4}).reshaped({2, 2}), longs({bad, 0}).reshaped({1, 2})}).status().code(),
              kInvalid);
  }
  EXPECT_EQ(made({0}, 1, {2}).code(), kInvalid);
  EXPECT_EQ(made({1, 0, 0, 0, 0, 0}, 3, {2, 2, 2}).code(), kInvalid); // the batch is not in order
  EXPECT_EQ(made({0, int64_t(1) << 32}, 2, {1, int64_t(1) << 33}).code(), kInvalid);
  // sizes that would not fit are refused before memory is taken
  for (std::vector<int64_t> dims : {std::vector<int64_t>{INT32_MAX, 1}, std::vector<int64_t>{int64_t(1) << 62, 0}, std::vector<int64_t>{1 << 20, 1 << 20, 1},
                                    std::vector<int64_t>{INT32_MAX, 0, 0}, std::vector<int64_t>{-1, 3}, std::vector<int64_t>{3, -1},
                                    std::vector<int64_t>{1, 2, 3, 4}, std::vector<int64_t>{}})
    EXPECT_EQ(run("SparseMatrixZeros", type, {longs(dims)}).status().code(), kInvalid) << dimsToString(dims);
  EXPECT_EQ(run("SparseMatrixZeros", {{"type", DType::Int32}}, {longs({2, 2})}).status().code(), kInvalid);

  Tensor matrix = one("SparseMatrixZeros", type, {longs({2, 3})}), batch = one("SparseMatrixZeros", type, {longs({2, 3, 3})});
  auto code = [&](std::string op, AttrMap attrs, std::vector<Value> inputs) { return run(op, std::move(attrs), std::move(inputs)).status().code(); };
  Tensor none = Tensor::allocate(DType::Variant, {}), two = Tensor::allocate(DType::Variant, {2});
  for (const Tensor &bad : {none, two, one("OptionalNone", {}, {})}) {
    EXPECT_EQ(code("SparseMatrixNNZ", {}, {bad}), kInvalid);
    EXPECT_EQ(code("Conj", {{"T", DType::Variant}}, {bad}), kInvalid);
    EXPECT_EQ(code("CSRSparseMatrixToDense", type, {bad}), kInvalid);
    EXPECT_EQ(code("AddN", {{"T", DType::Variant}, {"N", int64_t(2)}}, {matrix, bad}), kInvalid);
  }
  EXPECT_EQ(code("CSRSparseMatrixToDense", {{"type", DType::Float64}}, {matrix}), kInvalid);
  EXPECT_EQ(code("AddN", {{"T", DType::Variant}, {"N", int64_t(2)}}, {matrix, batch}), kInvalid);
  EXPECT_EQ(code("SparseMatrixAdd", t, {matrix, batch, float0(1), float0(1)}), kInvalid);
  EXPECT_EQ(code("SparseMatrixAdd", t, {matrix, matrix, floats({1}), float0(1)}), kInvalid);
  for (int32_t index : {-1, 1, 2})
    EXPECT_EQ(code("CSRSparseMatrixComponents", type, {matrix, int0(index)}), kInvalid);
  EXPECT_EQ(code("CSRSparseMatrixComponents", type, {matrix, ints({0})}), kInvalid);
  EXPECT_EQ(code("SparseMatrixMatMul", t, {matrix, floats({1, 2}).reshaped({2, 1})}), kInvalid);
  EXPECT_EQ(code("SparseMatrixMatMul", t, {matrix, floats({1, 2, 3})}), kInvalid);
  EXPECT_EQ(code("SparseMatrixMatMul", t, {batch, Tensor::allocate(DType::Float32, {3, 3, 1})}), kInvalid);
  AttrMap both = forms(true, true, false, false);
  both["type"] = DType::Float32;
  EXPECT_EQ(code("SparseMatrixSparseMatMul", both, {batch, batch}), kInvalid);
  EXPECT_EQ(code("SparseMatrixSparseMatMul", type, {matrix, matrix}), kInvalid);
  EXPECT_EQ(code("SparseMatrixSparseMatMul", type, {matrix, batch}), kInvalid);
  EXPECT_EQ(code("SparseMatrixOrderingAMD", {}, {matrix}), kInvalid);
  Tensor unit = one("SparseTensorToCSRSparseMatrix", t, {longs({0, 0, 1, 1}).reshaped({2, 2}), floats({1, 4}), longs({2, 2})});
  EXPECT_TRUE(run("SparseMatrixSparseCholesky", type, {unit, ints({1, 0})}).ok());
  for (std::vector<int32_t> bad : {std::vector<int32_t>{0, 0}, std::vector<int32_t>{0, 2}, std::vector<int32_t>{-1, 0}, std::vector<int32_t>{0}})
    EXPECT_EQ(code("SparseMatrixSparseCholesky", type, {unit, ints(bad)}), kInvalid);
  Tensor negative = one("SparseMatrixMul", t, {unit, float0(-1)});
  EXPECT_EQ(code("SparseMatrixSparseCholesky", type, {negative, ints({0, 1})}), kInvalid);
}

} // namespace
} // namespace lathe::rt
