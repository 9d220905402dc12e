#include "compiler/hosted/GraphBytes.h"

#include "compiler/hosted/ByteWriter.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using llvm::StringRef;

namespace lathe::hosted {
namespace {

class Writer : public ByteWriter {
public:
  using ByteWriter::tensor;

  bool tensor(Attribute attr) {
    if (auto strings = dyn_cast<graph::StringsAttr>(attr)) {
      type(DType::String);
      shape(strings.getType().getShape());
      ArrayAttr values = strings.getValues();
      for (int64_t i = 0; i < strings.getType().getNumElements(); ++i)
        text(cast<StringAttr>(values[values.size() == 1 ? 0 : static_cast<size_t>(i)]).getValue());
      return true;
    }
    auto elements = dyn_cast<ElementsAttr>(attr);
    FailureOr<Tensor> value = elements ? hlo::readConstant(elements) : FailureOr<Tensor>();
    if (failed(value))
      return false;
    tensor(*value);
    return true;
  }

  /// `carried` is the number of TensorFlow's type where the attribute's own is only its carrier.
  bool attribute(Attribute attr, Attribute carried) {
    auto list = dyn_cast<ArrayAttr>(attr);
    if (!list) {
      number(kindOf(attr));
      return single(attr, carried);
    }
    if (list.empty()) {
      number(Empty);
      return true;
    }
    number(List);
    Kind kind = kindOf(list[0]);
    number(kind);
    count(list.size());
    auto numbers = dyn_cast_or_null<ArrayAttr>(carried);
    for (auto [i, element] : llvm::enumerate(list))
      if (kindOf(element) != kind || !single(element, numbers ? numbers[i] : Attribute()))
        return false;
    return true;
  }

private:
  static Kind kindOf(Attribute attr) {
    if (isa<BoolAttr>(attr)) return Bool;
    if (isa<IntegerAttr>(attr)) return Int;
    if (isa<FloatAttr>(attr)) return Float;
    if (isa<StringAttr>(attr)) return Text;
    if (isa<TypeAttr>(attr)) return Type;
    if (isa<graph::ShapeAttr>(attr)) return Shape;
    return TensorKind;
  }
  bool single(Attribute attr, Attribute carried) {
    switch (kindOf(attr)) {
    case Bool: number(static_cast<uint8_t>(cast<BoolAttr>(attr).getValue())); return true;
    case Int: number(cast<IntegerAttr>(attr).getInt()); return true;
    case Float: number(static_cast<float>(cast<FloatAttr>(attr).getValueAsDouble())); return true;
    case Text: text(cast<StringAttr>(attr).getValue()); return true;
    case Type: {
      if (auto known = dyn_cast_or_null<IntegerAttr>(carried))
        number(static_cast<uint32_t>(known.getInt()));
      else
        type(graph::toDType(cast<TypeAttr>(attr).getValue()));
      return true;
    }
    case Shape: {
      auto s = cast<graph::ShapeAttr>(attr);
      shape(s.getRanked() ? std::optional(s.getDims()) : std::nullopt);
      return true;
    }
    default: return tensor(attr);
    }
  }
};

DType typeOf(Value value) { return graph::toDType(cast<TensorType>(value.getType()).getElementType()); }

class GraphWriter {
public:
  explicit GraphWriter(Writer &w) : w(w) {}
  LogicalResult write(graph::FuncOp func, const ImportedModel::EntryInfo &info);

private:
  LogicalResult writeNode(graph::NodeOp node);
  void endpoint(Value value) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      w.number(static_cast<uint32_t>(arg.getArgNumber()));
      w.number(uint32_t(0));
      return;
    }
    w.number(numbers.lookup(value.getDefiningOp()));
    w.number(static_cast<uint32_t>(cast<OpResult>(value).getResultNumber()));
  }

  Writer &w;
  llvm::DenseMap<Operation *, uint32_t> numbers;
};

LogicalResult GraphWriter::writeNode(graph::NodeOp node) {
  w.text(node.getNodeName());
  w.text(node.getOp());
  if (node.getOp() == "LatheLaunch") {
    w.count(1);
    w.text("entry");
    w.attribute(node.getNodeAttr<graph::FuncAttr>("function").getName().getAttr(), {});
  } else {
    llvm::SmallVector<NamedAttribute> attrs;
    for (NamedAttribute attr : node.getAttrs())
      if (!attr.getName().getValue().contains(':')) // those are numbers of types
        attrs.push_back(attr);
    // stand-ins that clustering left have no attributes
    if (auto builder = OpBuilder(node); !node.getNodeAttr("T")) {
      llvm::SmallVector<Attribute> types;
      for (Value input : node.getInputs())
        types.push_back(TypeAttr::get(cast<TensorType>(input.getType()).getElementType()));
      if (node.getOp() == "Identity" && types.size() == 1)
        attrs.push_back(builder.getNamedAttr("T", types[0]));
      else if (node.getOp() == "IdentityN")
        attrs.push_back(builder.getNamedAttr("T", builder.getArrayAttr(types)));
    }
    w.count(attrs.size());
    for (NamedAttribute attr : attrs) {
      w.text(attr.getName());
      if (!w.attribute(attr.getValue(), node.getNodeAttr((attr.getName().getValue() + ":dtype").str())))
        return node.emitError("attribute '") << attr.getName().getValue() << "' has no form in a hosted object";
    }
  }
  w.count(node.getInputs().size());
  for (Value input : node.getInputs())
    endpoint(input);
  llvm::SmallVector<uint32_t> controls;
  for (Value control : node.getControls())
    controls.push_back(numbers.lookup(control.getDefiningOp()));
  llvm::sort(controls);
  controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
  w.count(controls.size());
  for (uint32_t c : controls)
    w.number(c);
  w.count(node.getOutputs().size());
  for (Value output : node.getOutputs())
    w.type(typeOf(output));
  return success();
}

LogicalResult GraphWriter::write(graph::FuncOp func, const ImportedModel::EntryInfo &info) {
  Block &block = func.getBody().front();
  auto ret = cast<graph::ReturnOp>(block.getTerminator());
  uint32_t next = block.getNumArguments(), nodes = 0;
  for (auto node : block.getOps<graph::NodeOp>()) {
    numbers[node] = next++;
    ++nodes;
  }
  w.text(info.name);
  w.number(static_cast<uint8_t>(info.name == kInitEntry));
  w.count(info.inputs.size());
  for (const TensorSpec &input : info.inputs)
    w.spec(input);
  w.count(info.outputs.size());
  for (auto [output, value] : llvm::zip_equal(info.outputs, ret.getOutputs())) {
    w.spec(output);
    endpoint(value);
  }
  w.count(nodes);
  for (auto node : block.getOps<graph::NodeOp>())
    if (failed(writeNode(node)))
      return failure();
  return success();
}

} // namespace

FailureOr<std::string> writeGraph(ModuleOp module, llvm::ArrayRef<ImportedModel::EntryInfo> entries) {
  Writer w;
  w.bytes = "LHG1";
  w.count(entries.size());
  for (const ImportedModel::EntryInfo &info : entries) {
    auto func = module.lookupSymbol<graph::FuncOp>(info.name);
    if (!func || func.getBody().front().getNumArguments() != info.inputs.size())
      return emitError(module.getLoc()) << "entry '" << info.name << "' is lost";
    if (failed(GraphWriter(w).write(func, info)))
      return failure();
  }
  return std::move(w.bytes);
}

} // namespace lathe::hosted
