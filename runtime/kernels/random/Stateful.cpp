// StatefulUniform and its kin, RngSkip: random numbers of generators whose state a variable holds. NonDeterministicInts.
#include "runtime/kernels/random/Fill.h"
#include "runtime/kernels/random/Held.h"
#include "runtime/device.h"

namespace lathe::rt {

absl::Status checkAlgorithm(const Tensor &algorithm) {
  if (algorithm.rank() != 0)
    return invalid("the algorithm must be 0-D, got shape ", dimsToString(algorithm.dims()));
  LATHE_TRY_VALUE(id, oneInt(algorithm, "algorithm"));
  if (id == 2)
    return absl::UnimplementedError("the ThreeFry algorithm has no form here");
  if (id != 1 && id != 3)
    return invalid("Unsupported algorithm id: ", id);
  return absl::OkStatus();
}

absl::StatusOr<Philox> takeGenerator(KernelContext &context, uint64_t numbers, bool hasAlgorithm) {
  LATHE_TRY_VALUE(variable, context.resource<Variable>(0));
  std::lock_guard<std::mutex> lock(variable->mutex);
  if (!variable->value.valid())
    return absl::FailedPreconditionError("the generator's state is not initialised");
  if (variable->dtype != DType::Int64 || variable->value.dtype() != DType::Int64 || variable->value.rank() != 1 ||
      variable->value.numElements() < 3 + hasAlgorithm)
    return invalid("RNG state must be a vector of at least ", 3 + hasAlgorithm, " int64, not ", dtypeName(variable->value.dtype()), " of shape ",
                   dimsToString(variable->value.dims()));
  LATHE_TRY(valueToHost(*variable));
  int64_t *state = variable->writable().data<int64_t>();
  if (hasAlgorithm && *state++ != 1)
    return invalid("Unsupported algorithm id: ", state[-1]);
  auto half = [&](int word, int i) { return static_cast<uint32_t>(static_cast<uint64_t>(state[word]) >> (32 * i)); };
  Philox mine({half(2, 0), half(2, 1)}, {half(0, 0), half(0, 1), half(1, 0), half(1, 1)});
  // TensorFlow adds by 32 bits and loses the carry into an upper half that is all ones: so a step back ends where it does
  const uint64_t blocks = numbers * 256, low = static_cast<uint64_t>(state[0]);
  const bool lowCarry = (low & 0xffffffffu) + (blocks & 0xffffffffu) > 0xffffffffu;
  const bool lost = lowCarry && blocks >> 32 == 0xffffffffu;
  state[0] = static_cast<int64_t>(low + blocks);
  state[1] = static_cast<int64_t>(static_cast<uint64_t>(state[1]) + (!lost && low + blocks < blocks));
  return mine;
}

namespace {

/// Calls fn(T()) for integers of 32 and 64 bits.
template <typename Fn>
absl::Status withWideInteger(DType type, Fn fn) {
  return withType(type, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && sizeof(T) >= 4)
      return fn(zero);
    else
      return absl::UnimplementedError(absl::StrCat("no random integers of type ", dtypeName(type)));
  });
}

absl::Status skip(KernelContext &context) {
  Tensor delta = context.input(2);
  LATHE_TRY(checkAlgorithm(context.input(1)));
  if (delta.rank() != 0)
    return invalid("delta must be 0-D, got shape ", dimsToString(delta.dims()));
  LATHE_TRY_VALUE(numbers, oneInt(delta, "delta"));
  return takeGenerator(context, static_cast<uint64_t>(numbers)).status();
}
LATHE_HOST_FUNCTION(RngSkip, skip);

/// The output of the shape in the last input but bounds, and the generator for its elements.
absl::StatusOr<std::pair<Tensor, Philox>> begin(KernelContext &context) {
  const bool isFirstForm = context.node->op == "StatefulStandardNormal";
  if (!isFirstForm)
    LATHE_TRY(checkAlgorithm(context.input(1)));
  LATHE_TRY_VALUE(dims, dimsOf(context.input(isFirstForm ? 1 : 2), "shape"));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  LATHE_TRY_VALUE(generator, takeGenerator(context, static_cast<uint64_t>(out.numElements()), isFirstForm));
  return std::make_pair(out, generator);
}

absl::Status floats(KernelContext &context) {
  LATHE_TRY_VALUE(started, begin(context));
  auto &[out, generator] = started;
  const std::string &op = context.node->op;
  return withType(out.dtype(), [&, &out = out, &generator = generator](auto zero) -> absl::Status {
    using T = decltype(zero);
    if constexpr (isReal<T>) {
      T *data = out.template data<T>();
      if (op == "StatefulUniform")
        fillUniform(data, out.numElements(), generator);
      else if (op == "StatefulStandardNormalV2" || op == "StatefulStandardNormal")
        fillNormal(data, out.numElements(), generator);
      else
        fillTruncated(data, out.numElements(), generator);
      return absl::OkStatus();
    } else {
      return absl::UnimplementedError(absl::StrCat("no random numbers of type ", dtypeName(out.dtype())));
    }
  });
}
LATHE_HOST_FUNCTION(StatefulUniform, floats);
LATHE_HOST_FUNCTION(StatefulStandardNormal, floats);
LATHE_HOST_FUNCTION(StatefulStandardNormalV2, floats);
LATHE_HOST_FUNCTION(StatefulTruncatedNormal, floats);

absl::Status integers(KernelContext &context) {
  Tensor low = context.input(3), high = context.input(4);
  for (const Tensor *bound : {&low, &high})
    if (bound->rank() != 0)
      return invalid("minval and maxval must be 0-D, got shape ", dimsToString(bound->dims()));
  return withWideInteger(context.node->outputTypes[0], [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    if (low.dtype() != context.node->outputTypes[0] || high.dtype() != low.dtype())
      return invalid("minval and maxval must be of the output's type");
    T from = low.data<T>()[0], to = high.data<T>()[0];
    if (from >= to)
      return invalid("Need minval < maxval, got ", from, " >= ", to);
    LATHE_TRY_VALUE(started, begin(context));
    fillIntegers(started.first.template data<T>(), started.first.numElements(), started.second, static_cast<uint64_t>(from),
                 static_cast<uint64_t>(to));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(StatefulUniformInt, integers);

absl::Status bits(KernelContext &context) {
  return withWideInteger(context.node->outputTypes[0], [&](auto zero) -> absl::Status {
    LATHE_TRY_VALUE(started, begin(context));
    fillBits(started.first.template data<decltype(zero)>(), started.first.numElements(), started.second);
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(StatefulUniformFullInt, bits);

absl::Status nonDeterministic(KernelContext &context) {
  LATHE_TRY_VALUE(dims, dimsOf(context.input(0), "shape"));
  return withWideInteger(context.node->outputTypes[0], [&](auto zero) -> absl::Status {
    LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
    fillBits(out.template data<decltype(zero)>(), out.numElements(), StatefulGenerator(0, 0).reserve(0));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(NonDeterministicInts, nonDeterministic);

} // namespace
} // namespace lathe::rt
