// RUN: lathe-opt %s --split-input-file --graph-to-hlo --verify-diagnostics

graph.func @types(%x: tensor<3xi8> {graph.name = "x"}, %low: tensor<f32> {graph.name = "low"}, %high: tensor<2xf32> {graph.name = "high"}) -> (tensor<*xui8> {graph.name = "y"}, tensor<*xui8> {graph.name = "z"}) {
  // expected-error @+1 {{(Requantize): input 2, an end of a range, must be a scalar}}
  %y:3, %yc = graph.node "Requantize"(%x, %low, %high, %low, %low) {} : (tensor<3xi8>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<*xui8>, tensor<*xf32>, tensor<*xf32>)
  // expected-error @+1 {{(QuantizeDownAndShrinkRange): only qint32 to quint8 is supported}}
  %z:3, %zc = graph.node "QuantizeDownAndShrinkRange"(%x, %low, %low) {} : (tensor<3xi8>, tensor<f32>, tensor<f32>) -> (tensor<*xui8>, tensor<*xf32>, tensor<*xf32>)
  graph.return %y#0, %z#0 : tensor<*xui8>, tensor<*xui8>
}

// -----

graph.func @channels(%x: tensor<3x4xi32> {graph.name = "x"}, %s: tensor<3xf32> {graph.name = "s"}, %z: tensor<3xi32> {graph.name = "z"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xf32> {graph.name = "w"}) {
  // expected-error @+1 {{(UniformDequantize): expected a scale and a zero point for each of the 4 channels}}
  %y, %yc = graph.node "UniformDequantize"(%x, %s, %z) {quantization_axis = 1 : i64} : (tensor<3x4xi32>, tensor<3xf32>, tensor<3xi32>) -> tensor<*xf32>
  // expected-error @+1 {{(UniformDequantize): quantization axis 2 is out of range for rank 2}}
  %w, %wc = graph.node "UniformDequantize"(%x, %s, %z) {quantization_axis = 2 : i64} : (tensor<3x4xi32>, tensor<3xf32>, tensor<3xi32>) -> tensor<*xf32>
  graph.return %y, %w : tensor<*xf32>, tensor<*xf32>
}

// -----

// A message that ends in the middle of a number, and one that names a dimension twice.
graph.func @dimension_numbers(%x: tensor<1x2x5xf32> {graph.name = "x"}, %w: tensor<3x2x2xi8> {graph.name = "w"}, %s: tensor<f32> {graph.name = "s"}, %z: tensor<i32> {graph.name = "z"}) -> (tensor<*xf32> {graph.name = "y"}, tensor<*xf32> {graph.name = "v"}, tensor<*xf32> {graph.name = "u"}) {
  // expected-error @+1 {{(UniformQuantizedConvolutionHybrid): dimension_numbers cannot be read}}
  %y, %yc = graph.node "UniformQuantizedConvolutionHybrid"(%x, %w, %s, %z) {padding = "VALID", dimension_numbers = "\08\80"} : (tensor<1x2x5xf32>, tensor<3x2x2xi8>, tensor<f32>, tensor<i32>) -> tensor<*xf32>
  // expected-error @+1 {{(UniformQuantizedConvolutionHybrid): dimension_numbers do not name each of the 3 dimensions once}}
  %v, %vc = graph.node "UniformQuantizedConvolutionHybrid"(%x, %w, %s, %z) {padding = "VALID", dimension_numbers = "\08\01"} : (tensor<1x2x5xf32>, tensor<3x2x2xi8>, tensor<f32>, tensor<i32>) -> tensor<*xf32>
  // expected-error @+1 {{(UniformQuantizedConvolutionHybrid): explicit_padding does not fit the padding 'EXPLICIT'}}
  %u, %uc = graph.node "UniformQuantizedConvolutionHybrid"(%x, %w, %s, %z) {padding = "EXPLICIT", explicit_padding = [1]} : (tensor<1x2x5xf32>, tensor<3x2x2xi8>, tensor<f32>, tensor<i32>) -> tensor<*xf32>
  graph.return %y, %v, %u : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
