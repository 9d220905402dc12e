// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// The number of values comes from constants, so it is a constant.
// CHECK-LABEL: func.func @ragged_range
// CHECK-SAME: tensor<5xi32>
graph.func @ragged_range() -> (tensor<*xi32> {graph.name = "y"}) {
  %a, %ac = graph.node "Const"() {value = dense<[0, 5]> : tensor<2xi32>} : () -> tensor<2xi32>
  %b, %bc = graph.node "Const"() {value = dense<[3, 9]> : tensor<2xi32>} : () -> tensor<2xi32>
  %d, %dc = graph.node "Const"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %s, %y, %yc = graph.node "RaggedRange"(%a, %b, %d) {} : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<*xi64>, tensor<*xi32>)
  graph.return %y : tensor<*xi32>
}

// -----

// The longest row is not known: a symbol with the number of values as its bound.
// CHECK: hlo.symbols = [{bound = 6 : i64, kind = "data"
// CHECK-LABEL: func.func @ragged_to_tensor
// CHECK: hlo.set_size
// CHECK: "hlo.scatter"
graph.func @ragged_to_tensor(%v: tensor<6xf32> {graph.name = "v"}, %s: tensor<4xi64> {graph.name = "s"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %z, %zc = graph.node "Const"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "RaggedTensorToTensor"(%n, %v, %z, %s) {row_partition_types = ["ROW_SPLITS"]} : (tensor<i64>, tensor<6xf32>, tensor<f32>, tensor<4xi64>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A sparse tensor of run-time coordinates over a background.
// CHECK-LABEL: func.func @sparse_to_dense
// CHECK: hlo.check %{{.*}}, "an index is out of range"
// CHECK: "hlo.scatter"
// CHECK-SAME: inserted_window_dims = [0, 1]
graph.func @sparse_to_dense(%i: tensor<3x2xi64> {graph.name = "i"}, %v: tensor<3xf32> {graph.name = "v"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Const"() {value = dense<[4, 5]> : tensor<2xi64>} : () -> tensor<2xi64>
  %z, %zc = graph.node "Const"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "SparseToDense"(%i, %s, %v, %z) {validate_indices = true} : (tensor<3x2xi64>, tensor<2xi64>, tensor<3xf32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
