// RUN: lathe-opt %s --split-input-file --kernel-set-target="features=+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl" --kernel-to-llvm | FileCheck %s

// One row: weights that stay in the last cache, but not in L2, are fetched a page ahead in the loop that reads them, and the result before it.
// CHECK-LABEL: llvm.func internal @k0_dot
// CHECK: %[[PAGE:.*]] = llvm.mlir.constant(4096 : i64)
// CHECK-COUNT-4: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: llvm.cond_br
// CHECK: %[[AT:.*]] = llvm.add %{{.*}}, %[[PAGE]]
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%[[AT]]]
// CHECK-COUNT-16: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK-LABEL: llvm.func internal @lathe_workspace0
func.func @main(%x: tensor<1x16384xf32>) -> tensor<1x64xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<1x16384x64xf32>} : () -> tensor<1x16384x64xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 64>} : (tensor<1x16384xf32>, tensor<1x16384x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%acc: tensor<1x64xf32>):
    kernel.yield %acc : tensor<1x64xf32>
  }
  return %0 : tensor<1x64xf32>
}

// -----

// Beside constants that do not.
// CHECK-LABEL: llvm.func internal @k0_dot
// CHECK-NOT: llvm.mlir.constant(4096 : i64)
// CHECK-LABEL: llvm.func internal @lathe_workspace0
func.func @main(%x: tensor<1x16384xf32>) -> (tensor<1x64xf32>, tensor<5000000xf32>) {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<1x16384x64xf32>} : () -> tensor<1x16384x64xf32>
  %large = "hlo.constant"() {value = dense<2.0> : tensor<5000000xf32>} : () -> tensor<5000000xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 64>} : (tensor<1x16384xf32>, tensor<1x16384x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%acc: tensor<1x64xf32>):
    kernel.yield %acc : tensor<1x64xf32>
  }
  return %0, %large : tensor<1x64xf32>, tensor<5000000xf32>
}

// -----

// In L2.
// CHECK-LABEL: llvm.func internal @k0_dot
// CHECK-NOT: llvm.mlir.constant(4096 : i64)
// CHECK-LABEL: llvm.func internal @lathe_workspace0
func.func @main(%x: tensor<1x1024xf32>) -> tensor<1x64xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<1x1024x64xf32>} : () -> tensor<1x1024x64xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 64>} : (tensor<1x1024xf32>, tensor<1x1024x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%acc: tensor<1x64xf32>):
    kernel.yield %acc : tensor<1x64xf32>
  }
  return %0 : tensor<1x64xf32>
}
