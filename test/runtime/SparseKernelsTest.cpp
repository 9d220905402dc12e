// Host kernels of sparse tensors where the compiled forms say what is right, too.
#include "test/runtime/KernelTest.h"

#include <cmath>
#include <limits>

namespace lathe::rt {
namespace {

TEST(SparseKernels, ExtremesKeepNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto column = [](std::vector<int64_t> rows) {
    int64_t n = static_cast<int64_t>(rows.size());
    return Tensor::vector<int64_t>(DType::Int64, rows).reshaped({n, 1});
  };
  Tensor dims = Tensor::vector<int64_t>(DType::Int64, {6});
  for (const char *op : {"SparseSparseMaximum", "SparseSparseMinimum"}) {
    auto out = KernelTest(op, {{"T", DType::Float32}})
                   .run({column({0, 1, 2, 3, 4}), Tensor::vector<float>(DType::Float32, {nan, 1, nan, 1, nan}), dims,
                         column({0, 1, 2, 3, 5}), Tensor::vector<float>(DType::Float32, {1, nan, nan, 2, nan}), dims});
    ASSERT_TRUE(out.ok()) << op << ": " << out.status();
    ASSERT_EQ((*out)[1].numElements(), 6);
    for (int i : {0, 1, 2, 4, 5})
      EXPECT_TRUE(std::isnan((*out)[1].data<float>()[i])) << op << " at " << i;
    EXPECT_EQ((*out)[1].data<float>()[3], std::string(op) == "SparseSparseMaximum" ? 2 : 1);
  }
}

} // namespace
} // namespace lathe::rt
