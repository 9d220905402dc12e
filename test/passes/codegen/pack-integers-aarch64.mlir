// RUN: lathe-opt %s --kernel-set-target="triple=aarch64-linux-gnu features=+neon,+dotprod" --kernel-pack-weights | FileCheck %s --check-prefixes=ALL,DOT
// RUN: lathe-opt %s --kernel-set-target="triple=aarch64-linux-gnu features=+neon,+dotprod,+i8mm" --kernel-pack-weights | FileCheck %s --check-prefixes=ALL,I8MM
// RUN: lathe-opt %s --kernel-set-target="triple=aarch64-linux-gnu features=+neon" --kernel-pack-weights | FileCheck %s --check-prefix=NONE

// Four signed bytes by four signed ones are an instruction; without dotprod steps are single. Unsigned ones are read less 128 without i8mm:
// 128 times the sum of a column, 7 and 9, is where its sums begin.
// ALL-LABEL: @product
// NONE-LABEL: @product
func.func @product(%x: tensor<100x3xi8>, %y: tensor<100x3xui8>) -> (tensor<100x2xi32>, tensor<100x2xi32>) {
  %w = "hlo.constant"() {value = dense<[[1, 2], [2, 3], [4, 4]]> : tensor<3x2xi8>} : () -> tensor<3x2xi8>
  // DOT: dense<{{\[\[\[}}-128, 3, 0, 0], [-128, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 2, 4, 0], [2, 3, 4, 0],
  // ALL: kernel.dot{{.*}}#cpu.panels<columns = 4, group = 4>{{.*}}tensor<1x4x4xi8>
  // NONE: kernel.dot{{.*}}#cpu.panels<columns = 4>{{.*}}tensor<1x3x4xi8>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi8>, tensor<3x2xi8>) -> tensor<100x2xi32> {
  ^bb0(%acc: tensor<100x2xi32>):
    kernel.yield %acc : tensor<100x2xi32>
  }
  // DOT: kernel.dot{{.*}}#cpu.panels<columns = 4, group = 4>{{.*}}tensor<1x8x4xi8>
  // I8MM: kernel.dot{{.*}}#cpu.panels<columns = 4, group = 4>{{.*}}tensor<1x4x4xi8>
  %1 = kernel.dot(%y, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xui8>, tensor<3x2xi8>) -> tensor<100x2xi32> {
  ^bb0(%acc: tensor<100x2xi32>):
    kernel.yield %acc : tensor<100x2xi32>
  }
  return %0, %1 : tensor<100x2xi32>, tensor<100x2xi32>
}
