#include "Check.h"

#include "compiler/emit/Emit.h"
#include "compiler/jit/Jit.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/hlo/Shape.h"
#include "passes/fusion/Passes.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace mlir;

namespace lathe::fuzz {
namespace {

constexpr int manyThreads = 3;

/// parallel_for that runs single chunks, last first: a chunk that needs another one's result shows.
int backwards(void *, void (*fn)(void *, int64_t, int64_t), void *arg, int64_t n) {
  for (int64_t i = n - 1; i >= 0; --i)
    fn(arg, i, i + 1);
  return 0;
}

/// The names of sizes that are known at run time only.
void copySymbols(ModuleOp from, ModuleOp to) {
  if (Attribute symbols = from->getAttr(hlo::symbolsAttrName))
    to->setAttr(hlo::symbolsAttrName, symbols);
}

bool isTapped(Operation &op) {
  return !isa<hlo::ConstantOp>(op) && !op.hasTrait<OpTrait::IsTerminator>() && op.getNumResults() > 0;
}

/// Returns every op's results, in order, instead of what the function returns.
void tapAll(func::FuncOp f) {
  SmallVector<Value> values;
  for (Operation &op : f.front())
    if (isTapped(op))
      values.append(op.result_begin(), op.result_end());
  f.front().getTerminator()->setOperands(values);
  SmallVector<Type> types;
  for (Value v : values)
    types.push_back(v.getType());
  f.setFunctionType(FunctionType::get(f.getContext(), f.getArgumentTypes(), types));
}

llvm::Expected<std::shared_ptr<LoadedModule>> compile(ModuleOp module, bool fuse, const CheckOptions &options) {
  CollectedDiagnostics diagnostics(*module.getContext());
  auto failure = [&](std::string text) {
    return llvm::createStringError(diagnostics.text().empty() ? text : diagnostics.text());
  };
  PassManager pm(module.getContext());
  if (fuse && options.simplify) {
    simplify::SimplifyOptions so;
    so.core.l2 = 16; // so that batches of small tensors are split too
    so.threads = manyThreads;
    simplify::buildSimplifyPipeline(pm, so);
  }
  fusion::FusionOptions fo;
  fo.fuse = fuse;
  fusion::buildFusionPipeline(pm, fo);
  if (failed(pm.run(module)))
    return failure("passes failed");
  EmitOptions eo;
  eo.cpu = options.cpu;
  eo.features = options.features;
  eo.optLevel = options.optLevel;
  eo.sanitize = options.sanitize;
  eo.threads = fuse ? manyThreads : 1;
  eo.parallelWork = 0;
  eo.exact = options.exact;
  eo.bf16 = options.bf16;
  auto artifact = emitModule(module, eo);
  if (!artifact)
    return failure(llvm::toString(artifact.takeError()));
  return loadObject(artifact->object, artifact->prefix);
}

llvm::Expected<std::vector<Tensor>> call(std::shared_ptr<LoadedModule> module, const std::string &name,
                                         const std::vector<Tensor> &inputs, int threads) {
  int entry = module->findEntry(name);
  ModuleRunner runner(module, entry);
  if (threads > 1)
    runner.setParallelFor(backwards, nullptr, threads);
  return runner.call(inputs);
}

/// Values of the sizes that inputs name.
std::vector<int64_t> symbolsOf(func::FuncOp f, ArrayRef<Tensor> inputs) {
  std::vector<int64_t> values(hlo::getSymbolTable(f->getParentOfType<ModuleOp>()).size(), -1);
  for (auto [arg, t] : llvm::zip(f.getArguments(), inputs))
    for (auto [i, e] : llvm::enumerate(hlo::getDims(cast<RankedTensorType>(arg.getType()))))
      if (auto symbol = dyn_cast_or_null<AffineSymbolExpr>(e))
        values[symbol.getPosition()] = t.dim(i);
  return values;
}

std::string checkGraph(Graph graph, std::shared_ptr<LoadedModule> fused, std::shared_ptr<LoadedModule> plain) {
  func::FuncOp f = graph.function;
  std::string name = f.getSymName().str();
  auto one = call(fused, name, graph.inputs, 1);
  if (!one)
    return "fused: " + llvm::toString(one.takeError());
  auto many = call(fused, name, graph.inputs, manyThreads);
  if (!many)
    return "threads: " + llvm::toString(many.takeError());
  for (size_t i = 0; i < one->size(); ++i)
    if (memcmp((*one)[i].data(), (*many)[i].data(), (*one)[i].sizeBytes()))
      return "threads: result " + std::to_string(i) + " differs: " + compareEqual((*many)[i], (*one)[i], true);
  auto taps = call(plain, name, graph.inputs, 1);
  if (!taps)
    return "unfused: " + llvm::toString(taps.takeError());

  const std::vector<int64_t> symbols = symbolsOf(f, graph.inputs);
  llvm::DenseMap<Value, Tensor> compiled;
  for (auto [v, t] : llvm::zip(f.getArguments(), graph.inputs))
    compiled[v] = t;
  size_t next = 0;
  std::vector<Tensor> reference;
  if (graph.kind == Kind::Exact) {
    hlo::EvalOptions eval;
    eval.tap = [&](Operation *op, ArrayRef<Tensor> results) {
      if (isTapped(*op))
        for (const Tensor &t : results)
          reference.push_back(t);
    };
    if (failed(hlo::evaluateFunction(f, graph.inputs, eval)))
      return "the evaluator refuses the graph";
    if (reference.size() != taps->size())
      return "internal: taps do not fit";
  }
  for (Operation &op : f.front().without_terminator()) {
    if (isa<hlo::ConstantOp>(op)) {
      auto t = hlo::readConstant(op.getResult(0));
      if (failed(t))
        return "a constant cannot be read";
      compiled[op.getResult(0)] = *t;
      continue;
    }
    SmallVector<Tensor> operands, got;
    for (Value v : op.getOperands())
      operands.push_back(compiled[v]);
    size_t first = next;
    for (Value v : op.getResults()) {
      compiled[v] = (*taps)[next];
      got.push_back((*taps)[next++]);
    }
    std::string problem;
    if (graph.kind == Kind::Exact) {
      for (size_t r = 0; r < got.size() && problem.empty(); ++r)
        problem = compareEqual(got[r], reference[first + r], false);
      if (!problem.empty())
        problem = op.getName().getStringRef().str() + ": " + problem;
    } else {
      problem = compareOp(&op, operands, got, symbols);
    }
    if (!problem.empty())
      return "unfused: " + problem;
  }
  Operation *ret = f.front().getTerminator();
  for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
    const Tensor &want = compiled[ret->getOperand(i)], &got = (*one)[i];
    // an input's or a constant's own bits, else what unfused code computed
    std::string problem = graph.kind == Kind::Exact         ? compareEqual(got, want, false)
                          : graph.kind == Kind::Elementwise ? compareEqual(got, want, true)
                                                            : compareNear(got, want, got.dtype() == DType::Float64 ? 1e-9 : 1e-3);
    if (!problem.empty())
      return "fused: result " + std::to_string(i) + ": " + problem;
  }
  return "";
}

} // namespace

std::vector<std::string> checkGraphs(ModuleOp module, ArrayRef<Graph> graphs, const CheckOptions &options) {
  std::vector<std::string> problems(graphs.size());
  auto all = [&](const std::string &text) {
    // which one it is shows one at a time
    if (graphs.size() == 1) {
      problems[0] = text;
      return problems;
    }
    for (size_t i = 0; i < graphs.size(); ++i) {
      OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
      copySymbols(module, *alone);
      Graph copy = graphs[i];
      func::FuncOp original = copy.function;
      copy.function = cast<func::FuncOp>(original->clone());
      alone->push_back(copy.function);
      problems[i] = checkGraphs(*alone, copy, options)[0];
    }
    return problems;
  };
  {
    CollectedDiagnostics diagnostics(*module.getContext());
    if (failed(verify(module)))
      return all("the generator made an invalid graph: " + diagnostics.text());
  }
  OwningOpRef<ModuleOp> first = module.clone(), second = module.clone();
  for (auto f : second->getOps<func::FuncOp>())
    tapAll(f);
  auto fused = compile(*first, true, options);
  if (!fused)
    return all("fused: " + llvm::toString(fused.takeError()));
  auto plain = compile(*second, false, options);
  if (!plain)
    return all("unfused: " + llvm::toString(plain.takeError()));
  for (size_t i = 0; i < graphs.size(); ++i)
    problems[i] = checkGraph(graphs[i], *fused, *plain);
  return problems;
}

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

static Reduced copyOf(Graph graph) {
  Reduced r;
  r.module = ModuleOp::create(UnknownLoc::get(graph.function.getContext()));
  copySymbols(graph.function->getParentOfType<ModuleOp>(), *r.module);
  r.graph = graph;
  r.graph.function = cast<func::FuncOp>(graph.function->clone());
  r.module->push_back(r.graph.function);
  return r;
}

static void setResults(func::FuncOp f, ArrayRef<Value> values) {
  f.front().getTerminator()->setOperands(values);
  SmallVector<Type> types;
  for (Value v : values)
    types.push_back(v.getType());
  f.setFunctionType(FunctionType::get(f.getContext(), f.getArgumentTypes(), types));
}

static void eraseDead(Graph &graph) {
  func::FuncOp f = graph.function;
  SmallVector<Operation *> ops;
  for (Operation &op : f.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  for (unsigned i = f.getNumArguments(); i-- > 0;)
    if (f.getArgument(i).use_empty()) {
      (void)f.eraseArgument(i);
      graph.inputs.erase(graph.inputs.begin() + i);
    }
}

/// The results of op number `at` become inputs with the values that they had.
static bool cut(Reduced &r, size_t at) {
  func::FuncOp f = r.graph.function;
  auto ops = f.front().without_terminator();
  auto it = std::next(ops.begin(), at);
  Operation *op = &*it;
  if (isa<hlo::ConstantOp>(op))
    return false;
  SmallVector<Tensor> values;
  hlo::EvalOptions eval;
  eval.tap = [&](Operation *o, ArrayRef<Tensor> results) {
    if (o == op)
      values.assign(results.begin(), results.end());
  };
  if (failed(hlo::evaluateFunction(f, r.graph.inputs, eval)) || values.size() != op->getNumResults())
    return false;
  for (auto [i, t] : llvm::enumerate(values)) {
    unsigned n = f.getNumArguments();
    (void)f.insertArgument(n, op->getResult(i).getType(), DictionaryAttr::get(f.getContext()), f.getLoc());
    op->getResult(i).replaceAllUsesWith(f.getArgument(n));
    r.graph.inputs.push_back(t.clone());
  }
  eraseDead(r.graph);
  return true;
}

Reduced reduceGraph(Graph graph, const CheckOptions &options) {
  Reduced best = copyOf(graph);
  auto stillFails = [&](Reduced &r) {
    r.problem = checkGraphs(*r.module, r.graph, options)[0];
    return !r.problem.empty();
  };
  if (!stillFails(best)) {
    best.problem = "does not fail alone";
    return best;
  }
  auto attempt = [&](llvm::function_ref<bool(Reduced &)> change) {
    Reduced r = copyOf(best.graph);
    if (!change(r) || !stillFails(r))
      return false;
    best = std::move(r);
    return true;
  };
  // one result, if one is enough
  for (unsigned i = 0, n = graph.function.getNumResults(); i < n && n > 1; ++i)
    if (attempt([&](Reduced &r) {
          setResults(r.graph.function, r.graph.function.front().getTerminator()->getOperand(i));
          eraseDead(r.graph);
          return true;
        }))
      break;
  for (unsigned i = best.graph.function.getNumResults(); i-- > 0;)
    if (best.graph.function.getNumResults() > 1)
      attempt([&](Reduced &r) {
        SmallVector<Value> values(r.graph.function.front().getTerminator()->getOperands());
        values.erase(values.begin() + i);
        setResults(r.graph.function, values);
        eraseDead(r.graph);
        return true;
      });
  // an op's results instead of what follows it
  for (size_t at = 0; at < size_t(std::distance(best.graph.function.front().begin(), best.graph.function.front().end())) - 1; ++at)
    if (attempt([&](Reduced &r) {
          Operation &op = *std::next(r.graph.function.front().begin(), at);
          if (isa<hlo::ConstantOp>(op))
            return false;
          setResults(r.graph.function, SmallVector<Value>(op.getResults()));
          eraseDead(r.graph);
          return true;
        }))
      break;
  for (bool progress = true; progress;) {
    progress = false;
    size_t n = std::distance(best.graph.function.front().begin(), best.graph.function.front().end()) - 1;
    for (size_t at = n; at-- > 0;)
      if (at < size_t(std::distance(best.graph.function.front().begin(), best.graph.function.front().end())) - 1)
        progress |= attempt([&](Reduced &r) { return cut(r, at); });
  }
  return best;
}

std::string describe(const Tensor &tensor) {
  std::string text = std::string(dtypeName(tensor.dtype())) + dimsToString(tensor.dims()) + " {";
  for (int64_t i = 0; i < tensor.numElements() && i < 64; ++i) {
    char number[40];
    snprintf(number, sizeof(number), "%s%.9g", i ? ", " : "", valueAt(tensor, i));
    text += number;
  }
  return text + (tensor.numElements() > 64 ? ", ...}" : "}");
}

} // namespace lathe::fuzz
