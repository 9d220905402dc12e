#include "test/cuda/CudaTest.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace lathe::test {

CudaDevice::CudaDevice(const Setting &setting) {
  for (const char *name : {"ARCH", "DRIVER", "SEED", "SMS", "CHECKS", "FAIL_CALL", "FAIL_RESULT", "MEMORY",
                           "MAX_BRANCHES", "NO_DEVICE", "DEVICES", "LOG", "COUNTS"})
    unsetenv((std::string("LATHE_EMU_") + name).c_str());
  for (const auto &s : setting)
    setenv(("LATHE_EMU_" + s.first).c_str(), s.second.c_str(), 1);
  char path[] = "/tmp/lathe-emulated-XXXXXX";
  int file = mkstemp(path);
  if (file >= 0)
    ::close(file);
  log = path;
  setenv("LATHE_EMU_LOG", path, 1);
  setenv("LATHE_CUDA_DRIVER", LATHE_EMULATED_CUDA, 1);
  char message[256] = "";
  driver = lathe_cuda_open(message, sizeof(message));
  if (!driver) {
    ADD_FAILURE() << message;
    return;
  }
  // reads the settings again, the driver being open from an earlier test
  lathe_cu_context context = nullptr;
  if (driver->cuInit(0) || driver->cuDevicePrimaryCtxRetain(&context, 0))
    return;
  current = driver->cuCtxPushCurrent(context) == 0;
  if (!current)
    driver->cuDevicePrimaryCtxRelease(0);
}

CudaDevice::~CudaDevice() {
  close();
  std::remove(log.c_str());
}

std::vector<std::string> CudaDevice::findings() const {
  std::vector<std::string> lines;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> CudaDevice::close() {
  if (current) {
    for (lathe_cu_deviceptr p : memory)
      driver->cuMemFree(p);
    for (lathe_cu_module m : modules)
      driver->cuModuleUnload(m);
    driver->cuCtxPopCurrent(nullptr);
    driver->cuDevicePrimaryCtxRelease(0);
  }
  current = false;
  memory.clear();
  modules.clear();
  return findings();
}

lathe_cu_module CudaDevice::load(const std::string &ptx) {
  EXPECT_EQ(assemble(ptx), "") << ptx;
  char text[1024] = "";
  lathe_cu_jit_option options[] = {LATHE_CU_JIT_ERROR_LOG_BUFFER, LATHE_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {text, reinterpret_cast<void *>(sizeof(text))};
  lathe_cu_module m = nullptr;
  EXPECT_EQ(driver->cuModuleLoadDataEx(&m, ptx.c_str(), 2, options, values), 0) << text << "\n" << ptx;
  if (m)
    modules.push_back(m);
  return m;
}

lathe_cu_function CudaDevice::function(lathe_cu_module module, const char *name) {
  lathe_cu_function f = nullptr;
  EXPECT_EQ(driver->cuModuleGetFunction(&f, module, name), 0) << name;
  return f;
}

lathe_cu_deviceptr CudaDevice::upload(const void *data, size_t bytes) {
  lathe_cu_deviceptr p = 0;
  EXPECT_EQ(driver->cuMemAlloc(&p, bytes), 0);
  memory.push_back(p);
  if (data)
    EXPECT_EQ(driver->cuMemcpyHtoD(p, data, bytes), 0);
  return p;
}

lathe_cu_result CudaDevice::run(lathe_cu_function f, unsigned grid, unsigned block,
                                std::vector<uint64_t> parameters, unsigned shared) {
  std::vector<void *> pointers;
  for (uint64_t &p : parameters)
    pointers.push_back(&p);
  if (lathe_cu_result r =
          driver->cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, nullptr, pointers.data(), nullptr))
    return r;
  return driver->cuCtxSynchronize();
}

std::string compileIr(const std::string &ir, const char *cpu, const char *features) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseIR(llvm::MemoryBufferRef(ir, "test"), diagnostic, context);
  if (!module) {
    ADD_FAILURE() << diagnostic.getMessage().str() << " at line " << diagnostic.getLineNo();
    return "";
  }
  std::string error;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    ADD_FAILURE() << error;
    return "";
  }
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, llvm::TargetOptions(), std::nullopt, std::nullopt,
                                  llvm::CodeGenOptLevel::Aggressive));
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    ADD_FAILURE() << "no assembly for this target";
    return "";
  }
  passes.run(*module);
  return text.str().str();
}

std::string assemble(const std::string &ptx) {
#ifdef LATHE_PTXAS
  char path[] = "/tmp/lathe-ptx-XXXXXX";
  int file = mkstemp(path);
  if (file < 0)
    return "no temporary file";
  ::close(file);
  std::ofstream(path) << ptx;
  size_t at = ptx.find(".target ");
  std::string arch = ptx.substr(at + 8, ptx.find_first_of(",\n ", at + 8) - at - 8), said;
  FILE *pipe =
      popen((std::string(LATHE_PTXAS) + " -arch=" + arch + " -o /dev/null " + path + " 2>&1").c_str(), "r");
  char buffer[512];
  while (pipe && std::fgets(buffer, sizeof(buffer), pipe))
    said += buffer;
  int status = pipe ? pclose(pipe) : 1;
  std::remove(path);
  return status ? said + "(ptxas)" : "";
#else
  return "";
#endif
}

std::string entry(unsigned parameters, const std::string &body, const std::string &directives,
                  const std::string &globals, const char *target, const char *version) {
  std::string text = std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n" +
                     globals + "\n.visible .entry k(";
  for (unsigned p = 0; p < parameters; ++p)
    text += (p ? ", " : "") + std::string(".param .b64 p") + std::to_string(p);
  text += ")\n" + directives +
          "\n{\n.reg .pred %p<8>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.reg .f32 "
          "%f<8>;\n.reg "
          ".f64 %fd<8>;\n";
  return text + body + "\nret;\n}\n";
}

bool holds(const std::vector<std::string> &lines, std::initializer_list<const char *> words) {
  for (const std::string &line : lines) {
    bool all = true;
    for (const char *w : words)
      all &= line.find(w) != std::string::npos;
    if (all)
      return true;
  }
  return false;
}

} // namespace lathe::test
