// RUN: lathe-opt %s --hlo-split-dilated-conv --hlo-fold-constants --canonicalize --cse | FileCheck %s

// 2x2 filter, stride 2: each phase has one tap, together one convolution of four times the channels.
// CHECK-LABEL: @together
// CHECK: "hlo.convolution"
// CHECK-SAME: (tensor<?x4x4x8xf32{{.*}}>, tensor<1x1x8x64xf32>) -> tensor<?x4x4x64xf32
// CHECK: hlo.transpose {{.*}}, dims = [0, 1, 3, 2, 4, 5]
// CHECK: hlo.reshape {{.*}} -> tensor<?x8x8x16xf32
func.func @together(%x: tensor<?x4x4x8xf32, affine_map<()[s0] -> (s0, 4, 4, 8)>>, %w: tensor<2x2x8x16xf32>) -> tensor<?x8x8x16xf32, affine_map<()[s0] -> (s0, 8, 8, 16)>> {
  %c = "hlo.convolution"(%x, %w) {padding = dense<1> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<?x4x4x8xf32, affine_map<()[s0] -> (s0, 4, 4, 8)>>, tensor<2x2x8x16xf32>) -> tensor<?x8x8x16xf32, affine_map<()[s0] -> (s0, 8, 8, 16)>>
  return %c : tensor<?x8x8x16xf32, affine_map<()[s0] -> (s0, 8, 8, 16)>>
}

// 4x4 with padding 2: the taps of the phases overlap by half, so each has its own convolution.
// CHECK-LABEL: @apart
// CHECK-COUNT-4: "hlo.convolution"({{.*}} (tensor<1x8x8x32xf32>, tensor<2x2x32x32xf32>) -> tensor<1x8x8x32xf32>
// CHECK-NOT: hlo.convolution
// CHECK: hlo.concatenate {{.*}} dim = 4
// CHECK: hlo.concatenate {{.*}} dim = 2
func.func @apart(%x: tensor<1x8x8x32xf32>, %w: tensor<4x4x32x32xf32>) -> tensor<1x16x16x32xf32> {
  %c = "hlo.convolution"(%x, %w) {padding = dense<2> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x32xf32>, tensor<4x4x32x32xf32>) -> tensor<1x16x16x32xf32>
  return %c : tensor<1x16x16x32xf32>
}

// Few output channels: one convolution fills the panel. The last row and column of the phases are cut.
// CHECK-LABEL: @narrow
// CHECK: "hlo.convolution"({{.*}} (tensor<1x4x4x8xf32>, tensor<2x2x8x12xf32>) -> tensor<1x5x5x12xf32>
// CHECK: hlo.slice {{.*}} -> tensor<1x9x9x3xf32>
func.func @narrow(%x: tensor<1x4x4x8xf32>, %w: tensor<3x3x8x3xf32>) -> tensor<1x9x9x3xf32> {
  %c = "hlo.convolution"(%x, %w) {padding = dense<2> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x8xf32>, tensor<3x3x8x3xf32>) -> tensor<1x9x9x3xf32>
  return %c : tensor<1x9x9x3xf32>
}

// One tap and stride 3: two phases of three are zero; the other dimension is not dilated.
// CHECK-LABEL: @gaps
// CHECK: "hlo.convolution"
// CHECK-NOT: lhs_dilation
// CHECK: return
func.func @gaps(%x: tensor<2x4x6x2xf32>, %w: tensor<1x3x1x4xf32>) -> tensor<2x10x4x4xf32> {
  %c = "hlo.convolution"(%x, %w) {lhs_dilation = array<i64: 3, 1>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<2x4x6x2xf32>, tensor<1x3x1x4xf32>) -> tensor<2x10x4x4xf32>
  return %c : tensor<2x10x4x4xf32>
}

// Strides of its own, or taps apart: left alone.
// CHECK-LABEL: @left
// CHECK: lhs_dilation
func.func @left(%x: tensor<1x4x4x8xf32>, %w: tensor<2x2x8x8xf32>) -> tensor<1x5x5x8xf32> {
  %c = "hlo.convolution"(%x, %w) {lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x8xf32>, tensor<2x2x8x8xf32>) -> tensor<1x5x5x8xf32>
  return %c : tensor<1x5x5x8xf32>
}
