#include "compiler/quantize/Tail.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lathe::quantize {

constexpr double beyondLimit = 0.01;    // the share of inputs whose errors are above the limit
constexpr double beyondRanges = 0.005;  // the share of inputs that leave a range
constexpr double bothSides = 2.5758293; // standard deviations that the magnitudes of 99 % of normal numbers stay below
constexpr double ofTwo = 2.8070338;     // the same of the larger one of two at least
constexpr double sure = 1.6448536;      // those that 95 % of normal numbers stay below

namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments momentsOf(llvm::ArrayRef<double> values) {
  const double n = static_cast<double>(values.size());
  Moments m;
  for (double v : values)
    m.mean += v / n;
  double squares = 0; // of what is left: large means would drown the deviation of small ones
  for (double v : values)
    squares += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(squares / (n - 1));
  return m;
}

/// How many deviations above its mean a Gumbel-distributed number lies with a probability of `share`.
double gumbelFactor(double share) {
  constexpr double gamma = 0.5772157, pi = 3.1415927;
  return std::sqrt(6.0) / pi * (-std::log(-std::log1p(-share)) - gamma);
}

/// The same with the moments of n numbers in place of the distribution's, for a limit that is high enough in 95 of 100 samples. Of the
/// moments' errors in deviations, n times the variances are 1 (mean) and 1.1 (deviation), and 0.57 is what they have in common: by the
/// distribution's skewness and kurtosis.
double gumbelTolerance(double n) {
  constexpr double ofDeviation = 1.1, common = 0.57;
  const double factor = gumbelFactor(beyondLimit), part = sure * sure / n; // (k - factor)^2 = part (1 + 2 common k + ofDeviation k^2)
  const double a = 1 - ofDeviation * part, b = factor + common * part;
  return (b + std::sqrt(b * b - a * (factor * factor - part))) / a;
}

/// By how much a root mean square has to be larger to be sure of the deviation: the sum of n squares is chi-square, of which Wilson and
/// Hilferty's cube is the lower 5 %.
double deviationFactor(double n) {
  const double part = 2 / (9 * n), root = 1 - part - sure * std::sqrt(part);
  return 1 / std::sqrt(root * root * root);
}

} // namespace

ErrorLimit errorLimit(llvm::ArrayRef<double> peaks, double meanSquare, double numbers) {
  const double most = peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
  if (peaks.size() < fewestSamples || most == 0 || !std::isfinite(most))
    return {most, "largest"};
  const double n = static_cast<double>(peaks.size());
  double power = 0;
  for (double peak : peaks)
    power += peak / most * (peak / most) / n;
  const Moments m = momentsOf(peaks);
  const double gumbel = m.mean + gumbelTolerance(n) * m.deviation, pairs = ofTwo * std::sqrt(meanSquare),
               normal = deviationFactor(n) * (numbers > 1 && numbers <= 2 ? pairs : bothSides * most * std::sqrt(power));
  const double limit = std::min(gumbel, normal);
  return {std::max(most, limit), limit < most ? "largest" : gumbel <= normal ? "Gumbel" : "normal"};
}

Reach expectedReach(llvm::ArrayRef<Extremes> ranges) {
  constexpr double negligible = 0.01; // of a width: numbers that hardly spread are as good as still
  std::vector<double> farthest;       // in each input, over all ranges
  std::vector<double> residuals;
  for (const Extremes &r : ranges) {
    std::vector<double> seen;
    for (double v : r.highest)
      if (std::isfinite(v))
        seen.push_back(v);
    if (seen.size() < fewestSamples || !(r.width > 0) || !std::isfinite(r.width))
      continue;
    farthest.resize(std::max(farthest.size(), r.highest.size()), -INFINITY);
    const Moments m = momentsOf(seen);
    const double n = static_cast<double>(seen.size());
    for (auto [i, v] : llvm::enumerate(r.highest)) {
      if (!std::isfinite(v))
        continue;
      // mean and deviation of the others
      const double off = v - m.mean, mean = m.mean - off / (n - 1),
                   squares = std::max(0.0, m.deviation * m.deviation * (n - 1) - off * off * n / (n - 1));
      const double residual = (v - mean) / std::max(std::sqrt(squares / (n - 2)), negligible * r.width);
      residuals.push_back(residual);
      farthest[i] = std::max(farthest[i], residual);
    }
  }
  llvm::erase_if(farthest, [](double v) { return !std::isfinite(v); });
  if (farthest.size() < fewestSamples)
    return {};
  const Moments m = momentsOf(farthest);
  Reach reach{m.mean + gumbelFactor(beyondRanges) * m.deviation, 0};
  const auto passed = llvm::count_if(residuals, [&](double v) { return v > reach.deviations; });
  reach.outside = static_cast<double>(passed) / static_cast<double>(residuals.size());
  return reach;
}

double expectedEnd(const Extremes &range, const Reach &reach) {
  std::vector<double> seen;
  for (double v : range.highest)
    if (!std::isnan(v))
      seen.push_back(v);
  const double most = seen.empty() ? -INFINITY : *std::max_element(seen.begin(), seen.end());
  if (seen.size() < fewestSamples || !std::isfinite(most) || reach.deviations <= 0)
    return most;
  const Moments m = momentsOf(seen);
  if (!std::isfinite(m.deviation))
    return most;
  return std::clamp(m.mean + reach.deviations * m.deviation, most, most + range.width / 2);
}

} // namespace lathe::quantize
