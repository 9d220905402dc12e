// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="exact features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=EXACT
// RUN: lathe-opt %s --kernel-set-target="threads=2 features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=THREADS
// EXACT-NOT: strassen

// CHECK-LABEL: @large
func.func @large(%x: tensor<128x768xf32>) -> tensor<128x768xf32> {
  // CHECK: hlo.constant{{.*}}tensor<24x768x32xf32>
  // CHECK: kernel.dot{{.*}}#cpu.strassen<columns = 32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<768x768xf32>} : () -> tensor<768x768xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32> {
  ^bb0(%acc: tensor<128x768xf32>):
    kernel.yield %acc : tensor<128x768xf32>
  }
  return %0 : tensor<128x768xf32>
}

// -----

// Few rows, a short sum, few columns, a number of rows that only a run knows: as ever.
// CHECK-LABEL: @others
// CHECK-NOT: strassen
func.func @others(%a: tensor<32x768xf32>, %b: tensor<1024x32xf32>, %d: tensor<128x768xf32>, %e: tensor<?x768xf32>)
    -> (tensor<32x768xf32>, tensor<1024x768xf32>, tensor<128x64xf32>, tensor<?x768xf32>) {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<768x768xf32>} : () -> tensor<768x768xf32>
  %short = "hlo.constant"() {value = dense<1.0> : tensor<32x768xf32>} : () -> tensor<32x768xf32>
  %few = "hlo.constant"() {value = dense<1.0> : tensor<768x64xf32>} : () -> tensor<768x64xf32>
  %0 = kernel.dot(%a, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<32x768xf32>, tensor<768x768xf32>) -> tensor<32x768xf32> {
  ^bb0(%acc: tensor<32x768xf32>):
    kernel.yield %acc : tensor<32x768xf32>
  }
  %1 = kernel.dot(%b, %short) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1024x32xf32>, tensor<32x768xf32>) -> tensor<1024x768xf32> {
  ^bb0(%acc: tensor<1024x768xf32>):
    kernel.yield %acc : tensor<1024x768xf32>
  }
  %2 = kernel.dot(%d, %few) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<128x768xf32>, tensor<768x64xf32>) -> tensor<128x64xf32> {
  ^bb0(%acc: tensor<128x64xf32>):
    kernel.yield %acc : tensor<128x64xf32>
  }
  %3 = kernel.dot(%e, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<?x768xf32>, tensor<768x768xf32>) -> tensor<?x768xf32> {
  ^bb0(%acc: tensor<?x768xf32>):
    kernel.yield %acc : tensor<?x768xf32>
  }
  return %0, %1, %2, %3 : tensor<32x768xf32>, tensor<1024x768xf32>, tensor<128x64xf32>, tensor<?x768xf32>
}

// -----

// A sum of odd length has a step of zeros.
// CHECK-LABEL: @odd
func.func @odd(%x: tensor<128x769xf32>) -> tensor<128x768xf32> {
  // CHECK: hlo.constant{{.*}}tensor<24x770x32xf32>
  // CHECK: kernel.dot{{.*}}strassen
  %w = "hlo.constant"() {value = dense<1.0> : tensor<769x768xf32>} : () -> tensor<769x768xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<128x769xf32>, tensor<769x768xf32>) -> tensor<128x768xf32> {
  ^bb0(%acc: tensor<128x768xf32>):
    kernel.yield %acc : tensor<128x768xf32>
  }
  return %0 : tensor<128x768xf32>
}

// -----

// Two threads would have three tiles of pairs of rows, or each the sums of all rows.
// CHECK-LABEL: @shared
// THREADS-LABEL: @shared
func.func @shared(%x: tensor<64x512xf32>) -> tensor<64x128xf32> {
  // CHECK: kernel.dot{{.*}}strassen
  // THREADS-NOT: strassen
  %w = "hlo.constant"() {value = dense<1.0> : tensor<512x128xf32>} : () -> tensor<512x128xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<64x512xf32>, tensor<512x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%acc: tensor<64x128xf32>):
    kernel.yield %acc : tensor<64x128xf32>
  }
  return %0 : tensor<64x128xf32>
}
