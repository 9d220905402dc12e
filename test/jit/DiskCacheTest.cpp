// What lies in the folder of compiled objects is not believed: cut, changed, exchanged, foreign files are compiled again.
#include "compiler/jit/CompileCache.h"
#include "compiler/jit/DiskCache.h"

#include "google/protobuf/text_format.h"
#include "proto/graph.pb.h"
#include "runtime/abi/cluster_compiler.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace lathe {
namespace {

namespace fs = std::filesystem;

/// A folder of its own, and the function f(x, y) of two vectors of four floats, of one operation.
class DiskCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "lathe-disk-" + std::to_string(getpid()) + "-" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  /// f(10, 4) by a cache without memory, as in a new process; NaN where it fails.
  float run(const std::string &op) {
    tf::GraphDef graph;
    std::string node = "node_def { name: 'n' op: '" + op + "' input: 'x' input: 'y' attr { key: 'T' value { type: DT_FLOAT } } }";
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "library { function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'y' type: DT_FLOAT } "
        "output_arg { name: 'r' type: DT_FLOAT } } " +
            node + " ret { key: 'r' value: 'n:z:0' } } }",
        &graph));
    std::string bytes = graph.SerializeAsString();
    int64_t four = 4;
    lathe_cluster_arg arg = {sizeof(lathe_cluster_arg), LATHE_FLOAT32, 1, 0, &four, nullptr, 0};
    const lathe_cluster_arg *args[] = {&arg, &arg};
    lathe_compile_request request = {sizeof(request), 2, {bytes.data(), bytes.size()}, "f", args, 1, 0, folder.c_str()};
    CompileCache cache;
    CompileFailure failure;
    auto cluster = cache.get(request, failure);
    if (!cluster) {
      ADD_FAILURE() << failure.message;
      return NAN;
    }
    const lathe_module *module = &cluster->module->abi();
    const lathe_entry &e = *module->entries[0];
    alignas(64) float x[4] = {10, 10, 10, 10}, y[4] = {4, 4, 4, 4}, r[4] = {};
    std::vector<char> workspace(static_cast<size_t>(e.workspace_size(nullptr, 1)) + 64);
    const void *inputs[] = {x, y};
    void *outputs[] = {r};
    lathe_run_args a = {};
    a.struct_size = sizeof(a);
    a.threads = 1;
    a.inputs = inputs;
    a.outputs = outputs;
    a.workspace = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
    a.workspace_size = static_cast<int64_t>(workspace.size()) - 64;
    EXPECT_EQ(e.run(&a), 0);
    return r[3];
  }

  std::vector<fs::path> files() {
    std::vector<fs::path> all;
    for (const auto &entry : fs::directory_iterator(folder))
      all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    return all;
  }
  static std::string read(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void write(const fs::path &path, const std::string &content) { std::ofstream(path, std::ios::binary) << content; }
  static std::string keyOf(const fs::path &path) {
    std::string stem = path.stem();
    return stem.substr(0, stem.rfind('-'));
  }
  bool loads(const fs::path &path) {
    CompiledObject object;
    std::vector<std::string> values;
    return DiskCache(folder).load(keyOf(path), 2, [](auto &, auto &) { return true; }, object, values);
  }

  std::string folder;
};

TEST_F(DiskCacheTest, KeptAndFoundAgain) {
  EXPECT_EQ(run("AddV2"), 14);
  ASSERT_EQ(files().size(), 1u);
  EXPECT_TRUE(loads(files()[0]));
  EXPECT_EQ(run("AddV2"), 14);
  EXPECT_EQ(files().size(), 1u) << "the second run found the first one's object";
}

TEST_F(DiskCacheTest, CutAndChangedFilesAreCompiledAgain) {
  EXPECT_EQ(run("AddV2"), 14);
  fs::path file = files()[0];
  std::string whole = read(file);
  for (size_t size = 0; size < whole.size(); size += size < 400 ? 1 : 97) {
    write(file, whole.substr(0, size));
    ASSERT_FALSE(loads(file)) << "cut to " << size;
  }
  for (size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 97) {
    std::string changed = whole;
    changed[at] ^= 1 << at % 8;
    write(file, changed);
    ASSERT_FALSE(loads(file)) << "changed at " << at;
  }
  EXPECT_EQ(run("AddV2"), 14);
  write(file, whole);
  EXPECT_TRUE(loads(file));
}

TEST_F(DiskCacheTest, ExchangedFilesAreCompiledAgain) {
  EXPECT_EQ(run("AddV2"), 14);
  fs::path sum = files()[0];
  std::string sumFile = read(sum);
  EXPECT_EQ(run("Sub"), 6);
  ASSERT_EQ(files().size(), 2u);
  fs::path difference = files()[0] == sum ? files()[1] : files()[0];
  write(sum, read(difference));
  write(difference, sumFile);
  EXPECT_FALSE(loads(sum));
  EXPECT_EQ(run("AddV2"), 14);
  EXPECT_EQ(run("Sub"), 6);
}

TEST_F(DiskCacheTest, ObjectsOfAnotherBuildHaveAnotherKey) {
  // the key holds the build's identity, and without one nothing is kept
  EXPECT_FALSE(buildIdentity().empty());
  EXPECT_NE(buildIdentity().find('|'), std::string::npos);
}

TEST_F(DiskCacheTest, ObjectsThatDoNotLinkAreCompiledAgain) {
  EXPECT_EQ(run("Mul"), 40);
  fs::path file = files()[0];
  CompiledObject object;
  std::vector<std::string> values;
  DiskCache disk(folder);
  ASSERT_TRUE(disk.load(keyOf(file), 2, [](auto &, auto &) { return true; }, object, values));
  for (std::string broken : {std::string(), std::string("no object"), object.object.substr(0, object.object.size() / 2)}) {
    fs::remove(file);
    CompiledObject bad = object;
    bad.object = broken;
    disk.store(keyOf(file), bad, values);
    ASSERT_TRUE(loads(file)) << "a file as it should be, but for the object";
    EXPECT_EQ(run("Mul"), 40);
    EXPECT_EQ(read(file).size() > 1000, true) << "the good object has taken its place";
  }
  fs::remove(file);
  object.prefix = "another";
  disk.store(keyOf(file), object, values);
  EXPECT_EQ(run("Mul"), 40);
}

TEST_F(DiskCacheTest, FilesOthersMayWriteAreNotRead) {
  EXPECT_EQ(run("AddV2"), 14);
  fs::path file = files()[0];
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_FALSE(loads(file));
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_TRUE(loads(file));
  fs::rename(file, folder + "/elsewhere");
  fs::create_directory(file);
  EXPECT_FALSE(loads(file));
}

} // namespace
} // namespace lathe
