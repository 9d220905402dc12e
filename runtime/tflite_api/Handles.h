// What is behind the handles of the interface.
#ifndef LATHE_RUNTIME_TFLITE_API_HANDLES_H
#define LATHE_RUNTIME_TFLITE_API_HANDLES_H

#include "runtime/tflite_api/Interpreter.h"
#include "tensorflow/lite/c/c_api_experimental.h"

struct TfLiteModel {
  std::shared_ptr<const lathe::tflite_api::Model> model;
};
struct TfLiteInterpreterOptions {
  int threads = 1;
  lathe::tflite_api::Reporter reporter;
  lathe::tflite_api::OperatorTable operators;
  std::vector<TfLiteDelegate *> delegates;
  bool canCancel = false;
};
struct TfLiteInterpreter {
  TfLiteInterpreter(std::shared_ptr<const lathe::tflite_api::Model> model, int threads, lathe::tflite_api::Reporter reporter)
      : interpreter(std::move(model), threads, reporter), main(interpreter.main()) {
    for (auto &slot : main->inputs)
      inputIndices.push_back(slot->port.index);
    for (auto &slot : main->outputs)
      outputIndices.push_back(slot->port.index);
  }
  lathe::tflite_api::Slot *slot(int index) {
    for (auto *slots : {&main->inputs, &main->outputs})
      for (auto &slot : *slots)
        if (slot->port.index == index)
          return slot.get();
    return nullptr;
  }
  lathe::tflite_api::Interpreter interpreter;
  lathe::tflite_api::Runner *main;
  std::vector<int> inputIndices, outputIndices;
  bool canCancel = false;
};
struct TfLiteSignatureRunner {
  lathe::tflite_api::Runner *runner;
  bool canCancel = false;
};

namespace lathe::tflite_api {
inline TfLiteStatus told(const Reporter &reporter, const absl::Status &status) {
  if (status.ok())
    return kTfLiteOk;
  reporter.report(status);
  return kTfLiteError;
}
} // namespace lathe::tflite_api

#endif
