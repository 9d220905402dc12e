// RUN: lathe-opt %s --split-input-file --graph-to-hlo --mlir-print-local-scope | FileCheck %s

// SAME padding with stride 2: more on the high side.
// CHECK-LABEL: func.func @conv_same
// CHECK: "hlo.convolution"
// CHECK-SAME: padding = dense<{{\[\[}}0, 1], [0, 1]]> : tensor<2x2xi64>
// CHECK-SAME: window_strides = array<i64: 2, 2>
// CHECK-SAME: -> tensor<?x4x4x5xf32, affine_map<()[s0] -> (s0, 4, 4, 5)>>
graph.func @conv_same(%x: tensor<?x8x8x3xf32> {graph.name = "x"}, %f: tensor<3x3x3x5xf32> {graph.name = "f"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "Conv2D"(%x, %f) {padding = "SAME", strides = [1, 2, 2, 1], dilations = [1, 1, 1, 1], data_format = "NHWC", explicit_paddings = []} : (tensor<?x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Depthwise: one group a channel.
// CHECK-LABEL: func.func @depthwise
// CHECK: hlo.reshape %{{.*}} : (tensor<3x3x4x2xf32>) -> tensor<3x3x1x8xf32>
// CHECK: "hlo.convolution"
// CHECK-SAME: feature_group_count = 4
graph.func @depthwise(%x: tensor<1x8x8x4xf32> {graph.name = "x"}, %f: tensor<3x3x4x2xf32> {graph.name = "f"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "DepthwiseConv2dNative"(%x, %f) {padding = "VALID", strides = [1, 1, 1, 1], dilations = [1, 1, 1, 1], data_format = "NHWC", explicit_paddings = []} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Averages count what lies inside.
// CHECK-LABEL: func.func @avg_pool_padded
// CHECK: "hlo.reduce_window"
// CHECK: "hlo.reduce_window"
// CHECK: hlo.divide
graph.func @avg_pool_padded(%x: tensor<2x5x5x3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "AvgPool"(%x) {padding = "SAME", strides = [1, 2, 2, 1], ksize = [1, 2, 2, 1], data_format = "NHWC"} : (tensor<2x5x5x3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Softmax subtracts the largest first.
// CHECK-LABEL: func.func @softmax
// CHECK: hlo.maximum
// CHECK: hlo.subtract
// CHECK: hlo.exponential
// CHECK: hlo.divide
graph.func @softmax(%x: tensor<?x10xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "Softmax"(%x) {} : (tensor<?x10xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// A product with an unknown number of rows; a mean over it divides by the size.
// CHECK-LABEL: func.func @matmul_mean
// CHECK: "hlo.dot_general"
// CHECK-SAME: lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]
// CHECK: hlo.size affine_map<()[s0] -> (s0)>
// CHECK: hlo.divide
graph.func @matmul_mean(%x: tensor<?x8xf32> {graph.name = "x"}, %w: tensor<4x8xf32> {graph.name = "w"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %p, %pc = graph.node "MatMul"(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<*xf32>
  %a, %ac = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %y, %yc = graph.node "Mean"(%p, %a) {keep_dims = false} : (tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// An assertion on sizes that holds leaves nothing.
// CHECK-LABEL: func.func @assert_true
// CHECK-NOT: hlo.check
// CHECK: return
graph.func @assert_true(%x: tensor<3xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %s, %sc = graph.node "Size"(%x) {} : (tensor<3xf32>) -> tensor<i32>
  %n, %nc = graph.node "Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
  %e, %ec = graph.node "Equal"(%s, %n) {} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %ac = graph.node "Assert"(%e, %x) {} : (tensor<i1>, tensor<3xf32>) -> ()
  %y, %yc = graph.node "Identity"(%x) [%ac] {} : (tensor<3xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// The first element of a window stands until one is more than it; -1 marks that there is none yet.
// CHECK-LABEL: func.func @max_pool_argmax
// CHECK: hlo.constant dense<-1> : tensor<i64>
// CHECK: "hlo.reduce_window"
// CHECK: %[[MORE:.*]] = hlo.compare GT
// CHECK: %[[NONE:.*]] = hlo.compare LT
// CHECK: hlo.or %[[MORE]], %[[NONE]]
graph.func @max_pool_argmax(%x: tensor<1x4x4x2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xi64> {graph.name = "i"}) {
  %y, %i, %yc = graph.node "MaxPoolWithArgmax"(%x) {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID", Targmax = i64} : (tensor<1x4x4x2xf32>) -> (tensor<*xf32>, tensor<*xi64>)
  graph.return %y, %i : tensor<*xf32>, tensor<*xi64>
}

// -----

// CHECK-LABEL: func.func @max_pool_grad
// CHECK: "hlo.select_and_scatter"
// CHECK: ^bb0(%[[BEST:.*]]: tensor<f32>, %[[NEXT:.*]]: tensor<f32>):
// CHECK: %[[MORE:.*]] = hlo.compare GT, %[[NEXT]], %[[BEST]]
// CHECK: hlo.not %[[MORE]]
graph.func @max_pool_grad(%x: tensor<1x4x4x2xf32> {graph.name = "x"}, %g: tensor<1x2x2x2xf32> {graph.name = "g"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "MaxPoolGrad"(%x, %g, %g) {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"} : (tensor<1x4x4x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Max pooling starts at the lowest finite number and takes what is greater: never a NaN.
// CHECK-LABEL: func.func @max_pool
// CHECK: hlo.constant dense<-3.40282347E+38>
// CHECK: "hlo.reduce_window"
// CHECK: ^bb0(%[[BEST:.*]]: tensor<f32>, %[[NEXT:.*]]: tensor<f32>):
// CHECK: %[[MORE:.*]] = hlo.compare GT, %[[NEXT]], %[[BEST]]
// CHECK: hlo.select %[[MORE]], %[[NEXT]], %[[BEST]]
graph.func @max_pool(%x: tensor<1x4x4x2xf32> {graph.name = "x"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %yc = graph.node "MaxPool"(%x) {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"} : (tensor<1x4x4x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// In volumes every element that equals its window's maximum gets the gradient: a comparison for each of two places.
// CHECK-LABEL: func.func @max_pool_3d_grad
// CHECK-NOT: hlo.select_and_scatter
// CHECK: hlo.compare EQ
// CHECK: hlo.compare EQ
// CHECK-NOT: hlo.compare
graph.func @max_pool_3d_grad(%x: tensor<1x1x1x4x2xf32> {graph.name = "x"}, %m: tensor<1x1x1x2x2xf32> {graph.name = "m"}, %g: tensor<1x1x1x2x2xf32> {graph.name = "g"}) -> (tensor<*xf32> {graph.name = "p"}) {
  %p, %pc = graph.node "MaxPool3DGrad"(%x, %m, %g) {ksize = [1, 1, 1, 2, 1], strides = [1, 1, 1, 2, 1], padding = "VALID"} : (tensor<1x1x1x4x2xf32>, tensor<1x1x1x2x2xf32>, tensor<1x1x1x2x2xf32>) -> tensor<*xf32>
  graph.return %p : tensor<*xf32>
}

// -----

// Without channels there are no groups to speak of.
// CHECK-LABEL: func.func @depthwise_without_channels
// CHECK: "hlo.convolution"
// CHECK-SAME: feature_group_count = 1
// CHECK-SAME: -> tensor<1x8x8x0xf32>
graph.func @depthwise_without_channels(%x: tensor<1x8x8x0xf32> {graph.name = "x"}, %f: tensor<3x3x0x2xf32> {graph.name = "f"}) -> (tensor<*xf32> {graph.name = "y"}) {
  %y, %c = graph.node "DepthwiseConv2dNative"(%x, %f) {padding = "SAME", strides = [1, 1, 1, 1], dilations = [1, 1, 1, 1], data_format = "NHWC", explicit_paddings = []} : (tensor<1x8x8x0xf32>, tensor<3x3x0x2xf32>) -> tensor<*xf32>
  graph.return %y : tensor<*xf32>
}

// -----

// Windows of volumes that are further apart than wide are centred; those of images start at the first element.
// CHECK-LABEL: func.func @far_windows
// CHECK: "hlo.convolution"
// CHECK-SAME: padding = dense<-1> : tensor<3x2xi64>
// CHECK: "hlo.convolution"
// CHECK-SAME: padding = dense<0> : tensor<2x2xi64>
graph.func @far_windows(%x: tensor<1x9x9x9x1xf32> {graph.name = "x"}, %f: tensor<1x1x1x1x1xf32> {graph.name = "f"}, %i: tensor<1x9x9x1xf32> {graph.name = "i"}, %j: tensor<1x1x1x1xf32> {graph.name = "j"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xf32> {graph.name = "z"}) {
  %y, %c = graph.node "Conv3D"(%x, %f) {padding = "SAME", strides = [1, 3, 3, 3, 1], dilations = [1, 1, 1, 1, 1], data_format = "NDHWC"} : (tensor<1x9x9x9x1xf32>, tensor<1x1x1x1x1xf32>) -> tensor<*xf32>
  %z, %d = graph.node "Conv2D"(%i, %j) {padding = "SAME", strides = [1, 3, 3, 1], dilations = [1, 1, 1, 1], data_format = "NHWC", explicit_paddings = []} : (tensor<1x9x9x1xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
  graph.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// The sixth result is a scalar.
// CHECK-LABEL: func.func @batch_norm_results
// CHECK-SAME: -> (tensor<1x2x2x3xf32> {hlo.name = "y"}, tensor<f32> {hlo.name = "r"})
graph.func @batch_norm_results(%x: tensor<1x2x2x3xf32> {graph.name = "x"}, %s: tensor<3xf32> {graph.name = "s"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xf32> {graph.name = "r"}) {
  %y:6, %c = graph.node "FusedBatchNormV3"(%x, %s, %s, %s, %s) {is_training = false, epsilon = 1.0e-3 : f32, data_format = "NHWC", exponential_avg_factor = 1.0 : f32} : (tensor<1x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0, %y#5 : tensor<*xf32>, tensor<*xf32>
}

// -----

// A running sum is a window over all before; of run-time size one that is longer than any.
// CHECK-LABEL: func.func @cumsum
// CHECK: "hlo.reduce_window"
// CHECK-SAME: padding = dense<{{\[\[}}0, 0], [4, 0]]> : tensor<2x2xi64>
// CHECK-SAME: window_dimensions = array<i64: 1, 5>
// CHECK: "hlo.reduce_window"
// CHECK-SAME: padding = dense<{{\[\[}}-1, 1099511627776], [0, 0]]> : tensor<2x2xi64>
// CHECK-SAME: window_dimensions = array<i64: 1099511627776, 1>
// CHECK: hlo.multiply
// CHECK-SAME: tensor<f32>
// CHECK: -> tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>
graph.func @cumsum(%x: tensor<?x5xbf16> {graph.name = "x"}) -> (tensor<*xbf16> {graph.name = "y"}) {
  %a, %ac = graph.node "Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %b, %bc = graph.node "Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %s, %sc = graph.node "Cumsum"(%x, %a) {exclusive = false, reverse = false} : (tensor<?x5xbf16>, tensor<i32>) -> tensor<*xbf16>
  %y, %yc = graph.node "Cumprod"(%s, %b) {exclusive = true, reverse = true} : (tensor<*xbf16>, tensor<i32>) -> tensor<*xbf16>
  graph.return %y : tensor<*xbf16>
}
