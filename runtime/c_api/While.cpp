// Loops: condition and body are described in graphs of their own, which are imported between Enter, Merge, Switch, NextIteration and
// Exit once they are complete.
#include "runtime/c_api/Import.h"

#include "graph/Values.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::c_api;

namespace {

absl::StatusOr<Node *> addTo(TF_Graph &graph, const std::string &op, const std::string &name, std::vector<Endpoint> inputs,
                             const std::function<void(tf::NodeDef &)> &setAttrs = nullptr) {
  graphdef::NodeSpec spec;
  spec.def.set_op(op);
  spec.def.set_name(graph.graph.uniqueName(name));
  spec.inputs = std::move(inputs);
  if (!spec.inputs.empty() && op != "LoopCond")
    (*spec.def.mutable_attr())["T"].set_type(static_cast<tf::DataType>(spec.inputs[0].type()));
  if (setAttrs)
    setAttrs(spec.def);
  return addNode(graph, std::move(spec));
}

/// One of the loop's graphs with its placeholders.
TF_Graph *newPart(TF_Graph &outer, const char *prefix, const std::vector<Endpoint> &inputs, TF_Output *places, absl::Status *status) {
  auto *part = new TF_Graph;
  part->parent = &outer;
  for (size_t i = 0; i < inputs.size() && status->ok(); ++i) {
    auto node = addTo(*part, "Placeholder", absl::StrCat(prefix, i), {}, [&](tf::NodeDef &def) {
      (*def.mutable_attr())["dtype"].set_type(static_cast<tf::DataType>(inputs[i].type()));
      graphdef::encodeShape(outer.shapes.shape(inputs[i]), (*def.mutable_attr())["shape"].mutable_shape());
    });
    *status = node.status();
    if (node.ok())
      places[i] = {operationOf(*node), 0};
  }
  return part;
}

class LoopBuilder {
public:
  LoopBuilder(TF_Graph &graph, const TF_WhileParams &params, std::vector<Endpoint> inputs)
      : graph(graph), params(params), inputs(std::move(inputs)), name(params.name), first(graph.graph.maxId()) {}

  absl::Status run(TF_Output *outputs) {
    absl::Status s = build();
    if (!s.ok()) {
      std::vector<Node *> gone;
      for (int id = first; id < graph.graph.maxId(); ++id)
        if (Node *node = graph.graph.node(id)) {
          gone.push_back(node);
          graph.shapes.remove(node);
        }
      graph.graph.remove(gone);
      return s;
    }
    for (size_t i = 0; i < exits.size(); ++i)
      outputs[i] = {operationOf(exits[i]), 0};
    return s;
  }

private:
  absl::Status add(std::vector<Node *> *to, const char *op, std::vector<Endpoint> from,
                   const std::function<void(tf::NodeDef &)> &setAttrs = nullptr) {
    auto node = addTo(graph, op, absl::StrCat(name, "/", op), std::move(from), setAttrs);
    if (node.ok())
      to->push_back(*node);
    return node.status();
  }

  /// Imports a part with `values` in place of its placeholders; nodes without inputs run after the first of them, which puts them
  /// into the loop.
  absl::Status addPart(TF_Graph &part, const char *prefix, const TF_Output *places, const std::vector<Node *> &values,
                       const std::vector<TF_Output> &wanted, std::vector<Endpoint> *results) {
    TF_ImportGraphDefOptions options;
    options.prefix = absl::StrCat(name, "/", prefix);
    options.uniquifyPrefix = true;
    options.runAfter = {operationOf(values[0])};
    std::map<std::string, bool> isPlace;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string &place = nodeOf(places[i].oper)->name();
      options.inputs[{place, 0}] = {operationOf(values[i]), 0};
      options.controls[place] = operationOf(values[i]);
      isPlace[place] = true;
    }
    for (TF_Output output : wanted) {
      auto e = checkedEndpoint(output, &part, absl::StrCat("the output of the ", prefix));
      if (!e.ok())
        return absl::InvalidArgumentError(e.status().message());
      options.returnOutputs.emplace_back(e->node->name(), e->index);
    }
    std::lock_guard<std::mutex> lock(part.mutex);
    tf::GraphDef all = part.graph.toProto(), def = all;
    def.clear_node();
    for (tf::NodeDef &node : *all.mutable_node())
      if (!isPlace.count(node.name()))
        *def.add_node() = std::move(node);
    TF_ImportGraphDefResults imported;
    if (absl::Status s = importGraph(graph, std::move(def), options, &imported); !s.ok())
      return s;
    for (TF_Output output : imported.outputs)
      results->push_back(endpointOf(output));
    return absl::OkStatus();
  }

  absl::Status build() {
    const size_t n = inputs.size();
    std::vector<Node *> enters, merges, conds, switches, trues, nexts;
    for (Endpoint input : inputs)
      if (absl::Status s = add(&enters, "Enter", {input},
                               [&](tf::NodeDef &def) {
                                 (*def.mutable_attr())["frame_name"].set_s(name);
                                 (*def.mutable_attr())["parallel_iterations"].set_i(10);
                               });
          !s.ok())
        return s;
    // the second input is the back edge, once its value is there
    for (Node *enter : enters)
      if (absl::Status s = add(&merges, "Merge", {{enter, 0}, {enter, 0}}, [](tf::NodeDef &def) { (*def.mutable_attr())["N"].set_i(2); }); !s.ok())
        return s;
    std::vector<Endpoint> cond, bodyResults;
    if (absl::Status s = addPart(*params.cond_graph, "cond", params.cond_inputs, merges, {params.cond_output}, &cond); !s.ok())
      return s;
    if (absl::Status s = add(&conds, "LoopCond", {cond[0]}); !s.ok())
      return s;
    for (Node *merge : merges)
      if (absl::Status s = add(&switches, "Switch", {{merge, 0}, {conds[0], 0}}); !s.ok())
        return s;
    for (Node *node : switches)
      if (absl::Status s = add(&trues, "Identity", {{node, 1}}); !s.ok())
        return s;
    std::vector<TF_Output> wanted(params.body_outputs, params.body_outputs + n);
    if (absl::Status s = addPart(*params.body_graph, "body", params.body_inputs, trues, wanted, &bodyResults); !s.ok())
      return s;
    for (size_t i = 0; i < n; ++i) {
      if (bodyResults[i].type() != inputs[i].type())
        return absl::InvalidArgumentError(absl::StrCat("output ", i, " of the body is of type ", dtypeName(bodyResults[i].type()), ", expected ",
                                                       dtypeName(inputs[i].type())));
      if (absl::Status s = add(&nexts, "NextIteration", {bodyResults[i]}); !s.ok())
        return s;
      if (absl::Status s = graph.graph.setInput(merges[i], 1, {nexts[i], 0}); !s.ok())
        return s;
    }
    for (Node *node : switches)
      if (absl::Status s = add(&exits, "Exit", {{node, 0}}); !s.ok())
        return s;
    return absl::OkStatus();
  }

  TF_Graph &graph;
  const TF_WhileParams &params;
  const std::vector<Endpoint> inputs;
  const std::string name;
  const int first;
  std::vector<Node *> exits;
};

} // namespace

extern "C" {

TF_WhileParams TF_NewWhile(TF_Graph *g, TF_Output *inputs, int ninputs, TF_Status *status) {
  const TF_WhileParams none = {0, nullptr, nullptr, {nullptr, 0}, nullptr, nullptr, nullptr, nullptr};
  if (!present(status, "g, inputs", g, inputs))
    return none;
  if (ninputs <= 0) {
    setInvalid(status, "a loop has to have at least one input");
    return none;
  }
  std::lock_guard<std::mutex> lock(g->mutex);
  std::vector<Endpoint> values;
  for (int i = 0; i < ninputs; ++i) {
    auto e = checkedEndpoint(inputs[i], g, absl::StrCat("input ", i));
    if (!e.ok()) {
      setInvalid(status, std::string(e.status().message()));
      return none;
    }
    values.push_back(*e);
  }
  absl::Status s;
  auto *condInputs = new TF_Output[ninputs], *bodyInputs = new TF_Output[ninputs], *bodyOutputs = new TF_Output[ninputs];
  std::fill(bodyOutputs, bodyOutputs + ninputs, TF_Output{nullptr, -1});
  TF_WhileParams params = {ninputs,       newPart(*g, "cond_input", values, condInputs, &s), condInputs, {nullptr, -1},
                           newPart(*g, "body_input", values, bodyInputs, &s), bodyInputs, bodyOutputs, nullptr};
  params.cond_graph->loopInputs = values;
  set(status, s);
  if (s.ok())
    return params;
  TF_AbortWhile(&params);
  return none;
}

void TF_FinishWhile(const TF_WhileParams *params, TF_Status *status, TF_Output *outputs) {
  if (!present(status, "params, outputs, or the loop's graphs", params, outputs, params ? params->cond_graph : nullptr,
               params ? params->body_graph : nullptr)) {
    TF_AbortWhile(params);
    return;
  }
  TF_Graph *graph = params->cond_graph->parent;
  absl::Status s;
  if (!params->name || !*params->name)
    s = absl::InvalidArgumentError("the loop has no name");
  else if (!params->cond_output.oper)
    s = absl::InvalidArgumentError("the output of the condition is not set");
  for (int i = 0; s.ok() && i < params->ninputs; ++i)
    if (!params->body_outputs[i].oper)
      s = absl::InvalidArgumentError(absl::StrCat("output ", i, " of the body is not set"));
  if (s.ok()) {
    std::lock_guard<std::mutex> lock(graph->mutex);
    s = LoopBuilder(*graph, *params, params->cond_graph->loopInputs).run(outputs);
  }
  set(status, s);
  TF_AbortWhile(params);
}

void TF_AbortWhile(const TF_WhileParams *params) {
  if (!params)
    return;
  TF_DeleteGraph(params->cond_graph);
  TF_DeleteGraph(params->body_graph);
  delete[] params->cond_inputs;
  delete[] params->body_inputs;
  delete[] params->body_outputs;
}

} // extern "C"
