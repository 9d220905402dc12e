// Operations that new graphs no longer have.
// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope --verify-diagnostics | FileCheck %s

// The copies that Tile made are summed up.
// CHECK-LABEL: func.func @tile_grad
// CHECK: hlo.reshape {{.*}} -> tensor<2x3x4x1xf32>
// CHECK: "hlo.reduce"
// CHECK: -> tensor<3x1xf32>
graph.func @tile_grad(%x: tensor<6x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %m, %mc = graph.node "Const"() {dtype = i32, value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y, %yc = graph.node "TileGrad"(%x, %m) {} : (tensor<6x4xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

graph.func @tile_grad_of_no_multiple(%x: tensor<6x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %m, %mc = graph.node "Const"() {dtype = i32, value = dense<[4, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-error @below {{dimension 0 of size 6 is no multiple of 4}}
  %y, %yc = graph.node "TileGrad"(%x, %m) {} : (tensor<6x4xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// One solution, then as many squares as the largest matrix needs.
// CHECK-LABEL: func.func @exponential
// CHECK: "hlo.lu"
// CHECK: "hlo.while"
// CHECK: hlo.select
graph.func @exponential(%x: tensor<2x3x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "MatrixExponential"(%x) {} : (tensor<2x3x3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The order of the axes counts: the last one is the real one.
// CHECK-LABEL: func.func @transforms
// CHECK: hlo.transpose {{.*}} -> tensor<5x6x4xf32>
// CHECK: "hlo.fft"{{.*}} -> tensor<5x6x3xcomplex<f32>>
// CHECK: "hlo.fft"{{.*}} -> tensor<3x6x5xcomplex<f32>>
graph.func @transforms(%x: tensor<4x6x5xf32> {graph.name = "x"}) -> (tensor<*xcomplex<f32>> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {dtype = i32, value = dense<[5, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
  %a, %ac = graph.node "Const"() {dtype = i32, value = dense<[2, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y, %yc = graph.node "RFFTND"(%x, %n, %a) {} : (tensor<4x6x5xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<*xcomplex<f32>>
  graph.return %y : tensor<*xcomplex<f32>>
}

// -----

graph.func @transform_twice(%x: tensor<4x6xcomplex<f32>> {graph.name = "x"}) -> (tensor<*xcomplex<f32>> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {dtype = i32, value = dense<[6, 6]> : tensor<2xi32>} : () -> tensor<2xi32>
  %a, %ac = graph.node "Const"() {dtype = i32, value = dense<[1, -1]> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-error @below {{axis 1 is there twice}}
  %y, %yc = graph.node "FFTND"(%x, %n, %a) {} : (tensor<4x6xcomplex<f32>>, tensor<2xi32>, tensor<2xi32>) -> tensor<*xcomplex<f32>>
  graph.return %y : tensor<*xcomplex<f32>>
}
