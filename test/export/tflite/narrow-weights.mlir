// RUN: lathe-opt %s --lathe-tflite --tflite-narrow-weights="least=4" | FileCheck %s
// RUN: lathe-opt %s --lathe-tflite --tflite-narrow-weights="kind=float16 least=4" | FileCheck %s --check-prefix=HALF

// Weights of a hybrid operator: its input and bias stay float.
// CHECK-LABEL: @dot
// CHECK: %[[C:.*]] = hlo.constant dense<{{\[\[}}64, -127], [127, 2]]> : tensor<2x2xi8>
// CHECK: %[[W:.*]] = "hlo.custom_call"(%[[C]]) <{backend_config = {dimension = 0 : i64, scales = array<f64: 0.0157480314{{.*}}, 1.000000e+00>}, call_target_name = "tfl.CONSTANT"
// CHECK: "hlo.custom_call"(%arg0, %[[W]]) {{.*}}asymmetric_quantize_inputs = true{{.*}}"tfl.FULLY_CONNECTED"{{.*}}(tensor<3x2xf32>, tensor<2x2xi8>) -> tensor<3x2xf32>

// HALF-LABEL: @dot
// HALF: %[[C:.*]] = hlo.constant dense<{{.*}}> : tensor<2x2xf16>
// HALF: %[[W:.*]] = "hlo.custom_call"(%[[C]]) {{.*}}"tfl.DEQUANTIZE"{{.*}} -> tensor<2x2xf32>
// HALF: "hlo.custom_call"(%arg0, %[[W]]) {{.*}}"tfl.FULLY_CONNECTED"
func.func @dot(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = hlo.constant dense<[[1.0, 127.0], [-2.0, 2.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %d : tensor<3x2xf32>
}
