// RUN: lathe-opt %s | lathe-opt --mlir-print-local-scope | FileCheck %s

!q = !quant.uniform<i8:f32, 5.000000e-01:3>
!narrow = !quant.uniform<i8<-127:127>:f32, 2.500000e-01>
!rows = !quant.uniform<u8:f32:0, {5.000000e-01:128, 1.000000e+00:3}>
!columns = !quant.uniform<u8:f32:1, {5.000000e-01:128, 1.000000e+00:3}>

// CHECK-LABEL: func @both_ways
func.func @both_ways(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: hlo.uniform_quantize %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %0 = hlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!q>
  // CHECK: hlo.uniform_quantize %{{.*}}, rounding = AWAY : (tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 2.500000e-01>>
  %1 = hlo.uniform_quantize %0, rounding = AWAY : (tensor<2x3x!q>) -> tensor<2x3x!narrow>
  // CHECK: hlo.uniform_dequantize %{{.*}} : (tensor<2x3x!quant.uniform<i8<-127:127>:f32, 2.500000e-01>>) -> tensor<2x3xf32>
  %2 = hlo.uniform_dequantize %1 : (tensor<2x3x!narrow>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// StableHLO's generic form under our name.
// CHECK-LABEL: func @generic
func.func @generic(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  // CHECK: hlo.uniform_quantize %{{.*}} : (tensor<2x3xf64>) -> tensor<2x3x!quant.uniform<u16:f64, 1.000000e-01:7>>
  %0 = "hlo.uniform_quantize"(%x) : (tensor<2x3xf64>) -> tensor<2x3x!quant.uniform<u16:f64, 0.1:7>>
  // CHECK: hlo.uniform_dequantize
  %1 = "hlo.uniform_dequantize"(%0) : (tensor<2x3x!quant.uniform<u16:f64, 0.1:7>>) -> tensor<2x3xf64>
  return %1 : tensor<2x3xf64>
}

// What moves elements moves quantized ones; axes go along.
// CHECK-LABEL: func private @moves
func.func private @moves(%x: tensor<2x3x!rows>, %y: tensor<4x!q>, %i: tensor<i32>, %p: tensor<i1>) -> tensor<8x!q> {
  // CHECK: hlo.transpose {{.*}} -> tensor<3x2x!quant.uniform<u8:f32:1, {5.000000e-01:128,1.000000e+00:3}>>
  %0 = hlo.transpose %x, dims = [1, 0] : (tensor<2x3x!rows>) -> tensor<3x2x!columns>
  // CHECK: hlo.reshape {{.*}} -> tensor<3x2x1x!quant.uniform<u8:f32:1, {5.000000e-01:128,1.000000e+00:3}>>
  %1 = hlo.reshape %0 : (tensor<3x2x!columns>) -> tensor<3x2x1x!columns>
  // CHECK: hlo.broadcast_in_dim {{.*}} -> tensor<5x2x3x!quant.uniform<u8:f32:1, {5.000000e-01:128,1.000000e+00:3}>>
  %2 = hlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<2x3x!rows>) -> tensor<5x2x3x!columns>
  // CHECK: hlo.bitcast_convert {{.*}} -> tensor<2x3xui8>
  %3 = hlo.bitcast_convert %x : (tensor<2x3x!rows>) -> tensor<2x3xui8>
  // CHECK: hlo.bitcast_convert {{.*}} -> tensor<!quant.uniform<i32:f32, 1.000000e+00>>
  %4 = hlo.bitcast_convert %y : (tensor<4x!q>) -> tensor<!quant.uniform<i32:f32, 1.0>>
  %5 = hlo.reshape %4 : (tensor<!quant.uniform<i32:f32, 1.0>>) -> tensor<1x!quant.uniform<i32:f32, 1.0>>
  %6 = hlo.maximum %y, %y : tensor<4x!q>
  %7 = hlo.select %p, %6, %y : (tensor<i1>, tensor<4x!q>, tensor<4x!q>) -> tensor<4x!q>
  %8 = hlo.compare LT, %7, %y : (tensor<4x!q>, tensor<4x!q>) -> tensor<4xi1>
  %9 = "hlo.dynamic_slice"(%7, %i) <{slice_sizes = array<i64: 2>}> : (tensor<4x!q>, tensor<i32>) -> tensor<2x!q>
  // CHECK: hlo.concatenate {{.*}} -> tensor<8x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %10 = hlo.concatenate %7, %9, %9 dim = 0 : (tensor<4x!q>, tensor<2x!q>, tensor<2x!q>) -> tensor<8x!q>
  return %10 : tensor<8x!q>
}
