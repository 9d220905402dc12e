// RUN: lathe-opt %s --kernel-set-target="threads=2 features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma,+f16c,+sse4a" --kernel-to-llvm | FileCheck %s
// RUN: lathe-opt %s --kernel-set-target="threads=2 features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma,+f16c" --kernel-to-llvm | FileCheck %s --check-prefix=TWO

// A product is spread over threads where a vector takes a whole cycle, and not where two are done in one.
// CHECK: llvm.call @lathe_dispatch
// TWO-LABEL: llvm.func internal @lathe_run0(
// TWO-NOT: lathe_dispatch
func.func @main(%x: tensor<1x128xf32>, %w: tensor<128x512xf32>) -> tensor<1x512xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>} : (tensor<1x128xf32>, tensor<128x512xf32>) -> tensor<1x512xf32> {
  ^bb0(%acc: tensor<1x512xf32>):
    kernel.yield %acc : tensor<1x512xf32>
  }
  return %0 : tensor<1x512xf32>
}
