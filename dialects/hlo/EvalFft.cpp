// Fourier transforms of the evaluator: radix 2 where the length allows, else by Bluestein's convolution; in double.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cmath>

using namespace mlir;

namespace lathe::hlo::eval {

static void fftPowerOfTwo(std::vector<Complex> &x, bool inverse) {
  size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i < j)
      std::swap(x[i], x[j]);
  }
  std::vector<Complex> roots(n / 2);
  for (size_t k = 0; k < n / 2; ++k)
    roots[k] = std::polar(1.0, (inverse ? 2 : -2) * M_PI * static_cast<double>(k) / static_cast<double>(n));
  for (size_t length = 2; length <= n; length <<= 1)
    for (size_t begin = 0; begin < n; begin += length)
      for (size_t k = 0; k < length / 2; ++k) {
        Complex a = x[begin + k], b = x[begin + k + length / 2] * roots[k * (n / length)];
        x[begin + k] = a + b;
        x[begin + k + length / 2] = a - b;
      }
}

// Unscaled transform of any length.
static void fft(std::vector<Complex> &x, bool inverse) {
  size_t n = x.size();
  if (n <= 1)
    return;
  if ((n & (n - 1)) == 0)
    return fftPowerOfTwo(x, inverse);
  // x_k = w_k sum (x_j w_j) conj(w_(k-j)) with w_k = exp(-i pi k^2 / n)
  std::vector<Complex> chirp(n);
  for (size_t k = 0; k < n; ++k) {
    size_t square = static_cast<size_t>((static_cast<unsigned __int128>(k) * k) % (2 * n));
    chirp[k] = std::polar(1.0, (inverse ? 1 : -1) * M_PI * static_cast<double>(square) / static_cast<double>(n));
  }
  size_t m = 1;
  while (m < 2 * n - 1)
    m <<= 1;
  std::vector<Complex> a(m), b(m);
  for (size_t k = 0; k < n; ++k)
    a[k] = x[k] * chirp[k];
  b[0] = std::conj(chirp[0]);
  for (size_t k = 1; k < n; ++k)
    b[k] = b[m - k] = std::conj(chirp[k]);
  fftPowerOfTwo(a, false);
  fftPowerOfTwo(b, false);
  for (size_t k = 0; k < m; ++k)
    a[k] *= b[k];
  fftPowerOfTwo(a, true);
  for (size_t k = 0; k < n; ++k)
    x[k] = a[k] / static_cast<double>(m) * chirp[k];
}

// Transforms along dimension `axis` of values with the given sizes.
static void fftAlong(std::vector<Complex> &values, const Dims &dims, int64_t axis, bool inverse) {
  int64_t n = dims[axis], stride = stridesOf(dims)[axis];
  int64_t lines = n ? static_cast<int64_t>(values.size()) / n : 0;
  std::vector<Complex> line(lines ? n : 0);
  for (int64_t l = 0; l < lines; ++l) {
    int64_t base = l / stride * stride * n + l % stride;
    for (int64_t k = 0; k < n; ++k)
      line[k] = values[base + k * stride];
    fft(line, inverse);
    for (int64_t k = 0; k < n; ++k)
      values[base + k * stride] = inverse ? line[k] / static_cast<double>(n) : line[k];
  }
}

static LogicalResult evalFft(Evaluation &e, FftOp op, ArrayRef<Tensor> in, Tensors &out) {
  FftType kind = op.getFftType();
  ArrayRef<int64_t> length = op.getFftLength();
  Dims dims = in[0].dims(), full = dims;
  int64_t rank = dims.size(), n = length.size();
  for (int64_t i = 0; i < n; ++i) {
    bool half = kind == FftType::IRFFT && i == n - 1;
    int64_t expected = half ? (length[i] == 0 ? 0 : length[i] / 2 + 1) : length[i];
    if (dims[rank - n + i] != expected)
      return e.fail(op, "sizes do not fit fft_length at run time");
    full[rank - n + i] = length[i];
  }
  if (failed(e.work(op, static_cast<double>(product(full)) * 64)))
    return failure();
  bool inverse = kind == FftType::IFFT || kind == FftType::IRFFT;
  std::vector<Complex> values;
  if (kind == FftType::RFFT) {
    auto real = loadFloats(in[0]);
    values.assign(real.begin(), real.end());
  } else {
    values = loadComplexes(in[0]);
  }
  Dims resultDims = full;
  if (kind == FftType::IRFFT) {
    // the other dimensions first, then the missing half of each line is the conjugate of the one given
    for (int64_t i = 0; i < n - 1; ++i)
      fftAlong(values, dims, rank - n + i, true);
    int64_t half = dims.back(), size = length[n - 1], lines = half ? static_cast<int64_t>(values.size()) / half : 0;
    std::vector<Complex> whole(lines * size);
    for (int64_t l = 0; l < lines; ++l)
      for (int64_t k = 0; k < size; ++k)
        whole[l * size + k] = k < half ? values[l * half + k] : std::conj(values[l * half + size - k]);
    values = std::move(whole);
    // what makes the result real: no imaginary part at 0 and at half the length
    for (int64_t l = 0; l < lines; ++l) {
      values[l * size] = values[l * size].real();
      if (size % 2 == 0)
        values[l * size + size / 2] = values[l * size + size / 2].real();
    }
    fftAlong(values, full, rank - 1, true);
  } else {
    for (int64_t i = 0; i < n; ++i)
      fftAlong(values, full, rank - n + i, inverse);
  }
  if (kind == FftType::RFFT) {
    int64_t size = length[n - 1], half = size == 0 ? 0 : size / 2 + 1, lines = size ? static_cast<int64_t>(values.size()) / size : 0;
    std::vector<Complex> kept(lines * half);
    for (int64_t l = 0; l < lines; ++l)
      for (int64_t k = 0; k < half; ++k)
        kept[l * half + k] = values[l * size + k];
    values = std::move(kept);
    resultDims.back() = half;
  }
  Tensor result;
  DType type = toDType(elementType(op.getResult()));
  if (failed(e.allocate(op, type, resultDims, result)))
    return failure();
  if (isComplex(type)) {
    storeComplexes(type, values.data(), values.size(), result.data());
  } else {
    std::vector<double> real(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      real[i] = values[i].real();
    storeFloats(type, real.data(), real.size(), result.data());
  }
  out.push_back(result);
  return success();
}

void registerFft(HandlerTable &table) { add<FftOp, evalFft>(table); }

} // namespace lathe::hlo::eval
