#include "compiler/frontend/tflite/Flex.h"

#include "compiler/frontend/tflite/Translator.h"
#include "compiler/import/Attributes.h"
#include "graph/tflite/NodeTable.h"
#include "ops/Registry.h"
#include "passes/legalize/HandlerTable.h"

using namespace mlir;

namespace lathe::tflite {

namespace {
/// One attribute, and TensorFlow's number of a type beside it.
LogicalResult addAttribute(OpContext &c, import::AttributeReader &reader, StringRef name, const tf::AttrValue &value,
                           NamedAttrList &attrs) {
  auto noFunction = [](const tf::NameAttrList &, std::string &error) {
    error = "is a function, which a TensorFlow Lite file does not hold";
    return FlatSymbolRefAttr();
  };
  std::string error;
  Attribute number, attr = reader.read(value, noFunction, number, error);
  if (!attr)
    return c.error("attribute '" + import::printable(name) + "': " + error);
  attrs.set(name, attr);
  if (number)
    attrs.set((name + ":dtype").str(), number);
  return success();
}
} // namespace

bool isFlex(const ModelFile &file, const tfl::Operator &op) {
  const tfl::OperatorCode &code = file.code(op);
  return ModelFile::builtin(code) == tfl::BuiltinOperator::CUSTOM && StringRef(ModelFile::opName(code)).starts_with("Flex");
}

std::string whyNotFlex(const tfl::Operator &op) {
  absl::StatusOr<tf::NodeDef> node = tflgraph::flexNode(op);
  if (!node.ok())
    return std::string(node.status().message());
  std::string name = import::printable(node->op());
  if (!ops::findOp(node->op()))
    return "TensorFlow's operation " + name + " is not known";
  if (!legalize::allHandlers().lookup(node->op()))
    return "TensorFlow's operation " + name + " has no compiled form";
  return "";
}

LogicalResult translateFlex(OpContext &c) {
  absl::StatusOr<tf::NodeDef> read = tflgraph::flexNode(c.op);
  const ops::OpInfo *info = read.ok() ? ops::findOp(read->op()) : nullptr;
  if (!info)
    return c.error(whyNotFlex(c.op));
  auto node = std::make_shared<tf::NodeDef>(*std::move(read));
  import::AttributeReader reader(c.b.getContext(), c.translator.importOptions.maxBytes, node);
  NamedAttrList attrs;
  for (const auto &[name, value] : node->attr())
    if (!StringRef(name).starts_with("_") && failed(addAttribute(c, reader, name, value, attrs)))
      return failure();
  for (const ops::Attr &attr : info->attrs) {
    StringRef name(attr.name.data(), attr.name.size()), type(attr.type.data(), attr.type.size());
    auto given = node->attr().find(std::string(attr.name));
    std::string found;
    if (given != node->attr().end()) {
      if (!import::hasAttrType(given->second, type, found))
        return c.error("attribute '" + name + "': expected " + type + ", found " + found);
      continue;
    }
    tf::AttrValue value;
    if (!attr.hasDefault || !import::parseDefault(type, StringRef(attr.defaultText.data(), attr.defaultText.size()), value))
      return c.error("attribute '" + name + "' is missing");
    if (failed(addAttribute(c, reader, name, value, attrs)))
      return failure();
  }
  GraphValues inputs;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (!c.hasInput(i))
      return c.error("input " + Twine(i) + " is missing");
    inputs.push_back(c.value(i));
  }
  auto results = c.call(node->op(), inputs, attrs.getAttrs());
  if (failed(results))
    return failure();
  for (auto [i, value] : llvm::enumerate(*results))
    if (failed(c.setResult(i, value)))
      return failure();
  return success();
}

} // namespace lathe::tflite
