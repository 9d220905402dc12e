//===- SinkShapes.cpp - reshapes and transposes below elementwise ops -------===//
//
// Before: product, reshape, bias, activation. After: product, bias, activation,
// reshape. One pass over each block in order: what an op leaves behind is a
// reshape of its new result, which the ops after it take further down.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/DimGroups.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSINKSHAPES
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

class Sinker {
public:
  explicit Sinker(MLIRContext *context) : b(context) {}
  unsigned sunk = 0;

  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp, hlo::ReduceWindowOp>(op) && op.getNumResults() == 1)
        products.insert(op.getResult(0));
      b.setInsertionPoint(&op);
      if (isElementwise(&op)) {
        if (!sinkReshape(&op))
          sinkTranspose(&op);
      } else if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) {
        sinkReduce(reduce);
      } else if (auto pad = dyn_cast<hlo::PadOp>(op)) {
        sinkTransposeOfPad(pad);
      } else if (auto reshape = dyn_cast<hlo::ReshapeOp>(op)) {
        mergeReshape(reshape);
      }
    }
  }

private:
  static bool isElementwise(Operation *op) {
    if (!op->hasTrait<hlo::HloElementwise>() || op->getNumResults() != 1 || op->getNumOperands() == 0)
      return false;
    return llvm::all_of(op->getOperands(),
                        [&](Value v) { return sameSizes(v.getType(), op->getResult(0).getType()); });
  }

  /// Derived from a product by ops that may be its epilogue.
  bool fromProduct(Value v) const { return products.contains(v); }

  void mergeReshape(hlo::ReshapeOp op) {
    if (auto inner = op.getOperand().getDefiningOp<hlo::ReshapeOp>())
      op.setOperand(inner.getOperand());
    if (op.getOperand().getType() == op.getType()) {
      op.replaceAllUsesWith(op.getOperand());
      op.erase();
    }
  }

  Value reshapeTo(Value v, RankedTensorType shape) {
    RankedTensorType type = shapeLike(shape, getElementTypeOrSelf(v.getType()));
    while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
      v = reshape.getOperand();
    return v.getType() == type ? v : hlo::ReshapeOp::create(b, v.getLoc(), type, v).getResult();
  }

  /// A broadcast into `to` made a broadcast into `from`: each of its dimensions must stand alone in its group, or the
  /// whole group must come from the operand.
  FailureOr<Value> moveBroadcast(hlo::BroadcastInDimOp op, RankedTensorType from, const DimGroups &groups) {
    auto source = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getType());
    ArrayRef<int64_t> dims = op.getBroadcastDimensions();
    if (!llvm::is_sorted(dims))
      return failure();
    SmallVector<int64_t> newDims;
    SmallVector<AffineExpr> sizes;
    for (const DimGroups::Group &group : groups.groups) {
      unsigned present = 0;
      for (int64_t t : group.to) {
        auto it = llvm::find(dims, t);
        if (it == dims.end() || isOne(source, it - dims.begin()))
          continue;
        if (!hlo::equalDims(hlo::getDim(source, it - dims.begin()), hlo::getDim(to, t)))
          return failure();
        ++present;
      }
      if (present == 0)
        continue;
      if (present != group.to.size())
        return failure();
      for (int64_t f : group.from) {
        newDims.push_back(f);
        sizes.push_back(hlo::getDim(from, f));
      }
    }
    RankedTensorType small = hlo::makeType(sizes, source.getElementType());
    Value v = reshapeTo(op.getOperand(), small);
    return hlo::BroadcastInDimOp::create(b, op.getLoc(), shapeLike(from, source.getElementType()), v,
                                         b.getDenseI64ArrayAttr(newDims))
        .getResult();
  }

  /// Cheap arithmetic on broadcasts (scale and shift of a normalisation): made again in the other shape. What the copy
  /// leaves behind usually has no other user in the end.
  bool isMadeOfBroadcasts(Value v, RankedTensorType from, const DimGroups &groups, unsigned depth) {
    Operation *def = v.getDefiningOp();
    if (!def || depth >= 4 || !isElementwise(def) || !isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::NegOp>(def))
      return false;
    return llvm::all_of(def->getOperands(), [&](Value operand) {
      if (splatElement(operand))
        return true;
      if (operand.getDefiningOp<hlo::BroadcastInDimOp>())
        return moveCost(operand, from, groups) == 0;
      return isMadeOfBroadcasts(operand, from, groups, depth + 1);
    });
  }

  /// What an operand of shape `to` costs in shape `from`: 0 nothing, 1 a view between its producer and us, 2 too much.
  unsigned moveCost(Value v, RankedTensorType from, const DimGroups &groups, unsigned depth = 0) {
    if (splatElement(v))
      return 0;
    Operation *def = v.getDefiningOp();
    if (!def)
      return 0;
    if (isa<hlo::ReshapeOp, hlo::ConstantOp>(def))
      return 0;
    if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(def)) {
      // try without making anything
      auto source = cast<RankedTensorType>(broadcast.getOperand().getType());
      auto to = cast<RankedTensorType>(broadcast.getType());
      ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
      if (!llvm::is_sorted(dims))
        return 2;
      for (const DimGroups::Group &group : groups.groups) {
        unsigned present = 0;
        for (int64_t t : group.to) {
          auto it = llvm::find(dims, t);
          if (it == dims.end() || isOne(source, it - dims.begin()))
            continue;
          if (!hlo::equalDims(hlo::getDim(source, it - dims.begin()), hlo::getDim(to, t)))
            return 2;
          ++present;
        }
        if (present != 0 && present != group.to.size())
          return 2;
      }
      return 0;
    }
    if (isMadeOfBroadcasts(v, from, groups, depth))
      return 0;
    bool elemental = def->hasTrait<hlo::HloElementwise>() ||
                     isa<hlo::TransposeOp, hlo::SliceOp, hlo::PadOp, hlo::IotaOp, hlo::ReduceOp>(def);
    return elemental && v.hasOneUse() ? 1 : 0;
  }

  Value move(Value v, RankedTensorType from, const DimGroups &groups, unsigned depth = 0) {
    if (Attribute element = splatElement(v))
      return makeSplatLike(b, v.getLoc(), shapeLike(from, getElementTypeOrSelf(v.getType())), element);
    if (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>())
      if (FailureOr<Value> moved = moveBroadcast(broadcast, from, groups); succeeded(moved))
        return *moved;
    if (isMadeOfBroadcasts(v, from, groups, depth)) {
      Operation *def = v.getDefiningOp();
      SmallVector<Value> operands;
      for (Value operand : def->getOperands())
        operands.push_back(move(operand, from, groups, depth + 1));
      return rebuild(b, def, operands, from)->getResult(0);
    }
    return reshapeTo(v, from);
  }

  /// All users of a reshape of `from` to `to` can do without it.
  bool usersFollow(Value reshaped, RankedTensorType from, const DimGroups &groups) {
    for (Operation *user : reshaped.getUsers()) {
      if (auto reduce = dyn_cast<hlo::ReduceOp>(user)) {
        if (!reducible(reduce, groups))
          return false;
      } else if (isElementwise(user)) {
        for (Value v : user->getOperands())
          if (moveCost(v, from, groups) > 0)
            return false;
      } else if (!isa<hlo::ReshapeOp>(user)) {
        return false;
      }
    }
    return true;
  }

  bool sinkReshape(Operation *op) {
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    // products first, then whatever comes first
    for (bool wantProduct : {true, false})
      for (Value v : op->getOperands()) {
        auto reshape = v.getDefiningOp<hlo::ReshapeOp>();
        if (!reshape || fromProduct(reshape.getOperand()) != wantProduct)
          continue;
        auto from = cast<RankedTensorType>(reshape.getOperand().getType());
        if (splatElement(v) || constantValue(reshape.getOperand()))
          continue;
        DimGroups groups(from, to);
        if (!groups.valid || (!wantProduct && !usersFollow(v, from, groups)))
          continue;
        unsigned worst = 0;
        for (Value other : op->getOperands()) {
          worst = std::max(worst, moveCost(other, from, groups));
          // already the epilogue of a product: it would lose one to gain one, and the other way round next time
          if (other != v && fromProduct(other) && other.hasOneUse())
            worst = 2;
        }
        if (worst > (wantProduct ? 1u : 0u))
          continue;
        SmallVector<Value> operands;
        for (Value other : op->getOperands())
          operands.push_back(move(other, from, groups));
        Operation *made = rebuild(b, op, operands, from);
        finish(op, made->getResult(0));
        if (wantProduct)
          products.insert(made->getResult(0));
        return true;
      }
    if (llvm::any_of(op->getOperands(), [&](Value v) { return fromProduct(v); }))
      products.insert(op->getResult(0));
    return false;
  }

  void finish(Operation *op, Value made) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value back = hlo::ReshapeOp::create(b, op->getLoc(), type, made);
    op->getResult(0).replaceAllUsesWith(back);
    products.erase(op->getResult(0));
    op->erase();
    ++sunk;
  }

  /// The reduced dimensions are whole groups.
  static bool reducible(hlo::ReduceOp op, const DimGroups &groups) {
    if (op.getInputs().size() != 1)
      return false;
    for (const DimGroups::Group &group : groups.groups) {
      size_t reduced =
          llvm::count_if(group.to, [&](int64_t t) { return llvm::is_contained(op.getDimensions(), t); });
      if (reduced != 0 && reduced != group.to.size())
        return false;
    }
    return true;
  }

  void sinkReduce(hlo::ReduceOp op) {
    if (op.getInputs().size() != 1)
      return;
    auto reshape = op.getInputs().front().getDefiningOp<hlo::ReshapeOp>();
    if (!reshape)
      return;
    auto from = cast<RankedTensorType>(reshape.getOperand().getType());
    auto to = cast<RankedTensorType>(reshape.getType());
    DimGroups groups(from, to);
    if (!groups.valid || !reducible(op, groups))
      return;
    if (!fromProduct(reshape.getOperand()) && !usersFollow(reshape, from, groups))
      return;
    SmallVector<int64_t> dims;
    for (const DimGroups::Group &group : groups.groups)
      if (llvm::is_contained(op.getDimensions(), group.to.front()))
        llvm::append_range(dims, group.from);
    // ones of `from` that nothing corresponds to stay and go with the reshape afterwards
    if (dims.empty())
      return;
    SmallVector<AffineExpr> sizes;
    for (int64_t i = 0; i < from.getRank(); ++i)
      if (!llvm::is_contained(dims, i))
        sizes.push_back(hlo::getDim(from, i));
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    auto made = cast<hlo::ReduceOp>(b.clone(*op));
    made->setOperand(0, reshape.getOperand());
    made.setDimensions(dims);
    made.getResult(0).setType(hlo::makeType(sizes, type.getElementType()));
    Value back = made.getResult(0);
    if (back.getType() != type)
      back = hlo::ReshapeOp::create(b, op.getLoc(), type, back);
    op.getResult(0).replaceAllUsesWith(back);
    op->erase();
    ++sunk;
  }

  /// pad(transpose(x)) -> transpose(pad(x)) before a Fourier transform, where the pad stays an op of its own:
  /// the kernel then turns squares of elements, all of whose rows are alike.
  void sinkTransposeOfPad(hlo::PadOp pad) {
    auto transpose = pad.getOperand().getDefiningOp<hlo::TransposeOp>();
    if (!transpose || !transpose->hasOneUse() || pad->use_empty() ||
        transpose.getPermutation().back() == int64_t(transpose.getPermutation().size()) - 1 ||
        !llvm::all_of(pad->getUsers(), [](Operation *user) { return isa<hlo::FftOp>(user); }))
      return;
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    auto sizes = hlo::getDims(cast<RankedTensorType>(pad.getType()));
    auto moved = [&](auto list) {
      auto result = llvm::to_vector(list);
      for (auto [i, p] : llvm::enumerate(permutation))
        result[p] = list[i];
      return result;
    };
    auto type = hlo::makeType(moved(sizes), pad.getType().getElementType());
    Value padded = hlo::PadOp::create(b, pad.getLoc(), type, transpose.getOperand(), pad.getPaddingValue(),
                                      b.getDenseI64ArrayAttr(moved(pad.getEdgePaddingLow())),
                                      b.getDenseI64ArrayAttr(moved(pad.getEdgePaddingHigh())),
                                      b.getDenseI64ArrayAttr(moved(pad.getInteriorPadding())));
    Value back = hlo::TransposeOp::create(b, transpose.getLoc(), pad.getType(), padded,
                                          transpose.getPermutationAttr());
    pad.replaceAllUsesWith(back);
    pad.erase();
    transpose.erase();
    ++sunk;
  }

  void sinkTranspose(Operation *op) {
    // Behind a dot_general the transpose costs nothing where it is.
    hlo::TransposeOp model;
    for (Value v : op->getOperands()) {
      if (splatElement(v))
        continue;
      Operation *def = v.getDefiningOp();
      if (auto transpose = dyn_cast_or_null<hlo::TransposeOp>(def)) {
        if (transpose.getOperand().getDefiningOp<hlo::DotGeneralOp>() || constantValue(transpose.getOperand()))
          return;
        bool only = llvm::all_of(v.getUsers(), [&](Operation *user) { return user == op; });
        if (!only || (model && model.getPermutation() != transpose.getPermutation()))
          return;
        model = transpose;
      } else if (auto broadcast = dyn_cast_or_null<hlo::BroadcastInDimOp>(def)) {
        continue;
      } else {
        return;
      }
    }
    if (!model)
      return;
    ArrayRef<int64_t> permutation = model.getPermutation();
    auto from = cast<RankedTensorType>(model.getOperand().getType());
    SmallVector<Value> operands;
    for (Value v : op->getOperands()) {
      RankedTensorType type = shapeLike(from, getElementTypeOrSelf(v.getType()));
      if (Attribute element = splatElement(v)) {
        operands.push_back(makeSplatLike(b, v.getLoc(), type, element));
      } else if (auto transpose = v.getDefiningOp<hlo::TransposeOp>()) {
        operands.push_back(transpose.getOperand());
      } else {
        auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>();
        SmallVector<int64_t> dims;
        for (int64_t d : broadcast.getBroadcastDimensions())
          dims.push_back(permutation[d]);
        operands.push_back(hlo::BroadcastInDimOp::create(b, v.getLoc(), type, broadcast.getOperand(),
                                                         b.getDenseI64ArrayAttr(dims)));
      }
    }
    Operation *made = rebuild(b, op, operands, from);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value back = hlo::TransposeOp::create(b, op->getLoc(), type, made->getResult(0), model.getPermutationAttr());
    op->getResult(0).replaceAllUsesWith(back);
    products.erase(op->getResult(0));
    op->erase();
    ++sunk;
  }

  OpBuilder b;
  DenseSet<Value> products;
};

struct HloSinkShapes : simplify::impl::HloSinkShapesBase<HloSinkShapes> {
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
      Sinker sinker(&getContext());
      sinker.run(*block);
      numSunk += sinker.sunk;
    }
  }
};

} // namespace
