//===- Diagnostics.cpp - messages that name the node ----------------------===//
#include "compiler/support/Diagnostics.h"

#include "dialects/graph/Types.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;

namespace lathe {

/// The first file position of a location, walked with a list as locations nest without bound.
static FileLineColLoc findFilePosition(Location loc) {
  SmallVector<Location> work{loc};
  while (!work.empty()) {
    Location l = work.pop_back_val();
    if (auto file = dyn_cast<FileLineColLoc>(l))
      return file;
    if (auto name = dyn_cast<NameLoc>(l))
      work.push_back(name.getChildLoc());
    else if (auto fused = dyn_cast<FusedLoc>(l))
      work.append(fused.getLocations().rbegin(), fused.getLocations().rend());
    else if (auto call = dyn_cast<CallSiteLoc>(l)) {
      work.push_back(call.getCaller());
      work.push_back(call.getCallee());
    }
  }
  return {};
}

std::string formatDiagnostic(const Diagnostic &diagnostic) {
  std::string message = diagnostic.str();
  std::string text;
  llvm::raw_string_ostream os(text);
  Location loc = diagnostic.getLocation();
  if (FileLineColLoc file = findFilePosition(loc))
    os << file.getFilename().getValue() << ':' << file.getLine() << ':' << file.getColumn() << ": ";
  // many messages name their node already, as they also list nodes of other places
  StringRef name = graph::getNodeName(loc);
  if (!name.empty() && !StringRef(message).starts_with("node '")) {
    os << "node '" << name << '\'';
    if (StringRef op = graph::getNodeOp(loc); !op.empty())
      os << " (" << op << ')';
    if (StringRef function = graph::getNodeFunction(loc); !function.empty())
      os << " in function '" << function << '\'';
    os << ": ";
  }
  os << message;
  return text;
}

static StringRef severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error: return "error";
  case DiagnosticSeverity::Warning: return "warning";
  case DiagnosticSeverity::Note: return "note";
  case DiagnosticSeverity::Remark: return "remark";
  }
  return "";
}

void installDiagnosticPrinter(MLIRContext &context, raw_ostream &os) {
  // passes run on several threads; the engine's own lock keeps handlers from overlapping
  context.getDiagEngine().registerHandler([&os](Diagnostic &diagnostic) -> LogicalResult {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
      return failure();
    os << severityName(diagnostic.getSeverity()) << ": " << formatDiagnostic(diagnostic) << '\n';
    for (Diagnostic &note : diagnostic.getNotes())
      os << severityName(note.getSeverity()) << ": " << formatDiagnostic(note) << '\n';
    os.flush();
    return success();
  });
}

CollectedDiagnostics::CollectedDiagnostics(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) -> LogicalResult {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
          return failure();
        std::string text = formatDiagnostic(diagnostic);
        for (Diagnostic &note : diagnostic.getNotes())
          text += "\n  " + formatDiagnostic(note);
        bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        (isError ? errorList : warningList).push_back(std::move(text));
        return success();
      }) {}

std::string CollectedDiagnostics::text() const {
  std::string result;
  for (const std::string &error : errorList) {
    if (!result.empty())
      result += '\n';
    result += error;
  }
  return result;
}

} // namespace lathe
