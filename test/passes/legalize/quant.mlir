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

// -----

// With zeros that are not 0 too: filters become signed, padding is filled with the image's zero, sums over one operand take back the rest.
// CHECK-LABEL: func.func @offset_conv
// CHECK-DAG: hlo.xor
// CHECK-DAG: hlo.pad
// CHECK: "hlo.convolution"
// CHECK-NOT: padding
// CHECK-SAME: (tensor<1x10x10x4xui8>, tensor<3x3x4x5xi8>) -> tensor<1x8x8x5xi32>
// CHECK: "hlo.reduce_window"
// CHECK-NOT: "hlo.if"
graph.func @offset_conv(%x: tensor<1x8x8x4xui8> {graph.name = "x"}, %f: tensor<3x3x4x5xui8> {graph.name = "f"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %low, %c0 = graph.node "Const"() {value = dense<-1.0> : tensor<f32>} : () -> tensor<f32>
  %high, %c1 = graph.node "Const"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %y:3, %c = graph.node "QuantizedConv2D"(%x, %f, %low, %high, %low, %high) {padding = "SAME", strides = [1, 1, 1, 1], dilations = [1, 1, 1, 1], out_type = i32} : (tensor<1x8x8x4xui8>, tensor<3x3x4x5xui8>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xi32>
}

// -----

// Where only the run knows whether the zero is a byte, padding with it is one branch of two.
// CHECK-LABEL: func.func @fed_range
// CHECK: "hlo.if"
// CHECK: (tensor<1x10x10x4xui8>, tensor<3x3x4x5xi8>) -> tensor<1x8x8x5xi32>
// CHECK: (tensor<1x8x8x4xi32>, tensor<3x3x4x5xi32>) -> tensor<1x8x8x5xi32>
graph.func @fed_range(%x: tensor<1x8x8x4xui8> {graph.name = "x"}, %f: tensor<3x3x4x5xui8> {graph.name = "f"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<f32> {graph.name = "high"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %y:3, %c = graph.node "QuantizedConv2D"(%x, %f, %low, %high, %low, %high) {padding = "SAME", strides = [1, 1, 1, 1], dilations = [1, 1, 1, 1], out_type = i32} : (tensor<1x8x8x4xui8>, tensor<3x3x4x5xui8>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xi32>
}

// -----

// CHECK-LABEL: func.func @offset_product
// CHECK: "hlo.dot_general"
// CHECK-SAME: (tensor<3x7xui8>, tensor<7x5xi8>) -> tensor<3x5xi32>
graph.func @offset_product(%x: tensor<3x7xui8> {graph.name = "x"}, %w: tensor<7x5xui8> {graph.name = "w"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<f32> {graph.name = "high"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %y:3, %c = graph.node "QuantizedMatMul"(%x, %w, %low, %high, %low, %high) {transpose_a = false, transpose_b = false, Toutput = i32} : (tensor<3x7xui8>, tensor<7x5xui8>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xi32>
}

// -----

// Each entry of a hybrid convolution's batch has a zero of its own: floats are padded before they become bytes.
// CHECK-LABEL: func.func @hybrid
// CHECK: hlo.pad
// CHECK-SAME: f32
// CHECK: "hlo.convolution"
// CHECK-SAME: (tensor<2x3x8x7xi8>, tensor<4x3x3x3xi8>) -> tensor<2x4x6x5xi32>
graph.func @hybrid(%x: tensor<2x3x6x5xf32> {graph.name = "x"}, %w: tensor<4x3x3x3xi8> {graph.name = "w"}, %scale: tensor<f32> {graph.name = "scale"}, %zero: tensor<i32> {graph.name = "zero"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "UniformQuantizedConvolutionHybrid"(%x, %w, %scale, %zero) {padding = "SAME", window_strides = [], lhs_dilation = [], rhs_dilation = [], explicit_padding = [], Tout = f32} : (tensor<2x3x6x5xf32>, tensor<4x3x3x3xi8>, tensor<f32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Averages sum integers, and divide in floats.
// CHECK-LABEL: func.func @average
// CHECK: "hlo.reduce_window"
// CHECK: (tensor<1x6x6x8xi32>, tensor<i32>) -> tensor<1x5x5x8xi32>
// CHECK: hlo.convert {{.*}} : (tensor<1x5x5x8xi32>) -> tensor<1x5x5x8xf32>
// CHECK: hlo.round_nearest_even
graph.func @average(%x: tensor<1x6x6x8xui8> {graph.name = "x"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<f32> {graph.name = "high"}) -> (tensor<*xui8> {graph.name = "y"}) {
  %y:3, %c = graph.node "QuantizedAvgPool"(%x, %low, %high) {ksize = [1, 2, 2, 1], strides = [1, 1, 1, 1], padding = "VALID", T = ui8} : (tensor<1x6x6x8xui8>, tensor<f32>, tensor<f32>) -> (tensor<*xui8>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0 : tensor<*xui8>
}

// -----

// Constant scales are in the type; channels have theirs.
// CHECK-LABEL: func.func @uniform_constants
// CHECK: hlo.uniform_quantize %{{.*}}, rounding = UP : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:3>>
// CHECK: hlo.bitcast_convert {{.*}} -> tensor<2x3xi8>
// CHECK: hlo.bitcast_convert {{.*}} -> tensor<2x3x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01:1,1.000000e+00}>>
// CHECK: hlo.uniform_dequantize {{.*}} -> tensor<2x3xf32>
graph.func @uniform_constants(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<*xi8> {graph.name = "q"}, tensor<*xf32> {graph.name = "y"}) {
  %s, %c0 = graph.node "Const"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z, %c1 = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %ss, %c2 = graph.node "Const"() {value = dense<[0.5, 0.25, 1.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %zs, %c3 = graph.node "Const"() {value = dense<[0, 1, 0]> : tensor<3xi32>} : () -> tensor<3xi32>
  %q, %c4 = graph.node "UniformQuantize"(%x, %s, %z) {Tout = i8, quantization_axis = -1, quantization_min_val = -127, quantization_max_val = 127} : (tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<*xi8>
  %y, %c5 = graph.node "UniformDequantize"(%q, %ss, %zs) {Tout = f32, quantization_axis = 1, quantization_min_val = -128, quantization_max_val = 127} : (tensor<*xi8>, tensor<3xf32>, tensor<3xi32>) -> tensor<*xf32>
  graph.return %q, %y : tensor<*xi8>, tensor<*xf32>
}

// -----

// Scales that the run knows, and those that no type may have, stay arithmetic.
// CHECK-LABEL: func.func @uniform_others
// CHECK-NOT: uniform_
// CHECK: return
graph.func @uniform_others(%x: tensor<2x3xf32> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}) -> (tensor<*xi8> {graph.name = "q"}, tensor<*xi8> {graph.name = "r"}, tensor<*xf32> {graph.name = "y"}) {
  %z, %c1 = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %none, %c2 = graph.node "Const"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
  %one, %c3 = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %i, %c4 = graph.node "Const"() {value = dense<[7, 2147483647]> : tensor<2xi32>} : () -> tensor<2xi32>
  %q, %c5 = graph.node "UniformQuantize"(%x, %s, %z) {Tout = i8, quantization_axis = -1, quantization_min_val = -127, quantization_max_val = 127} : (tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<*xi8>
  %r, %c6 = graph.node "UniformQuantize"(%x, %none, %z) {Tout = i8, quantization_axis = -1, quantization_min_val = -127, quantization_max_val = 127} : (tensor<2x3xf32>, tensor<f32>, tensor<i32>) -> tensor<*xi8>
  %y, %c7 = graph.node "UniformDequantize"(%i, %one, %z) {Tout = f32, quantization_axis = -1, quantization_min_val = -128, quantization_max_val = 127} : (tensor<2xi32>, tensor<f32>, tensor<i32>) -> tensor<*xf32>
  graph.return %q, %r, %y : tensor<*xi8>, tensor<*xi8>, tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @dequantize_scaled
// CHECK: hlo.uniform_dequantize {{.*}} : (tensor<2x3x!quant.uniform<i8:f32, {{.*}}>>) -> tensor<2x3xf32>
// CHECK-NOT: uniform_
graph.func @dequantize_scaled(%q: tensor<2x3xi8> {graph.name = "q"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xf32> {graph.name = "z"}) {
  %low, %c0 = graph.node "Const"() {value = dense<-1.0> : tensor<f32>} : () -> tensor<f32>
  %high, %c1 = graph.node "Const"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %y, %c2 = graph.node "Dequantize"(%q, %low, %high) {mode = "SCALED", T = i8, dtype = f32, axis = -1, narrow_range = false} : (tensor<2x3xi8>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  %z, %c3 = graph.node "Dequantize"(%q, %low, %high) {mode = "MIN_COMBINED", T = i8, dtype = f32, axis = -1, narrow_range = false} : (tensor<2x3xi8>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y, %z : tensor<*xf32>, tensor<*xf32>
}
