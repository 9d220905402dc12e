// RUN: lathe-opt %s --hlo-fuse | FileCheck %s
// RUN: lathe-opt %s --hlo-fuse=explain=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY

// A chain is one loop; splats are made inside, and nothing is left outside.
// CHECK-LABEL: @chain
// CHECK: %[[L:.*]] = kernel.loop(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: hlo.constant dense<2.0
// CHECK: hlo.multiply
// CHECK: hlo.tanh
// CHECK: kernel.yield
// CHECK-NOT: hlo.constant
// CHECK: return %[[L]]
func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %two = hlo.constant dense<2.0> : tensor<4x8xf32>
  %y = hlo.multiply %x, %two : tensor<4x8xf32>
  %t = hlo.tanh %y : tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}

// An LSTM cell's gates are slices of one product: one loop with two outputs.
// CHECK-LABEL: @lstm_cell
// CHECK: %[[D:.*]] = kernel.dot
// CHECK: hlo.add
// CHECK: kernel.yield
// CHECK: %[[L:.*]]:2 = kernel.loop(%[[D]], %arg1)
// CHECK-COUNT-4: hlo.slice
// CHECK: kernel.yield {{.*}}, {{.*}}
// CHECK-NOT: kernel.
// CHECK: return %[[L]]#0, %[[L]]#1
func.func @lstm_cell(%x: tensor<2x8xf32>, %c: tensor<2x4xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %d = "hlo.dot_general"(%x, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<2x16xf32>
  %z = hlo.add %d, %bb : tensor<2x16xf32>
  %zi = "hlo.slice"(%z) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zf = "hlo.slice"(%z) {start_indices = array<i64: 0, 4>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zg = "hlo.slice"(%z) {start_indices = array<i64: 0, 8>, limit_indices = array<i64: 2, 12>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %zo = "hlo.slice"(%z) {start_indices = array<i64: 0, 12>, limit_indices = array<i64: 2, 16>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
  %i = hlo.logistic %zi : tensor<2x4xf32>
  %f = hlo.logistic %zf : tensor<2x4xf32>
  %g = hlo.tanh %zg : tensor<2x4xf32>
  %o = hlo.logistic %zo : tensor<2x4xf32>
  %fc = hlo.multiply %f, %c : tensor<2x4xf32>
  %ig = hlo.multiply %i, %g : tensor<2x4xf32>
  %c2 = hlo.add %fc, %ig : tensor<2x4xf32>
  %t = hlo.tanh %c2 : tensor<2x4xf32>
  %h = hlo.multiply %o, %t : tensor<2x4xf32>
  return %c2, %h : tensor<2x4xf32>, tensor<2x4xf32>
}

// An exponential that a broadcast would compute eight times is stored first.
// WHY-DAG: remark: not fused with its consumer: its consumer reads each element many times
// CHECK-LABEL: @replicated
// CHECK: %[[E:.*]] = kernel.loop(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: hlo.exponential
// CHECK: kernel.loop(%[[E]], %arg1)
// CHECK: hlo.broadcast_in_dim
func.func @replicated(%x: tensor<4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = hlo.exponential %x : tensor<4xf32>
  %b = hlo.broadcast_in_dim %e, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %r = hlo.add %y, %b : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// The first loop would need the product that needs the first loop: two kernels.
// WHY-DAG: remark: not fused with its consumer: its consumer reads it in the inner loop of a product
// CHECK-LABEL: @no_cycle
// CHECK: %[[A:.*]] = kernel.loop(%arg0)
// CHECK: %[[D:.*]] = kernel.dot(%[[A]], %arg1
// CHECK: return %[[D]]
func.func @no_cycle(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = hlo.exponential %x : tensor<4x4xf32>
  %d = "hlo.dot_general"(%e, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = hlo.add %d, %e : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// Loops and branches keep their regions, each fused by itself.
// CHECK-LABEL: @regions
// CHECK: hlo.while
// CHECK: kernel.loop
// CHECK: hlo.return
// CHECK: kernel.loop
// CHECK: hlo.return
func.func @regions(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    %s = hlo.sine %v : tensor<4xf32>
    %t = hlo.multiply %s, %x : tensor<4xf32>
    hlo.return %j, %t : tensor<i32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// Rows that constants pick are read in place; what they are picked from lies in memory.
// CHECK-LABEL: @picked
// CHECK: %[[E:.*]] = kernel.loop(%arg0)
// CHECK: %[[L:.*]] = kernel.loop(%[[E]], %{{.*}}, %arg1)
// CHECK: "hlo.gather"
// CHECK: hlo.multiply
// CHECK: kernel.yield
// CHECK: return %[[L]]
func.func @picked(%x: tensor<4x5xf32>, %w: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %i = hlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %e = hlo.exponential %x : tensor<4x5xf32>
  %g = "hlo.gather"(%e, %i) <{dimension_numbers = #hlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<3x5xf32>
  %y = hlo.multiply %g, %w : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// Not so single elements along the last dimension, nor places that only a run knows.
// CHECK-LABEL: @picked_apart
// CHECK: "hlo.gather"(%arg0
// CHECK: "hlo.gather"(%arg0
// CHECK: kernel.loop
// CHECK-NOT: "hlo.gather"
// CHECK: return
func.func @picked_apart(%x: tensor<4x5xf32>, %n: tensor<3xi32>) -> (tensor<4x3xf32>, tensor<3x5xf32>) {
  %i = hlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %g = "hlo.gather"(%x, %i) <{dimension_numbers = #hlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 4, 1>}> : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x3xf32>
  %h = "hlo.gather"(%x, %n) <{dimension_numbers = #hlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<3x5xf32>
  %y = hlo.tanh %g : tensor<4x3xf32>
  %z = hlo.tanh %h : tensor<3x5xf32>
  return %y, %z : tensor<4x3xf32>, tensor<3x5xf32>
}

// Each step of a running sum reads the one before it twice: past eight elements of the first for one of the last it is stored.
// CHECK-LABEL: @running_sum
// CHECK: %[[V:.*]] = kernel.loop(%arg0)
// CHECK-COUNT-1: hlo.add
// CHECK-NOT: hlo.add
// CHECK: %[[L:.*]] = kernel.loop(%[[V]])
// CHECK-COUNT-4: hlo.add
// CHECK: return %[[L]]
func.func @running_sum(%x: tensor<3x32xf32>) -> tensor<3x32xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %p0 = hlo.pad %x, %zero, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<3x32xf32>
  %v0 = hlo.add %p0, %x : tensor<3x32xf32>
  %p1 = hlo.pad %v0, %zero, low = [0, 2], high = [0, -2], interior = [0, 0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<3x32xf32>
  %v1 = hlo.add %p1, %v0 : tensor<3x32xf32>
  %p2 = hlo.pad %v1, %zero, low = [0, 4], high = [0, -4], interior = [0, 0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<3x32xf32>
  %v2 = hlo.add %p2, %v1 : tensor<3x32xf32>
  %p3 = hlo.pad %v2, %zero, low = [0, 8], high = [0, -8], interior = [0, 0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<3x32xf32>
  %v3 = hlo.add %p3, %v2 : tensor<3x32xf32>
  %p4 = hlo.pad %v3, %zero, low = [0, 16], high = [0, -16], interior = [0, 0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<3x32xf32>
  %v4 = hlo.add %p4, %v3 : tensor<3x32xf32>
  return %v4 : tensor<3x32xf32>
}

// A transpose that a pad reads through other ops stays a kernel of its own, whose blocks vectors turn; one that moves
// whole rows is read in place.
// CHECK-LABEL: @padded_transpose
// CHECK: kernel.loop(%arg0)
// CHECK: hlo.transpose
// CHECK: kernel.yield
// CHECK: kernel.loop(
// CHECK-NOT: hlo.transpose
// CHECK: hlo.add
// CHECK: hlo.pad
// CHECK: kernel.yield
// CHECK: kernel.loop(
// CHECK: hlo.transpose {{.*}} dims = [0, 2, 1, 3]
// CHECK-NOT: kernel.yield
// CHECK: hlo.pad
func.func @padded_transpose(%x: tensor<1x8x8x16xf32>, %y: tensor<1x16x8x8xf32>, %z: tensor<1x8x16x8xf32>) -> (tensor<1x16x10x10xf32>, tensor<1x16x10x10xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x8x8x16xf32>) -> tensor<1x16x8x8xf32>
  %a = hlo.add %t, %y : tensor<1x16x8x8xf32>
  %p = hlo.pad %a, %zero, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x16x8x8xf32>, tensor<f32>) -> tensor<1x16x10x10xf32>
  %u = hlo.transpose %z, dims = [0, 2, 1, 3] : (tensor<1x8x16x8xf32>) -> tensor<1x16x8x8xf32>
  %b = hlo.multiply %u, %y : tensor<1x16x8x8xf32>
  %q = hlo.pad %b, %zero, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x16x8x8xf32>, tensor<f32>) -> tensor<1x16x10x10xf32>
  return %p, %q : tensor<1x16x10x10xf32>, tensor<1x16x10x10xf32>
}
