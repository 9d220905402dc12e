// A search by coordinates: the algorithm first, then the width of tiles, their height, blocks and the depth; each step
// keeps what was fastest. What wins is measured again in turns with the estimates' plan and must be 3 % faster.
#include "compiler/jit/Tune.h"

#include "compiler/emit/Target.h"
#include "compiler/jit/Jit.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Tile.h"
#include "passes/codegen/cpu/Winograd.h"

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

/// Steps of the sum of one result.
int64_t depthOf(Operation *op) {
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dot.getLhsDims().back());
  auto filter = cast<RankedTensorType>(op->getOperand(1).getType());
  return filter.getNumElements() / filter.getShape().back();
}

RankedTensorType resultOf(Operation *op) {
  auto dot = dyn_cast<kernel::DotOp>(op);
  return dot ? dot.getAccType() : cast<kernel::ConvOp>(op).getAccType();
}

/// One compiled plan of a kernel.
struct Candidate {
  cpu::KernelPlan plan;
  std::unique_ptr<ModuleRunner> runner;
  double seconds = 1e30;
};

class KernelSearch {
public:
  KernelSearch(Operation *op, const EmitOptions &options, const cpu::CpuTarget &target) : op(op), options(options), target(target) {
    this->options.symbolPrefix = "tuned";
    this->options.className.clear();
    this->options.threads = 1;
    this->options.profile = this->options.externalWeights = this->options.wantAsm = this->options.wantLlvm = false;
    this->options.wantObject = this->options.releaseConstants = true; // each candidate has constants of its own
    this->options.hosted = nullptr;
    this->options.plans.clear();
    evicting.resize(std::max<int64_t>(target.l2 * 4, 4 << 20));
  }

  /// Nothing when not even the estimates' plan could be compiled and run.
  std::optional<TunedKernel> run();

private:
  OwningOpRef<ModuleOp> alone(const cpu::KernelPlan &plan);
  bool prepare(Candidate &c);
  void measure(Candidate &c);
  void attempt(cpu::KernelPlan plan);
  void searchAlgorithm();
  void searchShape();
  void searchBlocks();

  Operation *op;
  EmitOptions options;
  const cpu::CpuTarget &target;
  std::vector<char> evicting;
  std::vector<Tensor> inputs;
  std::vector<cpu::KernelPlan> seen;
  Candidate best;
};

/// A module of the op only: operands are arguments but for a constant right one, which is copied.
OwningOpRef<ModuleOp> KernelSearch::alone(const cpu::KernelPlan &plan) {
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

void KernelSearch::attempt(cpu::KernelPlan plan) {
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

void KernelSearch::searchAlgorithm() {
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!conv || options.exact || !cpu::isWinogradWindow(conv) || !constantBehind(conv.getFilter()))
    return;
  ArrayRef<int64_t> window = cast<RankedTensorType>(conv.getFilter().getType()).getShape();
  SmallVector<int64_t> sizes = cpu::winogradTileSizes(window[0], window[1]);
  sizes.push_back(0);
  for (int64_t m : llvm::reverse(sizes)) {
    cpu::KernelPlan plan;
    plan.winograd = m;
    attempt(plan);
  }
}

void KernelSearch::searchShape() {
  const int64_t lanes = target.lanes(Float32Type::get(op->getContext()));
  const int64_t columns = resultOf(op).getShape().back();
  for (int64_t vecs : {1, 2, 3, 4}) {
    if (vecs > 1 && columns <= (vecs - 1) * lanes)
      break;
    cpu::KernelPlan plan = best.plan;
    plan.vecs = vecs;
    attempt(plan);
  }
  const int64_t vecs = best.plan.vecs.value_or(2), most = cpu::maxTileRows(target, vecs);
  for (int64_t rows : {most + 1, most - 1, most - 2, most - 3, most / 2}) {
    cpu::KernelPlan plan = best.plan;
    plan.rows = rows;
    if (rows >= 2 && plan.vecs)
      attempt(plan);
  }
}

void KernelSearch::searchBlocks() {
  if (best.plan.winograd.value_or(0))
    for (int64_t perUnit : {1, 2, 4, 8, 16}) {
      cpu::KernelPlan plan = best.plan;
      plan.perUnit = perUnit;
      attempt(plan);
    }
  int64_t rows = resultOf(op).getNumElements() / resultOf(op).getShape().back();
  for (int64_t block : {1, 2, 4, 8, 16, 32, 64, 128}) {
    cpu::KernelPlan plan = best.plan;
    plan.block = block;
    if (block <= rows)
      attempt(plan);
  }
  for (int64_t depth : {0, 256, 512, 1024}) {
    cpu::KernelPlan plan = best.plan;
    plan.depth = depth;
    if (depthOf(op) > std::max<int64_t>(depth, 256) && !best.plan.winograd.value_or(0))
      attempt(plan);
  }
}

std::optional<TunedKernel> KernelSearch::run() {
  Candidate estimated;
  seen.push_back({});
  if (!prepare(estimated))
    return std::nullopt;
  measure(estimated);
  best.seconds = estimated.seconds;
  searchAlgorithm();
  searchShape();
  searchBlocks();
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
  if (std::string why = whyNotHere(*target); !why.empty())
    return llvm::createStringError("--tune measures on this machine, which does not run code for " + target->triple + " " +
                                   target->cpu + ": " + why);
  llvm::MapVector<llvm::StringRef, Operation *> kernels;
  llvm::StringSet<> names;
  module.walk([&](Operation *op) {
    if (!cpu::isTunable(op) || 2.0 * resultOf(op).getNumElements() * depthOf(op) < leastFlops)
      return;
    auto [name, isNew] = names.insert(cpu::planSignature(op));
    if (isNew && !known.count(name->first().str()))
      kernels.insert({name->first(), op});
  });
  TuneReport report;
  for (auto [name, op] : kernels) {
    if (progress)
      progress(name.str());
    std::optional<TunedKernel> found = KernelSearch(op, options, target->kernelTarget).run();
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
