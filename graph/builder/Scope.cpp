#include "graph/builder/Scope.h"

#include "graph/Emit.h"
#include "graph/Shapes.h"
#include "graph/gradients/Gradients.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe {

using graphdef::Endpoint;
using graphdef::Graph;
using graphdef::Node;

//===----------------------------------------------------------------------===//
// Operations, outputs, constants
//===----------------------------------------------------------------------===//

int Operation::num_outputs() const { return handle ? handle->numOutputs() : 0; }
DType Operation::output_type(int i) const { return i >= 0 && i < num_outputs() ? handle->outputType(i) : DType::Invalid; }
std::string Operation::name() const { return handle ? handle->name() : std::string(); }

DType Output::type() const { return operation.output_type(position); }
std::string Output::name() const { return node() ? absl::StrCat(node()->name(), ":", position) : std::string(); }

Initializer::Initializer(std::initializer_list<Initializer> rows) {
  std::vector<int64_t> dims{static_cast<int64_t>(rows.size())};
  const Initializer *first = rows.begin();
  if (rows.size() == 0) {
    tensor = Tensor::allocate(DType::Float32, {0});
    return;
  }
  for (int64_t d : first->tensor.dims())
    dims.push_back(d);
  const DType type = first->tensor.dtype();
  std::vector<std::string> strings;
  for (const Initializer &row : rows) {
    if (!row.status.ok())
      status = row.status;
    else if (row.tensor.dtype() != type || row.tensor.dims() != first->tensor.dims())
      status = absl::InvalidArgumentError("the rows of a constant differ in shape or type");
    if (!status.ok())
      return;
    strings.insert(strings.end(), row.tensor.strings().begin(), row.tensor.strings().end());
  }
  if (type == DType::String) {
    tensor = Tensor::fromStrings(dims, strings);
    return;
  }
  tensor = Tensor::allocate(type, dims);
  char *out = tensor.data<char>();
  for (const Initializer &row : rows) {
    std::memcpy(out, row.tensor.data(), row.tensor.sizeBytes());
    out += row.tensor.sizeBytes();
  }
}

OutputList outputsOf(const Operation &op, std::string_view arg) {
  OutputList out;
  if (!op.node())
    return out;
  auto [start, count] = op.node()->outputRange(arg);
  for (int i = 0; i < count; ++i)
    out.push_back(Output(op, start + i));
  return out;
}

Output outputOf(const Operation &op, std::string_view arg) {
  return op.node() ? Output(op, op.node()->outputRange(arg).first) : Output();
}

//===----------------------------------------------------------------------===//
// Scope
//===----------------------------------------------------------------------===//

namespace {

/// Shapes of a graph that others may add to, change and take from.
class KnownShapes {
public:
  explicit KnownShapes(const Graph &graph) : graph(graph) { catchUp(); }

  /// INVALID_ARGUMENT, and nothing of the node, when its inputs cannot go together.
  absl::Status add(const Node *node) {
    catchUp(node->id());
    next = node->id() + 1;
    return shapes.add(node);
  }
  /// A node that was just taken away again.
  void remove(const Node *node) {
    shapes.remove(node);
    ++changes;
  }
  PartialShape of(Endpoint e) {
    catchUp();
    return shapes.shape(e);
  }

private:
  /// Takes in what came since; of those nodes a shape that cannot be told is unknown.
  void catchUp(int until = -1) {
    if (changes != graph.changes() || next == 0) {
      shapes = graphdef::Shapes();
      if (auto order = graphdef::topologicalOrder(graph); order.ok())
        for (const Node *node : *order)
          if (until < 0 || node->id() != until)
            (void)shapes.add(node);
      next = graph.maxId();
      changes = graph.changes();
    }
    for (; next < (until < 0 ? graph.maxId() : until); ++next)
      if (const Node *node = graph.node(next))
        (void)shapes.add(node);
  }

  const Graph &graph;
  graphdef::Shapes shapes;
  int next = 0;        ///< node ids below this are in
  int64_t changes = 0; ///< of the graph when they were
};

} // namespace

struct Scope::State {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<absl::Status> status;
  std::shared_ptr<KnownShapes> shapes;
  std::string prefix, opName, device;
  std::vector<Node *> controls;
  std::vector<std::string> colocate;
};

Scope Scope::NewRootScope() { return ForGraph(std::make_shared<Graph>()); }

Scope Scope::ForGraph(std::shared_ptr<Graph> graph) {
  auto state = std::make_shared<State>();
  state->graph = std::move(graph);
  state->status = std::make_shared<absl::Status>();
  state->shapes = std::make_shared<KnownShapes>(*state->graph);
  return Scope(std::move(state));
}

Scope Scope::NewSubScope(std::string_view name) const {
  if (name.empty())
    return *this;
  auto next = std::make_shared<State>(*state);
  std::string full = state->prefix.empty() ? std::string(name) : absl::StrCat(state->prefix, "/", std::string(name));
  next->prefix = state->graph->uniqueScope(full);
  next->opName.clear();
  return Scope(std::move(next));
}

Scope Scope::WithOpName(std::string_view name) const {
  auto next = std::make_shared<State>(*state);
  next->opName = std::string(name);
  return Scope(std::move(next));
}

Scope Scope::WithControlDependencies(const std::vector<Operation> &operations) const {
  auto next = std::make_shared<State>(*state);
  for (const Operation &op : operations)
    if (op.node())
      next->controls.push_back(op.node());
  return Scope(std::move(next));
}

Scope Scope::WithNoControlDependencies() const {
  auto next = std::make_shared<State>(*state);
  next->controls.clear();
  return Scope(std::move(next));
}

Scope Scope::WithDevice(std::string_view device) const {
  auto next = std::make_shared<State>(*state);
  next->device = std::string(device);
  return Scope(std::move(next));
}

Scope Scope::ColocateWith(const Operation &op) const {
  auto next = std::make_shared<State>(*state);
  if (op.node())
    next->colocate.push_back("loc:@" + op.name());
  return Scope(std::move(next));
}

absl::Status Scope::status() const { return *state->status; }
void Scope::UpdateStatus(const absl::Status &status) const {
  if (state->status->ok())
    *state->status = status;
}
Graph *Scope::graph() const { return state->graph.get(); }
std::shared_ptr<Graph> Scope::shared_graph() const { return state->graph; }
const std::string &Scope::device() const { return state->device; }

absl::Status Scope::ToGraphDef(std::string *bytes) const {
  if (ok())
    *bytes = state->graph->toProto().SerializeAsString();
  return status();
}

std::string Scope::nameFor(std::string_view op) const {
  std::string name = state->opName.empty() ? std::string(op) : state->opName;
  return state->prefix.empty() ? name : absl::StrCat(state->prefix, "/", name);
}

std::string Scope::GetUniqueNameForOp(std::string_view name) const { return state->graph->uniqueName(nameFor(name)); }

PartialShape Scope::ShapeOf(const Output &output) const {
  return output.node() ? state->shapes->of({output.node(), output.index()}) : std::nullopt;
}

namespace {

struct ToProto {
  tf::AttrValue *out;
  void operator()(int64_t v) { out->set_i(v); }
  void operator()(float v) { out->set_f(v); }
  void operator()(bool v) { out->set_b(v); }
  void operator()(const std::string &v) { out->set_s(v); }
  void operator()(DType v) { out->set_type(static_cast<tf::DataType>(v)); }
  void operator()(const PartialShape &v) { graphdef::encodeShape(v, out->mutable_shape()); }
  // a tensor of resources becomes a malformed attribute, which the graph refuses
  void operator()(const Tensor &v) { graphdef::encodeTensor(v, out->mutable_tensor()).IgnoreError(); }
  void operator()(const FunctionName &v) { out->mutable_func()->set_name(v.name); }
  template <typename T>
  void operator()(const std::vector<T> &v) {
    tf::AttrValue::ListValue *list = out->mutable_list();
    for (const T &x : v)
      add(list, x);
  }
  static void add(tf::AttrValue::ListValue *list, int64_t v) { list->add_i(v); }
  static void add(tf::AttrValue::ListValue *list, float v) { list->add_f(v); }
  static void add(tf::AttrValue::ListValue *list, bool v) { list->add_b(v); }
  static void add(tf::AttrValue::ListValue *list, const std::string &v) { list->add_s(v); }
  static void add(tf::AttrValue::ListValue *list, DType v) { list->add_type(static_cast<tf::DataType>(v)); }
  static void add(tf::AttrValue::ListValue *list, const PartialShape &v) { graphdef::encodeShape(v, list->add_shape()); }
  static void add(tf::AttrValue::ListValue *list, const FunctionName &v) { list->add_func()->set_name(v.name); }
};

} // namespace

Output Scope::Resolve(const Input &input) const {
  if (!input.constant)
    return input.from;
  if (!input.constant->status.ok()) {
    UpdateStatus(graphdef::atNode(nameFor("Const"), "Const", input.constant->status));
    return Output();
  }
  const Tensor &value = input.constant->tensor;
  auto next = std::make_shared<State>(*state);
  next->opName = state->opName.empty() ? "Const" : state->opName + "/Const";
  return Output(Scope(std::move(next)).AddOp("Const", {}, {{"dtype", value.dtype()}, {"value", value}}), 0);
}

Operation Scope::AddOp(const char *op, const std::vector<InputList> &args, const AttrArgs &attrs) const {
  if (!ok())
    return Operation();
  graphdef::NodeSpec spec;
  const std::string base = nameFor(op);
  auto failed = [&](const absl::Status &s) {
    UpdateStatus(graphdef::atNode(base, op, s));
    return Operation();
  };
  const ops::OpInfo *info = state->graph->findOp(op);
  if (!info)
    return failed(absl::NotFoundError("op is not known"));
  std::vector<std::vector<Endpoint>> ends;
  for (const InputList &arg : args) {
    ends.emplace_back();
    for (const Input &input : arg.inputs) {
      Output value = Resolve(input);
      if (!ok())
        return Operation();
      if (!value.node())
        return failed(absl::InvalidArgumentError(absl::StrCat("argument ", ends.size() - 1, " has no value")));
      ends.back().push_back({value.node(), value.index()});
      spec.inputs.push_back(ends.back().back());
    }
  }
  spec.def.set_op(op);
  spec.def.set_device(state->device);
  for (auto &[name, value] : attrs)
    std::visit(ToProto{&(*spec.def.mutable_attr())[name]}, value);
  for (const std::string &place : state->colocate)
    (*spec.def.mutable_attr())["_class"].mutable_list()->add_s(place);
  if (absl::Status s = graphdef::inferAttrs(*info, ends, &spec.def); !s.ok())
    return failed(s);
  spec.def.set_name(state->graph->uniqueName(base));
  spec.controls = state->controls;
  auto made = state->graph->add(std::move(spec));
  if (!made.ok())
    return failed(made.status());
  if (absl::Status s = state->shapes->add(*made); !s.ok()) {
    state->shapes->remove(*made);
    state->graph->remove({*made});
    return failed(s);
  }
  return Operation(*made);
}

namespace ops {

Output Const(const Scope &scope, const Initializer &value) {
  if (!value.status.ok()) {
    scope.UpdateStatus(value.status);
    return Output();
  }
  return Output(scope.AddOp("Const", {}, {{"dtype", value.tensor.dtype()}, {"value", value.tensor}}), 0);
}

Output Const(const Scope &scope, const Initializer &value, const std::vector<int64_t> &shape) {
  auto refuse = [&](const std::string &why) {
    scope.UpdateStatus(absl::InvalidArgumentError(why));
    return Output();
  };
  auto count = checkedNumElements(shape);
  if (!value.status.ok() || !count.ok())
    return refuse(std::string((value.status.ok() ? count.status() : value.status).message()));
  const Tensor &from = value.tensor;
  if (from.numElements() == *count)
    return Const(scope, Initializer(from.reshaped(shape)));
  if (from.numElements() != 1)
    return refuse(absl::StrCat("a constant of ", from.numElements(), " values cannot have the shape ", dimsToString(shape)));
  if (from.dtype() == DType::String)
    return Const(scope, Initializer(Tensor::fromStrings(shape, std::vector<std::string>(static_cast<size_t>(*count), from.strings()[0]))));
  Tensor filled = Tensor::allocate(from.dtype(), shape);
  const size_t size = dtypeSize(from.dtype());
  for (int64_t i = 0; i < *count; ++i)
    std::memcpy(filled.data<char>() + i * size, from.data(), size);
  return Const(scope, Initializer(filled));
}

} // namespace ops

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

namespace {

Output toOutput(const Endpoint &e) { return e ? Output(e.node, e.index) : Output(); }
Output toResult(const Endpoint &e, const Output *) { return toOutput(e); }
Gradient toResult(const graphdef::Gradient &g, const Gradient *) { return {toOutput(g.values), toOutput(g.indices), toOutput(g.shape)}; }

/// Found is what graphdef has for Result.
template <typename Found, typename Result>
absl::Status addGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                          const std::vector<Output> &grad_inputs, std::vector<Result> *grad_outputs) {
  if (!scope.ok())
    return scope.status();
  auto ends = [](const std::vector<Output> &list) {
    std::vector<Endpoint> out;
    for (const Output &o : list)
      out.push_back({o.node(), o.index()});
    return out;
  };
  std::vector<Found> grads;
  graphdef::GradientOptions options;
  options.prefix = scope.GetUniqueNameForOp("gradients");
  absl::Status s = graphdef::addGradients(*scope.graph(), ends(outputs), ends(inputs), ends(grad_inputs), options, &grads);
  grad_outputs->clear();
  for (const Found &g : grads)
    grad_outputs->push_back(toResult(g, static_cast<const Result *>(nullptr)));
  scope.UpdateStatus(s);
  return s;
}

} // namespace

absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  const std::vector<Output> &grad_inputs, std::vector<Output> *grad_outputs) {
  return addGradients<Endpoint>(scope, outputs, inputs, grad_inputs, grad_outputs);
}

absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  std::vector<Output> *grad_outputs) {
  return addGradients<Endpoint>(scope, outputs, inputs, {}, grad_outputs);
}

absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  const std::vector<Output> &grad_inputs, std::vector<Gradient> *grad_outputs) {
  return addGradients<graphdef::Gradient>(scope, outputs, inputs, grad_inputs, grad_outputs);
}

absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  std::vector<Gradient> *grad_outputs) {
  return addGradients<graphdef::Gradient>(scope, outputs, inputs, {}, grad_outputs);
}

Output ConvertToTensor(const Scope &scope, const Gradient &gradient) {
  if (!gradient.is_rows())
    return gradient.values;
  Scope inside = scope.NewSubScope("whole");
  auto constant = [&](std::initializer_list<int32_t> values) { return ops::Const(inside, values); };
  const std::vector<InputList> first{{gradient.dense_shape}, {constant({0})}, {constant({1})}, {constant({1})}};
  Output count(inside.AddOp("StridedSlice", first, {{"shrink_axis_mask", int64_t{1}}}), 0);
  return Output(inside.AddOp("UnsortedSegmentSum", {InputList{gradient.values}, InputList{gradient.indices}, InputList{count}}, {}), 0);
}

} // namespace lathe
