// RUN: lathe-opt %s --graph-to-hlo | FileCheck %s

// Attributes that say what a graph's inputs had when it was made do not bind: --input gives them other sizes.
// CHECK-LABEL: @other_sizes
// CHECK: return {{.*}}tensor<2xf32>
graph.func @other_sizes(%x: tensor<2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "AccumulateNV2"(%x, %x) {N = 2 : i64, shape = #graph.shape<[3]>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
