// Where --precision lets f32 be rounded and tensor cores do not take a product or a convolution, a remark says why.
// RUN: lathe-opt %s --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features= bf16=true" --kernel-to-llvm --remarks-filter-missed=kernel -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark:
// RUN: lathe-opt %s --kernel-set-target="backend=cuda triple=nvptx64-nvidia-cuda features=" --kernel-to-llvm --remarks-filter-missed=kernel -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXACT --allow-empty

// EXACT-NOT: remark:

func.func @products(%few: tensor<4x64xf32>, %many: tensor<40x64xf32>, %y: tensor<64x48xf32>, %d: tensor<4x64xf64>,
                    %e: tensor<64x48xf64>) -> (tensor<4x48xf32>, tensor<40x48xf32>, tensor<4x48xf64>) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: remark: [Missed] mma | Category:kernel | Function=k0_dot{{.*}}Reason="fewer than 8 rows or columns"
  %0 = "hlo.dot"(%few, %y) : (tensor<4x64xf32>, tensor<64x48xf32>) -> tensor<4x48xf32>
  // on tensor cores
  %1 = "hlo.dot"(%many, %y) : (tensor<40x64xf32>, tensor<64x48xf32>) -> tensor<40x48xf32>
  // no f32
  %2 = "hlo.dot"(%d, %e) : (tensor<4x64xf64>, tensor<64x48xf64>) -> tensor<4x48xf64>
  return %0, %1, %2 : tensor<4x48xf32>, tensor<40x48xf32>, tensor<4x48xf64>
}
