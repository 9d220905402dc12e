// What the translation of one operator sees: inputs as hlo values, what the file says of its tensors, its options.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_OPCONTEXT_H
#define LATHE_COMPILER_FRONTEND_TFLITE_OPCONTEXT_H

#include "compiler/frontend/tflite/ModelFile.h"
#include "passes/legalize/Emitter.h"
#include "dialects/types/ElementTypes.h"
#include "passes/legalize/LegalizeContext.h"

namespace lathe::tflite {

using legalize::Compare;
using legalize::constantOf;
using legalize::Dims;
using legalize::Emitter;
using legalize::GraphValue;
using legalize::GraphValues;
using legalize::productOf;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::SmallVectorImpl;
using mlir::StringRef;
using mlir::succeeded;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Activation = tfl::ActivationFunctionType;

class Translator;

class OpContext : public legalize::Emitter {
public:
  OpContext(Translator &translator, unsigned subgraph, const tfl::Operator &op, mlir::Location loc, StringRef name);

  Translator &translator;
  const tfl::Operator &op;
  /// The operator in the schema, its version, its name there.
  tfl::BuiltinOperator code;
  int version;
  std::string opName;

  /// The options, with the schema's defaults where the file has none.
  template <typename T>
  const T &options() {
    const T *given = op.builtin_options_as<T>();
    return given ? *given : *reinterpret_cast<const T *>(noOptions());
  }
  template <typename T>
  const T &options2() {
    const T *given = op.builtin_options2_as<T>();
    return given ? *given : *reinterpret_cast<const T *>(noOptions());
  }

  //===--- inputs ----------------------------------------------------------===//
  unsigned numInputs() const { return op.inputs() ? op.inputs()->size() : 0; }
  unsigned numOutputs() const { return op.outputs() ? op.outputs()->size() : 0; }
  /// Whether input i is there: trailing inputs may be left out, others be -1.
  bool hasInput(unsigned i) const { return i < numInputs() && op.inputs()->Get(i) >= 0; }
  const TensorInfo &inputInfo(unsigned i) const;
  const TensorInfo &outputInfo(unsigned i) const;
  /// Tensors that carry nothing but the scales of values inside of the operator.
  unsigned numIntermediates() const { return op.intermediates() ? op.intermediates()->size() : 0; }
  const TensorInfo &intermediateInfo(unsigned i) const;
  /// Of any tensor of the subgraph.
  const TensorInfo &infoOf(unsigned tensor) const;
  /// The element type that values of a tensor have.
  Type elementOf(const TensorInfo &info);
  const GraphValue &value(unsigned i) const { return inputs[i]; }
  /// Input i as a tensor; an error and null if it is none.
  Value input(unsigned i);
  FailureOr<Tensor> constantInput(unsigned i);
  using Emitter::constantInts;
  FailureOr<SmallVector<int64_t>> constantInts(unsigned i);
  FailureOr<int64_t> constantInt(unsigned i);
  /// An integer tensor whose elements may depend on symbolic sizes.
  FailureOr<Dims> shapeInput(unsigned i);
  /// The same for any value.
  std::optional<Dims> sizesOf(const GraphValue &value);
  FailureOr<int64_t> axis(int64_t axis, int64_t rank);

  //===--- types -----------------------------------------------------------===//
  bool isFloatInput(unsigned i) const;
  /// An integer tensor with scales, of 16 bits at most.
  bool isQuantized(unsigned i) const { return isQuantized(inputInfo(i)); }
  static bool isQuantized(const TensorInfo &info);
  /// "type INT8 of input 0 is not supported".
  LogicalResult typeError(unsigned i);
  /// The scale and zero point of a tensor quantized as a whole, or an error.
  FailureOr<std::pair<float, int64_t>> perTensor(const TensorInfo &info);

  //===--- results ---------------------------------------------------------===//
  LogicalResult setResult(unsigned i, Value v);
  LogicalResult setResult(unsigned i, GraphValue v);
  const std::optional<GraphValue> &result(unsigned i) const { return results[i]; }
  /// What TensorFlow's op makes of values. Element types of results are those of this operator's outputs unless given.
  FailureOr<GraphValues> call(StringRef op, ArrayRef<GraphValue> inputs,
                              ArrayRef<mlir::NamedAttribute> attrs = {}, ArrayRef<Type> elements = {});
  /// The only result of such a call, as a tensor; null after an error.
  Value call1(StringRef op, ArrayRef<Value> inputs, ArrayRef<mlir::NamedAttribute> attrs = {}, Type element = {});
  mlir::NamedAttribute attr(StringRef name, bool v) { return b.getNamedAttr(name, b.getBoolAttr(v)); }
  mlir::NamedAttribute attr(StringRef name, int64_t v) { return b.getNamedAttr(name, b.getI64IntegerAttr(v)); }
  mlir::NamedAttribute attr(StringRef name, float v) { return b.getNamedAttr(name, b.getF32FloatAttr(v)); }
  mlir::NamedAttribute attr(StringRef name, StringRef v) { return b.getNamedAttr(name, b.getStringAttr(v)); }
  mlir::NamedAttribute attr(StringRef name, const char *v) { return attr(name, StringRef(v)); }
  mlir::NamedAttribute attr(StringRef name, Type v) { return b.getNamedAttr(name, mlir::TypeAttr::get(v)); }
  mlir::NamedAttribute attr(StringRef name, ArrayRef<int64_t> v) { return b.getNamedAttr(name, b.getI64ArrayAttr(v)); }

  /// A fused activation of a float value.
  Value activate(Value v, Activation activation);

  LogicalResult error(const llvm::Twine &text) override;

private:
  friend class Translator;
  static const void *noOptions();

  unsigned subgraph;
  GraphValues inputs;
  std::vector<std::optional<GraphValue>> results;
};

} // namespace lathe::tflite

#endif
