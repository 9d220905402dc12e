#include "tools/lathe/PartsRun.h"

#include "compiler/jit/ClusterCompiler.h"
#include "graph/tflite/Strings.h"
#include "runtime/abi/load_model.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/tflite_api/Interpreter.h"

#include "absl/strings/str_cat.h"

#include <cstring>

extern "C" int32_t lathe_load_model(const lathe_load_request *, lathe_loaded_model *, lathe_bytes *);
extern "C" void lathe_release_model(lathe_loaded_model *);

namespace lathe::cli {
namespace {

using namespace tflite_api;

void *compilerFunctionOf(std::string_view name) {
  if (name == "lathe_load_model")
    return reinterpret_cast<void *>(&lathe_load_model);
  return name == "lathe_release_model" ? reinterpret_cast<void *>(&lathe_release_model) : nullptr;
}

/// The numbers of types are TensorFlow Lite's own.
DType dtypeOf(TfLiteType type) {
  switch (type) {
  case kTfLiteFloat32: return DType::Float32;
  case kTfLiteFloat16: return DType::Float16;
  case kTfLiteFloat64: return DType::Float64;
  case kTfLiteBFloat16: return DType::BFloat16;
  case kTfLiteInt8: return DType::Int8;
  case kTfLiteUInt8: return DType::UInt8;
  case kTfLiteInt16: return DType::Int16;
  case kTfLiteUInt16: return DType::UInt16;
  case kTfLiteInt32: return DType::Int32;
  case kTfLiteUInt32: return DType::UInt32;
  case kTfLiteInt64: return DType::Int64;
  case kTfLiteUInt64: return DType::UInt64;
  case kTfLiteBool: return DType::Bool;
  case kTfLiteComplex64: return DType::Complex64;
  case kTfLiteComplex128: return DType::Complex128;
  case kTfLiteString: return DType::String;
  default: return DType::Invalid;
  }
}

bool isNamed(const Port &port, const std::string &name) {
  return name == port.name || name == port.tensor || name + ":0" == port.tensor || name == port.name + ":0";
}

absl::Status setInput(Slot &slot, const Tensor &value) {
  if (value.dtype() != dtypeOf(slot.port.type))
    return absl::InvalidArgumentError(absl::StrCat("input '", slot.port.name, "': expected ", dtypeName(dtypeOf(slot.port.type)), ", found ", dtypeName(value.dtype())));
  const char *bytes = static_cast<const char *>(value.data());
  size_t size = static_cast<size_t>(value.sizeBytes());
  absl::StatusOr<std::string> buffer = std::string();
  if (value.dtype() == DType::String) {
    buffer = tflgraph::writeStrings(value.strings());
    if (!buffer.ok())
      return buffer.status();
    bytes = buffer->data();
    size = buffer->size();
  }
  if (absl::Status s = slot.allocate(size); !s.ok())
    return s;
  if (size)
    std::memcpy(slot.tensor.data.data, bytes, size);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> outputOf(const Slot &slot) {
  const TfLiteTensor &t = slot.tensor;
  std::vector<int64_t> dims(t.dims->data, t.dims->data + t.dims->size);
  int64_t count = 1;
  for (int64_t d : dims)
    count *= d;
  if (t.type == kTfLiteString) {
    auto values = tflgraph::readStrings(t.data.data, t.bytes, count);
    return values.ok() ? absl::StatusOr<Tensor>(Tensor::fromStrings(dims, *std::move(values))) : values.status();
  }
  auto value = Tensor::tryAllocate(dtypeOf(t.type), dims, static_cast<int64_t>(t.bytes));
  if (value.ok() && t.bytes)
    std::memcpy(value->data(), t.data.data, t.bytes);
  return value;
}

absl::Status run(Runner &runner, const NamedTensors &feeds, const std::vector<std::string> &fetches, NamedTensors &results) {
  std::vector<const Tensor *> values(runner.inputs.size());
  for (auto &[name, tensor] : feeds) {
    bool known = false;
    for (size_t i = 0; i < values.size(); ++i)
      if (isNamed(runner.inputs[i]->port, name)) {
        values[i] = &tensor;
        known = true;
      }
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat("feed '", name, "' is no input"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i])
      return absl::InvalidArgumentError(absl::StrCat("input '", runner.inputs[i]->port.name, "' is not fed"));
    std::vector<int> dims(values[i]->dims().begin(), values[i]->dims().end());
    if (absl::Status s = runner.resizeInput(i, dims.data(), static_cast<int>(dims.size())); !s.ok())
      return s;
  }
  absl::Status s = runner.allocate();
  for (size_t i = 0; s.ok() && i < values.size(); ++i)
    s = setInput(*runner.inputs[i], *values[i]);
  if (s.ok())
    s = runner.invoke();
  if (!s.ok())
    return s;
  auto take = [&](const std::string &as, const Slot &slot) {
    auto value = outputOf(slot);
    if (value.ok())
      results.emplace_back(as, *std::move(value));
    return value.status();
  };
  for (size_t i = 0; fetches.empty() && s.ok() && i < runner.outputs.size(); ++i)
    s = take(runner.outputs[i]->port.name, *runner.outputs[i]);
  for (const std::string &name : fetches) {
    const Slot *found = nullptr;
    for (auto &slot : runner.outputs)
      found = !found && isNamed(slot->port, name) ? slot.get() : found;
    if (!found)
      return absl::InvalidArgumentError(absl::StrCat("fetch '", name, "' is no output"));
    if (s.ok())
      s = take(name, *found);
  }
  return s;
}

} // namespace

NamedTensors runInParts(const ModelArgs &args, const NamedTensors &feeds, const std::vector<std::string> &fetches, std::string &why) {
  useOwnCompiler(getClusterCompiler(), compilerFunctionOf);
  NamedTensors results;
  why.clear();
  auto failed = [&](const absl::Status &s) {
    why = s.ok() ? "" : std::string(s.message());
    return !s.ok();
  };
  auto model = Model::readFile(args.options.model);
  if (failed(model.status()))
    return {};
  Interpreter::CompileOptions options{{"cpu", args.options.cpu}};
  if (!args.options.backend.empty())
    options.emplace_back("backend", args.options.backend);
  Interpreter interpreter(*model, args.options.threads, {}, options);
  if (failed(interpreter.host({})))
    return {};
  Runner *runner = args.options.signature.empty() ? interpreter.main() : interpreter.runner(args.options.signature);
  if (!runner) {
    why = "there is no such signature";
    return {};
  }
  if (failed(run(*runner, feeds, fetches, results)))
    return {};
  return results;
}

} // namespace lathe::cli
