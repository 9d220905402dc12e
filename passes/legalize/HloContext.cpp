// Values, state and entries of a module under construction; Sizes.cpp has the symbols.
#include "passes/legalize/HloContext.h"

#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "passes/legalize/Emitter.h"

using namespace mlir;

namespace lathe::legalize {

/// What folding of shapes and axes may hold, and the largest tensor it computes with.
static constexpr int64_t kFoldBytes = int64_t(256) << 20;
static constexpr int64_t kFoldElements = int64_t(1) << 20;
static constexpr int64_t kFoldWork = int64_t(1) << 26;

HloContext::HloContext(ModuleOp module) : module(module), builder(module.getContext()), entryLoc(module.getLoc()) {}

StringRef HloContext::intern(StringRef name) { return names.try_emplace(name, 0).first->getKey(); }

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value HloContext::materialize(const GraphValue &value, Location loc) {
  if (value.kind == GraphValue::Kind::Reference) {
    FailureOr<GraphValue> current = readVariable(value.name, loc);
    return succeeded(current) ? materialize(*current, loc) : Value();
  }
  if (value.kind != GraphValue::Kind::Tensor)
    return {};
  if (value.tensor)
    return value.tensor;
  Dims exprs = resolve(*value.sizes);
  SmallVector<int64_t> constants;
  for (AffineExpr e : exprs)
    if (auto c = constantOf(e))
      constants.push_back(*c);
  Emitter e(*this, loc, "");
  if (constants.size() == exprs.size()) {
    Tensor t = Tensor::allocate(graph::toDType(value.elementType),
                                std::vector<int64_t>(value.sizesShape.begin(), value.sizesShape.end()));
    for (auto [i, v] : llvm::enumerate(constants)) {
      if (value.elementType.isInteger(64))
        t.data<int64_t>()[i] = v;
      else
        t.data<int32_t>()[i] = int32_t(v);
    }
    return e.constant(t);
  }
  if (value.sizesShape.empty())
    return e.sizeValue(exprs[0], value.elementType);
  Value all = e.make<hlo::SizeOp>(ArrayRef<AffineExpr>(exprs), value.elementType);
  return e.reshape(all, value.sizesShape);
}

/// Whether regions of the op use values from outside.
static bool capturesValues(Operation *op) {
  bool captures = false;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        captures |= !op->isAncestor(operand.getParentRegion()->getParentOp());
    });
  return captures;
}

std::optional<Tensor> HloContext::fold(Value value) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value v = stack.back();
    if (folded.count(v)) {
      stack.pop_back();
      continue;
    }
    Operation *op = v.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(v.getType());
    auto giveUp = [&] {
      // A tensor without type marks what cannot be folded, so that it is not tried again.
      for (Value s : stack)
        folded[s] = Tensor();
      return std::nullopt;
    };
    if (!op || !type || !type.hasStaticShape() || (type.getNumElements() > kFoldElements && !isa<hlo::ConstantOp>(op)) ||
        (op->getNumRegions() && capturesValues(op)) || isa<hlo::UniqueOp, hlo::WhereOp, hlo::AssumeShapeOp>(op))
      return giveUp();
    bool ready = true;
    SmallVector<Tensor> operands;
    for (Value operand : op->getOperands()) {
      auto it = folded.find(operand);
      if (it == folded.end()) {
        stack.push_back(operand);
        ready = false;
        break;
      }
      if (!it->second.valid())
        return giveUp();
      operands.push_back(it->second);
    }
    if (!ready)
      continue;
    if (auto constant = dyn_cast<hlo::ConstantOp>(op)) {
      // Shared with the attribute: costs nothing.
      FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
      if (failed(tensor))
        return giveUp();
      folded[v] = *tensor;
      stack.pop_back();
      continue;
    }
    hlo::EvalOptions options;
    options.maxBytes = kFoldBytes;
    options.maxWork = kFoldWork;
    options.silent = true;
    FailureOr<SmallVector<Tensor>> results = hlo::evaluateOp(op, operands, options);
    if (failed(results) || results->size() != op->getNumResults())
      return giveUp();
    for (auto [result, tensor] : llvm::zip(op->getResults(), *results)) {
      foldedBytes += tensor.sizeBytes();
      folded[result] = tensor;
    }
    if (foldedBytes > kFoldBytes)
      return giveUp();
    stack.pop_back();
  }
  const Tensor &result = folded[value];
  return result.valid() ? std::optional<Tensor>(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

LogicalResult HloContext::declareVariable(StringRef name, RankedTensorType type, Attribute initial) {
  for (VariableInfo &v : variables)
    if (v.name == name) {
      if (!v.type)
        v.type = type;
      return success();
    }
  VariableInfo info;
  info.name = name.str();
  info.type = type;
  info.initial = initial;
  variables.push_back(info);
  return success();
}

FailureOr<GraphValue> HloContext::readVariable(StringRef name, Location loc) {
  StringRef key = intern(name);
  auto it = state.find(key);
  if (it != state.end())
    return it->second;
  for (VariableInfo &v : variables) {
    if (v.name != name)
      continue;
    if (!v.type || !v.type.hasStaticShape()) {
      sawError = true;
      return emitError(loc) << "variable '" << name << "': its shape is not known";
    }
    if (!v.argument)
      v.argument = function.getBody().front().addArgument(v.type, loc);
    GraphValue value = GraphValue::ofTensor(v.argument);
    state[key] = value;
    return value;
  }
  sawError = true;
  return emitError(loc) << "variable '" << name << "' is not declared";
}

void HloContext::keepVariable(StringRef name, Type type, Attribute initial) {
  auto [at, isNew] = kept.insert({intern(name), {type, initial}});
  if (!isNew && !at->second.second)
    at->second.second = initial;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

void HloContext::clearEntry() {
  state.clear();
  variables.clear();
  folded.clear();
  checks.clear();
}

/// Names as function attributes.
static NamedAttrList namesOf(const EntryTensor &tensor) {
  NamedAttrList list;
  list.set("hlo.name", tensor.name);
  if (tensor.tensor)
    list.set("hlo.tensor", tensor.tensor);
  return list;
}

void HloContext::beginEntry(StringRef name, Location loc, ArrayRef<EntryTensor> inputs) {
  entryLoc = loc;
  entryInputs.assign(inputs.begin(), inputs.end());
  SmallVector<Type> types;
  for (const EntryTensor &input : inputs) {
    Dims dims;
    for (auto [d, size] : llvm::enumerate(input.type.getShape()))
      dims.push_back(ShapedType::isDynamic(size) ? newSymbol((input.name.getValue() + ":" + Twine(d)).str(), -1, true)
                                                 : constant(size));
    types.push_back(hlo::makeType(dims, input.type.getElementType()));
  }
  function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
}

void HloContext::addVariables(SmallVectorImpl<Value> &returned, SmallVectorImpl<NamedAttrList> &resultAttrs) {
  for (VariableInfo &v : variables) {
    auto it = state.find(intern(v.name));
    bool written = it != state.end() && !(it->second.tensor && it->second.tensor == v.argument);
    if (v.type && (v.argument || it != state.end()))
      keepVariable(v.name, v.type, v.initial);
    Value now = written ? materialize(it->second, entryLoc) : Value();
    if (!now)
      continue;
    returned.push_back(now);
    NamedAttrList list;
    list.set("hlo.variable", builder.getStringAttr(v.name));
    resultAttrs.push_back(list);
  }
}

LogicalResult HloContext::finishEntry(ArrayRef<EntryTensor> outputs, ArrayRef<GraphValue> results) {
  bool ok = true;
  SmallVector<Value> returned;
  SmallVector<NamedAttrList> argAttrs, resultAttrs;
  for (auto [output, value] : llvm::zip_equal(outputs, results)) {
    Value v = materialize(value, entryLoc);
    if (!v) {
      sawError = true;
      ok = false;
      emitError(entryLoc) << "output '" << output.name.getValue() << "' is no tensor of numbers: no compiled form";
      continue;
    }
    if (v = withGrowingSizes(v, output.name.getValue()); !v) {
      sawError = true;
      ok = false;
      emitError(entryLoc) << "output '" << output.name.getValue() << "' has a size without a bound";
      continue;
    }
    returned.push_back(v);
    resultAttrs.push_back(namesOf(output));
  }
  if (!ok)
    return failure();
  for (const EntryTensor &input : entryInputs)
    argAttrs.push_back(namesOf(input));
  addVariables(returned, resultAttrs);
  Block *block = &function.getBody().front();
  argAttrs.resize(block->getNumArguments());
  for (VariableInfo &v : variables)
    if (v.argument)
      argAttrs[v.argument.getArgNumber()].set("hlo.variable", builder.getStringAttr(v.name));
  func::ReturnOp::create(builder, entryLoc, returned);
  SmallVector<Type> resultTypes;
  for (Value v : returned)
    resultTypes.push_back(v.getType());
  function.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), resultTypes));
  // all at once: each call would make the list of all arguments anew
  auto dictionaries = [&](auto &lists) {
    SmallVector<DictionaryAttr> all;
    for (auto &list : lists)
      all.push_back(list.getDictionary(getContext()));
    return all;
  };
  function.setAllArgAttrs(dictionaries(argAttrs));
  function.setAllResultAttrs(dictionaries(resultAttrs));

  SmallVector<Attribute> sizeChecks;
  auto mapOf = [&](AffineExpr e) { return AffineMapAttr::get(AffineMap::get(0, symbols.size(), resolve(e))); };
  for (SizeCheck &check : checks) {
    if (resolve(check.lhs) == resolve(check.rhs))
      continue;
    sizeChecks.push_back(builder.getDictionaryAttr({builder.getNamedAttr("lhs", mapOf(check.lhs)),
                                                    builder.getNamedAttr("node", builder.getStringAttr(check.node)),
                                                    builder.getNamedAttr("rhs", mapOf(check.rhs))}));
  }
  if (!sizeChecks.empty())
    function->setAttr("hlo.size_checks", builder.getArrayAttr(sizeChecks));
  return success();
}

LogicalResult HloContext::finishModule() {
  SmallVector<Attribute> entries;
  for (auto &[name, info] : kept) {
    NamedAttrList entry;
    entry.set("name", builder.getStringAttr(name));
    entry.set("type", TypeAttr::get(info.first));
    if (info.second)
      entry.set("value", info.second);
    entries.push_back(entry.getDictionary(getContext()));
  }
  if (!entries.empty())
    module->setAttr("hlo.variables", builder.getArrayAttr(entries));
  return finishSymbols();
}

} // namespace lathe::legalize
