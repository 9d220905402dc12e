// atom and red, a lane after the other in an order that differs between launches.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

#include <algorithm>

namespace lathe::emu {

namespace {

enum Operation : uint8_t { Add, Min, Max, And, Or, Xor, Exch, Cas, Inc, Dec };

uint64_t halves(Operation op, Type t, uint64_t old, uint64_t b) {
  auto one = [&](uint16_t p, uint16_t q) -> uint16_t {
    double x = t.kind == 'h' ? bfloatToFloat(p) : halfToFloat(p),
           y = t.kind == 'h' ? bfloatToFloat(q) : halfToFloat(q);
    if (op == Add)
      return static_cast<uint16_t>(
          roundDouble(fmaOdd(1.0, x, y), t.kind == 'h' ? BFloatFormat : HalfFormat, Rounding::Nearest));
    bool first = op == Min ? x < y || y != y : x > y || y != y;
    return first ? p : q;
  };
  uint64_t r = one(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
  if (t.packed)
    r |= static_cast<uint64_t>(one(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16))) << 16;
  return r;
}

uint64_t apply(Operation op, Type t, bool flushes, uint64_t old, uint64_t b, uint64_t c) {
  if (op == Exch)
    return b;
  if (op == Cas)
    return old == b ? c : old;
  if (t.bits == 16 && t.isFloat())
    return halves(op, t, old, b);
  if (t.kind == 'f' && t.bits == 32) {
    float p = bitsTo<float>(static_cast<uint32_t>(old)), q = bitsTo<float>(static_cast<uint32_t>(b));
    // sums in global memory flush subnormal numbers, those in shared memory do not
    float r = flushes ? flush(flush(p) + flush(q)) : p + q;
    return bitsTo<uint32_t>(canonical(r));
  }
  if (t.kind == 'f')
    return bitsTo<uint64_t>(bitsTo<double>(old) + bitsTo<double>(b));
  auto wide = [&](uint64_t v) {
    return t.isSigned() && t.bits == 32 ? static_cast<int64_t>(static_cast<int32_t>(v))
                                        : static_cast<int64_t>(v);
  };
  bool less = t.isSigned() ? wide(old) < wide(b) : old < b;
  switch (op) {
  case Add:
    return old + b;
  case Min:
    return less ? old : b;
  case Max:
    return less ? b : old;
  case And:
    return old & b;
  case Or:
    return old | b;
  case Xor:
    return old ^ b;
  case Inc:
    return old >= b ? 0 : old + 1;
  case Dec:
    return old == 0 || old > b ? b : old - 1;
  default:
    return old;
  }
}

void atomic(Exec &x, const Instr &i, Mask m) {
  auto op = static_cast<Operation>(i.extra->places[0]);
  Type t{static_cast<char>(i.extra->places[1]), static_cast<uint8_t>(i.extra->places[2]),
         i.extra->places[3] != 0};
  uint32_t second = i.extra->places[4];
  unsigned bytes = i.bytes;
  uint64_t address[WarpSize], generic[WarpSize];
  accessAddresses(x, i, m, address);
  std::copy(address, address + WarpSize, generic);
  if (checked(x))
    checkAccess(x, i, m, i.space, address, bytes, Access::Atomic);
  if (resolve(x, i, m, i.space, address, bytes, true) == Pattern::Failed)
    return;
  bool back = x.launch->id & 1;
  for (unsigned k = 0; k < WarpSize; ++k) {
    unsigned l = back ? WarpSize - 1 - k : k;
    if (!(m >> l & 1))
      continue;
    bool flushes =
        i.space == Space::Global || (i.space == Space::Generic && (generic[l] & WindowMask) != SharedWindow);
    uint64_t old = 0, b = 0, c = 0;
    std::memcpy(&old, reinterpret_cast<void *>(address[l]), bytes);
    std::memcpy(&b, x.regs + i.c + l * bytes, bytes);
    if (second != None)
      std::memcpy(&c, x.regs + second + l * bytes, bytes);
    uint64_t r = apply(op, t, flushes, old, b, c);
    std::memcpy(reinterpret_cast<void *>(address[l]), &r, bytes);
    if (i.d != None)
      std::memcpy(x.regs + i.d + l * bytes, &old, bytes);
  }
}

void decodeAtomic(Decoder &d, bool returns) {
  d.takeOneOf({"relaxed", "acquire", "release", "acq_rel"});
  d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  d.i.space = d.takeSpace();
  int op = d.takeOneOf({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  d.take("noftz");
  Type t = d.takeType();
  size_t at = returns ? 1 : 0;
  d.done(at + (op == Cas ? 3 : 2));
  bool logic = op == And || op == Or || op == Xor || op == Exch || op == Cas;
  bool fine = op >= 0 && t.totalBits() >= 16 && t.totalBits() <= 64;
  if (logic)
    fine &= t.kind == 'b' && (op == Cas || t.bits >= 32);
  else if (t.isFloat())
    fine &= op == Add || (t.bits == 16 && (op == Min || op == Max));
  else
    fine &= t.kind != 'b' && t.bits >= 32 && (op < Inc || (t.kind == 'u' && t.bits == 32)) &&
            !(op == Add && t.kind == 's' && t.bits == 64);
  if (!fine || !(d.i.space == Space::Global || d.i.space == Space::Shared || d.i.space == Space::Generic))
    d.fail("no such operation");
  d.address(d.s.operands[at], d.i.space);
  d.i.bytes = static_cast<uint8_t>(t.totalBits() / 8);
  d.i.fn = atomic;
  d.i.c = d.source(at + 1, t);
  uint32_t second = op == Cas ? d.source(at + 2, t) : None;
  d.extra().places = {static_cast<uint32_t>(op), static_cast<uint32_t>(t.kind), t.bits, t.packed, second};
  if (returns)
    d.i.d = d.s.operands[0].kind == Operand::Sink ? None : d.destination(0, t);
}

} // namespace

void addAtomic(DecodeTable &table) {
  table["atom"] = [](Decoder &d) { decodeAtomic(d, true); };
  table["red"] = [](Decoder &d) { decodeAtomic(d, false); };
}

} // namespace lathe::emu
