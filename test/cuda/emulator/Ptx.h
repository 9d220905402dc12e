// PTX as text says it: names, types and operands, not yet checked against what instructions take. Decode.h
// turns it into code that runs.
#ifndef LATHE_TEST_CUDA_EMULATOR_PTX_H
#define LATHE_TEST_CUDA_EMULATOR_PTX_H

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace lathe::emu {

/// What makes a module unusable; the text names the line.
struct PtxError : std::runtime_error {
  PtxError(int line, const std::string &what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what), line(line) {}
  int line;
};

/// A state space that a name or an access can be in.
enum class Space : uint8_t { None, Reg, Global, Const, Shared, Local, Param, Generic };

/// A type: its letter (b, u, s, f, p for predicates; h for bf16, t for tf32) and bits of an element; packed
/// x2 types have the element's bits and two lanes.
struct Type {
  char kind = 0;
  uint8_t bits = 0;
  bool packed = false;
  unsigned totalBits() const { return packed ? bits * 2u : bits; }
  bool isFloat() const { return kind == 'f' || kind == 'h' || kind == 't'; }
  bool isSigned() const { return kind == 's'; }
  bool operator!=(const Type &o) const { return !(*this == o); }
  bool operator==(const Type &o) const { return kind == o.kind && bits == o.bits && packed == o.packed; }
};

/// "b32", "f16x2", "bf16", "pred"; a kind of 0 when it is none.
Type parseType(const std::string &text);

struct Operand {
  enum Kind { Name, Integer, Float, Address, Vector, List, Sink } kind = Name;
  std::string name;              // Name, Address with a name
  int64_t value = 0;             // Integer; bits of a Float; offset of an Address
  bool negated = false;          // !%p
  bool isDouble = false;         // of Float
  std::vector<Operand> elements; // Vector {a, b}, List (a, b)
  std::string pair;              // second destination: %r1|%p1
};

struct Statement {
  int line = 0;
  std::string guard; // predicate's name, or empty
  bool guardNegated = false;
  std::vector<std::string> op; // the instruction, cut at its dots
  std::vector<Operand> operands;

  /// Whether the instruction has that modifier.
  bool has(const char *modifier) const;
  std::string text() const;
};

struct Variable {
  int line = 0;
  Space space = Space::None;
  Type type;
  std::string name;
  uint32_t align = 1;
  uint64_t size = 0; // bytes
  bool external = false;
  std::vector<uint8_t> bytes; // initial value; shorter than size: zeros follow
  struct Symbol {
    uint64_t at;
    std::string name;
    int64_t offset;
    bool generic;
  };
  std::vector<Symbol> symbols; // addresses within the initial value
};

struct Register {
  std::string name;
  Type type;
};

struct PtxFunction {
  int line = 0;
  std::string name;
  bool entry = false;
  bool hasBody = false;
  std::vector<Variable> parameters, results;
  std::vector<Register> registers;
  std::vector<Variable> variables; // .shared, .local and .param of the body
  std::vector<Statement> statements;
  std::map<std::string, size_t> labels; // index of the statement that follows
  std::map<std::string, std::vector<std::string>> branchTargets;
  unsigned reqntid[3] = {0, 0, 0}, maxntid[3] = {0, 0, 0};
};

struct PtxModule {
  int version = 0; // 70 for 7.0
  std::string target;
  int addressSize = 0;
  std::vector<Variable> variables;
  std::vector<PtxFunction> functions;
};

/// Throws PtxError for text that is no PTX.
PtxModule parsePtx(const std::string &text);

} // namespace lathe::emu

#endif
