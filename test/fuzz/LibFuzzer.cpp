// A target as libFuzzer wants it; LATHE_FUZZ_TARGET names it.
#include "Targets.h"

using namespace lathe::fuzz;

static const Target &target = lathe::fuzz::LATHE_FUZZ_TARGET;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target.run(std::string_view(reinterpret_cast<const char *>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  if (seed % 10 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string bytes(reinterpret_cast<const char *>(data), size);
  target.mutate(bytes, seed);
  if (bytes.size() > maxSize)
    return size;
  __builtin_memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
