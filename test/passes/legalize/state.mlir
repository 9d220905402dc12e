// RUN: lathe-opt %s --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// A reference variable and its update: what Identity read before keeps its value.
// CHECK-LABEL: func.func @train
// CHECK-SAME: (%[[G:.*]]: tensor<3xf32> {hlo.name = "g"}, %[[W:.*]]: tensor<3xf32> {hlo.variable = "w"})
// CHECK: %[[D:.*]] = hlo.multiply %[[G]]
// CHECK: %[[N:.*]] = hlo.subtract %[[W]], %[[D]]
// CHECK: return %[[W]], %[[N]]
graph.func @train(%g: tensor<3xf32> {graph.name = "g"}) -> (tensor<*xf32> {graph.name = "old"}) {
  %w, %wc = graph.node "VariableV2"() {shared_name = "w", dtype = f32, shape = #graph.shape<[3]>} : () -> tensor<3xf32>
  %old, %oc = graph.node "Identity"(%w) {} : (tensor<3xf32>) -> tensor<*xf32>
  %lr, %lc = graph.node "Const"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %u, %uc = graph.node "ApplyGradientDescent"(%w, %lr, %g) [%oc] {} : (tensor<3xf32>, tensor<f32>, tensor<3xf32>) -> tensor<*xf32>
  graph.return %old [%uc] : tensor<*xf32>
}
