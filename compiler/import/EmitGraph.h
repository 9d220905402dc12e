//===- EmitGraph.h - flat graphs into the graph dialect ---------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_EMITGRAPH_H
#define LATHE_COMPILER_IMPORT_EMITGRAPH_H

#include "compiler/import/Flatten.h"
#include "compiler/import/Select.h"
#include "compiler/import/Variables.h"
#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace lathe::import {

struct EmitContext {
  AttributeReader &attributes;
  const Checkpoint &checkpoint;
  Problems &problems;
  const ImportOptions &options;
  bool mustHaveValues; // a SavedModel's variables: one without value is an error
};

/// Writes entries and functions into `module`; variables are frozen unless something needed assigns them, they have
/// no value, or the options say otherwise. `entries` and `plans` run in parallel. Problems are reported.
void emitGraphs(mlir::ModuleOp module, const EmitContext &context, const std::vector<EntryPlan> &plans,
                const std::vector<std::unique_ptr<FlatGraph>> &entries,
                const std::vector<std::unique_ptr<FlatGraph>> &functions);

} // namespace lathe::import

#endif
