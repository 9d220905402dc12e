// RUN: lathe-opt %s --kernel-place-parts --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-place-parts --kernel-place-parts --split-input-file | FileCheck %s --enable-var-scope

// Producers write rows of the whole, through a reshape of their pixels too; the concatenation is no code.
// CHECK-LABEL: @channels
// CHECK: kernel.pool(%{{.*}}) {kernel.result_rows = array<i64: 40>,
// CHECK: kernel.dot(%{{.*}}) {kernel.result_rows = array<i64: 40>,
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: true, true>
func.func @channels(%x: tensor<2x4x4x16xf32>, %y: tensor<32x8xf32>, %w: tensor<8x24xf32>) -> tensor<2x4x4x40xf32> {
  %0 = kernel.pool(%x) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, window_dilation = array<i64: 1, 1>} : (tensor<2x4x4x16xf32>) -> tensor<2x4x4x16xf32> {
  ^bb0(%acc: tensor<2x4x4x16xf32>):
    kernel.yield %acc : tensor<2x4x4x16xf32>
  }
  %1 = kernel.dot(%y, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<32x8xf32>, tensor<8x24xf32>) -> tensor<32x24xf32> {
  ^bb0(%acc: tensor<32x24xf32>):
    kernel.yield %acc : tensor<32x24xf32>
  }
  %2 = "hlo.reshape"(%1) : (tensor<32x24xf32>) -> tensor<2x4x4x24xf32>
  %3 = "hlo.concatenate"(%0, %2) {dimension = 3 : i64} : (tensor<2x4x4x16xf32>, tensor<2x4x4x24xf32>) -> tensor<2x4x4x40xf32>
  return %3 : tensor<2x4x4x40xf32>
}

// -----

// What is an argument or leaves the function is copied, and so is a value the second time, from where it lies.
// CHECK-LABEL: @others
// CHECK: kernel.loop(%{{[a-z0-9]+}}) : (
// CHECK: kernel.loop(%{{[a-z0-9]+}}) {kernel.result_rows = array<i64: 80>} : (
// CHECK: kernel.loop(%{{[a-z0-9]+}}) {kernel.result_rows = array<i64: 80>} : (
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: false, false, true, true, false>, kernel.operand_rows = array<i64: 0, 0, 0, 0, 80>
func.func @others(%x: tensor<4x16xf32>) -> (tensor<4x80xf32>, tensor<4x16xf32>) {
  %0 = kernel.loop(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %y = "hlo.tanh"(%a) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %y : tensor<4x16xf32>
  }
  %1 = kernel.loop(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %y = "hlo.abs"(%a) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %y : tensor<4x16xf32>
  }
  %2 = kernel.loop(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %y = "hlo.negate"(%a) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %y : tensor<4x16xf32>
  }
  %3 = "hlo.concatenate"(%x, %0, %2, %1, %1) {dimension = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x80xf32>
  return %3, %0 : tensor<4x80xf32>, tensor<4x16xf32>
}

// -----

// One of two results; the other is dense.
// CHECK-LABEL: @two_results
// CHECK: kernel.loop(%{{[a-z0-9]+}}) {kernel.result_rows = array<i64: 0, 48>} : (
func.func @two_results(%x: tensor<4x32xf32>, %z: tensor<4x16xf32>) -> (tensor<4x48xf32>, tensor<4x32xf32>) {
  %0:2 = kernel.loop(%x) : (tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  ^bb0(%a: tensor<4x32xf32>):
    %p = "hlo.tanh"(%a) : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %q = "hlo.abs"(%a) : (tensor<4x32xf32>) -> tensor<4x32xf32>
    kernel.yield %p, %q : tensor<4x32xf32>, tensor<4x32xf32>
  }
  %1 = "hlo.concatenate"(%z, %0#1) {dimension = 1 : i64} : (tensor<4x16xf32>, tensor<4x32xf32>) -> tensor<4x48xf32>
  return %1, %0#0 : tensor<4x48xf32>, tensor<4x32xf32>
}

// -----

// Each layer appends to all before: one buffer has them all, which every layer reads the first channels of.
// CHECK-LABEL: @layers
// CHECK: kernel.pool(%{{.*}}) {kernel.result_rows = array<i64: 64>,
// CHECK: kernel.loop(%{{.*}}) {kernel.operand_rows = array<i64: 64>} : (tensor<1x8x8x32xf32>)
// CHECK: kernel.dot(%{{.*}}) {kernel.result_rows = array<i64: 64>,
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: true, true>, kernel.result_rows = array<i64: 64>}
// CHECK: kernel.loop(%{{.*}}) {kernel.operand_rows = array<i64: 64>} : (tensor<1x8x8x48xf32>)
// CHECK: kernel.dot(%{{.*}}) {kernel.result_rows = array<i64: 64>,
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: true, true>}
func.func @layers(%x: tensor<1x16x16x32xf32>, %v: tensor<32x16xf32>, %w: tensor<48x16xf32>) -> tensor<1x8x8x64xf32> {
  %0 = kernel.pool(%x) {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, window_dilation = array<i64: 1, 1>} : (tensor<1x16x16x32xf32>) -> tensor<1x8x8x32xf32> {
  ^bb0(%acc: tensor<1x8x8x32xf32>):
    kernel.yield %acc : tensor<1x8x8x32xf32>
  }
  %1 = kernel.loop(%0) : (tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32> {
  ^bb0(%a: tensor<1x8x8x32xf32>):
    %y = "hlo.tanh"(%a) : (tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
    kernel.yield %y : tensor<1x8x8x32xf32>
  }
  %2 = "hlo.reshape"(%1) : (tensor<1x8x8x32xf32>) -> tensor<64x32xf32>
  %3 = kernel.dot(%2, %v) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32> {
  ^bb0(%acc: tensor<64x16xf32>):
    kernel.yield %acc : tensor<64x16xf32>
  }
  %4 = "hlo.reshape"(%3) : (tensor<64x16xf32>) -> tensor<1x8x8x16xf32>
  %5 = "hlo.concatenate"(%0, %4) {dimension = 3 : i64} : (tensor<1x8x8x32xf32>, tensor<1x8x8x16xf32>) -> tensor<1x8x8x48xf32>
  %6 = kernel.loop(%5) : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32> {
  ^bb0(%a: tensor<1x8x8x48xf32>):
    %y = "hlo.tanh"(%a) : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32>
    kernel.yield %y : tensor<1x8x8x48xf32>
  }
  %7 = "hlo.reshape"(%6) : (tensor<1x8x8x48xf32>) -> tensor<64x48xf32>
  %8 = kernel.dot(%7, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<64x48xf32>, tensor<48x16xf32>) -> tensor<64x16xf32> {
  ^bb0(%acc: tensor<64x16xf32>):
    kernel.yield %acc : tensor<64x16xf32>
  }
  %9 = "hlo.reshape"(%8) : (tensor<64x16xf32>) -> tensor<1x8x8x16xf32>
  %10 = "hlo.concatenate"(%5, %9) {dimension = 3 : i64} : (tensor<1x8x8x48xf32>, tensor<1x8x8x16xf32>) -> tensor<1x8x8x64xf32>
  return %10 : tensor<1x8x8x64xf32>
}

// -----

// Where pixels would share few sets of the first cache, windows go over dense ones; what has left
// the caches when it is put together is brought back by the copy.
// CHECK-LABEL: @slower
// CHECK-NOT: result_rows
// CHECK-NOT: joined
// CHECK: return
func.func @slower(%x: tensor<1x16x16x32xf32>, %y: tensor<1x16x16x224xf32>, %z: tensor<4x1024x1024xf32>) -> (tensor<1x16x16x256xf32>, tensor<1x16x16x48xf32>, tensor<4x1024x1024xf32>) {
  %0 = kernel.pool(%x) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, window_dilation = array<i64: 1, 1>} : (tensor<1x16x16x32xf32>) -> tensor<1x16x16x32xf32> {
  ^bb0(%acc: tensor<1x16x16x32xf32>):
    kernel.yield %acc : tensor<1x16x16x32xf32>
  }
  %1 = "hlo.concatenate"(%0, %y) {dimension = 3 : i64} : (tensor<1x16x16x32xf32>, tensor<1x16x16x224xf32>) -> tensor<1x16x16x256xf32>
  %2 = kernel.loop(%x) : (tensor<1x16x16x32xf32>) -> tensor<1x16x16x16xf32> {
  ^bb0(%a: tensor<1x16x16x32xf32>):
    %s = "hlo.slice"(%a) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 16, 16, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x16x16x32xf32>) -> tensor<1x16x16x16xf32>
    kernel.yield %s : tensor<1x16x16x16xf32>
  }
  %3 = kernel.loop(%z) : (tensor<4x1024x1024xf32>) -> tensor<4x1024x1024xf32> {
  ^bb0(%a: tensor<4x1024x1024xf32>):
    %t = "hlo.tanh"(%a) : (tensor<4x1024x1024xf32>) -> tensor<4x1024x1024xf32>
    kernel.yield %t : tensor<4x1024x1024xf32>
  }
  %4 = "hlo.concatenate"(%x, %2) {dimension = 3 : i64} : (tensor<1x16x16x32xf32>, tensor<1x16x16x16xf32>) -> tensor<1x16x16x48xf32>
  return %1, %4, %3 : tensor<1x16x16x256xf32>, tensor<1x16x16x48xf32>, tensor<4x1024x1024xf32>
}

// -----

// Products read rows of their left operand that lie apart; those of the right one, and broadcasts, want dense ones.
// CHECK-LABEL: @readers
// CHECK: kernel.loop(%{{[a-z0-9]+}}) {kernel.result_rows = array<i64: 48>} : (
// CHECK: kernel.loop(%{{[a-z0-9]+}}) : (
// CHECK: kernel.loop(%{{[a-z0-9]+}}) : (
// CHECK: kernel.dot(%{{.*}}) {kernel.operand_rows = array<i64: 48, 0>,
// CHECK: kernel.loop(%{{[a-z0-9]+}}) : (
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: true, false, false>
func.func @readers(%x: tensor<16x16xf32>) -> (tensor<16x48xf32>, tensor<16x16xf32>, tensor<2x16x16xf32>) {
  %0 = kernel.loop(%x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x16xf32>):
    %y = "hlo.tanh"(%a) : (tensor<16x16xf32>) -> tensor<16x16xf32>
    kernel.yield %y : tensor<16x16xf32>
  }
  %1 = kernel.loop(%x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x16xf32>):
    %y = "hlo.abs"(%a) : (tensor<16x16xf32>) -> tensor<16x16xf32>
    kernel.yield %y : tensor<16x16xf32>
  }
  %2 = kernel.loop(%x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x16xf32>):
    %y = "hlo.negate"(%a) : (tensor<16x16xf32>) -> tensor<16x16xf32>
    kernel.yield %y : tensor<16x16xf32>
  }
  %3 = kernel.dot(%0, %1) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%acc: tensor<16x16xf32>):
    kernel.yield %acc : tensor<16x16xf32>
  }
  %4 = kernel.loop(%2) : (tensor<16x16xf32>) -> tensor<2x16x16xf32> {
  ^bb0(%a: tensor<16x16xf32>):
    %y = "hlo.broadcast_in_dim"(%a) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<16x16xf32>) -> tensor<2x16x16xf32>
    kernel.yield %y : tensor<2x16x16xf32>
  }
  %5 = "hlo.concatenate"(%0, %1, %2) {dimension = 1 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x48xf32>
  return %5, %3, %4 : tensor<16x48xf32>, tensor<16x16xf32>, tensor<2x16x16xf32>
}

// -----

// Loops of short rows and those that turn the last dimension keep the code that suits them.
// CHECK-LABEL: @short_rows
// CHECK-NOT: result_rows
// CHECK-NOT: joined
// CHECK: return
func.func @short_rows(%x: tensor<4x3xf32>, %t: tensor<20x4xf32>) -> tensor<4x23xf32> {
  %0 = kernel.loop(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32> {
  ^bb0(%a: tensor<4x3xf32>):
    %p = "hlo.tanh"(%a) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    kernel.yield %p : tensor<4x3xf32>
  }
  %1 = kernel.loop(%t) : (tensor<20x4xf32>) -> tensor<4x20xf32> {
  ^bb0(%a: tensor<20x4xf32>):
    %p = "hlo.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<20x4xf32>) -> tensor<4x20xf32>
    kernel.yield %p : tensor<4x20xf32>
  }
  %2 = "hlo.concatenate"(%0, %1) {dimension = 1 : i64} : (tensor<4x3xf32>, tensor<4x20xf32>) -> tensor<4x23xf32>
  return %2 : tensor<4x23xf32>
}

// -----

// Parts of an outermost dimension are in one run: no kernel need know. A reshape may have any form.
// CHECK-LABEL: @outermost
// CHECK: kernel.loop(%{{[a-z0-9]+}}) : (
// CHECK: kernel.reduce(%{{[a-z0-9]+}}) : (
// CHECK: hlo.concatenate {{.*}}kernel.joined = array<i1: true, false, true>
func.func @outermost(%x: tensor<4x3xf32>, %z: tensor<1x2x3xf32>) -> tensor<1x7x3xf32> {
  %zero = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = kernel.loop(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32> {
  ^bb0(%a: tensor<4x3xf32>):
    %p = "hlo.tanh"(%a) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    kernel.yield %p : tensor<4x3xf32>
  }
  %1 = "hlo.reshape"(%0) : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
  %2 = kernel.reduce(%x) : (tensor<4x3xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<4x3xf32>):
    %c = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %r = "hlo.reduce"(%a, %c) ({
    ^bb0(%l: tensor<f32>, %m: tensor<f32>):
      %s = "hlo.add"(%l, %m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "hlo.return"(%s) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    kernel.yield %r : tensor<3xf32>
  }
  %3 = "hlo.reshape"(%2) : (tensor<3xf32>) -> tensor<1x1x3xf32>
  %4 = "hlo.concatenate"(%1, %z, %3) {dimension = 1 : i64} : (tensor<1x4x3xf32>, tensor<1x2x3xf32>, tensor<1x1x3xf32>) -> tensor<1x7x3xf32>
  return %4 : tensor<1x7x3xf32>
}

// -----

// Of a middle dimension under several rows, parts are copied; so is what another block computes.
// CHECK-LABEL: @middle
// CHECK-NOT: result_rows
// CHECK-NOT: joined
// CHECK: return
func.func @middle(%x: tensor<2x4x16xf32>, %p: tensor<i1>) -> (tensor<2x8x16xf32>, tensor<2x4x32xf32>) {
  %0 = kernel.loop(%x) : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  ^bb0(%a: tensor<2x4x16xf32>):
    %y = "hlo.tanh"(%a) : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    kernel.yield %y : tensor<2x4x16xf32>
  }
  %1 = "hlo.concatenate"(%x, %0) {dimension = 1 : i64} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  %2 = kernel.loop(%x) : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  ^bb0(%a: tensor<2x4x16xf32>):
    %y = "hlo.abs"(%a) : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    kernel.yield %y : tensor<2x4x16xf32>
  }
  %3 = "hlo.if"(%p) ({
    %4 = "hlo.concatenate"(%x, %2) {dimension = 2 : i64} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x32xf32>
    "hlo.return"(%4) : (tensor<2x4x32xf32>) -> ()
  }, {
    %4 = "hlo.concatenate"(%x, %x) {dimension = 2 : i64} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x32xf32>
    "hlo.return"(%4) : (tensor<2x4x32xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2x4x32xf32>
  return %1, %3 : tensor<2x8x16xf32>, tensor<2x4x32xf32>
}
