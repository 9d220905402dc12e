// Accessors carry tfcompile's names, under its three spellings (arg0, arg_NAME, arg_feed_NAME ...), so that code written
// against its headers changes an include only; views under the tensors' own names are ours.
#include "compiler/emit/Header.h"
#include "compiler/emit/Tables.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace llvm;

namespace lathe {

StringRef cppType(DType t) {
  switch (t) {
  case DType::Float32: return "float";
  case DType::Float64: return "double";
  case DType::Int32: case DType::QInt32: return "int32_t";
  case DType::UInt8: case DType::QUInt8: case DType::UInt4: return "uint8_t";
  case DType::Int16: case DType::QInt16: return "int16_t";
  case DType::Int8: case DType::QInt8: case DType::Int4: return "int8_t";
  case DType::Complex64: return "std::complex<float>";
  case DType::Complex128: return "std::complex<double>";
  case DType::Int64: return "int64_t";
  case DType::Bool: return "bool";
  case DType::UInt16: case DType::QUInt16: return "uint16_t";
  case DType::UInt32: return "uint32_t";
  case DType::UInt64: return "uint64_t";
  case DType::Float16: return "lathe::Half";
  case DType::BFloat16: return "lathe::BFloat16";
  case DType::Float8E5M2: case DType::Float8E4M3FN: return "lathe::Float8";
  default: return "unsigned char";
  }
}

std::string commentText(StringRef s) {
  std::string out;
  for (char c : s)
    out.push_back(c == '*' || c == '\\' || c == '?' || !isPrint(c) ? '_' : c);
  return out;
}

static bool isKeyword(StringRef name) {
  static const char *const keywords[] = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
      "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
      "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
      "volatile", "wchar_t", "while", "xor", "xor_eq"};
  return is_contained(keywords, name);
}

bool isReservedName(StringRef name) {
  return name.empty() || name[0] == '_' || isKeyword(name) || name.contains("__");
}

Error checkClassName(StringRef whole) {
  SmallVector<StringRef> parts;
  whole.split(parts, "::");
  for (StringRef p : parts)
    if (p.empty() || makeIdentifier(p) != p || isKeyword(p))
      return createStringError("class '" + whole.str() + "': expected ns::Name, of names that C++ allows");
  return Error::success();
}

ClassName classNameOf(const EmitOptions &options) {
  std::string whole = options.className;
  if (whole.empty()) { // the prefix is often a file's name: new.o, main.o
    StringRef prefix = options.symbolPrefix;
    whole = prefix.str() + (isKeyword(prefix) || prefix == "main" || prefix == "std" ? "_" : "") + "::Model";
  }
  SmallVector<StringRef> parts;
  StringRef(whole).split(parts, "::", -1, /*KeepEmpty=*/false);
  std::string name = makeIdentifier(parts.empty() ? "Model" : parts.back());
  if (!parts.empty())
    parts.pop_back();
  ClassName result{name, ""};
  for (StringRef p : parts)
    result.namespaces += (result.namespaces.empty() ? "" : "::") + makeIdentifier(p);
  return result;
}

namespace {

const char abiText[] =
#include "runtime/abi/module_abi_text.inc"
    ;
const char supportText[] =
#include "compiler/emit/model_support.inc"
    ;
const char deviceAbiText[] =
#include "runtime/abi/device_abi_text.inc"
    ;
const char quantizedAbiText[] =
#include "runtime/abi/quantized_abi_text.inc"
    ;
const char deviceSupportText[] =
#include "compiler/emit/device_support.inc"
    ;

/// A number that reads as the same float.
std::string floatText(float value) {
  char text[32];
  snprintf(text, sizeof(text), "%.9g", double(value));
  return text;
}

/// The same as a literal of C.
std::string floatLiteral(float value) {
  std::string text = floatText(value);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

class HeaderWriter {
public:
  HeaderWriter(const lower::LoweredModule &lowered, const EmitOptions &options)
      : lowered(lowered), options(options), os(text) {}

  std::string write();

private:
  struct Tensor {
    const lower::TensorDesc *desc;
    std::string identifier; ///< name as an identifier, unique among its kind
  };

  void collect(std::vector<Tensor> &list, const std::vector<lower::TensorDesc> &from, StringSet<> &names);
  std::string unique(StringSet<> &taken, std::string name);
  std::string describe(const lower::TensorDesc &t);
  void accessors(StringRef stem, StringRef kind, size_t index, const lower::TensorDesc &t, StringRef doc);
  void ownName(StringRef kind, StringRef bind, size_t index, const Tensor &t);
  void ownScale(StringRef kind, const Tensor &t);
  void writeC();
  void writeClass();

  const lower::LoweredModule &lowered;
  const EmitOptions &options;
  std::string text;
  raw_string_ostream os;
  std::vector<Tensor> args, results, variables;
  StringSet<> members; ///< names used in the class
};

std::string HeaderWriter::unique(StringSet<> &taken, std::string name) {
  std::string base = name;
  for (int i = 1; !taken.insert(name).second; ++i)
    name = base + "_" + std::to_string(i);
  return name;
}

// In the order of CompiledModel's constructor, which merges equal tensors of several entries.
void HeaderWriter::collect(std::vector<Tensor> &list, const std::vector<lower::TensorDesc> &from, StringSet<> &names) {
  for (const lower::TensorDesc &t : from) {
    bool known = any_of(list, [&](const Tensor &k) {
      return k.desc->name == t.name && k.desc->dtype == t.dtype && k.desc->dims == t.dims;
    });
    if (!known)
      list.push_back({&t, unique(names, makeIdentifier(t.name))});
  }
}

std::string HeaderWriter::describe(const lower::TensorDesc &t) {
  std::string out = commentText(t.name) + ": " + dtypeName(t.dtype) + " [";
  for (auto [i, e] : enumerate(t.dims)) {
    if (i)
      out += ", ";
    if (auto c = mlir::dyn_cast<mlir::AffineConstantExpr>(e))
      out += std::to_string(c.getValue());
    else if (auto s = mlir::dyn_cast<mlir::AffineSymbolExpr>(e))
      out += commentText(lowered.symbols[s.getPosition()].name);
    else
      out += "computed";
  }
  out += "]";
  out += quantizedText(t.scales, t.zeroPoints);
  if (t.scales.size() > 1)
    out += " along dimension " + std::to_string(t.quantizedDim);
  return out;
}

void HeaderWriter::accessors(StringRef stem, StringRef kind, size_t index, const lower::TensorDesc &t, StringRef doc) {
  StringRef type = cppType(t.dtype);
  SmallVector<std::string> names{stem.str() + "_data", "set_" + stem.str() + "_data", stem.str(), stem.str() + "_size",
                                 stem.str() + "_count"};
  if (lowered.onDevice)
    names.push_back("set_" + stem.str() + "_device");
  for (StringRef name : names)
    if (members.contains(name))
      return; // another tensor has these already
  for (const std::string &name : names)
    members.insert(name);
  StringRef setType = kind == "arg" ? "const void *" : "void *";
  if (!doc.empty())
    os << "  // " << doc << "\n";
  os << "  void set_" << stem << "_data(" << setType << "data) { set_" << kind << "_data(" << index << ", data); }\n";
  os << "  " << type << " *" << stem << "_data() { return static_cast<" << type << " *>(" << kind << "_data(" << index
     << ")); }\n";
  os << "  const " << type << " *" << stem << "_data() const { return static_cast<const " << type << " *>(" << kind
     << "_data(" << index << ")); }\n";
  if (lowered.onDevice)
    os << "  void set_" << stem << "_device(" << setType << "data) { set_" << kind << "_device(" << index << ", data); }\n";
  std::string params, indices;
  for (size_t d = 0; d < t.dims.size(); ++d) {
    params += (d ? ", size_t dim" : "size_t dim") + std::to_string(d);
    indices += (d ? ", dim" : "dim") + std::to_string(d);
  }
  os << "  " << type << " &" << stem << "(" << params << ") { return " << kind << "View<" << type << ">(" << index
     << ")(" << indices << "); }\n";
  if (kind != "var")
    os << "  const " << type << " &" << stem << "(" << params << ") const { return " << kind << "View<" << type << ">("
       << index << ")(" << indices << "); }\n";
  os << "  int64_t " << stem << "_size() const { return " << kind << "_size(" << index << "); }\n";
  if (kind == "var")
    os << "  int64_t " << stem << "_count() const { return var_size(" << index << ") / " << t.elementSize << "; }\n";
  else
    os << "  int64_t " << stem << "_count() const { return " << kind << "_count(" << index << "); }\n";
}

void HeaderWriter::ownName(StringRef kind, StringRef bind, size_t index, const Tensor &t) {
  std::string name = t.identifier;
  if (isReservedName(name))
    name = kind.str() + "_" + std::to_string(index) + "_view";
  if (members.contains(name) || members.contains("set_" + name))
    name += kind == "arg" ? "_arg" : kind == "var" ? "_var" : "_result";
  if (members.contains(name) || members.contains("set_" + name))
    return;
  members.insert(name);
  members.insert("set_" + name);
  StringRef type = cppType(t.desc->dtype);
  os << "  lathe::View<" << type << "> " << name << "() { return " << kind << "View<" << type << ">(" << index
     << "); }\n";
  if (kind != "var")
    os << "  lathe::View<const " << type << "> " << name << "() const { return " << kind << "View<" << type << ">("
       << index << "); }\n";
  os << "  void set_" << name << "(" << (kind == "arg" ? "const " : "") << type << " *data) { " << bind << "(" << index
     << ", data); }\n";
}

void HeaderWriter::ownScale(StringRef kind, const Tensor &t) {
  if (t.desc->scales.size() == 1)
    writeScale(os, members, (kind + "_" + t.identifier).str(), t.desc->dtype, t.desc->scales[0], t.desc->zeroPoints[0]);
}

void HeaderWriter::writeC() {
  const std::string &p = options.symbolPrefix;
  os << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  os << "/* The module: its entries, tensors and sizes. */\nconst lathe_module *" << p << "_module(void);\n";
  for (auto [i, e] : enumerate(lowered.entries)) {
    os << "/* Entry '" << commentText(e.name) << "'. Bytes of workspace at these run-time sizes with that many threads.";
    for (size_t k = 0; k < e.inputs.size(); ++k)
      os << "\n * inputs[" << k << "] = " << describe(e.inputs[k]);
    for (size_t k = 0; k < e.outputs.size(); ++k)
      os << "\n * outputs[" << k << "] = " << describe(e.outputs[k]);
    os << " */\nint64_t " << entryFunctionName(p, "workspace_size", e.name, static_cast<int>(i))
       << "(const int64_t *sizes, int32_t threads);\n";
    os << "int32_t " << entryFunctionName(p, "run", e.name, static_cast<int>(i)) << "(const lathe_run_args *args);\n";
  }
  if (lowered.onDevice) {
    os << "/* Loads code and constants on device 0, to stay there until unload; the first instance or run does it otherwise, and\n"
          " * says why where it cannot. 0 is success. unload gives back what devices hold; no run may be in progress. */\nint32_t "
       << p << "_load(void);\nvoid " << p << "_unload(void);\n/* Instances, streams and memory of devices. */\nconst lathe_device_module *"
       << p << "_device(void);\n";
    for (auto [i, e] : enumerate(lowered.entries))
      os << "/* Bytes of the device's memory that a run of entry '" << commentText(e.name) << "' takes beside code and constants; < 0\n"
            " * when a size is out of range. */\nint64_t "
         << entryFunctionName(p, "device_workspace_size", e.name, static_cast<int>(i)) << "(const int64_t *sizes);\n";
  }
  if (options.externalWeights && lowered.pool.size() > 0)
    os << "/* The content of the weights file; kept in place, aligned to 64 bytes. 0 is success. */\nint32_t " << p
       << "_bind_weights(const void *data, uint64_t size);\n";
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n";
}

void HeaderWriter::writeClass() {
  auto [name, ns] = classNameOf(options);
  os << "#ifdef __cplusplus\n\n";
  if (!ns.empty())
    os << "namespace " << ns << " {\n\n";
  for (StringRef base :
       {"Run", "error_msg", "error_code", "module", "num_args", "num_results", "num_variables", "arg_data",
        "set_arg_data", "result_data", "set_result_data", "arg_is_copied", "result_is_copied", "results", "arg_size",
        "arg_count", "result_size", "result_count", "arg_dims", "result_dims", "var_data", "set_var_data", "var_size",
        "state_size", "save_state", "load_state", "LookupArgIndex", "LookupResultIndex", "LookupVariableIndex",
        "set_size", "set_batch", "set_thread_pool", "workspace_size", "set_workspace", "AllocMode", "RunEntry",
        "argView", "resultView", "varView", "kAlignment", "kNumArgs", "kNumResults", "kNumVariables",
        "BindWeightsFile", "StaticData", "CompiledModel", "initialize", "mod", "run", "error", "message", "code", "ready", "memoryFailed", "ownArgs", "anyData",
        "sizes", "bounds", "dimsScratch", "args", "outs", "entryArgs", "entryOuts", "inputPointers", "outputPointers",
        "resultPointers", "variablePointers", "variables", "workspace", "borrowed", "Slot", "add", "lookup", "bind",
        "updateDims", "prepare", "prepareSizes", "refuse", "refuseSizes", "reserve", "set_run", "set_error"})
    members.insert(base);
  if (lowered.onDevice)
    for (StringRef base :
         {"Wait", "set_stream", "clear_stream", "set_device", "device", "set_arg_device", "set_result_device", "set_var_device",
          "keep_state_on_device", "DeviceModel", "DeviceTables", "tables", "entries", "pointers", "enter", "call", "placeholder",
          "fresh", "told", "open", "reserve", "move", "forget", "close", "real", "functions", "instance", "number", "entry",
          "enqueues", "keeps", "stream", "failure", "ownCode", "symbols", "inputInfos", "outputInfos", "entryInputs",
          "entryOutputs", "deviceArgs", "in", "deviceResults", "deviceVariables", "kept", "out", "shown", "inFlags", "outFlags",
          "variableFlags"})
      members.insert(base);
  members.insert(name);
  // also where the class stands its names count: a member must not hide what the others use
  members.insert("lathe");
  members.insert("std");

  const StringRef parent = lowered.onDevice ? "DeviceModel" : "CompiledModel";
  os << "class " << name << " : public lathe::" << parent << " {\npublic:\n";
  os << "  static constexpr size_t kNumArgs = " << args.size() << ", kNumResults = " << results.size()
     << ", kNumVariables = " << variables.size() << ";\n\n";
  os << "  explicit " << name << "(AllocMode mode = AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS"
     << (lowered.onDevice ? ", int device = 0" : "") << ")\n      : " << parent << "(" << options.symbolPrefix << "_module(), "
     << (lowered.onDevice ? options.symbolPrefix + "_device(), " : std::string()) << "mode" << (lowered.onDevice ? ", device" : "")
     << ") {}\n\n";
  os << "  static const lathe_module *StaticData() { return " << options.symbolPrefix << "_module(); }\n\n";
  if (options.externalWeights && lowered.pool.size() > 0)
    os << "  /* Once per program, before the first model is made. */\n  static bool BindWeightsFile(const char *path) { "
          "return lathe::bindWeightsFile("
       << options.symbolPrefix << "_module(), path); }\n\n";
  for (auto [i, e] : enumerate(lowered.entries)) {
    std::string method = makeIdentifier(e.name);
    if (isKeyword(method))
      method += "_";
    if (lowered.entries.size() < 2 || !members.insert(method).second)
      continue;
    os << "  bool " << method << "() { return RunEntry(" << i << "); }\n";
  }
  auto list = [&](ArrayRef<Tensor> tensors, StringRef kind, StringRef numbered, StringRef feed, StringRef bind) {
    for (auto [i, t] : enumerate(tensors)) {
      os << "\n";
      if (!numbered.empty())
        accessors((numbered + Twine(i)).str(), kind, i, *t.desc, describe(*t.desc));
      accessors((kind + "_" + t.identifier).str(), kind, i, *t.desc, numbered.empty() ? describe(*t.desc) : "");
      if (!feed.empty())
        accessors((feed + t.identifier).str(), kind, i, *t.desc, "");
      ownName(kind, bind, i, t);
      ownScale(kind, t);
    }
  };
  list(args, "arg", "arg", "arg_feed_", "set_arg_data");
  list(results, "result", "result", "result_fetch_", "set_result_data");
  list(variables, "var", "", "", "set_var_data");
  os << "};\n\n";
  if (!ns.empty())
    os << "} // namespace " << ns << "\n\n";
  os << "#endif /* __cplusplus */\n";
}

std::string HeaderWriter::write() {
  StringSet<> argNames, resultNames, variableNames;
  for (const lower::EntryDesc &e : lowered.entries) {
    collect(args, e.inputs, argNames);
    collect(results, e.outputs, resultNames);
  }
  for (const lower::VariableDesc &v : lowered.variables)
    variables.push_back({&v.tensor, unique(variableNames, makeIdentifier(v.tensor.name))});
  std::string guard = "LATHE_MODULE_" + options.symbolPrefix + "_H";
  os << "/* Generated by lathe. Declares the module in " << options.symbolPrefix << ".o. */\n";
  os << "#ifndef " << guard << "\n#define " << guard << "\n\n";
  os << abiText << "\n" << supportText << "\n";
  auto isQuantized = [](const Tensor &t) { return !t.desc->scales.empty(); };
  if (any_of(args, isQuantized) || any_of(results, isQuantized))
    os << quantizedHeaderText();
  if (lowered.onDevice)
    os << deviceAbiText << "\n" << deviceSupportText << "\n";
  writeC();
  writeClass();
  os << "\n#endif\n";
  return text;
}

} // namespace

StringRef abiHeaderText() { return abiText; }
StringRef supportHeaderText() { return supportText; }
std::string quantizedHeaderText() { return std::string(quantizedAbiText) + "\n#ifdef __cplusplus\n#include <limits>\n#endif\n"; }

std::string quantizedText(ArrayRef<float> scales, ArrayRef<int64_t> zeroPoints) {
  if (scales.size() == 1)
    return ", scale " + floatText(scales[0]) + ", zero point " + std::to_string(zeroPoints[0]);
  return scales.empty() ? "" : ", " + std::to_string(scales.size()) + " scales";
}

void writeScale(raw_ostream &os, StringSet<> &members, StringRef stem, DType dtype, float value, int64_t zeroPoint) {
  const std::string scale = (stem + "_scale").str(), zero = (stem + "_zero_point").str(), make = ("quantize_" + stem).str(),
                    read = ("dequantize_" + stem).str();
  for (const std::string &name : {scale, zero, make, read})
    if (members.contains(name))
      return; // another tensor has these already
  for (const std::string &name : {scale, zero, make, read})
    members.insert(name);
  StringRef type = cppType(dtype);
  os << "  static constexpr float " << scale << " = " << floatLiteral(value) << ";\n";
  os << "  static constexpr int64_t " << zero << " = " << zeroPoint << ";\n";
  os << "  static " << type << " " << make << "(float real) {\n    using Limits = std::numeric_limits<" << type << ">;\n    return static_cast<"
     << type << ">(lathe_quantize(real, " << scale << ", " << zero << ", Limits::min(), Limits::max()));\n  }\n";
  os << "  static float " << read << "(" << type << " element) { return lathe_dequantize(element, " << scale << ", " << zero << "); }\n";
}

std::string makeHeader(const lower::LoweredModule &lowered, const EmitOptions &options) {
  return HeaderWriter(lowered, options).write();
}

} // namespace lathe
