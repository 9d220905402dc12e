// Checkpoints in both formats, written and read here; test/data/runtime/v1.ckpt was written by TensorFlow's SaveSlices.
#include "base/Bytes.h"
#include "test/runtime/KernelTest.h"

#include <cstdlib>
#include <filesystem>

namespace lathe::rt {
namespace {

std::string folder(const char *name) {
  std::string path = testing::TempDir() + "lathe-" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

Tensor counting(DType type, std::vector<int64_t> dims) {
  Tensor t = Tensor::allocate(type, dims);
  for (int64_t i = 0; i < t.sizeBytes(); ++i)
    t.data<uint8_t>()[i] = static_cast<uint8_t>(type == DType::Bool ? i % 2 : i * 7 + 129);
  return t;
}

const std::vector<DType> kTypes = {DType::Float32,   DType::Float64,    DType::Int32,  DType::UInt8,  DType::Int16,
                                   DType::Int8,      DType::Int64,      DType::Bool,   DType::UInt16, DType::Complex64,
                                   DType::Complex128, DType::Float16,   DType::UInt32, DType::UInt64, DType::BFloat16};

bool same(const Tensor &a, const Tensor &b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() && a.strings() == b.strings() &&
         std::string_view(a.data<char>(), a.sizeBytes()) == std::string_view(b.data<char>(), b.sizeBytes());
}

TEST(Checkpoints, everyTypeComesBackInBothFormats) {
  std::string path = folder("all") + "/ckpt";
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  std::vector<DType> types = kTypes;
  for (DType type : kTypes) {
    tensors.push_back(counting(type, {3, 2}));
    names.push_back(dtypeName(type));
  }
  tensors.push_back(Tensor::fromStrings({2, 2}, {"a", std::string(300, 'x'), "", std::string("\0\xff", 2)}));
  tensors.push_back(Tensor::allocate(DType::Float32, {0, 4}));
  tensors.push_back(counting(DType::Float32, {}));
  for (const char *name : {"words", "empty", "scalar"})
    names.push_back(name);
  types.insert(types.end(), {DType::String, DType::Float32, DType::Float32});
  std::vector<Value> inputs = {string0(path), strings(names)};
  inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  KernelTest save1("Save", {{"T", types}});
  ASSERT_TRUE(save1.run(inputs).ok());
  for (size_t i = 0; i < names.size(); ++i) {
    KernelTest restore("Restore", {{"dt", types[i]}});
    auto back = restore.run({string0(path), string0(names[i])});
    ASSERT_TRUE(back.ok()) << names[i] << back.status();
    EXPECT_TRUE(same((*back)[0], tensors[i])) << names[i];
  }
  // the older format is read under the new op's name as well
  KernelTest restore2("RestoreV2", {{"dtypes", types}});
  std::vector<Value> asked = {string0(path), strings(names), strings(std::vector<std::string>(names.size()))};
  ASSERT_TRUE(restore2.run(asked).ok());
  std::filesystem::remove(path);

  inputs.insert(inputs.begin() + 2, strings(std::vector<std::string>(names.size())));
  KernelTest save2("SaveV2", {{"dtypes", types}});
  auto saved = save2.run(inputs);
  ASSERT_TRUE(saved.ok()) << saved.status();
  auto back = restore2.run(asked);
  ASSERT_TRUE(back.ok()) << back.status();
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_TRUE(same((*back)[i], tensors[i])) << names[i];
  EXPECT_EQ(restore2.run({string0(path + "x"), asked[1], asked[2]}).status().code(), absl::StatusCode::kNotFound);
}

TEST(Checkpoints, slicesAreCutAndPutTogether) {
  for (bool v2 : {false, true}) {
    std::string path = folder("slices") + "/ckpt";
    Tensor whole = counting(DType::Int32, {4, 6});
    Tensor left = Tensor::allocate(DType::Int32, {4, 2}), right = Tensor::allocate(DType::Int32, {4, 4});
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 6; ++c)
        (c < 2 ? left.data<int32_t>()[r * 2 + c] : right.data<int32_t>()[r * 4 + c - 2]) = whole.data<int32_t>()[r * 6 + c];
    std::vector<Value> inputs = {string0(path), strings({"p", "p"}), strings({"4 6 -:0,2", "4 6 -:2,4"}), left, right};
    KernelTest save(v2 ? "SaveV2" : "SaveSlices", {{v2 ? "dtypes" : "T", std::vector<DType>(2, DType::Int32)}});
    auto saved = save.run(inputs);
    ASSERT_TRUE(saved.ok()) << saved.status();
    KernelTest restore("RestoreV2", {{"dtypes", std::vector<DType>(2, DType::Int32)}});
    auto back = restore.run({string0(path), strings({"p", "p"}), strings({"", "4 6 1,2:1,3"})});
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(same((*back)[0], whole));
    ASSERT_EQ((*back)[1].dims(), (std::vector<int64_t>{2, 3}));
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 3; ++c)
        EXPECT_EQ((*back)[1].data<int32_t>()[r * 3 + c], whole.data<int32_t>()[(r + 1) * 6 + c + 1]);
    auto status = [&](const char *name, const char *spec) {
      return restore.run({string0(path), strings({name, name}), strings({spec, spec})}).status().code();
    };
    EXPECT_EQ(status("q", ""), absl::StatusCode::kNotFound);
    EXPECT_EQ(status("p", "4 5 -:-"), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status("p", "4 6 3,2:-"), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status("p", "nonsense"), absl::StatusCode::kInvalidArgument);
    KernelTest other("RestoreV2", {{"dtypes", std::vector<DType>(1, DType::Float32)}});
    EXPECT_EQ(other.run({string0(path), strings({"p"}), strings({""})}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Checkpoints, mergePutsShardsTogether) {
  std::string base = folder("merge");
  std::vector<std::string> prefixes;
  for (int i = 0; i < 3; ++i) {
    prefixes.push_back(base + "/part" + std::to_string(i) + "/shard");
    KernelTest save("SaveV2", {{"dtypes", std::vector<DType>{DType::Int32, DType::Int32}}});
    std::string slice = "6 " + std::to_string(2 * i) + ",2";
    auto saved = save.run({string0(prefixes.back()), strings({"own" + std::to_string(i), "split"}), strings({"", slice}),
                           int0(i), ints({2 * i, 2 * i + 1})});
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  KernelTest merge("MergeV2Checkpoints", {});
  auto merged = merge.run({strings(prefixes), string0(base + "/whole")});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(std::filesystem::exists(base + "/part0"));
  KernelTest restore("RestoreV2", {{"dtypes", std::vector<DType>{DType::Int32, DType::Int32}}});
  auto back = restore.run({string0(base + "/whole"), strings({"own2", "split"}), strings({"", ""})});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*(*back)[0].data<int32_t>(), 2);
  EXPECT_EQ(elements<int32_t>((*back)[1]), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(merge.run({strings({base + "/nothing"}), string0(base + "/x")}).status().code(), absl::StatusCode::kNotFound);
}

TEST(Checkpoints, damagedOldFilesAreErrors) {
  std::string path = folder("damaged") + "/ckpt";
  KernelTest save("Save", {{"T", std::vector<DType>{DType::Float32, DType::String}}});
  ASSERT_TRUE(save.run({string0(path), strings({"a", "b"}), counting(DType::Float32, {5}), strings({"x", "y"})}).ok());
  std::string bytes = *readFile(path);
  KernelTest restore("Restore", {{"dt", DType::Float32}});
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string changed = bytes;
    changed[n] ^= 0x55;
    ASSERT_TRUE(writeFile(path, changed).ok());
    auto r = restore.run({string0(path), string0("a")}); // an error or the same, never a crash
    if (r.ok()) {
      EXPECT_TRUE(same((*r)[0], counting(DType::Float32, {5})));
    }
    ASSERT_TRUE(writeFile(path, bytes.substr(0, n)).ok());
    EXPECT_FALSE(restore.run({string0(path), string0("a")}).ok());
  }
  ASSERT_TRUE(writeFile(path, bytes).ok());
}

TEST(Checkpoints, readsTensorFlowsOldFormat) {
  std::string path = LATHE_SOURCE_DIR "/test/data/runtime/v1.ckpt";
  auto read = [&](const char *name, DType type) {
    auto r = KernelTest("Restore", {{"dt", type}}).run({string0(path), string0(name)});
    EXPECT_TRUE(r.ok()) << name << ": " << r.status();
    return r.ok() ? (*r)[0] : Tensor();
  };
  EXPECT_EQ(elements<float>(read("f", DType::Float32)), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(elements<int32_t>(read("i", DType::Int32)), (std::vector<int32_t>{-1, 5}));
  EXPECT_EQ(read("s", DType::String).strings(), (std::vector<std::string>{"x", "yy"}));
  EXPECT_EQ(elements<uint16_t>(read("h", DType::Float16)), (std::vector<uint16_t>{0x3c00, 0x4100}));
  EXPECT_EQ(read("c", DType::Complex64).data<float>()[1], 2);
  EXPECT_EQ(elements<uint8_t>(read("b", DType::Bool)), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(elements<uint8_t>(read("u8", DType::UInt8)), (std::vector<uint8_t>{200, 3}));
  EXPECT_EQ(elements<int8_t>(read("i8", DType::Int8)), (std::vector<int8_t>{-3, 4}));
  EXPECT_EQ(elements<int64_t>(read("p", DType::Int64)), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 0, 1}));
}

TEST(Checkpoints, readsWhatTensorFlowWrote) {
  const char *prefix = std::getenv("LATHE_TF_CHECKPOINT"); // by test/samples/checkpoint.test
  if (!prefix)
    GTEST_SKIP();
  KernelTest restore("RestoreV2", {{"dtypes", std::vector<DType>{DType::Float32, DType::String, DType::Float16, DType::Int64}}});
  auto back = restore.run({string0(prefix), strings({"f", "s", "h", "p"}), strings({"", "", "", ""})});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(elements<float>((*back)[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ((*back)[1].strings(), (std::vector<std::string>{"x", "yy"}));
  EXPECT_EQ(elements<uint16_t>((*back)[2]), (std::vector<uint16_t>{0x3c00, 0x4100}));
  EXPECT_EQ(elements<int64_t>((*back)[3]), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 0, 1}));
}

TEST(Files, readWriteMatch) {
  std::string base = folder("files");
  KernelTest write("WriteFile", {}), read("ReadFile", {}), match("MatchingFiles", {});
  for (const char *name : {"/sub/b.txt", "/sub/a.txt", "/sub/c.bin"})
    ASSERT_TRUE(write.run({string0(base + name), string0(name)}).ok());
  EXPECT_EQ((*read.run({string0(base + "/sub/a.txt")}))[0].strings()[0], "/sub/a.txt");
  EXPECT_EQ(read.run({string0(base + "/none")}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*match.run({strings({base + "/sub/*.txt", base + "/sub/c*"})}))[0].strings(),
            (std::vector<std::string>{base + "/sub/a.txt", base + "/sub/b.txt", base + "/sub/c.bin"}));
  KernelTest name("ShardedFilename", {}), spec("ShardedFilespec", {});
  EXPECT_EQ((*name.run({string0("x"), int0(3), int0(12)}))[0].strings()[0], "x-00003-of-00012");
  EXPECT_EQ((*spec.run({string0("x"), int0(12)}))[0].strings()[0], "x-\?\?\?\?\?-of-00012");
}

} // namespace
} // namespace lathe::rt
