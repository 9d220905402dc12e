#include "compiler/emit/Target.h"
#include "compiler/emit/Header.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <algorithm>
#include <mutex>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace llvm;

namespace lathe {

static void initializeTargets() {
  static std::once_flag once;
  // those that objects are for and no others: each that is named here is linked into liblathe_compiler.so
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // the request for tile registers is a line of assembly
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
}

// Whether the system lets this process use tile registers; Linux wants to be asked, once a process.
static bool mayUseAmx() {
#if defined(__x86_64__) && defined(__linux__)
  return syscall(SYS_arch_prctl, 0x1023 /*ARCH_REQ_XCOMP_PERM*/, 18 /*XFEATURE_XTILEDATA*/) == 0;
#else
  return false;
#endif
}

// Features of this machine in a fixed order. Those the CPU's name implies need no mention, but a virtual machine may
// lack some of them.
static std::string hostFeatures() {
  std::vector<std::string> list;
  StringMap<bool> features = sys::getHostCPUFeatures();
  if (features.lookup("amx-tile") && !mayUseAmx())
    for (const char *name : {"amx-tile", "amx-bf16", "amx-int8", "amx-fp16"})
      features[name] = false;
  for (const auto &f : features)
    list.push_back((f.second ? "+" : "-") + f.first().str());
  std::sort(list.begin(), list.end(), [](StringRef a, StringRef b) { return a.drop_front() < b.drop_front(); });
  return join(list, ",");
}

std::string fullCpuName(StringRef name) {
  return name == "v2" || name == "v3" || name == "v4" ? "x86-64-" + name.str() : name.str();
}

Expected<ResolvedTarget> resolveTarget(const EmitOptions &options) {
  if (options.symbolPrefix.empty() || makeIdentifier(options.symbolPrefix) != options.symbolPrefix)
    return createStringError("symbol prefix '" + options.symbolPrefix + "' is not a C identifier");
  if (options.symbolPrefix == "lathe") // lathe_module is a type
    return createStringError("symbol prefix 'lathe' is that of the names which all headers share: give another one, or another file name");
  if (!options.className.empty())
    if (Error error = checkClassName(options.className))
      return error;
  if (!options.sanitize.empty() && options.sanitize != "address")
    return createStringError("--sanitize=" + options.sanitize + " is not supported: expected address");
  initializeTargets();
  ResolvedTarget t;
  t.triple = Triple::normalize(options.triple.empty() ? sys::getDefaultTargetTriple() : options.triple);
  Triple triple(t.triple);
  if (!triple.isOSBinFormatELF() || (triple.getArch() != Triple::x86_64 && triple.getArch() != Triple::aarch64))
    return createStringError("triple '" + t.triple + "' is not supported: expected ELF on x86_64 or aarch64");
  // CPU:OTHER, for tests: kernels as they are for the other one, in code for the first
  auto [codeCpu, kernelCpu] = StringRef(options.cpu).split(':');
  if (StringRef(options.cpu).contains(':') && (codeCpu.empty() || kernelCpu.empty()))
    return createStringError("CPU '" + options.cpu + "': expected a name on both sides of ':'");
  t.cpu = codeCpu.empty() ? "x86-64-v3" : fullCpuName(codeCpu);
  if (triple.getArch() == Triple::aarch64 && StringRef(t.cpu).starts_with("x86-64"))
    t.cpu = "generic";
  t.features = options.features;
  if (t.cpu == "host") {
    if (Triple(sys::getProcessTriple()).getArch() != triple.getArch())
      return createStringError("--cpu host does not fit triple '" + t.triple + "'");
    t.cpu = sys::getHostCPUName().str();
    std::string host = hostFeatures();
    t.features = t.features.empty() ? host : host + "," + t.features;
  }
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  std::unique_ptr<MCSubtargetInfo> base(target->createMCSubtargetInfo(triple, "", ""));
  for (const std::string &name : {t.cpu, fullCpuName(kernelCpu)})
    if (!base || (!name.empty() && !base->isCPUStringValid(name)))
      return createStringError("unknown CPU '" + name + "' for " + triple.getArchName().str());
  SmallVector<StringRef> parts;
  StringRef(options.features).split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef f : parts)
    if (f.size() < 2 || (f[0] != '+' && f[0] != '-') ||
        none_of(base->getAllProcessorFeatures(), [&](const SubtargetFeatureKV &kv) { return f.drop_front() == kv.Key; }))
      return createStringError("unknown CPU feature '" + f.str() + "': expected +NAME or -NAME");

  TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = FPOpFusion::Strict;
  targetOptions.FunctionSections = false;
  auto level = options.optLevel <= 0   ? CodeGenOptLevel::None
               : options.optLevel == 1 ? CodeGenOptLevel::Less
               : options.optLevel == 2 ? CodeGenOptLevel::Default
                                       : CodeGenOptLevel::Aggressive;
  t.machine.reset(target->createTargetMachine(triple, t.cpu, t.features, targetOptions, Reloc::PIC_, std::nullopt, level));
  if (!t.machine)
    return createStringError("no code generator for " + t.triple);
  auto featuresOf = [&](StringRef cpu, StringRef features) {
    std::vector<std::string> all;
    std::unique_ptr<MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, cpu, features));
    for (const SubtargetFeatureKV &kv : info->getEnabledProcessorFeatures())
      all.push_back(std::string("+") + kv.Key);
    std::sort(all.begin(), all.end());
    return join(all, ",");
  };
  t.allFeatures = featuresOf(t.cpu, t.features);
  t.kernelFeatures = kernelCpu.empty() ? t.allFeatures : featuresOf(fullCpuName(kernelCpu), "") + ",+lathe-spells-out-dots";
  auto hasFma = [](StringRef features) { return (features + ",").str().find("+fma,") != std::string::npos; };
  if (!kernelCpu.empty() && hasFma(t.kernelFeatures) && !hasFma(t.allFeatures))
    return createStringError("CPU '" + options.cpu + "': the first has no FMA, which kernels for the second are made of");
  t.backend = codegen::makeBackend(options.backend, t.description(options).processor);
  if (!t.backend)
    return createStringError("this build has no backend '" + options.backend + "': expected one of " + codegen::backendNames());
  if (!options.archs.empty() || !options.cubins.empty())
    if (std::string why = t.backend->refuseImages(); !why.empty())
      return createStringError(why);
  return t;
}

codegen::Target ResolvedTarget::description(const EmitOptions &options) const {
  return {options.backend,
          {triple, cpu, kernelFeatures, options.threads, options.exact, options.bf16, options.tf32, options.archs, options.cubins}};
}

std::string tuningTarget(const ResolvedTarget &target) {
  std::string text;
  raw_string_ostream os(text);
  os << target.triple << ' ' << target.cpu << ' ' << format_hex_no_prefix(xxh3_64bits(target.allFeatures), 16);
  return text;
}

} // namespace lathe
