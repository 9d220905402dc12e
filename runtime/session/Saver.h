// Saving what a Scope built and a ClientSession trained, in TensorFlow's formats: checkpoints, SavedModels, frozen graphs.
#ifndef LATHE_RUNTIME_SESSION_SAVER_H
#define LATHE_RUNTIME_SESSION_SAVER_H

#include "graph/builder/Optimizers.h"
#include "runtime/session/ClientSession.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lathe {

/// Nodes that save and restore variables, as tf.train.Saver has them: a checkpoint holds each under the name of its handle.
/// Errors of making them are the scope's.
class Saver {
public:
  Saver(const Scope &scope, const std::vector<train::Variable> &variables);

  /// Writes PREFIX.index and PREFIX.data-..., with `step` PREFIX-STEP, and the file `checkpoint` beside them, which names the latest one. A
  /// prefix without a folder is in the present one. FAILED_PRECONDITION for a variable without a value.
  absl::Status Save(ClientSession &session, const std::string &prefix, std::optional<int64_t> step = {}, std::string *path = nullptr) const;
  /// NOT_FOUND for a checkpoint or a variable in it that is not there, INVALID_ARGUMENT for one of another type.
  absl::Status Restore(ClientSession &session, const std::string &prefix) const;

  const Output &filename() const { return prefixInput; }
  const Output &saved() const { return savedPrefix; }
  const Operation &restore() const { return restoreAll; }
  const std::vector<train::Variable> &variables() const { return all; }

private:
  std::vector<train::Variable> all;
  Output prefixInput, savedPrefix;
  Operation restoreAll;
};

/// What a SavedModel's users call: names of arguments and results.
struct SignatureOutputs {
  std::vector<std::pair<std::string, Output>> inputs, outputs;
  std::string method = "tensorflow/serving/predict";
};

/// Writes a SavedModel folder that TensorFlow, `lathe` and serving programs load.
class SavedModelBuilder {
public:
  using Signatures = std::map<std::string, SignatureOutputs>;

  explicit SavedModelBuilder(std::string folder) : folder(std::move(folder)) {}

  /// The first graph, with the variables of the saver in the session; `init` is run when the model is loaded. ALREADY_EXISTS where the
  /// folder holds a model, INVALID_ARGUMENT for no tags, or outputs of another graph.
  absl::Status AddMetaGraphAndVariables(ClientSession &session, const Saver &saver, const std::vector<std::string> &tags, const Signatures &signatures,
                                        const Operation &init = Operation());
  /// A further graph over the variables of the first, as it is without a session.
  absl::Status AddMetaGraph(const Scope &scope, const Saver &saver, const std::vector<std::string> &tags, const Signatures &signatures,
                            const Operation &init = Operation());
  /// Writes saved_model.pb; FAILED_PRECONDITION without a graph.
  absl::Status Save() const;

private:
  std::string folder;
  std::vector<std::string> metaGraphs; ///< bytes of MetaGraphDefs
};

/// The bytes of a GraphDef of what `outputs` need, with the variables' present values as constants. UNIMPLEMENTED, naming the node, where a
/// variable is written, or used within a function.
absl::Status FreezeGraph(ClientSession &session, const std::vector<Output> &outputs, std::string *bytes);

} // namespace lathe

#endif
