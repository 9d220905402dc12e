// RUN: lathe-opt %s --hlo-split-batch=cache=8192 --split-input-file | FileCheck %s

// Images one at a time as far as tensors are large; the product, whose weights are, takes the whole batch. What is the
// same for each image is made for one of them.
// CHECK-LABEL: @images
// CHECK-SAME: (%[[X:.*]]: tensor<16x16x16x8xf32>
// CHECK: %[[LOOP:.*]]:2 = "hlo.while"
// CHECK: hlo.compare LT
// CHECK: %[[IMAGE:.*]] = "hlo.dynamic_slice"(%[[X]], {{.*}} -> tensor<1x16x16x8xf32>
// CHECK: "hlo.convolution"(%[[IMAGE]], {{.*}} -> tensor<1x16x16x8xf32>
// CHECK: hlo.broadcast_in_dim {{.*}} (tensor<8xf32>) -> tensor<1x16x16x8xf32>
// CHECK: hlo.constant dense<2.000000e+00> : tensor<1x16x16x8xf32>
// CHECK: "hlo.reduce_window"{{.*}}
// CHECK: hlo.slice {{.*}} -> tensor<1x4x8x8xf32>
// CHECK: hlo.reshape {{.*}} -> tensor<32x8xf32>
// CHECK: hlo.dynamic_update_slice {{.*}} (tensor<16x256xf32>, tensor<1x256xf32>, tensor<i64>, tensor<i64>) -> tensor<16x256xf32>
// CHECK: "hlo.dot_general"(%[[LOOP]]#1, {{.*}} (tensor<16x256xf32>, tensor<256x64xf32>) -> tensor<16x64xf32>
func.func @images(%x: tensor<16x16x16x8xf32>, %w: tensor<3x3x8x8xf32>, %bias: tensor<8xf32>, %m: tensor<256x64xf32>) -> tensor<16x64xf32> {
  %zero = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %two = "hlo.constant"() {value = dense<2.0> : tensor<16x16x16x8xf32>} : () -> tensor<16x16x16x8xf32>
  %c = "hlo.convolution"(%x, %w) {padding = dense<1> : tensor<2x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x16x8xf32>, tensor<3x3x8x8xf32>) -> tensor<16x16x16x8xf32>
  %b = hlo.broadcast_in_dim %bias, dims = [3] : (tensor<8xf32>) -> tensor<16x16x16x8xf32>
  %s = hlo.add %c, %b : tensor<16x16x16x8xf32>
  %t = hlo.multiply %s, %two : tensor<16x16x16x8xf32>
  %p = "hlo.reduce_window"(%t, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.add %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<16x16x16x8xf32>, tensor<f32>) -> tensor<16x8x8x8xf32>
  %half = "hlo.slice"(%p) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 16, 4, 8, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<16x8x8x8xf32>) -> tensor<16x4x8x8xf32>
  %rows = hlo.reshape %half : (tensor<16x4x8x8xf32>) -> tensor<512x8xf32>
  %flat = hlo.reshape %rows : (tensor<512x8xf32>) -> tensor<16x256xf32>
  %y = "hlo.dot_general"(%flat, %m) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<16x256xf32>, tensor<256x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// -----

// A sum over images: everything before it is split, it is not, and its result is no image.
// CHECK-LABEL: @across
// CHECK: "hlo.while"
// CHECK: %[[ROW:.*]] = hlo.multiply %{{.*}} : tensor<i64>
// CHECK: hlo.dynamic_update_slice %{{.*}}, %{{.*}}, %[[ROW]], {{.*}} (tensor<2048x8xf32>, tensor<256x8xf32>, {{.*}} -> tensor<2048x8xf32>
// CHECK: hlo.return
// CHECK: "hlo.reduce"
// CHECK-SAME: dimensions = array<i64: 0>
// CHECK-NOT: hlo.while
func.func @across(%x: tensor<8x16x16x8xf32>, %w: tensor<1x1x8x16xf32>, %v: tensor<1x1x16x8xf32>) -> tensor<8xf32> {
  %zero = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<8x16x16x8xf32>, tensor<1x1x8x16xf32>) -> tensor<8x16x16x16xf32>
  %d = "hlo.convolution"(%c, %v) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<8x16x16x16xf32>, tensor<1x1x16x8xf32>) -> tensor<8x16x16x8xf32>
  %rows = hlo.reshape %d : (tensor<8x16x16x8xf32>) -> tensor<2048x8xf32>
  %y = "hlo.reduce"(%rows, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.add %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<2048x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Weights that outweigh the images, a batch that fits as it is, and images in another order: no loop.
// CHECK-LABEL: @heavy
// CHECK-NOT: hlo.while
// CHECK-LABEL: @small
// CHECK-NOT: hlo.while
// CHECK-LABEL: @order
// CHECK-NOT: hlo.while
func.func @heavy(%x: tensor<4x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<4x4096xf32> {
  %y = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x4096xf32>, tensor<4096x4096xf32>) -> tensor<4x4096xf32>
  return %y : tensor<4x4096xf32>
}
func.func @small(%x: tensor<4x8x8x2xf32>, %w: tensor<1x1x2x2xf32>) -> tensor<4x8x8x2xf32> {
  %y = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<4x8x8x2xf32>, tensor<1x1x2x2xf32>) -> tensor<4x8x8x2xf32>
  return %y : tensor<4x8x8x2xf32>
}
func.func @order(%x: tensor<16x16x16x8xf32>, %w: tensor<1x1x8x8xf32>) -> tensor<16x16x16x8xf32> {
  %r = hlo.reverse %x, dims = [0] : (tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xf32>
  %y = "hlo.convolution"(%r, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x16x8xf32>, tensor<1x1x8x8xf32>) -> tensor<16x16x16x8xf32>
  return %y : tensor<16x16x16x8xf32>
}
