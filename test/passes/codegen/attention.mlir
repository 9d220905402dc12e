// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma" --kernel-attention --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+avx,+fma threads=8" --kernel-attention --split-input-file | FileCheck %s --check-prefix=THREADS

// Heads in place, a mask of columns among the rows' operands: one block of each head, two where eight threads share twelve.
// CHECK-LABEL: @heads
// CHECK-SAME: (%[[Q:.*]]: tensor<1x128x12x64xf32>, %[[K:.*]]: tensor<1x128x12x64xf32>, %[[V:.*]]: tensor<1x128x12x64xf32>, %[[M:.*]]: tensor<1x1x1x128xf32>)
// CHECK-NOT: kernel.dot
// CHECK: %[[R:.*]] = kernel.attention(%[[Q]], %[[K]], %[[M]], %[[V]]) {blocks = 1 : i64}
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<1x128x12x64xf32>, %[[B:.*]]: tensor<1x128x12x64xf32>, %[[C:.*]]: tensor<1x1x1x128xf32>, %[[D:.*]]: tensor<1x128x12x64xf32>):
// CHECK: %[[S:.*]] = kernel.dot(%[[A]], %[[B]])
// CHECK: %[[P:.*]] = kernel.rows(%[[S]], %[[C]])
// CHECK: kernel.dot(%[[P]], %[[D]])
// CHECK: return %[[R]]
// THREADS-LABEL: @heads
// THREADS: kernel.attention({{.*}}) {blocks = 2 : i64}
func.func @heads(%q: tensor<1x128x12x64xf32>, %k: tensor<1x128x12x64xf32>, %v: tensor<1x128x12x64xf32>, %m: tensor<1x1x1x128xf32>) -> tensor<1x128x12x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 2, 1, 3>, rhs_dims = array<i64: 0, 2, 3, 1>, result_dims = array<i64: 0, 1, 2, 3>} : (tensor<1x128x12x64xf32>, tensor<1x128x12x64xf32>) -> tensor<1x12x128x128xf32> {
  ^bb0(%acc: tensor<1x12x128x128xf32>):
    kernel.yield %acc : tensor<1x12x128x128xf32>
  }
  %1 = kernel.rows(%0, %m) : (tensor<1x12x128x128xf32>, tensor<1x1x1x128xf32>) -> tensor<1x12x128x128xf32> {
  ^bb0(%a: tensor<1x12x128x128xf32>, %b: tensor<1x1x1x128xf32>):
    %mb = hlo.broadcast_in_dim %b, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xf32>) -> tensor<1x12x128x128xf32>
    %x = hlo.add %a, %mb : tensor<1x12x128x128xf32>
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%x, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 3>} : (tensor<1x12x128x128xf32>, tensor<f32>) -> tensor<1x12x128xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<1x12x128xf32>) -> tensor<1x12x128x128xf32>
    %d = hlo.subtract %x, %maxb : tensor<1x12x128x128xf32>
    %e = hlo.exponential %d : tensor<1x12x128x128xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 3>} : (tensor<1x12x128x128xf32>, tensor<f32>) -> tensor<1x12x128xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<1x12x128xf32>) -> tensor<1x12x128x128xf32>
    %y = hlo.divide %e, %sumb : tensor<1x12x128x128xf32>
    kernel.yield %y : tensor<1x12x128x128xf32>
  }
  %2 = kernel.dot(%1, %v) {lhs_dims = array<i64: 0, 1, 2, 3>, rhs_dims = array<i64: 0, 2, 1, 3>, result_dims = array<i64: 0, 2, 1, 3>} : (tensor<1x12x128x128xf32>, tensor<1x128x12x64xf32>) -> tensor<1x128x12x64xf32> {
  ^bb0(%acc: tensor<1x128x12x64xf32>):
    kernel.yield %acc : tensor<1x128x12x64xf32>
  }
  return %2 : tensor<1x128x12x64xf32>
}

// -----

// A long sequence: blocks whose scores stay in L2. Reshapes of the batch are taken along.
// CHECK-LABEL: @blocks
// CHECK: kernel.attention({{.*}}) {blocks = 40 : i64}
// CHECK: kernel.dot
// CHECK: hlo.reshape
// CHECK: kernel.rows
// CHECK: hlo.reshape
// CHECK: kernel.dot
func.func @blocks(%q: tensor<1x1x1024x64xf32>, %k: tensor<1x1x1024x64xf32>, %v: tensor<1x1x1024x64xf32>) -> tensor<1x1x1024x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2, 3>, rhs_dims = array<i64: 0, 1, 3, 2>, result_dims = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1024x64xf32>, tensor<1x1x1024x64xf32>) -> tensor<1x1x1024x1024xf32> {
  ^bb0(%acc: tensor<1x1x1024x1024xf32>):
    kernel.yield %acc : tensor<1x1x1024x1024xf32>
  }
  %1 = hlo.reshape %0 : (tensor<1x1x1024x1024xf32>) -> tensor<1x1024x1024xf32>
  %2 = kernel.rows(%1) : (tensor<1x1024x1024xf32>) -> tensor<1x1024x1024xf32> {
  ^bb0(%a: tensor<1x1024x1024xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<1x1024x1024xf32>, tensor<f32>) -> tensor<1x1024xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<1x1024xf32>) -> tensor<1x1024x1024xf32>
    %d = hlo.subtract %a, %maxb : tensor<1x1024x1024xf32>
    %e = hlo.exponential %d : tensor<1x1024x1024xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<1x1024x1024xf32>, tensor<f32>) -> tensor<1x1024xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<1x1024xf32>) -> tensor<1x1024x1024xf32>
    %y = hlo.divide %e, %sumb : tensor<1x1024x1024xf32>
    kernel.yield %y : tensor<1x1024x1024xf32>
  }
  %3 = hlo.reshape %2 : (tensor<1x1024x1024xf32>) -> tensor<1x1x1024x1024xf32>
  %4 = kernel.dot(%3, %v) {lhs_dims = array<i64: 0, 1, 2, 3>, rhs_dims = array<i64: 0, 1, 2, 3>, result_dims = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1024x1024xf32>, tensor<1x1x1024x64xf32>) -> tensor<1x1x1024x64xf32> {
  ^bb0(%acc: tensor<1x1x1024x64xf32>):
    kernel.yield %acc : tensor<1x1x1024x64xf32>
  }
  return %4 : tensor<1x1x1024x64xf32>
}

// -----

// A few rows: to pack keys and values takes longer than to read them in place.
// CHECK-LABEL: @few_rows
// CHECK-NOT: kernel.attention
// CHECK: return
func.func @few_rows(%q: tensor<128x8x64xf32>, %k: tensor<128x512x64xf32>, %v: tensor<128x512x64xf32>) -> tensor<128x8x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<128x8x64xf32>, tensor<128x512x64xf32>) -> tensor<128x8x512xf32> {
  ^bb0(%acc: tensor<128x8x512xf32>):
    kernel.yield %acc : tensor<128x8x512xf32>
  }
  %2 = kernel.rows(%0) : (tensor<128x8x512xf32>) -> tensor<128x8x512xf32> {
  ^bb0(%a: tensor<128x8x512xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<128x8x512xf32>, tensor<f32>) -> tensor<128x8xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<128x8xf32>) -> tensor<128x8x512xf32>
    %d = hlo.subtract %a, %maxb : tensor<128x8x512xf32>
    %e = hlo.exponential %d : tensor<128x8x512xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<128x8x512xf32>, tensor<f32>) -> tensor<128x8xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<128x8xf32>) -> tensor<128x8x512xf32>
    %y = hlo.divide %e, %sumb : tensor<128x8x512xf32>
    kernel.yield %y : tensor<128x8x512xf32>
  }
  %4 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<128x8x512xf32>, tensor<128x512x64xf32>) -> tensor<128x8x64xf32> {
  ^bb0(%acc: tensor<128x8x64xf32>):
    kernel.yield %acc : tensor<128x8x64xf32>
  }
  return %4 : tensor<128x8x64xf32>
}

// -----

// The probabilities are wanted, too.
// CHECK-LABEL: @second_reader
// CHECK-NOT: kernel.attention
// CHECK: return
func.func @second_reader(%q: tensor<64x64x64xf32>, %k: tensor<64x64x64xf32>, %v: tensor<64x64x64xf32>) -> (tensor<64x64x64xf32>, tensor<64x64x64xf32>) {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  %2 = kernel.rows(%0) : (tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%a: tensor<64x64x64xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %d = hlo.subtract %a, %maxb : tensor<64x64x64xf32>
    %e = hlo.exponential %d : tensor<64x64x64xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %y = hlo.divide %e, %sumb : tensor<64x64x64xf32>
    kernel.yield %y : tensor<64x64x64xf32>
  }
  %4 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  return %4, %2 : tensor<64x64x64xf32>, tensor<64x64x64xf32>
}

// -----

// What a row becomes depends on the row that mirrors it.
// CHECK-LABEL: @other_rows
// CHECK-NOT: kernel.attention
// CHECK: return
func.func @other_rows(%q: tensor<64x64x64xf32>, %k: tensor<64x64x64xf32>, %v: tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  %2 = kernel.rows(%0) : (tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%a: tensor<64x64x64xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %d = hlo.subtract %a, %maxb : tensor<64x64x64xf32>
    %e = hlo.exponential %d : tensor<64x64x64xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %y = hlo.divide %e, %sumb : tensor<64x64x64xf32>
    %y2 = "hlo.reverse"(%y) {dimensions = array<i64: 1>} : (tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
    %z = hlo.add %y, %y2 : tensor<64x64x64xf32>
    kernel.yield %z : tensor<64x64x64xf32>
  }
  %4 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  return %4 : tensor<64x64x64xf32>
}

// -----

// Products of bf16 operands keep their own kernels.
// CHECK-LABEL: @bf16
// CHECK-NOT: kernel.attention
// CHECK: return
func.func @bf16(%q: tensor<64x64x64xf32>, %k: tensor<64x64x64xf32>, %v: tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  %0 = kernel.dot(%q, %k) {bf16, lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  %2 = kernel.rows(%0) : (tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%a: tensor<64x64x64xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %d = hlo.subtract %a, %maxb : tensor<64x64x64xf32>
    %e = hlo.exponential %d : tensor<64x64x64xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<64x64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
    %y = hlo.divide %e, %sumb : tensor<64x64x64xf32>
    kernel.yield %y : tensor<64x64x64xf32>
  }
  %4 = kernel.dot(%2, %v) {bf16, lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  ^bb0(%acc: tensor<64x64x64xf32>):
    kernel.yield %acc : tensor<64x64x64xf32>
  }
  return %4 : tensor<64x64x64xf32>
}

// -----

// Scores that stay in the cache as it is. Several threads do without two of three places where they wait for each other.
// CHECK-LABEL: @small
// CHECK-NOT: kernel.attention
// CHECK: return
// THREADS-LABEL: @small
// THREADS: kernel.attention({{.*}}) {blocks = 1 : i64}
func.func @small(%q: tensor<8x64x64xf32>, %k: tensor<8x64x64xf32>, %v: tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {
  ^bb0(%acc: tensor<8x64x64xf32>):
    kernel.yield %acc : tensor<8x64x64xf32>
  }
  %2 = kernel.rows(%0) : (tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {
  ^bb0(%a: tensor<8x64x64xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<8x64x64xf32>, tensor<f32>) -> tensor<8x64xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<8x64xf32>) -> tensor<8x64x64xf32>
    %d = hlo.subtract %a, %maxb : tensor<8x64x64xf32>
    %e = hlo.exponential %d : tensor<8x64x64xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<8x64x64xf32>, tensor<f32>) -> tensor<8x64xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<8x64xf32>) -> tensor<8x64x64xf32>
    %y = hlo.divide %e, %sumb : tensor<8x64x64xf32>
    kernel.yield %y : tensor<8x64x64xf32>
  }
  %4 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {
  ^bb0(%acc: tensor<8x64x64xf32>):
    kernel.yield %acc : tensor<8x64x64xf32>
  }
  return %4 : tensor<8x64x64xf32>
}

// -----

// Rows of a few elements, which are computed many at a time.
// CHECK-LABEL: @short_rows
// CHECK-NOT: kernel.attention
// CHECK: return
func.func @short_rows(%q: tensor<1024x64x64xf32>, %k: tensor<1024x8x64xf32>, %v: tensor<1024x8x64xf32>) -> tensor<1024x64x64xf32> {
  %0 = kernel.dot(%q, %k) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 0, 1, 2>} : (tensor<1024x64x64xf32>, tensor<1024x8x64xf32>) -> tensor<1024x64x8xf32> {
  ^bb0(%acc: tensor<1024x64x8xf32>):
    kernel.yield %acc : tensor<1024x64x8xf32>
  }
  %2 = kernel.rows(%0) : (tensor<1024x64x8xf32>) -> tensor<1024x64x8xf32> {
  ^bb0(%a: tensor<1024x64x8xf32>):
    %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0.0> : tensor<f32>
    %max = "hlo.reduce"(%a, %ninf) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.maximum %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<1024x64x8xf32>, tensor<f32>) -> tensor<1024x64xf32>
    %maxb = hlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<1024x64xf32>) -> tensor<1024x64x8xf32>
    %d = hlo.subtract %a, %maxb : tensor<1024x64x8xf32>
    %e = hlo.exponential %d : tensor<1024x64x8xf32>
    %sum = "hlo.reduce"(%e, %zero) ({
    ^bb0(%f: tensor<f32>, %g: tensor<f32>):
      %r = hlo.add %f, %g : tensor<f32>
      hlo.return %r : tensor<f32>
    }) {dimensions = array<i64: 2>} : (tensor<1024x64x8xf32>, tensor<f32>) -> tensor<1024x64xf32>
    %sumb = hlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<1024x64xf32>) -> tensor<1024x64x8xf32>
    %y = hlo.divide %e, %sumb : tensor<1024x64x8xf32>
    kernel.yield %y : tensor<1024x64x8xf32>
  }
  %4 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 1, 2>, result_dims = array<i64: 0, 1, 2>} : (tensor<1024x64x8xf32>, tensor<1024x8x64xf32>) -> tensor<1024x64x64xf32> {
  ^bb0(%acc: tensor<1024x64x64xf32>):
    kernel.yield %acc : tensor<1024x64x64xf32>
  }
  return %4 : tensor<1024x64x64xf32>
}
