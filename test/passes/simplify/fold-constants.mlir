// RUN: lathe-opt %s --hlo-fold-constants | FileCheck %s

// Through the broadcast, which itself would be larger than what it says.
// CHECK-LABEL: @scaled_weights
// CHECK: %[[C:.*]] = hlo.constant dense<{{\[\[}}2.0{{.*}}, 6.0{{.*}}], [6.0{{.*}}, 1.2{{.*}}]]>
// CHECK: return %[[C]]
func.func @scaled_weights() -> tensor<2x2xf32> {
  %w = hlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = hlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %b = hlo.broadcast_in_dim %s, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %m = hlo.multiply %w, %b : tensor<2x2xf32>
  return %m : tensor<2x2xf32>
}

// Splats stay splats however large; a large broadcast or iota stays an op.
// CHECK-LABEL: @growth
// CHECK-DAG: hlo.constant dense<5.000000e+00> : tensor<1000000x1000000xf32>
// CHECK-DAG: hlo.broadcast_in_dim
// CHECK-DAG: hlo.iota
func.func @growth() -> (tensor<1000000x1000000xf32>, tensor<4096x4xf32>, tensor<65536xi32>) {
  %x = hlo.constant dense<2.0> : tensor<1000000x1000000xf32>
  %y = hlo.constant dense<3.0> : tensor<1000000x1000000xf32>
  %z = hlo.add %x, %y : tensor<1000000x1000000xf32>
  %s = hlo.constant dense<[2.0, 3.0, 4.0, 5.0]> : tensor<4xf32>
  %b = hlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<4096x4xf32>
  %i = hlo.iota dim = 0 : tensor<65536xi32>
  return %z, %b, %i : tensor<1000000x1000000xf32>, tensor<4096x4xf32>, tensor<65536xi32>
}

// A sum over an iota is small again.
// CHECK-LABEL: @through_iota
// CHECK: %[[C:.*]] = hlo.constant dense<4950> : tensor<i32>
// CHECK-NEXT: return %[[C]]
func.func @through_iota() -> tensor<i32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %i = hlo.iota dim = 0 : tensor<100xi32>
  %s = "hlo.reduce"(%i, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %t = hlo.add %a, %b : tensor<i32>
    hlo.return %t : tensor<i32>
  }) {dimensions = array<i64: 0>} : (tensor<100xi32>, tensor<i32>) -> tensor<i32>
  return %s : tensor<i32>
}
