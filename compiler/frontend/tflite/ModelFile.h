// A .tflite file, verified: once it is open, every index, offset and size in it may be used as it is.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_MODELFILE_H
#define LATHE_COMPILER_FRONTEND_TFLITE_MODELFILE_H

#include "base/Tensor.h"
#include "compiler/import/Problems.h"
#include "proto/tflite_generated.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>

namespace lathe::tflite {

/// value = scale * (element - zero point), for one pair or for each index of `dimension`.
struct Quantization {
  llvm::SmallVector<float, 1> scales;
  llvm::SmallVector<int64_t, 1> zeroPoints; ///< as many as scales
  int64_t dimension = 0;
  /// The file has scales in a way that is not read (blockwise).
  bool isOther = false;

  bool perTensor() const { return scales.size() == 1; }
  explicit operator bool() const { return !scales.empty(); }
  bool operator==(const Quantization &o) const {
    return scales == o.scales && zeroPoints == o.zeroPoints && (dimension == o.dimension || perTensor());
  }
};

/// What the file says of one tensor.
struct TensorInfo {
  llvm::StringRef name;
  tfl::TensorType type = tfl::TensorType::FLOAT32;
  /// Sizes as in shape_signature where there is one; -1 is unknown.
  llvm::SmallVector<int64_t> dims;
  /// False for tensors whose rank is only known when the model runs.
  bool hasRank = true;
  Quantization quantization;
  /// Keeps its value from one run to the next, 0 at first.
  bool isVariable = false;
  /// The raw data of a constant; empty for others. `isConstant` is true for constants without elements, too.
  llvm::ArrayRef<uint8_t> data;
  bool isConstant = false;
  const tfl::SparsityParameters *sparsity = nullptr;
};

class ModelFile {
public:
  /// Checks the bytes, which must live as long as the object. Null after problems, which are reported.
  static std::unique_ptr<ModelFile> open(llvm::StringRef bytes, llvm::StringRef name, import::Problems &problems);

  const tfl::Model &model() const { return *root; }
  unsigned numSubgraphs() const { return root->subgraphs()->size(); }
  const tfl::SubGraph &subgraph(unsigned i) const { return *root->subgraphs()->Get(i); }
  const TensorInfo &tensor(unsigned subgraph, unsigned i) const { return tensors[subgraph][i]; }
  unsigned numTensors(unsigned subgraph) const { return tensors[subgraph].size(); }
  const tfl::OperatorCode &code(const tfl::Operator &op) const { return *root->operator_codes()->Get(op.opcode_index()); }
  /// The operator of a code: files before the enumeration outgrew a byte have it in another field.
  static tfl::BuiltinOperator builtin(const tfl::OperatorCode &code);
  /// "CONV_2D"; the code of a custom operator; a number where the schema knows none.
  static std::string opName(const tfl::OperatorCode &code);

private:
  friend class ModelChecker;
  const tfl::Model *root = nullptr;
  std::vector<std::vector<TensorInfo>> tensors;
};

/// The dtype that values of a tensor have in hlo: integers of less than 8 bits take a byte each. Invalid for strings,
/// resources, variants and types that hlo has not.
DType dtypeOf(tfl::TensorType type);
/// Bits of an element in the file; 0 for types without a fixed size.
unsigned bitsOf(tfl::TensorType type);
/// "INT8", or a number.
std::string typeName(tfl::TensorType type);

/// The value of a constant, unpacked and made dense. An error says why not.
absl::StatusOr<Tensor> readConstant(const TensorInfo &info, int64_t maxBytes);

} // namespace lathe::tflite

#endif
