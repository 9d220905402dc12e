// lathe verify: the compiled model against the reference evaluator, kernel by kernel. Every kernel of the main function
// becomes one more output after fusion, so that fusion is as it would be without.
#include "tools/lathe/Session.h"
#include "tools/lathe/Tensors.h"

#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/kernel/Kernel.h"
#include "passes/fusion/ExpandKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>

namespace lathe::cli {
namespace {

struct VerifyArgs {
  ModelArgs model;
  std::vector<std::string> feeds;
  std::string npz;
  double tolerance = 1e-4;
  int64_t size = 2;
};

struct Tap {
  std::string node, kernel;
};

/// Makes every result of a top-level kernel or unfused op an output behind the existing ones.
std::vector<Tap> addTaps(mlir::func::FuncOp main) {
  mlir::Operation *ret = main.front().getTerminator();
  llvm::SmallVector<mlir::Value> values(ret->getOperands());
  std::vector<Tap> taps;
  for (mlir::Operation &op : main.front().without_terminator()) {
    bool kernel = kernel::isKernelOp(&op);
    if (!kernel && (op.hasTrait<mlir::OpTrait::ConstantLike>() || llvm::isa<hlo::ReshapeOp, hlo::WhileOp, hlo::IfOp, hlo::CaseOp>(op)))
      continue;
    for (mlir::Value v : op.getResults()) {
      values.push_back(v);
      taps.push_back({graph::getNodeName(op.getLoc()).str(), op.getName().getStringRef().str()});
    }
  }
  ret->setOperands(values);
  mlir::Builder b(main.getContext());
  unsigned first = main.getNumResults();
  llvm::SmallVector<mlir::Type> types;
  for (mlir::Value v : values)
    types.push_back(v.getType());
  llvm::SmallVector<mlir::DictionaryAttr> attrs;
  main.getAllResultAttrs(attrs);
  attrs.resize(values.size());
  for (unsigned i = 0; i < values.size(); ++i) {
    if (i >= first)
      attrs[i] = b.getDictionaryAttr(b.getNamedAttr("hlo.name", b.getStringAttr("tap" + std::to_string(i - first))));
    else if (!attrs[i])
      attrs[i] = b.getDictionaryAttr({});
  }
  main.setFunctionType(b.getFunctionType(main.getArgumentTypes(), types));
  main.setAllResultAttrs(attrs);
  return taps;
}

/// Largest difference as a share of the largest magnitude; exact types count any difference as 1.
double difference(const Tensor &got, const Tensor &want) {
  if (got.dims() != want.dims() || got.dtype() != want.dtype())
    return INFINITY;
  auto compare = [&](auto *g, auto *w) {
    double scale = 0, worst = 0;
    for (int64_t i = 0; i < want.numElements(); ++i) {
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
  return std::memcmp(got.data(), want.data(), want.sizeBytes()) ? 1 : 0;
}

int execute(VerifyArgs &a) {
  if (!a.model.finish())
    return BadInput;
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, a.model.options);
  if (failed(compiler.import()) || failed(compiler.runUntil(Phase::Fuse)))
    return BadInput;
  mlir::func::FuncOp main;
  for (auto f : compiler.module().getOps<mlir::func::FuncOp>())
    if (!f.isPrivate()) {
      main = f;
      break;
    }
  unsigned outputs = main.getNumResults();
  std::vector<Tap> taps = addTaps(main);
  mlir::OwningOpRef<mlir::ModuleOp> reference = compiler.module().clone();
  if (failed(expandKernels(*reference)))
    return Internal;
  auto artifact = compiler.emit();
  if (!artifact)
    return fail(artifact.takeError());
  auto module = loadObject(artifact->object, artifact->prefix);
  if (!module)
    return fail(module.takeError());
  const lathe_entry &e = *(*module)->abi().entries[0];

  auto inputs = inputsFrom(e, a.feeds, a.npz, a.size);
  if (!inputs.ok())
    return fail(std::string(inputs.status().message()));
  if ((*module)->abi().num_variables)
    return fail("verify: variables are frozen for verify; leave --keep-variables and --entry away");
  Runner runner(*module, 0, a.model.options.threads);
  auto got = runner->call(*inputs);
  if (!got)
    return fail(got.takeError());
  auto function = reference->lookupSymbol<mlir::func::FuncOp>(main.getSymName());
  auto want = hlo::evaluateFunction(function, *inputs);
  if (failed(want))
    return BadInput;

  double worst = 0;
  for (size_t i = 0; i < taps.size(); ++i) {
    double d = difference((*got)[outputs + i], (*want)[outputs + i]);
    worst = std::max(worst, d);
    if (!(d <= a.tolerance)) {
      printf("first difference at node '%s' (%s): %.3g of the largest magnitude, result %s%s\n", taps[i].node.c_str(),
             taps[i].kernel.c_str(), d, dtypeName((*want)[outputs + i].dtype()),
             dimsToString((*want)[outputs + i].dims()).c_str());
      return Differs;
    }
  }
  printf("%zu kernel results agree; largest error %.3g of the largest magnitude\n", taps.size(), worst);
  return Fine;
}

} // namespace

Command addVerify(CLI::App &root) {
  auto a = std::make_shared<VerifyArgs>();
  CLI::App *app = root.add_subcommand("verify", "Compare every kernel with the reference evaluator");
  a->model.add(*app, "host", "GraphDef, MetaGraph or SavedModel folder");
  app->add_option("--feed", a->feeds, "Feed one input")->type_name("NAME=FILE.npy");
  app->add_option("--feeds", a->npz, "Inputs; without feeds seeded random floats and small integers")->type_name("FILE.npz");
  app->add_option("--tolerance", a->tolerance, "Largest error as a share of the largest magnitude")->capture_default_str();
  app->add_option("--unknown-size", a->size, "Value of unknown dimensions when nothing is fed")->capture_default_str();
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
