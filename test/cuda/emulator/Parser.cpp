// PTX text -> PtxModule: directives, declarations, instructions. Scopes in braces give their names a suffix,
// so that a function has one flat table.
#include "test/cuda/emulator/Lexer.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::emu {

bool Statement::has(const char *modifier) const {
  for (size_t i = 1; i < op.size(); ++i)
    if (op[i] == modifier)
      return true;
  return false;
}

std::string Statement::text() const {
  std::string s;
  for (const std::string &part : op)
    s += (s.empty() ? "" : ".") + part;
  return s;
}

Type parseType(const std::string &text) {
  static const std::map<std::string, Type> types = {
      {"pred", {'p', 1, false}},  {"b8", {'b', 8, false}},     {"b16", {'b', 16, false}},
      {"b32", {'b', 32, false}},  {"b64", {'b', 64, false}},   {"b128", {'b', 128, false}},
      {"u8", {'u', 8, false}},    {"u16", {'u', 16, false}},   {"u32", {'u', 32, false}},
      {"u64", {'u', 64, false}},  {"s8", {'s', 8, false}},     {"s16", {'s', 16, false}},
      {"s32", {'s', 32, false}},  {"s64", {'s', 64, false}},   {"f16", {'f', 16, false}},
      {"f32", {'f', 32, false}},  {"f64", {'f', 64, false}},   {"f16x2", {'f', 16, true}},
      {"bf16", {'h', 16, false}}, {"bf16x2", {'h', 16, true}}, {"tf32", {'t', 32, false}},
      {"s16x2", {'s', 16, true}}, {"u16x2", {'u', 16, true}},  {"f32x2", {'f', 32, true}}};
  auto found = types.find(text);
  return found == types.end() ? Type() : found->second;
}

namespace {

std::vector<std::string> split(const std::string &word) {
  std::vector<std::string> parts;
  size_t begin = word[0] == '.' ? 1 : 0;
  for (;;) {
    size_t dot = word.find('.', begin);
    parts.push_back(word.substr(begin, dot - begin));
    if (dot == std::string::npos)
      return parts;
    begin = dot + 1;
  }
}

Space spaceOf(const std::string &word) {
  static const std::map<std::string, Space> spaces = {{".reg", Space::Reg},     {".global", Space::Global},
                                                      {".const", Space::Const}, {".shared", Space::Shared},
                                                      {".local", Space::Local}, {".param", Space::Param}};
  auto found = spaces.find(word);
  return found == spaces.end() ? Space::None : found->second;
}

class Parser {
public:
  explicit Parser(const std::string &text) : tokens(tokenize(text)) {}

  PtxModule run() {
    while (peek().kind != Token::End)
      topLevel();
    if (!module.version || module.target.empty())
      fail("no .version and .target");
    return std::move(module);
  }

private:
  std::vector<Token> tokens;
  size_t at = 0;
  PtxModule module;
  PtxFunction *function = nullptr;
  std::vector<std::map<std::string, std::string>> scopes; // name as written -> name in the table
  unsigned scopeCount = 0;

  const Token &peek(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  const Token &take() { return tokens[at + 1 < tokens.size() ? at++ : at]; }
  [[noreturn]] void fail(const std::string &what) const { throw PtxError(peek().line, what); }
  bool is(const char *text) const { return peek().text == text && peek().kind != Token::String; }
  bool accept(const char *text) {
    if (!is(text))
      return false;
    take();
    return true;
  }
  void expect(const char *text) {
    if (!accept(text))
      fail(std::string("expected '") + text + "', found '" + peek().text + "'");
  }
  std::string word() {
    if (peek().kind != Token::Word)
      fail("expected a name, found '" + peek().text + "'");
    return take().text;
  }
  int64_t integer() {
    bool negative = accept("-");
    if (peek().kind != Token::Integer)
      fail("expected an integer, found '" + peek().text + "'");
    int64_t value = take().value;
    return negative ? static_cast<int64_t>(0 - static_cast<uint64_t>(value)) : value;
  }

  void topLevel() {
    if (accept(".version")) {
      std::string v = take().text;
      size_t dot = v.find('.');
      if (dot == std::string::npos)
        fail("expected a version, found '" + v + "'");
      module.version = std::atoi(v.c_str()) * 10 + std::atoi(v.c_str() + dot + 1);
      return;
    }
    if (accept(".target")) {
      module.target = word();
      while (accept(","))
        word();
      return;
    }
    if (accept(".address_size")) {
      module.addressSize = static_cast<int>(integer());
      return;
    }
    if (is(".file") || is(".loc")) {
      int line = peek().line;
      while (peek().line == line && peek().kind != Token::End)
        take();
      return;
    }
    if (is(".pragma")) {
      while (!accept(";"))
        skipOne();
      return;
    }
    if (accept(".section")) {
      while (!accept("}"))
        skipOne();
      return;
    }
    bool external = false;
    while (is(".visible") || is(".weak") || is(".extern") || is(".common") || is(".internal")) {
      external |= is(".extern");
      take();
    }
    if (is(".entry") || is(".func"))
      parseFunction();
    else if (spaceOf(peek().text) != Space::None)
      declaration(module.variables, external, false);
    else
      fail("unknown directive '" + peek().text + "'");
  }

  void skipOne() {
    if (take().kind == Token::End)
      fail("the text ends within a directive");
  }

  /// .space [.align n] [.ptr ...] .type name[<n>] [dims] [= values]; `formal` within a parameter list:
  /// without the semicolon.
  void declaration(std::vector<Variable> &into, bool external, bool formal) {
    Variable v;
    v.line = peek().line;
    v.space = spaceOf(word());
    bool pointer = false;
    unsigned vector = 1;
    for (;;) {
      if (accept(".align")) {
        int64_t align = integer();
        if (align <= 0 || (align & (align - 1)) || align > 4096)
          fail("an alignment that is no power of two");
        // that of a pointer parameter is about what it points to
        if (!pointer)
          v.align = static_cast<uint32_t>(align);
      } else if (accept(".ptr")) {
        pointer = true;
      } else if (pointer && (is(".global") || is(".shared") || is(".const") || is(".local"))) {
        take();
      } else if (is(".v2") || is(".v4")) {
        vector = take().text == ".v2" ? 2 : 4;
      } else {
        std::string text = peek().text;
        Type type = text.size() > 1 && text[0] == '.' ? parseType(text.substr(1)) : Type();
        if (!type.kind)
          break;
        v.type = type;
        take();
      }
    }
    if (!v.type.kind)
      fail("a declaration without a type");
    if (v.space == Space::Reg) {
      registers(v.type);
      return;
    }
    uint64_t element = std::max<uint64_t>(1, v.type.totalBits() / 8) * vector;
    v.align = std::max<uint32_t>(v.align, static_cast<uint32_t>(element));
    do {
      Variable one = v;
      one.name = formal ? word() : declare(word());
      uint64_t count = 1;
      while (accept("[")) {
        uint64_t n = is("]") ? 0 : static_cast<uint64_t>(integer());
        expect("]");
        if (n > (uint64_t(1) << 40))
          fail("an array without bounds");
        count *= n;
      }
      one.size = count * element;
      one.external = external;
      if (accept("="))
        initializer(one, element / vector);
      into.push_back(std::move(one));
    } while (!formal && accept(","));
    if (!formal)
      expect(";");
  }

  void registers(Type type) {
    if (!function)
      fail("registers outside a function");
    do {
      std::string name = word();
      if (accept("<")) {
        int64_t n = integer();
        expect(">");
        if (n < 0 || n > 1000000)
          fail("too many registers");
        for (int64_t i = 0; i < n; ++i)
          function->registers.push_back({declare(name + std::to_string(i)), type});
      } else {
        function->registers.push_back({declare(name), type});
      }
    } while (accept(","));
    expect(";");
  }

  void initializer(Variable &v, uint64_t element) {
    if (accept("{")) {
      while (!accept("}")) {
        if (is("{"))
          initializer(v, element);
        else
          value(v, element);
        if (!is("}"))
          expect(",");
      }
    } else {
      value(v, element);
    }
    if (v.bytes.size() > v.size && v.size)
      fail("more values than '" + v.name + "' holds");
  }

  void value(Variable &v, uint64_t element) {
    uint64_t bits = 0;
    if (peek().kind == Token::Word) {
      Variable::Symbol s{v.bytes.size(), word(), 0, false};
      if (s.name == "generic") {
        s.generic = true;
        expect("(");
        s.name = word();
        expect(")");
      }
      if (accept("+"))
        s.offset = integer();
      v.symbols.push_back(s);
    } else if (peek().kind == Token::Float) {
      bits = static_cast<uint64_t>(take().value);
    } else {
      bits = static_cast<uint64_t>(integer());
    }
    for (uint64_t i = 0; i < element; ++i)
      v.bytes.push_back(i < 8 ? static_cast<uint8_t>(bits >> (8 * i)) : 0);
  }

  std::string declare(const std::string &name) {
    if (scopes.empty())
      return name;
    std::string unique = scopes.size() == 1 ? name : name + "#" + std::to_string(scopeCount);
    scopes.back()[name] = unique;
    return unique;
  }
  std::string resolve(const std::string &name) const {
    for (size_t i = scopes.size(); i-- > 0;) {
      auto found = scopes[i].find(name);
      if (found != scopes[i].end())
        return found->second;
    }
    return name;
  }

  void parameterList(std::vector<Variable> &into) {
    expect("(");
    while (!accept(")")) {
      declaration(into, false, true);
      if (!is(")"))
        expect(",");
    }
  }

  void parseFunction() {
    PtxFunction f;
    f.line = peek().line;
    f.entry = word() == ".entry";
    if (is("("))
      parameterList(f.results);
    f.name = word();
    if (is("("))
      parameterList(f.parameters);
    for (;;) {
      if (is(".reqntid") || is(".maxntid")) {
        unsigned *to = take().text == ".reqntid" ? f.reqntid : f.maxntid;
        to[1] = to[2] = 1;
        int i = 0;
        do {
          if (i == 3)
            fail("more than three dimensions of threads");
          to[i++] = static_cast<unsigned>(integer());
        } while (accept(","));
      } else if (is(".minnctapersm") || is(".maxnreg") || is(".maxnctapersm")) {
        take();
        integer();
      } else if (accept(".pragma")) {
        while (!accept(";"))
          skipOne();
      } else if (is(".noreturn")) {
        take();
      } else {
        break;
      }
    }
    if (accept(";")) {
      module.functions.push_back(std::move(f));
      return;
    }
    f.hasBody = true;
    function = &f;
    expect("{");
    scopes.assign(1, {});
    body(f);
    scopes.clear();
    function = nullptr;
    module.functions.push_back(std::move(f));
  }

  /// Statements up to the brace that closes the function.
  void body(PtxFunction &f) {
    while (!scopes.empty()) {
      if (peek().kind == Token::End)
        fail("'" + f.name + "' does not end");
      if (accept("{")) {
        scopes.emplace_back();
        ++scopeCount;
      } else if (accept("}")) {
        scopes.pop_back();
      } else if (is(".pragma")) {
        while (!accept(";"))
          skipOne();
      } else if (is(".loc") || is(".file")) {
        topLevel();
      } else if (spaceOf(peek().text) != Space::None) {
        declaration(f.variables, false, false);
      } else if (peek().kind == Token::Word && peek(1).text == ":") {
        std::string label = word();
        expect(":");
        if (accept(".branchtargets")) {
          do
            f.branchTargets[label].push_back(word());
          while (accept(","));
          expect(";");
        } else if (!f.labels.emplace(label, f.statements.size()).second) {
          fail("the label '" + label + "' is there twice");
        }
      } else {
        f.statements.push_back(statement());
      }
    }
  }

  Statement statement() {
    Statement s;
    s.line = peek().line;
    if (accept("@")) {
      s.guardNegated = accept("!");
      s.guard = resolve(word());
    }
    s.op = split(word());
    while (!accept(";")) {
      s.operands.push_back(operand());
      if (!is(";"))
        expect(",");
    }
    return s;
  }

  void sequence(Operand &o, const char *end) {
    while (!accept(end)) {
      o.elements.push_back(operand());
      if (!is(end))
        expect(",");
    }
  }

  Operand operand() {
    Operand o;
    if (accept("{")) {
      o.kind = Operand::Vector;
      sequence(o, "}");
    } else if (accept("(")) {
      o.kind = Operand::List;
      sequence(o, ")");
    } else if (accept("[")) {
      o.kind = Operand::Address;
      if (peek().kind == Token::Word)
        o.name = resolve(word());
      else
        o.value = integer();
      if (accept("+"))
        o.value += integer();
      else if (is("-"))
        o.value += integer();
      expect("]");
    } else if (accept("!")) {
      o.negated = true;
      o.name = resolve(word());
    } else if (accept("_")) {
      o.kind = Operand::Sink;
    } else if (peek().kind == Token::Word) {
      o.name = resolve(word());
      if (accept("+"))
        o.value = integer();
    } else if (peek().kind == Token::Float) {
      o.kind = Operand::Float;
      o.isDouble = peek().isDouble;
      o.value = take().value;
    } else {
      o.kind = Operand::Integer;
      o.value = integer();
    }
    if (accept("|"))
      o.pair = accept("_") ? std::string("_") : resolve(word());
    return o;
  }
};

} // namespace

PtxModule parsePtx(const std::string &text) { return Parser(text).run(); }

} // namespace lathe::emu
