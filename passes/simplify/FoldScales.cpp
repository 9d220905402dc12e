//===- FoldScales.cpp - per-channel factors into the weights ----------------===//
//
// Before: mul(add(conv(x, W), b), s). After: add(conv(x, mul(W, s)), mul(b, s));
// the products of constants are evaluated by hlo-fold-constants.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOFOLDSCALES
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// A product or convolution with constant weights.
struct Product {
  Operation *op = nullptr;
  Value weights;
  int64_t resultChannel = 0;  ///< dimension of the result that the weights' outputs are
  int64_t weightOutput = 0;   ///< that dimension in the weights
  int64_t inputChannel = -1;  ///< dimension of the input that is summed over with one factor each; -1: no such
  int64_t weightInput = -1;
  bool padded = false;
};

bool isConstantExpression(Value v) {
  // weights may still be waiting for constant folding
  for (unsigned steps = 0; steps < 8; ++steps) {
    Operation *op = v.getDefiningOp();
    if (!op)
      return false;
    if (isa<hlo::ConstantOp>(op))
      return true;
    if (isa<hlo::ReshapeOp, hlo::TransposeOp, hlo::ReverseOp, hlo::ConvertOp>(op)) {
      v = op->getOperand(0);
      continue;
    }
    if (isa<hlo::MulOp>(op) && matchChannelConstant(op->getOperand(1))) {
      v = op->getOperand(0);
      continue;
    }
    return false;
  }
  return false;
}

std::optional<Product> matchProduct(Operation *op) {
  Product p;
  p.op = op;
  if (auto conv = dyn_cast<hlo::ConvolutionOp>(op)) {
    auto d = conv.getDimensionNumbers();
    p.weights = conv.getRhs();
    p.resultChannel = d.getOutputFeatureDimension();
    p.weightOutput = d.getKernelOutputFeatureDimension();
    if (conv.getFeatureGroupCount() == 1 && conv.getBatchGroupCount() == 1) {
      p.inputChannel = d.getInputFeatureDimension();
      p.weightInput = d.getKernelInputFeatureDimension();
    }
    for (auto [low, high] : hlo::getPadding(conv.getPaddingAttr(), d.getInputSpatialDimensions().size()))
      p.padded |= low != 0 || high != 0;
    p.padded |= !llvm::all_of(hlo::getListOr(conv.getLhsDilation(), d.getInputSpatialDimensions().size(), 1),
                              [](int64_t v) { return v == 1; });
  } else if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
    auto d = dot.getDotDimensionNumbers();
    auto rhs = cast<RankedTensorType>(dot.getRhs().getType());
    if (d.getRhsContractingDimensions().size() != 1 || !d.getRhsBatchingDimensions().empty() || rhs.getRank() != 2)
      return std::nullopt;
    p.weights = dot.getRhs();
    p.resultChannel = cast<RankedTensorType>(dot.getType()).getRank() - 1;
    p.weightInput = d.getRhsContractingDimensions().front();
    p.weightOutput = 1 - p.weightInput;
    p.inputChannel = d.getLhsContractingDimensions().front();
  } else {
    return std::nullopt;
  }
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() < 32 ||
      getElementTypeOrSelf(p.weights.getType()) != element ||
      getElementTypeOrSelf(op->getOperand(0).getType()) != element)
    return std::nullopt;
  return p;
}

class Folder {
public:
  Folder(const Product &p, OpBuilder &b) : p(p), b(b) {}

  /// Walks the per-channel chain behind the product; true when something was folded.
  bool foldOutputs(unsigned &count) {
    auto type = cast<RankedTensorType>(p.op->getResult(0).getType());
    Value v = p.op->getResult(0);
    Value scale, shift; // vectors; null: one and zero
    unsigned factors = 0, terms = 0;
    int64_t size = type.getDimSize(p.resultChannel);
    if (ShapedType::isDynamic(size))
      return false;
    channelType = RankedTensorType::get({size}, type.getElementType());
    b.setInsertionPointAfter(p.op);
    while (v.hasOneUse()) {
      Operation *user = *v.getUsers().begin();
      if (user->getBlock() != p.op->getBlock() || user->getNumResults() != 1 ||
          user->getResult(0).getType() != type)
        break;
      b.setInsertionPoint(user);
      if (isa<hlo::NegOp>(user)) {
        scale = scale ? negate(scale) : number(-1);
        shift = shift ? negate(shift) : shift;
        ++factors;
        v = user->getResult(0);
        continue;
      }
      if (!isa<hlo::AddOp, hlo::SubtractOp, hlo::MulOp, hlo::DivOp>(user))
        break;
      bool second = user->getOperand(1) == v;
      Value other = user->getOperand(second ? 0 : 1);
      std::optional<ChannelConstant> constant = matchChannelConstant(other);
      if (!constant || other == v || (constant->dim >= 0 && constant->dim != p.resultChannel))
        break;
      if (second && isa<hlo::DivOp>(user))
        break;
      Value c = vector(*constant);
      if (isa<hlo::MulOp>(user)) {
        scale = scale ? make<hlo::MulOp>(scale, c) : c;
        shift = shift ? make<hlo::MulOp>(shift, c) : shift;
        ++factors;
      } else if (isa<hlo::DivOp>(user)) {
        scale = make<hlo::DivOp>(scale ? scale : number(1), c);
        shift = shift ? make<hlo::DivOp>(shift, c) : shift;
        ++factors;
      } else if (isa<hlo::AddOp>(user)) {
        shift = shift ? make<hlo::AddOp>(shift, c) : c;
        ++terms;
      } else if (!second) {
        shift = shift ? make<hlo::SubtractOp>(shift, c) : negate(c);
        ++terms;
      } else {
        scale = scale ? negate(scale) : number(-1);
        shift = shift ? make<hlo::SubtractOp>(c, shift) : c;
        ++factors;
      }
      v = user->getResult(0);
    }
    if (factors == 0 && terms < 2)
      return false;
    if (v == p.op->getResult(0))
      return false;
    // all constants lie before the last op of the chain; the product moves there
    Operation *last = v.getDefiningOp();
    b.setInsertionPoint(last);
    Value weights = scale ? scaleWeights(p.weights, scale, p.weightOutput) : p.weights;
    Operation *product = b.clone(*p.op);
    product->setOperand(1, weights);
    Value result = product->getResult(0);
    if (shift)
      result = hlo::AddOp::create(b, last->getLoc(), type, result, spread(shift, type));
    v.replaceAllUsesWith(result);
    count += factors + terms;
    eraseChain(last);
    p.op = product;
    return true;
  }

  /// A factor on the input, and a term where no padding mixes with it.
  bool foldInput(unsigned &count) {
    if (p.inputChannel < 0)
      return false;
    Value input = p.op->getOperand(0);
    Operation *def = input.getDefiningOp();
    if (!def || !input.hasOneUse() || !isa<hlo::MulOp, hlo::DivOp, hlo::AddOp, hlo::SubtractOp>(def))
      return false;
    auto inputType = cast<RankedTensorType>(input.getType());
    int64_t size = inputType.getDimSize(p.inputChannel);
    if (ShapedType::isDynamic(size))
      return false;
    for (bool second : {true, false}) {
      if (!second && !isa<hlo::MulOp, hlo::AddOp>(def))
        continue;
      std::optional<ChannelConstant> constant = matchChannelConstant(def->getOperand(second));
      if (!constant || (constant->dim >= 0 && constant->dim != p.inputChannel))
        continue;
      channelType = RankedTensorType::get({size}, inputType.getElementType());
      b.setInsertionPoint(p.op);
      Value c = vector(*constant);
      auto type = cast<RankedTensorType>(p.op->getResult(0).getType());
      if (isa<hlo::MulOp, hlo::DivOp>(def)) {
        if (isa<hlo::DivOp>(def))
          c = make<hlo::DivOp>(number(1), c);
        p.op->setOperand(1, scaleWeights(p.weights, c, p.weightInput));
        p.op->setOperand(0, def->getOperand(!second));
      } else {
        int64_t outputs = type.getDimSize(p.resultChannel);
        if (p.padded || ShapedType::isDynamic(outputs))
          return false;
        if (isa<hlo::SubtractOp>(def))
          c = negate(c);
        // what the term adds to every output: the sum of term * weight over all but the output dimension
        Value weighted = scaleWeights(p.weights, c, p.weightInput);
        SmallVector<int64_t> dims;
        auto weightType = cast<RankedTensorType>(weighted.getType());
        for (int64_t i = 0; i < weightType.getRank(); ++i)
          if (i != p.weightOutput)
            dims.push_back(i);
        auto scalar = RankedTensorType::get({}, type.getElementType());
        Value zero = hlo::makeSplat(b, p.op->getLoc(), 0.0, scalar);
        auto sum = hlo::ReduceOp::create(b, p.op->getLoc(), ValueRange{weighted}, ValueRange{zero}, dims,
                                         [&](OpBuilder &inner, Location loc, ValueRange args) {
                                           return SmallVector<Value>{
                                               hlo::AddOp::create(inner, loc, args[0], args[1]).getResult()};
                                         });
        p.op->setOperand(0, def->getOperand(!second));
        b.setInsertionPointAfter(p.op);
        Value spreadSum =
            hlo::BroadcastInDimOp::create(b, p.op->getLoc(), type, sum->getResult(0),
                                          b.getDenseI64ArrayAttr({p.resultChannel}));
        auto add = hlo::AddOp::create(b, p.op->getLoc(), type, p.op->getResult(0), spreadSum);
        p.op->getResult(0).replaceAllUsesExcept(add.getResult(), add);
      }
      if (def->use_empty())
        def->erase();
      ++count;
      return true;
    }
    return false;
  }

private:
  template <typename OpT>
  Value make(Value x, Value y) {
    return OpT::create(b, p.op->getLoc(), x.getType(), x, y);
  }
  Value negate(Value v) { return hlo::NegOp::create(b, p.op->getLoc(), v.getType(), v); }
  Value number(double n) { return hlo::makeSplat(b, p.op->getLoc(), n, channelType); }

  Value vector(const ChannelConstant &c) {
    if (c.dim < 0)
      return makeSplatLike(b, p.op->getLoc(), channelType, splatElement(c.value));
    return c.value.getType() == channelType
               ? c.value
               : hlo::ReshapeOp::create(b, p.op->getLoc(), channelType, c.value).getResult();
  }
  Value spread(Value v, RankedTensorType type) {
    return hlo::BroadcastInDimOp::create(b, p.op->getLoc(), type, v, b.getDenseI64ArrayAttr({p.resultChannel}));
  }
  Value scaleWeights(Value weights, Value scale, int64_t dim) {
    Value wide = hlo::BroadcastInDimOp::create(b, p.op->getLoc(), cast<RankedTensorType>(weights.getType()), scale,
                                               b.getDenseI64ArrayAttr({dim}));
    return hlo::MulOp::create(b, p.op->getLoc(), weights.getType(), weights, wide);
  }
  /// Erases what nothing uses any more, upwards from `last`.
  static void eraseChain(Operation *last) {
    SetVector<Operation *> work;
    work.insert(last);
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!op->use_empty() || isa<hlo::ConstantOp>(op))
        continue;
      for (Value v : op->getOperands())
        if (Operation *def = v.getDefiningOp())
          work.insert(def);
      op->erase();
    }
  }

  Product p;
  OpBuilder &b;
  RankedTensorType channelType;
};

struct HloFoldScales : simplify::impl::HloFoldScalesBase<HloFoldScales> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      if (isa<hlo::ConvolutionOp, hlo::DotGeneralOp>(op))
        found.push_back(op);
    });
    OpBuilder b(&getContext());
    for (Operation *op : found) {
      std::optional<Product> product = matchProduct(op);
      if (!product)
        continue;
      if (!isConstantExpression(product->weights)) {
        ++refusedWeights;
        continue;
      }
      unsigned count = 0;
      // one step at a time: each changes the weights it was matched with
      while (Folder(*product, b).foldInput(count)) {
        product = matchProduct(op);
        if (!product || !isConstantExpression(product->weights))
          break;
      }
      product = matchProduct(op);
      if (product && !Folder(*product, b).foldOutputs(count) && !op->getResult(0).hasOneUse())
        ++refusedUses;
      numFolded += count;
    }
  }
};

} // namespace
