//===- Import.cpp - TensorFlow models into the graph dialect --------------===//
//
// file → protobuf (ReadModel) → indexed bodies (Library) → entries (Select) → what they need, calls inlined (Flatten)
// → graph dialect (EmitGraph, with values from Variables). A step with problems ends the import after reporting all
// of its own.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"

#include "compiler/import/EmitGraph.h"
#include "compiler/import/Select.h"
#include "dialects/graph/Graph.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe {

using namespace import;

/// A gradient of a function that has one of its own is a call of that: SymbolicGradient{f} becomes PartitionedCall.
static void useCustomGradients(tf::GraphDef &graph) {
  if (graph.library().gradient().empty())
    return;
  llvm::StringMap<std::string> gradients;
  for (const tf::GradientDef &g : graph.library().gradient())
    gradients[g.function_name()] = g.gradient_func();
  auto replaceIn = [&](auto *nodes) {
    for (tf::NodeDef &node : *nodes) {
      if (node.op() != "SymbolicGradient")
        continue;
      auto f = node.mutable_attr()->find("f");
      if (f == node.mutable_attr()->end() || !f->second.has_func())
        continue;
      auto custom = gradients.find(f->second.func().name());
      if (custom == gradients.end())
        continue;
      node.set_op("PartitionedCall");
      f->second.mutable_func()->set_name(custom->second);
    }
  };
  replaceIn(graph.mutable_node());
  for (tf::FunctionDef &function : *graph.mutable_library()->mutable_function())
    replaceIn(function.mutable_node_def());
}

static FailureOr<ImportedModel> importParsed(MLIRContext *context, Model model, const ImportOptions &options,
                                             Problems &problems) {
  context->getOrLoadDialect<graph::GraphDialect>();
  struct Finish {
    Problems &problems;
    ~Finish() { problems.finish(); }
  } finish{problems};
  if (!model.meta || problems.any())
    return failure();

  useCustomGradients(*model.meta->mutable_graph_def());
  Library library(model.graph(), problems);
  if (!library.getMain() || problems.any())
    return failure();
  ImportedModel result;
  Flattener flattener(library, problems, options.maxNodes);
  bool usesSignature = false;
  std::vector<EntryPlan> plans =
      selectEntries(model, library, flattener, options, problems, result.notes, usesSignature);
  if (problems.any())
    return failure();

  std::vector<std::unique_ptr<FlatGraph>> entries;
  for (const EntryPlan &plan : plans) {
    Flattener::EntrySpec spec;
    for (const NamedTensor &input : plan.inputs)
      spec.feeds.push_back(input.at);
    spec.constants = plan.constants;
    for (const NamedTensor &output : plan.outputs)
      spec.outputs.push_back(output.at);
    spec.targets = plan.targets;
    entries.push_back(flattener.flattenEntry(spec));
  }
  flattener.flattenFunctions();
  if (problems.any())
    return failure();

  Checkpoint checkpoint(model, library, problems);
  if (problems.any())
    return failure();
  AttributeReader attributes(context, options.maxBytes, model.meta);
  result.module = ModuleOp::create(UnknownLoc::get(context));
  emitGraphs(*result.module,
             {attributes, checkpoint, problems, options, model.kind == Model::Kind::SavedModel}, plans, entries,
             flattener.functions);
  if (problems.any() || failed(verify(*result.module)))
    return failure();
  for (EntryPlan &plan : plans) {
    ImportedModel::EntryInfo entry;
    entry.name = plan.name;
    for (NamedTensor &input : plan.inputs)
      entry.inputs.push_back(std::move(input.spec));
    for (NamedTensor &output : plan.outputs)
      entry.outputs.push_back(std::move(output.spec));
    result.entries.push_back(std::move(entry));
  }
  result.hasSignature = usesSignature;
  if (!result.notes.empty() && result.notes.back() == '\n')
    result.notes.pop_back();
  return result;
}

FailureOr<ImportedModel> importModel(MLIRContext *context, StringRef path, const ImportOptions &options) {
  Problems problems(context);
  Model model = readModel(path, options, problems);
  if (!options.withInit || !model.meta)
    return importParsed(context, std::move(model), options, problems);
  ImportOptions more = options;
  for (const tf::AssetFileDef &asset : model.meta->asset_file_def()) {
    llvm::SmallString<256> file(path);
    llvm::sys::path::append(file, "assets", asset.filename());
    llvm::sys::fs::make_absolute(file);
    more.constantFeeds.emplace_back(asset.tensor_info().name(), Tensor::fromStrings({}, {file.str().str()}));
  }
  return importParsed(context, std::move(model), more, problems);
}

FailureOr<ImportedModel> importModelBytes(MLIRContext *context, StringRef bytes, StringRef name,
                                          const ImportOptions &options) {
  Problems problems(context);
  return importParsed(context, parseModel(bytes, name, options, problems), options, problems);
}

FailureOr<std::vector<SignatureInfo>> readSignatures(MLIRContext *context, StringRef path,
                                                     const ImportOptions &options) {
  Problems problems(context);
  Model model = readModel(path, options, problems);
  std::vector<SignatureInfo> infos;
  if (model.meta && !problems.any()) {
    Library library(model.graph(), problems);
    Flattener flattener(library, problems, options.maxNodes);
    if (library.getMain())
      infos = listSignatures(model, library, flattener, problems);
  }
  bool failed = !model.meta || problems.any();
  problems.finish();
  if (failed)
    return failure();
  return infos;
}

} // namespace lathe
