// Which poolings and depthwise convolutions are strips of pixels on devices: those of images whose windows overlap. Where the strips would be
// too few threads for a device, they are single pixels of blocks of 128 threads.
// RUN: lathe-opt %s --split-input-file --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features=" --kernel-to-llvm | FileCheck %s --implicit-check-not='launches = [{'

// four pixels a thread
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_strip", threads = 256
func.func @usual(%x: tensor<64x56x56x128xf32>, %w: tensor<3x3x1x128xf32>) -> tensor<64x56x56x128xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 128 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x56x56x128xf32>, tensor<3x3x1x128xf32>) -> tensor<64x56x56x128xf32> {
  ^bb0(%sum: tensor<64x56x56x128xf32>):
    kernel.yield %sum : tensor<64x56x56x128xf32>
  }
  return %0 : tensor<64x56x56x128xf32>
}

// -----

// other strides and types
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_strip", threads = 256
func.func @halves(%x: tensor<64x56x56x128xf16>, %w: tensor<3x3x1x128xf16>) -> tensor<64x28x28x128xf16> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 128 : i64, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x56x56x128xf16>, tensor<3x3x1x128xf16>) -> tensor<64x28x28x128xf16> {
  ^bb0(%sum: tensor<64x28x28x128xf16>):
    kernel.yield %sum : tensor<64x28x28x128xf16>
  }
  return %0 : tensor<64x28x28x128xf16>
}

// -----

// with two pixels a thread there are threads enough
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_strip", threads = 256
func.func @two_pixels(%x: tensor<8x28x28x192xf32>, %w: tensor<3x3x1x192xf32>) -> tensor<8x28x28x192xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 192 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<8x28x28x192xf32>, tensor<3x3x1x192xf32>) -> tensor<8x28x28x192xf32> {
  ^bb0(%sum: tensor<8x28x28x192xf32>):
    kernel.yield %sum : tensor<8x28x28x192xf32>
  }
  return %0 : tensor<8x28x28x192xf32>
}

// -----

// there are not
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_strip", threads = 128
func.func @few_pixels(%x: tensor<8x14x14x192xf32>, %w: tensor<3x3x1x192xf32>) -> tensor<8x14x14x192xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 192 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<8x14x14x192xf32>, tensor<3x3x1x192xf32>) -> tensor<8x14x14x192xf32> {
  ^bb0(%sum: tensor<8x14x14x192xf32>):
    kernel.yield %sum : tensor<8x14x14x192xf32>
  }
  return %0 : tensor<8x14x14x192xf32>
}

// -----

// several results a channel
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_strip", threads = 256
func.func @several(%x: tensor<64x56x56x33xf32>, %w: tensor<3x3x1x132xf32>) -> tensor<64x56x56x132xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 33 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x56x56x33xf32>, tensor<3x3x1x132xf32>) -> tensor<64x56x56x132xf32> {
  ^bb0(%sum: tensor<64x56x56x132xf32>):
    kernel.yield %sum : tensor<64x56x56x132xf32>
  }
  return %0 : tensor<64x56x56x132xf32>
}

// -----

// zeros between the pixels
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_wide"
func.func @dilated(%x: tensor<64x28x28x128xf32>, %w: tensor<3x3x1x128xf32>) -> tensor<64x55x55x128xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 128 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x28x28x128xf32>, tensor<3x3x1x128xf32>) -> tensor<64x55x55x128xf32> {
  ^bb0(%sum: tensor<64x55x55x128xf32>):
    kernel.yield %sum : tensor<64x55x55x128xf32>
  }
  return %0 : tensor<64x55x55x128xf32>
}

// -----

// sums of so many products are made in blocks
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv_wide"
func.func @many_taps(%x: tensor<64x56x56x128xf32>, %w: tensor<9x9x1x128xf32>) -> tensor<64x56x56x128xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 128 : i64, strides = array<i64: 1, 1>, padding = array<i64: 4, 4, 4, 4>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x56x56x128xf32>, tensor<9x9x1x128xf32>) -> tensor<64x56x56x128xf32> {
  ^bb0(%sum: tensor<64x56x56x128xf32>):
    kernel.yield %sum : tensor<64x56x56x128xf32>
  }
  return %0 : tensor<64x56x56x128xf32>
}

// -----

// channels that are no whole vectors
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_depthwise_conv"
func.func @odd_channels(%x: tensor<64x56x56x130xf32>, %w: tensor<3x3x1x130xf32>) -> tensor<64x56x56x130xf32> {
  %0 = kernel.depthwise_conv(%x, %w) {groups = 130 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x56x56x130xf32>, tensor<3x3x1x130xf32>) -> tensor<64x56x56x130xf32> {
  ^bb0(%sum: tensor<64x56x56x130xf32>):
    kernel.yield %sum : tensor<64x56x56x130xf32>
  }
  return %0 : tensor<64x56x56x130xf32>
}

// -----

// windows that share columns
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_pool_strip", threads = 256
func.func @overlapping(%x: tensor<64x112x112x64xf32>) -> tensor<64x56x56x64xf32> {
  %0 = kernel.pool(%x) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, window_dilation = array<i64: 1, 1>}
    : (tensor<64x112x112x64xf32>) -> tensor<64x56x56x64xf32> {
  ^bb0(%sum: tensor<64x56x56x64xf32>):
    kernel.yield %sum : tensor<64x56x56x64xf32>
  }
  return %0 : tensor<64x56x56x64xf32>
}

// -----

// windows that share nothing
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_pool_wide"
func.func @apart(%x: tensor<64x112x112x64xf32>) -> tensor<64x56x56x64xf32> {
  %0 = kernel.pool(%x) {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, window_dilation = array<i64: 1, 1>}
    : (tensor<64x112x112x64xf32>) -> tensor<64x56x56x64xf32> {
  ^bb0(%sum: tensor<64x56x56x64xf32>):
    kernel.yield %sum : tensor<64x56x56x64xf32>
  }
  return %0 : tensor<64x56x56x64xf32>
}
