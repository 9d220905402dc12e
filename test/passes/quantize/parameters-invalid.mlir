// RUN: lathe-opt %s --split-input-file --hlo-quantize-parameters --verify-diagnostics

func.func @no_ranges(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<1.0> : tensor<2x2xf32>
  // expected-error @+2 {{node '' (dot): no range is known of its input 0}}
  // expected-error @+1 {{node '' (dot): no range is known of its result}}
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot"} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// -----

func.func @not_finite(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = hlo.constant dense<1.0> : tensor<2x2xf32>
  // expected-error @+1 {{node '' (dot): its result is not always finite over the calibration feeds}}
  %d = "hlo.dot_general"(%x, %w) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> {hlo.quantize = "dot", hlo.ranges = array<f64: 0.0, 1.0, 0xFFF0000000000000, 1.0>} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}
