// GraphDefs brought into a graph: renamed, with inputs taken from what is there.
//
// The GraphDef is rewritten to one that names everything as the graph will, and added whole or not at all.
#include "runtime/c_api/Import.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>

using namespace lathe;
using namespace lathe::c_api;

namespace {

absl::Status refuse(absl::string_view message) { return absl::InvalidArgumentError(message); }

bool isValidPrefix(const std::string &prefix) {
  for (char c : prefix)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == '/' ||
          c == '\\' || c == '>'))
      return false;
  return prefix.empty() || (prefix[0] != '-' && prefix[0] != '/' && prefix[0] != '\\' && prefix[0] != '>');
}

class Importer {
public:
  Importer(TF_Graph &graph, const TF_ImportGraphDefOptions &options, tf::GraphDef def)
      : graph(graph), options(options), def(std::move(def)) {}

  absl::Status run(TF_ImportGraphDefResults *results) {
    for (auto step : {&Importer::checkOptions, &Importer::nameNodes, &Importer::rewriteNodes})
      if (absl::Status s = (this->*step)(); !s.ok())
        return s;
    if (absl::Status s = checkReturns(); !s.ok())
      return s;
    const tf::VersionDef before = graph.graph.versions();
    const bool hadNodes = graph.graph.numNodes() > 0;
    if (absl::Status s = addNodes(graph, def); !s.ok())
      return s;
    mergeVersions(before, hadNodes);
    fillResults(results);
    return absl::OkStatus();
  }

private:
  absl::Status checkOptions() {
    if (def.versions().min_consumer() > graphdef::kGraphVersion)
      return refuse(absl::StrCat("the GraphDef needs version ", def.versions().min_consumer(), ", this is ", graphdef::kGraphVersion));
    for (int bad : def.versions().bad_consumers())
      if (bad == graphdef::kGraphVersion)
        return refuse(absl::StrCat("the GraphDef excludes version ", graphdef::kGraphVersion));
    prefix = options.prefix;
    if (!isValidPrefix(prefix))
      return refuse(absl::StrCat("the prefix '", prefix, "' would make no valid names"));
    if (!prefix.empty() && prefix.back() == '/')
      prefix.pop_back();
    if (!prefix.empty() && options.uniquifyPrefix)
      prefix = freeName(prefix);
    for (auto &[from, to] : options.inputs) {
      if (from.second < 0)
        continue;
      auto checked = checkedEndpoint(to, &graph, absl::StrCat("what input '", from.first, "' is mapped to"));
      if (!checked.ok())
        return refuse(checked.status().message());
    }
    for (auto &[from, to] : options.controls)
      if (!to || graphOf(nodeOf(to)) != &graph)
        return refuse(absl::StrCat("what control input '", from, "' is mapped to is not in the graph"));
    for (TF_Operation *op : options.runAfter)
      if (!op || graphOf(nodeOf(op)) != &graph)
        return refuse("a control dependency is not in the graph");
    return absl::OkStatus();
  }

  /// A name that neither a node nor a scope of the graph has, nor one that was given already.
  std::string freeName(const std::string &base) {
    std::string name = base;
    for (int i = 1; isTaken(name); ++i)
      name = absl::StrCat(base, "_", i);
    return name;
  }

  bool isTaken(const std::string &name) {
    if (graph.graph.find(name) || given.count(name))
      return true;
    if (scopes.empty() && graph.graph.numNodes() > 0)
      for (const Node *node : graph.graph.nodes())
        for (size_t slash = node->name().find('/'); slash != std::string::npos; slash = node->name().find('/', slash + 1))
          scopes.insert(node->name().substr(0, slash));
    return scopes.count(name) > 0;
  }

  absl::Status nameNodes() {
    std::set<std::string> own;
    for (const tf::NodeDef &node : def.node())
      if (!own.insert(node.name()).second)
        return refuse(absl::StrCat("node '", node.name(), "' is not unique in the GraphDef"));
    for (const tf::NodeDef &node : def.node()) {
      std::string name = prefix.empty() ? node.name() : absl::StrCat(prefix, "/", node.name());
      if (options.uniquifyNames && (prefix.empty() || !options.uniquifyPrefix)) {
        std::string base = name;
        for (int i = 1; isTaken(name) || (i > 1 && own.count(name)); ++i)
          name = absl::StrCat(base, "_", i);
      } else if (graph.graph.find(name)) {
        return refuse(absl::StrCat("node name '", name, "' already exists in the graph"));
      }
      given.insert(name);
      names[node.name()] = name;
    }
    return absl::OkStatus();
  }

  absl::Status rewriteNodes() {
    for (tf::NodeDef &node : *def.mutable_node()) {
      bool inherits = false; // has an input that runs after what is asked for
      google::protobuf::RepeatedPtrField<std::string> inputs, controls;
      for (const std::string &input : node.input()) {
        std::string text;
        bool isOwn = false;
        if (absl::Status s = rewriteInput(node, input, &text, &isOwn); !s.ok())
          return s;
        inherits |= isOwn;
        (text[0] == '^' ? controls : inputs).Add(std::move(text));
      }
      if (!inherits)
        for (TF_Operation *op : options.runAfter)
          controls.Add(absl::StrCat("^", nodeOf(op)->name()));
      inputs.MergeFrom(controls);
      node.mutable_input()->Swap(&inputs);
      node.set_name(names[node.name()]);
      if (node.device().empty())
        node.set_device(options.device);
      if (auto it = node.mutable_attr()->find("_class"); it != node.mutable_attr()->end())
        for (std::string &s : *it->second.mutable_list()->mutable_s())
          if (absl::StartsWith(s, "loc:@"))
            if (auto name = names.find(s.substr(5)); name != names.end())
              s = absl::StrCat("loc:@", name->second);
      node.mutable_attr()->erase("_output_shapes"); // what was inferred elsewhere
    }
    return absl::OkStatus();
  }

  absl::Status rewriteInput(const tf::NodeDef &node, const std::string &input, std::string *text, bool *isOwn) {
    graphdef::TensorName name = graphdef::parseTensorName(input);
    if (name.port < 0) {
      if (auto it = options.controls.find(name.node); it != options.controls.end()) {
        usedControls.insert(name.node);
        *text = absl::StrCat("^", nodeOf(it->second)->name());
        return absl::OkStatus();
      }
    } else if (auto it = options.inputs.find({name.node, name.port}); it != options.inputs.end()) {
      usedInputs.insert(it->first);
      *text = endpointOf(it->second).name();
      return absl::OkStatus();
    }
    auto own = names.find(name.node);
    if (own == names.end())
      return graphdef::atNode(node.name(), node.op(), refuse(absl::StrCat("unknown input node '", input, "'")));
    *isOwn = true;
    *text = name.port < 0 ? absl::StrCat("^", own->second) : name.port == 0 ? own->second : absl::StrCat(own->second, ":", name.port);
    return absl::OkStatus();
  }

  absl::Status checkReturns() {
    for (auto &[name, index] : options.returnOutputs)
      if (index < 0 || (!options.inputs.count({name, index}) && !names.count(name)))
        return refuse(absl::StrCat("requested return tensor '", name, ":", index, "' is not in the GraphDef"));
      else if (auto own = names.find(name); own != names.end() && !options.inputs.count({name, index}))
        returned.emplace_back(own->second, index);
    for (const std::string &name : options.returnOperations)
      if (!names.count(name))
        return refuse(absl::StrCat("requested return node '", name, "' is not in the GraphDef"));
    return outputsExist();
  }

  /// How many outputs a node will have is known from its op; nothing must be added when one is asked for that is not there.
  absl::Status outputsExist() {
    if (returned.empty())
      return absl::OkStatus();
    std::map<std::string, const tf::NodeDef *> byName;
    for (const tf::NodeDef &node : def.node())
      byName[node.name()] = &node;
    for (auto &[name, index] : returned) {
      const tf::NodeDef &node = *byName[name];
      const ops::OpInfo *op = graph.graph.findOp(node.op());
      if (!op)
        continue; // adding it will say so
      auto types = ops::resolveTypes(*op, op->outputs, graphdef::AttrLookup(node.attr()));
      if (types.ok() && index >= static_cast<int>(types->size()))
        return refuse(absl::StrCat("invalid return output ", index, " of node '", name, "', which has ", types->size()));
    }
    return absl::OkStatus();
  }

  /// The graph works where all that was put into it does.
  void mergeVersions(const tf::VersionDef &before, bool hadNodes) {
    tf::VersionDef &now = graph.graph.versions();
    if (!hadNodes)
      return;
    now = before;
    if (def.has_versions()) {
      now.set_producer(std::min(before.producer(), def.versions().producer()));
      now.set_min_consumer(std::max(before.min_consumer(), def.versions().min_consumer()));
      std::set<int> bad(before.bad_consumers().begin(), before.bad_consumers().end());
      bad.insert(def.versions().bad_consumers().begin(), def.versions().bad_consumers().end());
      now.clear_bad_consumers();
      for (int version : bad)
        now.add_bad_consumers(version);
    }
  }

  void fillResults(TF_ImportGraphDefResults *results) {
    for (auto &[name, index] : options.returnOutputs) {
      auto mapped = options.inputs.find({name, index});
      if (mapped != options.inputs.end())
        usedInputs.insert(mapped->first);
      results->outputs.push_back(mapped != options.inputs.end() ? mapped->second
                                                                : TF_Output{operationOf(graph.graph.find(names[name])), index});
    }
    for (const std::string &name : options.returnOperations)
      results->operations.push_back(operationOf(graph.graph.find(names[name])));
    for (auto &[from, to] : options.inputs)
      if (!usedInputs.count(from) && !names.count(from.first))
        results->addMissing(from.first, from.second);
    for (auto &[from, to] : options.controls)
      if (!usedControls.count(from) && !names.count(from))
        results->addMissing(from, -1);
  }

  TF_Graph &graph;
  const TF_ImportGraphDefOptions &options;
  tf::GraphDef def;
  std::string prefix;
  std::set<std::string> given, scopes;
  std::map<std::string, std::string> names; ///< from the GraphDef's to the graph's
  std::vector<std::pair<std::string, int>> returned;
  std::set<std::pair<std::string, int>> usedInputs;
  std::set<std::string> usedControls;
};

} // namespace

namespace lathe::c_api {

absl::Status importGraph(TF_Graph &graph, tf::GraphDef def, const TF_ImportGraphDefOptions &options, TF_ImportGraphDefResults *results) {
  return Importer(graph, options, std::move(def)).run(results);
}

} // namespace lathe::c_api

extern "C" {

TF_ImportGraphDefOptions *TF_NewImportGraphDefOptions(void) { return new TF_ImportGraphDefOptions; }
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions *opts) { delete opts; }

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions *opts, const char *prefix) {
  if (opts)
    opts->prefix = textOf(prefix);
}
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions *opts, const char *device) {
  if (opts)
    opts->device = textOf(device);
}
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions *opts, unsigned char uniquify_names) {
  if (opts)
    opts->uniquifyNames = uniquify_names != 0;
}
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions *opts, unsigned char uniquify_prefix) {
  if (opts)
    opts->uniquifyPrefix = uniquify_prefix != 0;
}
void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions *opts, const char *src_name, int src_index, TF_Output dst) {
  if (!opts || !src_name)
    return;
  if (src_index < 0)
    opts->controls[src_name] = dst.oper;
  else
    opts->inputs[{src_name, src_index}] = dst;
}
void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions *opts, const char *src_name, TF_Operation *dst) {
  if (opts && src_name)
    opts->controls[src_name] = dst;
}
void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions *opts, TF_Operation *oper) {
  if (opts)
    opts->runAfter.push_back(oper);
}
void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions *opts, const char *oper_name, int index) {
  if (opts && oper_name)
    opts->returnOutputs.emplace_back(oper_name, index);
}
int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions *opts) {
  return opts ? static_cast<int>(opts->returnOutputs.size()) : 0;
}
void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions *opts, const char *oper_name) {
  if (opts && oper_name)
    opts->returnOperations.push_back(oper_name);
}
int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions *opts) {
  return opts ? static_cast<int>(opts->returnOperations.size()) : 0;
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults *results, int *num_outputs, TF_Output **outputs) {
  if (num_outputs)
    *num_outputs = results ? static_cast<int>(results->outputs.size()) : 0;
  if (outputs)
    *outputs = results ? results->outputs.data() : nullptr;
}
void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults *results, int *num_opers, TF_Operation ***opers) {
  if (num_opers)
    *num_opers = results ? static_cast<int>(results->operations.size()) : 0;
  if (opers)
    *opers = results ? results->operations.data() : nullptr;
}
void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults *results, int *num_missing_unused_input_mappings,
                                                        const char ***src_names, int **src_indexes) {
  if (num_missing_unused_input_mappings)
    *num_missing_unused_input_mappings = results ? static_cast<int>(results->missing.size()) : 0;
  if (src_names)
    *src_names = results ? results->missing.data() : nullptr;
  if (src_indexes)
    *src_indexes = results ? results->missingIndexes.data() : nullptr;
}
void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults *results) { delete results; }

TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResults(TF_Graph *graph, const TF_Buffer *graph_def,
                                                            const TF_ImportGraphDefOptions *options, TF_Status *status) {
  if (!present(status, "graph, graph_def", graph, graph_def))
    return nullptr;
  tf::GraphDef def;
  if (!parseMessage(graph_def->data, graph_def->length, "GraphDef", &def, status))
    return nullptr;
  static const TF_ImportGraphDefOptions defaults;
  auto results = std::make_unique<TF_ImportGraphDefResults>();
  std::lock_guard<std::mutex> lock(graph->mutex);
  absl::Status s = importGraph(*graph, std::move(def), options ? *options : defaults, results.get());
  set(status, s);
  return s.ok() ? results.release() : nullptr;
}

TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResultsNoSerialization(TF_Graph *, const TF_Buffer *, const TF_ImportGraphDefOptions *,
                                                                           TF_Status *status) {
  setUnimplemented(status, "a GraphDef of another C++ library cannot be read; serialize it");
  return nullptr;
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph *graph, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options,
                                             TF_Output *return_outputs, int num_return_outputs, TF_Status *status) {
  if (num_return_outputs != TF_ImportGraphDefOptionsNumReturnOutputs(options))
    return setInvalid(status, absl::StrCat("room for ", num_return_outputs, " outputs, expected ", TF_ImportGraphDefOptionsNumReturnOutputs(options)));
  if (num_return_outputs > 0 && !return_outputs)
    return setInvalid(status, "no place for the outputs");
  std::unique_ptr<TF_ImportGraphDefResults> results(TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
  if (results)
    std::copy(results->outputs.begin(), results->outputs.end(), return_outputs);
}

void TF_GraphImportGraphDef(TF_Graph *graph, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options, TF_Status *status) {
  TF_DeleteImportGraphDefResults(TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
}

} // extern "C"
