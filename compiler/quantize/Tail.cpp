#include "compiler/quantize/Tail.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lathe::quantize {

constexpr double inside = 2.3263479;    // standard deviations that 99 % of normal numbers stay below
constexpr double bothSides = 2.5758293; // the same of their magnitudes
constexpr double ofTwo = 2.8070338;     // the same of the larger one of two at least
constexpr double sure = 1.2815516;      // the same for 90 %

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

/// How many deviations of a sample above its mean the limit lies: Natrella's approximation of the quantile of
/// Student's t off its centre, within 2 % from 8 samples on.
double normalFactor(double n) {
  const double a = 1 - sure * sure / (2 * (n - 1)), b = inside * inside - sure * sure / n;
  return (inside + std::sqrt(inside * inside - a * b)) / a;
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
  std::vector<double> logs;
  double power = 0;
  for (double peak : peaks) {
    logs.push_back(std::log(std::max(peak, 1e-3 * most)));
    power += peak / most * (peak / most) / n;
  }
  const Moments log = momentsOf(logs);
  const double logNormal = std::exp(log.mean + normalFactor(n) * log.deviation), pairs = ofTwo * std::sqrt(meanSquare),
               normal = deviationFactor(n) * (numbers > 1 && numbers <= 2 ? pairs : bothSides * most * std::sqrt(power));
  const double limit = std::min(logNormal, normal);
  return {std::max(most, limit), limit < most ? "largest" : logNormal <= normal ? "log-normal" : "normal"};
}

double expectedEnd(llvm::ArrayRef<double> highest, double width) {
  constexpr double gamma = 0.5772157, pi = 3.1415927, share = 1e-3;
  const double most = *std::max_element(highest.begin(), highest.end());
  if (highest.size() < fewestSamples || !std::isfinite(most))
    return most;
  const Moments m = momentsOf(highest);
  if (!std::isfinite(m.deviation))
    return most;
  const double scale = m.deviation * std::sqrt(6.0) / pi,
               end = m.mean + scale * (-std::log(-std::log1p(-share)) - gamma);
  return std::clamp(end, most, most + width / 2);
}

} // namespace lathe::quantize
