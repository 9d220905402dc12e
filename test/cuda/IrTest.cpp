// Kernels from LLVM IR, through the code generator that the product uses.
#include "test/cuda/CudaTest.h"

#include <cmath>
#include <numeric>

using namespace lathe::test;

namespace {

const char *tid =
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndeclare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\ndeclare void "
    "@llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n";

TEST(Ir, ElementwiseWithATail) {
  CudaDevice device;
  std::string ir = std::string(tid) + R"(
define ptx_kernel void @axpy(ptr noalias %y, ptr noalias readonly %x, float %a, i32 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %m = mul i32 %b, %d
  %i = add i32 %m, %t
  %c = icmp slt i32 %i, %n
  br i1 %c, label %body, label %end
body:
  %w = zext i32 %i to i64
  %px = getelementptr float, ptr %x, i64 %w
  %py = getelementptr float, ptr %y, i64 %w
  %vx = load float, ptr %px
  %vy = load float, ptr %py
  %p = fmul float %a, %vx
  %s = fadd float %p, %vy
  store float %s, ptr %py
  br label %end
end:
  ret void
})";
  lathe_cu_function f = device.function(device.load(compileIr(ir)), "axpy");
  const int n = 1000;
  std::vector<float> x(n), y(n);
  for (int k = 0; k < n; ++k) {
    x[k] = 0.37f * static_cast<float>(k);
    y[k] = 1.0f / static_cast<float>(k + 1);
  }
  lathe_cu_deviceptr px = device.upload(x), py = device.upload(y);
  float a = 1.7f;
  int count = n;
  void *parameters[] = {&py, &px, &a, &count};
  ASSERT_EQ(device->cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr), 0);
  ASSERT_EQ(device->cuCtxSynchronize(), 0);
  std::vector<float> got = device.download<float>(py, n);
  for (int k = 0; k < n; ++k) {
    float p = a * x[k];
    ASSERT_EQ(got[k], p + y[k]) << k;
  }
  // one element more than there is
  count = n + 1;
  ASSERT_EQ(device->cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr), 0);
  EXPECT_EQ(device->cuCtxSynchronize(), LATHE_CU_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(holds(device.findings(), {"memcheck", "kernel 'axpy'", "block (7,0,0)", "thread (104,0,0)",
                                        "0 bytes after the end of an allocation of 4000 bytes"}));
}

/// The reversal of blocks of 64 through shared memory; the barrier is `sync`.
std::string reversal(const std::string &sync) {
  return std::string(tid) + R"(
@buffer = internal addrspace(3) global [64 x float] undef, align 4
define ptx_kernel void @reverse(ptr noalias %out, ptr noalias readonly %in) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %m = mul i32 %b, 64
  %i = add i32 %m, %t
  %w = zext i32 %i to i64
  %p = getelementptr float, ptr %in, i64 %w
  %v = load float, ptr %p
  %s = getelementptr [64 x float], ptr addrspace(3) @buffer, i32 0, i32 %t
  store float %v, ptr addrspace(3) %s
  )" + sync +
         R"(
  %r = sub i32 63, %t
  %q = getelementptr [64 x float], ptr addrspace(3) @buffer, i32 0, i32 %r
  %u = load float, ptr addrspace(3) %q
  %o = getelementptr float, ptr %out, i64 %w
  store float %u, ptr %o
  ret void
})";
}

TEST(Ir, SharedMemoryAndBarrier) {
  for (const char *seed : {"1", "2", "3"})
    for (const char *sms : {"1", "4", "132"}) {
      CudaDevice device(Setting{{"SEED", seed}, {"SMS", sms}, {"CHECKS", "init,race"}});
      lathe_cu_function f = device.function(
          device.load(compileIr(reversal("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"))),
          "reverse");
      std::vector<float> in(64 * 7);
      std::iota(in.begin(), in.end(), 0.0f);
      lathe_cu_deviceptr pi = device.upload(in), po = device.upload(nullptr, in.size() * 4);
      ASSERT_EQ(device.run(f, 7, 64, {po, pi}), 0);
      std::vector<float> got = device.download<float>(po, in.size());
      for (size_t k = 0; k < in.size(); ++k)
        ASSERT_EQ(got[k], in[k / 64 * 64 + 63 - k % 64]);
      EXPECT_TRUE(device.close().empty());
    }
}

TEST(Ir, AMissingBarrierIsARace) {
  CudaDevice device(Setting{{"CHECKS", "race"}});
  lathe_cu_function f = device.function(device.load(compileIr(reversal(""))), "reverse");
  lathe_cu_deviceptr pi = device.upload(std::vector<float>(64, 1.0f)), po = device.upload(nullptr, 256);
  EXPECT_EQ(device.run(f, 1, 64, {po, pi}), LATHE_CU_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(holds(device.findings(), {"racecheck", "shared"}))
      << (device.findings().empty() ? "none" : device.findings()[0]);
}

TEST(Ir, CallsLocalMemoryAndSwitch) {
  CudaDevice device;
  std::string ir = std::string(tid) + R"(
@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
define internal i32 @pick(i32 %k, i32 %v) noinline {
  %a = alloca [8 x i32], align 4
  br label %fill
fill:
  %i = phi i32 [ 0, %0 ], [ %n, %fill ]
  %p = getelementptr [8 x i32], ptr %a, i32 0, i32 %i
  %w = mul i32 %i, %v
  store volatile i32 %w, ptr %p
  %n = add i32 %i, 1
  %c = icmp slt i32 %n, 8
  br i1 %c, label %fill, label %read
read:
  %q = getelementptr [8 x i32], ptr %a, i32 0, i32 %k
  %r = load volatile i32, ptr %q
  ret i32 %r
}
define ptx_kernel void @k(ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %m = and i32 %t, 7
  switch i32 %m, label %other [ i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 5, label %e ]
a:
  br label %end
b:
  %vb = call i32 @pick(i32 %m, i32 %t)
  br label %end
c:
  %pc = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %m
  %vc = load i32, ptr addrspace(4) %pc
  br label %end
d:
  %vd = mul i32 %t, %t
  br label %end
e:
  %ve = call i32 @pick(i32 %m, i32 3)
  br label %end
other:
  br label %end
end:
  %v = phi i32 [ -1, %a ], [ %vb, %b ], [ %vc, %c ], [ %vd, %d ], [ %ve, %e ], [ 7, %other ]
  %w = zext i32 %t to i64
  %o = getelementptr i32, ptr %out, i64 %w
  store i32 %v, ptr %o
  ret void
})";
  lathe_cu_function f = device.function(device.load(compileIr(ir)), "k");
  lathe_cu_deviceptr po = device.upload(nullptr, 400);
  ASSERT_EQ(device.run(f, 1, 100, {po}), 0);
  std::vector<int> got = device.download<int>(po, 100);
  for (int t = 0; t < 100; ++t) {
    int want[8] = {-1, t, 30, t * t, 7, 15, 7, 7};
    ASSERT_EQ(got[t], want[t % 8]) << t;
  }
}

TEST(Ir, ProductInATile) {
  // C = A * B, a thread an element, with loops of different lengths in one warp
  CudaDevice device(Setting{{"CHECKS", "init,race"}});
  std::string ir = std::string(tid) + R"(
define ptx_kernel void @triangle(ptr noalias %c, ptr noalias readonly %a, ptr noalias readonly %b) {
  %j = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %row = mul i32 %i, 48
  br label %loop
loop:
  %k = phi i32 [ 0, %0 ], [ %k1, %loop ]
  %s = phi float [ 0.0, %0 ], [ %s1, %loop ]
  %ia = add i32 %row, %k
  %kb = mul i32 %k, 48
  %ib = add i32 %kb, %j
  %wa = zext i32 %ia to i64
  %wb = zext i32 %ib to i64
  %pa = getelementptr float, ptr %a, i64 %wa
  %pb = getelementptr float, ptr %b, i64 %wb
  %va = load float, ptr %pa
  %vb = load float, ptr %pb
  %m = fmul contract float %va, %vb
  %s1 = fadd contract float %s, %m
  %k1 = add i32 %k, 1
  %more = icmp sle i32 %k1, %j
  br i1 %more, label %loop, label %end
end:
  %ic = add i32 %row, %j
  %wc = zext i32 %ic to i64
  %pc = getelementptr float, ptr %c, i64 %wc
  store float %s1, ptr %pc
  ret void
})";
  lathe_cu_function f = device.function(device.load(compileIr(ir)), "triangle");
  const int n = 48;
  std::vector<float> a(n * n), b(n * n);
  for (int k = 0; k < n * n; ++k) {
    a[k] = std::sin(static_cast<float>(k));
    b[k] = std::cos(static_cast<float>(k));
  }
  lathe_cu_deviceptr pc = device.upload(nullptr, n * n * 4);
  ASSERT_EQ(device.run(f, n, n, {pc, device.upload(a), device.upload(b)}), 0);
  std::vector<float> got = device.download<float>(pc, n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float s = 0;
      for (int k = 0; k <= j; ++k)
        s = std::fma(a[i * n + k], b[k * n + j], s);
      ASSERT_EQ(got[i * n + j], s);
    }
}

} // namespace
