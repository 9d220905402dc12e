#include "compiler/quantize/Observe.h"

#include "compiler/quantize/Tail.h"
#include "passes/quantize/Taps.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

using namespace mlir;

namespace lathe::quantize {

constexpr int64_t numBins = 2048;
constexpr double percentile = 0.9999;

LogicalResult runOn(OwningOpRef<ModuleOp> module, ArrayRef<Feed> feeds, const Session &session,
                    llvm::function_ref<void(size_t, std::vector<Tensor> &)> seen, std::vector<KernelTime> *times, bool forTarget) {
  MLIRContext *context = module->getContext();
  auto say = [&](llvm::Error error) -> LogicalResult {
    std::string text = llvm::toString(std::move(error));
    return text.empty() ? failure() : emitError(UnknownLoc::get(context)) << "calibration: " << text;
  };
  auto compiled = session.makeRunnable(std::move(module), forTarget);
  if (!compiled)
    return say(compiled.takeError());
  for (auto [i, feed] : llvm::enumerate(feeds)) {
    auto results = compiled->run(feed);
    if (!results)
      return say(results.takeError());
    seen(i, *results);
  }
  if (times)
    *times = compiled->times();
  return success();
}

static func::FuncOp onlyFunction(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

std::pair<double, double> percentileRange(ArrayRef<int64_t> bins, double low, double high, double share) {
  int64_t total = 0;
  for (int64_t n : bins)
    total += n;
  const double outside = double(total) * (1 - share) / 2, width = (high - low) / double(bins.size());
  double sum = 0;
  size_t first = 0, last = bins.size();
  while (first + 1 < last && sum + double(bins[first]) <= outside)
    sum += double(bins[first++]);
  sum = 0;
  while (last > first + 1 && sum + double(bins[last - 1]) <= outside)
    sum += double(bins[--last]);
  return {low + width * double(first), low + width * double(last)};
}

std::pair<double, double> entropyRange(ArrayRef<int64_t> bins, double low, double high) {
  constexpr int levels = 256;
  const int64_t n = bins.size();
  double best = INFINITY;
  std::pair<double, double> range(low, high);
  // Both ends move towards 0 together, so that what is cut off is what is far from it.
  for (int step = 0; step < 64; ++step) {
    const double part = 1 - step / 64.0;
    const int64_t zero = std::clamp<int64_t>(int64_t(-low / (high - low) * double(n)), 0, n);
    const int64_t first = zero - int64_t(std::ceil(double(zero) * part)), last = zero + int64_t(std::ceil(double(n - zero) * part));
    const int64_t count = last - first;
    if (count < levels)
      break;
    std::vector<double> p(bins.begin() + first, bins.begin() + last), q(count, 0);
    for (int64_t i = 0; i < first; ++i)
      p.front() += double(bins[i]);
    for (int64_t i = last; i < n; ++i)
      p.back() += double(bins[i]);
    // the same with one number for all bins of a level, over those that hold anything
    for (int64_t level = 0; level < levels; ++level) {
      const int64_t from = count * level / levels, to = count * (level + 1) / levels;
      double sum = 0;
      int64_t used = 0;
      for (int64_t i = from; i < to; ++i) {
        sum += double(bins[first + i]);
        used += p[i] > 0;
      }
      for (int64_t i = from; i < to; ++i)
        q[i] = p[i] > 0 ? sum / double(used) : 0;
    }
    double ps = 0, qs = 0, divergence = 0;
    for (int64_t i = 0; i < count; ++i) {
      ps += p[i];
      qs += q[i];
    }
    for (int64_t i = 0; i < count; ++i)
      if (p[i] > 0)
        divergence += p[i] / ps * std::log(p[i] / ps / std::max(q[i] / std::max(qs, 1e-30), 1e-12));
    if (divergence < best) {
      best = divergence;
      const double width = (high - low) / double(n);
      range = {low + width * double(first), low + width * double(last)};
    }
  }
  return range;
}

namespace {

/// Ranges by the histogram of every value of the top block; `ranges` holds lowest and highest.
LogicalResult byHistogram(func::FuncOp function, ArrayRef<Feed> feeds, const Session &session, ArrayRef<UnitTaps> taps,
                          std::vector<std::pair<double, double>> &ranges, int firstTap) {
  OwningOpRef<ModuleOp> clone = function->getParentOfType<ModuleOp>().clone();
  func::FuncOp tapped = onlyFunction(*clone);
  std::vector<Unit> units = chosenUnits(tapped);
  llvm::MapVector<Value, int> wanted; // value -> which range
  for (auto [unit, tap] : llvm::zip_equal(units, taps)) {
    auto want = [&](Value v, int at) {
      if (at >= 0 && v.getParentBlock() == &tapped.getBody().front())
        wanted.insert({v, (at - firstTap) / 2});
    };
    for (auto [v, at] : llvm::zip_equal(unit.inputs, tap.inputs))
      want(v, at);
    want(unit.out, tap.output);
  }
  SmallVector<Value> values;
  std::vector<int> which;
  for (auto &[v, range] : wanted) {
    values.push_back(v);
    which.push_back(range);
  }
  const int first = addValueTaps(tapped, values);
  std::vector<std::vector<int64_t>> bins(values.size(), std::vector<int64_t>(numBins, 0));
  auto add = [&](size_t, std::vector<Tensor> &results) {
    for (size_t k = 0; k < values.size(); ++k) {
      auto [low, high] = ranges[which[k]];
      const Tensor &t = results[first + k];
      const double scale = double(numBins) / (high - low);
      if (!(high > low) || !std::isfinite(scale))
        continue;
      for (int64_t i = 0; i < t.numElements(); ++i)
        ++bins[k][std::clamp<int64_t>(int64_t((double(t.data<float>()[i]) - low) * scale), 0, numBins - 1)];
    }
  };
  if (failed(runOn(std::move(clone), feeds, session, add)))
    return failure();
  for (size_t k = 0; k < values.size(); ++k) {
    auto &range = ranges[which[k]];
    if (range.second > range.first && std::isfinite(range.second - range.first))
      range = session.options.observer == "entropy" ? entropyRange(bins[k], range.first, range.second)
                                                    : percentileRange(bins[k], range.first, range.second, percentile);
  }
  return success();
}

} // namespace

bool widensRanges(const QuantizeOptions &options) {
  // 16 bits have steps to spare, while one number outside is off by more than all rounding
  return options.observer == "minmax" && (options.maxError >= 0 || options.kind == "int16x8");
}

LogicalResult observe(func::FuncOp function, ArrayRef<Feed> feeds, ArrayRef<Feed> others, const Session &session, double &outside) {
  OwningOpRef<ModuleOp> clone = function->getParentOfType<ModuleOp>().clone();
  func::FuncOp tapped = onlyFunction(*clone);
  const int own = function.getNumResults();
  std::vector<UnitTaps> taps = addRangeTaps(tapped);
  struct Seen {
    std::vector<double> lowest, highest; ///< in each feed that is calibrated with; NaN where it did not come here
    bool finite = true;
    std::vector<std::pair<double, double>> others;
  };
  std::vector<Seen> seen((tapped.getNumResults() - own) / 2);
  auto take = [&](size_t feed, std::vector<Tensor> &results) {
    for (size_t k = 0; k < seen.size(); ++k) {
      const double low = results[own + 2 * k].data<float>()[0], high = results[own + 2 * k + 1].data<float>()[0];
      if (feed >= feeds.size()) {
        seen[k].others.push_back({low, high});
      } else if (std::isnan(low) || std::isnan(high)) {
        seen[k].finite = false;
      } else {
        seen[k].lowest.push_back(low <= high ? low : NAN);
        seen[k].highest.push_back(low <= high ? high : NAN);
      }
    }
  };
  std::vector<Feed> all(feeds.begin(), feeds.end());
  all.insert(all.end(), others.begin(), others.end());
  if (failed(runOn(std::move(clone), all, session, take)))
    return failure();
  std::vector<std::pair<double, double>> ranges;
  std::vector<Extremes> ends; // two each; lower ends are negated
  for (const Seen &s : seen) {
    auto &[low, high] = ranges.emplace_back(INFINITY, -INFINITY);
    double n = 0, lows = 0, highs = 0;
    for (auto [l, h] : llvm::zip_equal(s.lowest, s.highest)) {
      if (std::isnan(l))
        continue;
      std::tie(low, high) = std::make_pair(std::min(low, l), std::max(high, h));
      std::tie(n, lows, highs) = std::make_tuple(n + 1, lows + l, highs + h);
    }
    if (!s.finite)
      std::tie(low, high) = std::make_pair(-INFINITY, INFINITY);
    const double width = std::isfinite(low) && std::isfinite(high) ? high - low : 0;
    Extremes &down = ends.emplace_back(Extremes{s.lowest, width});
    std::transform(down.highest.begin(), down.highest.end(), down.highest.begin(), std::negate<double>());
    ends.push_back({s.highest, width});
    if (session.options.observer == "average" && std::isfinite(low) && std::isfinite(high))
      std::tie(low, high) = std::make_pair(lows / n, highs / n);
  }
  if (widensRanges(session.options)) {
    const Reach reach = expectedReach(ends);
    outside = reach.outside;
    for (auto [k, range] : llvm::enumerate(ranges))
      if (std::isfinite(range.first) && std::isfinite(range.second))
        range = {-expectedEnd(ends[2 * k], reach), expectedEnd(ends[2 * k + 1], reach)};
  }
  if ((session.options.observer == "percentile" || session.options.observer == "entropy") &&
      failed(byHistogram(function, feeds, session, taps, ranges, own)))
    return failure();
  for (auto [unit, tap] : llvm::zip_equal(chosenUnits(function), taps)) {
    SmallVector<double> numbers;
    bool isReached = true;
    auto put = [&](int at) {
      auto range = at < 0 ? std::pair<double, double>(0, 0) : ranges[(at - own) / 2];
      numbers.append({range.first, range.second});
      isReached &= range.first <= range.second;
    };
    for (int at : tap.inputs)
      put(at);
    put(tap.output);
    if (!isReached) { // it lies in a branch that no feed took, or in a loop without turns
      unit.last()->setAttr(unreachedAttr, UnitAttr::get(function.getContext()));
      continue;
    }
    unit.last()->setAttr(rangesAttr, DenseF64ArrayAttr::get(function.getContext(), numbers));
  }
  int64_t left = 0, compared = 0;
  for (auto [range, s] : llvm::zip_equal(ranges, seen))
    for (auto [low, high] : s.others)
      if (low <= high) {
        left += low < range.first || high > range.second;
        ++compared;
      }
  if (compared)
    outside = double(left) / double(compared);
  return success();
}

} // namespace lathe::quantize
