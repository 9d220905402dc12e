// RUN: lathe-opt %s --hlo-quantize-rewrite | FileCheck %s
// RUN: lathe-opt %s --hlo-quantize-rewrite=io=int8 | FileCheck %s --check-prefix=IO
// RUN: lathe-opt %s --hlo-quantize-rewrite=io=uint8 | FileCheck %s --check-prefix=UNSIGNED
// RUN: lathe-opt %s --hlo-quantize-rewrite=isolate | FileCheck %s --check-prefix=ALONE
// RUN: lathe-opt %s --hlo-quantize-rewrite=mix | FileCheck %s --check-prefix=MIXED

// The float input is quantized once, the product sums int8 in int32, what the zero point adds to each sum goes into the bias
// (-(-128) * (1 - 127) and -(-128) * (127 + 2)), the result is dequantized.
// CHECK-LABEL: @dot(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: hlo.round_nearest_afz
// CHECK: %[[Q:.*]] = hlo.convert %{{.*}} : (tensor<4x2xi32>) -> tensor<4x2xi8>
// CHECK: %[[W:.*]] = hlo.constant dense<{{\[\[}}1, 127], [-127, 2]]> : tensor<2x2xi8>
// CHECK: %[[S:.*]] = "hlo.dot_general"(%[[Q]], %[[W]]) {{.*}} -> tensor<4x2xi32>
// CHECK: %[[B:.*]] = hlo.constant dense<[-16128, 16512]> : tensor<2xi32>
// CHECK: %[[BB:.*]] = hlo.broadcast_in_dim %[[B]]
// CHECK: hlo.add %[[S]], %[[BB]] : tensor<4x2xi32>
// CHECK-NOT: hlo.dot_general
// CHECK: return %{{.*}} : tensor<4x2xf32>

// IO-LABEL: @dot(%arg0: tensor<4x2xi8> {hlo.quantized = !quant.uniform<i8:f32, 1.000000e+00:-128>}) -> (tensor<4x2xi8> {hlo.quantized = !quant.uniform<i8:f32, 2.000000e+00:-1>})
// IO-NOT: f32>
// IO: "hlo.dot_general"(%arg0,
// IO: return %{{.*}} : tensor<4x2xi8>

// UNSIGNED-LABEL: @dot(%arg0: tensor<4x2xui8> {hlo.quantized = !quant.uniform<u8:f32, 1.000000e+00>}) -> (tensor<4x2xui8> {hlo.quantized = !quant.uniform<u8:f32, 2.000000e+00:127>})
// UNSIGNED: return %{{.*}} : tensor<4x2xui8>

// The float product stays; three numbers tell how the integers differ.
// ALONE-LABEL: @dot
// ALONE: %[[F:.*]] = "hlo.dot_general"(%arg0, %{{.*}} -> tensor<4x2xf32>
// ALONE: "hlo.dot_general"({{.*}} -> tensor<4x2xi32>
// ALONE: return %[[F]], %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x2xf32>, tensor<f32>, tensor<f32>, tensor<f32>

// Of what the integers differ by, a share that the caller says comes to the float result.
// MIXED-LABEL: @dot(%arg0: tensor<4x2xf32>, %arg1: tensor<1xf32>) -> tensor<4x2xf32>
// MIXED: %[[F:.*]] = "hlo.dot_general"(%arg0, %{{.*}} -> tensor<4x2xf32>
// MIXED: "hlo.dot_general"({{.*}} -> tensor<4x2xi32>
// MIXED: %[[S:.*]] = hlo.reshape %arg1 : (tensor<1xf32>) -> tensor<f32>
// MIXED: %[[D:.*]] = hlo.subtract %{{.*}}, %[[F]]
// MIXED: %[[B:.*]] = hlo.broadcast_in_dim %[[S]]
// MIXED: %[[P:.*]] = hlo.multiply %[[D]], %[[B]]
// MIXED: %[[M:.*]] = hlo.add %[[F]], %[[P]]
// MIXED: return %[[M]] : tensor<4x2xf32>
func.func @dot(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 254.0], [-127.0, 4.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.quantized = [!quant.uniform<i8:f32, 1.0:-128>, !quant.uniform<i8:f32, 2.0:-1>, !quant.uniform<i8<-127:127>:f32:1, {1.0,2.0}>]} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}
