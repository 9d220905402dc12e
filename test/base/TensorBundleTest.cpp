// test/data/base/small.*: written by TensorFlow's Saver, with a partitioned, an empty, a string and a bfloat16 variable.
#include "base/Bytes.h"
#include "base/TensorBundle.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <sys/stat.h>

using namespace lathe;

static const std::string kPrefix = LATHE_SOURCE_DIR "/test/data/base/small";

TEST(TensorBundleTest, ReadsEveryKindOfEntry) {
  auto r = TensorBundleReader::open(kPrefix);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)->entries().size(), 5u);
  auto w = (*r)->read("dense/w");
  ASSERT_TRUE(w.ok()) << w.status();
  EXPECT_EQ(w->dims(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(w->data<float>()[5], 5.0f);
  EXPECT_EQ((*r)->read("b16")->data<uint16_t>()[1], 0xc000);
  EXPECT_EQ((*r)->read("empty")->numElements(), 0);
  auto words = (*r)->read("words");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->strings()[3], std::string("\0\xff", 2));
  auto part = (*r)->read("part");
  ASSERT_TRUE(part.ok()) << part.status();
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(part->data<int32_t>()[i], i);
  EXPECT_FALSE((*r)->read("missing").ok());
}

TEST(TensorBundleTest, DamagedFilesAreErrors) {
  auto index = readFile(kPrefix + ".index"), data = readFile(kPrefix + ".data-00000-of-00001");
  ASSERT_TRUE(index.ok() && data.ok());
  std::string prefix = testing::TempDir() + "damaged";
  std::string shard = prefix + ".data-00000-of-00001";
  for (size_t n = 0; n < index->size(); ++n) {
    std::string changed = *index;
    changed[n] ^= 0x55;
    ASSERT_TRUE(writeFile(prefix + ".index", changed).ok());
    (void)TensorBundleReader::open(prefix);
  }
  ASSERT_TRUE(writeFile(prefix + ".index", *index).ok());
  std::string changed = *data;
  for (char &c : changed)
    c ^= 1;
  ASSERT_TRUE(writeFile(shard, changed).ok());
  auto r = TensorBundleReader::open(prefix);
  ASSERT_TRUE(r.ok());
  for (const char *name : {"dense/w", "words", "part"})
    EXPECT_FALSE((*r)->read(name).ok());
  ASSERT_TRUE(writeFile(shard, data->substr(0, 10)).ok());
  EXPECT_FALSE((*r)->read("part").ok());
  std::remove(shard.c_str());
  EXPECT_FALSE((*r)->read("dense/w").ok());
  std::remove((prefix + ".index").c_str());
  EXPECT_FALSE(TensorBundleReader::open(prefix).ok());
}

TEST(TensorBundleTest, PipesAreErrors) {
  // opening one would wait for a writer
  auto index = readFile(kPrefix + ".index");
  ASSERT_TRUE(index.ok());
  std::string prefix = testing::TempDir() + "pipes";
  std::string shard = prefix + ".data-00000-of-00001";
  ASSERT_EQ(mkfifo((prefix + ".index").c_str(), 0600), 0);
  EXPECT_FALSE(TensorBundleReader::open(prefix).ok());
  std::remove((prefix + ".index").c_str());
  ASSERT_TRUE(writeFile(prefix + ".index", *index).ok());
  ASSERT_EQ(mkfifo(shard.c_str(), 0600), 0);
  auto r = TensorBundleReader::open(prefix);
  ASSERT_TRUE(r.ok());
  for (auto &[name, entry] : (*r)->entries())
    EXPECT_FALSE((*r)->read(name).ok()) << name;
  std::remove(shard.c_str());
  std::remove((prefix + ".index").c_str());
}
