// Loops for each thread's rows give what the loop over all of them gives.

func.func @recurrent(%x: tensor<9x8x128xf32>, %h: tensor<8x128xf32>, %w: tensor<128x128xf32>, %scale: tensor<8xf32>, %bias: tensor<128xf32>)
    -> (tensor<i32>, tensor<8x128xf32>, tensor<9x8x128xf32>) {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %low = hlo.constant dense<-3.0> : tensor<f32>
  %high = hlo.constant dense<4.0> : tensor<f32>
  %n = hlo.constant dense<9> : tensor<i32>
  %none = hlo.constant dense<0.0> : tensor<9x8x128xf32>
  %r:3 = "hlo.while"(%zero, %h, %none) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>, %all: tensor<9x8x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>, %all: tensor<9x8x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %step = "hlo.dynamic_slice"(%x, %i, %zero, %zero) <{slice_sizes = array<i64: 1, 8, 128>}> : (tensor<9x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %in = hlo.reshape %step : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    %sum = hlo.add %d, %in : tensor<8x128xf32>
    %each = hlo.broadcast_in_dim %scale, dims = [0] : (tensor<8xf32>) -> tensor<8x128xf32>
    %scaled = hlo.multiply %sum, %each : tensor<8x128xf32>
    %shared = hlo.broadcast_in_dim %bias, dims = [1] : (tensor<128xf32>) -> tensor<8x128xf32>
    %biased = hlo.add %scaled, %shared : tensor<8x128xf32>
    %t = "hlo.clamp"(%low, %biased, %high) : (tensor<f32>, tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xf32>
    %row = hlo.reshape %t : (tensor<8x128xf32>) -> tensor<1x8x128xf32>
    %next = hlo.dynamic_update_slice %all, %row, %i, %zero, %zero : (tensor<9x8x128xf32>, tensor<1x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<9x8x128xf32>
    hlo.return %j, %t, %next : tensor<i32>, tensor<8x128xf32>, tensor<9x8x128xf32>
  }) : (tensor<i32>, tensor<8x128xf32>, tensor<9x8x128xf32>) -> (tensor<i32>, tensor<8x128xf32>, tensor<9x8x128xf32>)
  return %r#0, %r#1, %r#2 : tensor<i32>, tensor<8x128xf32>, tensor<9x8x128xf32>
}

func.func @inputs(%x: tensor<8x9x64xf32>, %u: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> tensor<8x128xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %low = hlo.constant dense<-3.0> : tensor<f32>
  %high = hlo.constant dense<4.0> : tensor<f32>
  %n = hlo.constant dense<9> : tensor<i32>
  %start = hlo.constant dense<0.0> : tensor<8x128xf32>
  %steps = hlo.transpose %x, dims = [1, 0, 2] : (tensor<8x9x64xf32>) -> tensor<9x8x64xf32>
  %flat = hlo.reshape %steps : (tensor<9x8x64xf32>) -> tensor<72x64xf32>
  %product = "hlo.dot_general"(%flat, %u) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<72x64xf32>, tensor<64x128xf32>) -> tensor<72x128xf32>
  %in = hlo.reshape %product : (tensor<72x128xf32>) -> tensor<9x8x128xf32>
  %r:2 = "hlo.while"(%zero, %start) ({
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<8x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %step = "hlo.dynamic_slice"(%in, %i, %zero, %zero) <{slice_sizes = array<i64: 1, 8, 128>}> : (tensor<9x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %row = hlo.reshape %step : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x128xf32>, tensor<128x128xf32>) -> tensor<8x128xf32>
    %sum = hlo.add %d, %row : tensor<8x128xf32>
    %small = "hlo.clamp"(%low, %sum, %high) : (tensor<f32>, tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xf32>
    hlo.return %j, %small : tensor<i32>, tensor<8x128xf32>
  }) : (tensor<i32>, tensor<8x128xf32>) -> (tensor<i32>, tensor<8x128xf32>)
  return %r#1 : tensor<8x128xf32>
}

func.func @equal(%x: tensor<6x9x64xf32>, %u: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> tensor<6x128xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %low = hlo.constant dense<-3.0> : tensor<f32>
  %high = hlo.constant dense<4.0> : tensor<f32>
  %n = hlo.constant dense<9> : tensor<i32>
  %start = hlo.constant dense<0.0> : tensor<6x128xf32>
  %steps = hlo.transpose %x, dims = [1, 0, 2] : (tensor<6x9x64xf32>) -> tensor<9x6x64xf32>
  %flat = hlo.reshape %steps : (tensor<9x6x64xf32>) -> tensor<54x64xf32>
  %product = "hlo.dot_general"(%flat, %u) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<54x64xf32>, tensor<64x128xf32>) -> tensor<54x128xf32>
  %in = hlo.reshape %product : (tensor<54x128xf32>) -> tensor<9x6x128xf32>
  %r:2 = "hlo.while"(%zero, %start) ({
  ^bb0(%i: tensor<i32>, %s: tensor<6x128xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<6x128xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %step = "hlo.dynamic_slice"(%in, %i, %zero, %zero) <{slice_sizes = array<i64: 1, 6, 128>}> : (tensor<9x6x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x6x128xf32>
    %row = hlo.reshape %step : (tensor<1x6x128xf32>) -> tensor<6x128xf32>
    %d = "hlo.dot_general"(%s, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<6x128xf32>, tensor<128x128xf32>) -> tensor<6x128xf32>
    %sum = hlo.add %d, %row : tensor<6x128xf32>
    %small = "hlo.clamp"(%low, %sum, %high) : (tensor<f32>, tensor<6x128xf32>, tensor<f32>) -> tensor<6x128xf32>
    hlo.return %j, %small : tensor<i32>, tensor<6x128xf32>
  }) : (tensor<i32>, tensor<6x128xf32>) -> (tensor<i32>, tensor<6x128xf32>)
  return %r#1 : tensor<6x128xf32>
}

func.func @columns(%h: tensor<256x8xf32>, %w: tensor<256x256xf32>) -> tensor<256x8xf32> {
  %zero = hlo.constant dense<0> : tensor<i32>
  %one = hlo.constant dense<1> : tensor<i32>
  %low = hlo.constant dense<-3.0> : tensor<f32>
  %high = hlo.constant dense<4.0> : tensor<f32>
  %n = hlo.constant dense<9> : tensor<i32>
  %none = hlo.constant dense<0.0> : tensor<f32>
  %r:2 = "hlo.while"(%zero, %h) ({
  ^bb0(%i: tensor<i32>, %s: tensor<256x8xf32>):
    %p = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    hlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<256x8xf32>):
    %j = hlo.add %i, %one : tensor<i32>
    %rows = hlo.transpose %s, dims = [1, 0] : (tensor<256x8xf32>) -> tensor<8x256xf32>
    %d = "hlo.dot_general"(%rows, %w) {dot_dimension_numbers = #hlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>
    %t = hlo.transpose %d, dims = [1, 0] : (tensor<8x256xf32>) -> tensor<256x8xf32>
    %total = "hlo.reduce"(%t, %none) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = hlo.add %a, %b : tensor<f32>
      hlo.return %c : tensor<f32>
    }) : (tensor<256x8xf32>, tensor<f32>) -> tensor<8xf32>
    %wide = hlo.broadcast_in_dim %total, dims = [1] : (tensor<8xf32>) -> tensor<256x8xf32>
    %less = hlo.subtract %t, %wide : tensor<256x8xf32>
    %share = "hlo.clamp"(%low, %less, %high) : (tensor<f32>, tensor<256x8xf32>, tensor<f32>) -> tensor<256x8xf32>
    hlo.return %j, %share : tensor<i32>, tensor<256x8xf32>
  }) : (tensor<i32>, tensor<256x8xf32>) -> (tensor<i32>, tensor<256x8xf32>)
  return %r#1 : tensor<256x8xf32>
}
