// Names of TensorFlow's first releases: the operations of today.
// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @old_names
// CHECK: "hlo.cholesky"
// CHECK: "hlo.lu"
// CHECK: "hlo.lu"
// CHECK: "hlo.lu"
// CHECK: "hlo.svd"
// CHECK: "hlo.eigh"
// CHECK: "hlo.cholesky"
graph.func @old_names(%a: tensor<2x3x3xf32> {graph.name = "a"}, %b: tensor<2x3x1xf32> {graph.name = "b"}, %l: tensor<f64> {graph.name = "l"})
    -> (tensor<*xf32> {graph.name = "c"}, tensor<*xf32> {graph.name = "i"}, tensor<*xf32> {graph.name = "d"}, tensor<*xf32> {graph.name = "x"},
        tensor<*xf32> {graph.name = "s"}, tensor<*xf32> {graph.name = "e"}, tensor<*xf32> {graph.name = "q"}) {
  %c, %cc = graph.node "BatchCholesky"(%a) {} : (tensor<2x3x3xf32>) -> tensor<*xf32>
  %i, %ic = graph.node "BatchMatrixInverse"(%a) {adjoint = false} : (tensor<2x3x3xf32>) -> tensor<*xf32>
  %d, %dc = graph.node "BatchMatrixDeterminant"(%a) {} : (tensor<2x3x3xf32>) -> tensor<*xf32>
  %x, %xc = graph.node "BatchMatrixSolve"(%a, %b) {adjoint = false} : (tensor<2x3x3xf32>, tensor<2x3x1xf32>) -> tensor<*xf32>
  %s, %u, %v, %sc = graph.node "BatchSvd"(%a) {compute_uv = true, full_matrices = false} : (tensor<2x3x3xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  %e, %w, %ec = graph.node "BatchSelfAdjointEigV2"(%a) {compute_v = true} : (tensor<2x3x3xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  %q, %qc = graph.node "BatchMatrixSolveLs"(%a, %b, %l) {fast = true} : (tensor<2x3x3xf32>, tensor<2x3x1xf32>, tensor<f64>) -> tensor<*xf32>
  graph.return %c, %i, %d, %x, %s, %e, %q : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// The values as a row above the vectors.
// CHECK-LABEL: func.func @joined_eig
// CHECK: %[[E:.*]], %[[V:.*]] = "hlo.eigh"
// CHECK: %[[ROW:.*]] = hlo.reshape %[[E]] : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
// CHECK: hlo.concatenate %[[ROW]], %[[V]]{{.*}} tensor<2x4x3xf32>
graph.func @joined_eig(%a: tensor<2x3x3xf32> {graph.name = "a"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "BatchSelfAdjointEig"(%a) {} : (tensor<2x3x3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @old_transforms
// CHECK: fft_length = array<i64: 4>
// CHECK: fft_length = array<i64: 3, 4>
graph.func @old_transforms(%a: tensor<2x3x4xcomplex<f32>> {graph.name = "a"}) -> (tensor<*xcomplex<f32>> {graph.name = "y"}) {
  %x, %xc = graph.node "BatchFFT"(%a) {} : (tensor<2x3x4xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  %y, %yc = graph.node "BatchIFFT2D"(%x) {} : (tensor<*xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  graph.return %y : tensor<*xcomplex<f32>>
}
