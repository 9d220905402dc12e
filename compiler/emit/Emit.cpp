// LLVM dialect (passes/lower) -> LLVM IR + ABI tables -> O3 -> object -> constants section -> checks.
#include "compiler/emit/Emit.h"
#include "compiler/emit/Elf.h"
#include "compiler/emit/Header.h"
#include "compiler/emit/HideSplats.h"
#include "compiler/emit/OptimizeTimes.h"
#include "compiler/emit/Tables.h"
#include "compiler/emit/Target.h"
#include "passes/codegen/Target.h"
#include "passes/lower/Lower.h"
#include "passes/lower/Passes.h"
#include "runtime/abi/module_abi.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>
#include <optional>

using namespace llvm;

namespace lathe {
namespace {

const char *const allowedSymbols[] = {
#include "compiler/emit/symbol_whitelist.inc"
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Attributes that decide code generation; kernels have theirs already.
void setFunctionAttributes(Module &m, const ResolvedTarget &target, const EmitOptions &options) {
  const std::string width = std::to_string(std::max(256, target.backend->properties().vectorBits));
  if (options.sanitize == "address")
    for (GlobalVariable &g : m.globals()) { // tables: nothing registers red zones around them
      GlobalValue::SanitizerMetadata none;
      none.NoAddress = true;
      g.setSanitizerMetadata(none);
    }
  for (Function &f : m) {
    if (f.isIntrinsic())
      continue;
    f.setDoesNotThrow();
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      f.addFnAttr("target-features", target.features);
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("no-trapping-math", "true");
    if (options.sanitize == "address")
      f.addFnAttr(Attribute::SanitizeAddress);
  }
}

void optimize(Module &m, TargetMachine &machine, const EmitOptions &options) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = options.optLevel > 1;
  tuning.SLPVectorization = false; // kernels are vectorised where it pays; SLP only costs compile time
  tuning.MergeFunctions = false;
  PassInstrumentationCallbacks callbacks;
  std::optional<OptimizeTimes> times;
  if (options.optimized)
    times.emplace(callbacks, *options.optimized);
  PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  // No library calls but the memory functions: neither recognised as such nor made.
  TargetLibraryInfoImpl library{Triple(m.getTargetTriple())};
  library.disableAllFunctions();
  for (LibFunc f : {LibFunc_memcpy, LibFunc_memset, LibFunc_memmove})
    library.setAvailable(f);
  fam.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  OptimizationLevel level = options.optLevel <= 0   ? OptimizationLevel::O0
                            : options.optLevel == 1 ? OptimizationLevel::O1
                            : options.optLevel == 2 ? OptimizationLevel::O2
                                                    : OptimizationLevel::O3;
  ModulePassManager passes = level == OptimizationLevel::O0 ? builder.buildO0DefaultPipeline(level)
                                                            : builder.buildPerModuleDefaultPipeline(level);
  if (options.sanitize == "address")
    // no constructor: the program is linked with the sanitizer's runtime, and the JIT runs no constructors
    passes.addPass(AddressSanitizerPass(AddressSanitizerOptions(), /*UseGlobalGC=*/false, /*UseOdrIndicator=*/false,
                                        AsanDtorKind::None, AsanCtorKind::None));
  passes.run(m, mam);
  hideSplats(m, machine);
}

Expected<std::string> generate(Module &m, TargetMachine &machine, CodeGenFileType kind) {
  SmallString<0> buffer;
  raw_svector_ostream os(buffer);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, kind, /*DisableVerify=*/true))
    return createStringError("target cannot emit this kind of file");
  passes.run(m);
  return std::string(buffer.data(), buffer.size());
}

Error checkUndefined(const ElfSummary &summary, const EmitOptions &options, const std::string &constants, bool onDevice) {
  std::string extra;
  for (const std::string &name : summary.undefined) {
    if (is_contained(allowedSymbols, name) || name == constants)
      continue;
    if (options.hosted && StringRef(name).starts_with("lathe_host_kernel_"))
      continue;
    if (onDevice && (StringRef(name).starts_with("lathe_cuda_") || (options.hosted && name == "lathe_hosted_devices_cuda")))
      continue;
    if (options.sanitize == "address" &&
        (StringRef(name).starts_with("__asan") || name == "posix_memalign" || name == "free"))
      continue;
    extra += (extra.empty() ? "" : ", ") + name;
  }
  if (extra.empty())
    return Error::success();
  return createStringError("internal error: the object calls functions outside the whitelist: " + extra);
}

void writeWeights(lower::ConstantPool &pool, uint64_t hash, bool release, std::string &out) {
  out.reserve(LATHE_WEIGHTS_OFFSET + pool.size());
  out.resize(LATHE_WEIGHTS_OFFSET, 0);
  lathe_weights_header header;
  memcpy(header.magic, "LATHEWT1", 8);
  header.constants_size = pool.size();
  header.hash = hash;
  memcpy(out.data(), &header, sizeof(header));
  pool.append(out, release);
}

} // namespace

std::string makeIdentifier(StringRef name) {
  std::string out;
  for (char c : name)
    out.push_back(isAlnum(c) || c == '_' ? c : '_');
  if (out.empty() || isDigit(out[0]))
    out.insert(out.begin(), '_');
  return out;
}

void buildPreparePipeline(mlir::PassManager &pm, const ResolvedTarget &target, const EmitOptions &options) {
  const codegen::Properties granted = target.backend->properties();
  if ((options.bf16 && !granted.bf16) || (options.tf32 && !granted.tf32))
    mlir::emitWarning(mlir::UnknownLoc::get(pm.getContext()))
        << "--precision " << (options.bf16 ? "bf16" : "tf32") << ": not with the " << options.backend << " backend: products and convolutions stay f32";
  target.backend->addPreparePasses(pm, {options.releaseConstants, options.plans.empty() ? nullptr : &options.plans});
}

void buildLowerPipeline(mlir::OpPassManager &pm, const EmitOptions &options) {
  lower::KernelToLlvmOptions lower;
  lower.profile = options.profile;
  lower.externalWeights = options.externalWeights;
  lower.separateBuffers = options.sanitize == "address";
  lower.parallelWork = options.parallelWork;
  pm.addPass(options.emitted ? lower::createTimedKernelToLlvm(lower, *options.emitted) : lower::createKernelToLlvm(lower));
}

Expected<CompiledArtifact> emitModule(mlir::ModuleOp module, const EmitOptions &options) {
  Expected<ResolvedTarget> target = resolveTarget(options);
  if (!target)
    return target.takeError();
  codegen::setTarget(module, target->description(options));
  mlir::PassManager pm(module.getContext());
  buildPreparePipeline(pm, *target, options);
  buildLowerPipeline(pm, options);
  const double start = seconds();
  if (mlir::failed(pm.run(module)))
    return createStringError("the model could not be compiled");
  const double lowered = seconds() - start;
  Expected<CompiledArtifact> artifact = emitLowered(module, *target, options);
  if (artifact)
    artifact->report.emitKernelsSeconds += lowered;
  return artifact;
}

Expected<CompiledArtifact> emitLowered(mlir::ModuleOp module, const ResolvedTarget &target, const EmitOptions &options) {
  mlir::FailureOr<lower::LoweredModule> lowered = lower::readLowered(module);
  if (mlir::failed(lowered))
    return createStringError("the model could not be compiled");
  const bool onDevice = lowered->onDevice;
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  CompiledArtifact artifact;
  artifact.triple = target.triple;
  artifact.vectorBits = target.backend->properties().vectorBits;
  artifact.fma = target.backend->properties().fma;
  artifact.prefix = options.symbolPrefix;
  double start = seconds();
  EmitOptions hostCode = options;
  if (onDevice)
    hostCode.sanitize.clear(); // it touches no tensor: the device's own checks see the kernels
  LLVMContext llvmContext;
  std::unique_ptr<Module> m = mlir::translateModuleToLLVMIR(module, llvmContext, options.symbolPrefix);
  if (!m)
    return createStringError("internal error: translation to LLVM IR failed");
  module.getBody()->clear();
  const std::string constants = options.symbolPrefix + "_constants";
  if (GlobalVariable *pool = m->getNamedGlobal(lower::constantsSymbol))
    pool->setName(constants);
  m->setSourceFileName(options.symbolPrefix);
  m->setTargetTriple(Triple(target.triple));
  m->setDataLayout(target.machine->createDataLayout());
  m->setPICLevel(PICLevel::BigPIC);
  uint64_t hash = options.externalWeights ? lowered->pool.hash() : 0;
  emitTables(*m, *lowered, options, target.triple + " " + target.cpu, hash);
  if (options.hosted)
    emitHostedTables(*m, *options.hosted, options.symbolPrefix, onDevice);
  setFunctionAttributes(*m, target, hostCode);
  std::string problems;
  raw_string_ostream problemStream(problems);
  if (verifyModule(*m, &problemStream))
    return createStringError("internal error: invalid LLVM IR: " + problems);
  EmitReport &report = artifact.report;
  report.emitKernelsSeconds = seconds() - start;
  report.bf16Kernels = lowered->bf16Kernels;
  report.planned = lowered->planned;
  start = seconds();
  optimize(*m, *target.machine, hostCode);
  report.optimizeSeconds = seconds() - start;
  start = seconds();
  if (options.wantLlvm) {
    raw_string_ostream os(artifact.llvmIr);
    m->print(os, nullptr);
  }
  if (options.wantAsm) {
    // code generation changes the module: print from a copy of the machine's view
    std::unique_ptr<Module> copy = CloneModule(*m);
    Expected<std::string> text = generate(*copy, *target.machine, CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    artifact.assembly = std::move(*text);
  }
  if (options.wantObject) {
    Expected<std::string> object = generate(*m, *target.machine, CodeGenFileType::ObjectFile);
    if (!object)
      return object.takeError();
    Expected<ElfSummary> summary = summarizeObject(*object);
    if (!summary)
      return summary.takeError();
    if (Error e = checkUndefined(*summary, hostCode, constants, onDevice))
      return std::move(e);
    report.codeBytes = summary->codeBytes;
    artifact.object = std::move(*object);
    if (lowered->pool.size() > 0 && !options.externalWeights) {
      Expected<std::string> whole =
          addConstantsSection(artifact.object, constants, lowered->pool.size(),
                              [&](std::string &out) { lowered->pool.append(out, options.releaseConstants); });
      if (!whole)
        return whole.takeError();
      artifact.object = std::move(*whole);
    }
  }
  report.codegenSeconds = seconds() - start;
  if (options.externalWeights)
    writeWeights(lowered->pool, hash, options.releaseConstants, artifact.weights);
  report.arenaBytes = lowered->plan.arenaBytes + lowered->scratchBytes;
  report.sumOfBuffers = lowered->plan.sumOfBuffers;
  report.constantBytes = lowered->pool.size();
  report.kernels = lowered->kernels;
  report.kernelCalls = lowered->kernelCalls;
  report.copies = lowered->plan.copies;
  report.fallbacks = lowered->fallbacks;
  for (lower::StepDesc &step : lowered->steps)
    artifact.steps.emplace_back(std::move(step.kernel), std::move(step.nodes));
  artifact.onDevice = onDevice;
  artifact.deviceCode = std::move(lowered->images);
  for (const codegen::Image &image : artifact.deviceCode)
    report.deviceCodeBytes += int64_t(image.code.size());
  artifact.header = options.hosted ? makeHostedHeader(*options.hosted, options, onDevice) : makeHeader(*lowered, options);
  return artifact;
}

} // namespace lathe
