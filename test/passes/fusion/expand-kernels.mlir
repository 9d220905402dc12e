// RUN: lathe-opt %s --kernel-expand | FileCheck %s

// A transposed operand, a batch, an epilogue.
// CHECK-LABEL: @dot
// CHECK: %[[T:.*]] = hlo.transpose %arg1, dims = [0, 2, 1]
// CHECK: %[[P:.*]] = {{.*}}hlo.dot_general{{.*}}%arg0, %[[T]]
// CHECK: hlo.add{{.*}}%[[P]]
// CHECK-NOT: kernel.
func.func @dot(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>, %c: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %0 = kernel.dot(%a, %b, %c) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>}
      : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  ^bb0(%acc: tensor<2x3x5xf32>, %r: tensor<2x3x5xf32>):
    %1 = "hlo.add"(%acc, %r) : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
    kernel.yield %1 : tensor<2x3x5xf32>
  }
  return %0 : tensor<2x3x5xf32>
}

// CHECK-LABEL: @average
// CHECK-COUNT-2: hlo.reduce_window
// CHECK: hlo.divide
func.func @average(%a: tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32> {
  %0 = kernel.pool(%a) {kind = "avg", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, window_dilation = array<i64: 1, 1>}
      : (tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32> {
  ^bb0(%acc: tensor<1x2x2x8xf32>):
    kernel.yield %acc : tensor<1x2x2x8xf32>
  }
  return %0 : tensor<1x2x2x8xf32>
}
