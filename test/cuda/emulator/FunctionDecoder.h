// Decodes one function: lays out its frame and turns statements into instructions.
#ifndef LATHE_TEST_CUDA_EMULATOR_FUNCTIONDECODER_H
#define LATHE_TEST_CUDA_EMULATOR_FUNCTIONDECODER_H

#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Flow.h"

#include <set>

namespace lathe::emu {

/// A shared variable as a function sees it.
struct SharedPlace {
  uint64_t offset = 0; ///< from SharedBase
  uint64_t size = 0;
  bool dynamic = false;
};

class FunctionDecoder {
public:
  FunctionDecoder(Image &image, Code &code, const std::map<std::string, SharedPlace> &moduleShared);
  void run();

  /// Module-level shared variables that it names.
  std::set<std::string> namedShared;
  std::set<std::string> callees;

private:
  friend class Decoder;
  struct Slot {
    uint32_t number;
    Type type;
    uint32_t place = None;
  };
  struct ParameterPlace {
    bool launch; ///< in the launch's parameters, else an area of the frame
    uint32_t offset, size, stride;
  };

  Image &image;
  Code &code;
  const PtxFunction &source;
  const std::map<std::string, SharedPlace> &moduleShared;
  std::unordered_map<std::string, Slot> registers;
  std::vector<std::string> registerNames;
  std::unordered_map<std::string, uint64_t> localOffsets;
  std::unordered_map<std::string, SharedPlace> ownShared;
  std::unordered_map<std::string, ParameterPlace> parameters;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constants;
  std::unordered_map<std::string, uint32_t> temporaries;
  std::map<Special, uint32_t> specials;
  std::vector<Uses> uses;
  size_t current = 0; ///< statement being decoded

  uint32_t allot(uint32_t bytes);
  uint32_t area(uint32_t size, uint32_t &stride);
  void layOutParameters();
  void layOutVariables();
  void decodeStatements(const Flow &flow);
  void track(const Flow &flow, const std::vector<size_t> &firstInstr);
  uint32_t placeOf(Slot &slot);
  /// Address of a variable in its own space; false when there is none of that name.
  bool symbol(const std::string &name, int line, uint64_t &address, Space &space);
  bool special(const std::string &name, Type type, uint32_t &place);
};

} // namespace lathe::emu

#endif
