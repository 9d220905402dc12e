// Calls and conditionals. A call gets results for what its gradient needs of its inside; a conditional's gradient computes it again,
// since the branches' insides have no common types.
#include "graph/gradients/Branches.h"
#include "graph/gradients/Expr.h"
#include "ops/Flags.h"

#include "absl/strings/str_cat.h"

namespace lathe::graphdef {
namespace {

std::string functionScope(Grad &g) { return g.e.scope.substr(0, g.e.scope.find('/')); }

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Types of the gradients that come in, by result.
std::vector<DType> incoming(Grad &g) {
  std::vector<DType> types;
  for (int i = 0; i < g.node.numOutputs(); ++i)
    types.push_back(g.has(i) ? g.dy(i).type() : DType::Invalid);
  return types;
}

/// A call whose function has a registered gradient function: it takes arguments and gradients.
void callRegistered(Grad &g, const std::string &gradient) {
  std::vector<Val> args = g.ins(0, g.node.numInputs());
  for (int i = 0; i < g.node.numOutputs(); ++i)
    args.push_back(g.dy(i));
  std::vector<DType> results = g.node.inputTypes();
  Val d = call("PartitionedCall", {args}, {{"f", functionAttr(gradient)}, {"Tout", results}});
  for (int i = 0; i < g.node.numInputs(); ++i)
    if (g.wants(i))
      g.set(i, d.at(i));
}

struct CallGradient {
  Grad &g;
  BodyGradient made;
  Branches branches;           ///< of the body
  std::vector<Endpoint> extra; ///< captures that become results; one that may be dead does so in a list that may be empty

  explicit CallGradient(Grad &g) : g(g) {}

  absl::StatusOr<std::string> writeForward(const std::string &name);
  absl::StatusOr<std::string> writeBackward(const std::string &name, std::vector<Val> *args, std::vector<DType> *results);
  absl::Status run(const tf::NameAttrList &f);
  DType resultType(const Endpoint &e) const { return branches.of(e).empty() ? e.type() : DType::Variant; }
};

bool isArg(const Endpoint &e) { return ops::is(e.node->op(), ops::Flag::Argument); }
bool isConstant(const Endpoint &e) { return e.node->op() == "Const"; }

/// The same function with results for what is captured.
absl::StatusOr<std::string> CallGradient::writeForward(const std::string &name) {
  FunctionWriter writer(g.e.graph.sharedLibrary());
  std::map<Endpoint, Endpoint> known;
  std::vector<bool> which = made.isForward;
  for (Node *arg : made.body.args) {
    known[arg->output(0)] = writer.addArg(arg->outputType(0), arg->name());
    which[arg->id()] = false;
  }
  for (Node *result : made.body.results)
    which[result->id()] = false;
  if (absl::Status s = copyNodes(*made.body.graph, which, writer.graph(), known); !s.ok())
    return s;
  for (Node *result : made.body.results)
    writer.addResult(known.at(result->input(0)));
  for (const Endpoint &e : extra) {
    const std::vector<Side> sides = branches.of(e);
    if (sides.empty()) {
      writer.addResult(known.at(e));
      continue;
    }
    Val any = writer.emit().int32(-1);
    Val none = writer.emit().op("EmptyTensorList", {any, any}, {{"element_dtype", e.type()}});
    writer.addResult(pushOnSides(sides, known, none, known.at(e)).end);
  }
  for (Node *control : made.body.controlResults)
    if (Node *copy = writer.graph().find(control->name()))
      writer.body.controlResults.push_back(copy);
  return writer.finish(name);
}

absl::StatusOr<std::string> CallGradient::writeBackward(const std::string &name, std::vector<Val> *args, std::vector<DType> *results) {
  FunctionWriter writer(g.e.graph.sharedLibrary());
  std::map<Endpoint, Endpoint> known;
  std::vector<bool> which(made.body.graph->maxId(), false);
  for (Node *node : made.body.graph->nodes())
    which[node->id()] = !made.isForward[node->id()];
  std::vector<bool> constant(made.body.graph->maxId(), false);
  for (const Endpoint &e : made.captures)
    if (isConstant(e))
      constant[e.node->id()] = true;
  if (absl::Status s = copyNodes(*made.body.graph, constant, writer.graph(), known); !s.ok())
    return s;
  const int plain = static_cast<int>(made.body.results.size());
  for (const Endpoint &e : made.captures) {
    if (isConstant(e))
      continue;
    Endpoint arg = writer.addArg(isArg(e) ? e.type() : resultType(e), absl::StrCat("captured_", writer.body.args.size()));
    if (isArg(e)) {
      args->push_back(g.in(static_cast<int>(e.node->intAttr("index"))));
    } else {
      auto at = std::find(extra.begin(), extra.end(), e) - extra.begin();
      args->push_back(g.out(plain + static_cast<int>(at)));
    }
    Val list = writer.emit().val(arg);
    known[e] = branches.of(e).empty() ? arg : popOnSides(branches.of(e), known, &list, e.type()).end;
  }
  for (size_t i = 0; i < made.dys.size(); ++i)
    if (Node *dy = made.dys[i]) {
      known[dy->output(0)] = writer.addArg(dy->outputType(0), absl::StrCat("dy_", i));
      which[dy->id()] = false;
      args->push_back(g.dy(static_cast<int>(i)));
    }
  if (absl::Status s = copyNodes(*made.body.graph, which, writer.graph(), known); !s.ok())
    return s;
  for (const Gradient &grad : made.grads)
    for (const Endpoint &e : {grad.values, grad.indices, grad.shape})
      if (e) {
        writer.addResult(known.at(e));
        results->push_back(e.type());
      }
  return writer.finish(name);
}

absl::Status CallGradient::run(const tf::NameAttrList &f) {
  auto differentiated = differentiate(g.e.graph.sharedLibrary(), f, incoming(g), functionScope(g), /*rows=*/true);
  if (!differentiated.ok())
    return differentiated.status();
  made = *std::move(differentiated);
  if (absl::Status s = branches.find(*made.body.graph); !s.ok())
    return s;
  if (absl::Status s = branches.close(&made.captures); !s.ok())
    return s;
  for (const Endpoint &e : made.captures)
    if (!isArg(e) && !isConstant(e))
      extra.push_back(e);
  const bool stateful = g.node.info().isStateful;
  const char *op = stateful ? "StatefulPartitionedCall" : "PartitionedCall";
  if (!extra.empty()) {
    auto forward = writeForward(absl::StrCat(f.name(), "_forward"));
    if (!forward.ok())
      return forward.status();
    std::vector<DType> types = made.body.resultTypes();
    for (const Endpoint &e : extra)
      types.push_back(resultType(e));
    NodeSpec spec{g.node.toProto(), g.node.inputs(), g.node.controls()};
    spec.def.set_op(op);
    auto &attrs = *spec.def.mutable_attr();
    attrs["f"] = functionAttr(*forward);
    attrs["Tin"] = typesAttr(g.node.inputTypes());
    attrs["Tout"] = typesAttr(types);
    attrs.erase("_output_shapes");
    if (absl::Status s = g.e.graph.change(&g.node, std::move(spec)); !s.ok())
      return s;
  }
  std::vector<Val> args;
  std::vector<DType> results;
  auto backward = writeBackward(absl::StrCat(f.name(), "_backward"), &args, &results);
  if (!backward.ok())
    return backward.status();
  if (results.empty())
    return absl::OkStatus();
  Val d = g.e.op(op, {args}, {{"f", functionAttr(*backward)}, {"Tout", results}});
  int next = 0;
  auto nextResult = [&](const Endpoint &e) { return e ? d.at(next++) : Val(); };
  for (size_t i = 0; i < made.grads.size(); ++i) {
    const Gradient &grad = made.grads[i];
    Val values = nextResult(grad.values), indices = nextResult(grad.indices);
    g.set(static_cast<int>(i), {values, indices, nextResult(grad.shape)});
  }
  return absl::OkStatus();
}

void callGradient(Grad &g) {
  tf::NameAttrList f;
  if (const tf::AttrValue *value = g.node.attr("f")) {
    f = value->func();
  } else {
    f.set_name(g.node.op());
    for (auto &[name, attr] : g.node.attrs())
      (*f.mutable_attr())[name] = attr;
  }
  if (std::string gradient = g.e.graph.library().gradientOf(f.name()); !gradient.empty())
    return callRegistered(g, gradient);
  g.e.fail(CallGradient(g).run(f));
}

//===----------------------------------------------------------------------===//
// Conditionals
//===----------------------------------------------------------------------===//

/// An op that gives another result when it runs again, so that a branch cannot be computed a second time.
const Node *unrepeatable(const BodyGradient &made) {
  std::vector<Node *> roots;
  for (const Endpoint &e : made.captures)
    roots.push_back(e.node);
  std::vector<bool> needed = ancestors(*made.body.graph, roots);
  for (const Node *node : made.body.graph->nodes())
    if (needed[node->id()] && made.isForward[node->id()] && node->info().isStateful && !ops::is(node->op(), ops::Flag::Argument) &&
        node->op() != "Assert" && !ops::is(node->op(), ops::Flag::ReadsVariable))
      return node;
  return nullptr;
}

struct Conditional {
  Grad &g;
  std::vector<BodyGradient> branches;
  std::vector<bool> flows;     ///< by argument: some branch has a gradient
  std::vector<DType> types;    ///< of gradients, by argument

  absl::Status run(const std::vector<tf::NameAttrList> &functions);
  absl::StatusOr<std::string> write(const BodyGradient &branch, const std::string &name);
};

absl::StatusOr<std::string> Conditional::write(const BodyGradient &branch, const std::string &name) {
  FunctionWriter writer(g.e.graph.sharedLibrary());
  std::map<Endpoint, Endpoint> known;
  std::vector<Node *> roots;
  for (const Gradient &grad : branch.grads)
    if (grad)
      roots.push_back(grad.values.node);
  std::vector<bool> which = ancestors(*branch.body.graph, roots);
  for (Node *arg : branch.body.args) {
    known[arg->output(0)] = writer.addArg(arg->outputType(0), arg->name());
    which[arg->id()] = false;
  }
  for (size_t i = 0; i < branch.dys.size(); ++i)
    if (Node *dy = branch.dys[i]) {
      known[dy->output(0)] = writer.addArg(dy->outputType(0), absl::StrCat("dy_", i));
      which[dy->id()] = false;
    }
  if (absl::Status s = copyNodes(*branch.body.graph, which, writer.graph(), known); !s.ok())
    return s;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (!flows[i])
      continue;
    const Endpoint &e = branch.grads[i].values;
    Val arg(writer.emit(), known.at(branch.body.args[i]->output(0)));
    writer.addResult(e ? known.at(e) : zerosFor(arg, types[i]).end);
  }
  return writer.finish(name);
}

absl::Status Conditional::run(const std::vector<tf::NameAttrList> &functions) {
  std::vector<DType> dyTypes = incoming(g);
  for (const tf::NameAttrList &f : functions) {
    auto made = differentiate(g.e.graph.sharedLibrary(), f, dyTypes, functionScope(g));
    if (!made.ok())
      return made.status();
    if (const Node *node = unrepeatable(*made))
      return absl::UnimplementedError(absl::StrCat("its gradient would run '", node->name(), "' (", node->op(), ") of function '", f.name(),
                                                   "' a second time, which gives another result"));
    branches.push_back(*std::move(made));
  }
  const size_t count = branches.front().grads.size();
  flows.assign(count, false);
  types.assign(count, DType::Invalid);
  for (const BodyGradient &branch : branches)
    for (size_t i = 0; i < std::min(count, branch.grads.size()); ++i)
      if (branch.grads[i]) {
        flows[i] = true;
        types[i] = branch.grads[i].values.type();
      }
  std::vector<std::string> names;
  for (size_t b = 0; b < branches.size(); ++b) {
    auto name = write(branches[b], absl::StrCat(functions[b].name(), "_gradient"));
    if (!name.ok())
      return name.status();
    names.push_back(*name);
  }
  std::vector<Val> args = g.ins(1, g.node.numInputs() - 1);
  for (int i = 0; i < g.node.numOutputs(); ++i)
    if (g.has(i))
      args.push_back(g.dy(i));
  std::vector<DType> results;
  for (size_t i = 0; i < count; ++i)
    if (flows[i])
      results.push_back(types[i]);
  if (results.empty())
    return absl::OkStatus();
  NamedAttrs attrs{{"Tout", results}};
  if (g.node.attr("branches")) {
    tf::AttrValue list;
    for (const std::string &name : names)
      list.mutable_list()->add_func()->set_name(name);
    attrs.push_back({"branches", list});
  } else {
    attrs.push_back({"then_branch", functionAttr(names[0])});
    attrs.push_back({"else_branch", functionAttr(names[1])});
  }
  Val d = g.e.op(g.node.op().c_str(), {g.in(0), args}, attrs);
  int next = 0;
  for (size_t i = 0; i < count; ++i)
    if (flows[i])
      g.set(static_cast<int>(i) + 1, d.at(next++));
  return absl::OkStatus();
}

} // namespace

void addWhileRules(Rules &r);

void addFunctionRules(Rules &r) {
  r.add({"PartitionedCall", "StatefulPartitionedCall"}, callGradient);
  r.add({"If", "StatelessIf"}, [](Grad &g) {
    g.e.fail(Conditional{g, {}, {}, {}}.run({g.node.attr("then_branch")->func(), g.node.attr("else_branch")->func()}));
  });
  r.add({"Case", "StatelessCase"}, [](Grad &g) {
    const auto &list = g.node.attr("branches")->list().func();
    g.e.fail(Conditional{g, {}, {}, {}}.run({list.begin(), list.end()}));
  });
  addWhileRules(r);
}

} // namespace lathe::graphdef
