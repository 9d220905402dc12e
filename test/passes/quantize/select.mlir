// RUN: lathe-opt %s --hlo-quantize-select | FileCheck %s
// RUN: lathe-opt %s --hlo-quantize-select=bits=16 | FileCheck %s --check-prefix=WIDE

// A product takes its bias and clamp in; the mark is on what it all ends in. A pool and a reshape behind it follow.
// CHECK-LABEL: @product
// CHECK: "hlo.convolution"
// CHECK-NOT: hlo.quantize
// CHECK: hlo.minimum {{.*}} {hlo.quantize = "convolution"}
// CHECK: "hlo.reduce_window"
// CHECK: hlo.quantize = "max_pool"
// CHECK: hlo.reshape {{.*}} {hlo.quantize = "move"}
func.func @product(%x: tensor<1x4x4x2xf32>) -> tensor<1x8xf32> {
  %w = hlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %b = hlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %zero = hlo.constant dense<0.0> : tensor<1x4x4x2xf32>
  %six = hlo.constant dense<6.0> : tensor<1x4x4x2xf32>
  %lowest = hlo.constant dense<-3.40282347E+38> : tensor<f32>
  %bb = hlo.broadcast_in_dim %b, dims = [3] : (tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %c = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %a = hlo.add %c, %bb : tensor<1x4x4x2xf32>
  %r = hlo.maximum %a, %zero : tensor<1x4x4x2xf32>
  %s = hlo.minimum %r, %six : tensor<1x4x4x2xf32>
  %p = "hlo.reduce_window"(%s, %lowest) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
    %m = hlo.maximum %u, %v : tensor<f32>
    hlo.return %m : tensor<f32>
  }) : (tensor<1x4x4x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
  %o = hlo.reshape %p : (tensor<1x2x2x2xf32>) -> tensor<1x8xf32>
  return %o : tensor<1x8xf32>
}

// A function of one value is a table, whatever it is made of: x * logistic(x) here. What else reads x sees x. A table
// of 16-bit numbers would be too long.
// CHECK-LABEL: @table
// CHECK: hlo.dot_general
// CHECK-SAME: hlo.quantize = "dot"
// CHECK: hlo.logistic
// CHECK-NOT: hlo.quantize
// CHECK: hlo.multiply {{.*}} {hlo.quantize = "table"}
// WIDE-LABEL: @table
// WIDE-NOT: "table"
// WIDE: return
func.func @table(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %l = hlo.logistic %d : tensor<4x2xf32>
  %m = hlo.multiply %d, %l : tensor<4x2xf32>
  return %m : tensor<4x2xf32>
}

// A sum with something that no product reads stays float, and so does what depends on it.
// CHECK-LABEL: @float_input
// CHECK: "hlo.dot_general"
// CHECK-SAME: hlo.quantize = "dot"
// CHECK-NOT: hlo.quantize
// CHECK: return
func.func @float_input(%x: tensor<4x2xf32>, %mask: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %s = hlo.add %d, %mask : tensor<4x2xf32>
  %t = hlo.tanh %s : tensor<4x2xf32>
  return %t : tensor<4x2xf32>
}

// What is to be kept float is not chosen, and takes what follows with it.
// CHECK-LABEL: @kept
// CHECK-NOT: hlo.quantize
// CHECK: return
func.func @kept(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.keep_float} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %t = hlo.tanh %d : tensor<4x2xf32>
  return %t : tensor<4x2xf32>
}
