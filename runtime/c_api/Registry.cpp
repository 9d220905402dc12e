// What there is: ops, kernels, documentation of ops, devices.
#include "runtime/c_api/Session.h"

#include "graph/Values.h"
#include "proto/config.pb.h"
#include "runtime/core/Kernel.h"
#include "runtime/session/CompilerLibrary.h"
#include "runtime/session/Executable.h"

#include "absl/strings/str_cat.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

using namespace lathe;
using namespace lathe::c_api;

struct TF_ApiDefMap {
  std::mutex mutex;
  std::map<std::string, tf::ApiDef> ops;
  bool wasRead = false;
};

namespace {

void describeArg(const ops::Arg &arg, tf::OpDef::ArgDef *def) {
  def->set_name(std::string(arg.name));
  def->set_type(static_cast<tf::DataType>(arg.type));
  def->set_type_attr(std::string(arg.typeAttr));
  def->set_number_attr(std::string(arg.numberAttr));
  def->set_type_list_attr(std::string(arg.typeListAttr));
  def->set_is_ref(arg.isRef);
}

/// Parsing fails without a word on stderr.
class Quiet : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, int, const std::string &message) override {
    if (text.empty())
      text = absl::StrCat("line ", line + 1, ": ", message);
  }
  std::string text;
};

/// Whether the op runs: by a kernel of the host, by the executor itself, or compiled where the compiler is there.
bool runs(std::string_view op) {
  static const auto compiles = [] {
    auto function = compilerFunction("lathe_compiles_op");
    return function.ok() ? reinterpret_cast<lathe_compiles_op_fn>(*function) : nullptr;
  }();
  return rt::findKernel(op) || rt::isExecutorOp(op) || (compiles && compiles(std::string(op).c_str()));
}

void addKernels(const ops::OpInfo &op, tf::KernelList *list) {
  if (!runs(op.name))
    return;
  tf::KernelDef *kernel = list->add_kernel();
  kernel->set_op(std::string(op.name));
  kernel->set_device_type("CPU");
  for (const ops::Attr &attr : op.attrs)
    if (attr.type == "type" && !attr.types.empty()) {
      auto *constraint = kernel->add_constraint();
      constraint->set_name(std::string(attr.name));
      for (DType type : attr.types)
        constraint->mutable_allowed_values()->mutable_list()->add_type(static_cast<tf::DataType>(type));
    }
}

TF_Buffer *listOfKernels(const tf::KernelList &list, TF_Status *status) {
  TF_Buffer *buffer = TF_NewBuffer();
  giveMessage(list, buffer, status);
  if (isOk(status))
    return buffer;
  TF_DeleteBuffer(buffer);
  return nullptr;
}

} // namespace

namespace lathe::c_api {

tf::RegisteredOp describeOp(const ops::OpInfo &op) {
  tf::RegisteredOp def;
  def.set_name(std::string(op.name));
  def.set_is_stateful(op.isStateful);
  for (const ops::Arg &arg : op.inputs)
    describeArg(arg, def.add_input_arg());
  for (const ops::Arg &arg : op.outputs)
    describeArg(arg, def.add_output_arg());
  for (const ops::Attr &attr : op.attrs) {
    auto *out = def.add_attr();
    out->set_name(std::string(attr.name));
    out->set_type(std::string(attr.type));
    if (attr.hasDefault)
      graphdef::parseDefault(attr.type, attr.defaultText, out->mutable_default_value());
    if (attr.minimum) {
      out->set_has_minimum(true);
      out->set_minimum(*attr.minimum);
    }
    for (DType type : attr.types)
      out->mutable_allowed_values()->mutable_list()->add_type(static_cast<tf::DataType>(type));
    for (const std::string &text : attr.strings)
      out->mutable_allowed_values()->mutable_list()->add_s(text);
  }
  return def;
}

} // namespace lathe::c_api

extern "C" {

TF_Buffer *TF_GetAllOpList(void) {
  tf::RegisteredOps list;
  for (const ops::OpInfo &op : ops::allOps())
    *list.add_op() = describeOp(op);
  TF_Buffer *buffer = TF_NewBuffer();
  giveMessage(list, buffer, nullptr);
  return buffer;
}

TF_Buffer *TF_GetAllRegisteredKernels(TF_Status *status) {
  setOk(status);
  tf::KernelList list;
  for (const ops::OpInfo &op : ops::allOps())
    addKernels(op, &list);
  return listOfKernels(list, status);
}

TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status) {
  if (!present(status, "name", name))
    return nullptr;
  tf::KernelList list;
  if (const ops::OpInfo *op = ops::findOp(name))
    addKernels(*op, &list);
  return listOfKernels(list, status);
}

TF_ApiDefMap *TF_NewApiDefMap(TF_Buffer *op_list_buffer, TF_Status *status) {
  tf::OpList list;
  if (!present(status, "op_list_buffer", op_list_buffer) ||
      !parseMessage(op_list_buffer->data, op_list_buffer->length, "OpList", &list, status))
    return nullptr;
  auto *map = new TF_ApiDefMap;
  for (const tf::OpDef &op : list.op()) {
    tf::ApiDef &def = map->ops[op.name()];
    def.set_graph_op_name(op.name());
    def.set_visibility(tf::ApiDef::VISIBLE);
    def.add_endpoint()->set_name(op.name());
    for (const tf::OpDef::ArgDef &arg : op.input_arg()) {
      auto *a = def.add_in_arg();
      a->set_name(arg.name());
      a->set_rename_to(arg.name());
      a->set_description(arg.description());
      def.add_arg_order(arg.name());
    }
    for (const tf::OpDef::ArgDef &arg : op.output_arg()) {
      auto *a = def.add_out_arg();
      a->set_name(arg.name());
      a->set_rename_to(arg.name());
      a->set_description(arg.description());
    }
    for (const tf::OpDef::AttrDef &attr : op.attr()) {
      auto *a = def.add_attr();
      a->set_name(attr.name());
      a->set_rename_to(attr.name());
      if (attr.has_default_value())
        *a->mutable_default_value() = attr.default_value();
    }
    def.set_summary(op.summary());
    def.set_description(op.description());
  }
  return map;
}

void TF_DeleteApiDefMap(TF_ApiDefMap *apimap) { delete apimap; }

void TF_ApiDefMapPut(TF_ApiDefMap *api_def_map, const char *text, size_t text_len, TF_Status *status) {
  if (!present(status, "api_def_map, text", api_def_map, text))
    return;
  std::lock_guard<std::mutex> lock(api_def_map->mutex);
  if (api_def_map->wasRead)
    return set(status, absl::FailedPreconditionError("the map has been read; nothing can be put into it any more"));
  tf::ApiDefs defs;
  Quiet errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  if (!parser.ParseFromString(std::string(text, text_len), &defs))
    return setInvalid(status, absl::StrCat("the text is not an ApiDefs message: ", errors.text));
  for (const tf::ApiDef &def : defs.op()) {
    auto it = api_def_map->ops.find(def.graph_op_name());
    if (it == api_def_map->ops.end())
      continue; // of another library's op
    tf::ApiDef &known = it->second;
    // what is said replaces, what is not stays
    if (def.endpoint_size() > 0)
      known.clear_endpoint();
    if (def.arg_order_size() > 0)
      known.clear_arg_order();
    tf::ApiDef plain = def;
    plain.clear_in_arg();
    plain.clear_out_arg();
    plain.clear_attr();
    known.MergeFrom(plain);
    auto merge = [](const auto &from, auto *to) {
      for (auto &item : from)
        for (auto &target : *to)
          if (target.name() == item.name())
            target.MergeFrom(item);
    };
    merge(def.in_arg(), known.mutable_in_arg());
    merge(def.out_arg(), known.mutable_out_arg());
    merge(def.attr(), known.mutable_attr());
  }
}

TF_Buffer *TF_ApiDefMapGet(TF_ApiDefMap *api_def_map, const char *name, size_t name_len, TF_Status *status) {
  if (!present(status, "api_def_map, name", api_def_map, name))
    return nullptr;
  std::lock_guard<std::mutex> lock(api_def_map->mutex);
  api_def_map->wasRead = true;
  auto it = api_def_map->ops.find(std::string(name, name_len));
  if (it == api_def_map->ops.end())
    return nullptr;
  tf::ApiDef def = it->second;
  def.set_description(def.description_prefix() + def.description() + def.description_suffix());
  TF_Buffer *buffer = TF_NewBuffer();
  giveMessage(def, buffer, status);
  return buffer;
}

} // extern "C"
