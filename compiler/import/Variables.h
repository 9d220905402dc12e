//===- Variables.h - the checkpoint's values of variables -------*- C++ -*-===//
//
// Variable key: shared name, else node name, of VarHandleOp or VariableV2. Checkpoint key: the name of a tensor in
// the checkpoint. TF1 uses the same for both; TF2 names tensors by the path to the object that owns the variable.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_VARIABLES_H
#define LATHE_COMPILER_IMPORT_VARIABLES_H

#include "base/TensorBundle.h"
#include "compiler/import/Library.h"
#include "compiler/import/ReadModel.h"

namespace lathe::import {

class Checkpoint {
public:
  /// Reads the index when the model has a checkpoint; problems are reported.
  Checkpoint(const Model &model, Library &library, Problems &problems);

  bool exists() const { return bundle != nullptr; }
  /// The checkpoint's name of a variable, or empty.
  std::string findKey(llvm::StringRef variableKey) const;
  absl::StatusOr<Tensor> read(const std::string &checkpointKey) const { return bundle->read(checkpointKey); }

private:
  void collectRestores(const Body &body, llvm::function_ref<int(int argument)> mainNodeOf, const Body &main);
  void readObjectGraph();

  std::unique_ptr<TensorBundleReader> bundle;
  llvm::StringMap<std::string> restored; // variable key -> checkpoint key, from the graph's restore ops
  llvm::StringMap<std::string> byFullName; // from the checkpoint's object graph
};

} // namespace lathe::import

#endif
