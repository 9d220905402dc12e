// RUN: lathe-opt %s --kernel-to-llvm | FileCheck %s
// RUN: lathe-opt %s --kernel-set-target="threads=4" --kernel-to-llvm | FileCheck %s --check-prefix=THREADS

// One function for both adds; a size check and the workspace check come first; the loop is native.
// CHECK: llvm.func @lathe_fail
// CHECK: llvm.mlir.global external hidden @lathe_constants
// CHECK: llvm.func internal @k0_add
// CHECK-NOT: _add
// CHECK: llvm.func internal @lathe_workspace0(%{{.*}}: !llvm.ptr, %{{.*}}: i32) -> i64
// CHECK: llvm.func internal @lathe_run0(
// CHECK: llvm.call @lathe_fail
// CHECK: llvm.call @k0_add
// CHECK: llvm.br ^[[COND:.*]]
// CHECK: ^[[COND]]:
// CHECK: llvm.cond_br
// CHECK: llvm.call @k0_add
// CHECK: llvm.br ^[[COND]]

// THREADS: llvm.func internal @k0_add
// THREADS: llvm.call @lathe_dispatch
// THREADS: llvm.func internal @k0_add_chunks(
// THREADS: llvm.func internal @lathe_dispatch(
module attributes {hlo.symbols = [{name = "n", bound = -1 : i64, kind = "input"}]} {
  func.func @main(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>, %y: tensor<?xf32, affine_map<()[s0] -> (s0)>>, %p: tensor<i1>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
    %0 = "hlo.add"(%x, %y) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    %1 = "hlo.while"(%0) ({
    ^bb0(%a: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
      "hlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
      %b = "hlo.add"(%a, %y) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
      "hlo.return"(%b) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> ()
    }) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    return %1 : tensor<?xf32, affine_map<()[s0] -> (s0)>>
  }
}
