// Options of interpreters, and the functions on interpreters that few programs call.
#include "runtime/tflite_api/Handles.h"

#include "proto/tflite_generated.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

using namespace lathe::tflite_api;
namespace tfl = lathe::tfl;

namespace {

void setResolver(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp builtin, TfLiteFindCustomOp custom, void *user, size_t bytes) {
  OperatorTable &t = options->operators;
  t.findBuiltinExternal = nullptr;
  t.findCustomExternal = nullptr;
  t.findBuiltin = builtin;
  t.findCustom = custom;
  t.user = user;
  t.registrationBytes = bytes;
}

/// The first operator of the model that nobody gave.
std::string missing(const Model &model, const OperatorTable &operators) {
  const tfl::Model &m = *tfl::GetModel(model.data);
  if (m.operator_codes())
    for (const tfl::OperatorCode *code : *m.operator_codes()) {
      const auto op = std::max(code->builtin_code(), static_cast<tfl::BuiltinOperator>(code->deprecated_builtin_code()));
      if (op == tfl::BuiltinOperator::CUSTOM) {
        const std::string name = code->custom_code() ? code->custom_code()->str() : "";
        if (!operators.find(name, code->version()))
          return absl::StrCat("custom operator '", name, "'");
      } else if (!operators.selects(static_cast<int>(op), code->version())) {
        return absl::StrCat("operator ", tfl::EnumNameBuiltinOperator(op), " version ", code->version());
      }
    }
  return "";
}

} // namespace

extern "C" {

TfLiteInterpreterOptions *TfLiteInterpreterOptionsCreate(void) { return new TfLiteInterpreterOptions; }
TfLiteInterpreterOptions *TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions *from) {
  return from ? new TfLiteInterpreterOptions(*from) : nullptr;
}
void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions *options) { delete options; }
void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions *options, int32_t n) {
  options->threads = n;
}
void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions *options, TfLiteDelegate *delegate) {
  if (delegate)
    options->delegates.push_back(delegate);
}
void TfLiteInterpreterOptionsSetErrorReporter(TfLiteInterpreterOptions *options, void (*reporter)(void *, const char *, va_list), void *user) {
  options->reporter = {reporter, user};
}
TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions *options, bool enable) {
  options->canCancel = enable;
  return kTfLiteOk;
}
void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions *, bool) {}
void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions *, bool) {}
void TfLiteInterpreterOptionsSetTelemetryProfiler(TfLiteInterpreterOptions *, struct TfLiteTelemetryProfilerStruct *) {}

void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions *options, TfLiteOperator *op) {
  if (!op->name) {
    options->operators.builtin.push_back({op->code, op->version, op->version});
    return;
  }
  HostOp host;
  host.name = *op->name;
  host.minVersion = host.maxVersion = op->version;
  host.op = op;
  options->operators.custom.push_back(std::move(host));
}
void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions *options, TfLiteBuiltinOperator op, const TfLiteRegistration *,
                                          int32_t min_version, int32_t max_version) {
  options->operators.builtin.push_back({op, min_version, max_version});
}
void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions *options, const char *name, const TfLiteRegistration *registration,
                                         int32_t min_version, int32_t max_version) {
  HostOp host;
  host.name = name;
  host.minVersion = min_version;
  host.maxVersion = max_version;
  host.registration = *registration;
  options->operators.custom.push_back(std::move(host));
}
void TfLiteInterpreterOptionsSetOpResolver(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp builtin, TfLiteFindCustomOp custom,
                                           void *user) {
  setResolver(options, builtin, custom, user, sizeof(TfLiteRegistration));
}
void TfLiteInterpreterOptionsSetOpResolverV1(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp builtin, TfLiteFindCustomOp custom,
                                             void *user) {
  setResolver(options, builtin, custom, user, offsetof(TfLiteRegistration, registration_external));
}
void TfLiteInterpreterOptionsSetOpResolverV2(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp builtin, TfLiteFindCustomOp custom,
                                             void *user) {
  setResolver(options, builtin, custom, user, offsetof(TfLiteRegistration, async_kernel));
}
void TfLiteInterpreterOptionsSetOpResolverV3(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOp builtin, TfLiteFindCustomOp custom,
                                             void *user) {
  setResolver(options, builtin, custom, user, offsetof(TfLiteRegistration, inplace_operator));
}
void TfLiteInterpreterOptionsSetOpResolverExternal(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOpExternal builtin,
                                                   TfLiteFindCustomOpExternal custom, void *user) {
  TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(options, builtin, custom, nullptr, nullptr, user);
}
void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(TfLiteInterpreterOptions *options, TfLiteFindBuiltinOpExternal builtinExternal,
                                                               TfLiteFindCustomOpExternal customExternal, TfLiteFindBuiltinOp builtin,
                                                               TfLiteFindCustomOp custom, void *user) {
  setResolver(options, builtin, custom, user, sizeof(TfLiteRegistration));
  options->operators.findBuiltinExternal = builtinExternal;
  options->operators.findCustomExternal = customExternal;
}

TfLiteInterpreter *TfLiteInterpreterCreate(const TfLiteModel *model, const TfLiteInterpreterOptions *options) {
  if (!model)
    return nullptr;
  const TfLiteInterpreterOptions given = options ? *options : TfLiteInterpreterOptions();
  bool hasMain = false;
  for (const Callable &c : model->model->callables)
    hasMain |= c.subgraph == 0;
  if (!hasMain) {
    given.reporter.report(absl::UnimplementedError("no signature of the model is of its first subgraph"));
    return nullptr;
  }
  if (given.threads < -1) // which makes one thread all the same
    given.reporter.report(absl::InvalidArgumentError(absl::StrCat("the number of threads is ", given.threads, ": expected 0 or more, or -1")));
  auto interpreter = std::make_unique<TfLiteInterpreter>(model->model, std::clamp(given.threads, 1, 256), given.reporter);
  if (told(given.reporter, interpreter->interpreter.host(given.operators)) != kTfLiteOk)
    return nullptr;
  for (TfLiteDelegate *delegate : given.delegates)
    if (told(given.reporter, interpreter->interpreter.prepareDelegate(delegate)) != kTfLiteOk)
      return nullptr;
  interpreter->canCancel = given.canCancel;
  return interpreter.release();
}
TfLiteInterpreter *TfLiteInterpreterCreateWithSelectedOps(const TfLiteModel *model, const TfLiteInterpreterOptions *options) {
  if (!model)
    return nullptr;
  const TfLiteInterpreterOptions none;
  const TfLiteInterpreterOptions &given = options ? *options : none;
  if (std::string op = missing(*model->model, given.operators); !op.empty()) {
    given.reporter.report(absl::NotFoundError(absl::StrCat("the options have no ", op)));
    return nullptr;
  }
  return TfLiteInterpreterCreate(model, options);
}

TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter *interpreter, TfLiteDelegate *delegate) {
  auto &i = const_cast<TfLiteInterpreter *>(interpreter)->interpreter;
  return told(i.reporter(), i.prepareDelegate(delegate)) == kTfLiteOk ? kTfLiteOk : kTfLiteDelegateError;
}
int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter *i, int32_t index) {
  return index < 0 || index >= static_cast<int32_t>(i->inputIndices.size()) ? -1 : i->inputIndices[static_cast<size_t>(index)];
}
int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter *i, int32_t index) {
  return index < 0 || index >= static_cast<int32_t>(i->outputIndices.size()) ? -1 : i->outputIndices[static_cast<size_t>(index)];
}
int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter *) { return 0; } // variables are inside of the compiled code
TfLiteTensor *TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter *, int32_t) { return nullptr; }
TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter *i, TfLiteTensor *tensor, TfLiteBufferHandle handle,
                                              TfLiteOpaqueDelegate *delegate) {
  if (!i || !tensor)
    return kTfLiteError;
  tensor->delegate = delegate;
  tensor->buffer_handle = handle;
  return kTfLiteOk;
}
TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter *i, int index, TfLiteBufferHandle *handle, TfLiteOpaqueDelegate **delegate) {
  Slot *slot = i->slot(index);
  if (!slot)
    return kTfLiteError;
  *handle = slot->tensor.buffer_handle;
  *delegate = slot->tensor.delegate;
  return kTfLiteOk;
}
void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter *, bool) {}
TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter *i, int index, const TfLiteCustomAllocation *allocation,
                                                           int64_t flags) {
  Slot *slot = i->slot(index);
  if (!slot || !allocation)
    return kTfLiteError;
  const absl::Status s = slot->use(allocation->data, allocation->bytes, !(flags & kTfLiteCustomAllocationFlagsSkipAlignCheck));
  i->main->isAllocated = i->main->isAllocated && slot->tensor.data.data;
  return told(i->interpreter.reporter(), s);
}
TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter *i, int index) { return i->slot(index) ? kTfLiteOk : kTfLiteError; }

} // extern "C"
