// SavedModels in a session: variables restored, initialisers run, assets in place.
#ifndef LATHE_RUNTIME_SESSION_SAVEDMODEL_H
#define LATHE_RUNTIME_SESSION_SAVEDMODEL_H

#include "runtime/session/QueueRunner.h"

#include <map>

namespace lathe {

struct SignatureTensor {
  std::string tensor; ///< "x:0"
  DType dtype = DType::Invalid;
};
struct ModelSignature {
  std::map<std::string, SignatureTensor> inputs, outputs;
  std::string method;
};

struct SavedModelBundle {
  std::unique_ptr<Session> session;
  std::map<std::string, ModelSignature> signatures;
  std::vector<QueueRunnerDef> queueRunners; ///< for StartQueueRunners

  /// Runs a signature; names are its keys. NOT_FOUND for keys it does not have, INVALID_ARGUMENT for missing ones.
  absl::Status Run(const std::string &signature, const Session::Feeds &inputs, std::vector<std::pair<std::string, Tensor>> *outputs) const;
};

/// Loads the graph with exactly these tags from a SavedModel folder: restores variables through the model's own restore op,
/// then runs its initialiser, with the paths of assets fed. Paths of assets may not leave the folder.
absl::Status LoadSavedModel(const SessionOptions &options, const RunOptions &runOptions, const std::string &folder,
                            const std::vector<std::string> &tags, SavedModelBundle *bundle);

} // namespace lathe

#endif
