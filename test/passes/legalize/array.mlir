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
