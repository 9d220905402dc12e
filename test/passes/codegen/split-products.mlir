// nvptx-split-products: a batch of parts of the depth, whose sum has the epilogue; products that have enough tiles or steps too few stay.
// RUN: lathe-opt %s --nvptx-split-products | FileCheck %s --enable-var-scope

// CHECK-LABEL: @deep
func.func @deep(%x: tensor<2048x40xf16>, %y: tensor<2048x64xf16>, %bias: tensor<64xf16>) -> tensor<40x64xf16> {
  // CHECK: %[[X:.*]] = hlo.reshape %{{.*}} : (tensor<2048x40xf16>) -> tensor<8x256x40xf16>
  // CHECK: %[[Y:.*]] = hlo.reshape %{{.*}} : (tensor<2048x64xf16>) -> tensor<8x256x64xf16>
  // CHECK: %[[P:.*]] = kernel.dot(%[[X]], %[[Y]])
  // CHECK-SAME: lhs_dims = array<i64: 0, 2, 1>
  // CHECK-SAME: result_dims = array<i64: 0, 1, 2>
  // CHECK-SAME: rhs_dims = array<i64: 0, 1, 2>
  // CHECK-SAME: -> tensor<8x40x64xf32>
  // CHECK: kernel.reduce(%[[P]], %{{.*}}) : (tensor<8x40x64xf32>, tensor<64xf16>) -> tensor<40x64xf16>
  // CHECK: %[[S:.*]] = "hlo.reduce"({{.*}}) <{dimensions = array<i64: 0>}>
  // CHECK: hlo.convert %[[S]]
  %r = kernel.dot(%x, %y, %bias) {lhs_dims = array<i64: 1, 0>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
      : (tensor<2048x40xf16>, tensor<2048x64xf16>, tensor<64xf16>) -> tensor<40x64xf16> {
  ^bb0(%acc: tensor<40x64xf32>, %b: tensor<64xf16>):
    %0 = hlo.convert %acc : (tensor<40x64xf32>) -> tensor<40x64xf16>
    %1 = "hlo.broadcast_in_dim"(%b) {broadcast_dimensions = array<i64: 1>} : (tensor<64xf16>) -> tensor<40x64xf16>
    %2 = hlo.add %0, %1 : tensor<40x64xf16>
    kernel.yield %2 : tensor<40x64xf16>
  }
  return %r : tensor<40x64xf16>
}

// The batch keeps its place before the parts.
// CHECK-LABEL: @batch
func.func @batch(%x: tensor<3x32x1536xf32>, %y: tensor<3x20x1536xf32>) -> tensor<32x3x20xf32> {
  // CHECK: kernel.dot
  // CHECK-SAME: lhs_dims = array<i64: 0, 2, 1, 3>
  // CHECK-SAME: result_dims = array<i64: 2, 0, 1, 3>
  // CHECK-SAME: rhs_dims = array<i64: 0, 2, 3, 1>
  // CHECK-SAME: (tensor<3x32x6x256xf32>, tensor<3x20x6x256xf32>) -> tensor<6x32x3x20xf32>
  %r = kernel.dot(%x, %y) {lhs_dims = array<i64: 0, 1, 2>, rhs_dims = array<i64: 0, 2, 1>, result_dims = array<i64: 1, 0, 2>}
      : (tensor<3x32x1536xf32>, tensor<3x20x1536xf32>) -> tensor<32x3x20xf32> {
  ^bb0(%acc: tensor<32x3x20xf32>):
    kernel.yield %acc : tensor<32x3x20xf32>
  }
  return %r : tensor<32x3x20xf32>
}

// CHECK-LABEL: @stays
// CHECK-COUNT-3: kernel.dot
// CHECK-NOT: kernel.reduce
func.func @stays(%x: tensor<40x500xf32>, %y: tensor<500x64xf32>, %u: tensor<640x4096xf32>, %v: tensor<4096x640xf32>,
                 %p: tensor<40x2053xf32>, %q: tensor<2053x64xf32>) -> (tensor<40x64xf32>, tensor<640x640xf32>, tensor<40x64xf32>) {
  %shallow = kernel.dot(%x, %y) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
      : (tensor<40x500xf32>, tensor<500x64xf32>) -> tensor<40x64xf32> {
  ^bb0(%acc: tensor<40x64xf32>):
    kernel.yield %acc : tensor<40x64xf32>
  }
  %wide = kernel.dot(%u, %v) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
      : (tensor<640x4096xf32>, tensor<4096x640xf32>) -> tensor<640x640xf32> {
  ^bb0(%acc: tensor<640x640xf32>):
    kernel.yield %acc : tensor<640x640xf32>
  }
  %prime = kernel.dot(%p, %q) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>}
      : (tensor<40x2053xf32>, tensor<2053x64xf32>) -> tensor<40x64xf32> {
  ^bb0(%acc: tensor<40x64xf32>):
    kernel.yield %acc : tensor<40x64xf32>
  }
  return %shallow, %wide, %prime : tensor<40x64xf32>, tensor<640x640xf32>, tensor<40x64xf32>
}

// A convolution's parts are groups, whose channels of the filter lie behind each other.
// CHECK-LABEL: @conv
func.func @conv(%x: tensor<1x4x4x512xf32>, %bias: tensor<8xf32>) -> tensor<1x4x4x8xf32> {
  // CHECK: %[[P:.*]] = kernel.conv(%{{.*}}, %{{.*}}) {{.*}}groups = [[PARTS:[0-9]+]] : i64
  // CHECK-SAME: (tensor<1x4x4x512xf32>, tensor<3x1x[[CHANNELS:[0-9]+]]x[[COLUMNS:[0-9]+]]xf32>) -> tensor<1x4x4x[[COLUMNS]]xf32>
  // CHECK: %[[R:.*]] = hlo.reshape %[[P]] : (tensor<1x4x4x[[COLUMNS]]xf32>) -> tensor<1x4x4x[[PARTS]]x8xf32>
  // CHECK: kernel.reduce(%[[R]], %{{.*}}) : (tensor<1x4x4x[[PARTS]]x8xf32>, tensor<8xf32>) -> tensor<1x4x4x8xf32>
  // CHECK: %[[S:.*]] = "hlo.reduce"({{.*}}) <{dimensions = array<i64: 3>}>
  // CHECK: hlo.add %[[S]]
  %w = hlo.constant dense<0.5> : tensor<3x1x512x8xf32>
  %r = kernel.conv(%x, %w, %bias) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>}
      : (tensor<1x4x4x512xf32>, tensor<3x1x512x8xf32>, tensor<8xf32>) -> tensor<1x4x4x8xf32> {
  ^bb0(%acc: tensor<1x4x4x8xf32>, %b: tensor<8xf32>):
    %1 = "hlo.broadcast_in_dim"(%b) {broadcast_dimensions = array<i64: 3>} : (tensor<8xf32>) -> tensor<1x4x4x8xf32>
    %2 = hlo.add %acc, %1 : tensor<1x4x4x8xf32>
    kernel.yield %2 : tensor<1x4x4x8xf32>
  }
  return %r : tensor<1x4x4x8xf32>
}

// A filter that comes with the call would have to be moved each time.
// CHECK-LABEL: @conv_any_filter
func.func @conv_any_filter(%x: tensor<1x4x4x512xf32>, %w: tensor<3x1x512x8xf32>) -> tensor<1x4x4x8xf32> {
  // CHECK: kernel.conv
  // CHECK-NOT: kernel.reduce
  %r = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>}
      : (tensor<1x4x4x512xf32>, tensor<3x1x512x8xf32>) -> tensor<1x4x4x8xf32> {
  ^bb0(%acc: tensor<1x4x4x8xf32>):
    kernel.yield %acc : tensor<1x4x4x8xf32>
  }
  return %r : tensor<1x4x4x8xf32>
}
