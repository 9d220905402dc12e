// Layouts of fragments, of ldmatrix and of wgmma's operands as NVIDIA's own library has them: kernels of CuTe's atoms (Inputs/cute),
// compiled by NVRTC, against products on the host.
#include "test/cuda/CudaTest.h"

#include <cstring>
#include <fstream>
#include <random>
#include <regex>
#include <sstream>

using namespace lathe::test;

namespace {

struct Product {
  const char *kernel;
  const char *a, *b, *sum; ///< types
  unsigned threads, rows, columns, depth;
  bool acrossA = false, acrossB = false; ///< rows, columns are neighbours in memory
  bool saturates = false;
};

const Product products[] = {
    {"single_f16_8_f16", "f16", "f16", "f16", 32, 16, 8, 8},
    {"single_f16_16_f16", "f16", "f16", "f16", 32, 16, 8, 16},
    {"single_f16_8_f32", "f16", "f16", "f32", 32, 16, 8, 8},
    {"single_f16_16_f32", "f16", "f16", "f32", 32, 16, 8, 16},
    {"single_bf16_8_f32", "bf16", "bf16", "f32", 32, 16, 8, 8},
    {"single_bf16_16_f32", "bf16", "bf16", "f32", 32, 16, 8, 16},
    {"single_tf32_4_f32", "f32", "f32", "f32", 32, 16, 8, 4},
    {"single_tf32_8_f32", "f32", "f32", "f32", 32, 16, 8, 8},
    {"single_s8s8_16_s32", "s8", "s8", "s32", 32, 16, 8, 16},
    {"single_s8s8_32_s32", "s8", "s8", "s32", 32, 16, 8, 32},
    {"single_s8u8_16_s32", "s8", "u8", "s32", 32, 16, 8, 16},
    {"single_s8u8_32_s32", "s8", "u8", "s32", 32, 16, 8, 32},
    {"single_u8s8_16_s32", "u8", "s8", "s32", 32, 16, 8, 16},
    {"single_u8s8_32_s32", "u8", "s8", "s32", 32, 16, 8, 32},
    {"single_u8u8_16_s32", "u8", "u8", "s32", 32, 16, 8, 16},
    {"single_u8u8_32_s32", "u8", "u8", "s32", 32, 16, 8, 32, false, false, true},
    {"tile_f16_x4_x4", "f16", "f16", "f32", 128, 32, 32, 64},
    {"tile_f16_x2_x1", "f16", "f16", "f32", 128, 32, 32, 64},
    {"tile_f16_t8_t8", "f16", "f16", "f32", 128, 32, 32, 32, true, true},
    {"tile_bf16_t4_t2", "bf16", "bf16", "f32", 128, 32, 32, 32, true, true},
    {"tile_bf16_x4_t4", "bf16", "bf16", "f32", 128, 32, 32, 32, false, true},
    {"tile_f16_8_t4_x2", "f16", "f16", "f32", 128, 32, 32, 32, true, false},
    {"tile_tf32_x4_x4", "f32", "f32", "f32", 128, 32, 32, 32},
    {"tile_s8s8_x4_x4", "s8", "s8", "s32", 128, 32, 32, 64},
    {"tile_u8u8_x4_x2", "u8", "u8", "s32", 128, 32, 32, 64},
};

// of all, operands lie along the depth in global memory
const Product warpgroups[] = {
    {"group_f16_k128_k128", "f16", "f16", "f32", 128, 64, 64, 64},
    {"group_f16_k64_k32", "f16", "f16", "f32", 128, 64, 8, 64},
    {"group_f16_k32_k64", "f16", "f16", "f32", 128, 64, 16, 128},
    {"group_f16_m128_m128", "f16", "f16", "f32", 256, 128, 64, 32},
    {"group_f16_m64_m64", "f16", "f16", "f32", 128, 64, 32, 32},
    {"group_f16_m32_m32", "f16", "f16", "f32", 128, 64, 32, 32},
    {"group_bf16_k128_m128", "bf16", "bf16", "f32", 128, 64, 128, 64},
    {"group_bf16_m64_k128", "bf16", "bf16", "f32", 256, 128, 48, 64},
    {"group_tf32_128_128", "f32", "f32", "f32", 128, 64, 32, 64},
    {"group_tf32_64_32", "f32", "f32", "f32", 256, 128, 16, 32},
    {"group_s8s8_128_128", "s8", "s8", "s32", 128, 64, 64, 128},
    {"group_s8s8_32_64", "s8", "s8", "s32", 256, 128, 8, 128},
};

/// A whole number as an element of that type, which holds it.
void append(std::vector<uint8_t> &bytes, const std::string &type, int64_t value) {
  const float f = static_cast<float>(value);
  uint32_t bits = static_cast<uint32_t>(value), size = 4;
  if (type == "f32")
    std::memcpy(&bits, &f, 4);
  else if (type == "f16" || type == "bf16")
    bits = type == "f16" ? half(f) : bfloat(f), size = 2;
  else if (type != "s32")
    size = 1;
  for (unsigned i = 0; i < size; ++i)
    bytes.push_back(static_cast<uint8_t>(bits >> 8 * i));
}

std::string read(const std::string &name) {
  std::ifstream in(std::string(LATHE_CUTE) + "/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// How many of the results differ; all where the kernel fails.
size_t differences(CudaDevice &device, lathe_cu_module module, const Product &p) {
  std::mt19937 random(7);
  auto numbers = [&](const std::string &type, size_t n) {
    std::vector<int64_t> v(n);
    const bool isByte = type == "s8" || type == "u8";
    for (int64_t &x : v) // all bytes; of floating-point types numbers whose sums are exact
      x = isByte ? static_cast<int64_t>(random() % 256) - (type == "s8" ? 128 : 0) : static_cast<int64_t>(random() % 9) - 4;
    return v;
  };
  const std::vector<int64_t> a = numbers(p.a, p.rows * p.depth), b = numbers(p.b, p.columns * p.depth);
  std::vector<int64_t> c = numbers(p.sum, p.rows * p.columns);
  if (p.saturates)
    for (size_t i = 0; i < c.size(); i += 2)
      c[i] += 0x7fffff00; // some of the sums fit, others do not
  std::vector<uint8_t> bytesA, bytesB, before, want;
  for (unsigned i = 0; i < p.rows * p.depth; ++i)
    append(bytesA, p.a, p.acrossA ? a[i % p.rows * p.depth + i / p.rows] : a[i]);
  for (unsigned i = 0; i < p.columns * p.depth; ++i)
    append(bytesB, p.b, p.acrossB ? b[i % p.columns * p.depth + i / p.columns] : b[i]);
  for (unsigned i = 0; i < p.rows; ++i)
    for (unsigned j = 0; j < p.columns; ++j) {
      int64_t sum = c[i * p.columns + j];
      append(before, p.sum, sum);
      for (unsigned k = 0; k < p.depth; ++k)
        sum += a[i * p.depth + k] * b[j * p.depth + k];
      append(want, p.sum, p.saturates ? std::min<int64_t>(sum, INT32_MAX) : sum);
    }
  const lathe_cu_deviceptr out = device.upload(before);
  if (device.run(device.function(module, p.kernel), 1, p.threads, {device.upload(bytesA), device.upload(bytesB), out}))
    return want.size();
  const std::vector<uint8_t> got = device.download<uint8_t>(out, want.size());
  size_t count = 0;
  for (size_t i = 0; i < want.size(); ++i)
    count += got[i] != want[i];
  return count;
}

template <size_t N>
void compare(const char *file, const char *arch, const Product (&all)[N]) {
  const std::string text = read(file);
  size_t entries = 0;
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos; ++at)
    ++entries;
  EXPECT_EQ(entries, N) << "kernels that nobody runs";
  CudaDevice device(Setting{{"CHECKS", "init,race"}, {"ARCH", arch}});
  lathe_cu_module module = device.load(text);
  ASSERT_TRUE(module);
  for (const Product &p : all)
    EXPECT_EQ(differences(device, module, p), 0u) << p.kernel;
  for (const std::string &line : device.findings())
    ADD_FAILURE() << line;
}

TEST(Cute, Warps) { compare("products.ptx", "80", products); }
TEST(Cute, Warpgroups) { compare("warpgroups.ptx", "90", warpgroups); }

/// Other instructions in the kernels give other results: the comparison sees what a wrong layout would do.
TEST(Cute, SeesOtherLayouts) {
  const std::string text = read("products.ptx");
  const std::pair<const char *, const char *> changes[] = {
      {"ldmatrix\\.sync\\.aligned\\.(x\\d)\\.trans", "ldmatrix.sync.aligned.$1"},
      {"(ldmatrix\\.sync\\.aligned\\.x2\\.m8n8\\.shared\\.b16 \\{)(%r\\d+), (%r\\d+)", "$1$3, $2"},
      {"(mma\\.sync\\.aligned\\.m16n8k16\\S*\\s*\\{[^}]*\\},\\s*\\{)(%r\\d+),\\s*(%r\\d+)", "$1$3, $2"},
      {"(mma\\.sync\\.aligned\\.m16n8k8\\.row\\.col\\.f32\\.tf32\\S*\\s*\\{)(%f\\d+),\\s*(%f\\d+)", "$1$3, $2"},
      {"s8\\.u8\\.s32", "s8.s8.s32"},
  };
  for (const auto &change : changes) {
    CudaDevice device;
    lathe_cu_module module = device.load(std::regex_replace(text, std::regex(change.first), change.second));
    ASSERT_TRUE(module);
    size_t count = 0;
    for (const Product &p : products)
      count += differences(device, module, p) != 0;
    EXPECT_GT(count, 0u) << change.first;
  }
}

} // namespace
