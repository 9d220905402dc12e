#include "graph/Graph.h"
#include "ops/Flags.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>

namespace lathe::graphdef {
namespace {

constexpr size_t kMaxNameLength = 1 << 16;

std::string text(std::string_view s) { return std::string(s); }

template <typename T>
void eraseOne(std::vector<T> &list, const T &value) {
  if (auto it = std::find(list.begin(), list.end(), value); it != list.end())
    list.erase(it);
}

std::pair<int, int> rangeOf(const std::vector<ops::Arg> &args, const std::vector<int64_t> &counts, std::string_view name) {
  int start = 0;
  for (size_t i = 0; i < args.size() && i < counts.size(); ++i) {
    if (args[i].name == name)
      return {start, static_cast<int>(counts[i])};
    start += static_cast<int>(counts[i]);
  }
  return {-1, 0};
}

std::vector<bool> refsOf(const std::vector<ops::Arg> &args, const std::vector<int64_t> &counts) {
  std::vector<bool> refs;
  for (size_t i = 0; i < args.size(); ++i)
    refs.insert(refs.end(), static_cast<size_t>(counts[i]), args[i].isRef);
  return refs;
}

} // namespace

//===----------------------------------------------------------------------===//
// Endpoints, names, nodes
//===----------------------------------------------------------------------===//

bool Endpoint::operator<(const Endpoint &o) const {
  int a = node ? node->id() : -1, b = o.node ? o.node->id() : -1;
  return a != b ? a < b : index < o.index;
}

DType Endpoint::type() const { return node->outputType(index); }
bool Endpoint::isRef() const { return node->outputIsRef(index); }
std::string Endpoint::name() const { return index == 0 ? node->name() : absl::StrCat(node->name(), ":", index); }

TensorName parseTensorName(std::string_view text) {
  if (!text.empty() && text[0] == '^')
    return {std::string(text.substr(1)), -1};
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text.size() - colon > 8 ||
      text.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
    return {std::string(text), 0};
  return {std::string(text.substr(0, colon)), std::stoi(std::string(text.substr(colon + 1)))};
}

absl::Status atNode(std::string_view name, std::string_view op, const absl::Status &status) {
  if (status.ok() || status.message().substr(0, 6) == "node '")
    return status;
  return absl::Status(status.code(), absl::StrCat("node '", absl::CHexEscape(text(name)), "' (", absl::CHexEscape(text(op)),
                                                  "): ", status.message()));
}

std::pair<int, int> Node::inputRange(std::string_view arg) const { return rangeOf(opInfo->inputs, inCounts, arg); }
std::pair<int, int> Node::outputRange(std::string_view arg) const { return rangeOf(opInfo->outputs, outCounts, arg); }

const tf::AttrValue *Node::attr(std::string_view name) const { return AttrLookup(def.attr()).find(name); }

int64_t Node::intAttr(std::string_view name) const {
  const tf::AttrValue *value = attr(name);
  return value ? value->i() : 0;
}
float Node::floatAttr(std::string_view name) const {
  const tf::AttrValue *value = attr(name);
  return value ? value->f() : 0;
}
bool Node::boolAttr(std::string_view name) const {
  const tf::AttrValue *value = attr(name);
  return value && value->b();
}
const std::string &Node::stringAttr(std::string_view name) const {
  static const std::string empty;
  const tf::AttrValue *value = attr(name);
  return value && value->value_case() == tf::AttrValue::kS ? value->s() : empty;
}
DType Node::typeAttr(std::string_view name) const { return AttrLookup(def.attr()).typeAttr(name).value_or(DType::Invalid); }
std::vector<int64_t> Node::intsAttr(std::string_view name) const {
  const tf::AttrValue *value = attr(name);
  return value ? std::vector<int64_t>(value->list().i().begin(), value->list().i().end()) : std::vector<int64_t>();
}
std::vector<DType> Node::typesAttr(std::string_view name) const {
  return AttrLookup(def.attr()).typeListAttr(name).value_or(std::vector<DType>());
}

tf::NodeDef Node::toProto() const {
  tf::NodeDef out = def;
  for (const Endpoint &e : ins)
    out.add_input(e.name());
  for (const Node *c : controlIns)
    out.add_input("^" + c->name());
  return out;
}

//===----------------------------------------------------------------------===//
// Attributes from inputs
//===----------------------------------------------------------------------===//

absl::Status inferAttrs(const ops::OpInfo &op, const std::vector<std::vector<Endpoint>> &args, tf::NodeDef *def) {
  auto &attrs = *def->mutable_attr();
  if (args.size() != op.inputs.size())
    return absl::InvalidArgumentError(absl::StrCat("expected ", op.inputs.size(), " arguments, found ", args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    const ops::Arg &arg = op.inputs[i];
    const std::vector<Endpoint> &values = args[i];
    if (!arg.typeListAttr.empty()) {
      if (!attrs.count(text(arg.typeListAttr))) {
        tf::AttrValue &list = attrs[text(arg.typeListAttr)];
        list.mutable_list();
        for (const Endpoint &v : values)
          list.mutable_list()->add_type(static_cast<tf::DataType>(v.type()));
      }
      continue;
    }
    if (!arg.numberAttr.empty()) {
      auto [it, isNew] = attrs.insert({text(arg.numberAttr), tf::AttrValue()});
      if (isNew)
        it->second.set_i(static_cast<int64_t>(values.size()));
      else if (it->second.i() != static_cast<int64_t>(values.size()))
        return absl::InvalidArgumentError(absl::StrCat("argument '", text(arg.name), "' has ", values.size(), " values, expected ", it->second.i()));
    } else if (values.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("argument '", text(arg.name), "' is one value, found a list of ", values.size()));
    }
    if (!arg.typeAttr.empty() && !values.empty()) {
      auto [it, isNew] = attrs.insert({text(arg.typeAttr), tf::AttrValue()});
      if (isNew)
        it->second.set_type(static_cast<tf::DataType>(values[0].type()));
    }
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

Graph::Graph(std::shared_ptr<Library> library) : functions(std::move(library)) {}

const ops::OpInfo *Graph::findOp(std::string_view name) const {
  if (const ops::OpInfo *op = ops::findOp(name))
    return op;
  return functions->signature(name);
}

Node *Graph::find(std::string_view name) const {
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

Endpoint Graph::findEndpoint(std::string_view tensor) const {
  TensorName name = parseTensorName(tensor);
  Node *node = find(name.node);
  return node && name.port >= 0 && name.port < node->numOutputs() ? Endpoint{node, name.port} : Endpoint();
}

std::vector<Node *> Graph::nodes() const {
  std::vector<Node *> out;
  for (auto &node : all)
    if (node)
      out.push_back(node.get());
  return out;
}

std::string Graph::uniqueName(std::string_view base) {
  std::string name = text(base);
  if (!find(name))
    return name;
  int &last = numbered[name];
  std::string out;
  do
    out = absl::StrCat(name, "_", ++last);
  while (find(out));
  return out;
}

std::string Graph::uniqueScope(std::string_view base) const {
  std::string name = text(base);
  auto isTaken = [&] {
    for (auto &node : all)
      if (node && (node->name() == name || node->name().compare(0, name.size() + 1, name + "/") == 0))
        return true;
    return false;
  };
  for (int i = 1; isTaken(); ++i)
    name = absl::StrCat(text(base), "_", i);
  return name;
}

absl::Status Graph::checkName(const tf::NodeDef &def) const {
  const std::string &name = def.name();
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  bool ok = !name.empty() && name.size() <= kMaxNameLength && (isLetter(name[0]) || name[0] == '.' || name[0] == '_');
  for (char c : name)
    ok &= isLetter(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == '\\' || c == '>';
  if (!ok)
    return absl::InvalidArgumentError("this is no valid node name");
  if (find(name))
    return absl::InvalidArgumentError("another node has the same name");
  return absl::OkStatus();
}

Node *Graph::create(tf::NodeDef def) {
  auto node = std::make_unique<Node>();
  node->owner = this;
  node->number = static_cast<int>(all.size());
  node->def = std::move(def);
  node->def.clear_input();
  Node *raw = node.get();
  index.emplace(raw->name(), raw);
  all.push_back(std::move(node));
  return raw;
}

/// Fills in defaults and types; the inputs' own types are checked by checkInput.
absl::Status Graph::resolve(Node *node) const {
  const ops::OpInfo *op = findOp(node->op());
  if (!op)
    return absl::NotFoundError("op is not known");
  node->opInfo = op;
  for (const ops::Attr &attr : op->attrs) {
    auto it = node->def.mutable_attr()->find(text(attr.name));
    if (it == node->def.mutable_attr()->end()) {
      if (!attr.hasDefault)
        return absl::InvalidArgumentError(absl::StrCat("attribute '", text(attr.name), "' is missing"));
      tf::AttrValue value;
      bool read = parseDefault(attr.type, attr.defaultText, &value);
      assert(read && "malformed default in the op table");
      (void)read;
      (*node->def.mutable_attr())[text(attr.name)] = std::move(value);
      continue;
    }
    std::string found;
    if (it->second.value_case() != tf::AttrValue::kPlaceholder && !hasAttrType(it->second, attr.type, &found))
      return absl::InvalidArgumentError(absl::StrCat("attribute '", text(attr.name), "' is ", found, ", expected ", text(attr.type)));
  }
  AttrLookup attrs(node->def.attr());
  if (absl::Status s = ops::checkAttrs(*op, attrs); !s.ok())
    return s;
  node->inCounts.clear();
  node->outCounts.clear();
  auto in = ops::resolveTypes(*op, op->inputs, attrs, &node->inCounts);
  if (!in.ok())
    return in.status();
  auto out = ops::resolveTypes(*op, op->outputs, attrs, &node->outCounts);
  if (!out.ok())
    return out.status();
  node->inTypes = *std::move(in);
  node->outTypes = *std::move(out);
  node->inRefs = refsOf(op->inputs, node->inCounts);
  node->outRefs = refsOf(op->outputs, node->outCounts);
  return absl::OkStatus();
}

absl::Status Graph::checkInput(const Node *node, int i) const {
  const Endpoint &e = node->ins[i];
  if (!e.node || e.index < 0 || e.index >= e.node->numOutputs())
    return absl::InvalidArgumentError(e.node ? absl::StrCat("input ", i, " is output ", e.index, " of '", e.node->name(), "', which has ",
                                                            e.node->numOutputs())
                                             : absl::StrCat("input ", i, " is missing"));
  if (e.node->owner != this)
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " belongs to another graph"));
  if (e.type() != node->inTypes[i])
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " is of type ", dtypeName(e.type()), ", expected ", dtypeName(node->inTypes[i])));
  if (node->inRefs[i] && !e.isRef() && !ops::is(e.node->op(), ops::Flag::Argument))
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has to be a reference"));
  return absl::OkStatus();
}

void Graph::connect(Node *node) {
  for (int i = 0; i < node->numInputs(); ++i)
    node->ins[i].node->users[node->ins[i].index].push_back({node, i});
  for (Node *c : node->controlIns)
    c->controlOuts.push_back(node);
}

void Graph::disconnect(Node *node) {
  for (int i = 0; i < node->numInputs(); ++i) {
    if (!node->ins[i].node)
      continue;
    auto &list = node->ins[i].node->users[node->ins[i].index];
    list.erase(std::remove_if(list.begin(), list.end(), [&](const Use &u) { return u.node == node && u.index == i; }), list.end());
  }
  for (Node *c : node->controlIns)
    eraseOne(c->controlOuts, node);
}

absl::Status Graph::checkSpec(const NodeSpec &spec) const {
  // a node of its own, so that the graph does not change
  Node node;
  node.owner = const_cast<Graph *>(this);
  node.def = spec.def;
  node.ins = spec.inputs;
  absl::Status s = checkName(spec.def);
  if (s.ok())
    s = resolve(&node);
  if (s.ok() && node.ins.size() != node.inTypes.size())
    s = absl::InvalidArgumentError(absl::StrCat("expected ", node.inTypes.size(), " inputs, found ", node.ins.size()));
  for (int i = 0; s.ok() && i < node.numInputs(); ++i)
    s = checkInput(&node, i);
  return atNode(spec.def.name(), spec.def.op(), s);
}

absl::StatusOr<Node *> Graph::add(NodeSpec spec) {
  if (absl::Status s = checkSpec(spec); !s.ok())
    return s;
  Node *node = create(std::move(spec.def));
  absl::Status resolved = resolve(node);
  assert(resolved.ok() && "checked before");
  (void)resolved;
  node->ins = std::move(spec.inputs);
  node->users.resize(node->outTypes.size());
  for (Node *c : spec.controls)
    if (std::find(node->controlIns.begin(), node->controlIns.end(), c) == node->controlIns.end())
      node->controlIns.push_back(c);
  connect(node);
  return node;
}

absl::Status Graph::extend(const tf::GraphDef &more) {
  for (const tf::FunctionDef &f : more.library().function())
    if (const tf::FunctionDef *known = functions->find(f.signature().name()); known && !sameFunction(*known, f))
      return absl::InvalidArgumentError(absl::StrCat("another function is named '", f.signature().name(), "'"));
  if (absl::Status s = functions->extend(more.library()); !s.ok())
    return s;
  std::vector<Node *> made;
  auto undo = [&](absl::Status s) {
    for (Node *node : made)
      disconnect(node);
    for (Node *node : made)
      index.erase(node->name());
    all.resize(all.size() - made.size());
    return s;
  };
  for (const tf::NodeDef &def : more.node()) {
    if (absl::Status s = checkName(def); !s.ok())
      return undo(atNode(def.name(), def.op(), s));
    Node *node = create(def);
    made.push_back(node);
    if (absl::Status s = resolve(node); !s.ok())
      return undo(atNode(def.name(), def.op(), s));
    node->users.resize(node->outTypes.size());
  }
  for (int i = 0; i < more.node_size(); ++i) {
    const tf::NodeDef &def = more.node(i);
    auto failed = [&](const absl::Status &s) { return undo(atNode(def.name(), def.op(), s)); };
    std::vector<Endpoint> ins;
    std::vector<Node *> controls;
    for (const std::string &input : def.input()) {
      TensorName name = parseTensorName(input);
      Node *from = find(name.node);
      if (!from)
        return failed(absl::InvalidArgumentError(absl::StrCat("input '", absl::CHexEscape(input), "' does not exist")));
      if (name.port < 0) {
        if (std::find(controls.begin(), controls.end(), from) == controls.end())
          controls.push_back(from);
      } else if (name.port >= from->numOutputs()) {
        return failed(absl::InvalidArgumentError(absl::StrCat("input '", input, "' is an output that '", name.node, "' does not have")));
      } else {
        ins.push_back({from, name.port});
      }
    }
    made[i]->ins = std::move(ins);
    made[i]->controlIns = std::move(controls);
    connect(made[i]);
    if (made[i]->ins.size() != made[i]->inTypes.size())
      return failed(absl::InvalidArgumentError(absl::StrCat("expected ", made[i]->inTypes.size(), " inputs, found ", made[i]->ins.size())));
    for (int k = 0; k < made[i]->numInputs(); ++k)
      if (absl::Status s = checkInput(made[i], k); !s.ok())
        return failed(s);
  }
  if (more.has_versions())
    versionDef = more.versions();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> Graph::fromProto(const tf::GraphDef &def) {
  auto graph = std::make_unique<Graph>();
  if (absl::Status s = graph->extend(def); !s.ok())
    return s;
  return graph;
}

tf::GraphDef Graph::toProto() const {
  tf::GraphDef out;
  for (auto &node : all)
    if (node)
      *out.add_node() = node->toProto();
  *out.mutable_library() = functions->toProto();
  *out.mutable_versions() = versionDef;
  return out;
}

absl::Status Graph::setInput(Node *node, int input, Endpoint value) {
  if (input < 0 || input >= node->numInputs())
    return atNode(node->name(), node->op(), absl::InvalidArgumentError(absl::StrCat("has no input ", input)));
  Endpoint before = node->ins[input];
  disconnect(node);
  ++changeCount;
  node->ins[input] = value;
  absl::Status s = checkInput(node, input);
  if (!s.ok())
    node->ins[input] = before;
  connect(node);
  return atNode(node->name(), node->op(), s);
}

void Graph::addControl(Node *from, Node *to) {
  if (std::find(to->controlIns.begin(), to->controlIns.end(), from) != to->controlIns.end())
    return;
  to->controlIns.push_back(from);
  from->controlOuts.push_back(to);
}

void Graph::removeControl(Node *from, Node *to) {
  eraseOne(to->controlIns, from);
  eraseOne(from->controlOuts, to);
}

absl::Status Graph::change(Node *node, NodeSpec spec) {
  Node next;
  next.owner = this;
  next.def = spec.def;
  next.def.clear_input();
  next.def.set_name(node->name());
  next.ins = spec.inputs;
  absl::Status s = resolve(&next);
  if (s.ok() && next.ins.size() != next.inTypes.size())
    s = absl::InvalidArgumentError(absl::StrCat("expected ", next.inTypes.size(), " inputs, found ", next.ins.size()));
  for (int i = 0; s.ok() && i < next.numInputs(); ++i)
    s = checkInput(&next, i);
  for (int i = 0; s.ok() && i < node->numOutputs(); ++i)
    if (!node->users[i].empty() && (i >= next.numOutputs() || next.outTypes[i] != node->outTypes[i]))
      s = absl::InvalidArgumentError(absl::StrCat("output ", i, " is read and would change"));
  if (!s.ok())
    return atNode(node->name(), node->op(), s);
  disconnect(node);
  ++changeCount;
  next.number = node->number;
  next.users = std::move(node->users);
  next.users.resize(next.outTypes.size());
  next.controlOuts = std::move(node->controlOuts);
  next.controlIns = std::move(spec.controls);
  index.erase(node->name());
  *node = std::move(next);
  index.emplace(node->name(), node);
  connect(node);
  return absl::OkStatus();
}

absl::Status Graph::replaceUses(Endpoint from, Endpoint to) {
  std::vector<Use> uses = from.node->users[from.index];
  for (const Use &use : uses)
    if (absl::Status s = setInput(use.node, use.index, to); !s.ok())
      return s;
  return absl::OkStatus();
}

void Graph::remove(const std::vector<Node *> &gone) {
  changeCount += static_cast<int64_t>(gone.size());
  for (Node *node : gone)
    disconnect(node);
  for (Node *node : gone) {
    for (auto &list : node->users)
      assert(list.empty() && "a node that is read");
    for (Node *user : node->controlOuts)
      eraseOne(user->controlIns, node);
    index.erase(node->name());
    all[node->number].reset();
  }
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

bool isBackEdge(const Node *from, const Node *to) {
  return ops::isBackEdge(from->op(), to->op());
}

absl::StatusOr<std::vector<Node *>> topologicalOrder(const Graph &graph) {
  std::vector<int> pending(graph.maxId(), 0);
  std::vector<Node *> order;
  std::vector<Node *> nodes = graph.nodes();
  for (Node *node : nodes) {
    int n = static_cast<int>(node->controls().size());
    for (const Endpoint &e : node->inputs())
      n += !isBackEdge(e.node, node);
    pending[node->id()] = n;
    if (n == 0)
      order.push_back(node);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    Node *node = order[i];
    auto ready = [&](Node *user) {
      if (--pending[user->id()] == 0)
        order.push_back(user);
    };
    for (int o = 0; o < node->numOutputs(); ++o)
      for (const Use &use : node->uses(o))
        if (!isBackEdge(node, use.node))
          ready(use.node);
    for (Node *user : node->controlUsers())
      ready(user);
  }
  if (order.size() == nodes.size())
    return order;
  for (Node *node : nodes)
    if (pending[node->id()] > 0)
      return atNode(node->name(), node->op(), absl::InvalidArgumentError("is part of a cycle or behind one"));
  return absl::InternalError("lost nodes while sorting");
}

std::vector<bool> ancestors(const Graph &graph, const std::vector<Node *> &roots) {
  std::vector<bool> needed(graph.maxId(), false);
  std::vector<Node *> work;
  auto need = [&](Node *node) {
    if (!needed[node->id()]) {
      needed[node->id()] = true;
      work.push_back(node);
    }
  };
  for (Node *root : roots)
    need(root);
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    for (const Endpoint &e : node->inputs())
      need(e.node);
    for (Node *c : node->controls())
      need(c);
  }
  return needed;
}

void prune(Graph &graph, const std::vector<Node *> &keep) {
  std::vector<bool> needed = ancestors(graph, keep);
  std::vector<Node *> nodes = graph.nodes();
  std::vector<Node *> gone;
  for (Node *node : nodes)
    if (!needed[node->id()])
      gone.push_back(node);
  graph.remove(gone);
}

} // namespace lathe::graphdef
