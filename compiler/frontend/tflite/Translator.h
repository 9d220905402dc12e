// A verified file into a module of hlo: entries from signatures, operators of subgraphs in their order.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_TRANSLATOR_H
#define LATHE_COMPILER_FRONTEND_TFLITE_TRANSLATOR_H

#include "compiler/frontend/Model.h"
#include "compiler/frontend/tflite/OpTable.h"

#include "llvm/ADT/DenseSet.h"

namespace lathe::tflite {

/// One entry to be made: a subgraph with names for its inputs and outputs.
struct EntryPlan {
  std::string name;
  unsigned subgraph = 0;
  struct Port {
    unsigned tensor;
    std::string name;
    /// Sizes that the user gave instead of those of the file.
    SmallVector<int64_t> dims;
    std::optional<Tensor> value;
  };
  std::vector<Port> inputs, outputs;
  /// Some of the subgraph's operators, in their order, instead of all: inputs and outputs may then be any tensors.
  std::optional<std::vector<unsigned>> operators;
};

/// Entries as the options ask for them: one for each signature (or the one that is named), or the first subgraph.
FailureOr<std::vector<EntryPlan>> planEntries(const ModelFile &file, const ImportOptions &options,
                                              import::Problems &problems);
/// The signature of an entry as users see it.
ImportedModel::EntryInfo describe(const ModelFile &file, const EntryPlan &plan);

class Translator : public legalize::LegalizeContext {
public:
  Translator(mlir::ModuleOp module, const ModelFile &file, const ImportOptions &options);

  const ModelFile &file;
  const ImportOptions &importOptions;
  /// Operators on integers with scales stay what they are, for files that are written (KeepOperators).
  bool keepsOperators = false;

  /// Adds an entry to the module. Diagnostics name the operator.
  LogicalResult translate(const EntryPlan &plan);
  /// The operators of a subgraph at the builder's place.
  LogicalResult runSubgraph(unsigned index, ArrayRef<GraphValue> args, SmallVectorImpl<GraphValue> &results);
  /// The same for one that sets initial values of variables: done once, now.
  LogicalResult initialize(OpContext &c, unsigned index);

  /// The variable behind a tensor that keeps its value between runs.
  FailureOr<Value> readState(OpContext &c, unsigned input);
  LogicalResult writeState(OpContext &c, unsigned input, Value v);

  /// The operator of the current subgraph that makes a tensor, and the tensor's value so far; null where there is none.
  const tfl::Operator *producer(int32_t tensor);
  const GraphValue *valueOf(int32_t tensor);
  /// What the integers of a tensor stand for, as a type of the quant dialect; null for other tensors.
  Type quantizedType(const TensorInfo &info);

  /// Why an operator cannot be translated, as far as its type, version and element types tell; empty if it can.
  static std::string whyNot(const ModelFile &file, unsigned subgraph, const tfl::Operator &op);

protected:
  void replaced(mlir::Value from, mlir::Value to) override;

private:
  friend class OpContext;
  struct Frame {
    unsigned subgraph;
    std::vector<std::optional<GraphValue>> values;
    /// Results of operators that failed, which has been reported; what reads them is left out.
    llvm::DenseSet<int32_t> failed;
  };
  LogicalResult runOperator(const tfl::Operator &op);
  /// Some operators of a subgraph, between tensors that are given and tensors that are wanted.
  LogicalResult runOperators(unsigned index, ArrayRef<unsigned> operators, ArrayRef<int32_t> given, ArrayRef<GraphValue> args,
                             ArrayRef<int32_t> wanted, SmallVectorImpl<GraphValue> &results);
  LogicalResult tensorOf(OpContext &c, int32_t tensor, GraphValue &value);
  std::string stateName(unsigned tensor);

  std::vector<Frame> frames;
  /// Constants made in the function so far, by subgraph and tensor.
  std::map<std::pair<unsigned, unsigned>, Tensor> constants;
  std::vector<bool> initialized;
  /// By subgraph: the operator that makes each tensor, once somebody asked.
  std::map<unsigned, llvm::DenseMap<int32_t, const tfl::Operator *>> producers;
  int64_t translated = 0;
};

/// Whether a concatenation replaces one row of a list; then its result (null after an error).
bool isListUpdate(OpContext &c, Value &result);

} // namespace lathe::tflite

#endif
