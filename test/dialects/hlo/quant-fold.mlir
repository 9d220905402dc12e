// RUN: lathe-opt %s --canonicalize --mlir-print-local-scope | FileCheck %s

!q = !quant.uniform<i8:f32, 5.000000e-01:3>

// To a type from what it stands for, from itself, and to the bits and back.
// CHECK-LABEL: func private @identities
// CHECK-SAME: (%[[Q:.*]]: tensor<4x!quant{{.*}}, %[[I:.*]]: tensor<4xi8>)
// CHECK-NEXT: return %[[Q]], %[[Q]], %[[Q]], %[[I]]
func.func private @identities(%q: tensor<4x!q>, %i: tensor<4xi8>) -> (tensor<4x!q>, tensor<4x!q>, tensor<4x!q>, tensor<4xi8>) {
  %x = hlo.uniform_dequantize %q : (tensor<4x!q>) -> tensor<4xf32>
  %0 = hlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!q>
  %1 = hlo.uniform_quantize %x, rounding = AWAY : (tensor<4xf32>) -> tensor<4x!q>
  %2 = hlo.uniform_quantize %q, rounding = UP : (tensor<4x!q>) -> tensor<4x!q>
  %3 = hlo.bitcast_convert %i : (tensor<4xi8>) -> tensor<4x!q>
  %4 = hlo.bitcast_convert %3 : (tensor<4x!q>) -> tensor<4xi8>
  return %0, %1, %2, %4 : tensor<4x!q>, tensor<4x!q>, tensor<4x!q>, tensor<4xi8>
}

// Floats lose what they were; another scale and fewer bits of the float are another number; a narrow range clamps.
// CHECK-LABEL: func private @others
// CHECK: hlo.uniform_quantize
// CHECK: hlo.uniform_dequantize
// CHECK: hlo.uniform_dequantize
// CHECK: hlo.uniform_quantize
// CHECK: hlo.uniform_dequantize
// CHECK: hlo.uniform_quantize
// CHECK: hlo.uniform_quantize
func.func private @others(%x: tensor<4xf32>, %q: tensor<4x!q>, %b: tensor<4x!quant.uniform<i8:bf16, 0.5:3>>, %n: tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>)
    -> (tensor<4xf32>, tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<4x!quant.uniform<i8:bf16, 0.5:3>>, tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>) {
  %0 = hlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!q>
  %1 = hlo.uniform_dequantize %0 : (tensor<4x!q>) -> tensor<4xf32>
  %2 = hlo.uniform_dequantize %q : (tensor<4x!q>) -> tensor<4xf32>
  %3 = hlo.uniform_quantize %2 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  %4 = hlo.uniform_dequantize %b : (tensor<4x!quant.uniform<i8:bf16, 0.5:3>>) -> tensor<4xbf16>
  %5 = hlo.uniform_quantize %4 : (tensor<4xbf16>) -> tensor<4x!quant.uniform<i8:bf16, 0.5:3>>
  %6 = hlo.uniform_quantize %n : (tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>) -> tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>
  return %1, %3, %5, %6 : tensor<4xf32>, tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<4x!quant.uniform<i8:bf16, 0.5:3>>, tensor<4x!quant.uniform<i8<-127:127>:f32, 0.5>>
}

// (0.75, -1, 100) / 0.5 + 3 and back; constants of quantized type do not exist, so that these fold with the casts around them.
// CHECK-LABEL: func @constants
// CHECK-DAG: %[[I:.*]] = hlo.constant dense<[4, 1, 127]> : tensor<3xi8>
// CHECK-DAG: %[[X:.*]] = hlo.constant dense<[5.000000e-01, -1.000000e+00, 6.200000e+01]> : tensor<3xf32>
// CHECK: return %[[I]], %[[X]]
func.func @constants() -> (tensor<3xi8>, tensor<3xf32>) {
  %x = hlo.constant dense<[0.75, -1.0, 100.0]> : tensor<3xf32>
  %0 = hlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!q>
  %1 = hlo.bitcast_convert %0 : (tensor<3x!q>) -> tensor<3xi8>
  %2 = hlo.bitcast_convert %1 : (tensor<3xi8>) -> tensor<3x!q>
  %3 = hlo.uniform_dequantize %2 : (tensor<3x!q>) -> tensor<3xf32>
  return %1, %3 : tensor<3xi8>, tensor<3xf32>
}
