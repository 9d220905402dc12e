// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @add_shapes(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{shapes differ in dimension 1: 3 and 4}}
  %0 = "hlo.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @add_symbols(%a: tensor<?xf32, affine_map<()[s0] -> (s0)>>, %b: tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{shapes differ in dimension 0: s0 and s1}}
  %0 = "hlo.add"(%a, %b) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
  return
}

// -----

func.func @add_result(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{result type 'tensor<3x2xf32>' does not fit, expected 'tensor<2x3xf32>'}}
  %0 = hlo.add %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @element_type(%a: tensor<2xi7>) {
  // expected-error @+1 {{must be ranked tensor of}}
  %0 = hlo.negate %a : tensor<2xi7>
  return
}

// -----

func.func @reshape_c1(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{C1: number of elements differs: 6 and 7}}
  %0 = hlo.reshape %a : (tensor<2x3xf32>) -> tensor<7xf32>
  return
}

// -----

func.func @broadcast_c5(%a: tensor<2xf32>) {
  // expected-error @+1 {{C5: operand dimension 0 is 2 and the result's dimension 1 3}}
  %0 = hlo.broadcast_in_dim %a, dims = [1] : (tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_c4(%a: tensor<2xf32>) {
  // expected-error @+1 {{C4: broadcast_dimensions: dimension 5 is not in [0, 2)}}
  %0 = hlo.broadcast_in_dim %a, dims = [5] : (tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @transpose_c2(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: permutation: dimension 1 occurs twice}}
  %0 = hlo.transpose %a, dims = [1, 1] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @slice_c3(%a: tensor<4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: slice [1, 5) of dimension 0 leaves [0, 4)}}
  %0 = "hlo.slice"(%a) <{start_indices = array<i64: 1>, limit_indices = array<i64: 5>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dot_general_c10(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C10: inner dimensions differ: 3 and 4}}
  %0 = "hlo.dot_general"(%a, %b) <{dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @convolution_c14(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x4x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C14: input has 3 features, expected 1 groups of the kernel's 4}}
  %0 = "hlo.convolution"(%x, %w) <{dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<1x8x8x3xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @convolution_dims(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{input dimensions: dimension 9 is not in [0, 4)}}
  %0 = "hlo.convolution"(%x, %w) <{dimension_numbers = #hlo.conv<raw input_batch_dimension = 9, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @reduce_body(%a: tensor<2x3xf32>, %z: tensor<f32>) {
  // expected-error @+1 {{expected the body to return}}
  %0 = "hlo.reduce"(%a, %z) <{dimensions = array<i64: 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %c = hlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      hlo.return %c : tensor<i1>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_c12(%a: tensor<3x4xf32>, %i: tensor<2x1xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C12: slice size 5 of dimension 1 is not in [0, 4]}}
  %0 = "hlo.gather"(%a, %i) <{dimension_numbers = #hlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<3x4xf32>, tensor<2x1xi32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @while_body(%i: tensor<i32>) {
  // expected-error @+1 {{cond: expected to return 'tensor<i1>', found 'tensor<i32>'}}
  %0 = "hlo.while"(%i) ({
    ^bb0(%a: tensor<i32>):
      hlo.return %a : tensor<i32>
  }, {
    ^bb0(%a: tensor<i32>):
      hlo.return %a : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @if_branch(%p: tensor<i1>, %a: tensor<i32>) {
  // expected-error @+1 {{false branch: expected to return 'tensor<i32>', found }}
  %0 = "hlo.if"(%p) ({
    hlo.return %a : tensor<i32>
  }, {
    hlo.return
  }) : (tensor<i1>) -> tensor<i32>
  return
}

// -----

func.func @where_symbol(%a: tensor<4xi1>) {
  // expected-error @+1 {{does not fit, expected}}
  %0 = hlo.where %a {symbol = 0 : i64} : (tensor<4xi1>) -> tensor<4x1xi64>
  return
}

// -----

func.func @fft_c4(%a: tensor<5xcomplex<f32>>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C4: dimension 0 is 5, expected 4}}
  %0 = "hlo.fft"(%a) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 4>}> : (tensor<5xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return
}

// -----

// expected-error @+1 {{unknown field 'nonsense'}}
func.func private @attr() attributes {a = #hlo.dot<nonsense = [1]>}

// -----

// expected-error @+1 {{expected spatial dimensions 0, 1, ... each once}}
func.func private @attr() attributes {a = #hlo.conv<[b, 0, 0, f]x[0, 1, i, o]->[b, 0, 1, f]>}
