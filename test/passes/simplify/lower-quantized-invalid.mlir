// RUN: lathe-opt %s --hlo-lower-quantized --split-input-file --verify-diagnostics

// expected-error @+1 {{'func.func' op takes or gives quantized numbers: only private functions may}}
func.func @boundary(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>) {
  return
}

// -----

func.func @other_op(%x: tensor<4xi8>) -> tensor<4xf32> {
  %0 = hlo.bitcast_convert %x : (tensor<4xi8>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  // expected-error @+1 {{'hlo.custom_call' op has no form for the integers of quantized numbers}}
  %1 = "hlo.custom_call"(%0) <{call_target_name = "f"}> : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @open_axis(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xi8, affine_map<()[s0] -> (s0)>> {
  // expected-error @+1 {{expected the size of the quantized dimension to be known}}
  %0 = hlo.uniform_quantize %x : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?x!quant.uniform<i8:f32:0, {0.5, 0.25}>, affine_map<()[s0] -> (s0)>>
  %1 = hlo.bitcast_convert %0 : (tensor<?x!quant.uniform<i8:f32:0, {0.5, 0.25}>, affine_map<()[s0] -> (s0)>>) -> tensor<?xi8, affine_map<()[s0] -> (s0)>>
  return %1 : tensor<?xi8, affine_map<()[s0] -> (s0)>>
}
