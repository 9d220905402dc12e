// RUN: lathe-opt %s --split-input-file --graph-functionalize-control-flow | FileCheck %s --enable-var-scope

// Two results of one condition are one If; a constant of a branch stays in it.
// CHECK-LABEL: graph.func @two_results(
// CHECK-SAME: %[[P:.*]]: tensor<i1>, %[[X:.*]]: tensor<4xf32>)
graph.func @two_results(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  // CHECK: %[[IF:.*]]:2, %{{.*}} = graph.node "If"(%[[P]], %[[X]]) {Tcond = i1, Tin = [f32], Tout = [f32, f32], else_branch = #graph.func<@cond_else>, output_shapes = [], then_branch = #graph.func<@cond_then>}
  // CHECK: graph.return %[[IF]]#0, %[[IF]]#1
  %pf, %pt, %c0 = graph.node "Switch"(%p, %p) {T = i1} : (tensor<i1>, tensor<i1>) -> (tensor<*xi1>, tensor<*xi1>)
  %pivot, %c1 = graph.node "Identity"(%pt) {T = i1} : (tensor<*xi1>) -> tensor<*xi1>
  %id, %c2 = graph.node "Identity"(%p) {T = i1} : (tensor<i1>) -> tensor<*xi1>
  %one, %c3 = graph.node "Const"() [%c1] {dtype = f32, value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %xf, %xt, %c4 = graph.node "Switch"(%x, %id) {T = f32} : (tensor<4xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a, %c5 = graph.node "Add"(%xt, %one) {T = f32} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b, %c6 = graph.node "Neg"(%xf) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i, %c7 = graph.node "Merge"(%b, %a) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("cond/Merge")
  %m2, %i2, %c8 = graph.node "Merge"(%xf, %a) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("cond/Merge_1")
  graph.return %m, %m2 : tensor<*xf32>, tensor<*xf32>
}
// CHECK-LABEL: graph.func private @cond_then(
// CHECK: %[[ONE:.*]], %{{.*}} = graph.node "Const"
// CHECK: %[[A:.*]], %{{.*}} = graph.node "Add"(%arg0, %[[ONE]])
// CHECK: graph.return %[[A]], %[[A]]
// CHECK-LABEL: graph.func private @cond_else(
// CHECK: %[[B:.*]], %{{.*}} = graph.node "Neg"(%arg0)
// CHECK: graph.return %[[B]], %arg0

// -----

// The second condition on the same predicate uses the first one's result: two Ifs.
// CHECK-LABEL: graph.func @in_sequence(
graph.func @in_sequence(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<*xf32> {
  // CHECK: %[[FIRST:.*]], %{{.*}} = graph.node "If"(%arg0, %arg1) {{.*}}then_branch = #graph.func<@one_then>
  // CHECK: graph.node "If"(%arg0, %[[FIRST]]) {{.*}}then_branch = #graph.func<@two_then>
  %xf, %xt, %c4 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<4xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b, %c6 = graph.node "Neg"(%xf) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i, %c7 = graph.node "Merge"(%b, %xt) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("one/Merge")
  %mf, %mt, %c8 = graph.node "Switch"(%m, %p) {T = f32} : (tensor<*xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %e, %c9 = graph.node "Exp"(%mt) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m2, %i2, %c10 = graph.node "Merge"(%mf, %e) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("two/Merge")
  graph.return %m2 : tensor<*xf32>
}

// -----

// A condition within a side of another; the index of the side is a value.
// CHECK-LABEL: graph.func @nested(
// CHECK: graph.node "If"(%arg0, %arg1, %arg2) {{.*}}Tout = [f32, i32], else_branch = #graph.func<@outer_else>
graph.func @nested(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<4xf32>) -> (tensor<*xf32>, tensor<i32>) {
  %qf, %qt, %c0 = graph.node "Switch"(%q, %p) {T = i1} : (tensor<i1>, tensor<i1>) -> (tensor<*xi1>, tensor<*xi1>)
  %xf, %xt, %c1 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<4xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %yf, %yt, %c2 = graph.node "Switch"(%xt, %qt) {T = f32} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %neg, %c3 = graph.node "Neg"(%yf) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %exp, %c4 = graph.node "Exp"(%yt) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i, %c5 = graph.node "Merge"(%neg, %exp) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("inner/Merge")
  %m2, %i2, %c6 = graph.node "Merge"(%xf, %m) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("outer/Merge")
  graph.return %m2, %i2 : tensor<*xf32>, tensor<i32>
}
// CHECK-LABEL: graph.func private @outer_then(
// CHECK: graph.node "If"(%{{.*}}) {{.*}}then_branch = #graph.func<@inner_then>
// CHECK: graph.node "Const"() {{.*}}dense<1> : tensor<i32>

// -----

// On a constant only one side is left.
// CHECK-LABEL: graph.func @constant(
graph.func @constant(%x: tensor<4xf32>) -> tensor<*xf32> {
  // CHECK-NOT: {{"If"|"Neg"|"Switch"}}
  // CHECK: graph.node "Exp"
  %p, %c0 = graph.node "Const"() {dtype = i1, value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %xf, %xt, %c1 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<4xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %neg, %c3 = graph.node "Neg"(%xf) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %exp, %c4 = graph.node "Exp"(%xt) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i, %c5 = graph.node "Merge"(%neg, %exp) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  graph.return %m : tensor<*xf32>
}

// -----

// A target that runs on one side only.
// CHECK-LABEL: graph.func @target(
graph.func @target(%p: tensor<i1>, %v: tensor<!graph.resource>, %x: tensor<4xf32>) {
  // CHECK: %[[IF:.*]] = graph.node "If"(%arg0, %arg1, %arg2) {{.*}}Tout = []
  // CHECK: graph.return[%[[IF]]]
  %vf, %vt, %c0 = graph.node "Switch"(%v, %p) {T = !graph.resource} : (tensor<!graph.resource>, tensor<i1>) -> (tensor<*x!graph.resource>, tensor<*x!graph.resource>)
  %assign = graph.node "AssignVariableOp"(%vf, %x) {dtype = f32} : (tensor<*x!graph.resource>, tensor<4xf32>) -> ()
  graph.return [%assign]
}
// CHECK-LABEL: graph.func private @conditional_else
// CHECK: %[[A:.*]] = graph.node "AssignVariableOp"
// CHECK: graph.return[%[[A]]]
