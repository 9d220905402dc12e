// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-pack-weights --kernel-chain --kernel-attention --split-input-file | FileCheck %s --enable-var-scope

// Forms of f32 that these ops would have in f64: what each lacks is noted once, for lowering to count.
// CHECK-LABEL: @few_columns
func.func @few_columns(%x: tensor<100x64xf64>, %y: tensor<100x64xf32>) -> (tensor<100x3xf64>, tensor<100x3xf32>) {
  // CHECK: kernel.dot{{.*}}kernel.fallbacks = ["few-columns: operands or sums are not f32"]
  // CHECK: kernel.dot
  // CHECK-NOT: kernel.fallbacks
  // CHECK: return
  %v = "hlo.constant"() {value = dense<1.0> : tensor<64x3xf64>} : () -> tensor<64x3xf64>
  %w = "hlo.constant"() {value = dense<1.0> : tensor<64x3xf32>} : () -> tensor<64x3xf32>
  %0 = kernel.dot(%x, %v) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x64xf64>, tensor<64x3xf64>) -> tensor<100x3xf64> {
  ^bb0(%acc: tensor<100x3xf64>):
    kernel.yield %acc : tensor<100x3xf64>
  }
  %1 = kernel.dot(%y, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<100x64xf32>, tensor<64x3xf32>) -> tensor<100x3xf32> {
  ^bb0(%acc: tensor<100x3xf32>):
    kernel.yield %acc : tensor<100x3xf32>
  }
  return %0, %1 : tensor<100x3xf64>, tensor<100x3xf32>
}

// -----

// CHECK-LABEL: @strassen
func.func @strassen(%x: tensor<128x768xf64>) -> tensor<128x768xf64> {
  // CHECK: kernel.dot{{.*}}kernel.fallbacks = ["strassen: operands or sums are not f32"]
  %w = "hlo.constant"() {value = dense<1.0> : tensor<768x768xf64>} : () -> tensor<768x768xf64>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<128x768xf64>, tensor<768x768xf64>) -> tensor<128x768xf64> {
  ^bb0(%acc: tensor<128x768xf64>):
    kernel.yield %acc : tensor<128x768xf64>
  }
  return %0 : tensor<128x768xf64>
}

// -----

// CHECK-LABEL: @winograd
func.func @winograd(%x: tensor<1x56x56x64xf64>) -> tensor<1x56x56x64xf64> {
  // CHECK: kernel.conv{{.*}}kernel.fallbacks = ["winograd: operands are not f32"]
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x64x64xf64>} : () -> tensor<3x3x64x64xf64>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x56x56x64xf64>, tensor<3x3x64x64xf64>) -> tensor<1x56x56x64xf64> {
  ^bb0(%acc: tensor<1x56x56x64xf64>):
    kernel.yield %acc : tensor<1x56x56x64xf64>
  }
  return %0 : tensor<1x56x56x64xf64>
}

// -----

// CHECK-LABEL: @small
// CHECK: kernel.depthwise_conv{{.*}}kernel.fallbacks = ["chain: operands or results are not f32"]
func.func @small(%x: tensor<784x32xf64>, %w: tensor<6x32x32xf64>, %f: tensor<3x3x1x192xf64>) -> tensor<1x28x28x192xf64> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32>} : (tensor<784x32xf64>, tensor<6x32x32xf64>) -> tensor<784x192xf64> {
  ^bb0(%acc: tensor<784x192xf64>):
    kernel.yield %acc : tensor<784x192xf64>
  }
  %1 = hlo.reshape %0 : (tensor<784x192xf64>) -> tensor<1x28x28x192xf64>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 192 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x28x28x192xf64>, tensor<3x3x1x192xf64>) -> tensor<1x28x28x192xf64> {
  ^bb0(%acc: tensor<1x28x28x192xf64>):
    kernel.yield %acc : tensor<1x28x28x192xf64>
  }
  return %2 : tensor<1x28x28x192xf64>
}

// -----

// CHECK-LABEL: @heads
// CHECK: kernel.rows{{.*}}kernel.fallbacks = ["attention: scores are not f32"]
func.func @heads(%q: tensor<1x128x12x64xf64>, %k: tensor<1x128x12x64xf64>, %v: tensor<1x128x12x64xf64>, %m: tensor<1x1x1x128xf64>) -> tensor<1x128x12x64xf64> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 2, 1, 3>, rhs_dims = array<i64: 0, 2, 3, 1>, result_dims = array<i64: 0, 1, 2, 3>} : (tensor<1x128x12x64xf64>, tensor<1x128x12x64xf64>) -> tensor<1x12x128x128xf64> {
  ^bb0(%acc: tensor<1x12x128x128xf64>):
    kernel.yield %acc : tensor<1x12x128x128xf64>
  }
  %1 = kernel.rows(%0, %m) : (tensor<1x12x128x128xf64>, tensor<1x1x1x128xf64>) -> tensor<1x12x128x128xf64> {
  ^bb0(%a: tensor<1x12x128x128xf64>, %b: tensor<1x1x1x128xf64>):
    %mb = hlo.broadcast_in_dim %b, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xf64>) -> tensor<1x12x128x128xf64>
    %x = hlo.add %a, %mb : tensor<1x12x128x128xf64>
    %ninf = hlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %zero = hlo.constant dense<0.0> : tensor<f64>
    %max = "hlo.reduce"(%x, %ninf) ({
    ^bb0(%f: tensor<f64>, %g: tensor<f64>):
      %r = hlo.maximum %f, %g : tensor<f64>
      hlo.return %r : tensor<f64>
    }) {dimensions = array<i64: 3>} : (tensor<1x12x128x128xf64>, tensor<f64>) -> tensor<1x12x128xf64>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<1x12x128xf64>) -> tensor<1x12x128x128xf64>
    %d = hlo.subtract %x, %maxb : tensor<1x12x128x128xf64>
    %e = hlo.exponential %d : tensor<1x12x128x128xf64>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f64>, %g: tensor<f64>):
      %r = hlo.add %f, %g : tensor<f64>
      hlo.return %r : tensor<f64>
    }) {dimensions = array<i64: 3>} : (tensor<1x12x128x128xf64>, tensor<f64>) -> tensor<1x12x128xf64>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<1x12x128xf64>) -> tensor<1x12x128x128xf64>
    %y = hlo.divide %e, %sumb : tensor<1x12x128x128xf64>
    kernel.yield %y : tensor<1x12x128x128xf64>
  }
  %2 = kernel.dot(%1, %v) {lhs_dims = array<i64: 0, 1, 2, 3>, rhs_dims = array<i64: 0, 2, 1, 3>, result_dims = array<i64: 0, 2, 1, 3>} : (tensor<1x12x128x128xf64>, tensor<1x128x12x64xf64>) -> tensor<1x128x12x64xf64> {
  ^bb0(%acc: tensor<1x128x12x64xf64>):
    kernel.yield %acc : tensor<1x128x12x64xf64>
  }
  return %2 : tensor<1x128x12x64xf64>
}
