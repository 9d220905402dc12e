// Volumes as images of several slices give what they give as volumes.
func.func @volumes(%x: tensor<2x5x9x8x16xf32>, %w: tensor<2x3x3x16x17xf32>) -> tensor<2x7x8x9x17xf32> {
  %c = "hlo.convolution"(%x, %w) {padding = dense<[[1, 2], [0, 1], [2, 1]]> : tensor<3x2xi64>, dimension_numbers = #hlo.conv<[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x5x9x8x16xf32>, tensor<2x3x3x16x17xf32>) -> tensor<2x7x8x9x17xf32>
  return %c : tensor<2x7x8x9x17xf32>
}
