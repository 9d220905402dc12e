// How a Fourier transform of known length is split into passes: the cheapest by an estimate of vector
// operations.
#include "passes/codegen/library/Fft.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace lathe::codegen {

std::complex<long double> rootOfUnity(int64_t k, int64_t n) {
  constexpr long double kTwoPi = 6.283185307179586476925286766559005768L;
  // to the first eighth of the circle, whose sines are exact to the last digit
  k = (k % n + n) % n;
  int64_t eighth = static_cast<int64_t>(static_cast<__int128>(k) * 8 / n);
  int64_t quarter = (eighth + 1) / 2;
  __int128 rest = static_cast<__int128>(k) * 4 - static_cast<__int128>(quarter) * n; // of 4 n
  long double x = kTwoPi * static_cast<long double>(rest) / (4 * static_cast<long double>(n));
  std::complex<long double> w(cosl(x), -sinl(x));
  for (; quarter % 4; --quarter)
    w = {w.imag(), -w.real()};
  return w;
}

// Additions and multiplications of a butterfly of p numbers.
static double operations(int64_t p) {
  if (p <= 1)
    return 0;
  if (p == 2)
    return 4;
  if (p == 4)
    return 16;
  for (int64_t a : {4, 2, 3, 5, 7, 11, 13})
    if (p % a == 0 && p != a)
      return double(a) * operations(p / a) + double(p / a) * operations(a) +
             4 * double((a - 1) * (p / a - 1));
  double half = double(p - 1) / 2;
  return half * (4 * half + 10);
}

// A pass of radix p, per butterfly: arithmetic, twiddles, loads and stores, and what goes to the stack.
static double passCost(const KernelTarget &target, int64_t p) {
  double spilled = std::max(0.0, 2.0 * double(p) + 2 - target.numVectorRegs);
  return operations(p) + 4 * double(p - 1) + 6 * double(p) + 3 * spilled;
}

static constexpr int64_t mostSecond = 1 << 15;
static constexpr int64_t radices[] = {16, 13, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2};

namespace {
struct Passes {
  SmallVector<int64_t> radices;
  double cost = 0; ///< a number
};
} // namespace

// The cheapest passes of all that multiply to n, each number going through each.
static std::optional<Passes> cheapest(const KernelTarget &target, int64_t n,
                                      std::map<int64_t, std::optional<Passes>> &known) {
  if (n == 1)
    return Passes();
  auto [it, isNew] = known.try_emplace(n);
  if (!isNew)
    return it->second;
  std::optional<Passes> best;
  for (int64_t p : radices)
    if (n % p == 0)
      if (auto rest = cheapest(target, n / p, known)) {
        double cost = rest->cost + passCost(target, p) / double(p);
        if (!best || cost < best->cost) {
          best = rest;
          best->cost = cost;
          best->radices.push_back(p);
        }
      }
  return known[n] = best;
}

std::optional<FftPlan> planFft(const KernelTarget &target, int64_t n, unsigned lanes, bool sideBySide) {
  std::map<int64_t, std::optional<Passes>> known;
  std::optional<FftPlan> best;
  if (!cheapest(target, n, known))
    return std::nullopt;
  auto consider = [&](int64_t s, unsigned v) {
    FftPlan plan;
    plan.n = n;
    plan.s = s;
    plan.m = n / s;
    plan.lanes = v;
    // odd radices while there is most left: what is left is then a multiple of the vector for long
    plan.first = cheapest(target, s, known)->radices;
    plan.second = cheapest(target, plan.m, known)->radices;
    llvm::sort(plan.first, [](int64_t x, int64_t y) { return std::pair(x % 2, x) > std::pair(y % 2, y); });
    auto vectors = [&](int64_t count) { return double((count + v - 1) / v); };
    int64_t done = 1;
    for (int64_t p : plan.first) {
      plan.cost += double(done) * vectors(n / (done * p)) * passCost(target, p);
      done *= p;
    }
    if (!sideBySide && v > 1)
      plan.cost += vectors(s) * vectors(plan.m) * v * (8 + 2 * std::log2(v));
    for (int64_t p : plan.second)
      plan.cost += double(plan.m / p) * (sideBySide ? 1.0 : vectors(s)) * passCost(target, p);
    // two halves of a vector where multiply-adds are, which loads and shuffles are not
    if (target.avx512 && target.fmas == 1 && v == lanes)
      plan.cost *= 1.6;
    if (!best || plan.cost < best->cost)
      best = plan;
  };
  if (sideBySide) {
    consider(1, lanes);
    return best;
  }
  consider(1, 1);
  SmallVector<int64_t> divisors;
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) {
      divisors.push_back(d);
      if (d * d != n)
        divisors.push_back(n / d);
    }
  for (unsigned v = lanes; v > 1; v /= 2)
    for (int64_t s : divisors)
      if (n / s <= mostSecond) // the roots of the other passes are all in tables
        consider(s, v);
  return best;
}

} // namespace lathe::codegen
