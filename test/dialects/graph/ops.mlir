// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: graph.func @data_and_control(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32> {graph.name = "image"}) -> (tensor<?xi64> {graph.name = "digit"})
graph.func @data_and_control(%x: tensor<?x8xf32> {graph.name = "image"}) -> (tensor<?xi64> {graph.name = "digit"}) {
  // CHECK: graph.node "NoOp"() {} : () -> ()
  %c = graph.node "NoOp"() {} : () -> ()
  // CHECK: graph.node "ArgMax"(%[[X]]) [%{{.*}}] {T = f32, dims = #graph.shape<[1, -1]>, s = #graph.shape<*>}
  %y, %cy = graph.node "ArgMax"(%x) [%c] {T = f32, dims = #graph.shape<[1, -1]>, s = #graph.shape<*>} : (tensor<?x8xf32>) -> tensor<?xi64>
  // CHECK: graph.return %{{.*}}[%{{.*}}] : tensor<?xi64>
  graph.return %y [%cy] : tensor<?xi64>
}

// A v1 loop is a cycle.
// CHECK-LABEL: graph.func @cycle
graph.func @cycle() {
  %a, %ca = graph.node "Merge"(%b) {} : (tensor<*xi32>) -> tensor<*xi32>
  %b, %cb = graph.node "NextIteration"(%a) {} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return
}

// CHECK-LABEL: graph.func private @body
graph.func private @body(%a: tensor<!graph.resource>, %b: tensor<*x!graph.variant>) -> tensor<!graph.resource> {
  graph.return %a : tensor<!graph.resource>
}

// CHECK: graph.variable @"dense/kernel" : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
graph.variable @"dense/kernel" : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
// CHECK: graph.variable @counter : tensor<i64>
graph.variable @counter : tensor<i64>

// CHECK-LABEL: graph.func @functions
graph.func @functions(%a: tensor<!graph.resource>, %b: tensor<*x!graph.variant>) {
  // CHECK: graph.node "Case"({{.*}}) {branches = [#graph.func<@body>, #graph.func<@body, {T = i32}>]}
  %y, %c = graph.node "Case"(%a, %b) {branches = [#graph.func<@body>, #graph.func<@body, {T = i32}>]} : (tensor<!graph.resource>, tensor<*x!graph.variant>) -> tensor<*xf8E5M2>
  // CHECK: value = #graph.strings<tensor<2x!graph.string>, ["a", "b\00"]>
  %s, %cs = graph.node "Const"() {value = #graph.strings<tensor<2x!graph.string>, ["a", "b\00"]>} : () -> tensor<2x!graph.string>
  graph.return [%c]
}
