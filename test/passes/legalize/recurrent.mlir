// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// The first version has the gates in the order input, cell, forget, output, and adds the forget bias.
// CHECK-LABEL: func.func @cell
// CHECK: %[[G:.*]] = "hlo.dot_general"
// CHECK: %[[B:.*]] = hlo.add %[[G]]
// CHECK: hlo.slice %[[B]] {limit_indices = array<i64: 2, 3>
// CHECK: hlo.tanh
graph.func @cell(%x: tensor<2x4xf32> {graph.name = "x"}, %c: tensor<2x3xf32> {graph.name = "c"}, %h: tensor<2x3xf32> {graph.name = "h"}, %w: tensor<7x12xf32> {graph.name = "w"}, %p: tensor<3xf32> {graph.name = "p"}, %b: tensor<12xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %i, %cs, %f, %o, %ci, %co, %y, %yc = graph.node "LSTMBlockCell"(%x, %c, %h, %w, %p, %p, %p, %b) {forget_bias = 1.0 : f32, cell_clip = 3.0 : f32, use_peephole = false} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y : tensor<*xf32>
}

// -----

// A sequence is one loop over its steps; rows beyond the last step stay zero.
// CHECK-LABEL: func.func @sequence
// CHECK: hlo.check %{{.*}}, "seq_len_max exceeds the length of x"
// CHECK: "hlo.while"
graph.func @sequence(%n: tensor<i64> {graph.name = "n"}, %x: tensor<5x2x4xf32> {graph.name = "x"}, %c: tensor<2x3xf32> {graph.name = "c"}, %h: tensor<2x3xf32> {graph.name = "h"}, %w: tensor<7x12xf32> {graph.name = "w"}, %p: tensor<3xf32> {graph.name = "p"}, %b: tensor<12xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %i, %cs, %f, %o, %ci, %co, %y, %yc = graph.node "BlockLSTMV2"(%n, %x, %c, %h, %w, %p, %p, %p, %b) {cell_clip = 0.0 : f32, use_peephole = true} : (tensor<i64>, tensor<5x2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y : tensor<*xf32>
}
