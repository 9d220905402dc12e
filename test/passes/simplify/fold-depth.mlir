// RUN: lathe-opt %s --hlo-fold-depth --split-input-file | FileCheck %s

// Three slices become the channels of one image; the batch may be unknown.
// CHECK-LABEL: @volumes
// CHECK-SAME: (%[[X:.*]]: tensor<?x6x10x8x16xf32
// CHECK: %[[PAD:.*]] = hlo.pad %[[X]], {{.*}}low = [0, 1, 0, 0, 0], high = [0, 2, 0, 0, 0]
// CHECK-COUNT-3: hlo.slice %[[PAD]] {{.*}} -> tensor<?x7x10x8x16xf32
// CHECK: %[[JOINED:.*]] = hlo.concatenate {{.*}} dim = 4 : {{.*}} -> tensor<?x7x10x8x48xf32
// CHECK: hlo.reshape %[[JOINED]] {{.*}} -> tensor<?x10x8x48xf32
// CHECK: hlo.transpose {{.*}} dims = [1, 2, 0, 3, 4]
// CHECK: "hlo.convolution"
// CHECK-SAME: padding = dense<{{\[\[}}1, 1], [0, 2]]>
// CHECK-SAME: tensor<3x3x48x24xf32>) -> tensor<?x10x8x24xf32
// CHECK: hlo.reshape {{.*}} -> tensor<?x7x10x8x24xf32
func.func @volumes(%x: tensor<?x6x10x8x16xf32, affine_map<()[s0] -> (s0, 6, 10, 8, 16)>>, %w: tensor<3x3x3x16x24xf32>) -> tensor<?x7x10x8x24xf32, affine_map<()[s0] -> (s0, 7, 10, 8, 24)>> {
  %c = "hlo.convolution"(%x, %w) {padding = dense<[[1, 2], [1, 1], [0, 2]]> : tensor<3x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<?x6x10x8x16xf32, affine_map<()[s0] -> (s0, 6, 10, 8, 16)>>, tensor<3x3x3x16x24xf32>) -> tensor<?x7x10x8x24xf32, affine_map<()[s0] -> (s0, 7, 10, 8, 24)>>
  return %c : tensor<?x7x10x8x24xf32, affine_map<()[s0] -> (s0, 7, 10, 8, 24)>>
}

// -----

// Strides, few channels and other taps stay.
// CHECK-LABEL: @strided
// CHECK-NOT: hlo.concatenate
// CHECK-LABEL: @few
// CHECK-NOT: hlo.concatenate
// CHECK-LABEL: @five
// CHECK-NOT: hlo.concatenate
func.func @strided(%x: tensor<1x6x16x16x16xf32>, %w: tensor<3x3x3x16x16xf32>) -> tensor<1x2x7x7x16xf32> {
  %c = "hlo.convolution"(%x, %w) {window_strides = array<i64: 2, 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x6x16x16x16xf32>, tensor<3x3x3x16x16xf32>) -> tensor<1x2x7x7x16xf32>
  return %c : tensor<1x2x7x7x16xf32>
}
func.func @few(%x: tensor<1x6x16x16x3xf32>, %w: tensor<3x3x3x3x16xf32>) -> tensor<1x4x14x14x16xf32> {
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x6x16x16x3xf32>, tensor<3x3x3x3x16xf32>) -> tensor<1x4x14x14x16xf32>
  return %c : tensor<1x4x14x14x16xf32>
}
func.func @five(%x: tensor<1x6x16x16x16xf32>, %w: tensor<3x5x5x16x16xf32>) -> tensor<1x4x12x12x16xf32> {
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x6x16x16x16xf32>, tensor<3x5x5x16x16xf32>) -> tensor<1x4x12x12x16xf32>
  return %c : tensor<1x4x12x12x16xf32>
}
