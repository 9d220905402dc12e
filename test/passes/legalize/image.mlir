// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Columns, then rows as runs of memory: two gathers with weights each.
// CHECK-LABEL: func.func @resize_bilinear
// CHECK-COUNT-2: "hlo.gather"(%arg0
// CHECK: hlo.reshape %{{.*}} : (tensor<1x2x6x3xf32>) -> tensor<1x2x18xf32>
// CHECK-COUNT-2: "hlo.gather"(%{{.*}} -> tensor<1x4x18xf32>
// CHECK: return %{{.*}} : tensor<1x4x6x3xf32>
graph.func @resize_bilinear(%x: tensor<1x2x3x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Const"() {value = dense<[4, 6]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y, %yc = graph.node "ResizeBilinear"(%x, %s) {align_corners = false, half_pixel_centers = true} : (tensor<1x2x3x3xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Each element of the window is a strided slice, joined as channels.
// CHECK-LABEL: func.func @patches
// CHECK-COUNT-4: hlo.slice
// CHECK: hlo.concatenate
// CHECK-SAME: tensor<1x2x2x4xf32>
graph.func @patches(%x: tensor<1x4x4x1xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "ExtractImagePatches"(%x) {ksizes = [1, 2, 2, 1], strides = [1, 2, 2, 1], rates = [1, 1, 1, 1], padding = "VALID"} : (tensor<1x4x4x1xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// One round of the loop takes the best box; the number of rounds is a run-time size.
// CHECK: hlo.symbols = [{bound = 3 : i64, kind = "data"
// CHECK-LABEL: func.func @non_max_suppression
// CHECK: "hlo.while"
// CHECK: hlo.set_size
// CHECK: hlo.slice
graph.func @non_max_suppression(%b: tensor<8x4xf32> {graph.name = "b"}, %s: tensor<8xf32> {graph.name = "s"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %t, %tc = graph.node "Const"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "NonMaxSuppressionV3"(%b, %s, %n, %t, %t) {} : (tensor<8x4xf32>, tensor<8xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<*xi32>
  graph.return %y : tensor<*xi32>
}

// -----

// Between the smallest and the largest channel: no division by the value, which may be negative.
// CHECK-LABEL: func.func @adjust_hue
// CHECK: hlo.floor
// CHECK-NOT: hlo.divide
// CHECK: hlo.add [[LEAST:%[0-9]+]],
// CHECK-NEXT: hlo.multiply
// CHECK-NEXT: hlo.add [[LEAST]],
graph.func @adjust_hue(%x: tensor<2x2x3xf32> {graph.name = "x"}, %d: tensor<f32> {graph.name = "d"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "AdjustHue"(%x, %d) {} : (tensor<2x2x3xf32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
