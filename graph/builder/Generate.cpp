// Writes the wrappers of ops: Generate OUT FAMILY.def ... makes OUT/<family>.h and .cpp, a class an op, from the registry.
//
// A class has a constructor with the op's inputs and those attributes that neither follow from them nor have a default, a struct
// Attrs with a setter for each other attribute, and its outputs as members.
#include "ops/Registry.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

using namespace lathe;

namespace {

/// TensorFlow's C++ names where they are not the op's.
const std::map<std::string, std::string> kNames = {
    {"ConcatV2", "Concat"},       {"Concat", "ConcatV1"},       {"Pack", "Stack"},           {"Unpack", "Unstack"},
    {"Stack", "StackV1"},
    {"Mul", "Multiply"},          {"Sub", "Subtract"},          {"Neg", "Negate"},           {"ReverseV2", "Reverse"},
    {"Reverse", "ReverseV1"},     {"TopKV2", "TopK"},           {"TopK", "TopKV1"},          {"Select", "Where3"},
    {"ListDiff", "SetDiff1D"},    {"ListDiffV2", "SetDiff1DV2"}, {"BroadcastArgs", "BroadcastDynamicShape"},
};
/// Second names.
const std::map<std::string, std::string> kAliases = {{"Multiply", "Mul"}, {"Subtract", "Sub"}, {"Negate", "Neg"}};

const std::set<std::string> kKeywords = {"and", "auto", "bool", "break", "case", "char", "class", "const", "default", "delete", "do", "double",
                                         "else", "enum", "explicit", "export", "false", "float", "for", "if", "int", "long", "new", "not",
                                         "operator", "or", "private", "public", "return", "short", "signed", "static", "struct", "switch",
                                         "template", "this", "true", "try", "union", "unsigned", "using", "void", "volatile", "while", "xor",
                                         "operation", "scope", "attrs", "node"};

std::string identifier(std::string_view name) {
  std::string out(name);
  return kKeywords.count(out) ? out + "_" : out;
}

/// "transpose_a" as "TransposeA"; "T" stays.
std::string camel(std::string_view name) {
  std::string out;
  bool up = true;
  for (char c : name) {
    if (c == '_') {
      up = true;
      continue;
    }
    out += up ? static_cast<char>(std::toupper(c)) : c;
    up = false;
  }
  return out;
}

/// The C++ type of an attribute; "" for those that wrappers cannot set.
std::string attrType(std::string_view type) {
  static const std::map<std::string_view, const char *> types = {
      {"int", "int64_t"}, {"float", "float"}, {"bool", "bool"}, {"string", "std::string"}, {"type", "DType"}, {"shape", "PartialShape"},
      {"tensor", "Tensor"}, {"func", "FunctionName"}};
  constexpr std::string_view list = "list(";
  if (type.substr(0, list.size()) == list) {
    std::string element = attrType(type.substr(list.size(), type.size() - list.size() - 1));
    return element.empty() || element == "Tensor" ? "" : "std::vector<" + element + ">";
  }
  auto it = types.find(type);
  return it == types.end() ? "" : it->second;
}

bool isList(const ops::Arg &arg) { return !arg.numberAttr.empty() || !arg.typeListAttr.empty(); }

/// Whether an attribute follows from the inputs.
bool isInferred(const ops::OpInfo &op, std::string_view attr) {
  for (const ops::Arg &arg : op.inputs)
    if (arg.typeAttr == attr || arg.numberAttr == attr || arg.typeListAttr == attr)
      return true;
  return false;
}

struct Wrapper {
  const ops::OpInfo &op;
  std::string name;
  std::vector<const ops::Attr *> required, optional;

  explicit Wrapper(const ops::OpInfo &op) : op(op), name(op.name) {
    if (auto it = kNames.find(name); it != kNames.end())
      name = it->second;
    for (const ops::Attr &attr : op.attrs)
      if (!isInferred(op, attr.name) && !attrType(attr.type).empty())
        (attr.hasDefault ? optional : required).push_back(&attr);
  }

  std::string parameters() const {
    std::string out = "const ::lathe::Scope &scope";
    for (const ops::Arg &arg : op.inputs)
      out += std::string(", const ::lathe::") + (isList(arg) ? "InputList" : "Input") + " &" + inputName(arg);
    for (const ops::Attr *attr : required)
      out += ", const " + attrType(attr->type) + " &" + identifier(attr->name) + "_attr";
    return out;
  }
  static std::string inputName(const ops::Arg &arg) { return identifier(arg.name) + "_input"; }
  std::string forward() const {
    std::string out = "scope";
    for (const ops::Arg &arg : op.inputs)
      out += ", " + inputName(arg);
    for (const ops::Attr *attr : required)
      out += ", " + identifier(attr->name) + "_attr";
    return out;
  }

  void header(std::ostream &out) const {
    out << "\nclass " << name << " {\npublic:\n";
    if (!optional.empty()) {
      out << "  struct Attrs {\n";
      for (const ops::Attr *attr : optional)
        out << "    Attrs " << camel(attr->name) << "(const " << attrType(attr->type) << " &value) const { return with(\"" << attr->name
            << "\", value); }\n";
      out << "    AttrArgs values;\n\n  private:\n    Attrs with(const char *name, AttrArg value) const;\n  };\n";
    }
    out << "  explicit " << name << "(" << parameters() << ");\n";
    if (!optional.empty()) {
      out << "  explicit " << name << "(" << parameters() << ", const Attrs &attrs);\n";
      for (const ops::Attr *attr : optional)
        if (camel(attr->name) != name && camel(attr->name) != "Attrs")
          out << "  static Attrs " << camel(attr->name) << "(const " << attrType(attr->type) << " &value) { return Attrs()."
              << camel(attr->name) << "(value); }\n";
    }
    if (op.outputs.size() == 1) {
      const ops::Arg &arg = op.outputs[0];
      std::string member = identifier(arg.name);
      if (isList(arg))
        out << "  ::lathe::Output operator[](size_t i) const { return " << member << "[i]; }\n";
      else
        out << "  operator ::lathe::Output() const { return " << member << "; }\n  ::lathe::graphdef::Node *node() const { return " << member
            << ".node(); }\n";
    } else if (op.outputs.empty()) {
      out << "  operator ::lathe::Operation() const { return operation; }\n";
    }
    out << "\n  ::lathe::Operation operation;\n";
    for (const ops::Arg &arg : op.outputs)
      out << "  ::lathe::" << (isList(arg) ? "OutputList" : "Output") << " " << identifier(arg.name) << ";\n";
    out << "};\n";
    if (auto it = kAliases.find(name); it != kAliases.end())
      out << "using " << it->second << " = " << name << ";\n";
  }

  void source(std::ostream &out) const {
    if (!optional.empty())
      out << "\n" << name << "::Attrs " << name << "::Attrs::with(const char *name, AttrArg value) const {\n  Attrs next = *this;\n"
          << "  next.values.emplace_back(name, std::move(value));\n  return next;\n}\n";
    if (!optional.empty())
      out << "\n" << name << "::" << name << "(" << parameters() << ") : " << name << "(" << forward() << ", Attrs()) {}\n";
    out << "\n" << name << "::" << name << "(" << parameters() << (optional.empty() ? "" : ", const Attrs &attrs") << ") {\n";
    out << "  AttrArgs all" << (optional.empty() ? "" : " = attrs.values") << ";\n";
    for (const ops::Attr *attr : required)
      out << "  all.emplace_back(\"" << attr->name << "\", " << identifier(attr->name) << "_attr);\n";
    out << "  operation = scope.AddOp(\"" << op.name << "\", {";
    bool first = true;
    for (const ops::Arg &arg : op.inputs) {
      out << (first ? "" : ", ");
      if (isList(arg))
        out << inputName(arg);
      else
        out << "InputList(std::vector<Input>{" << inputName(arg) << "})";
      first = false;
    }
    out << "}, all);\n";
    for (const ops::Arg &arg : op.outputs)
      out << "  " << identifier(arg.name) << " = " << (isList(arg) ? "outputsOf" : "outputOf") << "(operation, \"" << arg.name << "\");\n";
    out << "}\n";
  }
};

std::vector<const ops::OpInfo *> opsOf(const std::string &path) {
  std::vector<const ops::OpInfo *> found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    size_t open = line.find('(');
    if (open == std::string::npos || !std::isupper(static_cast<unsigned char>(line[0])))
      continue;
    const ops::OpInfo *op = ops::findOp(line.substr(0, open));
    // Const has a hand-written wrapper, launches are the session's own
    if (op && op->name != "Const" && op->name != "LatheLaunch")
      found.push_back(op);
  }
  return found;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " OUT FAMILY.def ...\n";
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    // "ArrayOps.def" -> "array"
    std::string stem = std::filesystem::path(argv[i]).stem().string();
    stem = stem.substr(0, stem.size() - 3);
    std::transform(stem.begin(), stem.end(), stem.begin(), [](unsigned char c) { return std::tolower(c); });
    std::ostringstream header, source;
    std::string guard = "LATHE_BUILDER_OPS_" + stem + "_H";
    header << "// Made by graph/builder/Generate.cpp from ops/" << std::filesystem::path(argv[i]).filename().string() << ".\n#ifndef " << guard
           << "\n#define " << guard << "\n\n#include \"graph/builder/Scope.h\"\n\nnamespace lathe::ops {\n";
    // they run once a node of a graph that is made; to optimise them takes a minute of every build
    source << "#include \"graph/builder/ops/" << stem << ".h\"\n\n#ifdef __clang__\n#pragma clang optimize off\n#else\n"
           << "#pragma GCC optimize(\"O0\")\n#endif\n\nnamespace lathe::ops {\n";
    for (const ops::OpInfo *op : opsOf(argv[i])) {
      Wrapper wrapper(*op);
      wrapper.header(header);
      wrapper.source(source);
    }
    header << "\n} // namespace lathe::ops\n\n#endif\n";
    source << "\n} // namespace lathe::ops\n";
    std::ofstream(std::string(argv[1]) + "/" + stem + ".h") << header.str();
    std::ofstream(std::string(argv[1]) + "/" + stem + ".cpp") << source.str();
  }
  return 0;
}
