// A tensor's elements by index, as TensorFlow's accessors give them: flat<float>(t)(i), matrix<float>(t)(i, j), scalar<float>(t)().
#ifndef LATHE_GRAPH_BUILDER_VIEWS_H
#define LATHE_GRAPH_BUILDER_VIEWS_H

#include "base/Tensor.h"
#include "graph/builder/Scope.h"

#include <array>
#include <cassert>

namespace lathe {

/// Row-major elements with `Rank` indices. The tensor keeps the memory.
template <typename T, int Rank>
class TensorView {
public:
  TensorView(T *data, std::array<int64_t, Rank> dims) : elements(data), sizes(dims) {}
  template <typename... Index>
  T &operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank, "one index a dimension");
    std::array<int64_t, Rank> at{static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int i = 0; i < Rank; ++i) {
      assert(at[i] >= 0 && at[i] < sizes[i] && "index out of range");
      offset = offset * sizes[i] + at[i];
    }
    return elements[offset];
  }
  T *data() const { return elements; }
  int64_t dimension(int i) const { return sizes[i]; }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : sizes)
      n *= d;
    return n;
  }

private:
  T *elements;
  std::array<int64_t, Rank> sizes;
};

/// All elements in a row; the tensor's type must be T's. Half and bfloat16 are uint16_t, strings std::string.
template <typename T>
TensorView<T, 1> flat(Tensor &t) {
  if constexpr (std::is_same_v<T, std::string>) {
    return {t.mutableStrings().data(), {t.numElements()}};
  } else {
    assert(dtypeSize(t.dtype()) == sizeof(T) && "elements of another size");
    return {t.data<T>(), {t.numElements()}};
  }
}
/// A tensor of rank `Rank`.
template <typename T, int Rank>
TensorView<T, Rank> tensor(Tensor &t) {
  assert(t.rank() == Rank && "a tensor of another rank");
  std::array<int64_t, Rank> dims;
  for (int i = 0; i < Rank; ++i)
    dims[i] = t.dim(i);
  return {flat<T>(t).data(), dims};
}
template <typename T>
TensorView<T, 1> vec(Tensor &t) {
  return tensor<T, 1>(t);
}
template <typename T>
TensorView<T, 2> matrix(Tensor &t) {
  return tensor<T, 2>(t);
}
/// scalar<T>(t)() is the value of a tensor with one element.
template <typename T>
TensorView<T, 0> scalar(Tensor &t) {
  assert(t.numElements() == 1 && "a tensor of more than one element");
  return {flat<T>(t).data(), {}};
}

} // namespace lathe

#endif
