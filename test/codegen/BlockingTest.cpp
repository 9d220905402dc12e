// Blocks of rows: never more than fit, and such that threads that each run a share of the units end together.
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/cpu/target/Blocking.h"
#include "gtest/gtest.h"

using namespace lathe::cpu;

namespace {

BlockedWork work(int64_t outer, int64_t rows, int64_t panels) {
  BlockedWork w;
  w.outer = outer;
  w.rows = rows;
  w.panels = panels;
  w.rowCycles = 256 * 14;
  w.rowBytes = 256 * 14 * 4;
  w.panelBytes = 256 * 32 * 4;
  return w;
}

/// Rows times panels of the thread with most of them, as a multiple of an even share.
double unevenness(const BlockedWork &w, int64_t perBlock, int64_t threads) {
  int64_t blocks = (w.rows + perBlock - 1) / perBlock, units = w.outer * blocks * w.panels;
  double most = 0;
  for (int64_t t = 0; t < threads; ++t) {
    int64_t mine = 0;
    for (int64_t u = units * t / threads; u < units * (t + 1) / threads; ++u) {
      const int64_t block = u / w.panels % blocks;
      mine += firstOfBlock(block + 1, blocks, w.rows) - firstOfBlock(block, blocks, w.rows);
    }
    most = std::max<double>(most, mine);
  }
  return most * threads / (double(w.outer) * w.rows * w.panels);
}

TEST(Blocking, FitsAndCoversForAnySizes) {
  for (int threads : {1, 2, 3, 8, 64})
    for (int64_t outer : {1, 2, 40})
      for (int64_t rows : {1, 2, 4, 7, 14, 56, 900})
        for (int64_t panels : {1, 2, 5, 12, 954})
          for (int64_t most : {1, 3, 100, 100000}) {
            KernelTarget target;
            target.threads = threads;
            int64_t got = rowsPerBlock(target, work(outer, rows, panels), most);
            ASSERT_GE(got, 1);
            ASSERT_LE(got, std::min(most, rows));
          }
}

TEST(Blocking, SharesEvenlyAmongThreads) {
  for (int threads : {2, 4})
    for (int64_t rows : {8, 14, 56, 224, 896})
      for (int64_t panels : {1, 2, 3, 5, 12, 24}) {
        KernelTarget target;
        target.threads = threads;
        BlockedWork w = work(1, rows, panels);
        EXPECT_LE(unevenness(w, rowsPerBlock(target, w, 1000), threads), 1.15) << rows << " rows, " << panels << " panels, " << threads;
      }
}

// 28x28 pixels make 61 tiles of 12 or 13 rows: four blocks of 16, 16, 16 and 13 would give one thread a tenth more.
TEST(Blocking, BlocksShareRowsThatDoNotDivide) {
  KernelTarget target;
  target.threads = 2;
  for (int64_t rows : {61, 49, 37, 29})
    for (int64_t panels : {1, 2, 4, 8}) {
      BlockedWork w = work(1, rows, panels);
      EXPECT_LE(unevenness(w, rowsPerBlock(target, w, 16), 2), 1.045) << rows << " rows, " << panels << " panels";
    }
  for (int64_t rows : {1, 7, 61})
    for (int64_t blocks : {1, 2, 4, 7}) {
      EXPECT_EQ(firstOfBlock(0, blocks, rows), 0);
      EXPECT_EQ(firstOfBlock(blocks, blocks, rows), rows);
      for (int64_t i = 0; i < blocks; ++i)
        EXPECT_LE(firstOfBlock(i + 1, blocks, rows) - firstOfBlock(i, blocks, rows), (rows + blocks - 1) / blocks);
    }
}

// 7x7 pixels and 160 channels: four tiles of rows, five panels. All rows in one block would give one thread three panels.
TEST(Blocking, SplitsFewRowsWhenPanelsAreOdd) {
  KernelTarget target;
  target.l2 = 2 << 20;
  EXPECT_EQ(rowsPerBlock(target, work(1, 4, 5), 100), 4);
  target.threads = 2;
  EXPECT_EQ(rowsPerBlock(target, work(1, 4, 5), 100), 2);
  EXPECT_EQ(rowsPerBlock(target, work(1, 4, 24), 100), 4);
}

TEST(Blocking, StripsOfEqualShares) {
  EXPECT_EQ(vectorsPerStrip(2, 4, 1), 4);
  EXPECT_EQ(vectorsPerStrip(2, 4, 2), 1);  // 32 channels: a vector each
  EXPECT_EQ(vectorsPerStrip(6, 4, 2), 3);  // 96: three each, not four and two
  EXPECT_EQ(vectorsPerStrip(9, 4, 2), 1);
  EXPECT_EQ(vectorsPerStrip(16, 4, 2), 4); // nothing to gain
  EXPECT_EQ(vectorsPerStrip(0, 4, 2), 4);
}

// Few rows: as many sums as hide the latency of multiply-adds.
TEST(Blocking, WideTilesForFewRows) {
  mlir::MLIRContext context;
  mlir::Type f32 = mlir::Float32Type::get(&context);
  KernelTarget target;
  target.vectorBits = 512;
  target.avx512 = true;
  target.numVectorRegs = 32;
  for (int64_t rows : {2, 3, 4, 5})
    EXPECT_EQ(chooseTile(target, f32, rows, 512).columns(), 64) << rows << " rows";
  EXPECT_EQ(chooseTile(target, f32, 13, 512).columns(), 32);
  EXPECT_EQ(chooseTile(target, f32, 4, 32).columns(), 32);
}

} // namespace
