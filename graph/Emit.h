// Writing nodes down as expressions: `Reshape(Sum(dy, axes), Shape(x))`.
//
// A Val is an endpoint together with the emitter that adds nodes to its graph. Attributes that follow from the inputs are put in.
// The first error stays in the emitter; after it every expression is an invalid Val, so that code need not ask in between.
#ifndef LATHE_GRAPH_EMIT_H
#define LATHE_GRAPH_EMIT_H

#include "graph/Graph.h"

#include <initializer_list>

namespace lathe::graphdef {

class Emitter;

struct Val {
  Emitter *emitter = nullptr;
  Endpoint end;

  Val() = default;
  Val(Emitter &emitter, Endpoint end) : emitter(&emitter), end(end) {}
  explicit operator bool() const { return static_cast<bool>(end); }
  /// Invalid for an invalid Val.
  DType type() const { return end ? end.type() : DType::Invalid; }
  /// Output i of the same node.
  Val at(int i) const { return end ? Val(*emitter, {end.node, i}) : *this; }
  /// All outputs of the node.
  std::vector<Val> all() const;
};

/// A named attribute of any kind.
struct NamedAttr {
  const char *name;
  tf::AttrValue value;

  NamedAttr(const char *name, tf::AttrValue value) : name(name), value(std::move(value)) {}
  NamedAttr(const char *name, int v) : NamedAttr(name, static_cast<int64_t>(v)) {}
  NamedAttr(const char *name, int64_t v) : name(name) { value.set_i(v); }
  NamedAttr(const char *name, float v) : name(name) { value.set_f(v); }
  NamedAttr(const char *name, bool v) : name(name) { value.set_b(v); }
  NamedAttr(const char *name, const char *v) : name(name) { value.set_s(v); }
  NamedAttr(const char *name, const std::string &v) : name(name) { value.set_s(v); }
  NamedAttr(const char *name, DType v) : name(name) { value.set_type(static_cast<tf::DataType>(v)); }
  NamedAttr(const char *name, const std::vector<int64_t> &v) : name(name) {
    value.mutable_list();
    for (int64_t x : v)
      value.mutable_list()->add_i(x);
  }
  NamedAttr(const char *name, const std::vector<DType> &v) : name(name) {
    value.mutable_list();
    for (DType x : v)
      value.mutable_list()->add_type(static_cast<tf::DataType>(x));
  }
  NamedAttr(const char *name, const PartialShape &v) : name(name) { encodeShape(v, value.mutable_shape()); }
};
using NamedAttrs = std::vector<NamedAttr>;

/// An argument of an op: one value, or a list.
struct ArgVals {
  std::vector<Val> values;
  ArgVals(Val v) : values{v} {}
  ArgVals(std::vector<Val> v) : values(std::move(v)) {}
};

class Emitter {
public:
  explicit Emitter(Graph &graph) : graph(graph) {}

  Graph &graph;
  absl::Status status;
  /// Nodes are called `scope`/OP, made unique; no scope: OP.
  std::string scope;
  std::string device;
  std::vector<Node *> controls; ///< control inputs of each new node

  bool ok() const { return status.ok(); }
  void fail(absl::Status s) {
    if (status.ok())
      status = std::move(s);
  }
  Val val(Endpoint e) { return e ? Val(*this, e) : Val(); }

  /// A node of `op` with these arguments, in the order of the op table; its first output.
  Val op(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs = {});
  /// The same node as an object, for ops without outputs; null after an error.
  Node *node(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs = {}, std::string_view name = {});

  Val constant(const Tensor &value);
  /// A scalar of a numeric type; complex numbers have no imaginary part.
  Val scalar(DType type, double value);
  Val int32s(const std::vector<int32_t> &values);
  Val int32(int32_t value);
};

/// A scalar tensor of a numeric or boolean type.
Tensor scalarTensor(DType type, double value);

/// emitter.op with the emitter of the first valid argument; an invalid Val where all are invalid.
Val call(const char *op, const std::vector<ArgVals> &args, const NamedAttrs &attrs = {});

/// A scalar of x's type.
Val like(Val x, double value);

} // namespace lathe::graphdef

#endif
