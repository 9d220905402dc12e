// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Bytes are multiplied as bytes, whatever their sign, so that the CPU's instructions for them serve; sums have 32 bits.
// CHECK-LABEL: func.func @conv
// CHECK: "hlo.convolution"
// CHECK-SAME: (tensor<1x8x8x4xui8>, tensor<3x3x4x5xi8>) -> tensor<1x8x8x5xi32>
graph.func @conv(%x: tensor<1x8x8x4xui8> {graph.name = "x"}, %f: tensor<3x3x4x5xi8> {graph.name = "f"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<f32> {graph.name = "high"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %y:3, %c = graph.node "QuantizedConv2DPerChannel"(%x, %f, %low, %high, %low, %high) {padding = "SAME", strides = [1, 1, 1, 1], dilations = [1, 1, 1, 1], out_type = i32} : (tensor<1x8x8x4xui8>, tensor<3x3x4x5xi8>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xi32>
}

// -----

// CHECK-LABEL: func.func @product
// CHECK: "hlo.dot_general"
// CHECK-SAME: (tensor<3x7xui8>, tensor<7x5xi8>) -> tensor<3x5xi32>
graph.func @product(%x: tensor<3x7xui8> {graph.name = "x"}, %w: tensor<7x5xi8> {graph.name = "w"}, %b: tensor<5xf32> {graph.name = "b"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<f32> {graph.name = "high"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %y:3, %c = graph.node "QuantizedMatMulWithBias"(%x, %w, %b, %low, %high, %low, %high) {input_quant_mode = "SCALED", transpose_a = false, transpose_b = false, Toutput = i32} : (tensor<3x7xui8>, tensor<7x5xi8>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xi32>
}
