// RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal, Multinomial and RandomCrop: every execution goes on
// in the generator's stream where the one before it stopped, and passes over as many blocks as TensorFlow sets aside.
#include "runtime/kernels/random/Fill.h"

#include <cstring>
#include <limits>

namespace lathe::rt {
namespace {

/// RandomUniform, RandomStandardNormal, TruncatedNormal.
class Floats : public HostKernel {
public:
  explicit Floats(KernelInit &init) : generator(init), op(init.node().op) {}
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    int64_t n = out.numElements();
    Philox mine = generator.reserve(static_cast<uint64_t>(n) * kReserved);
    return withType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      if constexpr (isReal<T>) {
        T *data = out.template data<T>();
        if (op == "RandomUniform")
          fillUniform(data, n, mine);
        else if (op == "RandomStandardNormal")
          fillNormal(data, n, mine);
        else
          fillTruncated(data, n, mine);
        return absl::OkStatus();
      } else {
        return invalid("no random numbers of type ", dtypeName(out.dtype()));
      }
    });
  }

private:
  StatefulGenerator generator;
  const std::string op;
};
LATHE_HOST_KERNEL(RandomUniform, Floats);
LATHE_HOST_KERNEL(RandomStandardNormal, Floats);
LATHE_HOST_KERNEL(TruncatedNormal, Floats);

class Integers : public HostKernel {
public:
  explicit Integers(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor low = context.input(1), high = context.input(2);
    if (low.rank() != 0)
      return invalid("minval must be 0-D, got shape ", dimsToString(low.dims()));
    if (high.rank() != 0)
      return invalid("maxval must be 0-D, got shape ", dimsToString(high.dims()));
    LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    int64_t n = out.numElements(), from = intAt(low, 0), to = intAt(high, 0);
    if (n == 0)
      return absl::OkStatus();
    if (from >= to)
      return invalid("Need minval < maxval, got ", from, " >= ", to);
    Philox g = generator.reserve(static_cast<uint64_t>(n) * kReserved);
    return withIndexType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      fillIntegers(out.template data<T>(), n, g, static_cast<uint64_t>(from), static_cast<uint64_t>(to));
      return absl::OkStatus();
    });
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(RandomUniformInt, Integers);

/// Classes drawn from unnormalised log probabilities.
class Multinomial : public HostKernel {
public:
  explicit Multinomial(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor logits = context.input(0), number = context.input(1);
    if (logits.rank() != 2)
      return invalid("logits should be a matrix, got shape ", dimsToString(logits.dims()));
    if (number.rank() != 0)
      return invalid("num_samples should be a scalar, got shape ", dimsToString(number.dims()));
    int64_t samples = intAt(number, 0), rows = logits.dim(0), classes = logits.dim(1);
    if (samples < 0)
      return invalid("num_samples should be non-negative, got ", samples);
    if (classes == 0)
      return invalid("num_classes should be positive, got ", classes);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {rows, samples}));
    if (out.numElements() == 0)
      return absl::OkStatus();
    // a sample takes two numbers; those of a row are set aside by fours
    uint64_t aside = static_cast<uint64_t>(rows) * static_cast<uint64_t>((samples + 3) / 4 * 8);
    Numbers numbers(generator.reserve(aside * kReserved));
    std::vector<double> sums(static_cast<size_t>(classes));
    return withIndexType(out.dtype(), [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      T *to = out.template data<T>();
      for (int64_t r = 0; r < rows; ++r) {
        double most = lowestOf(logits.dtype()), total = 0;
        for (int64_t j = 0; j < classes; ++j)
          if (double v = realAt(logits, r * classes + j); std::isfinite(v))
            most = std::max(most, v);
        for (int64_t j = 0; j < classes; ++j) {
          if (double v = realAt(logits, r * classes + j); std::isfinite(v))
            total += std::exp(v - most);
          sums[j] = total;
        }
        for (int64_t s = 0; s < samples; ++s) {
          double find = numbers.unit() * total;
          *to++ = static_cast<T>(std::upper_bound(sums.begin(), sums.end(), find) - sums.begin());
        }
      }
      return absl::OkStatus();
    });
  }

private:
  static double lowestOf(DType type) {
    return type == DType::Float64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
  }
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(Multinomial, Multinomial);

/// A window of an image at a random place.
class Crop : public HostKernel {
public:
  explicit Crop(KernelInit &init) : generator(init) {}
  absl::Status compute(KernelContext &context) override {
    Tensor image = context.input(0), size = context.input(1);
    if (image.rank() != 3)
      return invalid("input must be 3-dimensional, got shape ", dimsToString(image.dims()));
    if (size.rank() != 1)
      return invalid("shape_t must be 1-dimensional, got shape ", dimsToString(size.dims()));
    if (size.numElements() != 2)
      return invalid("shape_t must have two elements, got shape ", dimsToString(size.dims()));
    int64_t height = intAt(size, 0), width = intAt(size, 1);
    if (height < 0 || width < 0)
      return invalid("the size of a crop must not be negative: ", height, ", ", width);
    if (image.dim(1) < width)
      return absl::FailedPreconditionError(
          absl::StrCat("width must be >= target_width: width = ", image.dim(1), ", target_width = ", width));
    if (image.dim(0) < height)
      return absl::FailedPreconditionError(
          absl::StrCat("height must be >= target_height: height = ", image.dim(0), ", target_height = ", height));
    Numbers numbers(generator.reserveNumbers(2));
    auto place = [&](int64_t room) {
      return room > 0 ? numbers.next() % static_cast<uint32_t>(room + 1) : 0;
    };
    int64_t left = place(image.dim(1) - width), top = place(image.dim(0) - height);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {height, width, image.dim(2)}));
    size_t pixel = static_cast<size_t>(image.dim(2)) * dtypeSize(image.dtype()), row = pixel * static_cast<size_t>(width);
    const char *from = static_cast<const char *>(image.data());
    char *to = static_cast<char *>(out.data());
    for (int64_t y = 0; y < height && row; ++y)
      std::memcpy(to + static_cast<size_t>(y) * row, from + static_cast<size_t>((top + y) * image.dim(1) + left) * pixel, row);
    return absl::OkStatus();
  }

private:
  StatefulGenerator generator;
};
LATHE_HOST_KERNEL(RandomCrop, Crop);

} // namespace
} // namespace lathe::rt
