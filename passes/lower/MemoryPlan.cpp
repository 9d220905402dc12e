// Positions: ops are numbered in program order, an op with regions has a first and a last number. Op p reads
// its operands at 2p and begins to write its results at 2p too (a result never shares with an operand, unless
// the op updates in place); copies at a terminator or a loop's start happen at 2p+1, after all reads. Sides
// of a group lie one after the other in this order but run at any time within the group: what touches one
// side is never shared with what touches another, and what several sides read lives until the group ends.
#include "passes/lower/MemoryPlan.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/lower/Arena.h"
#include "passes/lower/SideBySide.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe::lower {

Value viewSource(Value v) {
  Operation *op = v.getDefiningOp();
  if (!op)
    return Value();
  if (isa<hlo::ReshapeOp, hlo::AssumeShapeOp>(op))
    return op->getOperand(0);
  if (isa<hlo::OptimizationBarrierOp>(op))
    return op->getOperand(cast<OpResult>(v).getResultNumber());
  if (isa<hlo::BitcastConvertOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType()), to = getElementTypeOrSelf(v.getType());
    // a byte of bool or int4 holds few values: not every byte may become one
    auto wholeBytes = [](Type t) { return isa<ComplexType>(t) || t.getIntOrFloatBitWidth() % 8 == 0; };
    if (wholeBytes(from) && wholeBytes(to) && tensorBytes(op->getOperand(0).getType()) == tensorBytes(v.getType()))
      return op->getOperand(0);
  }
  return Value();
}

bool isView(Operation *op) { return op->getNumResults() > 0 && viewSource(op->getResult(0)); }

static Value throughViews(Value v) {
  while (Value source = viewSource(v))
    v = source;
  return v;
}

bool isControlFlow(Operation *op) { return isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op); }

bool isJoin(Operation *op) {
  return isa<hlo::ConcatenateOp>(op) && llvm::all_of(op->getOpOperands(), kernel::isJoined);
}

unsigned numUpdatedOperands(Operation *op) {
  if (isa<hlo::DynamicUpdateSliceOp>(op))
    return 1;
  if (isa<hlo::ScatterOp>(op))
    return op->getNumResults();
  return 0;
}

int64_t elementBytes(Type elem) {
  if (auto c = dyn_cast<ComplexType>(elem))
    return 2 * elementBytes(c.getElementType());
  return elem.isIntOrFloat() ? (elem.getIntOrFloatBitWidth() + 7) / 8 : 0;
}

AffineExpr tensorBytes(Type type) {
  auto t = cast<RankedTensorType>(type);
  return hlo::simplify(hlo::numElements(t) * elementBytes(t.getElementType()));
}

class Planner {
public:
  Planner(func::FuncOp func, ConstantPool &pool, const llvm::StringMap<int64_t> &variableNumber)
      : pool(pool), variableNumber(variableNumber) {
    plan.func = func;
  }
  LogicalResult run();
  MemoryPlan plan;

private:
  struct Root {
    int64_t begin;
    int inPlaceOf = -1; ///< root that the op updates: may share although the op reads it
  };

  /// The positions of a side and of its group.
  struct SideRange {
    Side side;
    int64_t begin, end;
    int64_t groupBegin, groupEnd;
  };

  void number(Region &region);
  void findSides();
  const SideRange *sideAt(int64_t position) const;
  bool apart(int64_t a, int64_t b) const;
  int64_t lastUse(Value v);
  int64_t lastUse(Value v, SmallVectorImpl<const SideRange *> &readers);
  int addRoot(Value v, Buffer buffer, int64_t begin, int64_t end);
  int shareBuffer(Value v, int buffer, int64_t offset, int64_t begin, int64_t end);
  void findParts();
  int addResult(Value v, int64_t begin);
  LogicalResult makeRoots(Region &region);
  LogicalResult makeConstant(hlo::ConstantOp op);
  bool onlyCopiedFrom(Value v);
  int rootOf(Value v);
  int bufOf(Value v) { return plan.bufferOfRoot[rootOf(v)]; }
  bool disjoint(const Buffer &a, const Buffer &b);
  bool merge(int a, int b);
  void coalesceReturn();
  void coalesce(Operation *op);
  void planCopies(Operation *at, ArrayRef<std::pair<Value, int>> wanted, int64_t position);
  void placeArena();

  ConstantPool &pool;
  const llvm::StringMap<int64_t> &variableNumber;
  std::vector<Root> roots;
  /// Where a value lies in a concatenation: its result, and bytes.
  struct Part {
    Value whole;
    int64_t offset;
  };
  llvm::DenseMap<Value, Part> parts;
  std::vector<Operation *> order; ///< ops of interest, in program order
  std::vector<SideRange> sides;   ///< in this order
  llvm::DenseMap<Operation *, std::pair<int64_t, int64_t>> position;
  llvm::DenseMap<Operation *, std::vector<std::pair<Value, int>>> wantedCopies;
  int64_t counter = 0;
};

void Planner::number(Region &region) {
  for (Block &block : region)
    for (Operation &op : block) {
      int64_t first = ++counter;
      order.push_back(&op);
      if (isControlFlow(&op)) {
        for (Region &r : op.getRegions())
          number(r);
        ++counter;
      }
      position[&op] = {first, counter};
    }
}

void Planner::findSides() {
  for (Operation *op : order) {
    std::optional<Side> side = sideOf(op);
    if (!side)
      continue;
    auto [first, last] = position[op];
    if (sides.empty() || !(sides.back().side == *side))
      sides.push_back({*side, 2 * first, 0, 0, 0});
    sides.back().end = 2 * last + 1;
  }
  for (size_t i = 0, end; i < sides.size(); i = end) {
    for (end = i; end < sides.size() && sides[end].side.group == sides[i].side.group;)
      ++end;
    for (size_t k = i; k < end; ++k) {
      sides[k].groupBegin = sides[i].begin;
      sides[k].groupEnd = sides[end - 1].end;
    }
  }
}

const Planner::SideRange *Planner::sideAt(int64_t position) const {
  auto it = llvm::upper_bound(sides, position, [](int64_t p, const SideRange &s) { return p < s.begin; });
  return it != sides.begin() && position <= std::prev(it)->end ? &*std::prev(it) : nullptr;
}

/// Whether the positions are those of two sides of one group.
bool Planner::apart(int64_t a, int64_t b) const {
  const SideRange *x = sideAt(a), *y = sideAt(b);
  return x && y && x != y && x->side.group == y->side.group;
}

int64_t Planner::lastUse(Value v) {
  SmallVector<const SideRange *> readers;
  int64_t last = lastUse(v, readers);
  // several sides: the last one may be done first; one that updates the value must not do so in place
  llvm::sort(readers);
  for (size_t i = 1; i < readers.size(); ++i)
    if (readers[i] != readers[i - 1] && readers[i]->side.group == readers[i - 1]->side.group)
      last = std::max(last, readers[i]->groupEnd / 2 + 1);
  return last;
}

int64_t Planner::lastUse(Value v, SmallVectorImpl<const SideRange *> &readers) {
  int64_t last = -1;
  Block *home = v.getParentBlock();
  for (Operation *user : v.getUsers()) {
    Operation *op = user;
    int64_t p = position[op].first;
    if (const SideRange *side = sideAt(2 * p))
      readers.push_back(side);
    while (op->getBlock() != home) {
      op = op->getParentOp();
      // a loop reads it again in every turn
      if (isa<hlo::WhileOp>(op))
        p = std::max(p, position[op].second);
    }
    last = std::max(last, p);
    for (Value r : user->getResults())
      if (viewSource(r) == v)
        last = std::max(last, lastUse(r, readers));
  }
  return last;
}

int Planner::addRoot(Value v, Buffer buffer, int64_t begin, int64_t end) {
  int b = static_cast<int>(plan.buffers.size());
  buffer.bytes = tensorBytes(v.getType());
  plan.buffers.push_back(std::move(buffer));
  return shareBuffer(v, b, 0, begin, end);
}

int Planner::shareBuffer(Value v, int buffer, int64_t offset, int64_t begin, int64_t end) {
  int r = static_cast<int>(roots.size());
  plan.buffers[buffer].spans.push_back({begin, std::max(begin, end), r});
  plan.rootOf[v] = r;
  plan.bufferOfRoot.push_back(buffer);
  plan.offsetOfRoot.push_back(offset);
  roots.push_back({begin});
  return r;
}

void Planner::findParts() {
  for (Operation *op : order) {
    auto concat = dyn_cast<hlo::ConcatenateOp>(op);
    if (!concat || !concat->hasAttr(kernel::joinedAttr))
      continue;
    // rows of the result and of its parts, of the dimension that is put together and those inside it
    int64_t before = 0;
    for (OpOperand &part : op->getOpOperands()) {
      auto type = cast<RankedTensorType>(part.get().getType());
      if (kernel::isJoined(part))
        parts[throughViews(part.get())] = {concat.getResult(), before};
      AffineExpr bytes = getAffineConstantExpr(elementBytes(type.getElementType()), op->getContext());
      for (AffineExpr d : ArrayRef<AffineExpr>(hlo::getDims(type)).drop_front(concat.getDimension()))
        bytes = bytes * d;
      // sizes known at run time only come after the last part that is joined
      before += hlo::constantValue(hlo::simplify(bytes)).value_or(0);
    }
  }
}

/// A result of an op: a root of its own, or a part of a concatenation, whose result then begins no later.
int Planner::addResult(Value v, int64_t begin) {
  // wholes may be parts in their turn
  SmallVector<Value> fresh;
  for (Value x = v; !plan.rootOf.count(x); x = parts[x].whole) {
    fresh.push_back(x);
    if (!parts.count(x))
      break;
  }
  for (Value x : llvm::reverse(fresh)) {
    const int64_t end = std::max(begin, 2 * lastUse(x));
    auto part = parts.find(x);
    if (part == parts.end()) {
      addRoot(x, Buffer(), begin, end);
      continue;
    }
    const int whole = plan.rootOf.find(part->second.whole)->second;
    shareBuffer(x, plan.bufferOfRoot[whole], plan.offsetOfRoot[whole] + part->second.offset, begin, end);
  }
  return plan.rootOf.find(v)->second;
}

int Planner::rootOf(Value v) {
  return plan.rootOf.find(throughViews(v))->second;
}

bool Planner::onlyCopiedFrom(Value v) {
  for (OpOperand &use : v.getUses()) {
    Operation *user = use.getOwner();
    bool copied = isa<hlo::WhileOp, hlo::ReturnOp, func::ReturnOp>(user) ||
                  use.getOperandNumber() < numUpdatedOperands(user);
    if (isView(user) ? !llvm::all_of(user->getResults(), [&](Value r) { return viewSource(r) != v || onlyCopiedFrom(r); })
                     : !copied)
      return false;
  }
  return true;
}

LogicalResult Planner::makeConstant(hlo::ConstantOp op) {
  Value v = op->getResult(0);
  auto value = cast<ElementsAttr>(op->getAttr("value"));
  std::string splat = splatBytes(value);
  int64_t bytes = cast<RankedTensorType>(v.getType()).getNumElements() * elementBytes(value.getElementType());
  Buffer b;
  if (!splat.empty() && splat.size() <= 8 && bytes > 512 && onlyCopiedFrom(v)) {
    b.kind = Buffer::Fill;
    b.fill = splat;
  } else if (!splat.empty() && splat.size() <= 8 && bytes > (64 << 10)) {
    // a large splat that kernels read: cheaper to fill than to carry in the file
    plan.fills[op] = splat;
    addRoot(v, Buffer(), 2 * position[op].first, 2 * lastUse(v));
    return success();
  } else {
    FailureOr<int64_t> offset = pool.add(value, op.getLoc());
    if (failed(offset))
      return failure();
    b.kind = Buffer::Constant;
    b.index = *offset;
  }
  addRoot(v, std::move(b), 0, 0);
  return success();
}

LogicalResult Planner::makeRoots(Region &region) {
  for (Operation &o : region.front()) {
    Operation *op = &o;
    auto [first, last] = position[op];
    if (auto c = dyn_cast<hlo::ConstantOp>(op)) {
      if (failed(makeConstant(c)))
        return failure();
      continue;
    }
    if (isView(op))
      continue;
    if (isa<hlo::WhileOp>(op)) {
      Region &cond = op->getRegion(0), &body = op->getRegion(1);
      int64_t condEnd = position[cond.front().getTerminator()].first;
      int64_t bodyEnd = position[body.front().getTerminator()].first;
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        Value c = cond.getArgument(i), b = body.getArgument(i), r = op->getResult(i);
        // the content that the condition saw is the loop's result
        int root = addRoot(c, Buffer(), 2 * first + 1, 2 * condEnd);
        int buf = plan.bufferOfRoot[root];
        for (auto [v, from, to] : {std::tuple(b, 2 * first + 1, 2 * std::max(condEnd, lastUse(b))),
                                   std::tuple(r, 2 * last, 2 * lastUse(r))}) {
          shareBuffer(v, buf, 0, from, to);
        }
        plan.buffers[buf].spans.push_back({2 * bodyEnd + 1, 2 * last, root});
      }
      if (failed(makeRoots(cond)) || failed(makeRoots(body)))
        return failure();
      continue;
    }
    if (isControlFlow(op)) {
      for (Value r : op->getResults()) {
        int root = addRoot(r, Buffer(), 2 * last, 2 * lastUse(r));
        for (Region &branch : op->getRegions()) {
          int64_t at = 2 * position[branch.front().getTerminator()].first + 1;
          plan.buffers[plan.bufferOfRoot[root]].spans.push_back({at, at, root});
        }
      }
      for (Region &branch : op->getRegions())
        if (failed(makeRoots(branch)))
          return failure();
      continue;
    }
    for (Value r : op->getResults())
      addResult(r, 2 * first);
    unsigned updated = numUpdatedOperands(op);
    for (unsigned i = 0; i < updated; ++i) {
      int source = rootOf(op->getOperand(i));
      unsigned reads = 0;
      for (Value operand : op->getOperands())
        reads += rootOf(operand) == source;
      if (reads == 1)
        roots[rootOf(op->getResult(i))].inPlaceOf = source;
    }
  }
  return success();
}

bool Planner::disjoint(const Buffer &a, const Buffer &b) {
  for (const Buffer::Span &x : a.spans)
    for (const Buffer::Span &y : b.spans) {
      if (!sides.empty() &&
          (apart(x.begin, y.begin) || apart(x.begin, y.end) || apart(x.end, y.begin) || apart(x.end, y.end)))
        return false;
      if (x.end < y.begin || y.end < x.begin)
        continue;
      const Buffer::Span &early = x.begin < y.begin ? x : y, &late = x.begin < y.begin ? y : x;
      if (early.end == late.begin && early.root >= 0 && late.root >= 0 && late.begin == roots[late.root].begin &&
          roots[late.root].inPlaceOf == early.root)
        continue;
      return false;
    }
  return true;
}

bool Planner::merge(int a, int b) {
  if (a == b)
    return true;
  auto writable = [](const Buffer &x) {
    return x.kind == Buffer::Arena || x.kind == Buffer::Output || x.kind == Buffer::Variable;
  };
  Buffer &x = plan.buffers[a], &y = plan.buffers[b];
  if (!writable(x) || !writable(y) || (x.kind != Buffer::Arena && y.kind != Buffer::Arena) || x.bytes != y.bytes ||
      !disjoint(x, y))
    return false;
  Buffer &into = x.kind == Buffer::Arena ? y : x, &from = &into == &x ? y : x;
  int intoIndex = &into == &x ? a : b;
  for (const Buffer::Span &s : from.spans)
    if (s.root >= 0)
      plan.bufferOfRoot[s.root] = intoIndex;
  into.spans.insert(into.spans.end(), from.spans.begin(), from.spans.end());
  from.spans.clear();
  return true;
}

void Planner::coalesceReturn() {
  Operation *ret = plan.func.front().getTerminator();
  int64_t at = 2 * position[ret].first + 1;
  std::vector<std::pair<Value, int>> wanted;
  int64_t output = 0;
  llvm::DenseMap<int64_t, int> variableBuffer;
  for (unsigned i = 0; i < plan.func.getNumArguments(); ++i) {
    const Buffer &b = plan.buffers[bufOf(plan.func.getArgument(i))];
    if (b.kind == Buffer::Variable)
      variableBuffer[b.index] = bufOf(plan.func.getArgument(i));
  }
  for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
    Value v = ret->getOperand(i);
    int target;
    auto variable = plan.func.getResultAttrOfType<StringAttr>(i, "hlo.variable");
    int64_t number = variable ? variableNumber.lookup(variable.getValue()) : -1;
    if (variable && variableBuffer.count(number)) {
      target = variableBuffer[number];
    } else {
      Buffer b;
      b.kind = variable ? Buffer::Variable : Buffer::Output;
      b.index = variable ? number : output;
      b.bytes = tensorBytes(v.getType());
      target = static_cast<int>(plan.buffers.size());
      plan.buffers.push_back(std::move(b));
    }
    if (!variable)
      ++output;
    plan.buffers[target].spans.push_back({at, INT64_MAX, -1});
    merge(target, bufOf(v));
    wanted.push_back({v, target});
  }
  wantedCopies[ret] = wanted;
}

void Planner::coalesce(Operation *op) {
  std::vector<std::pair<Value, int>> wanted;
  if (isa<hlo::WhileOp>(op)) {
    Operation *yield = op->getRegion(1).front().getTerminator();
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      Value v = yield->getOperand(i);
      if (v.getParentRegion() == &op->getRegion(1))
        merge(bufOf(op->getResult(i)), bufOf(v));
    }
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      merge(bufOf(op->getResult(i)), bufOf(op->getOperand(i)));
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      wanted.push_back({op->getOperand(i), rootOf(op->getResult(i))});
    wantedCopies[op] = wanted;
    wanted.clear();
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      wanted.push_back({yield->getOperand(i), rootOf(op->getResult(i))});
    wantedCopies[yield] = wanted;
  } else if (isControlFlow(op)) {
    for (Region &branch : op->getRegions()) {
      Operation *yield = branch.front().getTerminator();
      wanted.clear();
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        Value v = yield->getOperand(i);
        if (v.getParentRegion() == &branch)
          merge(bufOf(op->getResult(i)), bufOf(v));
        wanted.push_back({v, rootOf(op->getResult(i))});
      }
      wantedCopies[yield] = wanted;
    }
  } else if (unsigned n = numUpdatedOperands(op)) {
    for (unsigned i = 0; i < n; ++i) {
      if (merge(bufOf(op->getResult(i)), bufOf(op->getOperand(i))))
        ++plan.stats.inPlace;
      wanted.push_back({op->getOperand(i), rootOf(op->getResult(i))});
    }
    wantedCopies[op] = wanted;
  }
}

// Orders the copies so that no source is overwritten before it is read; cycles go through a temporary.
void Planner::planCopies(Operation *at, ArrayRef<std::pair<Value, int>> wanted, int64_t pos) {
  std::vector<Copy> todo, done;
  for (auto [v, to] : wanted) {
    int from = bufOf(v);
    if (from != to)
      todo.push_back({v, from, to, plan.buffers[to].bytes});
  }
  plan.stats.copies += todo.size();
  while (!todo.empty()) {
    bool progress = false;
    for (size_t i = 0; i < todo.size(); ++i) {
      bool blocked = false;
      for (size_t j = 0; j < todo.size(); ++j)
        blocked |= j != i && todo[j].from == todo[i].to;
      if (blocked)
        continue;
      done.push_back(todo[i]);
      todo.erase(todo.begin() + i);
      progress = true;
      break;
    }
    if (progress)
      continue;
    // every destination is still to be read: save one source
    Buffer temp;
    temp.bytes = todo[0].bytes;
    temp.spans.push_back({pos, pos, -1});
    int t = static_cast<int>(plan.buffers.size());
    int saved = todo[0].from;
    temp.bytes = plan.buffers[saved].bytes;
    plan.buffers.push_back(std::move(temp));
    done.push_back({Value(), saved, t, plan.buffers[t].bytes});
    for (Copy &c : todo)
      if (c.from == saved) {
        c.from = t;
        c.source = Value();
      }
  }
  if (!done.empty())
    plan.copies[at] = std::move(done);
}

void Planner::placeArena() {
  std::vector<ArenaItem> items;
  llvm::MapVector<AffineExpr, int> groupOf;
  AffineExpr one = getAffineConstantExpr(1, plan.func.getContext());
  groupOf[one] = 0;
  plan.arenaGroups.push_back({one, 0});
  std::vector<std::vector<int>> members(1);
  std::vector<int64_t> factor(plan.buffers.size(), 0);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer &b = plan.buffers[i];
    if (b.kind != Buffer::Arena || b.spans.empty())
      continue;
    for (const Buffer::Span &s : b.spans) {
      // what parallel copies write must not lie where another of them still reads
      b.begin = std::min(b.begin, s.begin & ~int64_t(1));
      b.end = std::max(b.end, s.end);
    }
    const SideRange *first = sideAt(b.begin), *last = sideAt(b.end);
    if (first != last || !first) { // else its place is found among those of the side
      b.begin = first ? first->groupBegin : b.begin;
      b.end = last ? last->groupEnd : b.end;
    }
    auto [unit, times] = splitFactor(b.bytes);
    auto [it, isNew] = groupOf.insert({unit, static_cast<int>(plan.arenaGroups.size())});
    if (isNew) {
      plan.arenaGroups.push_back({unit, 0});
      members.emplace_back();
    }
    b.group = it->second;
    factor[i] = times;
    members[b.group].push_back(static_cast<int>(i));
    ++plan.stats.buffers;
  }
  for (size_t g = 0; g < members.size(); ++g) {
    // what lives within one side has places in a block that lives as long as the group
    llvm::MapVector<const SideRange *, std::vector<int>> within;
    for (int i : members[g]) {
      const SideRange *first = sideAt(plan.buffers[i].begin);
      within[first == sideAt(plan.buffers[i].end) ? first : nullptr].push_back(i);
      plan.stats.sumOfBuffers += llvm::alignTo(factor[i], 64);
    }
    auto itemsOf = [&](ArrayRef<int> list) {
      items.clear();
      for (int i : list)
        items.push_back({plan.buffers[i].begin, plan.buffers[i].end, factor[i], 0});
    };
    std::vector<ArenaItem> blocks;
    for (auto &[side, list] : within)
      if (side) {
        itemsOf(list);
        blocks.push_back({side->groupBegin, side->groupEnd, placeItems(items), 0});
        for (size_t k = 0; k < list.size(); ++k)
          plan.buffers[list[k]].offset = items[k].offset;
      }
    std::vector<int> &outside = within[nullptr];
    itemsOf(outside);
    items.insert(items.end(), blocks.begin(), blocks.end());
    plan.arenaGroups[g].bytes = placeItems(items);
    for (size_t k = 0; k < outside.size(); ++k)
      plan.buffers[outside[k]].offset = items[k].offset;
    size_t block = outside.size();
    for (auto &[side, list] : within)
      if (side) {
        for (int i : list)
          plan.buffers[i].offset += items[block].offset;
        ++block;
      }
    plan.stats.arenaBytes += plan.arenaGroups[g].bytes;
  }
}

LogicalResult Planner::run() {
  number(plan.func.getBody());
  findSides();
  findParts();
  unsigned input = 0;
  llvm::DenseSet<Attribute> written;
  for (unsigned i = 0; i < plan.func.getNumResults(); ++i)
    if (Attribute variable = plan.func.getResultAttr(i, "hlo.variable"))
      written.insert(variable);
  for (unsigned i = 0; i < plan.func.getNumArguments(); ++i) {
    Buffer b;
    if (auto variable = plan.func.getArgAttrOfType<StringAttr>(i, "hlo.variable")) {
      b.kind = Buffer::Variable;
      b.index = variableNumber.lookup(variable.getValue());
    } else {
      b.kind = Buffer::Input;
      b.index = input++;
    }
    Value v = plan.func.getArgument(i);
    // a variable that is only read has its value still when all is done: nothing else may lie in it
    bool kept = b.kind == Buffer::Variable && !written.contains(plan.func.getArgAttr(i, "hlo.variable"));
    addRoot(v, std::move(b), 0, kept ? INT64_MAX : 2 * lastUse(v));
  }
  if (failed(makeRoots(plan.func.getBody())))
    return failure();
  coalesceReturn();
  for (Operation *op : order)
    coalesce(op);
  for (Operation *op : order) {
    auto it = wantedCopies.find(op);
    if (it == wantedCopies.end())
      continue;
    // loop and branch targets were named by root: merging may have moved them since
    std::vector<std::pair<Value, int>> wanted = it->second;
    if (!isa<func::ReturnOp>(op))
      for (auto &w : wanted)
        w.second = plan.bufferOfRoot[w.second];
    planCopies(op, wanted, 2 * position[op].first + 1);
  }
  placeArena();
  return success();
}

FailureOr<MemoryPlan> MemoryPlan::create(func::FuncOp func, ConstantPool &pool,
                                         const llvm::StringMap<int64_t> &variableNumber) {
  Planner planner(func, pool, variableNumber);
  if (failed(planner.run()))
    return failure();
  return std::move(planner.plan);
}

int MemoryPlan::bufferIndex(Value v) const {
  return bufferOfRoot[rootOf.find(throughViews(v))->second];
}

int64_t MemoryPlan::offsetOf(Value v) const { return offsetOfRoot[rootOf.find(throughViews(v))->second]; }

ArrayRef<Copy> MemoryPlan::copiesAt(Operation *op) const {
  auto it = copies.find(op);
  return it == copies.end() ? ArrayRef<Copy>() : ArrayRef<Copy>(it->second);
}

const std::string *MemoryPlan::fillAt(Operation *op) const {
  auto it = fills.find(op);
  return it == fills.end() ? nullptr : &it->second;
}

} // namespace lathe::lower
