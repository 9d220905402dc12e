#include "base/Bytes.h"
#include "base/Npz.h"
#include "base/Zip.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace lathe;

static std::string npy(const std::string &dict, const std::string &body) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out.push_back(static_cast<char>(dict.size()));
  out.push_back(0);
  return out + dict + body;
}

static std::string header(const std::string &type, const std::string &shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

TEST(NpyTest, RoundTripsEveryStoredType) {
  for (int n = 1; n <= 34; ++n) {
    auto type = dtypeFromNumber(n);
    if (!type || dtypeSize(*type) == 0)
      continue;
    Tensor t = Tensor::allocate(*type, {2, 1});
    std::memset(t.data(), 1, t.sizeBytes());
    auto r = parseNpy(npyBytes(t), type);
    ASSERT_TRUE(r.ok()) << dtypeName(*type) << r.status();
    EXPECT_EQ(r->dims(), t.dims());
    EXPECT_EQ(std::memcmp(r->data(), t.data(), t.sizeBytes()), 0);
  }
}

TEST(NpyTest, FortranOrderBigEndianAndText) {
  auto f = parseNpy(npy(header("|i1", "(2, 3)", true), std::string("\1\4\2\5\3\6", 6)));
  ASSERT_TRUE(f.ok()) << f.status();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(f->data<int8_t>()[i], i + 1);
  auto b = parseNpy(npy(header(">i4", "()"), std::string("\0\0\1\2", 4)));
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(*b->data<int32_t>(), 258);
  auto u = parseNpy(npy(header("<U2", "(1,)"), std::string("\xe9\0\0\0\0\0\0\0", 8)));
  ASSERT_TRUE(u.ok()) << u.status();
  EXPECT_EQ(u->strings()[0], "\xc3\xa9");
}

TEST(NpyTest, MalformedHeadersAreErrors) {
  EXPECT_FALSE(parseNpy("").ok());
  EXPECT_FALSE(parseNpy("\x93NUMPY\x01").ok());
  EXPECT_FALSE(parseNpy(npy(header("<f4", "(9223372036854775807, 4)"), "")).ok());
  EXPECT_FALSE(parseNpy(npy(header("<f4", "(-1,)"), "")).ok());
  EXPECT_FALSE(parseNpy(npy(header("<f4", "(2,)"), "1234567")).ok());
  EXPECT_FALSE(parseNpy(npy(header("<U0", "(1000000000,)"), "")).ok());
  EXPECT_FALSE(parseNpy(npy(header("|O", "(1,)"), "12345678")).ok());
  EXPECT_FALSE(parseNpy(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")).ok());
  EXPECT_FALSE(parseNpy(npy(header("<f4", "(1,)"), "1234"), DType::Float64).ok());
}

TEST(NpzTest, RoundTripsWithTypesAndStrings) {
  NamedTensors in = {{"x:0", Tensor::vector<float>(DType::Float32, {1, 2, 3})},
                     {"half/b", Tensor::vector<uint16_t>(DType::BFloat16, {0x3f80})},
                     {"s", Tensor::fromStrings({2}, {std::string("\0a", 2), ""})}};
  auto bytes = npzBytes(in);
  ASSERT_TRUE(bytes.ok());
  auto out = parseNpz(*bytes);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->size(), 3u);
  EXPECT_EQ((*out)[0].first, "x:0");
  EXPECT_EQ((*out)[0].second.data<float>()[2], 3);
  EXPECT_EQ((*out)[1].second.dtype(), DType::BFloat16);
  EXPECT_EQ((*out)[2].second.strings(), in[2].second.strings());
  EXPECT_FALSE(parseNpz(*bytes, 100).ok());
}

TEST(NpzTest, BrokenZipsAreErrors) {
  auto bytes = npzBytes({{"x", Tensor::vector<float>(DType::Float32, {1, 2, 3})}});
  ASSERT_TRUE(bytes.ok());
  // cut anywhere, or any byte of the structure changed: never a crash
  for (size_t n = 0; n < bytes->size(); ++n)
    EXPECT_FALSE(parseNpz(bytes->substr(0, n)).ok());
  for (size_t n = 0; n < bytes->size(); ++n) {
    std::string changed = *bytes;
    changed[n] ^= 0xff;
    (void)parseNpz(changed);
  }
}

TEST(NpzTest, StringsJson) {
  auto t = parseStringsJson("{\"shape\": [2, 1], \"values\": [\"aGVsbG8=\", \"\"]}");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->strings()[0], "hello");
  EXPECT_EQ(*&parseStringsJson(stringsJson(*t))->strings(), t->strings());
  EXPECT_FALSE(parseStringsJson("{\"shape\": [2], \"values\": [\"\"]}").ok());
  EXPECT_FALSE(parseStringsJson("{\"shape\": [1], \"values\": [\"*\"]}").ok());
  EXPECT_FALSE(parseStringsJson("[").ok());
}
