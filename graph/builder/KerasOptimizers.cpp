#include "graph/builder/KerasOptimizers.h"

#include "graph/builder/OptimizerParts.h"
#include "graph/builder/ops/sparse.h"
#include "graph/builder/ops/train.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace lathe::train {
namespace {

constexpr DType kFloat = DType::Float32;

Output meanOfAll(const Scope &scope, const Output &x) {
  return ops::Mean(scope, x, ops::Range(scope, 0, ops::Rank(scope, x), 1));
}

Output rootMeanSquare(const Scope &scope, const Output &x) { return ops::Sqrt(scope, meanOfAll(scope, ops::Square(scope, x))); }

} // namespace

//===----------------------------------------------------------------------===//
// SGD
//===----------------------------------------------------------------------===//

Operation SGD::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output r = rateOf(scope, rate, type);
  if (momentum == 0)
    return ops::ResourceApplyGradientDescent(scope, v.handle, r, gradient);
  return ops::ResourceApplyKerasMomentum(scope, v.handle, slot(scope, v, "SGD"), r, gradient, constantOf(scope, type, momentum),
                                         ops::ResourceApplyKerasMomentum::UseNesterov(nesterov));
}

//===----------------------------------------------------------------------===//
// Adafactor
//===----------------------------------------------------------------------===//

void Adafactor::begin(const Scope &scope) {
  if (!handle.node())
    handle = number(scope, "steps", kFloat, 0);
  now = ops::Add(scope, read(scope, handle, kFloat), 1.0f);
}

std::vector<Operation> Adafactor::finish(const Scope &scope) { return {ops::AssignVariableOp(scope, handle, now)}; }

Operation Adafactor::step(const Scope &scope, const Output &gradient, const Variable &v) {
  PartialShape shape = scope.ShapeOf(v.value);
  if (!shape) {
    scope.UpdateStatus(absl::InvalidArgumentError(
        absl::StrCat("Adafactor needs the number of dimensions of variable '", v.handle.op().name(), "', which is not known")));
    return Operation();
  }
  DType type = gradient.type();
  const Output one = constantOf(scope, type, 1);
  Output squares = ops::Add(scope, ops::Square(scope, gradient), constantOf(scope, type, epsilon1));
  Output fresh = rateOf(scope, ops::Pow(scope, now, beta2Decay), type); // 1 - beta2
  Output kept = ops::Subtract(scope, one, fresh);
  std::vector<Operation> done;
  auto update = [&](const Output &slot, const Output &values) -> Output {
    Output mean = ops::Add(scope, ops::Multiply(scope, kept, read(scope, slot, type)), ops::Multiply(scope, fresh, values));
    done.push_back(ops::AssignVariableOp(scope, slot, mean));
    return mean;
  };
  Output mean;
  if (shape->size() < 2) {
    mean = update(slot(scope, v, "Adafactor"), squares);
  } else {
    auto along = [&](int axis) {
      auto zeros = [&](const Scope &first) -> Output {
        return ops::Sum(first, ops::ZerosLike(scope.WithNoControlDependencies(), v.value), axis);
      };
      return update(slot(scope, v, "Adafactor", zeros), ops::Mean(scope, squares, axis));
    };
    Output rows = along(-1), columns = along(-2);
    Output shares = ops::RealDiv(scope, rows, ops::Mean(scope, rows, -1, ops::Mean::KeepDims(true)));
    mean = ops::Multiply(scope, ops::ExpandDims(scope, shares, -1), ops::ExpandDims(scope, columns, -2));
  }
  Output direction = ops::RealDiv(scope, gradient, ops::Sqrt(scope, mean));
  Output tooLong = ops::RealDiv(scope, rootMeanSquare(scope, direction), constantOf(scope, type, clipThreshold));
  direction = ops::RealDiv(scope, direction, ops::Maximum(scope, one, tooLong));
  Output atMost = rateOf(scope, ops::RealDiv(scope, 1.0f, ops::Sqrt(scope, now)), type);
  Output size = ops::Maximum(scope, rootMeanSquare(scope, read(scope, v.handle, type)), constantOf(scope, type, epsilon2));
  Output r = ops::Multiply(scope, size, ops::Minimum(scope, rateOf(scope, rate, type), atMost));
  done.push_back(ops::AssignSubVariableOp(scope, v.handle, ops::Multiply(scope, r, direction)));
  return group(scope, done);
}

//===----------------------------------------------------------------------===//
// Muon
//===----------------------------------------------------------------------===//

bool Muon::usesAdam(const Variable &v) const {
  PartialShape shape = shapeOf(v.handle);
  if (!shape || shape->size() != 2)
    return true;
  const std::string name = v.handle.op().name(), lower = absl::AsciiStrToLower(name);
  return std::any_of(byAdam.begin(), byAdam.end(), [&](const std::string &part) {
    return name.find(part) != std::string::npos || lower.find(part) != std::string::npos;
  });
}

float Muon::decayOf(const Variable &v) const { return usesAdam(v) ? AdamW::decayOf(v) : weightDecay; }

/// Of the products x x^T and x^T x the smaller one gives the same.
Output Muon::orthogonal(const Scope &scope, const Output &start, bool tall) const {
  DType type = start.type();
  auto times = [&](const Output &a, const Output &b, bool transposeA, bool transposeB) -> Output {
    return ops::MatMul(scope, a, b, ops::MatMul::TransposeA(transposeA).TransposeB(transposeB));
  };
  auto scaled = [&](const Output &a, double by) -> Output { return ops::Multiply(scope, a, constantOf(scope, type, by)); };
  Output length = ops::Sqrt(scope, ops::Sum(scope, ops::Square(scope, start), {0, 1}));
  Output x = ops::RealDiv(scope, start, ops::Add(scope, length, constantOf(scope, type, 1e-7)));
  for (int i = 0; i < iterations; ++i) {
    Output square = times(x, x, tall, !tall);
    Output factor = ops::Add(scope, scaled(square, -4.7750), scaled(times(square, square, false, false), 2.0315));
    Output turned = tall ? times(x, factor, false, false) : times(factor, x, false, false);
    x = ops::Add(scope, scaled(x, 3.4445), turned);
  }
  return x;
}

Operation Muon::step(const Scope &scope, const Output &gradient, const Variable &v) {
  if (usesAdam(v))
    return AdamW::step(scope, gradient, v);
  PartialShape shape = shapeOf(v.handle);
  const int64_t rows = (*shape)[0], columns = (*shape)[1];
  if (rows < 0 || columns < 0) {
    scope.UpdateStatus(absl::InvalidArgumentError(
        absl::StrCat("Muon needs the sizes of matrix '", v.handle.op().name(), "', of which some are not known; UseAdam() leaves it out")));
    return Operation();
  }
  DType type = gradient.type();
  Output handle = slot(scope, v, kind());
  auto withMomentum = [&](const Output &m) -> Output {
    return ops::Add(scope, ops::Multiply(scope, m, constantOf(scope, type, momentum)), gradient);
  };
  Output m = withMomentum(read(scope, handle, type));
  Output turned = orthogonal(scope, nesterov ? withMomentum(m) : m, rows > columns);
  const double length = rmsRate == 0 ? 1 : rmsRate * std::sqrt(static_cast<double>(std::max(rows, columns)));
  Output move = ops::Multiply(scope, turned, ops::Multiply(scope, rateOf(scope, rate, type), constantOf(scope, type, length)));
  return group(scope, {ops::AssignVariableOp(scope, handle, m), ops::AssignSubVariableOp(scope, v.handle, move)});
}

Operation Muon::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  return usesAdam(v) ? AdamW::stepRows(scope, rows, v) : Optimizer::stepRows(scope, rows, v);
}

//===----------------------------------------------------------------------===//
// ScheduleFreeAdamW
//===----------------------------------------------------------------------===//

void ScheduleFreeAdamW::begin(const Scope &scope) {
  Adam::begin(scope);
  if (!count.node())
    count = number(scope, "steps", kFloat, 0);
  now = ops::Add(scope, read(scope, count, kFloat), 1.0f);
}

std::vector<Operation> ScheduleFreeAdamW::finish(const Scope &scope) {
  std::vector<Operation> done = Adam::finish(scope);
  done.push_back(ops::AssignVariableOp(scope, count, now));
  return done;
}

Operation ScheduleFreeAdamW::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  const Output one = constantOf(scope, type, 1), at = rateOf(scope, now, type);
  Output weights = slot(scope, v, kind(), [&](const Scope &first) -> Output { return ops::Identity(first, v.value); });
  Output squares = slot(scope, v, kind());
  moving.emplace_back(v.handle, weights);
  Output r = rateOf(scope, rate, type);
  if (warmupSteps > 0)
    r = ops::Multiply(scope, r, ops::Minimum(scope, ops::RealDiv(scope, at, constantOf(scope, type, warmupSteps)), one));
  Output s = approach(scope, read(scope, squares, type), ops::Square(scope, gradient), beta2);
  Output root = ops::Sqrt(scope, ops::RealDiv(scope, s, ops::Subtract(scope, one, power2(scope, type))));
  Output move = ops::RealDiv(scope, ops::Multiply(scope, r, gradient), ops::Add(scope, root, constantOf(scope, type, epsilon)));
  Output z = read(scope, weights, type), moved = ops::Subtract(scope, z, move);
  // the variable is (1 - beta1) * z + beta1 * average
  const Output own = constantOf(scope, type, 1.0f - beta1), its = constantOf(scope, type, beta1);
  Output average = ops::RealDiv(scope, ops::Subtract(scope, read(scope, v.handle, type), ops::Multiply(scope, own, z)), its);
  Output share = ops::RealDiv(scope, one, at);
  Output next = ops::Add(scope, ops::Multiply(scope, ops::Subtract(scope, one, share), average), ops::Multiply(scope, share, moved));
  Output between = ops::Add(scope, ops::Multiply(scope, own, moved), ops::Multiply(scope, its, next));
  return group(scope, {ops::AssignVariableOp(scope, squares, s), ops::AssignVariableOp(scope, weights, moved),
                       ops::AssignVariableOp(scope, v.handle, between)});
}

Operation ScheduleFreeAdamW::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  return Optimizer::stepRows(scope, rows, v);
}

Output ScheduleFreeAdamW::Average(const Scope &scope, const Variable &v) const {
  for (const auto &[handle, weights] : moving)
    if (handle == v.handle) {
      DType type = v.value.type();
      Output own = ops::Multiply(scope, read(scope, weights, type), constantOf(scope, type, 1.0f - beta1));
      return ops::RealDiv(scope, ops::Subtract(scope, read(scope, v.handle, type), own), constantOf(scope, type, beta1));
    }
  scope.UpdateStatus(absl::InvalidArgumentError(absl::StrCat("no step updates variable '", v.handle.op().name(), "'")));
  return Output();
}

} // namespace lathe::train
