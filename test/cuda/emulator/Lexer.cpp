#include "test/cuda/emulator/Lexer.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lathe::emu {
namespace {

bool startsWord(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continuesWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
}

class Lexer {
public:
  explicit Lexer(const std::string &text) : text(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (skip(); at < text.size(); skip())
      tokens.push_back(next());
    Token end;
    end.line = line;
    tokens.push_back(end);
    return tokens;
  }

private:
  const std::string &text;
  size_t at = 0;
  int line = 1;

  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }

  void skip() {
    while (at < text.size()) {
      if (peek() == '\n') {
        ++line;
        ++at;
      } else if (std::isspace(static_cast<unsigned char>(peek())) || peek() == '\0') {
        ++at;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at < text.size() && text[at] != '\n')
          ++at;
      } else if (peek() == '/' && peek(1) == '*') {
        size_t end = text.find("*/", at + 2);
        if (end == std::string::npos)
          throw PtxError(line, "a comment does not end");
        for (; at < end + 2; ++at)
          line += text[at] == '\n';
      } else {
        return;
      }
    }
  }

  Token next() {
    Token t;
    t.line = line;
    if (startsWord(peek())) {
      t.kind = Token::Word;
      // "::" joins parts of one modifier; a single colon ends a label
      while (continuesWord(peek()) || (peek() == ':' && peek(1) == ':')) {
        size_t n = peek() == ':' ? 2 : 1;
        t.text.append(text, at, n);
        at += n;
      }
      return t;
    }
    if (std::isdigit(static_cast<unsigned char>(peek())))
      return number();
    if (peek() == '"') {
      size_t end = text.find('"', at + 1);
      if (end == std::string::npos)
        throw PtxError(line, "a string does not end");
      t.kind = Token::String;
      t.text = text.substr(at + 1, end - at - 1);
      at = end + 1;
      return t;
    }
    if (!std::strchr("{}()[]<>,;:@!|=+-", peek()))
      throw PtxError(line, std::string("no PTX has the character '") + peek() + "'");
    t.kind = Token::Punctuation;
    t.text = peek();
    ++at;
    return t;
  }

  Token number() {
    Token t;
    t.line = line;
    size_t begin = at;
    while (std::isalnum(static_cast<unsigned char>(peek())) ||
           (peek() == '.' && std::isdigit(static_cast<unsigned char>(peek(1)))))
      ++at;
    t.text = text.substr(begin, at - begin);
    std::string body = t.text;
    if (body.size() > 1 && body[0] == '0' && std::strchr("fFdD", body[1])) {
      t.isDouble = body[1] == 'd' || body[1] == 'D';
      if (body.size() != (t.isDouble ? 18u : 10u))
        throw PtxError(line, "'" + body + "' has another number of digits than its type");
      t.kind = Token::Float;
      t.value = parse(body.substr(2), 16);
      return t;
    }
    if (body.find('.') != std::string::npos) {
      t.kind = Token::Decimal;
      return t;
    }
    if (body.back() == 'U')
      body.pop_back();
    t.kind = Token::Integer;
    if (body.size() > 2 && body[0] == '0' && (body[1] == 'x' || body[1] == 'X'))
      t.value = parse(body.substr(2), 16);
    else if (body.size() > 2 && body[0] == '0' && (body[1] == 'b' || body[1] == 'B'))
      t.value = parse(body.substr(2), 2);
    else
      t.value = parse(body, body.size() > 1 && body[0] == '0' ? 8 : 10);
    return t;
  }

  int64_t parse(const std::string &digits, int base) const {
    char *end = nullptr;
    errno = 0;
    uint64_t value = std::strtoull(digits.c_str(), &end, base);
    if (digits.empty() || *end || errno)
      throw PtxError(line, "'" + digits + "' is no number");
    return static_cast<int64_t>(value);
  }
};

} // namespace

std::vector<Token> tokenize(const std::string &text) { return Lexer(text).run(); }

} // namespace lathe::emu
