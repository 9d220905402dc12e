// What dense and sparse accumulators share, and the nodes that ask for counts and steps.
#include "runtime/kernels/accumulators/Accumulator.h"

#include "base/Float.h"
#include "runtime/core/Elements.h"

namespace lathe::rt {

absl::Status Accumulator::apply(int64_t localStep, const Tuple &gradient) {
  std::vector<TakerPtr> finished;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (localStep < step)
      return absl::OkStatus(); // stale, dropped
    if (absl::Status valid = validate(gradient, applied == 0); !valid.ok())
      return valid;
    if (applied++ == 0)
      assign(gradient);
    else
      add(gradient);
    advance(finished);
  }
  complete(finished);
  return absl::OkStatus();
}

void Accumulator::take(int64_t required, Cancellation *cancellation, TupleDone done) {
  if (required <= 0)
    return done(absl::InvalidArgumentError(absl::StrCat("Argument num_required must be positive, but was ", required)));
  if (cancellation && cancellation->isCancelled())
    return done(absl::CancelledError("TakeGrad operation was cancelled"));
  auto taker = std::make_shared<Taker>();
  taker->required = required;
  taker->done = std::move(done);
  taker->cancellation = cancellation;
  std::vector<TakerPtr> finished;
  {
    std::lock_guard<std::mutex> lock(mutex);
    takers.push_back(taker);
    advance(finished);
    if (!taker->finished && cancellation) {
      taker->hasToken = cancellation->add(&taker->token, [self = shared_from_this(), taker] { self->cancel(taker); });
      if (!taker->hasToken) {
        taker->finished = true;
        finished.push_back(taker);
      }
    }
  }
  complete(finished);
}

void Accumulator::cancel(const TakerPtr &taker) {
  std::vector<TakerPtr> finished;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (taker->finished)
      return;
    taker->finished = true;
    finished.push_back(taker);
    advance(finished);
  }
  complete(finished);
}

void Accumulator::advance(std::vector<TakerPtr> &finished) {
  while (!takers.empty()) {
    TakerPtr first = takers.front();
    if (!first->finished) {
      if (applied < first->required)
        return;
      first->result = finish(applied);
      first->finished = true;
      applied = 0;
      ++step;
      finished.push_back(first);
    }
    takers.pop_front();
  }
}

void Accumulator::complete(const std::vector<TakerPtr> &finished) {
  for (const TakerPtr &taker : finished) {
    if (taker->hasToken)
      taker->cancellation->tryRemove(taker->token);
    TupleDone done = std::move(taker->done);
    taker->done = nullptr;
    done(std::move(taker->result));
  }
}

void Accumulator::setStep(int64_t to) {
  std::lock_guard<std::mutex> lock(mutex);
  step = to;
}

int64_t Accumulator::count() const {
  std::lock_guard<std::mutex> lock(mutex);
  return applied;
}

namespace {

/// Half and bfloat16 are computed in float and rounded after every operation, as Eigen does.
template <typename Fn>
void apply(Tensor &a, int64_t at, int64_t count, Fn fn) {
  for (int64_t i = 0; i < count; ++i)
    switch (a.dtype()) {
    case DType::Float32:
      a.data<float>()[at + i] = fn(a.data<float>()[at + i], i);
      break;
    case DType::Float64:
      a.data<double>()[at + i] = fn(a.data<double>()[at + i], i);
      break;
    case DType::Float16:
      a.data<uint16_t>()[at + i] = floatToHalf(fn(halfToFloat(a.data<uint16_t>()[at + i]), i));
      break;
    case DType::BFloat16:
      a.data<uint16_t>()[at + i] = floatToBFloat16(fn(bfloat16ToFloat(a.data<uint16_t>()[at + i]), i));
      break;
    default:
      break;
    }
}

template <typename T>
T valueOf(const Tensor &t, int64_t i) {
  switch (t.dtype()) {
  case DType::Float32:
    return static_cast<T>(t.data<float>()[i]);
  case DType::Float64:
    return static_cast<T>(t.data<double>()[i]);
  case DType::Float16:
    return static_cast<T>(halfToFloat(t.data<uint16_t>()[i]));
  default:
    return static_cast<T>(bfloat16ToFloat(t.data<uint16_t>()[i]));
  }
}

absl::Status numAccumulated(KernelContext &context) {
  auto accumulator = context.resource<Accumulator>(0);
  if (!accumulator.ok())
    return accumulator.status();
  context.setOutput(0, Tensor::scalar<int32_t>(DType::Int32, static_cast<int32_t>((*accumulator)->count())));
  return absl::OkStatus();
}

absl::Status setGlobalStep(KernelContext &context) {
  auto accumulator = context.resource<Accumulator>(0);
  if (!accumulator.ok())
    return accumulator.status();
  auto step = integerScalar(context.input(1), "new_global_step");
  if (!step.ok())
    return step.status();
  (*accumulator)->setStep(*step);
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(AccumulatorNumAccumulated, numAccumulated);
LATHE_HOST_FUNCTION(ResourceAccumulatorNumAccumulated, numAccumulated);
LATHE_HOST_FUNCTION(AccumulatorSetGlobalStep, setGlobalStep);
LATHE_HOST_FUNCTION(ResourceAccumulatorSetGlobalStep, setGlobalStep);

} // namespace

void addInto(Tensor &a, int64_t aAt, const Tensor &b, int64_t bAt, int64_t count) {
  apply(a, aAt, count, [&](auto x, int64_t i) { return x + valueOf<decltype(x)>(b, bAt + i); });
}

void divideBy(Tensor &a, int64_t at, int64_t count, int64_t divisor) {
  apply(a, at, count, [&](auto x, int64_t) { return x / static_cast<decltype(x)>(divisor); });
}

void TakeGradient::computeAsync(KernelContext &context, Done done) {
  auto accumulator = context.resource<Accumulator>(0);
  if (!accumulator.ok())
    return done(accumulator.status());
  auto required = integerScalar(context.input(1), "num_required");
  if (!required.ok())
    return done(required.status());
  const DType *type = attrOf<DType>(*context.node, "dtype");
  if (!type || *type != (*accumulator)->type)
    return done(absl::InvalidArgumentError("the node's dtype is not that of the accumulator"));
  (*accumulator)->take(*required, context.cancellation,
                       [&context, done = std::move(done)](absl::StatusOr<Accumulator::Tuple> tuple) {
                         if (!tuple.ok())
                           return done(tuple.status());
                         if (tuple->size() != context.outputs.size())
                           return done(absl::InvalidArgumentError("the accumulator is of the other kind"));
                         for (size_t i = 0; i < tuple->size(); ++i)
                           context.setOutput(static_cast<int>(i), std::move((*tuple)[i]));
                         done(absl::OkStatus());
                       });
}

} // namespace lathe::rt
