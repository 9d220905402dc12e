// RUN: lathe-opt %s | lathe-opt | FileCheck %s

// StableHLO's generic form under our name.

// CHECK-LABEL: func @convolution
// CHECK: #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
func.func @convolution(%arg0: tensor<100x26x26x32xf32>, %arg1: tensor<3x3x1x32xf32>) -> tensor<100x28x28x32xf32> {
  %0 = "hlo.convolution"(%arg0, %arg1) <{
    batch_group_count = 1 : i64,
    dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
    feature_group_count = 32 : i64,
    lhs_dilation = array<i64: 1, 1>,
    padding = dense<2> : tensor<2x2xi64>,
    precision_config = [#hlo<precision DEFAULT>, #hlo<precision DEFAULT>],
    rhs_dilation = array<i64: 1, 1>,
    window_strides = array<i64: 1, 1>
  }> : (tensor<100x26x26x32xf32>, tensor<3x3x1x32xf32>) -> tensor<100x28x28x32xf32>
  func.return %0 : tensor<100x28x28x32xf32>
}

// CHECK-LABEL: func @dot_general
// CHECK: #hlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>
func.func @dot_general(%lhs: tensor<2x2x2xi64>, %rhs: tensor<2x2x2xi64>) -> tensor<2x2x2xi64> {
  %result = "hlo.dot_general"(%lhs, %rhs) {
    dot_dimension_numbers = #hlo.dot<
      lhs_batching_dimensions = [0],
      rhs_batching_dimensions = [0],
      lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [1]
    >,
    precision_config = [#hlo<precision DEFAULT>, #hlo<precision DEFAULT>]
  } : (tensor<2x2x2xi64>, tensor<2x2x2xi64>) -> tensor<2x2x2xi64>
  func.return %result : tensor<2x2x2xi64>
}

// CHECK-LABEL: func @gather
func.func @gather(%operand: tensor<2x3x4x2xi64>, %start: tensor<2x2x3x2xi64>) -> tensor<2x2x3x2x2xi64> {
  %result = "hlo.gather"(%operand, %start) {
    dimension_numbers = #hlo.gather<
      offset_dims = [3, 4],
      collapsed_slice_dims = [1],
      operand_batching_dims = [0],
      start_indices_batching_dims = [1],
      start_index_map = [2, 1],
      index_vector_dim = 3>,
    slice_sizes = array<i64: 1, 1, 2, 2>,
    indices_are_sorted = false
  } : (tensor<2x3x4x2xi64>, tensor<2x2x3x2xi64>) -> tensor<2x2x3x2x2xi64>
  func.return %result : tensor<2x2x3x2x2xi64>
}

// CHECK-LABEL: func @scatter
func.func @scatter(%input: tensor<2x3x4x2xi64>, %indices: tensor<2x2x3x2xi64>, %update: tensor<2x2x3x2x2xi64>) -> tensor<2x3x4x2xi64> {
  %result = "hlo.scatter"(%input, %indices, %update) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = "hlo.add"(%arg0, %arg1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "hlo.return"(%0) : (tensor<i64>) -> ()
  }) {
    scatter_dimension_numbers = #hlo.scatter<
      update_window_dims = [3, 4],
      inserted_window_dims = [1],
      input_batching_dims = [0],
      scatter_indices_batching_dims = [1],
      scatter_dims_to_operand_dims = [2, 1],
      index_vector_dim = 3>,
    indices_are_sorted = false,
    unique_indices = false
  } : (tensor<2x3x4x2xi64>, tensor<2x2x3x2xi64>, tensor<2x2x3x2x2xi64>) -> tensor<2x3x4x2xi64>
  func.return %result : tensor<2x3x4x2xi64>
}

// CHECK-LABEL: func @reduce_window
func.func @reduce_window(%input: tensor<3x2xi64>, %init_value: tensor<i64>) -> tensor<2x2xi64> {
  %result = "hlo.reduce_window"(%input, %init_value) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = "hlo.add"(%arg0, %arg1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "hlo.return"(%0) : (tensor<i64>) -> ()
  }) {
    window_dimensions = array<i64: 2, 1>,
    window_strides = array<i64: 4, 1>,
    base_dilations = array<i64: 2, 1>,
    window_dilations = array<i64: 3, 1>,
    padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>
  } : (tensor<3x2xi64>, tensor<i64>) -> tensor<2x2xi64>
  func.return %result : tensor<2x2xi64>
}

// CHECK-LABEL: func @while
func.func @while(%i: tensor<i64>, %sum: tensor<i64>, %ten: tensor<i64>, %one: tensor<i64>) -> tensor<i64> {
  %results:2 = "hlo.while"(%i, %sum) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %cond = "hlo.compare"(%arg0, %ten) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "hlo.return"(%cond) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %new_sum = "hlo.add"(%arg1, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %new_i = "hlo.add"(%arg0, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "hlo.return"(%new_i, %new_sum) : (tensor<i64>, tensor<i64>) -> ()
  }) : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
  func.return %results#1 : tensor<i64>
}

// CHECK-LABEL: func @sort
func.func @sort(%input0: tensor<2x3xi64>, %input1: tensor<2x3xi64>) -> tensor<2x3xi64> {
  %result0, %result1 = "hlo.sort"(%input0, %input1) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg3: tensor<i64>):
      %predicate = "hlo.compare"(%arg0, %arg1) {comparison_direction = #hlo<comparison_direction GT>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "hlo.return"(%predicate) : (tensor<i1>) -> ()
  }) {dimension = 0 : i64, is_stable = true} : (tensor<2x3xi64>, tensor<2x3xi64>) -> (tensor<2x3xi64>, tensor<2x3xi64>)
  func.return %result0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @misc
func.func @misc(%a: tensor<4xcomplex<f32>>, %m: tensor<3x3xf32>, %key: tensor<2xui64>) {
  %0 = "hlo.fft"(%a) {fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 4>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %1 = "hlo.triangular_solve"(%m, %m) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #hlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2:2 = "hlo.rng_bit_generator"(%key) {rng_algorithm = #hlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui64>)
  %3 = "hlo.broadcast_in_dim"(%m) {broadcast_dimensions = array<i64: 2, 0>} : (tensor<3x3xf32>) -> tensor<3x2x3xf32>
  %4 = "hlo.transpose"(%m) {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %5 = "hlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x5xi32>
  return
}
