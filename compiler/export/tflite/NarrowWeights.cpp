// The pass tflite-narrow-weights:
//   CONV_2D(%x, constant f32) becomes CONV_2D(%x, constant i8 with scales) or CONV_2D(%x, DEQUANTIZE(constant f16))
#include "compiler/export/tflite/Passes.h"
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/quantize/Choose.h"

#include "mlir/Dialect/Quant/IR/Quant.h"

using namespace mlir;

namespace lathe::tflwrite {

#define GEN_PASS_DEF_TFLITENARROWWEIGHTS
#include "compiler/export/tflite/Passes.h.inc"

namespace {

/// The dimension of an operator's weights that has a scale an index where the operator is hybrid; -1 where it is not.
int64_t hybridDimension(Operation *op) {
  StringRef name = operatorName(op);
  return name == "DEPTHWISE_CONV_2D" ? 3 : name == "CONV_2D" || name == "FULLY_CONNECTED" ? 0 : -1;
}

struct Narrow : impl::TfliteNarrowWeightsBase<Narrow> {
  using TfliteNarrowWeightsBase::TfliteNarrowWeightsBase;
  void runOnOperation() override {
    if (kind != "dynamic" && kind != "float16") {
      getOperation().emitError("expected kind dynamic or float16, found ") << kind;
      return signalPassFailure();
    }
    Raiser r(getOperation());
    SmallVector<Operation *> operators;
    getOperation().walk([&](Operation *op) {
      if (hybridDimension(op) >= 0 || (kind == "float16" && llvm::is_contained({"TRANSPOSE_CONV", "CONV_3D"}, operatorName(op))))
        operators.push_back(op);
    });
    for (Operation *op : operators) {
      auto constant = op->getOperand(1).getDefiningOp<hlo::ConstantOp>();
      RankedTensorType type = hlo::tensorType(op->getOperand(1));
      if (!constant || !type.getElementType().isF32() || type.getNumElements() < least)
        continue;
      auto values = hlo::readConstant(constant.getValue());
      if (failed(values) || !narrow(op, *values, r))
        return signalPassFailure();
    }
  }

  bool narrow(Operation *op, const Tensor &values, Raiser &r) {
    r.start(op);
    if (kind == "float16") {
      if (auto half = quantize::toHalf(values)) { // else beyond what f16 holds
        Value stored = hlo::makeConstant(r.b, r.loc, *half);
        op->setOperand(1, r.makeMany("DEQUANTIZE", stored, op->getOperand(1).getType())->getResult(0));
        ++numNarrowed;
      }
      return true;
    }
    const int64_t dim = hybridDimension(op);
    auto w = quantize::quantizeChannels(values, dim, {}, {}, 8);
    if (failed(w)) {
      op->emitError() << operatorName(op) << ": its weights are not finite numbers";
      return false;
    }
    SmallVector<double> scales(w->scales.begin(), w->scales.end());
    op->setOperand(1, r.scaled(hlo::makeConstant(r.b, r.loc, w->values), scales, dim));
    if (operatorName(op) == "FULLY_CONNECTED")
      setOption(op, "asymmetric_quantize_inputs", r.flag(true));
    ++numNarrowed;
    return true;
  }
};

} // namespace
} // namespace lathe::tflwrite
