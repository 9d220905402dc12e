//===- Select.h - which tensors go in and out -------------------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_SELECT_H
#define LATHE_COMPILER_IMPORT_SELECT_H

#include "compiler/import/Flatten.h"
#include "compiler/import/Import.h"
#include "compiler/import/ReadModel.h"

namespace lathe::import {

struct NamedTensor {
  TensorSpec spec;
  MainTensor at;
};

/// One entry as the user wants it, by tensors of the main graph.
struct EntryPlan {
  std::string name;
  std::vector<NamedTensor> inputs, outputs;
  std::vector<std::pair<MainTensor, const Tensor *>> constants;
  std::vector<int> targets;
};

/// The entries that the options ask for, or the default one; an entry without fetches and targets is the signature of its
/// name. Problems are reported. `notes` tells what was chosen, `usesSignature` whether names are looked up in a signature.
std::vector<EntryPlan> selectEntries(const Model &model, Library &library, Flattener &flattener,
                                     const ImportOptions &options, Problems &problems, std::string &notes,
                                     bool &usesSignature);

/// Every signature of the model; for one without signatures its placeholders and default outputs.
std::vector<SignatureInfo> listSignatures(const Model &model, Library &library, Flattener &flattener,
                                          Problems &problems);

} // namespace lathe::import

#endif
