// Products of fragments, with A by ldmatrix from rows as they lie in memory, against products on the host.
#include "test/cuda/CudaTest.h"

#include <cstring>
#include <random>

using namespace lathe::test;

namespace {

uint32_t word(float v) {
  uint32_t r;
  std::memcpy(&r, &v, 4);
  return r;
}

/// Small whole numbers, which every type holds and whose sums are exact.
std::vector<int> numbers(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> v(n);
  for (int &x : v)
    x = static_cast<int>(random() % 17) - 8;
  return v;
}

const std::string lanes =
    "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 2;\nand.b32 %r3, %r1, 3;\nld.param.b64 %rd1, [p0];\n"
    "ld.param.b64 %rd2, [p1];\nld.param.b64 %rd3, [p2];\n";
/// Stores the sums %f0 to %f3 (or %r20 to %r23) as rows of 8.
std::string stores(const char *reg, const char *type) {
  std::string n0 = std::string(reg) + "0",
              text = "mad.lo.u32 %r4, %r2, 8, %r3;\nadd.u32 %r4, %r4, %r3;\nmul.wide.u32 %rd4, %r4, 4;\n"
                     "add.u64 %rd4, %rd3, %rd4;\n";
  const char *offsets[] = {"", "+4", "+256", "+260"};
  for (int k = 0; k < 4; ++k)
    text +=
        std::string("st.global.") + type + " [%rd4" + offsets[k] + "], " + reg + std::to_string(k) + ";\n";
  return text;
}

/// A 16 x 16 of 16-bit numbers by ldmatrix; B column by column with plain loads.
void sixteen(const char *type, uint16_t (*convert)(float)) {
  CudaDevice device(Setting{{"CHECKS", "init,race"}});
  std::string body =
      lanes + // row r of A is 32 bytes; lanes copy half a row each
      "mul.wide.u32 %rd4, %r1, 16;\nadd.u64 %rd5, %rd1, %rd4;\nld.global.v4.b32 {%r5, %r6, %r7, %r8}, "
      "[%rd5];\n"
      "mov.u64 %rd6, tile;\nadd.u64 %rd7, %rd6, %rd4;\nst.shared.v4.b32 [%rd7], {%r5, %r6, %r7, "
      "%r8};\nbar.sync 0;\n"
      // lanes 0-15 give rows 0-15 of the left half, lanes 16-31 those of the right half
      "and.b32 %r9, %r1, 15;\nshr.u32 %r10, %r1, 4;\nmul.wide.u32 %rd8, %r9, 32;\nmul.wide.u32 %rd9, %r10, "
      "16;\n"
      "add.u64 %rd8, %rd8, %rd9;\nadd.u64 %rd8, %rd6, %rd8;\n"
      "ldmatrix.sync.aligned.m8n8." +
      "x4.shared.b16 {%r11, %r12, %r13, %r14}, [%rd8];\n"
      // B is stored with columns of 16 in a row
      "mul.wide.u32 %rd10, %r2, 32;\nmul.wide.u32 %rd11, %r3, 4;\nadd.u64 %rd10, %rd10, %rd11;\nadd.u64 "
      "%rd10, %rd2, %rd10;\n"
      "ld.global.b32 %r15, [%rd10];\nld.global.b32 %r16, [%rd10+16];\nmov.f32 %f4, 0f3F000000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32." +
      type + "." + type +
      ".f32 {%f0, %f1, %f2, %f3}, {%r11, %r12, %r13, %r14}, {%r15, %r16}, {%f4, %f4, %f4, %f4};\n" +
      stores("%f", "f32");
  lathe_cu_function f =
      device.function(device.load(entry(3, body, "", ".shared .align 16 .b8 tile[512];")), "k");
  std::vector<int> a = numbers(256, 1), b = numbers(128, 2);
  std::vector<uint16_t> ha, hb;
  for (int v : a)
    ha.push_back(convert(static_cast<float>(v)));
  for (int v : b)
    hb.push_back(convert(static_cast<float>(v)));
  lathe_cu_deviceptr out = device.upload(nullptr, 512);
  ASSERT_EQ(device.run(f, 1, 32, {device.upload(ha), device.upload(hb), out}), 0);
  EXPECT_TRUE(device.findings().empty());
  std::vector<float> c = device.download<float>(out, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float s = 0.5f;
      for (int k = 0; k < 16; ++k)
        s += static_cast<float>(a[i * 16 + k] * b[j * 16 + k]);
      ASSERT_EQ(c[i * 8 + j], s) << i << " " << j;
    }
}

TEST(Matrix, Halves) { sixteen("f16", half); }
TEST(Matrix, BFloats) { sixteen("bf16", bfloat); }

TEST(Matrix, Tf32) {
  CudaDevice device;
  // A[i][k] and B[j][k] with rows of 8 words
  std::string body =
      lanes +
      "mad.lo.u32 %r4, %r2, 8, %r3;\nmul.wide.u32 %rd4, %r4, 4;\nadd.u64 %rd5, %rd1, %rd4;\n"
      "add.u64 %rd6, %rd2, %rd4;\nld.global.b32 %r5, [%rd5];\nld.global.b32 %r6, [%rd5+256];\n"
      "ld.global.b32 %r7, [%rd5+16];\nld.global.b32 %r8, [%rd5+272];\nld.global.b32 %r9, [%rd6];\n"
      "ld.global.b32 %r10, [%rd6+16];\nmov.f32 %f4, 0f00000000;\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r5, %r6, %r7, %r8}, "
      "{%r9, %r10}, {%f4, %f4, %f4, %f4};\n" +
      stores("%f", "f32");
  lathe_cu_function f = device.function(device.load(entry(3, body)), "k");
  std::vector<int> a = numbers(128, 3), b = numbers(64, 4);
  std::vector<uint32_t> wa, wb;
  for (int v : a)
    wa.push_back(word(static_cast<float>(v)) | 0x1fff); // low bits do not count
  for (int v : b)
    wb.push_back(word(static_cast<float>(v)));
  lathe_cu_deviceptr out = device.upload(nullptr, 512);
  ASSERT_EQ(device.run(f, 1, 32, {device.upload(wa), device.upload(wb), out}), 0);
  std::vector<float> c = device.download<float>(out, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float s = 0;
      for (int k = 0; k < 8; ++k)
        s += static_cast<float>(a[i * 8 + k] * b[j * 8 + k]);
      ASSERT_EQ(c[i * 8 + j], s) << i << " " << j;
    }
}

TEST(Matrix, Bytes) {
  CudaDevice device;
  // A[i][k] and B[j][k] with rows of 32 bytes
  std::string body =
      lanes +
      "mul.wide.u32 %rd4, %r2, 32;\nmul.wide.u32 %rd7, %r3, 4;\nadd.u64 %rd4, %rd4, %rd7;\n"
      "add.u64 %rd5, %rd1, %rd4;\nadd.u64 %rd6, %rd2, %rd4;\nld.global.b32 %r5, [%rd5];\n"
      "ld.global.b32 %r6, [%rd5+256];\nld.global.b32 %r7, [%rd5+16];\nld.global.b32 %r8, [%rd5+272];\n"
      "ld.global.b32 %r9, [%rd6];\nld.global.b32 %r10, [%rd6+16];\nmov.u32 %r24, 3;\n"
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r20, %r21, %r22, %r23}, {%r5, %r6, %r7, %r8}, "
      "{%r9, %r10}, {%r24, %r24, %r24, %r24};\n" +
      stores("%r2", "b32");
  lathe_cu_function f = device.function(device.load(entry(3, body)), "k");
  std::vector<int> a = numbers(512, 5), b = numbers(256, 6);
  std::vector<int8_t> ba(a.begin(), a.end()), bb(b.begin(), b.end());
  lathe_cu_deviceptr out = device.upload(nullptr, 512);
  ASSERT_EQ(device.run(f, 1, 32, {device.upload(ba), device.upload(bb), out}), 0);
  std::vector<int> c = device.download<int>(out, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      int s = 3;
      for (int k = 0; k < 32; ++k)
        s += a[i * 32 + k] * b[j * 32 + k];
      ASSERT_EQ(c[i * 8 + j], s) << i << " " << j;
    }
}

} // namespace
