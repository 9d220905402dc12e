// RUN: lathe-opt %s --tflite-raise-quantized --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --tflite-raise-quantized=io=int8 --split-input-file | FileCheck %s --check-prefix=IO
// RUN: lathe-opt %s --tflite-raise-quantized=io=uint8 --split-input-file | FileCheck %s --check-prefix=UNSIGNED

// A float input is quantized, weights have one scale a channel and the bias theirs times the input's, the clamp is an option.
// CHECK-LABEL: @dot
// CHECK: %[[Q:.*]] = "hlo.custom_call"(%arg0) {{.*}}"tfl.QUANTIZE"{{.*}} -> tensor<4x2x!quant.uniform<i8:f32, 1.000000e+00:-128>>
// CHECK: %[[W:.*]] = "hlo.custom_call"(%{{.*}}) <{backend_config = {dimension = 0 : i64, scales = array<f64: 1.000000e+00, 2.000000e+00>}, call_target_name = "tfl.CONSTANT"
// CHECK: %[[B:.*]] = "hlo.custom_call"({{.*}}"tfl.CONSTANT"{{.*}} -> tensor<2xi32>
// CHECK: %[[Y:.*]] = "hlo.custom_call"(%[[Q]], %[[W]], %[[B]]) {{.*}}activation = "RELU"{{.*}}"tfl.FULLY_CONNECTED"{{.*}} -> tensor<4x2x!quant.uniform<i8:f32, 2.000000e+00:-1>>
// CHECK: %[[R:.*]] = "hlo.custom_call"(%[[Y]]) {{.*}}"tfl.DEQUANTIZE"{{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: return %[[R]]

// IO-LABEL: func.func @dot(%arg0: tensor<4x2x!quant.uniform<i8:f32, 1.000000e+00:-128>>) -> tensor<4x2x!quant.uniform<i8:f32, 2.000000e+00:-1>>
// IO-NOT: QUANTIZE
// IO: return
// UNSIGNED-LABEL: func.func @dot(%arg0: tensor<4x2x!quant.uniform<u8:f32, 1.000000e+00>>) -> tensor<4x2x!quant.uniform<u8:f32, 2.000000e+00:127>>
// UNSIGNED-COUNT-2: tfl.QUANTIZE
func.func @dot(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 254.0], [-127.0, 4.0]]> : tensor<2x2xf32>
  %zero = hlo.constant dense<0.0> : tensor<4x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %r = "hlo.maximum"(%d, %zero) {hlo.quantize = "dot", hlo.quantized = [!quant.uniform<i8:f32, 1.0:-128>, !quant.uniform<i8:f32, 2.0:-1>, !quant.uniform<i8<-127:127>:f32:1, {1.0,2.0}>]} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

// A function that a kernel has the very table of, and one that is looked up; what is between stays in integers.
// CHECK-LABEL: @tables
// CHECK: "tfl.LOGISTIC"
// CHECK-NOT: tfl.DEQUANTIZE
// CHECK: "tfl.CAST"{{.*}}i8:f32{{.*}} -> tensor<8xi32>
// CHECK: "tfl.ADD"
// CHECK: {{.*}}"tfl.GATHER"{{.*}} -> tensor<8x!quant.uniform<i8:f32, 5.000000e-01>>
func.func @tables(%x: tensor<8xf32>) -> tensor<8xf32> {
  %l = "hlo.logistic"(%x) {hlo.quantize = "table", hlo.quantized = [!quant.uniform<i8:f32, 0.0625>, !quant.uniform<i8:f32, 0.00390625:-128>]} : (tensor<8xf32>) -> tensor<8xf32>
  %s = "hlo.reshape"(%l) {hlo.quantize = "move", hlo.quantized = [!quant.uniform<i8:f32, 0.00390625:-128>, !quant.uniform<i8:f32, 0.00390625:-128>]} : (tensor<8xf32>) -> tensor<8xf32>
  %c = "hlo.cosine"(%s) {hlo.quantize = "table", hlo.quantized = [!quant.uniform<i8:f32, 0.00390625:-128>, !quant.uniform<i8:f32, 0.5>]} : (tensor<8xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
