// Packing of buffers: no two items alive at the same time overlap, and easy cases are optimal.
#include "passes/lower/Arena.h"
#include <gtest/gtest.h>
#include <random>

using namespace lathe::lower;

static void checkDisjoint(const std::vector<ArenaItem> &items, int64_t peak) {
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].offset % 64, 0);
    EXPECT_LE(items[i].offset + items[i].size, peak);
    for (size_t j = 0; j < i; ++j) {
      if (items[i].end < items[j].begin || items[j].end < items[i].begin)
        continue;
      bool apart = items[i].offset + items[i].size <= items[j].offset ||
                   items[j].offset + items[j].size <= items[i].offset;
      ASSERT_TRUE(apart) << i << " and " << j;
    }
  }
}

TEST(Arena, ChainNeedsTwoBuffers) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 10; ++i)
    items.push_back({i, i + 1, 1000, 0});
  int64_t peak = placeItems(items);
  EXPECT_EQ(peak, 2 * 1024);
  checkDisjoint(items, peak);
}

TEST(Arena, RandomItems) {
  std::mt19937 random(7);
  for (int count : {300, 6000}) { // below and above the change of method
    std::vector<ArenaItem> items;
    for (int i = 0; i < count; ++i) {
      int64_t begin = random() % count;
      items.push_back({begin, begin + int64_t(random() % 20), int64_t(random() % 5000), 0});
    }
    int64_t peak = placeItems(items);
    int64_t sum = 0;
    for (auto &i : items)
      sum += i.size;
    EXPECT_LT(peak, sum / 4);
    checkDisjoint(items, peak);
  }
}
