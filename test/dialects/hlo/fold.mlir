// RUN: lathe-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @identities
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = hlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = hlo.reshape %0 : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = hlo.transpose %1, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = hlo.transpose %2, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %one = hlo.constant dense<1.0> : tensor<2x3xf32>
  %4 = hlo.multiply %x, %one : tensor<2x3xf32>
  %5 = hlo.negate %x : tensor<2x3xf32>
  %6 = hlo.negate %5 : tensor<2x3xf32>
  %7 = hlo.convert %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3, %4, %6, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// x + 0.0 is not x where x is -0.0.
// CHECK-LABEL: @zero_sign
// CHECK: hlo.add
func.func @zero_sign(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = hlo.constant dense<0.0> : tensor<2xf32>
  %0 = hlo.add %x, %zero : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @constants
// CHECK: %[[C:.*]] = hlo.constant dense<[4, 10, 18]> : tensor<3xi32>
// CHECK: return %[[C]]
func.func @constants() -> tensor<3xi32> {
  %a = hlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = hlo.constant dense<[4, 5, 6]> : tensor<3xi32>
  %0 = hlo.multiply %a, %b : tensor<3xi32>
  return %0 : tensor<3xi32>
}

// CHECK-LABEL: @sizes
// CHECK: hlo.constant dense<[4, 8]> : tensor<2xi64>
func.func @sizes() -> tensor<2xi64> {
  %0 = hlo.size affine_map<() -> (4, 8)> : tensor<2xi64>
  return %0 : tensor<2xi64>
}

// Too many elements to fold here: left to the simplification passes.
// CHECK-LABEL: @many
// CHECK: hlo.iota
func.func @many() -> tensor<100xi32> {
  %0 = hlo.iota dim = 0 : tensor<100xi32>
  return %0 : tensor<100xi32>
}

// CHECK-LABEL: @concatenated_shape
// CHECK: hlo.constant dense<[2, 3, 2]> : tensor<3xi32>
func.func @concatenated_shape() -> tensor<3xi32> {
  %a = hlo.constant dense<[2, 3, 4]> : tensor<3xi64>
  %0 = "hlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<3xi64>) -> tensor<2xi64>
  %c = hlo.constant dense<2> : tensor<i64>
  %1 = hlo.reshape %c : (tensor<i64>) -> tensor<1xi64>
  %2 = hlo.concatenate %0, %1 dim = 0 : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %3 = hlo.convert %2 : (tensor<3xi64>) -> tensor<3xi32>
  return %3 : tensor<3xi32>
}

// Folding must not run what can fail or has an effect.
// CHECK-LABEL: @checks_stay
// CHECK: hlo.check
func.func @checks_stay() {
  %f = hlo.constant dense<false> : tensor<i1>
  hlo.check %f, "no" : tensor<i1>
  return
}
