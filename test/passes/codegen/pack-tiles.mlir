// RUN: lathe-opt %s --kernel-set-target="triple=x86_64-unknown-linux-gnu features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx2,+avx,+fma,+amx-tile,+amx-int8" --kernel-pack-weights --split-input-file | FileCheck %s

// Bytes in groups of four for tile registers: depths padded to whole steps of at most 64, no sums in front. Few rows, columns or
// steps stay with vectors.
// CHECK-LABEL: @product
// CHECK: kernel.dot{{.*}}#cpu.tiles<columns = 32, group = 4>{{.*}}(tensor<16x96xi8>, tensor<2x24x128xi8>)
// CHECK: kernel.dot{{.*}}#cpu.tiles<columns = 32, group = 4>{{.*}}(tensor<16x96xui8>, tensor<2x24x128xi8>)
// CHECK: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 4>{{.*}}(tensor<3x96xi8>
func.func @product(%x: tensor<16x96xi8>, %u: tensor<16x96xui8>, %few: tensor<3x96xi8>) -> (tensor<16x40xi32>, tensor<16x40xi32>, tensor<3x40xi32>) {
  %w = "hlo.constant"() {value = dense<3> : tensor<96x40xi8>} : () -> tensor<96x40xi8>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<16x96xi8>, tensor<96x40xi8>) -> tensor<16x40xi32> {
  ^bb0(%acc: tensor<16x40xi32>):
    kernel.yield %acc : tensor<16x40xi32>
  }
  %1 = kernel.dot(%u, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<16x96xui8>, tensor<96x40xi8>) -> tensor<16x40xi32> {
  ^bb0(%acc: tensor<16x40xi32>):
    kernel.yield %acc : tensor<16x40xi32>
  }
  %2 = kernel.dot(%few, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<3x96xi8>, tensor<96x40xi8>) -> tensor<3x40xi32> {
  ^bb0(%acc: tensor<3x40xi32>):
    kernel.yield %acc : tensor<3x40xi32>
  }
  return %0, %1, %2 : tensor<16x40xi32>, tensor<16x40xi32>, tensor<3x40xi32>
}

// -----

// Channels of a tap are a run where they fill steps; few of them are gathered, all taps in one run. Words stay with vectors.
// CHECK-LABEL: @convolution
// CHECK: kernel.conv{{.*}}#cpu.tiles<columns = 16, group = 4>{{.*}}tensor<1x1x144x64xi8>
// CHECK: kernel.conv{{.*}}#cpu.tiles<columns = 16, group = 4>{{.*}}tensor<1x1x16x64xi8>
// CHECK: kernel.conv{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 2>{{.*}}xi8>
func.func @convolution(%x: tensor<1x9x9x64xi8>, %rgb: tensor<1x9x9x7xi8>, %wide: tensor<1x9x9x7xi16>) -> (tensor<1x7x7x16xi32>, tensor<1x7x7x16xi32>, tensor<1x7x7x16xi32>) {
  %w = "hlo.constant"() {value = dense<1> : tensor<3x3x64x16xi8>} : () -> tensor<3x3x64x16xi8>
  %v = "hlo.constant"() {value = dense<1> : tensor<3x3x7x16xi8>} : () -> tensor<3x3x7x16xi8>
  %0 = kernel.conv(%x, %w) {lhs_dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, rhs_dilation = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x9x9x64xi8>, tensor<3x3x64x16xi8>) -> tensor<1x7x7x16xi32> {
  ^bb0(%acc: tensor<1x7x7x16xi32>):
    kernel.yield %acc : tensor<1x7x7x16xi32>
  }
  %1 = kernel.conv(%rgb, %v) {lhs_dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, rhs_dilation = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x9x9x7xi8>, tensor<3x3x7x16xi8>) -> tensor<1x7x7x16xi32> {
  ^bb0(%acc: tensor<1x7x7x16xi32>):
    kernel.yield %acc : tensor<1x7x7x16xi32>
  }
  %2 = kernel.conv(%wide, %v) {lhs_dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, rhs_dilation = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x9x9x7xi16>, tensor<3x3x7x16xi8>) -> tensor<1x7x7x16xi32> {
  ^bb0(%acc: tensor<1x7x7x16xi32>):
    kernel.yield %acc : tensor<1x7x7x16xi32>
  }
  return %0, %1, %2 : tensor<1x7x7x16xi32>, tensor<1x7x7x16xi32>, tensor<1x7x7x16xi32>
}
