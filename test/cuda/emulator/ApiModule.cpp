// Modules, functions, launches.
#include "test/cuda/emulator/Device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace lathe::emu;

namespace {

/// The highest ISA that a driver's compiler takes.
int newestPtx(int driver) { return driver >= 13000 ? 90 : driver >= 12020 ? 82 : 74; }

struct Log {
  char *text = nullptr;
  size_t size = 0;
};

Log errorLog(unsigned count, const lathe_cu_jit_option *options, void **values) {
  Log log;
  for (unsigned k = 0; k < count; ++k) {
    if (options[k] == LATHE_CU_JIT_ERROR_LOG_BUFFER)
      log.text = static_cast<char *>(values[k]);
    if (options[k] == LATHE_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      log.size = reinterpret_cast<size_t>(values[k]);
  }
  return log;
}

lathe_cu_result refuseModule(Device &device, const Log &log, lathe_cu_result result, const std::string &why) {
  if (log.text && log.size)
    std::snprintf(log.text, log.size, "%s", why.c_str());
  // versions and targets are what a caller tries; text that is wrong is a defect
  if (result == LATHE_CU_ERROR_INVALID_PTX)
    device.findings.add(Finding::Instruction, "module", static_cast<int>(device.calls), "PTX: " + why);
  return result;
}

/// Whether PTX for that target runs on the device: any up to its own, those with an 'a' on their own only.
bool targetFits(const std::string &target, int arch) {
  if (target.compare(0, 3, "sm_"))
    return false;
  int n = std::atoi(target.c_str() + 3);
  char last = target.back();
  if (last == 'a' || last == 'f')
    return n == arch;
  return n <= arch;
}

/// Writes initial values, with addresses of other variables in them.
void initialize(Device &device, Module &m, const Image &image) {
  for (const auto &g : image.globals) {
    const Variable &v = *g.second.variable;
    Region *r = device.memory->find(g.second.address);
    if (!r)
      continue;
    std::memset(r->host, 0, v.size);
    std::copy(v.bytes.begin(), v.bytes.end(), r->host);
    for (const auto &s : v.symbols) {
      auto to = image.globals.find(s.name);
      if (to == image.globals.end())
        throw PtxError(v.line, "'" + s.name + "' is no variable");
      uint64_t address = to->second.address + static_cast<uint64_t>(s.offset);
      std::memcpy(r->host + s.at, &address, std::min<uint64_t>(8, v.size - s.at));
    }
    if (!r->initialized.empty())
      std::fill(r->initialized.begin(), r->initialized.end(), 1);
  }
  (void)m;
}

struct Allocation {
  Device *device;
  Module *module;
};

uint64_t allocateVariable(void *context, const Variable &v) {
  auto *a = static_cast<Allocation *>(context);
  Region *r = a->device->memory->allocate(std::max<uint64_t>(1, v.size), v.align,
                                          v.space == Space::Const ? Region::Constant : Region::Variable,
                                          "'" + v.name + "'");
  if (!r)
    throw PtxError(v.line, "no memory for '" + v.name + "'");
  a->module->variables.push_back(r->begin);
  return r->begin;
}

void discard(Device &device, Module *m) {
  for (uint64_t address : m->variables)
    if (!device.memory->release(address, Region::Variable))
      device.memory->release(address, Region::Constant);
  for (auto &f : m->functions)
    device.functions.erase(f.second.get());
  device.modules.erase(m);
  delete m;
}

lathe_cu_result resultOf(const Findings &findings, size_t before) {
  for (size_t k = before; k < findings.all().size(); ++k)
    switch (findings.all()[k].kind) {
    case Finding::Memcheck:
      return findings.all()[k].text.find("not aligned") != std::string::npos
                 ? LATHE_CU_ERROR_MISALIGNED_ADDRESS
                 : LATHE_CU_ERROR_ILLEGAL_ADDRESS;
    case Finding::Instruction:
      return LATHE_CU_ERROR_ILLEGAL_INSTRUCTION;
    default:
      return LATHE_CU_ERROR_LAUNCH_FAILED;
    }
  return LATHE_CU_ERROR_LAUNCH_FAILED;
}

/// What a launch needs, copied when it is called.
struct Plan {
  const Module *module;
  const Code *code;
  unsigned grid[3], block[3], dynamicShared;
  std::vector<char> params;
  int blocksPerSm;
};

void run(Device &device, const Plan &plan) {
  Launch launch;
  launch.image = plan.module->image.get();
  launch.code = plan.code;
  std::copy(plan.grid, plan.grid + 3, launch.grid);
  std::copy(plan.block, plan.block + 3, launch.block);
  launch.dynamicShared = plan.dynamicShared;
  launch.params = plan.params;
  launch.memory = device.memory;
  launch.findings = &device.findings;
  launch.id = ++device.launches;
  launch.random.seed(device.config.seed * 1000003 + launch.id);
  launch.maxBranches = device.config.maxBranches;
  launch.sms = device.config.sms;
  launch.residentBlocks =
      std::min(64u, device.config.sms * static_cast<unsigned>(std::max(1, plan.blocksPerSm)));
  launch.initcheck = device.config.initcheck;
  launch.racecheck = device.config.racecheck;
  size_t before = device.findings.all().size();
  runLaunch(launch);
  // a race or a read of unset memory lets the kernel end, but not the program believe in it
  if (launch.failed || device.findings.all().size() != before)
    device.sticky = resultOf(device.findings, before);
}

int blocksPerSm(const Device &device, const Function &f, unsigned threads, size_t dynamicShared) {
  unsigned warps = (threads + 31) / 32;
  unsigned byThreads = warps ? 64 / warps : 0;
  size_t shared = f.code->staticShared + dynamicShared;
  size_t byShared = shared ? device.sharedPerSm() / (shared + 1024) : 32;
  return static_cast<int>(std::min<size_t>({32, byThreads, byShared}));
}

} // namespace

namespace {
/// Under the name of its content, so that equal modules make one file.
void keepText(const std::string &folder, const char *text) {
  uint64_t hash = 14695981039346656037u;
  for (const char *p = text; *p; ++p)
    hash = (hash ^ static_cast<unsigned char>(*p)) * 1099511628211u;
  char name[32];
  std::snprintf(name, sizeof(name), "/%016llx.ptx", static_cast<unsigned long long>(hash));
  if (FILE *f = std::fopen((folder + name).c_str(), "w")) {
    std::fputs(text, f);
    std::fclose(f);
  }
}
} // namespace

extern "C" lathe_cu_result cuModuleLoadDataEx(lathe_cu_module *module, const void *data, unsigned count,
                                              lathe_cu_jit_option *options, void **values) {
  LATHE_EMU_CALL("cuModuleLoadDataEx", Call::Working);
  if (!module || !data)
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (device.breaksCapture())
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const char *text = static_cast<const char *>(data);
  Log log = errorLog(count, options, values);
  if (!std::strncmp(text, "\177ELF", 4))
    return refuseModule(device, log, LATHE_CU_ERROR_NO_BINARY_FOR_GPU, "machine code is not emulated");
  if (!device.config.keep.empty())
    keepText(device.config.keep, text);
  std::string other;
  if (!device.config.text.empty()) {
    std::ifstream in(device.config.text);
    other.assign(std::istreambuf_iterator<char>(in), {});
    text = other.c_str();
  }
  auto m = std::make_unique<Module>();
  m->ordinal = device.ordinal;
  Allocation allocation{&device, m.get()};
  try {
    m->image = decode(text, allocateVariable, &allocation);
    initialize(device, *m, *m->image);
  } catch (const PtxError &e) {
    for (uint64_t address : m->variables)
      if (!device.memory->release(address, Region::Variable))
        device.memory->release(address, Region::Constant);
    return refuseModule(device, log, LATHE_CU_ERROR_INVALID_PTX, e.what());
  }
  lathe_cu_result refusal = LATHE_CU_SUCCESS;
  std::string why;
  if (m->image->ptx.version > newestPtx(device.config.driver)) {
    refusal = LATHE_CU_ERROR_UNSUPPORTED_PTX_VERSION;
    why = "PTX of ISA " + std::to_string(m->image->ptx.version) + " is newer than the driver";
  } else if (!targetFits(m->image->ptx.target, device.config.arch)) {
    refusal = LATHE_CU_ERROR_NO_BINARY_FOR_GPU;
    why = "PTX for " + m->image->ptx.target + " does not run on sm_" + std::to_string(device.config.arch);
  }
  Module *made = m.release();
  device.modules.insert(made);
  if (refusal != LATHE_CU_SUCCESS) {
    discard(device, made);
    return refuseModule(device, log, refusal, why);
  }
  *module = reinterpret_cast<lathe_cu_module>(made);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuModuleUnload(lathe_cu_module module) {
  LATHE_EMU_CALL("cuModuleUnload", Call::Context, true);
  auto *m = reinterpret_cast<Module *>(module);
  if (!device.modules.count(m))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  device.completeAll();
  discard(device, m);
  return call.finish();
}

extern "C" lathe_cu_result cuModuleGetFunction(lathe_cu_function *function, lathe_cu_module module,
                                               const char *name) {
  LATHE_EMU_CALL("cuModuleGetFunction", Call::Context);
  auto *m = reinterpret_cast<Module *>(module);
  if (!device.modules.count(m) || !function || !name)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  auto code = m->image->byName.find(name);
  if (code == m->image->byName.end() || !code->second->entry)
    return LATHE_CU_ERROR_NOT_FOUND;
  auto &f = m->functions[name];
  if (!f) {
    f = std::make_unique<Function>();
    f->module = m;
    f->code = code->second;
    f->maxDynamicShared = std::max(0, 49152 - static_cast<int>(f->code->staticShared));
    device.functions.insert(f.get());
  }
  *function = reinterpret_cast<lathe_cu_function>(f.get());
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuModuleGetGlobal(lathe_cu_deviceptr *address, size_t *bytes,
                                             lathe_cu_module module, const char *name) {
  LATHE_EMU_CALL("cuModuleGetGlobal", Call::Context);
  auto *m = reinterpret_cast<Module *>(module);
  if (!device.modules.count(m) || !name)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  auto g = m->image->globals.find(name);
  if (g == m->image->globals.end())
    return LATHE_CU_ERROR_NOT_FOUND;
  if (address)
    *address = g->second.address;
  if (bytes)
    *bytes = g->second.variable->size;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuFuncGetAttribute(int *value, lathe_cu_function_attribute attribute,
                                              lathe_cu_function function) {
  LATHE_EMU_CALL("cuFuncGetAttribute", Call::Context);
  auto *f = reinterpret_cast<Function *>(function);
  if (!device.functions.count(f) || !value)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  const PtxFunction &p = *f->code->source;
  const unsigned *limit = p.reqntid[0] ? p.reqntid : p.maxntid;
  switch (attribute) {
  case LATHE_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = limit[0] ? static_cast<int>(limit[0] * limit[1] * limit[2]) : 1024;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(f->code->staticShared);
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = 0;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = static_cast<int>(f->code->localEnd);
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 32; // nothing allocates registers here
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = f->module->image->ptx.version;
    return LATHE_CU_SUCCESS;
  case LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = f->maxDynamicShared;
    return LATHE_CU_SUCCESS;
  }
  return LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuFuncSetAttribute(lathe_cu_function function,
                                              lathe_cu_function_attribute attribute, int value) {
  LATHE_EMU_CALL("cuFuncSetAttribute", Call::Context);
  auto *f = reinterpret_cast<Function *>(function);
  if (!device.functions.count(f))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (attribute != LATHE_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<unsigned>(value) + f->code->staticShared > device.sharedOptin())
    return LATHE_CU_ERROR_INVALID_VALUE;
  f->maxDynamicShared = value;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                       lathe_cu_function function,
                                                                       int threads, size_t shared) {
  LATHE_EMU_CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", Call::Context);
  auto *f = reinterpret_cast<Function *>(function);
  if (!device.functions.count(f))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (!blocks || threads < 1 || threads > 1024)
    return LATHE_CU_ERROR_INVALID_VALUE;
  *blocks = blocksPerSm(device, *f, static_cast<unsigned>(threads), shared);
  return LATHE_CU_SUCCESS;
}

lathe_cu_result lathe::emu::planLaunch(Device &device, lathe_cu_function function, const unsigned (&grid)[3],
                                       const unsigned (&block)[3], unsigned shared, void **parameters, void **extra,
                                       std::function<void()> &action) {
  auto *f = reinterpret_cast<Function *>(function);
  if (!device.functions.count(f) || f->module->ordinal != device.ordinal)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  const Code &code = *f->code;
  uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
  if (!grid[0] || !grid[1] || !grid[2] || !threads || grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535 ||
      block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024 || extra || (!parameters && !code.params.empty()))
    return LATHE_CU_ERROR_INVALID_VALUE;
  const PtxFunction &p = *code.source;
  if (p.reqntid[0] && !std::equal(block, block + 3, p.reqntid))
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (p.maxntid[0] && threads > uint64_t(p.maxntid[0]) * p.maxntid[1] * p.maxntid[2])
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (shared > static_cast<unsigned>(f->maxDynamicShared) || code.staticShared > 49152)
    return LATHE_CU_ERROR_INVALID_VALUE;
  Plan plan;
  plan.module = f->module;
  plan.code = &code;
  std::copy(grid, grid + 3, plan.grid);
  std::copy(block, block + 3, plan.block);
  plan.dynamicShared = shared;
  plan.params.resize(code.paramBytes);
  for (size_t k = 0; k < code.params.size(); ++k)
    std::memcpy(plan.params.data() + code.params[k].offset, parameters[k], code.params[k].size);
  plan.blocksPerSm = blocksPerSm(device, *f, static_cast<unsigned>(threads), shared);
  action = [&device, plan = std::move(plan)] { run(device, plan); };
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuLaunchKernel(lathe_cu_function function, unsigned gridX, unsigned gridY,
                                          unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
                                          unsigned shared, lathe_cu_stream stream, void **parameters,
                                          void **extra) {
  LATHE_EMU_CALL("cuLaunchKernel", Call::Working);
  Stream *s = device.stream(stream);
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  std::function<void()> action;
  lathe_cu_result result =
      planLaunch(device, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, parameters, extra, action);
  if (result == LATHE_CU_SUCCESS)
    device.enqueue(*s, Node::Kernel, std::move(action));
  return result;
}
