#include "graph/builder/Optimizers.h"

#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/state.h"
#include "graph/builder/ops/train.h"
#include "graph/Graph.h"
#include "graph/Values.h"

#include "absl/strings/str_cat.h"

namespace lathe::train {
namespace {

/// A number of a variable's type.
Output constantOf(const Scope &scope, DType type, double value) {
  Output c = ops::Const(scope, static_cast<float>(value));
  return type == DType::Float32 ? c : Output(ops::Cast(scope, c, type));
}

Output rateOf(const Scope &scope, const Input &rate, DType type) {
  Output value = scope.Resolve(rate);
  return value.type() == type || !value.node() ? value : Output(ops::Cast(scope, value, type));
}

/// The shape that a handle says its variable has.
PartialShape shapeOf(const Output &handle) {
  const tf::AttrValue *shape = handle.node() ? handle.node()->attr("shape") : nullptr;
  if (!shape)
    return PartialShape();
  auto decoded = graphdef::decodeShape(shape->shape());
  return decoded.ok() ? *std::move(decoded) : PartialShape();
}

} // namespace

Variable MakeVariable(const Scope &scope, std::string_view name, const Input &initial, const std::vector<int64_t> &shape) {
  Scope inside = scope.NewSubScope(name);
  Output first = inside.WithOpName("initial").Resolve(initial);
  Variable v;
  v.handle = ops::VarHandleOp(scope.WithOpName(name), first.type(), PartialShape(shape),
                              ops::VarHandleOp::SharedName(scope.GetUniqueNameForOp(name)));
  v.init = ops::AssignVariableOp(inside.WithOpName("Assign"), v.handle, first);
  v.value = ops::ReadVariableOp(inside.WithOpName("Read"), v.handle, first.type());
  return v;
}

Operation Optimizer::Minimize(const Scope &scope, const Output &loss, const std::vector<Variable> &variables) {
  std::vector<Output> values, gradients;
  for (const Variable &v : variables)
    values.push_back(v.value);
  if (!AddSymbolicGradients(scope, {loss}, values, &gradients).ok())
    return Operation();
  return Apply(scope, gradients, variables);
}

Operation Optimizer::Apply(const Scope &scope, const std::vector<Output> &gradients, const std::vector<Variable> &variables) {
  std::vector<Operation> steps;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (i >= gradients.size() || !gradients[i].node()) {
      scope.UpdateStatus(absl::InvalidArgumentError(absl::StrCat("variable '", variables[i].handle.op().name(), "' has no gradient")));
      return Operation();
    }
    steps.push_back(step(scope, gradients[i], variables[i]));
  }
  for (const Operation &op : finish(scope.WithControlDependencies(steps)))
    steps.push_back(op);
  return ops::NoOp(scope.WithOpName("train").WithControlDependencies(steps));
}

Output Optimizer::keep(const Scope &scope, const Output &handle, DType type, const Operation &init) {
  initials.push_back(init);
  kept.push_back({handle, ops::ReadVariableOp(scope, handle, type), init});
  return handle;
}

Output Optimizer::slot(const Scope &scope, const Variable &like, std::string_view name) {
  // below the variable's own name, as TensorFlow's checkpoints have it
  std::string whole = like.handle.node() ? absl::StrCat(like.handle.op().name(), "/", std::string(name)) : std::string(name);
  Output zeros = ops::ZerosLike(scope.WithOpName(whole + "_zeros"), like.value);
  std::string shared = scope.GetUniqueNameForOp(whole);
  Output handle = ops::VarHandleOp(scope.WithOpName(whole), like.value.type(), shapeOf(like.handle), ops::VarHandleOp::SharedName(shared));
  // the variable has its first value by then
  Operation init = ops::AssignVariableOp(scope.WithOpName(whole + "_init"), handle, zeros);
  return keep(scope.WithOpName(whole + "_read"), handle, like.value.type(), init);
}

Output Optimizer::number(const Scope &scope, std::string_view name, DType type, double value) {
  std::string shared = scope.GetUniqueNameForOp(name);
  Output handle = ops::VarHandleOp(scope.WithOpName(name), type, PartialShape(std::vector<int64_t>()), ops::VarHandleOp::SharedName(shared));
  Operation init = ops::AssignVariableOp(scope.WithOpName(absl::StrCat(std::string(name), "_init")), handle, constantOf(scope, type, value));
  return keep(scope, handle, type, init);
}

Operation GradientDescent::step(const Scope &scope, const Output &gradient, const Variable &v) {
  return ops::ResourceApplyGradientDescent(scope, v.handle, rateOf(scope, rate, gradient.type()), gradient);
}

Operation Momentum::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  return ops::ResourceApplyMomentum(scope, v.handle, slot(scope, v, "Momentum"), rateOf(scope, rate, type), gradient,
                                    constantOf(scope, type, momentum), ops::ResourceApplyMomentum::UseNesterov(nesterov));
}

Operation Adam::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  if (!power1.node()) {
    power1 = number(scope, "beta1_power", DType::Float32, beta1);
    power2 = number(scope, "beta2_power", DType::Float32, beta2);
  }
  auto power = [&](const Output &handle) {
    Output value = ops::ReadVariableOp(scope, handle, DType::Float32);
    return type == DType::Float32 ? value : Output(ops::Cast(scope, value, type));
  };
  return ops::ResourceApplyAdam(scope, v.handle, slot(scope, v, "m"), slot(scope, v, "v"), power(power1), power(power2),
                                rateOf(scope, rate, type), constantOf(scope, type, beta1), constantOf(scope, type, beta2),
                                constantOf(scope, type, epsilon), gradient);
}

std::vector<Operation> Adam::finish(const Scope &scope) {
  std::vector<Operation> done;
  if (!power1.node())
    return done;
  for (auto [handle, beta] : {std::pair(power1, beta1), std::pair(power2, beta2)})
    done.push_back(ops::AssignVariableOp(scope, handle, ops::Mul(scope, ops::ReadVariableOp(scope, handle, DType::Float32), beta)));
  return done;
}

Output ExponentialDecay(const Scope &scope, float rate, const Output &step, float decaySteps, float decayRate, bool staircase) {
  Scope s = scope.NewSubScope("exponential_decay");
  Output exponent = ops::RealDiv(s, ops::Cast(s, step, DType::Float32), decaySteps);
  if (staircase)
    exponent = ops::Floor(s, exponent);
  return ops::Mul(s, ops::Pow(s, decayRate, exponent), rate);
}

Output CosineDecay(const Scope &scope, float rate, const Output &step, float decaySteps) {
  Scope s = scope.NewSubScope("cosine_decay");
  Output part = ops::RealDiv(s, ops::Minimum(s, ops::Cast(s, step, DType::Float32), decaySteps), decaySteps);
  Output cosine = ops::Cos(s, ops::Mul(s, part, 3.14159265f));
  return ops::Mul(s, ops::Add(s, cosine, 1.0f), rate * 0.5f);
}

} // namespace lathe::train
