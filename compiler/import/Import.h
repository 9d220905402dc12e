//===- Import.h - TensorFlow models into the graph dialect ------*- C++ -*-===//
//
// Key: the user's name of an input or output (signature key, node name, or the name as typed). Tensor: "node:port".
// Entry: one public graph.func, from feeds to fetches; several entries share the module's variables.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_IMPORT_H
#define LATHE_COMPILER_IMPORT_IMPORT_H

#include "base/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lathe {

/// One input or output of an entry.
struct TensorSpec {
  std::string name;                         // the key
  std::string tensor;                       // "x:0"
  DType dtype = DType::Invalid;
  std::optional<std::vector<int64_t>> dims; // -1 unknown size, nullopt unknown rank
};

/// The entry that ImportOptions::withInit adds.
inline constexpr const char *kInitEntry = "lathe_init";

struct ImportOptions {
  struct Entry {
    std::string name;
    std::vector<std::string> fetches, targets;
  };

  /// --input NAME[=SHAPE]: any tensor may be fed. Names are signature keys, tensors or nodes.
  std::vector<std::pair<std::string, std::optional<std::vector<int64_t>>>> inputs;
  /// Shapes of what will be fed, under any of a tensor's names: they say what a placeholder leaves open, and nothing else.
  std::vector<std::pair<std::string, std::vector<int64_t>>> fedShapes;
  /// --output NAME; without them the signature's outputs or the default outputs of a bare graph.
  std::vector<std::string> outputs;
  /// Nodes that must run whose value is not wanted. With targets and no outputs, an entry has no results.
  std::vector<std::string> targets;
  std::string signature, tag;
  /// --entry: several functions instead of the one called main; outputs and targets above are then unused.
  std::vector<Entry> entries;
  /// The inputs are exactly `inputs`, in that order, each named as given; other placeholders that are needed are errors.
  bool onlyListedInputs = false;
  /// Tensors that are fed with a value known now.
  std::vector<std::pair<std::string, Tensor>> constantFeeds;
  /// Keep every variable as state instead of freezing those that nothing assigns.
  bool keepVariables = false;
  /// Also import the model's initialiser, if it has one, as the entry kInitEntry; the paths of assets are constants in it.
  bool withInit = false;
  /// Make the leading dimension of every input unknown.
  bool unknownLeading = false;
  /// The largest constant, and the largest file.
  int64_t maxBytes = INT64_C(16) << 30;
  /// The largest number of nodes after inlining; about a kilobyte each.
  int64_t maxNodes = 1'500'000;
};

struct ImportedModel {
  struct EntryInfo {
    std::string name;
    std::vector<TensorSpec> inputs, outputs;
  };
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<EntryInfo> entries;
  /// Names are keys of a signature; without one the outputs of a run are known by their tensors.
  bool hasSignature = false;
  /// What was chosen on the user's behalf, for progress output; lines without a final newline.
  std::string notes;
};

/// Imports a GraphDef (binary or text), a MetaGraph or a SavedModel folder, told apart by content. Problems are
/// reported as diagnostics of `context`, all of them, with the node's location.
mlir::FailureOr<ImportedModel> importModel(mlir::MLIRContext *context, llvm::StringRef path,
                                           const ImportOptions &options = {});

/// The same for bytes in memory. `name` stands for the file in messages; checkpoints are not looked for.
mlir::FailureOr<ImportedModel> importModelBytes(mlir::MLIRContext *context, llvm::StringRef bytes,
                                                llvm::StringRef name, const ImportOptions &options = {});

/// A signature of a model, or the whole model's placeholders and default outputs under the key "".
struct SignatureInfo {
  std::string key;
  std::vector<TensorSpec> inputs, outputs;
};

/// What `lathe inspect` shows of a file without importing it: its signatures.
mlir::FailureOr<std::vector<SignatureInfo>> readSignatures(mlir::MLIRContext *context, llvm::StringRef path,
                                                           const ImportOptions &options = {});

} // namespace lathe

#endif
