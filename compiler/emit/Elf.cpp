// Layout of the result: the object's bytes as they are (header and symbol patched in place), then the constants, a new
// section name table and a new section header table.
#include "compiler/emit/Elf.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>

using namespace llvm;
using namespace llvm::ELF;

namespace lathe {
namespace {

constexpr uint64_t pageSize = 4096;
// Code reaches the constants by 32-bit offsets.
constexpr uint64_t largestConstants = (uint64_t(1) << 31) - (uint64_t(64) << 20);

Error bad(const Twine &what) { return createStringError("object file: " + what); }

/// A view of a relocatable object with every offset checked.
struct Object {
  StringRef bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  StringRef sectionNames;

  template <typename T>
  bool read(uint64_t offset, T &out) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
      return false;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return true;
  }
  Expected<StringRef> content(const Elf64_Shdr &s) const {
    if (s.sh_offset > bytes.size() || bytes.size() - s.sh_offset < s.sh_size)
      return bad("section lies outside the file");
    return bytes.substr(s.sh_offset, s.sh_size);
  }
  static StringRef name(StringRef table, uint64_t offset) {
    return offset < table.size() ? table.substr(offset).take_until([](char c) { return c == 0; }) : StringRef();
  }

  static Expected<Object> parse(StringRef bytes) {
    Object o;
    o.bytes = bytes;
    if (!o.read(0, o.header) || std::memcmp(o.header.e_ident, ElfMagic, 4) != 0)
      return bad("not ELF");
    if (o.header.e_ident[EI_CLASS] != ELFCLASS64 || o.header.e_ident[EI_DATA] != ELFDATA2LSB ||
        o.header.e_type != ET_REL)
      return bad("not a 64-bit little-endian relocatable");
    if (o.header.e_machine != EM_X86_64 && o.header.e_machine != EM_AARCH64)
      return bad("neither x86-64 nor AArch64");
    if (o.header.e_shentsize != sizeof(Elf64_Shdr) || o.header.e_shnum == 0 || o.header.e_shstrndx >= o.header.e_shnum)
      return bad("unexpected section header table");
    o.sections.resize(o.header.e_shnum);
    for (size_t i = 0; i < o.sections.size(); ++i)
      if (!o.read(o.header.e_shoff + i * sizeof(Elf64_Shdr), o.sections[i]))
        return bad("section header table lies outside the file");
    auto names = o.content(o.sections[o.header.e_shstrndx]);
    if (!names)
      return names.takeError();
    o.sectionNames = *names;
    return o;
  }

  /// Calls fn(index in table, symbol, name) for the symbols of the symbol table.
  Error eachSymbol(function_ref<void(uint64_t fileOffset, const Elf64_Sym &, StringRef)> fn) const {
    for (const Elf64_Shdr &s : sections) {
      if (s.sh_type != SHT_SYMTAB)
        continue;
      if (s.sh_link >= sections.size())
        return bad("symbol table without names");
      auto table = content(s);
      if (!table)
        return table.takeError();
      auto names = content(sections[s.sh_link]);
      if (!names)
        return names.takeError();
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym sym;
        std::memcpy(&sym, table->data() + at, sizeof(sym));
        fn(s.sh_offset + at, sym, name(*names, sym.st_name));
      }
    }
    return Error::success();
  }
};

} // namespace

Expected<std::string> addConstantsSection(StringRef object, StringRef symbol, uint64_t size,
                                          function_ref<void(std::string &)> append) {
  auto parsed = Object::parse(object);
  if (!parsed)
    return parsed.takeError();
  if (size > largestConstants)
    return createStringError(Twine("the constants take ") + Twine(size) +
                             " bytes, more than an object can hold (2 GB); keep them in a file with --weights FILE");
  if (parsed->sections.size() + 1 >= SHN_LORESERVE)
    return bad("too many sections");

  uint64_t symbolAt = 0;
  Elf64_Sym patched;
  if (Error e = parsed->eachSymbol([&](uint64_t at, const Elf64_Sym &s, StringRef name) {
        if (name == symbol && s.st_shndx == SHN_UNDEF) {
          symbolAt = at;
          patched = s;
        }
      }))
    return std::move(e);

  std::string out;
  uint64_t constantsAt = alignTo(object.size(), pageSize);
  std::string names = parsed->sectionNames.str();
  if (names.empty() || names.back() != 0)
    names.push_back(0);
  uint64_t nameAt = names.size();
  names += ".rodata.lathe";
  names.push_back(0);
  uint64_t namesAt = constantsAt + size;
  uint64_t headersAt = alignTo(namesAt + names.size(), 8);
  const uint64_t total = headersAt + (parsed->sections.size() + 1) * sizeof(Elf64_Shdr);
  out.reserve(total);
  out.append(object.data(), object.size());
  out.resize(constantsAt, 0);
  append(out);
  out.resize(total, 0);
  std::memcpy(out.data() + namesAt, names.data(), names.size());

  std::vector<Elf64_Shdr> sections = parsed->sections;
  sections[parsed->header.e_shstrndx].sh_offset = namesAt;
  sections[parsed->header.e_shstrndx].sh_size = names.size();
  Elf64_Shdr constants = {};
  constants.sh_name = static_cast<Elf64_Word>(nameAt);
  constants.sh_type = SHT_PROGBITS;
  constants.sh_flags = SHF_ALLOC;
  constants.sh_offset = constantsAt;
  constants.sh_size = size;
  constants.sh_addralign = pageSize;
  sections.push_back(constants);
  std::memcpy(out.data() + headersAt, sections.data(), sections.size() * sizeof(Elf64_Shdr));

  Elf64_Ehdr header = parsed->header;
  header.e_shoff = headersAt;
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  std::memcpy(out.data(), &header, sizeof(header));

  if (symbolAt) {
    patched.st_shndx = static_cast<Elf64_Half>(sections.size() - 1);
    patched.st_value = 0;
    patched.st_size = size;
    patched.setBindingAndType(STB_GLOBAL, STT_OBJECT);
    patched.st_other = STV_HIDDEN;
    std::memcpy(out.data() + symbolAt, &patched, sizeof(patched));
  }
  return out;
}

Expected<ElfSummary> summarizeObject(StringRef object) {
  auto parsed = Object::parse(object);
  if (!parsed)
    return parsed.takeError();
  ElfSummary summary;
  for (const Elf64_Shdr &s : parsed->sections)
    if ((s.sh_flags & SHF_EXECINSTR) && s.sh_type == SHT_PROGBITS)
      summary.codeBytes += s.sh_size;
  if (Error e = parsed->eachSymbol([&](uint64_t, const Elf64_Sym &s, StringRef name) {
        if (name.empty() || s.getBinding() == STB_LOCAL)
          return;
        if (s.st_shndx == SHN_UNDEF)
          summary.undefined.push_back(name.str());
        else if ((s.st_other & 3) == STV_DEFAULT)
          summary.exported.push_back(name.str());
      }))
    return std::move(e);
  std::sort(summary.undefined.begin(), summary.undefined.end());
  std::sort(summary.exported.begin(), summary.exported.end());
  return summary;
}

} // namespace lathe
