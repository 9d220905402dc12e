//===- ClusterGraph.cpp - an acyclic graph whose nodes merge ----------------===//

#include "passes/fusion/ClusterGraph.h"

#include "llvm/ADT/STLExtras.h"

using namespace lathe;

// Visits allowed in one search; keeps merging linear-ish on graphs with very long skip connections.
static constexpr unsigned searchLimit = 2048;

ClusterGraph::ClusterGraph(unsigned size)
    : parents(size), ranks(size), stamps(size, 0), next(size), previous(size) {
  for (unsigned i = 0; i < size; ++i)
    parents[i] = ranks[i] = i;
}

unsigned ClusterGraph::find(unsigned node) {
  while (parents[node] != node) {
    parents[node] = parents[parents[node]];
    node = parents[node];
  }
  return node;
}

void ClusterGraph::addEdge(unsigned from, unsigned to) {
  from = find(from);
  to = find(to);
  if (from == to || llvm::is_contained(next[from], to))
    return;
  assert(ranks[from] < ranks[to] && "edges follow the order");
  next[from].push_back(to);
  previous[to].push_back(from);
}

bool ClusterGraph::search(unsigned start, unsigned stop, bool forward, unsigned low, unsigned high,
                          llvm::SmallVectorImpl<unsigned> &found, bool &tooFar) {
  ++stamp;
  stamps[start] = stamp;
  llvm::SmallVector<unsigned> work = {start};
  while (!work.empty()) {
    unsigned node = work.pop_back_val();
    for (unsigned raw : forward ? next[node] : previous[node]) {
      unsigned other = find(raw);
      // the direct edge start -> stop is no obstacle
      if (other == stop) {
        if (node != start)
          return false;
        continue;
      }
      if (stamps[other] == stamp || ranks[other] <= low || ranks[other] >= high)
        continue;
      stamps[other] = stamp;
      found.push_back(other);
      work.push_back(other);
      if (found.size() > searchLimit) {
        tooFar = true;
        return false;
      }
    }
  }
  return true;
}

ClusterGraph::Merge ClusterGraph::merge(unsigned a, unsigned b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return Merge::Done;
  if (ranks[a] > ranks[b])
    std::swap(a, b);
  unsigned low = ranks[a], high = ranks[b];
  llvm::SmallVector<unsigned> after, before;
  bool tooFar = false;
  if (!search(a, b, /*forward=*/true, low, high, after, tooFar))
    return tooFar ? Merge::TooFar : Merge::Cycle;
  if (!search(b, a, /*forward=*/false, low, high, before, tooFar))
    return tooFar ? Merge::TooFar : Merge::Cycle;

  // The ranks in use are dealt out again: what leads to b, the merged cluster, what follows a.
  auto byRank = [&](unsigned x, unsigned y) { return ranks[x] < ranks[y]; };
  llvm::sort(after, byRank);
  llvm::sort(before, byRank);
  llvm::SmallVector<unsigned> pool = {low, high};
  for (unsigned x : after)
    pool.push_back(ranks[x]);
  for (unsigned x : before)
    pool.push_back(ranks[x]);
  llvm::sort(pool);
  unsigned at = 0;
  for (unsigned x : before)
    ranks[x] = pool[at++];
  unsigned middle = pool[at++];
  ++at; // two clusters become one: a rank is left over
  for (unsigned x : after)
    ranks[x] = pool[at++];

  // The smaller adjacency moves.
  unsigned into = a, from = b;
  if (next[into].size() + previous[into].size() < next[from].size() + previous[from].size())
    std::swap(into, from);
  parents[from] = into;
  ranks[into] = middle;
  auto moveEdges = [&](llvm::SmallVector<unsigned, 4> &target, llvm::SmallVector<unsigned, 4> &source) {
    target.append(source.begin(), source.end());
    source.clear();
    for (unsigned &x : target)
      x = find(x);
    // duplicates cost searches, so they go when there are many
    if (target.size() > 16) {
      llvm::sort(target);
      target.erase(llvm::unique(target), target.end());
    }
    llvm::erase(target, into);
  };
  moveEdges(next[into], next[from]);
  moveEdges(previous[into], previous[from]);
  return Merge::Done;
}
