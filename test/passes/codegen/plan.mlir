// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --enable-var-scope

// A plan decides instead of the estimates: direct, in panels of three vectors.
// CHECK-LABEL: @planned_direct
func.func @planned_direct(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  // CHECK: kernel.conv({{.*}}#cpu.panels<columns = 48>{{.*}}, rhs_dilation = array<i64: 1, 1>, strides = array<i64: 1, 1>} :
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  %0 = kernel.conv(%x, %w) {kernel.plan = {vecs = 3 : i64, winograd = 0 : i64}, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  ^bb0(%acc: tensor<1x56x56x64xf32>):
    kernel.yield %acc : tensor<1x56x56x64xf32>
  }
  return %0 : tensor<1x56x56x64xf32>
}

// -----

// CHECK-LABEL: @planned_small_tiles
func.func @planned_small_tiles(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  // CHECK: hlo.constant{{.*}}tensor<2x16x2x64x16xf32>
  // CHECK: kernel.conv({{.*}}#cpu.winograd<tile = 2, columns = 16>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  %0 = kernel.conv(%x, %w) {kernel.plan = {vecs = 1 : i64, winograd = 2 : i64, per_unit = 2 : i64}, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  ^bb0(%acc: tensor<1x56x56x64xf32>):
    kernel.yield %acc : tensor<1x56x56x64xf32>
  }
  return %0 : tensor<1x56x56x64xf32>
}
