// RUN: lathe-opt %s --hlo-lower-quantized --mlir-print-local-scope | FileCheck %s
// RUN: lathe-opt %s --lathe-simplify | FileCheck %s --check-prefix=WHOLE

// WHOLE-NOT: quant

!q = !quant.uniform<i8:f32, 5.000000e-01:3>
!u = !quant.uniform<u8:f32, 1.000000e-01>
!rows = !quant.uniform<i8:f32:0, {5.000000e-01:3, 2.500000e-01}>

// StableHLO's rounding, of numbers that are clamped before.
// CHECK-LABEL: func @nearest
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>) -> tensor<4xi8>
// CHECK: %[[S:.*]] = hlo.constant dense<5.000000e-01> : tensor<4xf32>
// CHECK: %[[D:.*]] = hlo.divide %[[X]], %[[S]] : tensor<4xf32>
// CHECK: %[[Z:.*]] = hlo.constant dense<3.000000e+00> : tensor<4xf32>
// CHECK: %[[A:.*]] = hlo.add %[[D]], %[[Z]] : tensor<4xf32>
// CHECK: hlo.maximum %[[A]]
// CHECK: hlo.minimum
// CHECK: %[[R:.*]] = hlo.round_nearest_even
// CHECK: %[[I:.*]] = hlo.convert %[[R]] : (tensor<4xf32>) -> tensor<4xi8>
// CHECK-NEXT: return %[[I]]
func.func @nearest(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = hlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!q>
  %1 = hlo.bitcast_convert %0 : (tensor<4x!q>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// TensorFlow Lite's rounding: the zero point is added to integers.
// CHECK-LABEL: func @away
// CHECK: hlo.round_nearest_afz
// CHECK: hlo.convert {{.*}} -> tensor<4xi32>
// CHECK: hlo.add {{.*}} : tensor<4xi32>
// CHECK: hlo.convert {{.*}} -> tensor<4xi8>
func.func @away(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = hlo.uniform_quantize %x, rounding = AWAY : (tensor<4xf32>) -> tensor<4x!q>
  %1 = hlo.bitcast_convert %0 : (tensor<4x!q>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// TensorFlow's: a product with the inverse.
// CHECK-LABEL: func @up
// CHECK: hlo.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK: hlo.multiply
// CHECK: hlo.floor
// CHECK: hlo.compare GE
func.func @up(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = hlo.uniform_quantize %x, rounding = UP : (tensor<4xf32>) -> tensor<4x!q>
  %1 = hlo.bitcast_convert %0 : (tensor<4x!q>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// Scales along an axis; sizes that the run knows.
// CHECK-LABEL: func @per_axis
// CHECK: hlo.convert {{.*}} -> tensor<2x?xi32
// CHECK: hlo.constant dense<[3, 0]> : tensor<2xi32>
// CHECK: hlo.broadcast_in_dim {{.*}}, dims = [0]
// CHECK: hlo.subtract
// CHECK: hlo.convert {{.*}} -> tensor<2x?xf32
// CHECK: hlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
// CHECK: hlo.multiply
func.func @per_axis(%i: tensor<2x?xi8, affine_map<()[s0] -> (2, s0)>>) -> tensor<2x?xf32, affine_map<()[s0] -> (2, s0)>> {
  %0 = hlo.bitcast_convert %i : (tensor<2x?xi8, affine_map<()[s0] -> (2, s0)>>) -> tensor<2x?x!rows, affine_map<()[s0] -> (2, s0)>>
  %1 = hlo.uniform_dequantize %0 : (tensor<2x?x!rows, affine_map<()[s0] -> (2, s0)>>) -> tensor<2x?xf32, affine_map<()[s0] -> (2, s0)>>
  return %1 : tensor<2x?xf32, affine_map<()[s0] -> (2, s0)>>
}

// Values of private functions and of regions; what moves and compares works on integers, with the sign that they have.
// CHECK-LABEL: func private @callee
// CHECK-SAME: (%{{.*}}: tensor<4xui8>) -> tensor<2x2xui8>
// CHECK: hlo.maximum {{.*}} : tensor<4xui8>
// CHECK: hlo.reshape {{.*}} : (tensor<4xui8>) -> tensor<2x2xui8>
func.func private @callee(%q: tensor<4x!u>) -> tensor<2x2x!u> {
  %c = hlo.constant dense<200> : tensor<4xui8>
  %0 = hlo.bitcast_convert %c : (tensor<4xui8>) -> tensor<4x!u>
  %1 = hlo.maximum %q, %0 : tensor<4x!u>
  %2 = hlo.reshape %1 : (tensor<4x!u>) -> tensor<2x2x!u>
  return %2 : tensor<2x2x!u>
}
// CHECK-LABEL: func @caller
// CHECK: call @callee(%{{.*}}) : (tensor<4xui8>) -> tensor<2x2xui8>
// CHECK: "hlo.if"
// CHECK: hlo.transpose {{.*}} -> tensor<2x2xui8>
// CHECK: }) : (tensor<i1>) -> tensor<2x2xui8>
func.func @caller(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<2x2xui8> {
  %0 = hlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!u>
  %1 = call @callee(%0) : (tensor<4x!u>) -> tensor<2x2x!u>
  %2 = "hlo.if"(%p) ({
    %t = hlo.transpose %1, dims = [1, 0] : (tensor<2x2x!u>) -> tensor<2x2x!u>
    hlo.return %t : tensor<2x2x!u>
  }, {
    hlo.return %1 : tensor<2x2x!u>
  }) : (tensor<i1>) -> tensor<2x2x!u>
  %3 = hlo.bitcast_convert %2 : (tensor<2x2x!u>) -> tensor<2x2xui8>
  return %3 : tensor<2x2xui8>
}

// Casts to other integers than the storage stay casts.
// CHECK-LABEL: func @other_bits
// CHECK: hlo.bitcast_convert {{.*}} : (tensor<4xi8>) -> tensor<4xui8>
// CHECK: hlo.bitcast_convert {{.*}} : (tensor<4xui8>) -> tensor<i32>
func.func @other_bits(%i: tensor<4xi8>) -> tensor<i32> {
  %0 = hlo.bitcast_convert %i : (tensor<4xi8>) -> tensor<4x!u>
  %1 = hlo.bitcast_convert %0 : (tensor<4x!u>) -> tensor<i32>
  return %1 : tensor<i32>
}
