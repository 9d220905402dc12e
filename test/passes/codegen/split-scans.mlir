// nvptx-split-scans: parts that sizes alone choose, what comes before them, both together; what stays as it is.
// RUN: lathe-opt %s --nvptx-split-scans | FileCheck %s --enable-var-scope

// CHECK-LABEL: @line
func.func @line(%x: tensor<8192xf32>) -> tensor<8192xf32> {
  // CHECK: %[[X:.*]] = hlo.reshape %arg0 : (tensor<8192xf32>) -> tensor<8x1024xf32>
  // CHECK: %[[IN:.*]] = "hlo.reduce_window"(%[[X]], %{{.*}}) <{padding = dense<{{\[}}[0, 0], [1023, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 1024>}>
  // CHECK: %[[LAST:.*]] = kernel.loop(%[[IN]])
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 8, 1024>, start_indices = array<i64: 0, 1023>
  // CHECK: %[[TOTALS:.*]] = hlo.reshape %[[LAST]] : (tensor<8x1xf32>) -> tensor<8xf32>
  // CHECK: %[[BEFORE:.*]] = "hlo.reduce_window"(%[[TOTALS]], %{{.*}}) <{padding = dense<{{\[}}[8, -1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}>
  // CHECK: kernel.loop(%[[BEFORE]], %[[IN]])
  // CHECK: %[[SPREAD:.*]] = hlo.broadcast_in_dim %{{.*}}, dims = [0]
  // CHECK: hlo.add %[[SPREAD]], %{{.*}} : tensor<8x1024xf32>
  // CHECK: hlo.reshape {{.*}} -> tensor<8192xf32>
  %0 = hlo.constant dense<0.0> : tensor<f32>
  %r = "hlo.reduce_window"(%x, %0) <{padding = dense<[[8191, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8192>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<8192xf32>, tensor<f32>) -> tensor<8192xf32>
  return %r : tensor<8192xf32>
}

// From the end on, without the element itself, and of a length that does not divide: what is padded lies in front, and in a part each has
// what the one behind it had.
// CHECK-LABEL: @reverse
func.func @reverse(%x: tensor<3x4001x2xi32>) -> tensor<3x4001x2xi32> {
  // CHECK: hlo.pad %{{.*}}, low = [0, 25, 0], high = [0, 0, 0]
  // CHECK: -> tensor<3x122x33x2xi32>
  // CHECK: "hlo.reduce_window"({{.*}}) <{padding = dense<{{\[}}[0, 0], [0, 0], [0, 32], [0, 0]]>
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 3, 122, 1, 2>, start_indices = array<i64: 0, 0, 0, 0>
  // CHECK: "hlo.reduce_window"({{.*}}) <{padding = dense<{{\[}}[0, 0], [-1, 122], [0, 0]]>
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 3, 122, 33, 2>, start_indices = array<i64: 0, 0, 1, 0>
  // CHECK: hlo.pad {{.*}} high = [0, 0, 1, 0]
  // CHECK: hlo.multiply
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 3, 4026, 2>, start_indices = array<i64: 0, 25, 0>
  %0 = hlo.constant dense<1> : tensor<i32>
  %r = "hlo.reduce_window"(%x, %0) <{padding = dense<[[0, 0], [-1, 4001], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 4001, 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = hlo.multiply %a, %b : tensor<i32>
    hlo.return %s : tensor<i32>
  }) : (tensor<3x4001x2xi32>, tensor<i32>) -> tensor<3x4001x2xi32>
  return %r : tensor<3x4001x2xi32>
}

// A start that would count several times, enough lines, short ones, and windows that end.
// CHECK-LABEL: @left
// CHECK-COUNT-4: hlo.reduce_window
// CHECK-NOT: {{hlo.reduce_window|kernel.loop|hlo.reshape}}
func.func @left(%x: tensor<8192xf32>, %y: tensor<96x8192xf32>, %z: tensor<4000xf32>) -> (tensor<8192xf32>, tensor<96x8192xf32>, tensor<4000xf32>, tensor<8191xf32>) {
  %0 = hlo.constant dense<0.0> : tensor<f32>
  %3 = hlo.constant dense<3.0> : tensor<f32>
  %a = "hlo.reduce_window"(%x, %3) <{padding = dense<[[8191, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8192>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = hlo.add %p, %q : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<8192xf32>, tensor<f32>) -> tensor<8192xf32>
  %b = "hlo.reduce_window"(%y, %0) <{padding = dense<[[0, 0], [8191, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 8192>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = hlo.add %p, %q : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<96x8192xf32>, tensor<f32>) -> tensor<96x8192xf32>
  %c = "hlo.reduce_window"(%z, %0) <{padding = dense<[[3999, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4000>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = hlo.add %p, %q : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<4000xf32>, tensor<f32>) -> tensor<4000xf32>
  %d = "hlo.reduce_window"(%x, %0) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = hlo.add %p, %q : tensor<f32>
    hlo.return %s : tensor<f32>
  }) : (tensor<8192xf32>, tensor<f32>) -> tensor<8191xf32>
  return %a, %b, %c, %d : tensor<8192xf32>, tensor<96x8192xf32>, tensor<4000xf32>, tensor<8191xf32>
}
