// nvptx-split-reductions: parts from sizes alone, padding that changes no result, what stays as it is.
// RUN: lathe-opt %s --nvptx-split-reductions | FileCheck %s --enable-var-scope

// Consumers follow the second kernel; a sum's parts start with -0, and its initial value counts once.
// CHECK-LABEL: @columns
func.func @columns(%x: tensor<8192x64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: %[[PARTS:.*]] = kernel.reduce(%{{.*}}) : (tensor<8192x64xf32>) -> tensor<16x64xf32>
  // CHECK: hlo.exponential
  // CHECK: %[[ZERO:.*]] = hlo.constant dense<-0.000000e+00>
  // CHECK-NOT: hlo.pad
  // CHECK: hlo.reshape {{.*}} -> tensor<16x512x64xf32>
  // CHECK: "hlo.reduce"(%{{.*}}, %[[ZERO]]) <{dimensions = array<i64: 1>}>
  // CHECK: kernel.reduce(%[[PARTS]], %{{.*}}) : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: hlo.constant dense<3.000000e+00>
  // CHECK: "hlo.reduce"({{.*}}) <{dimensions = array<i64: 0>}>
  // CHECK: hlo.multiply
  %r = kernel.reduce(%x, %y) : (tensor<8192x64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<8192x64xf32>, %b: tensor<64xf32>):
    %e = hlo.exponential %a : tensor<8192x64xf32>
    %c = hlo.constant dense<3.0> : tensor<f32>
    %s = "hlo.reduce"(%e, %c) <{dimensions = array<i64: 0>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %t = hlo.add %p, %q : tensor<f32>
      hlo.return %t : tensor<f32>
    }) : (tensor<8192x64xf32>, tensor<f32>) -> tensor<64xf32>
    %m = hlo.multiply %s, %b : tensor<64xf32>
    kernel.yield %m : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// A prime size: the last part is padded, for a maximum with its initial value.
// CHECK-LABEL: @padded
func.func @padded(%x: tensor<3x20011xi32>) -> tensor<3xi32> {
  // CHECK: kernel.reduce({{.*}}) : (tensor<3x20011xi32>) -> tensor<3x39xi32>
  // CHECK: %[[LEAST:.*]] = hlo.constant dense<-7>
  // CHECK: hlo.pad %{{.*}}, %[[LEAST]], low = [0, 0], high = [0, 35], interior = [0, 0]
  // CHECK: hlo.reshape {{.*}} -> tensor<3x39x514xi32>
  // CHECK: "hlo.reduce"(%{{.*}}, %[[LEAST]]) <{dimensions = array<i64: 2>}>
  // CHECK: kernel.reduce({{.*}}) : (tensor<3x39xi32>) -> tensor<3xi32>
  // CHECK: "hlo.reduce"({{.*}}) <{dimensions = array<i64: 1>}>
  %r = kernel.reduce(%x) : (tensor<3x20011xi32>) -> tensor<3xi32> {
  ^bb0(%a: tensor<3x20011xi32>):
    %c = hlo.constant dense<-7> : tensor<i32>
    %s = "hlo.reduce"(%a, %c) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %t = hlo.maximum %p, %q : tensor<i32>
      hlo.return %t : tensor<i32>
    }) : (tensor<3x20011xi32>, tensor<i32>) -> tensor<3xi32>
    kernel.yield %s : tensor<3xi32>
  }
  return %r : tensor<3xi32>
}

// Partial sums of f16 would be rounded; short sums and sizes known at run time stay too.
// CHECK-LABEL: @stays
// CHECK-COUNT-2: kernel.reduce
// CHECK-NOT: kernel.reduce
func.func @stays(%x: tensor<3x20011xf16>, %z: tensor<3x1000xf32>) -> (tensor<3xf16>, tensor<3xf32>) {
  %r = kernel.reduce(%x) : (tensor<3x20011xf16>) -> tensor<3xf16> {
  ^bb0(%a: tensor<3x20011xf16>):
    %c = hlo.constant dense<0.0> : tensor<f16>
    %s = "hlo.reduce"(%a, %c) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<f16>, %q: tensor<f16>):
      %t = hlo.add %p, %q : tensor<f16>
      hlo.return %t : tensor<f16>
    }) : (tensor<3x20011xf16>, tensor<f16>) -> tensor<3xf16>
    kernel.yield %s : tensor<3xf16>
  }
  %r2 = kernel.reduce(%z) : (tensor<3x1000xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3x1000xf32>):
    %c = hlo.constant dense<0.0> : tensor<f32>
    %s = "hlo.reduce"(%a, %c) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %t = hlo.add %p, %q : tensor<f32>
      hlo.return %t : tensor<f32>
    }) : (tensor<3x1000xf32>, tensor<f32>) -> tensor<3xf32>
    kernel.yield %s : tensor<3xf32>
  }
  return %r, %r2 : tensor<3xf16>, tensor<3xf32>
}
