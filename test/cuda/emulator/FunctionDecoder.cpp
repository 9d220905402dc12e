#include "test/cuda/emulator/FunctionDecoder.h"

#include <algorithm>
#include <cstring>

namespace lathe::emu {

// in OpsControl.cpp
void joinLanes(Exec &, const Instr &, Mask);
void returnLanes(Exec &, const Instr &, Mask);

namespace {
const DecodeTable &table() {
  static const DecodeTable made = [] {
    DecodeTable t;
    addInteger(t);
    addBits(t);
    addFloat(t);
    addCompare(t);
    addConvert(t);
    addMove(t);
    addMemory(t);
    addAtomic(t);
    addControl(t);
    addWarp(t);
    addCopy(t);
    addMatrix(t);
    addWarpgroup(t);
    return t;
  }();
  return made;
}

uint64_t roundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
} // namespace

FunctionDecoder::FunctionDecoder(Image &image, Code &code,
                                 const std::map<std::string, SharedPlace> &moduleShared)
    : image(image), code(code), source(*code.source), moduleShared(moduleShared) {}

uint32_t FunctionDecoder::allot(uint32_t bytes) {
  uint32_t place = static_cast<uint32_t>(code.initial.size());
  code.initial.resize(roundUp(place + bytes, 64), 0);
  return place;
}

uint32_t FunctionDecoder::area(uint32_t size, uint32_t &stride) {
  stride = static_cast<uint32_t>(roundUp(std::max<uint32_t>(size, 1), 16));
  return allot(stride * WarpSize);
}

void FunctionDecoder::layOutParameters() {
  uint64_t at = 0;
  for (const Variable &v : source.parameters) {
    if (code.entry) {
      at = roundUp(at, v.align);
      if (at + v.size > 32764)
        throw PtxError(v.line, "the parameters of '" + code.name + "' have more than 32764 bytes");
      parameters[v.name] = {true, static_cast<uint32_t>(at), static_cast<uint32_t>(v.size), 0};
      code.params.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(v.size)});
      at += v.size;
    } else {
      uint32_t stride, place = area(static_cast<uint32_t>(v.size), stride);
      parameters[v.name] = {false, place, static_cast<uint32_t>(v.size), stride};
      code.parameterAreas.push_back({place, static_cast<uint32_t>(v.size), stride});
    }
  }
  code.paramBytes = static_cast<uint32_t>(at);
  if (code.entry && at > 4352 && image.ptx.version < 81)
    throw PtxError(source.line, "the parameters of '" + code.name + "' have more than 4352 bytes");
  for (const Variable &v : source.results) {
    uint32_t stride, place = area(static_cast<uint32_t>(v.size), stride);
    parameters[v.name] = {false, place, static_cast<uint32_t>(v.size), stride};
    code.resultAreas.push_back({place, static_cast<uint32_t>(v.size), stride});
  }
}

void FunctionDecoder::layOutVariables() {
  uint64_t local = code.localBase, shared = 0;
  for (const auto &m : moduleShared)
    if (!m.second.dynamic)
      shared = std::max(shared, m.second.offset + m.second.size);
  for (const Variable &v : source.variables) {
    if (v.space == Space::Local) {
      local = roundUp(local, v.align);
      localOffsets[v.name] = local;
      local += v.size;
    } else if (v.space == Space::Shared) {
      shared = roundUp(shared, std::max(16u, v.align));
      ownShared[v.name] = {shared, v.size, false};
      shared += v.size;
      code.staticShared += static_cast<uint32_t>(v.size);
    } else if (v.space == Space::Param) {
      uint32_t stride, place = area(static_cast<uint32_t>(v.size), stride);
      parameters[v.name] = {false, place, static_cast<uint32_t>(v.size), stride};
    } else {
      throw PtxError(v.line, "'" + v.name + "': no variable of that space within a function");
    }
  }
  code.localBytes = static_cast<uint32_t>(local - code.localBase);
  code.sharedEnd = static_cast<uint32_t>(roundUp(shared, 128));
}

void FunctionDecoder::run() {
  for (const Register &r : source.registers) {
    registers[r.name] = {static_cast<uint32_t>(registerNames.size()), r.type};
    registerNames.push_back(r.name);
  }
  layOutParameters();
  layOutVariables();
  Flow flow(source);
  decodeStatements(flow);
}

void FunctionDecoder::decodeStatements(const Flow &flow) {
  // blocks where lanes come together start with an instruction for that
  std::vector<char> joins(flow.blocks.size(), 0);
  for (size_t b = 0; b < flow.blocks.size(); ++b)
    if (flow.parts(b) && flow.blocks[b].join >= 0)
      joins[flow.blocks[b].join] = 1;
  // indices of instructions, since their addresses are known at the end only
  std::vector<size_t> first(source.statements.size() + 1), blockStart(flow.blocks.size());
  struct Branch {
    size_t instr, block;
  };
  std::vector<Branch> branches;
  uses.resize(source.statements.size());
  for (size_t b = 0; b < flow.blocks.size(); ++b) {
    const BasicBlock &block = flow.blocks[b];
    blockStart[b] = code.made.size();
    if (joins[b]) {
      code.made.emplace_back();
      code.made.back().fn = joinLanes;
      code.made.back().line =
          block.begin < source.statements.size() ? source.statements[block.begin].line : source.line;
    }
    for (size_t n = block.begin; n < block.end; ++n) {
      const Statement &s = source.statements[n];
      current = n;
      first[n] = code.made.size();
      code.made.emplace_back();
      Instr &i = code.made.back();
      i.line = static_cast<uint32_t>(s.line);
      Decoder d(*this, s, i);
      if (!s.guard.empty()) {
        auto found = registers.find(s.guard);
        if (found == registers.end() || found->second.type.kind != 'p')
          d.fail("'" + s.guard + "' is no predicate");
        i.guard = placeOf(found->second);
        i.guardNegated = s.guardNegated;
        uses[n].reads.push_back(found->second.number);
        uses[n].conditional = true;
      }
      auto family = table().find(s.op[0]);
      if (family == table().end())
        d.fail("unknown instruction");
      family->second(d);
      if (s.op[0] == "bra" || s.op[0] == "brx")
        branches.push_back({code.made.size() - 1, b});
    }
  }
  first[source.statements.size()] = code.made.size();
  code.made.emplace_back();
  code.made.back().fn = returnLanes;
  code.made.back().line = static_cast<uint32_t>(source.line);

  track(flow, first);
  code.instrs.assign(code.made.begin(), code.made.end());
  code.made.clear();
  for (Instr &i : code.instrs)
    i.id = image.instructions++;
  for (const Branch &br : branches) {
    Instr &i = code.instrs[br.instr];
    const Statement &s = source.statements[flow.blocks[br.block].end - 1];
    if (flow.blocks[br.block].join >= 0)
      i.join = &code.instrs[blockStart[flow.blocks[br.block].join]];
    if (s.op[0] == "bra")
      i.target = &code.instrs[blockStart[flow.blockAt(s.operands[0].name, s.line)]];
    else
      for (const std::string &label : i.extra->labels)
        i.extra->targets.push_back(&code.instrs[blockStart[flow.blockAt(label, s.line)]]);
  }
}

/// Registers that some way leaves undefined get a mask of the lanes that have written them.
void FunctionDecoder::track(const Flow &flow, const std::vector<size_t> &firstInstr) {
  auto undefined = maybeUndefined(flow, uses, static_cast<uint32_t>(registerNames.size()));
  std::map<uint32_t, uint32_t> masks;
  for (const auto &list : undefined)
    for (uint32_t r : list)
      if (!masks.count(r)) {
        masks[r] = allot(4);
        code.definedMasks.push_back(masks[r]);
      }
  if (masks.empty())
    return;
  for (size_t n = 0; n < uses.size(); ++n) {
    Instr &i = code.made[firstInstr[n]];
    auto note = [&](uint32_t r, bool read) {
      auto mask = masks.find(r);
      if (mask == masks.end())
        return;
      if (!i.extra) {
        code.extras.emplace_back();
        i.extra = &code.extras.back();
      }
      i.tracked = true;
      (read ? i.extra->reads : i.extra->writes).emplace_back(mask->second, registerNames[r]);
    };
    for (uint32_t r : undefined[n])
      note(r, true);
    for (uint32_t r : uses[n].writes)
      note(r, false);
  }
}

uint32_t FunctionDecoder::placeOf(Slot &slot) {
  if (slot.place == None)
    slot.place = allot(slot.type.kind == 'p' ? 4 : WarpSize * std::max(2u, slot.type.totalBits() / 8));
  return slot.place;
}

bool FunctionDecoder::symbol(const std::string &name, int line, uint64_t &address, Space &space) {
  auto local = localOffsets.find(name);
  if (local != localOffsets.end()) {
    address = LocalBase + local->second;
    space = Space::Local;
    return true;
  }
  auto own = ownShared.find(name);
  auto outer = moduleShared.find(name);
  if (own != ownShared.end() || outer != moduleShared.end()) {
    const SharedPlace &p = own != ownShared.end() ? own->second : outer->second;
    space = Space::Shared;
    address = SharedBase + p.offset;
    if (own == ownShared.end())
      namedShared.insert(name);
    if (p.dynamic) {
      // dynamic memory follows the entry's own variables
      if (!code.entry)
        throw PtxError(line, "dynamic shared memory in a function that is no entry is not supported");
      code.dynamicShared = true;
      address = SharedBase + code.sharedEnd;
    }
    return true;
  }
  auto global = image.globals.find(name);
  if (global == image.globals.end())
    return false;
  address = global->second.address;
  space = global->second.variable->space;
  return true;
}

bool FunctionDecoder::special(const std::string &name, Type type, uint32_t &place) {
  static const std::unordered_map<std::string, Special> names = {
      {"%tid.x", Special::TidX},
      {"%tid.y", Special::TidY},
      {"%tid.z", Special::TidZ},
      {"%ntid.x", Special::NtidX},
      {"%ntid.y", Special::NtidY},
      {"%ntid.z", Special::NtidZ},
      {"%ctaid.x", Special::CtaidX},
      {"%ctaid.y", Special::CtaidY},
      {"%ctaid.z", Special::CtaidZ},
      {"%nctaid.x", Special::NctaidX},
      {"%nctaid.y", Special::NctaidY},
      {"%nctaid.z", Special::NctaidZ},
      {"%laneid", Special::Laneid},
      {"%warpid", Special::Warpid},
      {"%nwarpid", Special::Nwarpid},
      {"%smid", Special::Smid},
      {"%nsmid", Special::Nsmid},
      {"%gridid", Special::Gridid},
      {"%lanemask_eq", Special::LaneEq},
      {"%lanemask_lt", Special::LaneLt},
      {"%lanemask_le", Special::LaneLe},
      {"%lanemask_gt", Special::LaneGt},
      {"%lanemask_ge", Special::LaneGe},
      {"%dynamic_smem_size", Special::DynamicShared},
      {"%total_smem_size", Special::TotalShared}};
  auto found = names.find(name);
  if (found == names.end())
    return false;
  // a 16-bit or 64-bit read takes the low bits, or extends by zeros
  uint8_t bytes = static_cast<uint8_t>(std::max(2u, type.totalBits() / 8));
  for (const Code::Fill &f : code.fills)
    if (f.which == found->second && f.bytes == bytes) {
      place = f.place;
      return true;
    }
  place = allot(bytes * WarpSize);
  code.fills.push_back({found->second, place, bytes});
  return true;
}

Decoder::Decoder(FunctionDecoder &function, const Statement &statement, Instr &instr)
    : s(statement), i(instr), owner(function), left(statement.op.begin() + 1, statement.op.end()) {}

void Decoder::fail(const std::string &what) const { throw PtxError(s.line, "'" + s.text() + "': " + what); }

bool Decoder::take(const char *modifier) {
  auto found = std::find(left.begin(), left.end(), modifier);
  if (found == left.end())
    return false;
  left.erase(found);
  return true;
}

int Decoder::takeOneOf(std::initializer_list<const char *> modifiers) {
  int n = 0;
  for (const char *m : modifiers) {
    if (take(m))
      return n;
    ++n;
  }
  return -1;
}

Type Decoder::tryType() {
  for (size_t n = 0; n < left.size(); ++n) {
    Type t = parseType(left[n]);
    if (t.kind) {
      left.erase(left.begin() + static_cast<long>(n));
      return t;
    }
  }
  return Type();
}

Type Decoder::takeType() {
  Type t = tryType();
  if (!t.kind)
    fail("no type");
  return t;
}

Space Decoder::takeSpace() {
  static const std::pair<const char *, Space> spaces[] = {
      {"global", Space::Global},      {"shared", Space::Shared},    {"shared::cta", Space::Shared},
      {"const", Space::Const},        {"local", Space::Local},      {"param", Space::Param},
      {"param::entry", Space::Param}, {"param::func", Space::Param}};
  for (const auto &p : spaces)
    if (take(p.first))
      return p.second;
  return Space::Generic;
}

void Decoder::done(size_t operands) {
  if (!left.empty())
    fail("unknown modifier '" + left[0] + "'");
  if (s.operands.size() != operands)
    fail("expected " + std::to_string(operands) + " operands, found " + std::to_string(s.operands.size()));
}

namespace {
/// Whether a register of one type may stand where an instruction has the other.
bool sameFamily(Type reg, Type wanted) {
  if (reg.kind == 'b' || wanted.kind == 'b' || wanted.kind == 'h' || wanted.kind == 't' || wanted.packed ||
      reg.packed)
    return reg.kind != 'p' && wanted.kind != 'p';
  return (reg.kind == 'f') == (wanted.kind == 'f') && (reg.kind == 'p') == (wanted.kind == 'p');
}
} // namespace

uint32_t Decoder::sourceOf(const Operand &o, Type type, bool wider) {
  unsigned bytes = std::max(1u, type.totalBits() / 8);
  if (o.negated || !o.pair.empty())
    fail("an operand that is neither a register nor a value");
  if (o.kind == Operand::Integer) {
    uint64_t bits = static_cast<uint64_t>(o.value);
    if (type.isFloat() && bits && type.kind == 'f' && type.bits >= 32)
      fail("an integer where a floating point value is expected");
    return constant(bits, std::max(2u, bytes));
  }
  if (o.kind == Operand::Float) {
    uint64_t bits = static_cast<uint64_t>(o.value);
    if (o.isDouble && bytes == 4) {
      double v;
      std::memcpy(&v, &bits, 8);
      float f = static_cast<float>(v);
      uint32_t w;
      std::memcpy(&w, &f, 4);
      bits = w;
    } else if (o.isDouble != (bytes == 8)) {
      fail("a value of another size than the instruction");
    }
    return constant(bits, bytes);
  }
  if (o.kind != Operand::Name)
    fail("an operand that is neither a register nor a value");
  auto found = owner.registers.find(o.name);
  if (found == owner.registers.end()) {
    uint32_t place;
    if (owner.special(o.name, type, place))
      return place;
    if (o.name == "WARP_SZ")
      return constant(WarpSize, std::max(2u, bytes));
    fail("'" + o.name + "' is no register");
  }
  FunctionDecoder::Slot &slot = found->second;
  if (slot.type.kind == 'p')
    fail("the predicate '" + o.name + "' where a value is expected");
  bool sizeFits =
      slot.type.totalBits() == type.totalBits() || (wider && slot.type.totalBits() > type.totalBits());
  if (!sizeFits || (!wider && !sameFamily(slot.type, type)))
    fail("the register '" + o.name + "' is of another type");
  owner.uses[owner.current].reads.push_back(slot.number);
  return owner.placeOf(slot);
}

uint32_t Decoder::destination(size_t operand, Type type, bool wider, unsigned *bytes) {
  const Operand &o = s.operands[operand];
  if (o.kind == Operand::Sink)
    return temporary("sink", 16);
  if (o.kind != Operand::Name || o.negated || !o.pair.empty())
    fail("a destination that is no register");
  return destinationOf(o.name, type, wider, bytes);
}

uint32_t Decoder::destinationOf(const std::string &name, Type type, bool wider, unsigned *bytes) {
  if (name == "_")
    return temporary("sink", 16);
  auto found = owner.registers.find(name);
  if (found == owner.registers.end())
    fail("'" + name + "' is no register");
  FunctionDecoder::Slot &slot = found->second;
  unsigned bits = slot.type.totalBits();
  if (slot.type.kind == 'p' || !(bits == type.totalBits() || (wider && bits > type.totalBits())) ||
      (!wider && !sameFamily(slot.type, type)))
    fail("the register '" + name + "' is of another type");
  if (bytes)
    *bytes = std::max(2u, bits / 8);
  owner.uses[owner.current].writes.push_back(slot.number);
  return owner.placeOf(slot);
}

unsigned Decoder::registerBytes(const std::string &name) const {
  auto found = owner.registers.find(name);
  return found == owner.registers.end() ? 0 : std::max(2u, found->second.type.totalBits() / 8);
}

uint32_t Decoder::predicate(size_t operand, bool *negated) {
  const Operand &o = s.operands[operand];
  auto found = owner.registers.find(o.name);
  if (o.kind != Operand::Name || found == owner.registers.end() || found->second.type.kind != 'p')
    fail("expected a predicate");
  if (o.negated && !negated)
    fail("a negated predicate");
  if (negated)
    *negated = o.negated;
  owner.uses[owner.current].reads.push_back(found->second.number);
  return owner.placeOf(found->second);
}

uint32_t Decoder::predicateDestination(const std::string &name) {
  if (name == "_")
    return temporary("sink predicate", 4);
  auto found = owner.registers.find(name);
  if (found == owner.registers.end() || found->second.type.kind != 'p')
    fail("'" + name + "' is no predicate");
  owner.uses[owner.current].writes.push_back(found->second.number);
  return owner.placeOf(found->second);
}

uint32_t Decoder::constant(uint64_t bits, unsigned bytes) {
  bits = bytes == 8 ? bits : bytes == 4 ? bits & 0xffffffffu : bits & 0xffffu;
  auto [found, fresh] = owner.constants.try_emplace({bits, bytes}, None);
  if (fresh) {
    found->second = owner.allot(bytes * WarpSize);
    for (unsigned l = 0; l < WarpSize; ++l)
      std::memcpy(&owner.code.initial[found->second + l * bytes], &bits, bytes);
  }
  return found->second;
}

uint32_t Decoder::temporary(const char *name, unsigned bytes) {
  auto [found, fresh] = owner.temporaries.try_emplace(name, None);
  if (fresh)
    found->second = owner.allot(bytes * WarpSize);
  return found->second;
}

int64_t Decoder::immediate(size_t operand) const {
  if (s.operands[operand].kind != Operand::Integer)
    fail("expected an immediate value");
  return s.operands[operand].value;
}

const std::string &Decoder::target() const { return owner.image.ptx.target; }

Extra &Decoder::extra() {
  if (!i.extra) {
    owner.code.extras.emplace_back();
    i.extra = &owner.code.extras.back();
  }
  return *i.extra;
}

const Code *Decoder::callee(const std::string &name) {
  auto found = owner.image.byName.find(name);
  if (found == owner.image.byName.end())
    fail("'" + name + "' is no function of this module");
  return found->second;
}

void Decoder::parameterArea(const Operand &o, uint32_t &place, uint32_t &size, uint32_t &stride) {
  auto found = owner.parameters.find(o.name);
  if (o.kind != Operand::Name || found == owner.parameters.end() || found->second.launch)
    fail("expected a variable in the space of parameters");
  place = found->second.offset;
  size = found->second.size;
  stride = found->second.stride;
}

const std::vector<std::string> &Decoder::branchTargets(size_t operand) const {
  return owner.source.branchTargets.at(s.operands[operand].name);
}

bool Decoder::addressOf(const Operand &o, uint64_t &address) {
  Space space = Space::None;
  auto parameter = owner.parameters.find(o.name);
  if (parameter != owner.parameters.end()) {
    if (!parameter->second.launch)
      fail("the address of a function's parameter is not supported");
    address = parameter->second.offset + static_cast<uint64_t>(o.value);
    return true;
  }
  if (!owner.symbol(o.name, s.line, address, space))
    return false;
  address += static_cast<uint64_t>(o.value);
  return true;
}

void Decoder::address(const Operand &o, Space &space) {
  if (o.kind != Operand::Address)
    fail("expected an address in brackets");
  i.imm = o.value;
  auto found = owner.registers.find(o.name);
  if (found != owner.registers.end()) {
    unsigned bits = found->second.type.totalBits();
    if (found->second.type.isFloat() || (bits != 64 && bits != 32))
      fail("an address in a register of another type");
    i.wideAddress = bits == 64;
    owner.uses[owner.current].reads.push_back(found->second.number);
    i.a = owner.placeOf(found->second);
    return;
  }
  auto parameter = owner.parameters.find(o.name);
  if (parameter != owner.parameters.end()) {
    const auto &p = parameter->second;
    if (space != Space::Param)
      fail("'" + o.name + "' is a parameter");
    if (p.launch) {
      i.a = constant(p.offset, 8);
    } else {
      space = Space::Reg;
      i.b = p.offset;
      i.c = p.stride;
      if (o.value < 0 || static_cast<uint64_t>(o.value) >= p.size)
        fail("an address outside '" + o.name + "'");
    }
    return;
  }
  uint64_t address = 0;
  if (!o.name.empty()) {
    Space of = Space::None;
    if (!owner.symbol(o.name, s.line, address, of))
      fail("'" + o.name + "' is neither a register nor a variable");
    if (space == Space::Generic)
      address += of == Space::Shared ? SharedWindow : of == Space::Local ? LocalWindow : 0;
    else if (of != space && !(of == Space::Const && space == Space::Global))
      fail("'" + o.name + "' is in another space");
  }
  i.a = constant(address, 8);
}

} // namespace lathe::emu
