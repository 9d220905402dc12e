// An operation that is being described.
#ifndef LATHE_RUNTIME_C_API_NEWOPERATION_H
#define LATHE_RUNTIME_C_API_NEWOPERATION_H

#include "runtime/c_api/Internal.h"

#include <set>

struct TF_OperationDescription {
  struct Input {
    std::vector<TF_Output> values;
    bool isList;
  };
  TF_Graph *graph = nullptr;
  lathe::tf::NodeDef def;
  std::vector<Input> inputs;
  std::vector<TF_Operation *> controls;
  std::set<std::string> colocated;
  absl::Status problem; ///< the first of what was wrong
};

namespace lathe::c_api {

/// The empty value of an attribute, for a function that sets one; null without a description or a name.
tf::AttrValue *newAttr(TF_OperationDescription *desc, const char *name);
/// Keeps a mistake for TF_FinishOperation.
void failAttr(TF_OperationDescription *desc, const char *name, std::string_view why);

} // namespace lathe::c_api

#endif
