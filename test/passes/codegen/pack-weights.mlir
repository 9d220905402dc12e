// RUN: lathe-opt %s --kernel-set-target="features=+avx2,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --enable-var-scope

// Columns 0..7 go to the first panel, 8 to the second, with zeros behind; the next op shares them.
// CHECK-LABEL: @dot
func.func @dot(%x: tensor<1x2xf32>, %y: tensor<1x2xf32>) -> (tensor<1x9xf32>, tensor<1x9xf32>) {
  // CHECK: %[[P:.*]] = hlo.constant
  // CHECK-SAME: tensor<1x2x[[PANEL:[0-9]+]]xf32>
  // CHECK-NOT: tensor<2x9xf32>
  // CHECK: kernel.dot(%{{.*}}, %[[P]]) {{.*}}#cpu.panels<columns = [[PANEL]]
  // CHECK: kernel.dot(%{{.*}}, %[[P]]) {{.*}}#cpu.panels<columns = [[PANEL]]
  %w = "hlo.constant"() {value = dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]]> : tensor<2x9xf32>} : () -> tensor<2x9xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1x2xf32>, tensor<2x9xf32>) -> tensor<1x9xf32> {
  ^bb0(%acc: tensor<1x9xf32>):
    kernel.yield %acc : tensor<1x9xf32>
  }
  %1 = kernel.dot(%y, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1x2xf32>, tensor<2x9xf32>) -> tensor<1x9xf32> {
  ^bb0(%acc: tensor<1x9xf32>):
    kernel.yield %acc : tensor<1x9xf32>
  }
  return %0, %1 : tensor<1x9xf32>, tensor<1x9xf32>
}

// -----

// CHECK-LABEL: @conv
func.func @conv(%x: tensor<1x4x4x3xf32>) -> tensor<1x4x4x5xf32> {
  // CHECK: hlo.constant
  // CHECK-SAME: tensor<1x1x27x8xf32>
  // CHECK: kernel.conv({{.*}}) {{.*}}kernel_shape = array<i64: 3, 3>{{.*}}#cpu.panels<columns = 8>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x3x5xf32>} : () -> tensor<3x3x3x5xf32>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x4x4x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x4x4x5xf32> {
  ^bb0(%acc: tensor<1x4x4x5xf32>):
    kernel.yield %acc : tensor<1x4x4x5xf32>
  }
  return %0 : tensor<1x4x4x5xf32>
}

// -----

// What the caller feeds stays as it is.
// CHECK-LABEL: @not_constant
func.func @not_constant(%x: tensor<1x2xf32>, %w: tensor<2x9xf32>) -> tensor<1x9xf32> {
  // CHECK-NOT: panel
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1x2xf32>, tensor<2x9xf32>) -> tensor<1x9xf32> {
  ^bb0(%acc: tensor<1x9xf32>):
    kernel.yield %acc : tensor<1x9xf32>
  }
  return %0 : tensor<1x9xf32>
}
