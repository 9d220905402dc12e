#include "graph/gradients/Bodies.h"

#include "graph/gradients/Expr.h"
#include "ops/Flags.h"

#include "absl/strings/str_cat.h"

namespace lathe::graphdef {
namespace {

constexpr int kMaxDepth = 32; // of handles passed on to functions

DType variableTypeAt(const Graph &graph, Endpoint handle, int depth) {
  if (depth > kMaxDepth)
    return DType::Invalid;
  for (const Use &use : handle.node->uses(handle.index)) {
    const Node &user = *use.node;
    if (ops::is(user.op(), ops::Flag::Passes)) {
      if (DType type = variableTypeAt(graph, use.node->output(use.index), depth + 1); type != DType::Invalid)
        return type;
      continue;
    }
    if (user.op().compare(0, 11, "TensorArray") == 0)
      return DType::Resource;
    if (DType type = user.typeAttr("dtype"); type != DType::Invalid)
      return type;
    // an argument of the same position, behind a condition or branch index
    for (const char *attr : {"f", "body", "then_branch", "branches"}) {
      const tf::AttrValue *value = user.attr(attr);
      if (!value)
        continue;
      tf::NameAttrList f = value->has_func() ? value->func() : value->list().func_size() ? value->list().func(0) : tf::NameAttrList();
      int offset = std::string_view(attr) == "then_branch" || std::string_view(attr) == "branches" ? 1 : 0;
      auto body = instantiate(const_cast<Graph &>(graph).sharedLibrary(), f);
      size_t index = static_cast<size_t>(use.index - offset);
      if (body.ok() && index < body->args.size())
        if (DType type = variableTypeAt(*body->graph, body->args[index]->output(0), depth + 1); type != DType::Invalid)
          return type;
    }
  }
  return DType::Invalid;
}

} // namespace

DType variableType(const Graph &graph, Endpoint handle) {
  DType type = variableTypeAt(graph, handle, 0);
  return type == DType::Invalid ? DType::Float32 : type == DType::Resource ? DType::Invalid : type;
}

std::vector<DType> gradientTypes(const FunctionBody &body) {
  std::vector<DType> types;
  for (const Node *result : body.results) {
    Endpoint e = result->input(0);
    types.push_back(e.type() == DType::Resource ? variableType(*body.graph, e) : e.type());
  }
  return types;
}

tf::AttrValue functionAttr(const std::string &name) {
  tf::AttrValue value;
  value.mutable_func()->set_name(name);
  return value;
}

tf::AttrValue typesAttr(const std::vector<DType> &types) { return NamedAttr("", types).value; }

Val zerosFor(Val value, DType type) {
  if (value.type() != DType::Resource)
    return ZerosLike(value);
  return Fill(call("VariableShape", {value}, {{"out_type", DType::Int32}}), value.emitter ? value.emitter->scalar(type, 0) : Val());
}

absl::Status copyNodes(const Graph &from, const std::vector<bool> &which, Graph &to, std::map<Endpoint, Endpoint> &known) {
  auto order = topologicalOrder(from);
  if (!order.ok())
    return order.status();
  std::map<const Node *, Node *> copies;
  for (Node *node : *order) {
    if (node->id() >= static_cast<int>(which.size()) || !which[node->id()])
      continue;
    NodeSpec spec;
    spec.def = node->toProto();
    spec.def.set_name(to.uniqueName(node->name()));
    for (const Endpoint &e : node->inputs()) {
      auto it = known.find(e);
      if (it == known.end())
        return atNode(node->name(), node->op(), absl::InternalError(absl::StrCat("reads '", e.name(), "', which was not copied")));
      spec.inputs.push_back(it->second);
    }
    for (const Node *c : node->controls())
      if (auto it = copies.find(c); it != copies.end())
        spec.controls.push_back(it->second);
    auto made = to.add(std::move(spec));
    if (!made.ok())
      return made.status();
    copies[node] = *made;
    for (int i = 0; i < node->numOutputs(); ++i)
      known[node->output(i)] = (*made)->output(i);
  }
  return absl::OkStatus();
}

FunctionWriter::FunctionWriter(const std::shared_ptr<Library> &library)
    : body{std::make_unique<Graph>(library), {}, {}, {}}, library(library), emitter(*body.graph) {}

Endpoint FunctionWriter::addArg(DType type, const std::string &name) {
  Node *arg = emitter.node("_Arg", {}, {{"T", type}, {"index", static_cast<int64_t>(body.args.size())}}, name);
  if (!arg)
    return {};
  body.args.push_back(arg);
  return arg->output(0);
}

void FunctionWriter::addResult(Endpoint value) {
  if (Node *result = emitter.node("_Retval", {Val(emitter, value)}, {{"index", static_cast<int64_t>(body.results.size())}},
                                  absl::StrCat("result_", body.results.size())))
    body.results.push_back(result);
}

absl::StatusOr<std::string> FunctionWriter::finish(const std::string &name) {
  if (!emitter.ok())
    return emitter.status;
  std::string unique = library->uniqueName(name);
  auto def = toFunction(body, unique);
  if (!def.ok())
    return def.status();
  if (absl::Status s = library->add(*def); !s.ok())
    return s;
  return unique;
}

absl::StatusOr<BodyGradient> differentiate(const std::shared_ptr<Library> &library, const tf::NameAttrList &function,
                                           const std::vector<DType> &dyTypes, const std::string &prefix, bool rows) {
  BodyGradient out;
  auto body = instantiate(library, function);
  if (!body.ok())
    return body.status();
  out.body = *std::move(body);
  Graph &graph = *out.body.graph;
  const std::vector<Node *> old = graph.nodes();
  Emitter emitter(graph);
  std::vector<Endpoint> ys, dys, xs;
  for (size_t i = 0; i < out.body.results.size(); ++i) {
    Node *dy = nullptr;
    if (i < dyTypes.size() && dyTypes[i] != DType::Invalid) {
      dy = emitter.node("_Arg", {}, {{"T", dyTypes[i]}, {"index", static_cast<int64_t>(out.body.args.size() + i)}}, absl::StrCat("dy_", i));
      if (!dy)
        return emitter.status;
      ys.push_back(out.body.results[i]->input(0));
      dys.push_back(dy->output(0));
    }
    out.dys.push_back(dy);
  }
  for (Node *arg : out.body.args)
    if (isDifferentiable(arg->outputType(0)))
      xs.push_back(arg->output(0));
  std::vector<Gradient> found;
  std::vector<Endpoint> wholes;
  GradientOptions options;
  options.prefix = prefix;
  absl::Status s = rows ? addGradients(graph, ys, xs, dys, options, &found) : addGradients(graph, ys, xs, dys, options, &wholes);
  if (!s.ok())
    return absl::Status(s.code(), absl::StrCat("in function '", function.name(), "': ", s.message()));
  for (const Endpoint &e : wholes)
    found.push_back({e, {}, {}});
  size_t next = 0;
  for (Node *arg : out.body.args)
    out.grads.push_back(isDifferentiable(arg->outputType(0)) ? found[next++] : Gradient());
  out.isForward = ancestors(graph, old);
  std::set<Endpoint> seen;
  auto capture = [&](const Endpoint &e) {
    if (out.isForward[e.node->id()] && seen.insert(e).second)
      out.captures.push_back(e);
  };
  for (Node *node : graph.nodes())
    if (!out.isForward[node->id()])
      for (const Endpoint &e : node->inputs())
        capture(e);
  for (const Gradient &g : out.grads)
    for (const Endpoint &e : {g.values, g.indices, g.shape})
      if (e)
        capture(e); // a gradient may be a forward value as it is
  return out;
}

} // namespace lathe::graphdef
