// Loops of the first kind as While: gradients are those of While. What lies between Merge and LoopCond becomes its condition, what lies
// between Switch and NextIteration its body, and each Exit reads the While from then on. The loop's own nodes stay where they are, since
// callers may hold them; nothing runs them any more.
#include "graph/gradients/Bodies.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cctype>

namespace lathe::graphdef {
namespace {

class Loop {
public:
  Loop(Graph &graph, const std::string &frame, const std::vector<Node *> &enters) : graph(graph), frame(frame), enters(enters) {}

  /// Finds the parts, and which of the `live` loops lie inside. UNIMPLEMENTED where the loop has none of the forms that loops are
  /// written in.
  absl::Status find(const std::map<std::string, std::vector<Node *>> &live);
  const std::set<std::string> &inner() const { return innerFrames; }
  absl::Status lift();

private:
  struct Variable {
    Node *enter, *merge, *next;
    Node *choice = nullptr; ///< the Switch; null where only the condition reads it
    std::vector<Node *> exits;
  };

  absl::Status findVariable(Node *enter);
  std::vector<bool> between(const std::vector<Endpoint> &ends);
  absl::StatusOr<std::string> write(const char *part, const std::vector<Endpoint> &results, const std::vector<bool> &which);

  Graph &graph;
  const std::string frame;
  const std::vector<Node *> enters;
  std::vector<Variable> variables;
  std::vector<Node *> fixed; ///< Enter nodes of values that are the same in each iteration
  Node *cond = nullptr;      ///< the LoopCond
  std::set<std::string> innerFrames;
};

absl::Status Loop::findVariable(Node *enter) {
  Variable v{enter, nullptr, nullptr, nullptr, {}};
  for (const Use &use : enter->uses(0))
    if (use.node->op() == "Merge" && use.node->numInputs() == 2 && use.node->input(1 - use.index).node->op() == "NextIteration")
      v.merge = use.node;
  if (!v.merge) {
    fixed.push_back(enter);
    return absl::OkStatus();
  }
  if (enter->uses(0).size() != 1)
    return atNode(enter->name(), enter->op(), absl::UnimplementedError("is read beside its Merge"));
  v.next = v.merge->input(v.merge->input(0).node == enter ? 1 : 0).node;
  for (const Use &use : v.merge->uses(0)) {
    if (use.node->op() != "Switch" || use.index != 0 || use.node->input(1).node->op() != "LoopCond")
      continue;
    v.choice = use.node;
    if (cond && cond != use.node->input(1).node)
      return atNode(v.choice->name(), v.choice->op(), absl::UnimplementedError("the loop has several conditions"));
    cond = use.node->input(1).node;
    for (const Use &exit : v.choice->uses(0))
      if (exit.node->op() == "Exit")
        v.exits.push_back(exit.node);
  }
  variables.push_back(std::move(v));
  return absl::OkStatus();
}

absl::Status Loop::find(const std::map<std::string, std::vector<Node *>> &live) {
  for (Node *enter : enters)
    if (absl::Status s = findVariable(enter); !s.ok())
      return s;
  if (!cond || variables.empty())
    return atNode(enters.front()->name(), enters.front()->op(), absl::UnimplementedError("no condition was found of its loop"));
  // inner loops have their Enter behind one of ours
  std::vector<bool> seen(graph.maxId(), false);
  std::vector<Node *> work = enters;
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    auto follow = [&](Node *user) {
      if (seen[user->id()] || user->op() == "Exit")
        return;
      seen[user->id()] = true;
      if (user->op() == "Enter" && live.count(user->stringAttr("frame_name")))
        innerFrames.insert(user->stringAttr("frame_name"));
      work.push_back(user);
    };
    for (int i = 0; i < node->numOutputs(); ++i)
      for (const Use &use : node->uses(i))
        follow(use.node);
    for (Node *user : node->controlUsers())
      follow(user);
  }
  return absl::OkStatus();
}

/// What the ends depend on inside of the loop, by node id.
std::vector<bool> Loop::between(const std::vector<Endpoint> &ends) {
  std::vector<bool> in(graph.maxId(), false), edge(graph.maxId(), false);
  for (const Node *enter : enters)
    edge[enter->id()] = true;
  for (const Variable &v : variables) {
    edge[v.merge->id()] = true;
    if (v.choice)
      edge[v.choice->id()] = true;
  }
  std::vector<Node *> work;
  auto need = [&](Node *node) {
    if (!in[node->id()] && !edge[node->id()] && node != cond) {
      in[node->id()] = true;
      work.push_back(node);
    }
  };
  for (const Endpoint &e : ends)
    need(e.node);
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    for (const Endpoint &e : node->inputs())
      need(e.node);
    for (Node *control : node->controls())
      need(control);
  }
  return in;
}

absl::StatusOr<std::string> Loop::write(const char *part, const std::vector<Endpoint> &results, const std::vector<bool> &which) {
  FunctionWriter writer(graph.sharedLibrary());
  std::map<Endpoint, Endpoint> known;
  for (const Variable &v : variables) {
    Endpoint arg = writer.addArg(v.merge->outputType(0), absl::StrCat("variable_", writer.body.args.size()));
    known[v.merge->output(0)] = arg;
    if (v.choice)
      known[v.choice->output(1)] = arg;
  }
  std::vector<Endpoint> constants;
  for (Node *enter : fixed) {
    constants.push_back(writer.addArg(enter->outputType(0), absl::StrCat("fixed_", writer.body.args.size())));
    known[enter->output(0)] = constants.back();
  }
  if (absl::Status s = copyNodes(graph, which, writer.graph(), known); !s.ok())
    return s;
  for (const Endpoint &e : results) {
    auto it = known.find(e);
    if (it == known.end())
      return atNode(e.node->name(), e.node->op(), absl::UnimplementedError("lies outside of the loop that it ends"));
    writer.addResult(it->second);
  }
  if (results.size() > 1 || *part == 'b')
    for (const Endpoint &e : constants)
      writer.addResult(e);
  std::string name = frame;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return writer.finish(absl::StrCat("loop_", name, "_", part));
}

absl::Status Loop::lift() {
  std::vector<Endpoint> nexts;
  for (const Variable &v : variables)
    nexts.push_back(v.next->input(0));
  std::vector<bool> inCond = between({cond->input(0)}), inBody = between(nexts);
  for (Node *node : graph.nodes())
    if (inCond[node->id()] && inBody[node->id()] && node->info().isStateful)
      return atNode(node->name(), node->op(), absl::UnimplementedError("has effects, and both the loop's condition and its body need it"));
  auto condition = write("cond", {cond->input(0)}, inCond);
  if (!condition.ok())
    return condition.status();
  auto body = write("body", nexts, inBody);
  if (!body.ok())
    return body.status();
  NodeSpec spec;
  spec.def.set_name(graph.uniqueName(absl::StrCat(variables.front().enter->name(), "_While")));
  spec.def.set_op("While");
  spec.def.set_device(enters.front()->device());
  std::vector<DType> types;
  auto add = [&](Node *enter) {
    spec.inputs.push_back(enter->input(0));
    types.push_back(enter->outputType(0));
    for (Node *control : enter->controls())
      if (std::find(spec.controls.begin(), spec.controls.end(), control) == spec.controls.end())
        spec.controls.push_back(control);
  };
  for (const Variable &v : variables)
    add(v.enter);
  for (Node *enter : fixed)
    add(enter);
  auto &attrs = *spec.def.mutable_attr();
  attrs["T"] = typesAttr(types);
  attrs["cond"] = functionAttr(*condition);
  attrs["body"] = functionAttr(*body);
  attrs["parallel_iterations"].set_i(std::max<int64_t>(1, enters.front()->intAttr("parallel_iterations")));
  auto loop = graph.add(std::move(spec));
  if (!loop.ok())
    return loop.status();
  for (size_t i = 0; i < variables.size(); ++i)
    for (Node *exit : variables[i].exits) {
      NodeSpec identity;
      identity.def.set_op("Identity");
      identity.def.set_device(exit->device());
      (*identity.def.mutable_attr())["T"].set_type(static_cast<tf::DataType>(exit->outputType(0)));
      identity.inputs = {(*loop)->output(static_cast<int>(i))};
      for (Node *control : exit->controls())
        identity.controls.push_back(control);
      if (absl::Status s = graph.change(exit, std::move(identity)); !s.ok())
        return s;
    }
  return absl::OkStatus();
}

/// By frame, the Enter nodes of loops that something is still read of.
std::map<std::string, std::vector<Node *>> liveLoops(const Graph &graph) {
  std::map<std::string, std::vector<Node *>> frames;
  std::set<std::string> live;
  for (Node *node : graph.nodes()) {
    if (node->op() == "Enter")
      frames[node->stringAttr("frame_name")].push_back(node);
    if (node->op() != "Exit" || node->input(0).node->op() != "Switch")
      continue;
    Node *merge = node->input(0).node->input(0).node;
    for (const Endpoint &e : merge->inputs())
      if (e.node->op() == "Enter")
        live.insert(e.node->stringAttr("frame_name"));
  }
  for (auto it = frames.begin(); it != frames.end();)
    it = live.count(it->first) ? std::next(it) : frames.erase(it);
  return frames;
}

} // namespace

absl::Status liftLoops(Graph &graph, const std::vector<bool> &involved) {
  std::set<std::string> wanted;
  for (const Node *node : graph.nodes())
    if (node->op() == "Enter" && node->id() < static_cast<int>(involved.size()) && involved[node->id()])
      wanted.insert(node->stringAttr("frame_name"));
  // an inner loop goes first, then the outer one holds a While
  while (!wanted.empty()) {
    const auto live = liveLoops(graph);
    std::set<std::string> left;
    bool any = false;
    for (const std::string &frame : wanted) {
      auto it = live.find(frame);
      if (it == live.end())
        continue;
      Loop loop(graph, frame, it->second);
      if (absl::Status s = loop.find(live); !s.ok())
        return s;
      left.insert(loop.inner().begin(), loop.inner().end());
      if (!loop.inner().empty()) {
        left.insert(frame);
        continue;
      }
      if (absl::Status s = loop.lift(); !s.ok())
        return s;
      any = true;
    }
    if (!any && left == wanted)
      return absl::UnimplementedError("loops lie within each other");
    wanted = std::move(left);
  }
  return absl::OkStatus();
}

} // namespace lathe::graphdef
