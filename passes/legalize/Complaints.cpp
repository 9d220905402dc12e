#include "passes/legalize/Complaints.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe::legalize {

Complaints::Complaints(HloContext &context)
    : context(context), collect(context.getContext(), [this](Diagnostic &d) {
        if (d.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        std::string text = d.str();
        if (StringRef(text).starts_with("node '") || StringRef(text).starts_with("variable '"))
          return failure();
        texts.push_back(std::move(text));
        return success();
      }) {}

LogicalResult Complaints::run(llvm::function_ref<LogicalResult()> translate,
                              llvm::function_ref<LogicalResult(const llvm::Twine &)> error) {
  bool sawOther = std::exchange(context.sawError, false);
  LogicalResult result = translate();
  if (context.sawError)
    result = failure();
  else
    for (const std::string &text : texts)
      result = error(text);
  if (failed(result) && !context.sawError)
    result = error("has no compiled form with these inputs");
  context.sawError |= sawOther;
  return result;
}

} // namespace lathe::legalize
