// What comes out of well-formed models: entries, names, pruning, inlining, variables.
#include "test/import/Importing.h"

namespace lathe {
namespace {

const std::string kData = LATHE_SOURCE_DIR "/test/data/import/";

const char *kGraph = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "unused" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 2 } }
                                            float_val: 1 float_val: 2 } } } }
node { name: "y" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Relu" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
)";

TEST(Import, DefaultsOfABareGraph) {
  Imported m = importBytes(kGraph);
  ASSERT_TRUE(m.ok) << m.errors;
  EXPECT_EQ(m.notes, "outputs: z:0");
  ASSERT_EQ(m.entries.size(), 1u);
  ASSERT_EQ(m.entries[0].inputs.size(), 1u); // "unused" is pruned
  EXPECT_EQ(m.entries[0].inputs[0].name, "x");
  EXPECT_EQ(m.entries[0].inputs[0].tensor, "x:0");
  EXPECT_EQ(m.entries[0].inputs[0].dtype, DType::Float32);
  EXPECT_EQ(*m.entries[0].inputs[0].dims, (std::vector<int64_t>{-1, 3}));
  EXPECT_EQ(m.entries[0].outputs[0].name, "z");
  expectContains(m.ir, "%arg0: tensor<?x3xf32> {graph.name = \"x\", graph.tensor = \"x:0\"}");
  // the last value repeats
  expectContains(m.ir, "dense<[[1.000000e+00, 2.000000e+00], [2.000000e+00, 2.000000e+00], [2.000000e+00, 2.0000");
  // defaults are filled in
  expectContains(m.ir, "transpose_a = false");
}

TEST(Import, NamesTheUserGives) {
  ImportOptions options;
  options.outputs = {"y:0", "y", "x"}; // a fetch may occur twice and may be a feed
  options.inputs = {{"x", std::vector<int64_t>{4, 3}}};
  Imported m = importBytes(kGraph, options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "%arg0: tensor<4x3xf32>");
  expectMissing(m.ir, "Relu");
  EXPECT_EQ(m.entries[0].outputs[0].name, "y:0");
  EXPECT_EQ(m.entries[0].outputs[1].name, "y");
  expectContains(m.ir, ", %arg0 : tensor<*xf32>, tensor<*xf32>, tensor<4x3xf32>");
}

TEST(Import, FeedsAnyTensor) {
  ImportOptions options;
  options.onlyListedInputs = true;
  options.inputs = {{"y:0", std::nullopt}};
  options.outputs = {"z:0"};
  Imported m = importBytes(kGraph, options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectMissing(m.ir, "MatMul");
  EXPECT_EQ(m.entries[0].inputs[0].name, "y:0");
  options.inputs.clear();
  expectError(importBytes(kGraph, options), "node 'x' (Placeholder): is needed but not fed; pass --input x");
}

TEST(Import, ConstantFeeds) {
  ImportOptions options;
  options.onlyListedInputs = true;
  options.constantFeeds = {{"y:0", Tensor::vector<float>(DType::Float32, {1, -1})}};
  options.outputs = {"z:0"};
  Imported m = importBytes(kGraph, options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "dense<[1.000000e+00, -1.000000e+00]> : tensor<2xf32>");
  EXPECT_TRUE(m.entries[0].inputs.empty());
}

TEST(Import, SeveralEntries) {
  ImportOptions options;
  options.entries = {{"First", {"y"}, {}}, {"Second", {}, {"w"}}};
  Imported m = importBytes(kGraph, options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "graph.func @First(%arg0");
  expectContains(m.ir, "graph.func @Second()");
  EXPECT_EQ(m.entries[1].inputs.size(), 0u);
  options.entries = {{"Third", {"y/w"}, {}}}; // --entry Third=y/w
  m = importBytes(kGraph, options);
  ASSERT_TRUE(m.ok) << m.errors;
  EXPECT_EQ(m.entries[0].outputs.size(), 1u);
  EXPECT_EQ(m.entries[0].outputs[0].name, "y");
}

TEST(Import, UnknownLeading) {
  ImportOptions options;
  options.unknownLeading = true;
  options.inputs = {{"x", std::vector<int64_t>{4, 3}}};
  expectContains(importBytes(kGraph, options).ir, "%arg0: tensor<?x3xf32>");
}

TEST(Import, NestedFunctionsAreInlined) {
  Imported m = importBytes(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "call" op: "outer" input: "x" input: "x" }
library {
  function {
    signature { name: "outer" input_arg { name: "a" type: DT_FLOAT } input_arg { name: "b" type: DT_FLOAT }
                output_arg { name: "r" type: DT_FLOAT } output_arg { name: "same" type: DT_FLOAT } }
    node_def { name: "go" op: "PartitionedCall" input: "a" input: "b"
               attr { key: "f" value { func { name: "inner" attr { key: "T" value { type: DT_FLOAT } } } } }
               attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } }
               attr { key: "Tout" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
    ret { key: "r" value: "go:output:1" } ret { key: "same" value: "b:0" }
  }
  function {
    signature { name: "inner" attr { name: "T" type: "type" }
                input_arg { name: "u" type_attr: "T" } input_arg { name: "v" type_attr: "T" }
                output_arg { name: "p" type_attr: "T" } output_arg { name: "q" type_attr: "T" } }
    node_def { name: "split" op: "Split" input: "zero:output:0" input: "u"
               attr { key: "num_split" value { i: 2 } } attr { key: "T" value { placeholder: "T" } } }
    node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
               attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
    node_def { name: "sum" op: "AddV2" input: "split:output:1" input: "v"
               attr { key: "T" value { placeholder: "T" } } }
    ret { key: "p" value: "split:output:0" } ret { key: "q" value: "sum:z:0" }
  }
})");
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "graph.node \"Split\"");
  expectContains(m.ir, "{T = f32}");
  expectMissing(m.ir, "PartitionedCall");
  expectContains(m.ir, ", %arg0 : tensor<*xf32>, tensor<*xf32>\n"); // "same" is the argument itself
}

TEST(Import, SavedModelOfTf2) {
  Imported m = importFile(kData + "tf2");
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.notes, "signature: serving_default");
  EXPECT_EQ(m.entries[0].inputs[0].name, "ids");
  EXPECT_EQ(m.entries[0].outputs[1].name, "y");
  expectMissing(m.ir, "ReadVariableOp");
  expectMissing(m.ir, "graph.variable");
  expectContains(m.ir, "body = #graph.func<@");
  // the frozen variable within the loop's body
  expectContains(m.ir, "dense<[[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00]]>");
}

TEST(Import, AssignedVariablesAreKept) {
  ImportOptions options;
  options.signature = "count";
  Imported m = importFile(kData + "tf2", options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "graph.variable @n : tensor<i32> = dense<0> : tensor<i32>");
  expectMissing(m.ir, "graph.variable @w");
  expectContains(m.ir, "AssignAddVariableOp");
  options.keepVariables = true;
  expectContains(importFile(kData + "tf2", options).ir, "graph.variable @w : tensor<2x2xf32> = dense<");
}

TEST(Import, EntriesAndVariablesShareNoSymbol) {
  ImportOptions options;
  options.keepVariables = true;
  options.entries = {{"w", {"y"}, {}}};
  Imported m = importFile(kData + "tf1_resource", options);
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "graph.func @w(");
  expectContains(m.ir, "graph.variable @w_1 : tensor<3x2xf32>");
  expectContains(m.ir, "shared_name = \"w_1\"");
}

TEST(Import, SavedModelsOfTf1) {
  for (auto [name, bump] : {std::pair("tf1_ref", "bump"), std::pair("tf1_resource", "AssignAddVariableOp")}) {
    Imported m = importFile(kData + name);
    ASSERT_TRUE(m.ok) << m.errors;
    expectMissing(m.ir, "graph.variable");
    expectContains(m.ir, "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>");
    ImportOptions options;
    options.targets = {bump};
    options.outputs = {"y"};
    m = importFile(kData + name, options);
    ASSERT_TRUE(m.ok) << m.errors;
    expectContains(m.ir, "graph.variable @\"scope/b\" : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]>");
    expectMissing(m.ir, "graph.variable @w");
  }
}

TEST(Import, MetaGraphBesideItsCheckpoint) {
  Imported m = importFile(kData + "checkpoint/model.meta");
  ASSERT_TRUE(m.ok) << m.errors;
  EXPECT_EQ(m.notes, "outputs: z:0");
  expectMissing(m.ir, "graph.variable");
  // the graph alone has no values
  m = importFile(kData + "checkpoint/graph.pbtxt", [] {
    ImportOptions options;
    options.outputs = {"z"};
    return options;
  }());
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "graph.variable @w : tensor<3x2xf32>\n");
}

TEST(Import, Signatures) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto signatures = readSignatures(&context, kData + "tf1_ref");
  ASSERT_TRUE(mlir::succeeded(signatures));
  ASSERT_EQ(signatures->size(), 2u);
  EXPECT_EQ((*signatures)[0].key, "other");
  EXPECT_EQ((*signatures)[1].outputs[0].name, "cond");
}

TEST(Import, SignaturesAsEntries) {
  Imported m = importFile(kData + "tf1_ref", [] {
    ImportOptions options;
    options.entries = {{"serving_default", {}, {}}, {"other", {}, {}}};
    return options;
  }());
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "@serving_default(");
  expectContains(m.ir, "@other(");
  EXPECT_EQ(m.notes, ""); // none of them was chosen on somebody's behalf
}

TEST(Import, SmallTypes) {
  Imported m = importBytes(R"(
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_INT4 } }
       attr { key: "value" value { tensor { dtype: DT_INT4 tensor_shape { dim { size: 2 } } int_val: -3 int_val: 7 } } } }
node { name: "ai" op: "Identity" input: "a" attr { key: "T" value { type: DT_INT4 } } }
node { name: "b" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
       attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { dim { size: 3 } } tensor_content: "\001\000\001" } } } }
node { name: "bi" op: "Identity" input: "b" attr { key: "T" value { type: DT_BOOL } } }
node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_QINT8 } }
       attr { key: "value" value { tensor { dtype: DT_QINT8 tensor_shape { } int_val: -1 } } } }
node { name: "ci" op: "Identity" input: "c" attr { key: "T" value { type: DT_QINT8 } } }
node { name: "d" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
       attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "s\000" string_val: "t" } } } }
node { name: "di" op: "Identity" input: "d" attr { key: "T" value { type: DT_STRING } } }
)", [] {
    ImportOptions options;
    options.outputs = {"ai", "bi", "ci", "di"};
    return options;
  }());
  ASSERT_TRUE(m.ok) << m.errors;
  expectContains(m.ir, "dense<[-3, 7]> : tensor<2xi4>");
  expectContains(m.ir, "dense<[true, false, true]> : tensor<3xi1>");
  expectContains(m.ir, "T = i8, \"T:dtype\" = 11 : i64");
  expectContains(m.ir, "#graph.strings<tensor<2x!graph.string>, [\"s\\00\", \"t\"]>");
}

} // namespace
} // namespace lathe
