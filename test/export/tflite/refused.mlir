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
