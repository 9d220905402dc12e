#include "runtime/session/SavedModel.h"

#include "graph/saved/BindVariables.h"
#include "graph/saved/ReadModel.h"
#include "runtime/core/Status.h"
#include "runtime/session/Graph.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lathe {
namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMaxFileBytes = INT32_MAX; // what protobuf can parse

absl::Status readModel(const std::string &folder, tf::SavedModel *model) {
  std::string path = folder + "/saved_model.pb";
  std::error_code error;
  uintmax_t size = fs::file_size(path, error);
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "': ", error.message()));
  if (size > kMaxFileBytes)
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "' is larger than ", kMaxFileBytes, " bytes"));
  std::ifstream file(path, std::ios::binary);
  if (!file || !model->ParseFromIstream(&file))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a SavedModel"));
  return absl::OkStatus();
}

tf::MetaGraphDef *findGraph(tf::SavedModel &model, std::vector<std::string> tags) {
  std::sort(tags.begin(), tags.end());
  for (tf::MetaGraphDef &graph : *model.mutable_meta_graphs()) {
    std::vector<std::string> have(graph.meta_info_def().tags().begin(), graph.meta_info_def().tags().end());
    std::sort(have.begin(), have.end());
    if (have == tags)
      return &graph;
  }
  return nullptr;
}

std::optional<std::vector<int64_t>> dimsOf(const tf::TensorShapeProto &shape) {
  if (shape.unknown_rank())
    return std::nullopt;
  std::vector<int64_t> dims;
  for (const auto &dim : shape.dim())
    dims.push_back(dim.size());
  return dims;
}

ModelSignature readSignature(const tf::SignatureDef &def) {
  ModelSignature s;
  s.method = def.method_name();
  auto read = [](const auto &from, std::map<std::string, SignatureTensor> &to) {
    for (auto &[key, info] : from)
      if (!info.name().empty())
        to[key] = {info.name(), dtypeFromNumber(info.dtype()).value_or(DType::Invalid), dimsOf(info.tensor_shape())};
  };
  read(def.inputs(), s.inputs);
  read(def.outputs(), s.outputs);
  return s;
}

/// "x:0" and "x" are the node x.
std::string nodeOf(const std::string &name) { return rt::parseTensorName(name).node; }

/// The op that initialises: its own signature in TF2, a collection in TF1.
std::string initOp(const tf::MetaGraphDef &graph) {
  if (auto it = graph.signature_def().find("__saved_model_init_op"); it != graph.signature_def().end())
    if (auto out = it->second.outputs().find("__saved_model_init_op"); out != it->second.outputs().end())
      return nodeOf(out->second.name());
  for (const char *name : {"saved_model_main_op", "legacy_init_op"})
    if (auto it = graph.collection_def().find(name); it != graph.collection_def().end())
      if (it->second.node_list().value_size() > 0)
        return nodeOf(it->second.node_list().value(0));
  return "";
}

/// The paths of assets, to be fed.
absl::Status assetFeeds(const tf::MetaGraphDef &graph, const std::string &folder, Session::Feeds *feeds) {
  std::vector<tf::AssetFileDef> assets(graph.asset_file_def().begin(), graph.asset_file_def().end());
  if (auto it = graph.collection_def().find("saved_model_assets"); assets.empty() && it != graph.collection_def().end())
    for (const std::string &bytes : it->second.bytes_list().value()) {
      // an Any: its url in field 1, the message's bytes in field 2, as in this message of ours
      tf::VariantTensorDataProto any;
      tf::AssetFileDef asset;
      if (any.ParseFromString(bytes) && asset.ParseFromString(any.metadata()))
        assets.push_back(asset);
    }
  for (const tf::AssetFileDef &asset : assets) {
    const std::string &name = asset.filename();
    for (absl::string_view part : absl::StrSplit(name, '/'))
      if (part == "..")
        return absl::InvalidArgumentError(absl::StrCat("asset '", name, "' leaves the model's folder"));
    if (absl::StartsWith(name, "/"))
      return absl::InvalidArgumentError(absl::StrCat("asset '", name, "' leaves the model's folder"));
    feeds->emplace_back(asset.tensor_info().name(), Tensor::fromStrings({}, {folder + "/assets/" + name}));
  }
  return absl::OkStatus();
}

absl::Status in(const char *what, const absl::Status &status) {
  if (status.ok())
    return status;
  absl::Status s(status.code(), absl::StrCat(what, ": ", status.message()));
  if (rt::StatusNode node = rt::statusNode(status); !node.name.empty())
    rt::setStatusNode(s, node.name, node.op);
  return s;
}

absl::Status readRunners(const tf::MetaGraphDef &graph, std::vector<QueueRunnerDef> *runners) {
  runners->clear();
  if (auto it = graph.collection_def().find("queue_runners"); it != graph.collection_def().end())
    for (const std::string &bytes : it->second.bytes_list().value()) {
      absl::StatusOr<QueueRunnerDef> def = ParseQueueRunnerDef(bytes);
      if (!def.ok())
        return in("the collection queue_runners", def.status());
      runners->push_back(*std::move(def));
    }
  return absl::OkStatus();
}

std::map<std::string, ModelSignature> readSignatures(const tf::MetaGraphDef &graph) {
  std::map<std::string, ModelSignature> signatures;
  for (auto &[key, signature] : graph.signature_def())
    if (key.rfind("__saved_model", 0) != 0)
      signatures[key] = readSignature(signature);
  return signatures;
}

absl::StatusOr<GraphFile> graphFile(absl::StatusOr<graphdef::ModelFile> model) {
  if (!model.ok())
    return model.status();
  GraphFile file;
  file.kind = static_cast<GraphFile::Kind>(model->kind);
  file.graph = model->graph().SerializeAsString();
  file.signatures = readSignatures(*model->meta);
  if (absl::Status s = readRunners(*model->meta, &file.queueRunners); !s.ok())
    return s;
  file.checkpoint = model->checkpoint;
  const tf::SaverDef &saver = model->meta->saver_def();
  file.restoreOp = saver.restore_op_name();
  file.filenameTensor = saver.filename_tensor_name();
  return file;
}

graphdef::ReadOptions withTag(const std::string &tag) {
  graphdef::ReadOptions options;
  options.tag = tag;
  return options;
}

} // namespace

absl::StatusOr<GraphFile> ReadGraphFile(const std::string &path, const std::string &tag) {
  return graphFile(graphdef::readModel(path, withTag(tag)));
}

absl::StatusOr<GraphFile> ParseGraphFile(std::string_view bytes, const std::string &name, const std::string &tag) {
  return graphFile(graphdef::parseModel(bytes, name, withTag(tag)));
}

absl::Status LoadSavedModel(const SessionOptions &options, const RunOptions &runOptions, const std::string &folder,
                            const std::vector<std::string> &tags, SavedModelBundle *bundle, tf::MetaGraphDef *meta) {
  tf::SavedModel model;
  if (absl::Status s = readModel(folder, &model); !s.ok())
    return s;
  tf::MetaGraphDef *graph = findGraph(model, tags);
  if (!graph)
    return absl::NotFoundError(absl::StrCat("'", folder, "' has no graph with the tags {", absl::StrJoin(tags, ", "), "}"));
  graphdef::bindVariables(*graph);
  std::unique_ptr<Session> session;
  if (absl::Status s = NewSession(options, &session); !s.ok())
    return s;
  if (absl::Status s = session->Create(graph->graph_def()); !s.ok())
    return s;
  Session::Feeds assets;
  if (absl::Status s = assetFeeds(*graph, folder, &assets); !s.ok())
    return s;
  std::error_code error;
  std::string variables = folder + "/variables/variables";
  const tf::SaverDef &saver = graph->saver_def();
  if (!saver.restore_op_name().empty() && (fs::exists(variables + ".index", error) || fs::exists(variables, error))) {
    Session::Feeds feeds = assets;
    feeds.emplace_back(saver.filename_tensor_name(), Tensor::fromStrings({}, {variables}));
    if (absl::Status s = session->Run(runOptions, feeds, {}, {nodeOf(saver.restore_op_name())}, nullptr, nullptr); !s.ok())
      return in("restoring variables", s);
  }
  if (std::string init = initOp(*graph); !init.empty())
    if (absl::Status s = session->Run(runOptions, assets, {}, {init}, nullptr, nullptr); !s.ok())
      return in("initialising", s);
  if (absl::Status s = readRunners(*graph, &bundle->queueRunners); !s.ok())
    return s;
  bundle->signatures = readSignatures(*graph);
  bundle->session = std::move(session);
  if (meta)
    *meta = *graph;
  return absl::OkStatus();
}

absl::Status SavedModelBundle::Run(const std::string &key, const Session::Feeds &inputs,
                                   std::vector<std::pair<std::string, Tensor>> *outputs) const {
  auto it = signatures.find(key);
  if (it == signatures.end())
    return absl::NotFoundError(absl::StrCat("there is no signature '", key, "'"));
  const ModelSignature &signature = it->second;
  Session::Feeds feeds;
  for (auto &[name, value] : inputs) {
    auto input = signature.inputs.find(name);
    if (input == signature.inputs.end())
      return absl::NotFoundError(absl::StrCat("signature '", key, "' has no input '", name, "'"));
    feeds.emplace_back(input->second.tensor, value);
  }
  if (inputs.size() < signature.inputs.size())
    return absl::InvalidArgumentError(absl::StrCat("signature '", key, "' has ", signature.inputs.size(), " inputs, got ", inputs.size()));
  std::vector<std::string> fetches;
  for (auto &[name, tensor] : signature.outputs)
    fetches.push_back(tensor.tensor);
  std::vector<Tensor> results;
  if (absl::Status s = session->Run(feeds, fetches, {}, &results); !s.ok())
    return s;
  outputs->clear();
  size_t i = 0;
  for (auto &[name, tensor] : signature.outputs)
    outputs->emplace_back(name, std::move(results[i++]));
  return absl::OkStatus();
}

} // namespace lathe
