// RUN: lathe-opt %s --hlo-quantize-weights="least=4" --split-input-file | FileCheck %s
// RUN: lathe-opt %s --hlo-quantize-weights="kind=float16 least=4" --split-input-file | FileCheck %s --check-prefix=HALF
// RUN: lathe-opt %s --hlo-quantize-weights --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: not lathe-opt %s --hlo-quantize-weights="kind=int8" --split-input-file 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: expected kind dynamic or float16, found int8

// Rows of the input as i8, weights with a scale a column (2 / 127 and 1), sums in i32; the bias stays float.
// CHECK-LABEL: @dot
// CHECK: %[[Q:.*]] = hlo.convert %{{.*}} -> tensor<3x2xi8>
// CHECK: %[[W:.*]] = hlo.constant dense<{{\[\[}}64, 127], [-127, 2]]> : tensor<2x2xi8>
// CHECK: %[[S:.*]] = "hlo.dot_general"(%[[Q]], %[[W]]) {{.*}} -> tensor<3x2xi32>
// CHECK: hlo.subtract %[[S]]
// CHECK: hlo.constant dense<[0.0157480314, 1.000000e+00]> : tensor<2xf32>
// CHECK: %[[B:.*]] = hlo.broadcast_in_dim %{{.*}} : (tensor<2xf32>) -> tensor<3x2xf32>
// CHECK: return

// HALF-LABEL: @dot
// HALF: %[[C:.*]] = hlo.constant dense<{{.*}}> : tensor<2x2xf16>
// HALF: %[[K:.*]] = "hlo.optimization_barrier"(%[[C]])
// HALF: %[[F:.*]] = hlo.convert %[[K]] : (tensor<2x2xf16>) -> tensor<2x2xf32>
// HALF: "hlo.dot_general"(%arg0, %[[F]])

// SMALL-LABEL: @dot
// SMALL-NOT: i8
// SMALL: "hlo.dot_general"(%arg0, %{{.*}} -> tensor<3x2xf32>
func.func @dot(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = hlo.constant dense<[[1.0, 127.0], [-2.0, 2.0]]> : tensor<2x2xf32>
  %b = hlo.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %s = hlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
  %r = hlo.add %d, %s : tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// One scale an image; numbers that f16 does not hold stay.
// CHECK-LABEL: @convolution
// CHECK: dense<0xFF800000> : tensor<f32>
// CHECK: hlo.reduce{{.*}}
// CHECK: "hlo.convolution"({{.*}}: (tensor<2x4x4x1xi8>, tensor<2x2x1x1xi8>) -> tensor<2x3x3x1xi32>
// CHECK: hlo.subtract
// HALF-LABEL: @convolution
// HALF-NOT: f16
// HALF: "hlo.convolution"(%arg0
func.func @convolution(%x: tensor<2x4x4x1xf32>) -> tensor<2x3x3x1xf32> {
  %w = hlo.constant dense<[[[[1.0]], [[127000.0]]], [[[-2.0]], [[2.0]]]]> : tensor<2x2x1x1xf32>
  %0 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<2x3x3x1xf32>
  return %0 : tensor<2x3x3x1xf32>
}

// -----

// Each image is padded with its own zero point; one alone has one for the pad.
// CHECK-LABEL: @padded
// CHECK-DAG: %[[IN:.*]] = hlo.pad {{.*}}tensor<1x4x4x1xi8>{{.*}} -> tensor<1x5x5x1xi8>
// CHECK-DAG: %[[X:.*]] = hlo.pad {{.*}}tensor<2x4x4x1xi8>{{.*}} -> tensor<2x5x5x1xi8>
// CHECK: %[[P:.*]] = hlo.select {{.*}}, %[[X]], {{.*}}tensor<2x5x5x1xi8>
// CHECK: "hlo.convolution"(%[[P]], {{.*}}: (tensor<2x5x5x1xi8>, tensor<2x2x1x1xi8>) -> tensor<2x4x4x1xi32>
// CHECK-LABEL: @one
// CHECK: %[[Z:.*]] = hlo.convert {{.*}} -> tensor<i8>
// CHECK: %[[X:.*]] = hlo.pad {{.*}}%[[Z]]{{.*}} -> tensor<1x5x5x1xi8>
// CHECK-NOT: hlo.select
// CHECK: "hlo.convolution"(%[[X]], {{.*}}: (tensor<1x5x5x1xi8>, tensor<2x2x1x1xi8>) -> tensor<1x4x4x1xi32>
func.func @padded(%x: tensor<2x4x4x1xf32>) -> tensor<2x4x4x1xf32> {
  %w = hlo.constant dense<[[[[1.0]], [[127000.0]]], [[[-2.0]], [[2.0]]]]> : tensor<2x2x1x1xf32>
  %0 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<2x4x4x1xf32>
  return %0 : tensor<2x4x4x1xf32>
}
func.func @one(%x: tensor<1x4x4x1xf32>) -> tensor<1x4x4x1xf32> {
  %w = hlo.constant dense<[[[[1.0]], [[127000.0]]], [[[-2.0]], [[2.0]]]]> : tensor<2x2x1x1xf32>
  %0 = "hlo.convolution"(%x, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x4x4x1xf32>
  return %0 : tensor<1x4x4x1xf32>
}
