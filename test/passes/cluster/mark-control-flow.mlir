// RUN: lathe-opt %s --graph-mark-for-compilation="min-size=1 host-ops=Identity,Const" --split-input-file | FileCheck %s --enable-var-scope

// A loop whose nodes all compile joins as a whole, with what is around it.
// CHECK-LABEL: graph.func @loop
// CHECK-COUNT-10: graph.cluster = "lathe_cluster_0"
graph.func @loop(%x: tensor<*xf32>, %limit: tensor<*xf32>) -> tensor<*xf32> {
  %s, %cs = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %e, %c0 = graph.node "Enter"(%s) {T = f32, frame_name = "f", is_constant = false} : (tensor<*xf32>) -> tensor<*xf32>
  %el, %c1 = graph.node "Enter"(%limit) {T = f32, frame_name = "f", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %mi, %c2 = graph.node "Merge"(%e, %n) {T = f32, N = 2} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  %p, %c3 = graph.node "Less"(%m, %el) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %lc, %c4 = graph.node "LoopCond"(%p) {} : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t, %c5 = graph.node "Switch"(%m, %lc) {T = f32} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b, %c6 = graph.node "Square"(%t) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %c7 = graph.node "NextIteration"(%b) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %exit, %c8 = graph.node "Exit"(%f) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %exit : tensor<*xf32>
}

// -----

// One host op, and the nodes of the loop run one by one: condition and body are different clusters, since the body is dead
// in the last round.
// CHECK-LABEL: graph.func @host_loop
// CHECK: graph.node "Less"{{.*}}graph.cluster = "[[C:lathe_cluster_[0-9]]]"
// CHECK: graph.node "Switch"(
// CHECK-NOT: graph.cluster = "[[C]]"
// CHECK: graph.node "Square"{{.*}}graph.cluster = "[[B:lathe_cluster_[0-9]]]"
// CHECK: graph.node "AsString"
// CHECK: graph.node "Exit"(%{{[^ ]*}}) {T = f32} :
graph.func @host_loop(%x: tensor<*xf32>, %limit: tensor<*xf32>) -> tensor<*xf32> {
  %e, %c0 = graph.node "Enter"(%x) {T = f32, frame_name = "f", is_constant = false} : (tensor<*xf32>) -> tensor<*xf32>
  %el, %c1 = graph.node "Enter"(%limit) {T = f32, frame_name = "f", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %mi, %c2 = graph.node "Merge"(%e, %n) {T = f32, N = 2} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  %p, %c3 = graph.node "Less"(%m, %el) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %lc, %c4 = graph.node "LoopCond"(%p) {} : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t, %c5 = graph.node "Switch"(%m, %lc) {T = f32} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b, %c6 = graph.node "Square"(%t) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %s, %c9 = graph.node "AsString"(%b) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %n, %c7 = graph.node "NextIteration"(%b) [%c9] {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %exit, %c8 = graph.node "Exit"(%f) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %exit : tensor<*xf32>
}

// -----

// A conditional joins from its Switches to its Merge.
// CHECK-LABEL: graph.func @conditional
// CHECK-COUNT-5: graph.cluster = "lathe_cluster_0"
graph.func @conditional(%x: tensor<*xf32>, %p: tensor<i1>) -> tensor<*xf32> {
  %f, %t, %c0 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<*xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a, %c1 = graph.node "Neg"(%f) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c2 = graph.node "Exp"(%t) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %mi, %c3 = graph.node "Merge"(%a, %b) {T = f32, N = 2} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  %r, %c4 = graph.node "Tanh"(%m) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %r : tensor<*xf32>
}

// -----

// With a host op on one side, each side is a cluster of its own: only one of them is alive.
// CHECK-LABEL: graph.func @host_conditional
// CHECK: graph.node "Switch"(%{{[^ ]*}}, %{{[^ ]*}}) {T = f32} :
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "[[A:lathe_cluster_[0-9]]]"
// CHECK: graph.node "Exp"
// CHECK-NOT: graph.cluster = "[[A]]"
// CHECK: graph.node "Merge"(%{{[^ ]*}}, %{{[^ ]*}}) {N = 2 : i64, T = f32} :
graph.func @host_conditional(%x: tensor<*xf32>, %p: tensor<i1>) -> tensor<*xf32> {
  %f, %t, %c0 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<*xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a, %c1 = graph.node "Neg"(%f) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c2 = graph.node "Exp"(%t) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %s, %c9 = graph.node "AsString"(%b) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %b2, %c8 = graph.node "Identity"(%b) [%c9] {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %mi, %c3 = graph.node "Merge"(%a, %b2) {T = f32, N = 2} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  graph.return %m : tensor<*xf32>
}
