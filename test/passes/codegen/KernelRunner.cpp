// The lowering of one kernel function to machine code in memory.
#include "KernelRunner.h"
#include "test/codegen/RowLayout.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <chrono>
#include <cstring>
#include <map>

using namespace mlir;

namespace lathe::testing {

static std::string joinFeatures(const llvm::StringMap<bool> &map) {
  std::vector<std::string> parts;
  for (const auto &f : map)
    parts.push_back((f.second ? "+" : "-") + f.first().str());
  std::sort(parts.begin(), parts.end());
  return llvm::join(parts, ",");
}

static std::string allFeatures(const Processor &p) {
  if (!p.features.empty())
    return p.features;
  llvm::StringMap<bool> map;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::X86::getFeaturesForCPU(p.cpu, names);
  for (llvm::StringRef n : names)
    map[n] = true;
  return joinFeatures(map);
}

Processor Processor::host() {
  return {llvm::sys::getHostCPUName().str(), joinFeatures(llvm::sys::getHostCPUFeatures())};
}

/// As compiler/emit: multiply-adds only where they are asked for.
static llvm::TargetOptions strictOptions() {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return options;
}

codegen::KernelTarget Processor::target() const { return codegen::KernelTarget::get("x86_64-linux-gnu", allFeatures(*this)); }

bool Processor::isRunnable() const {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  codegen::KernelTarget t = target();
  return (!t.avx2 || host["avx2"]) && (!t.fma || host["fma"]) && (!t.avx512 || host["avx512f"]);
}

/// A function void(void **args) that loads the arguments of `callee` from memory and calls it.
static void addEntry(llvm::Module &module, llvm::Function &callee) {
  llvm::LLVMContext &c = module.getContext();
  auto *ptr = llvm::PointerType::get(c, 0);
  auto *entry = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(c), {ptr}, false),
                                       llvm::Function::ExternalLinkage, "entry", module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(c, "", entry));
  llvm::SmallVector<llvm::Value *> args;
  for (llvm::Argument &a : callee.args())
    args.push_back(b.CreateLoad(a.getType(), b.CreateConstGEP1_64(ptr, entry->getArg(0), args.size())));
  b.CreateCall(&callee, args);
  b.CreateRetVoid();
}

std::unique_ptr<CompiledKernel> CompiledKernel::compile(Operation *op, const Processor &processor) {
  auto start = std::chrono::steady_clock::now();
  static bool initialized = [] {
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
    return true;
  }();
  (void)initialized;
  auto kernel = std::make_unique<CompiledKernel>();
  MLIRContext *context = op->getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(context)));
  FailureOr<func::FuncOp> func = cpu::emitKernel(op, *module, "kernel", processor.target());
  if (failed(func) || failed(verify(*module)))
    return nullptr;
  kernel->extent = (*func)->getAttrOfType<AffineMapAttr>("kernel.extent").getValue();
  kernel->scratch = (*func)->getAttrOfType<AffineMapAttr>("kernel.scratch").getValue();
  (*func).setPublic();

  PassManager pm(context);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(*module)))
    return nullptr;

  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(*module, *llvmContext);
  if (!llvmModule)
    return nullptr;
  llvm::Triple triple("x86_64-linux-gnu");
  std::string error, features = allFeatures(processor);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, processor.cpu, features, strictOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  llvmModule->setTargetTriple(triple);
  llvmModule->setDataLayout(machine->createDataLayout());
  llvm::Function *f = llvmModule->getFunction("kernel");
  f->addFnAttr("target-cpu", processor.cpu);
  f->addFnAttr("target-features", features);
  addEntry(*llvmModule, *f);

  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cam;
  llvm::ModuleAnalysisManager mam;
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cam, mam);
  f->addFnAttr(llvm::Attribute::NoInline);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*llvmModule, mam);

  auto emit = [&](llvm::CodeGenFileType type) {
    llvm::SmallVector<char> bytes;
    llvm::raw_svector_ostream os(bytes);
    llvm::legacy::PassManager codegen;
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*llvmModule);
    machine->addPassesToEmitFile(codegen, os, nullptr, type);
    codegen.run(*copy);
    return bytes;
  };
  llvm::SmallVector<char> object = emit(llvm::CodeGenFileType::ObjectFile);
  kernel->compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  llvm::SmallVector<char> text = emit(llvm::CodeGenFileType::AssemblyFile);
  kernel->asmText.assign(text.begin(), text.end());

  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    op->emitError() << llvm::toString(jit.takeError());
    return nullptr;
  }
  kernel->jit = std::move(*jit);
  llvm::cantFail(kernel->jit->addObjectFile(
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernel")));
  auto address = kernel->jit->lookup("entry");
  if (!address) {
    op->emitError() << llvm::toString(address.takeError());
    return nullptr;
  }
  kernel->entry = address->toPtr<void (*)(void **)>();
  return kernel;
}

MLIRContext &testContext() {
  static MLIRContext *context = [] {
    auto *c = new MLIRContext;
    c->loadDialect<kernel::KernelDialect, hlo::HloDialect, cpu::CpuDialect, func::FuncDialect>();
    return c;
  }();
  return *context;
}

CompiledKernel *CompiledKernel::compileOnce(Operation *op, const Processor &processor) {
  static std::map<std::string, std::unique_ptr<CompiledKernel>> done;
  std::string key = processor.cpu;
  llvm::raw_string_ostream os(key);
  op->print(os);
  std::unique_ptr<CompiledKernel> &kernel = done[os.str()];
  if (!kernel)
    kernel = compile(op, processor);
  return kernel.get();
}

int64_t CompiledKernel::units(const std::vector<int64_t> &symbols) const {
  return hlo::evaluate(extent.getResult(0), symbols).value_or(0);
}

int64_t CompiledKernel::run(const std::vector<const void *> &operands, const std::vector<void *> &results,
                            const std::vector<int64_t> &symbols, int64_t begin, int64_t end) {
  size_t bytes = hlo::evaluate(scratch.getResult(0), symbols).value_or(0);
  if (scratchBuffer.size() < bytes + 64)
    scratchBuffer.resize(bytes + 64);
  void *scratchPointer = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratchBuffer.data()) + 63) & ~uintptr_t(63));
  std::vector<int64_t> sizes = symbols;
  sizes.push_back(0);
  int64_t err = 0;
  std::vector<void *> args;
  for (const void *p : operands)
    args.push_back(const_cast<void *>(p));
  args.insert(args.end(), results.begin(), results.end());
  args.insert(args.end(), {scratchPointer, sizes.data(), &err});
  if (end < 0)
    end = units(symbols);
  args.push_back(reinterpret_cast<void *>(begin));
  args.push_back(reinterpret_cast<void *>(end));
  entry(args.data());
  return err;
}

std::string compareRowsApart(Operation *op, const Processor &processor,
                             const std::vector<const void *> &operands, const void *dense,
                             const std::vector<int64_t> &symbols) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1))
    return "";
  const int64_t row = type.getShape().back() + 13;
  std::vector<int64_t> dims;
  for (AffineExpr e : hlo::getDims(type))
    dims.push_back(hlo::evaluate(e, symbols).value_or(0));
  const lathe::test::RowLayout layout(type, dims, row);
  op->setAttr(kernel::resultRowsAttr, DenseI64ArrayAttr::get(op->getContext(), {row}));
  CompiledKernel *kernel = succeeded(mlir::verify(op)) ? CompiledKernel::compileOnce(op, processor) : nullptr;
  op->removeAttr(kernel::resultRowsAttr);
  if (!kernel)
    return "no kernel";
  std::vector<char> expected(layout.start + layout.count * layout.distance + 256, 0x5a), whole = expected,
                                                                                         parts = expected;
  layout.place(dense, expected.data());
  if (kernel->run(operands, {&whole[layout.start]}, symbols) != 0)
    return "an error";
  const int64_t units = kernel->units(symbols);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    kernel->run(operands, {&parts[layout.start]}, symbols, from, std::min(units, from + step));
  for (const auto *got : {&whole, &parts})
    for (size_t i = 0; i < expected.size(); ++i)
      if ((*got)[i] != expected[i])
        return "byte " + std::to_string(i) + (got == &parts ? " of units" : "") + ", in rows of " +
               std::to_string(layout.distance) + " from " + std::to_string(layout.start);
  return "";
}

} // namespace lathe::testing
