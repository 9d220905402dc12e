// Functions for what compiled models do without: delegates, hardware buffers, telemetry.
#include "runtime/tflite_api/Delegates.h"
#include "tensorflow/lite/c/c_api_experimental.h"

#include <cstring>

using lathe::tflite_api::Delegate;
using lathe::tflite_api::opaque;

struct TfLiteBackendBuffer {
  void *pointer = nullptr;
};
struct TfLiteSynchronization {
  void *pointer = nullptr;
};

namespace {

struct XnnpackOptions {
  int32_t threads;
  uint32_t flags;
  void *weightsCache;
  bool handleVariables;
  const char *cachePath;
};
static_assert(sizeof(XnnpackOptions) == 32);

struct XnnpackDelegate {
  Delegate delegate = {};
  XnnpackOptions options = {0, 3, nullptr, false, nullptr};
};

struct NnapiOptions {
  int preference;
  const char *accelerator, *cacheDir, *token;
  int disallowCpu, allowFp16, maxPartitions;
  void *library;
};
static_assert(sizeof(NnapiOptions) == 56);

/// Operators that it would run are compiled.
TfLiteStatus takesNothing(TfLiteContext *, TfLiteDelegate *) { return kTfLiteOk; }

} // namespace

extern "C" {

TFL_CAPI_EXPORT Delegate TfLiteDelegateCreate(void) { return {}; }
TfLiteOpaqueDelegate *TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder *builder) {
  if (!builder)
    return nullptr;
  auto *d = new Delegate{};
  d->builder = new TfLiteOpaqueDelegateBuilder(*builder);
  d->data = builder->data;
  d->flags = builder->flags;
  return opaque(d);
}
void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate *delegate) {
  auto *d = reinterpret_cast<Delegate *>(delegate);
  if (d)
    delete d->builder;
  delete d;
}
void *TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate *delegate) {
  auto *d = reinterpret_cast<const Delegate *>(delegate);
  return d ? d->data : nullptr;
}

TFL_CAPI_EXPORT XnnpackOptions TfLiteXNNPackDelegateOptionsDefault(void) { return XnnpackDelegate().options; }
TFL_CAPI_EXPORT TfLiteDelegate *TfLiteXNNPackDelegateCreate(const XnnpackOptions *options) {
  auto *d = new XnnpackDelegate;
  d->delegate.prepare = takesNothing;
  if (options)
    // only what every version of the structure has: its end moved
    std::memcpy(&d->options, options, offsetof(XnnpackOptions, weightsCache));
  return opaque(&d->delegate);
}
TFL_CAPI_EXPORT TfLiteDelegate *TfLiteXNNPackDelegateCreateWithThreadpool(const XnnpackOptions *options, TfLiteContext *) {
  return TfLiteXNNPackDelegateCreate(options);
}
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateDelete(TfLiteDelegate *delegate) { delete reinterpret_cast<XnnpackDelegate *>(delegate); }
TFL_CAPI_EXPORT void *TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate *) { return nullptr; }
TFL_CAPI_EXPORT const XnnpackOptions *TfLiteXNNPackDelegateGetOptions(TfLiteDelegate *delegate) {
  return delegate ? &reinterpret_cast<XnnpackDelegate *>(delegate)->options : nullptr;
}
TFL_CAPI_EXPORT int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate *delegate) {
  return delegate ? static_cast<int>(reinterpret_cast<XnnpackDelegate *>(delegate)->options.flags) : 0;
}
TFL_CAPI_EXPORT void *TfLiteXNNPackDelegateWeightsCacheCreate(void) { return new char; }
TFL_CAPI_EXPORT void *TfLiteXNNPackDelegateWeightsCacheCreateWithSize(size_t) { return new char; }
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(void *) { return true; }
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(void *) { return true; }
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateWeightsCacheDelete(void *cache) { delete static_cast<char *>(cache); }

TFL_CAPI_EXPORT NnapiOptions TfLiteNnapiDelegateOptionsDefault(void) { return {-1, nullptr, nullptr, nullptr, 1, 0, 3, nullptr}; }
TFL_CAPI_EXPORT TfLiteDelegate *TfLiteNnapiDelegateCreate(const NnapiOptions *) { return nullptr; } // there is no such device
TFL_CAPI_EXPORT void TfLiteNnapiDelegateDelete(TfLiteDelegate *) {}

TfLiteBackendBuffer *TfLiteBackendBufferCreate(void) { return new TfLiteBackendBuffer; }
void TfLiteBackendBufferDelete(TfLiteBackendBuffer *b) { delete b; }
void TfLiteBackendBufferSetPtr(TfLiteBackendBuffer *b, void *pointer) { b->pointer = pointer; }
void *TfLiteBackendBufferGetPtr(const TfLiteBackendBuffer *b) { return b->pointer; }
TfLiteSynchronization *TfLiteSynchronizationCreate(void) { return new TfLiteSynchronization; }
void TfLiteSynchronizationDelete(TfLiteSynchronization *s) { delete s; }
void TfLiteSynchronizationSetPtr(TfLiteSynchronization *s, void *pointer) { s->pointer = pointer; }
void *TfLiteSynchronizationGetPtr(const TfLiteSynchronization *s) { return s->pointer; }

// Profilers are never called, so nobody has settings to ask of.
TFL_CAPI_EXPORT const int32_t *TfLiteTelemetryConversionMetadataGetModelOptimizationModes(const void *) { return nullptr; }
TFL_CAPI_EXPORT size_t TfLiteTelemetryConversionMetadataGetNumModelOptimizationModes(const void *) { return 0; }
TFL_CAPI_EXPORT const void *TfLiteTelemetryInterpreterSettingsGetConversionMetadata(const void *) { return nullptr; }
TFL_CAPI_EXPORT size_t TfLiteTelemetryInterpreterSettingsGetNumSubgraphInfo(const void *) { return 0; }
TFL_CAPI_EXPORT const void *TfLiteTelemetryInterpreterSettingsGetSubgraphInfo(const void *) { return nullptr; }
TFL_CAPI_EXPORT size_t TfLiteTelemetrySubgraphInfoGetNumQuantizations(void *) { return 0; }
TFL_CAPI_EXPORT const TfLiteQuantization *TfLiteTelemetrySubgraphInfoGetQuantizations(void *) { return nullptr; }
TFL_CAPI_EXPORT size_t TfLiteTelemetryGpuDelegateSettingsGetNumNodesDelegated(const void *) { return 0; }
TFL_CAPI_EXPORT int TfLiteTelemetryGpuDelegateSettingsGetBackend(const void *) { return 0; }

} // extern "C"
