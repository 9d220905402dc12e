// Objects with host kernels: their tables and their header.
#include "compiler/emit/Header.h"
#include "compiler/emit/Tables.h"
#include "runtime/abi/module_abi.h"
#include "runtime/abi/hosted_abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace lathe {
namespace {

const char hostedAbiText[] =
#include "runtime/abi/hosted_abi_text.inc"
    ;
const char hostedSupportText[] =
#include "compiler/emit/hosted_support.inc"
    ;

class HostedHeader {
public:
  HostedHeader(const HostedPayload &hosted, const EmitOptions &options, bool onDevice)
      : hosted(hosted), options(options), onDevice(onDevice), os(text) {}
  std::string write();

private:
  std::string describe(const HostedPayload::Tensor &t) {
    return commentText(t.name) + ": " + dtypeName(t.dtype) + (t.rank < 0 ? "" : ", rank " + std::to_string(t.rank)) +
           quantizedText(t.scales, t.zeroPoints);
  }
  std::string identifier(StringRef name, StringRef prefix, StringRef suffix) {
    std::string id = makeIdentifier(name);
    if (isReservedName(id) || !members.insert(prefix.str() + id).second)
      for (int i = 0;; ++i)
        if (members.insert(prefix.str() + (id = (suffix + "_" + Twine(i)).str())).second)
          break;
    return id;
  }
  void writeScales(const std::string &stem, const HostedPayload::Tensor &t) {
    if (t.scales.size() == 1)
      writeScale(os, members, stem, t.dtype, t.scales[0], t.zeroPoints[0]);
  }
  void writeArg(size_t i, const HostedPayload::Tensor &t);
  void writeResult(size_t i, const HostedPayload::Tensor &t);
  void writeClass();

  const HostedPayload &hosted;
  const EmitOptions &options;
  const bool onDevice; ///< what is compiled runs on an NVIDIA device
  std::string text;
  raw_string_ostream os;
  StringSet<> members;
};

void HostedHeader::writeArg(size_t i, const HostedPayload::Tensor &t) {
  std::string id = identifier(t.name, "set_", "arg");
  os << "  // " << describe(t) << "\n";
  bool oneDimension = t.rank == 1;
  if (t.dtype == DType::String) {
    os << "  void set_" << id << "(std::vector<std::string> values, std::vector<int64_t> dims) { set_arg_strings(" << i
       << ", std::move(values), std::move(dims)); }\n";
    if (oneDimension)
      os << "  void set_" << id << "(std::vector<std::string> values) { int64_t n = static_cast<int64_t>(values.size()); set_arg_strings("
         << i << ", std::move(values), {n}); }\n";
    if (t.rank == 0)
      os << "  void set_" << id << "(std::string value) { set_arg_strings(" << i << ", {std::move(value)}, {}); }\n";
    return;
  }
  os << "  void set_" << id << "(const " << cppType(t.dtype) << " *data, std::vector<int64_t> dims) { set_arg_data(" << i << ", "
     << static_cast<int>(t.dtype) << ", data, std::move(dims)); }\n";
  writeScales("arg_" + id, t);
}

void HostedHeader::writeResult(size_t i, const HostedPayload::Tensor &t) {
  std::string id = identifier(t.name, "", "result");
  os << "  // " << describe(t) << "\n";
  if (t.dtype == DType::String)
    os << "  std::vector<std::string> " << id << "() const { return resultStrings(" << i << "); }\n";
  else
    os << "  lathe::View<const " << cppType(t.dtype) << "> " << id << "() const { return resultView<" << cppType(t.dtype) << ">(" << i
       << "); }\n";
  if (members.insert(id + "_dims").second)
    os << "  std::vector<int64_t> " << id << "_dims() const { return result_dims(" << i << "); }\n";
  writeScales("result_" + id, t);
}

void HostedHeader::writeClass() {
  auto [name, ns] = classNameOf(options);
  for (StringRef base : {"ok", "Run", "RunEntry", "error_msg", "error_code", "num_args", "num_results", "set_arg_data", "set_arg_strings",
                         "result_dims", "resultView", "resultStrings", "HostedModel", "lathe", "std", "model", "ready", "args", "bind", "Arg"})
    members.insert(base);
  members.insert(name);
  os << "#ifdef __cplusplus\n\n";
  if (!ns.empty())
    os << "namespace " << ns << " {\n\n";
  os << "class " << name << " : public lathe::HostedModel {\npublic:\n  explicit " << name << "(int threads = 1"
     << (onDevice ? ", int device = 0" : "") << ") : HostedModel(" << options.symbolPrefix << "_hosted(), threads"
     << (onDevice ? ", device" : "") << ") {}\n";
  for (auto [e, entry] : enumerate(hosted.entries)) {
    os << "\n  // Entry '" << commentText(entry.name) << "'.\n";
    std::string method = makeIdentifier(entry.name);
    if (hosted.entries.size() > 1 && !isReservedName(method) && members.insert(method).second)
      os << "  bool " << method << "() { return RunEntry(" << e << "); }\n";
    for (auto [i, t] : enumerate(entry.inputs))
      writeArg(i, t);
    for (auto [i, t] : enumerate(entry.outputs))
      writeResult(i, t);
  }
  os << "};\n\n";
  if (!ns.empty())
    os << "} // namespace " << ns << "\n\n";
  os << "#endif /* __cplusplus */\n";
}

std::string HostedHeader::write() {
  const std::string &p = options.symbolPrefix;
  std::string guard = "LATHE_MODULE_" + p + "_H";
  os << "/* Generated by lathe. Declares the model in " << p << ".o, which needs "
     << (onDevice ? "liblathe_cuda.a, for what is compiled, and liblathe_host.a for:" : "liblathe_host.a for:");
  for (const std::string &kernel : hosted.kernels)
    os << "\n * " << kernel;
  os << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n";
  os << abiHeaderText() << "\n" << supportHeaderText() << "\n";
  auto isQuantized = [](const HostedPayload::Tensor &t) { return !t.scales.empty(); };
  if (any_of(hosted.entries, [&](const HostedPayload::Entry &e) { return any_of(e.inputs, isQuantized) || any_of(e.outputs, isQuantized); }))
    os << quantizedHeaderText();
  os << hostedAbiText << "\n" << hostedSupportText << "\n";
  os << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* For lathe_hosted_new. Entries:";
  for (const HostedPayload::Entry &entry : hosted.entries) {
    os << "\n * '" << commentText(entry.name) << "'";
    for (auto [i, t] : enumerate(entry.inputs))
      os << "\n *   inputs[" << i << "] = " << describe(t);
    for (auto [i, t] : enumerate(entry.outputs))
      os << "\n *   result " << i << " = " << describe(t);
  }
  os << " */\nconst lathe_hosted_module *" << p << "_hosted(void);\n\n#ifdef __cplusplus\n}\n#endif\n\n";
  writeClass();
  os << "\n#endif\n";
  return text;
}

} // namespace

std::string makeHostedHeader(const HostedPayload &hosted, const EmitOptions &options, bool onDevice) {
  return HostedHeader(hosted, options, onDevice).write();
}

void emitHostedTables(Module &m, const HostedPayload &hosted, StringRef prefix, bool onDevice) {
  LLVMContext &c = m.getContext();
  auto *ptr = PointerType::get(c, 0);
  auto place = [&](Constant *init, unsigned align) {
    auto *g = new GlobalVariable(m, init->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, init);
    g->setAlignment(Align(align));
    return g;
  };
  auto i32 = [&](int64_t v) { return ConstantInt::get(Type::getInt32Ty(c), static_cast<uint64_t>(v)); };
  SmallVector<Constant *> kernels;
  for (const std::string &op : hosted.kernels)
    kernels.push_back(new GlobalVariable(m, ptr, /*isConstant=*/true, GlobalValue::ExternalLinkage, nullptr, "lathe_host_kernel_" + op));
  Constant *const null = ConstantPointerNull::get(ptr);
  Constant *table = kernels.empty() ? null : place(ConstantArray::get(ArrayType::get(ptr, kernels.size()), kernels), 8);
  Constant *graph = place(ConstantDataArray::getString(c, hosted.graph, /*AddNull=*/false), 16);
  Constant *clusters = hosted.hasClusters ? static_cast<Constant *>(m.getFunction((prefix + "_module").str())) : null;
  Constant *device = null, *devices = null;
  if (onDevice && hosted.hasClusters) {
    device = m.getFunction((prefix + "_device").str());
    devices = new GlobalVariable(m, ptr, /*isConstant=*/true, GlobalValue::ExternalLinkage, nullptr, "lathe_hosted_devices_cuda");
  }
  Constant *fields[] = {i32(sizeof(lathe_hosted_module)), i32(LATHE_HOSTED_VERSION), place(ConstantDataArray::getString(c, prefix), 1),
                        clusters, graph, ConstantInt::get(Type::getInt64Ty(c), hosted.graph.size()),
                        i32(static_cast<int64_t>(kernels.size())), i32(0), table, device, devices};
  GlobalVariable *module = place(ConstantStruct::getAnon(c, fields), 8);
  auto *query = Function::Create(FunctionType::get(ptr, false), GlobalValue::ExternalLinkage, prefix + "_hosted", m);
  IRBuilder<> b(BasicBlock::Create(c, "", query));
  b.CreateRet(module);
}

} // namespace lathe
