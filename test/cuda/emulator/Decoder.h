// One instruction being decoded: modifiers are taken one by one, and what is left over is an error, so that
// no text is silently ignored. Families of instructions register by their first word.
#ifndef LATHE_TEST_CUDA_EMULATOR_DECODER_H
#define LATHE_TEST_CUDA_EMULATOR_DECODER_H

#include "test/cuda/emulator/Code.h"

#include <initializer_list>

namespace lathe::emu {

class FunctionDecoder;

class Decoder {
public:
  Decoder(FunctionDecoder &function, const Statement &statement, Instr &instr);

  const Statement &s;
  Instr &i;

  /// Takes a modifier when it is there.
  bool take(const char *modifier);
  /// Takes one of these; its index, or -1.
  int takeOneOf(std::initializer_list<const char *> modifiers);
  /// Takes the next modifier that is a type; an error without one.
  Type takeType();
  /// As takeType; a kind of 0 without one.
  Type tryType();
  /// .global, .shared::cta and so on; Generic without one.
  Space takeSpace();
  /// Errors for modifiers left over and for another number of operands.
  void done(size_t operands);
  const std::string &name() const { return s.op[0]; }
  [[noreturn]] void fail(const std::string &what) const;

  /// Place of an operand that is read as this type. Registers have its size; with `wider` they may be larger.
  uint32_t source(size_t operand, Type type, bool wider = false) {
    return sourceOf(s.operands[operand], type, wider);
  }
  uint32_t sourceOf(const Operand &o, Type type, bool wider = false);
  /// Place of a register that is written; `bytes` gets its size in bytes.
  uint32_t destination(size_t operand, Type type, bool wider = false, unsigned *bytes = nullptr);
  uint32_t destinationOf(const std::string &name, Type type, bool wider = false, unsigned *bytes = nullptr);
  /// Place of a predicate's mask; negated ones get a flag in `negated`.
  uint32_t predicate(size_t operand, bool *negated = nullptr);
  uint32_t predicateDestination(const std::string &name);
  /// Bytes of a register, 0 for what is none.
  unsigned registerBytes(const std::string &name) const;
  /// A place that holds this value in all lanes.
  uint32_t constant(uint64_t bits, unsigned bytes);
  /// A place of its own, for carries and the like.
  uint32_t temporary(const char *name, unsigned bytes);
  /// Sets i.a and i.imm for [register + offset]; a symbol's address is a constant. Sets `space` for a
  /// parameter's area.
  void address(const Operand &o, Space &space);
  /// Address of a variable or of an entry's parameter in its own space; false when there is none of that
  /// name.
  bool addressOf(const Operand &o, uint64_t &address);
  /// The decoded function of that name.
  const Code *callee(const std::string &name);
  /// Where a .param variable of the body lies in the frame.
  void parameterArea(const Operand &o, uint32_t &place, uint32_t &size, uint32_t &stride);
  const std::vector<std::string> &branchTargets(size_t operand) const;
  Extra &extra();
  /// Immediate value of an operand, an error for anything else.
  int64_t immediate(size_t operand) const;
  FunctionDecoder &function() { return owner; }
  /// What the module is for: "sm_80".
  const std::string &target() const;

private:
  FunctionDecoder &owner;
  std::vector<std::string> left;
};

using DecodeFn = void (*)(Decoder &);
/// The families: each adds its instructions' first words.
using DecodeTable = std::unordered_map<std::string, DecodeFn>;
void addInteger(DecodeTable &table);
void addBits(DecodeTable &table);
void addFloat(DecodeTable &table);
void addCompare(DecodeTable &table);
void addConvert(DecodeTable &table);
void addMove(DecodeTable &table);
void addMemory(DecodeTable &table);
void addAtomic(DecodeTable &table);
void addControl(DecodeTable &table);
void addWarp(DecodeTable &table);
void addCopy(DecodeTable &table);
void addMatrix(DecodeTable &table);
void addWarpgroup(DecodeTable &table);

} // namespace lathe::emu

#endif
