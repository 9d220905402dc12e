// Accuracy of the emitted functions over a dense sample of all floats; MathExhaustive runs every float.
#include "KernelHarness.h"
#include "MathSweep.h"

#include <gtest/gtest.h>

namespace lathe::test {

class MathAccuracy : public testing::TestWithParam<MathCase> {};

TEST_P(MathAccuracy, WithinUlp) {
  const MathCase &c = GetParam();
  struct Config {
    const char *cpu;
    unsigned lanes;
  };
  for (Config k : {Config{"host", 16}, Config{"x86-64-v3", 8}, Config{"x86-64-v3", 1}}) {
    if (!hostRuns(k.cpu))
      continue;
    SweepResult r = sweep(c, 15013, k.cpu, k.lanes);
    ASSERT_TRUE(r.ok);
    EXPECT_LE(r.worstUlp, c.maxUlp) << c.name << " at " << r.worstAt << ": " << r.got << ", expected " << r.want;
    EXPECT_EQ(r.wrongSpecial, 0u) << c.name << " at " << r.specialAt;
    RecordProperty(c.name, std::to_string(r.worstUlp));
  }
}

INSTANTIATE_TEST_SUITE_P(F32, MathAccuracy, testing::ValuesIn(mathCases()),
                         [](const auto &info) { return info.param.name; });

} // namespace lathe::test
