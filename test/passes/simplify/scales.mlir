// RUN: lathe-opt %s --hlo-fold-scales --cse | FileCheck %s

// Batch normalisation behind a biased convolution: one convolution and one addition.
// CHECK-LABEL: @batch_norm
// CHECK: %[[W:.*]] = hlo.multiply {{.*}} : tensor<1x1x2x2xf32>
// CHECK: %[[C:.*]] = "hlo.convolution"(%arg0, %[[W]])
// CHECK: hlo.add %[[C]], %{{.*}} : tensor<1x4x4x2xf32>
// CHECK-NEXT: return
func.func @batch_norm(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %w = hlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %b = hlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = hlo.constant dense<[0.5, 3.0]> : tensor<2xf32>
  %t = hlo.constant dense<[7.0, 8.0]> : tensor<2xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [3] : (tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %sb = hlo.broadcast_in_dim %s, dims = [3] : (tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %tb = hlo.broadcast_in_dim %t, dims = [3] : (tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %a = hlo.add %c, %bb : tensor<1x4x4x2xf32>
  %m = hlo.multiply %a, %sb : tensor<1x4x4x2xf32>
  %o = hlo.add %m, %tb : tensor<1x4x4x2xf32>
  return %o : tensor<1x4x4x2xf32>
}

// An input scaled and shifted before a product without padding.
// CHECK-LABEL: @input
// CHECK-NOT: hlo.multiply %arg0
// CHECK: %[[D:.*]] = "hlo.dot_general"(%arg0,
// CHECK: hlo.add %[[D]]
func.func @input(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = hlo.constant dense<0.5> : tensor<4x2xf32>
  %one = hlo.constant dense<1.0> : tensor<4x2xf32>
  %m = hlo.multiply %x, %s : tensor<4x2xf32>
  %a = hlo.subtract %m, %one : tensor<4x2xf32>
  %d = "hlo.dot_general"(%a, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// Weights that are no constants, and a result that someone else reads, stay.
// CHECK-LABEL: @refused
// CHECK: hlo.dot_general
// CHECK: hlo.multiply
// CHECK: hlo.dot_general
// CHECK: hlo.multiply
func.func @refused(%x: tensor<4x2xf32>, %v: tensor<2x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = hlo.constant dense<0.5> : tensor<4x2xf32>
  %d = "hlo.dot_general"(%x, %v) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %m = hlo.multiply %d, %s : tensor<4x2xf32>
  %e = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %n = hlo.multiply %e, %s : tensor<4x2xf32>
  return %m, %e, %n : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}
