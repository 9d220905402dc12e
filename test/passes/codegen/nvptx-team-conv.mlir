// Convolutions that are no tiles, of few results and many products each, have teams of threads on devices.
// RUN: lathe-opt %s --split-input-file --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features=" --kernel-to-llvm | FileCheck %s --implicit-check-not='launches = [{'

// a warp a result
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_conv_team", threads = 128
func.func @warp(%x: tensor<1x6x6x64xf32>, %w: tensor<3x3x64x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x6x6x64xf32>, tensor<3x3x64x4xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%sum: tensor<1x4x4x4xf32>):
    kernel.yield %sum : tensor<1x4x4x4xf32>
  }
  return %0 : tensor<1x4x4x4xf32>
}

// -----

// a block a result
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_conv_team", threads = 256
func.func @block(%x: tensor<1x34x34x4xf32>, %w: tensor<32x32x4x4xf32>) -> tensor<1x3x3x4xf32> {
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x34x34x4xf32>, tensor<32x32x4x4xf32>) -> tensor<1x3x3x4xf32> {
  ^bb0(%sum: tensor<1x3x3x4xf32>):
    kernel.yield %sum : tensor<1x3x3x4xf32>
  }
  return %0 : tensor<1x3x3x4xf32>
}

// -----

// few products
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_conv", threads
func.func @few(%x: tensor<1x6x6x8xf32>, %w: tensor<3x3x8x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x6x6x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%sum: tensor<1x4x4x4xf32>):
    kernel.yield %sum : tensor<1x4x4x4xf32>
  }
  return %0 : tensor<1x4x4x4xf32>
}

// -----

// threads enough
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_conv", threads
func.func @many(%x: tensor<1x66x66x64xf32>, %w: tensor<3x3x64x4xf32>) -> tensor<1x64x64x4xf32> {
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x66x66x64xf32>, tensor<3x3x64x4xf32>) -> tensor<1x64x64x4xf32> {
  ^bb0(%sum: tensor<1x64x64x4xf32>):
    kernel.yield %sum : tensor<1x64x64x4xf32>
  }
  return %0 : tensor<1x64x64x4xf32>
}
