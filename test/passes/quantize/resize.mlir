// RUN: lathe-opt %s --hlo-quantize-select --split-input-file | FileCheck %s
// RUN: lathe-opt %s --tflite-raise --split-input-file | FileCheck %s --check-prefix=FILE

// A bilinear resize is one unit, though its columns and rows are gathered and weighed one after the other; its result has the input's scale.
// CHECK-LABEL: @both_ways
// CHECK: hlo.quantize = "convolution"
// CHECK-NOT: hlo.quantize
// CHECK: hlo.reshape {{.*}} {hlo.quantize = "resize"} {{.*}} -> tensor<1x4x4x3xf32>
// FILE-LABEL: @both_ways
// FILE: %[[SIZE:.*]] = hlo.constant dense<4> : tensor<2xi32>
// FILE: "hlo.custom_call"(%{{.*}}, %[[SIZE]]) {{.*}}align_corners = false, half_pixel_centers = true{{.*}}"tfl.RESIZE_BILINEAR"
// FILE-NOT: tfl.GATHER
func.func @both_ways(%image: tensor<1x2x2x3xf32>) -> tensor<1x4x4x3xf32> {
  %f = hlo.constant dense<2.0> : tensor<1x1x3x3xf32>
  %x = "hlo.convolution"(%image, %f) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x2x2x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x2x2x3xf32>
  %low = hlo.constant dense<[0, 0, 0, 1]> : tensor<4xi32>
  %high = hlo.constant dense<[0, 1, 1, 1]> : tensor<4xi32>
  %w0 = hlo.constant dense<[0.25, 0.75, 0.25, 0.75]> : tensor<4xf32>
  %w1 = hlo.constant dense<[0.75, 0.25, 0.75, 0.25]> : tensor<4xf32>
  %a = "hlo.gather"(%x, %low) <{dimension_numbers = #hlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2, 1, 3>}> : (tensor<1x2x2x3xf32>, tensor<4xi32>) -> tensor<1x2x4x3xf32>
  %b = "hlo.gather"(%x, %high) <{dimension_numbers = #hlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2, 1, 3>}> : (tensor<1x2x2x3xf32>, tensor<4xi32>) -> tensor<1x2x4x3xf32>
  %a0 = hlo.broadcast_in_dim %w0, dims = [2] : (tensor<4xf32>) -> tensor<1x2x4x3xf32>
  %b0 = hlo.broadcast_in_dim %w1, dims = [2] : (tensor<4xf32>) -> tensor<1x2x4x3xf32>
  %a1 = hlo.multiply %a, %a0 : tensor<1x2x4x3xf32>
  %b1 = hlo.multiply %b, %b0 : tensor<1x2x4x3xf32>
  %columns = hlo.add %a1, %b1 : tensor<1x2x4x3xf32>
  %wide = hlo.reshape %columns : (tensor<1x2x4x3xf32>) -> tensor<1x2x12xf32>
  %c = "hlo.gather"(%wide, %low) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 12>}> : (tensor<1x2x12xf32>, tensor<4xi32>) -> tensor<1x4x12xf32>
  %d = "hlo.gather"(%wide, %high) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 12>}> : (tensor<1x2x12xf32>, tensor<4xi32>) -> tensor<1x4x12xf32>
  %c0 = hlo.broadcast_in_dim %w0, dims = [1] : (tensor<4xf32>) -> tensor<1x4x12xf32>
  %d0 = hlo.broadcast_in_dim %w1, dims = [1] : (tensor<4xf32>) -> tensor<1x4x12xf32>
  %c1 = hlo.multiply %c, %c0 : tensor<1x4x12xf32>
  %d1 = hlo.multiply %d0, %d : tensor<1x4x12xf32>
  %rows = hlo.add %d1, %c1 : tensor<1x4x12xf32>
  %y = hlo.reshape %rows : (tensor<1x4x12xf32>) -> tensor<1x4x4x3xf32>
  return %y : tensor<1x4x4x3xf32>
}

// -----

// Rows alone, from 3 to 2 with corners that stay where they are, their weights folded with the broadcast.
// CHECK-LABEL: @rows
// CHECK: hlo.add {{.*}} {hlo.quantize = "resize"}
// FILE-LABEL: @rows
// FILE: align_corners = true, half_pixel_centers = false{{.*}}"tfl.RESIZE_BILINEAR"
func.func @rows(%image: tensor<1x4x2x1xf32>) -> tensor<1x3x2x1xf32> {
  %f = hlo.constant dense<2.0> : tensor<1x1x1x1xf32>
  %x = "hlo.convolution"(%image, %f) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x2x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x4x2x1xf32>
  %low = hlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %high = hlo.constant dense<[0, 2, 3]> : tensor<3xi32>
  %w0 = hlo.constant dense<[[[[1.0], [1.0]], [[0.5], [0.5]], [[1.0], [1.0]]]]> : tensor<1x3x2x1xf32>
  %w1 = hlo.constant dense<[[[[0.0], [0.0]], [[0.5], [0.5]], [[0.0], [0.0]]]]> : tensor<1x3x2x1xf32>
  %a = "hlo.gather"(%x, %low) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %b = "hlo.gather"(%x, %high) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %a1 = hlo.multiply %a, %w0 : tensor<1x3x2x1xf32>
  %b1 = hlo.multiply %b, %w1 : tensor<1x3x2x1xf32>
  %y = hlo.add %a1, %b1 : tensor<1x3x2x1xf32>
  return %y : tensor<1x3x2x1xf32>
}

// -----

// Places and weights of no resize: its parts are quantized one by one.
// CHECK-LABEL: @other_weights
// CHECK-NOT: "resize"
// FILE-LABEL: @other_weights
// FILE-NOT: RESIZE_BILINEAR
// FILE: tfl.GATHER
func.func @other_weights(%image: tensor<1x4x2x1xf32>) -> tensor<1x3x2x1xf32> {
  %f = hlo.constant dense<2.0> : tensor<1x1x1x1xf32>
  %x = "hlo.convolution"(%image, %f) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x4x2x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x4x2x1xf32>
  %low = hlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %high = hlo.constant dense<[0, 2, 3]> : tensor<3xi32>
  %w0 = hlo.constant dense<[[[[1.0], [1.0]], [[0.75], [0.75]], [[1.0], [1.0]]]]> : tensor<1x3x2x1xf32>
  %w1 = hlo.constant dense<[[[[0.0], [0.0]], [[0.25], [0.25]], [[0.0], [0.0]]]]> : tensor<1x3x2x1xf32>
  %a = "hlo.gather"(%x, %low) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %b = "hlo.gather"(%x, %high) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %a1 = hlo.multiply %a, %w0 : tensor<1x3x2x1xf32>
  %b1 = hlo.multiply %b, %w1 : tensor<1x3x2x1xf32>
  %y = hlo.add %a1, %b1 : tensor<1x3x2x1xf32>
  return %y : tensor<1x3x2x1xf32>
}
