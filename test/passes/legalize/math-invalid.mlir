// RUN: lathe-opt %s --split-input-file --graph-to-hlo --verify-diagnostics

// Every problem is reported, each with its node.
graph.func @shapes(%x: tensor<3xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) -> (tensor<*xf32> {graph.name = "z"}, tensor<*xf32> {graph.name = "w"}) {
  // expected-error @+1 {{(AddV2): shapes cannot be broadcast together: dimension 0 is 3 and 4}}
  %z, %zc = graph.node "AddV2"(%x, %y) {} : (tensor<3xf32>, tensor<4xf32>) -> tensor<*xf32>
  // expected-error @+1 {{(NoSuchOp): no compiled form}}
  %w, %wc = graph.node "NoSuchOp"(%x) {} : (tensor<3xf32>) -> tensor<*xf32>
  graph.return %z, %w : tensor<*xf32>, tensor<*xf32>
}

// -----

// expected-error @+1 {{input 'x': unknown rank; pass --input x=SHAPE}}
graph.func @unknown_rank(%x: tensor<*xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "Neg"(%x) {} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
