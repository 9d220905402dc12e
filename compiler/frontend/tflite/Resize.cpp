// Images of other sizes.
#include "compiler/frontend/tflite/OpTable.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "passes/quantize/Kernels.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

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
  return c.setResult(0, quantize::resizeBilinear(c, x, (*size)[0], (*size)[1], alignCorners, halfPixelCenters));
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
