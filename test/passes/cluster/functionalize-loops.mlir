// RUN: lathe-opt %s --split-input-file --graph-functionalize-control-flow | FileCheck %s --enable-var-scope

// The variable counts to the invariant; constants used inside stay constants.
// CHECK-LABEL: graph.func @count(
// CHECK-SAME: %[[N:.*]]: tensor<i32>)
graph.func @count(%n: tensor<i32>) -> tensor<*xi32> {
  // CHECK: %[[ZERO:.*]], %{{.*}} = graph.node "Const"
  // CHECK: %[[W:.*]]:2, %{{.*}} = graph.node "While"(%[[ZERO]], %[[N]]) {T = [i32, i32], body = #graph.func<@while_body>, cond = #graph.func<@while_cond>
  // CHECK-NOT: graph.node
  // CHECK: graph.return %[[W]]#0
  %zero, %c0 = graph.node "Const"() {dtype = i32, value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %two, %c1 = graph.node "Const"() {dtype = i32, value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %enter, %c2 = graph.node "Enter"(%zero) {T = i32, frame_name = "w", is_constant = false} : (tensor<i32>) -> tensor<*xi32>
  %limit, %c3 = graph.node "Enter"(%n) {T = i32, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %step, %c4 = graph.node "Enter"(%two) {T = i32, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %i, %index, %c5 = graph.node "Merge"(%enter, %next) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<i32>)
  %less, %c6 = graph.node "Less"(%i, %limit) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go, %c7 = graph.node "LoopCond"(%less) {} : (tensor<*xi1>) -> tensor<*xi1> loc("while/LoopCond")
  %out, %in, %c8 = graph.node "Switch"(%i, %go) {T = i32} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %sum, %c9 = graph.node "AddV2"(%in, %step) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %next, %c10 = graph.node "NextIteration"(%sum) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %exit, %c11 = graph.node "Exit"(%out) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %exit : tensor<*xi32>
}
// CHECK-LABEL: graph.func private @while_cond(
// CHECK-SAME: %[[I:.*]]: tensor<*xi32>, %[[LIMIT:.*]]: tensor<*xi32>)
// CHECK: graph.node "Less"(%[[I]], %[[LIMIT]])
// CHECK-LABEL: graph.func private @while_body(
// CHECK-SAME: %[[I:.*]]: tensor<*xi32>, %[[LIMIT:.*]]: tensor<*xi32>)
// CHECK: %[[STEP:.*]], %{{.*}} = graph.node "Const"() {{.*}}dense<2>
// CHECK: %[[SUM:.*]], %{{.*}} = graph.node "AddV2"(%[[I]], %[[STEP]])
// CHECK: graph.return %[[SUM]], %[[LIMIT]]

// -----

// An assignment that NextIteration waits for runs in the body; a loop in a loop.
// CHECK-LABEL: graph.func @nested(
// CHECK: graph.node "While"(%arg0, %arg1, %arg2) {{.*}}body = #graph.func<@outer_body>
graph.func @nested(%x: tensor<i32>, %y: tensor<i32>, %v: tensor<!graph.resource>) -> tensor<*xi32> {
  %e, %c0 = graph.node "Enter"(%x) {T = i32, frame_name = "o", is_constant = false} : (tensor<i32>) -> tensor<*xi32>
  %yo, %c1 = graph.node "Enter"(%y) {T = i32, frame_name = "o", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %vo, %c2 = graph.node "Enter"(%v) {T = !graph.resource, frame_name = "o", is_constant = true} : (tensor<!graph.resource>) -> tensor<*x!graph.resource>
  %i, %index, %c3 = graph.node "Merge"(%e, %next) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<i32>)
  %less, %c4 = graph.node "Less"(%i, %yo) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go, %c5 = graph.node "LoopCond"(%less) {} : (tensor<*xi1>) -> tensor<*xi1> loc("outer/LoopCond")
  %out, %in, %c6 = graph.node "Switch"(%i, %go) {T = i32} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %e2, %c7 = graph.node "Enter"(%in) {T = i32, frame_name = "i", is_constant = false} : (tensor<*xi32>) -> tensor<*xi32>
  %y2, %c8 = graph.node "Enter"(%yo) {T = i32, frame_name = "i", is_constant = true} : (tensor<*xi32>) -> tensor<*xi32>
  %j, %index2, %c9 = graph.node "Merge"(%e2, %next2) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<i32>)
  %less2, %c10 = graph.node "Less"(%j, %y2) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go2, %c11 = graph.node "LoopCond"(%less2) {} : (tensor<*xi1>) -> tensor<*xi1> loc("inner/LoopCond")
  %out2, %in2, %c12 = graph.node "Switch"(%j, %go2) {T = i32} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %dbl, %c13 = graph.node "AddV2"(%in2, %in2) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %next2, %c14 = graph.node "NextIteration"(%dbl) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %res, %c15 = graph.node "Exit"(%out2) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %assign = graph.node "AssignVariableOp"(%vo, %res) {dtype = i32} : (tensor<*x!graph.resource>, tensor<*xi32>) -> ()
  %next, %c17 = graph.node "NextIteration"(%res) [%assign] {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %exit, %c18 = graph.node "Exit"(%out) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %exit : tensor<*xi32>
}
// CHECK-LABEL: graph.func private @inner_body
// CHECK: graph.node "AddV2"
// CHECK-LABEL: graph.func private @outer_body(
// CHECK: %[[INNER:.*]]:2, %{{.*}} = graph.node "While"{{.*}}body = #graph.func<@inner_body>
// CHECK: %[[ASSIGN:.*]] = graph.node "AssignVariableOp"(%{{.*}}, %[[INNER]]#0)
// CHECK: graph.return %[[INNER]]#0, %{{.*}}, %{{.*}}[%[[ASSIGN]]]

// -----

// An edge to a constant orders what stands before it.
// CHECK-LABEL: graph.func @edge_to_constant(
graph.func @edge_to_constant(%x: tensor<i32>, %v: tensor<!graph.resource>) -> tensor<*xi32> {
  %e, %c0 = graph.node "Enter"(%x) {T = i32, frame_name = "o", is_constant = false} : (tensor<i32>) -> tensor<*xi32>
  %s, %c1 = graph.node "Enter"(%v) {T = !graph.resource, frame_name = "o", is_constant = true} : (tensor<!graph.resource>) -> tensor<*x!graph.resource>
  %i, %index, %c2 = graph.node "Merge"(%e, %next) {T = i32} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<i32>)
  %ten, %c3 = graph.node "Const"() [%c2] {dtype = i32, value = dense<10> : tensor<i32>} : () -> tensor<i32>
  %less, %c4 = graph.node "Less"(%i, %ten) {T = i32} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  %go, %c5 = graph.node "LoopCond"(%less) {} : (tensor<*xi1>) -> tensor<*xi1> loc("loop/LoopCond")
  %out, %in, %c6 = graph.node "Switch"(%i, %go) {T = i32} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %pushed, %push = graph.node "StackPushV2"(%s, %in) {T = i32} : (tensor<*x!graph.resource>, tensor<*xi32>) -> tensor<*xi32>
  %one, %c7 = graph.node "Const"() [%push] {dtype = i32, value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %sum, %c8 = graph.node "AddV2"(%in, %one) {T = i32} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %next, %c9 = graph.node "NextIteration"(%sum) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %exit, %c10 = graph.node "Exit"(%out) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %exit : tensor<*xi32>
}
// CHECK-LABEL: graph.func private @loop_body(
// CHECK: %{{.*}}, %[[PUSH:.*]] = graph.node "StackPushV2"
// CHECK: graph.node "Const"() [%[[PUSH]]] {{.*}}dense<1>

// -----

// A condition in the body that something only waits for is part of the body, for what its sides do.
// CHECK-LABEL: graph.func @waits(
// CHECK: graph.node "While"
// CHECK-LABEL: graph.func private @loop_body(
// CHECK-SAME: %[[X:.*]]: tensor<*xf32>, %[[V:.*]]: tensor<*x!graph.resource>, %[[P:.*]]: tensor<*xi1>)
// CHECK: %{{.*}}, %[[C:.*]] = graph.node "If"(%[[P]], %[[V]])
// CHECK: graph.node "ReadVariableOp"(%[[V]]) [%[[C]]]
// CHECK-LABEL: graph.func private @cond_then
// CHECK: graph.node "AssignAddVariableOp"
graph.func @waits(%x: tensor<f32>, %p: tensor<i1>, %v: tensor<!graph.resource>) -> tensor<*xf32> {
  %e, %c0 = graph.node "Enter"(%x) {T = f32, frame_name = "w", is_constant = false} : (tensor<f32>) -> tensor<*xf32>
  %pe, %c1 = graph.node "Enter"(%p) {T = i1, frame_name = "w", is_constant = true} : (tensor<i1>) -> tensor<*xi1>
  %ve, %c2 = graph.node "Enter"(%v) {T = !graph.resource, frame_name = "w", is_constant = true} : (tensor<!graph.resource>) -> tensor<*x!graph.resource>
  %s, %index, %c3 = graph.node "Merge"(%e, %next) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  %nine, %c4 = graph.node "Const"() [%c3] {dtype = f32, value = dense<9.0> : tensor<f32>} : () -> tensor<f32>
  %less, %c5 = graph.node "Less"(%s, %nine) {T = f32} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  %go, %c6 = graph.node "LoopCond"(%less) {} : (tensor<*xi1>) -> tensor<*xi1> loc("loop/LoopCond")
  %out, %in, %c7 = graph.node "Switch"(%s, %go) {T = f32} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %vf, %vt, %c8 = graph.node "Switch"(%ve, %pe) {T = !graph.resource} : (tensor<*x!graph.resource>, tensor<*xi1>) -> (tensor<*x!graph.resource>, tensor<*x!graph.resource>)
  %one, %c9 = graph.node "Const"() {dtype = f32, value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c10 = graph.node "AssignAddVariableOp"(%vt, %one) {dtype = f32} : (tensor<*x!graph.resource>, tensor<f32>) -> ()
  %rt, %c11 = graph.node "ReadVariableOp"(%vt) [%c10] {dtype = f32} : (tensor<*x!graph.resource>) -> tensor<*xf32>
  %rf, %c12 = graph.node "ReadVariableOp"(%vf) {dtype = f32} : (tensor<*x!graph.resource>) -> tensor<*xf32>
  %m, %mi, %c13 = graph.node "Merge"(%rf, %rt) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("cond/Merge")
  %r, %c14 = graph.node "ReadVariableOp"(%ve) [%c13] {dtype = f32} : (tensor<*x!graph.resource>) -> tensor<*xf32>
  %sum, %c15 = graph.node "AddV2"(%in, %r) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %next, %c16 = graph.node "NextIteration"(%sum) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %exit, %c17 = graph.node "Exit"(%out) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %exit : tensor<*xf32>
}
