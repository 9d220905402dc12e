// RUN: lathe-opt %s --hlo-simplify-algebra --cse | FileCheck %s
// RUN: lathe-opt %s --hlo-simplify-algebra=exact=true | FileCheck %s --check-prefix=EXACT

// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = hlo.constant dense<0.0> : tensor<4xf32>
  %one = hlo.constant dense<1.0> : tensor<4xf32>
  %a = hlo.add %zero, %x : tensor<4xf32>
  %b = hlo.multiply %a, %one : tensor<4xf32>
  %c = hlo.subtract %b, %zero : tensor<4xf32>
  %d = hlo.divide %c, %one : tensor<4xf32>
  %e = hlo.negate %d : tensor<4xf32>
  %f = hlo.negate %e : tensor<4xf32>
  return %f : tensor<4xf32>
}

// Division by eight is exact as a product, by ten it is not.
// CHECK-LABEL: @reciprocal
// CHECK: hlo.multiply
// CHECK: hlo.divide
func.func @reciprocal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %eight = hlo.constant dense<8.0> : tensor<4xf32>
  %ten = hlo.constant dense<10.0> : tensor<4xf32>
  %a = hlo.divide %x, %eight : tensor<4xf32>
  %b = hlo.divide %x, %ten : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @powers
// CHECK-NOT: hlo.power
// EXACT-LABEL: @powers
// EXACT: hlo.multiply
// EXACT: hlo.power
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = hlo.constant dense<2.0> : tensor<4xf32>
  %half = hlo.constant dense<-0.5> : tensor<4xf32>
  %a = hlo.power %x, %two : tensor<4xf32>
  %b = hlo.power %x, %half : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Widening before narrowing says nothing; narrowing first does.
// CHECK-LABEL: @converts
// CHECK: %[[N:.*]] = hlo.convert %arg0 : (tensor<4xi64>) -> tensor<4xi32>
// CHECK: %[[M:.*]] = hlo.convert %[[N]] : (tensor<4xi32>) -> tensor<4xi64>
// CHECK: return %arg1, %[[M]]
func.func @converts(%x: tensor<4xi64>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi64>) {
  %a = hlo.convert %y : (tensor<4xi32>) -> tensor<4xi64>
  %b = hlo.convert %a : (tensor<4xi64>) -> tensor<4xi32>
  %c = hlo.convert %x : (tensor<4xi64>) -> tensor<4xi32>
  %d = hlo.convert %c : (tensor<4xi32>) -> tensor<4xi64>
  return %b, %d : tensor<4xi32>, tensor<4xi64>
}

// Keep-dims: reduce, reshape, broadcast is reduce, broadcast.
// CHECK-LABEL: @keep_dims
// CHECK: %[[R:.*]] = "hlo.reduce"(%arg0
// CHECK: %[[B:.*]] = hlo.broadcast_in_dim %[[R]], dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
// CHECK: return %[[B]]
func.func @keep_dims(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %r = "hlo.reduce"(%x, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %k = hlo.reshape %r : (tensor<4xf32>) -> tensor<4x1xf32>
  %b = hlo.broadcast_in_dim %k, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// Work on the small operands of equal broadcasts.
// CHECK-LABEL: @above_broadcast
// CHECK: %[[A:.*]] = hlo.add %arg0, %arg1 : tensor<8xf32>
// CHECK: hlo.broadcast_in_dim %[[A]], dims = [1]
func.func @above_broadcast(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %a = hlo.broadcast_in_dim %x, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %b = hlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %c = hlo.add %a, %b : tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// A slice of a concatenation, of a slice; neighbours joined again.
// CHECK-LABEL: @slices
// CHECK: %[[S:.*]] = hlo.slice %arg1
// CHECK-SAME: start_indices = array<i64: 1>
// CHECK: return %[[S]], %arg0
func.func @slices(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %c = "hlo.concatenate"(%x, %y) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %s = "hlo.slice"(%c) {start_indices = array<i64: 4>, limit_indices = array<i64: 8>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %t = "hlo.slice"(%s) {start_indices = array<i64: 1>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %a = "hlo.slice"(%x) {start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = "hlo.slice"(%x) {start_indices = array<i64: 2>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %j = "hlo.concatenate"(%a, %b) {dimension = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %t, %j : tensor<2xf32>, tensor<4xf32>
}

// Ones that move are a reshape.
// CHECK-LABEL: @transpose_of_ones
// CHECK: hlo.reshape %arg0 : (tensor<1x4x1x8xf32>) -> tensor<4x8x1x1xf32>
func.func @transpose_of_ones(%x: tensor<1x4x1x8xf32>) -> tensor<4x8x1x1xf32> {
  %t = hlo.transpose %x, dims = [1, 3, 0, 2] : (tensor<1x4x1x8xf32>) -> tensor<4x8x1x1xf32>
  return %t : tensor<4x8x1x1xf32>
}

// Run-time sizes: a splat stays a broadcast number, and nothing loops.
// CHECK-LABEL: @symbolic
// CHECK: hlo.broadcast_in_dim
func.func @symbolic(%x: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %z = hlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  %r = hlo.maximum %x, %z : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  return %r : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
}

// Nothing of a slice of a slice, past the end of the strided inner one: some empty slice inside the operand.
// CHECK-LABEL: @empty_slice_of_slice
// CHECK-NOT: error
// CHECK: return {{.*}} : tensor<4x0xf64>
func.func @empty_slice_of_slice(%x: tensor<4x2xf64>) -> tensor<4x0xf64> {
  %a = hlo.slice %x {limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 3>} : (tensor<4x2xf64>) -> tensor<4x1xf64>
  %b = hlo.slice %a {limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 3>} : (tensor<4x1xf64>) -> tensor<4x0xf64>
  return %b : tensor<4x0xf64>
}

// A broadcast that undoes the transpose of its operand; one that does not leaves it.
// CHECK-LABEL: @broadcast_of_transpose
// CHECK: %[[T:.*]] = hlo.transpose %arg0, dims = [0, 2, 1]
// CHECK: hlo.broadcast_in_dim %arg0, dims = [0, 1, 2] : (tensor<2x5x6xf32>) -> tensor<2x5x6x4xf32>
// CHECK: hlo.broadcast_in_dim %[[T]], dims = [0, 1, 2] : (tensor<2x6x5xf32>) -> tensor<2x6x5x4xf32>
func.func @broadcast_of_transpose(%x: tensor<2x5x6xf32>) -> (tensor<2x5x6x4xf32>, tensor<2x6x5x4xf32>) {
  %t = hlo.transpose %x, dims = [0, 2, 1] : (tensor<2x5x6xf32>) -> tensor<2x6x5xf32>
  %a = hlo.broadcast_in_dim %t, dims = [0, 2, 1] : (tensor<2x6x5xf32>) -> tensor<2x5x6x4xf32>
  %b = hlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<2x6x5xf32>) -> tensor<2x6x5x4xf32>
  return %a, %b : tensor<2x5x6x4xf32>, tensor<2x6x5x4xf32>
}
