// The kernels whose results bench/gpu records on a device: here on the emulated one, and against what was recorded.
#include "bench/gpu/probes.h"
#include "test/cuda/CudaTest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace lathe::test;

namespace {

std::vector<uint32_t> wordsOf(const std::string &hex) {
  std::vector<uint32_t> words;
  for (size_t i = 0; i + 8 <= hex.size(); i += 8)
    words.push_back(static_cast<uint32_t>(std::stoul(hex.substr(i, 8), nullptr, 16)));
  return words;
}

/// The text behind a key of a line of JSON as check --record writes it.
std::string field(const std::string &line, const std::string &key) {
  const std::string before = "\"" + key + "\": \"";
  const size_t at = line.find(before);
  return at == std::string::npos ? "" : line.substr(at + before.size(), line.find('"', at + before.size()) - at - before.size());
}

/// What differs from the lines of a recording.
std::vector<std::string> compare(const lathe_cuda_driver &driver, std::istream &recording, size_t &compared) {
  std::vector<std::string> differences;
  for (std::string line; std::getline(recording, line);)
    for (const Probe &probe : probes()) {
      if (field(line, "probe") != probe.name)
        continue;
      std::vector<uint32_t> here;
      std::string why;
      if (!runProbe(driver, probe, here, why))
        differences.push_back(why);
      else if (why = compareProbe(probe, wordsOf(field(line, "result")), here); !why.empty())
        differences.push_back(why);
      ++compared;
    }
  return differences;
}

TEST(Probes, RunWithoutFindings) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}});
  for (const Probe &probe : probes()) {
    std::vector<uint32_t> out;
    std::string why;
    EXPECT_EQ(assemble(probe.ptx), "") << probe.name;
    EXPECT_TRUE(runProbe(*device, probe, out, why)) << why;
  }
  EXPECT_TRUE(device.findings().empty()) << device.findings()[0];
}

TEST(Probes, ComparisonsFindWhatDiffers) {
  CudaDevice device;
  for (const Probe &probe : probes()) {
    std::vector<uint32_t> out;
    std::string why;
    ASSERT_TRUE(runProbe(*device, probe, out, why)) << why;
    EXPECT_EQ(compareProbe(probe, out, out), "");
    std::vector<uint32_t> other = out;
    other[other.size() / 2] ^= 0x00400000;
    EXPECT_NE(compareProbe(probe, out, other), "") << probe.name;
    other.pop_back();
    EXPECT_NE(compareProbe(probe, out, other), "") << probe.name;
  }
}

// Files that a device wrote lie in test/cuda/Inputs/recorded; LATHE_GPU_RECORD names one more.
TEST(Probes, AgreeWithRecordings) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = LATHE_RECORDED;
  if (std::filesystem::is_directory(folder))
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      files.push_back(entry.path());
  if (const char *more = std::getenv("LATHE_GPU_RECORD"))
    files.emplace_back(more);
  if (files.empty())
    GTEST_SKIP() << "no device has recorded any";
  CudaDevice device;
  for (const auto &file : files) {
    std::ifstream in(file);
    size_t compared = 0;
    for (const std::string &difference : compare(*device, in, compared))
      ADD_FAILURE() << file << ": " << difference;
    EXPECT_GT(compared, 0u) << file;
  }
}

} // namespace
