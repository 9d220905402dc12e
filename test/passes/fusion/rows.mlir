// RUN: lathe-opt %s --hlo-fuse | FileCheck %s

// CHECK-LABEL: @softmax
// CHECK: %[[R:.*]] = kernel.rows(%arg0) : (tensor<4x16xf32>) -> tensor<4x16xf32>
// CHECK: hlo.reduce
// CHECK: hlo.exponential
// CHECK: hlo.reduce
// CHECK: hlo.divide
// CHECK: kernel.yield
// CHECK-NOT: kernel.
// CHECK: return %[[R]]
func.func @softmax(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %ninf = hlo.constant dense<0xFF800000> : tensor<f32>
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %m = "hlo.reduce"(%x, %ninf) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = hlo.maximum %a, %b : tensor<f32>
    hlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %mb = hlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %s = hlo.subtract %x, %mb : tensor<4x16xf32>
  %e = hlo.exponential %s : tensor<4x16xf32>
  %t = "hlo.reduce"(%e, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = hlo.add %a, %b : tensor<f32>
    hlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %tb = hlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %d = hlo.divide %e, %tb : tensor<4x16xf32>
  return %d : tensor<4x16xf32>
}

// Layer normalisation with scale and shift, and the sum it normalises, which is also stored.
// CHECK-LABEL: @layer_norm
// CHECK: %[[R:.*]]:2 = kernel.rows(%arg0, %arg1, %arg2, %arg3)
// CHECK: kernel.yield
// CHECK-NOT: kernel.
// CHECK: return %[[R]]
func.func @layer_norm(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %inv = hlo.constant dense<0.0625> : tensor<4xf32>
  %eps = hlo.constant dense<0.001> : tensor<4xf32>
  %z = hlo.add %x, %y : tensor<4x16xf32>
  %sum = "hlo.reduce"(%z, %zero) ({
  ^bb0(%a: tensor<f32>, %c: tensor<f32>):
    %r = hlo.add %a, %c : tensor<f32>
    hlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %mean = hlo.multiply %sum, %inv : tensor<4xf32>
  %mb = hlo.broadcast_in_dim %mean, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %d = hlo.subtract %z, %mb : tensor<4x16xf32>
  %q = hlo.multiply %d, %d : tensor<4x16xf32>
  %qs = "hlo.reduce"(%q, %zero) ({
  ^bb0(%a: tensor<f32>, %c: tensor<f32>):
    %r = hlo.add %a, %c : tensor<f32>
    hlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %var = hlo.multiply %qs, %inv : tensor<4xf32>
  %ve = hlo.add %var, %eps : tensor<4xf32>
  %rs = hlo.rsqrt %ve : tensor<4xf32>
  %rb = hlo.broadcast_in_dim %rs, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %n = hlo.multiply %d, %rb : tensor<4x16xf32>
  %gb = hlo.broadcast_in_dim %g, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %bb = hlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %m = hlo.multiply %n, %gb : tensor<4x16xf32>
  %o = hlo.add %m, %bb : tensor<4x16xf32>
  return %z, %o : tensor<4x16xf32>, tensor<4x16xf32>
}

// A mean over the leading dimension: its producer and its consumer join the reduction.
// CHECK-LABEL: @mean
// CHECK: %[[R:.*]] = kernel.reduce(%arg0) : (tensor<4x16xf32>) -> tensor<16xf32>
// CHECK: hlo.abs
// CHECK: hlo.reduce
// CHECK: hlo.multiply
// CHECK: kernel.yield
// CHECK-NOT: kernel.
// CHECK: return %[[R]]
func.func @mean(%x: tensor<4x16xf32>) -> tensor<16xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %inv = hlo.constant dense<0.25> : tensor<16xf32>
  %p = hlo.abs %x : tensor<4x16xf32>
  %s = "hlo.reduce"(%p, %zero) ({
  ^bb0(%a: tensor<f32>, %c: tensor<f32>):
    %r = hlo.add %a, %c : tensor<f32>
    hlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
  %m = hlo.multiply %s, %inv : tensor<16xf32>
  return %m : tensor<16xf32>
}
