// RUN: lathe-opt %s --hlo-canonicalize-products --hlo-simplify-algebra --cse | FileCheck %s

// Two free dimensions become one; the operand is only looked at differently.
// CHECK-LABEL: @two_free
// CHECK: %[[X:.*]] = hlo.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
// CHECK: %[[D:.*]] = "hlo.dot_general"(%[[X]], %arg1)
// CHECK-SAME: -> tensor<6x16xf32>
// CHECK: hlo.reshape %[[D]] : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
func.func @two_free(%x: tensor<2x3x8xf32>, %w: tensor<8x16xf32>) -> tensor<2x3x16xf32> {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<2x3x8xf32>, tensor<8x16xf32>) -> tensor<2x3x16xf32>
  return %d : tensor<2x3x16xf32>
}

// Matrix times vector: a product with one column.
// CHECK-LABEL: @vector
// CHECK: hlo.reshape %arg1 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK: -> tensor<4x1xf32>
// CHECK: hlo.reshape {{.*}} -> tensor<4xf32>
func.func @vector(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4xf32> {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  return %d : tensor<4xf32>
}

// Two contracted dimensions in crossed order: the right side has to be transposed.
// CHECK-LABEL: @crossed
// CHECK-DAG: hlo.reshape %arg0 : (tensor<4x2x3xf32>) -> tensor<4x6xf32>
// CHECK-DAG: hlo.transpose %arg1, dims = [1, 0, 2]
// CHECK: -> tensor<4x5xf32>
func.func @crossed(%x: tensor<4x2x3xf32>, %w: tensor<3x2x5xf32>) -> tensor<4x5xf32> {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [1, 0]>} : (tensor<4x2x3xf32>, tensor<3x2x5xf32>) -> tensor<4x5xf32>
  return %d : tensor<4x5xf32>
}

// A 1x1 convolution is a product over pixels; with a stride it is none.
// CHECK-LABEL: @pointwise
// CHECK: "hlo.dot_general"
// CHECK-SAME: (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
// CHECK: hlo.convolution
func.func @pointwise(%x: tensor<1x8x8x16xf32>, %w: tensor<1x1x16x32xf32>) -> (tensor<1x8x8x32xf32>, tensor<1x4x4x32xf32>) {
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x32xf32>) -> tensor<1x8x8x32xf32>
  %s = "hlo.convolution"(%x, %w) {window_strides = array<i64: 2, 2>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x32xf32>) -> tensor<1x4x4x32xf32>
  return %c, %s : tensor<1x8x8x32xf32>, tensor<1x4x4x32xf32>
}

// NCHW x OIHW.
// CHECK-LABEL: @layout
// CHECK-DAG: %[[X:.*]] = hlo.transpose %arg0, dims = [0, 2, 3, 1]
// CHECK-DAG: %[[W:.*]] = hlo.transpose %arg1, dims = [2, 3, 1, 0]
// CHECK: %[[C:.*]] = "hlo.convolution"(%[[X]], %[[W]])
// CHECK-SAME: [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
// CHECK: hlo.transpose %[[C]], dims = [0, 3, 1, 2]
func.func @layout(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %c : tensor<1x4x6x6xf32>
}
