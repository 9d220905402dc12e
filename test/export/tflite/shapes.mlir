// RUN: lathe-opt %s --tflite-raise --split-input-file | FileCheck %s

// One unknown size is left to RESHAPE; several are computed from those of the arguments, once.
// CHECK-LABEL: @reshape
// CHECK-SAME: %[[X:.*]]: tensor<?x?x6xf32
// CHECK: hlo.constant dense<[-1, 6]>
// CHECK: %[[SHAPE:.*]] = "hlo.custom_call"(%[[X]]) {{.*}}tfl.SHAPE
// CHECK: %[[S0:.*]] = "hlo.custom_call"(%[[SHAPE]], {{.*}}tfl.STRIDED_SLICE
// CHECK: "hlo.custom_call"(%[[S0]], {{.*}}tfl.CONCATENATION
// CHECK: tfl.RESHAPE{{.*}} -> tensor<?x?x2x3xf32
func.func @reshape(%x: tensor<?x?x6xf32, affine_map<()[s0, s1] -> (s0, s1, 6)>>) -> (tensor<?x6xf32, affine_map<()[s0, s1] -> (s0 * s1, 6)>>, tensor<?x?x2x3xf32, affine_map<()[s0, s1] -> (s0, s1, 2, 3)>>) {
  %0 = hlo.reshape %x : (tensor<?x?x6xf32, affine_map<()[s0, s1] -> (s0, s1, 6)>>) -> tensor<?x6xf32, affine_map<()[s0, s1] -> (s0 * s1, 6)>>
  %1 = hlo.reshape %x : (tensor<?x?x6xf32, affine_map<()[s0, s1] -> (s0, s1, 6)>>) -> tensor<?x?x2x3xf32, affine_map<()[s0, s1] -> (s0, s1, 2, 3)>>
  return %0, %1 : tensor<?x6xf32, affine_map<()[s0, s1] -> (s0 * s1, 6)>>, tensor<?x?x2x3xf32, affine_map<()[s0, s1] -> (s0, s1, 2, 3)>>
}

// -----

// Broadcasts are left to the operator that reads them, where it knows so many dimensions.
// CHECK-LABEL: @broadcast
// CHECK-NOT: BROADCAST_TO
// CHECK: tfl.ADD{{.*}} : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK: tfl.BROADCAST_TO{{.*}} -> tensor<2x3x4x5x6xf32>
// CHECK: tfl.POW{{.*}} : (tensor<2x3x4x5x6xf32>, tensor<2x3x4x5x6xf32>)
func.func @broadcast(%x: tensor<2x3x4xf32>, %y: tensor<3xf32>, %z: tensor<2x3x4x5x6xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4x5x6xf32>) {
  %0 = hlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
  %1 = hlo.add %x, %0 : tensor<2x3x4xf32>
  %2 = hlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> tensor<2x3x4x5x6xf32>
  %3 = hlo.power %z, %2 : tensor<2x3x4x5x6xf32>
  return %1, %3 : tensor<2x3x4xf32>, tensor<2x3x4x5x6xf32>
}
