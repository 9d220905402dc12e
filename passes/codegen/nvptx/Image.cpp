// LLVM dialect -> LLVM IR -> entries around the functions -> O3 -> PTX. The first image is for sm_80 at PTX ISA 7.0: every driver since
// CUDA 11 takes it, and a device of a later architecture compiles it for itself. Others are made from the same IR.
#include "passes/codegen/nvptx/Assembler.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Images.h"
#include "runtime/abi/cuda_abi.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace llvm;

namespace lathe::nvptx {
namespace {

constexpr int blockThreads = unitThreads;
constexpr const char *deviceTriple = "nvptx64-nvidia-cuda";

std::unique_ptr<TargetMachine> makeMachine(const Arch &arch, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple(deviceTriple);
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, arch.name, arch.isa, options, Reloc::PIC_, std::nullopt,
                                                                    CodeGenOptLevel::Aggressive));
}

/// The entry around a function of units [begin, end): a thread's share of them, or a block's where the function is for
/// `together` threads of one. `extent`: the units where they are known, else -1. Of many pointers it takes a table: see
/// LATHE_CUDA_MOST_POINTERS. `residents`: blocks that are to fit a multiprocessor, where that is said.
void addEntry(Module &m, codegen::Launch &launch, int together, int64_t extent, std::optional<int64_t> residents) {
  Function *body = m.getFunction(launch.name);
  body->setName(launch.name + "_units");
  body->setLinkage(GlobalValue::InternalLinkage);
  body->removeFnAttr(Attribute::NoInline);
  body->addFnAttr(Attribute::AlwaysInline);
  LLVMContext &c = m.getContext();
  Type *i64 = Type::getInt64Ty(c), *i32 = Type::getInt32Ty(c);
  SmallVector<Type *> types(body->getFunctionType()->params().drop_back(2));
  const unsigned err = types.size() - 1, scratch = err - 2;
  const bool inTable = scratch > LATHE_CUDA_MOST_POINTERS;
  const unsigned moved = inTable ? scratch - 1 : 0; // by so much the entry's parameters are fewer
  types.erase(types.begin(), types.begin() + moved);
  types.append(3, i64);
  Function *entry = Function::Create(FunctionType::get(Type::getVoidTy(c), types, false), GlobalValue::ExternalLinkage, launch.name, m);
  entry->setCallingConv(CallingConv::PTX_Kernel);
  launch.threads = together ? together : blockThreads;
  entry->addFnAttr("nvvm.reqntid", std::to_string(launch.threads));
  if (together) { // barriers are in them
    body->setConvergent();
    entry->setConvergent();
    // two blocks leave 128 registers a thread; where nothing is said ptxas has a number of its own, and may spill to reach it
    if (int64_t blocks = residents.value_or(together == 256 ? 2 : 1); blocks > 1 || residents)
      entry->addFnAttr("nvvm.minctasm", std::to_string(blocks));
  }
  for (unsigned i = 0; i <= err && !inTable; ++i)
    for (Attribute::AttrKind kind : {Attribute::NoAlias, Attribute::ReadOnly, Attribute::NonNull})
      if (body->hasParamAttribute(i, kind) && kind != Attribute::NonNull)
        entry->addParamAttr(i, kind);

  BasicBlock *start = BasicBlock::Create(c, "", entry), *work = BasicBlock::Create(c, "", entry), *done = BasicBlock::Create(c, "", entry);
  IRBuilder<> b(start);
  Value *units = entry->getArg(err - moved + 1), *threads = entry->getArg(err - moved + 2), *stride = entry->getArg(err - moved + 3);
  auto special = [&](Intrinsic::ID id) { return b.CreateZExt(b.CreateIntrinsic(i32, id, {}), i64); };
  Value *worker = special(Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  if (together) { // blocks are whole, and their number is the unit's
    if (extent >= 0)
      b.CreateAssumption(b.CreateICmpULT(worker, b.getInt64(std::max<int64_t>(1, extent / together))));
    b.CreateBr(work);
  } else {
    worker = b.CreateMul(worker, b.getInt64(blockThreads), "", true, true);
    worker = b.CreateAdd(worker, special(Intrinsic::nvvm_read_ptx_sreg_tid_x), "", true, true);
    // the number itself where there is one: indices that are small then divide in 32 bits, several times as fast
    const bool known = extent >= 0 && !launch.hasScratch;
    Value *exists = b.CreateICmpSLT(worker, known ? b.getInt64(extent) : threads);
    if (known && extent > 0 && extent % blockThreads == 0) { // of whole blocks each thread has a unit
      b.CreateAssumption(exists);
      b.CreateBr(work);
    } else {
      b.CreateCondBr(exists, work, done);
    }
  }
  b.SetInsertPoint(work);
  SmallVector<Value *> args;
  for (unsigned i = 0; i <= err; ++i) {
    if (!inTable || i >= scratch) {
      args.push_back(entry->getArg(i - moved));
      continue;
    }
    Value *place = b.CreateConstGEP1_64(b.getPtrTy(), entry->getArg(0), i);
    LoadInst *pointer = b.CreateLoad(b.getPtrTy(1), place);
    pointer->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(c, {}));
    args.push_back(b.CreateAddrSpaceCast(pointer, b.getPtrTy()));
  }
  Value *next = b.CreateAdd(worker, b.getInt64(1), "", true, true);
  if (launch.hasScratch) {
    args[scratch] = b.CreateGEP(b.getInt8Ty(), args[scratch], b.CreateMul(worker, stride));
    args.push_back(b.CreateUDiv(b.CreateMul(worker, units), threads));
    args.push_back(b.CreateUDiv(b.CreateMul(next, units), threads));
  } else {
    args.append({worker, next});
  }
  b.CreateCall(body, args);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

void optimize(Module &m, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.MergeFunctions = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  // a device has no library
  TargetLibraryInfoImpl library{Triple(m.getTargetTriple())};
  library.disableAllFunctions();
  fam.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(m, mam);
}

/// Whether code generation has exact code for an intrinsic. LLVM stops the process for what it lacks, and takes approximations
/// for some (exp2, sin, cos), so everything unknown is refused.
bool isSelectable(const IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::fma: case Intrinsic::sqrt: case Intrinsic::fabs: case Intrinsic::floor: case Intrinsic::ceil:
  case Intrinsic::trunc: case Intrinsic::rint: case Intrinsic::nearbyint: case Intrinsic::roundeven: case Intrinsic::copysign:
  case Intrinsic::minnum: case Intrinsic::maxnum: case Intrinsic::minimum: case Intrinsic::maximum:
  case Intrinsic::umin: case Intrinsic::umax: case Intrinsic::smin: case Intrinsic::smax: case Intrinsic::abs:
  case Intrinsic::ucmp: case Intrinsic::scmp:
  case Intrinsic::ctlz: case Intrinsic::cttz: case Intrinsic::ctpop: case Intrinsic::bswap: case Intrinsic::bitreverse:
  case Intrinsic::fshl: case Intrinsic::fshr:
  case Intrinsic::uadd_sat: case Intrinsic::sadd_sat: case Intrinsic::usub_sat: case Intrinsic::ssub_sat:
  case Intrinsic::uadd_with_overflow: case Intrinsic::sadd_with_overflow: case Intrinsic::usub_with_overflow:
  case Intrinsic::ssub_with_overflow: case Intrinsic::umul_with_overflow: case Intrinsic::smul_with_overflow:
  case Intrinsic::fptosi_sat: case Intrinsic::fptoui_sat: case Intrinsic::is_fpclass:
  case Intrinsic::memcpy: case Intrinsic::memmove: case Intrinsic::memset:
  case Intrinsic::masked_load: case Intrinsic::masked_store:
  case Intrinsic::vector_reduce_add: case Intrinsic::vector_reduce_mul: case Intrinsic::vector_reduce_and:
  case Intrinsic::vector_reduce_or: case Intrinsic::vector_reduce_xor:
  case Intrinsic::lifetime_start: case Intrinsic::lifetime_end: case Intrinsic::assume:
  case Intrinsic::experimental_noalias_scope_decl:
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_x: case Intrinsic::nvvm_read_ptx_sreg_tid_x:
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all: case Intrinsic::nvvm_shfl_sync_bfly_i32: case Intrinsic::nvvm_shfl_sync_idx_i32:
  case Intrinsic::nvvm_vote_ballot_sync:
  case Intrinsic::nvvm_f2tf32_rna: case Intrinsic::nvvm_prmt:
  case Intrinsic::nvvm_mma_m16n8k8_row_col_tf32: case Intrinsic::nvvm_mma_m16n8k16_row_col_bf16:
  case Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32: case Intrinsic::nvvm_mma_m16n8k32_row_col_s8:
  case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16: case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16:
  case Intrinsic::nvvm_cp_async_ca_shared_global_4_s: case Intrinsic::nvvm_cp_async_ca_shared_global_8_s:
  case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
  case Intrinsic::nvvm_cp_async_commit_group: case Intrinsic::nvvm_cp_async_wait_group:
    return true;
  default:
    return false;
  }
}

/// The name of what the module holds that has no code, or nothing.
std::string unselectable(Module &m) {
  for (Function &f : m)
    for (Instruction &i : instructions(f)) {
      if (auto *intrinsic = dyn_cast<IntrinsicInst>(&i)) {
        if (!isSelectable(*intrinsic))
          return f.getName().str() + ": " + intrinsic->getCalledFunction()->getName().str();
      } else if (auto *call = dyn_cast<CallBase>(&i); call && !call->isInlineAsm()) {
        Function *callee = call->getCalledFunction();
        if (!callee || callee->isDeclaration())
          return f.getName().str() + ": a call of " + (callee ? callee->getName().str() : std::string("a pointer"));
      } else if (i.getOpcode() == Instruction::FRem) {
        return f.getName().str() + ": frem"; // what LLVM makes of it is not exact
      }
    }
  return {};
}

/// Leaves of each kernel's functions that for the architecture, under the kernel's name.
void chooseForms(Module &m, ArrayRef<codegen::Launch> launches, const Arch &arch) {
  for (const codegen::Launch &launch : launches) {
    Function *own = m.getFunction(launch.name + hopperSuffix.str());
    if (!own)
      continue;
    Function *other = arch.name == hopperArch ? m.getFunction(launch.name) : own;
    other->eraseFromParent();
    if (other != own)
      own->setName(launch.name);
  }
}

/// The kernels as LLVM IR, or an error that has been told.
std::unique_ptr<Module> translate(mlir::ModuleOp kernels, LLVMContext &llvmContext, const TargetMachine &machine) {
  mlir::MLIRContext *context = kernels.getContext();
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  std::unique_ptr<Module> m = mlir::translateModuleToLLVMIR(kernels, llvmContext, "lathe");
  if (!m) {
    kernels.emitError("internal error: translation of kernels to LLVM IR failed");
    return nullptr;
  }
  m->setSourceFileName("lathe");
  m->setTargetTriple(Triple(deviceTriple));
  m->setDataLayout(machine.createDataLayout());
  return m;
}

/// The entries around the functions of one image; false after an error that has been told. Sets the launches' blocks.
bool addEntries(mlir::ModuleOp kernels, MutableArrayRef<codegen::Launch> launches, Module &m, const Arch &arch) {
  SmallVector<uint32_t> shared;
  for (codegen::Launch &launch : launches) {
    mlir::Operation *function = arch.name == hopperArch ? kernels.lookupSymbol(launch.name + hopperSuffix.str()) : nullptr;
    if (!function)
      function = kernels.lookupSymbol(launch.name);
    auto number = [&](StringRef attribute) { return function->getAttrOfType<mlir::IntegerAttr>(attribute); };
    mlir::IntegerAttr threads = number(blockAttribute), residents = number(residentsAttribute), launched = number(sharedAttribute);
    shared.push_back(launched ? static_cast<uint32_t>(launched.getInt()) : 0);
    auto extent = function->getAttrOfType<mlir::AffineMapAttr>("kernel.extent");
    auto known = extent ? mlir::dyn_cast<mlir::AffineConstantExpr>(extent.getValue().getResult(0)) : mlir::AffineConstantExpr();
    addEntry(m, launch, threads ? static_cast<int>(threads.getInt()) : 0, known ? known.getValue() : -1,
             residents ? std::optional<int64_t>(residents.getInt()) : std::nullopt);
  }
  if (any_of(shared, [](uint32_t bytes) { return bytes != 0; })) {
    Constant *table = ConstantDataArray::get(m.getContext(), shared);
    new GlobalVariable(m, table->getType(), /*isConstant=*/false, GlobalValue::ExternalLinkage, table, LATHE_CUDA_SHARED_TABLE, nullptr,
                       GlobalValue::NotThreadLocal, /*AddressSpace=*/1);
  }
  for (Function &f : m) {
    if (f.isIntrinsic())
      continue;
    f.setDoesNotThrow();
    f.addFnAttr("no-trapping-math", "true");
    for (Instruction &i : instructions(f)) // what PTX is written in line takes warps together
      if (auto *call = dyn_cast<CallBase>(&i); call && call->isInlineAsm())
        call->setConvergent();
  }
  std::string error;
  raw_string_ostream problems(error);
  if (verifyModule(m, &problems)) {
    kernels.emitError("internal error: invalid LLVM IR of kernels: " + error);
    return false;
  }
  return true;
}

/// PTX of the IR, which is changed.
Expected<std::string> makePtx(Module &m, TargetMachine &machine) {
  optimize(m, machine);
  if (std::string what = unselectable(m); !what.empty())
    return createStringError("not supported on a CUDA device yet: kernel " + what);
  SmallString<0> text;
  raw_svector_ostream os(text);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, CodeGenFileType::AssemblyFile, /*DisableVerify=*/true))
    return createStringError("internal error: LLVM emits no PTX");
  passes.run(m);
  return std::string(text);
}

} // namespace

mlir::FailureOr<std::vector<codegen::Image>> makeImages(mlir::ModuleOp kernels, MutableArrayRef<codegen::Launch> launches,
                                                        const codegen::Processor &processor) {
  auto failed = [&](const Twine &what) -> mlir::FailureOr<std::vector<codegen::Image>> { return kernels.emitError() << what.str(); };
  if (std::string why = processor.archs.empty() && processor.cubins.empty() ? "" : refuseImages(processor); !why.empty())
    return failed(why);
  // an architecture is compiled for once, whether its text or its machine code is wanted
  SmallVector<const Arch *> wanted = {&portableArch()};
  for (const auto *names : {&processor.archs, &processor.cubins})
    for (const std::string &name : *names)
      if (const Arch *arch = findArch(name); !is_contained(wanted, arch))
        wanted.push_back(arch);
  LLVMContext llvmContext;
  std::unique_ptr<Module> m;
  std::vector<codegen::Image> images, machineCode;
  for (const Arch *arch : wanted) {
    std::string error;
    std::unique_ptr<TargetMachine> machine = makeMachine(*arch, error);
    if (!machine)
      return failed("this build of LLVM makes no code for NVIDIA devices: " + error);
    if (!m && !(m = translate(kernels, llvmContext, *machine)))
      return mlir::failure();
    std::unique_ptr<Module> copy = arch == wanted.back() ? std::move(m) : CloneModule(*m);
    chooseForms(*copy, launches, *arch);
    if (!addEntries(kernels, launches, *copy, *arch))
      return mlir::failure();
    Expected<std::string> ptx = makePtx(*copy, *machine);
    if (!ptx)
      return failed(toString(ptx.takeError()));
    if (is_contained(processor.cubins, arch->name)) {
      Expected<Assembled> code = assemble(*findAssembler(), *ptx, arch->name);
      if (!code)
        return failed("--cubin " + Twine(arch->name) + ": " + toString(code.takeError()));
      machineCode.push_back({arch->name, arch->number, arch->own(), true, std::move(code->code)});
    }
    if (arch == &portableArch() || is_contained(processor.archs, arch->name))
      images.push_back({arch->name, arch->number, arch->own(), false, std::move(*ptx)});
  }
  images.insert(images.end(), std::make_move_iterator(machineCode.begin()), std::make_move_iterator(machineCode.end()));
  return images;
}

} // namespace lathe::nvptx
