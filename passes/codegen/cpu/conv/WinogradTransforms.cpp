// The transforms of F(m, r), made from interpolation points.
//
// With the finite points p_i and M(x) the product of all (x - p_i), the row of B^T for p_i has the
// coefficients of M(x) / (x - p_i), that for infinity those of M(x). G evaluates the filter at p_i and
// divides by what that row's polynomial is there; A^T evaluates powers. M is x times a product of (x^2 -
// p^2): even and odd coefficients never mix.
#include "passes/codegen/cpu/conv/Winograd.h"

#include <cmath>

using namespace mlir;

namespace lathe::cpu {

// Of six points these lose least: a search over all pairs of sixteenths, and of eighths for eight points, by the error
// of random tiles in f32 against f64. 1 and 2 in place of the middle ones lose twice as much on average, and four times as
// much at the worst pixel. All are exact in f32, and so are the sums and products that the rows are made of.
static constexpr double pairsOfFour[] = {1}, pairsOfSix[] = {0.6875, 1.4375}, pairsOfEight[] = {1, 2, 0.5};

ArrayRef<double> WinogradAxis::pairs() const {
  if (r == 1)
    return {};
  return points() == 4 ? ArrayRef<double>(pairsOfFour) : points() == 6 ? ArrayRef<double>(pairsOfSix) : pairsOfEight;
}

/// `factor` times the product of (x^2 - p^2) over the pairs but `without`, as coefficients.
static std::vector<double> productOfPairs(ArrayRef<double> pairs, double without = 0) {
  std::vector<double> product = {1};
  for (double p : pairs) {
    if (p == without)
      continue;
    std::vector<double> next(product.size() + 2);
    for (auto [i, c] : llvm::enumerate(product)) {
      next[i] -= p * p * c;
      next[i + 2] += c;
    }
    product = std::move(next);
  }
  return product;
}

std::vector<double> WinogradAxis::zeroRow() const {
  std::vector<double> row = productOfPairs(pairs());
  for (double &c : row) // the first one positive
    c *= infinitySign();
  row.resize(points());
  return row;
}

std::vector<double> WinogradAxis::infinityRow() const {
  std::vector<double> row = zeroRow();
  row.insert(row.begin(), 0);
  row.pop_back();
  return row;
}

std::vector<double> WinogradAxis::oddTerms(double p) const {
  std::vector<double> row = productOfPairs(pairs(), p);
  row.insert(row.begin(), 0);
  row.resize(points());
  return row;
}

std::vector<double> WinogradAxis::input() const {
  if (r == 1)
    return {1};
  std::vector<double> rows = zeroRow();
  for (double pair : pairs())
    for (double p : {pair, -pair}) {
      const std::vector<double> odd = oddTerms(pair);
      for (int64_t i = 0; i < points(); ++i)
        rows.push_back(p * odd[i] + (i ? odd[i - 1] : 0));
    }
  llvm::append_range(rows, infinityRow());
  return rows;
}

std::vector<double> WinogradAxis::filter() const {
  if (r == 1)
    return {1};
  std::vector<double> rows;
  auto evaluate = [&](double p, double divisor) {
    for (int64_t k = 0; k < r; ++k)
      rows.push_back(std::pow(p, k) / divisor);
  };
  evaluate(0, zeroRow()[0]);
  for (double pair : pairs())
    for (double p : {pair, -pair}) {
      double odd = 0; // which is as large as the even terms at p, but for a factor p
      for (auto [i, c] : llvm::enumerate(oddTerms(pair)))
        odd += c * std::pow(p, i);
      evaluate(p, 2 * p * odd);
    }
  rows.resize(rows.size() + r);
  rows.back() = 1;
  return rows;
}

std::vector<double> WinogradAxis::output() const {
  if (r == 1)
    return {1};
  std::vector<double> rows;
  for (int64_t i = 0; i < m; ++i) {
    rows.push_back(i == 0);
    for (double pair : pairs())
      for (double p : {pair, -pair})
        rows.push_back(std::pow(p, i));
    rows.push_back(i == m - 1 ? infinitySign() : 0);
  }
  return rows;
}

SmallVector<int64_t> winogradTileSizes(int64_t windowHeight, int64_t windowWidth) {
  SmallVector<int64_t> sizes;
  // in both directions six pixels of three taps would lose too much accuracy
  const bool oneWay = windowHeight == 1 || windowWidth == 1;
  for (int64_t m : {6, 4, 3, 2})
    if (WinogradTile(m, windowHeight, windowWidth).isKnown() && (m < 6 || oneWay))
      sizes.push_back(m);
  return sizes;
}

} // namespace lathe::cpu
