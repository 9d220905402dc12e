//===- Model.h - a model as frontends hand it on ----------------*- C++ -*-===//
//
// Key: the user's name of an input or output (signature key, node name, or the name as typed). Tensor: the name that the
// file has for it ("node:port" in graphs). Entry: one function from feeds to fetches; several entries share the
// module's variables.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_FRONTEND_MODEL_H
#define LATHE_COMPILER_FRONTEND_MODEL_H

#include "base/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lathe {

/// The phases in the order in which they run; --compile-to names one.
enum class Phase { Import, Cluster, Legalize, Simplify, Fuse, Prepare, Lower, Emit };

const char *phaseName(Phase phase);
std::optional<Phase> parsePhase(const std::string &name);

/// One input or output of an entry.
struct TensorSpec {
  std::string name;                         // the key
  std::string tensor;                       // "x:0"
  DType dtype = DType::Invalid;
  std::optional<std::vector<int64_t>> dims; // -1 unknown size, nullopt unknown rank
  /// Of a quantized integer tensor: value = scale * (element - zero point); one pair, or one for each index of `quantizedDim`.
  std::vector<float> scales;
  std::vector<int64_t> zeroPoints;
  int64_t quantizedDim = 0;
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
  /// --quantized-math fast, for quantized files.
  bool fastQuantizedMath = false;
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
  /// The last phase that the module has behind it: the graph dialect is Import, hlo is Legalize.
  Phase phase = Phase::Import;
  std::vector<EntryInfo> entries;
  /// Names are keys of a signature; without one the outputs of a run are known by their tensors.
  bool hasSignature = false;
  /// Of a module that --dump-dir wrote: the options that decide code, as the compilation had them. Frontends leave it empty.
  std::vector<std::pair<std::string, std::string>> recorded;
  /// What was chosen on the user's behalf, for progress output; lines without a final newline.
  std::string notes;
};

/// A signature of a model, or the whole model's placeholders and default outputs under the key "".
struct SignatureInfo {
  std::string key;
  std::vector<TensorSpec> inputs, outputs;
};

} // namespace lathe

#endif
