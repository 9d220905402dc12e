#include "graph/tflite/NodeMaker.h"

#include "graph/tflite/NodeTable.h"
#include "graph/tflite/Operators.h"
#include "graph/tflite/Strings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace lathe::tflgraph {
namespace {

const flatbuffers::Vector<uint8_t> *contentsOf(const tfl::Model &model, const tfl::Tensor &t) {
  const tfl::Buffer *b = model.buffers() && t.buffer() < model.buffers()->size() ? model.buffers()->Get(t.buffer()) : nullptr;
  return b && b->data() && b->data()->size() ? b->data() : nullptr;
}

const char *nameOf(const tfl::Tensor *t) { return t && t->name() ? t->name()->c_str() : ""; }

bool isTable(Op op) { return op == Op::HASHTABLE || op == Op::HASHTABLE_FIND || op == Op::HASHTABLE_IMPORT || op == Op::HASHTABLE_SIZE; }

template <typename Test>
bool anyTensor(const tfl::SubGraph &graph, const tfl::Operator &op, Test test) {
  for (auto *list : {op.inputs(), op.outputs()})
    for (unsigned i = 0; list && i < list->size(); ++i)
      if (const tfl::Tensor *t = tensorOf(graph, list->Get(i)); t && test(*t))
        return true;
  return false;
}

/// What names of nodes may hold, of the name of an operator's first result.
std::string wordOf(const tfl::SubGraph &graph, const tfl::Operator &op, const std::string &otherwise) {
  constexpr size_t most = 120;
  std::string word;
  for (char c : std::string_view(nameOf(op.outputs() && op.outputs()->size() ? tensorOf(graph, op.outputs()->Get(0)) : nullptr)).substr(0, most))
    word += absl::ascii_isalnum(static_cast<unsigned char>(c)) || (!word.empty() && (c == '/' || c == '.' || c == '-')) ? c : '_';
  size_t start = word.find_first_not_of('_');
  return start == std::string::npos ? otherwise : word.substr(start);
}

} // namespace

bool isConstant(const tfl::Model &model, const tfl::Tensor &t) {
  if (contentsOf(model, t))
    return true;
  const tfl::Buffer *b = model.buffers() && t.buffer() < model.buffers()->size() ? model.buffers()->Get(t.buffer()) : nullptr;
  return b && b->offset() > 1;
}

struct NodeMaker::State {
  State(const tfl::Model &model, const tfl::SubGraph &subgraph, Kernels kernels, std::string prefix)
      : model(model), subgraph(subgraph), kernels(std::move(kernels)), prefix(std::move(prefix)), e(graph) {}

  const tfl::Model &model;
  const tfl::SubGraph &subgraph;
  const Kernels kernels;
  const std::string prefix;
  graphdef::Graph graph;
  Emitter e;
  std::map<int, Val> handles; ///< tensors of the subgraph that are no arrays: they stay in the graph

  /// Where the tensors of a subgraph are while its operators become nodes.
  struct Scope {
    const tfl::SubGraph &graph;
    NodePart *part; ///< null for subgraphs that CALL_ONCE names, which read nothing
    std::map<int, Val> values;
    std::vector<graphdef::Node *> effects;
    std::set<const graphdef::Node *> aside; ///< not of the part itself
  };
  absl::StatusOr<bool> takes(const tfl::SubGraph &in, const tfl::Operator &op, bool isInner) const;
  absl::StatusOr<Val> input(Scope &scope, int index);
  absl::StatusOr<Tensor> constant(const tfl::Tensor &t) const;
  absl::Status add(Scope &scope, const tfl::Operator &op);
  absl::Status callOnce(Scope &scope, const tfl::Operator &op);
  std::vector<graphdef::Node *> nodesFrom(int id) const {
    std::vector<graphdef::Node *> nodes;
    for (; id < graph.maxId(); ++id)
      if (graphdef::Node *n = graph.node(id))
        nodes.push_back(n);
    return nodes;
  }
};

NodeMaker::NodeMaker(const tfl::Model &model, unsigned subgraph, Kernels kernels, std::string scope)
    : state(std::make_unique<State>(model, *model.subgraphs()->Get(subgraph), std::move(kernels), std::move(scope))) {}
NodeMaker::~NodeMaker() = default;

const tfl::Model &NodeMaker::model() const { return state->model; }
const tfl::SubGraph &NodeMaker::subgraph() const { return state->subgraph; }
graphdef::Graph &NodeMaker::graph() { return state->graph; }

absl::StatusOr<bool> NodeMaker::takes(const tfl::Operator &op) const { return state->takes(state->subgraph, op, false); }

absl::StatusOr<bool> NodeMaker::State::takes(const tfl::SubGraph &in, const tfl::Operator &op, bool isInner) const {
  const tfl::OperatorCode *code = codeOf(model, op);
  if (!code)
    return absl::InvalidArgumentError("an operator has an operator code that is out of range");
  const Op builtin = builtinOf(*code);
  if (isTable(builtin))
    return true;
  if (builtin == Op::CALL_ONCE) {
    const tfl::SubGraph *called = isInner ? nullptr : calledOnce(model, op);
    for (unsigned i = 0; called && called->operators() && i < called->operators()->size(); ++i)
      if (auto inner = takes(*called, *called->operators()->Get(i), true); !inner.ok() || *inner)
        return inner;
    return false;
  }
  const bool hasStrings = anyTensor(in, op, [](const tfl::Tensor &t) { return t.type() == tfl::TensorType::STRING; });
  if (builtin == Op::CUSTOM && absl::StartsWith(tflgraph::nameOf(*code), "Flex")) {
    auto node = flexNode(op);
    if (!node.ok() || !kernels.hasKernel(node->op()))
      return false; // what compiles it says what is wrong
    if (hasStrings || anyTensor(in, op, [](const tfl::Tensor &t) { return t.type() == tfl::TensorType::RESOURCE; }))
      return true;
    auto compiled = kernels.compiles(node->op());
    return compiled.ok() ? absl::StatusOr<bool>(!*compiled) : compiled;
  }
  if (builtin == Op::CUSTOM)
    return false;
  // compiled code wants to know how large the result is
  if (builtin == Op::SPARSE_TO_DENSE && op.inputs() && op.inputs()->size() > 1) {
    const tfl::Tensor *size = tensorOf(in, op.inputs()->Get(1));
    return size && !contentsOf(model, *size);
  }
  return hasStrings;
}

/// The inputs that say how large a result is, or where it lies.
static std::vector<unsigned> sizesOf(Op op) {
  switch (op) {
  case Op::FILL: return {0};
  case Op::RANGE: return {0, 1, 2};
  case Op::ONE_HOT:
  case Op::PAD:
  case Op::PADV2:
  case Op::MIRROR_PAD:
  case Op::TOPK_V2:
  case Op::RESHAPE:
  case Op::BROADCAST_TO:
  case Op::EXPAND_DIMS:
  case Op::REVERSE_V2:
  case Op::TRANSPOSE:
  case Op::RESIZE_BILINEAR:
  case Op::RESIZE_NEAREST_NEIGHBOR:
  case Op::TILE: return {1};
  case Op::SPLIT: return {0};
  case Op::SCATTER_ND: return {2};
  case Op::SPACE_TO_BATCH_ND:
  case Op::BATCH_TO_SPACE_ND:
  case Op::SPLIT_V:
  case Op::SLICE:
  case Op::STRIDED_SLICE: return {1, 2};
  default: return {};
  }
}

/// Whether sizes and places have types that nodes have for them.
static bool hasSizes(const tfl::SubGraph &graph, const tfl::Operator &op, Op builtin) {
  auto isIndex = [&](const flatbuffers::Vector<int32_t> *list, unsigned i) {
    const tfl::Tensor *t = list && i < list->size() ? tensorOf(graph, list->Get(i)) : nullptr;
    return t && (t->type() == tfl::TensorType::INT32 || t->type() == tfl::TensorType::INT64);
  };
  if (builtin == Op::RANGE)
    return true;
  for (unsigned i : sizesOf(builtin))
    if (!isIndex(op.inputs(), i))
      return false;
  return builtin != Op::TOPK_V2 || (op.outputs() && op.outputs()->size() > 1 && tensorOf(graph, op.outputs()->Get(1)) &&
                                    tensorOf(graph, op.outputs()->Get(1))->type() == tfl::TensorType::INT32);
}

NodeMaker::CouldTake NodeMaker::couldTake(const tfl::Operator &op) const {
  const tfl::OperatorCode *code = codeOf(state->model, op);
  if (!code)
    return CouldTake::No;
  if (builtinOf(*code) == Op::CUSTOM && absl::StartsWith(nameOf(*code), "Flex")) {
    auto node = flexNode(op);
    return node.ok() && state->kernels.hasKernel(node->op()) ? CouldTake::Flex : CouldTake::No;
  }
  // scaled, or with zeros that are zero points
  const Op builtin = builtinOf(*code);
  if ((builtin == Op::RESIZE_BILINEAR || builtin == Op::SPACE_TO_BATCH_ND) &&
      anyTensor(state->subgraph, op, [](const tfl::Tensor &t) { return t.quantization() && t.quantization()->scale(); }))
    return CouldTake::No;
  for (unsigned i : sizesOf(builtin))
    if (const tfl::Tensor *t = op.inputs() && i < op.inputs()->size() ? tensorOf(state->subgraph, op.inputs()->Get(i)) : nullptr)
      if (!isConstant(state->model, *t))
        return hasSizes(state->subgraph, op, builtin) ? CouldTake::Sizes : CouldTake::No;
  return CouldTake::No;
}

absl::StatusOr<Tensor> NodeMaker::State::constant(const tfl::Tensor &t) const {
  const auto *bytes = contentsOf(model, t);
  if (!bytes)
    return absl::UnimplementedError("a constant lies behind the flatbuffer");
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

absl::StatusOr<Tensor> NodeMaker::valueOf(int tensor) const {
  const tfl::Tensor *t = tensorOf(state->subgraph, tensor);
  return t ? state->constant(*t) : absl::InvalidArgumentError("a tensor is out of range");
}

absl::StatusOr<graphdef::Endpoint> NodeMaker::constant(const Tensor &value) {
  state->e.scope = state->prefix;
  Val v = state->e.constant(value);
  if (!state->e.ok())
    return state->e.status;
  return v.end;
}

absl::StatusOr<Val> NodeMaker::State::input(Scope &scope, int index) {
  if (index < 0)
    return Val();
  const tfl::Tensor *t = tensorOf(scope.graph, index);
  if (!t)
    return absl::InvalidArgumentError("a tensor is out of range");
  if (auto at = scope.values.find(index); at != scope.values.end())
    return at->second;
  if (isConstant(model, *t)) {
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
  scope.aside.insert(fed.end.node);
  scope.part->inputs.push_back(index);
  scope.part->feeds.push_back(fed.end);
  return scope.values[index] = fed;
}

absl::Status NodeMaker::State::callOnce(Scope &scope, const tfl::Operator &op) {
  const tfl::SubGraph *called = calledOnce(model, op);
  if (!called || !scope.part)
    return absl::InvalidArgumentError("it names no subgraph, or another such call");
  Scope inner{*called, nullptr, {}, {}, {}};
  const int before = graph.maxId();
  for (unsigned i = 0; called->operators() && i < called->operators()->size(); ++i)
    // variables are the compiled parts' own, with the values that this subgraph gives them
    if (const tfl::OperatorCode *code = codeOf(model, *called->operators()->Get(i)); !code || !isState(builtinOf(*code)))
      if (absl::Status s = add(inner, *called->operators()->Get(i)); !s.ok())
        return s;
  std::vector<graphdef::Node *> nodes = nodesFrom(before);
  scope.aside.insert(nodes.begin(), nodes.end());
  scope.part->once.push_back(
      {static_cast<unsigned>(op.builtin_options_as_CallOnceOptions()->init_subgraph_index()), std::move(nodes), std::move(inner.effects)});
  return absl::OkStatus();
}

/// What stands for 0 in the first result, where it has a scale.
static std::optional<Tensor> zeroPointOf(const tfl::SubGraph &graph, const tfl::Operator &op) {
  const tfl::Tensor *t = op.outputs() && op.outputs()->size() ? tensorOf(graph, op.outputs()->Get(0)) : nullptr;
  const auto *zeros = t && t->quantization() && t->quantization()->scale() ? t->quantization()->zero_point() : nullptr;
  const int64_t zero = zeros && zeros->size() ? zeros->Get(0) : 0;
  if (!zero)
    return std::nullopt;
  Tensor value = Tensor::allocate(dtypeOf(t->type()), {});
  switch (value.dtype()) {
  case DType::Int8: *value.data<int8_t>() = static_cast<int8_t>(zero); break;
  case DType::UInt8: *value.data<uint8_t>() = static_cast<uint8_t>(zero); break;
  case DType::Int16: *value.data<int16_t>() = static_cast<int16_t>(zero); break;
  default: return std::nullopt;
  }
  return value;
}

absl::Status NodeMaker::State::add(Scope &scope, const tfl::Operator &op) {
  const tfl::OperatorCode *code = codeOf(model, op);
  auto named = [&](const absl::Status &s) {
    const tfl::Tensor *first = op.outputs() && op.outputs()->size() ? tensorOf(scope.graph, op.outputs()->Get(0)) : nullptr;
    return absl::Status(s.code(), absl::StrCat("node '", nameOf(first), "' (", code ? tflgraph::nameOf(*code) : "", "): ", s.message()));
  };
  if (!code)
    return absl::InvalidArgumentError("an operator has an operator code that is out of range");
  if (builtinOf(*code) == Op::CALL_ONCE) {
    absl::Status s = callOnce(scope, op);
    return s.ok() || absl::StartsWith(s.message(), "node ") ? s : named(s);
  }
  e.scope = absl::StrCat(prefix, wordOf(scope.graph, op, scope.part ? "node" : "once"));
  std::vector<Val> inputs;
  for (unsigned i = 0; op.inputs() && i < op.inputs()->size(); ++i) {
    auto value = input(scope, op.inputs()->Get(i));
    if (!value.ok())
      return named(value.status());
    inputs.push_back(*value);
  }
  if (builtinOf(*code) == Op::PAD && inputs.size() == 2)
    if (auto zero = zeroPointOf(scope.graph, op))
      inputs.push_back(e.constant(*zero));
  const int before = graph.maxId();
  auto results = translate(e, *code, op, inputs);
  if (!results.ok())
    return named(results.status());
  // what has effects keeps the order of the file
  for (graphdef::Node *n : nodesFrom(before))
    if (n->info().isStateful && n->op() != "Placeholder") {
      if (!scope.effects.empty())
        graph.addControl(scope.effects.back(), n);
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

absl::StatusOr<NodePart> NodeMaker::add(unsigned first, unsigned last, const std::function<bool(int)> &wanted) {
  NodePart part;
  const tfl::SubGraph &graph = state->subgraph;
  State::Scope scope{graph, &part, {}, {}, {}};
  const int before = state->graph.maxId();
  std::set<int> made;
  for (unsigned i = first; i < last; ++i) {
    const tfl::Operator &op = *graph.operators()->Get(i);
    if (absl::Status s = state->add(scope, op); !s.ok())
      return s;
    if (op.outputs())
      made.insert(op.outputs()->begin(), op.outputs()->end());
  }
  for (int t : made) {
    auto value = scope.values.find(t);
    if (value == scope.values.end() || value->second.type() == DType::Resource || value->second.type() == DType::Variant)
      continue;
    part.made.emplace_back(t, value->second.end);
    if (!wanted(t))
      continue;
    part.outputs.push_back(t);
    part.fetches.push_back(value->second.end);
  }
  for (graphdef::Node *n : state->nodesFrom(before))
    if (!scope.aside.count(n))
      part.nodes.push_back(n);
  part.targets = std::move(scope.effects);
  return part;
}

} // namespace lathe::tflgraph
