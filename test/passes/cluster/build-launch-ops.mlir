// RUN: lathe-opt %s --graph-build-launch-ops --split-input-file | FileCheck %s --enable-var-scope

// Handles come last, in the launch and in the function; the first variable is written before it is read, the second read.
// CHECK-LABEL: graph.func @train
// CHECK: graph.node "LatheLaunch"(%arg0, %[[V:.*]], %[[W:.*]]) {cluster = "c", function = #graph.func<@c>, reads = [false, true], variables = 2 : i64, writes = [true, false]} attributes {graph.new}
// CHECK: graph.func private @c(%[[X:.*]]: tensor<*xf32>, %[[A:.*]]: tensor<!graph.resource>, %[[B:.*]]: tensor<!graph.resource>)
// CHECK: graph.node "AssignVariableOp"(%[[A]], %[[X]])
// CHECK: graph.node "ReadVariableOp"(%[[A]])
// CHECK: graph.node "ReadVariableOp"(%[[B]])
graph.func @train(%x: tensor<*xf32>) -> tensor<*xf32> {
  %v, %c0 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "v"} : () -> tensor<!graph.resource>
  %w, %c1 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "w"} : () -> tensor<!graph.resource>
  %r, %c2 = graph.node "StatefulPartitionedCall"(%v, %x, %w) {f = #graph.func<@c>} attributes {graph.cluster = "c"} : (tensor<!graph.resource>, tensor<*xf32>, tensor<!graph.resource>) -> tensor<*xf32>
  graph.return %r : tensor<*xf32>
}
graph.func private @c(%v: tensor<!graph.resource>, %x: tensor<*xf32>, %w: tensor<!graph.resource>) -> tensor<*xf32> attributes {graph.cluster = "c"} {
  %c0 = graph.node "AssignVariableOp"(%v, %x) {dtype = f32} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
  %a, %c1 = graph.node "ReadVariableOp"(%v) [%c0] {dtype = f32} : (tensor<!graph.resource>) -> tensor<*xf32>
  %b, %c2 = graph.node "ReadVariableOp"(%w) {dtype = f32} : (tensor<!graph.resource>) -> tensor<*xf32>
  %s, %c3 = graph.node "AddV2"(%a, %b) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %s : tensor<*xf32>
}

// -----

// A reference is a handle where something writes through it, a plain argument where its value is enough.
// CHECK-LABEL: graph.func @references
// CHECK: graph.node "LatheLaunch"(%arg0, %[[W:.*]], %[[V:.*]]) {cluster = "c", {{.*}}reads = [true], variables = 1 : i64, writes = [false]}
graph.func @references(%x: tensor<*xf32>) -> tensor<*xf32> {
  %v, %c0 = graph.node "VariableV2"() {dtype = f32} : () -> tensor<*xf32>
  %w, %c1 = graph.node "VariableV2"() {dtype = f32} : () -> tensor<*xf32>
  %r, %c2 = graph.node "StatefulPartitionedCall"(%v, %x, %w) {f = #graph.func<@c>} attributes {graph.cluster = "c"} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %r : tensor<*xf32>
}
graph.func private @c(%v: tensor<*xf32>, %x: tensor<*xf32>, %w: tensor<*xf32>) -> tensor<*xf32> attributes {graph.cluster = "c"} {
  %a, %c0 = graph.node "AssignAdd"(%v, %x) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %s, %c3 = graph.node "AddV2"(%a, %w) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %s : tensor<*xf32>
}

// -----

// What a loop assigns it may assign before it reads: the first variable need not have a value, the second has to.
// CHECK-LABEL: graph.func @loop
// CHECK: graph.node "LatheLaunch"{{.*}}reads = [false, true], variables = 2 : i64, writes = [false, false]}
graph.func @loop(%x: tensor<*xf32>) -> tensor<*xf32> {
  %v, %c0 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "v"} : () -> tensor<!graph.resource>
  %w, %c1 = graph.node "VarHandleOp"() {dtype = f32, shared_name = "w"} : () -> tensor<!graph.resource>
  %r, %c2 = graph.node "StatefulPartitionedCall"(%v, %x, %w) {f = #graph.func<@c>} attributes {graph.cluster = "c"} : (tensor<!graph.resource>, tensor<*xf32>, tensor<!graph.resource>) -> tensor<*xf32>
  graph.return %r : tensor<*xf32>
}
graph.func private @c(%v: tensor<!graph.resource>, %x: tensor<*xf32>, %w: tensor<!graph.resource>) -> tensor<*xf32> attributes {graph.cluster = "c"} {
  %r:3, %c0 = graph.node "While"(%x, %v, %w) {T = [f32, !graph.resource, !graph.resource], cond = #graph.func<@below>, body = #graph.func<@body>} : (tensor<*xf32>, tensor<!graph.resource>, tensor<!graph.resource>) -> (tensor<*xf32>, tensor<!graph.resource>, tensor<!graph.resource>)
  graph.return %r#0 : tensor<*xf32>
}
graph.func private @below(%x: tensor<*xf32>, %v: tensor<!graph.resource>, %w: tensor<!graph.resource>) -> tensor<*xi1> {
  %a, %c0 = graph.node "ReadVariableOp"(%w) {dtype = f32} : (tensor<!graph.resource>) -> tensor<*xf32>
  %l, %c1 = graph.node "Less"(%x, %a) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  graph.return %l : tensor<*xi1>
}
graph.func private @body(%x: tensor<*xf32>, %v: tensor<!graph.resource>, %w: tensor<!graph.resource>) -> (tensor<*xf32>, tensor<!graph.resource>, tensor<!graph.resource>) {
  %c0 = graph.node "AssignVariableOp"(%v, %x) {dtype = f32} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
  %a, %c1 = graph.node "ReadVariableOp"(%v) [%c0] {dtype = f32} : (tensor<!graph.resource>) -> tensor<*xf32>
  %s, %c2 = graph.node "AddV2"(%a, %x) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %s, %v, %w : tensor<*xf32>, tensor<!graph.resource>, tensor<!graph.resource>
}
