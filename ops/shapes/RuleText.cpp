// Reads rules. The tables are our own, so that what is wrong in them is found by the first test.
#include "ops/shapes/Rules.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lathe::ops {
namespace {

class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  std::vector<RulePattern> patterns() {
    std::vector<RulePattern> out;
    space();
    while (at < text.size() && isFine) {
      if (!out.empty())
        expect(',');
      space();
      const size_t start = at;
      out.push_back(pattern());
      out.back().text = std::string(absl::StripAsciiWhitespace(absl::string_view(text.data() + start, at - start)));
      space();
    }
    return out;
  }
  bool fine() const { return isFine; }

private:
  void space() {
    while (at < text.size() && absl::ascii_isspace(text[at]))
      ++at;
  }
  bool take(std::string_view what) {
    if (text.substr(at, what.size()) != what)
      return false;
    at += what.size();
    return true;
  }
  void expect(char c) { isFine &= take(std::string_view(&c, 1)); }
  bool isDigit() const { return at < text.size() && absl::ascii_isdigit(text[at]); }
  int64_t number() {
    isFine &= isDigit();
    int64_t value = 0;
    while (isDigit())
      value = value * 10 + (text[at++] - '0');
    return value;
  }
  std::string name() {
    std::string out;
    while (at < text.size() && (absl::ascii_isalnum(text[at]) || (text[at] == '_' && !out.empty())))
      out += text[at++];
    return out;
  }

  RulePattern pattern() {
    RulePattern out = shape();
    if (take("^"))
      out.handle = std::make_shared<RulePattern>(pattern());
    return out;
  }

  RulePattern shape() {
    RulePattern p;
    auto numbered = [&](RulePattern::Kind kind) {
      p.kind = kind;
      p.number = number();
      return p;
    };
    if (take("_") || (at < text.size() && text[at] == '^'))
      return p;
    if (take("<="))
      return numbered(RulePattern::AtMost);
    if (take("=")) {
      if (isDigit())
        return numbered(RulePattern::Held);
      p.held = std::make_shared<RulePattern>(shape());
      return p;
    }
    if (take("~"))
      return numbered(RulePattern::Same);
    if (take("[")) {
      p.kind = RulePattern::Sizes;
      while (!take("]") && isFine) {
        if (!p.sizes.empty())
          expect(',');
        p.sizes.push_back(size());
      }
      return p;
    }
    p.kind = take("@") ? RulePattern::Attribute : RulePattern::Whole;
    p.name = name();
    isFine &= !p.name.empty();
    if (take("<="))
      p.mostRank = number();
    if (take("&")) {
      p.kind = RulePattern::Broadcast;
      p.other = name();
    }
    return p;
  }

  RuleSize size() {
    RuleSize s;
    if (take("?"))
      return s;
    if (take("..")) {
      s.isRest = true;
      s.terms.push_back({take("@") ? RuleTerm::Attribute : RuleTerm::Name, '+', 0, -1, ""});
      s.terms[0].name = name();
      return s;
    }
    char op = '+';
    do {
      s.terms.push_back(term(op));
      op = at < text.size() ? text[at] : 0;
    } while (isFine && (take("+") || take("-") || take("*") || take("/")));
    return s;
  }

  RuleTerm term(char op) {
    if (take("#")) {
      int64_t arg = number();
      return {RuleTerm::Value, op, arg, take(".") ? static_cast<int>(number()) : -1, ""};
    }
    if (take("|")) {
      RuleTerm count{RuleTerm::Count, op, number(), -1, ""};
      expect('|');
      return count;
    }
    if (take("@"))
      return {RuleTerm::Attribute, op, 0, -1, name()};
    if (isDigit())
      return {RuleTerm::Number, op, number(), -1, ""};
    std::string word = name();
    isFine &= !word.empty();
    return {RuleTerm::Name, op, 0, -1, std::move(word)};
  }

  const std::string_view text;
  size_t at = 0;
  bool isFine = true;
};

} // namespace

absl::Status addRules(std::string_view text, RuleTable *table) {
  for (absl::string_view entry : absl::StrSplit(absl::string_view(text.data(), text.size()), ';')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (entry.empty())
      continue;
    const size_t colon = entry.find(':'), arrow = entry.find("->");
    if (colon == entry.npos || arrow == entry.npos || arrow < colon)
      return absl::InvalidArgumentError(absl::StrCat("not a rule: ", entry));
    auto view = [](absl::string_view s) { return std::string_view(s.data(), s.size()); };
    Reader inputs(view(entry.substr(colon + 1, arrow - colon - 1))), outputs(view(entry.substr(arrow + 2)));
    auto rule = std::make_shared<Rule>();
    rule->inputs = inputs.patterns();
    rule->outputs = outputs.patterns();
    if (!inputs.fine() || !outputs.fine())
      return absl::InvalidArgumentError(absl::StrCat("not a rule: ", entry));
    for (absl::string_view op : absl::StrSplit(entry.substr(0, colon), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      const OpInfo *info = findOp(view(op));
      if (!info || rule->inputs.size() > info->inputs.size() || rule->outputs.size() > info->outputs.size())
        return absl::InvalidArgumentError(absl::StrCat("a rule that does not fit op ", op, ": ", entry));
      if (!table->emplace(std::string(op), rule).second)
        return absl::InvalidArgumentError(absl::StrCat("a second rule for op ", op));
    }
  }
  return absl::OkStatus();
}

} // namespace lathe::ops
