// Limits from few samples, against the distributions that these are drawn from.
#include "compiler/quantize/Tail.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace lathe::quantize;

namespace {

struct Coverage {
  double reached = 0; ///< how often the limit is at least the true 99 %
  double excess = 0;  ///< the mean of limit to truth
};

template <typename Draw>
Coverage coverage(size_t samples, double truth, const char *law, Draw draw) {
  constexpr int trials = 4000;
  Coverage c;
  int ofLaw = 0;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> peaks(samples);
    for (double &peak : peaks)
      peak = draw();
    const ErrorLimit limit = errorLimit(peaks, 0, 1000);
    ofLaw += limit.law == std::string(law) || limit.law == std::string("largest");
    c.reached += (limit.value >= truth) / double(trials);
    c.excess += limit.value / truth / double(trials);
  }
  EXPECT_GT(ofLaw, trials * 9 / 10) << law;
  return c;
}

ErrorLimit limitOf(const std::vector<double> &peaks) { return errorLimit(peaks, 0, 1000); }

TEST(TailTest, LimitsReachTheTailAsOftenAsTheySay) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (size_t samples : {8, 16, 64}) {
    const Coverage one = coverage(samples, 0.01 * std::exp(2.3263 * 0.2), "log-normal",
                                  [&] { return 0.01 * std::exp(0.2 * normal(random)); });
    EXPECT_GT(one.reached, 0.87) << samples;
    EXPECT_LT(one.excess, 1.35) << samples;
    const Coverage two =
        coverage(samples, 0.02 * 2.5758, "normal", [&] { return 0.02 * std::abs(normal(random)); });
    EXPECT_GT(two.reached, 0.88) << samples;
    EXPECT_LT(two.excess, 1.55) << samples;
    EXPECT_LT(samples < 64 ? 0 : two.excess, 1.2) << "more samples say more";
  }
}

TEST(TailTest, BothOfTwoNumbersCount) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  constexpr int trials = 4000;
  for (bool alike : {false, true}) {
    double reached = 0, excess = 0;
    const double truth = alike ? 2.5758 : 2.807;
    for (int t = 0; t < trials; ++t) {
      std::vector<double> peaks;
      double squares = 0;
      for (int i = 0; i < 16; ++i) {
        const double x = normal(random), y = alike ? x : normal(random);
        peaks.push_back(std::max(std::abs(x), std::abs(y)));
        squares += x * x + y * y;
      }
      const double limit = errorLimit(peaks, squares / 32, 2).value;
      reached += (limit >= truth) / double(trials);
      excess += limit / truth / trials;
    }
    EXPECT_GT(reached, 0.88) << alike;
    EXPECT_LT(excess, 1.45) << alike;
  }
}

TEST(TailTest, FewSamplesAndOddOnesSayTheLargest) {
  EXPECT_EQ(limitOf({}).value, 0);
  EXPECT_EQ(limitOf({0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1}).value, 0.3);
  EXPECT_EQ(limitOf(std::vector<double>(16, 0)).value, 0);
  EXPECT_NEAR(limitOf(std::vector<double>(16, 0.2)).value, 0.2, 1e-12);
  std::vector<double> infinite(16, 0.2);
  infinite[3] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(limitOf(infinite).value, infinite[3]);
  std::vector<double> tiny(16, 1e-300); // squares are below what doubles hold
  tiny[1] = 1e-302;
  EXPECT_GE(limitOf(tiny).value, 1e-300);
  EXPECT_LT(limitOf(tiny).value, 1e-297);
}

TEST(TailTest, EndsOfRangesHoldWhatIsExpected) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  auto highest = [&] { // of many elements
    double most = 0;
    for (int i = 0; i < 200; ++i)
      most = std::max(most, normal(random));
    return most;
  };
  int beyond = 0, beyondSeen = 0;
  constexpr int trials = 1000;
  double wider = 0;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> seen(16);
    for (double &v : seen)
      v = highest();
    const double most = *std::max_element(seen.begin(), seen.end()), end = expectedEnd(seen, 2 * most);
    EXPECT_GE(end, most);
    wider += end / most / trials;
    for (int i = 0; i < 5; ++i) {
      const double next = highest();
      beyond += next > end;
      beyondSeen += next > most;
    }
  }
  EXPECT_GT(beyondSeen, 5 * trials / 30); // one in 17
  EXPECT_LT(beyond, 5 * trials / 150);
  EXPECT_LT(wider, 1.35);
}

TEST(TailTest, EndsStayWhereNothingSpreads) {
  EXPECT_EQ(expectedEnd(std::vector<double>(16, 6.0), 6), 6); // a clamp
  EXPECT_EQ(expectedEnd({1, 2, 3}, 3), 3);
  std::vector<double> wild(16, 0);
  wild[0] = 100;
  EXPECT_EQ(expectedEnd(wild, 40), 120); // at most half of the width more
  wild[0] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(expectedEnd(wild, 100), wild[0]);
}

} // namespace
