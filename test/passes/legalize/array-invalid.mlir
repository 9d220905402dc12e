// RUN: lathe-opt %s --split-input-file --graph-to-hlo --verify-diagnostics

graph.func @permutation(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %p, %pc = graph.node "Const"() {value = dense<[1, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-error @+1 {{(Transpose): axis 1 is given twice}}
  %y, %yc = graph.node "Transpose"(%x, %p) {} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @pack(%x: tensor<2xf32> {graph.name = "x"}, %z: tensor<3xf32> {graph.name = "z"}) -> (tensor<*xf32> {graph.name = "y"}) {
  // expected-error @+1 {{(Pack): dimension 0 differs: 2 and 3}}
  %y, %yc = graph.node "Pack"(%x, %z) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @slice(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %b, %bc = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %n, %nc = graph.node "Const"() {value = dense<3> : tensor<1xi32>} : () -> tensor<1xi32>
  // expected-error @+1 {{(Slice): dimension 0 of size 4 cannot be sliced from 2 to 5}}
  %y, %yc = graph.node "Slice"(%x, %b, %n) {} : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @mirror_pad(%x: tensor<2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %p, %pc = graph.node "Const"() {value = dense<[[2, 0]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
  // expected-error @+1 {{(MirrorPad): padding 2 is too large for dimension 0 of size 2}}
  %y, %yc = graph.node "MirrorPad"(%x, %p) {mode = "REFLECT"} : (tensor<2xf32>, tensor<1x2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Whether a size is 1 decides the rank.
graph.func @squeeze(%x: tensor<?x2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  // expected-error @+1 {{(Squeeze): dimension 0 must be known at compile time: without axes, its size decides the rank}}
  %y, %yc = graph.node "Squeeze"(%x) {squeeze_dims = []} : (tensor<?x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @unravel_nothing(%x: tensor<0xi32> {graph.name = "x"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %d, %dc = graph.node "Const"() {value = dense<[3, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-error @+1 {{(UnravelIndex): received empty tensor indices}}
  %y, %yc = graph.node "UnravelIndex"(%x, %d) {} : (tensor<0xi32>, tensor<2xi32>) -> tensor<*xi32>
  graph.return %y : tensor<*xi32>
}

// -----

graph.func @sorted_complex(%x: tensor<4x3xcomplex<f32>> {graph.name = "x"}) -> (tensor<*xcomplex<f32>> {graph.name = "y"}) {
  // expected-error @+1 {{(XlaSort): complex numbers have no order}}
  %y, %yc = graph.node "XlaSort"(%x) {} : (tensor<4x3xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  graph.return %y : tensor<*xcomplex<f32>>
}
