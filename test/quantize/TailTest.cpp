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
  constexpr int trials = 2000;
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
  std::extreme_value_distribution<double> extreme(0.01, 0.0008);
  auto largestOfMany = [&] { // as an output of 100 numbers has
    double most = 0;
    for (int i = 0; i < 100; ++i)
      most = std::max(most, std::abs(normal(random)));
    return most;
  };
  const double quantile = -std::log(-std::log(0.99));
  for (size_t samples : {8, 16, 32, 64}) {
    const Coverage one = coverage(samples, 0.01 + 0.0008 * quantile, "Gumbel", [&] { return extreme(random); });
    EXPECT_GT(one.reached, 0.94) << samples;
    EXPECT_LT(one.excess, samples < 16 ? 1.5 : 1.25) << samples;
    const Coverage many = coverage(samples, 3.888, "Gumbel", largestOfMany); // 1 - 0.99^(1 / 100) of both tails
    EXPECT_GT(many.reached, 0.94) << samples;
    EXPECT_LT(many.excess, samples < 16 ? 1.7 : 1.35) << samples;
    const Coverage two =
        coverage(samples, 0.02 * 2.5758, "normal", [&] { return 0.02 * std::abs(normal(random)); });
    EXPECT_GT(two.reached, 0.93) << samples;
    EXPECT_LT(two.excess, samples < 16 ? 1.8 : 1.55) << samples;
    EXPECT_LT(samples < 64 ? 0 : two.excess, 1.25) << "more samples say more";
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
    EXPECT_GT(reached, 0.93) << alike;
    EXPECT_LT(excess, 1.6) << alike;
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

/// Of `ranges` values of one model, each the largest of 50 numbers: how many inputs leave none of the ranges made from a few, all of which
/// depend on the size of an input by `together`.
struct Held {
  double within = 0, withinSeen = 0, wider = 0, reach = 0, outside = 0;
};

Held hold(size_t samples, size_t ranges, double together, std::mt19937 &random) {
  std::normal_distribution<double> normal;
  auto draw = [&] {
    std::vector<double> highest(ranges);
    const double size = 1 + together * normal(random);
    for (double &v : highest) {
      v = 0;
      for (int i = 0; i < 50; ++i)
        v = std::max(v, size * normal(random));
    }
    return highest;
  };
  Held held;
  constexpr int trials = 60, unseen = 20;
  for (int t = 0; t < trials; ++t) {
    std::vector<Extremes> seen(ranges);
    for (size_t i = 0; i < samples; ++i) {
      const std::vector<double> highest = draw();
      for (size_t r = 0; r < ranges; ++r)
        seen[r].highest.push_back(highest[r]);
    }
    std::vector<double> most, ends;
    for (Extremes &s : seen) {
      most.push_back(*std::max_element(s.highest.begin(), s.highest.end()));
      s.width = 2 * most.back();
    }
    const Reach reach = expectedReach(seen);
    held.reach += reach.deviations / trials;
    held.outside += reach.outside / trials;
    for (size_t r = 0; r < ranges; ++r) {
      ends.push_back(expectedEnd(seen[r], reach));
      EXPECT_GE(ends.back(), most[r]);
      held.wider += ends.back() / most[r] / double(trials * ranges);
    }
    for (int i = 0; i < unseen; ++i) {
      const std::vector<double> next = draw();
      bool all = true, allSeen = true;
      for (size_t r = 0; r < ranges; ++r) {
        all &= next[r] <= ends[r];
        allSeen &= next[r] <= most[r];
      }
      held.within += all / double(trials * unseen);
      held.withinSeen += allSeen / double(trials * unseen);
    }
  }
  return held;
}

TEST(TailTest, InputsLeaveNoneOfManyRanges) {
  std::mt19937 random(2);
  double before = 0;
  for (size_t ranges : {1, 10, 60}) {
    const Held apart = hold(16, ranges, 0, random), together = hold(16, ranges, 0.1, random);
    EXPECT_LT(apart.withinSeen, 0.96) << ranges;
    EXPECT_GT(apart.within, 0.97) << ranges;
    EXPECT_GT(together.within, 0.97) << ranges;
    EXPECT_LT(apart.wider, 1.8) << ranges;
    EXPECT_GT(apart.reach, before) << "more ranges, of which none is to be left, lie farther out";
    EXPECT_LT(apart.outside, 0.05) << ranges;
    before = apart.reach;
  }
  EXPECT_GT(hold(32, 60, 0, random).within, 0.98);
  EXPECT_LT(hold(32, 10, 0, random).reach, hold(10, 10, 0, random).reach) << "what more inputs tell is surer";
}

TEST(TailTest, EndsStayWhereNothingSpreads) {
  const std::vector<double> still(16, 6.0);
  std::vector<double> spread;
  for (int i = 0; i < 16; ++i)
    spread.push_back(10 + 0.1 * i);
  const Reach reach = expectedReach({{still, 6}, {spread, 20}});
  EXPECT_GT(reach.deviations, 2);
  EXPECT_LT(reach.deviations, 10);
  EXPECT_EQ(expectedEnd({still, 6}, reach), 6); // a clamp
  EXPECT_EQ(expectedEnd({{1, 2, 3}, 3}, reach), 3);
  EXPECT_EQ(expectedReach({{{1, 2, 3}, 3}}).deviations, 0);
  EXPECT_EQ(expectedEnd({spread, 20}, Reach()), spread.back());
  std::vector<double> barely = still; // one step of f32 in a range of 12: no end has to go far
  barely[5] = 6.0000005;
  EXPECT_LT(expectedReach({{barely, 12}, {spread, 20}}).deviations, reach.deviations + 0.1);
  std::vector<double> wild(16, 0);
  wild[0] = 100;
  EXPECT_EQ(expectedEnd({wild, 40}, {8, 0}), 120); // at most half of the width more
  wild[0] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(expectedEnd({wild, 100}, {8, 0}), wild[0]);
  EXPECT_EQ(expectedReach({{wild, wild[0]}}).deviations, 0);
}

TEST(TailTest, ValuesThatWereNotAlwaysComputedCountWhereTheyWere) {
  std::vector<double> spread, half;
  for (int i = 0; i < 20; ++i) {
    spread.push_back(i % 7);
    half.push_back(i % 2 ? NAN : i % 7);
  }
  EXPECT_GT(expectedReach({{half, 6}}).deviations, 1);
  EXPECT_EQ(expectedReach({{half, 6}, {spread, 12}}).outside, 0);
  EXPECT_GT(expectedEnd({half, 60}, {3, 0}), 6);
  EXPECT_EQ(expectedEnd({std::vector<double>(9, NAN), 1}, {3, 0}), -INFINITY);
}

} // namespace
