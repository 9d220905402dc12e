//===- EmitGraph.cpp - flat graphs into the graph dialect -----------------===//
//
// Nodes come out in topological order, but for the edges that close v1 loops (NextIteration → Merge).
// Reads of frozen variables become Const nodes under the read's name.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/EmitGraph.h"

#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "ops/Flags.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

namespace {
struct VariableState {
  std::string symbol; // the key, unless an entry has that name
  bool kept = false;
  DType dtype = DType::Invalid;
  std::optional<std::vector<int64_t>> dims;
  const Instance *handle = nullptr;
  Attribute value; // of the checkpoint, once read
};

class Emitter {
public:
  Emitter(ModuleOp module, const EmitContext &context)
      : module(module), context(context), problems(context.problems), builder(module.getContext()) {}

  void run(const std::vector<EntryPlan> &plans, const std::vector<std::unique_ptr<FlatGraph>> &entries,
           const std::vector<std::unique_ptr<FlatGraph>> &functions);

private:
  void findVariables(const FlatGraph &graph);
  void findAssignments(const FlatGraph &graph);
  void readVariables();
  void emitVariables();
  bool orderNodes(const FlatGraph &graph, std::vector<int> &order);
  void emitGraph(const FlatGraph &graph, const EntryPlan *plan);
  graph::NodeOp emitInstance(const FlatGraph &graph, const Instance &instance, ValueRange inputs,
                             ValueRange controls);
  DictionaryAttr readAttrs(const Instance &instance, std::vector<NamedAttribute> extra);
  Attribute constantValue(const Instance &instance);
  graph::NodeOp emitConst(const Instance &instance, DType dtype, Attribute value, ValueRange controls);
  graph::NodeOp emitFrozenRead(const FlatGraph &graph, const Instance &instance, ValueRange inputs,
                               ValueRange controls);
  const VariableState *frozenVariable(const FlatGraph &graph, Ref ref, bool *through = nullptr);
  const tf::AttrValue *defaultValue(const ops::Attr &attr);
  Location locationOf(const Instance &instance) {
    return graph::makeNodeLoc(builder.getContext(), printable(instance.name), instance.op, instance.function);
  }

  ModuleOp module;
  const EmitContext &context;
  Problems &problems;
  OpBuilder builder;
  std::map<std::string, VariableState> variables;
  const std::vector<std::unique_ptr<FlatGraph>> *functions = nullptr;
  std::vector<std::string> functionSymbols;
  DenseMap<const tf::AttrValue *, Attribute> constants; // a node that is inlined twice has one value
  DenseMap<const ops::Attr *, std::unique_ptr<tf::AttrValue>> defaults;
};
} // namespace

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

void Emitter::findVariables(const FlatGraph &graph) {
  for (const Instance &instance : graph.instances) {
    if (!isVariableHandle(instance.op) && !isVariableReference(instance.op))
      continue;
    AttrLookup attrs(instance.def, instance.attrScope);
    VariableState &state = variables[variableKey(instance)];
    DType dtype = attrs.typeAttr("dtype").value_or(DType::Invalid);
    if (state.handle && state.dtype != dtype)
      problems.add(instance.id(), Twine("is the same variable as '") + state.handle->name + "', but " +
                                      dtypeName(dtype) + " instead of " + dtypeName(state.dtype));
    state.dtype = dtype;
    state.handle = &instance;
    if (const tf::AttrValue *shape = attrs.find("shape"); shape && shape->has_shape())
      state.dims = readShape(shape->shape()).dims;
  }
}

static bool isFunctionalFlow(StringRef op) { return ops::is(op, ops::Flag::Loop) || ops::is(op, ops::Flag::Branch); }

/// Marks the variables that something writes to, or whose handle goes where we cannot follow.
void Emitter::findAssignments(const FlatGraph &graph) {
  for (const Instance &instance : graph.instances) {
    bool functional = isFunctionalFlow(instance.op);
    size_t input = 0;
    for (const Ref &ref : instance.inputs) {
      size_t i = input++;
      DType type = ref.isArgument() ? graph.argTypes[ref.argument()]
                                    : graph.instances[ref.instance].outTypes[ref.port];
      bool isReference = !ref.isArgument() && type != DType::Resource;
      if (isReference) {
        // only an argument that the op declares as reference can change the variable
        if (i >= instance.info->inputs.size() || !instance.info->inputs[i].isRef)
          continue;
      } else if (type != DType::Resource) {
        continue;
      }
      std::string key = findVariable(graph, ref);
      if (key.empty() || handsOn(instance) || readsVariable(instance.op))
        continue;
      if (functional) {
        // the functions know the variable when their argument is bound, and are looked at themselves
        bool bound = true;
        for (auto &[function, id] : instance.functions) {
          const FlatGraph &callee = *(*functions)[id];
          size_t arg = i - (instance.inputs.size() - callee.argTypes.size());
          bound &= arg < callee.bindings.size() && callee.bindings[arg] == key;
        }
        if (bound)
          continue;
      }
      variables[key].kept = true;
    }
    // a loop that hands on another handle than it got would read the wrong variable
    if (ops::is(instance.op, ops::Flag::Loop))
      for (auto &[function, id] : instance.functions) {
        const FlatGraph &callee = *(*functions)[id];
        if (callee.outputs.size() != callee.argTypes.size())
          continue;
        for (size_t arg = 0; arg < callee.bindings.size(); ++arg)
          if (!callee.bindings[arg].empty() && findVariable(callee, callee.outputs[arg]) != callee.bindings[arg])
            problems.add(instance.id(), Twine("hands on another variable than '") + printable(callee.bindings[arg]) +
                                            "' to its next iteration");
      }
  }
}

void Emitter::readVariables() {
  for (auto &[key, state] : variables) {
    if (!state.handle)
      continue;
    std::string name = context.checkpoint.findKey(key);
    state.kept |= context.options.keepVariables;
    if (name.empty()) {
      if (context.mustHaveValues && !state.kept)
        problems.add(state.handle->id(), context.checkpoint.exists() ? "has no value in the checkpoint"
                                                                     : "has no value: the model has no checkpoint");
      state.kept = true;
      continue;
    }
    absl::StatusOr<Tensor> tensor = context.checkpoint.read(name);
    std::string error;
    if (!tensor.ok())
      error = std::string(tensor.status().message());
    else if (tensor->dtype() != state.dtype)
      error = std::string("the checkpoint holds ") + dtypeName(tensor->dtype()) + ", expected " +
              dtypeName(state.dtype);
    else if (state.dims && state.dims->size() != tensor->dims().size())
      error = "the checkpoint's value has shape " + dimsToString(tensor->dims()) + ", expected " +
              dimsToString(*state.dims);
    if (error.empty() && state.dims)
      for (size_t i = 0; i < state.dims->size(); ++i)
        if ((*state.dims)[i] >= 0 && (*state.dims)[i] != tensor->dims()[i])
          error = "the checkpoint's value has shape " + dimsToString(tensor->dims()) + ", expected " +
                  dimsToString(*state.dims);
    if (error.empty()) {
      state.dims = tensor->dims();
      state.value = context.attributes.readTensor(*tensor, error);
    }
    if (!error.empty())
      problems.add(state.handle->id(), error);
  }
}

void Emitter::emitVariables() {
  for (auto &[key, state] : variables) {
    if (!state.handle || !state.kept)
      continue;
    Type element = graph::toMlirType(builder.getContext(), state.dtype);
    if (!element) {
      problems.add(state.handle->id(), "is a variable of an unknown type");
      continue;
    }
    graph::VariableOp::create(builder, locationOf(*state.handle), builder.getStringAttr(state.symbol),
                              TypeAttr::get(graph::makeTensorType(element, state.dims)), state.value, StringAttr());
  }
}

/// The variable, when its handle is known and it is not kept as state. `through`: behind a Switch or Enter.
const VariableState *Emitter::frozenVariable(const FlatGraph &graph, Ref ref, bool *through) {
  auto it = variables.find(findVariable(graph, ref, through));
  return it == variables.end() || it->second.kept || !it->second.value ? nullptr : &it->second;
}

graph::NodeOp Emitter::emitConst(const Instance &instance, DType dtype, Attribute value, ValueRange controls) {
  Type type = isa<graph::StringsAttr>(value) ? Type(cast<graph::StringsAttr>(value).getType())
                                             : Type(cast<ElementsAttr>(value).getShapedType());
  std::vector<NamedAttribute> attrs{
      builder.getNamedAttr("dtype", TypeAttr::get(graph::toMlirType(builder.getContext(), dtype))),
      builder.getNamedAttr("value", value)};
  if (isQuantized(dtype))
    attrs.push_back(builder.getNamedAttr("dtype:dtype", builder.getI64IntegerAttr(static_cast<int64_t>(dtype))));
  return graph::NodeOp::create(builder, locationOf(instance), type, "Const", ValueRange(), controls,
                               builder.getDictionaryAttr(attrs));
}

graph::NodeOp Emitter::emitFrozenRead(const FlatGraph &graph, const Instance &instance, ValueRange inputs,
                                      ValueRange controls) {
  bool through = false;
  const VariableState *state = frozenVariable(graph, instance.inputs[0], &through);
  if (!state)
    return {};
  auto valueType = cast<ShapedType>(isa<graph::StringsAttr>(state->value)
                                        ? Type(cast<graph::StringsAttr>(state->value).getType())
                                        : Type(cast<ElementsAttr>(state->value).getShapedType()));
  SmallVector<Value> edges(controls);
  if (through) {
    // the handle is dead on the branch not taken, and so must be the constant: an edge from an Identity says so
    auto alive = graph::NodeOp::create(builder, locationOf(instance), inputs[0].getType(), "Identity", inputs[0],
                                       controls,
                                       builder.getDictionaryAttr(builder.getNamedAttr(
                                           "T", TypeAttr::get(graph::ResourceType::get(builder.getContext())))));
    edges.assign(1, alive.getControl());
  }
  StringRef op = instance.op;
  if (op == "ReadVariableOp")
    return emitConst(instance, state->dtype, state->value, edges);
  if (op == "VariableShape") {
    Type element = graph::toMlirType(builder.getContext(), instance.outTypes[0]);
    SmallVector<APInt> dims;
    for (int64_t dim : valueType.getShape())
      dims.push_back(APInt(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(dim)));
    auto type = RankedTensorType::get({valueType.getRank()}, element);
    return emitConst(instance, instance.outTypes[0], DenseElementsAttr::get(type, dims), edges);
  }
  if (op == "VarIsInitializedOp")
    return emitConst(instance, DType::Bool,
                     DenseElementsAttr::get(RankedTensorType::get({}, builder.getI1Type()), true), edges);
  // ResourceGather(handle, indices) is GatherV2(params, indices, 0), ResourceGatherNd is GatherNd
  AttrLookup attrs(instance.def, instance.attrScope);
  Instance params = instance;
  params.name += "/params";
  params.op = "Const";
  Value constant = emitConst(params, state->dtype, state->value, edges).getOutputs()[0];
  Type indices = graph::toMlirType(builder.getContext(), attrs.typeAttr("Tindices").value_or(DType::Int32));
  std::vector<NamedAttribute> gather{
      builder.getNamedAttr("Tparams", TypeAttr::get(valueType.getElementType())),
      builder.getNamedAttr("Tindices", TypeAttr::get(indices))};
  SmallVector<Value> operands{constant, inputs[1]};
  bool isNd = op == "ResourceGatherNd";
  if (!isNd) {
    params.name = instance.name + "/axis";
    auto zero = DenseElementsAttr::get(RankedTensorType::get({}, builder.getI32Type()), int32_t(0));
    operands.push_back(emitConst(params, DType::Int32, zero, edges).getOutputs()[0]);
    gather.push_back(builder.getNamedAttr("Taxis", TypeAttr::get(builder.getI32Type())));
    gather.push_back(
        builder.getNamedAttr("batch_dims", builder.getI64IntegerAttr(attrs.intAttr("batch_dims").value_or(0))));
  } else {
    gather.push_back(builder.getNamedAttr("bad_indices_policy", builder.getStringAttr("")));
  }
  return graph::NodeOp::create(builder, locationOf(instance), UnrankedTensorType::get(valueType.getElementType()),
                               isNd ? "GatherNd" : "GatherV2", operands, controls,
                               builder.getDictionaryAttr(gather));
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

const tf::AttrValue *Emitter::defaultValue(const ops::Attr &attr) {
  std::unique_ptr<tf::AttrValue> &value = defaults[&attr];
  if (!value) {
    value = std::make_unique<tf::AttrValue>();
    if (!parseDefault(StringRef(attr.type.data(), attr.type.size()),
                      StringRef(attr.defaultText.data(), attr.defaultText.size()), *value))
      value->Clear();
  }
  return value->value_case() == tf::AttrValue::VALUE_NOT_SET ? nullptr : value.get();
}

DictionaryAttr Emitter::readAttrs(const Instance &instance, std::vector<NamedAttribute> extra) {
  AttrLookup lookup(instance.def, instance.attrScope);
  bool ok = true;
  std::map<std::string, const tf::AttrValue *> values;
  for (const auto &[name, value] : instance.def->attr())
    if (!StringRef(name).starts_with("_"))
      values[name] = lookup.resolve(value) ? lookup.resolve(value) : &value;
  for (const ops::Attr &attr : instance.info->attrs) {
    const tf::AttrValue *&value = values[std::string(attr.name)];
    if (!value && attr.hasDefault)
      value = defaultValue(attr);
    std::string name = printable(StringRef(attr.name.data(), attr.name.size())), found;
    StringRef type(attr.type.data(), attr.type.size());
    bool isMissing = !value && !attr.hasDefault;
    bool isWrong = value && value->value_case() != tf::AttrValue::kPlaceholder && !hasAttrType(*value, type, found);
    if (isMissing)
      problems.add(instance.id(), Twine("attribute '") + name + "' is missing");
    if (isWrong)
      problems.add(instance.id(), Twine("attribute '") + name + "': expected " + type + ", found " + found);
    ok &= !isMissing && !isWrong;
  }
  NamedAttrList attrs;
  size_t nextFunction = 0;
  for (auto &[name, value] : values) {
    StringRef attrName = name;
    if (!value || llvm::any_of(extra, [&](NamedAttribute e) { return e.getName() == attrName; }))
      continue;
    auto functionSymbol = [&](const tf::NameAttrList &, std::string &error) -> FlatSymbolRefAttr {
      // functions were asked for in this same order
      if (nextFunction >= instance.functions.size()) {
        error = "is a function where none is expected";
        return {};
      }
      return FlatSymbolRefAttr::get(builder.getContext(),
                                    functionSymbols[instance.functions[nextFunction++].second]);
    };
    std::string error;
    Attribute number, attr;
    if (value->has_tensor()) {
      Attribute &constant = constants[value];
      if (!constant)
        constant = context.attributes.read(*value, functionSymbol, number, error);
      attr = constant;
    } else {
      attr = context.attributes.read(*value, functionSymbol, number, error);
    }
    if (!attr) {
      problems.add(instance.id(), instance.op == "Const" && name == "value"
                                      ? Twine(error)
                                      : Twine("attribute '") + printable(name) + "': " + error);
      ok = false;
      continue;
    }
    attrs.set(name, attr);
    if (number)
      attrs.set(name + ":dtype", number);
  }
  for (NamedAttribute attr : extra)
    attrs.set(attr.getName(), attr.getValue());
  return ok ? attrs.getDictionary(builder.getContext()) : DictionaryAttr();
}

/// What TensorFlow recorded of the outputs of ops that nothing here infers shapes of.
static void useRecordedShapes(const Instance &instance, SmallVectorImpl<Type> &types) {
  AttrLookup lookup(instance.def, instance.attrScope);
  const tf::AttrValue *recorded = lookup.find("_output_shapes");
  if (!recorded || recorded->list().shape_size() != static_cast<int>(types.size()))
    return;
  for (auto [i, type] : llvm::enumerate(types)) {
    ShapeResult shape = readShape(recorded->list().shape(static_cast<int>(i)));
    if (shape.error.empty() && shape.dims)
      type = graph::makeTensorType(cast<TensorType>(type).getElementType(), shape.dims);
  }
}

graph::NodeOp Emitter::emitInstance(const FlatGraph &graph, const Instance &instance, ValueRange inputs,
                                    ValueRange controls) {
  MLIRContext *ctx = builder.getContext();
  if (instance.constant) {
    std::string error;
    Attribute value = context.attributes.readTensor(*instance.constant, error);
    if (!value) {
      problems.add(instance.id(), error);
      return {};
    }
    return emitConst(instance, instance.constant->dtype(), value, controls);
  }
  if (!instance.def)
    return graph::NodeOp::create(builder, locationOf(instance), TypeRange(), instance.op, inputs, controls,
                                 DictionaryAttr());
  if (readsVariable(instance.op) && !instance.inputs.empty())
    if (graph::NodeOp node = emitFrozenRead(graph, instance, inputs, controls))
      return node;
  std::vector<NamedAttribute> extra;
  std::optional<std::vector<int64_t>> dims; // of the first output
  if (isVariableHandle(instance.op) || isVariableReference(instance.op)) {
    std::string key = variableKey(instance);
    auto it = variables.find(key);
    bool isReference = isVariableReference(instance.op);
    if (isReference && it != variables.end() && !it->second.kept && it->second.value)
      return emitConst(instance, it->second.dtype, it->second.value, controls);
    extra.push_back(builder.getNamedAttr(
        "shared_name", builder.getStringAttr(it == variables.end() ? key : it->second.symbol)));
    dims = isReference && it != variables.end() ? it->second.dims : std::vector<int64_t>();
  }
  if (ops::is(instance.op, ops::Flag::Enter)) {
    // a loop of a function that is called twice is two loops
    AttrLookup lookup(instance.def, instance.attrScope);
    const tf::AttrValue *frame = lookup.find("frame_name");
    StringRef prefix = StringRef(instance.name).drop_back(instance.def->name().size());
    extra.push_back(builder.getNamedAttr("frame_name", builder.getStringAttr(prefix + (frame ? frame->s() : ""))));
  }
  DictionaryAttr attrs = readAttrs(instance, extra);
  if (!attrs)
    return {};
  SmallVector<Type> types;
  for (DType dtype : instance.outTypes)
    types.push_back(UnrankedTensorType::get(graph::toMlirType(ctx, dtype)));
  if (instance.info && instance.info->isHost)
    useRecordedShapes(instance, types);
  StringRef op = instance.op;
  if (op == "Const") {
    Attribute value = attrs.get("value");
    ShapedType type;
    if (auto strings = dyn_cast_or_null<graph::StringsAttr>(value))
      type = strings.getType();
    else if (auto elements = dyn_cast_or_null<ElementsAttr>(value))
      type = elements.getShapedType();
    if (!type || type.getElementType() != cast<TensorType>(types[0]).getElementType()) {
      problems.add(instance.id(), "attribute 'dtype' is not the type of the value");
      return {};
    }
    types[0] = type;
  } else if (op == "PlaceholderWithDefault") {
    // nothing is fed here, else it would be an argument
    op = "Identity";
    attrs = builder.getDictionaryAttr(builder.getNamedAttr("T", attrs.get("dtype")));
  } else if (dims) {
    types[0] = graph::makeTensorType(cast<TensorType>(types[0]).getElementType(), dims);
  }
  return graph::NodeOp::create(builder, locationOf(instance), types, op, inputs, controls, attrs);
}

/// Edges that close a v1 loop.
static bool isBackEdge(const FlatGraph &graph, const Instance &to, Ref from) {
  return !from.isArgument() && ops::isBackEdge(graph.instances[from.instance].op, to.op);
}

/// Depth first from outputs and targets with a stack of our own; reports a cycle that is no v1 loop.
bool Emitter::orderNodes(const FlatGraph &graph, std::vector<int> &order) {
  enum : char { New, Open, Done };
  std::vector<char> state(graph.instances.size(), New);
  std::vector<std::pair<int, size_t>> stack;
  auto visit = [&](int root) {
    if (state[root] != New)
      return true;
    state[root] = Open;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      const Instance &instance = graph.instances[node];
      if (next == instance.inputs.size() + instance.controls.size()) {
        state[node] = Done;
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      size_t i = next++;
      int from;
      if (i < instance.inputs.size()) {
        if (instance.inputs[i].isArgument() || isBackEdge(graph, instance, instance.inputs[i]))
          continue;
        from = instance.inputs[i].instance;
      } else {
        from = instance.controls[i - instance.inputs.size()];
      }
      if (state[from] == Open) {
        problems.add(graph.instances[from].id(), "is part of a cycle");
        return false;
      }
      if (state[from] == New) {
        state[from] = Open;
        stack.push_back({from, 0});
      }
    }
    return true;
  };
  for (const Ref &output : graph.outputs)
    if (!output.isArgument() && !visit(output.instance))
      return false;
  for (int target : graph.targets)
    if (!visit(target))
      return false;
  for (size_t i = 0; i < graph.instances.size(); ++i)
    if (!visit(static_cast<int>(i)))
      return false;
  return true;
}

void Emitter::emitGraph(const FlatGraph &graph, const EntryPlan *plan) {
  MLIRContext *ctx = builder.getContext();
  std::vector<int> order;
  if (!orderNodes(graph, order))
    return;
  SmallVector<Type> argTypes;
  for (auto [i, dtype] : llvm::enumerate(graph.argTypes)) {
    Type element = graph::toMlirType(ctx, dtype);
    argTypes.push_back(plan ? Type(graph::makeTensorType(element, plan->inputs[i].spec.dims))
                            : Type(UnrankedTensorType::get(element)));
  }
  Location loc = graph.functionName.empty() ? Location(UnknownLoc::get(ctx))
                                            : Location(NameLoc::get(builder.getStringAttr(graph.functionName)));
  auto func = graph::FuncOp::create(builder, loc, plan ? plan->name : graph.symbol,
                                    builder.getFunctionType(argTypes, {}));
  if (!plan)
    func.setSymVisibility("private");
  OpBuilder::InsertionGuard guard(builder);
  Block &body = func.getBody().front();
  builder.setInsertionPointToEnd(&body);

  std::vector<graph::NodeOp> nodes(graph.instances.size());
  auto valueOf = [&](Ref ref) -> Value {
    return ref.isArgument() ? Value(body.getArgument(ref.argument()))
                            : Value(nodes[ref.instance].getOutputs()[ref.port]);
  };
  std::vector<std::pair<int, size_t>> backEdges;
  for (int index : order) {
    const Instance &instance = graph.instances[index];
    SmallVector<Value> inputs, controls;
    for (auto [i, ref] : llvm::enumerate(instance.inputs)) {
      if (isBackEdge(graph, instance, ref)) {
        backEdges.push_back({index, i});
        inputs.push_back(Value());
      } else {
        inputs.push_back(valueOf(ref));
      }
    }
    // until NextIteration exists its place is held by another input
    for (Value &input : inputs)
      if (!input) {
        auto other = llvm::find_if(inputs, [](Value v) { return static_cast<bool>(v); });
        if (other == inputs.end()) {
          problems.add(instance.id(), "is part of a loop that nothing enters");
          return;
        }
        input = *other;
      }
    for (int control : instance.controls)
      controls.push_back(nodes[control].getControl());
    nodes[index] = emitInstance(graph, instance, inputs, controls);
    if (!nodes[index]) {
      // reported; a stand-in lets the other nodes be looked at too
      SmallVector<Type> types;
      for (DType dtype : instance.outTypes)
        types.push_back(UnrankedTensorType::get(graph::toMlirType(ctx, dtype)));
      nodes[index] = graph::NodeOp::create(builder, locationOf(instance), types, instance.op, inputs, controls,
                                           DictionaryAttr());
    }
  }
  for (auto [index, input] : backEdges)
    nodes[index]->setOperand(static_cast<unsigned>(input), valueOf(graph.instances[index].inputs[input]));

  SmallVector<Value> outputs, targets;
  SmallVector<Type> resultTypes;
  for (const Ref &ref : graph.outputs) {
    outputs.push_back(valueOf(ref));
    resultTypes.push_back(outputs.back().getType());
  }
  for (int target : graph.targets)
    targets.push_back(nodes[target].getControl());
  graph::ReturnOp::create(builder, loc, outputs, targets);
  // the handles of frozen variables are left without users
  for (int index : llvm::reverse(order)) {
    StringRef op = graph.instances[index].op;
    if ((isVariableHandle(op) || ops::is(op, ops::Flag::Idle)) && nodes[index]->use_empty())
      nodes[index].erase();
  }
  func.setFunctionType(builder.getFunctionType(argTypes, resultTypes));
  if (!plan) {
    if (graph.symbol != graph.functionName)
      func->setAttr(graph::kFunctionAttr, builder.getStringAttr(graph.functionName));
    return;
  }
  auto names = [&](const NamedTensor &tensor) -> Attribute {
    return builder.getDictionaryAttr(
        {builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(tensor.spec.name)),
         builder.getNamedAttr(graph::kTensorAttr, builder.getStringAttr(tensor.spec.tensor))});
  };
  SmallVector<Attribute> argAttrs, resultAttrs;
  for (const NamedTensor &input : plan->inputs)
    argAttrs.push_back(names(input));
  for (const NamedTensor &output : plan->outputs)
    resultAttrs.push_back(names(output));
  if (!argAttrs.empty())
    func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  if (!resultAttrs.empty())
    func.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
}

void Emitter::run(const std::vector<EntryPlan> &plans, const std::vector<std::unique_ptr<FlatGraph>> &entries,
                  const std::vector<std::unique_ptr<FlatGraph>> &functionList) {
  functions = &functionList;
  llvm::StringSet<> symbols;
  for (const EntryPlan &plan : plans)
    symbols.insert(plan.name);
  for (const auto &graph : entries)
    findVariables(*graph);
  for (const auto &graph : functionList)
    findVariables(*graph);
  // variables and functions are symbols of one table
  for (auto &[key, state] : variables) {
    state.symbol = key;
    for (unsigned n = 1; !symbols.insert(state.symbol).second; ++n)
      state.symbol = key + "_" + std::to_string(n);
  }
  for (const auto &graph : functionList) {
    std::string symbol = graph->functionName.str();
    for (unsigned n = 1; !symbols.insert(symbol).second; ++n)
      symbol = (graph->functionName + "_" + Twine(n)).str();
    graph->symbol = symbol;
    functionSymbols.push_back(symbol);
  }
  for (const auto &graph : entries)
    findAssignments(*graph);
  for (const auto &graph : functionList)
    findAssignments(*graph);
  if (problems.any())
    return;
  readVariables();
  builder.setInsertionPointToEnd(module.getBody());
  emitVariables();
  for (auto [plan, graph] : llvm::zip(plans, entries))
    emitGraph(*graph, &plan);
  for (const auto &graph : functionList)
    emitGraph(*graph, nullptr);
}

void emitGraphs(ModuleOp module, const EmitContext &context, const std::vector<EntryPlan> &plans,
                const std::vector<std::unique_ptr<FlatGraph>> &entries,
                const std::vector<std::unique_ptr<FlatGraph>> &functions) {
  Emitter(module, context).run(plans, entries, functions);
}

} // namespace lathe::import
