//===- MinCut.cpp - nodes put on the cheaper of two sides --------------------===//
//
// Dinic's algorithm: the least cost equals the largest flow from the first side
// to the second, and what the flow's rest still reaches is the first side.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/MinCut.h"

using namespace lathe;

unsigned MinCut::addNode() {
  out.emplace_back();
  level.push_back(-1);
  return out.size() - 1;
}

void MinCut::addEdge(unsigned from, unsigned to, int64_t capacity) {
  if (from == to || to == first || from == second)
    return;
  out[from].push_back(edges.size());
  edges.push_back({to, capacity});
  out[to].push_back(edges.size());
  edges.push_back({from, 0});
}

bool MinCut::findLevels(uint64_t &steps) {
  std::fill(level.begin(), level.end(), -1);
  level[first] = 0;
  llvm::SmallVector<unsigned> queue = {first};
  for (size_t i = 0; i < queue.size(); ++i)
    for (unsigned e : out[queue[i]]) {
      ++steps;
      if (edges[e].rest > 0 && level[edges[e].to] < 0) {
        level[edges[e].to] = level[queue[i]] + 1;
        queue.push_back(edges[e].to);
      }
    }
  return level[second] >= 0;
}

bool MinCut::solve(uint64_t limit) {
  uint64_t steps = 0;
  while (findLevels(steps)) {
    llvm::SmallVector<unsigned> next(out.size(), 0), path;
    unsigned node = first;
    while (true) {
      if (node == second) {
        int64_t flow = infinite;
        for (unsigned e : path)
          flow = std::min(flow, edges[e].rest);
        size_t full = path.size();
        for (size_t i = path.size(); i-- > 0;) {
          edges[path[i]].rest -= flow;
          edges[path[i] ^ 1].rest += flow;
          if (edges[path[i]].rest == 0)
            full = i;
        }
        cost += flow;
        // on from where the first full edge starts
        path.truncate(full);
        node = path.empty() ? unsigned(first) : edges[path.back()].to;
        continue;
      }
      unsigned &i = next[node];
      for (; i < out[node].size(); ++i, ++steps) {
        const Edge &edge = edges[out[node][i]];
        if (edge.rest > 0 && level[edge.to] == level[node] + 1)
          break;
      }
      if (steps > limit)
        return false;
      if (i < out[node].size()) {
        path.push_back(out[node][i]);
        node = edges[path.back()].to;
        continue;
      }
      if (path.empty())
        break;
      // a dead end
      node = edges[path.pop_back_val() ^ 1].to;
      ++next[node];
    }
  }
  return true;
}
