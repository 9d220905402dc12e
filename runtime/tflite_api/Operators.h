// Operators of a program's own: how they are told to an interpreter and found by a model's operators.
#ifndef LATHE_RUNTIME_TFLITE_API_OPERATORS_H
#define LATHE_RUNTIME_TFLITE_API_OPERATORS_H

#include "tensorflow/lite/c/c_api_experimental.h"

#include <optional>
#include <string>
#include <vector>

struct TfLiteOperator {
  TfLiteBuiltinOperator code;
  std::optional<std::string> name;
  int version;
  void *userData = nullptr;
  void *(*init)(TfLiteOpaqueContext *, const char *, size_t) = nullptr;
  void *(*initWithData)(void *, TfLiteOpaqueContext *, const char *, size_t) = nullptr;
  void (*free)(TfLiteOpaqueContext *, void *) = nullptr;
  void (*freeWithData)(void *, TfLiteOpaqueContext *, void *) = nullptr;
  TfLiteStatus (*prepare)(TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  TfLiteStatus (*prepareWithData)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  TfLiteStatus (*invoke)(TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  TfLiteStatus (*invokeWithData)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  struct TfLiteAsyncKernel *(*asyncKernel)(TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  struct TfLiteAsyncKernel *(*asyncKernelWithData)(void *, TfLiteOpaqueContext *, TfLiteOpaqueNode *) = nullptr;
  uint64_t inplace = 0;
};

namespace lathe::tflite_api {

/// The functions of an operator in one of the two forms that programs give.
struct HostOp {
  std::string name;
  int minVersion = 1, maxVersion = 1;
  TfLiteRegistration registration = {}; ///< where `op` is null
  const TfLiteOperator *op = nullptr;

  void *init(TfLiteContext *context, const char *options, size_t size) const;
  void free(TfLiteContext *context, void *data) const;
  TfLiteStatus prepare(TfLiteContext *context, TfLiteNode *node) const;
  TfLiteStatus invoke(TfLiteContext *context, TfLiteNode *node) const;
};

/// What the options say of operators.
struct OperatorTable {
  std::vector<HostOp> custom;
  /// Builtin operators that were given: compiled all the same, but part of what is selected.
  struct Builtin {
    int code, minVersion, maxVersion;
  };
  std::vector<Builtin> builtin;
  TfLiteFindBuiltinOp findBuiltin = nullptr;
  TfLiteFindCustomOp findCustom = nullptr;
  TfLiteFindBuiltinOpExternal findBuiltinExternal = nullptr;
  TfLiteFindCustomOpExternal findCustomExternal = nullptr;
  void *user = nullptr;
  /// How many fields the registrations of the callbacks have: those of programs built long ago end sooner.
  size_t registrationBytes = sizeof(TfLiteRegistration);

  std::optional<HostOp> find(const std::string &name, int version) const;
  bool selects(int builtinCode, int version) const;
};

} // namespace lathe::tflite_api

#endif
