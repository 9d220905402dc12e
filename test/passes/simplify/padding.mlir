// RUN: lathe-opt %s --hlo-fold-padding | FileCheck %s

// CHECK-LABEL: @conv
// CHECK-NOT: hlo.pad
// CHECK: "hlo.convolution"(%arg0, %arg1)
// CHECK-SAME: padding = dense<{{\[\[}}1, 2], [1, 2]]>
func.func @conv(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x4x4xf32>) -> tensor<1x6x6x4xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %p = hlo.pad %x, %zero, low = [0, 1, 1, 0], high = [0, 2, 2, 0], interior = [0, 0, 0, 0] : (tensor<1x5x5x4xf32>, tensor<f32>) -> tensor<1x8x8x4xf32>
  %c = "hlo.convolution"(%p, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x6x6x4xf32>
  return %c : tensor<1x6x6x4xf32>
}

// Padding by ones is not a convolution's padding.
// CHECK-LABEL: @conv_ones
// CHECK: hlo.pad
func.func @conv_ones(%x: tensor<1x5x5x4xf32>, %w: tensor<3x3x4x4xf32>) -> tensor<1x6x6x4xf32> {
  %one = hlo.constant dense<1.0> : tensor<f32>
  %p = hlo.pad %x, %one, low = [0, 1, 1, 0], high = [0, 2, 2, 0], interior = [0, 0, 0, 0] : (tensor<1x5x5x4xf32>, tensor<f32>) -> tensor<1x8x8x4xf32>
  %c = "hlo.convolution"(%p, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x6x6x4xf32>
  return %c : tensor<1x6x6x4xf32>
}

// Zeros around a relu never win the maximum; around anything else they may.
// CHECK-LABEL: @max_pool
// CHECK: %[[R:.*]] = hlo.maximum
// CHECK: "hlo.reduce_window"(%[[R]]
// CHECK: %[[P:.*]] = hlo.pad %arg0
// CHECK: "hlo.reduce_window"(%[[P]]
func.func @max_pool(%x: tensor<1x8x8x4xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %zeros = hlo.constant dense<0.0> : tensor<1x8x8x4xf32>
  %low = hlo.constant dense<0xFF800000> : tensor<f32>
  %r = hlo.maximum %x, %zeros : tensor<1x8x8x4xf32>
  %p = hlo.pad %r, %zero, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x10x10x4xf32>
  %m = "hlo.reduce_window"(%p, %low) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = hlo.maximum %a, %b : tensor<f32>
    hlo.return %t : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<1x10x10x4xf32>, tensor<f32>) -> tensor<1x4x4x4xf32>
  %q = hlo.pad %x, %zero, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x10x10x4xf32>
  %n = "hlo.reduce_window"(%q, %low) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = hlo.maximum %a, %b : tensor<f32>
    hlo.return %t : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<1x10x10x4xf32>, tensor<f32>) -> tensor<1x4x4x4xf32>
  return %m, %n : tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>
}
