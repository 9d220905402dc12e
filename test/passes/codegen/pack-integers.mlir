// RUN: lathe-opt %s --kernel-set-target="features=+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=WORDS
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx2,+avx,+fma" --kernel-pack-weights --split-input-file | FileCheck %s --check-prefix=BYTES

// Groups of two, whose last one has a zero; groups of four behind what takes back that the left numbers are read plus 128: -128
// times the sum of a column, 7 and 9 here, in 32 bits.
// WORDS-LABEL: @product
// WORDS: [1, 2, 2, 3, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [4, 0, 4, 0, 0, 0, 0, 0]
// WORDS: kernel.dot{{.*}}#cpu.panels<columns = 8, group = 2>{{.*}}tensor<1x4x8xi8>
// BYTES-LABEL: @product
// BYTES: kernel.dot{{.*}}#cpu.panels<columns = 16, group = 4>{{.*}}tensor<1x8x16xi8>
// BYTES: constant: "0x4000000080FCFFFF80FBFFFF{{(0000)+}}0102040002030400{{(0000)+}}"
func.func @product(%x: tensor<100x3xi8>) -> tensor<100x2xi32> {
  %w = "hlo.constant"() {value = dense<[[1, 2], [2, 3], [4, 4]]> : tensor<3x2xi8>} : () -> tensor<3x2xi8>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi8>, tensor<3x2xi8>) -> tensor<100x2xi32> {
  ^bb0(%acc: tensor<100x2xi32>):
    kernel.yield %acc : tensor<100x2xi32>
  }
  return %0 : tensor<100x2xi32>
}

// -----

// Weights of 16 bits that fit 8 become bytes; the left ones stay, and with them groups of two. What does not fit stays.
// WORDS-LABEL: @wide
// WORDS: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 2>{{.*}}tensor<1x4x8xi8>
// WORDS: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 2>{{.*}}tensor<1x4x8xi16>
// BYTES-LABEL: @wide
// BYTES: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 2>{{.*}}tensor<1x4x{{[0-9]+}}xi8>
// BYTES: kernel.dot{{.*}}#cpu.panels<columns = {{[0-9]+}}, group = 2>{{.*}}tensor<1x4x{{[0-9]+}}xi16>
func.func @wide(%x: tensor<100x3xi16>) -> (tensor<100x2xi32>, tensor<100x2xi32>) {
  %w = "hlo.constant"() {value = dense<[[1, 2], [2, 3], [4, -128]]> : tensor<3x2xi16>} : () -> tensor<3x2xi16>
  %v = "hlo.constant"() {value = dense<[[1, 2], [2, 3], [4, 128]]> : tensor<3x2xi16>} : () -> tensor<3x2xi16>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi16>, tensor<3x2xi16>) -> tensor<100x2xi32> {
  ^bb0(%acc: tensor<100x2xi32>):
    kernel.yield %acc : tensor<100x2xi32>
  }
  %1 = kernel.dot(%x, %v) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi16>, tensor<3x2xi16>) -> tensor<100x2xi32> {
  ^bb0(%acc: tensor<100x2xi32>):
    kernel.yield %acc : tensor<100x2xi32>
  }
  return %0, %1 : tensor<100x2xi32>, tensor<100x2xi32>
}

// -----

// A row of taps is a run of 9 channels, padded to whole groups; dilated taps are runs of their own.
// WORDS-LABEL: @convolution
// WORDS: kernel.conv{{.*}}#cpu.panels<{{.*}}tensor<1x1x30x{{[0-9]+}}xi8>
// WORDS: kernel.conv{{.*}}#cpu.panels<{{.*}}tensor<1x1x36x{{[0-9]+}}xi8>
// BYTES-LABEL: @convolution
// BYTES: kernel.conv{{.*}}#cpu.panels<{{.*}}tensor<1x1x40x{{[0-9]+}}xi8>
// BYTES: kernel.conv{{.*}}#cpu.panels<{{.*}}tensor<1x1x40x{{[0-9]+}}xi8>
func.func @convolution(%x: tensor<1x9x9x3xi8>) -> (tensor<1x7x7x2xi32>, tensor<1x5x5x2xi32>) {
  %w = "hlo.constant"() {value = dense<1> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2xi8>
  %0 = kernel.conv(%x, %w) {lhs_dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, rhs_dilation = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x9x9x3xi8>, tensor<3x3x3x2xi8>) -> tensor<1x7x7x2xi32> {
  ^bb0(%acc: tensor<1x7x7x2xi32>):
    kernel.yield %acc : tensor<1x7x7x2xi32>
  }
  %1 = kernel.conv(%x, %w) {lhs_dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, rhs_dilation = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<1x9x9x3xi8>, tensor<3x3x3x2xi8>) -> tensor<1x5x5x2xi32> {
  ^bb0(%acc: tensor<1x5x5x2xi32>):
    kernel.yield %acc : tensor<1x5x5x2xi32>
  }
  return %0, %1 : tensor<1x7x7x2xi32>, tensor<1x5x5x2xi32>
}

// -----

// Factors of 64 bits lie in 32 where they fit and nothing else reads them, and are widened where they multiply.
// WORDS-LABEL: @factors
// WORDS: %[[FITS:.*]] = hlo.constant dense<[1, -2147483648]> : tensor<2xi32>
// WORDS: %[[WIDE:.*]] = hlo.constant dense<[1, 2147483648]> : tensor<2xi64>
// WORDS: kernel.dot({{.*}}, %[[FITS]], %[[WIDE]])
// WORDS: ^bb0(%{{.*}}: tensor<100x2xi32>, %[[F:.*]]: tensor<2xi32>, %[[W:.*]]: tensor<2xi64>):
// WORDS: hlo.convert %[[F]] : (tensor<2xi32>) -> tensor<2xi64>
func.func @factors(%x: tensor<100x3xi8>) -> (tensor<100x2xi64>, tensor<100x2xi64>, tensor<100x2xi64>) {
  %w = "hlo.constant"() {value = dense<1> : tensor<3x2xi8>} : () -> tensor<3x2xi8>
  %fits = "hlo.constant"() {value = dense<[1, -2147483648]> : tensor<2xi64>} : () -> tensor<2xi64>
  %wide = "hlo.constant"() {value = dense<[1, 2147483648]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0:2 = kernel.dot(%x, %w, %fits, %wide) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi8>, tensor<3x2xi8>, tensor<2xi64>, tensor<2xi64>) -> (tensor<100x2xi64>, tensor<100x2xi64>) {
  ^bb0(%acc: tensor<100x2xi32>, %f: tensor<2xi64>, %v: tensor<2xi64>):
    %1 = "hlo.convert"(%acc) : (tensor<100x2xi32>) -> tensor<100x2xi64>
    %2 = "hlo.broadcast_in_dim"(%f) {broadcast_dimensions = array<i64: 1>} : (tensor<2xi64>) -> tensor<100x2xi64>
    %3 = "hlo.broadcast_in_dim"(%v) {broadcast_dimensions = array<i64: 1>} : (tensor<2xi64>) -> tensor<100x2xi64>
    %4 = "hlo.multiply"(%1, %2) : (tensor<100x2xi64>, tensor<100x2xi64>) -> tensor<100x2xi64>
    %5 = "hlo.multiply"(%1, %3) : (tensor<100x2xi64>, tensor<100x2xi64>) -> tensor<100x2xi64>
    kernel.yield %4, %5 : tensor<100x2xi64>, tensor<100x2xi64>
  }
  // What is added as well stays.
  // WORDS: kernel.dot({{.*}}tensor<2xi64>
  %6 = kernel.dot(%x, %w, %fits) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x3xi8>, tensor<3x2xi8>, tensor<2xi64>) -> tensor<100x2xi64> {
  ^bb0(%acc: tensor<100x2xi32>, %f: tensor<2xi64>):
    %1 = "hlo.convert"(%acc) : (tensor<100x2xi32>) -> tensor<100x2xi64>
    %2 = "hlo.broadcast_in_dim"(%f) {broadcast_dimensions = array<i64: 1>} : (tensor<2xi64>) -> tensor<100x2xi64>
    %3 = "hlo.add"(%1, %2) : (tensor<100x2xi64>, tensor<100x2xi64>) -> tensor<100x2xi64>
    kernel.yield %3 : tensor<100x2xi64>
  }
  return %0#0, %0#1, %6 : tensor<100x2xi64>, tensor<100x2xi64>, tensor<100x2xi64>
}
