// Building graphs in C++ under TensorFlow's names: a Scope carries the graph, names, device and control dependencies; the wrappers of
// graph/builder/ops/*.h, made from the op table, add nodes through it. No protobuf in this header.
#ifndef LATHE_GRAPH_BUILDER_SCOPE_H
#define LATHE_GRAPH_BUILDER_SCOPE_H

#include "base/Tensor.h"

#include "absl/status/status.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lathe {

namespace graphdef {
class Graph;
class Node;
} // namespace graphdef

/// A node of the graph; none when making it failed.
class Operation {
public:
  Operation() = default;
  explicit Operation(graphdef::Node *node) : handle(node) {}
  graphdef::Node *node() const { return handle; }
  int num_outputs() const;
  DType output_type(int i) const;
  std::string name() const;
  bool operator==(const Operation &o) const { return handle == o.handle; }

private:
  graphdef::Node *handle = nullptr;
};

/// One output of a node.
class Output {
public:
  Output() = default;
  explicit Output(graphdef::Node *node, int index = 0) : operation(node), position(index) {}
  Output(Operation op, int index) : operation(op), position(index) {}
  Operation op() const { return operation; }
  graphdef::Node *node() const { return operation.node(); }
  int index() const { return position; }
  /// Invalid without a node.
  DType type() const;
  /// "node:0", as sessions take it.
  std::string name() const;
  bool operator==(const Output &o) const { return node() == o.node() && position == o.position; }

private:
  Operation operation;
  int position = 0;
};
using OutputList = std::vector<Output>;

/// A constant from C++ values: a number, a string, nested lists of them, or a tensor.
class Initializer {
public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Initializer(T value) : Initializer(std::initializer_list<T>{value}) {
    tensor = tensor.reshaped({});
  }
  Initializer(const char *value) : tensor(Tensor::fromStrings({}, {value})) {}
  Initializer(std::string value) : tensor(Tensor::fromStrings({}, {std::move(value)})) {}
  Initializer(Tensor value) : tensor(std::move(value)) {}
  template <typename T>
  Initializer(std::initializer_list<T> values) {
    std::vector<T> list(values);
    if constexpr (std::is_convertible_v<T, std::string>) {
      std::vector<std::string> strings(list.begin(), list.end());
      int64_t size = static_cast<int64_t>(strings.size());
      tensor = Tensor::fromStrings({size}, std::move(strings));
    } else {
      tensor = Tensor::allocate(typeOf<T>(), {static_cast<int64_t>(list.size())});
      for (size_t i = 0; i < list.size(); ++i)
        tensor.data<T>()[i] = list[i];
    }
  }
  /// Rows, which must be alike.
  Initializer(std::initializer_list<Initializer> rows);

  template <typename T>
  static constexpr DType typeOf() {
    if constexpr (std::is_same_v<T, bool>)
      return DType::Bool;
    else if constexpr (std::is_same_v<T, float>)
      return DType::Float32;
    else if constexpr (std::is_same_v<T, double>)
      return DType::Float64;
    else if constexpr (std::is_signed_v<T>)
      return sizeof(T) == 1 ? DType::Int8 : sizeof(T) == 2 ? DType::Int16 : sizeof(T) == 4 ? DType::Int32 : DType::Int64;
    else
      return sizeof(T) == 1 ? DType::UInt8 : sizeof(T) == 2 ? DType::UInt16 : sizeof(T) == 4 ? DType::UInt32 : DType::UInt64;
  }

  Tensor tensor;
  absl::Status status;
};

/// What a wrapper takes: an output, or a constant that it makes a Const node of.
class Input {
public:
  Input(const Output &output) : from(output) {}
  /// The result of another wrapper.
  template <typename T, typename = std::enable_if_t<std::is_convertible_v<const T &, Output> && !std::is_same_v<T, Output>>, typename = void>
  Input(const T &wrapper) : from(static_cast<Output>(wrapper)) {}
  Input(const Initializer &value) : constant(value) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Input(T value) : constant(Initializer(value)) {}
  Input(const char *value) : constant(Initializer(value)) {}
  Input(const std::string &value) : constant(Initializer(value)) {}
  Input(const Tensor &value) : constant(Initializer(value)) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Input(std::initializer_list<T> values) : constant(Initializer(values)) {}
  Input(std::initializer_list<Initializer> rows) : constant(Initializer(rows)) {}

  Output from;
  std::optional<Initializer> constant;
};

class InputList {
public:
  InputList(const OutputList &outputs) : inputs(outputs.begin(), outputs.end()) {}
  InputList(std::initializer_list<Input> list) : inputs(list) {}
  InputList(std::vector<Input> list) : inputs(std::move(list)) {}
  std::vector<Input> inputs;
};

/// A function of the graph's library, by name.
struct FunctionName {
  std::string name;
};

/// A shape that may lack its rank (nullopt) or some sizes (-1).
using PartialShape = std::optional<std::vector<int64_t>>;

/// The value of an attribute.
using AttrArg = std::variant<int64_t, float, bool, std::string, DType, PartialShape, Tensor, FunctionName, std::vector<int64_t>,
                             std::vector<float>, std::vector<bool>, std::vector<std::string>, std::vector<DType>,
                             std::vector<PartialShape>, std::vector<FunctionName>>;
using AttrArgs = std::vector<std::pair<std::string, AttrArg>>;

/// Where nodes go and what they are called. Copies share the graph and the first error.
class Scope {
public:
  static Scope NewRootScope();
  /// Over a graph that someone else keeps.
  static Scope ForGraph(std::shared_ptr<graphdef::Graph> graph);

  /// Names begin with `name`/; a scope without a name is the same scope.
  Scope NewSubScope(std::string_view name) const;
  /// The next op is called this.
  Scope WithOpName(std::string_view name) const;
  Scope WithControlDependencies(const std::vector<Operation> &operations) const;
  Scope WithControlDependencies(const Output &output) const { return WithControlDependencies(std::vector<Operation>{output.op()}); }
  Scope WithNoControlDependencies() const;
  Scope WithDevice(std::string_view device) const;
  Scope ColocateWith(const Operation &op) const;

  bool ok() const { return status().ok(); }
  /// The first error; it names the node that the failing call would have made.
  absl::Status status() const;
  void UpdateStatus(const absl::Status &status) const;
  graphdef::Graph *graph() const;
  std::shared_ptr<graphdef::Graph> shared_graph() const;
  /// The bytes of a GraphDef; the first error if there was one.
  absl::Status ToGraphDef(std::string *bytes) const;
  std::string GetUniqueNameForOp(std::string_view name) const;
  /// What is known of an output's shape while the graph is built.
  PartialShape ShapeOf(const Output &output) const;
  const std::string &device() const;

  /// Adds a node; arguments are in the order of the op table. Null after an error, which the scope keeps: of types and attributes, and of
  /// shapes that cannot go together.
  Operation AddOp(const char *op, const std::vector<InputList> &args, const AttrArgs &attrs) const;
  /// The output that an input stands for, which may make a Const node.
  Output Resolve(const Input &input) const;

private:
  struct State;
  explicit Scope(std::shared_ptr<const State> state) : state(std::move(state)) {}
  std::string nameFor(std::string_view op) const;
  std::shared_ptr<const State> state;
};

/// Outputs of a node from `start` on, as many as an argument of the op table has.
OutputList outputsOf(const Operation &op, std::string_view arg);
/// The output of an argument that is no list; none for no node.
Output outputOf(const Operation &op, std::string_view arg);

namespace ops {
/// A constant; with `shape`, its values are repeated or arranged in that shape.
Output Const(const Scope &scope, const Initializer &value);
Output Const(const Scope &scope, const Initializer &value, const std::vector<int64_t> &shape);
template <typename T>
Output Const(const Scope &scope, std::initializer_list<T> values) {
  return Const(scope, Initializer(values));
}
} // namespace ops

/// A gradient: a tensor or, as TensorFlow's IndexedSlices, rows of one that is zero elsewhere. Then values[i] belongs to row indices[i],
/// the values of equal indices add up, and dense_shape is the shape of the whole.
struct Gradient {
  Gradient() = default;
  Gradient(const Output &whole) : values(whole) {}
  Gradient(const Output &values, const Output &indices, const Output &dense_shape)
      : values(values), indices(indices), dense_shape(dense_shape) {}
  /// Whether there is one.
  explicit operator bool() const { return values.node(); }
  bool is_rows() const { return indices.node(); }

  Output values, indices, dense_shape;
};

/// Adds nodes that compute the derivatives of `outputs` by `inputs`; a gradient that does not exist has no node. With
/// `grad_inputs` one gradient an output comes in, otherwise ones.
absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  const std::vector<Output> &grad_inputs, std::vector<Output> *grad_outputs);
absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  std::vector<Output> *grad_outputs);
/// The same, where gradients of gathers are rows; TensorFlow's Python does so. By a variable's handle they are those of all its reads.
absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  const std::vector<Output> &grad_inputs, std::vector<Gradient> *grad_outputs);
absl::Status AddSymbolicGradients(const Scope &scope, const std::vector<Output> &outputs, const std::vector<Output> &inputs,
                                  std::vector<Gradient> *grad_outputs);
/// The tensor that a gradient stands for.
Output ConvertToTensor(const Scope &scope, const Gradient &gradient);

} // namespace lathe

#endif
