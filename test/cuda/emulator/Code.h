// Code that runs: instructions with a handler and places of their operands. A register, an immediate value or
// a special register is a place in the frame: an array of 32 lanes of 2, 4 or 8 bytes, or one mask for a
// predicate. So handlers see arrays only.
#ifndef LATHE_TEST_CUDA_EMULATOR_CODE_H
#define LATHE_TEST_CUDA_EMULATOR_CODE_H

#include "test/cuda/emulator/Ptx.h"

#include <deque>
#include <memory>
#include <unordered_map>

namespace lathe::emu {

using Mask = uint32_t;
constexpr unsigned WarpSize = 32;
constexpr Mask Full = ~Mask(0);
constexpr uint32_t None = ~uint32_t(0);

struct Exec;
struct Instr;
struct Code;
using Handler = void (*)(Exec &, const Instr &, Mask);

/// What few instructions have: places of a vector's elements, targets of brx.idx, a call, registers to check.
struct Extra {
  std::vector<uint32_t> places;
  std::vector<const Instr *> targets;
  std::vector<std::string> labels;
  const Code *callee = nullptr;
  std::string calleeName;
  struct Copy {
    uint32_t from, to, bytes, stride; ///< areas of parameters, with the distance of lanes in both
  };
  std::vector<Copy> arguments, results;
  /// registers read or written that may be undefined here: place of their mask of defined lanes, name
  std::vector<std::pair<uint32_t, std::string>> reads, writes;
};

struct Instr {
  Handler fn = nullptr;
  uint32_t d = None, a = None, b = None, c = None; ///< places
  uint32_t guard = None;
  bool guardNegated = false;
  bool tracked = false;    ///< extra names registers that may be undefined
  bool wideAddress = true; ///< the address register has 64 bits
  Space space = Space::None;
  uint8_t bytes = 0; ///< of one element in memory
  uint8_t count = 1; ///< elements
  uint8_t flag = 0;  ///< what a family needs beside
  uint32_t line = 0, id = 0;
  int64_t imm = 0;
  const Instr *target = nullptr;
  const Instr *join = nullptr; ///< of branches: where all ways meet again
  Extra *extra = nullptr;
};

/// Registers that hold something when a warp starts.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  LaneEq,
  LaneLt,
  LaneLe,
  LaneGt,
  LaneGe,
  DynamicShared,
  TotalShared
};

struct Code {
  const PtxFunction *source = nullptr;
  std::string name;
  bool entry = false;
  std::deque<Instr> made;    ///< while decoding
  std::vector<Instr> instrs; ///< what runs
  std::deque<Extra> extras;
  std::vector<char> initial; ///< the frame as it starts: immediate values, and zeros elsewhere
  struct Fill {
    Special which;
    uint32_t place;
    uint8_t bytes;
  };
  std::vector<Fill> fills;
  std::vector<uint32_t> definedMasks; ///< places to be zeroed for each warp
  uint32_t paramBytes = 0;            ///< of an entry
  struct Param {
    uint32_t offset, size;
  };
  std::vector<Param> params;
  struct Area {
    uint32_t place, size, stride; ///< [lane][stride]
  };
  std::vector<Area> parameterAreas, resultAreas; ///< of a .func: places in its frame, in order
  uint32_t localBase = 0, localBytes = 0; ///< where its local variables lie, below those of what it calls
  uint32_t localEnd = 0;                  ///< of an entry: the end of what it and its callees have
  uint32_t staticShared = 0;              ///< bytes of all shared variables that it and its callees name
  uint32_t sharedEnd = 0;                 ///< of an entry: where dynamic shared memory starts
  bool dynamicShared = false;             ///< names an .extern .shared array
};

/// Decoded module: functions by name, variables with their offsets. Addresses of global variables are bound
/// by load().
struct Image {
  PtxModule ptx;
  std::vector<std::string> lines;
  std::deque<Code> codes;
  std::unordered_map<std::string, Code *> byName;
  struct Global {
    const Variable *variable;
    uint64_t address = 0;
  };
  std::unordered_map<std::string, Global> globals;
  uint32_t instructions = 0;
};

/// Shared variables start here, so that a null pointer into shared memory is no variable.
constexpr uint64_t SharedBase = 1024;
/// The same of a lane's local memory.
constexpr uint64_t LocalBase = 64;
/// Generic addresses: windows of shared and local memory, and device memory. None is one that the host could
/// follow.
constexpr uint64_t DeviceBase = uint64_t(0x01) << 56, SharedWindow = uint64_t(0x02) << 56,
                   LocalWindow = uint64_t(0x03) << 56, WindowMask = uint64_t(0xff) << 56;

/// Global variables get their addresses by `allocate`, given size and alignment. Throws PtxError.
std::unique_ptr<Image> decode(const std::string &text,
                              uint64_t (*allocate)(void *context, const Variable &variable), void *context);

} // namespace lathe::emu

#endif
