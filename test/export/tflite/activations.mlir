// RUN: lathe-opt %s --tflite-raise --split-input-file | FileCheck %s

// The shift by the maximum is part of the operator; another dimension than the last goes there and back.
// CHECK-LABEL: @softmax
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK: %[[T:.*]] = "hlo.custom_call"(%[[X]], {{.*}}tfl.TRANSPOSE
// CHECK: %[[S:.*]] = "hlo.custom_call"(%[[T]]) {{.*}}tfl.SOFTMAX
// CHECK: "hlo.custom_call"(%[[S]], {{.*}}tfl.TRANSPOSE
// CHECK-NEXT: return
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %lowest = hlo.constant dense<0xFF800000> : tensor<f32>
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %0 = "hlo.reduce"(%x, %lowest) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = hlo.maximum %a, %b : tensor<f32>
    hlo.return %m : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = hlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %2 = hlo.subtract %x, %1 : tensor<2x3xf32>
  %3 = hlo.exponential %2 : tensor<2x3xf32>
  %4 = "hlo.reduce"(%3, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  %5 = hlo.broadcast_in_dim %4, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %6 = hlo.divide %3, %5 : tensor<2x3xf32>
  return %6 : tensor<2x3xf32>
}

// -----

// x / 2 erfc(-x / sqrt 2), and the form with tanh; another factor is no GELU.
// CHECK-LABEL: @gelu
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-DAG: "hlo.custom_call"(%[[X]]) <{backend_config = {approximate = false}, call_target_name = "tfl.GELU"
// CHECK-DAG: "hlo.custom_call"(%[[X]]) <{backend_config = {approximate = true}, call_target_name = "tfl.GELU"
func.func @gelu(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %half = hlo.constant dense<0.5> : tensor<4xf32>
  %root = hlo.constant dense<0.707106769> : tensor<4xf32>
  %0 = hlo.multiply %half, %x : tensor<4xf32>
  %1 = hlo.negate %x : tensor<4xf32>
  %2 = hlo.multiply %1, %root : tensor<4xf32>
  %3 = hlo.erfc %2 : tensor<4xf32>
  %4 = hlo.multiply %0, %3 : tensor<4xf32>
  %one = hlo.constant dense<1.0> : tensor<4xf32>
  %c = hlo.constant dense<0.044715> : tensor<4xf32>
  %s = hlo.constant dense<0.797884583> : tensor<4xf32>
  %5 = hlo.multiply %x, %x : tensor<4xf32>
  %6 = hlo.multiply %5, %x : tensor<4xf32>
  %7 = hlo.multiply %6, %c : tensor<4xf32>
  %8 = hlo.add %x, %7 : tensor<4xf32>
  %9 = hlo.multiply %s, %8 : tensor<4xf32>
  %10 = hlo.tanh %9 : tensor<4xf32>
  %11 = hlo.add %10, %one : tensor<4xf32>
  %12 = hlo.multiply %0, %11 : tensor<4xf32>
  return %4, %12 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Slopes for each channel, stored in f16 or not; those that are computed are left as they are.
// CHECK-LABEL: @slopes
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x3xf32>
// CHECK-DAG: %[[A:[0-9]+]] = hlo.constant dense<[1.000000e-01, 2.000000e-01, 3.000000e-01]> : tensor<3xf32>
// CHECK-DAG: "hlo.custom_call"(%[[X]], %[[A]]) {{.*}}tfl.PRELU
// CHECK-DAG: %[[B:[0-9]+]] = "hlo.custom_call"(%{{.*}}tfl.DEQUANTIZE{{.*}}(tensor<3xf16>) -> tensor<3xf32>
// CHECK-DAG: "hlo.custom_call"(%[[X]], %[[B]]) {{.*}}tfl.PRELU
// CHECK-DAG: tfl.SELECT_V2
func.func @slopes(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<2x3xf32>
  %slopes = hlo.constant dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %halves = hlo.constant dense<[0.5, 0.25, 0.125]> : tensor<3xf16>
  %0 = hlo.compare GE, %x, %zero : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %1 = hlo.broadcast_in_dim %slopes, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %2 = hlo.multiply %1, %x : tensor<2x3xf32>
  %3 = hlo.select %0, %x, %2 : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = hlo.convert %halves : (tensor<3xf16>) -> tensor<3xf32>
  %5 = hlo.broadcast_in_dim %4, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %6 = hlo.multiply %5, %x : tensor<2x3xf32>
  %7 = hlo.select %0, %x, %6 : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = hlo.multiply %x, %y : tensor<2x3xf32>
  %9 = hlo.select %0, %x, %8 : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3, %7, %9 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @choices
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-DAG: "hlo.custom_call"(%[[X]]) {{.*}}alpha = 3.000000e-01{{.*}}tfl.LEAKY_RELU
// CHECK-DAG: "hlo.custom_call"(%[[X]]) {{.*}}tfl.ELU
// CHECK-DAG: "hlo.custom_call"(%[[X]]) {{.*}}tfl.HARD_SWISH
func.func @choices(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<4xf32>
  %slope = hlo.constant dense<0.3> : tensor<4xf32>
  %three = hlo.constant dense<3.0> : tensor<4xf32>
  %six = hlo.constant dense<6.0> : tensor<4xf32>
  %sixth = hlo.constant dense<0.166666672> : tensor<4xf32>
  %0 = hlo.compare GT, %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = hlo.multiply %x, %slope : tensor<4xf32>
  %2 = hlo.select %0, %x, %1 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = hlo.compare LT, %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = hlo.exponential_minus_one %x : tensor<4xf32>
  %5 = hlo.select %3, %4, %x : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = hlo.add %x, %three : tensor<4xf32>
  %7 = hlo.maximum %6, %zero : tensor<4xf32>
  %8 = hlo.minimum %7, %six : tensor<4xf32>
  %9 = hlo.multiply %x, %8 : tensor<4xf32>
  %10 = hlo.multiply %9, %sixth : tensor<4xf32>
  return %2, %5, %10 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
