// RUN: lathe-opt %s --split-input-file --verify-diagnostics

!q = !quant.uniform<i8:f32, 0.5>
func.func @quantize_c1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{C1: shapes differ: 'tensor<2x3xf32>' and 'tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01>>'}}
  %0 = hlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<3x2x!q>
  return
}

// -----

func.func @quantize_c2(%x: tensor<2xf16>) {
  // expected-error @+1 {{C2: expressed types differ: 'f16' and 'f32'}}
  %0 = hlo.uniform_quantize %x : (tensor<2xf16>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func private @requantize_c2(%x: tensor<2x!quant.uniform<i8:f64, 0.5>>) {
  // expected-error @+1 {{C2: expressed types differ: 'f64' and 'f32'}}
  %0 = hlo.uniform_quantize %x : (tensor<2x!quant.uniform<i8:f64, 0.5>>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func @quantize_c3_axis(%x: tensor<2xf32>) {
  // expected-error @+1 {{C3: quantized dimension 1 is not in [0, 1)}}
  %0 = hlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  return
}

// -----

func.func @quantize_c3_scales(%x: tensor<3xf32>) {
  // expected-error @+1 {{C3: quantized dimension 0 has 3 elements and 2 scales}}
  %0 = hlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @quantize_c4(%x: tensor<3xf64>, %y: tensor<3xf32>) {
  // expected-error @+1 {{C4: rounding UP expects f32 and storage that 32 bits with a sign hold, found 'f64' and 'i8'}}
  %0 = hlo.uniform_quantize %x, rounding = UP : (tensor<3xf64>) -> tensor<3x!quant.uniform<i8:f64, 0.5>>
  return
}

// -----

func.func @quantize_c4_storage(%x: tensor<3xf32>) {
  // expected-error @+1 {{C4: rounding UP expects f32 and storage that 32 bits with a sign hold, found 'f32' and 'ui32'}}
  %0 = hlo.uniform_quantize %x, rounding = UP : (tensor<3xf32>) -> tensor<3x!quant.uniform<u32:f32, 0.5>>
  return
}

// -----

func.func @quantize_integers(%x: tensor<3xi8>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of f16, bf16, f32, f64 or quantized numbers}}
  %0 = hlo.uniform_quantize %x : (tensor<3xi8>) -> tensor<3x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func @quantize_storage(%x: tensor<3xf32>) {
  // expected-error @+1 {{result #0 must be ranked tensor of quantized numbers}}
  %0 = hlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i7:f32, 0.5>>
  return
}

// -----

func.func private @dequantize_type(%x: tensor<3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{result type 'tensor<3xf64>' does not fit, expected 'tensor<3xf32>'}}
  %0 = hlo.uniform_dequantize %x : (tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<3xf64>
  return
}

// -----

func.func private @dequantize_c1(%x: tensor<3x!quant.uniform<i8:f32:2, {0.5}>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: quantized dimension 2 is not in [0, 1)}}
  %0 = hlo.uniform_dequantize %x : (tensor<3x!quant.uniform<i8:f32:2, {0.5}>>) -> tensor<3xf32>
  return
}

// -----

func.func private @bitcast_width(%x: tensor<3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{result type 'tensor<3xi4>' does not fit, expected 'tensor<3x2xi4>'}}
  %0 = hlo.bitcast_convert %x : (tensor<3x!quant.uniform<i8:f32, 0.5>>) -> tensor<3xi4>
  return
}

// -----

func.func @bitcast_c2(%x: tensor<3xi8>) {
  // expected-error @+1 {{C2: quantized dimension 0 has 3 elements and 1 scales}}
  %0 = hlo.bitcast_convert %x : (tensor<3xi8>) -> tensor<3x!quant.uniform<i8:f32:0, {0.5}>>
  return
}

// -----

!rows = !quant.uniform<i8:f32:0, {0.5, 0.25}>
func.func private @transpose_axis(%x: tensor<2x2x!rows>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{does not fit, expected 'tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01}>>'}}
  %0 = hlo.transpose %x, dims = [1, 0] : (tensor<2x2x!rows>) -> tensor<2x2x!rows>
  return
}

// -----

!rows = !quant.uniform<i8:f32:0, {0.5, 0.25}>
!columns = !quant.uniform<i8:f32:1, {0.5, 0.25}>
func.func private @reshape_axis(%x: tensor<2x2x!rows>) {
  // expected-error @+1 {{C2: quantized dimension 0 of 'tensor<2x2x!quant.uniform<i8:f32:0, {5.000000e-01,2.500000e-01}>>' is not dimension 1 of}}
  %0 = hlo.reshape %x : (tensor<2x2x!rows>) -> tensor<2x2x!columns>
  return
}

// -----

!rows = !quant.uniform<i8:f32:0, {0.5, 0.25}>
func.func private @broadcast_axis(%x: tensor<2x!rows>) {
  // expected-error @+1 {{element types differ}}
  %0 = hlo.broadcast_in_dim %x, dims = [1] : (tensor<2x!rows>) -> tensor<2x2x!rows>
  return
}

// -----

!rows = !quant.uniform<i8:f32:0, {0.5, 0.25}>
func.func private @reverse_per_axis(%x: tensor<2x!rows>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of a supported element type or quantized per tensor}}
  %0 = hlo.reverse %x, dims = [0] : (tensor<2x!rows>) -> tensor<2x!rows>
  return
}

// -----

!a = !quant.uniform<i8:f32, 0.5>
!b = !quant.uniform<i8:f32, 0.25>
func.func private @concatenate_types(%x: tensor<2x!a>, %y: tensor<2x!b>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C5: element types differ: '!quant.uniform<i8:f32, 5.000000e-01>' and '!quant.uniform<i8:f32, 2.500000e-01>'}}
  %0 = hlo.concatenate %x, %y dim = 0 : (tensor<2x!a>, tensor<2x!b>) -> tensor<4x!a>
  return
}

// -----

func.func private @arithmetic(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{'hlo.add' op operand #0 must be ranked tensor of a supported element type}}
  %0 = hlo.add %x, %x : tensor<2x!quant.uniform<i8:f32, 0.5>>
  return
}
