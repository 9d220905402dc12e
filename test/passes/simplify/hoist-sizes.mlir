// RUN: lathe-opt %s --hlo-hoist-loop-invariants | FileCheck %s

// A size that the loop sets in every turn keeps inside what has that size, also where no operand comes from the loop.
module attributes {hlo.symbols = [{bound = 8 : i64, kind = "data", name = "n"}]} {
  // CHECK-LABEL: @prefix
  // CHECK: hlo.while
  // CHECK: hlo.set_size
  // CHECK: "hlo.dynamic_slice"
  // CHECK: hlo.return
  // CHECK: return
  func.func @prefix(%x: tensor<8xf32>, %limit: tensor<i32>) -> tensor<f32> {
    %zero = hlo.constant dense<0> : tensor<i32>
    %none = hlo.constant dense<0.0> : tensor<f32>
    %r:2 = "hlo.while"(%zero, %none) ({
    ^bb0(%i: tensor<i32>, %s: tensor<f32>):
      %p = hlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      hlo.return %p : tensor<i1>
    }, {
    ^bb0(%i: tensor<i32>, %s: tensor<f32>):
      hlo.set_size %i {symbol = 0 : i64} : tensor<i32>
      %v = "hlo.dynamic_slice"(%x, %zero) {size_map = affine_map<()[s0] -> (s0)>, slice_sizes = array<i64: -9223372036854775808>} : (tensor<8xf32>, tensor<i32>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
      %sum = "hlo.reduce"(%v, %none) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = hlo.add %a, %b : tensor<f32>
        hlo.return %t : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<f32>) -> tensor<f32>
      %next = hlo.add %s, %sum : tensor<f32>
      %one = hlo.constant dense<1> : tensor<i32>
      %j = hlo.add %i, %one : tensor<i32>
      hlo.return %j, %next : tensor<i32>, tensor<f32>
    }) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
    return %r#1 : tensor<f32>
  }
}
