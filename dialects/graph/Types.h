//===- Types.h - TensorFlow types as MLIR types -----------------*- C++ -*-===//
// dialects/types/ElementTypes.h and the types that only the graph has: strings, resources, variants.
//===----------------------------------------------------------------------===//
#ifndef LATHE_DIALECTS_GRAPH_TYPES_H
#define LATHE_DIALECTS_GRAPH_TYPES_H

#include "base/DType.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

#include <optional>
#include <vector>

namespace lathe::graph {

/// The element type of tensors of `dtype`; null for Invalid and numbers we do not know.
/// Quantised types become their carriers (qint8 is i8).
mlir::Type toMlirType(mlir::MLIRContext *context, DType dtype);

/// The inverse on element types; Invalid for types no TensorFlow tensor has.
DType toDType(mlir::Type elementType);

/// tensor<dims x type>, -1 for unknown sizes, tensor<*xtype> without dims.
mlir::TensorType makeTensorType(mlir::Type elementType, const std::optional<std::vector<int64_t>> &dims);

/// The place of a node: loc("name"("Op"("function"))), without the last part for a node of the main graph.
mlir::Location makeNodeLoc(mlir::MLIRContext *context, llvm::StringRef name, llvm::StringRef op,
                           llvm::StringRef function = {});

/// The node name that a location holds: the outermost NameLoc, looking through fused and call-site locations.
llvm::StringRef getNodeName(mlir::Location loc);
/// The op type that makeNodeLoc put there, or empty.
llvm::StringRef getNodeOp(mlir::Location loc);
/// The function that makeNodeLoc put there, or empty.
llvm::StringRef getNodeFunction(mlir::Location loc);

} // namespace lathe::graph

#endif
