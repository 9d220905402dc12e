// RUN: lathe-opt %s --graph-encapsulate-clusters --split-input-file | FileCheck %s --enable-var-scope

// Nodes move to a function, constants are copied into it, edges from outside become the call's.
// CHECK-LABEL: graph.func @basic
// CHECK: %[[S:.*]], %[[SC:.*]] = graph.node "AsString"
// CHECK: %[[CALL:.*]], %[[CC:.*]] = graph.node "StatefulPartitionedCall"(%arg0) [%[[SC]]] {f = #graph.func<@c>} attributes {graph.cluster = "c", graph.new}
// CHECK: graph.node "AsString"(%[[CALL]])
// CHECK-LABEL: graph.func private @c(
// CHECK-SAME: %[[X:.*]]: tensor<*xf32>) -> tensor<*xf32> attributes {graph.cluster = "c"}
// CHECK: %[[A:.*]], %{{.*}} = graph.node "AddV2"(%[[X]], %[[K:.*]]) {T = f32} :
// CHECK: %[[B:.*]], %{{.*}} = graph.node "Neg"(%[[A]]) {T = f32} :
// CHECK: %[[K]], %{{.*}} = graph.node "Const"
// CHECK: graph.return %[[B]]
graph.func @basic(%x: tensor<*xf32>) -> tensor<*x!graph.string> {
  %s, %c0 = graph.node "AsString"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %k, %c1 = graph.node "Const"() {dtype = f32} : () -> tensor<*xf32>
  %a, %c2 = graph.node "AddV2"(%x, %k) [%c0] {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %b, %c3 = graph.node "Neg"(%a) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32>
  %r, %c4 = graph.node "AsString"(%b) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  graph.return %r : tensor<*x!graph.string>
}

// -----

// What the graph returns, or has as target, keeps its name.
// CHECK-LABEL: graph.func @names
// CHECK: %[[CALL:.*]], %[[C:.*]] = graph.node "StatefulPartitionedCall"
// CHECK: %[[I:.*]], %{{.*}} = graph.node "Identity"(%[[CALL]]) {} attributes {graph.new}
// CHECK: %[[N:.*]] = graph.node "NoOp"() [%[[C]]] {} attributes {graph.new}
// CHECK: graph.return %[[I]][%[[N]]]
graph.func @names(%x: tensor<*xf32>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  %b, %c1 = graph.node "Exp"(%a) {T = f32} attributes {graph.cluster = "c"} : (tensor<*xf32>) -> tensor<*xf32> loc("b")
  graph.return %a [%c1] : tensor<*xf32>
}

// -----

// Whoever takes a reference from the cluster takes the variable, after the cluster.
// CHECK-LABEL: graph.func @reference
// CHECK: %[[V:.*]], %{{.*}} = graph.node "VariableV2"
// CHECK: %[[C:.*]] = graph.node "StatefulPartitionedCall"(%[[V]], %arg0)
// CHECK: graph.node "CountUpTo"(%[[V]]) [%[[C]]]
graph.func @reference(%x: tensor<*xi32>) -> tensor<*xi32> {
  %v, %c0 = graph.node "VariableV2"() {dtype = i32} : () -> tensor<*xi32>
  %a, %c1 = graph.node "Assign"(%v, %x) {T = i32} attributes {graph.cluster = "c"} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %b, %c2 = graph.node "CountUpTo"(%a) {T = i32, limit = 3 : i64} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %b : tensor<*xi32>
}

// -----

// Whoever reads a reference after an update outside reads the variable then; one that waits for nothing takes the cluster's result.
// CHECK-LABEL: graph.func @read_later
// CHECK: %[[V:.*]], %{{.*}} = graph.node "VariableV2"
// CHECK: %[[R:.*]], %[[C:.*]] = graph.node "StatefulPartitionedCall"(%[[V]], %arg0)
// CHECK: %{{.*}}, %[[U:.*]] = graph.node "CountUpTo"(%[[V]]) [%[[C]]]
// CHECK: graph.node "Identity"(%[[V]]) [%[[U]], %[[C]]]
// CHECK: graph.node "Identity"(%[[R]])
graph.func @read_later(%x: tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>) {
  %v, %c0 = graph.node "VariableV2"() {dtype = i32} : () -> tensor<*xi32>
  %a, %c1 = graph.node "Assign"(%v, %x) {T = i32} attributes {graph.cluster = "c"} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %b, %c2 = graph.node "CountUpTo"(%a) {T = i32, limit = 3 : i64} : (tensor<*xi32>) -> tensor<*xi32>
  %d, %c3 = graph.node "Identity"(%a) [%c2] {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  %e, %c4 = graph.node "Identity"(%a) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %d, %e : tensor<*xi32>, tensor<*xi32>
}

// -----

// Two handles of one variable are one argument, and a name that is taken is not taken again.
// CHECK-LABEL: graph.func @handles
// CHECK: graph.node "StatefulPartitionedCall"(%{{[^, ]*}}, %arg0) {f = #graph.func<@c_0>}
// CHECK: graph.func private @c_0(
module attributes {graph.library = ["c"]} {
  graph.func @handles(%x: tensor<*xf32>) {
    %v, %c0 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "v"} : () -> tensor<!graph.resource>
    %w, %c1 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "v"} : () -> tensor<!graph.resource>
    %c2 = graph.node "AssignVariableOp"(%v, %x) {dtype = f32} attributes {graph.cluster = "c"} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
    %c3 = graph.node "AssignAddVariableOp"(%w, %x) [%c2] {dtype = f32} attributes {graph.cluster = "c"} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
    graph.return [%c3]
  }
}

// -----

// The texts of an Assert go with it.
// CHECK-LABEL: graph.func @texts
// CHECK: graph.node "StatefulPartitionedCall"(%arg0)
// CHECK: graph.func private @c(
// CHECK: graph.node "Assert"(%{{.*}}, %[[T:.*]]) {T = [!graph.string]}
// CHECK: %[[T]], %{{.*}} = graph.node "Const"
graph.func @texts(%x: tensor<i1>) {
  %t, %c0 = graph.node "Const"() {dtype = !graph.string} : () -> tensor<!graph.string>
  %c1 = graph.node "Assert"(%x, %t) {T = [!graph.string]} attributes {graph.cluster = "c"} : (tensor<i1>, tensor<!graph.string>) -> ()
  graph.return [%c1]
}
