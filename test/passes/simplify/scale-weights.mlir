// RUN: lathe-opt %s --hlo-scale-weights --canonicalize --cse | FileCheck %s

// One image: its factors go into the weights.
// CHECK-LABEL: @one
// CHECK: %[[S:.*]] = hlo.broadcast_in_dim {{.*}}, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
// CHECK: %[[W:.*]] = hlo.multiply %arg2, %[[S]]
// CHECK: "hlo.dot_general"({{.*}}, %[[W]])
func.func @one(%x: tensor<1x8x8x8xf32>, %s: tensor<1x8xf32>, %w: tensor<8x4xf32>) -> tensor<64x4xf32> {
  %b = hlo.broadcast_in_dim %s, dims = [0, 3] : (tensor<1x8xf32>) -> tensor<1x8x8x8xf32>
  %m = hlo.multiply %x, %b : tensor<1x8x8x8xf32>
  %r = hlo.reshape %m : (tensor<1x8x8x8xf32>) -> tensor<64x8xf32>
  %d = "hlo.dot_general"(%r, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x8xf32>, tensor<8x4xf32>) -> tensor<64x4xf32>
  return %d : tensor<64x4xf32>
}

// Several images: a product each.
// CHECK-LABEL: @several
// CHECK: hlo.multiply {{.*}} : tensor<2x8x4xf32>
// CHECK: "hlo.dot_general"({{.*}}) {{.*}}lhs_batching_dimensions = [0]{{.*}} -> tensor<2x64x4xf32>
func.func @several(%x: tensor<2x8x8x8xf32>, %s: tensor<2x8xf32>, %w: tensor<8x4xf32>) -> tensor<128x4xf32> {
  %b = hlo.broadcast_in_dim %s, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x8x8x8xf32>
  %m = hlo.multiply %x, %b : tensor<2x8x8x8xf32>
  %r = hlo.reshape %m : (tensor<2x8x8x8xf32>) -> tensor<128x8xf32>
  %d = "hlo.dot_general"(%r, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<128x8xf32>, tensor<8x4xf32>) -> tensor<128x4xf32>
  return %d : tensor<128x4xf32>
}

// Factors along another dimension, and images with fewer pixels than outputs, stay.
// CHECK-LABEL: @stay
// CHECK: hlo.multiply {{.*}} : tensor<1x8x8x8xf32>
// CHECK: hlo.multiply {{.*}} : tensor<1x2x2x8xf32>
func.func @stay(%x: tensor<1x8x8x8xf32>, %y: tensor<1x2x2x8xf32>, %s: tensor<1x8xf32>, %w: tensor<8x4xf32>) -> (tensor<64x4xf32>, tensor<4x4xf32>) {
  %b = hlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<1x8xf32>) -> tensor<1x8x8x8xf32>
  %m = hlo.multiply %x, %b : tensor<1x8x8x8xf32>
  %r = hlo.reshape %m : (tensor<1x8x8x8xf32>) -> tensor<64x8xf32>
  %d = "hlo.dot_general"(%r, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x8xf32>, tensor<8x4xf32>) -> tensor<64x4xf32>
  %c = hlo.broadcast_in_dim %s, dims = [0, 3] : (tensor<1x8xf32>) -> tensor<1x2x2x8xf32>
  %n = hlo.multiply %y, %c : tensor<1x2x2x8xf32>
  %q = hlo.reshape %n : (tensor<1x2x2x8xf32>) -> tensor<4x8xf32>
  %e = "hlo.dot_general"(%q, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %d, %e : tensor<64x4xf32>, tensor<4x4xf32>
}
