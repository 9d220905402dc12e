// RUN: lathe-opt %s --kernel-set-target="features=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx2,+avx,+fma" --kernel-pad-windows --split-input-file | FileCheck %s --enable-var-scope

// The border becomes padding of the convolution, and its number an attribute.
// CHECK-LABEL: @border
// CHECK-SAME: (%[[X:.*]]: tensor<1x9x9x32xi8>
// CHECK-NOT: kernel.loop
// CHECK: kernel.depthwise_conv(%[[X]], %{{.*}}) {{{.*}}kernel.pad_value = 3 : i64{{.*}}padding = array<i64: 1, 2, 1, 0>
// CHECK-SAME: (tensor<1x9x9x32xi8>, tensor<3x3x1x32xi8>) -> tensor<1x10x8x32xi8>
func.func @border(%x: tensor<1x9x9x32xi8>, %f: tensor<3x3x1x32xi8>) -> tensor<1x10x8x32xi8> {
  %0 = kernel.loop(%x) : (tensor<1x9x9x32xi8>) -> tensor<1x12x10x32xi8> {
  ^bb0(%a: tensor<1x9x9x32xi8>):
    %z = hlo.constant dense<3> : tensor<i8>
    %p = hlo.pad %a, %z, low = [0, 1, 1, 0], high = [0, 2, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x9x9x32xi8>, tensor<i8>) -> tensor<1x12x10x32xi8>
    kernel.yield %p : tensor<1x12x10x32xi8>
  }
  %1 = kernel.depthwise_conv(%0, %f) {groups = 32 : i64, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x12x10x32xi8>, tensor<3x3x1x32xi8>) -> tensor<1x10x8x32xi8> {
  ^bb0(%acc: tensor<1x10x8x32xi32>):
    %l = hlo.constant dense<-128> : tensor<1x10x8x32xi32>
    %h = hlo.constant dense<127> : tensor<1x10x8x32xi32>
    %m = hlo.maximum %acc, %l : tensor<1x10x8x32xi32>
    %n = hlo.minimum %m, %h : tensor<1x10x8x32xi32>
    %y = hlo.convert %n : (tensor<1x10x8x32xi32>) -> tensor<1x10x8x32xi8>
    kernel.yield %y : tensor<1x10x8x32xi8>
  }
  return %1 : tensor<1x10x8x32xi8>
}

// -----

// So it does for any number of images, where limits are numbers repeated.
#in = affine_map<()[s0] -> (s0, 9, 9, 32)>
#padded = affine_map<()[s0] -> (s0, 11, 11, 32)>
// CHECK-LABEL: @any_images
// CHECK-NOT: kernel.loop
// CHECK: kernel.pad_value = -5 : i64
func.func @any_images(%x: tensor<?x9x9x32xi8, #in>, %f: tensor<3x3x1x32xi8>) -> tensor<?x9x9x32xi8, #in> {
  %0 = kernel.loop(%x) : (tensor<?x9x9x32xi8, #in>) -> tensor<?x11x11x32xi8, #padded> {
  ^bb0(%a: tensor<?x9x9x32xi8, #in>):
    %z = hlo.constant dense<-5> : tensor<i8>
    %p = hlo.pad %a, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<?x9x9x32xi8, #in>, tensor<i8>) -> tensor<?x11x11x32xi8, #padded>
    kernel.yield %p : tensor<?x11x11x32xi8, #padded>
  }
  %1 = kernel.depthwise_conv(%0, %f) {groups = 32 : i64, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<?x11x11x32xi8, #padded>, tensor<3x3x1x32xi8>) -> tensor<?x9x9x32xi8, #in> {
  ^bb0(%acc: tensor<?x9x9x32xi32, #in>):
    %low = hlo.constant dense<-128> : tensor<i32>
    %high = hlo.constant dense<127> : tensor<i32>
    %l = hlo.broadcast_in_dim %low, dims = [] : (tensor<i32>) -> tensor<?x9x9x32xi32, #in>
    %h = hlo.broadcast_in_dim %high, dims = [] : (tensor<i32>) -> tensor<?x9x9x32xi32, #in>
    %m = hlo.maximum %acc, %l : tensor<?x9x9x32xi32, #in>
    %n = hlo.minimum %m, %h : tensor<?x9x9x32xi32, #in>
    %y = hlo.convert %n : (tensor<?x9x9x32xi32, #in>) -> tensor<?x9x9x32xi8, #in>
    kernel.yield %y : tensor<?x9x9x32xi8, #in>
  }
  return %1 : tensor<?x9x9x32xi8, #in>
}

// -----

// A packed convolution of bytes copies rows of its image, with any border.
// CHECK-LABEL: @dense
// CHECK-SAME: (%[[X:.*]]: tensor<1x9x9x32xi8>
// CHECK-NOT: kernel.loop
// CHECK: kernel.conv(%[[X]], %{{.*}}) {kernel.pad_value = -7 : i64{{.*}}padding = array<i64: 1, 1, 1, 1>
func.func @dense(%x: tensor<1x9x9x32xi8>, %f: tensor<1x1x292x16xi8>) -> tensor<1x9x9x16xi32> {
  %0 = kernel.loop(%x) : (tensor<1x9x9x32xi8>) -> tensor<1x11x11x32xi8> {
  ^bb0(%a: tensor<1x9x9x32xi8>):
    %z = hlo.constant dense<-7> : tensor<i8>
    %p = hlo.pad %a, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x9x9x32xi8>, tensor<i8>) -> tensor<1x11x11x32xi8>
    kernel.yield %p : tensor<1x11x11x32xi8>
  }
  %1 = kernel.conv(%0, %f) {kernel_shape = array<i64: 3, 3>, layout = #cpu.panels<columns = 16, group = 4>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x11x11x32xi8>, tensor<1x1x292x16xi8>) -> tensor<1x9x9x16xi32> {
  ^bb0(%acc: tensor<1x9x9x16xi32>):
    kernel.yield %acc : tensor<1x9x9x16xi32>
  }
  return %1 : tensor<1x9x9x16xi32>
}

// -----

// A convolution that is not packed, or with gaps in its image, keeps the copy: its gaps are zeros.
// CHECK-LABEL: @gaps
// CHECK: kernel.loop
// CHECK: kernel.conv
// CHECK-NOT: kernel.pad_value
func.func @gaps(%x: tensor<1x9x9x32xi8>, %f: tensor<1x1x292x16xi8>) -> tensor<1x19x19x16xi32> {
  %0 = kernel.loop(%x) : (tensor<1x9x9x32xi8>) -> tensor<1x11x11x32xi8> {
  ^bb0(%a: tensor<1x9x9x32xi8>):
    %z = hlo.constant dense<-7> : tensor<i8>
    %p = hlo.pad %a, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x9x9x32xi8>, tensor<i8>) -> tensor<1x11x11x32xi8>
    kernel.yield %p : tensor<1x11x11x32xi8>
  }
  %1 = kernel.conv(%0, %f) {kernel_shape = array<i64: 3, 3>, layout = #cpu.panels<columns = 16, group = 4>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x11x11x32xi8>, tensor<1x1x292x16xi8>) -> tensor<1x19x19x16xi32> {
  ^bb0(%acc: tensor<1x19x19x16xi32>):
    kernel.yield %acc : tensor<1x19x19x16xi32>
  }
  return %1 : tensor<1x19x19x16xi32>
}

// -----

// A border of floats stays: no kernel of theirs knows the number.
// CHECK-LABEL: @floats
// CHECK: kernel.loop
// CHECK-NOT: kernel.pad_value
func.func @floats(%x: tensor<1x9x9x32xf32>, %f: tensor<3x3x1x32xf32>) -> tensor<1x9x9x32xf32> {
  %0 = kernel.loop(%x) : (tensor<1x9x9x32xf32>) -> tensor<1x11x11x32xf32> {
  ^bb0(%a: tensor<1x9x9x32xf32>):
    %z = hlo.constant dense<3.0> : tensor<f32>
    %p = hlo.pad %a, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x9x9x32xf32>, tensor<f32>) -> tensor<1x11x11x32xf32>
    kernel.yield %p : tensor<1x11x11x32xf32>
  }
  %1 = kernel.depthwise_conv(%0, %f) {groups = 32 : i64, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x11x11x32xf32>, tensor<3x3x1x32xf32>) -> tensor<1x9x9x32xf32> {
  ^bb0(%acc: tensor<1x9x9x32xf32>):
    kernel.yield %acc : tensor<1x9x9x32xf32>
  }
  return %1 : tensor<1x9x9x32xf32>
}
