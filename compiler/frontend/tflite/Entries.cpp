// Which subgraphs become entries, and under which names their inputs and outputs are known.
#include "compiler/frontend/tflite/Translator.h"
#include "graph/tflite/NodeTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using import::Problems;

class Planner {
public:
  Planner(const ModelFile &file, const ImportOptions &options, Problems &problems)
      : file(file), options(options), problems(problems) {}
  FailureOr<std::vector<EntryPlan>> run();

private:
  EntryPlan ofSubgraph(unsigned index, const tfl::SignatureDef *signature);
  void applyInputs(EntryPlan &plan);
  void applyOutputs(EntryPlan &plan);
  bool names(const EntryPlan &plan, const EntryPlan::Port &port, StringRef name) {
    StringRef tensor = file.tensor(plan.subgraph, port.tensor).name;
    return port.name == name || tensor == name || (tensor.ends_with(":0") && tensor.drop_back(2) == name);
  }

  const ModelFile &file;
  const ImportOptions &options;
  Problems &problems;
};

EntryPlan Planner::ofSubgraph(unsigned index, const tfl::SignatureDef *signature) {
  EntryPlan plan;
  plan.name = "main";
  plan.subgraph = index;
  const tfl::SubGraph &graph = file.subgraph(index);
  auto ports = [&](const flatbuffers::Vector<int32_t> *ids,
                   const flatbuffers::Vector<flatbuffers::Offset<tfl::TensorMap>> *maps, std::vector<EntryPlan::Port> &list) {
    if (!ids)
      return;
    llvm::StringSet<> taken;
    for (int32_t t : *ids) {
      EntryPlan::Port port;
      port.tensor = t;
      port.name = file.tensor(index, t).name.str();
      if (maps)
        for (const tfl::TensorMap *m : *maps)
          if (int64_t(m->tensor_index()) == t)
            port.name = m->name()->str();
      // names are what callers go by: make each its own
      if (port.name.empty())
        port.name = "tensor_" + std::to_string(t);
      port.name = import::printable(port.name);
      for (int n = 1; !taken.insert(port.name).second; ++n)
        port.name += "_" + std::to_string(n);
      port.dims = file.tensor(index, t).dims;
      list.push_back(port);
    }
  };
  ports(graph.inputs(), signature ? signature->inputs() : nullptr, plan.inputs);
  ports(graph.outputs(), signature ? signature->outputs() : nullptr, plan.outputs);
  return plan;
}

void Planner::applyInputs(EntryPlan &plan) {
  for (EntryPlan::Port &port : plan.inputs) {
    if (options.unknownLeading && !port.dims.empty())
      port.dims[0] = -1;
    for (auto &[name, value] : options.constantFeeds)
      if (names(plan, port, name))
        port.value = value;
    for (auto &[name, dims] : options.inputs) {
      if (!dims || !names(plan, port, name))
        continue;
      port.dims.assign(dims->begin(), dims->end());
    }
    for (auto &[name, fed] : options.fedShapes)
      if (names(plan, port, name) && fed.size() == port.dims.size())
        for (auto [size, known] : llvm::zip(port.dims, fed))
          size = size < 0 ? known : size;
  }
}

void Planner::applyOutputs(EntryPlan &plan) {
  if (options.outputs.empty())
    return;
  std::vector<EntryPlan::Port> chosen;
  for (const std::string &name : options.outputs) {
    auto at = llvm::find_if(plan.outputs, [&](const EntryPlan::Port &p) { return names(plan, p, name); });
    if (at == plan.outputs.end())
      problems.add(Twine("there is no output '") + import::printable(name) + "'");
    else
      chosen.push_back(*at);
  }
  plan.outputs = chosen;
}

FailureOr<std::vector<EntryPlan>> Planner::run() {
  if (!options.entries.empty())
    problems.add("--entry: not for a TensorFlow Lite model, whose signatures are its entries");
  if (!options.targets.empty())
    problems.add("--target: not for a TensorFlow Lite model");
  SmallVector<const tfl::SignatureDef *> signatures;
  std::string available;
  if (auto *all = file.model().signature_defs())
    for (const tfl::SignatureDef *s : *all) {
      StringRef key = s->signature_key() ? StringRef(s->signature_key()->string_view()) : StringRef();
      available += (available.empty() ? "" : ", ") + import::printable(key);
      if (options.signature.empty() || key == options.signature)
        signatures.push_back(s);
    }
  if (!options.signature.empty() && signatures.empty())
    problems.add(Twine("no signature '") + import::printable(options.signature) +
                 (available.empty() ? "', there are none" : "', there are: " + available));
  if (problems.any())
    return failure();
  std::vector<EntryPlan> plans;
  if (signatures.empty())
    plans.push_back(ofSubgraph(0, nullptr));
  llvm::StringSet<> taken;
  for (const tfl::SignatureDef *s : signatures) {
    plans.push_back(ofSubgraph(s->subgraph_index(), s));
    if (signatures.size() == 1)
      continue;
    // the name of a C symbol
    std::string &name = plans.back().name;
    name = s->signature_key() ? s->signature_key()->str() : "";
    for (char &ch : name)
      ch = llvm::isAlnum(ch) ? ch : '_';
    if (name.empty() || llvm::isDigit(name[0]))
      name = "entry_" + name;
    for (int n = 1; !taken.insert(name).second; ++n)
      name += "_" + std::to_string(n);
  }
  for (auto &[name, dims] : options.inputs)
    if (llvm::none_of(plans, [&, &name = name](EntryPlan &plan) {
          return llvm::any_of(plan.inputs, [&](EntryPlan::Port &p) { return names(plan, p, name); });
        }))
      problems.add(Twine("there is no input '") + import::printable(name) + "'");
  for (EntryPlan &plan : plans) {
    applyInputs(plan);
    applyOutputs(plan);
  }
  if (problems.any())
    return failure();
  return plans;
}

} // namespace

FailureOr<std::vector<EntryPlan>> planEntries(const ModelFile &file, const ImportOptions &options, Problems &problems) {
  return Planner(file, options, problems).run();
}

ImportedModel::EntryInfo describe(const ModelFile &file, const EntryPlan &plan) {
  ImportedModel::EntryInfo info;
  info.name = plan.name;
  auto spec = [&](const EntryPlan::Port &port) {
    const TensorInfo &tensor = file.tensor(plan.subgraph, port.tensor);
    TensorSpec s;
    s.name = port.name;
    s.tensor = import::printable(tensor.name);
    s.dtype = dtypeOf(tensor.type);
    if (s.dtype == DType::Invalid) // strings too have a name to be shown by
      s.dtype = tflgraph::dtypeOf(tensor.type);
    s.dims.emplace(port.dims.begin(), port.dims.end());
    s.scales.assign(tensor.quantization.scales.begin(), tensor.quantization.scales.end());
    s.zeroPoints.assign(tensor.quantization.zeroPoints.begin(), tensor.quantization.zeroPoints.end());
    s.quantizedDim = tensor.quantization.dimension;
    return s;
  };
  for (const EntryPlan::Port &p : plan.inputs)
    if (!p.value)
      info.inputs.push_back(spec(p));
  for (const EntryPlan::Port &p : plan.outputs)
    info.outputs.push_back(spec(p));
  return info;
}

} // namespace lathe::tflite
