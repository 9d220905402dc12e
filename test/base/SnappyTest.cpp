#include "base/Snappy.h"

#include "gtest/gtest.h"

using namespace lathe;

static std::string_view bytes(const char *p, size_t n) { return {p, n}; }

TEST(SnappyTest, LiteralsAndOverlappingCopies) {
  // length 9: literal "abc", then 6 bytes from 3 back
  auto r = snappyUncompress(bytes("\x09\x08" "abc" "\x09\x03", 7), 100);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(*r, "abcabcabc");
  EXPECT_EQ(*snappyUncompress(bytes("\x00", 1), 0), "");
}

TEST(SnappyTest, MalformedStreamsAreErrors) {
  EXPECT_FALSE(snappyUncompress("", 100).ok());
  EXPECT_FALSE(snappyUncompress(bytes("\x09\x08" "abc" "\x09\x04", 7), 100).ok()); // before the start
  EXPECT_FALSE(snappyUncompress(bytes("\x09\x08" "abc" "\x09\x00", 7), 100).ok()); // offset 0
  EXPECT_FALSE(snappyUncompress(bytes("\x08\x08" "abc" "\x09\x03", 7), 100).ok()); // longer than it says
  EXPECT_FALSE(snappyUncompress(bytes("\x0a\x08" "abc" "\x09\x03", 7), 100).ok()); // shorter
  EXPECT_FALSE(snappyUncompress(bytes("\x09\x08" "ab", 4), 100).ok());
  EXPECT_FALSE(snappyUncompress(bytes("\x09\x08" "abc" "\x09\x03", 7), 8).ok());
  EXPECT_FALSE(snappyUncompress(bytes("\xff\xff\xff\xff\x0f\x00", 6), UINT64_MAX).ok());
}
