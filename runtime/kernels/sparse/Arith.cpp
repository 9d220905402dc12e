// Sparse arithmetic: SparseAdd and its gradient, SparseSparseMaximum/Minimum, SparseDenseCwise*, SparseReduce*, SparseSoftmax.
#include "runtime/kernels/sparse/Coo.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace lathe::rt {
namespace {

template <typename T>
constexpr bool kComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Walks the union of two ordered sparse tensors: fn(row of a or -1, row of b or -1).
template <typename Fn>
void merge(const Coo &a, const Coo &b, Fn fn) {
  int64_t i = 0, j = 0;
  while (i < a.count() || j < b.count()) {
    int order = i == a.count() ? 1 : j == b.count() ? -1 : a.compareRows(i, b, j);
    fn(order <= 0 ? i : -1, order >= 0 ? j : -1);
    i += order <= 0;
    j += order >= 0;
  }
}

absl::Status sameDims(const Coo &a, const Coo &b) {
  if (a.dims != b.dims)
    return invalid("Operands' shapes do not match: got ", dimsToString(a.dims), " and ", dimsToString(b.dims));
  return absl::OkStatus();
}

absl::Status sparseAdd(KernelContext &context) {
  LATHE_TRY_VALUE(a, cooInput(context, 0));
  LATHE_TRY_VALUE(b, cooInput(context, 3));
  LATHE_TRY(sameDims(a, b));
  Tensor threshold = context.input(6);
  if (threshold.rank() != 0)
    return invalid("The magnitude threshold must be a scalar: got shape ", dimsToString(threshold.dims()));
  std::vector<int64_t> flat;
  return withType(a.values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    std::vector<T> sums;
    double limit = realAt(threshold, 0);
    int64_t whole = intAt(threshold, 0);
    merge(a, b, [&](int64_t i, int64_t j) {
      T sum{};
      if (i >= 0)
        sum = a.values.data<T>()[i];
      if (j >= 0)
        sum = i >= 0 ? added(sum, b.values.data<T>()[j]) : b.values.data<T>()[j];
      // only what both have counts as a sum
      bool keep = i < 0 || j < 0;
      if constexpr (kComplex<T>)
        keep |= limit <= std::abs(sum);
      else if constexpr (std::is_integral_v<T>)
        // the lowest number has no other sign
        keep |= whole <= (sum < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(sum)) : static_cast<int64_t>(sum));
      else
        keep |= limit <= std::abs(static_cast<double>(sum));
      if (!keep)
        return;
      const int64_t *row = i >= 0 ? a.row(i) : b.row(j);
      flat.insert(flat.end(), row, row + a.rank());
      sums.push_back(sum);
    });
    int64_t n = static_cast<int64_t>(sums.size());
    LATHE_TRY_VALUE(values, context.allocateOutput(1, {n}));
    std::copy(sums.begin(), sums.end(), values.template data<T>());
    context.setOutput(0, int64Vector(flat).reshaped({n, a.rank()}));
    context.setOutput(2, int64Vector(a.dims));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(SparseAdd, sparseAdd);

absl::Status sparseAddGrad(KernelContext &context) {
  Tensor grad = context.input(0), a = context.input(1), b = context.input(2), sum = context.input(3);
  if (a.rank() != 2 || b.rank() != 2 || sum.rank() != 2 || grad.rank() != 1 || grad.dim(0) != sum.dim(0) ||
      a.dim(1) != b.dim(1) || a.dim(1) != sum.dim(1))
    return invalid("indices and gradient do not fit: ", dimsToString(a.dims()), ", ", dimsToString(b.dims()), ", ",
                   dimsToString(sum.dims()), ", ", dimsToString(grad.dims()));
  int64_t rank = a.dim(1);
  // both operands' rows ascend as those of the sum do
  for (int which = 0; which < 2; ++which) {
    const Tensor &part = which ? b : a;
    std::vector<int64_t> from(part.dim(0), -1);
    for (int64_t i = 0, k = 0; i < part.dim(0); ++i)
      for (int64_t at = k; at < sum.dim(0); ++at)
        if (std::equal(part.data<int64_t>() + i * rank, part.data<int64_t>() + (i + 1) * rank,
                       sum.data<int64_t>() + at * rank)) {
          from[i] = at;
          k = at + 1;
          break;
        }
    LATHE_TRY_VALUE(out, pick(context, grad, {part.dim(0)}, from));
    context.setOutput(which, out);
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseAddGrad, sparseAddGrad);

template <bool largest>
absl::Status extreme(KernelContext &context) {
  LATHE_TRY_VALUE(a, cooInput(context, 0));
  LATHE_TRY_VALUE(b, cooInput(context, 3));
  LATHE_TRY(sameDims(a, b));
  return withType(a.values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (kComplex<T>) {
      return absl::UnimplementedError("complex numbers have no order");
    } else {
      std::vector<int64_t> flat;
      std::vector<T> picked;
      merge(a, b, [&](int64_t i, int64_t j) {
        T x = i >= 0 ? a.values.data<T>()[i] : T(0), y = j >= 0 ? b.values.data<T>()[j] : T(0);
        const int64_t *row = i >= 0 ? a.row(i) : b.row(j);
        flat.insert(flat.end(), row, row + a.rank());
        // a NaN of either stays, as in the compiled form
        picked.push_back(y != y || (largest ? x < y : y < x) ? y : x);
      });
      int64_t n = static_cast<int64_t>(picked.size());
      LATHE_TRY_VALUE(values, context.allocateOutput(1, {n}));
      std::copy(picked.begin(), picked.end(), values.template data<T>());
      context.setOutput(0, int64Vector(flat).reshaped({n, a.rank()}));
      return absl::OkStatus();
    }
  });
}
LATHE_HOST_FUNCTION(SparseSparseMaximum, extreme<true>);
LATHE_HOST_FUNCTION(SparseSparseMinimum, extreme<false>);

/// op: '+', '*' or '/'.
template <char op>
absl::Status cwise(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  LATHE_TRY(in.checkBounds());
  Tensor dense = context.input(3);
  int64_t lead = in.rank() - dense.rank();
  bool fits = lead >= 0;
  for (int64_t d = 0; fits && d < dense.rank(); ++d)
    fits = dense.dim(d) == 1 || dense.dim(d) == in.dims[lead + d];
  if (!fits)
    return invalid("SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: ",
                   dimsToString(in.dims), " vs. ", dimsToString(dense.dims()));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {in.count()}));
  return withType(in.values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {
      return absl::UnimplementedError("no form for bool");
    } else {
      for (int64_t i = 0; i < in.count(); ++i) {
        int64_t at = 0;
        for (int64_t d = 0; d < dense.rank(); ++d)
          at = at * dense.dim(d) + (dense.dim(d) == 1 ? 0 : in.row(i)[lead + d]);
        T x = in.values.data<T>()[i], y = dense.data<T>()[at];
        T &z = out.template data<T>()[i];
        if constexpr (op != '/' && std::is_integral_v<T>) {
          // wraps, as TensorFlow's does
          uint64_t a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
          z = static_cast<T>(op == '+' ? a + b : a * b);
        } else if constexpr (op == '+') {
          z = static_cast<T>(x + y);
        } else if constexpr (op == '*') {
          z = static_cast<T>(x * y);
        } else if (y == T(0)) {
          return invalid("SparseDenseCwiseDiv cannot divide by zero");
        } else if constexpr (std::is_integral_v<T>) {
          z = y == T(-1) && std::is_signed_v<T> ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x))
                                                : static_cast<T>(x / y);
        } else {
          z = static_cast<T>(x / y);
        }
      }
      return absl::OkStatus();
    }
  });
}
LATHE_HOST_FUNCTION(SparseDenseCwiseAdd, cwise<'+'>);
LATHE_HOST_FUNCTION(SparseDenseCwiseMul, cwise<'*'>);
LATHE_HOST_FUNCTION(SparseDenseCwiseDiv, cwise<'/'>);

/// What remains of each row after the reduced dimensions are dropped, in order, with the positions that share it.
struct Groups {
  std::vector<int64_t> kept;                ///< dimensions that stay
  std::vector<std::vector<int64_t>> rows;   ///< by group
  std::vector<std::vector<int64_t>> coords; ///< by group: indices in the kept dimensions
};

absl::StatusOr<Groups> groupRows(const Coo &in, const Tensor &axes) {
  Groups groups;
  std::vector<bool> reduced(in.rank(), false);
  for (int64_t axis : intsOf(axes)) {
    if (axis < -in.rank() || axis >= in.rank())
      return invalid("Invalid reduction dimension ", axis, ", for input with ", in.rank(), " dimensions.");
    reduced[axis < 0 ? axis + in.rank() : axis] = true;
  }
  for (int64_t d = 0; d < in.rank(); ++d)
    if (!reduced[d])
      groups.kept.push_back(d);
  std::map<std::vector<int64_t>, std::vector<int64_t>> byCoords;
  for (int64_t i = 0; i < in.count(); ++i) {
    std::vector<int64_t> coords;
    for (int64_t d : groups.kept)
      coords.push_back(in.row(i)[d]);
    byCoords[coords].push_back(i);
  }
  for (auto &[coords, rows] : byCoords) {
    groups.coords.push_back(coords);
    groups.rows.push_back(rows);
  }
  return groups;
}

template <typename T, bool largest>
T reduceRows(const Coo &in, const std::vector<int64_t> &rows) {
  T result = in.values.data<T>()[rows[0]];
  for (size_t i = 1; i < rows.size(); ++i) {
    T x = in.values.data<T>()[rows[i]];
    if constexpr (!largest)
      result = added(result, x);
    else if constexpr (!kComplex<T>)
      result = result < x ? x : result;
  }
  return result;
}

template <bool largest, bool sparse>
absl::Status reduce(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  LATHE_TRY(in.checkBounds());
  bool keep = *attrOf<bool>(*context.node, "keep_dims");
  LATHE_TRY_VALUE(groups, groupRows(in, context.input(3)));
  std::vector<int64_t> dims;
  std::vector<bool> stays(in.rank(), false);
  for (int64_t d : groups.kept)
    stays[d] = true;
  for (int64_t d = 0; d < in.rank(); ++d)
    if (stays[d])
      dims.push_back(in.dims[d]);
    else if (keep)
      dims.push_back(1);
  int64_t n = static_cast<int64_t>(groups.rows.size());
  LATHE_TRY_VALUE(out, context.allocateOutput(sparse ? 1 : 0, sparse ? std::vector<int64_t>{n} : dims));
  if (sparse) {
    std::vector<int64_t> flat;
    for (const std::vector<int64_t> &coords : groups.coords)
      for (int64_t d = 0, k = 0; d < in.rank(); ++d)
        if (stays[d])
          flat.push_back(coords[k++]);
        else if (keep)
          flat.push_back(0);
    context.setOutput(0, int64Vector(flat).reshaped({n, static_cast<int64_t>(dims.size())}));
    context.setOutput(2, int64Vector(dims));
  }
  return withType(in.values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    for (int64_t g = 0; g < n; ++g) {
      int64_t at = g;
      if (!sparse) {
        at = 0;
        for (size_t k = 0; k < groups.kept.size(); ++k)
          at = at * in.dims[groups.kept[k]] + groups.coords[g][k];
      }
      out.template data<T>()[at] = reduceRows<T, largest>(in, groups.rows[g]);
    }
    return absl::OkStatus();
  });
}
constexpr auto reduceSum = reduce<false, false>, reduceSumSparse = reduce<false, true>;
constexpr auto reduceMax = reduce<true, false>, reduceMaxSparse = reduce<true, true>;
LATHE_HOST_FUNCTION(SparseReduceSum, reduceSum);
LATHE_HOST_FUNCTION(SparseReduceSumSparse, reduceSumSparse);
LATHE_HOST_FUNCTION(SparseReduceMax, reduceMax);
LATHE_HOST_FUNCTION(SparseReduceMaxSparse, reduceMaxSparse);

absl::Status sparseSoftmax(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  if (in.rank() < 2)
    return invalid("Input should have rank >= 2, but received shape: ", dimsToString(in.dims));
  LATHE_TRY(in.checkBounds());
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {in.count()}));
  LATHE_TRY_VALUE(groups, groupRows(in, Tensor::scalar<int32_t>(DType::Int32, -1)));
  return withType(in.values.dtype(), [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (kComplex<T> || std::is_integral_v<T>) {
      return absl::UnimplementedError("softmax is for real numbers");
    } else {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (const std::vector<int64_t> &rows : groups.rows) {
        Wide top = -std::numeric_limits<Wide>::infinity(), sum = 0;
        for (int64_t i : rows)
          top = std::max<Wide>(top, in.values.data<T>()[i]);
        for (int64_t i : rows)
          sum += std::exp(static_cast<Wide>(in.values.data<T>()[i]) - top);
        for (int64_t i : rows)
          out.template data<T>()[i] = static_cast<T>(std::exp(static_cast<Wide>(in.values.data<T>()[i]) - top) / sum);
      }
      return absl::OkStatus();
    }
  });
}
LATHE_HOST_FUNCTION(SparseSoftmax, sparseSoftmax);

} // namespace
} // namespace lathe::rt
