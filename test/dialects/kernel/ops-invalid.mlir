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

// -----

func.func @spread_columns(%x: tensor<1x8x8x16xf32>, %w: tensor<1x1x48x16xf32>) -> tensor<1x8x8x6xf32> {
  // expected-error @+1 {{spread needs a packed filter with all taps of a row in one panel}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, kernel_shape = array<i64: 3, 3>, layout = #cpu.spread<columns = 16>} : (tensor<1x8x8x16xf32>, tensor<1x1x48x16xf32>) -> tensor<1x8x8x6xf32> {
  ^bb0(%acc: tensor<1x8x8x6xf32>):
    kernel.yield %acc : tensor<1x8x8x6xf32>
  }
  return %0 : tensor<1x8x8x6xf32>
}

// -----

func.func @winograd_window(%x: tensor<1x8x8x16xf32>, %w: tensor<1x36x1x16x32xf32>) -> tensor<1x4x4x32xf32> {
  // expected-error @+1 {{winograd needs two spatial dimensions, strides of 1, no dilated input and no groups}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, kernel_shape = array<i64: 3, 3>, layout = #cpu.winograd<tile = 4, columns = 32>} : (tensor<1x8x8x16xf32>, tensor<1x36x1x16x32xf32>) -> tensor<1x4x4x32xf32> {
  ^bb0(%acc: tensor<1x4x4x32xf32>):
    kernel.yield %acc : tensor<1x4x4x32xf32>
  }
  return %0 : tensor<1x4x4x32xf32>
}

// -----

func.func @winograd_filter(%x: tensor<1x8x8x16xf32>, %w: tensor<1x16x1x16x32xf32>) -> tensor<1x8x8x32xf32> {
  // expected-error @+1 {{transformed filter does not fit}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, kernel_shape = array<i64: 3, 3>, layout = #cpu.winograd<tile = 4, columns = 32>} : (tensor<1x8x8x16xf32>, tensor<1x16x1x16x32xf32>) -> tensor<1x8x8x32xf32> {
  ^bb0(%acc: tensor<1x8x8x32xf32>):
    kernel.yield %acc : tensor<1x8x8x32xf32>
  }
  return %0 : tensor<1x8x8x32xf32>
}

// -----

func.func @chain_without_product(%x: tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32> {
  // expected-error @+1 {{expected a product, a reshape of its result and the depthwise convolution that reads it}}
  %0 = kernel.chain(%x) {strips = 2 : i64} : (tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32> {
  ^bb0(%a: tensor<1x8x8x4xf32>):
    kernel.yield %a : tensor<1x8x8x4xf32>
  }
  return %0 : tensor<1x8x8x4xf32>
}

// -----

func.func @chain_strips(%x: tensor<64x4xf32>, %w: tensor<4x4xf32>, %f: tensor<1x1x1x4xf32>) -> tensor<1x8x8x4xf32> {
  // expected-error @+1 {{expected strips of pixels, found 65}}
  %0 = kernel.chain(%x, %w, %f) {strips = 65 : i64} : (tensor<64x4xf32>, tensor<4x4xf32>, tensor<1x1x1x4xf32>) -> tensor<1x8x8x4xf32> {
  ^bb0(%a: tensor<64x4xf32>, %b: tensor<4x4xf32>, %c: tensor<1x1x1x4xf32>):
    %1 = kernel.dot(%a, %b) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<64x4xf32>, tensor<4x4xf32>) -> tensor<64x4xf32> {
    ^bb0(%acc: tensor<64x4xf32>):
      kernel.yield %acc : tensor<64x4xf32>
    }
    %2 = hlo.reshape %1 : (tensor<64x4xf32>) -> tensor<1x8x8x4xf32>
    %3 = kernel.depthwise_conv(%2, %c) {groups = 4 : i64, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<1x1x1x4xf32>) -> tensor<1x8x8x4xf32> {
    ^bb0(%acc: tensor<1x8x8x4xf32>):
      kernel.yield %acc : tensor<1x8x8x4xf32>
    }
    kernel.yield %3 : tensor<1x8x8x4xf32>
  }
  return %0 : tensor<1x8x8x4xf32>
}

// -----

func.func @attention_without_rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{expected a product, the rows that read it and a product of these}}
  %0 = kernel.attention(%x) {blocks = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    kernel.yield %a : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @attention_columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{expected rows along the last dimension that depend on no other row of the scores}}
  %0 = kernel.attention(%x) {blocks = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %1 = kernel.dot(%a, %a) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%acc: tensor<8x8xf32>):
      kernel.yield %acc : tensor<8x8xf32>
    }
    %2 = kernel.rows(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%s: tensor<8x8xf32>):
      %zero = hlo.constant dense<0.0> : tensor<f32>
      %sum = "hlo.reduce"(%s, %zero) ({
      ^bb0(%f: tensor<f32>, %g: tensor<f32>):
        %r = hlo.add %f, %g : tensor<f32>
        hlo.return %r : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
      %b = hlo.broadcast_in_dim %sum, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
      %y = hlo.divide %s, %b : tensor<8x8xf32>
      kernel.yield %y : tensor<8x8xf32>
    }
    %3 = kernel.dot(%2, %a) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%acc: tensor<8x8xf32>):
      kernel.yield %acc : tensor<8x8xf32>
    }
    kernel.yield %3 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @attention_blocks(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{expected blocks of rows, found 9}}
  %0 = kernel.attention(%x) {blocks = 9 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %1 = kernel.dot(%a, %a) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%acc: tensor<8x8xf32>):
      kernel.yield %acc : tensor<8x8xf32>
    }
    %2 = kernel.rows(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%s: tensor<8x8xf32>):
      %zero = hlo.constant dense<0.0> : tensor<f32>
      %sum = "hlo.reduce"(%s, %zero) ({
      ^bb0(%f: tensor<f32>, %g: tensor<f32>):
        %r = hlo.add %f, %g : tensor<f32>
        hlo.return %r : tensor<f32>
      }) {dimensions = array<i64: 1>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
      %b = hlo.broadcast_in_dim %sum, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
      %y = hlo.divide %s, %b : tensor<8x8xf32>
      kernel.yield %y : tensor<8x8xf32>
    }
    %3 = kernel.dot(%2, %a) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
    ^bb0(%acc: tensor<8x8xf32>):
      kernel.yield %acc : tensor<8x8xf32>
    }
    kernel.yield %3 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @strassen_odd(%x: tensor<8x15xf32>, %w: tensor<2x15x16xf32>) -> tensor<8x32xf32> {
  // expected-error @+1 {{packed rhs does not fit: expected ceil(32/16) panels of 16 x 16}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.strassen<columns = 16>} : (tensor<8x15xf32>, tensor<2x15x16xf32>) -> tensor<8x32xf32> {
  ^bb0(%acc: tensor<8x32xf32>):
    kernel.yield %acc : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}

// -----

func.func @strassen_empty(%x: tensor<0x16xf32>, %w: tensor<2x16x16xf32>) -> tensor<0x32xf32> {
  // expected-error @+1 {{strassen needs static f32 operands that are not empty}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.strassen<columns = 16>} : (tensor<0x16xf32>, tensor<2x16x16xf32>) -> tensor<0x32xf32> {
  ^bb0(%acc: tensor<0x32xf32>):
    kernel.yield %acc : tensor<0x32xf32>
  }
  return %0 : tensor<0x32xf32>
}

// -----

func.func @strassen_open(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  // expected-error @+1 {{expected rhs of rank 2 or 2, found 1}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.strassen<columns = 16>} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%acc: tensor<8x32xf32>):
    kernel.yield %acc : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}

// -----

func.func @interleaved_depth(%x: tensor<8x15xf32>, %w: tensor<1x15x24xf32>) -> tensor<8x24xf32> {
  // expected-error @+1 {{packed rhs does not fit: expected ceil(24/24) panels of 16 x 24}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 24, group = 2>} : (tensor<8x15xf32>, tensor<1x15x24xf32>) -> tensor<8x24xf32> {
  ^bb0(%acc: tensor<8x24xf32>):
    kernel.yield %acc : tensor<8x24xf32>
  }
  return %0 : tensor<8x24xf32>
}

// -----

func.func @rows_count(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{expected 1 distances of rows in 'kernel.result_rows'}}
  %0 = kernel.loop(%x) {kernel.result_rows = array<i64: 8, 8>} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    kernel.yield %a : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @rows_overlap(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{rows of 'tensor<4x8xf32>' cannot lie 7 elements apart}}
  %0 = kernel.loop(%x) {kernel.result_rows = array<i64: 7>} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    kernel.yield %a : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @rows_of_others(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'kernel.result_rows' is for kernel ops and concatenations}}
  %0 = "hlo.abs"(%x) {kernel.result_rows = array<i64: 9>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @joined_parts(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'kernel.joined' is for concatenations, one bool a part}}
  %0 = "hlo.concatenate"(%x, %x) {dimension = 0 : i64, kernel.joined = array<i1: true>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @foreign_layout(%x: tensor<1x8x8x16xf32>, %w: tensor<1x1x144x16xf32>) -> tensor<1x8x8x6xf32> {
  // expected-error @+1 {{has a layout that is none of it: #cpu.strassen<columns = 16>}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, kernel_shape = array<i64: 3, 3>, layout = #cpu.strassen<columns = 16>} : (tensor<1x8x8x16xf32>, tensor<1x1x144x16xf32>) -> tensor<1x8x8x6xf32> {
  ^bb0(%acc: tensor<1x8x8x6xf32>):
    kernel.yield %acc : tensor<1x8x8x6xf32>
  }
  return %0 : tensor<1x8x8x6xf32>
}

// -----

func.func @tiles_of_words(%x: tensor<8x64xi16>, %w: tensor<1x16x128xi8>) -> tensor<8x24xi32> {
  // expected-error @+1 {{tiles take pairs of bf16, or four bytes that are signed on the right, with sums of 32 bits}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.tiles<columns = 32, group = 4>} : (tensor<8x64xi16>, tensor<1x16x128xi8>) -> tensor<8x24xi32> {
  ^bb0(%acc: tensor<8x24xi32>):
    kernel.yield %acc : tensor<8x24xi32>
  }
  return %0 : tensor<8x24xi32>
}

// -----

func.func @tiles_too_short(%x: tensor<8x68xi8>, %w: tensor<1x16x128xi8>) -> tensor<8x24xi32> {
  // expected-error @+1 {{a packed rhs needs groups of 4 for 68 steps}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.tiles<columns = 32, group = 4>} : (tensor<8x68xi8>, tensor<1x16x128xi8>) -> tensor<8x24xi32> {
  ^bb0(%acc: tensor<8x24xi32>):
    kernel.yield %acc : tensor<8x24xi32>
  }
  return %0 : tensor<8x24xi32>
}

// -----

func.func @no_kernel_shape(%x: tensor<1x8x8x16xf32>, %w: tensor<1x1x144x16xf32>) -> tensor<1x8x8x6xf32> {
  // expected-error @+1 {{a packed filter needs a kernel_shape of 2 sizes}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, layout = #cpu.panels<columns = 16>} : (tensor<1x8x8x16xf32>, tensor<1x1x144x16xf32>) -> tensor<1x8x8x6xf32> {
  ^bb0(%acc: tensor<1x8x8x6xf32>):
    kernel.yield %acc : tensor<1x8x8x6xf32>
  }
  return %0 : tensor<1x8x8x6xf32>
}

// -----

func.func @no_layout(%x: tensor<8x16xf32>, %w: tensor<2x16x16xf32>) -> tensor<8x32xf32> {
  // expected-error @+1 {{attribute 'layout' failed to satisfy constraint}}
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = 16 : i64} : (tensor<8x16xf32>, tensor<2x16x16xf32>) -> tensor<8x32xf32> {
  ^bb0(%acc: tensor<8x32xf32>):
    kernel.yield %acc : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}
