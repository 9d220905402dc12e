// nvptx-split-ffts: dimensions one after the other, long lines as matrices; what stays as it is.
// RUN: lathe-opt %s --nvptx-split-ffts | FileCheck %s --enable-var-scope

// CHECK-LABEL: @dims
func.func @dims(%x: tensor<3x4x6xcomplex<f32>>) -> tensor<3x4x6xcomplex<f32>> {
  // CHECK: %[[ROWS:.*]] = hlo.reshape %arg0 : {{.*}} -> tensor<12x6xcomplex<f32>>
  // CHECK: "hlo.fft"(%[[ROWS]]) <{fft_length = array<i64: 6>, fft_type = #hlo<fft_type FFT>}>
  // CHECK: hlo.transpose %{{.*}}, dims = [0, 2, 1] : (tensor<3x4x6xcomplex<f32>>) -> tensor<3x6x4xcomplex<f32>>
  // CHECK: "hlo.fft"(%{{.*}}) <{fft_length = array<i64: 4>, fft_type = #hlo<fft_type FFT>}> : (tensor<18x4xcomplex<f32>>)
  // CHECK: hlo.transpose %{{.*}}, dims = [0, 2, 1] : (tensor<3x6x4xcomplex<f32>>) -> tensor<3x4x6xcomplex<f32>>
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 4, 6>}> : (tensor<3x4x6xcomplex<f32>>) -> tensor<3x4x6xcomplex<f32>>
  return %0 : tensor<3x4x6xcomplex<f32>>
}

// A half spectrum becomes real last.
// CHECK-LABEL: @real
func.func @real(%x: tensor<2x8x9xcomplex<f64>>) -> tensor<2x8x16xf64> {
  // CHECK: "hlo.fft"(%{{.*}}) <{fft_length = array<i64: 8>, fft_type = #hlo<fft_type IFFT>}> : (tensor<18x8xcomplex<f64>>)
  // CHECK: "hlo.fft"(%{{.*}}) <{fft_length = array<i64: 16>, fft_type = #hlo<fft_type IRFFT>}> : (tensor<16x9xcomplex<f64>>) -> tensor<16x16xf64>
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type IRFFT>, fft_length = array<i64: 8, 16>}> : (tensor<2x8x9xcomplex<f64>>) -> tensor<2x8x16xf64>
  return %0 : tensor<2x8x16xf64>
}

// CHECK-LABEL: @long
func.func @long(%x: tensor<2x8192xcomplex<f32>>) -> tensor<2x8192xcomplex<f32>> {
  // CHECK: hlo.transpose %{{.*}} : (tensor<2x64x128xcomplex<f32>>) -> tensor<2x128x64xcomplex<f32>>
  // CHECK: "hlo.fft"(%{{.*}}) <{fft_length = array<i64: 64>, fft_type = #hlo<fft_type IFFT>}> : (tensor<256x64xcomplex<f32>>)
  // CHECK: %[[ROOTS:.*]] = hlo.constant dense_resource{{.*}} : tensor<128x64xcomplex<f32>>
  // CHECK: kernel.loop(%{{.*}}, %[[ROOTS]])
  // CHECK: hlo.multiply
  // CHECK: hlo.transpose %{{.*}} : (tensor<2x128x64xcomplex<f32>>) -> tensor<2x64x128xcomplex<f32>>
  // CHECK: "hlo.fft"(%{{.*}}) <{fft_length = array<i64: 128>, fft_type = #hlo<fft_type IFFT>}> : (tensor<128x128xcomplex<f32>>)
  // CHECK: hlo.transpose %{{.*}} : (tensor<2x64x128xcomplex<f32>>) -> tensor<2x128x64xcomplex<f32>>
  // CHECK: hlo.reshape {{.*}} -> tensor<2x8192xcomplex<f32>>
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type IFFT>, fft_length = array<i64: 8192>}> : (tensor<2x8192xcomplex<f32>>) -> tensor<2x8192xcomplex<f32>>
  return %0 : tensor<2x8192xcomplex<f32>>
}

// CHECK-LABEL: @long_real
func.func @long_real(%x: tensor<1x16384xf32>) -> tensor<1x8193xcomplex<f32>> {
  // CHECK: hlo.complex
  // CHECK-COUNT-2: fft_length = array<i64: 128>, fft_type = #hlo<fft_type FFT>
  // CHECK: hlo.slice {{.*}}limit_indices = array<i64: 1, 8193>
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type RFFT>, fft_length = array<i64: 16384>}> : (tensor<1x16384xf32>) -> tensor<1x8193xcomplex<f32>>
  return %0 : tensor<1x8193xcomplex<f32>>
}

// CHECK-LABEL: @fits
func.func @fits(%x: tensor<2x2048xcomplex<f32>>) -> tensor<2x2048xcomplex<f32>> {
  // CHECK-NEXT: "hlo.fft"(%arg0)
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 2048>}> : (tensor<2x2048xcomplex<f32>>) -> tensor<2x2048xcomplex<f32>>
  return %0 : tensor<2x2048xcomplex<f32>>
}

// CHECK-LABEL: @prime
func.func @prime(%x: tensor<10007xcomplex<f32>>) -> tensor<10007xcomplex<f32>> {
  // CHECK-NEXT: "hlo.fft"(%arg0)
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 10007>}> : (tensor<10007xcomplex<f32>>) -> tensor<10007xcomplex<f32>>
  return %0 : tensor<10007xcomplex<f32>>
}

// CHECK-LABEL: @open
func.func @open(%x: tensor<?x4x6xcomplex<f32>>) -> tensor<?x4x6xcomplex<f32>> {
  // CHECK-NEXT: "hlo.fft"(%arg0)
  %0 = "hlo.fft"(%x) <{fft_type = #hlo<fft_type FFT>, fft_length = array<i64: 4, 6>}> : (tensor<?x4x6xcomplex<f32>>) -> tensor<?x4x6xcomplex<f32>>
  return %0 : tensor<?x4x6xcomplex<f32>>
}
