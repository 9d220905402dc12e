// RUN: lathe-opt %s --split-input-file --verify-diagnostics

graph.func @missing_function() {
  // expected-error @+1 {{refers to function @nowhere, which does not exist}}
  %c = graph.node "If"() {then = #graph.func<@nowhere>} : () -> ()
  graph.return
}

// -----

graph.func @no_op_type() {
  // expected-error @+1 {{expected an op type, found an empty name}}
  %c = graph.node ""() {} : () -> ()
  graph.return
}

// -----

graph.func @not_a_tensorflow_type() {
  // expected-error @+1 {{expected a TensorFlow tensor as output 0, found 'tensor<2xi7>'}}
  %y, %c = graph.node "Const"() {} : () -> tensor<2xi7>
  graph.return
}

// -----

// expected-error @+1 {{expected a TensorFlow tensor as argument 0, found 'index'}}
graph.func @argument_type(%a: index) {
  graph.return
}

// -----

graph.func @return_count(%a: tensor<i32>) -> tensor<i32> {
  // expected-error @+1 {{expected 1 outputs, found 0}}
  graph.return
}

// -----

graph.func @return_type(%a: tensor<i32>) -> tensor<f32> {
  // expected-error @+1 {{expected output 0 of type 'tensor<f32>', found 'tensor<i32>'}}
  graph.return %a : tensor<i32>
}

// -----

graph.func @bad_shape() {
  // expected-error @+1 {{expected a size or -1}}
  %c = graph.node "A"() {s = #graph.shape<[-2]>} : () -> ()
  graph.return
}

// -----

graph.func @strings_count() {
  // expected-error @+1 {{expected 1 or 3 strings, found 2}}
  %c = graph.node "A"() {s = #graph.strings<tensor<3x!graph.string>, ["a", "b"]>} : () -> ()
  graph.return
}
