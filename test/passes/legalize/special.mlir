// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Half-width floats are evaluated in f64 and rounded once.
// CHECK-LABEL: func.func @bessel
// CHECK: %[[W:.*]] = hlo.convert %{{.*}} : (tensor<4xbf16>) -> tensor<4xf64>
// CHECK: hlo.convert %{{.*}} : (tensor<4xf64>) -> tensor<4xbf16>
// CHECK-NEXT: return
graph.func @bessel(%x: tensor<4xbf16> {graph.name = "x"}) -> (tensor<*xbf16> {graph.name = "y"}) {
  %y, %yc = graph.node "BesselK0"(%x) {} : (tensor<4xbf16>) -> tensor<*xbf16>
  graph.return %y : tensor<*xbf16>
}

// -----

// Eigenvalues of a real matrix are complex.
// CHECK-LABEL: func.func @eig
// CHECK: "hlo.eig"
// CHECK-SAME: (tensor<2x3x3xf32>) -> (tensor<2x3xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>)
graph.func @eig(%x: tensor<2x3x3xf32> {graph.name = "x"}) -> (tensor<*xcomplex<f32>> {graph.name = "y"}) {
  %w, %v, %yc = graph.node "Eig"(%x) {compute_v = true} : (tensor<2x3x3xf32>) -> (tensor<*xcomplex<f32>>, tensor<*xcomplex<f32>>)
  graph.return %v : tensor<*xcomplex<f32>>
}

// -----

// The gradient of x * exp(x): the forward ops, then each one's share.
// CHECK-LABEL: func.func @gradient
// CHECK: %[[E:.*]] = hlo.exponential
// CHECK: hlo.multiply
// CHECK: hlo.add
// CHECK: return
graph.func @gradient(%x: tensor<3xf32> {graph.name = "x"}, %g: tensor<3xf32> {graph.name = "g"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "SymbolicGradient"(%x, %g) {f = #graph.func<@f>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @f(%x: tensor<*xf32>) -> tensor<*xf32> {
  %e, %ec = graph.node "Exp"(%x) {} : (tensor<*xf32>) -> tensor<*xf32>
  %y, %yc = graph.node "Mul"(%x, %e) {} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// An index that only the run knows is checked.
// CHECK-LABEL: func.func @index
// CHECK: hlo.check %{{.*}}, "the index is out of range for the list"
// CHECK: "hlo.dynamic_slice"
graph.func @index(%x: tensor<5x2xf32> {graph.name = "x"}, %i: tensor<i32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %l, %lc = graph.node "TensorListFromTensor"(%x, %s) {element_dtype = f32} : (tensor<5x2xf32>, tensor<1xi32>) -> tensor<!graph.variant>
  %y, %yc = graph.node "TensorListGetItem"(%l, %i, %s) {element_dtype = f32} : (tensor<!graph.variant>, tensor<i32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
