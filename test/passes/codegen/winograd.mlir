// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights="explain" --split-input-file --verify-diagnostics | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma exact" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=EXACT

// EXACT-NOT: #cpu.winograd

// Many channels and a large image: tiles of 4x4, 36 points.
// CHECK-LABEL: @large
func.func @large(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  // CHECK: hlo.constant{{.*}}tensor<2x36x1x64x32xf32>
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 3, 3>{{.*}}#cpu.winograd<tile = 4, columns = 32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  ^bb0(%acc: tensor<1x56x56x64xf32>):
    kernel.yield %acc : tensor<1x56x56x64xf32>
  }
  return %0 : tensor<1x56x56x64xf32>
}

// -----

// A small image with many channels: the larger filters of 4x4 tiles would have to come from memory.
// CHECK-LABEL: @small_image
func.func @small_image(%x: tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32> {
  // CHECK: kernel.conv({{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x256x256xf32>} : () -> tensor<3x3x256x256xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x14x14x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32> {
  ^bb0(%acc: tensor<1x14x14x256xf32>):
    kernel.yield %acc : tensor<1x14x14x256xf32>
  }
  return %0 : tensor<1x14x14x256xf32>
}

// -----

// 5x5 taps: tiles of 4x4 from 64 points.
// CHECK-LABEL: @five_taps
func.func @five_taps(%x: tensor<1x35x35x64xf32>) -> tensor<1x35x35x64xf32> {
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 5, 5>{{.*}}#cpu.winograd<tile = 4, columns = {{[0-9]+}}>{{.*}}x64x{{[0-9]+x[0-9]+x[0-9]+}}xf32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<5x5x64x64xf32>} : () -> tensor<5x5x64x64xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x35x35x64xf32>, tensor<5x5x64x64xf32>) -> tensor<1x35x35x64xf32> {
  ^bb0(%acc: tensor<1x35x35x64xf32>):
    kernel.yield %acc : tensor<1x35x35x64xf32>
  }
  return %0 : tensor<1x35x35x64xf32>
}

// -----

// Taps in one direction only: two pixels of a row from 8 points.
// CHECK-LABEL: @taps_of_a_row
func.func @taps_of_a_row(%x: tensor<1x17x17x192xf32>) -> tensor<1x17x17x192xf32> {
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 1, 7>{{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>{{.*}}x8x{{[0-9]+x[0-9]+x[0-9]+}}xf32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<1x7x192x192xf32>} : () -> tensor<1x7x192x192xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 3, 3>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x17x17x192xf32>, tensor<1x7x192x192xf32>) -> tensor<1x17x17x192xf32> {
  ^bb0(%acc: tensor<1x17x17x192xf32>):
    kernel.yield %acc : tensor<1x17x17x192xf32>
  }
  return %0 : tensor<1x17x17x192xf32>
}

// -----

// CHECK-LABEL: @taps_of_a_column
func.func @taps_of_a_column(%x: tensor<1x17x17x192xf32>) -> tensor<1x17x17x192xf32> {
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 7, 1>{{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>{{.*}}x8x{{[0-9]+x[0-9]+x[0-9]+}}xf32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<7x1x192x192xf32>} : () -> tensor<7x1x192x192xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 3, 3, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x17x17x192xf32>, tensor<7x1x192x192xf32>) -> tensor<1x17x17x192xf32> {
  ^bb0(%acc: tensor<1x17x17x192xf32>):
    kernel.yield %acc : tensor<1x17x17x192xf32>
  }
  return %0 : tensor<1x17x17x192xf32>
}

// -----

// 7x7 pixels: reading the larger filters would decide for one image, not for many.
// CHECK-LABEL: @one_tiny_image
// CHECK-NOT: winograd
func.func @one_tiny_image(%x: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x512x512xf32>} : () -> tensor<3x3x512x512xf32>
  // expected-remark @+1 {{no Winograd: direct code is estimated to be as fast}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x7x7x512xf32>, tensor<3x3x512x512xf32>) -> tensor<1x7x7x512xf32> {
  ^bb0(%acc: tensor<1x7x7x512xf32>):
    kernel.yield %acc : tensor<1x7x7x512xf32>
  }
  return %0 : tensor<1x7x7x512xf32>
}

// -----

// CHECK-LABEL: @tiny_images
// CHECK: winograd
func.func @tiny_images(%x: tensor<64x7x7x512xf32>) -> tensor<64x7x7x512xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x512x512xf32>} : () -> tensor<3x3x512x512xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<64x7x7x512xf32>, tensor<3x3x512x512xf32>) -> tensor<64x7x7x512xf32> {
  ^bb0(%acc: tensor<64x7x7x512xf32>):
    kernel.yield %acc : tensor<64x7x7x512xf32>
  }
  return %0 : tensor<64x7x7x512xf32>
}

// -----

// Few channels: the transforms cost more than the products save.
// CHECK-LABEL: @few_channels
func.func @few_channels(%x: tensor<1x56x56x4xf32>) -> tensor<1x56x56x8xf32> {
  // CHECK-NOT: winograd =
  // CHECK: kernel.conv({{.*}}#cpu.panels<columns = 16>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x4x8xf32>} : () -> tensor<3x3x4x8xf32>
  // expected-remark @+1 {{no Winograd: direct code is estimated to be as fast}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x56x56x8xf32> {
  ^bb0(%acc: tensor<1x56x56x8xf32>):
    kernel.yield %acc : tensor<1x56x56x8xf32>
  }
  return %0 : tensor<1x56x56x8xf32>
}

// -----

// CHECK-LABEL: @strided
func.func @strided(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> {
  // CHECK-NOT: winograd =
  // CHECK: kernel.conv
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  // expected-remark @+1 {{no Winograd: not a window of known size and stride 1}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x28x28x64xf32> {
  ^bb0(%acc: tensor<1x28x28x64xf32>):
    kernel.yield %acc : tensor<1x28x28x64xf32>
  }
  return %0 : tensor<1x28x28x64xf32>
}

// -----

// The transform of these weights is not finite in f32.
// CHECK-LABEL: @huge_weights
func.func @huge_weights(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  // CHECK-NOT: winograd =
  // CHECK: kernel.conv
  %w = "hlo.constant"() {value = dense<3.0e38> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  // expected-remark @+1 {{no Winograd: the filter would lose too much accuracy}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  ^bb0(%acc: tensor<1x56x56x64xf32>):
    kernel.yield %acc : tensor<1x56x56x64xf32>
  }
  return %0 : tensor<1x56x56x64xf32>
}

// -----

// More phases than pixels: taps that always lie beside the image. Planning tiles for each phase would take for ever.
// CHECK-LABEL: @far_taps
func.func @far_taps(%x: tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32> {
  // CHECK-NOT: winograd =
  // CHECK: kernel.conv
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf32>} : () -> tensor<3x3x64x64xf32>
  // expected-remark @+1 {{no Winograd: not a window of known size and stride 1}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1000000, 1000000, 1000000, 1000000>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1000000, 1000000>} : (tensor<1x32x32x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x32x32x64xf32> {
  ^bb0(%acc: tensor<1x32x32x64xf32>):
    kernel.yield %acc : tensor<1x32x32x64xf32>
  }
  return %0 : tensor<1x32x32x64xf32>
}

// -----

// Three output channels leave most of a vector empty, at each point too: a row's taps are put beside each other.
// CHECK-LABEL: @few_outputs
func.func @few_outputs(%x: tensor<1x32x32x32xf32>) -> tensor<1x32x32x3xf32> {
  // CHECK: kernel.conv({{.*}}spread
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x32x3xf32>} : () -> tensor<3x3x32x3xf32>
  // expected-remark @+1 {{no Winograd: direct code is estimated to be as fast}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x32x32x32xf32>, tensor<3x3x32x3xf32>) -> tensor<1x32x32x3xf32> {
  ^bb0(%acc: tensor<1x32x32x3xf32>):
    kernel.yield %acc : tensor<1x32x32x3xf32>
  }
  return %0 : tensor<1x32x32x3xf32>
}

// -----

// Operands of f16 are widened as they are transformed.
// CHECK-LABEL: @halves
func.func @halves(%x: tensor<1x56x56x64xf16>) -> tensor<1x56x56x64xf16> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf16>} : () -> tensor<3x3x64x64xf16>
  // CHECK: kernel.conv({{.*}}#cpu.winograd<tile = 4, columns = {{[0-9]+}}>{{.*}} : (tensor<1x56x56x64xf16>, tensor<{{.*}}xf32>)
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf16> {
  ^bb0(%acc: tensor<1x56x56x64xf32>):
    %1 = "hlo.convert"(%acc) : (tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf16>
    kernel.yield %1 : tensor<1x56x56x64xf16>
  }
  return %0 : tensor<1x56x56x64xf16>
}
