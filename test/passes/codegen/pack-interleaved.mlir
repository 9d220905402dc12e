// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --enable-var-scope

// Eight columns fill a vector with two steps of the sum.
// CHECK-LABEL: @eight_columns
func.func @eight_columns(%x: tensor<100x6xf32>) -> tensor<100x8xf32> {
  // Rows of the right operand: 1..8, 11..18 and so on. A panel holds each column's two steps side by side.
  // CHECK: hlo.constant
  // CHECK-SAME{LITERAL}: [[[1.000000e+00, 1.100000e+01, 2.000000e+00, 1.200000e+01, 3.000000e+00, 1.300000e+01, 4.000000e+00, 1.400000e+01], [5.000000e+00
  // CHECK-SAME: tensor<1x6x8xf32>
  // CHECK: kernel.dot{{.*}}#cpu.panels<columns = 8, group = 2>
  %w = "hlo.constant"() {value = dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0], [21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0], [31.0, 32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0], [41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0, 48.0], [51.0, 52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0]]> : tensor<6x8xf32>} : () -> tensor<6x8xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x6xf32>, tensor<6x8xf32>) -> tensor<100x8xf32> {
  ^bb0(%acc: tensor<100x8xf32>):
    kernel.yield %acc : tensor<100x8xf32>
  }
  return %0 : tensor<100x8xf32>
}

// -----

// 24 columns: three vectors instead of four.
// CHECK-LABEL: @three_halves
func.func @three_halves(%x: tensor<100x144xf32>) -> tensor<100x24xf32> {
  // CHECK: kernel.dot{{.*}}#cpu.panels<columns = 24, group = 2>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<144x24xf32>} : () -> tensor<144x24xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x144xf32>, tensor<144x24xf32>) -> tensor<100x24xf32> {
  ^bb0(%acc: tensor<100x24xf32>):
    kernel.yield %acc : tensor<100x24xf32>
  }
  return %0 : tensor<100x24xf32>
}

// -----

// One column is a vector of steps, with few rows too; a depth that is no multiple of them ends in zeros.
// CHECK-LABEL: @one_column
func.func @one_column(%x: tensor<100x941xf32>, %y: tensor<1x64xf32>, %z: tensor<100x145xf32>)
    -> (tensor<100x1xf32>, tensor<1x3xf32>, tensor<100x24xf32>) {
  // CHECK: kernel.dot{{.*}}#cpu.panels<columns = 1, group = 16>{{.*}}tensor<1x944x1xf32>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<941x1xf32>} : () -> tensor<941x1xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x941xf32>, tensor<941x1xf32>) -> tensor<100x1xf32> {
  ^bb0(%acc: tensor<100x1xf32>):
    kernel.yield %acc : tensor<100x1xf32>
  }
  // CHECK: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = {{4|8|16}}>
  %w1 = "hlo.constant"() {value = dense<1.0> : tensor<64x3xf32>} : () -> tensor<64x3xf32>
  %1 = kernel.dot(%y, %w1) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1x64xf32>, tensor<64x3xf32>) -> tensor<1x3xf32> {
  ^bb0(%acc: tensor<1x3xf32>):
    kernel.yield %acc : tensor<1x3xf32>
  }
  // CHECK: kernel.dot{{.*}}#cpu.panels<columns = 24, group = 2>{{.*}}tensor<1x146x24xf32>
  %w2 = "hlo.constant"() {value = dense<1.0> : tensor<145x24xf32>} : () -> tensor<145x24xf32>
  %2 = kernel.dot(%z, %w2) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x145xf32>, tensor<145x24xf32>) -> tensor<100x24xf32> {
  ^bb0(%acc: tensor<100x24xf32>):
    kernel.yield %acc : tensor<100x24xf32>
  }
  return %0, %1, %2 : tensor<100x1xf32>, tensor<1x3xf32>, tensor<100x24xf32>
}

// -----

// Nothing to gain with whole vectors, rows that are columns, or hardly any rows.
// CHECK-LABEL: @as_ever
// CHECK-NOT: interleaved
func.func @as_ever(%x: tensor<100x144xf32>, %z: tensor<144x100xf32>, %v: tensor<1x144xf32>)
    -> (tensor<100x32xf32>, tensor<100x24xf32>, tensor<1x24xf32>) {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<144x32xf32>} : () -> tensor<144x32xf32>
  %w2 = "hlo.constant"() {value = dense<1.0> : tensor<144x24xf32>} : () -> tensor<144x24xf32>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x144xf32>, tensor<144x32xf32>) -> tensor<100x32xf32> {
  ^bb0(%acc: tensor<100x32xf32>):
    kernel.yield %acc : tensor<100x32xf32>
  }
  %2 = kernel.dot(%z, %w2) {lhs_dims = array<i64: 1, 0>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<144x100xf32>, tensor<144x24xf32>) -> tensor<100x24xf32> {
  ^bb0(%acc: tensor<100x24xf32>):
    kernel.yield %acc : tensor<100x24xf32>
  }
  %3 = kernel.dot(%v, %w2) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<1x144xf32>, tensor<144x24xf32>) -> tensor<1x24xf32> {
  ^bb0(%acc: tensor<1x24xf32>):
    kernel.yield %acc : tensor<1x24xf32>
  }
  return %0, %2, %3 : tensor<100x32xf32>, tensor<100x24xf32>, tensor<1x24xf32>
}
