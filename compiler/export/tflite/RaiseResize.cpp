// RESIZE_BILINEAR from its gathers and weights.
#include "compiler/export/tflite/Raiser.h"

using namespace mlir;

namespace lathe::tflwrite {

Value raiseResize(const BilinearResize &resize, Value image, RankedTensorType type, Raiser &r) {
  Value size = r.numbers({resize.height, resize.width});
  SmallVector<AffineExpr> dims = hlo::getDims(hlo::tensorType(image));
  dims[1] = r.expr(resize.height);
  dims[2] = r.expr(resize.width);
  RankedTensorType resized = hlo::makeType(dims, type.getElementType());
  Value y = r.make("RESIZE_BILINEAR", {image, size}, resized,
                   {{"align_corners", r.flag(resize.alignCorners)}, {"half_pixel_centers", r.flag(resize.halfPixelCenters)}});
  return r.reshape(y, type);
}

static LogicalResult resize(Operation *op, Raiser &r) {
  auto found = matchBilinearResize(op);
  if (!found)
    return failure();
  Value y = raiseResize(*found, found->image, hlo::tensorType(op->getResult(0)), r);
  return y ? r.replace(op, y) : failure();
}

void addResizeHandlers(HandlerTable &table) {
  table["reshape"].push_back(resize);
  table["add"].push_back(resize);
}

} // namespace lathe::tflwrite
