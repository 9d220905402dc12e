// Images of other sizes.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

/// Where one output row (or column) reads: two places, and the weight of the second (1024ths, or a float).
struct Taps {
  SmallVector<int64_t> low, high, weight;
  SmallVector<float> real;
};

/// In 10 bits of fraction, as the integer kernels do.
Taps integerTaps(int64_t in, int64_t out, bool alignCorners, bool halfPixelCenters) {
  int64_t scale = ((in << 10) + out / 2) / out;
  if (alignCorners && out > 1)
    scale = (((in - 1) << 10) + (out - 1) / 2) / (out - 1);
  Taps t;
  for (int64_t i = 0; i < out; ++i) {
    int64_t at = halfPixelCenters ? i * scale + scale / 2 - (1 << 9) : i * scale;
    t.low.push_back(std::max<int64_t>(at / 1024, 0));
    t.high.push_back(std::min<int64_t>((at + 1023) / 1024, in - 1));
    t.weight.push_back(at - t.low.back() * 1024);
  }
  return t;
}

Taps realTaps(int64_t in, int64_t out, bool alignCorners, bool halfPixelCenters) {
  float scale = float(in) / float(out);
  if (alignCorners && out > 1)
    scale = float(in - 1) / float(out - 1);
  Taps t;
  for (int64_t i = 0; i < out; ++i) {
    float at = halfPixelCenters ? (float(i) + 0.5f) * scale - 0.5f : float(i) * scale;
    const float floored = std::floor(at);
    t.low.push_back(std::max<int64_t>(int64_t(floored), 0));
    t.high.push_back(std::min<int64_t>(int64_t(std::ceil(at)), in - 1));
    t.real.push_back(at - float(t.low.back()));
  }
  return t;
}

Value take(OpContext &c, Value x, ArrayRef<int64_t> indices, int64_t axis) {
  Dims dims = c.dims(x);
  SmallVector<int64_t> offsets, sizes;
  for (int64_t i = 0; i < Emitter::rank(x); ++i) {
    if (i != axis)
      offsets.push_back(i);
    auto n = constantOf(dims[i]);
    sizes.push_back(i == axis ? 1 : n ? *n : ShapedType::kDynamic);
  }
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), offsets, {axis}, {}, {}, {axis}, 1);
  return c.make<hlo::GatherOp>(x, c.constantInts(indices, c.b.getI32Type()), numbers, sizes, false);
}

LogicalResult quantizedBilinear(OpContext &c, bool alignCorners, bool halfPixelCenters) {
  Value x = c.input(0);
  auto size = c.constantInts(1);
  if (!x || failed(size))
    return failure();
  if (Emitter::rank(x) != 4 || size->size() != 2)
    return c.error("expected an input of rank 4 and two sizes");
  auto h = constantOf(c.dim(x, 1)), w = constantOf(c.dim(x, 2));
  for (int64_t n : *size)
    if (n <= 0 || n > (1 << 20))
      return c.error("expected positive sizes");
  if (!h || !w || *h <= 0 || *w <= 0)
    return c.error("the size of the input must be known at compile time");
  const bool real = c.inputInfo(0).type == tfl::TensorType::UINT8;
  auto taps = real ? realTaps : integerTaps;
  Taps ty = taps(*h, (*size)[0], alignCorners, halfPixelCenters), tx = taps(*w, (*size)[1], alignCorners, halfPixelCenters);
  Type type = real ? Type(c.b.getF32Type()) : c.inputInfo(0).type == tfl::TensorType::INT16 ? Type(c.b.getI64Type()) : Type(c.b.getI32Type());
  Value wide = c.convert(x, type);
  auto weights = [&](const Taps &t, int64_t axis) {
    Dims dims(4, c.size(1));
    Value v;
    if (real) {
      Tensor tensor = Tensor::allocate(DType::Float32, {int64_t(t.real.size())});
      llvm::copy(t.real, tensor.data<float>());
      v = c.constant(tensor);
    } else {
      v = c.constantInts(t.weight, type);
    }
    dims[axis] = c.dim(v, 0);
    return c.reshape(v, dims);
  };
  Value wy = weights(ty, 1), wx = weights(tx, 2);
  Value vy = c.sub(c.likeInt(wy, real ? 1 : 1024), wy), vx = c.sub(c.likeInt(wx, real ? 1 : 1024), wx);
  Value top = take(c, wide, ty.low, 1), bottom = take(c, wide, ty.high, 1);
  auto part = [&](Value rows, ArrayRef<int64_t> columns, Value y, Value x) {
    return c.mul(c.mul(take(c, rows, columns, 2), y), x);
  };
  Value sum = c.add(c.add(c.add(part(top, tx.low, vy, vx), part(bottom, tx.low, wy, vx)), part(top, tx.high, vy, wx)),
                    part(bottom, tx.high, wy, wx));
  Type element = c.elementOf(c.outputInfo(0));
  if (real)
    return c.setResult(0, c.convert(c.add(sum, c.like(sum, 0.5)), element));
  Value half = c.select(c.compare(Compare::GT, sum, c.likeInt(sum, 0)), c.likeInt(sum, 1 << 19), c.likeInt(sum, -(1 << 19)));
  return c.setResult(0, c.convert(c.div(c.add(sum, half), c.likeInt(sum, 1 << 20)), element));
}

LogicalResult resize(OpContext &c, const char *op, bool alignCorners, bool halfPixelCenters) {
  auto result = c.call(op, {c.value(0), c.value(1)},
                       {c.attr("align_corners", alignCorners), c.attr("half_pixel_centers", halfPixelCenters)});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

} // namespace

void registerResize(OpTable &t) {
  t.add(Op::RESIZE_BILINEAR, 2, 2, 4, Float32 | Quantized, [](OpContext &c) {
    const auto &o = c.options<tfl::ResizeBilinearOptions>();
    if (c.isQuantized(0))
      return quantizedBilinear(c, o.align_corners(), o.half_pixel_centers());
    return resize(c, "ResizeBilinear", o.align_corners(), o.half_pixel_centers());
  });
  t.add(Op::RESIZE_NEAREST_NEIGHBOR, 2, 2, 4, Any, [](OpContext &c) {
    const auto &o = c.options<tfl::ResizeNearestNeighborOptions>();
    return resize(c, "ResizeNearestNeighbor", o.align_corners(), o.half_pixel_centers());
  });
}

} // namespace lathe::tflite
