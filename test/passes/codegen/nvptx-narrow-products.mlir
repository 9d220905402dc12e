// Bytes that were widened for a product are multiplied as bytes.
// RUN: lathe-opt %s --nvptx-narrow-products --split-input-file | FileCheck %s

// CHECK-LABEL: @both
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x16xi8>, %[[Y:[a-z0-9]+]]: tensor<16x8xi8>
func.func @both(%x: tensor<8x16xi8>, %y: tensor<16x8xi8>) -> tensor<8x8xi32> {
  // CHECK-NEXT: kernel.dot(%[[X]], %[[Y]])
  %a = kernel.loop(%x) : (tensor<8x16xi8>) -> tensor<8x16xi32> {
  ^bb0(%v: tensor<8x16xi8>):
    %w = hlo.convert %v : (tensor<8x16xi8>) -> tensor<8x16xi32>
    kernel.yield %w : tensor<8x16xi32>
  }
  %b = kernel.loop(%y) : (tensor<16x8xi8>) -> tensor<16x8xi32> {
  ^bb0(%v: tensor<16x8xi8>):
    %w = hlo.convert %v : (tensor<16x8xi8>) -> tensor<16x8xi32>
    kernel.yield %w : tensor<16x8xi32>
  }
  %c = kernel.dot(%a, %b) {lhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>} : (tensor<8x16xi32>, tensor<16x8xi32>) -> tensor<8x8xi32> {
  ^bb0(%s: tensor<8x8xi32>):
    kernel.yield %s : tensor<8x8xi32>
  }
  return %c : tensor<8x8xi32>
}

// -----

// One value on both sides, which is a result too: the loop stays for that.
// CHECK-LABEL: @twice
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x8xi8>
func.func @twice(%x: tensor<8x8xi8>) -> (tensor<8x8xi32>, tensor<8x8xi32>) {
  // CHECK: kernel.loop
  // CHECK: kernel.dot(%[[X]], %[[X]])
  %a = kernel.loop(%x) : (tensor<8x8xi8>) -> tensor<8x8xi32> {
  ^bb0(%v: tensor<8x8xi8>):
    %w = hlo.convert %v : (tensor<8x8xi8>) -> tensor<8x8xi32>
    kernel.yield %w : tensor<8x8xi32>
  }
  %c = kernel.dot(%a, %a) {lhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>} : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32> {
  ^bb0(%s: tensor<8x8xi32>):
    kernel.yield %s : tensor<8x8xi32>
  }
  return %a, %c : tensor<8x8xi32>, tensor<8x8xi32>
}

// -----

// Unsigned ones are no signed ones, and what is done to bytes on the way is not left out.
// CHECK-LABEL: @others
func.func @others(%x: tensor<8x8xui8>, %y: tensor<8x8xi8>) -> tensor<8x8xi32> {
  // CHECK: %[[A:[0-9]+]] = kernel.loop
  // CHECK: %[[B:[0-9]+]] = kernel.loop
  // CHECK: kernel.dot(%[[A]], %[[B]])
  %a = kernel.loop(%x) : (tensor<8x8xui8>) -> tensor<8x8xi32> {
  ^bb0(%v: tensor<8x8xui8>):
    %w = hlo.convert %v : (tensor<8x8xui8>) -> tensor<8x8xi32>
    kernel.yield %w : tensor<8x8xi32>
  }
  %b = kernel.loop(%y) : (tensor<8x8xi8>) -> tensor<8x8xi32> {
  ^bb0(%v: tensor<8x8xi8>):
    %u = hlo.negate %v : tensor<8x8xi8>
    %w = hlo.convert %u : (tensor<8x8xi8>) -> tensor<8x8xi32>
    kernel.yield %w : tensor<8x8xi32>
  }
  %c = kernel.dot(%a, %b) {lhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>} : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32> {
  ^bb0(%s: tensor<8x8xi32>):
    kernel.yield %s : tensor<8x8xi32>
  }
  return %c : tensor<8x8xi32>
}
