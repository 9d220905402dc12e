//===- Graph.h - the graph dialect ------------------------------*- C++ -*-===//
// Types, attributes and ops of an imported TensorFlow graph; see Graph.td.
//===----------------------------------------------------------------------===//
#ifndef LATHE_DIALECTS_GRAPH_GRAPH_H
#define LATHE_DIALECTS_GRAPH_GRAPH_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "dialects/graph/GraphDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/graph/GraphAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.h.inc"

namespace lathe::graph {

/// Argument and result attribute of a graph.func: the user-visible name.
inline constexpr llvm::StringLiteral kNameAttr = "graph.name";
/// Argument and result attribute: the tensor's name in the imported graph ("x:0").
inline constexpr llvm::StringLiteral kTensorAttr = "graph.tensor";
/// Function attribute: the TensorFlow name of a library function, where the symbol had to differ.
inline constexpr llvm::StringLiteral kFunctionAttr = "graph.function";

} // namespace lathe::graph

#endif
