#include "test/cuda/emulator/Findings.h"

#include <cstdio>

namespace lathe::emu {

const char *Findings::name(Finding::Kind kind) {
  switch (kind) {
  case Finding::Memcheck:
    return "memcheck";
  case Finding::Initcheck:
    return "initcheck";
  case Finding::Racecheck:
    return "racecheck";
  case Finding::Synccheck:
    return "synccheck";
  case Finding::Instruction:
    return "instruction";
  case Finding::Api:
    return "api";
  }
  return "?";
}

void Findings::add(Finding::Kind kind, const std::string &kernel, int line, const std::string &text) {
  if (!seen.emplace(kernel + "/" + name(kind), line).second)
    return;
  found.push_back({kind, std::string(name(kind)) + ": " + text});
  FILE *out = log.empty() ? stderr : std::fopen(log.c_str(), "a");
  if (!out)
    return;
  std::fprintf(out, "%s\n", found.back().text.c_str());
  if (out != stderr)
    std::fclose(out);
}

} // namespace lathe::emu
