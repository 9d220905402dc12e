// Graphs of hosted objects: instances, errors, and bytes that are damaged.
#include "runtime/abi/module_abi.h"
#include "runtime/abi/hosted_abi.h"
#include "runtime/hosted/Graph.h"

#include <gtest/gtest.h>

namespace lathe::rt {
namespace {

struct Writer {
  std::string bytes = "LHG1";
  template <typename T>
  Writer &number(T v) {
    bytes.append(reinterpret_cast<const char *>(&v), sizeof(v));
    return *this;
  }
  Writer &count(uint32_t n) { return number(n); }
  Writer &text(const std::string &s) {
    count(static_cast<uint32_t>(s.size()));
    bytes += s;
    return *this;
  }
  Writer &strings(const char *name) { // an input or output: any vector of texts
    return text(name).text(std::string(name) + ":0").count(7).number(int32_t(1)).number(int64_t(-1));
  }
};

/// lower(text), with a constant, a list of ints and a control edge that mean nothing.
std::string lowerGraph() {
  Writer w;
  w.count(1).text("main").number(uint8_t(0));
  w.count(1).strings("text");
  w.count(1).strings("out").count(2).count(0);
  w.count(2);
  w.text("c").text("Const").count(3).text("dtype").number(uint8_t(5)).count(7).text("value").number(uint8_t(7)).count(7).number(int32_t(1)).number(int64_t(2));
  w.text("a").text("b").text("list").number(uint8_t(8)).number(uint8_t(1)).count(2).number(int64_t(1)).number(int64_t(2));
  w.count(0).count(0).count(1).count(7);
  w.text("lower").text("StringLower").count(1).text("encoding").number(uint8_t(4)).text("").count(1).count(0).count(0).count(1).count(1).count(1).count(7);
  return w.bytes;
}

lathe_hosted_module moduleOf(const std::string &bytes) {
  return {sizeof(lathe_hosted_module), LATHE_HOSTED_VERSION, "m", nullptr, bytes.data(), bytes.size(), 0, 0, nullptr, nullptr, nullptr};
}

TEST(Hosted, runs) {
  std::string bytes = lowerGraph();
  lathe_hosted_module module = moduleOf(bytes);
  for (int threads : {1, 3}) {
    lathe_hosted *model = lathe_hosted_new(&module, threads);
    ASSERT_STREQ(lathe_hosted_error(model), "");
    EXPECT_STREQ(lathe_hosted_entry_name(model, 0), "main");
    ASSERT_NE(lathe_hosted_input(model, 0, 0), nullptr);
    EXPECT_EQ(lathe_hosted_input(model, 0, 1), nullptr);
    EXPECT_EQ(lathe_hosted_output(model, 0, 0)->rank, 1);
    lathe_host_string texts[] = {{"ABc", 3}, {nullptr, 0}};
    int64_t dims[] = {2};
    lathe_host_tensor in = {sizeof(in), LATHE_STRING, 1, 0, dims, texts};
    const lathe_host_tensor *inputs[] = {&in};
    ASSERT_EQ(lathe_hosted_run(model, 0, inputs, 1), 0) << lathe_hosted_error(model);
    const lathe_host_tensor *out = lathe_hosted_result(model, 0);
    ASSERT_NE(out, nullptr);
    ASSERT_EQ(out->dims[0], 2);
    auto *got = static_cast<const lathe_host_string *>(out->data);
    EXPECT_EQ(std::string(got[0].data, got[0].size), "abc");
    EXPECT_EQ(got[1].size, 0u);
    // what a caller can do wrong
    EXPECT_NE(lathe_hosted_run(model, 1, inputs, 1), 0);
    EXPECT_NE(lathe_hosted_run(model, -1, inputs, 1), 0);
    EXPECT_NE(lathe_hosted_run(model, 0, inputs, 0), 0);
    in.dtype = LATHE_FLOAT32;
    EXPECT_EQ(lathe_hosted_run(model, 0, inputs, 1), LATHE_INVALID_ARGUMENT);
    in.dtype = LATHE_STRING;
    dims[0] = -1;
    EXPECT_NE(lathe_hosted_run(model, 0, inputs, 1), 0);
    dims[0] = INT64_MAX / 16;
    EXPECT_NE(lathe_hosted_run(model, 0, inputs, 1), 0);
    in.rank = 0;
    EXPECT_NE(lathe_hosted_run(model, 0, inputs, 1), 0);
    inputs[0] = nullptr;
    EXPECT_NE(lathe_hosted_run(model, 0, inputs, 1), 0);
    EXPECT_STREQ(lathe_hosted_error(model), "input 'text' is not set");
    EXPECT_EQ(lathe_hosted_result(model, -1), nullptr);
    lathe_hosted_delete(model);
  }
}

TEST(Hosted, damagedGraphs) {
  std::string whole = lowerGraph();
  EXPECT_TRUE(readHostedGraph(whole.data(), whole.size()).ok());
  for (size_t n = 0; n < whole.size(); ++n) {
    std::string cut = whole.substr(0, n);
    EXPECT_FALSE(readHostedGraph(cut.data(), cut.size()).ok()) << n;
  }
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      lathe_hosted_module module = moduleOf(flipped);
      lathe_hosted *model = lathe_hosted_new(&module, 1); // fine or an error
      lathe_hosted_delete(model);
    }
  lathe_hosted_module other = moduleOf(whole);
  other.version = 9;
  lathe_hosted *model = lathe_hosted_new(&other, 1);
  EXPECT_STRNE(lathe_hosted_error(model), "");
  EXPECT_NE(lathe_hosted_run(model, 0, nullptr, 0), 0);
  lathe_hosted_delete(model);
}

} // namespace
} // namespace lathe::rt
