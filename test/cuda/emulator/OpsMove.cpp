// mov: registers, values, addresses of variables, vectors packed into a register and taken apart.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/FunctionDecoder.h"

#include <cstring>

namespace lathe::emu {
namespace {

template <class T>
void move(Exec &x, const Instr &i, Mask m) {
  const T *a = x.reg<T>(i.a);
  eachLane(x.reg<T>(i.d), m, [a](unsigned l) { return a[l]; });
}
void movePredicate(Exec &x, const Instr &i, Mask m) { x.pred(i.d) = (x.pred(i.d) & ~m) | (x.pred(i.a) & m); }
template <bool value>
void setPredicate(Exec &x, const Instr &i, Mask m) { x.pred(i.d) = value ? x.pred(i.d) | m : x.pred(i.d) & ~m; }
/// places of the elements, of `bytes` each, into one register of count * bytes.
void packVector(Exec &x, const Instr &i, Mask m) {
  unsigned n = static_cast<unsigned>(i.extra->places.size()), bytes = i.bytes;
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      // the register may be one of the elements
      char r[16];
      for (unsigned k = 0; k < n; ++k)
        std::memcpy(r + k * bytes, x.regs + i.extra->places[k] + l * bytes, bytes);
      std::memcpy(x.regs + i.d + l * n * bytes, r, n * bytes);
    }
}
void unpackVector(Exec &x, const Instr &i, Mask m) {
  unsigned n = static_cast<unsigned>(i.extra->places.size()), bytes = i.bytes;
  for (unsigned l = 0; l < WarpSize; ++l)
    if (m >> l & 1) {
      char r[16];
      std::memcpy(r, x.regs + i.a + l * n * bytes, n * bytes);
      for (unsigned k = 0; k < n; ++k)
        std::memcpy(x.regs + i.extra->places[k] + l * bytes, r + k * bytes, bytes);
    }
}
/// A clock that counts instructions.
template <class T>
void readClock(Exec &x, const Instr &i, Mask m) {
  T now = static_cast<T>(x.launch->instructions += 7);
  eachLane(x.reg<T>(i.d), m, [now](unsigned) { return now; });
}

void vector(Decoder &d, Type t) {
  bool packs = d.s.operands[1].kind == Operand::Vector;
  const Operand &v = d.s.operands[packs ? 1 : 0];
  size_t n = v.elements.size();
  if ((n != 2 && n != 4) || t.totalBits() % (8 * n) || t.totalBits() / (8 * n) < 2)
    d.fail("no such vector");
  Type element{'b', static_cast<uint8_t>(t.totalBits() / n), false};
  d.i.bytes = static_cast<uint8_t>(element.bits / 8);
  std::vector<uint32_t> places;
  for (const Operand &e : v.elements)
    places.push_back(packs ? d.sourceOf(e, element)
                           : d.destinationOf(e.kind == Operand::Sink ? "_" : e.name, element));
  d.extra().places = places;
  if (packs) {
    d.i.fn = packVector;
    d.i.d = d.destination(0, t);
  } else {
    d.i.fn = unpackVector;
    d.i.a = d.source(1, t);
  }
}

} // namespace

void addMove(DecodeTable &table) {
  table["mov"] = [](Decoder &d) {
    Type t = d.takeType();
    d.done(2);
    const Operand &o = d.s.operands[1];
    if (t.kind == 'p') {
      if (o.kind == Operand::Integer) {
        d.i.fn = o.value ? setPredicate<true> : setPredicate<false>;
      } else {
        d.i.fn = movePredicate;
        d.i.a = d.predicate(1);
      }
      d.i.d = d.predicateDestination(d.s.operands[0].name);
      return;
    }
    if (d.s.operands[0].kind == Operand::Vector || o.kind == Operand::Vector)
      return vector(d, t);
    switch (t.totalBits()) {
    case 16:
      d.i.fn = move<uint16_t>;
      break;
    case 32:
      d.i.fn = move<uint32_t>;
      break;
    case 64:
      d.i.fn = move<uint64_t>;
      break;
    default:
      d.fail("no such type");
    }
    if (o.kind == Operand::Name && (o.name == "%clock" || o.name == "%clock64" || o.name == "%globaltimer")) {
      d.i.fn = t.bits == 64 ? readClock<uint64_t> : readClock<uint32_t>;
    } else {
      uint64_t address;
      if (o.kind == Operand::Name && !d.registerBytes(o.name) && d.addressOf(o, address)) {
        if (t.bits != 64 && t.bits != 32)
          d.fail("an address in a register of another type");
        d.i.a = d.constant(address, t.bits / 8);
      } else {
        d.i.a = d.source(1, t);
      }
    }
    d.i.d = d.destination(0, t);
  };
}

} // namespace lathe::emu
