// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// A loop that fills a list: the element's shape is known only from the body; what the body returns unchanged is used
// from outside instead of being carried.
// CHECK-LABEL: func.func @loop_with_list
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>
// CHECK: %[[ZEROS:.*]] = hlo.constant dense<0.000000e+00> : tensor<3x4xf32>
// CHECK: %[[R:.*]]:2 = "hlo.while"(%{{.*}}, %[[ZEROS]])
// CHECK: hlo.compare LT
// CHECK: hlo.dynamic_update_slice
// CHECK: (tensor<i32>, tensor<3x4xf32>) -> (tensor<i32>, tensor<3x4xf32>)
// CHECK: return %[[R]]#1 : tensor<3x4xf32>
graph.func @loop_with_list(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %n, %c1 = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %s, %c2 = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %l, %c3 = graph.node "TensorListReserve"(%s, %n) {element_dtype = f32} : (tensor<i32>, tensor<i32>) -> tensor<!graph.variant>
  %w:3, %c4 = graph.node "While"(%zero, %l, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<i32>, tensor<!graph.variant>, tensor<4xf32>) -> (tensor<i32>, tensor<!graph.variant>, tensor<4xf32>)
  %y, %c5 = graph.node "TensorListStack"(%w#1, %s) {num_elements = 3 : i64, element_dtype = f32} : (tensor<!graph.variant>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @cond(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %n, %c1 = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %r, %c2 = graph.node "Less"(%i, %n) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>) {
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %next, %c2 = graph.node "AddV2"(%i, %one) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %set, %c3 = graph.node "TensorListSetItem"(%l, %i, %x) {element_dtype = f32} : (tensor<*x!graph.variant>, tensor<*xi32>, tensor<*xf32>) -> tensor<*x!graph.variant>
  %same, %c4 = graph.node "Identity"(%x) {} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %next, %set, %same : tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>
}

// -----

// A variable that one branch assigns is a result of the if, and of the function.
// CHECK: hlo.variables = [{name = "v", type = tensor<f32>, value = dense<1.000000e+00> : tensor<f32>}]
// CHECK-LABEL: func.func @branch_assigns
// CHECK-SAME: %[[P:.*]]: tensor<i1> {hlo.name = "p"}, %[[V:.*]]: tensor<f32> {hlo.variable = "v"}
// CHECK-SAME: -> (tensor<f32> {hlo.name = "y"}, tensor<f32> {hlo.variable = "v"})
// CHECK: %[[IF:.*]] = "hlo.if"(%[[P]])
// CHECK: hlo.return %{{.*}} : tensor<f32>
// CHECK: hlo.return %[[V]] : tensor<f32>
// CHECK: return %[[IF]], %[[IF]]
graph.variable @v : tensor<f32> = dense<1.0> : tensor<f32>
graph.func @branch_assigns(%p: tensor<i1> {graph.name = "p"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %h, %hc = graph.node "VarHandleOp"() {shared_name = "v", dtype = f32, shape = #graph.shape<[]>} : () -> tensor<!graph.resource>
  %ic = graph.node "If"(%p, %h) {then_branch = #graph.func<@set>, else_branch = #graph.func<@leave>} : (tensor<i1>, tensor<!graph.resource>) -> ()
  %y, %yc = graph.node "ReadVariableOp"(%h) [%ic] {} : (tensor<!graph.resource>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @set(%h: tensor<*x!graph.resource>) {
  %two, %c1 = graph.node "Const"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %ac = graph.node "AssignAddVariableOp"(%h, %two) {} : (tensor<*x!graph.resource>, tensor<f32>) -> ()
  graph.return [%ac]
}
graph.func private @leave(%h: tensor<*x!graph.resource>) {
  graph.return
}

// -----

// A list that grows in a loop of a known number of iterations has its room from the start, and its length afterwards.
// CHECK-LABEL: func.func @growing
// CHECK: "hlo.while"
// CHECK: (tensor<i32>, tensor<5xf32>, tensor<i32>) -> (tensor<i32>, tensor<5xf32>, tensor<i32>)
// CHECK: return %{{.*}} : tensor<5xf32>
graph.func @growing(%x: tensor<f32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %m, %c1 = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %s, %c2 = graph.node "Const"() {value = dense<> : tensor<0xi32>} : () -> tensor<0xi32>
  %l, %c3 = graph.node "EmptyTensorList"(%s, %m) {element_dtype = f32} : (tensor<0xi32>, tensor<i32>) -> tensor<!graph.variant>
  %w:3, %c4 = graph.node "StatelessWhile"(%zero, %l, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<i32>, tensor<!graph.variant>, tensor<f32>) -> (tensor<i32>, tensor<!graph.variant>, tensor<f32>)
  %y, %c5 = graph.node "TensorListStack"(%w#1, %s) {num_elements = -1 : i64, element_dtype = f32} : (tensor<!graph.variant>, tensor<0xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @cond(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %n, %c1 = graph.node "Const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
  %r, %c2 = graph.node "Less"(%i, %n) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>) {
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %next, %c2 = graph.node "AddV2"(%i, %one) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %push, %c3 = graph.node "TensorListPushBack"(%l, %x) {element_dtype = f32} : (tensor<*x!graph.variant>, tensor<*xf32>) -> tensor<*x!graph.variant>
  graph.return %next, %push, %x : tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>
}

// -----

// Branches whose results have different sizes: each sets the size that the result has, and nothing says that they agree.
// CHECK-LABEL: func.func @branches_of_two_sizes
// CHECK: "hlo.if"
// CHECK: hlo.set_size %{{.*}} {{.*}}symbol = [[N:[0-9]+]]
// CHECK: hlo.assume_shape
// CHECK: hlo.return
// CHECK: hlo.set_size %{{.*}} {{.*}}symbol = [[N]]
// CHECK: hlo.assume_shape
// CHECK: hlo.return
graph.func @branches_of_two_sizes(%p: tensor<i1> {graph.name = "p"}, %x: tensor<8xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "If"(%p, %x) {then_branch = #graph.func<@all>, else_branch = #graph.func<@some>} : (tensor<i1>, tensor<8xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @all(%x: tensor<*xf32>) -> tensor<*xf32> {
  %y, %c = graph.node "Neg"(%x) {} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @some(%x: tensor<*xf32>) -> tensor<*xf32> {
  %b, %c0 = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %e, %c1 = graph.node "Const"() {value = dense<5> : tensor<1xi32>} : () -> tensor<1xi32>
  %s, %c2 = graph.node "Const"() {value = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
  %y, %c3 = graph.node "StridedSlice"(%x, %b, %e, %s) {} : (tensor<*xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// All items of this list are the sizes of one tensor, in whatever iteration: what is taken off it shapes tensors as the sizes do.
// CHECK-LABEL: func.func @list_of_sizes
// CHECK: "hlo.while"
// CHECK: return %{{.*}} : tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>
graph.func @list_of_sizes(%x: tensor<?x3xf32> {graph.name = "x"}, %z: tensor<f32> {graph.name = "z"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %m, %c1 = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %s, %c2 = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %l, %c3 = graph.node "EmptyTensorList"(%s, %m) {element_dtype = i32} : (tensor<1xi32>, tensor<i32>) -> tensor<!graph.variant>
  %w:3, %c4 = graph.node "StatelessWhile"(%zero, %l, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<i32>, tensor<!graph.variant>, tensor<?x3xf32>) -> (tensor<i32>, tensor<!graph.variant>, tensor<?x3xf32>)
  %pop:2, %c5 = graph.node "TensorListPopBack"(%w#1, %s) {element_dtype = i32} : (tensor<!graph.variant>, tensor<1xi32>) -> (tensor<!graph.variant>, tensor<*xi32>)
  %y, %c6 = graph.node "Fill"(%pop#1, %z) {} : (tensor<*xi32>, tensor<f32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
graph.func private @cond(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %n, %c1 = graph.node "Const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
  %r, %c2 = graph.node "Less"(%i, %n) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>) {
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %next, %c2 = graph.node "AddV2"(%i, %one) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %size, %c3 = graph.node "Shape"(%x) {out_type = i32} : (tensor<*xf32>) -> tensor<*xi32>
  %push, %c4 = graph.node "TensorListPushBack"(%l, %size) {element_dtype = i32} : (tensor<*x!graph.variant>, tensor<*xi32>) -> tensor<*x!graph.variant>
  graph.return %next, %push, %x : tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>
}

// -----

// Another size goes onto the list than lies there: what is taken off it is known to the run alone.
// CHECK-LABEL: func.func @list_of_two_sizes
// CHECK: "hlo.while"
// CHECK: return %{{.*}} : tensor<2xi32>
graph.func @list_of_two_sizes(%x: tensor<?x3xf32> {graph.name = "x"}) -> (tensor<*xi32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %m, %c1 = graph.node "Const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %s, %c2 = graph.node "Const"() {value = dense<2> : tensor<1xi32>} : () -> tensor<1xi32>
  %l, %c3 = graph.node "EmptyTensorList"(%s, %m) {element_dtype = i32} : (tensor<1xi32>, tensor<i32>) -> tensor<!graph.variant>
  %first, %c6 = graph.node "Const"() {value = dense<[7, 3]> : tensor<2xi32>} : () -> tensor<2xi32>
  %has, %c7 = graph.node "TensorListPushBack"(%l, %first) {element_dtype = i32} : (tensor<!graph.variant>, tensor<2xi32>) -> tensor<!graph.variant>
  %w:3, %c4 = graph.node "StatelessWhile"(%zero, %has, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<i32>, tensor<!graph.variant>, tensor<?x3xf32>) -> (tensor<i32>, tensor<!graph.variant>, tensor<?x3xf32>)
  %pop:2, %c5 = graph.node "TensorListPopBack"(%w#1, %s) {element_dtype = i32} : (tensor<!graph.variant>, tensor<1xi32>) -> (tensor<!graph.variant>, tensor<*xi32>)
  // CHECK-NOT: hlo.size
  graph.return %pop#1 : tensor<*xi32>
}
graph.func private @cond(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %n, %c1 = graph.node "Const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
  %r, %c2 = graph.node "Less"(%i, %n) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%i: tensor<*xi32>, %l: tensor<*x!graph.variant>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>) {
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %next, %c2 = graph.node "AddV2"(%i, %one) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %size, %c3 = graph.node "Shape"(%x) {out_type = i32} : (tensor<*xf32>) -> tensor<*xi32>
  %push, %c4 = graph.node "TensorListPushBack"(%l, %size) {element_dtype = i32} : (tensor<*x!graph.variant>, tensor<*xi32>) -> tensor<*x!graph.variant>
  graph.return %next, %push, %x : tensor<*xi32>, tensor<*x!graph.variant>, tensor<*xf32>
}

// -----

// A variable that the body sets and does not read enters without elements, as AutoGraph writes what a loop defines: it enters with the
// shape it gets, and the input keeps its size.
// CHECK-LABEL: func.func @defined_in_loop
// CHECK-SAME: tensor<?xf32, affine_map<()[s0] -> (s0)>>
// CHECK: return %{{.*}} : tensor<?xf32, affine_map<()[s0] -> (s0)>>
graph.func @defined_in_loop(%x: tensor<?xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %zero, %c0 = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %none, %c1 = graph.node "Const"() {value = dense<> : tensor<0xf32>} : () -> tensor<0xf32>
  %w:3, %c4 = graph.node "StatelessWhile"(%zero, %none, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<i32>, tensor<0xf32>, tensor<?xf32>) -> (tensor<i32>, tensor<*xf32>, tensor<?xf32>)
  graph.return %w#1 : tensor<*xf32>
}
graph.func private @cond(%i: tensor<*xi32>, %a: tensor<*xf32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %n, %c1 = graph.node "Const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
  %r, %c2 = graph.node "Less"(%i, %n) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%i: tensor<*xi32>, %a: tensor<*xf32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) {
  %one, %c1 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %next, %c2 = graph.node "AddV2"(%i, %one) {} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %y, %c3 = graph.node "Tanh"(%x) {} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %next, %y, %x : tensor<*xi32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// The condition is the first to show that two open sizes are one: the body is of that size, too.
// CHECK-LABEL: func.func @same_sizes
// CHECK: "hlo.while"(%{{.*}}) ({
// CHECK: ^bb0(%{{[^:]*}}: tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>)
// CHECK: ^bb0(%{{[^:]*}}: tensor<?x3xf32, affine_map<()[s0] -> (s0, 3)>>)
graph.func @same_sizes(%x: tensor<?x3xf32> {graph.name = "x"}, %y: tensor<?x3xf32> {graph.name = "y"}) -> (tensor<*xf32> {graph.name = "z"}) {
  %w:2, %c0 = graph.node "StatelessWhile"(%y, %x) {cond = #graph.func<@cond>, body = #graph.func<@body>} : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>)
  %z, %c1 = graph.node "Identity"(%w#0) {} : (tensor<?x3xf32>) -> tensor<*xf32>
  graph.return %z : tensor<*xf32>
}
graph.func private @cond(%y: tensor<*xf32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %one, %c0 = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %both, %c1 = graph.node "ConcatV2"(%x, %y, %one) {} : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
  %axes, %c2 = graph.node "Const"() {value = dense<[0, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  %sum, %c3 = graph.node "Sum"(%both, %axes) {} : (tensor<*xf32>, tensor<2xi32>) -> tensor<*xf32>
  %ten, %c4 = graph.node "Const"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r, %c5 = graph.node "Less"(%sum, %ten) {} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  graph.return %r : tensor<*xi1>
}
graph.func private @body(%y: tensor<*xf32>, %x: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %next, %c0 = graph.node "Exp"(%y) {} : (tensor<*xf32>) -> tensor<*xf32>
  graph.return %next, %x : tensor<*xf32>, tensor<*xf32>
}

// -----

// A condition that writes a variable is asked in front of the loop and at the end of its body; its answer and the variable are carried.
// CHECK-LABEL: func.func @condition_counts
// CHECK-SAME: %[[X:.*]]: tensor<f32> {hlo.name = "x"}, %[[N:.*]]: tensor<f32> {hlo.variable = "n"}
// CHECK: %[[FIRST:.*]] = hlo.add %[[N]]
// CHECK: %[[GO:.*]] = hlo.compare  LT, %[[FIRST]]
// CHECK: %[[LOOP:.*]]:3 = "hlo.while"(%[[X]], %[[GO]], %[[FIRST]])
// CHECK: ^bb0(%{{.*}}: tensor<f32>{{.*}}, %[[ANSWER:.*]]: tensor<i1>{{.*}}, %{{.*}}: tensor<f32>
// CHECK-NEXT: hlo.return %[[ANSWER]] : tensor<i1>
// CHECK: ^bb0(%{{.*}}: tensor<f32>{{.*}}, %{{.*}}: tensor<i1>{{.*}}, %[[NOW:.*]]: tensor<f32>
// CHECK: %[[NEXT:.*]] = hlo.add %[[NOW]]
// CHECK: %[[AGAIN:.*]] = hlo.compare  LT, %[[NEXT]]
// CHECK: hlo.return %{{.*}}, %[[AGAIN]], %[[NEXT]]
// CHECK: return %[[LOOP]]#0, %[[LOOP]]#2
graph.variable @n : tensor<f32> = dense<1.0> : tensor<f32>
graph.func @condition_counts(%x: tensor<f32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %h, %hc = graph.node "VarHandleOp"() {shared_name = "n", dtype = f32, shape = #graph.shape<[]>} : () -> tensor<!graph.resource>
  %w:2, %wc = graph.node "While"(%x, %h) {cond = #graph.func<@asked>, body = #graph.func<@doubled>} : (tensor<f32>, tensor<!graph.resource>) -> (tensor<*xf32>, tensor<*x!graph.resource>)
  graph.return %w#0 : tensor<*xf32>
}
graph.func private @asked(%x: tensor<*xf32>, %h: tensor<*x!graph.resource>) -> tensor<*xi1> {
  %two, %c1 = graph.node "Const"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %c2 = graph.node "AssignAddVariableOp"(%h, %two) {} : (tensor<*x!graph.resource>, tensor<f32>) -> ()
  %n, %c3 = graph.node "ReadVariableOp"(%h) [%c2] {} : (tensor<*x!graph.resource>) -> tensor<*xf32>
  %nine, %c4 = graph.node "Const"() {value = dense<9.0> : tensor<f32>} : () -> tensor<f32>
  %l, %c5 = graph.node "Less"(%n, %nine) {} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  graph.return %l : tensor<*xi1>
}
graph.func private @doubled(%x: tensor<*xf32>, %h: tensor<*x!graph.resource>) -> (tensor<*xf32>, tensor<*x!graph.resource>) {
  %y, %c1 = graph.node "AddV2"(%x, %x) {} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  graph.return %y, %h : tensor<*xf32>, tensor<*x!graph.resource>
}
