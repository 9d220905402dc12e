// RUN: lathe-opt %s --kernel-chain="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-chain="threads=2" --split-input-file | FileCheck %s --check-prefix=THREADS

// 4.8 MB between the product and the convolution: fourteen strips of four rows, each from nine rows of the product.
// CHECK-LABEL: @strips
// CHECK-SAME: (%[[X:.*]]: tensor<12544x16xf32>, %[[W:.*]]: tensor<16x96xf32>, %[[F:.*]]: tensor<3x3x1x96xf32>)
// CHECK-NOT: kernel.dot
// CHECK: kernel.chain(%[[X]], %[[W]], %[[F]]) {rows = 4 : i64}
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<12544x16xf32>, %[[B:.*]]: tensor<16x96xf32>, %[[C:.*]]: tensor<3x3x1x96xf32>):
// CHECK: kernel.dot(%[[A]], %[[B]])
// CHECK: hlo.reshape
// CHECK: kernel.depthwise_conv(%{{.*}}, %[[C]])
// THREADS-LABEL: @strips
// THREADS: kernel.chain({{.*}}) {rows = 4 : i64}
func.func @strips(%x: tensor<12544x16xf32>, %w: tensor<16x96xf32>, %f: tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<12544x16xf32>, tensor<16x96xf32>) -> tensor<12544x96xf32> {
  ^bb0(%acc: tensor<12544x96xf32>):
    kernel.yield %acc : tensor<12544x96xf32>
  }
  %1 = hlo.reshape %0 : (tensor<12544x96xf32>) -> tensor<1x112x112x96xf32>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 96 : i64, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xf32> {
  ^bb0(%acc: tensor<1x56x56x96xf32>):
    kernel.yield %acc : tensor<1x56x56x96xf32>
  }
  return %2 : tensor<1x56x56x96xf32>
}

// -----

// What stays in the cache as it is.
// CHECK-LABEL: @small
// CHECK-NOT: kernel.chain
// CHECK: return
// THREADS-LABEL: @small
func.func @small(%x: tensor<784x32xf32>, %w: tensor<32x192xf32>, %f: tensor<3x3x1x192xf32>) -> tensor<1x28x28x192xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<784x32xf32>, tensor<32x192xf32>) -> tensor<784x192xf32> {
  ^bb0(%acc: tensor<784x192xf32>):
    kernel.yield %acc : tensor<784x192xf32>
  }
  %1 = hlo.reshape %0 : (tensor<784x192xf32>) -> tensor<1x28x28x192xf32>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 192 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x28x28x192xf32>, tensor<3x3x1x192xf32>) -> tensor<1x28x28x192xf32> {
  ^bb0(%acc: tensor<1x28x28x192xf32>):
    kernel.yield %acc : tensor<1x28x28x192xf32>
  }
  return %2 : tensor<1x28x28x192xf32>
}

// -----

// Computing 2 of 6 rows twice is dearer than memory where the sums are long.
// CHECK-LABEL: @long_sums
// CHECK-NOT: kernel.chain
// CHECK: return
func.func @long_sums(%x: tensor<12544x512xf32>, %w: tensor<512x256xf32>, %f: tensor<3x3x1x256xf32>) -> tensor<1x112x112x256xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<12544x512xf32>, tensor<512x256xf32>) -> tensor<12544x256xf32> {
  ^bb0(%acc: tensor<12544x256xf32>):
    kernel.yield %acc : tensor<12544x256xf32>
  }
  %1 = hlo.reshape %0 : (tensor<12544x256xf32>) -> tensor<1x112x112x256xf32>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 256 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x256xf32>, tensor<3x3x1x256xf32>) -> tensor<1x112x112x256xf32> {
  ^bb0(%acc: tensor<1x112x112x256xf32>):
    kernel.yield %acc : tensor<1x112x112x256xf32>
  }
  return %2 : tensor<1x112x112x256xf32>
}

// -----

// A residual has a row for each row of the product; a second reader needs all of it.
// CHECK-LABEL: @residual
// CHECK-NOT: kernel.chain
// CHECK: return
func.func @residual(%x: tensor<12544x16xf32>, %w: tensor<16x96xf32>, %r: tensor<12544x96xf32>, %f: tensor<3x3x1x96xf32>) -> (tensor<1x56x56x96xf32>, tensor<1x56x56x96xf32>, tensor<12544x96xf32>) {
  %0 = kernel.dot(%x, %w, %r) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<12544x16xf32>, tensor<16x96xf32>, tensor<12544x96xf32>) -> tensor<12544x96xf32> {
  ^bb0(%acc: tensor<12544x96xf32>, %e: tensor<12544x96xf32>):
    %s = hlo.add %acc, %e : tensor<12544x96xf32>
    kernel.yield %s : tensor<12544x96xf32>
  }
  %1 = hlo.reshape %0 : (tensor<12544x96xf32>) -> tensor<1x112x112x96xf32>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 96 : i64, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xf32> {
  ^bb0(%acc: tensor<1x56x56x96xf32>):
    kernel.yield %acc : tensor<1x56x56x96xf32>
  }
  %3 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<12544x16xf32>, tensor<16x96xf32>) -> tensor<12544x96xf32> {
  ^bb0(%acc: tensor<12544x96xf32>):
    kernel.yield %acc : tensor<12544x96xf32>
  }
  %4 = hlo.reshape %3 : (tensor<12544x96xf32>) -> tensor<1x112x112x96xf32>
  %5 = kernel.depthwise_conv(%4, %f) {groups = 96 : i64, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xf32> {
  ^bb0(%acc: tensor<1x56x56x96xf32>):
    kernel.yield %acc : tensor<1x56x56x96xf32>
  }
  return %2, %5, %3 : tensor<1x56x56x96xf32>, tensor<1x56x56x96xf32>, tensor<12544x96xf32>
}
