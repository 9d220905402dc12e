// Simplification made a slice outside its operand.
func.func @empty_slice(%x: tensor<4x2xf64>) -> tensor<4x0xf64> {
  %a = hlo.slice %x {limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 3>} : (tensor<4x2xf64>) -> tensor<4x1xf64>
  %b = hlo.slice %a {limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 3>} : (tensor<4x1xf64>) -> tensor<4x0xf64>
  return %b : tensor<4x0xf64>
}
