// Loops. The forward loop gets a counter and, for each value of its body that the gradient reads, a list that every iteration pushes
// the value to. The gradient is a loop that counts down, pops those values and turns gradients of one iteration's results into
// gradients of its arguments. Values that no iteration changes are read where the loop ends.
#include "graph/gradients/Branches.h"
#include "graph/gradients/Expr.h"
#include "ops/Flags.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::graphdef {
namespace {

class WhileGradient {
public:
  explicit WhileGradient(Grad &g) : g(g), library(g.e.graph.sharedLibrary()), vars(g.node.numInputs()) {}
  absl::Status run();

private:
  bool isInvariant(const Endpoint &e) const;
  absl::Status sort();
  absl::Status growForward();
  absl::StatusOr<std::string> writeCond(const tf::NameAttrList &cond);
  absl::StatusOr<std::string> writeBody(const std::string &name);
  absl::Status addBackward();
  absl::StatusOr<std::string> writeBackward(const std::string &name, const std::vector<Val> &carried);
  absl::StatusOr<std::string> writeCountdown(const std::string &name, const std::vector<Val> &carried);

  Grad &g;
  std::shared_ptr<Library> library;
  const int vars; ///< of the loop as it was
  BodyGradient made;
  Branches branches; ///< of the body
  std::vector<Endpoint> saved;      ///< captures that every iteration pushes to a list
  std::vector<Endpoint> unchanged;  ///< captures that are invariant arguments
  std::vector<int> differentiated;  ///< variables whose gradients the backward loop carries
};

/// An argument that the body hands on as it is.
bool WhileGradient::isInvariant(const Endpoint &e) const {
  if (!ops::is(e.node->op(), ops::Flag::Argument))
    return false;
  size_t i = static_cast<size_t>(e.node->intAttr("index"));
  return i < made.body.results.size() && made.body.results[i]->input(0) == e;
}

absl::Status WhileGradient::sort() {
  if (absl::Status s = branches.find(*made.body.graph); !s.ok())
    return s;
  if (absl::Status s = branches.close(&made.captures); !s.ok())
    return s;
  for (const Endpoint &e : made.captures)
    if (isInvariant(e))
      unchanged.push_back(e);
    else if (e.node->op() != "Const")
      saved.push_back(e);
  return absl::OkStatus();
}

absl::StatusOr<std::string> WhileGradient::writeCond(const tf::NameAttrList &cond) {
  auto body = instantiate(library, cond);
  if (!body.ok())
    return body.status();
  FunctionWriter writer(library);
  std::map<Endpoint, Endpoint> known;
  std::vector<bool> which(body->graph->maxId(), true);
  for (Node *arg : body->args) {
    known[arg->output(0)] = writer.addArg(arg->outputType(0), arg->name());
    which[arg->id()] = false;
  }
  for (Node *result : body->results)
    which[result->id()] = false;
  writer.addArg(DType::Int32, "iterations");
  for (size_t i = 0; i < saved.size(); ++i)
    writer.addArg(DType::Variant, absl::StrCat("saved_", i));
  if (absl::Status s = copyNodes(*body->graph, which, writer.graph(), known); !s.ok())
    return s;
  for (Node *result : body->results)
    writer.addResult(known.at(result->input(0)));
  return writer.finish(absl::StrCat(cond.name(), "_forward"));
}

absl::StatusOr<std::string> WhileGradient::writeBody(const std::string &name) {
  FunctionWriter writer(library);
  std::map<Endpoint, Endpoint> known;
  std::vector<bool> which = made.isForward;
  for (Node *arg : made.body.args) {
    known[arg->output(0)] = writer.addArg(arg->outputType(0), arg->name());
    which[arg->id()] = false;
  }
  for (Node *result : made.body.results)
    which[result->id()] = false;
  Emitter &e = writer.emit();
  Val count(e, writer.addArg(DType::Int32, "iterations"));
  std::vector<Val> lists;
  for (size_t i = 0; i < saved.size(); ++i)
    lists.push_back(Val(e, writer.addArg(DType::Variant, absl::StrCat("saved_", i))));
  if (absl::Status s = copyNodes(*made.body.graph, which, writer.graph(), known); !s.ok())
    return s;
  for (Node *result : made.body.results)
    writer.addResult(known.at(result->input(0)));
  writer.addResult((count + 1).end);
  for (size_t i = 0; i < saved.size(); ++i)
    writer.addResult(pushOnSides(branches.of(saved[i]), known, lists[i], known.at(saved[i])).end);
  for (Node *control : made.body.controlResults)
    if (Node *copy = writer.graph().find(control->name()))
      writer.body.controlResults.push_back(copy);
  return writer.finish(name);
}

absl::Status WhileGradient::growForward() {
  const tf::NameAttrList cond = g.node.attr("cond")->func(), body = g.node.attr("body")->func();
  auto newCond = writeCond(cond);
  if (!newCond.ok())
    return newCond.status();
  auto newBody = writeBody(absl::StrCat(body.name(), "_forward"));
  if (!newBody.ok())
    return newBody.status();
  NodeSpec spec{g.node.toProto(), g.node.inputs(), g.node.controls()};
  std::vector<DType> types = g.node.inputTypes();
  auto append = [&](Val v) {
    if (v)
      spec.inputs.push_back(v.end);
    types.push_back(v.type());
  };
  append(g.e.int32(0));
  for (const Endpoint &e : saved) {
    Val any = g.e.int32(-1);
    append(g.e.op("EmptyTensorList", {any, any}, {{"element_dtype", e.type()}}));
  }
  if (!g.e.ok())
    return g.e.status;
  auto &attrs = *spec.def.mutable_attr();
  attrs["cond"] = functionAttr(*newCond);
  attrs["body"] = functionAttr(*newBody);
  attrs["T"] = typesAttr(types);
  attrs["output_shapes"].Clear();
  attrs["output_shapes"].mutable_list();
  for (const char *stale : {"_output_shapes", "_num_original_outputs"})
    attrs.erase(stale);
  return g.e.graph.change(&g.node, std::move(spec));
}

/// One iteration backwards: (left, gradients, lists, invariants) -> the same.
absl::StatusOr<std::string> WhileGradient::writeBackward(const std::string &name, const std::vector<Val> &carried) {
  FunctionWriter writer(library);
  Emitter &e = writer.emit();
  std::vector<Val> args;
  for (size_t i = 0; i < carried.size(); ++i)
    args.push_back(Val(e, writer.addArg(carried[i].type(), absl::StrCat("arg_", i))));
  std::map<Endpoint, Endpoint> known;
  std::vector<bool> which(made.body.graph->maxId(), false);
  for (Node *node : made.body.graph->nodes())
    which[node->id()] = !made.isForward[node->id()];
  std::vector<bool> constant(made.body.graph->maxId(), false);
  for (const Endpoint &c : made.captures)
    if (c.node->op() == "Const")
      constant[c.node->id()] = true;
  if (absl::Status s = copyNodes(*made.body.graph, constant, writer.graph(), known); !s.ok())
    return s;
  size_t at = 1;
  for (int i : differentiated) {
    known[made.dys[i]->output(0)] = args[at++].end;
    which[made.dys[i]->id()] = false;
  }
  std::vector<Val> results{args[0] - 1}, lists(args.begin() + at, args.begin() + at + saved.size()), invariants(args.begin() + at + saved.size(), args.end());
  for (size_t i = 0; i < unchanged.size(); ++i)
    known[unchanged[i]] = invariants[i].end;
  for (size_t i = 0; i < saved.size(); ++i)
    known[saved[i]] = popOnSides(branches.of(saved[i]), known, &lists[i], saved[i].type()).end;
  if (!e.ok())
    return e.status;
  if (absl::Status s = copyNodes(*made.body.graph, which, writer.graph(), known); !s.ok())
    return s;
  for (size_t i = 0; i < differentiated.size(); ++i) {
    const Endpoint &grad = made.grads[differentiated[i]].values;
    // the incoming gradient is as large as the variable
    results.push_back(grad ? Val(e, known.at(grad)) : ZerosLike(args[1 + i]));
  }
  results.insert(results.end(), lists.begin(), lists.end());
  results.insert(results.end(), invariants.begin(), invariants.end());
  if (!e.ok())
    return e.status;
  for (Val v : results)
    writer.addResult(v.end);
  return writer.finish(name);
}

absl::StatusOr<std::string> WhileGradient::writeCountdown(const std::string &name, const std::vector<Val> &carried) {
  FunctionWriter writer(library);
  std::vector<Val> args;
  for (size_t i = 0; i < carried.size(); ++i)
    args.push_back(Val(writer.emit(), writer.addArg(carried[i].type(), absl::StrCat("arg_", i))));
  writer.addResult(Greater(args[0], like(args[0], 0)).end);
  return writer.finish(name);
}

absl::Status WhileGradient::addBackward() {
  std::vector<Val> carried{g.out(vars)};
  for (int i : differentiated)
    carried.push_back(g.has(i) ? g.dy(i) : zerosFor(g.out(i), made.dys[i]->outputType(0)));
  for (size_t i = 0; i < saved.size(); ++i)
    carried.push_back(g.out(vars + 1 + static_cast<int>(i)));
  for (const Endpoint &u : unchanged)
    carried.push_back(g.out(static_cast<int>(u.node->intAttr("index"))));
  if (!g.e.ok())
    return g.e.status;
  auto cond = writeCountdown("gradient_loop_cond", carried);
  if (!cond.ok())
    return cond.status();
  auto body = writeBackward("gradient_loop_body", carried);
  if (!body.ok())
    return body.status();
  Val loop = g.e.op(g.node.op().c_str(), {carried}, {{"cond", functionAttr(*cond)}, {"body", functionAttr(*body)}});
  for (size_t i = 0; i < differentiated.size(); ++i)
    g.set(differentiated[i], loop.at(1 + static_cast<int>(i)));
  return g.e.status;
}

absl::Status WhileGradient::run() {
  auto plain = instantiate(library, g.node.attr("body")->func());
  if (!plain.ok())
    return plain.status();
  std::vector<DType> types = gradientTypes(*plain);
  for (int i = 0; i < vars && i < static_cast<int>(types.size()); ++i)
    if (isDifferentiable(g.node.inputType(i)) && types[i] != DType::Invalid)
      differentiated.push_back(i);
    else
      types[i] = DType::Invalid;
  auto differentiatedBody = differentiate(library, g.node.attr("body")->func(), types, g.e.scope.substr(0, g.e.scope.find('/')));
  if (!differentiatedBody.ok())
    return differentiatedBody.status();
  made = *std::move(differentiatedBody);
  if (absl::Status s = sort(); !s.ok())
    return s;
  if (absl::Status s = growForward(); !s.ok())
    return s;
  return addBackward();
}

} // namespace

void addWhileRules(Rules &r) {
  r.add({"While", "StatelessWhile"}, [](Grad &g) { g.e.fail(WhileGradient(g).run()); });
}

} // namespace lathe::graphdef
