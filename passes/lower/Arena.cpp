// Up to a few thousand items: largest first, each into the smallest gap that is free during its life (the best of the
// simple heuristics on convolutional networks). More: one sweep in program order with a best-fit free list.
#include "passes/lower/Arena.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

using namespace mlir;

namespace lathe::lower {
namespace {

constexpr int64_t align = 64;
constexpr size_t quadraticLimit = 4000;

int64_t placeLargestFirst(std::vector<ArenaItem> &items, const std::vector<size_t> &order) {
  std::vector<size_t> placed; // by offset
  int64_t peak = 0;
  for (size_t i : order) {
    ArenaItem &item = items[i];
    int64_t size = llvm::alignTo(item.size, align), at = 0, best = -1, bestGap = INT64_MAX;
    for (size_t j : placed) {
      const ArenaItem &other = items[j];
      if (other.end < item.begin || item.end < other.begin)
        continue;
      int64_t gap = other.offset - at;
      if (gap >= size && gap < bestGap) {
        best = at;
        bestGap = gap;
      }
      at = std::max(at, other.offset + int64_t(llvm::alignTo(other.size, align)));
    }
    item.offset = best >= 0 ? best : at;
    peak = std::max(peak, item.offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return items[a].offset < items[b].offset; }),
                  i);
  }
  return peak;
}

int64_t placeInSweep(std::vector<ArenaItem> &items, const std::vector<size_t> &byBegin) {
  std::map<int64_t, int64_t> freeAt;                   // offset -> size, never adjacent
  std::set<std::pair<int64_t, int64_t>> freeBySize;    // (size, offset)
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>, std::greater<>> live;
  int64_t peak = 0;
  auto release = [&](int64_t offset, int64_t size) {
    auto next = freeAt.lower_bound(offset);
    if (next != freeAt.end() && next->first == offset + size) {
      size += next->second;
      freeBySize.erase({next->second, next->first});
      next = freeAt.erase(next);
    }
    if (next != freeAt.begin()) {
      auto prev = std::prev(next);
      if (prev->first + prev->second == offset) {
        offset = prev->first;
        size += prev->second;
        freeBySize.erase({prev->second, prev->first});
        freeAt.erase(prev);
      }
    }
    freeAt[offset] = size;
    freeBySize.insert({size, offset});
  };
  for (size_t i : byBegin) {
    ArenaItem &item = items[i];
    while (!live.empty() && live.top().first < item.begin) {
      const ArenaItem &dead = items[live.top().second];
      if (dead.size)
        release(dead.offset, llvm::alignTo(dead.size, align));
      live.pop();
    }
    int64_t size = llvm::alignTo(item.size, align);
    item.offset = 0;
    if (size) {
      auto fit = freeBySize.lower_bound({size, 0});
      if (fit != freeBySize.end()) {
        auto [holeSize, hole] = *fit;
        freeBySize.erase(fit);
        freeAt.erase(hole);
        item.offset = hole;
        if (holeSize > size) {
          freeAt[hole + size] = holeSize - size;
          freeBySize.insert({holeSize - size, hole + size});
        }
      } else {
        // grow the last hole when it touches the end
        item.offset = peak;
        if (!freeAt.empty()) {
          auto last = std::prev(freeAt.end());
          if (last->first + last->second == peak) {
            item.offset = last->first;
            freeBySize.erase({last->second, last->first});
            freeAt.erase(last);
          }
        }
        peak = item.offset + size;
      }
    }
    live.push({item.end, i});
  }
  return peak;
}

} // namespace

int64_t placeItems(std::vector<ArenaItem> &items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t(0));
  if (items.size() <= quadraticLimit) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::make_pair(-items[a].size, items[a].begin) < std::make_pair(-items[b].size, items[b].begin);
    });
    return placeLargestFirst(items, order);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return items[a].begin < items[b].begin; });
  return placeInSweep(items, order);
}

static std::pair<AffineExpr, int64_t> factorOut(AffineExpr e) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return {getAffineConstantExpr(1, e.getContext()), c.getValue()};
  if (auto m = dyn_cast<AffineBinaryOpExpr>(e); m && m.getKind() == AffineExprKind::Mul) {
    auto [lu, lf] = factorOut(m.getLHS());
    auto [ru, rf] = factorOut(m.getRHS());
    AffineExpr one = getAffineConstantExpr(1, e.getContext());
    return {lu == one ? ru : ru == one ? lu : lu * ru, lf * rf};
  }
  return {e, 1};
}

std::pair<AffineExpr, int64_t> splitFactor(AffineExpr bytes) {
  auto [unit, factor] = factorOut(bytes);
  // offsets are multiples of 64 times the unit: a small factor would be rounded up too far
  if (!isa<AffineConstantExpr>(unit) && factor < align)
    return {bytes.ceilDiv(align), align};
  return {unit, factor};
}

} // namespace lathe::lower
