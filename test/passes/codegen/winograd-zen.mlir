// Zen 4 and its successors read weights fast enough for the larger filters of smaller images; winograd.mlir has others.
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma,+sse4a" --kernel-pack-weights="explain" --split-input-file | FileCheck %s --enable-var-scope

// CHECK-LABEL: @small_image
func.func @small_image(%x: tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32> {
  // CHECK: kernel.conv({{.*}}#cpu.winograd<tile = 4, columns = {{[0-9]+}}>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x256x256xf32>} : () -> tensor<3x3x256x256xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x14x14x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32> {
  ^bb0(%acc: tensor<1x14x14x256xf32>):
    kernel.yield %acc : tensor<1x14x14x256xf32>
  }
  return %0 : tensor<1x14x14x256xf32>
}

// -----

// CHECK-LABEL: @one_tiny_image
func.func @one_tiny_image(%x: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> {
  // CHECK: kernel.conv({{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x512x512xf32>} : () -> tensor<3x3x512x512xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x7x7x512xf32>, tensor<3x3x512x512xf32>) -> tensor<1x7x7x512xf32> {
  ^bb0(%acc: tensor<1x7x7x512xf32>):
    kernel.yield %acc : tensor<1x7x7x512xf32>
  }
  return %0 : tensor<1x7x7x512xf32>
}
