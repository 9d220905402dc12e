// Scatters, and selections from windows, have kernels in which each element belongs to a thread. Of what else has
// little to share out a remark tells.
// RUN: lathe-opt %s --split-input-file --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features=" --kernel-to-llvm | FileCheck %s --implicit-check-not='launches = [{'
// RUN: lathe-opt %s --split-input-file --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features=" --kernel-to-llvm --remarks-filter-missed=kernel -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK --implicit-check-not=remark:

// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_scatter_owned", threads = 128
func.func @rows(%x: tensor<1000x64xf32>, %at: tensor<512x1xi32>, %y: tensor<512x64xf32>) -> tensor<1000x64xf32> {
  %0 = "hlo.scatter"(%x, %at, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {scatter_dimension_numbers = #hlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
    : (tensor<1000x64xf32>, tensor<512x1xi32>, tensor<512x64xf32>) -> tensor<1000x64xf32>
  return %0 : tensor<1000x64xf32>
}

// -----

// windows that begin anywhere
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_scatter_owned", threads = 128
func.func @within(%x: tensor<1000x64xf32>, %at: tensor<512x2xi32>, %y: tensor<512x8xf32>) -> tensor<1000x64xf32> {
  %0 = "hlo.scatter"(%x, %at, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    hlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #hlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}
    : (tensor<1000x64xf32>, tensor<512x2xi32>, tensor<512x8xf32>) -> tensor<1000x64xf32>
  return %0 : tensor<1000x64xf32>
}

// -----

// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_select_and_scatter_owned", threads = 128
func.func @select(%x: tensor<8x8xf32>, %y: tensor<4x4xf32>, %zero: tensor<f32>) -> tensor<8x8xf32> {
  %0 = "hlo.select_and_scatter"(%x, %y, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>} : (tensor<8x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// windows of the whole row for each element: every element would look at all of them
// CHECK: launches = [{has_scratch = 0 : i64, name = "k0_select_and_scatter"
func.func @select_large(%x: tensor<400xf32>, %y: tensor<201xf32>, %zero: tensor<f32>) -> tensor<400xf32> {
  %0 = "hlo.select_and_scatter"(%x, %y, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    hlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    hlo.return %s : tensor<f32>
  }) {window_dimensions = array<i64: 200>} : (tensor<400xf32>, tensor<201xf32>, tensor<f32>) -> tensor<400xf32>
  return %0 : tensor<400xf32>
}

// -----

// REMARK: remark: [Missed] threads | Category:kernel | Function=k0_cholesky | Reason="1 threads for 65536 elements"
// CHECK: launches = [{has_scratch = {{.*}}, name = "k0_cholesky"
func.func @decomposition(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = "hlo.cholesky"(%x) {lower = true} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}
