// RUN: lathe-opt %s --hlo-hoist-loop-invariants --hlo-simplify-algebra --cse | FileCheck %s

// The input product of a recurrent layer: one product of all steps before the loop.
// CHECK-LABEL: @rnn
// CHECK: %[[P:.*]] = "hlo.dot_general"(%{{.*}}, %arg1)
// CHECK-SAME: (tensor<10x3xf32>, tensor<3x4xf32>) -> tensor<10x4xf32>
// CHECK: %[[S:.*]] = hlo.reshape %[[P]] : (tensor<10x4xf32>) -> tensor<5x2x4xf32>
// CHECK: hlo.while
// CHECK: "hlo.dynamic_slice"(%[[S]]
// CHECK: "hlo.dot_general"(%{{.*}}, %arg2)
// CHECK-NOT: hlo.dot_general
// CHECK: return
func.func @rnn(%x: tensor<5x2x3xf32>, %w: tensor<3x4xf32>, %u: tensor<4x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %n = hlo.constant dense<5> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<2x4xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<2x4xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    %row = "hlo.dynamic_slice"(%x, %i, %zero, %zero) {slice_sizes = array<i64: 1, 2, 3>} : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
    %xt = hlo.reshape %row : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
    %a = "hlo.dot_general"(%xt, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %b = "hlo.dot_general"(%s, %u) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %c = hlo.add %a, %b : tensor<2x4xf32>
    %t = hlo.tanh %c : tensor<2x4xf32>
    hlo.return %j, %t : tensor<i32>, tensor<2x4xf32>
  }) : (tensor<i32>, tensor<2x4xf32>) -> (tensor<i32>, tensor<2x4xf32>)
  return %r#1 : tensor<2x4xf32>
}

// [x_t, h] x W is split so that the part with x_t can leave.
// CHECK-LABEL: @concatenated
// CHECK: (tensor<10x3xf32>, tensor<3x4xf32>) -> tensor<10x4xf32>
// CHECK: hlo.while
// CHECK-NOT: hlo.concatenate
// CHECK: (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
func.func @concatenated(%x: tensor<5x2x3xf32>, %w: tensor<7x4xf32>, %h: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %n = hlo.constant dense<5> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<2x4xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<2x4xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    %row = "hlo.dynamic_slice"(%x, %i, %zero, %zero) {slice_sizes = array<i64: 1, 2, 3>} : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
    %xt = hlo.reshape %row : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
    %xh = "hlo.concatenate"(%xt, %s) {dimension = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
    %a = "hlo.dot_general"(%xh, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x7xf32>, tensor<7x4xf32>) -> tensor<2x4xf32>
    %t = hlo.tanh %a : tensor<2x4xf32>
    hlo.return %j, %t : tensor<i32>, tensor<2x4xf32>
  }) : (tensor<i32>, tensor<2x4xf32>) -> (tensor<i32>, tensor<2x4xf32>)
  return %r#1 : tensor<2x4xf32>
}
