// RUN: lathe-opt %s --hlo-split-loop-rows=multiply-adds=16 --mlir-print-local-scope | FileCheck %s
// RUN: lathe-opt %s --hlo-split-loop-rows="multiply-adds=16 threads=3" --mlir-print-local-scope | FileCheck %s --check-prefix=THREE
// RUN: lathe-opt %s --hlo-split-loop-rows="multiply-adds=16 threads=1" | FileCheck %s --check-prefix=ONE
// ONE-NOT: hlo.one_thread

// The steps' input is read where it is, what all rows share stays whole, and a constant of a row each is sliced.
// CHECK-LABEL: func.func @recurrent
// CHECK: %[[FIRST:.*]] = hlo.slice %arg1 {limit_indices = array<i64: 4, 128>, start_indices = array<i64: 0, 0>
// CHECK: %[[ROW0:.*]] = hlo.constant dense<0> : tensor<i32>
// CHECK: %[[A:.*]]:3 = "hlo.while"(%{{.*}}, %[[FIRST]], %{{.*}})
// CHECK: "hlo.dynamic_slice"(%arg0, %{{.*}}, %[[ROW0]], %{{.*}}) <{slice_sizes = array<i64: 1, 4, 128>}>
// CHECK: "hlo.dot_general"(%{{.*}}, %arg2) {{.*}} (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
// CHECK: hlo.broadcast_in_dim %{{.*}}, dims = [0] : (tensor<4xf32>) -> tensor<4x128xf32>
// CHECK: hlo.broadcast_in_dim %arg4, dims = [1] : (tensor<128xf32>) -> tensor<4x128xf32>
// CHECK: hlo.dynamic_update_slice {{.*}} : (tensor<50x4x128xf32>, tensor<1x4x128xf32>
// CHECK: }) {hlo.one_thread}
// CHECK: %[[SECOND:.*]] = hlo.slice %arg1 {limit_indices = array<i64: 8, 128>, start_indices = array<i64: 4, 0>
// CHECK: %[[ROW4:.*]] = hlo.constant dense<4> : tensor<i32>
// CHECK: %[[B:.*]]:3 = "hlo.while"(%{{.*}}, %[[SECOND]], %{{.*}})
// CHECK: "hlo.dynamic_slice"(%arg0, %{{.*}}, %[[ROW4]], %{{.*}}) <{slice_sizes = array<i64: 1, 4, 128>}>
// CHECK: }) {hlo.one_thread}
// CHECK: %[[LAST:.*]] = hlo.concatenate %[[A]]#1, %[[B]]#1 dim = 0
// CHECK: %[[ALL:.*]] = hlo.concatenate %[[A]]#2, %[[B]]#2 dim = 1
// CHECK: return %[[A]]#0, %[[LAST]], %[[ALL]]
// Shares of two, three and three rows.
// THREE-LABEL: func.func @recurrent
// THREE: tensor<50x2x128xf32>
// THREE: tensor<50x3x128xf32>
// THREE: hlo.concatenate %{{.*}}#1, %{{.*}}#1, %{{.*}}#1 dim = 0 : (tensor<2x128xf32>, tensor<3x128xf32>, tensor<3x128xf32>)
func.func @recurrent(%x: tensor<50x8x128xf32>, %h: tensor<8x128xf32>, %w: tensor<128x128xf32>, %scale: tensor<8xf32>, %bias: tensor<128xf32>)
    -> (tensor<i32>, tensor<8x128xf32>, tensor<50x8x128xf32>) {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<50> : tensor<i32>
  %none = hlo.constant dense<0.0> : tensor<50x8x128xf32>
  %r:3 = "hlo.while"(%zero, %h, %none) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>, %all: tensor<50x8x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>, %all: tensor<50x8x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %step = "hlo.dynamic_slice"(%x, %i, %zero, %zero) <{slice_sizes = array<i64: 1, 8, 128>}> : (tensor<50x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %in = hlo.reshape %step : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    %sum = hlo.add %d, %in : tensor<8x128xf32>
    %each = hlo.broadcast_in_dim %scale, dims = [0] : (tensor<8xf32>) -> tensor<8x128xf32>
    %scaled = hlo.multiply %sum, %each : tensor<8x128xf32>
    %shared = hlo.broadcast_in_dim %bias, dims = [1] : (tensor<128xf32>) -> tensor<8x128xf32>
    %biased = hlo.add %scaled, %shared : tensor<8x128xf32>
    %t = hlo.tanh %biased : tensor<8x128xf32>
    %row = hlo.reshape %t : (tensor<8x128xf32>) -> tensor<1x8x128xf32>
    %next = hlo.dynamic_update_slice %all, %row, %i, %zero, %zero : (tensor<50x8x128xf32>, tensor<1x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<50x8x128xf32>
    hlo.return %j, %t, %next : tensor<i32>, tensor<8x128xf32>, tensor<50x8x128xf32>
  }) : (tensor<i32>, tensor<8x128xf32>, tensor<50x8x128xf32>) -> (tensor<i32>, tensor<8x128xf32>, tensor<50x8x128xf32>)
  return %r#0, %r#1, %r#2 : tensor<i32>, tensor<8x128xf32>, tensor<50x8x128xf32>
}

// What is made for the loop alone is made in shares too: the steps' products, of steps times sequences rows.
// CHECK-LABEL: func.func @inputs
// CHECK: %[[X:.*]] = hlo.slice %arg0 {limit_indices = array<i64: 4, 50, 64>, start_indices = array<i64: 0, 0, 0>
// CHECK: %[[STEPS:.*]] = hlo.transpose %[[X]], dims = [1, 0, 2] : (tensor<4x50x64xf32>) -> tensor<50x4x64xf32>
// CHECK: %[[FLAT:.*]] = hlo.reshape %[[STEPS]] : (tensor<50x4x64xf32>) -> tensor<200x64xf32>
// CHECK: %[[D:.*]] = "hlo.dot_general"(%[[FLAT]], %arg1) {{.*}} -> tensor<200x128xf32>
// CHECK: %[[IN:.*]] = hlo.reshape %[[D]] : (tensor<200x128xf32>) -> tensor<50x4x128xf32>
// CHECK: "hlo.while"
// CHECK: "hlo.dynamic_slice"(%[[IN]], %{{.*}}, %[[ZERO:.*]], %[[ZERO]]) <{slice_sizes = array<i64: 1, 4, 128>}>
// CHECK: }) {hlo.one_thread}
// CHECK: hlo.slice %arg0 {limit_indices = array<i64: 8, 50, 64>, start_indices = array<i64: 4, 0, 0>
// With shares of two and three rows the product stays one.
// THREE-LABEL: func.func @inputs
// THREE-NOT: dot_general
// THREE: "hlo.dot_general"{{.*}} -> tensor<400x128xf32>
// THREE: "hlo.while"
func.func @inputs(%x: tensor<8x50x64xf32>, %u: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> tensor<8x128xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<50> : tensor<i32>
  %start = hlo.constant dense<0.0> : tensor<8x128xf32>
  %steps = hlo.transpose %x, dims = [1, 0, 2] : (tensor<8x50x64xf32>) -> tensor<50x8x64xf32>
  %flat = hlo.reshape %steps : (tensor<50x8x64xf32>) -> tensor<400x64xf32>
  %product = "hlo.dot_general"(%flat, %u) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<400x64xf32>, tensor<64x128xf32>) -> tensor<400x128xf32>
  %in = hlo.reshape %product : (tensor<400x128xf32>) -> tensor<50x8x128xf32>
  %r:2 = "hlo.while"(%zero, %start) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %step = "hlo.dynamic_slice"(%in, %i, %zero, %zero) <{slice_sizes = array<i64: 1, 8, 128>}> : (tensor<50x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %row = hlo.reshape %step : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    %sum = hlo.add %d, %row : tensor<8x128xf32>
    hlo.return %j, %sum : tensor<i32>, tensor<8x128xf32>
  }) : (tensor<i32>, tensor<8x128xf32>) -> (tensor<i32>, tensor<8x128xf32>)
  return %r#1 : tensor<8x128xf32>
}

// Rows may lie along another dimension, and what is summed along others stays with them.
// CHECK-LABEL: func.func @columns
// CHECK: "hlo.dot_general"{{.*}} : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
// CHECK: hlo.transpose {{.*}} : (tensor<4x256xf32>) -> tensor<256x4xf32>
// CHECK: "hlo.reduce"{{.*}}dimensions = array<i64: 0>
// CHECK: (tensor<256x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: }) {hlo.one_thread}
// CHECK: hlo.concatenate {{.*}} dim = 1 : (tensor<256x4xf32>, tensor<256x4xf32>) -> tensor<256x8xf32>
func.func @columns(%h: tensor<256x8xf32>, %w: tensor<256x256xf32>) -> tensor<256x8xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<50> : tensor<i32>
  %none = hlo.constant dense<0.0> : tensor<f32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<256x8xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<256x8xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %rows = hlo.transpose %s, dims = [1, 0] : (tensor<256x8xf32>) -> tensor<8x256xf32>
    %d = "hlo.dot_general"(%rows, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>
    %t = hlo.transpose %d, dims = [1, 0] : (tensor<8x256xf32>) -> tensor<256x8xf32>
    %total = "hlo.reduce"(%t, %none) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = hlo.add %a, %b : tensor<f32>
      hlo.return %c : tensor<f32>
    }) : (tensor<256x8xf32>, tensor<f32>) -> tensor<8xf32>
    %wide = hlo.broadcast_in_dim %total, dims = [1] : (tensor<8xf32>) -> tensor<256x8xf32>
    %share = hlo.divide %t, %wide : tensor<256x8xf32>
    hlo.return %j, %share : tensor<i32>, tensor<256x8xf32>
  }) : (tensor<i32>, tensor<256x8xf32>) -> (tensor<i32>, tensor<256x8xf32>)
  return %r#1 : tensor<256x8xf32>
}

// Sequences that look at each other stay together.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: hlo.one_thread
func.func @mixed(%h: tensor<8x128xf32>, %w: tensor<128x128xf32>) -> tensor<8x128xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<50> : tensor<i32>
  %none = hlo.constant dense<0.0> : tensor<f32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    %total = "hlo.reduce"(%d, %none) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = hlo.add %a, %b : tensor<f32>
      hlo.return %c : tensor<f32>
    }) : (tensor<8x128xf32>, tensor<f32>) -> tensor<128xf32>
    %wide = hlo.broadcast_in_dim %total, dims = [1] : (tensor<128xf32>) -> tensor<8x128xf32>
    %t = hlo.subtract %d, %wide : tensor<8x128xf32>
    hlo.return %j, %t : tensor<i32>, tensor<8x128xf32>
  }) : (tensor<i32>, tensor<8x128xf32>) -> (tensor<i32>, tensor<8x128xf32>)
  return %r#1 : tensor<8x128xf32>
}

// So do those that decide together when to end.
// CHECK-LABEL: func.func @decided
// CHECK-NOT: hlo.one_thread
func.func @decided(%h: tensor<8x128xf32>, %w: tensor<128x128xf32>) -> tensor<8x128xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %r = "hlo.while"(%h) ({
  ^bb0(%s: tensor<8x128xf32>):
    %total = "hlo.reduce"(%s, %zero) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = hlo.add %a, %b : tensor<f32>
      hlo.return %c : tensor<f32>
    }) : (tensor<8x128xf32>, tensor<f32>) -> tensor<f32>
    %p = hlo.compare GT, %total, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%s: tensor<8x128xf32>):
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    hlo.return %d : tensor<8x128xf32>
  }) : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %r : tensor<8x128xf32>
}

// Two sequences and weights of 4 MB: a thread had better read half of them.
// CHECK-LABEL: func.func @heavy
// CHECK-NOT: hlo.one_thread
func.func @heavy(%h: tensor<2x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<2x1024xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<50> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<2x1024xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<2x1024xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<2x1024xf32>, tensor<1024x1024xf32>) -> tensor<2x1024xf32>
    hlo.return %j, %d : tensor<i32>, tensor<2x1024xf32>
  }) : (tensor<i32>, tensor<2x1024xf32>) -> (tensor<i32>, tensor<2x1024xf32>)
  return %r#1 : tensor<2x1024xf32>
}

// Two turns are over before a second thread has begun.
// CHECK-LABEL: func.func @short
// CHECK-NOT: hlo.one_thread
func.func @short(%h: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %n = hlo.constant dense<2> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x64xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x64xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    hlo.return %j, %d : tensor<i32>, tensor<8x64xf32>
  }) : (tensor<i32>, tensor<8x64xf32>) -> (tensor<i32>, tensor<8x64xf32>)
  return %r#1 : tensor<8x64xf32>
}
