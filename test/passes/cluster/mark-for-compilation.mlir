// RUN: lathe-opt %s --graph-mark-for-compilation="min-size=2 host-ops=Identity,Const,_Arg,_Retval,RandomUniform,Shape" --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --graph-mark-for-compilation="mode=none" --split-input-file | FileCheck %s --check-prefix=NONE
// NONE-NOT: graph.cluster

// Everything between arguments and results that compiles is one cluster; constants and ends are not marked.
// CHECK-LABEL: graph.func @chain
// CHECK: graph.node "Const"
// CHECK-NOT: graph.cluster
// CHECK: graph.node "AddV2"{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: graph.node "Tanh"{{.*}}graph.cluster = "lathe_cluster_0"
graph.func @chain(%x: tensor<*xf32>) -> tensor<*xf32> {
  %c, %c0 = graph.node "Const"() {dtype = f32} : () -> tensor<*xf32>
  %a, %c1 = graph.node "AddV2"(%x, %c) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %b, %c2 = graph.node "Tanh"(%a) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %b : tensor<*xf32>
}

// -----

// What goes through strings stays outside, and the nodes before and behind it cannot share a cluster: a path outside
// leads from one to the other.
// CHECK-LABEL: graph.func @cycle
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "[[A:lathe_cluster_[01]]]"
// CHECK: graph.node "AsString"(%{{[^ ]*}}) {T = f32} :
// CHECK: graph.node "StringToNumber"(%{{[^ ]*}}) {out_type = f32} :
// CHECK: graph.node "AddV2"
// CHECK-NOT: graph.cluster = "[[A]]"
graph.func @cycle(%x: tensor<*xf32>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %s, %c1 = graph.node "AsString"(%a) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %n, %c2 = graph.node "StringToNumber"(%s) {out_type = f32} : (tensor<*x!graph.string>) -> tensor<*xf32>
  %b, %c3 = graph.node "AddV2"(%a, %n) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %b : tensor<*xf32>
}

// -----

// Control edges count like data.
// CHECK-LABEL: graph.func @control
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "[[A:lathe_cluster_[01]]]"
// CHECK: graph.node "AddV2"
// CHECK-NOT: graph.cluster = "[[A]]"
graph.func @control(%x: tensor<*xf32>, %s: tensor<*x!graph.string>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %c1 = graph.node "StringToNumber"(%s) [%c0] {out_type = f32} : (tensor<*x!graph.string>) -> tensor<*xf32>
  %b, %c2 = graph.node "AddV2"(%a, %x) [%c1] {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %b : tensor<*xf32>
}

// -----

// Two clusters with nothing between them are one.
// CHECK-LABEL: graph.func @siblings
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: graph.node "Exp"{{.*}}graph.cluster = "lathe_cluster_0"
graph.func @siblings(%x: tensor<*xf32>, %y: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c1 = graph.node "Exp"(%y) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// Not those with blocking inputs of their own where something in the run may be what they wait for.
// CHECK-LABEL: graph.func @blocking
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "[[A:lathe_cluster_[01]]]"
// CHECK: graph.node "AddV2"
// CHECK-NOT: graph.cluster = "[[A]]"
graph.func @blocking(%x: tensor<*xf32>, %q: tensor<!graph.resource>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %c1 = graph.node "QueueEnqueueV2"(%q, %a) {Tcomponents = [f32]} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
  %d, %c2 = graph.node "QueueDequeueV2"(%q) {component_types = [f32]} : (tensor<!graph.resource>) -> tensor<*xf32>
  %b, %c3 = graph.node "AddV2"(%a, %d) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %b : tensor<*xf32>
}

// -----

// Variables are read and updated inside; the variable itself is no part.
// CHECK-LABEL: graph.func @variables
// CHECK: graph.node "VarHandleOp"() {{.*}} : ()
// CHECK: graph.node "ReadVariableOp"{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: graph.node "AssignAddVariableOp"{{.*}}graph.cluster = "lathe_cluster_0"
graph.func @variables(%x: tensor<*xf32>) {
  %v, %c0 = graph.node "VarHandleOp"() {dtype = f32, shape = #graph.shape<[2]>, shared_name = "v"} : () -> tensor<!graph.resource>
  %r, %c1 = graph.node "ReadVariableOp"(%v) {dtype = f32} : (tensor<!graph.resource>) -> tensor<*xf32>
  %a, %c2 = graph.node "Mul"(%r, %x) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %c3 = graph.node "AssignAddVariableOp"(%v, %a) {dtype = f32} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
  graph.return [%c3]
}

// -----

// Nodes on one list join as a whole ...
// CHECK-LABEL: graph.func @list
// CHECK: graph.node "TensorListReserve"{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: graph.node "TensorListSetItem"{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: graph.node "TensorListGetItem"{{.*}}graph.cluster = "lathe_cluster_0"
graph.func @list(%i: tensor<i32>, %s: tensor<*xi32>, %x: tensor<*xf32>) -> tensor<*xf32> {
  %l, %c0 = graph.node "TensorListReserve"(%s, %i) {element_dtype = f32, shape_type = i32} : (tensor<*xi32>, tensor<i32>) -> tensor<!graph.variant>
  %m, %c1 = graph.node "TensorListSetItem"(%l, %i, %x) {element_dtype = f32} : (tensor<!graph.variant>, tensor<i32>, tensor<*xf32>) -> tensor<!graph.variant>
  %y, %c2 = graph.node "TensorListGetItem"(%m, %i, %s) {element_dtype = f32} : (tensor<!graph.variant>, tensor<i32>, tensor<*xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// ... or stay outside when one has to.
// CHECK-LABEL: graph.func @list_outside
// CHECK-NOT: graph.cluster
graph.func @list_outside(%i: tensor<i32>, %s: tensor<*xi32>, %x: tensor<*xf32>) -> tensor<!graph.variant> {
  %l, %c0 = graph.node "TensorListReserve"(%s, %i) {element_dtype = f32, shape_type = i32} : (tensor<*xi32>, tensor<i32>) -> tensor<!graph.variant>
  %m, %c1 = graph.node "TensorListSetItem"(%l, %i, %x) {element_dtype = f32} : (tensor<!graph.variant>, tensor<i32>, tensor<*xf32>) -> tensor<!graph.variant>
  graph.return %m : tensor<!graph.variant>
}

// -----

// A function compiles when its body does.
// CHECK-LABEL: graph.func @calls
// CHECK: @good{{.*}}graph.cluster = "lathe_cluster_0"
// CHECK: @bad>}
// CHECK-NOT: graph.cluster
graph.func @calls(%x: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a, %c0 = graph.node "PartitionedCall"(%x) {f = #graph.func<@good>} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c1 = graph.node "PartitionedCall"(%x) {f = #graph.func<@bad>} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %a, %b : tensor<*xf32>, tensor<*xf32>
}
graph.func private @good(%x: tensor<*xf32>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %a : tensor<*xf32>
}
graph.func private @bad(%x: tensor<*xf32>) -> tensor<*xf32> {
  %s, %c1 = graph.node "AsString"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*x!graph.string>
  %n, %c2 = graph.node "StringToNumber"(%s) {out_type = f32} : (tensor<*x!graph.string>) -> tensor<*xf32>
  graph.return %n : tensor<*xf32>
}

// -----

// Devices are not mixed.
// CHECK-LABEL: graph.func @devices
// CHECK: graph.node "Neg"{{.*}}graph.cluster = "[[A:lathe_cluster_[01]]]"
// CHECK: graph.node "Exp"
// CHECK-NOT: graph.cluster = "[[A]]"
graph.func @devices(%x: tensor<*xf32>) -> tensor<*xf32> {
  %a, %c0 = graph.node "Neg"(%x) {T = f32} attributes {graph.device = "/cpu:0"} : (tensor<*xf32>) -> tensor<*xf32>
  %b, %c1 = graph.node "Exp"(%a) {T = f32} attributes {graph.device = "/cpu:1"} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %b : tensor<*xf32>
}
