// RUN: lathe-opt %s --hlo-count-loops | FileCheck %s

// CHECK-LABEL: @counted
// CHECK: "hlo.while"
// CHECK: hlo.trips = 4 : i64
func.func @counted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %n = hlo.constant dense<10> : tensor<i32>
    %c = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %v: tensor<4xf32>):
    %three = hlo.constant dense<3> : tensor<i32>
    %j = hlo.add %i, %three : tensor<i32>
    %w = hlo.add %v, %v : tensor<4xf32>
    hlo.return %j, %w : tensor<i32>, tensor<4xf32>
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// The counter would pass 127 and start again below: nobody knows how often.
// CHECK-LABEL: @wraps
// CHECK-NOT: hlo.trips
func.func @wraps(%x: tensor<4xf32>) -> tensor<4xf32> {
  %start = hlo.constant dense<100> : tensor<i8>
  %r:2 = "hlo.while"(%start, %x) ({
  ^bb0(%i: tensor<i8>, %v: tensor<4xf32>):
    %n = hlo.constant dense<120> : tensor<i8>
    %c = hlo.compare LT, %i, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }, {
  ^bb0(%i: tensor<i8>, %v: tensor<4xf32>):
    %step = hlo.constant dense<50> : tensor<i8>
    %j = hlo.add %i, %step : tensor<i8>
    %w = hlo.add %v, %v : tensor<4xf32>
    hlo.return %j, %w : tensor<i8>, tensor<4xf32>
  }) : (tensor<i8>, tensor<4xf32>) -> (tensor<i8>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// A bound from outside is no number.
// CHECK-LABEL: @open
// CHECK-NOT: hlo.trips
func.func @open(%n: tensor<i32>) -> tensor<i32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %r:2 = "hlo.while"(%zero, %n) ({
  ^bb0(%i: tensor<i32>, %m: tensor<i32>):
    %c = hlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %m: tensor<i32>):
    %one = hlo.constant dense<1> : tensor<i32>
    %j = hlo.add %i, %one : tensor<i32>
    hlo.return %j, %m : tensor<i32>, tensor<i32>
  }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  return %r#0 : tensor<i32>
}
