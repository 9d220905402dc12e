// RUN: lathe-opt %s --graph-partially-decluster="host-ops=Shape,Identity" --split-input-file | FileCheck %s

// A shape that only the outside wants need not wait for the cluster; one that the cluster uses stays.
// CHECK-LABEL: graph.func @shapes
// CHECK: graph.node "Shape"(%arg0) {T = f32} :
// CHECK: graph.node "Shape"(%arg1) {T = f32} attributes {graph.cluster = "c"}
graph.func @shapes(%x: tensor<*xf32>, %y: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) {
  %s, %c0 = graph.node "Shape"(%x) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xi32>
  %t, %c1 = graph.node "Shape"(%y) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xi32>
  %r, %c2 = graph.node "Reshape"(%x, %t) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32>
  graph.return %s, %r : tensor<*xi32>, tensor<*xf32>
}

// -----

// What hands an input on to the host goes back, along a chain; what takes from the cluster, or has no host kernel, does not.
// CHECK-LABEL: graph.func @hand_on
// CHECK: graph.node "Identity"(%arg0) {T = f32} :
// CHECK: graph.node "Identity"(%{{.*}}) {T = f32} :
// CHECK: graph.node "StopGradient"(%arg0) {T = f32} attributes {graph.cluster = "c"}
// CHECK: graph.node "Neg"(%arg0) {T = f32} attributes {graph.cluster = "c"}
// CHECK: graph.node "Identity"(%{{.*}}) {T = f32} attributes {graph.cluster = "c"}
graph.func @hand_on(%x: tensor<*xf32>) -> (tensor<*x!graph.string>, tensor<*xf32>, tensor<*xf32>) {
  %a, %c0 = graph.node "Identity"(%x) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c1 = graph.node "Identity"(%a) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  %s, %c2 = graph.node "AsString"(%b) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %g, %c3 = graph.node "StopGradient"(%x) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %c4 = graph.node "Neg"(%x) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  %i, %c5 = graph.node "Identity"(%n) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %s, %g, %i : tensor<*x!graph.string>, tensor<*xf32>, tensor<*xf32>
}
