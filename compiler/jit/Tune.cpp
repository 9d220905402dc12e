// A search in the backend's rounds, each of which starts from what was fastest. What wins is measured again in turns with
// the estimates' plan and must be 3 % faster.
#include "compiler/jit/Tune.h"

#include "compiler/emit/Target.h"
#include "compiler/jit/Jit.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"

#include <ctime>
#include <random>

using namespace mlir;

namespace lathe {
namespace {

constexpr double leastFlops = 5e5;    // smaller kernels are not worth a search
constexpr double leastGain = 0.97;    // noise is not a gain
constexpr double roundSeconds = 0.02; // of one measurement

double threadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

hlo::ConstantOp constantBehind(Value v) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return v.getDefiningOp<hlo::ConstantOp>();
}

RankedTensorType resultOf(Operation *op) {
  auto dot = dyn_cast<kernel::DotOp>(op);
  return dot ? dot.getAccType() : cast<kernel::ConvOp>(op).getAccType();
}

/// One compiled plan of a kernel.
struct Candidate {
  codegen::KernelPlan plan;
  std::unique_ptr<ModuleRunner> runner;
  double seconds = 1e30;
};

class KernelSearch {
public:
  KernelSearch(Operation *op, const EmitOptions &options, const codegen::Backend &backend)
      : op(op), options(options), backend(backend) {
    this->options.symbolPrefix = "tuned";
    this->options.className.clear();
    this->options.threads = 1;
    this->options.profile = this->options.externalWeights = this->options.wantAsm = this->options.wantLlvm = false;
    this->options.wantObject = this->options.releaseConstants = true; // each candidate has constants of its own
    this->options.hosted = nullptr;
    this->options.plans.clear();
    evicting.resize(std::max<int64_t>(backend.properties().model.l2 * 4, 4 << 20));
  }

  /// Nothing when not even the estimates' plan could be compiled and run.
  std::optional<TunedKernel> run();

private:
  OwningOpRef<ModuleOp> alone(const codegen::KernelPlan &plan);
  bool prepare(Candidate &c);
  void measure(Candidate &c);
  void attempt(codegen::KernelPlan plan);

  Operation *op;
  EmitOptions options;
  const codegen::Backend &backend;
  std::vector<char> evicting;
  std::vector<Tensor> inputs;
  std::vector<codegen::KernelPlan> seen;
  Candidate best;
};

/// A module of the op only: operands are arguments but for a constant right one, which is copied.
OwningOpRef<ModuleOp> KernelSearch::alone(const codegen::KernelPlan &plan) {
  OpBuilder b(op->getContext());
  OwningOpRef<ModuleOp> module(ModuleOp::create(b, op->getLoc()));
  hlo::ConstantOp constant = constantBehind(op->getOperand(1));
  llvm::SetVector<Value> arguments;
  SmallVector<Type> types;
  for (auto [i, v] : llvm::enumerate(op->getOperands()))
    if ((i != 1 || !constant) && arguments.insert(v))
      types.push_back(v.getType());
  b.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(b, op->getLoc(), "main", b.getFunctionType(types, op->getResultTypes()));
  b.setInsertionPointToStart(func.addEntryBlock());
  IRMapping map;
  for (auto [v, argument] : llvm::zip(arguments, func.getArguments()))
    map.map(v, argument);
  if (constant) {
    FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
    if (failed(tensor))
      return nullptr;
    auto type = cast<RankedTensorType>(op->getOperand(1).getType());
    Value copy = hlo::makeConstant(b, op->getLoc(), tensor->reshaped({type.getShape().begin(), type.getShape().end()}));
    if (!copy)
      return nullptr;
    map.map(op->getOperand(1), copy);
  }
  Operation *clone = b.clone(*op, map);
  plan.attach(clone);
  func::ReturnOp::create(b, op->getLoc(), clone->getResults());
  return module;
}

bool KernelSearch::prepare(Candidate &c) {
  // a plan that cannot be compiled is no plan; the user need not hear of it
  ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = alone(c.plan);
  if (!module)
    return false;
  auto artifact = emitModule(*module, options);
  auto ok = [](llvm::Error error) {
    bool fine = !error;
    llvm::consumeError(std::move(error));
    return fine;
  };
  if (!artifact)
    return ok(artifact.takeError());
  auto loaded = loadObject(artifact->object, options.symbolPrefix);
  if (!loaded)
    return ok(loaded.takeError());
  c.runner = std::make_unique<ModuleRunner>(*loaded);
  if (inputs.empty()) {
    std::mt19937 random(1);
    const lathe_entry &e = c.runner->entry();
    for (int i = 0; i < e.num_inputs; ++i) {
      const lathe_tensor_info &info = *e.inputs[i];
      Tensor t = Tensor::allocate(static_cast<DType>(info.dtype), {info.dims, info.dims + info.rank});
      if (t.dtype() == DType::Float32)
        for (int64_t x = 0; x < t.numElements(); ++x)
          t.data<float>()[x] = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
      inputs.push_back(std::move(t));
    }
  }
  return ok(c.runner->prepare(inputs)) && ok(c.runner->run());
}

void KernelSearch::measure(Candidate &c) {
  double spent = 0;
  for (int i = 0; i < 30 && (i < 4 || spent < roundSeconds); ++i) {
    for (size_t at = 0; at < evicting.size(); at += 64)
      ++evicting[at];
    volatile char sink = 0;
    for (const Tensor &t : inputs)
      for (int64_t at = 0; at < static_cast<int64_t>(t.sizeBytes()); at += 64)
        sink = static_cast<const char *>(t.data())[at];
    (void)sink;
    double start = threadSeconds();
    llvm::consumeError(c.runner->run());
    double seconds = threadSeconds() - start;
    spent += seconds;
    c.seconds = std::min(c.seconds, seconds);
  }
}

void KernelSearch::attempt(codegen::KernelPlan plan) {
  if (llvm::is_contained(seen, plan))
    return;
  seen.push_back(plan);
  Candidate c;
  c.plan = plan;
  if (!prepare(c))
    return;
  measure(c);
  if (c.seconds < best.seconds * 0.99)
    best = std::move(c);
}

std::optional<TunedKernel> KernelSearch::run() {
  Candidate estimated;
  seen.push_back({});
  if (!prepare(estimated))
    return std::nullopt;
  measure(estimated);
  best.seconds = estimated.seconds;
  for (int round = 0;; ++round) {
    auto plans = backend.plansToTry(op, best.plan, round, options.exact);
    if (!plans)
      break;
    for (const codegen::KernelPlan &plan : *plans)
      attempt(plan);
  }
  // what won did so by luck too: both start again
  if (best.runner)
    estimated.seconds = best.seconds = 1e30;
  for (int round = 0; best.runner && round < 6; ++round) {
    measure(estimated);
    measure(best);
  }
  TunedKernel found;
  const bool faster = best.runner && best.seconds < estimated.seconds * leastGain;
  found.estimatedUs = estimated.seconds * 1e6;
  found.us = faster ? best.seconds * 1e6 : found.estimatedUs;
  if (faster)
    found.plan = best.plan;
  return found;
}

} // namespace

std::string whyNotHere(const ResolvedTarget &target) {
  if (llvm::Triple(llvm::sys::getProcessTriple()).getArch() != llvm::Triple(target.triple).getArch())
    return "its architecture is another one";
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(target.allFeatures).split(features, ',', -1, false);
  for (llvm::StringRef f : features)
    if (auto known = host.find(f.drop_front()); known != host.end() && !known->second)
      return "it lacks " + f.drop_front().str();
  return "";
}

llvm::Expected<TuneReport> tuneKernels(ModuleOp module, const EmitOptions &options, std::map<std::string, TunedKernel> &known,
                                       const std::function<void(const std::string &)> &progress) {
  llvm::Expected<ResolvedTarget> target = resolveTarget(options);
  if (!target)
    return target.takeError();
  if (!target->backend->hasPlans())
    return llvm::createStringError("--tune: the backend '" + options.backend + "' has nothing to choose");
  if (std::string why = whyNotHere(*target); !why.empty())
    return llvm::createStringError("--tune measures on this machine, which does not run code for " + target->triple + " " +
                                   target->cpu + ": " + why);
  llvm::MapVector<llvm::StringRef, Operation *> kernels;
  llvm::StringSet<> names;
  module.walk([&](Operation *op) {
    if (!codegen::isTunable(op) || 2.0 * resultOf(op).getNumElements() * codegen::sumSteps(op) < leastFlops)
      return;
    auto [name, isNew] = names.insert(codegen::planSignature(op));
    if (isNew && !known.count(name->first().str()))
      kernels.insert({name->first(), op});
  });
  TuneReport report;
  for (auto [name, op] : kernels) {
    if (progress)
      progress(name.str());
    std::optional<TunedKernel> found = KernelSearch(op, options, *target->backend).run();
    if (!found)
      continue;
    ++report.searched;
    report.improved += !found->plan.isEmpty();
    report.us += found->us;
    report.estimatedUs += found->estimatedUs;
    known[name.str()] = *found;
  }
  return report;
}

} // namespace lathe
