#include "passes/cluster/Cycles.h"

#include <algorithm>

namespace lathe::cluster {

AcyclicGraph::AcyclicGraph(unsigned numNodes) : out(numNodes), in(numNodes) {
  for (unsigned i = 0; i < numNodes; ++i) {
    parent.push_back(i);
    rank.push_back(i);
  }
}

unsigned AcyclicGraph::find(unsigned node) const {
  unsigned root = node;
  while (parent[root] != root)
    root = parent[root];
  while (parent[node] != root) {
    unsigned next = parent[node];
    parent[node] = root;
    node = next;
  }
  return root;
}

/// Puts `to` and what follows it behind `from` and what leads to it, among the places these hold now.
bool AcyclicGraph::insertOrdered(unsigned from, unsigned to) {
  if (rank[from] < rank[to])
    return true;
  unsigned low = rank[to], high = rank[from];
  llvm::SmallVector<unsigned> forward, backward, work;
  llvm::DenseSet<unsigned> seen;
  auto visit = [&](unsigned node, llvm::SmallVector<unsigned> &list) {
    if (seen.insert(node).second) {
      list.push_back(node);
      work.push_back(node);
    }
  };
  visit(to, forward);
  while (!work.empty())
    for (unsigned next : out[work.pop_back_val()]) {
      if (next == from)
        return false;
      if (rank[next] < high)
        visit(next, forward);
    }
  visit(from, backward);
  while (!work.empty())
    for (unsigned next : in[work.pop_back_val()])
      if (rank[next] > low)
        visit(next, backward);
  auto byRank = [&](unsigned a, unsigned b) { return rank[a] < rank[b]; };
  std::sort(forward.begin(), forward.end(), byRank);
  std::sort(backward.begin(), backward.end(), byRank);
  llvm::SmallVector<unsigned> order(backward);
  order.append(forward);
  llvm::SmallVector<unsigned> places;
  for (unsigned node : order)
    places.push_back(rank[node]);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < order.size(); ++i)
    rank[order[i]] = places[i];
  return true;
}

bool AcyclicGraph::addEdge(unsigned from, unsigned to) {
  from = find(from);
  to = find(to);
  if (from == to || out[from].count(to))
    return true;
  if (!insertOrdered(from, to))
    return false;
  out[from].insert(to);
  in[to].insert(from);
  return true;
}

/// Whether a path leads from one to the other over a third.
bool AcyclicGraph::pathAround(unsigned from, unsigned to) const {
  llvm::SmallVector<unsigned> work;
  llvm::DenseSet<unsigned> seen;
  auto visitAll = [&](unsigned node, bool first) {
    for (unsigned next : out[node]) {
      if (next == to) {
        if (!first)
          return true;
        continue;
      }
      if (rank[next] < rank[to] && seen.insert(next).second)
        work.push_back(next);
    }
    return false;
  };
  visitAll(from, true);
  while (!work.empty())
    if (visitAll(work.pop_back_val(), false))
      return true;
  return false;
}

bool AcyclicGraph::merge(unsigned a, unsigned b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return true;
  if (rank[a] > rank[b])
    std::swap(a, b);
  // b comes later, so no path leads from it to a
  if (pathAround(a, b))
    return false;
  out[a].erase(b);
  in[b].erase(a);
  // what leads to b must come before a: the place of the group
  std::vector<unsigned> before(in[b].begin(), in[b].end()), after(out[b].begin(), out[b].end());
  std::sort(before.begin(), before.end());
  for (unsigned from : before) {
    out[from].erase(b);
    if (out[from].insert(a).second) {
      bool ordered = insertOrdered(from, a);
      (void)ordered; // a path from a to it would have been a path around
      in[a].insert(from);
    }
  }
  for (unsigned to : after) {
    in[to].erase(b);
    in[to].insert(a);
    out[a].insert(to);
    insertOrdered(a, to);
  }
  in[b].clear();
  out[b].clear();
  parent[b] = a;
  return true;
}

bool AcyclicGraph::reaches(unsigned a, unsigned b) const {
  a = find(a);
  b = find(b);
  return out[a].count(b) || pathAround(a, b);
}

std::vector<unsigned> AcyclicGraph::successors(unsigned group) const {
  unsigned root = find(group);
  std::vector<unsigned> list(out[root].begin(), out[root].end());
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<unsigned> AcyclicGraph::predecessors(unsigned group) const {
  unsigned root = find(group);
  std::vector<unsigned> list(in[root].begin(), in[root].end());
  std::sort(list.begin(), list.end());
  return list;
}

bool AcyclicGraph::isConsistent() const {
  for (unsigned node = 0; node < parent.size(); ++node)
    for (unsigned next : out[node])
      if (parent[node] != node || parent[next] != next || rank[node] >= rank[next] || !in[next].count(node))
        return false;
  return true;
}

} // namespace lathe::cluster
