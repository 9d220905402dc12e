// Before: units with hlo.ranges. After: with hlo.quantized, the type of each input, the result and the weights.
#include "passes/quantize/Passes.h"
#include "passes/quantize/Units.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "passes/quantize/Choose.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;

namespace lathe::quantize {
#define GEN_PASS_DEF_HLOQUANTIZEPARAMETERS
#include "passes/quantize/Passes.h.inc"

namespace {

using RealRange = std::pair<double, double>;

class Chooser {
public:
  Chooser(int64_t bits) : bits(bits) {}

  LogicalResult choose(func::FuncOp function) {
    std::vector<Unit> units = chosenUnits(function);
    bool fine = true;
    for (const Unit &unit : units)
      fine &= succeeded(note(unit));
    for (const Missing &m : missing)
      if (!isKnown(m.value))
        fine &= succeeded(error(m.unit, m.what));
    if (!fine)
      return failure();
    for (const Unit &unit : units)
      fine &= succeeded(setTypes(unit));
    return success(fine);
  }

private:
  int64_t bits;
  llvm::MapVector<Value, RealRange> ranges;
  llvm::EquivalenceClasses<void *> shared;
  struct Missing {
    const Unit &unit;
    Value value;
    std::string what;
  };
  SmallVector<Missing> missing; ///< values without a range of their own; one that they share parameters with may have one

  bool isKnown(Value v) {
    for (auto it = shared.findLeader(v.getAsOpaquePointer()); it != shared.member_end(); ++it)
      if (ranges.contains(Value::getFromOpaquePointer(*it)))
        return true;
    return false;
  }

  static LogicalResult error(const Unit &unit, const Twine &text) {
    return unit.root->emitError() << "node '" << graph::getNodeName(unit.root->getLoc()) << "' (" << unitName(unit.kind) << "): " << text;
  }

  static std::optional<RealRange> constantRange(Value v) {
    if (auto number = splatNumber(v))
      return RealRange(*number, *number);
    auto tensor = constantValue(v) ? hlo::readConstant(v) : FailureOr<Tensor>(failure());
    if (failed(tensor) || tensor->dtype() != DType::Float32)
      return std::nullopt;
    RealRange range(0, 0);
    for (int64_t i = 0; i < tensor->numElements(); ++i) {
      range.first = std::min<double>(range.first, tensor->data<float>()[i]);
      range.second = std::max<double>(range.second, tensor->data<float>()[i]);
    }
    return range;
  }

  llvm::DenseMap<Value, RealRange> moved; ///< what the model says of values from other places
  llvm::DenseSet<Value> fixed; ///< whose parameters the operator that makes them fixes: other values beside them in a tensor do not change these

  std::optional<RealRange> givenRange(Value v) {
    if (auto it = moved.find(v); it != moved.end())
      return it->second;
    DenseF64ArrayAttr range;
    if (Operation *op = v.getDefiningOp())
      range = op->getAttrOfType<DenseF64ArrayAttr>(givenAttr);
    else if (auto function = dyn_cast<func::FuncOp>(v.getParentRegion()->getParentOp()); function && v.getParentBlock()->isEntryBlock())
      range = function.getArgAttrOfType<DenseF64ArrayAttr>(cast<BlockArgument>(v).getArgNumber(), givenAttr);
    return range && range.size() == 2 ? std::optional<RealRange>({range[0], range[1]}) : std::nullopt;
  }

  LogicalResult note(const Unit &unit) {
    auto given = unit.last()->getAttrOfType<DenseF64ArrayAttr>(rangesAttr);
    auto put = [&](Value v, size_t i, const char *what) -> LogicalResult {
      std::optional<RealRange> range = constantRange(v);
      if (!range)
        range = givenRange(v);
      if (!range && given && given.size() == int64_t(2 * unit.inputs.size() + 2))
        range = RealRange(given[2 * i], given[2 * i + 1]);
      shared.insert(v.getAsOpaquePointer());
      if (!range) {
        missing.push_back({unit, v, (Twine("no range is known of its ") + what + (i < unit.inputs.size() ? " " + Twine(i) : Twine())).str()});
        return success();
      }
      if (!std::isfinite(range->first) || !std::isfinite(range->second) || range->first > range->second)
        return error(unit, Twine("its ") + what + " is not always finite over the calibration feeds");
      auto [it, isNew] = ranges.insert({v, *range});
      if (!isNew)
        it->second = {std::min(it->second.first, range->first), std::max(it->second.second, range->second)};
      return success();
    };
    bool fine = true;
    for (auto [i, v] : llvm::enumerate(unit.inputs))
      fine &= succeeded(put(v, i, "input"));
    const bool shares = sharesParameters(unit.kind);
    if (shares && llvm::all_of(unit.inputs, [&](Value v) { return givenRange(v) || constantRange(v); })) {
      RealRange all(0, 0);
      for (Value v : unit.inputs) {
        RealRange r = *(givenRange(v) ? givenRange(v) : constantRange(v));
        all = {std::min(all.first, r.first), std::max(all.second, r.second)};
      }
      moved[unit.out] = all;
    }
    if (auto range = fixedRange(unit)) {
      ranges[unit.out] = moved[unit.out] = *range;
      fixed.insert(unit.out);
      shared.insert(unit.out.getAsOpaquePointer());
    } else {
      fine &= succeeded(put(unit.out, unit.inputs.size(), "result"));
    }
    if (shares && keepsFixed(unit))
      fixed.insert(unit.out);
    for (Value v : unit.inputs)
      if (shares && (!fixed.contains(v) || fixed.contains(unit.out)))
        shared.unionSets(v.getAsOpaquePointer(), unit.out.getAsOpaquePointer());
    return success(fine);
  }

  static bool sharesParameters(UnitKind kind) {
    return kind == UnitKind::Move || kind == UnitKind::MaxPool || kind == UnitKind::AveragePool || kind == UnitKind::Resize;
  }

  /// Whether all that is moved comes from operators that fix the same range.
  bool keepsFixed(const Unit &unit) {
    const RealRange out = moved.lookup(unit.out);
    bool any = false;
    for (Value v : unit.inputs) {
      if (std::optional<RealRange> constant = constantRange(v)) {
        if (constant->first < out.first || constant->second > out.second)
          return false;
      } else if (!fixed.contains(v) || moved.lookup(v) != out) {
        return false;
      } else {
        any = true;
      }
    }
    return any;
  }

  Params paramsOf(Value v) {
    RealRange all(0, 0);
    auto leader = shared.findLeader(v.getAsOpaquePointer());
    for (auto it = leader; it != shared.member_end(); ++it) {
      RealRange r = ranges.lookup(Value::getFromOpaquePointer(*it));
      all = {std::min(all.first, r.first), std::max(all.second, r.second)};
    }
    return chooseParams(all.first, all.second, bits);
  }

  LogicalResult setTypes(const Unit &unit) {
    MLIRContext *context = unit.root->getContext();
    Type f32 = Float32Type::get(context), storage = IntegerType::get(context, unsigned(bits));
    const int64_t high = bits == 16 ? 32767 : 127, low = -high - 1;
    SmallVector<Attribute> types;
    auto add = [&](Value v) {
      Params p = paramsOf(v);
      types.push_back(TypeAttr::get(quant::UniformQuantizedType::get(quant::QuantizationFlags::Signed, storage, f32, p.scale, p.zeroPoint, low, high)));
      return p;
    };
    Params input;
    // what joins values of other parameters takes them with those of its result
    for (auto [i, v] : llvm::enumerate(unit.inputs)) {
      Params p = add(sharesParameters(unit.kind) ? unit.out : v);
      if (i == 0)
        input = p;
    }
    add(unit.out);
    if (unit.hasWeights()) {
      auto weights = quantizeWeights(unit, input, bits);
      if (failed(weights))
        return error(unit, "its weights are not finite numbers");
      SmallVector<double> scales(weights->scales.begin(), weights->scales.end());
      SmallVector<int64_t> zeros(scales.size(), 0);
      types.push_back(TypeAttr::get(quant::UniformQuantizedPerAxisType::get(quant::QuantizationFlags::Signed, IntegerType::get(context, 8), f32,
                                                                            scales, zeros, int32_t(weights->channelDim), -127, 127)));
    }
    unit.last()->setAttr(typesAttr, ArrayAttr::get(context, types));
    return success();
  }
};

struct Parameters : impl::HloQuantizeParametersBase<Parameters> {
  using HloQuantizeParametersBase::HloQuantizeParametersBase;
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Chooser(bits).choose(function)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace lathe::quantize
