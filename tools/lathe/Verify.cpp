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
  if (!artifact)
    return fail(artifact.takeError());
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
  if (failed(want))
    return BadInput;

  double worst = 0;
  size_t kernels = 0;
  for (size_t i = 0; i < taps.size(); ++i) {
    double d = difference((*got)[outputs + i], (*want)[outputs + i]);
    worst = std::max(worst, d);
    kernels += !taps[i].kernel.empty();
    if (d <= a.tolerance)
      continue;
    // Values of a loop differ from where its first turn went wrong: the kernel that is wrong by itself is the one.
    int wrong = findWrongKernel(fused->lookupSymbol<mlir::func::FuncOp>(name), *inputs, *got, outputs,
                                [&](int tap) { return !(difference((*got)[outputs + tap], (*want)[outputs + tap]) <= a.tolerance); },
                                [&](const Tensor &g, const Tensor &w) { return !(difference(g, w) <= a.tolerance); });
    if (wrong >= 0 && wrong != static_cast<int>(i)) {
      i = wrong;
      d = difference((*got)[outputs + i], (*want)[outputs + i]);
    }
    printf("first difference at node '%s' (%s)%s: %.3g of the largest magnitude, result %s%s\n", taps[i].node.c_str(),
           taps[i].kernel.c_str(), taps[i].inLoop ? " in a loop" : "", d, dtypeName((*want)[outputs + i].dtype()),
           dimsToString((*want)[outputs + i].dims()).c_str());
    return Differs;
  }
  printf("%zu kernel results agree; largest error %.3g of the largest magnitude\n", kernels, worst);
  return Fine;
}

} // namespace

Command addVerify(CLI::App &root) {
  auto a = std::make_shared<VerifyArgs>();
  CLI::App *app = root.add_subcommand("verify", "Compare every kernel with the reference evaluator");
  a->model.add(*app, "host", "GraphDef, MetaGraph, SavedModel folder or TensorFlow Lite file");
  app->add_option("--feed", a->feeds, "Feed one input")->type_name("NAME=FILE.npy");
  app->add_option("--feeds", a->npz, "Inputs; without feeds seeded random floats and small integers")->type_name("FILE.npz");
  app->add_option("--tolerance", a->tolerance, "Largest error as a share of the largest magnitude")->capture_default_str();
  app->add_option("--unknown-size", a->size, "Value of unknown dimensions when nothing is fed")->capture_default_str();
  // for the test that verify finds it
  app->add_option("--inject-fault", a->fault, "Compile one op of NODE wrongly")->type_name("NODE")->group("");
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
