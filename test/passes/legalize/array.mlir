// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Tiling is a broadcast between two reshapes; an axis with multiple 1 is left alone.
// CHECK-LABEL: func.func @tile
// CHECK: hlo.broadcast_in_dim %{{.*}}, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
// CHECK: hlo.reshape %{{.*}} : (tensor<4x2x3xf32>) -> tensor<8x3xf32>
graph.func @tile(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %m, %mc = graph.node "Const"() {value = dense<[4, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y, %yc = graph.node "Tile"(%x, %m) {} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The parts of an unknown size are expressions of it.
// CHECK-LABEL: func.func @concat_batch
// CHECK: hlo.concatenate
// CHECK-SAME: tensor<?x3xf32, affine_map<()[s0] -> (s0 + 2, 3)>>
graph.func @concat_batch(%x: tensor<?x3xf32> {graph.name = "x"}, %z: tensor<2x3xf32> {graph.name = "z"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "ConcatV2"(%x, %z, %a) {} : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A run-time shift doubles the axis and slices.
// CHECK-LABEL: func.func @roll
// CHECK: hlo.remainder
// CHECK: hlo.concatenate
// CHECK: hlo.dynamic_slice
graph.func @roll(%x: tensor<5xf32> {graph.name = "x"}, %s: tensor<i32> {graph.name = "s"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "Roll"(%x, %s, %a) {} : (tensor<5xf32>, tensor<i32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Remainders from the last dimension on, and a check of the numbers.
// CHECK-LABEL: func.func @unravel
// CHECK: hlo.check
// CHECK: hlo.check
// CHECK: %[[Q:.*]] = hlo.divide
// CHECK: %[[P:.*]] = hlo.multiply %[[Q]]
// CHECK: hlo.subtract %{{.*}}, %[[P]]
// CHECK: hlo.concatenate %{{.*}} : (tensor<1x4xi64>, tensor<1x4xi64>) -> tensor<2x4xi64>
graph.func @unravel(%x: tensor<4xi64> {graph.name = "x"}, %d: tensor<2xi64> {graph.name = "d"}) -> (tensor<*xi64> {graph.name = "y"}) {
  %y, %yc = graph.node "UnravelIndex"(%x, %d) {} : (tensor<4xi64>, tensor<2xi64>) -> tensor<*xi64>
  graph.return %y : tensor<*xi64>
}

// -----

// Numbers up to a size, in floating point: as many as the size says.
// CHECK-LABEL: func.func @range_to_size
// CHECK: return %{{.*}} : tensor<?xf32, affine_map<()[s0] -> (s0)>>
graph.func @range_to_size(%x: tensor<?xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one, %c1 = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %n, %c2 = graph.node "Size"(%x) {out_type = i32} : (tensor<?xf32>) -> tensor<*xi32>
  %f, %c3 = graph.node "Cast"(%n) {SrcT = i32, DstT = f32} : (tensor<*xi32>) -> tensor<*xf32>
  %y, %c4 = graph.node "Range"(%zero, %f, %one) {Tidx = f32} : (tensor<f32>, tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// At least four and at most four is four, whatever the data say.
// CHECK-LABEL: func.func @between_equal_bounds
// CHECK: return %{{.*}} : tensor<4xi32>
graph.func @between_equal_bounds(%v: tensor<5xi32> {graph.name = "v"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %four, %c2 = graph.node "Const"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
  %m, %c3 = graph.node "Max"(%v, %zero) {keep_dims = false} : (tensor<5xi32>, tensor<i32>) -> tensor<*xi32>
  %low, %c4 = graph.node "Maximum"(%four, %m) {} : (tensor<i32>, tensor<*xi32>) -> tensor<*xi32>
  %n, %c5 = graph.node "Minimum"(%low, %four) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %y, %c6 = graph.node "Range"(%zero, %n, %one) {Tidx = i32} : (tensor<i32>, tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  graph.return %y : tensor<*xi32>
}

// -----

// Where there is nothing to sort complex numbers need no order.
// CHECK-LABEL: func.func @sorted_nothing(
// CHECK-NOT: hlo.sort
// CHECK: return
graph.func @sorted_nothing(%x: tensor<0x7xcomplex<f32>> {graph.name = "x"}, %z: tensor<7x1xcomplex<f32>> {graph.name = "z"})
    -> (tensor<*xcomplex<f32>> {graph.name = "y"}, tensor<*xcomplex<f32>> {graph.name = "w"}) {
  %y, %yc = graph.node "XlaSort"(%x) {} : (tensor<0x7xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  %w, %wc = graph.node "XlaSort"(%z) {} : (tensor<7x1xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  graph.return %y, %w : tensor<*xcomplex<f32>>, tensor<*xcomplex<f32>>
}
