// RUN: lathe-opt %s --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// What assigned a variable that freezing made a constant of gives the new value; readers of the constant do not see it.
// CHECK-LABEL: func.func @frozen
// CHECK: %[[C:.*]] = hlo.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: %[[S:.*]] = hlo.add %[[C]], %arg0
// CHECK: return %arg0, %[[C]], %[[S]]
graph.func @frozen(%x: tensor<2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "new"}, tensor<*xf32> {graph.name = "read"}, tensor<*xf32> {graph.name = "sum"}) {
  %u, %uc = graph.node "Const"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %new, %nc = graph.node "Assign"(%u, %x) {validate_shape = true} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  %read, %rc = graph.node "Identity"(%u) [%nc] {} : (tensor<2xf32>) -> tensor<*xf32>
  %sum, %sc = graph.node "AssignAdd"(%read, %x) {} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  graph.return %new, %read, %sum : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
