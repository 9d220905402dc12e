//===- Problems.cpp - the list of what is wrong with a model --------------===//
#include "compiler/import/Problems.h"

#include "dialects/graph/Types.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe::import {

static constexpr unsigned kMaxPrinted = 100;
static constexpr size_t kMaxNameLength = 300;

std::string printable(StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os.write_escaped(name.take_front(kMaxNameLength));
  if (name.size() > kMaxNameLength)
    os << "...";
  return text;
}

void Problems::add(const NodeId &node, const Twine &text) {
  if (++count > kMaxPrinted)
    return;
  std::string name = printable(node.name), op = printable(node.op), function = printable(node.function);
  std::string where = "node '" + name + "'";
  if (!op.empty())
    where += " (" + op + ")";
  if (!function.empty())
    where += " in function '" + function + "'";
  emitError(graph::makeNodeLoc(context, name, op, function)) << where << ": " << text;
}

void Problems::add(const Twine &text) {
  if (++count <= kMaxPrinted)
    emitError(UnknownLoc::get(context)) << text;
}

void Problems::finish() {
  if (count > kMaxPrinted)
    emitError(UnknownLoc::get(context)) << "and " << count - kMaxPrinted << " more problems";
  count = 0;
}

} // namespace lathe::import
