// RUN: lathe-opt %s --split-input-file --graph-split-switches | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --split-input-file --lathe-cluster | FileCheck %s --check-prefix=IF

// Three branches are two questions, which both Switches share; the Merge keeps its name and the order of its inputs.
// CHECK-LABEL: graph.func @three_branches(
// CHECK-SAME: %[[I:.*]]: tensor<i32>, %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[N0:.*]], %{{.*}} = graph.node "Const"() {dtype = i32, value = dense<0> : tensor<i32>}
// CHECK: %[[Q0:.*]], %{{.*}} = graph.node "Equal"(%[[I]], %[[N0]])
// CHECK: %[[P0:.*]]:2, %{{.*}} = graph.node "Switch"(%[[I]], %[[Q0]])
// CHECK: %[[N1:.*]], %{{.*}} = graph.node "Const"() {dtype = i32, value = dense<1> : tensor<i32>}
// CHECK: %[[Q1:.*]], %{{.*}} = graph.node "Equal"(%[[I]], %[[N1]])
// CHECK: graph.node "Switch"(%[[P0]]#0, %[[Q1]])
// CHECK: graph.node "Identity"(%[[P0]]#1)
// CHECK: %[[X0:.*]]:2, %{{.*}} = graph.node "Switch"(%[[X]], %[[Q0]])
// CHECK: %[[X1:.*]]:2, %{{.*}} = graph.node "Switch"(%[[X0]]#0, %[[Q1]])
// CHECK: %[[A:.*]], %{{.*}} = graph.node "Add"(%[[X0]]#1
// CHECK: %[[B:.*]], %{{.*}} = graph.node "Neg"(%[[X1]]#1)
// CHECK: %[[C:.*]], %{{.*}} = graph.node "Exp"(%[[X1]]#0)
// CHECK: %[[M:.*]]:2, %{{.*}} = graph.node "Merge"(%[[B]], %[[C]]) {N = 2 : i64, T = f32}
// CHECK: %[[Y:.*]]:2, %{{.*}} = graph.node "Merge"(%[[A]], %[[M]]#0) {N = 2 : i64, T = f32}
// CHECK-NOT: _SwitchN
// CHECK: graph.return %[[Y]]#0
// IF-LABEL: graph.func @three_branches(
// IF: %[[Q0:.*]], %{{.*}} = graph.node "Equal"(%arg0
// IF: graph.node "If"(%[[Q0]]
// IF-NOT: "Switch"
graph.func @three_branches(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<*xf32> {
  %p0, %p1, %p2, %c0 = graph.node "_SwitchN"(%i, %i) {T = i32, num_outs = 3 : i64} : (tensor<i32>, tensor<i32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xi32>)
  %pivot, %c1 = graph.node "Identity"(%p0) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %one, %c2 = graph.node "Const"() [%c1] {dtype = f32, value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %x0, %x1, %x2, %c3 = graph.node "_SwitchN"(%x, %i) {T = f32, num_outs = 3 : i64} : (tensor<4xf32>, tensor<i32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  %a, %c4 = graph.node "Add"(%x0, %one) {T = f32} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b, %c5 = graph.node "Neg"(%x1) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %c, %c6 = graph.node "Exp"(%x2) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %y, %which, %c7 = graph.node "Merge"(%a, %b, %c) {N = 3 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("case/Merge")
  graph.return %y : tensor<*xf32>
}

// -----

// One branch is no choice.
// CHECK-LABEL: graph.func @one_branch(
// CHECK: %[[X:.*]], %{{.*}} = graph.node "Identity"(%arg1) {T = f32}
// CHECK: graph.node "Neg"(%[[X]])
// IF-LABEL: graph.func @one_branch(
graph.func @one_branch(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<*xf32> {
  %x0, %c0 = graph.node "_SwitchN"(%x, %i) {T = f32, num_outs = 1 : i64} : (tensor<4xf32>, tensor<i32>) -> tensor<*xf32>
  %a, %c1 = graph.node "Neg"(%x0) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %a : tensor<*xf32>
}
