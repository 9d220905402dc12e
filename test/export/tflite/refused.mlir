// RUN: lathe-opt %s --tflite-raise --verify-diagnostics

// Every op that no operator says is named, with the reason where there is one.
func.func @all(%x: tensor<4xf32>, %y: tensor<4xf64>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf64>, tensor<4xi32>) {
  // expected-error@+1 {{hlo.lgamma has no TensorFlow Lite operator}}
  %0 = hlo.lgamma %x : tensor<4xf32>
  // expected-error@+1 {{hlo.add has no TensorFlow Lite operator: ADD does not take elements of type f64}}
  %1 = hlo.add %y, %y : tensor<4xf64>
  // expected-error@+1 {{hlo.or has no TensorFlow Lite operator: there is none for bits of integers}}
  %2 = hlo.or %n, %n : tensor<4xi32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf64>, tensor<4xi32>
}

func.func @other_places(%x: tensor<2x2xf32>) -> tensor<2xi32> {
  %low = hlo.constant dense<0xFF800000> : tensor<f32>
  %none = hlo.constant dense<0> : tensor<i32>
  %rows = hlo.constant dense<[[0, 1], [0, 2]]> : tensor<2x2xi32>
  // expected-error@+1 {{hlo.reduce has no TensorFlow Lite operator: a reduction of several tensors}}
  %0:2 = "hlo.reduce"(%x, %rows, %low, %none) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %ai: tensor<i32>, %b: tensor<f32>, %bi: tensor<i32>):
    %1 = hlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = hlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = hlo.compare LE, %ai, %bi : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = hlo.and %2, %3 : tensor<i1>
    %5 = hlo.or %1, %4 : tensor<i1>
    %6 = hlo.select %5, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = hlo.select %5, %ai, %bi : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    hlo.return %6, %7 : tensor<f32>, tensor<i32>
  }) : (tensor<2x2xf32>, tensor<2x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %0#1 : tensor<2xi32>
}
