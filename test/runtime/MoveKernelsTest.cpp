// Host kernels that move elements, beyond what the recorded cases ask of them.
#include "test/runtime/KernelTest.h"

#include <complex>

namespace lathe::rt {
namespace {

TEST(MoveKernels, ConjugatesWhatItTransposes) {
  using C = std::complex<float>;
  Tensor x = Tensor::vector<C>(DType::Complex64, {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}}).reshaped({2, 3});
  for (bool swap : {true, false}) {
    Tensor perm = Tensor::vector<int32_t>(DType::Int32, {swap, !swap});
    auto out = KernelTest("ConjugateTranspose", {{"T", DType::Complex64}, {"Tperm", DType::Int32}}).run({x, perm});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].dims(), (swap ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3}));
    EXPECT_EQ((*out)[0].data<C>()[1], swap ? C(7, -8) : C(3, -4));
  }
  EXPECT_EQ(x.data<C>()[1], C(3, 4)) << "the operand stays as it is";
}

} // namespace
} // namespace lathe::rt
