// ld and st in all spaces. Handlers see arrays of host addresses: resolve() checks what a device would and
// turns addresses of a space into them.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"

#include <cstdio>
#include <cstring>

namespace lathe::emu {

void accessAddresses(Exec &x, const Instr &i, Mask m, uint64_t *address) {
  uint64_t offset = static_cast<uint64_t>(i.imm);
  if (i.wideAddress) {
    const uint64_t *a = x.reg<uint64_t>(i.a);
    LATHE_LANES address[l] = a[l] + offset;
  } else {
    const uint32_t *a = x.reg<uint32_t>(i.a);
    LATHE_LANES address[l] = static_cast<uint32_t>(a[l] + static_cast<uint32_t>(offset));
  }
  if (m != Full) {
    uint64_t first = address[lowestLane(m)];
    LATHE_LANES address[l] = (m >> l & 1) ? address[l] : first;
  }
}

namespace {

std::string hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

const char *nameOf(Space s) {
  switch (s) {
  case Space::Global:
    return "global";
  case Space::Const:
    return "const";
  case Space::Shared:
    return "shared";
  case Space::Local:
    return "local";
  case Space::Param:
    return "param";
  default:
    return "generic";
  }
}

Pattern refuse(Exec &x, const Instr &i, unsigned lane, Space space, uint64_t address, unsigned bytes,
               bool write, const std::string &why) {
  report(x, i, Mask(1) << lane, Finding::Memcheck,
         std::string("invalid ") + nameOf(space) + (write ? " write of " : " read of ") +
             std::to_string(bytes) + " bytes at " + hex(address) + ": " + why);
  return Pattern::Failed;
}

/// Bounds of a space that lies in one piece.
struct Piece {
  uint64_t begin = 0, size = 0;
  char *host = nullptr;
};

/// Whether each address is within the piece and aligned; vectorised.
bool fits(const uint64_t *address, const Piece &p, unsigned bytes) {
  if (p.size < bytes)
    return false;
  uint64_t most = p.size - bytes, bad = 0, low = bytes - 1;
  LATHE_LANES bad |= static_cast<uint64_t>(address[l] - p.begin > most) | (address[l] & low);
  return !bad;
}

Pattern patternOf(const uint64_t *address, Mask m, unsigned bytes) {
  uint64_t first = address[0], different = 0, apart = 0;
  LATHE_LANES {
    different |= address[l] ^ first;
    apart |= address[l] ^ (first + l * bytes);
  }
  if (!different)
    return Pattern::Uniform;
  return m == Full && !apart ? Pattern::Consecutive : Pattern::Scattered;
}

Pattern resolvePiece(Exec &x, const Instr &i, Mask m, Space space, uint64_t *address, unsigned bytes,
                     bool write, const Piece &p, const char *outside) {
  if (!fits(address, p, bytes)) {
    for (unsigned l = 0; l < WarpSize; ++l) {
      if (!(m >> l & 1))
        continue;
      if (address[l] & (bytes - 1))
        return refuse(x, i, l, space, address[l], bytes, write, "not aligned");
      if (p.size < bytes || address[l] - p.begin > p.size - bytes)
        return refuse(x, i, l, space, address[l], bytes, write,
                      std::string(outside) + " of " + std::to_string(p.size) + " bytes");
    }
  }
  uint64_t bias = reinterpret_cast<uint64_t>(p.host) - p.begin;
  LATHE_LANES address[l] += bias;
  return patternOf(address, m, bytes);
}

Pattern resolveGlobal(Exec &x, const Instr &i, Mask m, Space space, uint64_t *address, unsigned bytes,
                      bool write) {
  const Region *&hint = x.launch->hints[i.id];
  if (!hint)
    hint = x.launch->memory->find(address[lowestLane(m)]);
  bool constant = false;
  if (hint && fits(address, Piece{hint->begin, hint->size, hint->host}, bytes)) {
    uint64_t bias = reinterpret_cast<uint64_t>(hint->host) - hint->begin;
    constant = hint->kind == Region::Constant;
    if (!(constant && write)) {
      LATHE_LANES address[l] += bias;
      return patternOf(address, m, bytes);
    }
  }
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    Region *r = x.launch->memory->find(address[l], bytes);
    if (!r)
      return refuse(x, i, l, space, address[l], bytes, write, x.launch->memory->describe(address[l]));
    if (address[l] & (bytes - 1))
      return refuse(x, i, l, space, address[l], bytes, write, "not aligned");
    if (write && r->kind == Region::Constant)
      return refuse(x, i, l, space, address[l], bytes, write, "constant memory");
    hint = r;
    address[l] += reinterpret_cast<uint64_t>(r->host) - r->begin;
  }
  uint64_t first = address[lowestLane(m)];
  LATHE_LANES address[l] = (m >> l & 1) ? address[l] : first;
  return patternOf(address, m, bytes);
}

Pattern resolveLocal(Exec &x, const Instr &i, Mask m, uint64_t *address, unsigned bytes, bool write) {
  Warp &w = *x.warp;
  uint64_t size = w.localStride;
  for (unsigned l = 0; l < WarpSize; ++l) {
    if (!(m >> l & 1))
      continue;
    if (address[l] & (bytes - 1))
      return refuse(x, i, l, Space::Local, address[l], bytes, write, "not aligned");
    if (size < bytes || address[l] - LocalBase > size - bytes)
      return refuse(x, i, l, Space::Local, address[l], bytes, write,
                    "outside the thread's local memory of " + std::to_string(size) + " bytes");
  }
  char *base = w.local.data();
  uint64_t stride = size;
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1)
      address[l] = reinterpret_cast<uint64_t>(base) + l * stride + (address[l] - LocalBase);
  uint64_t first = address[lowestLane(m)];
  LATHE_LANES address[l] = (m >> l & 1) ? address[l] : first;
  return Pattern::Scattered;
}

/// Lanes whose generic addresses are in different spaces, one space after the other.
Pattern resolveMixed(Exec &x, const Instr &i, Mask m, uint64_t *address, unsigned bytes, bool write) {
  uint64_t result[WarpSize] = {};
  for (Mask left = m; left;) {
    uint64_t window = address[lowestLane(left)] & WindowMask;
    Mask same = left & lanesWhere([&](unsigned l) { return (address[l] & WindowMask) == window; });
    uint64_t part[WarpSize];
    for (unsigned l = 0; l < WarpSize; ++l)
      part[l] = address[same >> l & 1 ? l : lowestLane(same)];
    bool special = window == SharedWindow || window == LocalWindow;
    if (special)
      for (uint64_t &a : part)
        a -= window;
    Space space = window == SharedWindow  ? Space::Shared
                  : window == LocalWindow ? Space::Local
                                          : Space::Global;
    if (resolve(x, i, same, space, part, bytes, write) == Pattern::Failed)
      return Pattern::Failed;
    for (unsigned l = 0; l < WarpSize; ++l)
      if (same >> l & 1)
        result[l] = part[l];
    left &= ~same;
  }
  for (unsigned l = 0; l < WarpSize; ++l)
    address[l] = result[m >> l & 1 ? l : lowestLane(m)];
  return Pattern::Scattered;
}

} // namespace

Pattern resolve(Exec &x, const Instr &i, Mask m, Space space, uint64_t *address, unsigned bytes, bool write) {
  switch (space) {
  case Space::Global:
  case Space::Const:
    return resolveGlobal(x, i, m, space, address, bytes, write);
  case Space::Shared:
    return resolvePiece(x, i, m, space, address, bytes, write,
                        Piece{SharedBase, x.block->shared.size(), x.block->shared.data()},
                        "outside the block's shared memory");
  case Space::Local:
    return resolveLocal(x, i, m, address, bytes, write);
  case Space::Param:
    if (write)
      return refuse(x, i, lowestLane(m), space, address[lowestLane(m)], bytes, write,
                    "parameters are read only");
    return resolvePiece(x, i, m, space, address, bytes, write,
                        Piece{0, x.launch->params.size(), x.launch->params.data()}, "outside the parameters");
  case Space::Reg:
    // a parameter of a call: [lane][stride] in the frame
    for (unsigned l = 0; l < WarpSize; ++l)
      address[l] = reinterpret_cast<uint64_t>(x.regs + i.b) + l * i.c + static_cast<uint64_t>(i.imm);
    return Pattern::Scattered;
  default:
    break;
  }
  uint64_t window = address[lowestLane(m)] & WindowMask, different = 0;
  LATHE_LANES different |= (address[l] & WindowMask) ^ window;
  if (different)
    return resolveMixed(x, i, m, address, bytes, write);
  if (window != SharedWindow && window != LocalWindow)
    return resolveGlobal(x, i, m, Space::Global, address, bytes, write);
  LATHE_LANES address[l] -= window;
  return resolve(x, i, m, window == SharedWindow ? Space::Shared : Space::Local, address, bytes, write);
}

namespace {

/// Memory of type M into registers of type R.
template <class M, class R>
void load(Exec &x, const Instr &i, Mask m) {
  uint64_t address[WarpSize];
  unsigned bytes = static_cast<unsigned>(sizeof(M)) * i.count;
  if (i.space != Space::Reg)
    accessAddresses(x, i, m, address);
  if (checked(x))
    checkAccess(x, i, m, i.space, address, bytes, Access::Read);
  Pattern pattern = resolve(x, i, m, i.space, address, bytes, false);
  if (pattern == Pattern::Failed)
    return;
  for (unsigned v = 0; v < i.count; ++v) {
    R *d = x.reg<R>(i.count == 1 ? i.d : i.extra->places[v]);
    uint64_t at = v * sizeof(M);
    if (pattern == Pattern::Uniform) {
      M value;
      std::memcpy(&value, reinterpret_cast<const char *>(address[0] + at), sizeof(M));
      eachLane(d, m, [value](unsigned) { return static_cast<R>(value); });
    } else if (pattern == Pattern::Consecutive && i.count == 1) {
      const M *from = reinterpret_cast<const M *>(address[0]);
      LATHE_LANES d[l] = static_cast<R>(from[l]);
    } else {
      R r[WarpSize];
      for (unsigned l = 0; l < WarpSize; ++l)
        r[l] = static_cast<R>(*reinterpret_cast<const M *>(address[l] + at));
      eachLane(d, m, [&r](unsigned l) { return r[l]; });
    }
  }
}

template <class M, class R>
void store(Exec &x, const Instr &i, Mask m) {
  uint64_t address[WarpSize];
  unsigned bytes = static_cast<unsigned>(sizeof(M)) * i.count;
  if (i.space != Space::Reg)
    accessAddresses(x, i, m, address);
  if (checked(x))
    checkAccess(x, i, m, i.space, address, bytes, Access::Write);
  Pattern pattern = resolve(x, i, m, i.space, address, bytes, true);
  if (pattern == Pattern::Failed)
    return;
  for (unsigned v = 0; v < i.count; ++v) {
    const R *d = x.reg<R>(i.count == 1 ? i.d : i.extra->places[v]);
    uint64_t at = v * sizeof(M);
    if (pattern == Pattern::Consecutive && i.count == 1) {
      M *to = reinterpret_cast<M *>(address[0]);
      LATHE_LANES to[l] = static_cast<M>(d[l]);
    } else {
      // which lane of several at one address wins is not defined: here the order of launches alternates
      bool back = x.launch->id & 1;
      for (unsigned k = 0; k < WarpSize; ++k) {
        unsigned l = back ? WarpSize - 1 - k : k;
        if (m >> l & 1)
          *reinterpret_cast<M *>(address[l] + at) = static_cast<M>(d[l]);
      }
    }
  }
}

template <class M>
Handler pickRegister(unsigned bytes, bool isLoad) {
  switch (bytes) {
  case 2:
    return isLoad ? load<M, uint16_t> : store<M, uint16_t>;
  case 4:
    return isLoad ? load<M, uint32_t> : store<M, uint32_t>;
  case 8:
    return isLoad ? load<M, uint64_t> : store<M, uint64_t>;
  }
  return nullptr;
}

Handler pick(Type t, unsigned bytes, bool isLoad) {
  bool s = t.isSigned() && isLoad;
  switch (t.totalBits()) {
  case 8:
    return s ? pickRegister<int8_t>(bytes, isLoad) : pickRegister<uint8_t>(bytes, isLoad);
  case 16:
    return s ? pickRegister<int16_t>(bytes, isLoad) : pickRegister<uint16_t>(bytes, isLoad);
  case 32:
    return s ? pickRegister<int32_t>(bytes, isLoad) : pickRegister<uint32_t>(bytes, isLoad);
  case 64:
    return pickRegister<uint64_t>(bytes, isLoad);
  }
  return nullptr;
}

/// Modifiers that say how memory is cached or ordered; what they order is for the checks of Shadow.cpp.
void takeHints(Decoder &d) {
  d.takeOneOf({"weak", "relaxed", "acquire", "release", "volatile"});
  d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  d.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.take("nc");
  d.takeOneOf(
      {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
}

void decodeAccess(Decoder &d, bool isLoad) {
  takeHints(d);
  // flag: atomic accesses take no part in races
  d.i.flag = d.s.has("relaxed") || d.s.has("acquire") || d.s.has("release") || d.s.has("volatile");
  bool readOnly = d.s.has("nc");
  d.i.space = d.takeSpace();
  int vector = d.takeOneOf({"v2", "v4", "v8"});
  Type t = d.takeType();
  d.done(2);
  if (t.kind == 'p' || t.totalBits() > 64)
    d.fail("no such type");
  if (!isLoad && (readOnly || d.i.space == Space::Const))
    d.fail("no store to read-only memory");
  size_t at = isLoad ? 1 : 0, value = isLoad ? 0 : 1;
  d.address(d.s.operands[at], d.i.space);
  d.i.bytes = static_cast<uint8_t>(std::max(1u, t.totalBits() / 8));
  const Operand &o = d.s.operands[value];
  unsigned registerBytes = std::max(2u, t.totalBits() / 8u);
  if (vector >= 0) {
    size_t n = size_t(2) << vector;
    if (o.kind != Operand::Vector || o.elements.size() != n || n * d.i.bytes > 32)
      d.fail("expected a vector of " + std::to_string(n));
    d.i.count = static_cast<uint8_t>(n);
    std::vector<uint32_t> places;
    bool first = true;
    for (const Operand &e : o.elements) {
      unsigned bytes = registerBytes;
      if (e.kind == Operand::Name && d.registerBytes(e.name))
        bytes = d.registerBytes(e.name);
      if (e.kind != Operand::Sink) {
        if (!first && bytes != registerBytes)
          d.fail("registers of different sizes");
        registerBytes = bytes;
        first = false;
      }
      places.push_back(isLoad ? d.destinationOf(e.kind == Operand::Sink ? "_" : e.name, t, true)
                              : d.sourceOf(e, t, true));
    }
    d.extra().places = places;
  } else if (isLoad) {
    d.i.d = d.destination(0, t, true, &registerBytes);
  } else {
    if (o.kind == Operand::Name && d.registerBytes(o.name))
      registerBytes = d.registerBytes(o.name);
    d.i.d = d.source(1, t, true);
  }
  d.i.fn = pick(t, registerBytes, isLoad);
  if (!d.i.fn)
    d.fail("no such type");
}

} // namespace

void addMemory(DecodeTable &table) {
  table["ld"] = [](Decoder &d) { decodeAccess(d, true); };
  table["ldu"] = [](Decoder &d) { decodeAccess(d, true); };
  table["st"] = [](Decoder &d) { decodeAccess(d, false); };
  for (const char *name : {"prefetch", "prefetchu"})
    table[name] = [](Decoder &d) {
      d.takeSpace();
      d.takeOneOf({"L1", "L2"});
      d.done(1);
      Space space = Space::Generic;
      d.address(d.s.operands[0], space);
      d.i.fn = [](Exec &, const Instr &, Mask) {};
    };
}

} // namespace lathe::emu
