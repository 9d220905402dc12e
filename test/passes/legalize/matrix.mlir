// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Two diagonals through one index table; what lies outside reads the padding value behind the packed elements.
// CHECK-LABEL: func.func @matrix_diag
// CHECK-DAG: hlo.constant dense<[2, 0, 4, 3]> : tensor<4xi32>
// CHECK: "hlo.gather"
// CHECK: hlo.reshape %{{.*}} -> tensor<2x2xf32>
graph.func @matrix_diag(%d: tensor<2x2xf32> {graph.name = "d"}, %p: tensor<f32> {graph.name = "p"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %k, %kc = graph.node "Const"() {value = dense<[0, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  %n, %nc = graph.node "Const"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "MatrixDiagV3"(%d, %k, %n, %n, %p) {align = "LEFT_RIGHT"} : (tensor<2x2xf32>, tensor<2xi32>, tensor<i32>, tensor<i32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A solve: factorise, check, permute the right side, substitute twice.
// CHECK-LABEL: func.func @matrix_solve
// CHECK: %{{.*}}, %{{.*}} = "hlo.lu"
// CHECK: hlo.check %{{.*}}, "input matrix is not invertible"
// CHECK: "hlo.gather"
// CHECK: "hlo.triangular_solve"
// CHECK-SAME: unit_diagonal = true
// CHECK: "hlo.triangular_solve"
// CHECK-SAME: unit_diagonal = false
graph.func @matrix_solve(%a: tensor<3x3xf32> {graph.name = "a"}, %b: tensor<3x2xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "MatrixSolve"(%a, %b) {adjoint = false} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Like TensorFlow, nothing is refused at run time: what is not positive definite becomes NaN, zeros on the diagonal divide.
// CHECK-LABEL: func.func @no_checks
// CHECK-NOT: hlo.check
// CHECK: "hlo.cholesky"
// CHECK-NOT: hlo.check
// CHECK: "hlo.triangular_solve"
// CHECK-NOT: hlo.check
graph.func @no_checks(%a: tensor<3x3xf32> {graph.name = "a"}, %b: tensor<3x2xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %l, %lc = graph.node "Cholesky"(%a) {} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %y, %yc = graph.node "MatrixTriangularSolve"(%l, %b) {lower = true, adjoint = false} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Nor is a singular tridiagonal matrix: its batch becomes NaN.
// CHECK-LABEL: func.func @tridiagonal
// CHECK-NOT: hlo.check
// CHECK: "hlo.lu"
// CHECK: hlo.constant dense<0x7FC00000>
// CHECK: hlo.select
// CHECK-NOT: hlo.check
graph.func @tridiagonal(%a: tensor<3x4xf32> {graph.name = "a"}, %b: tensor<4x2xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "TridiagonalSolve"(%a, %b) {} : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Perturbing it is not there: it is refused.
// CHECK-LABEL: func.func @perturbed
// CHECK: hlo.check %{{.*}}, "input matrix is not invertible"
graph.func @perturbed(%a: tensor<3x4xf32> {graph.name = "a"}, %b: tensor<4x2xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "TridiagonalSolve"(%a, %b) {perturb_singular = true} : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// So is a singular banded matrix.
// CHECK-LABEL: func.func @banded
// CHECK: hlo.check %{{.*}}, "input matrix is not invertible"
graph.func @banded(%a: tensor<2x3xf32> {graph.name = "a"}, %b: tensor<3x2xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "BandedTriangularSolve"(%a, %b) {} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Least squares of a matrix of any rank: singular values, nothing added to the diagonal.
// CHECK-LABEL: func.func @least_squares
// CHECK: "hlo.svd"(%arg0)
// CHECK: hlo.compare
// CHECK-NOT: "hlo.cholesky"
// CHECK: return %{{.*}} : tensor<2x1xf32>
graph.func @least_squares(%a: tensor<3x2xf32> {graph.name = "a"}, %b: tensor<3x1xf32> {graph.name = "b"}, %l: tensor<f64> {graph.name = "l"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "MatrixSolveLs"(%a, %b, %l) {fast = false} : (tensor<3x2xf32>, tensor<3x1xf32>, tensor<f64>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// One element of any rank pads.
// CHECK-LABEL: func.func @diag_part_padding
// CHECK: hlo.reshape %arg1 : (tensor<1xf32>) -> tensor<f32>
graph.func @diag_part_padding(%x: tensor<2x2xf32> {graph.name = "x"}, %p: tensor<1xf32> {graph.name = "p"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %k, %kc = graph.node "Const"() {value = dense<[0, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y, %yc = graph.node "MatrixDiagPartV3"(%x, %k, %p) {align = "LEFT_RIGHT"} : (tensor<2x2xf32>, tensor<2xi32>, tensor<1xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The main diagonal of square matrices whose size the run knows: each n + 1 elements, and set or made where row and column agree.
// CHECK-LABEL: func.func @diagonal_of_open_size
// CHECK: hlo.size affine_map<()[s0] -> (s0 + 1)> : tensor<i64>
// CHECK: "hlo.gather"
// CHECK: hlo.compare EQ
// CHECK: hlo.select
// CHECK: hlo.compare EQ
// CHECK: hlo.select
// CHECK: return %{{.*}} : tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>>
graph.func @diagonal_of_open_size(%x: tensor<?x3xf32> {graph.name = "x"}, %p: tensor<f32> {graph.name = "p"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %k, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %all, %c1 = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %m, %c2 = graph.node "MatMul"(%x, %x) {transpose_a = false, transpose_b = true} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<*xf32>
  %d, %c3 = graph.node "MatrixDiagPartV3"(%m, %k, %p) {align = "RIGHT_LEFT"} : (tensor<*xf32>, tensor<i32>, tensor<f32>) -> tensor<*xf32>
  %n, %c4 = graph.node "MatrixDiagV3"(%d, %k, %all, %all, %p) {align = "RIGHT_LEFT"} : (tensor<*xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>) -> tensor<*xf32>
  %y, %c5 = graph.node "MatrixSetDiagV3"(%n, %d, %k) {align = "RIGHT_LEFT"} : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
