// RUN: lathe-opt %s --kernel-set-target="features=+avx2,+avx,+fma" --kernel-pack-weights="explain" --split-input-file --verify-diagnostics | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx2,+avx,+fma exact" --kernel-pack-weights --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=VNNI

// Where bytes are multiplied by fours, fewer multiplications do not pay for their widening.
// VNNI-NOT: #cpu.winograd

// Nothing is rounded, so results may be asked for that are exact. The last of 63 input channels lies beside a zero.
// CHECK-LABEL: @bytes
func.func @bytes(%x: tensor<1x56x56x63xi8>) -> tensor<1x56x56x64xi32> {
  // CHECK: hlo.constant{{.*}}tensor<{{[0-9]+}}x16x{{[0-9]+}}x32x{{[0-9]+}}xi16>
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 3, 3>{{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>
  %w = "hlo.constant"() {value = dense<1> : tensor<3x3x63x64xi8>} : () -> tensor<3x3x63x64xi8>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x63xi8>, tensor<3x3x63x64xi8>) -> tensor<1x56x56x64xi32> {
  ^bb0(%acc: tensor<1x56x56x64xi32>):
    kernel.yield %acc : tensor<1x56x56x64xi32>
  }
  return %0 : tensor<1x56x56x64xi32>
}

// -----

// Filters that take a zero point off are of 16 bits.
// CHECK-LABEL: @taps_of_a_row
func.func @taps_of_a_row(%x: tensor<1x56x56x64xui8>) -> tensor<1x56x56x64xi32> {
  // CHECK: kernel.conv({{.*}}kernel_shape = array<i64: 1, 3>{{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>{{.*}}x4x{{[0-9]+}}x32x{{[0-9]+}}xi16>
  %w = "hlo.constant"() {value = dense<-200> : tensor<1x3x64x64xi16>} : () -> tensor<1x3x64x64xi16>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xui8>, tensor<1x3x64x64xi16>) -> tensor<1x56x56x64xi32> {
  ^bb0(%acc: tensor<1x56x56x64xi32>):
    kernel.yield %acc : tensor<1x56x56x64xi32>
  }
  return %0 : tensor<1x56x56x64xi32>
}

// -----

// Nine times 4000 is no number of 16 bits.
// CHECK-LABEL: @large_taps
// CHECK-NOT: #cpu.winograd
func.func @large_taps(%x: tensor<1x56x56x64xi8>) -> tensor<1x56x56x64xi32> {
  %w = "hlo.constant"() {value = dense<4000> : tensor<3x3x64x64xi16>} : () -> tensor<3x3x64x64xi16>
  // expected-remark @+1 {{no Winograd: integers might not fit once they are transformed}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xi8>, tensor<3x3x64x64xi16>) -> tensor<1x56x56x64xi32> {
  ^bb0(%acc: tensor<1x56x56x64xi32>):
    kernel.yield %acc : tensor<1x56x56x64xi32>
  }
  return %0 : tensor<1x56x56x64xi32>
}

// -----

// Four times 255 * 3000 * 9 * 128 is more than 32 bits hold.
// CHECK-LABEL: @large_sums
// CHECK-NOT: #cpu.winograd
func.func @large_sums(%x: tensor<1x56x56x128xui8>) -> tensor<1x56x56x64xi32> {
  %w = "hlo.constant"() {value = dense<3000> : tensor<3x3x128x64xi16>} : () -> tensor<3x3x128x64xi16>
  // expected-remark @+1 {{no Winograd: integers might not fit once they are transformed}}
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x128xui8>, tensor<3x3x128x64xi16>) -> tensor<1x56x56x64xi32> {
  ^bb0(%acc: tensor<1x56x56x64xi32>):
    kernel.yield %acc : tensor<1x56x56x64xi32>
  }
  return %0 : tensor<1x56x56x64xi32>
}
