// The table of architectures, what is asked of them, and what PTX tells about kernels.
#include "passes/codegen/nvptx/Images.h"
#include "passes/codegen/nvptx/Assembler.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace lathe::nvptx {

static constexpr Arch archs[] = {
    {"sm_80", 80, "+ptx70"},    {"sm_86", 86, "+ptx71"},    {"sm_87", 87, "+ptx74"},    {"sm_89", 89, "+ptx78"},    {"sm_90", 90, "+ptx78"},
    {"sm_90a", 90, "+ptx80"},   {"sm_100", 100, "+ptx86"},  {"sm_100a", 100, "+ptx86"}, {"sm_103", 103, "+ptx88"},
    {"sm_103a", 103, "+ptx88"}, {"sm_120", 120, "+ptx87"},  {"sm_120a", 120, "+ptx87"}, {"sm_121", 121, "+ptx88"},
    {"sm_121a", 121, "+ptx88"}};

const Arch &portableArch() { return archs[0]; }

const Arch *findArch(StringRef name) {
  for (const Arch &arch : archs)
    if (name == arch.name)
      return &arch;
  return nullptr;
}

std::string refuseImages(const codegen::Processor &processor) {
  const std::pair<const char *, const std::vector<std::string> *> wishes[] = {{"--arch", &processor.archs}, {"--cubin", &processor.cubins}};
  for (auto [option, names] : wishes)
    for (const std::string &name : *names)
      if (!findArch(name)) {
        std::string known;
        for (const Arch &arch : archs)
          known += (known.empty() ? "" : ", ") + std::string(arch.name);
        return std::string(option) + " '" + name + "': expected one of " + known;
      }
  if (processor.cubins.empty())
    return {};
  std::optional<std::string> program = findAssembler();
  if (!program)
    return "--cubin: no ptxas in PATH or CUDA_HOME/bin, and LATHE_PTXAS names none (pip install nvidia-cuda-nvcc has one)";
  Expected<std::string> version = assemblerVersion(*program);
  return version ? std::string() : "--cubin: " + toString(version.takeError());
}

/// A name as PTX has them.
static StringRef takeName(StringRef text) {
  return text.take_while([](char c) { return isAlnum(c) || c == '_' || c == '$' || c == '.'; });
}

static int64_t numberBehind(StringRef line, StringRef words) {
  int64_t n = 0;
  size_t at = line.find(words);
  return at == StringRef::npos || line.substr(at + words.size()).ltrim().consumeInteger(10, n) ? 0 : n;
}

static void addRegisters(StringRef log, std::vector<codegen::KernelFacts> &kernels) {
  codegen::KernelFacts *current = nullptr;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (size_t at = line.find("entry function '"); at != StringRef::npos) {
      StringRef name = line.substr(at + 16).split('\'').first;
      auto found = find_if(kernels, [&](const codegen::KernelFacts &k) { return k.name == name; });
      current = found == kernels.end() ? nullptr : &*found;
    } else if (current && line.contains("bytes spill stores")) {
      current->spilled = numberBehind(line, "stack frame,");
    } else if (current && line.contains("Used ")) {
      current->registers = int(numberBehind(line, "Used "));
      current = nullptr;
    }
  }
}

std::vector<codegen::KernelFacts> kernelFacts(const codegen::Image &image) {
  std::vector<codegen::KernelFacts> kernels;
  std::vector<std::pair<StringRef, int64_t>> shared; // arrays of the module, and of the kernel that is read
  SmallVector<StringRef> lines;
  StringRef(image.code).split(lines, '\n');
  for (StringRef line : lines) {
    if (size_t at = line.find(".entry "); at != StringRef::npos) {
      kernels.emplace_back().name = takeName(line.substr(at + 7).ltrim()).str();
    } else if (!kernels.empty() && line.contains(".reqntid")) {
      kernels.back().threads = int(numberBehind(line, ".reqntid"));
    } else if (line.contains(".shared ") && line.contains(".b8 ")) {
      StringRef name = takeName(line.substr(line.find(".b8 ") + 4));
      shared.push_back({name, numberBehind(line, (name + "[").str())});
    } else if (!kernels.empty()) {
      // an array counts for the first mention of it in a kernel
      for (auto [name, bytes] : shared)
        for (size_t at = line.find(name); at != StringRef::npos; at = line.find(name, at + 1))
          if ((at == 0 || takeName(line.substr(at - 1)).empty()) && takeName(line.substr(at)) == name &&
              !is_contained(kernels.back().arrays, name)) {
            kernels.back().arrays.push_back(name.str());
            kernels.back().shared += bytes;
          }
    }
  }
  if (std::optional<std::string> program = findAssembler(); program && !kernels.empty()) {
    if (Expected<Assembled> code = assemble(*program, image.code, image.target))
      addRegisters(code->log, kernels);
    else
      consumeError(code.takeError());
  }
  return kernels;
}

} // namespace lathe::nvptx
