// Pooling.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "dialects/hlo/Constants.h"
#include "passes/legalize/nn/Window.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

struct Pool {
  Value x;
  SmallVector<int64_t> window;
  hlo::ReduceWindow config;
  bool padded = false;
  Activation activation = Activation::NONE;
};

FailureOr<Pool> parse(OpContext &c) {
  const auto &o = c.options<tfl::Pool2DOptions>();
  Pool p;
  p.x = c.input(0);
  if (!p.x)
    return failure();
  if (Emitter::rank(p.x) != 4)
    return c.error("expected an input of rank 4");
  p.activation = o.fused_activation_function();
  legalize::DataFormat format;
  format.feature = 3;
  format.spatial = {1, 2};
  SmallVector<legalize::WindowDim> dims(2);
  dims[0].input = c.dim(p.x, 1);
  dims[0].size = o.filter_height();
  dims[0].stride = o.stride_h();
  dims[1].input = c.dim(p.x, 2);
  dims[1].size = o.filter_width();
  dims[1].stride = o.stride_w();
  if (o.filter_height() <= 0 || o.filter_width() <= 0)
    return c.error("window sizes must be positive");
  if (failed(legalize::computePadding(c, format, dims, o.padding() == tfl::Padding::SAME ? "SAME" : "VALID", {})))
    return failure();
  p.window = {1, dims[0].size, dims[1].size, 1};
  p.config.strides = {1, dims[0].stride, dims[1].stride, 1};
  p.config.padding.assign(4, {0, 0});
  for (int i = 0; i < 2; ++i) {
    p.config.padding[i + 1] = {dims[i].low, dims[i].high};
    p.padded |= dims[i].low || dims[i].high;
  }
  return p;
}

template <typename HloOp>
SmallVector<Value> body(OpBuilder &b, Location l, ValueRange args) {
  return {HloOp::create(b, l, args[0], args[1])};
}

Value sumWindows(OpContext &c, const Pool &p, Value x) {
  return c.make<hlo::ReduceWindowOp>(ValueRange(x), ValueRange(c.scalarInt(0, Emitter::elementType(x))),
                                     ArrayRef<int64_t>(p.window), p.config, body<hlo::AddOp>);
}

/// How many elements each window has inside the input.
Value counts(OpContext &c, const Pool &p, Value like) {
  Type type = Emitter::elementType(like);
  if (!p.padded)
    return c.likeInt(like, p.window[1] * p.window[2]);
  Dims dims = c.dims(p.x);
  return sumWindows(c, p, c.splatInt(1, ArrayRef<AffineExpr>{c.size(1), dims[1], dims[2], c.size(1)}, type));
}

LogicalResult maxPool(OpContext &c) {
  auto p = parse(c);
  if (failed(p))
    return failure();
  Type type = Emitter::elementType(p->x);
  Value lowest = hlo::makeLowest(c.b, c.loc, type, /*infinite=*/true);
  Value result = c.make<hlo::ReduceWindowOp>(ValueRange(p->x), ValueRange(lowest), ArrayRef<int64_t>(p->window), p->config,
                                             body<hlo::MaxOp>);
  if (!c.isQuantized(0))
    return c.setResult(0, c.activate(result, p->activation));
  auto range = activationRange(c, c.outputInfo(0), p->activation);
  if (failed(range))
    return failure();
  if (*range == rangeOf(c.outputInfo(0).type))
    return c.setResult(0, result);
  return c.setResult(0, finish(c, widen(c, result, 0), 0, *range, type));
}

LogicalResult averagePool(OpContext &c) {
  auto p = parse(c);
  if (failed(p))
    return failure();
  Type type = Emitter::elementType(p->x);
  if (!c.isQuantized(0)) {
    Value sums = sumWindows(c, *p, p->x);
    return c.setResult(0, c.activate(c.div(sums, counts(c, *p, sums)), p->activation));
  }
  auto range = activationRange(c, c.outputInfo(0), p->activation);
  if (failed(range))
    return failure();
  Value sums = sumWindows(c, *p, widen(c, p->x, 0)), count = counts(c, *p, sums);
  return c.setResult(0, quantize::average(c, sums, count, p->window[1] * p->window[2], *range, type));
}

LogicalResult l2Pool(OpContext &c) {
  auto p = parse(c);
  if (failed(p))
    return failure();
  Value sums = sumWindows(c, *p, c.mul(p->x, p->x));
  Value mean = c.div(sums, counts(c, *p, sums));
  return c.setResult(0, c.activate(c.unary<hlo::SqrtOp>(mean), p->activation));
}

} // namespace

void registerPool(OpTable &t) {
  t.add(Op::MAX_POOL_2D, 1, 1, 3, Float32 | Quantized, maxPool);
  t.add(Op::AVERAGE_POOL_2D, 1, 1, 3, Float32 | Quantized, averagePool);
  t.add(Op::L2_POOL_2D, 1, 1, 1, Float32, l2Pool);
}

} // namespace lathe::tflite
