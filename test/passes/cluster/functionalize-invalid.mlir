// RUN: lathe-opt %s --split-input-file --graph-functionalize-control-flow --verify-diagnostics

graph.func @fetch_of_one_side(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{an output or target depends on which side of this condition is taken}}
  %xf, %xt, %c1 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<4xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  graph.return %xt : tensor<*xf32>
}

// -----

graph.func @no_condition(%x: tensor<i32>) -> tensor<*xi32> {
  // expected-error @+1 {{expected one LoopCond in loop 'w', found 0}}
  %enter, %c2 = graph.node "Enter"(%x) {T = i32, frame_name = "w", is_constant = false} : (tensor<i32>) -> tensor<*xi32>
  %exit, %c11 = graph.node "Exit"(%enter) {T = i32} : (tensor<*xi32>) -> tensor<*xi32>
  graph.return %exit : tensor<*xi32>
}

// -----

graph.func @exit_without_enter(%x: tensor<i32>) -> tensor<*xi32> {
  // expected-error @+1 {{leaves a loop that nothing enters}}
  %exit, %c11 = graph.node "Exit"(%x) {T = i32} : (tensor<i32>) -> tensor<*xi32>
  graph.return %exit : tensor<*xi32>
}

// -----

graph.func @merge_of_one_side(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<f32>) -> tensor<*xf32> {
  %xf, %xt, %c0 = graph.node "Switch"(%x, %p) {T = f32} : (tensor<f32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  %yf, %yt, %c1 = graph.node "Switch"(%x, %q) {T = f32} : (tensor<f32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>)
  // expected-error @+1 {{merges values that are not the two sides of one condition}}
  %m, %i, %c5 = graph.node "Merge"(%xt, %yt) {N = 2 : i64, T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>)
  graph.return %m : tensor<*xf32>
}

// -----

graph.func @cycle(%x: tensor<f32>) -> tensor<*xf32> {
  // expected-error @+1 {{is part of a cycle}}
  %a, %c0 = graph.node "Add"(%b, %x) {T = f32} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b, %c1 = graph.node "Neg"(%a) {T = f32} : (tensor<*xf32>) -> tensor<*xf32>
  %bf, %bt, %c2 = graph.node "Switch"(%b, %b) {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  graph.return %bt : tensor<*xf32>
}
