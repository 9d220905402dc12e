// RUN: lathe-opt %s --hlo-fold-space-batch --canonicalize --cse | FileCheck %s

// 10x10 pixels, rate 4: padded to 20x20, 25 pixels in each of 16 images, cropped from 12x12.
// CHECK-LABEL: @images
// CHECK: "hlo.convolution"(%arg0, %arg1)
// CHECK-SAME: padding = dense<4>
// CHECK-SAME: rhs_dilation = array<i64: 4, 4>
// CHECK-SAME: -> tensor<2x10x10x8xf32>
// CHECK-NEXT: return
func.func @images(%x: tensor<2x10x10x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<2x10x10x8xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %p = "hlo.pad"(%x, %zero) {edge_padding_low = array<i64: 0, 4, 4, 0>, edge_padding_high = array<i64: 0, 6, 6, 0>, interior_padding = array<i64: 0, 0, 0, 0>} : (tensor<2x10x10x3xf32>, tensor<f32>) -> tensor<2x20x20x3xf32>
  %0 = "hlo.reshape"(%p) : (tensor<2x20x20x3xf32>) -> tensor<2x5x4x5x4x3xf32>
  %1 = "hlo.transpose"(%0) {permutation = array<i64: 2, 4, 0, 1, 3, 5>} : (tensor<2x5x4x5x4x3xf32>) -> tensor<4x4x2x5x5x3xf32>
  %2 = "hlo.reshape"(%1) : (tensor<4x4x2x5x5x3xf32>) -> tensor<32x5x5x3xf32>
  %c = "hlo.convolution"(%2, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<32x5x5x3xf32>, tensor<3x3x3x8xf32>) -> tensor<32x3x3x8xf32>
  %3 = "hlo.reshape"(%c) : (tensor<32x3x3x8xf32>) -> tensor<4x4x2x3x3x8xf32>
  %4 = "hlo.transpose"(%3) {permutation = array<i64: 2, 3, 0, 4, 1, 5>} : (tensor<4x4x2x3x3x8xf32>) -> tensor<2x3x4x3x4x8xf32>
  %5 = "hlo.reshape"(%4) : (tensor<2x3x4x3x4x8xf32>) -> tensor<2x12x12x8xf32>
  %6 = "hlo.slice"(%5) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 2, 10, 10, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x12x12x8xf32>) -> tensor<2x10x10x8xf32>
  return %6 : tensor<2x10x10x8xf32>
}

// One dimension, as an image of one row; nothing is cropped.
// CHECK-LABEL: @row
// CHECK: "hlo.convolution"
// CHECK-SAME: rhs_dilation = array<i64: 1, 2>
// CHECK-SAME: (tensor<1x1x12x3xf32>, tensor<1x3x3x4xf32>) -> tensor<1x1x8x4xf32>
// CHECK: hlo.reshape {{.*}} -> tensor<1x8x4xf32>
// CHECK-NOT: hlo.transpose
func.func @row(%x: tensor<1x12x3xf32>, %w: tensor<1x3x3x4xf32>) -> tensor<1x8x4xf32> {
  %0 = "hlo.reshape"(%x) : (tensor<1x12x3xf32>) -> tensor<1x6x2x3xf32>
  %1 = "hlo.transpose"(%0) {permutation = array<i64: 2, 0, 1, 3>} : (tensor<1x6x2x3xf32>) -> tensor<2x1x6x3xf32>
  %2 = "hlo.reshape"(%1) : (tensor<2x1x6x3xf32>) -> tensor<2x6x3xf32>
  %3 = "hlo.reshape"(%2) : (tensor<2x6x3xf32>) -> tensor<2x1x6x3xf32>
  %c = "hlo.convolution"(%3, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x1x6x3xf32>, tensor<1x3x3x4xf32>) -> tensor<2x1x4x4xf32>
  %4 = "hlo.reshape"(%c) : (tensor<2x1x4x4xf32>) -> tensor<2x4x4xf32>
  %5 = "hlo.reshape"(%4) : (tensor<2x4x4xf32>) -> tensor<2x1x4x4xf32>
  %6 = "hlo.transpose"(%5) {permutation = array<i64: 1, 2, 0, 3>} : (tensor<2x1x4x4xf32>) -> tensor<1x4x2x4xf32>
  %7 = "hlo.reshape"(%6) : (tensor<1x4x2x4xf32>) -> tensor<1x8x4xf32>
  return %7 : tensor<1x8x4xf32>
}

// Blocks of 2 in front, of 3 behind: something else.
// CHECK-LABEL: @other
// CHECK-NOT: rhs_dilation
func.func @other(%x: tensor<3x8x3xf32>, %w: tensor<2x3x3xf32>) -> tensor<2x9x3xf32> {
  %0 = "hlo.reshape"(%x) : (tensor<3x8x3xf32>) -> tensor<3x4x2x3xf32>
  %1 = "hlo.transpose"(%0) {permutation = array<i64: 2, 0, 1, 3>} : (tensor<3x4x2x3xf32>) -> tensor<2x3x4x3xf32>
  %2 = "hlo.reshape"(%1) : (tensor<2x3x4x3xf32>) -> tensor<6x4x3xf32>
  %c = "hlo.convolution"(%2, %w) {dimension_numbers = #hlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<6x4x3xf32>, tensor<2x3x3xf32>) -> tensor<6x3x3xf32>
  %3 = "hlo.reshape"(%c) : (tensor<6x3x3xf32>) -> tensor<3x2x3x3xf32>
  %4 = "hlo.transpose"(%3) {permutation = array<i64: 1, 2, 0, 3>} : (tensor<3x2x3x3xf32>) -> tensor<2x3x3x3xf32>
  %5 = "hlo.reshape"(%4) : (tensor<2x3x3x3xf32>) -> tensor<2x9x3xf32>
  return %5 : tensor<2x9x3xf32>
}
