// Order: kernels of all entries (in program order, so that names and the pool are deterministic), their
// conversion to the LLVM dialect, then the functions of the entries.
#include "passes/lower/FunctionLowering.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/SideBySide.h"
#include "runtime/abi/module_abi.h"

using namespace mlir;

namespace lathe::lower {
namespace {

TensorDesc describe(RankedTensorType type, DictionaryAttr attrs, StringRef fallbackName) {
  TensorDesc t;
  auto text = [&](StringRef key) {
    auto s = attrs ? attrs.getAs<StringAttr>(key) : StringAttr();
    return s ? s.getValue().str() : std::string();
  };
  t.name = text("hlo.name");
  t.tensor = text("hlo.tensor");
  if (t.name.empty())
    t.name = fallbackName.str();
  t.dtype = graph::toDType(type.getElementType());
  if (attrs)
    if (auto number = attrs.getAs<IntegerAttr>("hlo.dtype"))
      t.dtype = static_cast<DType>(number.getInt());
  t.elementSize = static_cast<int32_t>(elementBytes(type.getElementType()));
  t.dims = hlo::getDims(type);
  auto quantized = attrs ? attrs.getAs<TypeAttr>("hlo.quantized") : TypeAttr();
  if (!quantized)
    return t;
  if (auto one = dyn_cast<quant::UniformQuantizedType>(quantized.getValue())) {
    t.scales = {static_cast<float>(one.getScale())};
    t.zeroPoints = {one.getZeroPoint()};
  } else if (auto each = dyn_cast<quant::UniformQuantizedPerAxisType>(quantized.getValue())) {
    t.scales.assign(each.getScales().begin(), each.getScales().end());
    t.zeroPoints.assign(each.getZeroPoints().begin(), each.getZeroPoints().end());
    t.quantizedDim = each.getQuantizedDimension();
  }
  return t;
}

LogicalResult checkType(Value v, Location loc) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || !hlo::hasKnownDims(type))
    return emitError(loc, "size of a tensor is not known: ") << v.getType();
  if (elementBytes(type.getElementType()) == 0)
    return emitError(loc, "element type has no representation in memory: ") << type.getElementType();
  std::optional<int64_t> n = hlo::constantValue(hlo::numElements(type));
  double product = 1;
  if (type.hasStaticShape())
    for (int64_t d : type.getShape())
      product *= static_cast<double>(d);
  if (product > 1e13 || (n && *n < 0))
    return emitError(loc, "tensor is too large: ") << type;
  return success();
}

LogicalResult collectSymbols(ModuleOp input, ModuleState &state) {
  for (const hlo::SymbolInfo &s : hlo::getSymbolTable(input)) {
    state.result.symbols.push_back({s.name, s.isData, s.bound});
    AffineExpr bound;
    if (s.isData) {
      bound = s.boundExpr ? s.boundExpr : getAffineConstantExpr(s.bound, input.getContext());
      if (!s.boundExpr && s.bound < 0)
        return emitError(input.getLoc(), "size '") << s.name << "' depends on data and has no bound";
    }
    state.bounds.push_back(bound);
  }
  return success();
}

LogicalResult collectVariables(ModuleOp input, ModuleState &state, llvm::StringMap<int64_t> &number) {
  auto list = input->getAttrOfType<ArrayAttr>("hlo.variables");
  if (!list)
    return success();
  for (auto v : list.getAsRange<DictionaryAttr>()) {
    auto name = v.getAs<StringAttr>("name");
    auto type = v.getAs<TypeAttr>("type");
    auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
    if (!name || !tensor || !tensor.hasStaticShape())
      return emitError(input.getLoc(), "variable needs a name and a static type: ") << v;
    VariableDesc desc{describe(tensor, DictionaryAttr(), name.getValue()), -1};
    if (auto value = v.getAs<ElementsAttr>("value")) {
      FailureOr<int64_t> offset = state.result.pool.add(value, input.getLoc());
      if (failed(offset))
        return failure();
      desc.initialOffset = *offset;
    }
    number[name.getValue()] = state.result.variables.size();
    state.result.variables.push_back(std::move(desc));
  }
  return success();
}

LogicalResult collectEntry(func::FuncOp func, ModuleState &state, const llvm::StringMap<int64_t> &variables) {
  EntryDesc entry;
  entry.name = func.getName().str();
  auto variableOk = [&](DictionaryAttr attrs) -> LogicalResult {
    auto name = attrs.getAs<StringAttr>("hlo.variable");
    if (name && !variables.count(name.getValue()))
      return emitError(func.getLoc(), "variable '") << name.getValue() << "' is not in hlo.variables";
    return success();
  };
  auto attrsOf = [&](DictionaryAttr attrs) { return attrs ? attrs : DictionaryAttr::get(func.getContext()); };
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    DictionaryAttr attrs = attrsOf(func.getArgAttrDict(i));
    if (failed(checkType(func.getArgument(i), func.getLoc())) || failed(variableOk(attrs)))
      return failure();
    if (!attrs.contains("hlo.variable"))
      entry.inputs.push_back(describe(cast<RankedTensorType>(func.getArgument(i).getType()), attrs,
                                      "arg" + std::to_string(entry.inputs.size())));
  }
  Operation *ret = func.front().getTerminator();
  for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
    DictionaryAttr attrs = attrsOf(func.getResultAttrDict(i));
    if (failed(variableOk(attrs)))
      return failure();
    if (!attrs.contains("hlo.variable"))
      entry.outputs.push_back(describe(cast<RankedTensorType>(ret->getOperand(i).getType()), attrs,
                                       "result" + std::to_string(entry.outputs.size())));
  }
  state.result.entries.push_back(std::move(entry));
  return success();
}

void declareSymbols(ModuleState &state) {
  MainBuilder b(UnknownLoc::get(state.output.getContext()), state.output.getContext());
  b.setInsertionPointToStart(state.output.getBody());
  auto fail = LLVM::LLVMFunctionType::get(b.getI32Type(), {b.ptrType(), b.getI32Type(), b.getI32Type()});
  LLVM::LLVMFuncOp::create(b, "lathe_fail", fail);
  LLVM::GlobalOp::create(b, b.getI8Type(), /*isConstant=*/false, LLVM::Linkage::External,
                         constantsSymbol, Attribute())
      .setVisibility_(LLVM::Visibility::Hidden);
  if (state.options.backend->launches())
    LLVM::GlobalOp::create(b, b.getI8Type(), /*isConstant=*/false, LLVM::Linkage::External, deviceModule, Attribute())
        .setVisibility_(LLVM::Visibility::Hidden);
  if (state.options.amx)
    LLVM::GlobalOp::create(b, b.getI32Type(), /*isConstant=*/false, LLVM::Linkage::Internal, amxGranted,
                           b.getI32IntegerAttr(0));
}

LogicalResult makeImages(ModuleState &state, ModuleOp kernels) {
  for (const KernelInfo &info : state.kernels.all()) {
    auto scratch = dyn_cast<AffineConstantExpr>(info.scratch);
    state.result.launches.push_back({info.name, !scratch || scratch.getValue() != 0, 0});
  }
  if (state.result.launches.empty())
    return success();
  FailureOr<std::vector<codegen::Image>> images = state.options.backend->makeImages(kernels, state.result.launches);
  if (failed(images))
    return failure();
  state.result.images = std::move(*images);
  state.result.tools = state.options.backend->tools();
  return success();
}

} // namespace

LogicalResult addKernels(func::FuncOp func, KernelSet &kernels) {
  bool ok = true;
  int errors = 0;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == func || errors >= 50)
      return WalkResult::advance();
    for (Value v : op->getResults())
      if (failed(checkType(v, op->getLoc()))) {
        ok = false;
        ++errors;
        return WalkResult::skip();
      }
    if (isControlFlow(op) || isView(op) || isJoin(op) || isa<hlo::ConstantOp>(op) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    if (failed(kernels.add(op))) {
      ok = false;
      ++errors;
    }
    return WalkResult::skip();
  });
  return success(ok);
}

FailureOr<LoweredModule> lowerModule(ModuleOp input, const LowerOptions &options) {
  LoweredModule result;
  result.module = ModuleOp::create(UnknownLoc::get(input.getContext()));
  options.backend->beginKernels(input);
  // kernels of a device are not in the module of the host's code
  const bool launches = result.onDevice = options.backend->launches();
  OwningOpRef<ModuleOp> deviceCode = launches ? ModuleOp::create(UnknownLoc::get(input.getContext())) : ModuleOp();
  ModuleOp kernelModule = launches ? *deviceCode : *result.module;
  KernelSet kernels(kernelModule, *options.backend, options.times);
  ModuleState state{input, *result.module, options, result, kernels, {}};
  llvm::StringMap<int64_t> variables;
  if (failed(collectSymbols(input, state)) || failed(collectVariables(input, state, variables)))
    return failure();

  SmallVector<func::FuncOp> entries;
  bool ok = true;
  for (auto func : input.getOps<func::FuncOp>()) {
    if (!func.isPublic() || func.isExternal())
      continue;
    if (!func.getBody().hasOneBlock())
      return emitError(func.getLoc(), "expected one block in an entry function"), failure();
    ok &= succeeded(collectEntry(func, state, variables)) && succeeded(addKernels(func, kernels));
    entries.push_back(func);
  }
  if (!ok)
    return failure();
  if (entries.empty())
    return emitError(input.getLoc(), "module has no entry function"), failure();
  result.kernels = kernels.all().size();
  for (const KernelInfo &kernel : kernels.all())
    for (const std::string &text : kernel.fallbacks)
      ++result.fallbacks[text];
  input.walk([&](Operation *op) {
    result.bf16Kernels += op->hasAttr("bf16");
    result.planned += op->hasAttr("kernel.plan");
  });

  if (failed(convertKernelsToLlvm(kernelModule)))
    return emitError(input.getLoc(), "kernels could not be converted to LLVM"), failure();
  for (auto f : result.module->getOps<LLVM::LLVMFuncOp>())
    if (!f.isExternal()) {
      f.setLinkage(LLVM::Linkage::Internal);
      f.setNoInline(true);
    }
  if (launches && failed(makeImages(state, *deviceCode)))
    return failure();
  deviceCode = nullptr;
  declareSymbols(state);
  for (auto [i, func] : llvm::enumerate(entries)) {
    placeSideBySide(func, kernels, options);
    FailureOr<MemoryPlan> plan = MemoryPlan::create(func, result.pool, variables);
    if (failed(plan))
      return failure();
    FunctionLowering(state, func, static_cast<int>(i), *plan).run();
    if (i == 0 || plan->statistics().arenaBytes > result.plan.arenaBytes)
      result.plan = plan->statistics();
  }
  return result;
}

} // namespace lathe::lower
