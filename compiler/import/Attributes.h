//===- Attributes.h - AttrValue and TensorProto as attributes ---*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_ATTRIBUTES_H
#define LATHE_COMPILER_IMPORT_ATTRIBUTES_H

#include "base/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "proto/graph.pb.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lathe::import {

/// TensorFlow's number as our type; ref types give the type they refer to, unknown numbers Invalid.
DType toDType(int number);

/// Dimensions of a proto, or why they are bad. nullopt in the result is an unknown rank.
struct ShapeResult {
  std::optional<std::vector<int64_t>> dims;
  std::string error;
};
ShapeResult readShape(const tf::TensorShapeProto &proto);

/// Turns protos into attributes; on failure null, and `error` says why.
class AttributeReader {
public:
  /// Large constants point into the protos, which `owner` keeps alive.
  AttributeReader(mlir::MLIRContext *context, int64_t maxBytes, std::shared_ptr<const void> owner)
      : context(context), maxBytes(maxBytes), owner(std::move(owner)) {}

  /// `functionSymbol` gives the symbol of a library function (with the attributes of its NameAttrList), or fails.
  using FunctionSymbol =
      std::function<mlir::FlatSymbolRefAttr(const tf::NameAttrList &function, std::string &error)>;

  /// The attribute of a node. A type that becomes its carrier also gives TensorFlow's number in `number`, for the
  /// sibling attribute "T:dtype".
  mlir::Attribute read(const tf::AttrValue &value, const FunctionSymbol &functionSymbol, mlir::Attribute &number,
                       std::string &error);

  /// A constant: DenseElementsAttr for splats and up to 64 elements, a resource blob beyond, StringsAttr for strings.
  mlir::Attribute readTensor(const tf::TensorProto &proto, std::string &error);

  /// The same from a tensor that keeps its buffer; no copy.
  mlir::Attribute readTensor(const Tensor &tensor, std::string &error);

private:
  mlir::Attribute readStrings(const tf::TensorProto &proto, mlir::RankedTensorType type, std::string &error);
  mlir::Attribute makeDense(mlir::RankedTensorType type, DType dtype, llvm::ArrayRef<char> bytes,
                            std::shared_ptr<const void> bytesOwner);
  mlir::RankedTensorType constantType(DType dtype, const std::vector<int64_t> &dims, std::string &error);

  mlir::MLIRContext *context;
  int64_t maxBytes;
  std::shared_ptr<const void> owner;
  int64_t blobs = 0; ///< made so far
};

/// A default value as the op registry writes it ("1", "0.5", "true", "\"NHWC\"", "DT_FLOAT", "[1, 2]", "[2,?]",
/// "unknown") for an attribute of `type` ("int", "list(type)" ...). False when it cannot be read.
bool parseDefault(llvm::StringRef type, llvm::StringRef text, tf::AttrValue &value);

/// Whether the value is of the registry's attribute type; otherwise what it is, for a message.
bool hasAttrType(const tf::AttrValue &value, llvm::StringRef type, std::string &found);

} // namespace lathe::import

#endif
