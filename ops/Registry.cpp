#include "ops/Registry.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace lathe::ops {
namespace {

constexpr const char *kTables[] = {
#include "ops/ArrayOps.def"
    ,
#include "ops/DataOps.def"
    ,
#include "ops/FlowOps.def"
    ,
#include "ops/HostOps.def"
    ,
#include "ops/ImageOps.def"
    ,
#include "ops/LinalgOps.def"
    ,
#include "ops/MathOps.def"
    ,
#include "ops/NnOps.def"
    ,
#include "ops/QuantOps.def"
    ,
#include "ops/RandomOps.def"
    ,
#include "ops/SparseOps.def"
    ,
#include "ops/StateOps.def"
    ,
#include "ops/StringOps.def"
    ,
#include "ops/TrainOps.def"
};

absl::string_view view(std::string_view s) { return absl::string_view(s.data(), s.size()); }

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n'))
    s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n'))
    s.remove_suffix(1);
  return s;
}

/// Splits at the separator outside brackets and quotes.
std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t from = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      --depth;
    } else if (c == separator && depth == 0) {
      parts.push_back(trim(s.substr(from, i - from)));
      from = i + 1;
    }
  }
  std::string_view last = trim(s.substr(from));
  if (!last.empty() || !parts.empty())
    parts.push_back(last);
  return parts;
}

// The tables are part of the program, so what is wrong in them is our mistake; a test parses them all.
std::vector<Arg> parseArgs(std::string_view text) {
  std::vector<Arg> args;
  for (std::string_view part : split(text, ',')) {
    Arg arg;
    size_t colon = part.find(':');
    assert(colon != std::string_view::npos && "argument without kind");
    arg.name = part.substr(0, colon);
    std::string_view kind = part.substr(colon + 1);
    if (kind.back() == '&') {
      arg.isRef = true;
      kind.remove_suffix(1);
    }
    if (kind.size() > 3 && kind.substr(kind.size() - 3) == "...") {
      arg.typeListAttr = kind.substr(0, kind.size() - 3);
    } else {
      size_t star = kind.find('*');
      if (star != std::string_view::npos) {
        arg.numberAttr = kind.substr(0, star);
        kind.remove_prefix(star + 1);
      }
      // resolved to a type attribute or a type once the attributes are known
      arg.typeAttr = kind;
    }
    args.push_back(arg);
  }
  return args;
}

/// Sets of types with a name, as scripts/update-op-table.py has them.
std::string_view typesOfSet(std::string_view name) {
  if (name == "number")
    return "float32,float64,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,qint16,quint16,uint16,"
           "complex128,float16,uint32,uint64";
  if (name == "real")
    return "float32,float64,int32,uint8,int16,int8,int64,bfloat16,uint16,float16,uint32,uint64";
  if (name == "floating")
    return "bfloat16,float16,float32,float64";
  if (name == "quantized")
    return "qint8,quint8,qint32,qint16,quint16";
  if (name == "complex")
    return "complex64,complex128";
  if (name == "index")
    return "int32,int64";
  return name;
}

/// "[1..,index,float32]" or "[\"SAME\"]" behind the type.
void parseAllowed(Attr &attr, std::string_view text) {
  attr.allowedText = text.substr(1, text.size() - 2);
  for (std::string_view word : splitListText(text)) {
    if (word.front() == '"') {
      attr.strings.push_back(unquote(word));
    } else if (word.size() > 2 && word.substr(word.size() - 2) == "..") {
      int64_t least = 0;
      bool isNumber = absl::SimpleAtoi(view(word.substr(0, word.size() - 2)), &least);
      assert(isNumber && "malformed minimum");
      (void)isNumber;
      attr.minimum = least;
    } else {
      for (std::string_view name : split(typesOfSet(word), ',')) {
        std::optional<DType> type = parseDType(name);
        assert(type && "unknown type");
        attr.types.push_back(*type);
      }
    }
  }
}

OpInfo parseOp(std::string_view text) {
  OpInfo op;
  size_t open = text.find('('), close = text.find(')');
  size_t open2 = text.find('(', close), close2 = text.find(')', open2);
  assert(close2 != std::string_view::npos && "malformed op");
  op.name = text.substr(0, open);
  op.inputs = parseArgs(text.substr(open + 1, close - open - 1));
  op.outputs = parseArgs(text.substr(open2 + 1, close2 - open2 - 1));
  std::string_view rest = trim(text.substr(close2 + 1));
  if (!rest.empty() && rest.front() == '{') {
    size_t end = rest.rfind('}');
    for (std::string_view part : split(rest.substr(1, end - 1), ',')) {
      Attr attr;
      size_t colon = part.find(':'), equal = part.find('=', colon);
      attr.name = part.substr(0, colon);
      attr.hasDefault = equal != std::string_view::npos;
      attr.type = part.substr(colon + 1, attr.hasDefault ? equal - colon - 1 : std::string_view::npos);
      if (attr.hasDefault)
        attr.defaultText = part.substr(equal + 1);
      if (size_t open = attr.type.find('['); open != std::string_view::npos) {
        parseAllowed(attr, attr.type.substr(open));
        attr.type = attr.type.substr(0, open);
      }
      op.attrs.push_back(attr);
    }
    rest = rest.substr(end + 1);
  }
  for (std::string_view flag : split(rest, ' ')) {
    op.isStateful |= flag == "stateful";
    op.isHost |= flag == "host";
  }
  for (std::vector<Arg> *args : {&op.inputs, &op.outputs})
    for (Arg &arg : *args)
      if (!arg.typeAttr.empty() && !op.findAttr(arg.typeAttr)) {
        std::optional<DType> type = parseDType(arg.typeAttr);
        assert(type && "argument of unknown type");
        arg.type = *type;
        arg.typeAttr = {};
      }
  return op;
}

std::vector<OpInfo> parseTables() {
  std::vector<OpInfo> ops;
  for (const char *table : kTables) {
    std::string_view text = trim(table);
    while (!text.empty()) {
      // an entry ends before a line that is not indented
      size_t end = text.find('\n');
      while (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] == ' ')
        end = text.find('\n', end + 1);
      ops.push_back(parseOp(trim(text.substr(0, end))));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
  }
  std::sort(ops.begin(), ops.end(), [](const OpInfo &a, const OpInfo &b) { return a.name < b.name; });
  return ops;
}

template <typename T>
absl::StatusOr<T> missing(const OpInfo &op, std::string_view attr) {
  return absl::InvalidArgumentError(absl::StrCat("attribute '", view(attr), "' of op ", view(op.name), " is missing"));
}

} // namespace

const Attr *OpInfo::findAttr(std::string_view name) const {
  for (const Attr &attr : attrs)
    if (attr.name == name)
      return &attr;
  return nullptr;
}

bool OpInfo::touchesResources() const {
  for (const std::vector<Arg> *args : {&inputs, &outputs})
    for (const Arg &arg : *args)
      if (arg.isRef || arg.type == DType::Resource)
        return true;
  return false;
}

const std::vector<OpInfo> &allOps() {
  static const std::vector<OpInfo> ops = parseTables();
  return ops;
}

const OpInfo *findOp(std::string_view name) {
  const std::vector<OpInfo> &ops = allOps();
  auto it = std::lower_bound(ops.begin(), ops.end(), name,
                             [](const OpInfo &op, std::string_view n) { return op.name < n; });
  return it != ops.end() && it->name == name ? &*it : nullptr;
}

std::vector<std::string_view> splitListText(std::string_view text) {
  if (text.size() < 2 || text.front() != '[')
    return {};
  return split(text.substr(1, text.size() - 2), ',');
}

std::string unquote(std::string_view text) {
  std::string out;
  if (text.size() < 2)
    return out;
  text = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out.push_back(text[i]);
      continue;
    }
    char c = text[++i];
    if (c == 'x' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c);
    }
  }
  return out;
}

absl::Status checkAttrs(const OpInfo &op, const AttrSource &attrs) {
  for (const Attr &attr : op.attrs) {
    auto refuse = [&](auto value, auto wanted) {
      return absl::InvalidArgumentError(absl::StrCat("attribute '", view(attr.name), "' is ", value, ", expected ", wanted));
    };
    const bool isList = attr.type.substr(0, 5) == "list(";
    if (attr.minimum) {
      std::optional<int64_t> n = isList ? attrs.listSize(attr.name) : attrs.intAttr(attr.name);
      if (n && *n < *attr.minimum)
        return isList ? refuse(absl::StrCat("a list of ", *n), absl::StrCat("at least ", *attr.minimum))
                      : refuse(*n, absl::StrCat("at least ", *attr.minimum));
    }
    if (!attr.types.empty()) {
      std::vector<DType> types = attrs.typeListAttr(attr.name).value_or(std::vector<DType>());
      if (std::optional<DType> type = attrs.typeAttr(attr.name))
        types.push_back(*type);
      for (DType type : types)
        if (std::find(attr.types.begin(), attr.types.end(), type) == attr.types.end()) {
          std::string names;
          for (DType allowed : attr.types)
            absl::StrAppend(&names, names.empty() ? "" : ", ", dtypeName(allowed));
          return refuse(type == DType::Invalid ? "no type" : dtypeName(type), attr.types.size() == 1 ? names : "one of " + names);
        }
    }
    if (!attr.strings.empty())
      if (std::optional<std::string> text = attrs.stringAttr(attr.name);
          text && std::find(attr.strings.begin(), attr.strings.end(), *text) == attr.strings.end()) {
        std::string all;
        for (const std::string &allowed : attr.strings)
          absl::StrAppend(&all, all.empty() ? "" : ", ", allowed);
        return refuse(absl::StrCat("'", absl::CHexEscape(*text), "'"), "one of " + all);
      }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DType>> resolveTypes(const OpInfo &op, const std::vector<Arg> &args, const AttrSource &attrs,
                                                std::vector<int64_t> *counts) {
  constexpr int64_t kMost = 1 << 20;
  std::vector<DType> types;
  for (const Arg &arg : args) {
    size_t before = types.size();
    if (!arg.typeListAttr.empty()) {
      std::optional<std::vector<DType>> list = attrs.typeListAttr(arg.typeListAttr);
      const Attr *attr = op.findAttr(arg.typeListAttr);
      if (!list && attr && attr->hasDefault) {
        list.emplace();
        for (std::string_view text : splitListText(attr->defaultText))
          list->push_back(parseDType(text).value_or(DType::Invalid));
      }
      if (!list)
        return missing<std::vector<DType>>(op, arg.typeListAttr);
      types.insert(types.end(), list->begin(), list->end());
    } else {
      DType type = arg.type;
      if (!arg.typeAttr.empty()) {
        std::optional<DType> t = attrs.typeAttr(arg.typeAttr);
        const Attr *attr = op.findAttr(arg.typeAttr);
        if (!t && attr && attr->hasDefault)
          t = parseDType(attr->defaultText);
        if (!t)
          return missing<std::vector<DType>>(op, arg.typeAttr);
        type = *t;
      }
      int64_t count = 1;
      if (!arg.numberAttr.empty()) {
        std::optional<int64_t> n = attrs.intAttr(arg.numberAttr);
        const Attr *attr = op.findAttr(arg.numberAttr);
        if (!n && attr && attr->hasDefault) {
          int64_t value;
          if (absl::SimpleAtoi(view(attr->defaultText), &value))
            n = value;
        }
        if (!n)
          return missing<std::vector<DType>>(op, arg.numberAttr);
        if (*n < 0 || *n > kMost)
          return absl::InvalidArgumentError(absl::StrCat("attribute '", view(arg.numberAttr), "' of op ",
                                                         view(op.name), " is ", *n));
        count = *n;
      }
      types.insert(types.end(), static_cast<size_t>(count), type);
    }
    if (counts)
      counts->push_back(static_cast<int64_t>(types.size() - before));
  }
  return types;
}

} // namespace lathe::ops
