// Batch normalisation of the evaluator.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cmath>

using namespace mlir;

namespace lathe::hlo::eval {

namespace {
// The feature of each element: index / inner % features.
struct Features {
  int64_t count, inner, elements;
  Features(const Tensor &t, int64_t dim) : count(t.dim(dim)), inner(1), elements(t.numElements()) {
    for (int64_t i = dim + 1; i < t.rank(); ++i)
      inner *= t.dim(i);
  }
  int64_t of(int64_t index) const { return index / inner % count; }
  double perFeature() const { return count ? static_cast<double>(elements) / count : 0; }
};
} // namespace

static LogicalResult store(Evaluation &e, Operation *op, const Tensor &like, const std::vector<double> &values,
                           Tensors &out) {
  Tensor t;
  if (failed(e.allocate(op, like.dtype(), like.dims(), t)))
    return failure();
  storeFloats(t.dtype(), values.data(), values.size(), t.data());
  out.push_back(t);
  return success();
}

static void meanAndVariance(const std::vector<double> &x, const Features &features, std::vector<double> &mean,
                            std::vector<double> &variance) {
  mean.assign(features.count, 0);
  variance.assign(features.count, 0);
  for (int64_t i = 0; i < features.elements; ++i)
    mean[features.of(i)] += x[i];
  for (double &m : mean)
    m /= features.perFeature();
  for (int64_t i = 0; i < features.elements; ++i) {
    double d = x[i] - mean[features.of(i)];
    variance[features.of(i)] += d * d;
  }
  for (double &v : variance)
    v /= features.perFeature();
}

static std::vector<double> normalize(const std::vector<double> &x, const Features &features,
                                     const std::vector<double> &scale, const std::vector<double> &offset,
                                     const std::vector<double> &mean, const std::vector<double> &variance,
                                     double epsilon) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t f = features.of(i);
    y[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + epsilon) * scale[f] + offset[f];
  }
  return y;
}

static LogicalResult evalInference(Evaluation &e, BatchNormInferenceOp op, ArrayRef<Tensor> in, Tensors &out) {
  Features features(in[0], op.getFeatureIndex());
  if (failed(e.work(op, features.elements)))
    return failure();
  auto y = normalize(loadFloats(in[0]), features, loadFloats(in[1]), loadFloats(in[2]), loadFloats(in[3]),
                     loadFloats(in[4]), op.getEpsilon().convertToFloat());
  return store(e, op, in[0], y, out);
}

static LogicalResult evalTraining(Evaluation &e, BatchNormTrainingOp op, ArrayRef<Tensor> in, Tensors &out) {
  Features features(in[0], op.getFeatureIndex());
  if (failed(e.work(op, features.elements)))
    return failure();
  std::vector<double> x = loadFloats(in[0]), mean, variance;
  meanAndVariance(x, features, mean, variance);
  auto y = normalize(x, features, loadFloats(in[1]), loadFloats(in[2]), mean, variance,
                     op.getEpsilon().convertToFloat());
  if (failed(store(e, op, in[0], y, out)) || failed(store(e, op, in[1], mean, out)))
    return failure();
  return store(e, op, in[1], variance, out);
}

static LogicalResult evalGrad(Evaluation &e, BatchNormGradOp op, ArrayRef<Tensor> in, Tensors &out) {
  Features features(in[0], op.getFeatureIndex());
  if (failed(e.work(op, features.elements)))
    return failure();
  std::vector<double> x = loadFloats(in[0]), scale = loadFloats(in[1]), mean = loadFloats(in[2]),
                      variance = loadFloats(in[3]), dy = loadFloats(in[4]);
  double epsilon = op.getEpsilon().convertToFloat(), n = features.perFeature();
  std::vector<double> sumDy(features.count), sumDyX(features.count), dx(x.size()), dScale(features.count);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t f = features.of(i);
    sumDy[f] += dy[i];
    sumDyX[f] += dy[i] * (x[i] - mean[f]);
  }
  for (int64_t f = 0; f < features.count; ++f)
    dScale[f] = sumDyX[f] / std::sqrt(variance[f] + epsilon);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t f = features.of(i);
    double v = variance[f] + epsilon;
    dx[i] = scale[f] / std::sqrt(v) * (dy[i] - sumDy[f] / n - (x[i] - mean[f]) * sumDyX[f] / (n * v));
  }
  if (failed(store(e, op, in[0], dx, out)) || failed(store(e, op, in[1], dScale, out)))
    return failure();
  return store(e, op, in[1], sumDy, out);
}

void registerNorm(HandlerTable &table) {
  add<BatchNormInferenceOp, evalInference>(table);
  add<BatchNormTrainingOp, evalTraining>(table);
  add<BatchNormGradOp, evalGrad>(table);
}

} // namespace lathe::hlo::eval
