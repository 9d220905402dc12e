// RUN: lathe-opt %s --split-input-file --hlo-quantize-parameters | FileCheck %s
// RUN: lathe-opt %s --split-input-file --hlo-quantize-parameters=bits=16 | FileCheck %s --check-prefix=WIDE

// Inputs and results are widened to hold 0, the zero point is a whole number; weights have one scale a column.
// CHECK-LABEL: @dot
// CHECK: hlo.quantized = [!quant.uniform<i8:f32, 1.000000e+00:-128>, !quant.uniform<i8:f32, 2.000000e+00:-1>, !quant.uniform<i8<-127:127>:f32:1, {1.000000e+00,2.000000e+00}>]
// WIDE-LABEL: @dot
// WIDE: hlo.quantized = [!quant.uniform<i16:f32, {{0.00778[0-9]*}}>, !quant.uniform<i16:f32, {{0.00781[0-9]*}}>, !quant.uniform<i8<-127:127>:f32:1, {1.000000e+00,2.000000e+00}>]
func.func @dot(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[1.0, 254.0], [-127.0, 4.0]]> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.ranges = array<f64: 10.0, 255.0, -254.0, 256.0>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// -----

// Elements that only move keep their parameters: both sides have the range of both. The logistic function has its own.
// CHECK-LABEL: @shared
// CHECK: hlo.quantized = [!quant.uniform<i8:f32, 1.000000e+00:-128>, !quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8<-127:127>
// CHECK: hlo.reshape
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8:f32, 2.000000e+00:-128>]
// CHECK: hlo.logistic
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8:f32, 3.906250e-03:-128>]
func.func @shared(%x: tensor<4x2xf32>) -> tensor<8xf32> {
  %w = hlo.constant dense<1.0> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.ranges = array<f64: 0.0, 255.0, 0.0, 510.0>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %r = hlo.reshape %d {hlo.quantize = "move", hlo.ranges = array<f64: 0.0, 510.0, 0.0, 510.0>} : (tensor<4x2xf32>) -> tensor<8xf32>
  %l = hlo.logistic %r {hlo.quantize = "table", hlo.ranges = array<f64: 0.0, 510.0, 0.5, 1.0>} : tensor<8xf32>
  return %l : tensor<8xf32>
}

// -----

// Weights that are whole multiples of a step keep it (here 0.5, at most 41 of them; the finest step of that kind with at most 127 is 0.1666...),
// those that are not have a 127th of the largest.
// CHECK-LABEL: @steps
// CHECK: !quant.uniform<i8<-127:127>:f32:1, {0.1666666{{[0-9]*}},0.161417{{[0-9]*}}}>
func.func @steps(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<[[20.5, 20.5], [-3.5, 3.3], [1.0, 1.0], [7.5, 7.5], [-20.0, 1.1], [0.5, 0.7], [4.5, 4.5], [6.0, 6.0]]> : tensor<8x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.ranges = array<f64: 0.0, 255.0, 0.0, 255.0>} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// -----

// A range that the model says stands above what was observed, also where elements only move.
// CHECK-LABEL: @given
// CHECK-SAME: hlo.given_range
// CHECK: hlo.reshape
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 5.000000e-01:-128>, !quant.uniform<i8:f32, 5.000000e-01:-128>]
func.func @given(%x: tensor<4x2xf32> {hlo.given_range = array<f64: 0.0, 127.5>}) -> tensor<8xf32> {
  %r = hlo.reshape %x {hlo.quantize = "move", hlo.ranges = array<f64: -300.0, 510.0, -300.0, 510.0>} : (tensor<4x2xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// The logistic function's 1/256 from -128 on stays what it is behind a reshape, whatever was observed there; beside other numbers in one tensor
// it is taken with the parameters of all of that.
// CHECK-LABEL: @fixed
// CHECK: hlo.logistic
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8:f32, 3.906250e-03:-128>]
// CHECK: hlo.reshape
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 3.906250e-03:-128>, !quant.uniform<i8:f32, 3.906250e-03:-128>]
// CHECK: hlo.concatenate
// CHECK-SAME: hlo.quantized = [!quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8:f32, 2.000000e+00:-128>, !quant.uniform<i8:f32, 2.000000e+00:-128>]
func.func @fixed(%x: tensor<4x2xf32>) -> (tensor<8xf32>, tensor<8x2xf32>) {
  %w = hlo.constant dense<1.0> : tensor<2x2xf32>
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.ranges = array<f64: 0.0, 255.0, 0.0, 510.0>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %l = hlo.logistic %d {hlo.quantize = "table", hlo.ranges = array<f64: 0.0, 510.0, 0.5, 1.0>} : tensor<4x2xf32>
  %r = hlo.reshape %l {hlo.quantize = "move", hlo.ranges = array<f64: 0.5, 1.0, -0.1, 1.1>} : (tensor<4x2xf32>) -> tensor<8xf32>
  %c = hlo.concatenate %l, %d dim = 0 {hlo.quantize = "move", hlo.ranges = array<f64: 0.5, 1.0, 0.0, 510.0, 0.0, 510.0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %r, %c : tensor<8xf32>, tensor<8x2xf32>
}
