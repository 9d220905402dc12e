// What optimizers say often, for their own files.
#ifndef LATHE_GRAPH_BUILDER_OPTIMIZERPARTS_H
#define LATHE_GRAPH_BUILDER_OPTIMIZERPARTS_H

#include "graph/builder/Optimizers.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/state.h"

namespace lathe::train {

/// A number of a variable's type.
inline Output constantOf(const Scope &scope, DType type, double value) {
  Output c = ops::Const(scope, static_cast<float>(value));
  return type == DType::Float32 ? c : Output(ops::Cast(scope, c, type));
}

inline Output rateOf(const Scope &scope, const Input &rate, DType type) {
  Output value = scope.Resolve(rate);
  return value.type() == type || !value.node() ? value : Output(ops::Cast(scope, value, type));
}

/// The shape that a handle says its variable has.
PartialShape shapeOf(const Output &handle);

inline Operation group(const Scope &scope, const std::vector<Operation> &operations) {
  return ops::NoOp(scope.WithOpName("group").WithControlDependencies(operations));
}

/// The value of a variable at this place in the order of things.
inline Output read(const Scope &scope, const Output &handle, DType type) { return ops::ReadVariableOp(scope, handle, type); }
inline Output readRows(const Scope &scope, const Output &handle, const Gradient &rows) {
  return ops::ResourceGather(scope, handle, rows.indices, rows.values.type());
}

/// x * k + y * (1 - k).
inline Output blend(const Scope &scope, const Output &x, const Output &y, float k) {
  DType type = x.type();
  return ops::Add(scope, ops::Multiply(scope, x, constantOf(scope, type, k)), ops::Multiply(scope, y, constantOf(scope, type, 1.0f - k)));
}

/// x + (y - x) * (1 - k).
inline Output approach(const Scope &scope, const Output &x, const Output &y, float k) {
  return ops::Add(scope, x, ops::Multiply(scope, ops::Subtract(scope, y, x), constantOf(scope, x.type(), 1.0f - k)));
}

} // namespace lathe::train

#endif
