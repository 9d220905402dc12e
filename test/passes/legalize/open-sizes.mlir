// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s --enable-var-scope

// The larger one of two open sizes is a size that the run sets, in memory for both.
// CHECK-LABEL: module
// CHECK-SAME: bound = affine_map<()[s0, s1, s2] -> (s0 + s1)>, kind = "data"
// CHECK: func.func @larger
// CHECK: %[[MOST:.*]] = hlo.maximum
// CHECK: %[[SIZE:.*]] = hlo.reshape %[[MOST]]
// CHECK: hlo.set_size %[[SIZE]] {{.*}}symbol = 2 : i64}
// CHECK: hlo.broadcast_in_dim {{.*}} -> tensor<?xf32, affine_map<()[s0, s1, s2] -> (s2)>>
graph.func @larger(%a: tensor<?xf32> {graph.name = "a"}, %b: tensor<?xf32> {graph.name = "b"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %sa, %sac = graph.node "Shape"(%a) {} : (tensor<?xf32>) -> tensor<*xi32>
  %sb, %sbc = graph.node "Shape"(%b) {} : (tensor<?xf32>) -> tensor<*xi32>
  %m, %mc = graph.node "Maximum"(%sa, %sb) {} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %v, %vc = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "Fill"(%m, %v) {} : (tensor<*xi32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// What is computed from a chosen size goes on as an expression, and a size read twice is one symbol.
// CHECK-LABEL: func.func @product
// CHECK-COUNT-1: hlo.set_size
// CHECK-NOT: hlo.set_size
// CHECK: tensor<?x?xf32, affine_map<()[s0, s1, s2] -> (s2, s2 * 3)>>
graph.func @product(%a: tensor<?xf32> {graph.name = "a"}, %b: tensor<?xf32> {graph.name = "b"}, %c: tensor<i1> {graph.name = "c"})
    -> (tensor<*xf32> {graph.name = "y"}) {
  %na, %nac = graph.node "Size"(%a) {} : (tensor<?xf32>) -> tensor<i32>
  %nb, %nbc = graph.node "Size"(%b) {} : (tensor<?xf32>) -> tensor<i32>
  %n, %nc = graph.node "SelectV2"(%c, %na, %nb) {} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %three, %threec = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %m, %mc = graph.node "Mul"(%n, %three) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %s, %sc = graph.node "Pack"(%n, %m) {axis = 0} : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
  %v, %vc = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "Fill"(%s, %v) {} : (tensor<2xi32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A number of the caller's that a size limits. Without the limit there is none, and it must be known.
// CHECK-LABEL: func.func @limited
// CHECK: hlo.set_size %{{.*}} {{.*}}symbol = 1 : i64}
graph.func @limited(%a: tensor<?xf32> {graph.name = "a"}, %k: tensor<i32> {graph.name = "k"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %na, %nac = graph.node "Shape"(%a) {} : (tensor<?xf32>) -> tensor<*xi32>
  %n, %nc = graph.node "Minimum"(%na, %k) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %v, %vc = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "Fill"(%n, %v) {} : (tensor<*xi32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// What a mask leaves of a size is largest where the mask keeps nothing: as the size of an output it is a symbol with a bound of its own.
// CHECK-LABEL: module
// CHECK-SAME: bound = affine_map<()[s0, s1, s2] -> (s0)>, kind = "data"
// CHECK: func.func @left
// CHECK: hlo.check %{{.*}}, "a size is negative"
// CHECK: hlo.broadcast_in_dim
// CHECK: %[[LEFT:.*]] = hlo.size affine_map<()[s0, s1] -> (s0 - s1)>
// CHECK: hlo.set_size %[[LEFT]] {{.*}}symbol = 2 : i64}
// CHECK: hlo.assume_shape %{{.*}} -> tensor<?xf32, affine_map<()[s0, s1, s2] -> (s2)>>
graph.func @left(%m: tensor<?xi1> {graph.name = "m"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %w, %wc = graph.node "Where"(%m) {} : (tensor<?xi1>) -> tensor<*xi64>
  %all, %allc = graph.node "Shape"(%m) {} : (tensor<?xi1>) -> tensor<*xi32>
  %kept, %keptc = graph.node "Shape"(%w) {} : (tensor<*xi64>) -> tensor<*xi32>
  %zero, %zeroc = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %rows, %rowsc = graph.node "GatherV2"(%kept, %zero, %zero) {} : (tensor<*xi32>, tensor<i32>, tensor<i32>) -> tensor<*xi32>
  %n, %nc = graph.node "Sub"(%all, %rows) {} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %v, %vc = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %y, %yc = graph.node "Fill"(%n, %v) {} : (tensor<*xi32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Parts of a concatenation that would be negative are refused before it: the others would not fit into the whole.
// CHECK-LABEL: func.func @negative
// CHECK: %[[BEHIND:.*]] = hlo.size affine_map<()[s0] -> (-s0 + 8)>
// CHECK: %[[FITS:.*]] = hlo.compare GE, %[[BEHIND]]
// CHECK: hlo.check %[[FITS]], "a padding is negative"
// CHECK: hlo.concatenate {{.*}} -> tensor<8xf32>
graph.func @negative(%a: tensor<?xf32> {graph.name = "a"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %na, %nac = graph.node "Size"(%a) {} : (tensor<?xf32>) -> tensor<i32>
  %most, %mostc = graph.node "Const"() {value = dense<8> : tensor<i32>} : () -> tensor<i32>
  %zero, %zeroc = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %n, %nc = graph.node "Sub"(%most, %na) {} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %row, %rowc = graph.node "Pack"(%zero, %n) {axis = 0} : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
  %amounts, %amountsc = graph.node "Pack"(%row) {axis = 0} : (tensor<2xi32>) -> tensor<1x2xi32>
  %y, %yc = graph.node "Pad"(%a, %amounts) {} : (tensor<?xf32>, tensor<1x2xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// How many numbers differ data decides. Beside a known size 1 is repeated, and another than that is an error of the run.
// CHECK-LABEL: func.func @unique_beside_known
// CHECK: %[[ONE:.*]] = hlo.compare EQ, %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK: %[[FITS:.*]] = hlo.or %[[ONE]], %{{.*}} : tensor<i1>
// CHECK: hlo.check %[[FITS]], "sizes cannot be broadcast together"
// CHECK: "hlo.gather"
// CHECK-SAME: -> tensor<5xi32>
// CHECK: hlo.multiply %{{.*}} : tensor<5xi32>
graph.func @unique_beside_known(%x: tensor<5xi32> {graph.name = "x"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %u, %i, %uc = graph.node "Unique"(%x) {out_idx = i32} : (tensor<5xi32>) -> (tensor<*xi32>, tensor<5xi32>)
  %y, %yc = graph.node "Mul"(%x, %u) {} : (tensor<5xi32>, tensor<*xi32>) -> tensor<*xi32>
  graph.return %y : tensor<*xi32>
}
