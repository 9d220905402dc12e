// What benchmarks of models share: a graph compiled in this process for given inputs, and these in its order.
#ifndef LATHE_BENCH_BENCH_MODEL_H
#define LATHE_BENCH_BENCH_MODEL_H

#include "base/Npz.h"
#include "compiler/driver/Compiler.h"
#include "compiler/jit/Jit.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

namespace lathe {

inline int die(const std::string &text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  return 1;
}

inline std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

/// The graph for this processor and inputs of these sizes; diagnostics of one that cannot be imported are
/// printed.
inline llvm::Expected<std::shared_ptr<LoadedModule>>
compileModel(const std::string &graph, const NamedTensors &given, CompilerOptions options = {}) {
  for (const auto &[name, tensor] : given) {
    InputSpec input;
    input.name = name;
    input.dims.emplace();
    for (int64_t d : tensor.dims()) {
      DimSpec dim;
      dim.size = d;
      input.dims->push_back(dim);
    }
    options.inputs.push_back(std::move(input));
  }
  options.cpu = "host";
  options.symbolPrefix = "bench_model";
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Compiler compiler(context, options);
  if (mlir::failed(compiler.importBytes(graph)))
    return llvm::createStringError("no model");
  auto artifact = compiler.emit();
  if (!artifact)
    return artifact.takeError();
  return loadObject(artifact->object, artifact->prefix);
}

/// What is given for the inputs of the first entry, by their names or their tensors'.
inline llvm::Expected<std::vector<Tensor>> inputsOf(const LoadedModule &module, const NamedTensors &given) {
  const lathe_entry &entry = *module.abi().entries[0];
  std::vector<Tensor> inputs;
  for (int i = 0; i < entry.num_inputs; ++i) {
    auto it = std::find_if(given.begin(), given.end(), [&](auto &p) {
      return p.first == entry.inputs[i]->name || p.first == entry.inputs[i]->tensor;
    });
    if (it == given.end())
      return llvm::createStringError(std::string("nothing for input ") + entry.inputs[i]->name);
    inputs.push_back(it->second);
  }
  return inputs;
}

} // namespace lathe

#endif
