// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// x[::-2, 1, newaxis]: read forwards with stride 2, then turned round.
// CHECK-LABEL: func.func @strided_slice_backwards
// CHECK: %[[S:.*]] = hlo.slice %{{.*}}limit_indices = array<i64: 5, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 2, 1>
// CHECK: hlo.reverse %[[S]], dims = [0]
graph.func @strided_slice_backwards(%x: tensor<5x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %b, %bc = graph.node "Const"() {value = dense<[0, 1, 0]> : tensor<3xi32>} : () -> tensor<3xi32>
  %e, %ec = graph.node "Const"() {value = dense<[0, 2, 0]> : tensor<3xi32>} : () -> tensor<3xi32>
  %s, %sc = graph.node "Const"() {value = dense<[-2, 1, 1]> : tensor<3xi32>} : () -> tensor<3xi32>
  %y, %yc = graph.node "StridedSlice"(%x, %b, %e, %s) {begin_mask = 1 : i64, ellipsis_mask = 0 : i64, end_mask = 1 : i64, new_axis_mask = 4 : i64, shrink_axis_mask = 2 : i64} : (tensor<5x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// x[i] with a run-time index: range-checked, then a dynamic slice.
// CHECK-LABEL: func.func @strided_slice_index
// CHECK: hlo.check %{{.*}}, "slice index is out of range"
// CHECK: hlo.dynamic_slice
// CHECK: hlo.reshape %{{.*}} -> tensor<4xf32>
graph.func @strided_slice_index(%x: tensor<5x4xf32> {graph.name = "x"}, %i: tensor<1xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %yc = graph.node "StridedSlice"(%x, %i, %i, %s) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64} : (tensor<5x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The gradient of a strided slice is padding with holes.
// CHECK-LABEL: func.func @strided_slice_grad
// CHECK: hlo.pad %{{.*}}, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
graph.func @strided_slice_grad(%g: tensor<2xf32> {graph.name = "g"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {value = dense<4> : tensor<1xi32>} : () -> tensor<1xi32>
  %b, %bc = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %s, %sc = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %yc = graph.node "StridedSliceGrad"(%n, %b, %n, %s, %g) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// An index takes its element whatever the begin mask says.
// CHECK-LABEL: func.func @strided_slice_index_masked
// CHECK: hlo.slice %{{.*}}limit_indices = array<i64: 4, 4>, start_indices = array<i64: 3, 0>
graph.func @strided_slice_index_masked(%x: tensor<5x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %i, %ic = graph.node "Const"() {value = dense<3> : tensor<1xi32>} : () -> tensor<1xi32>
  %s, %sc = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %yc = graph.node "StridedSlice"(%x, %i, %i, %s) {begin_mask = 1 : i64, ellipsis_mask = 0 : i64, end_mask = 1 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64} : (tensor<5x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Bounds beyond a size that only the run knows are clamped: the number of elements is found there.
// CHECK-LABEL: func.func @strided_slice_clamped
// CHECK: hlo.size
// CHECK: hlo.minimum
// CHECK: hlo.set_size
// CHECK: hlo.slice
graph.func @strided_slice_clamped(%x: tensor<?x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %b, %bc = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %s, %sc = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %yc = graph.node "StridedSlice"(%x, %b, %b, %s) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 1 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64} : (tensor<?x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Where the bounds are known to fit, sizes stay expressions.
// CHECK-LABEL: func.func @strided_slice_fits
// CHECK-NOT: hlo.set_size
// CHECK: return %arg0
graph.func @strided_slice_fits(%x: tensor<?x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %b, %bc = graph.node "Const"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %s, %sc = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %shape, %shc = graph.node "Shape"(%x) {} : (tensor<?x4xf32>) -> tensor<*xi32>
  %e, %ec = graph.node "StridedSlice"(%shape, %b, %s, %s) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64} : (tensor<*xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %y, %yc = graph.node "StridedSlice"(%x, %b, %e, %s) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64} : (tensor<?x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
