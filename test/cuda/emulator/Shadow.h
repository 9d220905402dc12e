// What racecheck and initcheck keep about memory: see Shadow.cpp.
#ifndef LATHE_TEST_CUDA_EMULATOR_SHADOW_H
#define LATHE_TEST_CUDA_EMULATOR_SHADOW_H

#include <cstdint>
#include <vector>

namespace lathe::emu {

/// One access to a word: who, when, which of its four bytes.
struct Touch {
  uint64_t launch = 0; ///< 0: none
  uint64_t block = 0;
  uint32_t epoch = 0, laneClock = 0;
  uint32_t line = 0;
  uint16_t thread = 0;
  uint8_t bytes = 0;
  bool atomic = false;
};

/// The last write to a word, and the last two reads by different threads.
struct WordShadow {
  Touch write, read, earlier;
};

struct GlobalShadow {
  std::vector<WordShadow> words;
};
struct SharedShadow {
  uint32_t epoch = 1; ///< barriers passed by the block
  std::vector<WordShadow> words;
};

} // namespace lathe::emu

#endif
