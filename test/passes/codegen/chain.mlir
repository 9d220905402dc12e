// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-chain --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+amx-tile,+amx-bf16,+avx2,+avx,+fma" --kernel-chain --split-input-file | FileCheck %s --check-prefix=AMX
// RUN: lathe-opt %s --kernel-set-target="threads=2 features=" --kernel-chain --split-input-file | FileCheck %s --check-prefix=THREADS

// 4.8 MB between the product and the convolution, a strip of which fits in a quarter of L2.
// CHECK-LABEL: @strips
// CHECK-SAME: (%[[X:.*]]: tensor<12544x16xf32>, %[[W:.*]]: tensor<3x16x32xf32>, %[[F:.*]]: tensor<3x3x1x96xf32>)
// CHECK-NOT: kernel.dot
// CHECK: kernel.chain(%[[X]], %[[W]], %[[F]]) {strips = 8 : i64}
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<12544x16xf32>, %[[B:.*]]: tensor<3x16x32xf32>, %[[C:.*]]: tensor<3x3x1x96xf32>):
// CHECK: kernel.dot(%[[A]], %[[B]])
// CHECK: hlo.reshape
// CHECK: kernel.depthwise_conv(%{{.*}}, %[[C]])
// THREADS-LABEL: @strips
// THREADS: kernel.chain({{.*}}) {strips = 8 : i64}
func.func @strips(%x: tensor<12544x16xf32>, %w: tensor<3x16x32xf32>, %f: tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32>} : (tensor<12544x16xf32>, tensor<3x16x32xf32>) -> tensor<12544x96xf32> {
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

// What fits in the cache, panel by panel; between two threads the rows that both need would be too many.
// CHECK-LABEL: @small
// CHECK: kernel.chain({{.*}}) {strips = 1 : i64}
// THREADS-LABEL: @small
// THREADS-NOT: kernel.chain
// THREADS: return
func.func @small(%x: tensor<784x32xf32>, %w: tensor<6x32x32xf32>, %f: tensor<3x3x1x192xf32>) -> tensor<1x28x28x192xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32>} : (tensor<784x32xf32>, tensor<6x32x32xf32>) -> tensor<784x192xf32> {
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

// L2 has room for so few pixels of long sums that a strip would read more of the one above it than it adds.
// CHECK-LABEL: @long_sums
// CHECK-NOT: kernel.chain
// CHECK: return
func.func @long_sums(%x: tensor<12544x1024xf32>, %w: tensor<8x1024x32xf32>, %f: tensor<3x3x1x256xf32>) -> tensor<1x112x112x256xf32> {
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32>} : (tensor<12544x1024xf32>, tensor<8x1024x32xf32>) -> tensor<12544x256xf32> {
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

// -----

// Products of bf16 operands, which also leave bf16 between them: half the memory. Not with AMX, whose tiles do all panels of a
// product.
// CHECK-LABEL: @pairs
// CHECK: kernel.chain({{.*}}) {strips = 4 : i64}
// CHECK: kernel.dot({{.*}}) {bf16, {{.*}} (tensor<12544x16xbf16>, tensor<3x8x64xbf16>) -> tensor<12544x96xbf16>
// AMX-LABEL: @pairs
// AMX-NOT: kernel.chain
// AMX: return
func.func @pairs(%x: tensor<12544x16xbf16>, %w: tensor<3x8x64xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xbf16> {
  %0 = kernel.dot(%x, %w) {bf16, lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32, group = 2>} : (tensor<12544x16xbf16>, tensor<3x8x64xbf16>) -> tensor<12544x96xbf16> {
  ^bb0(%acc: tensor<12544x96xf32>):
    %1 = hlo.convert %acc : (tensor<12544x96xf32>) -> tensor<12544x96xbf16>
    kernel.yield %1 : tensor<12544x96xbf16>
  }
  %1 = hlo.reshape %0 : (tensor<12544x96xbf16>) -> tensor<1x112x112x96xbf16>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 96 : i64, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x96xbf16>, tensor<3x3x1x96xf32>) -> tensor<1x56x56x96xbf16> {
  ^bb0(%acc: tensor<1x56x56x96xf32>):
    %3 = hlo.convert %acc : (tensor<1x56x56x96xf32>) -> tensor<1x56x56x96xbf16>
    kernel.yield %3 : tensor<1x56x56x96xbf16>
  }
  return %2 : tensor<1x56x56x96xbf16>
}

// -----

// Rows of f32 would be rounded again for each panel.
// CHECK-LABEL: @rounded_rows
// CHECK-NOT: kernel.chain
// CHECK: return
func.func @rounded_rows(%x: tensor<12544x16xf32>, %w: tensor<3x8x64xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<1x112x112x96xf32> {
  %0 = kernel.dot(%x, %w) {bf16, lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1>, layout = #cpu.panels<columns = 32, group = 2>} : (tensor<12544x16xf32>, tensor<3x8x64xbf16>) -> tensor<12544x96xf32> {
  ^bb0(%acc: tensor<12544x96xf32>):
    kernel.yield %acc : tensor<12544x96xf32>
  }
  %1 = hlo.reshape %0 : (tensor<12544x96xf32>) -> tensor<1x112x112x96xf32>
  %2 = kernel.depthwise_conv(%1, %f) {groups = 96 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32>) -> tensor<1x112x112x96xf32> {
  ^bb0(%acc: tensor<1x112x112x96xf32>):
    kernel.yield %acc : tensor<1x112x112x96xf32>
  }
  return %2 : tensor<1x112x112x96xf32>
}
