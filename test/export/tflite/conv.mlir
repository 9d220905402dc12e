// RUN: lathe-opt %s --lathe-tflite --split-input-file | FileCheck %s

// A bias and a clamp become parts of the convolution; the filter goes from [h, w, in, out] to [out, h, w, in].
// CHECK-LABEL: @fused
// CHECK-SAME: %[[X:.*]]: tensor<?x8x8x3xf32
// CHECK-DAG: %[[W:.*]] = hlo.constant dense<{{.*}}> : tensor<2x1x1x3xf32>
// CHECK-DAG: %[[B:.*]] = hlo.constant dense<[5.000000e-01, 1.000000e+00]>
// CHECK: "hlo.custom_call"(%[[X]], %[[W]], %[[B]])
// CHECK-SAME: activation = "RELU6"
// CHECK-SAME: padding = "VALID"
// CHECK-SAME: call_target_name = "tfl.CONV_2D"
// CHECK-NEXT: return
func.func @fused(%x: tensor<?x8x8x3xf32, affine_map<()[s0] -> (s0, 8, 8, 3)>>) -> tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>> {
  %w = hlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]]> : tensor<1x1x3x2xf32>
  %b = hlo.constant dense<[0.5, 1.0]> : tensor<2xf32>
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %six = hlo.constant dense<6.0> : tensor<f32>
  %0 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<?x8x8x3xf32, affine_map<()[s0] -> (s0, 8, 8, 3)>>, tensor<1x1x3x2xf32>) -> tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %1 = hlo.broadcast_in_dim %b, dims = [3] : (tensor<2xf32>) -> tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %2 = hlo.add %0, %1 : tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %3 = hlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %4 = hlo.maximum %2, %3 : tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %5 = hlo.broadcast_in_dim %six, dims = [] : (tensor<f32>) -> tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  %6 = hlo.minimum %4, %5 : tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
  return %6 : tensor<?x8x8x2xf32, affine_map<()[s0] -> (s0, 8, 8, 2)>>
}

// -----

// Stride 2 over 7 elements: 1 before and 1 after is SAME, 2 before is no padding that the format names.
// CHECK-LABEL: @padding
// CHECK: padding = "SAME"{{.*}}tfl.CONV_2D
// CHECK: tfl.PAD"
// CHECK: padding = "VALID"{{.*}}tfl.CONV_2D
func.func @padding(%x: tensor<1x7x7x1xf32>, %w: tensor<3x3x1x4xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) {
  %0 = "hlo.convolution"(%x, %w) {window_strides = array<i64: 2, 2>, padding = dense<1> : tensor<2x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x7x7x1xf32>, tensor<3x3x1x4xf32>) -> tensor<1x4x4x4xf32>
  %1 = "hlo.convolution"(%x, %w) {window_strides = array<i64: 2, 2>, padding = dense<[[2, 1], [2, 1]]> : tensor<2x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x7x7x1xf32>, tensor<3x3x1x4xf32>) -> tensor<1x4x4x4xf32>
  return %1, %0 : tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>
}

// -----

// One filter a channel.
// CHECK-LABEL: @depthwise
// CHECK: depth_multiplier = 2
// CHECK-SAME: tfl.DEPTHWISE_CONV_2D
// CHECK-SAME: tensor<1x3x3x8xf32>
func.func @depthwise(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x1x8xf32>) -> tensor<1x6x6x8xf32> {
  %0 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 4 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x1x8xf32>) -> tensor<1x6x6x8xf32>
  return %0 : tensor<1x6x6x8xf32>
}
