#include "base/Crc32c.h"
#include "base/Memory.h"
#include "base/Philox.h"
#include "base/Tensor.h"

#include "gtest/gtest.h"

using namespace lathe;

TEST(DTypeTest, NamesAndNumbersRoundTrip) {
  for (int n = 1; n <= 34; ++n)
    if (auto type = dtypeFromNumber(n))
      EXPECT_EQ(parseDType(dtypeName(*type)), type);
  EXPECT_EQ(parseDType("float"), DType::Float32);
  EXPECT_EQ(dtypeFromNumber(101), DType::Float32);
  EXPECT_EQ(dtypeFromNumber(31), std::nullopt);
  EXPECT_STREQ(dtypeName(*dtypeFromNumber(27)), "float8_e4m3b11fnuz");
  EXPECT_FALSE(isFloating(*dtypeFromNumber(27))); // carried only
  EXPECT_EQ(parseDType("floaty"), std::nullopt);
  EXPECT_EQ(dtypeSize(DType::Complex128), 16u);
  EXPECT_EQ(dtypeSize(DType::Resource), 0u);
}

TEST(MemoryTest, TheEnvironmentSetsTheLimit) {
  const int64_t own = defaultMemoryBudget();
  for (const char *text : {"", "-1", "12x", "much"}) {
    setenv("LATHE_MAX_MEMORY", text, 1);
    EXPECT_EQ(defaultMemoryBudget(), own) << text;
  }
  setenv("LATHE_MAX_MEMORY", "123456789", 1);
  EXPECT_EQ(defaultMemoryBudget(), 123456789);
  unsetenv("LATHE_MAX_MEMORY");
}

TEST(TensorTest, ElementCountIsChecked) {
  EXPECT_EQ(*checkedNumElements({2, 3}), 6);
  EXPECT_EQ(*checkedNumElements({}), 1);
  EXPECT_EQ(*checkedNumElements({0, 5}), 0);
  EXPECT_FALSE(checkedNumElements({-1}).ok());
  EXPECT_FALSE(checkedNumElements({INT64_MAX, 2}).ok());
  EXPECT_FALSE(checkedNumElements({0, INT64_MAX, 2}).ok());
  EXPECT_FALSE(Tensor::tryAllocate(DType::Float32, {INT64_MAX}, INT64_MAX).ok());
  EXPECT_FALSE(Tensor::tryAllocate(DType::Float32, {100}, 399).ok());
  EXPECT_TRUE(Tensor::tryAllocate(DType::Variant, {1}, 400).ok());
  EXPECT_FALSE(Tensor::tryAllocate(DType::Variant, {100}, 400).ok());
  EXPECT_FALSE(Tensor::tryAllocate(DType::Invalid, {1}, 400).ok());
}

TEST(TensorTest, CopiesShareAndClonesDoNot) {
  Tensor a = Tensor::vector<float>(DType::Float32, {1, 2});
  Tensor b = a, c = a.clone();
  a.data<float>()[0] = 7;
  EXPECT_EQ(b.data<float>()[0], 7);
  EXPECT_EQ(c.data<float>()[0], 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
  EXPECT_EQ(a.reshaped({2, 1}).rank(), 2);
}

TEST(Crc32cTest, KnownValues) {
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32cUnmask(crc32cMask(0x12345678u)), 0x12345678u);
}

TEST(PhiloxTest, KnownBlocks) {
  // vectors of the Random123 distribution
  EXPECT_EQ(Philox({0, 0}, {0, 0, 0, 0}).peek(),
            (Philox::Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(Philox({0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}).peek(),
            (Philox::Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  Philox g({0, 0}, {0xffffffffu, 0xffffffffu, 0xffffffffu, 0});
  g.skip(1);
  EXPECT_EQ(g.counterWords(), (Philox::Block{0, 0, 0, 1}));
}
