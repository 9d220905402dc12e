// RUN: lathe-opt %s | lathe-opt | FileCheck %s

// CHECK-LABEL: @loop
func.func @loop(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: kernel.loop(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = kernel.loop(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %t = "hlo.tanh"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    kernel.yield %t : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: @dot_bias
func.func @dot_bias(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {
  // CHECK: kernel.dot(%{{.*}}, %{{.*}}, %{{.*}}) {lhs_dims = array<i64: 0, 1>
  %r = kernel.dot(%x, %w, %bias) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
      : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32> {
  ^bb0(%acc: tensor<4x16xf32>, %b: tensor<16xf32>):
    %0 = "hlo.broadcast_in_dim"(%b) {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<4x16xf32>
    %1 = "hlo.add"(%acc, %0) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %1 : tensor<4x16xf32>
  }
  return %r : tensor<4x16xf32>
}

// CHECK-LABEL: @pool
func.func @pool(%x: tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  // CHECK: kernel.pool(%{{.*}}) {kind = "max"
  %r = kernel.pool(%x) {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, window_dilation = array<i64: 1, 1>}
      : (tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: tensor<1x4x4x4xf32>):
    kernel.yield %acc : tensor<1x4x4x4xf32>
  }
  return %r : tensor<1x4x4x4xf32>
}
