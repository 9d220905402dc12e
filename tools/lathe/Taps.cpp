#include "tools/lathe/Taps.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Rebuild.h"
#include "dialects/hlo/ShapeBounds.h"
#include "dialects/kernel/Kernel.h"
#include "passes/fusion/ExpandKernels.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace lathe::cli {
namespace {

struct Tapped {
  Value value;
  Tap tap;
};

bool isStatic(Value v) { return cast<RankedTensorType>(v.getType()).hasStaticShape(); }

Value zeros(OpBuilder &b, Location loc, Type type) {
  auto t = cast<RankedTensorType>(type);
  if (isa<ComplexType>(t.getElementType()))
    return hlo::makeConstant(b, loc, Tensor::allocate(hlo::toDType(t.getElementType()), {t.getShape().begin(), t.getShape().end()}));
  return hlo::makeSplat(b, loc, 0, t);
}

bool isKernel(Operation &op) {
  return kernel::isKernelOp(&op) ||
         !(op.hasTrait<OpTrait::ConstantLike>() || op.hasTrait<OpTrait::IsTerminator>() ||
           isa<hlo::ReshapeOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op));
}

std::string describe(Operation &op) {
  llvm::SetVector<StringRef> names;
  op.getLoc()->walk([&](Location l) {
    auto name = dyn_cast<NameLoc>(l);
    if (name)
      names.insert(name.getName().getValue());
    return name ? WalkResult::skip() : WalkResult::advance(); // its child holds the op's type
  });
  names.remove(graph::getNodeName(op.getLoc()));
  return op.getName().getStringRef().str() + (names.empty() ? "" : " with ") + llvm::join(names.begin(), names.end(), ", ");
}

/// Whether an integer result comes from floats.
bool rounds(Operation &op, Value result) {
  if (!hlo::elementType(result).isIntOrIndex())
    return false;
  return op.walk([](hlo::ConvertOp convert) {
             bool fromFloat = isa<FloatType>(hlo::elementType(convert.getOperand())), toFloat = isa<FloatType>(hlo::elementType(convert.getResult()));
             return fromFloat && !toFloat ? WalkResult::interrupt() : WalkResult::advance();
           })
      .wasInterrupted();
}

class Tapper {
public:
  explicit Tapper(ModuleOp module) : symbols(hlo::getSymbolTable(module)) {}

  /// Taps of a block, as values that the block's terminator can see.
  std::vector<Tapped> block(Block &block, int depth) {
    std::vector<Tapped> all;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<hlo::WhileOp>(op))
        loop(&op, depth, all);
      else if (isa<hlo::IfOp, hlo::CaseOp>(op))
        branches(&op, depth, all);
      else if (isKernel(op))
        for (Value v : llvm::make_filter_range(op.getResults(), [&](Value v) { return hasRoom(v); }))
          all.push_back({v, {graph::getNodeName(op.getLoc()).str(), describe(op), depth, rounds(op, v)}});
    }
    return all;
  }

private:
  /// Outputs are allocated where data symbols are largest, and what is left of such a size (`n - count`) would be smallest.
  bool hasRoom(Value v) {
    return llvm::all_of(hlo::getDims(cast<RankedTensorType>(v.getType())), [&](AffineExpr size) {
      return size && hlo::growsWith(size, [&](unsigned k) { return k < symbols.size() && symbols[k].isData; });
    });
  }

  SmallVector<hlo::SymbolInfo> symbols;

  void loop(Operation *op, int depth, std::vector<Tapped> &out) {
    Block &cond = op->getRegion(0).front(), &body = op->getRegion(1).front();
    std::vector<Tapped> inner;
    // what the turn started from, to judge its kernels by
    for (Value arg : body.getArguments())
      inner.push_back({arg, {"", "", depth + 1}});
    for (Tapped &t : block(body, depth + 1))
      inner.push_back(std::move(t));
    llvm::erase_if(inner, [](const Tapped &t) { return !isStatic(t.value); });
    OpBuilder b(op);
    SmallVector<Value> operands(op->getOperands()), yielded(body.getTerminator()->getOperands());
    SmallVector<Type> types(op->getResultTypes());
    unsigned first = types.size();
    for (const Tapped &t : inner) {
      operands.push_back(zeros(b, op->getLoc(), t.value.getType()));
      types.push_back(t.value.getType());
      yielded.push_back(t.value);
      cond.addArgument(t.value.getType(), op->getLoc());
      body.addArgument(t.value.getType(), op->getLoc());
    }
    body.getTerminator()->setOperands(yielded);
    Operation *made = hlo::rebuild(op, operands, types);
    for (auto [i, t] : llvm::enumerate(inner))
      out.push_back({made->getResult(first + i), t.tap});
  }

  void branches(Operation *op, int depth, std::vector<Tapped> &out) {
    std::vector<std::vector<Tapped>> inner;
    SmallVector<Type> types(op->getResultTypes());
    unsigned first = types.size();
    for (Region &r : op->getRegions()) {
      inner.push_back(block(r.front(), depth));
      llvm::erase_if(inner.back(), [](const Tapped &t) { return !isStatic(t.value); });
      for (const Tapped &t : inner.back())
        types.push_back(t.value.getType());
    }
    for (auto [k, r] : llvm::enumerate(op->getRegions())) {
      Operation *yield = r.front().getTerminator();
      OpBuilder b(yield);
      SmallVector<Value> yielded(yield->getOperands());
      for (auto [j, taps] : llvm::enumerate(inner))
        for (const Tapped &t : taps)
          yielded.push_back(j == k ? t.value : zeros(b, op->getLoc(), t.value.getType()));
      yield->setOperands(yielded);
    }
    Operation *made = hlo::rebuild(op, SmallVector<Value>(op->getOperands()), types);
    unsigned at = first;
    for (auto &taps : inner)
      for (Tapped &t : taps)
        out.push_back({made->getResult(at++), t.tap});
  }
};

/// The tensor with the sizes of a type, of which one may be open.
FailureOr<Tensor> reshapedTo(const Tensor &from, RankedTensorType type) {
  std::vector<int64_t> dims(type.getShape().begin(), type.getShape().end());
  int64_t known = 1;
  for (int64_t d : dims)
    known *= ShapedType::isDynamic(d) ? 1 : d;
  auto open = llvm::find_if(dims, ShapedType::isDynamic);
  if (type.getNumDynamicDims() > 1 || (open != dims.end() && known == 0))
    return failure();
  if (open != dims.end())
    known *= *open = from.numElements() / known;
  if (known != from.numElements())
    return failure();
  return from.reshaped(dims);
}

/// Where the values of a tapped function are found among its outputs.
class TapIndex {
public:
  TapIndex(func::FuncOp main, size_t first) {
    Operation *ret = main.front().getTerminator();
    for (size_t i = ret->getNumOperands(); i-- > first;)
      trace(ret->getOperand(i), static_cast<int>(i));
  }
  /// Output that holds the value, or -1.
  int find(Value v) const {
    auto it = at.find(v);
    return it == at.end() ? -1 : it->second;
  }

private:
  void trace(Value v, int output) {
    at[v] = output;
    Operation *op = v.getDefiningOp();
    if (!op)
      return;
    unsigned number = cast<OpResult>(v).getResultNumber();
    if (isa<hlo::WhileOp>(op))
      trace(op->getRegion(1).front().getTerminator()->getOperand(number), output);
    else if (isa<hlo::IfOp, hlo::CaseOp>(op))
      for (Region &r : op->getRegions()) {
        Value y = r.front().getTerminator()->getOperand(number);
        if (!y.getDefiningOp() || !y.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
          trace(y, output);
      }
  }
  llvm::DenseMap<Value, int> at;
};

} // namespace

std::vector<Tap> addTaps(func::FuncOp main) {
  std::vector<Tapped> tapped = Tapper(main->getParentOfType<ModuleOp>()).block(main.front(), 0);
  SmallVector<Value> values(main.front().getTerminator()->getOperands());
  std::vector<Tap> taps;
  for (Tapped &t : tapped) {
    values.push_back(t.value);
    taps.push_back(std::move(t.tap));
  }
  hlo::setResults(main, values);
  return taps;
}

Judgement judgeKernels(func::FuncOp main, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs, size_t first,
                       llvm::function_ref<bool(int tap)> suspect,
                       llvm::function_ref<bool(int tap, const Tensor &got, const Tensor &want)> differs) {
  TapIndex index(main, first);
  std::function<FailureOr<Tensor>(Value)> valueOf = [&](Value v) -> FailureOr<Tensor> {
    if (int at = index.find(v); at >= 0)
      return outputs[at];
    if (auto arg = dyn_cast<BlockArgument>(v); arg && arg.getOwner() == &main.front())
      return inputs[arg.getArgNumber()];
    Operation *op = v.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      return hlo::readConstant(v);
    // what a loop's last turn gave, as its taps are that turn's
    if (op && isa<hlo::WhileOp>(op))
      return valueOf(op->getRegion(1).front().getTerminator()->getOperand(cast<OpResult>(v).getResultNumber()));
    if (op && isa<hlo::ReshapeOp>(op))
      if (auto from = valueOf(op->getOperand(0)); succeeded(from))
        return reshapedTo(*from, cast<RankedTensorType>(v.getType()));
    return failure();
  };
  Judgement judgement;
  auto cannotTell = [&] {
    judgement.complete = false;
    return WalkResult::skip();
  };
  main.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == main || isa<hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op))
      return WalkResult::advance();
    if (!isKernel(*op) || op->getNumResults() == 0 || index.find(op->getResult(0)) < 0)
      return WalkResult::skip();
    if (llvm::none_of(op->getResults(), [&](Value v) {
          int at = index.find(v);
          return at >= 0 && suspect(at - static_cast<int>(first));
        }))
      return WalkResult::skip();
    std::vector<Tensor> operands;
    for (Value v : op->getOperands()) {
      auto t = valueOf(v);
      if (failed(t))
        return cannotTell();
      operands.push_back(*t);
    }
    // the op alone in a function
    OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
    module->getOperation()->setDiscardableAttrs(main->getParentOfType<ModuleOp>()->getDiscardableAttrDictionary());
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    auto f = func::FuncOp::create(b, op->getLoc(), "f", b.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
    b.setInsertionPointToStart(f.addEntryBlock());
    IRMapping map;
    for (auto [v, arg] : llvm::zip(op->getOperands(), f.getArguments()))
      map.map(v, arg);
    Operation *copy = op->clone(map);
    for (auto [i, arg] : llvm::enumerate(f.getArguments()))
      copy->setOperand(i, arg);
    b.insert(copy);
    func::ReturnOp::create(b, op->getLoc(), copy->getResults());
    hlo::EvalOptions eval;
    eval.silent = true;
    if (failed(expandKernels(*module)))
      return cannotTell();
    auto want = hlo::evaluateFunction(f, operands, eval);
    if (failed(want))
      return cannotTell();
    for (auto [i, v] : llvm::enumerate(op->getResults())) {
      const int at = index.find(v), tap = at - static_cast<int>(first);
      if (at >= 0 && differs(tap, outputs[at], (*want)[i])) {
        judgement.wrong = tap;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::skip();
  });
  return judgement;
}

bool injectFault(func::FuncOp main, StringRef node) {
  Operation *target = nullptr;
  main.walk([&](Operation *op) {
    if (target || !op->getParentOp() || !kernel::isKernelOp(op->getParentOp()) || op->hasTrait<OpTrait::IsTerminator>() ||
        op->hasTrait<OpTrait::ConstantLike>() || op->getNumResults() != 1 || graph::getNodeName(op->getLoc()) != node)
      return;
    Type element = hlo::elementType(op->getResult(0));
    if (!element.isUnsignedInteger())
      target = op;
  });
  if (!target)
    return false;
  OpBuilder b(target);
  b.setInsertionPointAfter(target);
  Value v = target->getResult(0);
  Operation *wrong = hlo::elementType(v).isInteger(1) ? hlo::NotOp::create(b, target->getLoc(), v).getOperation()
                                                      : hlo::NegOp::create(b, target->getLoc(), v).getOperation();
  v.replaceAllUsesExcept(wrong->getResult(0), wrong);
  return true;
}

} // namespace lathe::cli
