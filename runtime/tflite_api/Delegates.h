// What delegates are in memory, those of programs too.
#ifndef LATHE_RUNTIME_TFLITE_API_DELEGATES_H
#define LATHE_RUNTIME_TFLITE_API_DELEGATES_H

#include "tensorflow/lite/c/c_api_opaque.h"

namespace lathe::tflite_api {

struct Delegate {
  void *data;
  TfLiteStatus (*prepare)(TfLiteContext *context, TfLiteDelegate *delegate);
  void *copyFrom, *copyTo, *freeHandle;
  int64_t flags;
  TfLiteOpaqueDelegateBuilder *builder; ///< of an opaque one, whose functions count
};
static_assert(sizeof(Delegate) == 56);

inline TfLiteDelegate *opaque(Delegate *d) { return reinterpret_cast<TfLiteDelegate *>(d); }

} // namespace lathe::tflite_api

#endif
