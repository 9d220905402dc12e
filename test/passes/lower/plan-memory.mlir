// RUN: lathe-opt %s --kernel-plan-memory | FileCheck %s

// A chain needs two buffers; the last result is written where it is returned.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: memory.groups = ["128 x 1"]
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: hlo.add {{.*}}memory.at = ["arena 0 +[[A:.*]]"]
  %0 = "hlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: hlo.multiply {{.*}}memory.at = ["arena 0 +
  %1 = "hlo.multiply"(%0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: hlo.add {{.*}}memory.at = ["arena 0 +[[A]]"]
  %2 = "hlo.add"(%1, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: hlo.add {{.*}}memory.at = ["output 0"]
  %3 = "hlo.add"(%2, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// An input that is returned is copied; so is a second return of one value.
// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "hlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: return {memory.copies = ["input 0 -> output 0", "output 1 -> output 2"]}
  return %x, %0, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Buffers that grow with a run-time size lie in a group of their own.
// CHECK-LABEL: func.func @batch
// CHECK-SAME: memory.groups = ["0 x 1", "128 x s0"]
func.func @batch(%x: tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>) -> tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>> {
  // CHECK: hlo.add {{.*}}memory.at = ["arena 1 +0"]
  %0 = "hlo.add"(%x, %x) : (tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>, tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>) -> tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>
  %1 = "hlo.add"(%0, %x) : (tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>, tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>) -> tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>
  return %1 : tensor<?x32xf32, affine_map<()[s0] -> (s0, 32)>>
}

// The updated buffer of a loop is the output itself: filled once, then written in place; no copy in the body.
// CHECK-LABEL: func.func @loop
func.func @loop(%n: tensor<i32>, %u: tensor<1xf32>) -> tensor<1000xf32> {
  %one = "hlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %init = "hlo.constant"() {value = dense<0.5> : tensor<1000xf32>} : () -> tensor<1000xf32>
  %r:2 = "hlo.while"(%one, %init) ({
  ^bb0(%i: tensor<i32>, %a: tensor<1000xf32>):
    %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "hlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<1000xf32>):
    // CHECK: hlo.dynamic_update_slice {{.*}}memory.at = ["output 0"]
    %d = "hlo.dynamic_update_slice"(%a, %u, %i) : (tensor<1000xf32>, tensor<1xf32>, tensor<i32>) -> tensor<1000xf32>
    %i1 = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    // CHECK: hlo.return
    // CHECK-NOT: output
    "hlo.return"(%i1, %d) : (tensor<i32>, tensor<1000xf32>) -> ()
  // CHECK: memory.at = ["arena 0 +{{[0-9]+}}", "output 0"], memory.copies = ["constant +0 -> arena 0 +{{[0-9]+}}", "fill -> output 0"]
  }) : (tensor<i32>, tensor<1000xf32>) -> (tensor<i32>, tensor<1000xf32>)
  return %r#1 : tensor<1000xf32>
}

// Parts that are joined lie in the whole, wherever that is; it begins with the first of them.
// CHECK-LABEL: func.func @joined
// CHECK-SAME: memory.groups = ["384 x 1"]
func.func @joined(%x: tensor<4x16xf32>, %z: tensor<4x8xf32>) -> (tensor<4x24xf32>, tensor<4x24xf32>) {
  // CHECK: kernel.loop{{.*}}memory.at = ["arena 0 +0, 32 bytes in"]
  %0 = kernel.loop(%x) {kernel.result_rows = array<i64: 24>} : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %y = "hlo.abs"(%a) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %y : tensor<4x16xf32>
  }
  %c = "hlo.concatenate"(%z, %0) {dimension = 1 : i64, kernel.joined = array<i1: false, true>} : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  %1 = "hlo.add"(%c, %c) : (tensor<4x24xf32>, tensor<4x24xf32>) -> tensor<4x24xf32>
  return %1, %1 : tensor<4x24xf32>, tensor<4x24xf32>
}

// A whole that is a part itself: offsets add up, and the largest buffer has them all.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<4x16xf32>, %z: tensor<4x8xf32>) -> tensor<4x40xf32> {
  // CHECK: kernel.loop{{.*}}memory.at = ["output 0, 96 bytes in"]
  %0 = kernel.loop(%x) {kernel.result_rows = array<i64: 40>} : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %y = "hlo.abs"(%a) : (tensor<4x16xf32>) -> tensor<4x16xf32>
    kernel.yield %y : tensor<4x16xf32>
  }
  // CHECK: hlo.concatenate{{.*}}memory.at = ["output 0, 64 bytes in"]
  %c = "hlo.concatenate"(%z, %0) {dimension = 1 : i64, kernel.joined = array<i1: false, true>, kernel.result_rows = array<i64: 40>} : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  // CHECK: hlo.concatenate{{.*}}memory.at = ["output 0"]
  %d = "hlo.concatenate"(%x, %c) {dimension = 1 : i64, kernel.joined = array<i1: false, true>} : (tensor<4x16xf32>, tensor<4x24xf32>) -> tensor<4x40xf32>
  return %d : tensor<4x40xf32>
}
