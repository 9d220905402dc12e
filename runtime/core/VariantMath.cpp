#include "runtime/core/VariantMath.h"

#include "base/Float.h"

#include "absl/strings/str_cat.h"

#include <complex>

namespace lathe::rt {

namespace {

// Zeros and sums go down into variants by recursion.
constexpr int kMostNestedVariants = 1000;

/// How deep the calling thread is in variants that hold variants.
class Nested {
public:
  Nested() { ++depth; }
  ~Nested() { --depth; }
  absl::Status check() const {
    if (depth > kMostNestedVariants)
      return absl::InvalidArgumentError(absl::StrCat("variants nest more than ", kMostNestedVariants, " deep"));
    return absl::OkStatus();
  }

private:
  static thread_local int depth;
};
thread_local int Nested::depth = 0;

} // namespace

absl::StatusOr<Tensor> zerosLikeTensor(const Tensor &t) {
  Nested nested;
  if (absl::Status s = nested.check(); !s.ok())
    return s;
  Tensor out = Tensor::allocate(t.dtype(), t.dims());
  for (int64_t i = 0; t.dtype() == DType::Variant && i < t.numElements(); ++i) {
    const ObjectPtr &object = t.objects()[i];
    const auto *math = dynamic_cast<const VariantMath *>(object.get());
    if (!math)
      return absl::InvalidArgumentError(absl::StrCat("there are no zeros like a ", object ? object->describe() : "variant without a value"));
    auto zero = math->zerosLike();
    if (!zero.ok())
      return zero.status();
    out.mutableObjects()[i] = *std::move(zero);
  }
  return out;
}

namespace {

template <typename T>
void addAll(Tensor &out, const Tensor &a, const Tensor &b) {
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.data<T>()[i] = static_cast<T>(a.data<T>()[i] + b.data<T>()[i]);
}

} // namespace

absl::StatusOr<Tensor> addTensors(const Tensor &a, const Tensor &b) {
  Nested nested;
  if (absl::Status s = nested.check(); !s.ok())
    return s;
  if (a.dtype() != b.dtype() || a.dims() != b.dims())
    return absl::InvalidArgumentError(absl::StrCat("tensors of shapes ", dimsToString(a.dims()), " and ",
                                                   dimsToString(b.dims()), " cannot be added"));
  if (a.dtype() == DType::Variant) {
    Tensor out = Tensor::allocate(DType::Variant, a.dims());
    for (int64_t i = 0; i < a.numElements(); ++i) {
      const ObjectPtr &x = a.objects()[i], &y = b.objects()[i];
      const auto *math = dynamic_cast<const VariantMath *>(x.get());
      if (!math || !y)
        return absl::InvalidArgumentError(absl::StrCat("variants cannot be added: ", x ? x->describe() : "empty variant"));
      auto sum = math->plus(*y);
      if (!sum.ok())
        return sum.status();
      out.mutableObjects()[i] = *std::move(sum);
    }
    return out;
  }
  if (dtypeSize(a.dtype()) == 0)
    return absl::InvalidArgumentError(absl::StrCat("tensors of type ", dtypeName(a.dtype()), " cannot be added"));
  Tensor out = Tensor::allocate(a.dtype(), a.dims());
  switch (a.dtype()) {
  case DType::Float32:
    addAll<float>(out, a, b);
    break;
  case DType::Float64:
    addAll<double>(out, a, b);
    break;
  case DType::Complex64:
    addAll<std::complex<float>>(out, a, b);
    break;
  case DType::Complex128:
    addAll<std::complex<double>>(out, a, b);
    break;
  case DType::Int8:
  case DType::UInt8:
    addAll<uint8_t>(out, a, b);
    break;
  case DType::Int16:
  case DType::UInt16:
    addAll<uint16_t>(out, a, b);
    break;
  case DType::Int32:
  case DType::UInt32:
    addAll<uint32_t>(out, a, b);
    break;
  case DType::Int64:
  case DType::UInt64:
    addAll<uint64_t>(out, a, b);
    break;
  case DType::Float16:
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.data<uint16_t>()[i] = floatToHalf(halfToFloat(a.data<uint16_t>()[i]) + halfToFloat(b.data<uint16_t>()[i]));
    break;
  case DType::BFloat16:
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.data<uint16_t>()[i] =
          floatToBFloat16(bfloat16ToFloat(a.data<uint16_t>()[i]) + bfloat16ToFloat(b.data<uint16_t>()[i]));
    break;
  default:
    return absl::InvalidArgumentError(absl::StrCat("tensors of type ", dtypeName(a.dtype()), " cannot be added"));
  }
  return out;
}

} // namespace lathe::rt
