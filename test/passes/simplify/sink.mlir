// RUN: lathe-opt %s --hlo-sink-shapes --hlo-simplify-algebra --cse | FileCheck %s

// Bias, activation and residual behind a reshaped product.
// CHECK-LABEL: @dense
// CHECK: %[[D:.*]] = "hlo.dot_general"
// CHECK: hlo.broadcast_in_dim %arg2, dims = [1] : (tensor<16xf32>) -> tensor<6x16xf32>
// CHECK: hlo.add {{.*}} : tensor<6x16xf32>
// CHECK: hlo.tanh {{.*}} : tensor<6x16xf32>
// CHECK: hlo.reshape %arg3 : (tensor<2x3x16xf32>) -> tensor<6x16xf32>
// CHECK: hlo.add {{.*}} : tensor<6x16xf32>
// CHECK: hlo.reshape {{.*}} -> tensor<2x3x16xf32>
// CHECK-NEXT: return
func.func @dense(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>, %r: tensor<2x3x16xf32>) -> tensor<2x3x16xf32> {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %v = hlo.reshape %d : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [2] : (tensor<16xf32>) -> tensor<2x3x16xf32>
  %a = hlo.add %v, %bb : tensor<2x3x16xf32>
  %t = hlo.tanh %a : tensor<2x3x16xf32>
  %s = hlo.add %t, %r : tensor<2x3x16xf32>
  return %s : tensor<2x3x16xf32>
}

// Layer normalisation of a reshaped product stays in one shape, statistics too.
// CHECK-LABEL: @mean
// CHECK: "hlo.reduce"
// CHECK: dimensions = array<i64: 1>
// CHECK: (tensor<6x16xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK: hlo.broadcast_in_dim {{.*}}, dims = [0] : (tensor<6xf32>) -> tensor<6x16xf32>
// CHECK: hlo.subtract {{.*}} : tensor<6x16xf32>
// CHECK: hlo.reshape
func.func @mean(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>) -> tensor<2x3x16xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %v = hlo.reshape %d : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
  %m = "hlo.reduce"(%v, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 2>} : (tensor<2x3x16xf32>, tensor<f32>) -> tensor<2x3xf32>
  %mb = hlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x16xf32>
  %c = hlo.subtract %v, %mb : tensor<2x3x16xf32>
  return %c : tensor<2x3x16xf32>
}

// A broadcast along a part of a merged dimension keeps the reshape where it is.
// CHECK-LABEL: @refused
// CHECK: %[[V:.*]] = hlo.reshape
// CHECK: hlo.add %[[V]]
func.func @refused(%x: tensor<6x8xf32>, %w: tensor<8x16xf32>, %b: tensor<3xf32>) -> tensor<2x3x16xf32> {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %v = hlo.reshape %d : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3x16xf32>
  %a = hlo.add %v, %bb : tensor<2x3x16xf32>
  return %a : tensor<2x3x16xf32>
}

// Transposes meet and cancel.
// CHECK-LABEL: @transposes
// CHECK-NOT: hlo.transpose
// CHECK: return
func.func @transposes(%x: tensor<1x4x4x3xf32>, %b: tensor<3xf32>) -> tensor<1x4x4x3xf32> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %a = hlo.add %t, %bb : tensor<1x3x4x4xf32>
  %h = hlo.tanh %a : tensor<1x3x4x4xf32>
  %u = hlo.transpose %h, dims = [0, 2, 3, 1] : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32>
  return %u : tensor<1x4x4x3xf32>
}

// Zeros before a Fourier transform go before the transpose that lays out its rows.
// CHECK-LABEL: func.func @pad_of_transpose
// CHECK: hlo.pad %arg0
// CHECK-SAME: high = [0, 6, 0]
// CHECK-SAME: -> tensor<2x16x3xf32>
// CHECK: hlo.transpose
// CHECK-SAME: -> tensor<2x3x16xf32>
// CHECK: "hlo.fft"
func.func @pad_of_transpose(%x: tensor<2x10x3xf32>) -> tensor<2x3x9xcomplex<f32>> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %t = "hlo.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x10x3xf32>) -> tensor<2x3x10xf32>
  %p = "hlo.pad"(%t, %zero) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 0, 6>, interior_padding = array<i64: 0, 0, 0>} : (tensor<2x3x10xf32>, tensor<f32>) -> tensor<2x3x16xf32>
  %y = "hlo.fft"(%p) {fft_type = #hlo<fft_type RFFT>, fft_length = array<i64: 16>} : (tensor<2x3x16xf32>) -> tensor<2x3x9xcomplex<f32>>
  return %y : tensor<2x3x9xcomplex<f32>>
}
