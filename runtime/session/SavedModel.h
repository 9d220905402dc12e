// SavedModels in a session: variables restored, initialisers run, assets in place.
#ifndef LATHE_RUNTIME_SESSION_SAVEDMODEL_H
#define LATHE_RUNTIME_SESSION_SAVEDMODEL_H

#include "runtime/session/QueueRunner.h"

#include <map>
#include <optional>

namespace lathe {

namespace tf {
class MetaGraphDef;
}

struct SignatureTensor {
  std::string tensor; ///< "x:0"
  DType dtype = DType::Invalid;
  std::optional<std::vector<int64_t>> dims; ///< -1 unknown size, nullopt unknown rank
};
struct ModelSignature {
  std::map<std::string, SignatureTensor> inputs, outputs;
  std::string method;
};

/// A graph file of any kind, as sessions use it.
struct GraphFile {
  enum class Kind { Graph, MetaGraph, SavedModel };
  Kind kind = Kind::Graph;
  std::string graph; ///< the bytes of a GraphDef
  std::map<std::string, ModelSignature> signatures;
  std::vector<QueueRunnerDef> queueRunners;
  std::string checkpoint; ///< prefix of its files, "": none lies beside it
  std::string restoreOp, filenameTensor; ///< run to restore a checkpoint, with its prefix fed; "": there is none
};

/// Reads a GraphDef, MetaGraph (.meta) or SavedModel folder, binary or text, told apart by content; `tag` chooses a SavedModel's
/// graph ("": serve, else the only one).
absl::StatusOr<GraphFile> ReadGraphFile(const std::string &path, const std::string &tag = "");
/// The same for bytes; `name` stands for the file in messages.
absl::StatusOr<GraphFile> ParseGraphFile(std::string_view bytes, const std::string &name, const std::string &tag = "");

struct SavedModelBundle {
  std::unique_ptr<Session> session;
  std::map<std::string, ModelSignature> signatures;
  std::vector<QueueRunnerDef> queueRunners; ///< for StartQueueRunners

  /// Runs a signature; names are its keys. NOT_FOUND for keys it does not have, INVALID_ARGUMENT for missing ones.
  absl::Status Run(const std::string &signature, const Session::Feeds &inputs, std::vector<std::pair<std::string, Tensor>> *outputs) const;
};

/// Loads the graph with exactly these tags from a SavedModel folder: restores variables through the model's own restore op,
/// then runs its initialiser, with the paths of assets fed. Paths of assets may not leave the folder. With `meta`, gives the
/// MetaGraphDef that was loaded.
absl::Status LoadSavedModel(const SessionOptions &options, const RunOptions &runOptions, const std::string &folder,
                            const std::vector<std::string> &tags, SavedModelBundle *bundle, tf::MetaGraphDef *meta = nullptr);

} // namespace lathe

#endif
