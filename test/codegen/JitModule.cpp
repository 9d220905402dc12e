// MLIR kernels -> LLVM IR -> machine code in this process.
#include "KernelHarness.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/MC/MCSubtargetInfo.h"

using namespace mlir;

namespace lathe::test {

static llvm::orc::JITTargetMachineBuilder builderFor(const std::string &cpu) {
  static bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  auto host = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  if (cpu != "host") {
    host.setCPU(cpu);
    host.getFeatures() = llvm::SubtargetFeatures();
  }
  host.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  host.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return host;
}

static std::string featuresOf(const std::string &cpu) {
  auto tm = llvm::cantFail(builderFor(cpu).createTargetMachine());
  std::string s;
  for (const auto &f : tm->getMCSubtargetInfo()->getEnabledProcessorFeatures())
    s += std::string("+") + f.Key + ",";
  return s;
}

codegen::KernelTarget targetFor(const std::string &cpu) {
  return codegen::KernelTarget::get(llvm::sys::getProcessTriple(), featuresOf(cpu));
}

bool hostRuns(const std::string &cpu) {
  if (cpu == "host")
    return true;
  std::string host = featuresOf("host");
  for (const char *f : {"avx512f", "avx512bw", "avx512vl", "avx2", "fma", "avx"})
    if (llvm::StringRef(featuresOf(cpu)).contains(std::string("+") + f + ",") &&
        !llvm::StringRef(host).contains(std::string("+") + f + ","))
      return false;
  return true;
}

JitModule::~JitModule() = default;

std::unique_ptr<JitModule> JitModule::compile(ModuleOp module, const std::string &cpu) {
  MLIRContext *context = module.getContext();
  PassManager pm(context);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(arith::createArithExpandOpsPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  module.walk([](func::FuncOp f) {
    if (!f.isDeclaration())
      f.setPublic();
  });
  if (failed(pm.run(module)))
    return nullptr;
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto llvmModule = translateModuleToLLVMIR(module, *llvmContext);
  if (!llvmModule)
    return nullptr;
  auto builder = builderFor(cpu);
  auto tm = llvm::cantFail(builder.createTargetMachine());
  llvmModule->setDataLayout(tm->createDataLayout());
  llvmModule->setTargetTriple(tm->getTargetTriple());
  int bits = targetFor(cpu).vectorBits;
  for (llvm::Function &f : *llvmModule)
    if (!f.isDeclaration())
      f.addFnAttr("prefer-vector-width", std::to_string(bits));
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder pb(tm.get());
  pb.registerModuleAnalyses(mam);
  pb.registerCGSCCAnalyses(cgam);
  pb.registerFunctionAnalyses(fam);
  pb.registerLoopAnalyses(lam);
  pb.crossRegisterProxies(lam, fam, cgam, mam);
  if (getenv("LATHE_DUMP_LLVM"))
    llvmModule->print(llvm::errs(), nullptr);
  pb.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*llvmModule, mam);
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create();
  if (!jit) {
    llvm::errs() << llvm::toString(jit.takeError()) << "\n";
    return nullptr;
  }
  (*jit)->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix())));
  if (auto e = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(std::move(llvmModule), std::move(llvmContext)))) {
    llvm::errs() << llvm::toString(std::move(e)) << "\n";
    return nullptr;
  }
  auto r = std::make_unique<JitModule>();
  r->jit = std::move(*jit);
  return r;
}

void *JitModule::lookup(const std::string &name) {
  auto s = jit->lookup(name);
  if (!s) {
    llvm::errs() << llvm::toString(s.takeError()) << "\n";
    return nullptr;
  }
  return s->toPtr<void *>();
}

// Pointers and i64 travel alike, so one prototype with many integers serves every signature.
template <size_t... I>
static void callWith(void *f, const std::vector<intptr_t> &a, std::index_sequence<I...>) {
  using Fn = void (*)(decltype((void)I, intptr_t())...);
  reinterpret_cast<Fn>(f)(a[I]...);
}

void JitModule::call(void *f, std::vector<void *> pointers, int64_t begin, int64_t end) {
  std::vector<intptr_t> a;
  for (void *p : pointers)
    a.push_back(reinterpret_cast<intptr_t>(p));
  a.push_back(begin);
  a.push_back(end);
  a.resize(std::max<size_t>(a.size(), 64)); // superfluous arguments lie on the stack unread
  callWith(f, a, std::make_index_sequence<64>());
}

} // namespace lathe::test
