// nvptx-split-sorts: runs, a power of two of them, and merges of two; the largest by sorts of parts; what stays as it is.
// RUN: lathe-opt %s --nvptx-split-sorts | FileCheck %s --enable-var-scope

// Three blocks' worth are four runs; what they are padded by is last, whatever the comparator says of it.
// CHECK-LABEL: @padded
func.func @padded(%x: tensor<2x5001xf32>, %y: tensor<2x5001xi64>) -> (tensor<2x5001xf32>, tensor<2x5001xi64>) {
  // CHECK: hlo.pad %{{.*}}, %{{.*}}, low = [0, 0], high = [0, 3], interior = [0, 0]
  // CHECK: hlo.pad
  // CHECK: %[[FLAGS:.*]] = kernel.loop() : () -> tensor<2x5004xi8>
  // CHECK: hlo.constant dense<5001>
  // CHECK: hlo.reshape %[[FLAGS]] : (tensor<2x5004xi8>) -> tensor<2x4x1251xi8>
  // CHECK: %[[RUNS:.*]]:3 = "hlo.sort"({{.*}}) <{dimension = 2 : i64, is_stable = true}>
  // CHECK: ^bb0(%[[I:.*]]: tensor<i8>, %[[J:.*]]: tensor<i8>, %[[P:.*]]: tensor<f32>, %[[Q:.*]]: tensor<f32>
  // CHECK-DAG: %[[LESS:.*]] = hlo.compare GT, %[[P]], %[[Q]]
  // CHECK-DAG: %[[BEFORE:.*]] = hlo.compare LT, %[[I]], %[[J]]
  // CHECK-DAG: %[[ALIKE:.*]] = hlo.compare EQ, %[[I]], %[[J]]
  // CHECK: %[[AND:.*]] = hlo.and %[[ALIKE]], %[[LESS]]
  // CHECK: %[[OR:.*]] = hlo.or %[[BEFORE]], %[[AND]]
  // CHECK: hlo.return %[[OR]]
  // CHECK: hlo.reshape %[[RUNS]]#1 : (tensor<2x4x1251xf32>) -> tensor<2x5004xf32>
  // CHECK: "hlo.sort"({{.*}}) <{dimension = 2 : i64, is_stable = true}>
  // CHECK: {kernel.sorted_halves} : (tensor<2x2x2502xi8>, tensor<2x2x2502xf32>, tensor<2x2x2502xi64>)
  // CHECK: "hlo.sort"
  // CHECK: {kernel.sorted_halves} : (tensor<2x1x5004xi8>, tensor<2x1x5004xf32>, tensor<2x1x5004xi64>)
  // CHECK-NOT: hlo.sort
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 2, 5001>, start_indices = array<i64: 0, 0>, {{.*}} : (tensor<2x5004xf32>) -> tensor<2x5001xf32>
  %0:2 = "hlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i64>, %d: tensor<i64>):
    %s = hlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %s : tensor<i1>
  }) : (tensor<2x5001xf32>, tensor<2x5001xi64>) -> (tensor<2x5001xf32>, tensor<2x5001xi64>)
  return %0#0, %0#1 : tensor<2x5001xf32>, tensor<2x5001xi64>
}

// Along another dimension, of any number of lines.
// CHECK-LABEL: @whole
func.func @whole(%x: tensor<4096x?xi32, affine_map<()[s0] -> (4096, s0)>>) -> tensor<4096x?xi32, affine_map<()[s0] -> (4096, s0)>> {
  // CHECK-NOT: hlo.pad
  // CHECK: "hlo.sort"({{.*}}) <{dimension = 1 : i64
  // CHECK: (tensor<2x2048x?xi32,
  // CHECK: {kernel.sorted_halves} : (tensor<1x4096x?xi32,
  // CHECK-NOT: hlo.sort
  %0 = "hlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = hlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %s : tensor<i1>
  }) : (tensor<4096x?xi32, affine_map<()[s0] -> (4096, s0)>>) -> tensor<4096x?xi32, affine_map<()[s0] -> (4096, s0)>>
  return %0 : tensor<4096x?xi32, affine_map<()[s0] -> (4096, s0)>>
}

// The first of each part are the next line, until one block has it; a place that is padded is behind all others.
// CHECK-LABEL: @largest
func.func @largest(%x: tensor<50001xf32>) -> (tensor<200xf32>, tensor<200xi32>) {
  // CHECK: kernel.loop() : () -> tensor<50001xi32>
  // CHECK: hlo.iota
  // CHECK: hlo.constant dense<0xFF800000>
  // CHECK: hlo.pad %{{.*}}, low = [0], high = [24], interior = [0]
  // CHECK: hlo.pad
  // CHECK: "hlo.sort"({{.*}}) <{dimension = 1 : i64, is_stable = true}>
  // CHECK-DAG: hlo.compare GT
  // CHECK-DAG: hlo.compare NE
  // CHECK-DAG: hlo.compare EQ
  // CHECK: (tensor<25x2001xf32>, tensor<25x2001xi32>) -> (tensor<25x2001xf32>, tensor<25x2001xi32>)
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 25, 200>, start_indices = array<i64: 0, 0>
  // CHECK: -> tensor<5000xf32>
  // CHECK: (tensor<3x1667xf32>, tensor<3x1667xi32>) -> (tensor<3x1667xf32>, tensor<3x1667xi32>)
  // CHECK: "hlo.sort"
  // CHECK: (tensor<600xf32>, tensor<600xi32>) -> (tensor<600xf32>, tensor<600xi32>)
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 200>, start_indices = array<i64: 0>
  %v, %i = hlo.top_k %x, k = 200 : (tensor<50001xf32>) -> (tensor<200xf32>, tensor<200xi32>)
  return %v, %i : tensor<200xf32>, tensor<200xi32>
}

// Many of a line, whose indices nobody wants: all of it is sorted, without them.
// CHECK-LABEL: @most
func.func @most(%x: tensor<3x4096xi32>) -> tensor<3x1000xi32> {
  // CHECK-NOT: hlo.iota
  // CHECK: (tensor<3x2x2048xi32>) -> tensor<3x2x2048xi32>
  // CHECK: {kernel.sorted_halves} : (tensor<3x1x4096xi32>) -> tensor<3x1x4096xi32>
  %v, %i = hlo.top_k %x, k = 1000 : (tensor<3x4096xi32>) -> (tensor<3x1000xi32>, tensor<3x1000xi32>)
  return %v : tensor<3x1000xi32>
}

// Lines of a length that is not known: what a kernel merges to and fro has its place among the results.
// CHECK-LABEL: @unknown
func.func @unknown(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>, %y: tensor<3x?xi64, affine_map<()[s0] -> (3, s0)>>)
    -> (tensor<5xf32>, tensor<5xi32>, tensor<3x?xi64, affine_map<()[s0] -> (3, s0)>>) {
  // CHECK: %[[I:.*]] = kernel.loop() : () -> tensor<?xi32
  // CHECK: %[[S:.*]]:4 = "hlo.sort"(%arg0, %[[I]], %arg0, %[[I]]) <{dimension = 0 : i64, is_stable = true}>
  // CHECK: ^bb0(%[[P:.*]]: tensor<f32>, %[[Q:.*]]: tensor<f32>, %{{.*}}: tensor<i32>, %{{.*}}: tensor<i32>, %{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>, %{{.*}}: tensor<i32>, %{{.*}}: tensor<i32>):
  // CHECK: hlo.compare GT, %[[P]], %[[Q]]
  // CHECK: {kernel.sort_space}
  // CHECK: kernel.loop(%[[S]]#0)
  // CHECK: hlo.slice
  // CHECK: kernel.loop(%[[S]]#1)
  %v, %i = hlo.top_k %x, k = 5 : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> (tensor<5xf32>, tensor<5xi32>)
  // CHECK: %[[T:.*]]:2 = "hlo.sort"(%arg1, %arg1) <{dimension = 1 : i64, is_stable = true}>
  // CHECK: ^bb0(%[[A:.*]]: tensor<i64>, %[[B:.*]]: tensor<i64>, %{{.*}}: tensor<i64>, %{{.*}}: tensor<i64>):
  // CHECK: hlo.compare LT, %[[A]], %[[B]]
  // CHECK: {kernel.sort_space}
  // CHECK: return {{.*}}, %[[T]]#0
  %0 = "hlo.sort"(%y) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %s = hlo.compare LT, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
    hlo.return %s : tensor<i1>
  }) : (tensor<3x?xi64, affine_map<()[s0] -> (3, s0)>>) -> tensor<3x?xi64, affine_map<()[s0] -> (3, s0)>>
  return %v, %i, %0 : tensor<5xf32>, tensor<5xi32>, tensor<3x?xi64, affine_map<()[s0] -> (3, s0)>>
}

// Short lines, lines enough for a thread each, and lines that a block sorts.
// CHECK-LABEL: @left
// CHECK-COUNT-3: hlo.top_k
// CHECK-COUNT-1: hlo.sort
// CHECK-NOT: {{hlo.sort|kernel.loop|hlo.reshape}}
func.func @left(%x: tensor<9x32xf32>, %y: tensor<20000x100xf32>, %z: tensor<20000x?xf32, affine_map<()[s0] -> (20000, s0)>>, %w: tensor<4x2048xf32>)
    -> (tensor<9x9xf32>, tensor<20000x5xf32>, tensor<20000x5xf32>, tensor<4x2048xf32>) {
  %a, %0 = hlo.top_k %x, k = 9 : (tensor<9x32xf32>) -> (tensor<9x9xf32>, tensor<9x9xi32>)
  %b, %1 = hlo.top_k %y, k = 5 : (tensor<20000x100xf32>) -> (tensor<20000x5xf32>, tensor<20000x5xi32>)
  %c, %2 = hlo.top_k %z, k = 5 : (tensor<20000x?xf32, affine_map<()[s0] -> (20000, s0)>>) -> (tensor<20000x5xf32>, tensor<20000x5xi32>)
  %d = "hlo.sort"(%w) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = hlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %s : tensor<i1>
  }) : (tensor<4x2048xf32>) -> tensor<4x2048xf32>
  return %a, %b, %c, %d : tensor<9x9xf32>, tensor<20000x5xf32>, tensor<20000x5xf32>, tensor<4x2048xf32>
}
