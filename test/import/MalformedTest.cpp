// Bad models: each gives one line that names the node, and nothing crashes, hangs or allocates without bound.
#include "test/import/Importing.h"

#include "proto/saved_model.pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <fstream>
#include <sstream>

namespace lathe {
namespace {

const std::string kData = LATHE_SOURCE_DIR "/test/data/import/";

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::string identity(const std::string &name, const std::string &input) {
  return "node { name: \"" + name + "\" op: \"Identity\" input: \"" + input +
         "\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";
}

std::string placeholder(const std::string &name = "x") {
  return "node { name: \"" + name + "\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\n";
}

std::string constant(const std::string &tensor) {
  return "node { name: \"c\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } }"
         " attr { key: \"value\" value { tensor { " +
         tensor + " } } } }\n" + identity("y", "c");
}

std::string function(const std::string &name, const std::string &callee) {
  return "function { signature { name: \"" + name +
         "\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"r\" type: DT_FLOAT } }"
         " node_def { name: \"go\" op: \"" +
         callee + "\" input: \"a\" attr { key: \"T\" value { type: DT_FLOAT } } } ret { key: \"r\" value: \"go:" +
         (callee == "Identity" ? "output" : "r") + ":0\" } }\n";
}

/// A copy of a model folder that a test may damage.
class Copy {
public:
  explicit Copy(const std::string &name) {
    llvm::sys::fs::createUniqueDirectory("lathe-import", folder);
    std::error_code error;
    for (llvm::sys::fs::recursive_directory_iterator it(kData + name, error), end; it != end && !error;
         it.increment(error)) {
      std::string to = path(it->path().substr(kData.size() + name.size() + 1));
      if (llvm::sys::fs::is_directory(it->path()))
        llvm::sys::fs::create_directories(to);
      else
        llvm::sys::fs::copy_file(it->path(), to);
    }
  }
  ~Copy() { llvm::sys::fs::remove_directories(folder); }
  std::string path(const std::string &relative = "") const {
    return relative.empty() ? folder.str().str() : (folder + "/" + relative).str();
  }
  void write(const std::string &relative, const std::string &bytes) const {
    std::ofstream(path(relative), std::ios::binary) << bytes;
  }

private:
  llvm::SmallString<128> folder;
};

TEST(Malformed, EmptyFile) { expectError(importBytes(""), "graph: the file is empty"); }

TEST(Malformed, NoFile) {
  expectError(importFile("/nowhere/graph.pb"), "/nowhere/graph.pb: No such file or directory");
  expectError(importFile("/dev/zero"), "/dev/zero: not a regular file");
  Copy folder("checkpoint");
  expectError(importFile(folder.path()), "the folder holds no saved_model.pb");
}

TEST(Malformed, Noise) {
  expectError(importBytes("this is no graph"), "not a TensorFlow graph");
  expectError(importBytes(std::string(1000, '\xff')), "not a TensorFlow graph");
  expectError(importBytes("node { name: \"x\" op: }"), "line 1, column 22");
}

TEST(Malformed, TruncatedAnywhere) {
  std::string bytes = readFile(kData + "tf2/saved_model.pb");
  ASSERT_FALSE(bytes.empty());
  for (size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_FALSE(importBytes(bytes.substr(0, size)).ok) << size;
  expectError(importBytes(bytes.substr(0, bytes.size() / 2)), "cut short");
}

TEST(Malformed, FlippedBytes) {
  // whatever it says, it says it; seeds are fixed
  std::string original = readFile(kData + "tf1_ref/saved_model.pb");
  uint32_t random = 1;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = original;
    for (int i = 0; i < 4; ++i) {
      random = random * 1664525 + 1013904223;
      bytes[(random >> 8) % bytes.size()] = static_cast<char>(random >> 24);
    }
    importBytes(bytes);
  }
}

TEST(Malformed, DanglingInput) {
  expectError(importBytes(placeholder() + identity("y", "nowhere")),
              "node 'y' (Identity): input 'nowhere' does not exist");
  expectError(importBytes(placeholder() + identity("y", "x:3")), "node 'x' (Placeholder): has no output 3");
  expectError(importBytes(placeholder() + identity("y", "x:99999999999999999999")), "is no tensor name");
  expectError(importBytes(placeholder() + identity("y", "x:-1")), "is no tensor name");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"NoOp\" input: \"^gone\" }"),
              "node 'y' (NoOp): control input '^gone' does not exist");
}

TEST(Malformed, AllProblemsAreListed) {
  Imported m = importBytes(placeholder() + identity("y", "a") + identity("z", "b"));
  EXPECT_FALSE(m.ok);
  EXPECT_EQ(m.numErrors, 2u);
  std::string many = placeholder();
  for (int i = 0; i < 300; ++i)
    many += identity("n" + std::to_string(i), "gone");
  m = importBytes(many);
  EXPECT_EQ(m.numErrors, 101u);
  expectContains(m.errors, "and 200 more problems");
}

TEST(Malformed, DuplicateName) {
  expectError(importBytes(placeholder() + placeholder()), "node 'x' (Placeholder): another node has the same name");
}

TEST(Malformed, BadNames) {
  expectError(importBytes("node { op: \"NoOp\" }"), "node '' (NoOp): this is no valid node name");
  expectError(importBytes("node { name: \"a:b\" op: \"NoOp\" }"), "this is no valid node name");
  expectError(importBytes("node { name: \"a\" }"), "node 'a': has no op type");
}

TEST(Malformed, Cycle) {
  expectError(importBytes(identity("a", "b") + identity("b", "a") + identity("y", "a")), "is part of a cycle");
  ImportOptions options;
  options.outputs = {"a"};
  expectError(importBytes(identity("a", "a"), options), "node 'a' (Identity): is part of a cycle");
}

TEST(Malformed, UnknownOp) {
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"Frobnicate\" input: \"x\" }"),
              "node 'y' (Frobnicate): unknown op type");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"f\" input: \"x\" } library { " +
                          function("f", "Frobnicate") + "}"),
              "node 'go' (Frobnicate) in function 'f': unknown op type");
}

TEST(Malformed, RecursiveFunction) {
  std::string call = placeholder() + "node { name: \"y\" op: \"f\" input: \"x\" }\n";
  expectError(importBytes(call + "library { " + function("f", "f") + "}"), "function 'f' calls itself");
  expectError(importBytes(call + "library { " + function("f", "g") + function("g", "h") + function("h", "f") + "}"),
              "function 'f' calls itself through 'g', 'h'");
}

TEST(Malformed, FunctionsThatNestTooDeep) {
  std::string graph = placeholder() + "node { name: \"y\" op: \"f0\" input: \"x\" } library { ";
  for (int i = 0; i < 5000; ++i)
    graph += function("f" + std::to_string(i), i == 4999 ? "Identity" : "f" + std::to_string(i + 1));
  expectError(importBytes(graph + "}"), "nests calls deeper than 200 levels");
}

TEST(Malformed, FunctionsThatGrowExponentially) {
  std::string graph = placeholder() + "node { name: \"y\" op: \"f0\" input: \"x\" } library { ";
  for (int i = 0; i < 60; ++i) {
    std::string name = "f" + std::to_string(i), callee = i == 59 ? "Identity" : "f" + std::to_string(i + 1);
    std::string out = i == 59 ? ":output:0" : ":r:0", attr = " attr { key: \"T\" value { type: DT_FLOAT } }";
    graph += "function { signature { name: \"" + name +
             "\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"r\" type: DT_FLOAT } }"
             " node_def { name: \"p\" op: \"" + callee + "\" input: \"a\"" + attr + " }"
             " node_def { name: \"q\" op: \"" + callee + "\" input: \"p" + out + "\"" + attr + " }"
             " ret { key: \"r\" value: \"q" + out + "\" } }\n";
  }
  // said before anything is made of them
  auto start = std::chrono::steady_clock::now();
  expectError(importBytes(graph + "}"), "node 'y' (f0): inlining functions gives more nodes than the limit");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  // what nobody needs does not count
  ImportOptions options;
  options.maxNodes = 10;
  Imported unused = importBytes(graph + "} " + identity("z", "x"), options);
  EXPECT_FALSE(unused.ok); // both are outputs
  options.outputs = {"z"};
  EXPECT_TRUE(importBytes(graph + "} " + identity("z", "x"), options).ok);
}

TEST(Malformed, EffectsThatGrowExponentially) {
  // no outputs: a function runs for its stateful nodes
  std::string graph = "node { name: \"y\" op: \"f0\" input: \"x\" } " + placeholder() +
                      "node { name: \"z\" op: \"Identity\" input: \"x\" input: \"^y\" attr { key: \"T\" value { type: DT_FLOAT } } } "
                      "library { ";
  for (int i = 0; i < 60; ++i) {
    std::string name = "f" + std::to_string(i), callee = "f" + std::to_string(i + 1);
    graph += "function { signature { name: \"" + name + "\" is_stateful: true input_arg { name: \"a\" type: DT_FLOAT } } ";
    if (i == 59)
      graph += "node_def { name: \"p\" op: \"Print\" input: \"a\" attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"U\" value { list {} } } } }\n";
    else
      graph += "node_def { name: \"p\" op: \"" + callee + "\" input: \"a\" } node_def { name: \"q\" op: \"StatefulPartitionedCall\" input: \"a\" "
               "attr { key: \"f\" value { func { name: \"" + callee + "\" } } } attr { key: \"Tin\" value { list { type: DT_FLOAT } } } "
               "attr { key: \"Tout\" value { list {} } } } }\n";
  }
  expectError(importBytes(graph + "}"), "node 'y' (f0): inlining functions gives more nodes than the limit");
}

TEST(Malformed, CallsAreCountedAsNeeded) {
  // each function has an output that needs two calls and one that needs none: 2^60 nodes, of which 61 are needed
  std::string graph = placeholder() + "node { name: \"y\" op: \"f0\" input: \"x\" } " + identity("z", "y:1") + "library { ";
  for (int i = 0; i < 60; ++i) {
    std::string callee = "f" + std::to_string(i + 1), call = "\" op: \"" + callee + "\" input: \"";
    graph += "function { signature { name: \"f" + std::to_string(i) + "\" input_arg { name: \"a\" type: DT_FLOAT } "
             "output_arg { name: \"r\" type: DT_FLOAT } output_arg { name: \"s\" type: DT_FLOAT } } ";
    if (i == 59)
      graph += "ret { key: \"r\" value: \"a\" } ret { key: \"s\" value: \"a\" } }\n";
    else
      graph += "node_def { name: \"p" + call + "a\" } node_def { name: \"q" + call + "p:r:0\" } "
               "ret { key: \"r\" value: \"q:r:0\" } ret { key: \"s\" value: \"p:s:0\" } }\n";
  }
  ImportOptions options;
  options.outputs = {"z"};
  options.maxNodes = 100;
  Imported m = importBytes(graph + "}", options);
  EXPECT_TRUE(m.ok) << m.errors;
}

TEST(Malformed, ManyOutputs) {
  std::string graph = placeholder();
  for (int i = 0; i < 50; ++i)
    graph += "node { name: \"u" + std::to_string(i) +
             "\" op: \"Unpack\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"num\" value { i: "
             "1000000 } } }\n";
  expectError(importBytes(graph), "the graph has too many outputs; name some with --output");
  ImportOptions options;
  for (int i = 0; i < 50; ++i)
    options.outputs.push_back("u" + std::to_string(i));
  Imported m = importBytes(graph, options);
  EXPECT_FALSE(m.ok);
  expectContains(m.errors, "more nodes than the limit");
}

TEST(Malformed, Functions) {
  std::string call = placeholder() + "node { name: \"y\" op: \"PartitionedCall\" input: \"x\" attr { key: \"f\" value "
                                     "{ func { name: \"f\" } } } attr { key: \"Tin\" value { list { type: DT_FLOAT } } }"
                                     " attr { key: \"Tout\" value { list { type: DT_FLOAT } } } }\n";
  expectError(importBytes(call), "node 'y' (PartitionedCall): refers to function 'f', which does not exist");
  expectError(importBytes(call + "library { " + function("f", "Identity") + function("f", "Identity") + "}"),
              "function 'f' is defined twice");
  expectError(importBytes(call + "library { function { signature { name: \"f\" input_arg { name: \"a\" type: DT_FLOAT "
                                 "} output_arg { name: \"r\" type: DT_FLOAT } } } }"),
              "function 'f' does not say what it returns as 'r'");
  expectError(importBytes(call + "library { function { signature { name: \"f\" input_arg { name: \"a\" type: DT_FLOAT "
                                 "} output_arg { name: \"r\" type: DT_FLOAT } } ret { key: \"r\" value: \"a:7\" } } }"),
              "refers to element 7 of argument 'a', which has 1");
  expectError(importBytes(call + "library { function { signature { name: \"f\" output_arg { name: \"r\" type: DT_FLOAT "
                                 "} } node_def { name: \"g\" op: \"NoOp\" } ret { key: \"r\" value: \"g:output:0\" } } }"),
              "expected 0 inputs for function 'f', found 1");
}

TEST(Malformed, CallsInACircle) {
  // a call whose input is its own output, of a function that returns its argument
  std::string graph = "node { name: \"y\" op: \"f\" input: \"y\" }\n" + identity("z", "y") +
                      "library { function { signature { name: \"f\" input_arg { name: \"a\" type: DT_FLOAT } output_arg "
                      "{ name: \"r\" type: DT_FLOAT } } ret { key: \"r\" value: \"a\" } } }";
  expectError(importBytes(graph), "is part of a cycle");
}

TEST(Malformed, ConstantsThatDisagree) {
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } } tensor_content: "
                                   "\"12345678\"")),
              "node 'c' (Const): holds 8 bytes, its shape [2,3] of float32 needs 24");
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 1 float_val: 2")),
              "node 'c' (Const): holds 2 values, its shape [1] of float32 needs 1");
  expectError(importBytes(constant("dtype: DT_INT32 tensor_shape { } int_val: 1")),
              "node 'c' (Const): attribute 'dtype' is not the type of the value");
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }")), "a constant of unknown size");
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: -7 } }")), "a dimension of size -7");
  expectError(importBytes(constant("dtype: DT_VARIANT tensor_shape { }")), "a constant of type variant is not supported");
}

TEST(Malformed, HugeConstants) {
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } float_val: 1")),
              "node 'c' (Const): a constant of shape [1000000000000] and type float32 is larger than the limit");
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 9000000000 } dim { size: 9000000000 } "
                                   "}")),
              "has more elements than 64 bits can count");
  expectError(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } } float_val: 1 float_val: 2")),
              "too many to repeat the last one");
  // a large splat within the limit costs nothing
  EXPECT_TRUE(importBytes(constant("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } } float_val: 1")).ok);
}

TEST(Malformed, Attributes) {
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"Identity\" input: \"x\" }"), "'T'");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"MatMul\" input: \"x\" input: \"x\" attr { key: "
                                          "\"T\" value { type: DT_FLOAT } } attr { key: \"transpose_a\" value { i: 1 } } }"),
              "node 'y' (MatMul): attribute 'transpose_a': expected bool, found int");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"Identity\" input: \"x\" attr { key: \"T\" value { "
                                          "type: DT_INT32 } } }"),
              "node 'y' (Identity): expected input 0 to be int32, found float32");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"Identity\" attr { key: \"T\" value { type: "
                                          "DT_FLOAT } } }"),
              "node 'y' (Identity): expected 1 inputs, found 0");
  expectError(importBytes(placeholder() + "node { name: \"y\" op: \"Pack\" input: \"x\" attr { key: \"T\" value { type: "
                                          "DT_FLOAT } } attr { key: \"N\" value { i: 1000000000000 } } }"),
              "node 'y' (Pack)");
}

TEST(Malformed, NestingDepth) {
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "a {";
  expectError(importBytes("node { name: \"x\" " + deep), "nests deeper than 100 levels");
  // binary: variants in variants
  tf::GraphDef graph;
  tf::NodeDef *node = graph.add_node();
  node->set_name("c");
  node->set_op("Const");
  std::string inner = "\x08\x15";
  for (int i = 0; i < 3000; ++i) {
    tf::VariantTensorDataProto variant;
    std::string tensors; // field 3, written by hand as building it would recurse
    auto field = [](int number, const std::string &bytes) {
      std::string out(1, static_cast<char>(number << 3 | 2));
      size_t size = bytes.size();
      for (; size >= 128; size >>= 7)
        out += static_cast<char>(size | 128);
      return out + static_cast<char>(size) + bytes;
    };
    inner = field(15, field(3, inner));
  }
  auto wrap = [](int number, const std::string &bytes) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    size_t size = bytes.size();
    for (; size >= 128; size >>= 7)
      out += static_cast<char>(size | 128);
    return out + static_cast<char>(size) + bytes;
  };
  std::string attr = wrap(1, "value") + wrap(2, wrap(8, inner));
  std::string bytes = wrap(1, wrap(1, "c") + wrap(2, "Const") + wrap(5, attr));
  EXPECT_FALSE(importBytes(bytes).ok);
}

TEST(Malformed, Signatures) {
  ImportOptions options;
  options.signature = "nothing";
  expectError(importFile(kData + "tf1_ref", options), "no signature 'nothing', there are: other, serving_default");
  options.signature.clear();
  options.tag = "gpu";
  expectError(importFile(kData + "tf1_ref", options), "no graph has the tag 'gpu', there are: serve");
  options.tag.clear();
  options.outputs = {"gone"};
  expectError(importFile(kData + "tf1_ref", options), "output 'gone': there is no signature key, tensor or node");
  options.outputs.clear();
  options.inputs = {{"in", std::vector<int64_t>{1, 2, 3}}};
  expectError(importFile(kData + "tf1_ref", options), "does not have the rank");
}

TEST(Malformed, Checkpoints) {
  {
    Copy model("tf2");
    llvm::sys::fs::remove(model.path("variables/variables.data-00000-of-00001"));
    Imported m = importFile(model.path());
    EXPECT_FALSE(m.ok);
    expectContains(m.errors, "variables.data-00000-of-00001");
    expectContains(m.errors, "(VarHandleOp)");
  }
  {
    Copy model("tf2");
    llvm::sys::fs::remove(model.path("variables/variables.index"));
    Imported m = importFile(model.path());
    EXPECT_FALSE(m.ok);
    expectContains(m.errors, "has no value: the model has no checkpoint");
  }
  {
    Copy model("tf1_ref");
    std::string data = readFile(model.path("variables/variables.data-00000-of-00001"));
    model.write("variables/variables.data-00000-of-00001", data.substr(0, 5));
    EXPECT_FALSE(importFile(model.path()).ok);
    data[3] ^= 1;
    model.write("variables/variables.data-00000-of-00001", data);
    Imported m = importFile(model.path());
    EXPECT_FALSE(m.ok);
    std::string index = readFile(model.path("variables/variables.index"));
    for (size_t size = 0; size < index.size(); size += 7) {
      model.write("variables/variables.index", index.substr(0, size));
      EXPECT_FALSE(importFile(model.path()).ok);
    }
  }
}

TEST(Malformed, AssetThatLeavesTheFolder) {
  Copy model("tf1_ref");
  for (const char *name : {"../../secret", "/etc/passwd", "a/../../b"}) {
    tf::SavedModel saved;
    ASSERT_TRUE(saved.ParseFromString(readFile(kData + "tf1_ref/saved_model.pb")));
    saved.mutable_meta_graphs(0)->add_asset_file_def()->set_filename(name);
    model.write("saved_model.pb", saved.SerializeAsString());
    expectError(importFile(model.path()), std::string("asset file '") + name + "' leaves the model's folder");
  }
}

TEST(Malformed, LongChainsDoNotRecurse) {
  std::string graph = placeholder("n0");
  for (int i = 1; i < 100'000; ++i)
    graph += identity("n" + std::to_string(i), "n" + std::to_string(i - 1));
  EXPECT_TRUE(importBytes(graph).ok);
}

} // namespace
} // namespace lathe
