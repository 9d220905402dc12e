//===- ReadModel.h - files into protobuf messages ---------------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_READMODEL_H
#define LATHE_COMPILER_IMPORT_READMODEL_H

#include "compiler/import/Import.h"
#include "compiler/import/Problems.h"
#include "graph/saved/ReadModel.h"

namespace lathe::import {

using Model = graphdef::ModelFile;

/// Reads a file or a SavedModel folder; problems are reported and give a null meta.
Model readModel(llvm::StringRef path, const ImportOptions &options, Problems &problems);

/// Bytes of a GraphDef, MetaGraphDef or SavedModel, binary or text.
Model parseModel(llvm::StringRef bytes, llvm::StringRef name, const ImportOptions &options, Problems &problems);

} // namespace lathe::import

#endif
