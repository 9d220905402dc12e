// The logarithm of softmax on 8-bit numbers.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_LOGSOFTMAX_H
#define LATHE_COMPILER_FRONTEND_TFLITE_LOGSOFTMAX_H

#include "compiler/frontend/tflite/OpContext.h"

namespace lathe::tflite {

LogicalResult quantizedLogSoftmax(OpContext &c);

} // namespace lathe::tflite

#endif
