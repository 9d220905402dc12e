// Before: dot_general(%x, constant f32). After, with `dynamic`: dot_general(rows of %x as i8, constant i8) times the rows' scales and
// the columns'; with `float16`: dot_general(%x, convert(constant f16)).
#include "passes/quantize/Choose.h"
#include "passes/quantize/Passes.h"
#include "passes/quantize/Kernels.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/BuiltinOps.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {
#define GEN_PASS_DEF_HLOQUANTIZEWEIGHTS
#include "passes/quantize/Passes.h.inc"

std::optional<Tensor> toHalf(const Tensor &values) {
  if (values.dtype() != DType::Float32)
    return std::nullopt;
  Tensor half = Tensor::allocate(DType::Float16, values.dims());
  for (int64_t i = 0; i < values.numElements(); ++i) {
    llvm::APFloat v(values.data<float>()[i]);
    bool lost;
    v.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &lost);
    if (!v.isFinite())
      return std::nullopt;
    static_cast<uint16_t *>(half.data())[i] = uint16_t(v.bitcastToAPInt().getZExtValue());
  }
  return half;
}

namespace {

/// Sums of integers as real numbers, by the scales of rows and those of channels (the last axis).
Value toReal(Emitter &e, Value sums, Value rowScales, ArrayRef<float> channelScales, bool channelsFirst) {
  Tensor t = Tensor::allocate(DType::Float32, {int64_t(channelScales.size())});
  llvm::copy(channelScales, t.data<float>());
  return scaleSums(e, sums, rowScales, e.constant(t), channelsFirst);
}

Value dynamicDot(Emitter &e, hlo::DotGeneralOp op, const Weights &w) {
  auto numbers = op.getDotDimensionNumbers();
  const int64_t inner = numbers.getLhsContractingDimensions()[0], weightsInner = numbers.getRhsContractingDimensions()[0];
  QuantizedRows rows = quantizeRows(e, op.getLhs(), {inner}, true);
  Value weights = e.constant(w.values), sums = e.make<hlo::DotGeneralOp>(rows.values, weights, numbers, e.b.getI32Type());
  // a number for each row, behind which the columns come
  auto perRow = [&](Value v) {
    legalize::Dims dims = e.dims(v);
    AffineExpr one = dims[inner];
    dims.erase(dims.begin() + inner);
    dims.push_back(one);
    return e.reshape(v, dims);
  };
  sums = e.sub(sums, e.mul(perRow(rows.zeroPoints), e.reduceSum(e.convert(weights, e.b.getI32Type()), {weightsInner})));
  return toReal(e, sums, perRow(rows.scales), w.scales, false);
}

Value dynamicConvolution(Emitter &e, hlo::ConvolutionOp op, const Weights &w) {
  const int64_t rank = Emitter::rank(op.getLhs()), spatial = rank - 2;
  QuantizedRows rows = quantizeRows(e, op.getLhs(), llvm::to_vector(llvm::seq<int64_t>(1, rank)), true);
  hlo::ConvWindow window;
  window.strides = hlo::getListOr(op.getWindowStrides(), spatial, 1);
  window.rhsDilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
  window.padding = hlo::getPadding(op.getPaddingAttr(), spatial);
  Value sums = convolveRows(e, rows, e.constant(w.values), window, op.getDimensionNumbers(), int64_t(op.getFeatureGroupCount()));
  // what a file says as DEPTHWISE_CONV_2D has a kernel of another order
  const bool depthwise = op.getFeatureGroupCount() > 1 &&
                         Emitter::type(op.getRhs()).getDimSize(op.getDimensionNumbers().getKernelInputFeatureDimension()) == 1;
  return toReal(e, sums, rows.scales, w.scales, !depthwise);
}

/// Hybrid operators have no gaps between the image's elements and one or two dimensions of space.
bool isHybrid(const Unit &unit) {
  auto conv = dyn_cast<hlo::ConvolutionOp>(unit.root);
  if (!conv)
    return true;
  return Emitter::rank(conv.getLhs()) <= 4 && llvm::all_of(hlo::getListOr(conv.getLhsDilation(), 1, 1), [](int64_t d) { return d == 1; });
}

class Narrower {
public:
  Narrower(func::FuncOp function, int64_t least) : function(function), context(function->getParentOfType<ModuleOp>()), least(least) {}
  unsigned narrowed = 0;

  LogicalResult dynamic() {
    for (Unit &unit : findUnits(function)) {
      if (!unit.isProduct() || !unit.weights || !isHybrid(unit) || !isLarge(unit.weights))
        continue;
      unit.bias.clear(); // added in float
      auto w = quantizeWeights(unit, Params(), 8);
      if (failed(w))
        return unit.root->emitError() << "node '" << graph::getNodeName(unit.root->getLoc()) << "' (" << unitName(unit.kind)
                                      << "): its weights are not finite numbers";
      context.builder.setInsertionPoint(unit.root);
      Emitter e(context, unit.root->getLoc(), graph::getNodeName(unit.root->getLoc()));
      auto conv = dyn_cast<hlo::ConvolutionOp>(unit.root);
      Value result = conv ? dynamicConvolution(e, conv, *w) : dynamicDot(e, cast<hlo::DotGeneralOp>(unit.root), *w);
      if (!result || context.sawError)
        return failure();
      unit.root->getResult(0).replaceAllUsesWith(result);
      unit.root->erase();
      ++narrowed;
    }
    return success();
  }

  /// The barrier keeps the constant from being widened by the compiler.
  LogicalResult float16() {
    llvm::DenseMap<Value, Value> known;
    for (Unit &unit : findUnits(function)) {
      if (!unit.isProduct() || !unit.weights || !isLarge(unit.weights))
        continue;
      Value &half = known[unit.weights];
      context.builder.setInsertionPointAfterValue(unit.weights);
      Emitter e(context, unit.weights.getLoc(), "");
      if (!half) {
        auto values = hlo::readConstant(unit.weights);
        auto narrow = succeeded(values) ? toHalf(*values) : std::nullopt;
        if (!narrow) // beyond what f16 holds
          continue;
        half = e.make<hlo::OptimizationBarrierOp>(ValueRange(e.constant(*narrow)));
        ++narrowed;
      }
      context.builder.setInsertionPoint(unit.root);
      unit.root->setOperand(1, e.convert(half, e.b.getF32Type()));
    }
    return success();
  }

private:
  func::FuncOp function;
  legalize::HloContext context;
  int64_t least;

  bool isLarge(Value weights) const { return cast<RankedTensorType>(weights.getType()).getNumElements() >= least; }
};

struct WeightsOnly : impl::HloQuantizeWeightsBase<WeightsOnly> {
  using HloQuantizeWeightsBase::HloQuantizeWeightsBase;
  void runOnOperation() override {
    if (kind != "dynamic" && kind != "float16") {
      getOperation().emitError("expected kind dynamic or float16, found ") << kind;
      return signalPassFailure();
    }
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      Narrower narrower(function, least);
      if (failed(kind == "dynamic" ? narrower.dynamic() : narrower.float16()))
        return signalPassFailure();
      numNarrowed += narrower.narrowed;
    }
  }
};

} // namespace
} // namespace lathe::quantize
