#include "passes/quantize/FloatSteps.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace lathe::quantize {
namespace {

constexpr int64_t least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();

/// What is asked of one sum: that it reaches k, or that it does not. `half` is k - 0.5.
struct Place {
  float x, half;
  bool reaches, evenK;

  bool holds(float y) const { return (y > half || (y == half && evenK)) == reaches; }
};

/// Whether all hold, with a product that is rounded and one that is not.
bool allHold(ArrayRef<Place> places, float factor, float add) {
  return llvm::all_of(places, [&](const Place &p) {
    // through double, so that no compiler makes one operation of both
    const float product = static_cast<float>(double(p.x) * double(factor));
    return p.holds(product + add) && p.holds(std::fma(p.x, factor, add));
  });
}

/// A number to add with which all hold.
std::optional<float> findAdd(ArrayRef<Place> places, float factor) {
  if (places.empty())
    return 0.0f;
  const double infinity = std::numeric_limits<double>::infinity();
  double low = -infinity, high = infinity;
  for (const Place &p : places) {
    const double add = double(p.half) - double(p.x) * double(factor);
    (p.reaches ? low : high) = p.reaches ? std::max(low, add) : std::min(high, add);
  }
  if (low > high)
    return std::nullopt;
  // sums of one side alone
  low = low == -infinity ? high - 0.25 : low;
  high = high == infinity ? low + 0.25 : high;
  // Outwards from the middle; numbers that lie closer to each other than floats are the same.
  constexpr int parts = 32;
  std::optional<float> before[2];
  for (int i = 0; i <= parts; ++i) {
    const auto add = static_cast<float>(low + (high - low) * (0.5 + (i % 2 ? 0.5 : -0.5) * i / parts));
    if (add == before[i % 2])
      continue;
    before[i % 2] = add;
    if (allHold(places, factor, add))
      return add;
  }
  return std::nullopt;
}

/// The least sum that reaches k; one more than the largest where none does. Found from a guess.
int64_t findStep(llvm::function_ref<int64_t(int32_t)> exact, int64_t k, double guess) {
  auto reaches = [&](int64_t x) { return x > most || (x >= least && exact(int32_t(x)) >= k); };
  int64_t low = int64_t(std::clamp(guess, double(least), double(most))), high = low;
  for (int64_t by = 1; reaches(low); by *= 4) {
    high = low;
    low -= by;
  }
  for (int64_t by = 1; !reaches(high); by *= 4) {
    low = high;
    high += by;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

} // namespace

std::optional<FloatSteps> findFloatSteps(llvm::function_ref<int64_t(int32_t x)> exact, double factor, double tie, int64_t zeroPoint,
                                         Range range) {
  // Factors around the nearest one: each rounds products otherwise. More than these seldom find what they do not.
  constexpr int tries = 12;
  if (!(factor >= 0 && factor < 0.5))
    return std::nullopt;
  SmallVector<Place, 0> above, below; // of sums from 0 on, and below
  auto ask = [&](int64_t x, int64_t k, bool reaches) {
    SmallVector<Place, 0> &side = tie != 0 && x < 0 ? below : above;
    side.push_back({float(x), float(double(k) - 0.5), reaches, k % 2 == 0});
  };
  for (int64_t k = range.first + 1; k <= range.second; ++k) {
    const double half = double(k - zeroPoint) - 0.5, moved = half > 0 ? half - tie : half + tie;
    const int64_t step = findStep(exact, k, factor > 0 ? std::ceil(moved / factor) : 0);
    if (step <= most)
      ask(step, k, true);
    if (step > least)
      ask(step - 1, k, false);
  }
  const auto nearest = static_cast<float>(factor);
  for (int i = 0; i < 2 * tries + 1; ++i) {
    const int away = i % 2 ? (i + 1) / 2 : -(i / 2);
    if (away != 0 && !std::isnormal(nearest))
      break;
    const float f = away == 0 ? nearest : llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(nearest) + uint32_t(away));
    std::optional<float> add = findAdd(above, f), under = add ? findAdd(below, f) : std::nullopt;
    if (!under)
      continue;
    // the range cuts all sums of a side of which nothing is asked
    if (below.empty())
      under = add;
    if (above.empty())
      add = under;
    if (*under <= *add)
      return FloatSteps{f, *add, *under};
  }
  return std::nullopt;
}

} // namespace lathe::quantize
