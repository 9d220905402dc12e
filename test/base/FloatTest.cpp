#include "base/Float.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace lathe;

TEST(FloatTest, EveryHalfRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float f = halfToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(f)) {
      EXPECT_EQ(floatToHalf(f), bits);
    } else {
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(f))));
    }
  }
}

TEST(FloatTest, HalfRoundsToEven) {
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00); // tie, down to even
  EXPECT_EQ(floatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(1e30f), 0x7c00);
  EXPECT_EQ(floatToHalf(0x1p-24f), 1);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0);
  EXPECT_EQ(floatToHalf(0x1.8p-25f), 1);
  EXPECT_EQ(floatToHalf(-0.0f), 0x8000);
}

TEST(FloatTest, BFloat16) {
  EXPECT_EQ(floatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(floatToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBFloat16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(floatToBFloat16(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16ToFloat(floatToBFloat16(std::nanf("")))));
}

TEST(FloatTest, Float8) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    float a = f8E5M2ToFloat(static_cast<uint8_t>(bits)), b = f8E4M3FNToFloat(static_cast<uint8_t>(bits));
    if (!std::isnan(a))
      EXPECT_EQ(floatToF8E5M2(a), bits);
    if (!std::isnan(b))
      EXPECT_EQ(floatToF8E4M3FN(b), bits);
  }
  EXPECT_EQ(f8E4M3FNToFloat(0x7e), 448.0f);
  EXPECT_EQ(floatToF8E4M3FN(464.0f), 0x7e);
  EXPECT_EQ(floatToF8E4M3FN(465.0f), 0x7f);
  EXPECT_EQ(floatToF8E4M3FN(std::numeric_limits<float>::infinity()), 0x7f);
  EXPECT_EQ(floatToF8E5M2(57344.0f), 0x7b);
  EXPECT_EQ(floatToF8E5M2(61440.0f), 0x7c);
}
