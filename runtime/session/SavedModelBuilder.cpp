// SavedModels out of graphs that are built in C++.
#include "base/ProtoWire.h"
#include "graph/Graph.h"
#include "ops/Flags.h"
#include "proto/saved_model.pb.h"
#include "runtime/session/Saver.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <fstream>

namespace lathe {
namespace {

absl::Status describe(const Scope &scope, const std::vector<std::pair<std::string, Output>> &arguments, const char *what,
                      google::protobuf::Map<std::string, tf::TensorInfo> *infos) {
  for (const auto &[name, output] : arguments) {
    if (!output.node() || &output.node()->graph() != scope.graph())
      return absl::InvalidArgumentError(absl::StrCat("the signature's ", what, " '", name, "' is not of this graph"));
    tf::TensorInfo &info = (*infos)[name];
    info.set_name(output.name());
    info.set_dtype(static_cast<tf::DataType>(output.type()));
    const tf::AttrValue *shape = ops::is(output.node()->op(), ops::Flag::Placeholder) ? output.node()->attr("shape") : nullptr;
    if (shape)
      *info.mutable_tensor_shape() = shape->shape();
    else
      info.mutable_tensor_shape()->set_unknown_rank(true);
  }
  return absl::OkStatus();
}

/// What TensorFlow needs to know of a variable, as collections hold it.
std::string variableMessage(const train::Variable &v) {
  tf::VariableDef def;
  def.set_variable_name(v.handle.op().name() + ":0");
  def.set_initializer_name(v.init.name());
  def.set_snapshot_name(v.value.op().name() + ":0");
  def.set_is_resource(true);
  if (v.init.node() && v.init.node()->numInputs() == 2) {
    graphdef::Endpoint first = v.init.node()->input(1);
    def.set_initial_value_name(absl::StrCat(first.node->name(), ":", first.index));
  }
  std::string bytes = def.SerializeAsString();
  constexpr int kTrainable = 7; // a field that nothing here reads
  appendProtoNumber(bytes, kTrainable, 1);
  return bytes;
}

absl::StatusOr<std::string> metaGraph(const Scope &scope, const Saver &saver, const std::vector<std::string> &tags,
                                      const SavedModelBuilder::Signatures &signatures, const Operation &init) {
  if (!scope.ok())
    return scope.status();
  if (tags.empty())
    return absl::InvalidArgumentError("a graph of a SavedModel needs at least one tag, such as \"serve\"");
  tf::MetaGraphDef meta;
  for (const std::string &tag : tags)
    meta.mutable_meta_info_def()->add_tags(tag);
  meta.mutable_meta_info_def()->set_tensorflow_version("2.21.0");
  *meta.mutable_graph_def() = scope.graph()->toProto();
  tf::VersionDef *versions = meta.mutable_graph_def()->mutable_versions();
  if (!versions->producer())
    versions->set_producer(graphdef::kGraphVersion);
  tf::SaverDef *facts = meta.mutable_saver_def();
  facts->set_filename_tensor_name(saver.filename().op().name() + ":0");
  facts->set_save_tensor_name(saver.saved().op().name() + ":0");
  facts->set_restore_op_name(saver.restore().name());
  facts->set_version(tf::SaverDef::V2);
  for (const char *collection : {"variables", "trainable_variables"})
    for (const train::Variable &v : saver.variables())
      (*meta.mutable_collection_def())[collection].mutable_bytes_list()->add_value(variableMessage(v));
  if (init.node()) {
    if (&init.node()->graph() != scope.graph())
      return absl::InvalidArgumentError("the operation to run at loading is not of this graph");
    (*meta.mutable_collection_def())["saved_model_main_op"].mutable_node_list()->add_value(init.name());
  }
  for (const auto &[name, signature] : signatures) {
    tf::SignatureDef &def = (*meta.mutable_signature_def())[name];
    def.set_method_name(signature.method);
    absl::Status status = describe(scope, signature.inputs, "input", def.mutable_inputs());
    if (status.ok())
      status = describe(scope, signature.outputs, "output", def.mutable_outputs());
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("signature '", name, "': ", status.message()));
  }
  return meta.SerializeAsString();
}

} // namespace

absl::Status SavedModelBuilder::AddMetaGraphAndVariables(ClientSession &session, const Saver &saver, const std::vector<std::string> &tags,
                                                         const Signatures &signatures, const Operation &init) {
  if (!metaGraphs.empty())
    return absl::FailedPreconditionError("the first graph is the one with variables; add others with AddMetaGraph");
  std::filesystem::path path(folder);
  std::error_code error;
  for (const char *name : {"saved_model.pb", "saved_model.pbtxt"})
    if (std::filesystem::exists(path / name, error))
      return absl::AlreadyExistsError(absl::StrCat("'", folder, "' holds a SavedModel"));
  absl::StatusOr<std::string> meta = metaGraph(session.scope(), saver, tags, signatures, init);
  if (!meta.ok())
    return meta.status();
  std::filesystem::create_directories(path / "variables", error);
  if (error)
    return absl::PermissionDeniedError(absl::StrCat("cannot make the folder '", folder, "': ", error.message()));
  std::string prefix = (path / "variables" / "variables").string();
  absl::Status saved = session.Run({{saver.filename(), prefix}}, {saver.saved()}, nullptr);
  if (saved.ok())
    metaGraphs.push_back(*std::move(meta));
  return saved;
}

absl::Status SavedModelBuilder::AddMetaGraph(const Scope &scope, const Saver &saver, const std::vector<std::string> &tags, const Signatures &signatures,
                                             const Operation &init) {
  if (metaGraphs.empty())
    return absl::FailedPreconditionError("the first graph brings the variables: AddMetaGraphAndVariables");
  absl::StatusOr<std::string> meta = metaGraph(scope, saver, tags, signatures, init);
  if (meta.ok())
    metaGraphs.push_back(*std::move(meta));
  return meta.status();
}

absl::Status SavedModelBuilder::Save() const {
  if (metaGraphs.empty())
    return absl::FailedPreconditionError("the model has no graph");
  tf::SavedModel model;
  model.set_saved_model_schema_version(1);
  for (const std::string &bytes : metaGraphs)
    model.add_meta_graphs()->ParseFromString(bytes);
  std::string file = (std::filesystem::path(folder) / "saved_model.pb").string();
  std::ofstream out(file, std::ios::binary);
  if (!model.SerializeToOstream(&out) || !out.flush())
    return absl::PermissionDeniedError(absl::StrCat("cannot write '", file, "'"));
  return absl::OkStatus();
}

} // namespace lathe
