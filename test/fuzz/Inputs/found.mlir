// A tail of one narrow element: LLVM stored it as a wider one, over what the previous chunk had written.
func.func @masked_tail(%a0: tensor<7x33xf32>, %a1: tensor<7x33xbf16>) -> (tensor<7x33xbf16>, tensor<7x33xbf16>) {
  %0 = hlo.convert %a0 : (tensor<7x33xf32>) -> tensor<7x33xbf16>
  %1 = hlo.divide %a1, %0 : tensor<7x33xbf16>
  %2 = hlo.transpose %0, dims = [0, 1] : (tensor<7x33xbf16>) -> tensor<7x33xbf16>
  %3 = hlo.cosine %1 : tensor<7x33xbf16>
  return %2, %3 : tensor<7x33xbf16>, tensor<7x33xbf16>
}
// Powers of zero and infinity with small exponents.
func.func @power(%a0: tensor<390xf16>) -> tensor<390xf16> {
  %0 = hlo.constant dense<0x7C00> : tensor<390xf16>
  %1 = hlo.constant dense<0.001> : tensor<390xf16>
  %2 = hlo.multiply %a0, %1 : tensor<390xf16>
  %3 = hlo.power %0, %2 : tensor<390xf16>
  return %3 : tensor<390xf16>
}
