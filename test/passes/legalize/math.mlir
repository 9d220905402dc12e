// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Operands are broadcast explicitly; the unknown leading size becomes a symbol.
// CHECK: hlo.symbols = [{bound = -1 : i64, kind = "input", name = "x:0"}]
// CHECK-LABEL: func.func @add_broadcast
// CHECK-SAME: tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>> {hlo.name = "x"}
// CHECK: hlo.broadcast_in_dim %{{.*}}, dims = [1]
// CHECK: hlo.add
graph.func @add_broadcast(%x: tensor<?x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %c, %cc = graph.node "Const"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %y, %yc = graph.node "AddV2"(%x, %c) {} : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Two inputs whose sizes have to be equal get one symbol.
// CHECK-LABEL: func.func @unify
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32, affine_map<()[s0] -> (s0)>>{{.*}}, %[[Y:.*]]: tensor<?xf32, affine_map<()[s0] -> (s0)>>
// CHECK: hlo.multiply %[[X]], %[[Y]]
graph.func @unify(%x: tensor<?xf32> {graph.name = "x"}, %y: tensor<?xf32> {graph.name = "y"}) -> (tensor<*xf32> {graph.name = "z"}) {
  %z, %zc = graph.node "Mul"(%x, %y) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<*xf32>
  graph.return %z : tensor<*xf32>
}

// -----

// A shape with ones where a reduction took dimensions away, as gradients ask for, is a size as well.
// CHECK-LABEL: func.func @kept_dimensions
// CHECK-NEXT: %[[R:.*]] = hlo.reshape %{{.*}} : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?x1x1xf32, affine_map<()[s0] -> (s0, 1, 1)>>
// CHECK-NEXT: return %[[R]]
graph.func @kept_dimensions(%x: tensor<?xf32> {graph.name = "x"}, %like: tensor<?x4x2xf32> {graph.name = "like"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Shape"(%x) {} : (tensor<?xf32>) -> tensor<1xi32>
  %l, %lc = graph.node "Shape"(%like) {} : (tensor<?x4x2xf32>) -> tensor<3xi32>
  %one, %onec = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %two, %twoc = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %tail, %tailc = graph.node "Slice"(%l, %one, %two) {} : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %ones, %onesc = graph.node "OnesLike"(%tail) {} : (tensor<2xi32>) -> tensor<2xi32>
  %back, %backc = graph.node "Const"() {value = dense<[2, 0, 1]> : tensor<3xi32>} : () -> tensor<3xi32>
  %order, %orderc = graph.node "InvertPermutation"(%back) {} : (tensor<3xi32>) -> tensor<3xi32>
  %zero, %zeroc = graph.node "Const"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %rest, %restc = graph.node "Slice"(%order, %zero, %two) {} : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %st, %stc = graph.node "DynamicStitch"(%zero, %rest, %s, %ones) {} : (tensor<1xi32>, tensor<2xi32>, tensor<1xi32>, tensor<2xi32>) -> tensor<*xi32>
  %y, %yc = graph.node "Reshape"(%x, %st) {} : (tensor<?xf32>, tensor<*xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Shape arithmetic leaves nothing behind.
// CHECK-LABEL: func.func @flatten
// CHECK-NEXT: %[[R:.*]] = hlo.reshape %{{.*}} : (tensor<?x4x2xf32, affine_map<()[s0] -> (s0, 4, 2)>>) -> tensor<?x8xf32, affine_map<()[s0] -> (s0, 8)>>
// CHECK-NEXT: return %[[R]]
graph.func @flatten(%x: tensor<?x4x2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Shape"(%x) {} : (tensor<?x4x2xf32>) -> tensor<3xi32>
  %b, %bc = graph.node "Const"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %e, %ec = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %m, %mc = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %n, %nc = graph.node "StridedSlice"(%s, %b, %e, %e) {begin_mask = 0 : i64, ellipsis_mask = 0 : i64, end_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64} : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
  %p, %pc = graph.node "Pack"(%n, %m) {axis = 0 : i64} : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
  %y, %yc = graph.node "Reshape"(%x, %p) {} : (tensor<?x4x2xf32>, tensor<2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Integer division checks its divisor and rounds down.
// CHECK-LABEL: func.func @floor_div
// CHECK: hlo.check %{{.*}}, "Integer division by zero"
// CHECK: hlo.divide
// CHECK: hlo.remainder
// CHECK: hlo.select
graph.func @floor_div(%x: tensor<4xi32> {graph.name = "x"}, %y: tensor<4xi32> {graph.name = "y"}) -> (tensor<*xi32> {graph.name = "z"}) {
  %z, %zc = graph.node "FloorDiv"(%x, %y) {} : (tensor<4xi32>, tensor<4xi32>) -> tensor<*xi32>
  graph.return %z : tensor<*xi32>
}

// -----

// NaN and what int32 cannot hold become its smallest number, of which narrower types take the low bits.
// CHECK-LABEL: func.func @cast_to_narrow
// CHECK: %[[WIDE:.*]] = hlo.convert %{{.*}} : (tensor<3xf32>) -> tensor<3xi32>
// CHECK: %[[LEAST:.*]] = hlo.constant dense<-2147483648> : tensor<3xi32>
// CHECK: %[[FITS:.*]] = hlo.compare LT
// CHECK: %[[BITS:.*]] = hlo.select %[[FITS]], %[[WIDE]], %[[LEAST]]
// CHECK: hlo.convert %[[BITS]] : (tensor<3xi32>) -> tensor<3xui8>
graph.func @cast_to_narrow(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<*xui8> {graph.name = "y"}) {
  %y, %yc = graph.node "Cast"(%x) {Truncate = false} : (tensor<3xf32>) -> tensor<*xui8>
  graph.return %y : tensor<*xui8>
}

// -----

// CHECK-LABEL: func.func @digamma
// CHECK: %[[POLE:.*]] = hlo.compare EQ
// CHECK: %[[VALUE:.*]] = hlo.digamma
// CHECK: hlo.select %[[POLE]], %{{.*}}, %[[VALUE]]
graph.func @digamma(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "Digamma"(%x) {} : (tensor<3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Elements after the last whole vector of four divide by C's rules; of eight there are none.
// CHECK-LABEL: func.func @complex_quotient
// CHECK: hlo.divide %arg0, %arg1
// CHECK-NOT: hlo.is_nan
// CHECK: hlo.divide %arg2, %arg3
// CHECK: hlo.is_nan
// CHECK: hlo.select
graph.func @complex_quotient(%a: tensor<8xcomplex<f32>> {graph.name = "a"}, %b: tensor<8xcomplex<f32>> {graph.name = "b"}, %x: tensor<9xcomplex<f32>> {graph.name = "x"}, %y: tensor<9xcomplex<f32>> {graph.name = "y"}) -> (tensor<*xcomplex<f32>> {graph.name = "p"}, tensor<*xcomplex<f32>> {graph.name = "q"}) {
  %p, %pc = graph.node "RealDiv"(%a, %b) {} : (tensor<8xcomplex<f32>>, tensor<8xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  %q, %qc = graph.node "RealDiv"(%x, %y) {} : (tensor<9xcomplex<f32>>, tensor<9xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  graph.return %p, %q : tensor<*xcomplex<f32>>, tensor<*xcomplex<f32>>
}

// -----

// A gradient of zero stays zero where the root is zero or infinite.
// CHECK-LABEL: func.func @sqrt_grad
// CHECK: %[[Z:.*]] = hlo.compare EQ, %arg1
// CHECK: hlo.select %[[Z]]
graph.func @sqrt_grad(%y: tensor<8xf32> {graph.name = "y"}, %d: tensor<8xf32> {graph.name = "d"}) -> (tensor<*xf32> {graph.name = "p"}) {
  %p, %pc = graph.node "SqrtGrad"(%y, %d) {} : (tensor<8xf32>, tensor<8xf32>) -> tensor<*xf32>
  graph.return %p : tensor<*xf32>
}

// -----

// Nothing is divided by the zeros of y where x has no element.
// CHECK-LABEL: func.func @empty_quotient
// CHECK-NOT: hlo.check
graph.func @empty_quotient(%x: tensor<0x3xi32> {graph.name = "x"}, %y: tensor<1x3xi32> {graph.name = "y"}) -> (tensor<*xi32> {graph.name = "p"}) {
  %p, %pc = graph.node "FloorDiv"(%x, %y) {} : (tensor<0x3xi32>, tensor<1x3xi32>) -> tensor<*xi32>
  graph.return %p : tensor<*xi32>
}

// -----

// The lower limit wins over the upper one.
// CHECK-LABEL: func.func @clip
// CHECK: %[[HIGH:.*]] = hlo.minimum %arg0, %arg2
// CHECK: hlo.maximum %[[HIGH]], %arg1
graph.func @clip(%x: tensor<3xi64> {graph.name = "x"}, %l: tensor<3xi64> {graph.name = "l"}, %h: tensor<3xi64> {graph.name = "h"}) -> (tensor<*xi64> {graph.name = "y"}) {
  %y, %yc = graph.node "ClipByValue"(%x, %l, %h) {} : (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<*xi64>
  graph.return %y : tensor<*xi64>
}

// -----

// A gradient passes where the input is in range, which NaN is not, as a product with 0 or 1.
// CHECK-LABEL: func.func @fake_quant_gradient
// CHECK: %[[IN:.*]] = hlo.and
// CHECK: %[[MASK:.*]] = hlo.select %[[IN]]
// CHECK: hlo.multiply %arg0, %[[MASK]]
graph.func @fake_quant_gradient(%g: tensor<4xf32> {graph.name = "g"}, %x: tensor<4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "FakeQuantWithMinMaxArgsGradient"(%g, %x) {min = -6.0 : f32, max = 6.0 : f32, num_bits = 8 : i64, narrow_range = false} : (tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A number is counted like a vector of one.
// CHECK-LABEL: func.func @count_scalar
// CHECK: return %{{.*}} : tensor<3xi64>
graph.func @count_scalar(%x: tensor<i32> {graph.name = "x"}) -> (tensor<*xi64> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %w, %wc = graph.node "Const"() {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %y, %yc = graph.node "DenseBincount"(%x, %n, %w) {binary_output = false} : (tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<*xi64>
  graph.return %y : tensor<*xi64>
}

// -----

// Means of integers: sum and count in 64 bits, wrapped once.
// CHECK-LABEL: func.func @mean_of_int8
// CHECK: %[[WIDE:.*]] = hlo.convert %{{.*}} : (tensor<300xi8>) -> tensor<300xi64>
// CHECK: "hlo.reduce"(%[[WIDE]],
// CHECK: hlo.divide %{{.*}} : tensor<i64>
// CHECK: hlo.convert %{{.*}} : (tensor<i64>) -> tensor<i8>
graph.func @mean_of_int8(%x: tensor<300xi8> {graph.name = "x"}) -> (tensor<*xi8> {graph.name = "y"}) {
  %axis, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %c = graph.node "Mean"(%x, %axis) {keep_dims = false} : (tensor<300xi8>, tensor<i32>) -> tensor<*xi8>
  graph.return %y : tensor<*xi8>
}

// -----

// A search begins with a finite number in the first place, and only what is better, or as good in an earlier place, replaces
// what it has: NaN does not.
// CHECK-LABEL: func.func @arg_max
// CHECK: dense<-3.40282347E+38> : tensor<f32>
// CHECK: hlo.compare{{ +}}LE
graph.func @arg_max(%x: tensor<5xf32> {graph.name = "x"}) -> (tensor<*xi64> {graph.name = "y"}) {
  %axis, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %c = graph.node "ArgMax"(%x, %axis) {output_type = i64} : (tensor<5xf32>, tensor<i32>) -> tensor<*xi64>
  graph.return %y : tensor<*xi64>
}

// -----

// A divisor of fewer elements may be 0 where there is nothing to divide.
// CHECK-LABEL: func.func @floor_mod_of_nothing
// CHECK: %[[HOLDS:.*]] = hlo.compare NE
// CHECK: %[[NONE:.*]] = hlo.compare EQ, %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK: %[[EITHER:.*]] = hlo.or %[[HOLDS]], %[[NONE]]
// CHECK: hlo.check %[[EITHER]], "Integer division by zero"
graph.func @floor_mod_of_nothing(%x: tensor<?xi32> {graph.name = "x"}, %y: tensor<i32> {graph.name = "y"}) -> (tensor<*xi32> {graph.name = "z"}) {
  %z, %zc = graph.node "FloorMod"(%x, %y) {} : (tensor<?xi32>, tensor<i32>) -> tensor<*xi32>
  graph.return %z : tensor<*xi32>
}
