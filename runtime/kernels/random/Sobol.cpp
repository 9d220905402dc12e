// SobolSample: points of Sobol's sequence with Joe and Kuo's direction numbers (new-joe-kuo-6.21201), the first 1111
// dimensions of the 21200 that TensorFlow has.
#include "runtime/kernels/Common.h"

#include <array>
#include <string_view>

namespace lathe::rt {
namespace {

constexpr int kBits = 32;
constexpr int kDims = 1111;

/// The initial direction numbers m_1 ... m_s of dimensions 2 and up, as (m - 1) / 2 in one base-64 digit, or two from m_8 on.
constexpr char kInitial[] =
#include "runtime/kernels/random/SobolTable.inc"
    ;

using Directions = std::array<uint32_t, kBits>;

/// a * b modulo the polynomial p of degree s over two elements.
uint32_t multiply(uint32_t a, uint32_t b, uint32_t p, int s) {
  uint32_t product = 0;
  for (; b; b >>= 1) {
    if (b & 1)
      product ^= a;
    a <<= 1;
    if (a >> s & 1)
      a ^= p;
  }
  return product;
}

/// x^e modulo p.
uint32_t power(uint32_t e, uint32_t p, int s) {
  uint32_t result = 1, x = s > 1 ? 2 : 2 ^ p;
  for (; e; e >>= 1) {
    if (e & 1)
      result = multiply(result, x, p, s);
    x = multiply(x, x, p, s);
  }
  return result;
}

/// Whether x generates all 2^s - 1 nonzero residues.
bool isPrimitive(uint32_t p, int s) {
  uint32_t order = (1u << s) - 1;
  if (power(order, p, s) != 1)
    return false;
  uint32_t rest = order;
  for (uint32_t q = 2; q <= rest; ++q) {
    if (rest % q)
      continue;
    if (order > 1 && power(order / q, p, s) == 1)
      return false;
    while (rest % q == 0)
      rest /= q;
  }
  return true;
}

uint32_t digit(const char *&at) {
  char c = *at++;
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'A' && c <= 'Z')
    return c - 'A' + 10;
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 36;
  return c == '-' ? 62 : 63;
}

/// The direction numbers of all dimensions, made on first use.
const std::vector<Directions> &directions() {
  static const auto *all = [] {
    auto *made = new std::vector<Directions>(1);
    for (int k = 0; k < kBits; ++k)
      (*made)[0][k] = 1u << (kBits - 1 - k);
    const char *at = kInitial;
    // the polynomials by degree, then by their inner coefficients
    for (int s = 1; made->size() < kDims; ++s)
      for (uint32_t inner = 0; inner < 1u << (s - 1) && made->size() < kDims; ++inner) {
        uint32_t p = 1u << s | inner << 1 | 1;
        if (!isPrimitive(p, s))
          continue;
        Directions v;
        for (int k = 0; k < s; ++k) {
          uint32_t half = digit(at);
          if (k > 6)
            half = half << 6 | digit(at);
          v[k] = (2 * half + 1) << (kBits - 1 - k);
        }
        for (int k = s; k < kBits; ++k) {
          v[k] = v[k - s] ^ v[k - s] >> s;
          for (int j = 1; j < s; ++j)
            if (inner >> (s - 1 - j) & 1)
              v[k] ^= v[k - j];
        }
        made->push_back(v);
      }
    return made;
  }();
  return *all;
}

absl::Status sobolSample(KernelContext &context) {
  LATHE_TRY_VALUE(dims, oneInt(context.input(0), "dim"));
  LATHE_TRY_VALUE(count, oneInt(context.input(1), "num_results"));
  LATHE_TRY_VALUE(skip, oneInt(context.input(2), "skip"));
  if (dims < 1 || count < 1 || skip < 0)
    return invalid("dim and num_results must be at least one, skip non-negative: ", dims, ", ", count, ", ", skip);
  if (dims > kDims)
    return absl::UnimplementedError(absl::StrCat("dim ", dims, " is above the ", kDims, " dimensions of the table"));
  if (count + skip >= INT64_C(1) << 31)
    return invalid("num_results+skip must be less than 2147483648");
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {count, dims}));
  const std::vector<Directions> &all = directions();
  for (int64_t d = 0; d < dims; ++d)
    for (int64_t i = 0; i < count; ++i) {
      // the point of number n is the sum of the directions at the bits of its Gray code
      uint64_t n = static_cast<uint64_t>(skip + i + 1), gray = n ^ n >> 1;
      uint32_t point = 0;
      for (int k = 0; gray >> k; ++k)
        if (gray >> k & 1)
          point ^= all[d][k];
      double value = point * 0x1p-32;
      if (out.dtype() == DType::Float64)
        out.data<double>()[i * dims + d] = value;
      else
        out.data<float>()[i * dims + d] = static_cast<float>(value);
    }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SobolSample, sobolSample);

} // namespace
} // namespace lathe::rt
