// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// Run-time indices are checked as TensorFlow's CPU kernel does, then gathered with a batch dimension.
// CHECK-LABEL: func.func @gather_batch
// CHECK: hlo.check %{{.*}}, "an index is out of range"
// CHECK: "hlo.gather"
// CHECK-SAME: offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2
// CHECK-SAME: -> tensor<2x5x4xf32>
graph.func @gather_batch(%x: tensor<2x3x4xf32> {graph.name = "x"}, %i: tensor<2x5xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %a, %ac = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "GatherV2"(%x, %i, %a) {batch_dims = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x5xi32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Constant indices in range need no check.
// CHECK-LABEL: func.func @gather_constant
// CHECK-NOT: hlo.check
// CHECK: "hlo.gather"
graph.func @gather_constant(%x: tensor<3x4xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %i, %ic = graph.node "Const"() {value = dense<[2, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "GatherV2"(%x, %i, %a) {batch_dims = 0 : i64} : (tensor<3x4xf32>, tensor<2xi32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Unsorted segments: ids of -1 are skipped by the scatter, ids too large are an error.
// CHECK-LABEL: func.func @unsorted_segment_sum
// CHECK: hlo.check %{{.*}}, "a segment id is out of range"
// CHECK: "hlo.scatter"
// CHECK: hlo.add
graph.func @unsorted_segment_sum(%x: tensor<5x4xf32> {graph.name = "x"}, %i: tensor<5xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %n, %nc = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "UnsortedSegmentSum"(%x, %i, %n) {} : (tensor<5x4xf32>, tensor<5xi32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The number of true elements is a symbol that the op writes.
// CHECK: hlo.symbols = [{bound = 6 : i64, kind = "data"
// CHECK-LABEL: func.func @where
// CHECK: hlo.where %{{.*}} {symbol = 0 : i64}
// CHECK-SAME: tensor<?x2xi64, affine_map<()[s0] -> (s0, 2)>>
graph.func @where(%x: tensor<2x3xi1> {graph.name = "x"}) -> (tensor<*xi64> {graph.name = "y"}) {
  %y, %yc = graph.node "Where"(%x) {} : (tensor<2x3xi1>) -> tensor<*xi64>
  graph.return %y : tensor<*xi64>
}

// -----

// Where bad indices are ignored, their rows are zero.
// CHECK-LABEL: func.func @gather_nd_ignore
// CHECK-NOT: hlo.check
// CHECK: "hlo.gather"
// CHECK: hlo.select
graph.func @gather_nd_ignore(%x: tensor<5xf32> {graph.name = "x"}, %i: tensor<3x1xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "GatherNd"(%x, %i) {bad_indices_policy = "IGNORE"} : (tensor<5xf32>, tensor<3x1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// TensorFlow looks at no index where none copies anything: slices without elements, or none to take slices of.
// CHECK-LABEL: func.func @gather_nothing
// CHECK-NOT: hlo.check
// CHECK: return
graph.func @gather_nothing(%x: tensor<7x0xf32> {graph.name = "x"}, %y: tensor<2x0x7xf32> {graph.name = "y"}, %i: tensor<1xi32> {graph.name = "i"}, %j: tensor<2x1xi32> {graph.name = "j"}) -> (tensor<*xf32> {graph.name = "r"}, tensor<*xf32> {graph.name = "s"}) {
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %b, %bc = graph.node "Const"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %r, %rc = graph.node "GatherV2"(%x, %i, %a) {batch_dims = 0 : i64} : (tensor<7x0xf32>, tensor<1xi32>, tensor<i32>) -> tensor<*xf32>
  %s, %sc = graph.node "GatherV2"(%y, %j, %b) {batch_dims = 1 : i64} : (tensor<2x0x7xf32>, tensor<2x1xi32>, tensor<i32>) -> tensor<*xf32>
  graph.return %r, %s : tensor<*xf32>, tensor<*xf32>
}

// -----

// No row at all is another matter, and so are slices whose size only the run knows.
// CHECK-LABEL: func.func @gather_no_rows
// CHECK: hlo.check %{{.*}}, "an index is out of range"
// CHECK: hlo.or
// CHECK: hlo.check %{{.*}}, "an index is out of range"
graph.func @gather_no_rows(%x: tensor<0x3xf32> {graph.name = "x"}, %y: tensor<7x?xf32> {graph.name = "y"}, %i: tensor<1xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "r"}, tensor<*xf32> {graph.name = "s"}) {
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %r, %rc = graph.node "GatherV2"(%x, %i, %a) {batch_dims = 0 : i64} : (tensor<0x3xf32>, tensor<1xi32>, tensor<i32>) -> tensor<*xf32>
  %s, %sc = graph.node "GatherV2"(%y, %i, %a) {batch_dims = 0 : i64} : (tensor<7x?xf32>, tensor<1xi32>, tensor<i32>) -> tensor<*xf32>
  graph.return %r, %s : tensor<*xf32>, tensor<*xf32>
}

// -----

// GatherNd takes not even an empty slice from a tensor without elements.
// CHECK-LABEL: func.func @gather_nd_nothing
// CHECK: hlo.check %{{.*}}, "more than 0 entries are requested, but params is empty"
graph.func @gather_nd_nothing(%x: tensor<7x0xf32> {graph.name = "x"}, %i: tensor<1x1xi32> {graph.name = "i"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "GatherNd"(%x, %i) {batch_dims = 0 : i64} : (tensor<7x0xf32>, tensor<1x1xi32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}
