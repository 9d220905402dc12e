//===- PlaceTransposes.cpp - which of two layouts each tensor has ------------===//
//
// Before: convolution, transpose, add, relu, pad, transpose, convolution, and a
// second add of the relu. After: the same without transposes, the ops between the
// convolutions work in their layout.
//
// A transpose is a tensor in two layouts. All ops that can work in either, and that
// values in one of the two connect with it, are a region. Each op of a region takes
// the layout that makes the transposes in and around the region smallest: a minimum
// cut, taken where it is less than what there is. Ops that cannot, arguments and
// what leaves the block keep theirs.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/DimGroups.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/MinCut.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOPLACETRANSPOSES
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

using Order = SmallVector<int64_t, 6>;

bool isIdentity(ArrayRef<int64_t> order) { return llvm::is_sorted(order); }

Order inverse(ArrayRef<int64_t> order) {
  Order result(order.size());
  for (auto [i, d] : llvm::enumerate(order))
    result[d] = i;
  return result;
}

/// What `order` selects from `list`.
template <typename List>
auto permute(const List &list, ArrayRef<int64_t> order) {
  SmallVector<std::decay_t<decltype(list[0])>, 6> result;
  for (int64_t d : order)
    result.push_back(list[d]);
  return result;
}

RankedTensorType permute(RankedTensorType type, ArrayRef<int64_t> order) {
  SmallVector<AffineExpr> sizes;
  for (int64_t d : order)
    sizes.push_back(hlo::getDim(type, d));
  return hlo::makeType(sizes, type.getElementType());
}

/// The dimensions larger than one in their order in memory: all that distinguishes layouts.
SmallVector<int64_t> largeOrder(RankedTensorType type, ArrayRef<int64_t> order) {
  SmallVector<int64_t> result;
  for (int64_t d : order)
    if (!isOne(type, d))
      result.push_back(d);
  return result;
}

/// The two layouts of a region as one of its tensors sees them: its dimensions in the order of memory. One of
/// the two is the tensor's own, the identity.
struct Layouts {
  Order orders[2];

  int own() const { return isIdentity(orders[0]) ? 0 : 1; }
  bool hasOwn() const { return isIdentity(orders[0]) || isIdentity(orders[1]); }

  bool isSame(const Layouts &other, RankedTensorType type) const {
    return llvm::all_of(ArrayRef<int>{0, 1}, [&](int i) {
      return largeOrder(type, orders[i]) == largeOrder(type, other.orders[i]);
    });
  }
  /// Both layouts are the same bytes.
  bool isTrivial(RankedTensorType type) const {
    return largeOrder(type, orders[0]) == largeOrder(type, orders[1]);
  }

  /// Those of transpose(v, permutation), and of the operand when the result's are known.
  Layouts ofTranspose(ArrayRef<int64_t> permutation) const {
    Order where = inverse(permutation);
    return {{permute(where, orders[0]), permute(where, orders[1])}};
  }
  Layouts ofTransposed(ArrayRef<int64_t> permutation) const {
    return {{permute(permutation, orders[0]), permute(permutation, orders[1])}};
  }
};

/// The order of `to` that has the same elements in memory as the order of `from`.
std::optional<Order> throughReshape(RankedTensorType from, RankedTensorType to, ArrayRef<int64_t> order,
                                    bool forward) {
  DimGroups groups(from, to);
  if (!groups.valid)
    return std::nullopt;
  if (!forward)
    std::swap(from, to);
  SmallVector<int64_t> large = largeOrder(from, order);
  Order result;
  for (size_t at = 0; at < large.size();) {
    const DimGroups::Group *group = llvm::find_if(groups.groups, [&](const DimGroups::Group &g) {
      return (forward ? g.from : g.to).front() == large[at];
    });
    if (group == groups.groups.end())
      return std::nullopt;
    ArrayRef<int64_t> here = forward ? group->from : group->to;
    if (here != ArrayRef<int64_t>(large).slice(at).take_front(here.size()))
      return std::nullopt;
    at += here.size();
    llvm::append_range(result, forward ? group->to : group->from);
  }
  // ones stay behind the dimension that they follow
  for (int64_t d = 0; d < to.getRank(); ++d)
    if (isOne(to, d))
      result.insert(d == 0 ? result.begin() : llvm::find(result, d - 1) + 1, d);
  return result;
}

/// Costs nothing in any layout.
bool isFree(Value v) {
  Operation *def = v.getDefiningOp();
  return splatElement(v) || (def && isa<hlo::ConstantOp, hlo::BroadcastInDimOp, hlo::IotaOp>(def));
}

/// The number of leading operands that have a layout, 0 for an op that works in its own alone.
unsigned numMovable(Operation *op) {
  if (op->getNumResults() != 1)
    return 0;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getRank() < 2 || !hlo::hasKnownDims(type))
    return 0;
  if (op->hasTrait<hlo::HloElementwise>()) {
    bool equal = llvm::all_of(op->getOperands(), [&](Value v) {
      return sameSizes(v.getType(), type) || cast<RankedTensorType>(v.getType()).getRank() == 0;
    });
    return equal ? op->getNumOperands() : 0;
  }
  if (auto slice = dyn_cast<hlo::SliceOp>(op))
    return !slice.getStartMapAttr() && !slice.getLimitMapAttr();
  if (auto window = dyn_cast<hlo::ReduceWindowOp>(op))
    return window.getInputs().size() == 1;
  if (isa<hlo::ConcatenateOp>(op))
    return op->getNumOperands();
  return isa<hlo::PadOp, hlo::ReverseOp, hlo::ReshapeOp>(op);
}

/// The op's layouts at an operand from those at its result, or the other way round.
std::optional<Layouts> across(Operation *op, Value operand, const Layouts &known, bool forward) {
  auto reshape = dyn_cast<hlo::ReshapeOp>(op);
  if (!reshape)
    return known;
  auto from = cast<RankedTensorType>(operand.getType()), to = cast<RankedTensorType>(reshape.getType());
  Layouts result;
  for (int i : {0, 1}) {
    std::optional<Order> order = throughReshape(from, to, known.orders[i], forward);
    if (!order)
      return std::nullopt;
    result.orders[i] = *order;
  }
  return result;
}

/// A transpose of v, composed with one that made v.
Value transposed(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> order) {
  Order composed(order);
  if (auto inner = v.getDefiningOp<hlo::TransposeOp>()) {
    composed = permute(inner.getPermutation(), order);
    v = inner.getOperand();
  }
  if (isIdentity(composed))
    return v;
  return hlo::TransposeOp::create(b, loc, permute(cast<RankedTensorType>(v.getType()), composed), v,
                                  b.getDenseI64ArrayAttr(composed));
}

/// The op in another order of its result's dimensions.
void permuteAttributes(Operation *op, ArrayRef<int64_t> order) {
  Builder b(op->getContext());
  auto list = [&](ArrayRef<int64_t> values) { return b.getDenseI64ArrayAttr(permute(values, order)); };
  Order where = inverse(order);
  if (auto pad = dyn_cast<hlo::PadOp>(op)) {
    pad.setEdgePaddingLowAttr(list(pad.getEdgePaddingLow()));
    pad.setEdgePaddingHighAttr(list(pad.getEdgePaddingHigh()));
    pad.setInteriorPaddingAttr(list(pad.getInteriorPadding()));
  } else if (auto slice = dyn_cast<hlo::SliceOp>(op)) {
    slice.setStartIndicesAttr(list(slice.getStartIndices()));
    slice.setLimitIndicesAttr(list(slice.getLimitIndices()));
    slice.setStridesAttr(list(slice.getStrides()));
  } else if (auto concat = dyn_cast<hlo::ConcatenateOp>(op)) {
    concat.setDimension(where[concat.getDimension()]);
  } else if (auto reverse = dyn_cast<hlo::ReverseOp>(op)) {
    auto dims = permute(where, reverse.getDimensions());
    llvm::sort(dims);
    reverse.setDimensions(dims);
  } else if (auto window = dyn_cast<hlo::ReduceWindowOp>(op)) {
    hlo::PaddingList padding = hlo::getPadding(window.getPaddingAttr(), order.size());
    window.setWindowDimensionsAttr(list(window.getWindowDimensions()));
    if (auto strides = window.getWindowStrides())
      window.setWindowStridesAttr(list(*strides));
    if (auto dilations = window.getBaseDilations())
      window.setBaseDilationsAttr(list(*dilations));
    if (auto dilations = window.getWindowDilations())
      window.setWindowDilationsAttr(list(*dilations));
    if (window.getPaddingAttr())
      window.setPaddingAttr(hlo::makePaddingAttr(op->getContext(), permute(padding, order)));
  }
}

class Placer {
public:
  explicit Placer(Block &block) : block(block), b(block.getParentOp()->getContext()) {}
  unsigned moved = 0, regions = 0, refused = 0;

  void run() {
    for (Operation &op : block)
      if (auto transpose = dyn_cast<hlo::TransposeOp>(op); transpose && isSeed(transpose))
        placeRegion(transpose);
    SmallVector<Operation *> old;
    for (Operation &op : block)
      if (changed.contains(&op))
        old.push_back(&op);
    for (Operation *op : old)
      rewrite(op, changed.find(op)->second);
  }

private:
  struct Change {
    Layouts layouts; ///< at the result; of a reduction, at the operand
    int layout;
  };

  struct Node {
    Layouts layouts;
    unsigned node;
  };

  /// A tensor and what reads it.
  struct Storage {
    unsigned producer;
    int64_t bytes;
    SmallVector<unsigned> readers;
  };

  struct Region {
    llvm::MapVector<Value, Layouts> values;
    llvm::MapVector<Operation *, Node> ops;
    DenseSet<Operation *> joined; ///< transposes of one layout to the other
    SmallVector<Value> queue;
    MinCut cut;
  };

  static bool isMoved(hlo::TransposeOp op) {
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    return hlo::hasKnownDims(from) && !llvm::is_sorted(largeOrder(from, op.getPermutation()));
  }

  /// Products take transposes as they come, constants are transposed once.
  bool isSeed(hlo::TransposeOp op) const {
    return isMoved(op) && !isFree(op.getOperand()) && !op.getOperand().getDefiningOp<hlo::DotGeneralOp>() &&
           !llvm::all_of(op->getUsers(), [](Operation *user) { return isa<hlo::DotGeneralOp>(user); }) &&
           !claimed.contains(op.getResult());
  }

  bool add(Region &region, Value v, const Layouts &layouts) {
    auto type = cast<RankedTensorType>(v.getType());
    if (!layouts.hasOwn() || !hlo::hasKnownDims(type))
      return false;
    if (auto it = region.values.find(v); it != region.values.end())
      return it->second.isSame(layouts, type);
    if (isFree(v) || claimed.contains(v))
      return false;
    region.values.insert({v, layouts});
    if (!layouts.isTrivial(type)) // what lies behind has nothing to gain from either
      region.queue.push_back(v);
    return true;
  }

  void addOp(Region &region, Operation *op, const Layouts &layouts) {
    if (claimedOps.contains(op) || region.ops.contains(op) || !add(region, op->getResult(0), layouts))
      return;
    // known already, perhaps with its ones elsewhere
    Layouts its = region.values.find(op->getResult(0))->second;
    region.ops.insert({op, {its, region.cut.addNode()}});
    for (Value v : op->getOperands().take_front(numMovable(op)))
      if (cast<RankedTensorType>(v.getType()).getRank() > 0)
        if (std::optional<Layouts> there = across(op, v, its, /*forward=*/false))
          add(region, v, *there);
  }

  void grow(Region &region) {
    for (size_t i = 0; i < region.queue.size(); ++i) {
      Value v = region.queue[i];
      Layouts layouts = region.values.find(v)->second;
      if (Operation *def = v.getDefiningOp(); def && def->getBlock() == &block) {
        if (auto transpose = dyn_cast<hlo::TransposeOp>(def)) {
          if (add(region, transpose.getOperand(), layouts.ofTransposed(transpose.getPermutation())))
            region.joined.insert(def);
        } else if (unsigned count = numMovable(def)) {
          bool fits = llvm::all_of(def->getOperands().take_front(count), [&](Value operand) {
            return cast<RankedTensorType>(operand.getType()).getRank() == 0 ||
                   across(def, operand, layouts, false);
          });
          if (fits)
            addOp(region, def, layouts);
        }
      }
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        if (user->getBlock() != &block)
          continue;
        if (auto transpose = dyn_cast<hlo::TransposeOp>(user)) {
          if (add(region, transpose.getResult(), layouts.ofTranspose(transpose.getPermutation())))
            region.joined.insert(user);
        } else if (use.getOperandNumber() < numMovable(user)) {
          if (std::optional<Layouts> there = across(user, v, layouts, /*forward=*/true))
            addOp(region, user, *there);
        }
      }
    }
  }

  static unsigned side(int layout) { return layout == 0 ? MinCut::first : MinCut::second; }

  /// The tensor that a value of the region is a view of.
  static Value root(const Region &region, Value v) {
    while (Operation *def = v.getDefiningOp()) {
      if (!region.joined.contains(def))
        break;
      v = def->getOperand(0);
    }
    return v;
  }

  unsigned producerOf(Region &region, Value v, const Layouts &layouts) {
    Operation *def = v.getDefiningOp();
    if (auto it = region.ops.find(def); def && it != region.ops.end())
      return it->second.node;
    if (isa_and_nonnull<hlo::TransposeOp>(def)) // of another layout, into either of ours
      return region.cut.addNode();
    return side(layouts.own());
  }

  /// The layout that a reduction leaves behind depends on that of its operand.
  static bool isLayoutOfReduce(hlo::ReduceOp op, const Layouts &layouts) {
    auto type = cast<RankedTensorType>(op.getInputs().front().getType());
    auto rest = [&](int i) {
      SmallVector<int64_t> dims = largeOrder(type, layouts.orders[i]);
      llvm::erase_if(dims, [&](int64_t d) { return llvm::is_contained(op.getDimensions(), d); });
      return dims;
    };
    return rest(0) != rest(1);
  }

  void addStorage(Region &region, const Storage &storage) {
    MinCut &cut = region.cut;
    // bytes count, then how much is changed
    int64_t cost = storage.bytes << 12;
    if (storage.readers.size() == 1) {
      cut.addEdge(storage.producer, storage.readers.front(), cost);
      cut.addEdge(storage.readers.front(), storage.producer, cost);
      return;
    }
    // one transpose serves all readers in the other layout
    unsigned anySecond = cut.addNode(), anyFirst = cut.addNode();
    cut.addEdge(storage.producer, anySecond, cost);
    cut.addEdge(anyFirst, storage.producer, cost);
    for (unsigned reader : storage.readers) {
      cut.addEdge(anySecond, reader, MinCut::infinite);
      cut.addEdge(reader, anyFirst, MinCut::infinite);
    }
  }

  void placeRegion(hlo::TransposeOp seed) {
    Region region;
    Order identity = llvm::to_vector<6>(llvm::seq<int64_t>(0, seed.getPermutation().size()));
    if (!add(region, seed.getOperand(), {{identity, Order(seed.getPermutation())}}))
      return;
    grow(region);
    for (auto &[v, layouts] : region.values)
      if (!layouts.isTrivial(cast<RankedTensorType>(v.getType())))
        claimed.insert(v);
    for (auto &[op, node] : region.ops)
      claimedOps.insert(op);

    DenseMap<unsigned, int> own; // of nodes, where that is not their side
    own[MinCut::first] = 0;
    own[MinCut::second] = 1;
    for (auto &[op, node] : region.ops) {
      int layout = node.layouts.own();
      own[node.node] = layout;
      region.cut.addEdge(layout == 0 ? unsigned(MinCut::first) : node.node,
                         layout == 0 ? node.node : unsigned(MinCut::second), 1);
    }
    llvm::MapVector<Operation *, Node> reductions;
    llvm::MapVector<Value, Storage> storages;
    SmallVector<Storage> foreign;
    for (auto &[v, layouts] : region.values) {
      auto type = cast<RankedTensorType>(v.getType());
      if (layouts.isTrivial(type))
        continue;
      Value tensor = root(region, v);
      auto [it, isNew] = storages.insert({tensor, Storage()});
      Storage &storage = it->second;
      if (isNew) {
        const Layouts &its = region.values.find(tensor)->second;
        storage.producer = producerOf(region, tensor, its);
        storage.bytes = bytesOf(tensor.getType());
        own.insert({storage.producer, its.own()});
      }
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        if (isa<hlo::TransposeOp>(user) && user->getBlock() == &block) {
          continue; // a view, or a transpose from either layout
        }
        if (auto node = region.ops.find(user);
            node != region.ops.end() && use.getOperandNumber() < numMovable(user)) {
          std::optional<Layouts> there = across(user, v, node->second.layouts, /*forward=*/false);
          if (there && there->isSame(layouts, type)) {
            storage.readers.push_back(node->second.node);
            continue;
          }
          // wants it in its own layout, and changed when it changes
          if (there)
            foreign.push_back({side(there->own()), bytesOf(v.getType()), {node->second.node}});
        } else if (auto reduce = dyn_cast<hlo::ReduceOp>(user); reduce && user->getBlock() == &block &&
                                                                reduce.getInputs().size() == 1 &&
                                                                use.getOperandNumber() == 0) {
          if (!isLayoutOfReduce(reduce, layouts))
            continue;
          unsigned node = region.cut.addNode();
          int layout = layouts.own();
          reductions.insert({user, {layouts, node}});
          own[node] = layout;
          foreign.push_back({side(layout), bytesOf(reduce.getResult(0).getType()), {node}});
          storage.readers.push_back(node);
          continue;
        }
        storage.readers.push_back(side(layouts.own()));
      }
    }
    // operands that belong to another region or to none
    for (auto &[op, node] : region.ops)
      for (Value v : op->getOperands().take_front(numMovable(op)))
        if (auto type = cast<RankedTensorType>(v.getType());
            type.getRank() > 0 && !isFree(v) && !region.values.contains(v))
          if (std::optional<Layouts> there = across(op, v, node.layouts, false);
              there && !there->isTrivial(type))
            foreign.push_back({side(there->own()), bytesOf(v.getType()), {node.node}});

    int64_t now = 0;
    auto account = [&](Storage &storage) {
      llvm::sort(storage.readers);
      storage.readers.erase(llvm::unique(storage.readers), storage.readers.end());
      if (storage.readers.empty())
        return;
      int layout = own.lookup(storage.producer);
      if (llvm::any_of(storage.readers, [&](unsigned reader) { return own.lookup(reader) != layout; }))
        now += storage.bytes << 12;
      addStorage(region, storage);
    };
    for (auto &[v, storage] : storages)
      account(storage);
    for (Storage &storage : foreign)
      account(storage);
    if (!region.cut.solve(uint64_t(1000) * region.cut.getNumEdges() + 100000)) {
      ++refused;
      return;
    }
    if (region.cut.getCost() >= now)
      return;
    ++regions;
    for (auto *nodes : {&region.ops, &reductions})
      for (auto &[op, node] : *nodes)
        if (int layout = region.cut.isFirst(node.node) ? 0 : 1; layout != node.layouts.own())
          changed.insert({op, {node.layouts, layout}});
  }

  void rewrite(Operation *op, const Change &change) {
    b.setInsertionPoint(op);
    Location loc = op->getLoc();
    ArrayRef<int64_t> order = change.layouts.orders[change.layout];
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Operation *made = b.clone(*op);
    Value back;
    if (auto reduce = dyn_cast<hlo::ReduceOp>(made)) {
      Order rest, sorted;
      for (int64_t d : order)
        if (!llvm::is_contained(reduce.getDimensions(), d))
          rest.push_back(d);
      sorted = rest;
      llvm::sort(sorted);
      for (int64_t &d : rest)
        d = llvm::find(sorted, d) - sorted.begin();
      b.setInsertionPoint(made);
      made->setOperand(0, transposed(b, loc, op->getOperand(0), order));
      auto dims = permute(inverse(order), reduce.getDimensions());
      llvm::sort(dims);
      reduce.setDimensions(dims);
      made->getResult(0).setType(permute(type, rest));
      b.setInsertionPointAfter(made);
      back = transposed(b, loc, made->getResult(0), inverse(rest));
    } else {
      b.setInsertionPoint(made);
      for (unsigned i = 0, e = numMovable(op); i < e; ++i)
        if (Value v = op->getOperand(i); cast<RankedTensorType>(v.getType()).getRank() > 0)
          made->setOperand(
              i, transposed(b, loc, v, across(op, v, change.layouts, false)->orders[change.layout]));
      made->getResult(0).setType(permute(type, order));
      permuteAttributes(made, order);
      b.setInsertionPointAfter(made);
      back = transposed(b, loc, made->getResult(0), inverse(order));
    }
    op->getResult(0).replaceAllUsesWith(back);
    op->erase();
    ++moved;
  }

  Block &block;
  OpBuilder b;
  DenseSet<Value> claimed; ///< by regions so far
  DenseSet<Operation *> claimedOps;
  DenseMap<Operation *, Change> changed;
};

struct HloPlaceTransposes : simplify::impl::HloPlaceTransposesBase<HloPlaceTransposes> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Operation *op) {
      if (isa<func::FuncOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op))
        for (Region &region : op->getRegions())
          for (Block &block : region)
            blocks.push_back(&block);
    });
    for (Block *block : blocks) {
      Placer placer(*block);
      placer.run();
      numMoved += placer.moved;
      numRegions += placer.regions;
      refusedSize += placer.refused;
    }
  }
};

} // namespace
