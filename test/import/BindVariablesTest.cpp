// Variables of a SavedModel's functions by its objects.
#include "graph/saved/BindVariables.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

using namespace lathe;

namespace {

/// Two layers whose variables are named alike: the functions read k and k_1, the checkpoint is restored to Variable and Variable_1. Object 2
/// belongs to the first layer, 4 to the second, and the signature reads that of the second first.
constexpr const char *kModel = R"pb(
  graph_def {
    node { name: "k" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "k_1" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "Variable" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "Variable_1" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "x" op: "Placeholder" }
    node { name: "file" op: "Placeholder" }
    node {
      name: "call" op: "StatefulPartitionedCall" input: "x" input: "k_1" input: "k:0" input: "^x"
      attr { key: "f" value { func { name: "serve" } } }
    }
    node {
      name: "restore" op: "StatefulPartitionedCall" input: "file" input: "Variable" input: "Variable_1"
      attr { key: "f" value { func { name: "load" } } }
    }
    library {
      function {
        signature {
          name: "load"
          input_arg { name: "file" type: DT_STRING }
          input_arg { name: "a" type: DT_RESOURCE }
          input_arg { name: "b" type: DT_RESOURCE }
        }
        node_def {
          name: "names" op: "Const"
          attr {
            key: "value"
            value {
              tensor {
                dtype: DT_STRING
                string_val: "one/kernel/.ATTRIBUTES/VARIABLE_VALUE"
                string_val: "two.Sx/ke..rnel/.ATTRIBUTES/VARIABLE_VALUE"
              }
            }
          }
        }
        node_def { name: "RestoreV2" op: "RestoreV2" input: "file" input: "names:output:0" }
        node_def { name: "Identity" op: "Identity" input: "RestoreV2:tensors:0" }
        node_def { name: "assign" op: "AssignVariableOp" input: "a" input: "Identity:output:0" }
        node_def { name: "assign_1" op: "AssignVariableOp" input: "b" input: "RestoreV2:tensors:1" }
      }
    }
  }
  saver_def { restore_op_name: "restore" }
  object_graph_def {
    nodes { children { node_id: 1 local_name: "one" } children { node_id: 3 local_name: "two/x" } }
    nodes { children { node_id: 2 local_name: "kernel" } }
    nodes { variable { name: "k" } }
    nodes { children { node_id: 4 local_name: "ke.rnel" } }
    nodes { variable { name: "k" } }
    concrete_functions { key: "serve" value { bound_inputs: 4 bound_inputs: 2 } }
  }
)pb";

tf::MetaGraphDef model() {
  tf::MetaGraphDef meta;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kModel, &meta));
  return meta;
}

std::vector<std::string> inputsOfCall(tf::MetaGraphDef meta) {
  graphdef::bindVariables(meta);
  const tf::NodeDef &call = meta.graph_def().node(6);
  return {call.input().begin(), call.input().end()};
}

using Inputs = std::vector<std::string>;
const Inputs kAsWritten = {"x", "k_1", "k:0", "^x"};

TEST(BindVariables, ReadsWhatIsRestored) {
  EXPECT_EQ(inputsOfCall(model()), (Inputs{"x", "Variable_1", "Variable", "^x"}));
}

TEST(BindVariables, KeepsWhatIsRestoredItself) {
  tf::MetaGraphDef meta = model();
  meta.mutable_graph_def()->mutable_node(7)->set_input(1, "k");
  // object 2 is now k, which the call reads already; k_1 stands for object 4
  EXPECT_EQ(inputsOfCall(meta), (Inputs{"x", "Variable_1", "k:0", "^x"}));
}

TEST(BindVariables, KeepsOtherTypes) {
  tf::MetaGraphDef meta = model();
  (*meta.mutable_graph_def()->mutable_node(3)->mutable_attr())["dtype"].set_type(tf::DT_INT32);
  EXPECT_EQ(inputsOfCall(meta), (Inputs{"x", "k_1", "Variable", "^x"}));
}

TEST(BindVariables, UsesNothingThatDoesNotFit) {
  tf::MetaGraphDef far = model(), many = model(), cyclic = model(), noPort = model(), empty = model();
  for (auto &child : *far.mutable_object_graph_def()->mutable_nodes(0)->mutable_children())
    child.set_node_id(child.node_id() == 1 ? 1000000 : -1);
  EXPECT_EQ(inputsOfCall(far), kAsWritten);
  auto &bound = *(*many.mutable_object_graph_def()->mutable_concrete_functions())["serve"].mutable_bound_inputs();
  for (int i = 0; i < 4; ++i)
    bound.Add(2);
  EXPECT_EQ(inputsOfCall(many), kAsWritten);
  for (auto &node : *cyclic.mutable_object_graph_def()->mutable_nodes())
    for (auto &child : *node.mutable_children())
      child.set_node_id(0);
  EXPECT_EQ(inputsOfCall(cyclic), kAsWritten);
  auto &load = *noPort.mutable_graph_def()->mutable_library()->mutable_function(0);
  load.mutable_node_def(2)->set_input(0, "RestoreV2:tensors:-7");
  load.mutable_node_def(4)->set_input(1, "RestoreV2:tensors:99");
  EXPECT_EQ(inputsOfCall(noPort), kAsWritten);
  empty.mutable_object_graph_def()->clear_nodes();
  EXPECT_EQ(inputsOfCall(empty), kAsWritten);
}

} // namespace
