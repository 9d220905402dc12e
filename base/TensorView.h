// The elements of a tensor by index: what Tensor::flat, matrix and the like give.
#ifndef LATHE_BASE_TENSORVIEW_H
#define LATHE_BASE_TENSORVIEW_H

#include <array>
#include <cassert>
#include <cstdint>

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

} // namespace lathe

#endif
