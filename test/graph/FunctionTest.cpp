#include "graph/Function.h"

#include "Graphs.h"

using namespace lathe;
using namespace lathe::graphdef;
using lathe::testing::makeGraph;

namespace {

const char *kFunctions = R"(
  library {
    function {
      signature {
        name: "scaled"
        input_arg { name: "x" type_attr: "T" number_attr: "N" }
        input_arg { name: "by" type_attr: "T" }
        output_arg { name: "all" type_attr: "T" number_attr: "N" }
        output_arg { name: "first" type_attr: "T" }
        attr { name: "T" type: "type" }
        attr { name: "N" type: "int" default_value { i: 2 } }
      }
      node_def { name: "packed" op: "Pack" input: "x" attr { key: "T" value { placeholder: "T" } }
                 attr { key: "N" value { placeholder: "N" } } }
      node_def { name: "mul" op: "Mul" input: "packed:output:0" input: "by" attr { key: "T" value { placeholder: "T" } } }
      node_def { name: "parts" op: "Unpack" input: "mul:z:0" input: "^x" attr { key: "T" value { placeholder: "T" } }
                 attr { key: "num" value { placeholder: "N" } } }
      ret { key: "all" value: "parts:output" }
      ret { key: "first" value: "parts:output:0" }
    }
  }
)";

tf::NameAttrList call(const char *name, DType type) {
  tf::NameAttrList f;
  f.set_name(name);
  (*f.mutable_attr())["T"].set_type(static_cast<tf::DataType>(type));
  return f;
}

TEST(Function, BodiesAreGraphs) {
  auto g = makeGraph(kFunctions);
  auto body = instantiate(g->sharedLibrary(), call("scaled", DType::Float64));
  ASSERT_TRUE(body.ok()) << body.status();
  ASSERT_EQ(body->args.size(), 3u); // two of x, by
  EXPECT_EQ(body->args[0]->name(), "x_0");
  EXPECT_EQ(body->argTypes()[2], DType::Float64);
  ASSERT_EQ(body->results.size(), 3u);
  Node *parts = body->graph->find("parts");
  EXPECT_EQ(body->results[1]->input(0), Endpoint({parts, 1}));
  EXPECT_EQ(body->results[2]->input(0), Endpoint({parts, 0}));
  EXPECT_EQ(parts->controls()[0], body->args[0]);
}

TEST(Function, GraphsAreFunctions) {
  auto g = makeGraph(kFunctions);
  auto body = instantiate(g->sharedLibrary(), call("scaled", DType::Float32));
  ASSERT_TRUE(body.ok()) << body.status();
  auto def = toFunction(*body, "again");
  ASSERT_TRUE(def.ok()) << def.status();
  ASSERT_TRUE(g->library().add(*def).ok());
  tf::NameAttrList ref;
  ref.set_name("again");
  auto back = instantiate(g->sharedLibrary(), ref);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->args.size(), 3u);
  EXPECT_EQ(back->results[1]->input(0).name(), "parts:1");
  EXPECT_EQ(def->ret().at(back->results[1]->name()), "parts:output:1");
}

TEST(Function, SaysWhatIsWrong) {
  auto g = makeGraph(kFunctions);
  EXPECT_EQ(instantiate(g->sharedLibrary(), call("none", DType::Float32)).status().code(), absl::StatusCode::kNotFound);
  tf::NameAttrList bare;
  bare.set_name("scaled");
  EXPECT_NE(std::string(instantiate(g->sharedLibrary(), bare).status().message()).find("'T'"), std::string::npos);
  tf::FunctionDef bad = *g->library().find("scaled");
  bad.mutable_signature()->set_name("bad");
  bad.mutable_node_def(1)->set_input(0, "packed:output:5");
  ASSERT_TRUE(g->library().add(bad).ok());
  std::string message(instantiate(g->sharedLibrary(), call("bad", DType::Float32)).status().message());
  EXPECT_NE(message.find("function 'bad': node 'mul' (Mul): input 'packed:output:5' does not exist"), std::string::npos) << message;
}

TEST(Library, KeepsOneDefinitionAName) {
  auto g = makeGraph(kFunctions);
  tf::FunctionDef same = *g->library().find("scaled"), other = same;
  EXPECT_TRUE(g->library().add(same).ok());
  other.mutable_node_def(0)->set_name("else");
  EXPECT_EQ(g->library().add(other).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(g->library().uniqueName("scaled"), "scaled_1");
  EXPECT_TRUE(g->library().addGradient("scaled", "grad").ok());
  EXPECT_FALSE(g->library().addGradient("scaled", "other").ok());
  EXPECT_EQ(g->library().gradientOf("scaled"), "grad");
  EXPECT_TRUE(g->library().remove("scaled").ok());
  EXPECT_EQ(g->library().signature("scaled"), nullptr);
}

} // namespace
