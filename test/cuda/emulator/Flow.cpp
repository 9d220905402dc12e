#include "test/cuda/emulator/Flow.h"

#include <algorithm>

namespace lathe::emu {

namespace {
/// Whether control never goes on to the next statement when the guard lets it happen.
bool leaves(const Statement &s) {
  return s.op[0] == "ret" || s.op[0] == "exit" || s.op[0] == "trap" || s.op[0] == "bra" || s.op[0] == "brx";
}
} // namespace

Flow::Flow(const PtxFunction &function) : function(function) {
  findBlocks();
  findJoins();
}

size_t Flow::blockAt(const std::string &label, int line) const {
  auto found = function.labels.find(label);
  if (found == function.labels.end())
    throw PtxError(line, "no label '" + label + "'");
  // the last block is empty: the end of the function
  return found->second < blockOf.size() ? blockOf[found->second] : blocks.size() - 1;
}

void Flow::findBlocks() {
  const auto &statements = function.statements;
  std::vector<char> leader(statements.size() + 1, 0);
  leader[0] = 1;
  for (const auto &label : function.labels)
    leader[label.second] = 1;
  for (size_t i = 0; i < statements.size(); ++i)
    if (leaves(statements[i]))
      leader[i + 1] = 1;
  blockOf.resize(statements.size());
  for (size_t i = 0; i < statements.size(); ++i) {
    if (leader[i]) {
      blocks.emplace_back();
      blocks.back().begin = i;
    }
    blocks.back().end = i + 1;
    blockOf[i] = blocks.size() - 1;
  }
  blocks.emplace_back();
  blocks.back().begin = blocks.back().end = statements.size();

  for (size_t b = 0; b + 1 < blocks.size(); ++b) {
    BasicBlock &block = blocks[b];
    const Statement &last = statements[block.end - 1];
    if (last.op[0] == "bra") {
      if (last.operands.size() != 1)
        throw PtxError(last.line, "expected one label");
      block.next.push_back(blockAt(last.operands[0].name, last.line));
    } else if (last.op[0] == "brx") {
      if (last.operands.size() != 2)
        throw PtxError(last.line, "expected an index and a list of labels");
      auto list = function.branchTargets.find(last.operands[1].name);
      if (list == function.branchTargets.end())
        throw PtxError(last.line, "no list of labels '" + last.operands[1].name + "'");
      for (const std::string &label : list->second)
        block.next.push_back(blockAt(label, last.line));
    }
    if (!leaves(last) || !last.guard.empty())
      block.next.push_back(b + 1);
    std::sort(block.next.begin(), block.next.end());
    block.next.erase(std::unique(block.next.begin(), block.next.end()), block.next.end());
  }
}

// Immediate post-dominators by the iteration of Cooper, Harvey and Kennedy, on the reversed graph from a
// common end.
void Flow::findJoins() {
  size_t n = blocks.size(), end = n;
  std::vector<std::vector<size_t>> before(n + 1);
  for (size_t b = 0; b < n; ++b) {
    for (size_t to : blocks[b].next)
      before[to].push_back(b);
    // a guarded return may also go on, but leads to the end as well
    bool returns = blocks[b].next.empty();
    if (!returns && blocks[b].end > blocks[b].begin) {
      const std::string &op = function.statements[blocks[b].end - 1].op[0];
      returns = op == "ret" || op == "exit" || op == "trap";
    }
    if (returns)
      before[end].push_back(b);
  }
  std::vector<long> number(n + 1, -1), parent(n + 1, -1);
  std::vector<size_t> order; // post order from the end
  std::vector<std::pair<size_t, size_t>> stack = {{end, 0}};
  std::vector<char> seen(n + 1, 0);
  seen[end] = 1;
  while (!stack.empty()) {
    auto &[b, i] = stack.back();
    if (i < before[b].size()) {
      size_t to = before[b][i++];
      if (!seen[to]) {
        seen[to] = 1;
        stack.emplace_back(to, 0);
      }
    } else {
      number[b] = static_cast<long>(order.size());
      order.push_back(b);
      stack.pop_back();
    }
  }
  std::vector<std::vector<size_t>> after(n + 1);
  for (size_t b = 0; b <= n; ++b)
    for (size_t from : before[b])
      after[from].push_back(b);
  parent[end] = static_cast<long>(end);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size(); k-- > 0;) {
      size_t b = order[k];
      if (b == end)
        continue;
      long best = -1;
      for (size_t to : after[b]) {
        if (number[to] < 0 || parent[to] < 0)
          continue;
        long other = static_cast<long>(to);
        if (best < 0) {
          best = other;
          continue;
        }
        while (best != other) {
          while (number[best] < number[other])
            best = parent[best];
          while (number[other] < number[best])
            other = parent[other];
        }
      }
      if (best >= 0 && parent[b] != best) {
        parent[b] = best;
        changed = true;
      }
    }
  }
  for (size_t b = 0; b < n; ++b)
    blocks[b].join = parent[b] >= 0 && parent[b] < static_cast<long>(n) ? parent[b] : -1;
}

std::vector<std::vector<uint32_t>> maybeUndefined(const Flow &flow, const std::vector<Uses> &uses,
                                                  uint32_t registers) {
  using Set = std::vector<bool>;
  std::vector<Set> in(flow.blocks.size());
  std::vector<char> reached(flow.blocks.size(), 0);
  std::vector<std::vector<uint32_t>> result(uses.size());
  in[0] = Set(registers, false);
  reached[0] = 1;
  // sets of registers written on all ways shrink until nothing changes
  std::vector<size_t> work = {0};
  while (!work.empty()) {
    size_t b = work.back();
    work.pop_back();
    Set written = in[b];
    for (size_t s = flow.blocks[b].begin; s < flow.blocks[b].end; ++s)
      if (!uses[s].conditional)
        for (uint32_t r : uses[s].writes)
          written[r] = true;
    for (size_t to : flow.blocks[b].next) {
      if (!reached[to]) {
        reached[to] = 1;
        in[to] = written;
        work.push_back(to);
        continue;
      }
      bool changed = false;
      for (uint32_t r = 0; r < registers; ++r)
        if (in[to][r] && !written[r]) {
          in[to][r] = false;
          changed = true;
        }
      if (changed)
        work.push_back(to);
    }
  }
  for (size_t b = 0; b < flow.blocks.size(); ++b) {
    if (!reached[b])
      continue;
    Set written = in[b];
    for (size_t s = flow.blocks[b].begin; s < flow.blocks[b].end; ++s) {
      for (uint32_t r : uses[s].reads)
        if (!written[r])
          result[s].push_back(r);
      if (!uses[s].conditional)
        for (uint32_t r : uses[s].writes)
          written[r] = true;
    }
  }
  return result;
}

} // namespace lathe::emu
