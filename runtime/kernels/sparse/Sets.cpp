// Set operations on the last dimension: SetSize, DenseToDense/DenseToSparse/SparseToSparseSetOperation; EditDistance.
#include "runtime/kernels/sparse/Coo.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

namespace lathe::rt {
namespace {

using Group = std::vector<int64_t>;

/// Numbers as int64, strings as themselves.
template <typename T>
T valueAt(const Tensor &t, int64_t i) {
  if constexpr (std::is_same_v<T, std::string>)
    return t.strings()[i];
  else
    return intAt(t, i);
}

template <typename T>
using Sets = std::map<Group, std::set<T>>;

template <typename T>
absl::StatusOr<Sets<T>> setsOfDense(const Tensor &t, std::vector<int64_t> &group) {
  if (t.rank() < 2)
    return invalid("Invalid input rank ", t.rank(), ": sets need rank 2 or more");
  group.assign(t.dims().begin(), t.dims().end() - 1);
  Sets<T> sets;
  int64_t size = t.dims().back();
  for (int64_t i = 0; i < t.numElements(); ++i) {
    Group at(group.size());
    int64_t rest = i / size;
    for (size_t d = group.size(); d-- > 0;) {
      at[d] = rest % group[d];
      rest /= group[d];
    }
    sets[at].insert(valueAt<T>(t, i));
  }
  return sets;
}

template <typename T>
absl::StatusOr<Sets<T>> setsOfSparse(const Coo &in, bool validate, std::vector<int64_t> &group) {
  if (in.rank() < 2)
    return invalid("Invalid input rank ", in.rank(), ": sets need rank 2 or more");
  LATHE_TRY(validate ? in.checkOrdered() : in.checkBounds());
  group.assign(in.dims.begin(), in.dims.end() - 1);
  Sets<T> sets;
  for (int64_t i = 0; i < in.count(); ++i)
    sets[Group(in.row(i), in.row(i) + in.rank() - 1)].insert(valueAt<T>(in.values, i));
  return sets;
}

enum class Operation { AMinusB, BMinusA, Intersection, Union };

absl::StatusOr<Operation> parseOperation(std::string name) {
  for (char &c : name)
    c = static_cast<char>(tolower(c));
  if (name == "a-b")
    return Operation::AMinusB;
  if (name == "b-a")
    return Operation::BMinusA;
  if (name == "intersection")
    return Operation::Intersection;
  if (name == "union")
    return Operation::Union;
  return invalid("Invalid set_operation ", name, ".");
}

template <typename T>
std::set<T> apply(Operation operation, const std::set<T> &a, const std::set<T> &b) {
  std::set<T> out;
  auto into = std::inserter(out, out.end());
  switch (operation) {
  case Operation::AMinusB:
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), into);
    break;
  case Operation::BMinusA:
    std::set_difference(b.begin(), b.end(), a.begin(), a.end(), into);
    break;
  case Operation::Intersection:
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), into);
    break;
  case Operation::Union:
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), into);
  }
  return out;
}

template <typename T>
absl::Status combine(KernelContext &context, Operation operation, const Sets<T> &a, const Sets<T> &b,
                     std::vector<int64_t> group, const std::vector<int64_t> &other) {
  if (group != other)
    return invalid("Mismatched group shapes ", dimsToString(group), " vs ", dimsToString(other), ".");
  std::set<Group> keys;
  for (auto &[key, set] : a)
    keys.insert(key);
  for (auto &[key, set] : b)
    keys.insert(key);
  std::vector<int64_t> flat;
  std::vector<T> values;
  int64_t largest = 0;
  static const std::set<T> none;
  for (const Group &key : keys) {
    auto x = a.find(key), y = b.find(key);
    std::set<T> result = apply(operation, x == a.end() ? none : x->second, y == b.end() ? none : y->second);
    int64_t i = 0;
    for (const T &value : result) {
      flat.insert(flat.end(), key.begin(), key.end());
      flat.push_back(i++);
      values.push_back(value);
    }
    largest = std::max(largest, i);
  }
  int64_t n = static_cast<int64_t>(values.size()), rank = static_cast<int64_t>(group.size()) + 1;
  context.setOutput(0, int64Vector(flat).reshaped({n, rank}));
  LATHE_TRY_VALUE(out, context.allocateOutput(1, {n}));
  if constexpr (std::is_same_v<T, std::string>)
    out.mutableStrings() = values;
  else
    LATHE_TRY(withType(out.dtype(), [&](auto zero) -> absl::Status {
      using U = decltype(zero);
      if constexpr (std::is_integral_v<U>) {
        for (int64_t i = 0; i < n; ++i)
          out.template data<U>()[i] = static_cast<U>(values[i]);
        return absl::OkStatus();
      } else {
        return absl::UnimplementedError("sets are of integers or strings");
      }
    }));
  group.push_back(largest);
  context.setOutput(2, int64Vector(group));
  return absl::OkStatus();
}

template <typename T>
absl::Status operateAs(KernelContext &context) {
  const std::string &op = context.node->op;
  LATHE_TRY_VALUE(operation, parseOperation(*attrOf<std::string>(*context.node, "set_operation")));
  bool validate = *attrOf<bool>(*context.node, "validate_indices");
  bool firstSparse = op[0] == 'S', secondSparse = op != "DenseToDenseSetOperation";
  std::vector<int64_t> groupA, groupB;
  absl::StatusOr<Sets<T>> a = absl::InternalError(""), b = absl::InternalError("");
  if (firstSparse) {
    LATHE_TRY_VALUE(in, cooInput(context, 0));
    a = setsOfSparse<T>(in, validate, groupA);
  } else {
    a = setsOfDense<T>(context.input(0), groupA);
  }
  LATHE_TRY(a.status());
  if (secondSparse) {
    LATHE_TRY_VALUE(in, cooInput(context, firstSparse ? 3 : 1));
    b = setsOfSparse<T>(in, validate, groupB);
  } else {
    b = setsOfDense<T>(context.input(1), groupB);
  }
  LATHE_TRY(b.status());
  return combine<T>(context, operation, *a, *b, groupA, groupB);
}

absl::Status operate(KernelContext &context) {
  DType type = context.node->outputTypes[1];
  if (type == DType::String)
    return operateAs<std::string>(context);
  if (!isInteger(type))
    return absl::UnimplementedError(absl::StrCat("sets of ", dtypeName(type), " are not supported"));
  return operateAs<int64_t>(context);
}
LATHE_HOST_FUNCTION(DenseToDenseSetOperation, operate);
LATHE_HOST_FUNCTION(DenseToSparseSetOperation, operate);
LATHE_HOST_FUNCTION(SparseToSparseSetOperation, operate);

template <typename T>
absl::Status setSizeAs(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  std::vector<int64_t> group;
  LATHE_TRY_VALUE(sets, setsOfSparse<T>(in, *attrOf<bool>(*context.node, "validate_indices"), group));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, group));
  for (auto &[key, set] : sets) {
    int64_t at = 0;
    for (size_t d = 0; d < key.size(); ++d)
      at = at * group[d] + key[d];
    out.template data<int32_t>()[at] = static_cast<int32_t>(set.size());
  }
  return absl::OkStatus();
}

absl::Status setSize(KernelContext &context) {
  return context.input(1).dtype() == DType::String ? setSizeAs<std::string>(context) : setSizeAs<int64_t>(context);
}
LATHE_HOST_FUNCTION(SetSize, setSize);

/// Whether elements of two tensors of one type are equal; NaN is not.
bool equalElements(const Tensor &a, int64_t i, const Tensor &b, int64_t j) {
  if (a.dtype() == DType::String)
    return a.strings()[i] == b.strings()[j];
  if (isFloating(a.dtype()))
    return realAt(a, i) == realAt(b, j);
  if (a.dtype() == DType::Complex64)
    return a.data<std::complex<float>>()[i] == b.data<std::complex<float>>()[j];
  if (a.dtype() == DType::Complex128)
    return a.data<std::complex<double>>()[i] == b.data<std::complex<double>>()[j];
  return intAt(a, i) == intAt(b, j);
}

/// Insertions, deletions and substitutions that turn one row of a sparse tensor into another.
int64_t distance(const Tensor &a, const std::vector<int64_t> &x, const Tensor &b, const std::vector<int64_t> &y) {
  std::vector<int64_t> costs(y.size() + 1);
  for (size_t j = 0; j < costs.size(); ++j)
    costs[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t diagonal = costs[0];
    costs[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < y.size(); ++j) {
      int64_t replace = diagonal + !equalElements(a, x[i], b, y[j]);
      diagonal = costs[j + 1];
      costs[j + 1] = std::min({replace, costs[j] + 1, diagonal + 1});
    }
  }
  return costs.back();
}

absl::Status editDistance(KernelContext &context) {
  bool normalize = *attrOf<bool>(*context.node, "normalize");
  LATHE_TRY_VALUE(hypothesis, cooInput(context, 0));
  LATHE_TRY_VALUE(truth, cooInput(context, 3));
  if (hypothesis.rank() != truth.rank() || truth.rank() < 2)
    return invalid("truth and hypothesis must have one rank of 2 or more: ", truth.rank(), " and ", hypothesis.rank());
  LATHE_TRY(hypothesis.checkBounds());
  LATHE_TRY(truth.checkBounds());
  std::vector<int64_t> dims;
  for (int64_t d = 0; d + 1 < truth.rank(); ++d)
    dims.push_back(std::max(truth.dims[d], hypothesis.dims[d]));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  auto rowsOfGroups = [&](const Coo &in) {
    std::map<int64_t, std::vector<int64_t>> rows;
    for (int64_t i = 0; i < in.count(); ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < dims.size(); ++d)
        at = at * dims[d] + in.row(i)[d];
      rows[at].push_back(i);
    }
    return rows;
  };
  auto x = rowsOfGroups(hypothesis), y = rowsOfGroups(truth);
  for (int64_t g = 0; g < out.numElements(); ++g) {
    auto a = x.find(g), b = y.find(g);
    int64_t m = a == x.end() ? 0 : static_cast<int64_t>(a->second.size());
    int64_t n = b == y.end() ? 0 : static_cast<int64_t>(b->second.size());
    float value;
    if (m && n)
      value = static_cast<float>(distance(hypothesis.values, a->second, truth.values, b->second));
    else
      value = static_cast<float>(m + n);
    if (normalize && n)
      value /= static_cast<float>(n);
    else if (normalize && m)
      value = std::numeric_limits<float>::infinity();
    out.data<float>()[g] = value;
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(EditDistance, editDistance);

} // namespace
} // namespace lathe::rt
