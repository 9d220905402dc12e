// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16" --kernel-bf16 --split-input-file | FileCheck %s --enable-var-scope
// RUN: lathe-opt %s --kernel-set-target="features=+avx2,+fma" --kernel-bf16 --split-input-file | FileCheck %s --check-prefix=NONE
// NONE-NOT: {{[{ ]}}bf16{{[,}]}}
// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+amx-tile,+amx-bf16" --kernel-bf16 --split-input-file | FileCheck %s --check-prefix=AMX

// Weights become pairs of rows, rounded; what lies between the products is kept in bf16. The last product is small and
// stays f32, as does what it reads.
// CHECK-LABEL: @chain
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x40xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<8x40xf32>} : () -> tensor<8x40xf32>
  %v = "hlo.constant"() {value = dense<2.0> : tensor<40x8xf32>} : () -> tensor<40x8xf32>
  // CHECK-DAG: %[[W:.*]] = hlo.constant {{.*}} : tensor<1x4x96xbf16>
  // CHECK-DAG: %[[V:.*]] = hlo.constant {{.*}} : tensor<1x20x32xbf16>
  // CHECK: %[[H:.*]] = kernel.dot(%[[X]], %[[W]]) {bf16, {{.*}}#cpu.panels<columns = 48, group = 2>{{.*}}} : (tensor<4x8xf32>, tensor<1x4x96xbf16>) -> tensor<4x40xbf16>
  // CHECK: ^bb0(%[[ACC:.*]]: tensor<4x40xf32>):
  // CHECK: %[[T:.*]] = {{.*}}hlo.tanh
  // CHECK: %[[N:.*]] = {{.*}}hlo.convert{{.*}}tensor<4x40xbf16>
  // CHECK: kernel.yield %[[N]]
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x40xf32>) -> tensor<4x40xf32> {
  ^bb0(%acc: tensor<4x40xf32>):
    %t = "hlo.tanh"(%acc) : (tensor<4x40xf32>) -> tensor<4x40xf32>
    kernel.yield %t : tensor<4x40xf32>
  }
  // CHECK: kernel.dot(%[[H]], %[[V]]) {bf16, {{.*}}#cpu.panels<columns = 16, group = 2>{{.*}}} : (tensor<4x40xbf16>, tensor<1x20x32xbf16>) -> tensor<4x8xf32>
  %1 = kernel.dot(%0, %v) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x40xf32>, tensor<40x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%acc: tensor<4x8xf32>):
    kernel.yield %acc : tensor<4x8xf32>
  }
  // CHECK: kernel.dot(%{{.*}}, %{{.*}}) {lhs_dims{{.*}} : (tensor<4x8xf32>, tensor<8x40xf32>) -> tensor<4x40xf32>
  %2 = kernel.dot(%1, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x40xf32>) -> tensor<4x40xf32> {
  ^bb0(%acc: tensor<4x40xf32>):
    kernel.yield %acc : tensor<4x40xf32>
  }
  return %2 : tensor<4x40xf32>
}

// -----

// A large tensor is kept in bf16 though others than products read it: they widen at the load, through views. A result
// that something else reads stays f32.
// CHECK-LABEL: @readers
func.func @readers(%x: tensor<4x8xf32>) -> (tensor<131072xf32>, tensor<4x32768xf32>) {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<8x32768xf32>} : () -> tensor<8x32768xf32>
  // CHECK: %[[A:.*]] = kernel.dot{{.*}} -> tensor<4x32768xbf16>
  %0 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x32768xf32>) -> tensor<4x32768xf32> {
  ^bb0(%acc: tensor<4x32768xf32>):
    kernel.yield %acc : tensor<4x32768xf32>
  }
  // CHECK: %[[F:.*]] = {{.*}}hlo.reshape{{.*}} %[[A]]{{.*}}tensor<131072xbf16>
  %flat = "hlo.reshape"(%0) : (tensor<4x32768xf32>) -> tensor<131072xf32>
  // CHECK: kernel.loop(%[[F]]) : (tensor<131072xbf16>) -> tensor<131072xf32>
  // CHECK: ^bb0(%[[ARG:.*]]: tensor<131072xbf16>):
  // CHECK: %[[WIDE:.*]] = {{.*}}hlo.convert{{.*}}%[[ARG]]{{.*}}tensor<131072xf32>
  // CHECK: hlo.tanh{{.*}}%[[WIDE]]
  %1 = kernel.loop(%flat) : (tensor<131072xf32>) -> tensor<131072xf32> {
  ^bb0(%a: tensor<131072xf32>):
    %t = "hlo.tanh"(%a) : (tensor<131072xf32>) -> tensor<131072xf32>
    kernel.yield %t : tensor<131072xf32>
  }
  // CHECK: kernel.dot{{.*}} -> tensor<4x32768xf32>
  %2 = kernel.dot(%x, %w) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x32768xf32>) -> tensor<4x32768xf32> {
  ^bb0(%acc: tensor<4x32768xf32>):
    kernel.yield %acc : tensor<4x32768xf32>
  }
  return %1, %2 : tensor<131072xf32>, tensor<4x32768xf32>
}

// -----

// A row of 9 elements would end in the middle of a pair: the 27 of a window are one run, padded to 28. Packed pairs are 14 rows.
// CHECK-LABEL: @window
func.func @window(%x: tensor<1x8x8x3xf32>) -> tensor<1x6x6x8xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x3x8xf32>} : () -> tensor<3x3x3x8xf32>
  // CHECK: kernel.conv{{.*}}{{.}}bf16, {{.*}}kernel_shape = array<i64: 3, 3>{{.*}}#cpu.panels<columns = 16, group = 2>{{.*}}tensor<1x1x14x32xbf16>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x6x6x8xf32> {
  ^bb0(%acc: tensor<1x6x6x8xf32>):
    kernel.yield %acc : tensor<1x6x6x8xf32>
  }
  return %0 : tensor<1x6x6x8xf32>
}

// -----

// 4 channels by 3 taps are three runs of 12, pairs of which the tiles read where they are; in tile registers, full steps of a copy.
// CHECK-LABEL: @even_window
// AMX-LABEL: @even_window
func.func @even_window(%x: tensor<1x8x8x4xf32>) -> tensor<1x6x6x8xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x4x8xf32>} : () -> tensor<3x3x4x8xf32>
  // CHECK: kernel.conv{{.*}}#cpu.panels<columns = 16, group = 2>{{.*}}tensor<1x1x18x32xbf16>
  // AMX: kernel.conv{{.*}}#cpu.tiles<columns = 16, group = 2>{{.*}}tensor<1x1x{{.*}}x32xbf16>
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32> {
  ^bb0(%acc: tensor<1x6x6x8xf32>):
    kernel.yield %acc : tensor<1x6x6x8xf32>
  }
  return %0 : tensor<1x6x6x8xf32>
}

// -----

// Left as they are: f64, fewer columns than a vector, a depth known at run time only.
// The last is a fallback, which is noted.
// CHECK-LABEL: @refused
// CHECK-COUNT-2: kernel.dot(%{{[^)]*}}) {lhs_dims
// CHECK: kernel.dot{{.*}} {kernel.fallbacks = ["bf16: depth or columns are known at run time only"]
// CHECK-NOT: {{[{ ]}}bf16{{[,}]}}
func.func @refused(%x: tensor<4x8xf64>, %y: tensor<8x8xf64>, %a: tensor<4x8xf32>, %b: tensor<8x4xf32>,
                   %c: tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>, %d: tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
    -> (tensor<4x8xf64>, tensor<4x4xf32>, tensor<4x16xf32>) {
  %0 = kernel.dot(%x, %y) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64> {
  ^bb0(%acc: tensor<4x8xf64>):
    kernel.yield %acc : tensor<4x8xf64>
  }
  %1 = kernel.dot(%a, %b) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%acc: tensor<4x4xf32>):
    kernel.yield %acc : tensor<4x4xf32>
  }
  %2 = kernel.dot(%c, %d) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>, tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>) -> tensor<4x16xf32> {
  ^bb0(%acc: tensor<4x16xf32>):
    kernel.yield %acc : tensor<4x16xf32>
  }
  return %0, %1, %2 : tensor<4x8xf64>, tensor<4x4xf32>, tensor<4x16xf32>
}

// -----

// Without AMX, F(2x2,3x3) from transformed operands in bf16; the input itself is not rounded.
// CHECK-LABEL: @winograd
// AMX-LABEL: @winograd
func.func @winograd(%x: tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x256x256xf32>} : () -> tensor<3x3x256x256xf32>
  // CHECK: kernel.conv{{.*}}{{.}}bf16, {{.*}}#cpu.winograd<tile = 2, columns = {{[0-9]+}}>{{.*}}: (tensor<1x14x14x256xf32>, tensor<{{.*}}x16x{{.*}}x128x{{.*}}xbf16>)
  // AMX: kernel.conv{{.*}}{{.}}bf16
  // AMX-NOT: winograd =
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x14x14x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32> {
  ^bb0(%acc: tensor<1x14x14x256xf32>):
    kernel.yield %acc : tensor<1x14x14x256xf32>
  }
  return %0 : tensor<1x14x14x256xf32>
}

// -----

// 5x5 windows are multiplied less than half as often by F(2x2,5x5), in f32.
// CHECK-LABEL: @left_5x5
// AMX-LABEL: @left_5x5
func.func @left_5x5(%x: tensor<1x35x35x48xf32>) -> tensor<1x35x35x64xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<5x5x48x64xf32>} : () -> tensor<5x5x48x64xf32>
  // CHECK-NOT: {{[{ ]}}bf16{{[,}]}}
  // AMX: kernel.conv{{.*}}{{.}}bf16
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x35x35x48xf32>, tensor<5x5x48x64xf32>) -> tensor<1x35x35x64xf32> {
  ^bb0(%acc: tensor<1x35x35x64xf32>):
    kernel.yield %acc : tensor<1x35x35x64xf32>
  }
  return %0 : tensor<1x35x35x64xf32>
}

// -----

// Few channels make the transforms decide: left to F(4x4,3x3) in f32, whose filter kernel-pack-weights packs.
// CHECK-LABEL: @left
// AMX-LABEL: @left
func.func @left(%x: tensor<1x147x147x32xf32>) -> tensor<1x147x147x64xf32> {
  %w = "hlo.constant"() {value = dense<1.0> : tensor<3x3x32x64xf32>} : () -> tensor<3x3x32x64xf32>
  // CHECK-NOT: {{[{ ]}}bf16{{[,}]}}
  // AMX: kernel.conv{{.*}}{{.}}bf16
  %0 = kernel.conv(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x147x147x32xf32>, tensor<3x3x32x64xf32>) -> tensor<1x147x147x64xf32> {
  ^bb0(%acc: tensor<1x147x147x64xf32>):
    kernel.yield %acc : tensor<1x147x147x64xf32>
  }
  return %0 : tensor<1x147x147x64xf32>
}
