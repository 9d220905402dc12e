// A batch done in groups gives what it gives at once.

// Convolutions, windows, transposes; a product on several rows an image.
func.func @windows(%x: tensor<6x12x12x4xf32>, %w: tensor<3x3x4x8xf32>, %bias: tensor<8xf32>, %m: tensor<8x5xf32>) -> tensor<864x5xf32> {
  %zero = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %c = "hlo.convolution"(%x, %w) {padding = dense<1> : tensor<2x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<6x12x12x4xf32>, tensor<3x3x4x8xf32>) -> tensor<6x12x12x8xf32>
  %b = hlo.broadcast_in_dim %bias, dims = [3] : (tensor<8xf32>) -> tensor<6x12x12x8xf32>
  %s = hlo.add %c, %b : tensor<6x12x12x8xf32>
  %p = "hlo.reduce_window"(%s, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.maximum %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [1, 0], [0, 0]]> : tensor<4x2xi64>} : (tensor<6x12x12x8xf32>, tensor<f32>) -> tensor<6x12x12x8xf32>
  %t = hlo.transpose %p, dims = [0, 2, 1, 3] : (tensor<6x12x12x8xf32>) -> tensor<6x12x12x8xf32>
  %flat = hlo.reshape %t : (tensor<6x12x12x8xf32>) -> tensor<864x8xf32>
  %d = "hlo.dot_general"(%flat, %m) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<864x8xf32>, tensor<8x5xf32>) -> tensor<864x5xf32>
  return %d : tensor<864x5xf32>
}

// Products of an image with itself, reductions, slices, concatenations, constants that repeat; then all images at once.
func.func @products(%x: tensor<6x24x40xf32>) -> (tensor<6x80xf32>, tensor<80xf32>) {
  %zero = "hlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = "hlo.constant"() {value = dense<-3.0> : tensor<f32>} : () -> tensor<f32>
  %high = "hlo.constant"() {value = dense<5.0> : tensor<f32>} : () -> tensor<f32>
  %rows = "hlo.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<6x2xf32>} : () -> tensor<6x2xf32>
  %own = "hlo.dot_general"(%x, %x) {dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : (tensor<6x24x40xf32>, tensor<6x24x40xf32>) -> tensor<6x40x40xf32>
  %in = "hlo.clamp"(%low, %own, %high) : (tensor<f32>, tensor<6x40x40xf32>, tensor<f32>) -> tensor<6x40x40xf32>
  %twice = "hlo.dot_general"(%in, %own) {dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<6x40x40xf32>, tensor<6x40x40xf32>) -> tensor<6x40x40xf32>
  %sum = "hlo.reduce"(%twice, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.minimum %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {dimensions = array<i64: 2>} : (tensor<6x40x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %head = "hlo.slice"(%sum) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 6, 3>, strides = array<i64: 1, 1>} : (tensor<6x40xf32>) -> tensor<6x2xf32>
  %scaled = hlo.multiply %head, %rows : tensor<6x2xf32>
  %tail = "hlo.slice"(%sum) {start_indices = array<i64: 0, 2>, limit_indices = array<i64: 6, 40>, strides = array<i64: 1, 1>} : (tensor<6x40xf32>) -> tensor<6x38xf32>
  %joined = "hlo.concatenate"(%scaled, %tail, %sum) {dimension = 1 : i64} : (tensor<6x2xf32>, tensor<6x38xf32>, tensor<6x40xf32>) -> tensor<6x80xf32>
  %back = "hlo.dot_general"(%joined, %joined) {dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]>} : (tensor<6x80xf32>, tensor<6x80xf32>) -> tensor<6x80x80xf32>
  %diagonal = "hlo.reduce"(%back, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.maximum %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {dimensions = array<i64: 2>} : (tensor<6x80x80xf32>, tensor<f32>) -> tensor<6x80xf32>
  %y = hlo.minimum %diagonal, %joined : tensor<6x80xf32>
  %over = "hlo.reduce"(%joined, %zero) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %q = hlo.maximum %l, %r : tensor<f32>
    hlo.return %q : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<6x80xf32>, tensor<f32>) -> tensor<80xf32>
  return %y, %over : tensor<6x80xf32>, tensor<80xf32>
}
