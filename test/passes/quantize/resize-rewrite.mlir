// RUN: lathe-opt %s --hlo-quantize-rewrite | FileCheck %s

// Weights of 1/1024 each way, halves rounded away from 0; the zero point needs no step of its own.
// CHECK-LABEL: @integers
// CHECK-DAG: hlo.constant dense<[0, 512, 0]> : tensor<3xi32>
// CHECK-DAG: hlo.constant dense<524288>
// CHECK-DAG: hlo.constant dense<1048576>
// CHECK: hlo.divide {{.*}} : tensor<1x3x2x1xi32>
// CHECK: hlo.convert {{.*}} -> tensor<1x3x2x1xi8>
// CHECK-NOT: hlo.gather{{.*}}xf32>
func.func @integers(%x: tensor<1x4x2x1xf32>) -> tensor<1x3x2x1xf32> {
  %low = hlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %high = hlo.constant dense<[0, 2, 3]> : tensor<3xi32>
  %w0 = hlo.constant dense<[[[[1.0], [1.0]], [[0.5], [0.5]], [[1.0], [1.0]]]]> : tensor<1x3x2x1xf32>
  %w1 = hlo.constant dense<[[[[0.0], [0.0]], [[0.5], [0.5]], [[0.0], [0.0]]]]> : tensor<1x3x2x1xf32>
  %a = "hlo.gather"(%x, %low) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %b = "hlo.gather"(%x, %high) <{dimension_numbers = #hlo.gather<offset_dims = [0, 2, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 1>}> : (tensor<1x4x2x1xf32>, tensor<3xi32>) -> tensor<1x3x2x1xf32>
  %a1 = hlo.multiply %a, %w0 : tensor<1x3x2x1xf32>
  %b1 = hlo.multiply %b, %w1 : tensor<1x3x2x1xf32>
  %y = hlo.add %a1, %b1 {hlo.quantize = "resize", hlo.quantized = [!quant.uniform<i8:f32, 0.5:3>, !quant.uniform<i8:f32, 0.5:3>]} : tensor<1x3x2x1xf32>
  return %y : tensor<1x3x2x1xf32>
}
