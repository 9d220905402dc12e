// Merging of dimensions before loops are made: [N,H,W,C] + bias[C] becomes [N*H*W, C], plain elementwise code one
// dimension. Fewer divisions a row, longer inner loops.
#include "passes/codegen/cpu/rows/Elemental.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::tensorType;

static bool sameShape(RankedTensorType a, RankedTensorType b) {
  auto x = hlo::getDims(a), y = hlo::getDims(b);
  return x.size() == y.size() && llvm::all_of(llvm::zip(x, y), [](auto p) {
           return hlo::equalDims(std::get<0>(p), std::get<1>(p));
         });
}

static bool isSplat(Operation *op) {
  auto c = dyn_cast<hlo::ConstantOp>(op);
  return c && c.getValue().isSplat();
}

// mergeable[i]: dimensions i and i+1 need not be told apart
static bool analyse(Value v, RankedTensorType shape, SmallVectorImpl<bool> &mergeable, llvm::DenseSet<Value> &leaves,
                    llvm::DenseSet<Value> &seen) {
  if (!seen.insert(v).second)
    return true;
  if (!sameShape(tensorType(v), shape))
    return false;
  if (leaves.contains(v))
    return true;
  Operation *op = v.getDefiningOp();
  if (!op)
    return false;
  if (isSplat(op))
    return true;
  if (isElementwise(op)) {
    for (Value x : op->getOperands()) {
      bool scalar = tensorType(x).getRank() == 0 && shape.getRank() != 0;
      if (scalar ? !(leaves.contains(x) || (x.getDefiningOp() && isSplat(x.getDefiningOp())))
                 : !analyse(x, shape, mergeable, leaves, seen))
        return false;
    }
    return true;
  }
  if (auto bc = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    Value x = bc.getOperand();
    if (!leaves.contains(x) && !(x.getDefiningOp() && isSplat(x.getDefiningOp())))
      return false;
    auto in = hlo::getDims(tensorType(x));
    SmallVector<int64_t> from(shape.getRank(), -1); // operand dimension, -1: repeated
    for (auto [i, d] : llvm::enumerate(bc.getBroadcastDimensions()))
      if (hlo::constantValue(in[i]) != 1)
        from[d] = i;
    for (unsigned i = 0; i + 1 < from.size(); ++i) {
      bool both = from[i] < 0 && from[i + 1] < 0;
      bool neighbours = from[i] >= 0 && from[i + 1] > from[i];
      for (int64_t k = from[i] + 1; neighbours && k < from[i + 1]; ++k)
        neighbours = hlo::constantValue(in[k]) == 1;
      if (!both && !neighbours)
        mergeable[i] = false;
    }
    return true;
  }
  return false;
}

static RankedTensorType mergeType(RankedTensorType t, ArrayRef<bool> mergeable) {
  auto dims = hlo::getDims(t);
  SmallVector<AffineExpr> out;
  for (auto [i, d] : llvm::enumerate(dims)) {
    if (i > 0 && mergeable[i - 1])
      out.back() = hlo::simplify(out.back() * d);
    else
      out.push_back(d);
  }
  return hlo::makeType(out, t.getElementType());
}

Collapsed::~Collapsed() {
  if (block)
    while (!block->empty())
      block->back().erase();
}

Collapsed::Collapsed(ArrayRef<Value> givenRoots, ArrayRef<Value> leaves, ArrayRef<int64_t> labels)
    : roots(givenRoots) {
  for (Value v : leaves)
    views.push_back({v, v});
  auto shape = tensorType(givenRoots[0]);
  for (int64_t i = 0; i < shape.getRank(); ++i)
    group.push_back(i);
  if (shape.getRank() < 2)
    return;
  SmallVector<bool> mergeable(shape.getRank() - 1, true);
  for (int64_t i = 0; i + 1 < int64_t(labels.size()); ++i)
    mergeable[i] = labels[i] == labels[i + 1];
  llvm::DenseSet<Value> leafSet(leaves.begin(), leaves.end()), seen;
  for (Value r : givenRoots)
    if (!analyse(r, shape, mergeable, leafSet, seen))
      return;
  if (llvm::none_of(mergeable, [](bool m) { return m; }))
    return;
  views.clear();
  block = std::make_unique<Block>();
  OpBuilder ob(shape.getContext());
  ob.setInsertionPointToEnd(block.get());
  llvm::DenseMap<Value, Value> map;
  group.assign(shape.getRank(), 0);
  for (int64_t i = 1; i < shape.getRank(); ++i)
    group[i] = group[i - 1] + (mergeable[i - 1] ? 0 : 1);
  // an operand of the shape, merged; or a scalar
  std::function<Value(Value)> copy = [&](Value v) -> Value {
    if (Value done = map.lookup(v))
      return done;
    auto t = tensorType(v);
    bool full = sameShape(t, shape);
    Value r;
    if (leafSet.contains(v)) {
      r = block->addArgument(full ? mergeType(t, mergeable) : t, v.getLoc());
    } else if (auto c = v.getDefiningOp<hlo::ConstantOp>()) {
      auto newType = full ? mergeType(t, mergeable) : t;
      auto dense = cast<DenseElementsAttr>(c.getValue());
      r = hlo::ConstantOp::create(ob, v.getLoc(), full ? dense.resizeSplat(newType) : dense);
    } else if (auto bc = v.getDefiningOp<hlo::BroadcastInDimOp>()) {
      // operand dimensions follow the groups they are mapped to
      Value x = bc.getOperand();
      auto in = hlo::getDims(tensorType(x));
      SmallVector<AffineExpr> dims;
      SmallVector<int64_t> to;
      for (auto [i, d] : llvm::enumerate(bc.getBroadcastDimensions())) {
        if (hlo::constantValue(in[i]) == 1)
          continue;
        if (!to.empty() && to.back() == group[d]) {
          dims.back() = hlo::simplify(dims.back() * in[i]);
        } else {
          dims.push_back(in[i]);
          to.push_back(group[d]);
        }
      }
      auto newType = hlo::makeType(dims, tensorType(x).getElementType());
      Value nx;
      if (leafSet.contains(x)) {
        // a leaf may be used under several shapes; each gets its own argument
        nx = block->addArgument(newType, x.getLoc());
        views.push_back({x, nx});
      } else {
        auto dense = cast<DenseElementsAttr>(x.getDefiningOp<hlo::ConstantOp>().getValue());
        nx = hlo::ConstantOp::create(ob, v.getLoc(), dense.resizeSplat(newType));
      }
      auto op = hlo::BroadcastInDimOp::create(ob, v.getLoc(), mergeType(t, mergeable), nx, to);
      r = op.getResult();
    } else {
      Operation *op = v.getDefiningOp();
      IRMapping m;
      for (Value x : op->getOperands())
        m.map(x, copy(x));
      Operation *n = ob.clone(*op, m);
      n->getResult(0).setType(mergeType(t, mergeable));
      r = n->getResult(0);
    }
    if (leafSet.contains(v))
      views.push_back({v, r});
    map[v] = r;
    return r;
  };
  for (Value &r : roots)
    r = copy(r);
}

} // namespace lathe::cpu
