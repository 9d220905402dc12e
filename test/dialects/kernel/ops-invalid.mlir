// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @dot_inner(%x: tensor<4x8xf32>, %w: tensor<7x16xf32>) {
  // expected-error@+1 {{shapes of lhs, rhs and result do not fit}}
  %r = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<7x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%acc: tensor<4x16xf32>):
    kernel.yield %acc : tensor<4x16xf32>
  }
  return
}

// -----

func.func @dot_dims(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) {
  // expected-error@+1 {{lhs_dims is no permutation of lhs's dimensions}}
  %r = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 0>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%acc: tensor<4x16xf32>):
    kernel.yield %acc : tensor<4x16xf32>
  }
  return
}

// -----

func.func @pool_kind(%x: tensor<1x8x8x4xf32>) {
  // expected-error@+1 {{unknown kind 'median'}}
  %r = kernel.pool(%x) {kind = "median", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, window_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: tensor<1x4x4x4xf32>):
    kernel.yield %acc : tensor<1x4x4x4xf32>
  }
  return
}

// -----

func.func @yield_types(%x: tensor<4xf32>) {
  %r = kernel.loop(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error@+1 {{types differ from the results of the kernel}}
    kernel.yield
  }
  return
}
