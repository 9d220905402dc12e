// lathe verify: the compiled model against the reference evaluator, kernel by kernel. Every kernel of the main function
// and of its loops and branches becomes one more output after fusion, so that fusion is as it would be without.
#include "tools/lathe/Session.h"
#include "tools/lathe/Taps.h"
#include "tools/lathe/Tensors.h"

#include "compiler/support/Diagnostics.h"
#include "dialects/hlo/Evaluator.h"
#include "passes/fusion/ExpandKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cmath>

namespace lathe::cli {
namespace {

struct VerifyArgs {
  ModelArgs model;
  std::vector<std::string> feeds;
  std::string npz;
  double tolerance = 1e-4;
  int64_t size = 2;
  std::string fault; ///< node to compile wrongly
};

/// Largest difference as a share of the largest magnitude; exact types count any difference as 1.
double difference(const Tensor &got, const Tensor &want) {
  if (got.dims() != want.dims() || got.dtype() != want.dtype())
    return INFINITY;
  auto compare = [&](auto *g, auto *w, int64_t parts = 1) {
    double scale = 0, worst = 0;
    for (int64_t i = 0; i < want.numElements() * parts; ++i) {
      if (std::isfinite(double(w[i])))
        scale = std::max(scale, std::abs(double(w[i])));
      if (std::isnan(double(g[i])) && std::isnan(double(w[i])))
        continue;
      if (g[i] != w[i])
        worst = std::max(worst, std::isfinite(double(g[i])) && std::isfinite(double(w[i])) ? std::abs(double(g[i]) - double(w[i])) : INFINITY);
    }
    return worst == 0 ? 0.0 : worst / (scale + 1e-30);
  };
  if (want.dtype() == DType::Float32)
    return compare(got.data<float>(), want.data<float>());
  if (want.dtype() == DType::Float64)
    return compare(got.data<double>(), want.data<double>());
  // real and imaginary parts
  if (want.dtype() == DType::Complex64)
    return compare(static_cast<const float *>(got.data()), static_cast<const float *>(want.data()), 2);
  if (want.dtype() == DType::Complex128)
    return compare(static_cast<const double *>(got.data()), static_cast<const double *>(want.data()), 2);
  return std::memcmp(got.data(), want.data(), want.sizeBytes()) ? 1 : 0;
}

/// How many integers are another one, if none is further away than one step; else -1.
int64_t countFlips(const Tensor &got, const Tensor &want) {
  if (got.dims() != want.dims() || got.dtype() != want.dtype())
    return -1;
  auto count = [&](auto *g, auto *w) -> int64_t {
    int64_t flips = 0;
    for (int64_t i = 0; i < want.numElements(); ++i)
      if (g[i] != w[i]) {
        if (std::max(g[i], w[i]) != std::min(g[i], w[i]) + 1)
          return -1;
        ++flips;
      }
    return flips;
  };
  switch (want.dtype()) {
  case DType::Int8:
    return count(got.data<int8_t>(), want.data<int8_t>());
  case DType::UInt8:
    return count(got.data<uint8_t>(), want.data<uint8_t>());
  case DType::Int16:
    return count(got.data<int16_t>(), want.data<int16_t>());
  case DType::Int32:
    return count(got.data<int32_t>(), want.data<int32_t>());
  default:
    return -1;
  }
}

/// Compares the compiled taps with the evaluator's, and where they differ kernel by kernel.
class Comparison {
public:
  Comparison(const VerifyArgs &args, const std::vector<Tap> &taps, size_t outputs, llvm::ArrayRef<Tensor> got,
             llvm::ArrayRef<Tensor> want)
      : args(args), taps(taps), outputs(outputs), got(got), want(want) {
    for (size_t i = 0; i < taps.size(); ++i)
      differences.push_back(difference(got[outputs + i], want[outputs + i]));
  }

  /// `fused` is the function with taps, its kernels as they were compiled.
  int tell(mlir::func::FuncOp fused, llvm::ArrayRef<Tensor> inputs) {
    double worst = 0;
    int first = -1;
    size_t kernels = 0;
    for (int i = 0, e = taps.size(); i < e; ++i) {
      const double d = differences[i];
      kernels += !taps[i].kernel.empty();
      if (d <= args.tolerance)
        worst = std::max(worst, d);
      else if (first < 0)
        first = i;
    }
    if (first < 0) {
      printf("%zu kernel results agree; largest error %.3g of the largest magnitude\n", kernels, worst);
      return Fine;
    }
    // Values of a loop differ from where its first turn went wrong: the kernel that is wrong by itself is the one.
    Judgement judgement = judgeKernels(
        fused, inputs, got, outputs, [&](int tap) { return !(differences[tap] <= args.tolerance); },
        [&](int tap, const Tensor &g, const Tensor &w) { return differs(tap, g, w); });
    if (judgement.wrong < 0 && judgement.complete && taps[first].rounds) {
      printf("%zu kernel results agree; largest error %.3g of the largest magnitude; floats are rounded to other integers from node '%s' "
             "on, and kernels were compared on the values that they were given\n",
             kernels, worst, taps[first].node.c_str());
      return Fine;
    }
    const int at = judgement.wrong >= 0 ? judgement.wrong : first;
    const Tensor &wanted = want[outputs + at];
    printf("first difference at node '%s' (%s)%s: %.3g of the largest magnitude, result %s%s\n", taps[at].node.c_str(),
           taps[at].kernel.c_str(), taps[at].inLoop ? " in a loop" : "", differences[at], dtypeName(wanted.dtype()),
           dimsToString(wanted.dims()).c_str());
    return Differs;
  }

private:
  /// A last bit of a float decides between two integers now and then: one in a thousand may be the next one.
  bool differs(int tap, const Tensor &g, const Tensor &w) const {
    if (difference(g, w) <= args.tolerance)
      return false;
    const int64_t count = taps[tap].rounds ? countFlips(g, w) : -1;
    return count < 0 || count > std::max<int64_t>(1, w.numElements() / 1000);
  }

  const VerifyArgs &args;
  const std::vector<Tap> &taps;
  const size_t outputs; ///< of the function itself, in front of the taps
  llvm::ArrayRef<Tensor> got, want;
  std::vector<double> differences; ///< of the taps
};

int execute(VerifyArgs &a) {
  if (!a.model.finish())
    return BadInput;
  auto feeds = readFeeds(a.feeds, a.npz);
  if (!feeds.ok())
    return fail(std::string(feeds.status().message()));
  a.model.takeShapes(*feeds);
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  std::unique_ptr<mlir::MLIRContext> context = makeContext(&errorStream);
  Compiler compiler(*context, a.model.options);
  useTuning(compiler);
  useQuantizing(compiler);
  if (failed(compiler.import()) || failed(compiler.runUntil(Phase::Fuse)))
    return failWith(a.model, compiler, errors);
  fprintf(stderr, "%s", std::exchange(errors, std::string()).c_str()); // warnings
  mlir::func::FuncOp main;
  for (auto f : compiler.module().getOps<mlir::func::FuncOp>())
    if (!f.isPrivate()) {
      main = f;
      break;
    }
  unsigned outputs = main.getNumResults();
  std::vector<Tap> taps = addTaps(main);
  mlir::OwningOpRef<mlir::ModuleOp> fused = compiler.module().clone(), reference = compiler.module().clone();
  std::string name = main.getSymName().str();
  if (!a.fault.empty() && !injectFault(main, a.fault))
    return fail("--inject-fault " + a.fault + ": no kernel holds an op of that node");
  if (failed(expandKernels(*reference)))
    return Internal;
  auto artifact = compiler.emit();
  fprintf(stderr, "%s", std::exchange(errors, std::string()).c_str());
  if (!artifact) {
    const std::string why = llvm::toString(artifact.takeError());
    return why.empty() ? int(BadInput) : fail(why);
  }
  auto module = loadObject(artifact->object, artifact->prefix);
  if (!module)
    return fail(module.takeError());
  const lathe_entry &e = *(*module)->abi().entries[0];

  auto inputs = inputsFrom(e, *feeds, a.size);
  if (!inputs.ok())
    return fail(std::string(inputs.status().message()));
  if ((*module)->abi().num_variables)
    return fail("verify: variables are frozen for verify; leave --keep-variables and --entry away");
  Runner runner(*module, 0, a.model.options.threads);
  auto got = runner->call(*inputs);
  if (!got)
    return fail(got.takeError());
  auto function = reference->lookupSymbol<mlir::func::FuncOp>(name);
  auto want = hlo::evaluateFunction(function, *inputs);
  if (failed(want)) {
    fprintf(stderr, "%s", errors.c_str());
    return BadInput;
  }

  return Comparison(a, taps, outputs, *got, *want).tell(fused->lookupSymbol<mlir::func::FuncOp>(name), *inputs);
}

} // namespace

Command addVerify(CLI::App &root) {
  auto a = std::make_shared<VerifyArgs>();
  CLI::App *app = root.add_subcommand("verify", "Compare every kernel with the reference evaluator");
  a->model.add(*app, "host", "GraphDef, MetaGraph, SavedModel folder or TensorFlow Lite file");
  app->add_option("--feed", a->feeds, "Feed one input")->type_name("NAME=FILE.npy");
  app->add_option("--feeds", a->npz, "Inputs; without feeds seeded random floats and small integers")->type_name("FILE.npz");
  app->add_option("--tolerance", a->tolerance, "Largest error as a share of the largest magnitude")->check(nonNegative)->capture_default_str();
  app->add_option("--unknown-size", a->size, "Value of unknown dimensions when nothing is fed")->check(nonNegative)->capture_default_str();
  // for the test that verify finds it
  app->add_option("--inject-fault", a->fault, "Compile one op of NODE wrongly")->type_name("NODE")->group("");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
