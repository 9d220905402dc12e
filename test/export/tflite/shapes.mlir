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

// -----

// The place of the largest number: what counts may be a constant that folding has made.
// CHECK-LABEL: @place
// CHECK: tfl.ARG_MAX{{.*}} : (tensor<2x4xf32>, tensor<i32>) -> tensor<2xi32>
// CHECK: tfl.ARG_MAX{{.*}} : (tensor<2x4xf32>, tensor<i32>) -> tensor<4xi64>
func.func @place(%x: tensor<2x4xf32>) -> (tensor<2xi32>, tensor<4xi64>) {
  %low = hlo.constant dense<0xFF800000> : tensor<f32>
  %none = hlo.constant dense<0> : tensor<i32>
  %none64 = hlo.constant dense<0> : tensor<i64>
  %columns = hlo.constant dense<[[0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<2x4xi32>
  %rows = hlo.constant dense<[[0, 0, 0, 0], [1, 1, 1, 1]]> : tensor<2x4xi64>
  %0:2 = "hlo.reduce"(%x, %columns, %low, %none) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %ai: tensor<i32>, %b: tensor<f32>, %bi: tensor<i32>):
    %1 = hlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = hlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = hlo.compare LE, %ai, %bi : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = hlo.and %2, %3 : tensor<i1>
    %5 = hlo.or %1, %4 : tensor<i1>
    %6 = hlo.select %5, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = hlo.select %5, %ai, %bi : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    hlo.return %6, %7 : tensor<f32>, tensor<i32>
  }) : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  %8:2 = "hlo.reduce"(%x, %rows, %low, %none64) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %ai: tensor<i64>, %b: tensor<f32>, %bi: tensor<i64>):
    %1 = hlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = hlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = hlo.compare LE, %ai, %bi : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %4 = hlo.and %2, %3 : tensor<i1>
    %5 = hlo.or %1, %4 : tensor<i1>
    %6 = hlo.select %5, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = hlo.select %5, %ai, %bi : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    hlo.return %6, %7 : tensor<f32>, tensor<i64>
  }) : (tensor<2x4xf32>, tensor<2x4xi64>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xi64>)
  return %0#1, %8#1 : tensor<2xi32>, tensor<4xi64>
}
