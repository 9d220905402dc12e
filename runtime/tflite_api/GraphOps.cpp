#include "runtime/tflite_api/GraphOps.h"

#include "runtime/core/Kernel.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/Session.h"
#include "runtime/tflite_api/GraphTable.h"
#include "runtime/tflite_api/Strings.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe::tflite_api {
namespace {

using Op = tfl::BuiltinOperator;

const tfl::OperatorCode *codeOf(const tfl::Model &model, const tfl::Operator &op) {
  auto *codes = model.operator_codes();
  return codes && op.opcode_index() < codes->size() ? codes->Get(op.opcode_index()) : nullptr;
}

/// Null for numbers that are out of range, -1 (an input that is left out) among them.
const tfl::Tensor *tensorOf(const tfl::SubGraph &graph, int index) {
  return index >= 0 && graph.tensors() && static_cast<unsigned>(index) < graph.tensors()->size() ? graph.tensors()->Get(static_cast<unsigned>(index)) : nullptr;
}

const flatbuffers::Vector<uint8_t> *contentsOf(const tfl::Model &model, const tfl::Tensor &t) {
  const tfl::Buffer *b = model.buffers() && t.buffer() < model.buffers()->size() ? model.buffers()->Get(t.buffer()) : nullptr;
  return b && b->data() && b->data()->size() ? b->data() : nullptr;
}

const char *nameOf(const tfl::Tensor *t) { return t && t->name() ? t->name()->c_str() : ""; }

bool isTable(Op op) { return op == Op::HASHTABLE || op == Op::HASHTABLE_FIND || op == Op::HASHTABLE_IMPORT || op == Op::HASHTABLE_SIZE; }

const tfl::SubGraph *calledOnce(const tfl::Model &model, const tfl::Operator &op) {
  const auto *o = op.builtin_options_as_CallOnceOptions();
  return o && o->init_subgraph_index() >= 0 && static_cast<unsigned>(o->init_subgraph_index()) < model.subgraphs()->size()
             ? model.subgraphs()->Get(static_cast<unsigned>(o->init_subgraph_index()))
             : nullptr;
}

template <typename Test>
bool anyTensor(const tfl::SubGraph &graph, const tfl::Operator &op, Test test) {
  for (auto *list : {op.inputs(), op.outputs()})
    for (unsigned i = 0; list && i < list->size(); ++i)
      if (const tfl::Tensor *t = tensorOf(graph, list->Get(i)); t && test(*t))
        return true;
  return false;
}

absl::StatusOr<bool> compiles(const std::string &op) {
  auto compiler = loadClusterCompiler();
  if (!compiler.ok())
    return compiler.status();
  return (*compiler)->compiles_op && (*compiler)->compiles_op((*compiler)->context, op.c_str());
}

} // namespace

struct GraphOps::State {
  explicit State(const tfl::Model &model) : model(model), e(graph) {}

  const tfl::Model &model;
  graphdef::Graph graph;
  Emitter e;
  int parts = 0;
  std::map<int, Val> handles; ///< tensors of subgraph 0 that are no arrays: they stay in the graph
  std::unique_ptr<Session> session;

  /// Where the tensors of a subgraph are while its operators become nodes.
  struct Scope {
    const tfl::SubGraph &graph;
    GraphPart *part; ///< null for subgraphs that CALL_ONCE names, which read nothing
    std::map<int, Val> values;
    graphdef::Node *last = nullptr; ///< the node before which nothing else with effects may run
    std::vector<graphdef::Node *> effects;
  };
  absl::StatusOr<Val> input(Scope &scope, int index);
  absl::StatusOr<Tensor> constant(const tfl::Tensor &t);
  absl::Status add(Scope &scope, const tfl::Operator &op);
  absl::Status callOnce(Scope &scope, const tfl::Operator &op);
};

GraphOps::GraphOps(const tfl::Model &model) : state(std::make_unique<State>(model)) {}
GraphOps::~GraphOps() = default;

absl::StatusOr<bool> GraphOps::takes(const tfl::SubGraph &graph, const tfl::Operator &op) const {
  const tfl::Model &model = state->model;
  const tfl::OperatorCode *code = codeOf(model, op);
  if (!code)
    return absl::InvalidArgumentError("an operator has an operator code that is out of range");
  const Op builtin = builtinOf(*code);
  if (isTable(builtin))
    return true;
  if (builtin == Op::CALL_ONCE) {
    const tfl::SubGraph *called = calledOnce(model, op);
    for (unsigned i = 0; called && called->operators() && i < called->operators()->size(); ++i)
      if (const tfl::OperatorCode *c = codeOf(model, *called->operators()->Get(i)); c && isTable(builtinOf(*c)))
        return true;
    return false;
  }
  const bool hasStrings = anyTensor(graph, op, [](const tfl::Tensor &t) { return t.type() == tfl::TensorType::STRING; });
  if (builtin == Op::CUSTOM && absl::StartsWith(nameOf(*code), "Flex")) {
    auto node = flexNode(op);
    if (!node.ok() || !rt::findKernel(node->op()))
      return false; // what compiles it says what is wrong
    if (hasStrings || anyTensor(graph, op, [](const tfl::Tensor &t) { return t.type() == tfl::TensorType::RESOURCE; }))
      return true;
    auto compiled = compiles(node->op());
    return compiled.ok() ? absl::StatusOr<bool>(!*compiled) : compiled;
  }
  if (builtin == Op::CUSTOM)
    return false;
  // compiled code wants to know how large the result is
  if (builtin == Op::SPARSE_TO_DENSE && op.inputs() && op.inputs()->size() > 1) {
    const tfl::Tensor *size = tensorOf(graph, op.inputs()->Get(1));
    return size && !contentsOf(model, *size);
  }
  return hasStrings;
}

bool GraphOps::couldTake(const tfl::Operator &op) const {
  const tfl::OperatorCode *code = codeOf(state->model, op);
  if (!code || builtinOf(*code) != Op::CUSTOM || !absl::StartsWith(nameOf(*code), "Flex"))
    return false;
  auto node = flexNode(op);
  return node.ok() && rt::findKernel(node->op());
}

absl::StatusOr<Tensor> GraphOps::State::constant(const tfl::Tensor &t) {
  const auto *bytes = contentsOf(model, t);
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (unsigned i = 0; t.shape() && i < t.shape()->size(); ++i) {
    dims.push_back(t.shape()->Get(i));
    if (dims.back() < 0 || __builtin_mul_overflow(count, dims.back(), &count))
      return absl::InvalidArgumentError("a constant has a bad size");
  }
  const DType type = dtypeOf(t.type());
  if (type == DType::String) {
    auto values = readStrings(bytes->data(), bytes->size(), count);
    return values.ok() ? absl::StatusOr<Tensor>(Tensor::fromStrings(dims, *std::move(values))) : values.status();
  }
  int64_t size = 0;
  if (!dtypeSize(type) || __builtin_mul_overflow(count, static_cast<int64_t>(dtypeSize(type)), &size) || size != static_cast<int64_t>(bytes->size()))
    return absl::InvalidArgumentError("a constant has other bytes than its shape and type say");
  auto value = Tensor::tryAllocate(type, dims, size);
  if (value.ok() && size)
    std::memcpy(value->data(), bytes->data(), bytes->size());
  return value;
}

absl::StatusOr<Val> GraphOps::State::input(Scope &scope, int index) {
  if (index < 0)
    return Val();
  const tfl::Tensor *t = tensorOf(scope.graph, index);
  if (!t)
    return absl::InvalidArgumentError("a tensor is out of range");
  if (auto at = scope.values.find(index); at != scope.values.end())
    return at->second;
  if (contentsOf(model, *t)) {
    auto value = constant(*t);
    if (!value.ok())
      return value.status();
    return scope.values[index] = e.constant(*value);
  }
  const DType type = dtypeOf(t->type());
  if (type == DType::Resource || type == DType::Variant) {
    auto at = handles.find(index);
    if (scope.part && at != handles.end())
      return at->second;
    return absl::UnimplementedError("a tensor that is no array comes from compiled code");
  }
  if (!scope.part || type == DType::Invalid || t->is_variable())
    return absl::UnimplementedError(absl::StrCat("tensor '", nameOf(t), "' is no array that can be fed"));
  Val fed = e.op("Placeholder", {}, {{"dtype", type}, {"shape", graphdef::PartialShape()}});
  if (!e.ok())
    return e.status;
  scope.part->inputs.push_back(index);
  scope.part->feeds.push_back(fed.end.name());
  return scope.values[index] = fed;
}

absl::Status GraphOps::State::callOnce(Scope &scope, const tfl::Operator &op) {
  const tfl::SubGraph *called = calledOnce(model, op);
  if (!called || !scope.part)
    return absl::InvalidArgumentError("it names no subgraph, or another such call");
  Scope inner{*called, nullptr, {}, nullptr, {}};
  for (unsigned i = 0; called->operators() && i < called->operators()->size(); ++i)
    if (absl::Status s = add(inner, *called->operators()->Get(i)); !s.ok())
      return s;
  for (graphdef::Node *n : inner.effects)
    scope.part->once.push_back(n->name());
  return absl::OkStatus();
}

absl::Status GraphOps::State::add(Scope &scope, const tfl::Operator &op) {
  const tfl::OperatorCode *code = codeOf(model, op);
  auto named = [&](const absl::Status &s) {
    const tfl::Tensor *first = op.outputs() && op.outputs()->size() ? tensorOf(scope.graph, op.outputs()->Get(0)) : nullptr;
    return absl::Status(s.code(), absl::StrCat("node '", nameOf(first), "' (", code ? nameOf(*code) : "", "): ", s.message()));
  };
  if (!code)
    return absl::InvalidArgumentError("an operator has an operator code that is out of range");
  if (builtinOf(*code) == Op::CALL_ONCE) {
    absl::Status s = callOnce(scope, op);
    return s.ok() ? s : named(s);
  }
  std::vector<Val> inputs;
  for (unsigned i = 0; op.inputs() && i < op.inputs()->size(); ++i) {
    auto value = input(scope, op.inputs()->Get(i));
    if (!value.ok())
      return named(value.status());
    inputs.push_back(*value);
  }
  const int before = graph.maxId();
  auto results = translate(e, *code, op, inputs);
  if (!results.ok())
    return named(results.status());
  // what has effects keeps the order of the file
  for (int id = before; id < graph.maxId(); ++id)
    if (graphdef::Node *n = graph.node(id); n && n->info().isStateful && n->op() != "Placeholder") {
      if (scope.last)
        graph.addControl(scope.last, n);
      scope.last = n;
      scope.effects.push_back(n);
    }
  for (unsigned i = 0; i < results->size(); ++i) {
    const int index = op.outputs()->Get(i);
    const tfl::Tensor *t = tensorOf(scope.graph, index);
    const DType type = (*results)[i].type();
    if (!t || dtypeOf(t->type()) != type)
      return named(absl::InvalidArgumentError(absl::StrCat("result ", i, " is of another type than its tensor")));
    scope.values[index] = (*results)[i];
    if (scope.part && (type == DType::Resource || type == DType::Variant))
      handles[index] = (*results)[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphPart> GraphOps::add(unsigned first, unsigned last, const std::set<int> &wanted) {
  GraphPart part;
  const tfl::SubGraph &graph = *state->model.subgraphs()->Get(0);
  state->e.scope = absl::StrCat("part", state->parts++);
  State::Scope scope{graph, &part, {}, nullptr, {}};
  for (unsigned i = first; i < last; ++i)
    if (absl::Status s = state->add(scope, *graph.operators()->Get(i)); !s.ok())
      return s;
  std::set<int> made;
  for (unsigned i = first; i < last; ++i)
    for (unsigned k = 0; graph.operators()->Get(i)->outputs() && k < graph.operators()->Get(i)->outputs()->size(); ++k)
      made.insert(graph.operators()->Get(i)->outputs()->Get(k));
  for (int t : made) {
    const Val &value = scope.values.at(t);
    if (!wanted.count(t) || value.type() == DType::Resource || value.type() == DType::Variant)
      continue;
    part.outputs.push_back(t);
    part.fetches.push_back(value.end.name());
  }
  for (graphdef::Node *n : scope.effects)
    part.targets.push_back(n->name());
  return part;
}

absl::StatusOr<std::vector<Tensor>> GraphOps::run(GraphPart &part, const std::vector<Tensor> &inputs) {
  if (!state->session) {
    SessionOptions options;
    options.compiler = deferredClusterCompiler();
    options.clusterMode = 0; // what has a kernel for the host is not worth the compiler here
    auto session = std::make_unique<Session>(options);
    if (absl::Status s = session->Create(state->graph.toProto()); !s.ok())
      return s;
    state->session = std::move(session);
  }
  std::vector<Tensor> outputs;
  if (part.isFirst && !part.once.empty())
    if (absl::Status s = state->session->Run({}, {}, part.once, nullptr); !s.ok())
      return s;
  part.isFirst = false;
  if (part.fetches.empty() && part.targets.empty())
    return outputs;
  Session::Feeds feeds;
  for (size_t i = 0; i < inputs.size(); ++i)
    feeds.emplace_back(part.feeds[i], inputs[i]);
  absl::Status s = state->session->Run(feeds, part.fetches, part.targets, &outputs);
  if (!s.ok())
    return s;
  return outputs;
}

} // namespace lathe::tflite_api
