#include "runtime/tflite_api/Operators.h"

#include <cstddef>
#include <cstring>

namespace lathe::tflite_api {

static TfLiteOpaqueContext *opaque(TfLiteContext *c) { return reinterpret_cast<TfLiteOpaqueContext *>(c); }
static TfLiteOpaqueNode *opaque(TfLiteNode *n) { return reinterpret_cast<TfLiteOpaqueNode *>(n); }

void *HostOp::init(TfLiteContext *context, const char *options, size_t size) const {
  if (!op)
    return registration.init ? registration.init(context, options, size) : nullptr;
  if (op->initWithData)
    return op->initWithData(op->userData, opaque(context), options, size);
  return op->init ? op->init(opaque(context), options, size) : nullptr;
}

void HostOp::free(TfLiteContext *context, void *data) const {
  if (!op) {
    if (registration.free && data)
      registration.free(context, data);
  } else if (op->freeWithData) {
    op->freeWithData(op->userData, opaque(context), data);
  } else if (op->free) {
    op->free(opaque(context), data);
  }
}

TfLiteStatus HostOp::prepare(TfLiteContext *context, TfLiteNode *node) const {
  if (!op)
    return registration.prepare ? registration.prepare(context, node) : kTfLiteOk;
  if (op->prepareWithData)
    return op->prepareWithData(op->userData, opaque(context), opaque(node));
  return op->prepare ? op->prepare(opaque(context), opaque(node)) : kTfLiteOk;
}

TfLiteStatus HostOp::invoke(TfLiteContext *context, TfLiteNode *node) const {
  if (!op)
    return registration.invoke ? registration.invoke(context, node) : kTfLiteError;
  if (op->invokeWithData)
    return op->invokeWithData(op->userData, opaque(context), opaque(node));
  return op->invoke ? op->invoke(opaque(context), opaque(node)) : kTfLiteError;
}

/// A registration that ends after `bytes`, followed to the operator that it may stand for.
static HostOp fromRegistration(const TfLiteRegistration *given, size_t bytes) {
  HostOp op;
  std::memcpy(&op.registration, given, bytes);
  if (op.registration.registration_external)
    op.op = op.registration.registration_external;
  return op;
}

std::optional<HostOp> OperatorTable::find(const std::string &name, int version) const {
  if (findCustomExternal)
    if (const TfLiteOperator *op = findCustomExternal(user, name.c_str(), version)) {
      HostOp result;
      result.op = op;
      return result;
    }
  if (findCustom)
    if (const TfLiteRegistration *r = findCustom(user, name.c_str(), version))
      return fromRegistration(r, registrationBytes);
  for (auto op = custom.rbegin(); op != custom.rend(); ++op) // the last one counts
    if (op->name == name && version >= op->minVersion && version <= op->maxVersion)
      return *op;
  return std::nullopt;
}

bool OperatorTable::selects(int code, int version) const {
  if (findBuiltinExternal && findBuiltinExternal(user, code, version))
    return true;
  if (findBuiltin && findBuiltin(user, code, version))
    return true;
  for (const Builtin &b : builtin)
    if (b.code == code && version >= b.minVersion && version <= b.maxVersion)
      return true;
  return false;
}

} // namespace lathe::tflite_api

extern "C" {

TfLiteOperator *TfLiteOperatorCreate(TfLiteBuiltinOperator code, const char *name, int version) {
  auto *op = new TfLiteOperator{code, std::nullopt, version};
  if (name)
    op->name = name;
  return op;
}
TfLiteOperator *TfLiteOperatorCreateWithData(TfLiteBuiltinOperator code, const char *name, int version, void *user) {
  TfLiteOperator *op = TfLiteOperatorCreate(code, name, version);
  op->userData = user;
  return op;
}
void TfLiteOperatorDelete(TfLiteOperator *op) { delete op; }
TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator *op) { return op->code; }
const char *TfLiteOperatorGetCustomName(const TfLiteOperator *op) { return op->name ? op->name->c_str() : nullptr; }
int TfLiteOperatorGetVersion(const TfLiteOperator *op) { return op ? op->version : -1; }
void *TfLiteOperatorGetUserData(const TfLiteOperator *op) { return op ? op->userData : nullptr; }

void TfLiteOperatorSetInit(TfLiteOperator *op, void *(*f)(TfLiteOpaqueContext *, const char *, size_t)) { op->init = f; }
TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator *op, void *(*f)(void *, TfLiteOpaqueContext *, const char *, size_t)) {
  if (op->init)
    return kTfLiteError;
  op->initWithData = f;
  return kTfLiteOk;
}
void TfLiteOperatorSetFree(TfLiteOperator *op, void (*f)(TfLiteOpaqueContext *, void *)) { op->free = f; }
TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator *op, void (*f)(void *, TfLiteOpaqueContext *, void *)) {
  if (op->free)
    return kTfLiteError;
  op->freeWithData = f;
  return kTfLiteOk;
}
void TfLiteOperatorSetPrepare(TfLiteOperator *op, TfLiteStatus (*f)(TfLiteOpaqueContext *, TfLiteOpaqueNode *)) { op->prepare = f; }
TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator *op, TfLiteStatus (*f)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  if (op->prepare)
    return kTfLiteError;
  op->prepareWithData = f;
  return kTfLiteOk;
}
void TfLiteOperatorSetInvoke(TfLiteOperator *op, TfLiteStatus (*f)(TfLiteOpaqueContext *, TfLiteOpaqueNode *)) { op->invoke = f; }
TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator *op, TfLiteStatus (*f)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  if (op->invoke)
    return kTfLiteError;
  op->invokeWithData = f;
  return kTfLiteOk;
}
void TfLiteOperatorSetAsyncKernel(TfLiteOperator *op, struct TfLiteAsyncKernel *(*f)(TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  op->asyncKernel = f;
}
TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(TfLiteOperator *op,
                                                  struct TfLiteAsyncKernel *(*f)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  if (op->asyncKernel)
    return kTfLiteError;
  op->asyncKernelWithData = f;
  return kTfLiteOk;
}
void TfLiteOperatorSetInplaceOperator(TfLiteOperator *op, uint64_t inplace) { op->inplace = inplace; }

} // extern "C"
