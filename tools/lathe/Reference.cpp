#include "tools/lathe/Reference.h"

#include "compiler/support/Diagnostics.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "passes/fusion/ExpandKernels.h"
#include "tools/lathe/Session.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>

namespace lathe::cli {
namespace {

std::string textAttr(mlir::DictionaryAttr attrs, llvm::StringRef name) {
  auto text = attrs ? attrs.getAs<mlir::StringAttr>(name) : mlir::StringAttr();
  return text ? text.str() : std::string();
}

const Tensor *find(const NamedTensors &tensors, const std::string &name) {
  for (auto &[key, tensor] : tensors)
    if (key == name)
      return &tensor;
  return nullptr;
}

// The initial value from the module's list, or zeros.
Tensor initialValue(mlir::ModuleOp module, const std::string &name, mlir::Type type) {
  if (auto list = module->getAttrOfType<mlir::ArrayAttr>("hlo.variables"))
    for (mlir::Attribute entry : list) {
      auto dict = llvm::dyn_cast<mlir::DictionaryAttr>(entry);
      if (textAttr(dict, "name") != name)
        continue;
      if (auto value = dict.getAs<mlir::ElementsAttr>("value"))
        if (auto tensor = hlo::readConstant(value); succeeded(tensor))
          return *tensor;
    }
  auto ranked = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!ranked || !ranked.hasStaticShape())
    return {};
  return Tensor::allocate(hlo::toDType(ranked.getElementType()), {ranked.getShape().begin(), ranked.getShape().end()});
}

} // namespace

llvm::Expected<std::vector<Tensor>> evaluateStep(const CompilerOptions &options, const std::string &graph, Phase phase,
                                                 const NamedTensors &feeds, NamedTensors &variables) {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  CollectedDiagnostics diagnostics(*context);
  Compiler compiler(*context, options);
  auto failed = [&] {
    std::string text = diagnostics.text();
    return llvm::createStringError(text.empty() ? std::string("failed without a message") : text);
  };
  if (mlir::failed(compiler.importBytes(graph)) || mlir::failed(compiler.runUntil(phase)))
    return failed();
  mlir::ModuleOp module = compiler.module();
  if (phase >= Phase::Fuse && mlir::failed(expandKernels(module)))
    return failed();
  mlir::func::FuncOp main;
  for (auto f : module.getOps<mlir::func::FuncOp>())
    if (!f.isPrivate() && !main)
      main = f;
  if (!main)
    return llvm::createStringError("no entry function");
  std::vector<Tensor> inputs;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    mlir::DictionaryAttr attrs = main.getArgAttrDict(i);
    std::string variable = textAttr(attrs, "hlo.variable");
    const Tensor *value = variable.empty() ? find(feeds, textAttr(attrs, "hlo.tensor")) : find(variables, variable);
    if (!value && variable.empty())
      value = find(feeds, textAttr(attrs, "hlo.name"));
    if (!value && variable.empty())
      return llvm::createStringError("input '" + textAttr(attrs, "hlo.name") + "' is not fed");
    inputs.push_back(value ? *value : initialValue(module, variable, main.getArgument(i).getType()));
    if (!inputs.back().valid())
      return llvm::createStringError("variable '" + variable + "' has no value");
  }
  hlo::EvalOptions eval;
  eval.maxBytes = options.maxMemory;
  auto results = hlo::evaluateFunction(main, inputs, eval);
  if (mlir::failed(results))
    return failed();
  std::vector<Tensor> outputs;
  for (unsigned i = 0; i < results->size(); ++i) {
    std::string variable = textAttr(main.getResultAttrDict(i), "hlo.variable");
    if (variable.empty()) {
      outputs.push_back((*results)[i]);
      continue;
    }
    auto slot = std::find_if(variables.begin(), variables.end(), [&](auto &v) { return v.first == variable; });
    if (slot == variables.end())
      variables.emplace_back(variable, (*results)[i]);
    else
      slot->second = (*results)[i];
  }
  // evaluated constants lie in the context, which ends here
  for (Tensor &tensor : outputs)
    tensor = tensor.clone();
  for (auto &[name, tensor] : variables)
    tensor = tensor.clone();
  return outputs;
}

} // namespace lathe::cli
