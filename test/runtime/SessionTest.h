// Sessions over graphs written as text, host kernels only.
#ifndef LATHE_TEST_RUNTIME_SESSIONTEST_H
#define LATHE_TEST_RUNTIME_SESSIONTEST_H

#include "proto/graph.pb.h"
#include "runtime/session/Session.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace lathe {

inline tf::GraphDef graphOf(const std::string &text) {
  tf::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

/// "name op input input ^control; ..." with attributes set by the functions below.
class GraphBuilder {
public:
  tf::NodeDef &node(const std::string &name, const std::string &op, const std::vector<std::string> &inputs = {}) {
    tf::NodeDef &n = *graph.add_node();
    n.set_name(name);
    n.set_op(op);
    for (const std::string &i : inputs)
      n.add_input(i);
    return n;
  }
  GraphBuilder &type(const std::string &attr, DType t) {
    (*last().mutable_attr())[attr].set_type(static_cast<tf::DataType>(t));
    return *this;
  }
  GraphBuilder &add(const std::string &name, const std::string &op, const std::vector<std::string> &inputs = {}, DType t = DType::String,
                    const std::string &attr = "T") {
    node(name, op, inputs);
    return attr.empty() ? *this : type(attr, t);
  }
  tf::NodeDef &last() { return *graph.mutable_node(graph.node_size() - 1); }
  GraphBuilder &set(const std::string &attr, int64_t v) {
    (*last().mutable_attr())[attr].set_i(v);
    return *this;
  }
  GraphBuilder &set(const std::string &attr, const std::string &v) {
    (*last().mutable_attr())[attr].set_s(v);
    return *this;
  }
  GraphBuilder &flag(const std::string &attr, bool v) {
    (*last().mutable_attr())[attr].set_b(v);
    return *this;
  }
  GraphBuilder &types(const std::string &attr, const std::vector<DType> &list) {
    auto *l = (*last().mutable_attr())[attr].mutable_list();
    for (DType t : list)
      l->add_type(static_cast<tf::DataType>(t));
    return *this;
  }
  GraphBuilder &function(const std::string &attr, const std::string &name) {
    (*last().mutable_attr())[attr].mutable_func()->set_name(name);
    return *this;
  }
  GraphBuilder &shape(const std::string &attr, const std::vector<int64_t> &dims) {
    auto *s = (*last().mutable_attr())[attr].mutable_shape();
    for (int64_t d : dims)
      s->add_dim()->set_size(d);
    return *this;
  }
  GraphBuilder &constant(const std::string &name, const std::string &value) {
    add(name, "Const", {}, DType::String, "dtype");
    tf::TensorProto *t = (*last().mutable_attr())["value"].mutable_tensor();
    t->set_dtype(tf::DT_STRING);
    t->mutable_tensor_shape();
    t->add_string_val(value);
    return *this;
  }
  GraphBuilder &constant(const std::string &name, const char *value) { return constant(name, std::string(value)); }
  GraphBuilder &constant(const std::string &name, bool value) {
    add(name, "Const", {}, DType::Bool, "dtype");
    tf::TensorProto *t = (*last().mutable_attr())["value"].mutable_tensor();
    t->set_dtype(tf::DT_BOOL);
    t->mutable_tensor_shape();
    t->add_bool_val(value);
    return *this;
  }
  GraphBuilder &constant(const std::string &name, int32_t value) {
    add(name, "Const", {}, DType::Int32, "dtype");
    tf::TensorProto *t = (*last().mutable_attr())["value"].mutable_tensor();
    t->set_dtype(tf::DT_INT32);
    t->mutable_tensor_shape();
    t->add_int_val(value);
    return *this;
  }
  GraphBuilder &placeholder(const std::string &name, DType t = DType::String) { return add(name, "Placeholder", {}, t, "dtype"); }
  /// a + b of strings.
  GraphBuilder &join(const std::string &name, const std::vector<std::string> &inputs) {
    int64_t n = 0;
    for (const std::string &i : inputs)
      n += i[0] != '^';
    node(name, "StringJoin", inputs);
    return set("N", n);
  }
  tf::GraphDef graph;
};

inline Tensor text(const std::string &s) { return Tensor::fromStrings({}, {s}); }
inline std::string textOf(const Tensor &t) { return t.numElements() == 1 && t.dtype() == DType::String ? t.strings()[0] : "?"; }

/// Runs a graph once, in a session of its own.
inline absl::StatusOr<std::vector<Tensor>> runGraph(const tf::GraphDef &graph, const Session::Feeds &feeds,
                                                    const std::vector<std::string> &fetches, int64_t timeoutMs = 0) {
  Session s;
  if (absl::Status created = s.Create(graph); !created.ok())
    return created;
  std::vector<Tensor> out;
  RunOptions options;
  options.timeoutMs = timeoutMs;
  absl::Status status = s.Run(options, feeds, fetches, {}, &out, nullptr);
  if (!status.ok())
    return status;
  return out;
}

} // namespace lathe

#endif
