#include "compiler/frontend/tflite/Flex.h"

#include "compiler/frontend/tflite/Translator.h"
#include "compiler/import/Attributes.h"
#include "ops/Registry.h"
#include "passes/legalize/HandlerTable.h"

#include <flatbuffers/flexbuffers.h>

using namespace mlir;

namespace lathe::tflite {

namespace {
/// The node of the graph: a flexbuffer of its operation's name and a serialized NodeDef. Null if the bytes are something else.
std::shared_ptr<tf::NodeDef> readNode(const tfl::Operator &op) {
  constexpr size_t maxBytes = 64u << 20;
  auto *given = op.custom_options();
  if (!given || given->size() < 3 || given->size() > maxBytes)
    return nullptr;
  // a copy, whose numbers are aligned
  std::vector<uint8_t> bytes(given->begin(), given->end()), seen;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
    return nullptr;
  flexbuffers::Reference root = flexbuffers::GetRoot(bytes.data(), bytes.size());
  if (!root.IsVector())
    return nullptr;
  flexbuffers::Vector list = root.AsVector();
  if (list.size() < 2 || !list[1].IsString())
    return nullptr;
  flexbuffers::String text = list[1].AsString();
  auto node = std::make_shared<tf::NodeDef>();
  if (!node->ParseFromArray(text.c_str(), static_cast<int>(text.length())))
    return nullptr;
  return node;
}

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
  std::shared_ptr<tf::NodeDef> node = readNode(op);
  if (!node)
    return "its options hold no node of a graph";
  std::string name = import::printable(node->op());
  if (!ops::findOp(node->op()))
    return "TensorFlow's operation " + name + " is not known";
  if (!legalize::allHandlers().lookup(node->op()))
    return "TensorFlow's operation " + name + " has no compiled form";
  return "";
}

LogicalResult translateFlex(OpContext &c) {
  std::shared_ptr<tf::NodeDef> node = readNode(c.op);
  const ops::OpInfo *info = node ? ops::findOp(node->op()) : nullptr;
  if (!info)
    return c.error(whyNotFlex(c.op));
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
