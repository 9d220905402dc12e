// RUN: lathe-opt %s --hlo-place-transposes --hlo-simplify-algebra --cse --split-input-file | FileCheck %s

// A residual network as converters from channels-first frameworks write it: the second user of the activation is the
// next add. Only the argument and the result are transposed.
// CHECK-LABEL: @residual
// CHECK-NEXT: %[[ZERO:.*]] = hlo.constant
// CHECK: hlo.transpose %arg0, dims = [0, 2, 3, 1]
// CHECK-NOT: hlo.transpose
// CHECK: hlo.pad {{.*}} low = [0, 1, 1, 0], high = [0, 1, 1, 0]
// CHECK-NOT: hlo.transpose
// CHECK: %[[R:.*]] = hlo.add {{.*}} : tensor<1x8x8x4xf32>
// CHECK-NEXT: %[[T:.*]] = hlo.transpose %[[R]], dims = [0, 3, 1, 2]
// CHECK-NEXT: return %[[T]]
func.func @residual(%x: tensor<1x4x8x8xf32>, %w: tensor<3x3x4x4xf32>, %s: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %zeros = hlo.constant dense<0.0> : tensor<1x4x8x8xf32>
  %p = hlo.pad %x, %zero, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x10x10xf32>
  %t = hlo.transpose %p, dims = [0, 2, 3, 1] : (tensor<1x4x10x10xf32>) -> tensor<1x10x10x4xf32>
  %c = "hlo.convolution"(%t, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x10x10x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x8x8x4xf32>
  %u = hlo.transpose %c, dims = [0, 3, 1, 2] : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
  %sb = hlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %m = hlo.multiply %u, %sb : tensor<1x4x8x8xf32>
  %r = hlo.maximum %m, %zeros : tensor<1x4x8x8xf32>
  %p1 = hlo.pad %r, %zero, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x10x10xf32>
  %t1 = hlo.transpose %p1, dims = [0, 2, 3, 1] : (tensor<1x4x10x10xf32>) -> tensor<1x10x10x4xf32>
  %c1 = "hlo.convolution"(%t1, %w) {dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x10x10x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x8x8x4xf32>
  %u1 = hlo.transpose %c1, dims = [0, 3, 1, 2] : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
  %a = hlo.add %u1, %r : tensor<1x4x8x8xf32>
  return %a : tensor<1x4x8x8xf32>
}

// -----

// Pads, slices with strides, reversals and windows take their lists along, concatenations their dimension.
// CHECK-LABEL: @lists
// CHECK-NOT: hlo.transpose
// CHECK: hlo.pad %arg0, {{.*}} low = [0, 3, 4, 2], high = [0, 7, 8, 6], interior = [0, 0, 1, 0]
// CHECK: hlo.slice
// CHECK-SAME: limit_indices = array<i64: 1, 18, 19, 11>, start_indices = array<i64: 0, 0, 1, 0>, strides = array<i64: 1, 2, 1, 1>
// CHECK: hlo.reverse {{.*}}, dims = [2, 3]
// CHECK: hlo.concatenate {{.*}} dim = 3
// CHECK: "hlo.reduce_window"
// CHECK-SAME{LITERAL}: padding = dense<[[0, 0], [1, 1], [0, 1], [0, 0]]>
// CHECK-SAME: window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 1, 1>
// CHECK-NOT: hlo.transpose
// CHECK: return
func.func @lists(%x: tensor<1x8x4x3xf32>) -> tensor<1x5x18x22xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x8x4x3xf32>) -> tensor<1x3x8x4xf32>
  %p = hlo.pad %t, %zero, low = [0, 2, 3, 4], high = [0, 6, 7, 8], interior = [0, 0, 0, 1] : (tensor<1x3x8x4xf32>, tensor<f32>) -> tensor<1x11x18x19xf32>
  %s = "hlo.slice"(%p) {start_indices = array<i64: 0, 0, 0, 1>, limit_indices = array<i64: 1, 11, 18, 19>, strides = array<i64: 1, 1, 2, 1>} : (tensor<1x11x18x19xf32>) -> tensor<1x11x9x18xf32>
  %r = hlo.reverse %s, dims = [1, 3] : (tensor<1x11x9x18xf32>) -> tensor<1x11x9x18xf32>
  %c = hlo.concatenate %r, %s dim = 1 : (tensor<1x11x9x18xf32>, tensor<1x11x9x18xf32>) -> tensor<1x22x9x18xf32>
  %w = "hlo.reduce_window"(%c, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = hlo.maximum %a, %b : tensor<f32>
    hlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [0, 1]]> : tensor<4x2xi64>} : (tensor<1x22x9x18xf32>, tensor<f32>) -> tensor<1x22x5x18xf32>
  %u = hlo.transpose %w, dims = [0, 2, 3, 1] : (tensor<1x22x5x18xf32>) -> tensor<1x5x18x22xf32>
  return %u : tensor<1x5x18x22xf32>
}

// -----

// A mixture of operands: a scalar bound, a splat, a constant, an iota, a broadcast along a channel, a comparison's result.
// CHECK-LABEL: @operands
// CHECK-NOT: hlo.transpose %arg
// CHECK: hlo.iota dim = 3 : tensor<1x5x6x4xf32>
// CHECK: hlo.select {{.*}} -> tensor<1x5x6x4xf32>
// CHECK-NOT: hlo.transpose %{{[0-9]+}}
// CHECK: return
func.func @operands(%x: tensor<1x5x6x4xf32>, %y: tensor<1x5x6x4xf32>, %s: tensor<4xf32>, %low: tensor<f32>) -> tensor<1x5x6x4xf32> {
  %half = hlo.constant dense<0.5> : tensor<1x4x5x6xf32>
  %high = hlo.constant dense<6.0> : tensor<f32>
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %v = hlo.transpose %y, dims = [0, 3, 1, 2] : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %sb = hlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<1x4x5x6xf32>
  %i = hlo.iota dim = 1 : tensor<1x4x5x6xf32>
  %a = hlo.multiply %t, %sb : tensor<1x4x5x6xf32>
  %b = hlo.add %a, %i : tensor<1x4x5x6xf32>
  %c = hlo.clamp %low, %b, %high : (tensor<f32>, tensor<1x4x5x6xf32>, tensor<f32>) -> tensor<1x4x5x6xf32>
  %d = hlo.compare GT, %c, %half : (tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xi1>
  %e = hlo.select %d, %c, %v : (tensor<1x4x5x6xi1>, tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xf32>
  %u = hlo.transpose %e, dims = [0, 2, 3, 1] : (tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32>
  return %u : tensor<1x5x6x4xf32>
}

// -----

// A concatenation with a third user, whose parts come from two convolutions in another layout and an argument: the
// argument, the smallest, is transposed.
// CHECK-LABEL: @concat
// CHECK: %[[T:.*]] = hlo.transpose %arg2, dims = [0, 2, 3, 1]
// CHECK-NEXT: %[[C:.*]] = hlo.concatenate %arg0, %arg1, %[[T]] dim = 3
// CHECK: %[[N:.*]] = hlo.negate %[[C]]
// CHECK: return %[[C]], %[[N]]
func.func @concat(%x: tensor<1x8x8x16xf32>, %y: tensor<1x8x8x16xf32>, %z: tensor<1x4x8x8xf32>) -> (tensor<1x8x8x36xf32>, tensor<1x8x8x36xf32>) {
  %a = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x8x8x16xf32>) -> tensor<1x16x8x8xf32>
  %b = hlo.transpose %y, dims = [0, 3, 1, 2] : (tensor<1x8x8x16xf32>) -> tensor<1x16x8x8xf32>
  %c = hlo.concatenate %a, %b, %z dim = 1 : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x36x8x8xf32>
  %n = hlo.negate %c : tensor<1x36x8x8xf32>
  %u = hlo.transpose %c, dims = [0, 2, 3, 1] : (tensor<1x36x8x8xf32>) -> tensor<1x8x8x36xf32>
  %v = hlo.transpose %n, dims = [0, 2, 3, 1] : (tensor<1x36x8x8xf32>) -> tensor<1x8x8x36xf32>
  return %u, %v : tensor<1x8x8x36xf32>, tensor<1x8x8x36xf32>
}

// -----

// Reductions: over channels, what is left has one order in both layouts; over rows the small result is transposed.
// CHECK-LABEL: @reduce
// CHECK-NOT: hlo.transpose
// CHECK: %[[C:.*]] = "hlo.reduce"(%[[H:.*]], %{{.*}}) <{dimensions = array<i64: 3>}>
// CHECK: %[[R:.*]] = "hlo.reduce"(%[[H]], %{{.*}}) <{dimensions = array<i64: 1>}>
// CHECK: %[[T:.*]] = hlo.transpose %[[R]], dims = [0, 2, 1] : (tensor<2x6x4xf32>) -> tensor<2x4x6xf32>
// CHECK: return %[[H]], %[[C]], %[[T]]
func.func @reduce(%x: tensor<2x5x6x4xf32>) -> (tensor<2x5x6x4xf32>, tensor<2x5x6xf32>, tensor<2x4x6xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x5x6x4xf32>) -> tensor<2x4x5x6xf32>
  %h = hlo.tanh %t : tensor<2x4x5x6xf32>
  %c = "hlo.reduce"(%h, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<2x4x5x6xf32>, tensor<f32>) -> tensor<2x5x6xf32>
  %r = "hlo.reduce"(%h, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 2>} : (tensor<2x4x5x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  %u = hlo.transpose %h, dims = [0, 2, 3, 1] : (tensor<2x4x5x6xf32>) -> tensor<2x5x6x4xf32>
  return %u, %c, %r : tensor<2x5x6x4xf32>, tensor<2x5x6xf32>, tensor<2x4x6xf32>
}

// -----

// Squeeze and excitation: what has one pixel is the same in both layouts.
// CHECK-LABEL: @gate
// CHECK-NOT: hlo.transpose
// CHECK: "hlo.reduce"(%arg0, %{{.*}}) <{dimensions = array<i64: 1, 2>}>
// CHECK: hlo.broadcast_in_dim {{.*}}, dims = [0, 3]
// CHECK: hlo.multiply %arg0, {{.*}} : tensor<2x5x6x4xf32>
// CHECK-NOT: hlo.transpose
// CHECK: return
func.func @gate(%x: tensor<2x5x6x4xf32>) -> tensor<2x5x6x4xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x5x6x4xf32>) -> tensor<2x4x5x6xf32>
  %r = "hlo.reduce"(%t, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 2, 3>} : (tensor<2x4x5x6xf32>, tensor<f32>) -> tensor<2x4xf32>
  %k = hlo.reshape %r : (tensor<2x4xf32>) -> tensor<2x4x1x1xf32>
  %g = hlo.logistic %k : tensor<2x4x1x1xf32>
  %b = hlo.broadcast_in_dim %g, dims = [0, 1, 2, 3] : (tensor<2x4x1x1xf32>) -> tensor<2x4x5x6xf32>
  %m = hlo.multiply %t, %b : tensor<2x4x5x6xf32>
  %u = hlo.transpose %m, dims = [0, 2, 3, 1] : (tensor<2x4x5x6xf32>) -> tensor<2x5x6x4xf32>
  return %u : tensor<2x5x6x4xf32>
}

// -----

// Patches of an image as a sequence: the pixels that are merged stay together in both layouts.
// CHECK-LABEL: @patches
// CHECK: %[[R:.*]] = hlo.reshape %arg0 : (tensor<1x12x14x8xf32>) -> tensor<1x168x8xf32>
// CHECK-NEXT: %[[T:.*]] = hlo.tanh %[[R]]
// CHECK-NEXT: return %[[T]]
func.func @patches(%x: tensor<1x12x14x8xf32>) -> tensor<1x168x8xf32> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x12x14x8xf32>) -> tensor<1x8x12x14xf32>
  %r = hlo.reshape %t : (tensor<1x8x12x14xf32>) -> tensor<1x8x168xf32>
  %h = hlo.tanh %r : tensor<1x8x168xf32>
  %u = hlo.transpose %h, dims = [0, 2, 1] : (tensor<1x8x168xf32>) -> tensor<1x168x8xf32>
  return %u : tensor<1x168x8xf32>
}

// -----

// Channels shuffled in groups: the transpose of five dimensions stays and takes the two others in.
// CHECK-LABEL: @shuffle
// CHECK: %[[A:.*]] = hlo.tanh %arg0
// CHECK-NEXT: %[[R:.*]] = hlo.reshape %[[A]] : (tensor<1x5x6x8xf32>) -> tensor<1x5x6x2x4xf32>
// CHECK-NEXT: %[[T:.*]] = hlo.transpose %[[R]], dims = [0, 1, 2, 4, 3]
// CHECK-NEXT: %[[S:.*]] = hlo.reshape %[[T]] : (tensor<1x5x6x4x2xf32>) -> tensor<1x5x6x8xf32>
// CHECK-NEXT: return %[[S]]
func.func @shuffle(%x: tensor<1x5x6x8xf32>) -> tensor<1x5x6x8xf32> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x6x8xf32>) -> tensor<1x8x5x6xf32>
  %h = hlo.tanh %t : tensor<1x8x5x6xf32>
  %r = hlo.reshape %h : (tensor<1x8x5x6xf32>) -> tensor<1x2x4x5x6xf32>
  %s = hlo.transpose %r, dims = [0, 2, 1, 3, 4] : (tensor<1x2x4x5x6xf32>) -> tensor<1x4x2x5x6xf32>
  %v = hlo.reshape %s : (tensor<1x4x2x5x6xf32>) -> tensor<1x8x5x6xf32>
  %u = hlo.transpose %v, dims = [0, 2, 3, 1] : (tensor<1x8x5x6xf32>) -> tensor<1x5x6x8xf32>
  return %u : tensor<1x5x6x8xf32>
}

// -----

// Run-time sizes.
// CHECK-LABEL: @dynamic
// CHECK-NOT: hlo.transpose
// CHECK: hlo.add %arg0, %arg1 : tensor<?x5x6x4xf32
// CHECK-NOT: hlo.transpose
// CHECK: return
module attributes {hlo.symbols = [{name = "n"}]} {
func.func @dynamic(%x: tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>, %y: tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>) -> tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>) -> tensor<?x4x5x6xf32, affine_map<()[s0] -> (s0, 4, 5, 6)>>
  %v = hlo.transpose %y, dims = [0, 3, 1, 2] : (tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>) -> tensor<?x4x5x6xf32, affine_map<()[s0] -> (s0, 4, 5, 6)>>
  %a = hlo.add %t, %v : tensor<?x4x5x6xf32, affine_map<()[s0] -> (s0, 4, 5, 6)>>
  %u = hlo.transpose %a, dims = [0, 2, 3, 1] : (tensor<?x4x5x6xf32, affine_map<()[s0] -> (s0, 4, 5, 6)>>) -> tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>
  return %u : tensor<?x5x6x4xf32, affine_map<()[s0] -> (s0, 5, 6, 4)>>
}
}

// -----

// Nothing changes where it would only move: the same bytes are transposed before and after an activation.
// CHECK-LABEL: @no_gain
// CHECK: %[[T:.*]] = hlo.transpose %arg0
// CHECK-NEXT: %[[H:.*]] = hlo.tanh %[[T]]
// CHECK-NEXT: return %[[H]]
func.func @no_gain(%x: tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %h = hlo.tanh %t : tensor<1x4x5x6xf32>
  return %h : tensor<1x4x5x6xf32>
}

// -----

// A flattened image keeps its order: its transpose stays, and the op that another transpose follows leaves the image's.
// CHECK-LABEL: @flatten
// CHECK: %[[H:.*]] = hlo.tanh %arg0
// CHECK: %[[T:.*]] = hlo.transpose %[[H]], dims = [0, 3, 1, 2]
// CHECK: %[[F:.*]] = hlo.reshape %[[T]] : (tensor<1x4x5x6xf32>) -> tensor<1x120xf32>
// CHECK: return %[[F]], %[[H]]
func.func @flatten(%x: tensor<1x5x6x4xf32>) -> (tensor<1x120xf32>, tensor<1x5x6x4xf32>) {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %h = hlo.tanh %t : tensor<1x4x5x6xf32>
  %f = hlo.reshape %h : (tensor<1x4x5x6xf32>) -> tensor<1x120xf32>
  %u = hlo.transpose %h, dims = [0, 2, 3, 1] : (tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32>
  return %f, %u : tensor<1x120xf32>, tensor<1x5x6x4xf32>
}

// -----

// An op that works in its own layout alone: a sort along a dimension, between transposes.
// CHECK-LABEL: @refused
// CHECK: hlo.transpose %arg0, dims = [0, 3, 1, 2]
// CHECK-NEXT: "hlo.sort"
// CHECK: hlo.transpose {{.*}}, dims = [0, 2, 3, 1]
// CHECK-NEXT: return
func.func @refused(%x: tensor<1x5x6x4xf32>) -> tensor<1x5x6x4xf32> {
  %t = hlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %s = "hlo.sort"(%t) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }) {dimension = 3 : i64} : (tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xf32>
  %u = hlo.transpose %s, dims = [0, 2, 3, 1] : (tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32>
  return %u : tensor<1x5x6x4xf32>
}

// -----

// Two arguments would be transposed to save one result: they stay.
// CHECK-LABEL: @dearer
// CHECK: %[[S:.*]] = hlo.add %arg0, %arg1
// CHECK: hlo.transpose %[[S]], dims = [0, 2, 3, 1]
// CHECK-NOT: hlo.transpose
// CHECK: return
func.func @dearer(%x: tensor<1x4x5x6xf32>, %y: tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32> {
  %a = hlo.add %x, %y : tensor<1x4x5x6xf32>
  %u = hlo.transpose %a, dims = [0, 2, 3, 1] : (tensor<1x4x5x6xf32>) -> tensor<1x5x6x4xf32>
  return %u : tensor<1x5x6x4xf32>
}
