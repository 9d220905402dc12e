// RUN: lathe-opt %s | lathe-opt --mlir-print-local-scope | FileCheck %s

// Types with symbolic sizes, one-type and functional forms.
module attributes {hlo.symbols = [{name = "batch", bound = -1 : i64, kind = "input"}]} {
// CHECK-LABEL: func @elementwise
func.func @elementwise(%a: tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, %p: tensor<i1>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>> {
  // CHECK: hlo.add %{{.*}}, %{{.*}} : tensor<?x8xf32, {{.*}}>
  %0 = hlo.add %a, %a : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  // CHECK: hlo.compare LT, %{{.*}}, %{{.*}} : (tensor<?x8xf32
  %1 = hlo.compare LT, %0, %a : (tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x8xi1, affine_map<()[s0] -> (s0, 8)>>
  // CHECK: hlo.select
  %2 = hlo.select %1, %0, %a : (tensor<?x8xi1, affine_map<()[s0] -> (s0, 8)>>, tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  %3 = hlo.select %p, %2, %a : (tensor<i1>, tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>, tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
  // CHECK: hlo.size affine_map<()[s0] -> (s0 * 2)> : tensor<i64>
  %4 = hlo.size affine_map<()[s0] -> (s0 * 2)> : tensor<i64>
  // CHECK: hlo.constant dense<1.000000e+00> : tensor<2xf32>
  %5 = hlo.constant dense<1.0> : tensor<2xf32>
  // CHECK: hlo.reshape %{{.*}} -> tensor<?xf32, affine_map<()[s0] -> (s0 * 8)>>
  %6 = hlo.reshape %3 : (tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0 * 8)>>
  // CHECK: hlo.slice
  %7 = "hlo.slice"(%3) <{start_indices = array<i64: 0, 2>, limit_indices = array<i64: -9223372036854775808, 6>, strides = array<i64: 2, 1>}> : (tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x4xf32, affine_map<()[s0] -> (s0 ceildiv 2, 4)>>
  // CHECK: hlo.where
  %8 = hlo.where %1 {symbol = 1 : i64} : (tensor<?x8xi1, affine_map<()[s0] -> (s0, 8)>>) -> tensor<?x2xi64, affine_map<()[s0, s1] -> (s1, 2)>>
  return %3 : tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
}
}
