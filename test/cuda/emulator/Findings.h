// What the emulator finds wrong, named as compute-sanitizer's tools are.
#ifndef LATHE_TEST_CUDA_EMULATOR_FINDINGS_H
#define LATHE_TEST_CUDA_EMULATOR_FINDINGS_H

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lathe::emu {

struct Finding {
  enum Kind : uint8_t { Memcheck, Initcheck, Racecheck, Synccheck, Instruction, Api } kind;
  std::string text; ///< with kernel, thread and line
};

class Findings {
public:
  /// Keeps a finding and writes it to the file named by `log`, else to stderr; once for each kind, kernel and
  /// line.
  void add(Finding::Kind kind, const std::string &kernel, int line, const std::string &text);
  const std::vector<Finding> &all() const { return found; }
  void setLog(const std::string &path) { log = path; }
  static const char *name(Finding::Kind kind);

private:
  std::vector<Finding> found;
  std::set<std::pair<std::string, int>> seen;
  std::string log;
};

} // namespace lathe::emu

#endif
