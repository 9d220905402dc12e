// The evaluator's state and the walk over blocks; the ops are in Eval<Family>.cpp.
#include "dialects/hlo/Evaluator.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace lathe::hlo {
namespace eval {

static const HandlerTable &handlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    registerElementwise(t);
    registerShape(t);
    registerGather(t);
    registerReduce(t);
    registerSort(t);
    registerDot(t);
    registerMatrix(t);
    registerSvd(t);
    registerEig(t);
    registerFft(t);
    registerNorm(t);
    registerControl(t);
    registerRandom(t);
    registerQuant(t);
    return t;
  }();
  return table;
}

LogicalResult Evaluation::fail(Operation *op, const Twine &message) {
  if (options.silent)
    return failure();
  return op->emitOpError(message);
}

LogicalResult Evaluation::allocate(Operation *op, DType type, Dims dims, Tensor &tensor) {
  for (int64_t dim : dims)
    if (dim < 0)
      return fail(op, "the size of a dimension is not known");
  auto result = Tensor::tryAllocate(type, std::move(dims), std::max<int64_t>(options.maxBytes - aliveBytes, 0));
  if (!result.ok())
    return fail(op, "evaluation needs too much memory: " + Twine(std::string(result.status().message())));
  tensor = std::move(*result);
  return success();
}

LogicalResult Evaluation::work(Operation *op, double amount) {
  workDone += amount;
  if (options.maxWork >= 0 && workDone > static_cast<double>(options.maxWork))
    return fail(op, "evaluation takes too long");
  return success();
}

LogicalResult Evaluation::scratch(Operation *op, double bytes) {
  if (bytes > static_cast<double>(options.maxBytes))
    return fail(op, "evaluation takes too much memory");
  return success();
}

LogicalResult Evaluation::iteration(Operation *op) {
  if (++iterations > options.maxIterations)
    return fail(op, "loops run for more than " + Twine(options.maxIterations) + " iterations");
  return success();
}

int64_t Evaluation::symbolValue(AffineExpr expr) const { return evaluate(expr, symbols).value_or(-1); }

Dims Evaluation::dimsOf(Type type) const {
  Dims dims;
  for (AffineExpr dim : getDims(cast<RankedTensorType>(type)))
    dims.push_back(symbolValue(dim));
  return dims;
}

void Evaluation::bind(Type type, const Tensor &tensor) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || ranked.hasStaticShape() || ranked.getRank() != tensor.rank())
    return;
  for (int64_t i = 0; i < ranked.getRank(); ++i) {
    AffineExpr dim = getDim(ranked, i);
    auto used = getSymbols(dim);
    if (used.size() != 1)
      continue;
    unsigned symbol = used.front();
    if (symbol >= 4096 || (symbol < symbols.size() && symbols[symbol] >= 0))
      continue;
    if (symbol >= symbols.size())
      symbols.resize(symbol + 1, -1);
    // a linear expression: its slope from two values, then the value that gives the size
    std::vector<int64_t> probe(symbol + 1, -1);
    probe[symbol] = 0;
    auto zero = evaluate(dim, probe);
    probe[symbol] = 1;
    auto one = evaluate(dim, probe);
    if (!zero || !one || *one == *zero || (tensor.dim(i) - *zero) % (*one - *zero) != 0)
      continue;
    int64_t value = (tensor.dim(i) - *zero) / (*one - *zero);
    if (value < 0)
      continue;
    probe[symbol] = value;
    if (evaluate(dim, probe) == tensor.dim(i))
      symbols[symbol] = value;
  }
}

LogicalResult Evaluation::setSymbol(Operation *op, int64_t symbol, int64_t value) {
  if (symbol < 0 || symbol >= 4096)
    return fail(op, "symbol out of range");
  if (static_cast<size_t>(symbol) >= symbols.size())
    symbols.resize(symbol + 1, -1);
  symbols[symbol] = value;
  return success();
}

FailureOr<Tensor> Evaluation::lookup(Value value) {
  auto it = environment.find(value);
  if (it != environment.end())
    return it->second;
  return readConstant(value);
}

void Evaluation::define(Value value, const Tensor &tensor) {
  drop(value);
  environment[value] = tensor;
  aliveBytes += tensor.sizeBytes();
}
void Evaluation::drop(Value value) {
  auto it = environment.find(value);
  if (it == environment.end())
    return;
  aliveBytes -= it->second.sizeBytes();
  environment.erase(it);
}

LogicalResult Evaluation::run(Operation *op, ArrayRef<Tensor> operands, Tensors &results) {
  auto it = handlers().find(op->getName().getTypeID());
  if (it == handlers().end())
    return fail(op, "the evaluator does not know this op");
  if (operands.size() != op->getNumOperands())
    return fail(op, "expected " + Twine(op->getNumOperands()) + " operands");
  for (auto [value, tensor] : llvm::zip(op->getOperands(), operands)) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != tensor.rank() || toDType(type.getElementType()) != dtypeCarrier(tensor.dtype()))
      return fail(op, "operand of type " + dimsToString(tensor.dims()) + " " + dtypeName(tensor.dtype()) +
                          " does not fit its declaration");
    bind(type, tensor);
  }
  if (failed(it->second(*this, op, operands, results)))
    return failure();
  if (results.size() != op->getNumResults())
    return fail(op, "evaluation gave " + Twine(results.size()) + " results");
  for (auto [value, tensor] : llvm::zip(op->getResults(), results)) {
    auto type = cast<RankedTensorType>(value.getType());
    bool fits = type.getRank() == tensor.rank() && toDType(type.getElementType()) == dtypeCarrier(tensor.dtype());
    for (int64_t i = 0; fits && i < type.getRank(); ++i)
      fits = type.isDynamicDim(i) || type.getDimSize(i) == tensor.dim(i);
    if (!fits)
      return fail(op, "evaluation gave " + dimsToString(tensor.dims()) + " of " + dtypeName(tensor.dtype()) +
                          " where the result type says otherwise");
    bind(type, tensor);
  }
  return success();
}

// Values of this block, and which are used for the last time by each of its ops (or the regions within).
const Evaluation::BlockPlan &Evaluation::planOf(Block &block) {
  std::unique_ptr<BlockPlan> &plan = plans[&block];
  if (plan)
    return *plan;
  plan = std::make_unique<BlockPlan>();
  llvm::DenseMap<Operation *, unsigned> order;
  for (Operation &op : block) {
    order[&op] = order.size();
    plan->dead.emplace_back();
  }
  auto place = [&](Value value, unsigned defined) {
    unsigned last = defined;
    for (Operation *user : value.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      auto it = order.find(here);
      last = std::max(last, it == order.end() ? static_cast<unsigned>(order.size() - 1) : it->second);
    }
    if (last < plan->dead.size())
      plan->dead[last].push_back(value);
  };
  for (Value argument : block.getArguments())
    place(argument, 0);
  for (Operation &op : block)
    for (Value result : op.getResults())
      place(result, order[&op]);
  return *plan;
}

LogicalResult Evaluation::runBlock(Block &block, ArrayRef<Tensor> arguments, Tensors &results, bool useTap) {
  if (block.empty() || arguments.size() != block.getNumArguments())
    return failure();
  if (++depth > 200) {
    --depth;
    return fail(block.getParentOp(), "regions are nested too deeply");
  }
  llvm::scope_exit leave([&] { --depth; });
  const BlockPlan &plan = planOf(block);
  for (auto [value, tensor] : llvm::zip(block.getArguments(), arguments)) {
    bind(value.getType(), tensor);
    define(value, tensor);
  }
  size_t index = 0;
  for (Operation &op : block) {
    Tensors operands, out;
    for (Value operand : op.getOperands()) {
      auto tensor = lookup(operand);
      if (failed(tensor))
        return fail(&op, "an operand has no value");
      operands.push_back(*tensor);
    }
    bool isTerminator = op.hasTrait<OpTrait::IsTerminator>();
    if (isTerminator) {
      results = std::move(operands);
    } else {
      if (failed(run(&op, operands, out)))
        return failure();
      operands.clear();
      for (auto [value, tensor] : llvm::zip(op.getResults(), out))
        define(value, tensor);
      if (useTap && options.tap)
        options.tap(&op, out);
    }
    for (Value value : plan.dead[index])
      drop(value);
    ++index;
    if (isTerminator)
      return success();
  }
  return fail(&block.back(), "the block does not end in a terminator");
}

} // namespace eval

FailureOr<SmallVector<Tensor>> evaluateOp(Operation *op, ArrayRef<Tensor> operands, const EvalOptions &options) {
  eval::Evaluation evaluation(options);
  eval::Tensors results;
  if (failed(evaluation.run(op, operands, results)))
    return failure();
  return results;
}

FailureOr<SmallVector<Tensor>> evaluateFunction(func::FuncOp function, ArrayRef<Tensor> inputs,
                                                const EvalOptions &options) {
  eval::Evaluation evaluation(options);
  if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
    return evaluation.fail(function, "expected a function of one block");
  if (inputs.size() != function.getNumArguments())
    return evaluation.fail(function, "expected " + Twine(function.getNumArguments()) + " inputs, found " +
                                         Twine(inputs.size()));
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    bool fits = ranked && ranked.getRank() == inputs[i].rank() &&
                toDType(ranked.getElementType()) == dtypeCarrier(inputs[i].dtype());
    for (int64_t k = 0; fits && k < ranked.getRank(); ++k)
      fits = ranked.isDynamicDim(k) || ranked.getDimSize(k) == inputs[i].dim(k);
    if (!fits)
      return evaluation.fail(function, "input " + Twine(i) + " of " + dimsToString(inputs[i].dims()) + " " +
                                           dtypeName(inputs[i].dtype()) + " does not fit the argument's type");
  }
  eval::Tensors results;
  if (failed(evaluation.runBlock(function.getBody().front(), inputs, results, true)))
    return failure();
  // what lies in a blob of the context must outlive it
  for (Tensor &result : results)
    if (result.owner().use_count() == 0 && result.sizeBytes() > 0)
      result = result.clone();
  return results;
}

} // namespace lathe::hlo
