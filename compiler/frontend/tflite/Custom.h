// Custom operators that have a compiled form, by their names.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_CUSTOM_H
#define LATHE_COMPILER_FRONTEND_TFLITE_CUSTOM_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

bool isKnownCustom(StringRef name);
/// All names.
SmallVector<StringRef> knownCustoms();
LogicalResult translateCustom(OpContext &c);

// MediaPipe's operators.
LogicalResult maxPoolingWithArgmax(OpContext &c);
LogicalResult maxUnpooling(OpContext &c);
LogicalResult transposeConvBias(OpContext &c);
LogicalResult transformTensorBilinear(OpContext &c);
LogicalResult transformLandmarks(OpContext &c);
LogicalResult landmarksToMatrix(OpContext &c);

} // namespace lathe::tflite

#endif
