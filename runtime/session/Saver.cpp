#include "runtime/session/Saver.h"

#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/host.h"
#include "graph/builder/ops/state.h"
#include "graph/Graph.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include <filesystem>
#include <fstream>

namespace lathe {
namespace {

Tensor stringsOf(const std::vector<std::string> &values) { return Tensor::fromStrings({static_cast<int64_t>(values.size())}, values); }

/// Text of the file `checkpoint`, by which tf.train.latest_checkpoint finds the last one.
absl::Status writeState(const std::string &path) {
  std::filesystem::path whole(path);
  std::string name = absl::CEscape(whole.filename().string());
  std::filesystem::path file = whole.parent_path() / "checkpoint";
  std::ofstream out(file, std::ios::binary);
  out << "model_checkpoint_path: \"" << name << "\"\nall_model_checkpoint_paths: \"" << name << "\"\n";
  if (!out.flush())
    return absl::PermissionDeniedError(absl::StrCat("cannot write '", file.string(), "'"));
  return absl::OkStatus();
}

} // namespace

Saver::Saver(const Scope &scope, const std::vector<train::Variable> &variables) : all(variables) {
  Scope s = scope.NewSubScope(scope.GetUniqueNameForOp("save"));
  if (variables.empty()) {
    scope.UpdateStatus(absl::InvalidArgumentError("there is no variable to save"));
    return;
  }
  std::vector<std::string> names, slices(variables.size());
  std::vector<DType> types;
  OutputList values;
  for (const train::Variable &v : variables) {
    if (!v.handle.node() || !v.value.node())
      return; // the scope knows why
    names.push_back(v.handle.op().name());
    types.push_back(v.value.type());
    // read here, and not what the graph has read before an update
    values.push_back(ops::ReadVariableOp(s, v.handle, v.value.type()));
  }
  prefixInput = ops::PlaceholderWithDefault(s.WithOpName("Const"), Tensor::fromStrings({}, {"model"}), PartialShape(std::vector<int64_t>()));
  Operation write = ops::SaveV2(s.WithOpName("SaveV2"), prefixInput, stringsOf(names), stringsOf(slices), values);
  savedPrefix = ops::Identity(s.WithOpName("control_dependency").WithControlDependencies(std::vector<Operation>{write}), prefixInput);
  auto read = ops::RestoreV2(s.WithOpName("RestoreV2"), prefixInput, stringsOf(names), stringsOf(slices), types);
  std::vector<Operation> assigned;
  for (size_t i = 0; i < variables.size() && scope.ok(); ++i)
    assigned.push_back(ops::AssignVariableOp(s.WithOpName("AssignVariableOp"), variables[i].handle, read.tensors[i]));
  restoreAll = ops::NoOp(s.WithOpName("restore_all").WithControlDependencies(assigned));
}

absl::Status Saver::Save(ClientSession &session, const std::string &prefix, std::optional<int64_t> step, std::string *path) const {
  std::string whole = step ? absl::StrCat(prefix, "-", *step) : prefix;
  if (absl::Status s = session.Run({{prefixInput, whole}}, {savedPrefix}, nullptr); !s.ok())
    return s;
  if (path)
    *path = whole;
  return writeState(whole);
}

absl::Status Saver::Restore(ClientSession &session, const std::string &prefix) const {
  return session.Run({{prefixInput, prefix}}, {}, {restoreAll}, nullptr);
}

} // namespace lathe
