//===- ReadModel.h - files into protobuf messages ---------------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_READMODEL_H
#define LATHE_COMPILER_IMPORT_READMODEL_H

#include "compiler/import/Import.h"
#include "compiler/import/Problems.h"
#include "proto/saved_model.pb.h"

#include <memory>

namespace lathe::import {

/// A model as read: a bare graph is a MetaGraph without signatures.
struct Model {
  enum class Kind { Graph, MetaGraph, SavedModel };
  Kind kind = Kind::Graph;
  std::shared_ptr<tf::MetaGraphDef> meta;
  /// Prefix of the checkpoint's files, empty when there is none to look for.
  std::string checkpoint;

  const tf::GraphDef &graph() const { return meta->graph_def(); }
};

/// Reads a file or a SavedModel folder; problems are reported and give a null meta.
Model readModel(llvm::StringRef path, const ImportOptions &options, Problems &problems);

/// Bytes of a GraphDef, MetaGraphDef or SavedModel, binary or text.
Model parseModel(llvm::StringRef bytes, llvm::StringRef name, const ImportOptions &options, Problems &problems);

} // namespace lathe::import

#endif
