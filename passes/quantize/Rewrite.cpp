// Before: float units with hlo.quantized. After: their integer forms, with values quantized and dequantized where both meet.
#include "passes/quantize/Forms.h"
#include "passes/quantize/Passes.h"
#include "passes/quantize/Taps.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "dialects/hlo/Rebuild.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace lathe::quantize {
#define GEN_PASS_DEF_HLOQUANTIZEREWRITE
#include "passes/quantize/Passes.h.inc"

namespace {

class Rewriter {
public:
  Rewriter(func::FuncOp function, StringRef io, bool isolate, bool mix, bool fastMath)
      : function(function), context(function->getParentOfType<ModuleOp>()), io(io), isolate(isolate), mix(mix) {
    context.fastQuantizedMath = fastMath;
  }
  unsigned quantized = 0, dequantized = 0;

  LogicalResult run() {
    std::vector<Unit> units = chosenUnits(function);
    if (isolate) // what a loop computes cannot be returned
      llvm::erase_if(units, [&](const Unit &unit) { return unit.last()->getBlock() != &function.getBody().front(); });
    if (io != "float")
      takeArguments(units);
    for (const Unit &unit : units) {
      FailureOr<UnitTypes> types = requireTypes(unit);
      if (failed(types))
        return failure();
      SmallVector<Value> inputs;
      context.builder.setInsertionPointAfter(unit.last());
      for (auto [v, p] : llvm::zip_equal(unit.inputs, types->inputs))
        inputs.push_back(mix ? quantizedHere(v, p, types->bits) : quantizedOf(unit, v, p, types->bits));
      if (!mix)
        context.builder.setInsertionPointAfter(unit.last());
      Emitter e(context, unit.last()->getLoc(), graph::getNodeName(unit.root->getLoc()));
      Value q = emitUnit(e, unit, *types, inputs);
      if (!q || context.sawError)
        return failure();
      made.push_back({unit.out, q, types->output});
      if (!isolate && !mix)
        integers[{unit.out, types->bits}] = {q, types->output};
    }
    return mix ? mixErrors() : isolate ? addErrors() : replace();
  }

private:
  struct Made {
    Value real, q;
    Params params;
  };
  func::FuncOp function;
  legalize::HloContext context;
  StringRef io;
  bool isolate, mix;
  std::vector<Made> made;
  llvm::DenseMap<std::pair<Value, int64_t>, std::pair<Value, Params>> integers;

  Value quantizedOf(const Unit &unit, Value v, Params params, int64_t bits) {
    auto it = integers.find({v, bits});
    if (it != integers.end() && it->second.second == params)
      return it->second.first;
    if (it != integers.end()) { // marks that give one value two scales
      context.builder.setInsertionPoint(unit.last());
      Emitter e(context, unit.last()->getLoc(), "");
      const int64_t most = bits == 16 ? 32767 : 127;
      return rescale(e, it->second.first, it->second.second, params, {-most - 1, most}, e.b.getIntegerType(unsigned(bits)));
    }
    if (Operation *op = v.getDefiningOp())
      context.builder.setInsertionPointAfter(op);
    else
      context.builder.setInsertionPointToStart(v.getParentBlock());
    Emitter e(context, v.getLoc(), "");
    Value q = quantizeConstant(e, v, params, bits);
    if (!q) {
      ++quantized;
      q = quantizeValue(e, v, params, bits);
    }
    integers[{v, bits}] = {q, params};
    return q;
  }

  /// Behind all ops of the unit before it, whose result is another value once errors are mixed in.
  Value quantizedHere(Value v, Params params, int64_t bits) {
    Emitter e(context, v.getLoc(), "");
    Value q = quantizeConstant(e, v, params, bits);
    return q ? q : quantizeValue(e, v, params, bits);
  }

  /// int8 elements from those of the interface, and back: unsigned ones are 128 more.
  Value flipSign(Emitter &e, Value v) {
    if (io != "uint8")
      return v;
    const bool isUnsigned = Emitter::isUnsigned(v);
    Type to = isUnsigned ? Type(e.b.getI8Type()) : e.b.getIntegerType(8, false);
    return e.convert(widen(e, v, isUnsigned ? -128 : 128), to);
  }

  /// Both types of an input or result: of its elements, and what hlo.quantized says of them.
  std::pair<Type, Type> interfaceTypes(Params p, int64_t bits) {
    MLIRContext *c = function.getContext();
    const bool isUnsigned = io == "uint8" && bits == 8;
    const int64_t low = isUnsigned ? 0 : bits == 16 ? -32768 : -128, high = isUnsigned ? 255 : bits == 16 ? 32767 : 127;
    Type storage = IntegerType::get(c, unsigned(bits));
    Type described = quant::UniformQuantizedType::get(isUnsigned ? 0 : quant::QuantizationFlags::Signed, storage, Float32Type::get(c), p.scale,
                                                      p.zeroPoint + (isUnsigned ? 128 : 0), low, high);
    return {isUnsigned ? IntegerType::get(c, 8, IntegerType::Unsigned) : storage, described};
  }

  /// Arguments that units read become integers.
  void takeArguments(std::vector<Unit> &units) {
    SmallVector<Type> types(function.getArgumentTypes());
    for (BlockArgument argument : function.getArguments()) {
      std::optional<ReadAs> found = readAs(units, argument);
      if (!found)
        continue;
      auto [element, described] = interfaceTypes(found->params, found->bits);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : argument.getUses())
        uses.push_back(&use);
      argument.setType(hlo::withElementType(cast<RankedTensorType>(argument.getType()), element));
      types[argument.getArgNumber()] = argument.getType();
      context.builder.setInsertionPointToStart(&function.getBody().front());
      Emitter e(context, argument.getLoc(), "");
      Value q = found->bits == 8 ? flipSign(e, argument) : Value(argument), back = dequantizeValue(e, q, found->params);
      for (OpOperand *use : uses)
        use->set(back);
      for (Unit &unit : units)
        llvm::replace(unit.inputs, Value(argument), back);
      integers[{back, found->bits}] = {q, found->params};
      function.setArgAttr(argument.getArgNumber(), typesAttr, TypeAttr::get(described));
    }
    function.setFunctionType(FunctionType::get(function.getContext(), types, function.getResultTypes()));
  }

  LogicalResult replace() {
    Operation *ret = function.getBody().front().getTerminator();
    SmallVector<Type> results(function.getResultTypes());
    for (const Made &m : made) {
      context.builder.setInsertionPointAfterValue(m.q);
      Emitter e(context, m.real.getLoc(), "");
      const int64_t bits = Emitter::elementType(m.q).getIntOrFloatBitWidth();
      for (OpOperand &operand : ret->getOpOperands()) {
        if (io == "float" || operand.get() != m.real)
          continue;
        auto [element, described] = interfaceTypes(m.params, bits);
        Value out = bits == 8 ? flipSign(e, m.q) : m.q;
        operand.set(out);
        results[operand.getOperandNumber()] = out.getType();
        function.setResultAttr(operand.getOperandNumber(), typesAttr, TypeAttr::get(described));
      }
      Value back = dequantizeValue(e, m.q, m.params);
      ++dequantized;
      Value real = m.real;
      real.replaceAllUsesWith(back);
    }
    function.setFunctionType(FunctionType::get(function.getContext(), function.getArgumentTypes(), results));
    // the float ops, and what was dequantized for them alone
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
    return success();
  }

  /// Three more results a unit: the sum of squares of its float result, that of the differences, the largest difference.
  LogicalResult addErrors() {
    Operation *ret = function.getBody().front().getTerminator();
    SmallVector<Value> values(ret->getOperands());
    context.builder.setInsertionPoint(ret);
    for (const Made &m : made) {
      Emitter e(context, m.real.getLoc(), "");
      Value difference = e.sub(dequantizeValue(e, m.q, m.params), m.real);
      SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rank(m.real)));
      values.push_back(e.reduceSum(e.mul(m.real, m.real), axes));
      values.push_back(e.reduceSum(e.mul(difference, difference), axes));
      values.push_back(e.reduceMax(e.unary<hlo::AbsOp>(difference), axes));
    }
    hlo::setResults(function, values);
    return success();
  }

  /// One more argument, with a number for each unit: that share of what its integer form is off by is added to its result.
  LogicalResult mixErrors() {
    const unsigned last = function.getNumArguments();
    auto type = RankedTensorType::get({int64_t(made.size())}, Float32Type::get(function.getContext()));
    if (failed(function.insertArgument(last, type, DictionaryAttr::get(function.getContext()), function.getLoc())))
      return failure();
    Value shares = function.getArgument(last);
    for (auto [i, m] : llvm::enumerate(made)) {
      context.builder.setInsertionPointAfterValue(m.q);
      Emitter e(context, m.real.getLoc(), "");
      AffineExpr at = getAffineConstantExpr(int64_t(i), function.getContext());
      Value share = e.reshape(e.sliceDim(shares, 0, at, at + 1), ArrayRef<int64_t>()),
            mixed = e.add(m.real, e.mul(e.sub(dequantizeValue(e, m.q, m.params), m.real), share));
      if (context.sawError)
        return failure();
      SmallPtrSet<Operation *, 8> ours;
      for (Operation *op = m.q.getDefiningOp(); op != mixed.getDefiningOp()->getNextNode(); op = op->getNextNode())
        ours.insert(op);
      Value real = m.real;
      real.replaceAllUsesExcept(mixed, ours);
    }
    return success();
  }
};

struct Rewrite : impl::HloQuantizeRewriteBase<Rewrite> {
  using HloQuantizeRewriteBase::HloQuantizeRewriteBase;
  void runOnOperation() override {
    if (io != "float" && io != "int8" && io != "uint8") {
      getOperation().emitError("expected io float, int8 or uint8, found ") << io;
      return signalPassFailure();
    }
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      Rewriter rewriter(function, io, isolate, mix, fastMath);
      if (failed(rewriter.run()))
        return signalPassFailure();
      numQuantize += rewriter.quantized;
      numDequantize += rewriter.dequantized;
    }
  }
};

} // namespace
} // namespace lathe::quantize
