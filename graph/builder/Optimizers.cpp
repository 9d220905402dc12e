#include "graph/builder/Optimizers.h"

#include "graph/builder/OptimizerParts.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/sparse.h"
#include "graph/builder/ops/state.h"
#include "graph/builder/ops/train.h"
#include "graph/Graph.h"
#include "graph/Values.h"

#include "absl/strings/str_cat.h"

namespace lathe::train {
namespace {

/// A handle of a name that is not taken, which its variable has, too.
Output handleOf(const Scope &scope, std::string_view name, DType type, const PartialShape &shape) {
  Output handle = ops::VarHandleOp(scope.WithOpName(name), type, shape);
  if (handle.node()) {
    tf::AttrValue shared;
    shared.set_s(handle.node()->name());
    handle.node()->setAttr("shared_name", std::move(shared));
  }
  return handle;
}

/// Rows whose indices are all different: values of equal ones are summed.
Gradient unique(const Scope &scope, const Gradient &rows) {
  Scope inside = scope.NewSubScope("unique");
  ops::Unique found(inside, rows.indices);
  Output count = ops::Size(inside, found.y);
  return {ops::UnsortedSegmentSum(inside, rows.values, found.idx, count), found.y, rows.dense_shape};
}

} // namespace

PartialShape shapeOf(const Output &handle) {
  const tf::AttrValue *shape = handle.node() ? handle.node()->attr("shape") : nullptr;
  if (!shape)
    return PartialShape();
  auto decoded = graphdef::decodeShape(shape->shape());
  return decoded.ok() ? *std::move(decoded) : PartialShape();
}

Variable MakeVariable(const Scope &scope, std::string_view name, const Input &initial, const std::vector<int64_t> &shape) {
  Scope inside = scope.NewSubScope(name);
  Output first = inside.WithOpName("initial").Resolve(initial);
  Variable v;
  v.handle = handleOf(scope, name, first.type(), PartialShape(shape));
  v.init = ops::AssignVariableOp(inside.WithOpName("Assign"), v.handle, first);
  v.value = ops::ReadVariableOp(inside.WithOpName("Read"), v.handle, first.type());
  return v;
}

Variable MakeGlobalStep(const Scope &scope) { return MakeVariable(scope, "global_step", int64_t{0}, {}); }

Output EmbeddingLookup(const Scope &scope, const Variable &table, const Input &ids) {
  return ops::ResourceGather(scope, table.handle, ids, table.value.type());
}

std::vector<Gradient> Optimizer::ComputeGradients(const Scope &scope, const Output &loss, const std::vector<Variable> &variables) {
  // by the handle come all reads of a variable, by the value what has no handle behind it
  std::vector<Output> by;
  for (const Variable &v : variables)
    by.push_back(v.handle);
  for (const Variable &v : variables)
    by.push_back(v.value);
  std::vector<Gradient> found, gradients;
  if (!AddSymbolicGradients(scope, {loss}, by, &found).ok())
    return {};
  for (size_t i = 0; i < variables.size(); ++i)
    gradients.push_back(found[i] ? found[i] : found[i + variables.size()]);
  return gradients;
}

Operation Optimizer::Minimize(const Scope &scope, const Output &loss, const std::vector<Variable> &variables) {
  std::vector<Gradient> gradients = ComputeGradients(scope, loss, variables);
  return scope.ok() ? Apply(scope, gradients, variables) : Operation();
}

Operation Optimizer::Apply(const Scope &scope, const std::vector<Output> &gradients, const std::vector<Variable> &variables) {
  return Apply(scope, std::vector<Gradient>(gradients.begin(), gradients.end()), variables);
}

Operation Optimizer::Apply(const Scope &scope, const std::vector<Gradient> &gradients, const std::vector<Variable> &variables) {
  std::vector<Operation> steps;
  begin(scope);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (i >= gradients.size() || !gradients[i]) {
      scope.UpdateStatus(absl::InvalidArgumentError(absl::StrCat("variable '", variables[i].handle.op().name(), "' has no gradient")));
      return Operation();
    }
    const Gradient &g = gradients[i];
    const Scope inside = decayed(scope, g, variables[i]);
    steps.push_back(g.is_rows() ? stepRows(inside, g, variables[i]) : step(inside, g.values, variables[i]));
  }
  const Scope after = scope.WithControlDependencies(steps);
  for (const Operation &op : finish(after))
    steps.push_back(op);
  if (counter.handle.node()) {
    DType type = counter.value.type();
    steps.push_back(ops::AssignAddVariableOp(after, counter.handle, ops::Cast(after, 1, type)));
  }
  return ops::NoOp(scope.WithOpName("train").WithControlDependencies(steps));
}

Scope Optimizer::decayed(const Scope &step, const Gradient &gradient, const Variable &v) {
  const float part = decayOf(v);
  for (const std::string &name : excluded)
    if (v.handle.op().name().find(name) != std::string::npos)
      return step;
  if (part == 0)
    return step;
  // the gradient is computed from the weights as they were
  const Scope scope = step.WithControlDependencies(gradient.values);
  DType type = v.value.type();
  Output less = ops::Multiply(scope, ops::Multiply(scope, read(scope, v.handle, type), constantOf(scope, type, part)),
                              rateOf(scope, rate, type));
  return scope.WithControlDependencies(std::vector<Operation>{ops::AssignSubVariableOp(scope, v.handle, less)});
}

Operation Optimizer::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  return step(scope, ConvertToTensor(scope, rows), v);
}

Output Optimizer::keep(const Scope &scope, const Output &handle, DType type, const Operation &init) {
  initials.push_back(init);
  kept.push_back({handle, ops::ReadVariableOp(scope, handle, type), init});
  return handle;
}

Output Optimizer::slot(const Scope &step, const Variable &like, std::string_view name, float initial) {
  return slot(step, like, name, [&](const Scope &first) -> Output {
    if (initial == 0)
      return ops::ZerosLike(first, like.value);
    return ops::Fill(first, ops::Shape(first, like.value), constantOf(first, like.value.type(), initial));
  });
}

Output Optimizer::slot(const Scope &step, const Variable &like, std::string_view name, const First &first) {
  const Scope scope = step.WithNoControlDependencies(); // it is there before any step
  // below the variable's own name, as TensorFlow's checkpoints have it
  std::string whole = like.handle.node() ? absl::StrCat(like.handle.op().name(), "/", std::string(name)) : std::string(name);
  Output start = first(scope.WithOpName(whole + "_initial"));
  Output handle = handleOf(scope, whole, like.value.type(), scope.ShapeOf(start));
  // the variable has its first value by then
  Operation init = ops::AssignVariableOp(scope.WithOpName(whole + "_init"), handle, start);
  return keep(scope.WithOpName(whole + "_read"), handle, like.value.type(), init);
}

Output Optimizer::number(const Scope &step, std::string_view name, DType type, double value) {
  const Scope scope = step.WithNoControlDependencies();
  Output handle = handleOf(scope, name, type, PartialShape(std::vector<int64_t>()));
  Scope first = scope.WithOpName(absl::StrCat(std::string(name), "_init"));
  Operation init = ops::AssignVariableOp(first, handle, constantOf(scope, type, value));
  return keep(scope, handle, type, init);
}

//===----------------------------------------------------------------------===//
// With operations of their own
//===----------------------------------------------------------------------===//

Operation GradientDescent::step(const Scope &scope, const Output &gradient, const Variable &v) {
  return ops::ResourceApplyGradientDescent(scope, v.handle, rateOf(scope, rate, gradient.type()), gradient);
}

Operation GradientDescent::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  // equal indices add up by themselves
  Output moves = ops::Multiply(scope, rows.values, rateOf(scope, rate, rows.values.type()));
  return ops::ResourceScatterSub(scope, v.handle, rows.indices, moves);
}

Operation Momentum::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  return ops::ResourceApplyMomentum(scope, v.handle, slot(scope, v, "Momentum"), rateOf(scope, rate, type), gradient,
                                    constantOf(scope, type, momentum), ops::ResourceApplyMomentum::UseNesterov(nesterov));
}

Operation Momentum::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  return ops::ResourceSparseApplyMomentum(scope, v.handle, slot(scope, v, "Momentum"), rateOf(scope, rate, type), g.values, g.indices,
                                          constantOf(scope, type, momentum), ops::ResourceSparseApplyMomentum::UseNesterov(nesterov));
}

Operation Adagrad::step(const Scope &scope, const Output &gradient, const Variable &v) {
  return ops::ResourceApplyAdagrad(scope, v.handle, slot(scope, v, "Adagrad", initial), rateOf(scope, rate, gradient.type()), gradient);
}

Operation Adagrad::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  Gradient g = unique(scope, rows);
  return ops::ResourceSparseApplyAdagrad(scope, v.handle, slot(scope, v, "Adagrad", initial), rateOf(scope, rate, g.values.type()),
                                         g.values, g.indices);
}

Output AdagradDA::stepNumber(const Scope &scope) const {
  return ops::Add(scope, rateOf(scope, globalStep, DType::Int64), ops::Const(scope, int64_t{1}));
}

Operation AdagradDA::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output sum = slot(scope, v, "AdagradDA"), squares = slot(scope, v, "AdagradDA", initial);
  return ops::ResourceApplyAdagradDA(scope, v.handle, sum, squares, gradient, rateOf(scope, rate, type), constantOf(scope, type, l1),
                                     constantOf(scope, type, l2), stepNumber(scope));
}

Operation AdagradDA::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output sum = slot(scope, v, "AdagradDA"), squares = slot(scope, v, "AdagradDA", initial);
  return ops::ResourceSparseApplyAdagradDA(scope, v.handle, sum, squares, g.values, g.indices, rateOf(scope, rate, type),
                                           constantOf(scope, type, l1), constantOf(scope, type, l2), stepNumber(scope));
}

Operation Adadelta::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output squares = slot(scope, v, "Adadelta"), updates = slot(scope, v, "Adadelta");
  return ops::ResourceApplyAdadelta(scope, v.handle, squares, updates, rateOf(scope, rate, type), constantOf(scope, type, rho),
                                    constantOf(scope, type, epsilon), gradient);
}

Operation Adadelta::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output squares = slot(scope, v, "Adadelta"), updates = slot(scope, v, "Adadelta");
  return ops::ResourceSparseApplyAdadelta(scope, v.handle, squares, updates, rateOf(scope, rate, type), constantOf(scope, type, rho),
                                          constantOf(scope, type, epsilon), g.values, g.indices);
}

Operation RMSProp::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output squares = slot(scope, v, "RMSProp", initial), mean = centered ? slot(scope, v, "RMSProp") : Output();
  Output moment = slot(scope, v, "RMSProp");
  Output r = rateOf(scope, rate, type), d = constantOf(scope, type, decay), m = constantOf(scope, type, momentum);
  Output e = constantOf(scope, type, epsilon);
  if (centered)
    return ops::ResourceApplyCenteredRMSProp(scope, v.handle, mean, squares, moment, r, d, m, e, gradient);
  return ops::ResourceApplyRMSProp(scope, v.handle, squares, moment, r, d, m, e, gradient);
}

Operation RMSProp::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output squares = slot(scope, v, "RMSProp", initial), mean = centered ? slot(scope, v, "RMSProp") : Output();
  Output moment = slot(scope, v, "RMSProp");
  Output r = rateOf(scope, rate, type), d = constantOf(scope, type, decay), m = constantOf(scope, type, momentum);
  Output e = constantOf(scope, type, epsilon);
  if (centered)
    return ops::ResourceSparseApplyCenteredRMSProp(scope, v.handle, mean, squares, moment, r, d, m, e, g.values, g.indices);
  return ops::ResourceSparseApplyRMSProp(scope, v.handle, squares, moment, r, d, m, e, g.values, g.indices);
}

Output Ftrl::secondNorm(const Scope &scope, DType type) const {
  Output own = constantOf(scope, type, l2);
  return beta == 0 ? own : Output(ops::Add(scope, own, ops::RealDiv(scope, constantOf(scope, type, beta / 2), rateOf(scope, rate, type))));
}

Operation Ftrl::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output squares = slot(scope, v, "Ftrl", initial), linear = slot(scope, v, "Ftrl");
  Output r = rateOf(scope, rate, type), one = constantOf(scope, type, l1), two = secondNorm(scope, type);
  Output power = constantOf(scope, type, ratePower);
  if (l2Shrinkage > 0)
    return ops::ResourceApplyFtrlV2(scope, v.handle, squares, linear, gradient, r, one, two, constantOf(scope, type, l2Shrinkage), power);
  return ops::ResourceApplyFtrl(scope, v.handle, squares, linear, gradient, r, one, two, power);
}

Operation Ftrl::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output squares = slot(scope, v, "Ftrl", initial), linear = slot(scope, v, "Ftrl");
  Output r = rateOf(scope, rate, type), one = constantOf(scope, type, l1), two = secondNorm(scope, type);
  Output power = constantOf(scope, type, ratePower);
  if (l2Shrinkage > 0)
    return ops::ResourceSparseApplyFtrlV2(scope, v.handle, squares, linear, g.values, g.indices, r, one, two,
                                          constantOf(scope, type, l2Shrinkage), power);
  return ops::ResourceSparseApplyFtrl(scope, v.handle, squares, linear, g.values, g.indices, r, one, two, power);
}

Operation ProximalGradientDescent::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  return ops::ResourceApplyProximalGradientDescent(scope, v.handle, rateOf(scope, rate, type), constantOf(scope, type, l1),
                                                   constantOf(scope, type, l2), gradient);
}

Operation ProximalGradientDescent::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  return ops::ResourceSparseApplyProximalGradientDescent(scope, v.handle, rateOf(scope, rate, type), constantOf(scope, type, l1),
                                                         constantOf(scope, type, l2), g.values, g.indices);
}

Operation ProximalAdagrad::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  return ops::ResourceApplyProximalAdagrad(scope, v.handle, slot(scope, v, "ProximalAdagrad", initial), rateOf(scope, rate, type),
                                           constantOf(scope, type, l1), constantOf(scope, type, l2), gradient);
}

Operation ProximalAdagrad::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  return ops::ResourceSparseApplyProximalAdagrad(scope, v.handle, slot(scope, v, "ProximalAdagrad", initial), rateOf(scope, rate, type),
                                                 constantOf(scope, type, l1), constantOf(scope, type, l2), g.values, g.indices);
}

//===----------------------------------------------------------------------===//
// Adam and its kin
//===----------------------------------------------------------------------===//

void Adam::begin(const Scope &scope) {
  if (handle1.node())
    return;
  handle1 = number(scope, "beta1_power", DType::Float32, beta1);
  handle2 = number(scope, "beta2_power", DType::Float32, beta2);
}

std::vector<Operation> Adam::finish(const Scope &scope) {
  std::vector<Operation> done;
  for (auto [handle, beta] : {std::pair(handle1, beta1), std::pair(handle2, beta2)})
    done.push_back(ops::AssignVariableOp(scope, handle, ops::Multiply(scope, read(scope, handle, DType::Float32), beta)));
  return done;
}

Output Adam::power1(const Scope &scope, DType type) const { return rateOf(scope, read(scope, handle1, DType::Float32), type); }
Output Adam::power2(const Scope &scope, DType type) const { return rateOf(scope, read(scope, handle2, DType::Float32), type); }

Output Adam::correctedRate(const Scope &scope, DType type) {
  Output one = constantOf(scope, type, 1);
  Output root = ops::Sqrt(scope, ops::Subtract(scope, one, power2(scope, type)));
  return ops::RealDiv(scope, ops::Multiply(scope, rateOf(scope, rate, type), root), ops::Subtract(scope, one, power1(scope, type)));
}

Operation Adam::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output m = slot(scope, v, kind()), s = slot(scope, v, kind());
  if (amsgrad)
    return ops::ResourceApplyAdamWithAmsgrad(scope, v.handle, m, s, slot(scope, v, kind()), power1(scope, type), power2(scope, type),
                                             rateOf(scope, rate, type), constantOf(scope, type, beta1), constantOf(scope, type, beta2),
                                             constantOf(scope, type, epsilon), gradient);
  return ops::ResourceApplyAdam(scope, v.handle, m, s, power1(scope, type), power2(scope, type), rateOf(scope, rate, type),
                                constantOf(scope, type, beta1), constantOf(scope, type, beta2), constantOf(scope, type, epsilon), gradient);
}

Operation Adam::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  // all decay, and the rows are added
  std::vector<Operation> done;
  auto moment = [&](const Output &values, float beta) {
    Output handle = slot(scope, v, kind());
    Output less = ops::Multiply(scope, read(scope, handle, type), constantOf(scope, type, beta));
    Scope decayed = scope.WithControlDependencies(std::vector<Operation>{ops::AssignVariableOp(scope, handle, less)});
    Output more = ops::Multiply(scope, values, constantOf(scope, type, 1.0f - beta));
    done.push_back(ops::ResourceScatterAdd(decayed, handle, g.indices, more));
    return read(scope.WithControlDependencies({done.back()}), handle, type);
  };
  Output m = moment(g.values, beta1), s = moment(ops::Square(scope, g.values), beta2);
  if (amsgrad) {
    Output largest = slot(scope, v, kind());
    s = ops::Maximum(scope, read(scope, largest, type), s);
    done.push_back(ops::AssignVariableOp(scope, largest, s));
  }
  Output below = ops::Add(scope, ops::Sqrt(scope, s), constantOf(scope, type, epsilon));
  Output move = ops::RealDiv(scope, ops::Multiply(scope, m, correctedRate(scope, type)), below);
  done.push_back(ops::AssignSubVariableOp(scope, v.handle, move));
  return group(scope, done);
}

Operation LazyAdam::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output mHandle = slot(scope, v, kind()), sHandle = slot(scope, v, kind());
  Output m = blend(scope, readRows(scope, mHandle, g), g.values, beta1);
  Output s = blend(scope, readRows(scope, sHandle, g), ops::Square(scope, g.values), beta2), root = s;
  std::vector<Operation> done{ops::ResourceScatterUpdate(scope, mHandle, g.indices, m),
                              ops::ResourceScatterUpdate(scope, sHandle, g.indices, s)};
  if (amsgrad) {
    Output largest = slot(scope, v, kind());
    root = ops::Maximum(scope, readRows(scope, largest, g), s);
    done.push_back(ops::ResourceScatterUpdate(scope, largest, g.indices, root));
  }
  Output below = ops::Add(scope, ops::Sqrt(scope, root), constantOf(scope, type, epsilon));
  Output move = ops::RealDiv(scope, ops::Multiply(scope, m, correctedRate(scope, type)), below);
  done.push_back(ops::ResourceScatterSub(scope, v.handle, g.indices, move));
  return group(scope, done);
}

Operation Adamax::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output m = slot(scope, v, kind()), largest = slot(scope, v, kind());
  return ops::ResourceApplyAdaMax(scope, v.handle, m, largest, power1(scope, type), rateOf(scope, rate, type),
                                  constantOf(scope, type, beta1), constantOf(scope, type, beta2), constantOf(scope, type, epsilon), gradient);
}

Operation Adamax::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) {
  DType type = rows.values.type();
  Gradient g = unique(scope, rows);
  Output mHandle = slot(scope, v, kind()), largestHandle = slot(scope, v, kind());
  Output m = blend(scope, readRows(scope, mHandle, g), g.values, beta1);
  Output largest = ops::Maximum(scope, ops::Multiply(scope, readRows(scope, largestHandle, g), constantOf(scope, type, beta2)),
                                ops::Abs(scope, g.values));
  Output r = ops::RealDiv(scope, rateOf(scope, rate, type), ops::Subtract(scope, constantOf(scope, type, 1), power1(scope, type)));
  Output move = ops::Multiply(scope, r, ops::RealDiv(scope, m, ops::Add(scope, largest, constantOf(scope, type, epsilon))));
  return group(scope, {ops::ResourceScatterUpdate(scope, mHandle, g.indices, m),
                       ops::ResourceScatterUpdate(scope, largestHandle, g.indices, largest),
                       ops::ResourceScatterSub(scope, v.handle, g.indices, move)});
}

void Nadam::begin(const Scope &scope) {
  Adam::begin(scope);
  if (!count.node()) {
    count = number(scope, "steps", DType::Float32, 0);
    product = number(scope, "weight_product", DType::Float32, 1);
  }
  Output done = read(scope, count, DType::Float32);
  auto weight = [&](float ahead) {
    Output power = ops::Pow(scope, 0.96f, ops::Add(scope, done, ahead));
    return ops::Multiply(scope, ops::Subtract(scope, 1.0f, ops::Multiply(scope, power, 0.5f)), beta1);
  };
  now = weight(1);
  next = weight(2);
  productNow = ops::Multiply(scope, read(scope, product, DType::Float32), now);
}

std::vector<Operation> Nadam::finish(const Scope &scope) {
  std::vector<Operation> done = Adam::finish(scope);
  done.push_back(ops::AssignAddVariableOp(scope, count, 1.0f));
  done.push_back(ops::AssignVariableOp(scope, product, productNow));
  return done;
}

Operation Nadam::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output mHandle = slot(scope, v, kind()), sHandle = slot(scope, v, kind());
  Output m = approach(scope, read(scope, mHandle, type), gradient, beta1);
  Output s = approach(scope, read(scope, sHandle, type), ops::Square(scope, gradient), beta2);
  Output w = rateOf(scope, now, type), ahead = rateOf(scope, next, type), all = rateOf(scope, productNow, type);
  Output one = constantOf(scope, type, 1);
  auto share = [&](const Output &x, const Output &weight, const Output &weights) {
    return ops::RealDiv(scope, ops::Multiply(scope, x, weight), ops::Subtract(scope, one, weights));
  };
  Output top = ops::Add(scope, share(m, ahead, ops::Multiply(scope, all, ahead)), share(gradient, ops::Subtract(scope, one, w), all));
  Output root = ops::Sqrt(scope, ops::RealDiv(scope, s, ops::Subtract(scope, one, power2(scope, type))));
  Output move = ops::RealDiv(scope, ops::Multiply(scope, top, rateOf(scope, rate, type)),
                             ops::Add(scope, root, constantOf(scope, type, epsilon)));
  return group(scope, {ops::AssignVariableOp(scope, mHandle, m), ops::AssignVariableOp(scope, sHandle, s),
                       ops::AssignSubVariableOp(scope, v.handle, move)});
}

Operation Nadam::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) { return Optimizer::stepRows(scope, rows, v); }

Operation Lamb::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output mHandle = slot(scope, v, kind()), sHandle = slot(scope, v, kind());
  Output m = approach(scope, read(scope, mHandle, type), gradient, beta1);
  Output s = approach(scope, read(scope, sHandle, type), ops::Square(scope, gradient), beta2);
  Output one = constantOf(scope, type, 1), zero = constantOf(scope, type, 0);
  Output top = ops::RealDiv(scope, m, ops::Subtract(scope, one, power1(scope, type)));
  Output root = ops::Sqrt(scope, ops::RealDiv(scope, s, ops::Subtract(scope, one, power2(scope, type))));
  Output direction = ops::RealDiv(scope, top, ops::Add(scope, root, constantOf(scope, type, epsilon)));
  auto length = [&](const Output &x) -> Output {
    Output squares = ops::Square(scope, x);
    return ops::Sqrt(scope, ops::Sum(scope, squares, ops::Range(scope, 0, ops::Rank(scope, squares), 1)));
  };
  Output mine = length(read(scope, v.handle, type)), its = length(direction);
  Output ratio = ops::SelectV2(scope, ops::LogicalAnd(scope, ops::Greater(scope, mine, zero), ops::Greater(scope, its, zero)),
                               ops::RealDiv(scope, mine, its), one);
  Output move = ops::Multiply(scope, ops::Multiply(scope, ratio, rateOf(scope, rate, type)), direction);
  return group(scope, {ops::AssignVariableOp(scope, mHandle, m), ops::AssignVariableOp(scope, sHandle, s),
                       ops::AssignSubVariableOp(scope, v.handle, move)});
}

Operation Lamb::stepRows(const Scope &scope, const Gradient &rows, const Variable &v) { return Optimizer::stepRows(scope, rows, v); }

Operation Lion::step(const Scope &scope, const Output &gradient, const Variable &v) {
  DType type = gradient.type();
  Output handle = slot(scope, v, "Lion"), m = read(scope, handle, type);
  Output move = ops::Multiply(scope, ops::Sign(scope, blend(scope, m, gradient, beta1)), rateOf(scope, rate, type));
  return group(scope, {ops::AssignVariableOp(scope, handle, blend(scope, m, gradient, beta2)),
                       ops::AssignSubVariableOp(scope, v.handle, move)});
}

//===----------------------------------------------------------------------===//
// Averages
//===----------------------------------------------------------------------===//

Operation ExponentialMovingAverage::Apply(const Scope &scope, const std::vector<Variable> &variables) {
  Scope inside = scope.NewSubScope("averages");
  Output keepShare = constantOf(inside, DType::Float32, decay);
  if (numUpdates.node()) {
    Output n = ops::Cast(inside, numUpdates, DType::Float32);
    keepShare = ops::Minimum(inside, keepShare, ops::RealDiv(inside, ops::Add(inside, n, 1.0f), ops::Add(inside, n, 10.0f)));
  }
  Output moved = ops::Subtract(inside, 1.0f, keepShare);
  std::vector<Operation> done;
  for (const Variable &v : variables) {
    if (!v.handle.node() || !scope.ok())
      return Operation();
    DType type = v.value.type();
    std::string name = v.handle.op().name() + "/ExponentialMovingAverage";
    Variable average;
    average.handle = handleOf(scope.WithNoControlDependencies(), name, type, shapeOf(v.handle));
    // made before the step that the scope may wait for
    average.init = ops::AssignVariableOp(scope.WithNoControlDependencies().WithOpName(name + "_init"), average.handle, v.value);
    average.value = ops::ReadVariableOp(scope.WithNoControlDependencies().WithOpName(name + "_read"), average.handle, type);
    Output away = ops::Subtract(inside, read(inside, average.handle, type), read(inside, v.handle, type));
    done.push_back(ops::AssignSubVariableOp(inside, average.handle, ops::Multiply(inside, away, rateOf(inside, moved, type))));
    kept.push_back(average);
  }
  return group(inside, done);
}

} // namespace lathe::train
