// Why nodes stay outside, as remarks.
// RUN: lathe-opt %s --graph-mark-for-compilation="explain=true min-size=2 host-ops=Neg,AssignVariableOp,RandomUniform,Assert,Const forbid=no,nor" --split-input-file --verify-diagnostics -o %t

graph.func @reasons(%x: tensor<*xf32>, %s: tensor<*x!graph.string>, %n: tensor<*xi32>, %q: tensor<!graph.resource>) -> (tensor<*xf32>, tensor<*xf32>) {
  // expected-remark @below {{not compiled: host op (strings), no compiled form}}
  %0, %c0 = graph.node "StringToNumber"(%s) {out_type = f32} : (tensor<*x!graph.string>) -> tensor<*xf32>
  // expected-remark @below {{not compiled: takes strings}}
  %1, %c1 = graph.node "Identity"(%s) {T = !graph.string} : (tensor<*x!graph.string>) -> tensor<*x!graph.string>
  // expected-remark @below {{not compiled: keeps state in its host kernel}}
  %2, %c2 = graph.node "RandomUniform"(%n) {dtype = f32} : (tensor<*xi32>) -> tensor<*xf32>
  // expected-remark @unknown {{not compiled: forbidden}}
  %3, %c3 = graph.node "Exp"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32> loc("no")
  // expected-remark @below {{not compiled: asks about the variable itself}}
  %4, %c4 = graph.node "VarIsInitializedOp"(%q) {} : (tensor<!graph.resource>) -> tensor<*xi1>
  graph.return %0, %2 : tensor<*xf32>, tensor<*xf32>
}

// -----

graph.func @size(%x: tensor<*xf32>, %v: tensor<!graph.resource>) {
  // expected-remark @below {{not compiled: a cluster of 1 nodes that count, all with host kernels, is smaller than 2}}
  %c0 = graph.node "AssignVariableOp"(%v, %x) {dtype = f32} : (tensor<!graph.resource>, tensor<*xf32>) -> ()
  graph.return [%c0]
}

// -----

// A host kernel of an op that compiles is taken to be there for strings: the number goes into a cluster.
graph.func @numbers(%x: tensor<*xf32>) -> tensor<*xf32> {
  %0, %c0 = graph.node "Neg"(%x) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %0 : tensor<*xf32>
}
