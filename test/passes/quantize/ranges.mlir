// RUN: lathe-opt %s --split-input-file --hlo-quantize-ranges | FileCheck %s

// What FakeQuantWithMinMaxVars becomes, here with the steps -1, -0.5, ... over 256 numbers: a clamp with the range. An argument that
// nothing else reads needs no clamp.
// CHECK-LABEL: @argument
// CHECK-SAME: (%arg0: tensor<4x2xf32> {hlo.given_range = array<f64: -1.000000e+00, 1.265000e+02>})
// CHECK-NEXT: return %arg0
func.func @argument(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %low = hlo.constant dense<-1.0> : tensor<f32>
  %high = hlo.constant dense<126.5> : tensor<f32>
  %two = hlo.constant dense<2.0> : tensor<4x2xf32>
  %0 = hlo.clamp %low, %x, %high : (tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  %1 = hlo.multiply %0, %two : tensor<4x2xf32>
  %2 = hlo.round_nearest_even %1 : tensor<4x2xf32>
  %3 = hlo.divide %2, %two : tensor<4x2xf32>
  return %3 : tensor<4x2xf32>
}

// CHECK-LABEL: @fake_quant
// CHECK-NOT: hlo.floor
// CHECK: hlo.clamp %{{.*}}, %arg0, %{{.*}} {hlo.given_range = array<f64: -1.000000e+00, 1.265000e+02>}
func.func @fake_quant(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %low = hlo.constant dense<-1.0> : tensor<4x2xf32>
  %high = hlo.constant dense<126.5> : tensor<4x2xf32>
  %two = hlo.constant dense<2.0> : tensor<4x2xf32>
  %half = hlo.constant dense<0.5> : tensor<4x2xf32>
  %0 = hlo.maximum %x, %low : tensor<4x2xf32>
  %1 = hlo.minimum %0, %high : tensor<4x2xf32>
  %2 = hlo.subtract %1, %low : tensor<4x2xf32>
  %3 = hlo.multiply %2, %two : tensor<4x2xf32>
  %4 = hlo.add %3, %half : tensor<4x2xf32>
  %5 = hlo.floor %4 : tensor<4x2xf32>
  %6 = hlo.multiply %5, %half : tensor<4x2xf32>
  %7 = hlo.add %6, %low : tensor<4x2xf32>
  return %7, %x : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// A narrow range by hand, x + (rounded - x) as training writes it. The step below the range belongs to it.
// CHECK-LABEL: @through
// CHECK-NOT: hlo.round_nearest_even
// CHECK: %[[LOW:.*]] = hlo.constant dense<-1.270000e+02>
// CHECK: hlo.clamp %[[LOW]], %arg0, %{{.*}} {hlo.given_range = array<f64: -1.280000e+02, 1.270000e+02>}
func.func @through(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %low = hlo.constant dense<-127.0> : tensor<f32>
  %high = hlo.constant dense<127.0> : tensor<f32>
  %0 = hlo.clamp %low, %x, %high : (tensor<f32>, tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %1 = hlo.round_nearest_even %0 : tensor<?xf32>
  %2 = hlo.subtract %1, %x : tensor<?xf32>
  %3 = hlo.add %x, %2 : tensor<?xf32>
  return %3, %x : tensor<?xf32>, tensor<?xf32>
}

// -----

// The clamp stands in front of what only moves elements.
// CHECK-LABEL: @moved
// CHECK: %[[SUM:.*]] = hlo.add %arg0, %arg0
// CHECK: %[[C:.*]] = hlo.clamp %{{.*}}, %[[SUM]], %{{.*}} {hlo.given_range
// CHECK: %[[R:.*]] = hlo.reshape %[[C]]
// CHECK: return %[[R]]
func.func @moved(%x: tensor<4x2xf32>) -> tensor<8xf32> {
  %low = hlo.constant dense<-128.0> : tensor<f32>
  %high = hlo.constant dense<127.0> : tensor<f32>
  %s = hlo.add %x, %x : tensor<4x2xf32>
  %r = hlo.reshape %s : (tensor<4x2xf32>) -> tensor<8xf32>
  %1 = hlo.round_nearest_even %r : tensor<8xf32>
  %2 = hlo.clamp %low, %1, %high : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Four bits: rounded as the model says, with the range beside it.
// CHECK-LABEL: @coarse
// CHECK-NOT: hlo.given_range
// CHECK: hlo.round_nearest_even
// CHECK: hlo.clamp {{.*}} {hlo.given_range = array<f64: -8.000000e+00, 7.000000e+00>}
func.func @coarse(%x: tensor<8xf32>) -> tensor<8xf32> {
  %low = hlo.constant dense<-8.0> : tensor<f32>
  %high = hlo.constant dense<7.0> : tensor<f32>
  %1 = hlo.round_nearest_even %x : tensor<8xf32>
  %2 = hlo.clamp %low, %1, %high : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A logistic function's integers have parameters of their own.
// CHECK-LABEL: @share
// CHECK: %[[L:.*]] = hlo.logistic
// CHECK: return %[[L]]
func.func @share(%x: tensor<8xf32>) -> tensor<8xf32> {
  %low = hlo.constant dense<0.0> : tensor<f32>
  %high = hlo.constant dense<255.0> : tensor<f32>
  %n = hlo.constant dense<255.0> : tensor<8xf32>
  %l = hlo.logistic %x : tensor<8xf32>
  %0 = hlo.multiply %l, %n : tensor<8xf32>
  %1 = hlo.round_nearest_even %0 : tensor<8xf32>
  %2 = hlo.clamp %low, %1, %high : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = hlo.divide %2, %n : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// Not roundings to a range: without ends, without 0, downwards, and with another input.
// CHECK-LABEL: @others
// CHECK-NOT: hlo.given_range
func.func @others(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = hlo.constant dense<1.0> : tensor<f32>
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %many = hlo.constant dense<255.0> : tensor<f32>
  %open = hlo.round_nearest_even %x : tensor<8xf32>
  %away = hlo.clamp %one, %open, %many : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %inside = hlo.clamp %zero, %y, %many : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %down = hlo.floor %inside : tensor<8xf32>
  %rounded = hlo.round_nearest_even %inside : tensor<8xf32>
  %sum = hlo.add %rounded, %x : tensor<8xf32>
  return %open, %away, %down, %sum : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
