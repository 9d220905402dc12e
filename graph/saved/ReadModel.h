// Files and bytes into messages: the one reading of GraphDefs, MetaGraphs and SavedModels, binary or text, told apart by their
// content. Files are untrusted: sizes and nesting are checked before the parser sees them.
#ifndef LATHE_GRAPH_SAVED_READMODEL_H
#define LATHE_GRAPH_SAVED_READMODEL_H

#include "proto/saved_model.pb.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>
#include <string_view>

namespace lathe::graphdef {

/// A model as read: a bare graph is a MetaGraph without signatures.
struct ModelFile {
  enum class Kind { Graph, MetaGraph, SavedModel };
  Kind kind = Kind::Graph;
  std::shared_ptr<tf::MetaGraphDef> meta;
  /// Prefix of the checkpoint's files, empty when there is none.
  std::string checkpoint;

  const tf::GraphDef &graph() const { return meta->graph_def(); }
};

struct ReadOptions {
  std::string tag; ///< of a SavedModel's graph; "": serve, else the only one
  int64_t maxBytes = INT64_C(16) << 30;
};

/// Bytes of a GraphDef, MetaGraphDef or SavedModel; `name` stands for the file in messages. INVALID_ARGUMENT for others.
absl::StatusOr<ModelFile> parseModel(std::string_view bytes, std::string_view name, const ReadOptions &options = {});

/// Reads a file or a SavedModel folder. NOT_FOUND where there is none.
absl::StatusOr<ModelFile> readModel(const std::string &path, const ReadOptions &options = {});

} // namespace lathe::graphdef

#endif
