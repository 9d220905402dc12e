#include "graph/Library.h"

#include "graph/Values.h"

#include "absl/strings/str_cat.h"

#include <google/protobuf/util/message_differencer.h>

namespace lathe::graphdef {
namespace {

std::vector<ops::Arg> argsOf(const google::protobuf::RepeatedPtrField<tf::OpDef::ArgDef> &args) {
  std::vector<ops::Arg> out;
  for (const tf::OpDef::ArgDef &arg : args)
    out.push_back({arg.name(), dtypeOf(arg.type()), arg.type_attr(), arg.number_attr(), arg.type_list_attr(), arg.is_ref()});
  return out;
}

ops::OpInfo describe(const tf::OpDef &def) {
  ops::OpInfo info;
  info.name = def.name();
  info.isStateful = def.is_stateful();
  info.inputs = argsOf(def.input_arg());
  info.outputs = argsOf(def.output_arg());
  for (const tf::OpDef::AttrDef &attr : def.attr()) {
    ops::Attr a;
    a.name = attr.name();
    a.type = attr.type();
    info.attrs.push_back(a);
  }
  return info;
}

} // namespace

bool sameFunction(const tf::FunctionDef &a, const tf::FunctionDef &b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

absl::Status Library::add(const tf::FunctionDef &function) {
  const std::string &name = function.signature().name();
  if (name.empty())
    return absl::InvalidArgumentError("a function has no name");
  if (auto it = functions.find(name); it != functions.end()) {
    if (sameFunction(*it->second, function))
      return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("another function is named '", name, "'"));
  }
  auto &stored = functions[name];
  stored = std::make_unique<tf::FunctionDef>(function);
  signatures[name] = describe(stored->signature());
  return absl::OkStatus();
}

absl::Status Library::addGradient(std::string_view function, std::string_view gradient) {
  auto [it, isNew] = gradients.emplace(function, gradient);
  if (!isNew && it->second != gradient)
    return absl::InvalidArgumentError(absl::StrCat("function '", it->first, "' already has the gradient '", it->second, "'"));
  return absl::OkStatus();
}

absl::Status Library::extend(const tf::FunctionDefLibrary &more) {
  for (const tf::FunctionDef &function : more.function())
    if (absl::Status s = add(function); !s.ok())
      return s;
  for (const tf::GradientDef &gradient : more.gradient())
    if (absl::Status s = addGradient(gradient.function_name(), gradient.gradient_func()); !s.ok())
      return s;
  return absl::OkStatus();
}

absl::Status Library::remove(std::string_view name) {
  auto it = functions.find(name);
  if (it == functions.end())
    return absl::NotFoundError(absl::StrCat("there is no function '", std::string(name), "'"));
  signatures.erase(it->first);
  gradients.erase(it->first);
  functions.erase(it);
  return absl::OkStatus();
}

const tf::FunctionDef *Library::find(std::string_view name) const {
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second.get();
}

const ops::OpInfo *Library::signature(std::string_view name) const {
  auto it = signatures.find(name);
  return it == signatures.end() ? nullptr : &it->second;
}

std::string Library::gradientOf(std::string_view name) const {
  auto it = gradients.find(name);
  return it == gradients.end() ? std::string() : it->second;
}

std::string Library::uniqueName(std::string_view name) const {
  std::string out(name);
  for (int i = 1; functions.count(out); ++i)
    out = absl::StrCat(std::string(name), "_", i);
  return out;
}

tf::FunctionDefLibrary Library::toProto() const {
  tf::FunctionDefLibrary all;
  for (auto &[name, function] : functions)
    *all.add_function() = *function;
  for (auto &[function, gradient] : gradients) {
    tf::GradientDef *g = all.add_gradient();
    g->set_function_name(function);
    g->set_gradient_func(gradient);
  }
  return all;
}

} // namespace lathe::graphdef
