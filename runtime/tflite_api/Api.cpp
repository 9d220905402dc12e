// The functions of TensorFlow Lite's C interface.
#include "runtime/tflite_api/Handles.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace lathe::tflite_api;

namespace {

using ReporterFn = void (*)(void *, const char *, va_list);

TfLiteModel *made(absl::StatusOr<std::shared_ptr<Model>> model, Reporter reporter) {
  if (model.ok())
    return new TfLiteModel{*std::move(model)};
  reporter.report(model.status());
  return nullptr;
}

TfLiteTensor *at(const std::vector<std::unique_ptr<Slot>> &slots, int32_t i) {
  return i < 0 || i >= static_cast<int32_t>(slots.size()) ? nullptr : &slots[i]->tensor;
}

TfLiteTensor *named(const std::vector<std::unique_ptr<Slot>> &slots, const char *name) {
  for (auto &slot : slots)
    if (name && slot->port.name == name)
      return &slot->tensor;
  return nullptr;
}

} // namespace

extern "C" {

const char *TfLiteVersion(void) { return "2.21.0"; }
int TfLiteSchemaVersion(void) { return 3; }
const char *TfLiteExtensionApisVersion(void) { return "1.0.0"; }

TfLiteModel *TfLiteModelCreate(const void *data, size_t size) { return made(Model::read(data, size), {}); }
TfLiteModel *TfLiteModelCreateWithErrorReporter(const void *data, size_t size, ReporterFn reporter, void *user) {
  return made(Model::read(data, size), {reporter, user});
}
TfLiteModel *TfLiteModelCreateFromFile(const char *path) { return made(Model::readFile(path ? path : ""), {}); }
TfLiteModel *TfLiteModelCreateFromFileWithErrorReporter(const char *path, ReporterFn reporter, void *user) {
  return made(Model::readFile(path ? path : ""), {reporter, user});
}
void TfLiteModelDelete(TfLiteModel *model) { delete model; }

void TfLiteInterpreterDelete(TfLiteInterpreter *interpreter) { delete interpreter; }
int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter *i) { return static_cast<int32_t>(i->main->inputs.size()); }
const int *TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter *i) { return i->inputIndices.data(); }
TfLiteTensor *TfLiteInterpreterGetInputTensor(const TfLiteInterpreter *i, int32_t index) { return at(i->main->inputs, index); }
TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter *i, int32_t index, const int *dims, int32_t rank) {
  return told(i->interpreter.reporter(), i->main->resizeInput(static_cast<size_t>(index), dims, rank));
}
TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter *i) {
  return told(i->interpreter.reporter(), i->main->allocate());
}
TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter *i) { return told(i->interpreter.reporter(), i->main->invoke()); }
int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter *i) { return static_cast<int32_t>(i->main->outputs.size()); }
const int *TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter *i) { return i->outputIndices.data(); }
const TfLiteTensor *TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter *i, int32_t index) { return at(i->main->outputs, index); }
TfLiteTensor *TfLiteInterpreterGetTensor(const TfLiteInterpreter *i, int index) {
  for (auto *slots : {&i->main->inputs, &i->main->outputs})
    for (auto &slot : *slots)
      if (slot->port.index == index)
        return &slot->tensor;
  return nullptr;
}
// A run that is under way goes on to its end; the runs after it are not affected by this in any case.
TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter *i) { return i->canCancel ? kTfLiteOk : kTfLiteError; }
TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter *i) {
  return told(i->interpreter.reporter(), i->interpreter.resetVariables());
}

int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter *i) {
  const Model &model = i->interpreter.model();
  return model.hasSignatures ? static_cast<int32_t>(model.callables.size()) : 0;
}
const char *TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter *i, int32_t index) {
  return index < 0 || index >= TfLiteInterpreterGetSignatureCount(i) ? nullptr : i->interpreter.model().callables[index].key.c_str();
}
TfLiteSignatureRunner *TfLiteInterpreterGetSignatureRunner(const TfLiteInterpreter *i, const char *key) {
  const Model &model = i->interpreter.model();
  const std::string wanted = key ? key : model.callables[0].key;
  Runner *runner = const_cast<TfLiteInterpreter *>(i)->interpreter.runner(wanted);
  if (runner)
    return new TfLiteSignatureRunner{runner, i->canCancel};
  i->interpreter.reporter().report(absl::NotFoundError(absl::StrCat("there is no signature '", wanted, "'")));
  return nullptr;
}

size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner *r) { return r->runner->inputs.size(); }
const char *TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner *r, int32_t i) {
  return at(r->runner->inputs, i) ? r->runner->inputs[i]->port.name.c_str() : nullptr;
}
TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner *r, const char *name, const int *dims, int32_t rank) {
  for (size_t i = 0; i < r->runner->inputs.size(); ++i)
    if (name && r->runner->inputs[i]->port.name == name)
      return told(r->runner->owner.reporter(), r->runner->resizeInput(i, dims, rank));
  return told(r->runner->owner.reporter(), absl::NotFoundError(absl::StrCat("there is no input '", name ? name : "", "'")));
}
TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner *r) {
  return told(r->runner->owner.reporter(), r->runner->allocate());
}
TfLiteTensor *TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner *r, const char *name) { return named(r->runner->inputs, name); }
TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner *r) {
  return told(r->runner->owner.reporter(), r->runner->invoke());
}
size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner *r) { return r->runner->outputs.size(); }
const char *TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner *r, int32_t i) {
  return at(r->runner->outputs, i) ? r->runner->outputs[i]->port.name.c_str() : nullptr;
}
const TfLiteTensor *TfLiteSignatureRunnerGetOutputTensor(const TfLiteSignatureRunner *r, const char *name) {
  return named(r->runner->outputs, name);
}
TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner *r) { return r->canCancel ? kTfLiteOk : kTfLiteError; }
void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner *r) { delete r; }

TfLiteType TfLiteTensorType(const TfLiteTensor *t) { return t->type; }
int32_t TfLiteTensorNumDims(const TfLiteTensor *t) { return t->dims ? t->dims->size : -1; }
int32_t TfLiteTensorDim(const TfLiteTensor *t, int32_t i) { return t->dims->data[i]; }
size_t TfLiteTensorByteSize(const TfLiteTensor *t) { return t->bytes; }
void *TfLiteTensorData(const TfLiteTensor *t) { return t->data.data; }
const char *TfLiteTensorName(const TfLiteTensor *t) { return t->name; }
TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor *t) { return t->params; }
TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor *t, const void *data, size_t size) {
  if (!t->data.data || size != t->bytes)
    return kTfLiteError;
  std::memcpy(t->data.data, data, size);
  return kTfLiteOk;
}
TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor *t, void *data, size_t size) {
  if (!t->data.data || size != t->bytes)
    return kTfLiteError;
  std::memcpy(data, t->data.data, size);
  return kTfLiteOk;
}
const char *TfLiteTypeGetName(TfLiteType type) {
  static const char *const names[] = {"NOTYPE", "FLOAT32", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8",
                                      "FLOAT16", "FLOAT64", "COMPLEX128", "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4", "BFLOAT16"};
  return type >= 0 && type < static_cast<int>(sizeof names / sizeof *names) ? names[type] : "Unknown type";
}

} // extern "C"
