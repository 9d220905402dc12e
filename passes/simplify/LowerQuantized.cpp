//===- LowerQuantized.cpp - quantized numbers as integers -------------------===//
//
// Before: hlo.uniform_quantize and hlo.uniform_dequantize, and values of
// quantized type between them. After: the integers that hold these values, and
// the same arithmetic on elements that legalization writes out for other ops.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Passes.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Quant.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOLOWERQUANTIZED
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

bool isQuantizedTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && hlo::isQuantized(tensor.getElementType());
}

Type stored(Type type) {
  if (!isQuantizedTensor(type))
    return type;
  auto tensor = cast<RankedTensorType>(type);
  return hlo::withElementType(tensor, hlo::storageType(tensor.getElementType()));
}

/// Ops that do the same with the integers of quantized numbers as with the numbers.
bool movesOrCompares(Operation *op) {
  return isa<func::CallOp, func::ReturnOp, hlo::ReturnOp, hlo::IfOp, hlo::CaseOp, hlo::WhileOp, hlo::OptimizationBarrierOp>(op) ||
         isa<hlo::AssumeShapeOp, hlo::ReshapeOp, hlo::DynamicReshapeOp, hlo::BroadcastInDimOp, hlo::DynamicBroadcastInDimOp,
             hlo::BroadcastOp, hlo::TransposeOp, hlo::ReverseOp, hlo::ConcatenateOp, hlo::SliceOp, hlo::RealDynamicSliceOp,
             hlo::DynamicSliceOp, hlo::DynamicUpdateSliceOp, hlo::PadOp, hlo::DynamicPadOp, hlo::GatherOp, hlo::DynamicGatherOp,
             hlo::TorchIndexSelectOp, hlo::GetDimensionSizeOp, hlo::SetDimensionSizeOp>(op) ||
         isa<hlo::MaxOp, hlo::MinOp, hlo::ClampOp, hlo::SelectOp, hlo::CompareOp>(op);
}

/// Writes the arithmetic of one op.
class Writer {
public:
  Writer(OpBuilder &b, Location loc, const hlo::QuantParameters &p) : b(b), loc(loc), p(p) {}

  Value dequantize(Value q) {
    // differences of 32-bit integers need more than 32 bits
    const bool zeros = llvm::all_of(p.zeroPoints, [](int64_t z) { return z == 0; }), direct = zeros && p.storage.isInteger(32);
    Value v = direct ? q : convert(q, isNarrow() ? b.getI32Type() : b.getI64Type());
    if (!zeros)
      v = hlo::SubtractOp::create(b, loc, v, integers(p.zeroPoints, v));
    v = convert(v, p.expressed);
    return hlo::MulOp::create(b, loc, v, floats(p.scales, v));
  }

  Value quantize(Value x, hlo::QuantizeRounding rounding) {
    switch (rounding) {
    case hlo::QuantizeRounding::NEAREST_EVEN: return quantizeNearest(x);
    case hlo::QuantizeRounding::AWAY: return quantizeAway(x);
    case hlo::QuantizeRounding::UP: return quantizeUp(x);
    }
    return {};
  }

private:
  OpBuilder &b;
  Location loc;
  const hlo::QuantParameters &p;

  /// Whether sums of storage, zero points and 2^30 have 32 bits.
  bool isNarrow() const {
    return cast<IntegerType>(p.storage).getWidth() <= 16 &&
           llvm::all_of(p.zeroPoints, [](int64_t z) { return z >= -(int64_t(1) << 29) && z <= int64_t(1) << 29; });
  }

  Value convert(Value v, Type element) { return hlo::elementType(v) == element ? v : Value(hlo::ConvertOp::create(b, loc, v, element)); }
  Value splat(double value, Value like) { return hlo::makeSplat(b, loc, value, hlo::tensorType(like)); }
  Value splatInt(int64_t value, Value like) { return hlo::makeSplat(b, loc, value, hlo::tensorType(like)); }

  /// A number for all elements of `like`, or one for each along the axis; in the element type of `like`.
  template <typename T>
  Value each(ArrayRef<T> values, Value like, llvm::function_ref<Attribute(T)> attr) {
    RankedTensorType type = hlo::tensorType(like);
    if (p.axis < 0)
      return hlo::makeSplat(b, loc, values.front(), type);
    SmallVector<Attribute> elements = llvm::map_to_vector(values, attr);
    auto vector = RankedTensorType::get({static_cast<int64_t>(values.size())}, type.getElementType());
    auto tensor = hlo::readConstant(cast<ElementsAttr>(DenseElementsAttr::get(vector, elements)));
    if (failed(tensor))
      return {};
    return hlo::BroadcastInDimOp::create(b, loc, type, hlo::makeConstant(b, loc, *tensor), ArrayRef<int64_t>(p.axis));
  }
  Value floats(ArrayRef<double> values, Value like) {
    auto element = cast<FloatType>(hlo::elementType(like));
    return each<double>(values, like, [&](double v) -> Attribute { return FloatAttr::get(element, v); });
  }
  Value integers(ArrayRef<int64_t> values, Value like) {
    auto element = cast<IntegerType>(hlo::elementType(like));
    return each<int64_t>(values, like, [&](int64_t v) -> Attribute {
      return IntegerAttr::get(element, APInt(64, static_cast<uint64_t>(v)).sextOrTrunc(element.getWidth()));
    });
  }

  Value clampInts(Value v) {
    v = hlo::MaxOp::create(b, loc, v, splatInt(p.low, v));
    return hlo::MinOp::create(b, loc, v, splatInt(p.high, v));
  }

  Value quantizeNearest(Value x) {
    auto isExact = [&](int64_t v) {
      APFloat f(static_cast<double>(v));
      bool lost;
      f.convert(cast<FloatType>(p.expressed).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      return !lost;
    };
    auto storage = cast<IntegerType>(p.storage);
    Value v = hlo::DivOp::create(b, loc, x, floats(p.scales, x));
    v = hlo::AddOp::create(b, loc, v, floats(llvm::map_to_vector(p.zeroPoints, [](int64_t z) { return static_cast<double>(z); }), v));
    v = hlo::MaxOp::create(b, loc, v, splat(static_cast<double>(p.low), v));
    v = hlo::MinOp::create(b, loc, v, splat(static_cast<double>(p.high), v));
    v = convert(hlo::RoundNearestEvenOp::create(b, loc, v), storage);
    // conversion stops at the ends of the type, and NaN gives 0: ends that floats do not have, and ranges without 0, are for integers
    const bool whole = p.low == quant::QuantizedType::getDefaultMinimumForInteger(!storage.isUnsigned(), storage.getWidth()) &&
                       p.high == quant::QuantizedType::getDefaultMaximumForInteger(!storage.isUnsigned(), storage.getWidth());
    return whole || (isExact(p.low) && isExact(p.high) && p.low <= 0 && p.high >= 0) ? v : clampInts(v);
  }

  Value quantizeAway(Value x) {
    Value v = hlo::RoundOp::create(b, loc, hlo::DivOp::create(b, loc, x, floats(p.scales, x)));
    if (!p.expressed.isF64())
      v = convert(v, b.getF32Type());
    // clamped before the zero point is added: far numbers would not fit otherwise
    const double far = isNarrow() ? 0x1p30 : 0x1p62;
    v = hlo::MinOp::create(b, loc, v, splat(far, v));
    v = hlo::MaxOp::create(b, loc, v, splat(-far, v));
    v = convert(v, isNarrow() ? b.getI32Type() : b.getI64Type());
    if (llvm::any_of(p.zeroPoints, [](int64_t z) { return z != 0; }))
      v = hlo::AddOp::create(b, loc, v, integers(p.zeroPoints, v));
    return convert(clampInts(v), p.storage);
  }

  Value quantizeUp(Value x) {
    SmallVector<double> inverses = llvm::map_to_vector(p.scales, [](double s) { return static_cast<double>(1 / static_cast<float>(s)); });
    Value v = hlo::MulOp::create(b, loc, x, floats(inverses, x));
    v = hlo::FloorOp::create(b, loc, hlo::AddOp::create(b, loc, v, splat(0.5, v)));
    Value steps = convert(v, b.getI32Type());
    Value over = hlo::CompareOp::create(b, loc, v, splat(0x1p31, v), hlo::ComparisonDirection::GE);
    steps = hlo::SelectOp::create(b, loc, over, splatInt(INT32_MIN, steps), steps);
    return convert(clampInts(hlo::AddOp::create(b, loc, steps, integers(p.zeroPoints, steps))), p.storage);
  }
};

struct LowerQuantized : simplify::impl::HloLowerQuantizedBase<LowerQuantized> {
  /// An op between quantized numbers and others, with the types that it had.
  struct Step {
    Operation *op;
    Type from, to;
  };

  void runOnOperation() override {
    std::vector<Step> steps;
    std::vector<Operation *> holders; // of results, arguments or types of functions
    bool fine = true;
    getOperation().walk([&](Operation *op) {
      bool any = llvm::any_of(op->getOperandTypes(), isQuantizedTensor) || llvm::any_of(op->getResultTypes(), isQuantizedTensor);
      if (any && isa<hlo::UniformQuantizeOp, hlo::UniformDequantizeOp, hlo::BitcastConvertOp>(op)) {
        steps.push_back({op, op->getOperand(0).getType(), op->getResult(0).getType()});
        if (!isa<hlo::BitcastConvertOp>(op) && (!hasKnownAxis(steps.back().from) || !hasKnownAxis(steps.back().to))) {
          op->emitOpError("expected the size of the quantized dimension to be known");
          fine = false;
        }
      } else if (any && !movesOrCompares(op)) {
        op->emitOpError("has no form for the integers of quantized numbers");
        fine = false;
      }
      if (auto function = dyn_cast<FunctionOpInterface>(op); function && isQuantizedBoundary(function)) {
        any = true;
        if (!function.isPrivate()) {
          op->emitOpError("takes or gives quantized numbers: only private functions may");
          fine = false;
        }
      }
      for (Region &region : op->getRegions())
        for (Block &block : region)
          any |= llvm::any_of(block.getArgumentTypes(), isQuantizedTensor);
      if (any)
        holders.push_back(op);
    });
    if (!fine)
      return signalPassFailure();
    if (holders.empty())
      return markAllAnalysesPreserved();
    for (Operation *op : holders)
      store(op);
    for (const Step &step : steps)
      lower(step);
    numLowered += static_cast<unsigned>(steps.size());
  }

  static bool hasKnownAxis(Type type) {
    auto axis = hlo::quantizedAxis(cast<RankedTensorType>(type).getElementType());
    return !axis || !cast<RankedTensorType>(type).isDynamicDim(static_cast<unsigned>(*axis));
  }

  static bool isQuantizedBoundary(FunctionOpInterface function) {
    return llvm::any_of(function.getArgumentTypes(), isQuantizedTensor) || llvm::any_of(function.getResultTypes(), isQuantizedTensor);
  }

  /// Values of quantized type become their storage.
  void store(Operation *op) {
    for (Value result : op->getResults())
      result.setType(stored(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(stored(argument.getType()));
    if (auto function = dyn_cast<FunctionOpInterface>(op); function && isQuantizedBoundary(function)) {
      auto inputs = llvm::map_to_vector(function.getArgumentTypes(), stored),
           results = llvm::map_to_vector(function.getResultTypes(), stored);
      function.setType(FunctionType::get(&getContext(), inputs, results));
    }
  }

  void lower(const Step &step) {
    OpBuilder b(step.op);
    Location loc = step.op->getLoc();
    Value v = step.op->getOperand(0);
    if (isa<hlo::BitcastConvertOp>(step.op)) {
      if (v.getType() != step.op->getResult(0).getType())
        return; // of other integers than the storage, or of other widths
    } else {
      if (Type from = cast<RankedTensorType>(step.from).getElementType(); hlo::isQuantized(from))
        v = Writer(b, loc, hlo::quantParameters(from)).dequantize(v);
      if (auto quantize = dyn_cast<hlo::UniformQuantizeOp>(step.op))
        v = Writer(b, loc, hlo::quantParameters(cast<RankedTensorType>(step.to).getElementType())).quantize(v, quantize.getRounding());
    }
    step.op->getResult(0).replaceAllUsesWith(v);
    step.op->erase();
  }
};

} // namespace
