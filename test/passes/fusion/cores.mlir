// RUN: lathe-opt %s --hlo-fuse | FileCheck %s
// RUN: lathe-opt %s --hlo-fuse=fuse=false | FileCheck %s --check-prefix=ALONE

// Bias and swish join the convolution; so does the residual with its activation.
// CHECK-LABEL: @conv_swish_residual
// CHECK: %[[C:.*]] = kernel.conv(%arg0, %arg1, %arg2)
// CHECK: hlo.broadcast_in_dim
// CHECK: hlo.add
// CHECK: hlo.logistic
// CHECK: hlo.multiply
// CHECK: kernel.yield
// CHECK: kernel.conv(%[[C]], %arg1, %arg0)
// CHECK: hlo.add
// CHECK: hlo.maximum
// CHECK: kernel.yield
// CHECK-NOT: kernel.
// ALONE-LABEL: @conv_swish_residual
// ALONE: kernel.loop
// ALONE: kernel.conv(%arg0, %arg1)
// ALONE: kernel.loop
// ALONE: kernel.loop
// ALONE: kernel.loop
// ALONE: kernel.conv
// ALONE: kernel.loop
// ALONE: kernel.loop
// ALONE: return
func.func @conv_swish_residual(%x: tensor<1x8x8x16xf32>, %w: tensor<1x1x16x16xf32>, %b: tensor<16xf32>) -> tensor<1x8x8x16xf32> {
  %zero = hlo.constant dense<0.0> : tensor<1x8x8x16xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [3] : (tensor<16xf32>) -> tensor<1x8x8x16xf32>
  %c1 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x8x8x16xf32>
  %a1 = hlo.add %c1, %bb : tensor<1x8x8x16xf32>
  %s1 = hlo.logistic %a1 : tensor<1x8x8x16xf32>
  %r1 = hlo.multiply %a1, %s1 : tensor<1x8x8x16xf32>
  %c2 = "hlo.convolution"(%r1, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x8x8x16xf32>
  %a2 = hlo.add %c2, %x : tensor<1x8x8x16xf32>
  %r2 = hlo.maximum %a2, %zero : tensor<1x8x8x16xf32>
  return %r2 : tensor<1x8x8x16xf32>
}

// An activation whose input is stored anyway stays apart: the product yields one value.
// CHECK-LABEL: @dot_two_uses
// CHECK: %[[D:.*]] = kernel.dot(%arg0, %arg1)
// CHECK-NOT: hlo.tanh
// CHECK: kernel.yield
// CHECK: %[[L:.*]] = kernel.loop(%[[D]])
// CHECK: hlo.tanh
// CHECK: return %[[D]], %[[L]]
func.func @dot_two_uses(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %t = hlo.tanh %d : tensor<4x16xf32>
  return %d, %t : tensor<4x16xf32>, tensor<4x16xf32>
}

// Transposes around a product are read and written in place.
// CHECK-LABEL: @attention_scores
// CHECK: kernel.dot(%arg0, %arg1) {lhs_dims = array<i64: 0, 2, 1, 3>, result_dims = array<i64: 0, 2, 1, 3>, rhs_dims = array<i64: 0, 2, 3, 1>}
// CHECK-NOT: hlo.transpose
// CHECK: return
func.func @attention_scores(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>) -> tensor<2x8x4x8xf32> {
  %qt = hlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = hlo.transpose %k, dims = [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %d = "hlo.dot_general"(%qt, %kt) {dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %t = hlo.transpose %d, dims = [0, 2, 1, 3] : (tensor<2x4x8x8xf32>) -> tensor<2x8x4x8xf32>
  return %t : tensor<2x8x4x8xf32>
}

// Max pooling with the neutral start value; another start value is no pool.
// CHECK-LABEL: @pools
// CHECK: kernel.pool(%arg0) {kind = "max", padding = array<i64: 0, 1, 0, 1>, strides = array<i64: 2, 2>, window = array<i64: 2, 2>
// CHECK: hlo.reduce_window
func.func @pools(%x: tensor<1x7x7x8xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) {
  %low = hlo.constant dense<0xFF800000> : tensor<f32>
  %one = hlo.constant dense<1.0> : tensor<f32>
  %p = "hlo.reduce_window"(%x, %low) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = hlo.maximum %a, %b : tensor<f32>
    hlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>} : (tensor<1x7x7x8xf32>, tensor<f32>) -> tensor<1x4x4x8xf32>
  %q = "hlo.reduce_window"(%x, %one) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = hlo.maximum %a, %b : tensor<f32>
    hlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>} : (tensor<1x7x7x8xf32>, tensor<f32>) -> tensor<1x4x4x8xf32>
  return %p, %q : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>
}

// Max pooling that never takes a NaN, as TensorFlow's starts at the lowest finite number.
// CHECK-LABEL: @max_number
// CHECK: kernel.pool(%arg0) {kind = "max_number"
func.func @max_number(%x: tensor<1x6x6x8xf32>) -> tensor<1x3x3x8xf32> {
  %low = hlo.constant dense<-3.40282347E+38> : tensor<f32>
  %p = "hlo.reduce_window"(%x, %low) ({
  ^bb0(%best: tensor<f32>, %next: tensor<f32>):
    %more = hlo.compare GT, %next, %best : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = hlo.select %more, %next, %best : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    hlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<1x6x6x8xf32>, tensor<f32>) -> tensor<1x3x3x8xf32>
  return %p : tensor<1x3x3x8xf32>
}

// Sums of windows read narrow integers as they are; where something else reads the wide ones, a loop makes them.
// CHECK-LABEL: @byte_sums
// CHECK-NOT: kernel.loop
// CHECK: kernel.pool(%arg0) {kind = "sum"
// CHECK-SAME: (tensor<1x7x7x8xui8>) -> tensor<1x3x3x8xi32>
// CHECK: kernel.loop(%arg1)
// CHECK: kernel.pool
// CHECK-SAME: (tensor<1x7x7x8xi32>) -> tensor<1x3x3x8xi32>
func.func @byte_sums(%x: tensor<1x7x7x8xui8>, %y: tensor<1x7x7x8xi8>) -> (tensor<1x3x3x8xi32>, tensor<1x3x3x8xi32>, tensor<1x7x7x8xi32>) {
  %zero = hlo.constant dense<0> : tensor<i32>
  %xw = hlo.convert %x : (tensor<1x7x7x8xui8>) -> tensor<1x7x7x8xi32>
  %p = "hlo.reduce_window"(%xw, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %m = hlo.add %a, %b : tensor<i32>
    hlo.return %m : tensor<i32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<1x7x7x8xi32>, tensor<i32>) -> tensor<1x3x3x8xi32>
  %yw = hlo.convert %y : (tensor<1x7x7x8xi8>) -> tensor<1x7x7x8xi32>
  %q = "hlo.reduce_window"(%yw, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %m = hlo.add %a, %b : tensor<i32>
    hlo.return %m : tensor<i32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<1x7x7x8xi32>, tensor<i32>) -> tensor<1x3x3x8xi32>
  return %p, %q, %yw : tensor<1x3x3x8xi32>, tensor<1x3x3x8xi32>, tensor<1x7x7x8xi32>
}
