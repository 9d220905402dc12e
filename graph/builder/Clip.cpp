#include "graph/builder/Clip.h"

#include "graph/builder/ops/array.h"
#include "graph/builder/ops/math.h"
#include "graph/builder/ops/nn.h"

#include <limits>

namespace lathe::train {
namespace {

Gradient withValues(const Gradient &g, const Output &values) { return {values, g.indices, g.dense_shape}; }

Output limit(const Scope &s, const Input &norm, DType type) {
  Output value = s.Resolve(norm);
  return value.type() == type || !value.node() ? value : Output(ops::Cast(s, value, type));
}

Output number(const Scope &s, DType type, float value) { return limit(s, value, type); }

Output allAxes(const Scope &s, const Output &x) { return ops::Range(s, 0, ops::Rank(s, x), 1); }

} // namespace

Gradient ClipByValue(const Scope &scope, const Gradient &g, const Input &low, const Input &high) {
  if (!g)
    return g;
  Scope s = scope.NewSubScope("clip_by_value");
  DType type = g.values.type();
  return withValues(g, ops::Maximum(s, ops::Minimum(s, g.values, limit(s, high, type)), limit(s, low, type)));
}

Gradient ClipByNorm(const Scope &scope, const Gradient &g, const Input &norm, const std::vector<int32_t> &axes) {
  if (!g)
    return g;
  Scope s = scope.NewSubScope("clip_by_norm");
  DType type = g.values.type();
  Output most = limit(s, norm, type), over = allAxes(s, g.values);
  if (!axes.empty()) {
    Tensor list = Tensor::allocate(DType::Int32, {static_cast<int64_t>(axes.size())});
    std::copy(axes.begin(), axes.end(), list.data<int32_t>());
    over = ops::Const(s, list);
  }
  Output length = ops::Sqrt(s, ops::Sum(s, ops::Square(s, g.values), over, ops::Sum::KeepDims(true)));
  return withValues(g, ops::RealDiv(s, ops::Multiply(s, g.values, most), ops::Maximum(s, length, most)));
}

Gradient ClipByAverageNorm(const Scope &scope, const Gradient &g, const Input &norm) {
  if (!g)
    return g;
  Scope s = scope.NewSubScope("clip_by_average_norm");
  DType type = g.values.type();
  Output most = limit(s, norm, type), count = ops::Cast(s, ops::Size(s, g.values), type);
  Output inverse = ops::Rsqrt(s, ops::Sum(s, ops::Square(s, g.values), allAxes(s, g.values)));
  Output factor = ops::Minimum(s, ops::Multiply(s, inverse, count), ops::Reciprocal(s, most));
  return withValues(g, ops::Multiply(s, ops::Multiply(s, g.values, most), factor));
}

Output GlobalNorm(const Scope &scope, const std::vector<Gradient> &gradients) {
  Scope s = scope.NewSubScope("global_norm");
  OutputList halves;
  DType type = DType::Float32;
  for (const Gradient &g : gradients)
    if (g) {
      type = halves.empty() ? g.values.type() : type;
      halves.push_back(limit(s, ops::L2Loss(s, g.values).output, type));
    }
  if (halves.empty())
    return ops::Const(s, 0.0f);
  return ops::Sqrt(s, ops::Multiply(s, ops::AddN(s, halves), number(s, type, 2)));
}

std::vector<Gradient> ClipByGlobalNorm(const Scope &scope, const std::vector<Gradient> &gradients, const Input &norm, Output *globalNorm) {
  Scope s = scope.NewSubScope("clip_by_global_norm");
  Output length = GlobalNorm(s, gradients);
  if (globalNorm)
    *globalNorm = length;
  DType type = length.type();
  Output most = limit(s, norm, type);
  Output factor = ops::Multiply(s, most, ops::Minimum(s, ops::Reciprocal(s, length), ops::Reciprocal(s, most)));
  factor = ops::SelectV2(s, ops::IsFinite(s, length), factor, number(s, type, std::numeric_limits<float>::quiet_NaN()));
  std::vector<Gradient> out;
  for (const Gradient &g : gradients)
    out.push_back(g ? withValues(g, ops::Multiply(s, g.values, limit(s, factor, g.values.type()))) : g);
  return out;
}

} // namespace lathe::train
