// The walk from ys to xs: nodes in reverse order, each asked for the gradients of its inputs once those of its outputs are summed.
#include "graph/gradients/Rules.h"

#include "graph/gradients/Bodies.h"
#include "graph/gradients/Expr.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::graphdef {
namespace {

class Walk {
public:
  Walk(Graph &graph, const GradientOptions &options) : graph(graph), emitter(graph), options(options) {
    // like TensorFlow's name scopes: a second call gets its own
    prefix = graph.uniqueScope(options.prefix);
  }

  absl::Status run(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs, const std::vector<Endpoint> &dys,
                   bool rows, std::vector<Gradient> *grads);

private:
  absl::Status check(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs, const std::vector<Endpoint> &dys);
  absl::Status seed(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &dys);
  std::vector<bool> reachedFrom(const std::vector<Endpoint> &xs);
  absl::Status visit(Node *node);
  GradVal total(Endpoint e);

  Graph &graph;
  Emitter emitter;
  const GradientOptions &options;
  std::string prefix;
  std::map<Endpoint, std::vector<GradVal>> sums;
  std::vector<bool> reached;
};

absl::Status Walk::check(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs, const std::vector<Endpoint> &dys) {
  if (!dys.empty() && dys.size() != ys.size())
    return absl::InvalidArgumentError(absl::StrCat(dys.size(), " gradients are given for ", ys.size(), " results"));
  for (const std::vector<Endpoint> *list : {&ys, &xs})
    for (const Endpoint &e : *list)
      if (!e.node || &e.node->graph() != &graph || e.index < 0 || e.index >= e.node->numOutputs())
        return absl::InvalidArgumentError(e.node ? absl::StrCat("'", e.node->name(), "' has no output ", e.index, " in this graph")
                                                 : "an endpoint is missing");
  for (size_t i = 0; i < dys.size(); ++i)
    if (dys[i] && dys[i].type() != ys[i].type() && ys[i].type() != DType::Resource)
      return absl::InvalidArgumentError(absl::StrCat("the gradient given for '", ys[i].name(), "' is of type ", dtypeName(dys[i].type()),
                                                     ", expected ", dtypeName(ys[i].type())));
  return absl::OkStatus();
}

absl::Status Walk::seed(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &dys) {
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!dys.empty() && dys[i]) {
      sums[ys[i]].push_back(emitter.val(dys[i]));
      continue;
    }
    if (isComplex(ys[i].type()))
      return atNode(ys[i].node->name(), ys[i].node->op(), absl::InvalidArgumentError("gradients of a complex result need a gradient given for it"));
    if (!isFloating(ys[i].type()))
      continue; // nothing flows from it
    emitter.scope = prefix;
    emitter.device = ys[i].node->device();
    sums[ys[i]].push_back(OnesLike(emitter.val(ys[i])));
  }
  return emitter.status;
}

/// By node id: whether a differentiable path leads from one of xs to it.
std::vector<bool> Walk::reachedFrom(const std::vector<Endpoint> &xs) {
  std::vector<bool> seen(graph.maxId(), false);
  std::vector<Node *> work;
  auto follow = [&](Endpoint e) {
    if (!isDifferentiable(e.type()))
      return;
    for (const Use &use : e.node->uses(e.index))
      if (!seen[use.node->id()]) {
        seen[use.node->id()] = true;
        work.push_back(use.node);
      }
  };
  for (const Endpoint &x : xs)
    follow(x);
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    for (int i = 0; i < node->numOutputs(); ++i)
      follow(node->output(i));
  }
  return seen;
}

/// All rows of several gradients, one after the other.
GradVal joinRows(const std::vector<GradVal> &parts) {
  std::vector<Val> values, indices;
  bool wide = false;
  for (const GradVal &part : parts)
    wide |= part.indices.type() != parts.front().indices.type();
  for (const GradVal &part : parts) {
    values.push_back(part.values);
    indices.push_back(wide ? Cast(part.indices, DType::Int64) : part.indices);
  }
  Val axis = intOf(parts.front().values, 0);
  return {Concat(values, axis), Concat(indices, axis), parts.front().shape};
}

GradVal Walk::total(Endpoint e) {
  auto it = sums.find(e);
  if (it == sums.end())
    return GradVal();
  std::vector<GradVal> &parts = it->second;
  if (parts.size() > 1) {
    if (std::all_of(parts.begin(), parts.end(), [](const GradVal &part) { return part.isRows(); })) {
      parts = {joinRows(parts)};
    } else {
      std::vector<Val> wholes;
      for (const GradVal &part : parts)
        wholes.push_back(part.whole());
      parts = {emitter.op("AddN", {wholes})};
    }
  }
  return parts.empty() ? GradVal() : parts.front();
}

absl::Status Walk::visit(Node *node) {
  emitter.scope = absl::StrCat(prefix, "/", node->name(), "_grad");
  emitter.device = node->device();
  std::vector<GradVal> dys;
  bool any = false;
  for (int i = 0; i < node->numOutputs(); ++i) {
    dys.push_back(total(node->output(i)));
    any |= static_cast<bool>(dys.back());
  }
  if (!any)
    return emitter.status;
  const Rules &rules = Rules::get();
  if (rules.none.count(node->op()))
    return emitter.status;
  const Rule *rule = rules.find(node->op());
  if (!rule && graph.library().find(node->op()))
    rule = rules.find("PartitionedCall");
  if (const tf::AttrValue *custom = node->attr("_gradient_op_type"))
    return absl::UnimplementedError(absl::StrCat("its gradient '", custom->s(), "' is defined outside of the graph"));
  if (!rule) {
    auto why = rules.missing.find(node->op());
    return absl::UnimplementedError(why == rules.missing.end() ? "has no gradient" : "has no gradient: " + std::string(why->second));
  }
  std::vector<Endpoint> inputs = node->inputs(); // rules may change the node
  Grad grad(*node, emitter, std::move(dys));
  (*rule)(grad);
  if (!emitter.ok())
    return emitter.status;
  std::vector<GradVal> found = grad.take();
  for (size_t i = 0; i < found.size() && i < inputs.size(); ++i) {
    if (!found[i])
      continue;
    if (found[i].values.type() != inputs[i].type() && inputs[i].type() != DType::Resource)
      return absl::InternalError(absl::StrCat("the gradient of input ", i, " is of type ", dtypeName(found[i].values.type()), ", expected ",
                                              dtypeName(inputs[i].type())));
    sums[inputs[i]].push_back(found[i]);
  }
  return absl::OkStatus();
}

absl::Status Walk::run(const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs, const std::vector<Endpoint> &dys,
                       bool rows, std::vector<Gradient> *grads) {
  if (absl::Status s = check(ys, xs, dys); !s.ok())
    return s;
  std::vector<Node *> roots;
  for (const Endpoint &y : ys)
    roots.push_back(y.node);
  std::vector<bool> involved = ancestors(graph, roots);
  reached = reachedFrom(xs);
  for (size_t i = 0; i < involved.size(); ++i)
    involved[i] = involved[i] && reached[i];
  if (absl::Status s = liftLoops(graph, involved); !s.ok())
    return s;
  auto order = topologicalOrder(graph);
  if (!order.ok())
    return order.status();
  reached = reachedFrom(xs);
  std::vector<bool> needed = ancestors(graph, roots);
  std::set<const Node *> stopped;
  for (const Endpoint &e : options.stop)
    stopped.insert(e.node);
  if (absl::Status s = seed(ys, dys); !s.ok())
    return s;
  for (auto it = order->rbegin(); it != order->rend(); ++it) {
    Node *node = *it;
    if (!reached[node->id()] || !needed[node->id()] || stopped.count(node))
      continue;
    if (absl::Status s = visit(node); !s.ok())
      return atNode(node->name(), node->op(), s);
  }
  grads->clear();
  emitter.scope = prefix;
  for (const Endpoint &x : xs) {
    emitter.device = x.node->device();
    GradVal found = total(x);
    grads->push_back(rows ? found.ends() : Gradient{found.whole().end, {}, {}});
  }
  return emitter.status;
}

const Rules &makeRules() {
  static const Rules rules = [] {
    Rules r;
    for (auto add : {addMathRules, addBinaryRules, addReductionRules, addSegmentRules, addArrayRules, addSliceRules, addGatherRules,
                     addDiagonalRules, addActivationRules, addConvRules, addPoolRules, addNormRules, addLossRules, addImageRules,
                     addLinalgRules, addDecompositionRules, addEinsumRules, addFftRules, addListRules, addSparseRules, addQuantRules,
                     addRandomRules, addFlowRules, addFunctionRules, addNotDifferentiable})
      add(r);
    return r;
  }();
  return rules;
}

} // namespace

const Rules &Rules::get() { return makeRules(); }

bool isDifferentiable(DType type) {
  return isFloating(type) || isComplex(type) || type == DType::Resource || type == DType::Variant;
}

absl::Status addGradients(Graph &graph, const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs,
                          const std::vector<Endpoint> &dys, const GradientOptions &options, std::vector<Endpoint> *grads) {
  std::vector<Gradient> found;
  absl::Status s = Walk(graph, options).run(ys, xs, dys, false, &found);
  grads->clear();
  for (const Gradient &g : found)
    grads->push_back(g.values);
  return s;
}

absl::Status addGradients(Graph &graph, const std::vector<Endpoint> &ys, const std::vector<Endpoint> &xs,
                          const std::vector<Endpoint> &dys, const GradientOptions &options, std::vector<Gradient> *grads) {
  return Walk(graph, options).run(ys, xs, dys, true, grads);
}

GradientInfo gradientInfo(std::string_view op) {
  const Rules &rules = Rules::get();
  if (rules.find(op))
    return {GradientInfo::Differentiable, {}};
  if (auto it = rules.none.find(op); it != rules.none.end())
    return {GradientInfo::NotDifferentiable, it->second};
  if (auto it = rules.missing.find(op); it != rules.missing.end())
    return {GradientInfo::Missing, it->second};
  return {};
}

//===----------------------------------------------------------------------===//
// Grad
//===----------------------------------------------------------------------===//

std::vector<Val> Grad::ins(int from, int count) {
  std::vector<Val> out;
  for (int i = 0; i < count; ++i)
    out.push_back(in(from + i));
  return out;
}

std::vector<Val> Grad::ins(std::string_view arg) {
  auto [start, count] = node.inputRange(arg);
  return ins(start, count);
}

Val GradVal::whole() const {
  return isRows() ? call("UnsortedSegmentSum", {values, indices, element(shape, 0)}) : values;
}

Val Grad::dy(int i) {
  if (i >= static_cast<int>(dys.size()))
    return Val();
  dys[i] = dys[i] ? dys[i].whole() : ZerosLike(out(i));
  return dys[i].values;
}

GradVal Grad::handedOn(int i) { return has(i) ? dys[i] : GradVal(dy(i)); }

void Grad::fail(std::string_view why) { e.fail(absl::UnimplementedError(std::string(why))); }

NamedAttrs Grad::attrs(std::initializer_list<const char *> names) const {
  NamedAttrs out;
  for (const char *name : names)
    if (const tf::AttrValue *value = node.attr(name))
      out.push_back({name, *value});
  return out;
}

} // namespace lathe::graphdef
