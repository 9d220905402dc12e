// All families in one table, and what `lathe check` says about ops that are in none.
#include "passes/legalize/HandlerTable.h"

#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/Legalize.h"
#include "passes/legalize/state/State.h"

#include <algorithm>

namespace lathe::legalize {

std::vector<std::string> HandlerTable::ops() const {
  std::vector<std::string> names;
  for (const auto &entry : table)
    names.push_back(entry.getKey().str());
  std::sort(names.begin(), names.end());
  return names;
}

const HandlerTable &allHandlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    registerBasic(t);
    registerMath(t);
    registerSpecial(t);
    registerRecurrent(t);
    registerReduce(t);
    registerProduct(t);
    registerConv(t);
    registerPool(t);
    registerNorm(t);
    registerSoftmax(t);
    registerControl(t);
    registerGradient(t);
    registerLists(t);
    registerState(t);
    registerResource(t);
    registerOptimizers(t);
    registerArrayFamilies(t);
    return t;
  }();
  return table;
}

bool hasHandler(llvm::StringRef op) { return allHandlers().lookup(op); }

std::vector<std::string> compilableOps() { return allHandlers().ops(); }

std::string whyNotCompilable(llvm::StringRef op) {
  static const std::pair<const char *, const char *> kinds[] = {
      {"Queue", "queue"},      {"Reader", "reader"},     {"Table", "table"},         {"Dataset", "dataset"},
      {"Iterator", "dataset"}, {"String", "strings"},    {"Regex", "strings"},       {"Example", "records"},
      {"Barrier", "queue"},    {"Summary", "summaries"}, {"PyFunc", "Python calls"}, {"Decode", "records and images"},
      {"Encode", "records and images"}, {"SaveV2", "checkpoints"}, {"RestoreV2", "checkpoints"}, {"File", "files"},
      {"Accumulator", "accumulators"},  {"StagingArea", "queue"},  {"TensorMap", "maps"}};
  for (auto [part, kind] : kinds)
    if (op.contains(part))
      return std::string("host op (") + kind + "), no compiled form";
  return "no compiled form";
}

} // namespace lathe::legalize
