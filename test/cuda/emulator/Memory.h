// Device memory: allocations with guards around them, in one reserved range of the host's addresses. A device
// address is none that the host can follow, so that host code which mixes them up crashes here as it would
// with a device.
#ifndef LATHE_TEST_CUDA_EMULATOR_MEMORY_H
#define LATHE_TEST_CUDA_EMULATOR_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lathe::emu {

struct Region {
  enum Kind : uint8_t { Device, Pinned, Variable, Constant } kind = Device;
  uint64_t begin = 0, size = 0; ///< as kernels see it
  char *host = nullptr;
  std::string name;
  std::vector<uint8_t> initialized; ///< a byte each, when initcheck is on
  std::unique_ptr<struct GlobalShadow> shadow;
  Region();
  ~Region();
};

class Memory {
public:
  Memory() = default;
  ~Memory();
  Memory(const Memory &) = delete;

  /// Null when the device's memory is used up. New memory holds `poison`.
  Region *allocate(uint64_t bytes, uint64_t align, Region::Kind kind, const std::string &name);
  /// Host memory that kernels may use.
  Region *allocatePinned(uint64_t bytes);
  bool release(uint64_t address, Region::Kind kind);
  /// The region that holds the address, or null.
  Region *find(uint64_t address);
  /// The region that holds all of [address, address + bytes), or null.
  Region *find(uint64_t address, uint64_t bytes);
  /// Says where the address lies, for messages.
  std::string describe(uint64_t address);

  uint64_t used() const { return usedBytes; }
  uint64_t total = uint64_t(16) << 30;
  size_t count(Region::Kind kind) const;
  bool initcheck = false;
  uint8_t poison = 0xcb;

private:
  std::map<uint64_t, std::unique_ptr<Region>> regions; // by begin
  std::map<uint64_t, uint64_t> freed;                  // begin -> size, for messages
  uint64_t usedBytes = 0, next = 0, reserved = 0;
  uint64_t nextDevice = 0;
};

} // namespace lathe::emu

#endif
