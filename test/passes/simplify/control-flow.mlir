// RUN: lathe-opt %s --hlo-simplify-control-flow --cse | FileCheck %s

// CHECK-LABEL: @decided
// CHECK-NOT: hlo.if
// CHECK: %[[T:.*]] = hlo.tanh %arg0
// CHECK: return %[[T]]
func.func @decided(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = hlo.constant dense<true> : tensor<i1>
  %r = "hlo.if"(%p) ({
    %t = hlo.tanh %x : tensor<4xf32>
    hlo.return %t : tensor<4xf32>
  }, {
    hlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// The weights never change and the sum is not asked for: only the counter and the state are carried.
// CHECK-LABEL: @carried
// CHECK: "hlo.while"(%{{.*}}, %arg0) ({
// CHECK: hlo.multiply %{{.*}}, %arg1
// CHECK-NOT: hlo.subtract
// CHECK: (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
func.func @carried(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %r:4 = "hlo.while"(%zero, %x, %w, %x) ({
  ^bb0(%i: tensor<i32>, %s: tensor<4xf32>, %v: tensor<4xf32>, %u: tensor<4xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<4xf32>, %v: tensor<4xf32>, %u: tensor<4xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    %m = hlo.multiply %s, %v : tensor<4xf32>
    %d = hlo.subtract %u, %m : tensor<4xf32>
    hlo.return %j, %m, %v, %d : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// One turn: no loop.
// CHECK-LABEL: @once
// CHECK-NOT: hlo.while
// CHECK: hlo.tanh %arg0
func.func @once(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %n = hlo.constant dense<1> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %s: tensor<4xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<4xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    %m = hlo.tanh %s : tensor<4xf32>
    hlo.return %j, %m : tensor<i32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// The condition implies the first check of the counter; the second asks for less.
// CHECK-LABEL: @proven
// CHECK-NOT: "first"
// CHECK: hlo.check %{{.*}}, "second"
func.func @proven(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %n = hlo.constant dense<8> : tensor<i32>
  %few = hlo.constant dense<7> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8xf32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %low = hlo.compare GE, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %high = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tight = hlo.compare LT, %i, %few : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = hlo.and %high, %low : tensor<i1>
    %less = hlo.and %tight, %low : tensor<i1>
    hlo.check %both, "first" : tensor<i1>
    hlo.check %less, "second" : tensor<i1>
    %j = hlo.add %i, %one : tensor<i32>
    %m = hlo.tanh %s : tensor<8xf32>
    hlo.return %j, %m : tensor<i32>, tensor<8xf32>
  }) : (tensor<i32>, tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>)
  return %r#1 : tensor<8xf32>
}
