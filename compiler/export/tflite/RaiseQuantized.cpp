// The pass tflite-raise-quantized:
//   %1 = hlo.convolution(%x, %w); %2 = hlo.add %1, %bias {hlo.quantized = [type of %x, type of %2, types of %w]}
// becomes
//   %q = hlo.custom_call "tfl.QUANTIZE"(%x) : tensor<..x!quant.uniform<i8:f32, 0.1>>
//   %1 = hlo.custom_call "tfl.CONV_2D"(%q, %w', %bias'); %2 = hlo.custom_call "tfl.DEQUANTIZE"(%1)
// Scale and zero point of a value are in its element type; those of weights and biases with their tfl.CONSTANT.
#include "compiler/export/tflite/Passes.h"
#include "compiler/export/tflite/Raiser.h"

#include "dialects/hlo/Constants.h"
#include "passes/quantize/Choose.h"
#include "passes/quantize/Forms.h"
#include "passes/quantize/Kernels.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflwrite {

#define GEN_PASS_DEF_TFLITERAISEQUANTIZED
#include "compiler/export/tflite/Passes.h.inc"

namespace {

using quantize::Params;
using quantize::Unit;
using quantize::UnitKind;
using quantize::UnitTypes;

quant::UniformQuantizedType quantizedType(MLIRContext *context, Params p, int64_t bits, bool isUnsigned = false) {
  const int64_t low = isUnsigned ? 0 : -(int64_t(1) << (bits - 1)), shift = isUnsigned ? 128 : 0;
  return quant::UniformQuantizedType::get(isUnsigned ? 0 : quant::QuantizationFlags::Signed, IntegerType::get(context, unsigned(bits)),
                                          Float32Type::get(context), p.scale, p.zeroPoint + shift, low, low + (int64_t(1) << bits) - 1);
}

/// The operator that a value comes from over operators that only move elements.
Operation *coreOf(Value v) {
  Operation *op = v.getDefiningOp();
  while (llvm::is_contained({"RESHAPE", "TRANSPOSE"}, operatorName(op)) && op->getOperand(0).hasOneUse())
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// One unit as operators on integers.
class Former {
public:
  Former(Raiser &r, const Unit &unit, const UnitTypes &types, ArrayRef<Value> inputs)
      : r(r), unit(unit), types(types), in(inputs), element(quantizedType(r.b.getContext(), types.output, types.bits)),
        out(hlo::withElementType(hlo::tensorType(unit.out), element)) {}

  /// Null with a reason where no operator says it.
  Value form() {
    r.start(unit.last());
    Value q = bare();
    return q ? clamp(q) : q;
  }

private:
  Raiser &r;
  const Unit &unit;
  const UnitTypes &types;
  ArrayRef<Value> in;
  Type element;
  RankedTensorType out;

  Value bare() {
    switch (unit.kind) {
    case UnitKind::Conv:
    case UnitKind::Dot: return weighted();
    case UnitKind::Scale: return scale();
    case UnitKind::Matmul: return withCopy([&](Operation *op) { return raiseDot(cast<hlo::DotGeneralOp>(op), {}, r); });
    case UnitKind::Add: return r.make("ADD", in, out);
    case UnitKind::Sub: return r.make("SUB", in, out);
    case UnitKind::Mul: return r.make("MUL", in, out);
    case UnitKind::MaxPool:
    case UnitKind::AveragePool:
      return withCopy([&](Operation *op) { return raisePool(cast<hlo::ReduceWindowOp>(op), unit.kind == UnitKind::AveragePool, r); });
    case UnitKind::Mean: return r.make("MEAN", {in[0], r.numbers(unit.axes)}, out);
    case UnitKind::Softmax: return softmax();
    case UnitKind::Resize: return raiseResize(*unit.resize, in[0], out, r);
    case UnitKind::Table: return table();
    case UnitKind::Move: return move();
    }
    return {};
  }

  /// What `raise` makes of a copy of the unit's first op that reads and makes integers. The copy is in no block.
  Value withCopy(llvm::function_ref<Value(Operation *)> raise) {
    Operation *copy = unit.root->clone();
    for (auto [i, q] : llvm::enumerate(in))
      copy->setOperand(i, q);
    copy->getResult(0).setType(hlo::withElementType(hlo::tensorType(unit.root->getResult(0)), element));
    Value q = raise(copy);
    copy->destroy();
    return q;
  }

  /// Integers that the operator's operand `at` becomes, with one scale an index of `dim`. The operand is a constant.
  void setScales(Operation *op, unsigned at, ArrayRef<double> scales, int64_t dim) {
    OpBuilder::InsertionGuard guard(r.b);
    r.b.setInsertionPoint(op);
    op->setOperand(at, r.scaled(op->getOperand(at), scales, dim));
  }

  FailureOr<quantize::Weights> weights() {
    auto w = quantize::quantizeWeights(unit, types.inputs[0], types.bits);
    return failed(w) ? FailureOr<quantize::Weights>(r.refuse("its weights are not finite numbers")) : w;
  }

  Value biasOf(const quantize::Weights &w) {
    const bool wide = types.bits == 16;
    Tensor bias = Tensor::allocate(wide ? DType::Int64 : DType::Int32, {int64_t(w.scales.size())});
    for (size_t c = 0; c < w.scales.size(); ++c) {
      const int64_t v = w.bias.empty() ? 0 : w.bias[c];
      if (wide)
        bias.data<int64_t>()[c] = v;
      else
        bias.data<int32_t>()[c] = int32_t(v);
    }
    return hlo::makeConstant(r.b, r.loc, bias);
  }

  void describeWeights(Operation *op, const quantize::Weights &w, int64_t dim, unsigned bias) {
    SmallVector<double> scales(w.scales.begin(), w.scales.end()), sums;
    for (double s : scales)
      sums.push_back(float(types.inputs[0].scale * float(s)));
    setScales(op, 1, scales, dim);
    setScales(op, bias, sums, 0);
  }

  Value weighted() {
    auto w = weights();
    if (failed(w))
      return {};
    Value values = hlo::makeConstant(r.b, r.loc, w->values), bias = biasOf(*w);
    Value q = withCopy([&](Operation *op) {
      op->setOperand(1, values);
      auto conv = dyn_cast<hlo::ConvolutionOp>(op);
      return conv ? raiseConvolution(conv, bias, r) : raiseDot(cast<hlo::DotGeneralOp>(op), bias, r);
    });
    Operation *core = q ? coreOf(q) : nullptr;
    if (!core)
      return {};
    StringRef name = operatorName(core);
    if (name == "TRANSPOSE_CONV") {
      core->insertOperands(3, bias);
      describeWeights(core, *w, 0, 3);
    } else if (name == "CONV_2D" || name == "DEPTHWISE_CONV_2D" || name == "FULLY_CONNECTED") {
      describeWeights(core, *w, name == "DEPTHWISE_CONV_2D" ? 3 : 0, 2);
    } else {
      (void)r.refuse(unit.root->getName().getStringRef() + " of integers is no single operator");
      return {};
    }
    return q;
  }

  /// One factor and term a channel: a depthwise convolution of one tap.
  Value scale() {
    auto w = weights();
    AffineExpr rows = hlo::numElements(ArrayRef<AffineExpr>(hlo::getDims(out)).drop_back(), r.b.getContext());
    if (failed(w) || !rows) {
      if (!rows)
        (void)r.refuse("a size that is not known");
      return {};
    }
    const int64_t channels = w->scales.size();
    SmallVector<AffineExpr> image = {rows, r.expr(1), r.expr(1), r.expr(channels)}, filter = {r.expr(1), r.expr(1), r.expr(1), r.expr(channels)};
    Value values = r.reshape(hlo::makeConstant(r.b, r.loc, w->values), filter), bias = biasOf(*w);
    Value y = r.make("DEPTHWISE_CONV_2D", {r.reshape(in[0], image), values, bias}, hlo::makeType(image, element),
                     {{"padding", r.text("VALID")}, {"depth_multiplier", r.number(1)}});
    if (!y)
      return {};
    describeWeights(y.getDefiningOp(), *w, 3, 2);
    return r.reshape(y, out);
  }

  Value softmax() {
    SmallVector<AffineExpr> dims = hlo::getDims(out), flat = dims;
    if (dims.size() > 4) {
      AffineExpr rows = hlo::numElements(ArrayRef<AffineExpr>(dims).drop_back(), r.b.getContext());
      if (!rows) {
        (void)r.refuse("a size that is not known");
        return {};
      }
      flat = {rows, dims.back()};
    }
    Value y = r.make("SOFTMAX", {r.reshape(in[0], flat)}, hlo::makeType(flat, element), {{"beta", r.real(1)}});
    return r.reshape(y, out);
  }

  /// An operator whose kernel has the very table, else the table.
  Value table() {
    auto entries = quantize::tableEntries(unit, types);
    if (failed(entries)) {
      (void)r.refuse("its function has no numbers");
      return {};
    }
    struct Kernel {
      StringRef name;
      float (*function)(float);
      Params output; ///< that it insists on; scale 0: any
    };
    const Kernel kernels[] = {{"LOGISTIC", [](float x) { return 1.0f / (1.0f + std::exp(-x)); }, {1.0f / 256, -128}},
                              {"TANH", [](float x) { return std::tanh(x); }, {1.0f / 128, 0}},
                              {"EXP", [](float x) { return std::exp(x); }, {0, 0}}};
    for (const Kernel &k : kernels)
      if ((k.output.scale == 0 || k.output == types.output) &&
          quantize::functionTable(types.inputs[0], {-128, 127}, types.output, {-128, 127}, k.function) == *entries)
        return r.make(k.name, in[0], out);
    Tensor values = Tensor::allocate(DType::Int8, {256});
    for (auto [i, v] : llvm::enumerate(*entries))
      values.data<int8_t>()[i] = int8_t(v);
    RankedTensorType wide = hlo::withElementType(out, r.b.getI32Type());
    Value index = r.makeMany("CAST", in[0], wide)->getResult(0);
    index = r.make("ADD", {index, r.scalar(128, r.b.getI32Type())}, wide);
    return index ? r.make("GATHER", {r.quantized(values, element), index}, out, {{"axis", r.number(0)}}) : Value();
  }

  /// The op on integers, as its own handlers raise it.
  Value move() {
    Operation *copy = unit.root->clone();
    for (auto [i, q] : llvm::enumerate(in))
      if (!isa<hlo::PadOp>(copy) || i == 0 || !isSplat(copy->getOperand(i), 0)) // PAD puts zeros, as integers too
        copy->setOperand(i, q);
    copy->getResult(0).setType(out);
    r.b.insert(copy);
    Operation *reader = r.makeMany("DEQUANTIZE", copy->getResult(0), hlo::tensorType(unit.out));
    r.start(copy);
    bool done = succeeded(raiseOp(copy, r));
    Value q = done ? reader->getOperand(0) : Value();
    reader->erase();
    copy->erase();
    return q;
  }

  /// The unit's clamps: an option of the operator where it has one of that kind.
  Value clamp(Value q) {
    if (unit.low == -INFINITY && unit.high == INFINITY)
      return q;
    double low = unit.low, high = unit.high;
    auto is = [&](double l, double h) { return low == l && high == h; };
    auto activation = [&] { return StringRef(is(0, INFINITY) ? "RELU" : is(0, 6) ? "RELU6" : is(-1, 1) ? "RELU_N1_TO_1" : ""); };
    StringRef name = activation();
    if (name.empty()) { // bounds that all integers keep, as those of a range that the model says
      const int64_t most = (int64_t(1) << (types.bits - 1)) - 1;
      if (quantize::quantizeNumber(low, types.output, types.bits) == -most - 1)
        low = -INFINITY;
      if (quantize::quantizeNumber(high, types.output, types.bits) == most)
        high = INFINITY;
      name = activation();
    }
    // kernels find the bounds in float
    auto sameBound = [&](double x) {
      return std::isinf(x) || std::round(float(x) / types.output.scale) == std::round(x / types.output.scale);
    };
    Operation *core = coreOf(q);
    if (!name.empty() && core && hasActivation(operatorName(core)) && sameBound(low) && sameBound(high)) {
      setOption(core, "activation", r.text(name));
      return q;
    }
    auto bound = [&](StringRef name, double x) {
      if (!std::isfinite(x) || !q)
        return;
      Tensor t = Tensor::allocate(types.bits == 16 ? DType::Int16 : DType::Int8, {});
      const int64_t v = quantize::quantizeNumber(x, types.output, types.bits);
      if (types.bits == 16)
        t.data<int16_t>()[0] = int16_t(v);
      else
        t.data<int8_t>()[0] = int8_t(v);
      q = r.make(name, {q, r.quantized(t, element)}, out);
    };
    bound("MAXIMUM", low);
    bound("MINIMUM", high);
    return q;
  }
};

class Rewriter {
public:
  Rewriter(Raiser &r, func::FuncOp function, StringRef io) : r(r), function(function), io(io) {}
  unsigned raised = 0, refused = 0;

  LogicalResult run() {
    r.startFunction(function);
    std::vector<Unit> units = quantize::chosenUnits(function);
    if (io != "float")
      takeArguments(units);
    for (const Unit &unit : units) {
      FailureOr<UnitTypes> types = quantize::requireTypes(unit);
      if (failed(types))
        return failure();
      (void)r.takeReason();
      SmallVector<Value> inputs;
      for (auto [v, p] : llvm::zip_equal(unit.inputs, types->inputs))
        inputs.push_back(quantizedOf(unit, v, p, types->bits));
      Value q = llvm::is_contained(inputs, Value()) ? Value() : Former(r, unit, *types, inputs).form();
      if (!q) {
        emitWarning(unit.root->getLoc()) << "stays float in the file: " << r.takeReason();
        ++refused;
        continue;
      }
      ++raised;
      made.push_back({unit.out, q, types->output, types->bits});
      integers[{unit.out, types->bits}] = q;
    }
    replace();
    return success();
  }

private:
  struct Made {
    Value real, q;
    Params params;
    int64_t bits;
  };
  Raiser &r;
  func::FuncOp function;
  StringRef io;
  std::vector<Made> made;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> integers;

  void startAfter(Value v) {
    r.loc = v.getLoc();
    if (v.getDefiningOp())
      r.b.setInsertionPointAfterValue(v);
    else
      r.b.setInsertionPointToStart(v.getParentBlock());
  }
  Value requantize(Value v, Type element) {
    return r.makeMany("QUANTIZE", v, hlo::withElementType(hlo::tensorType(v), element))->getResult(0);
  }
  Value dequantize(Value q) { return r.makeMany("DEQUANTIZE", q, hlo::withElementType(hlo::tensorType(q), r.b.getF32Type()))->getResult(0); }

  Value quantizedOf(const Unit &unit, Value v, Params params, int64_t bits) {
    Type element = quantizedType(r.b.getContext(), params, bits);
    Value &known = integers[{v, bits}];
    if (known && hlo::elementType(known) == element)
      return known;
    if (known) { // marks that give one value two scales
      r.start(unit.last());
      return requantize(known, element);
    }
    startAfter(v);
    const bool broadcasts = unit.kind == UnitKind::Add || unit.kind == UnitKind::Sub || unit.kind == UnitKind::Mul;
    if (auto number = splatNumber(v); number && (broadcasts || !hlo::tensorType(v).hasStaticShape())) {
      // one element is enough for what broadcasts
      Value one = r.scalar(*number, r.b.getF32Type());
      auto t = quantize::quantizedTensor(one, params, bits);
      Value q = t ? r.quantized(*t, element) : Value();
      RankedTensorType type = hlo::withElementType(hlo::tensorType(v), element);
      return broadcasts || !q ? q : r.make("BROADCAST_TO", {q, r.sizes(hlo::getDims(type))}, type);
    }
    if (auto t = quantize::quantizedTensor(v, params, bits))
      return known = r.quantized(*t, element);
    return known = requantize(v, element);
  }

  void takeArguments(std::vector<Unit> &units) {
    SmallVector<Type> inputs(function.getArgumentTypes());
    for (BlockArgument argument : function.getArguments()) {
      auto found = quantize::readAs(units, argument);
      if (!found)
        continue;
      const auto [params, bits] = *found;
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : argument.getUses())
        uses.push_back(&use);
      const bool isUnsigned = io == "uint8" && bits == 8;
      argument.setType(hlo::withElementType(hlo::tensorType(argument), quantizedType(r.b.getContext(), params, bits, isUnsigned)));
      inputs[argument.getArgNumber()] = argument.getType();
      startAfter(argument);
      Value q = isUnsigned ? requantize(argument, quantizedType(r.b.getContext(), params, 8)) : Value(argument), back = dequantize(q);
      for (OpOperand *use : uses)
        use->set(back);
      for (Unit &unit : units)
        llvm::replace(unit.inputs, Value(argument), back);
      integers[{back, bits}] = q;
    }
    function.setFunctionType(FunctionType::get(function.getContext(), inputs, function.getResultTypes()));
  }

  void replace() {
    Operation *end = function.getBody().front().getTerminator();
    SmallVector<Type> results(function.getResultTypes());
    for (const Made &m : made) {
      startAfter(m.q);
      for (OpOperand &operand : end->getOpOperands()) {
        if (io == "float" || operand.get() != m.real)
          continue;
        const bool isUnsigned = io == "uint8" && m.bits == 8;
        operand.set(isUnsigned ? requantize(m.q, quantizedType(r.b.getContext(), m.params, 8, true)) : m.q);
        results[operand.getOperandNumber()] = operand.get().getType();
      }
      Value real = m.real;
      real.replaceAllUsesWith(dequantize(m.q));
    }
    function.setFunctionType(FunctionType::get(function.getContext(), function.getArgumentTypes(), results));
    // the float ops, and what was dequantized for them alone
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (op->use_empty() && (isOpTriviallyDead(op) || !operatorName(op).empty()))
        op->erase();
    });
  }
};

struct RaiseQuantized : impl::TfliteRaiseQuantizedBase<RaiseQuantized> {
  using TfliteRaiseQuantizedBase::TfliteRaiseQuantizedBase;
  void runOnOperation() override {
    if (io != "float" && io != "int8" && io != "uint8") {
      getOperation().emitError("expected io float, int8 or uint8, found ") << io;
      return signalPassFailure();
    }
    Raiser r(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Rewriter rewriter(r, function, io);
      if (failed(rewriter.run()))
        return signalPassFailure();
      numRaised += rewriter.raised;
      numRefused += rewriter.refused;
    }
  }
};

} // namespace
} // namespace lathe::tflwrite
