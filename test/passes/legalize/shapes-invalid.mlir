// RUN: lathe-opt %s --split-input-file --graph-to-hlo=check-shapes --verify-diagnostics

// What a handler makes of a node has the shape that the op's shape function says.
graph.func @agrees(%x: tensor<2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "AccumulateNV2"(%x, %x) {N = 2 : i64, shape = #graph.shape<[-1]>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @differs(%x: tensor<2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  // expected-error @+1 {{(AccumulateNV2): output 0 has shape [2], expected [3]}}
  %y, %yc = graph.node "AccumulateNV2"(%x, %x) {N = 2 : i64, shape = #graph.shape<[3]>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
