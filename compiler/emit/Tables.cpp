// Struct types here mirror runtime/abi/module_abi.h field by field; sizes are compared with the C compiler's.
#include "compiler/emit/Tables.h"
#include "runtime/abi/cuda_abi.h"
#include "runtime/abi/module_abi.h"
#include "runtime/abi/quantized_abi.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace lathe {
namespace {

/// Builds constants; equal strings share one global.
class TableBuilder {
public:
  explicit TableBuilder(Module &m)
      : m(m), c(m.getContext()), ptr(PointerType::get(c, 0)), i32Type(Type::getInt32Ty(c)), i64Type(Type::getInt64Ty(c)) {}

  Module &m;
  LLVMContext &c;
  PointerType *ptr;
  Type *i32Type, *i64Type;

  Constant *i32(int64_t v) { return ConstantInt::get(i32Type, static_cast<uint64_t>(v), /*IsSigned=*/true); }
  Constant *i64(int64_t v) { return ConstantInt::get(i64Type, static_cast<uint64_t>(v), /*IsSigned=*/true); }
  Constant *null() { return ConstantPointerNull::get(ptr); }

  Constant *string(StringRef s) {
    Constant *&global = strings[s];
    if (!global)
      global = place(ConstantDataArray::getString(c, s), 1);
    return global;
  }
  /// The same for what may be machine code, aligned for whoever reads it; with a zero behind it.
  Constant *bytes(StringRef s) { return place(ConstantDataArray::getString(c, s), 16); }
  /// A pointer to a private constant.
  GlobalVariable *place(Constant *init, unsigned align = 8) {
    auto *g = new GlobalVariable(m, init->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, init);
    g->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    g->setAlignment(Align(align));
    return g;
  }
  Constant *array(ArrayRef<Constant *> elements, Type *type) {
    if (elements.empty())
      return null();
    return place(ConstantArray::get(ArrayType::get(type, elements.size()), elements));
  }
  Constant *pointers(ArrayRef<Constant *> elements) { return array(elements, ptr); }
  GlobalVariable *structure(ArrayRef<Constant *> fields, size_t cSize) {
    SmallVector<Type *> types;
    for (Constant *f : fields)
      types.push_back(f->getType());
    auto *type = StructType::get(c, types);
    assert(m.getDataLayout().getTypeAllocSize(type) == cSize && "layout differs from module_abi.h");
    (void)cSize;
    return place(ConstantStruct::get(type, fields));
  }
  Constant *function(const Twine &name) { return m.getFunction(name.str()); }

private:
  StringMap<Constant *> strings;
};

Constant *tensorInfo(TableBuilder &t, const lower::TensorDesc &desc) {
  SmallVector<Constant *> dims;
  for (mlir::AffineExpr e : desc.dims) {
    if (auto k = mlir::dyn_cast<mlir::AffineConstantExpr>(e))
      dims.push_back(t.i64(k.getValue()));
    else if (auto s = mlir::dyn_cast<mlir::AffineSymbolExpr>(e))
      dims.push_back(t.i64(-1 - int64_t(s.getPosition())));
    else
      dims.push_back(t.i64(LATHE_DIM_COMPUTED));
  }
  const size_t size = desc.scales.empty() ? sizeof(lathe_tensor_info) : sizeof(lathe_quantized_info);
  SmallVector<Constant *> fields{t.i32(size), t.i32(static_cast<int32_t>(desc.dtype)), t.i32(desc.elementSize), t.i32(desc.dims.size()),
                                 t.string(desc.name), t.string(desc.tensor), t.array(dims, t.i64Type)};
  if (!desc.scales.empty()) {
    SmallVector<Constant *> scales, zeroPoints;
    for (float scale : desc.scales)
      scales.push_back(ConstantFP::get(Type::getFloatTy(t.c), scale));
    for (int64_t zero : desc.zeroPoints)
      zeroPoints.push_back(t.i64(zero));
    fields.append({t.i32(desc.scales.size()), t.i32(desc.quantizedDim), t.array(scales, Type::getFloatTy(t.c)),
                   t.array(zeroPoints, t.i64Type)});
  }
  return t.structure(fields, size);
}

Constant *tensorInfos(TableBuilder &t, ArrayRef<lower::TensorDesc> list) {
  SmallVector<Constant *> infos;
  for (const lower::TensorDesc &desc : list)
    infos.push_back(tensorInfo(t, desc));
  return t.pointers(infos);
}

struct Failure {
  lathe_code code;
  const char *text;
};
const Failure siteFailures[lower::failuresPerSite] = {
    {LATHE_INTERNAL, "failed"},
    {LATHE_INVALID_ARGUMENT, "index is out of range"},
    {LATHE_INVALID_ARGUMENT, "check failed"},
    {LATHE_OUT_OF_RANGE, "a size that depends on data exceeds its bound"},
    {LATHE_INVALID_ARGUMENT, "Cholesky decomposition was not successful. The input might not be valid."},
    {LATHE_INTERNAL, "failed"},
    {LATHE_INTERNAL, "failed"},
    {LATHE_INVALID_ARGUMENT, "dimensions of the inputs do not agree"},
};
const Failure callFailures[lower::failuresPerSite] = {
    {LATHE_INTERNAL, "failed"},
    {LATHE_RESOURCE_EXHAUSTED, "the workspace is too small for these sizes"},
    {LATHE_INVALID_ARGUMENT, "a run-time size is out of range"},
    {LATHE_FAILED_PRECONDITION, "the weights have not been bound"},
    {LATHE_INTERNAL, "parallel_for failed"},
    {LATHE_FAILED_PRECONDITION, "the system does not let this process use AMX, or PREFIX_module() has not been called; "
                                "compile for a CPU without it (--cpu cooperlake has AVX512_BF16)"},
    {LATHE_INTERNAL, "failed"},
    {LATHE_INTERNAL, "failed"},
};

// int32_t lathe_fail(const lathe_run_args *args, int32_t site, int32_t failure): fills args->error, returns the code.
void emitFail(TableBuilder &t, const lower::LoweredModule &lowered) {
  SmallVector<Constant *> messages;
  SmallVector<Constant *> codes;
  for (const Failure &f : callFailures) {
    messages.push_back(t.string(f.text));
    codes.push_back(t.i32(f.code));
  }
  for (const Failure &f : siteFailures)
    codes.push_back(t.i32(f.code));
  for (const lower::SiteDesc &site : lowered.sites)
    for (int i = 0; i < lower::failuresPerSite; ++i) {
      std::string what = !site.message.empty() ? site.message : siteFailures[i].text;
      messages.push_back(site.node.empty() ? t.string(what)
                                           : t.string("node '" + site.node + "' (" + site.op + "): " + what));
    }
  Constant *messageTable = t.pointers(messages), *codeTable = t.array(codes, t.i32Type);

  Function *f = t.m.getFunction("lathe_fail");
  if (!f)
    return;
  f->setLinkage(GlobalValue::InternalLinkage);
  f->setDSOLocal(true);
  f->addFnAttr(Attribute::Cold);
  f->addFnAttr(Attribute::NoInline);
  IRBuilder<> b(BasicBlock::Create(t.c, "", f));
  Value *args = f->getArg(0), *site = f->getArg(1), *failure = f->getArg(2);
  Value *known = b.CreateICmpULT(failure, t.i32(lower::failuresPerSite));
  failure = b.CreateSelect(known, failure, t.i32(0));
  Value *isSite = b.CreateICmpSGE(site, t.i32(0));
  Value *codeIndex = b.CreateAdd(failure, b.CreateSelect(isSite, t.i32(lower::failuresPerSite), t.i32(0)));
  Value *code = b.CreateLoad(t.i32Type, b.CreateGEP(t.i32Type, codeTable, b.CreateSExt(codeIndex, t.i64Type)));
  Value *row = b.CreateAdd(b.CreateMul(b.CreateAdd(site, t.i32(1)), t.i32(lower::failuresPerSite)), failure);
  Value *message = b.CreateLoad(t.ptr, b.CreateGEP(t.ptr, messageTable, b.CreateSExt(row, t.i64Type)));
  auto at = [&](Value *base, size_t offset) { return b.CreateConstGEP1_64(b.getInt8Ty(), base, offset); };
  Value *error = b.CreateLoad(t.ptr, at(args, offsetof(lathe_run_args, error)));
  auto *fill = BasicBlock::Create(t.c, "", f), *done = BasicBlock::Create(t.c, "", f);
  b.CreateCondBr(b.CreateICmpEQ(error, t.null()), done, fill);
  b.SetInsertPoint(fill);
  b.CreateStore(code, at(error, offsetof(lathe_error, code)));
  b.CreateStore(site, at(error, offsetof(lathe_error, site)));
  b.CreateStore(message, at(error, offsetof(lathe_error, message)));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRet(code);
}

Function *exported(TableBuilder &t, const Twine &name, Type *result, ArrayRef<Type *> args) {
  return Function::Create(FunctionType::get(result, args, false), GlobalValue::ExternalLinkage, name, t.m);
}

// int32_t PREFIX_bind_weights(const void *data, uint64_t size)
Function *emitBind(TableBuilder &t, const std::string &prefix, GlobalVariable *bound, uint64_t size, uint64_t hash) {
  Function *f = exported(t, prefix + "_bind_weights", t.i32Type, {t.ptr, t.i64Type});
  IRBuilder<> b(BasicBlock::Create(t.c, "", f));
  Value *data = f->getArg(0);
  auto *bad = BasicBlock::Create(t.c, "", f);
  auto require = [&](Value *ok) {
    auto *next = BasicBlock::Create(t.c, "", f);
    b.CreateCondBr(ok, next, bad);
    b.SetInsertPoint(next);
  };
  auto word = [&](size_t offset) {
    return b.CreateAlignedLoad(t.i64Type, b.CreateConstGEP1_64(b.getInt8Ty(), data, offset), Align(8));
  };
  uint64_t magic;
  memcpy(&magic, "LATHEWT1", 8);
  require(b.CreateICmpNE(data, t.null()));
  require(b.CreateICmpUGE(f->getArg(1), t.i64(LATHE_WEIGHTS_OFFSET + size)));
  require(b.CreateICmpEQ(b.CreateAnd(b.CreatePtrToInt(data, t.i64Type), t.i64(LATHE_ALIGNMENT - 1)), t.i64(0)));
  require(b.CreateICmpEQ(word(0), t.i64(magic)));
  require(b.CreateICmpEQ(word(8), t.i64(size)));
  require(b.CreateICmpEQ(word(16), t.i64(hash)));
  b.CreateStore(b.CreateConstGEP1_64(b.getInt8Ty(), data, LATHE_WEIGHTS_OFFSET), bound);
  b.CreateRet(t.i32(0));
  b.SetInsertPoint(bad);
  b.CreateRet(t.i32(LATHE_INVALID_ARGUMENT));
  return f;
}

/// The lathe_cuda_module and the lathe_device_module, and PREFIX_load, PREFIX_unload, PREFIX_device and
/// PREFIX_device_workspace_size.
void emitDevice(TableBuilder &t, const lower::LoweredModule &lowered, const std::string &prefix, Constant *constants, bool bound) {
  SmallVector<Constant *> kernels;
  for (const codegen::Launch &launch : lowered.launches)
    kernels.push_back(t.structure({t.i32(sizeof(lathe_cuda_kernel)), t.i32(launch.threads), t.string(launch.name)},
                                  sizeof(lathe_cuda_kernel)));
  SmallVector<Constant *> images;
  for (const codegen::Image &image : drop_begin(lowered.images, lowered.images.empty() ? 0 : 1)) {
    const int flags = (image.own ? LATHE_CUDA_IMAGE_OWN : 0) | (image.machineCode ? LATHE_CUDA_IMAGE_MACHINE_CODE : 0);
    images.push_back(t.structure({t.i32(sizeof(lathe_cuda_image)), t.i32(image.arch), t.i32(flags), t.i32(0), t.bytes(image.code)},
                                 sizeof(lathe_cuda_image)));
  }
  const std::string portable = lowered.images.empty() ? std::string() : lowered.images.front().code;
  GlobalVariable *module = t.structure({t.i32(sizeof(lathe_cuda_module)), t.i32(lowered.launches.size()), t.string(portable),
                                        t.pointers(kernels), t.i64(lowered.pool.size()), t.i64(lowered.hostBytes),
                                        t.i32(lowered.cells), t.i32(0), t.function("lathe_fail"), t.null(), t.i32(images.size()),
                                        t.i32(0), t.pointers(images)},
                                       sizeof(lathe_cuda_module));
  module->setConstant(false);
  module->setUnnamedAddr(GlobalValue::UnnamedAddr::None);
  if (GlobalVariable *used = t.m.getNamedGlobal(lower::deviceModule)) {
    used->replaceAllUsesWith(module);
    used->eraseFromParent();
  }
  auto runtime = [&](StringRef name, Type *result, ArrayRef<Type *> args) {
    return t.m.getOrInsertFunction(name, FunctionType::get(result, args, false));
  };
  // external weights may not be bound yet: null, which the runtime refuses
  auto weights = [&](IRBuilder<> &b) -> Value * { return bound ? b.CreateLoad(t.ptr, constants) : static_cast<Value *>(constants); };
  {
    Function *load = exported(t, prefix + "_load", t.i32Type, {});
    IRBuilder<> b(BasicBlock::Create(t.c, "", load));
    b.CreateRet(b.CreateCall(runtime("lathe_cuda_load_2", t.i32Type, {t.ptr, t.i32Type, t.ptr}), {module, t.i32(0), weights(b)}));
  }
  {
    Function *unload = exported(t, prefix + "_unload", Type::getVoidTy(t.c), {});
    IRBuilder<> b(BasicBlock::Create(t.c, "", unload));
    b.CreateCall(runtime("lathe_cuda_unload_2", Type::getVoidTy(t.c), {t.ptr}), {module});
    b.CreateRetVoid();
  }
  Function *open = exported(t, "lathe_open", t.i32Type, {t.i32Type, t.ptr, t.ptr});
  open->setLinkage(GlobalValue::InternalLinkage);
  {
    IRBuilder<> b(BasicBlock::Create(t.c, "", open));
    b.CreateRet(b.CreateCall(runtime("lathe_cuda_open_2", t.i32Type, {t.ptr, t.ptr, t.i32Type, t.ptr, t.ptr}),
                             {module, weights(b), open->getArg(0), open->getArg(1), open->getArg(2)}));
  }
  SmallVector<Constant *> workspaces;
  for (auto [i, e] : enumerate(lowered.entries)) {
    Function *workspace = t.m.getFunction(("lathe_device_workspace" + Twine(i)).str());
    workspaces.push_back(workspace);
    GlobalAlias::create(GlobalValue::ExternalLinkage, entryFunctionName(prefix, "device_workspace_size", e.name, static_cast<int>(i)),
                        workspace);
  }
  auto function = [&](StringRef name, Type *result, ArrayRef<Type *> args) { return cast<Constant>(runtime(name, result, args).getCallee()); };
  GlobalVariable *device = t.structure(
      {t.i32(sizeof(lathe_device_module)), t.i32(workspaces.size()), t.pointers(workspaces), open,
       function("lathe_cuda_close_2", Type::getVoidTy(t.c), {t.ptr}),
       function("lathe_cuda_reserve_2", t.i32Type, {t.ptr, t.i64Type, t.ptr}),
       function("lathe_cuda_finish_2", t.i32Type, {t.ptr, t.ptr}),
       function("lathe_cuda_get_memory_2", t.i32Type, {t.ptr, t.ptr, t.i64Type, t.ptr}),
       function("lathe_cuda_free_memory_2", t.i32Type, {t.ptr, t.ptr, t.ptr}),
       function("lathe_cuda_transfer_2", t.i32Type, {t.ptr, t.ptr, t.i32Type, t.ptr, t.i32Type, t.i64Type, t.ptr}),
       t.i32(lowered.cells), t.i32(0)},
      sizeof(lathe_device_module));
  IRBuilder<> b(BasicBlock::Create(t.c, "", exported(t, prefix + "_device", t.ptr, {})));
  b.CreateRet(device);
}

/// Asks Linux for the use of tile registers, which it grants to a process once: arch_prctl(ARCH_REQ_XCOMP_PERM,
/// XFEATURE_XTILEDATA). Here, in PREFIX_module(), so that run() makes no system call.
void requestAmx(TableBuilder &t, IRBuilder<> &b) {
  GlobalVariable *granted = t.m.getNamedGlobal(lower::amxGranted);
  if (!granted)
    return;
  constexpr int64_t archPrctl = 158, requestPermission = 0x1023, tileData = 18;
  auto *type = FunctionType::get(t.i64Type, {t.i64Type, t.i64Type, t.i64Type}, false);
  auto *call = InlineAsm::get(type, "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}",
                              /*hasSideEffects=*/true);
  Value *result = b.CreateCall(type, call, {t.i64(archPrctl), t.i64(requestPermission), t.i64(tileData)});
  auto *store = b.CreateStore(b.CreateZExt(b.CreateICmpEQ(result, t.i64(0)), t.i32Type), granted);
  store->setAtomic(AtomicOrdering::Monotonic);
  store->setAlignment(Align(4));
}

} // namespace

std::string entryFunctionName(StringRef prefix, StringRef function, StringRef entry, int index) {
  return (prefix + "_" + function + (index == 0 ? std::string() : "_" + makeIdentifier(entry))).str();
}

void emitTables(Module &m, const lower::LoweredModule &lowered, const EmitOptions &options, StringRef target,
                uint64_t constantsHash) {
  TableBuilder t(m);
  const std::string &prefix = options.symbolPrefix;
  emitFail(t, lowered);

  // the constants: a hidden symbol that the ELF writer defines, or the address that was bound
  GlobalVariable *constants = m.getNamedGlobal(prefix + "_constants");
  Constant *constantsField = t.null(), *bindField = t.null(), *boundField = t.null();
  uint64_t size = lowered.pool.size();
  if (size == 0 || options.externalWeights) {
    auto *bound = new GlobalVariable(m, t.ptr, /*isConstant=*/false, GlobalValue::InternalLinkage, t.null(),
                                     "lathe_bound_weights");
    if (constants) {
      constants->replaceAllUsesWith(bound);
      constants->eraseFromParent();
    }
    if (size > 0) {
      boundField = bound;
      bindField = emitBind(t, prefix, bound, size, constantsHash);
    }
  } else {
    constantsField = constants;
  }
  if (lowered.onDevice)
    emitDevice(t, lowered, prefix, size == 0 ? t.null() : boundField != t.null() ? boundField : constantsField, boundField != t.null());

  SmallVector<Constant *> entries, symbols, variables, sites, steps;
  for (auto [i, e] : enumerate(lowered.entries)) {
    Twine n(i);
    entries.push_back(t.structure(
        {t.i32(sizeof(lathe_entry)), t.i32(e.inputs.size()), t.i32(e.outputs.size()), t.i32(0), t.string(e.name),
         tensorInfos(t, e.inputs), tensorInfos(t, e.outputs), t.function("lathe_workspace" + n),
         t.function("lathe_bound" + n), t.function("lathe_dims" + n), t.function("lathe_run" + n)},
        sizeof(lathe_entry)));
    for (StringRef name : {"run", "workspace_size"}) {
      Function *impl = m.getFunction(((name == "run" ? "lathe_run" : "lathe_workspace") + n).str());
      GlobalAlias::create(GlobalValue::ExternalLinkage,
                          entryFunctionName(prefix, name, e.name, static_cast<int>(i)), impl);
    }
  }
  for (const lower::SymbolDesc &s : lowered.symbols)
    symbols.push_back(t.structure({t.i32(sizeof(lathe_symbol_info)), t.i32(s.isData), t.i64(s.bound), t.string(s.name)},
                                  sizeof(lathe_symbol_info)));
  for (const lower::VariableDesc &v : lowered.variables)
    variables.push_back(t.structure({t.i32(sizeof(lathe_variable_info)), t.i32(0), tensorInfo(t, v.tensor),
                                     t.i64(v.initialOffset)},
                                    sizeof(lathe_variable_info)));
  for (const lower::SiteDesc &s : lowered.sites)
    sites.push_back(t.structure({t.i32(sizeof(lathe_site_info)), t.i32(0), t.string(s.node), t.string(s.op)},
                                sizeof(lathe_site_info)));
  for (const lower::StepDesc &s : lowered.steps)
    steps.push_back(t.structure({t.i32(sizeof(lathe_step_info)), t.i32(s.entry), t.string(s.nodes), t.string(s.kernel),
                                 t.i64(s.flops), t.i64(s.constantBytes), t.i64(s.otherBytes)},
                                sizeof(lathe_step_info)));
  const std::string producer = lowered.tools.empty() ? "lathe 0.1.0" : "lathe 0.1.0, " + lowered.tools;
  GlobalVariable *module = t.structure(
      {t.i32(sizeof(lathe_module)), t.i32(LATHE_ABI_VERSION), t.string(prefix), t.string(producer), t.string(target),
       t.i32(entries.size()), t.i32(symbols.size()), t.i32(variables.size()), t.i32(sites.size()),
       t.i32(steps.size()), t.i32(0), t.pointers(entries), t.pointers(symbols), t.pointers(variables),
       t.pointers(sites), t.pointers(steps), t.i64(size), constantsField, bindField, boundField},
      sizeof(lathe_module));
  Function *query = exported(t, prefix + "_module", t.ptr, {});
  IRBuilder<> b(BasicBlock::Create(t.c, "", query));
  requestAmx(t, b);
  b.CreateRet(module);
}

} // namespace lathe
