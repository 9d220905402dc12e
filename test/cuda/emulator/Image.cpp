// A module's text -> Image: variables get addresses, functions are decoded callees first.
#include "test/cuda/emulator/FunctionDecoder.h"

#include <algorithm>
#include <functional>
#include <sstream>

namespace lathe::emu {
namespace {

uint64_t roundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

std::string calleeOf(const Statement &s) {
  for (const Operand &o : s.operands)
    if (o.kind == Operand::Name)
      return o.name;
  return {};
}

class Loader {
public:
  Loader(Image &image, uint64_t (*allocate)(void *, const Variable &), void *context)
      : image(image), allocate(allocate), context(context) {}

  void run() {
    if (image.ptx.addressSize != 64)
      throw PtxError(1, "addresses of 64 bits are expected");
    variables();
    for (const PtxFunction &f : image.ptx.functions)
      if (f.hasBody && !bodies.emplace(f.name, &f).second)
        throw PtxError(f.line, "'" + f.name + "' is there twice");
    localBases();
    for (const PtxFunction &f : image.ptx.functions)
      if (f.hasBody)
        decodeFunction(f);
  }

private:
  Image &image;
  uint64_t (*allocate)(void *, const Variable &);
  void *context;
  std::map<std::string, SharedPlace> shared;
  std::map<std::string, const PtxFunction *> bodies;
  std::map<std::string, uint32_t> localBase;
  std::map<std::string, std::set<std::string>> namedShared;
  std::set<std::string> done;

  void variables() {
    uint64_t at = 0, constants = 0;
    for (const Variable &v : image.ptx.variables) {
      if (v.space == Space::Shared) {
        if (v.external || v.size == 0) {
          shared[v.name] = {0, 0, true};
          continue;
        }
        at = roundUp(at, std::max(16u, v.align));
        shared[v.name] = {at, v.size, false};
        at += v.size;
      } else if (v.space == Space::Global || v.space == Space::Const) {
        if (v.external)
          throw PtxError(v.line, "the variable '" + v.name + "' is in no module");
        if (v.space == Space::Const && (constants += v.size) > 65536)
          throw PtxError(v.line, "more than 65536 bytes of constants");
        image.globals[v.name] = {&v, allocate(context, v)};
      } else {
        throw PtxError(v.line, "'" + v.name + "': no variable of that space outside a function");
      }
    }
  }

  /// What a function's local variables come after: those of all that call it.
  void localBases() {
    std::map<std::string, int> state;
    std::vector<std::string> order; // callees first
    std::function<void(const std::string &)> visit = [&](const std::string &name) {
      if (state[name] == 2)
        return;
      if (state[name] == 1)
        throw PtxError(bodies[name]->line, "'" + name + "' calls itself, which is not supported");
      state[name] = 1;
      for (const Statement &s : bodies[name]->statements)
        if (s.op[0] == "call") {
          if (!bodies.count(calleeOf(s)))
            throw PtxError(s.line, "a call of '" + calleeOf(s) + "', which is in no module");
          visit(calleeOf(s));
        }
      state[name] = 2;
      order.push_back(name);
    };
    for (const auto &b : bodies)
      visit(b.first);
    for (size_t k = order.size(); k-- > 0;) {
      const PtxFunction &f = *bodies[order[k]];
      uint64_t end = localBase[f.name];
      for (const Variable &v : f.variables)
        if (v.space == Space::Local)
          end = roundUp(end, v.align) + v.size;
      if (end > (512 << 10))
        throw PtxError(f.line, "more than 512 KiB of local memory");
      for (const Statement &s : f.statements)
        if (s.op[0] == "call")
          localBase[calleeOf(s)] =
              std::max<uint32_t>(localBase[calleeOf(s)], static_cast<uint32_t>(roundUp(end, 16)));
    }
  }

  void decodeFunction(const PtxFunction &f) {
    if (!done.insert(f.name).second)
      return;
    std::set<std::string> callees;
    for (const Statement &s : f.statements)
      if (s.op[0] == "call" && callees.insert(calleeOf(s)).second)
        decodeFunction(*bodies[calleeOf(s)]);
    image.codes.emplace_back();
    Code &code = image.codes.back();
    code.source = &f;
    code.name = f.name;
    code.entry = f.entry;
    code.localBase = localBase[f.name];
    if (!f.entry)
      for (const Variable &v : f.variables)
        if (v.space == Space::Shared)
          throw PtxError(v.line, "a shared variable within a function that is no entry is not supported");
    FunctionDecoder decoder(image, code, shared);
    decoder.run();
    code.localEnd = code.localBase + code.localBytes;
    std::set<std::string> &named = namedShared[f.name];
    named = decoder.namedShared;
    for (const std::string &c : callees) {
      named.insert(namedShared[c].begin(), namedShared[c].end());
      code.localEnd = std::max(code.localEnd, image.byName[c]->localEnd);
    }
    for (const std::string &name : named)
      code.staticShared += static_cast<uint32_t>(shared[name].size);
    image.byName[f.name] = &code;
  }
};

} // namespace

std::unique_ptr<Image> decode(const std::string &text, uint64_t (*allocate)(void *, const Variable &),
                              void *context) {
  auto image = std::make_unique<Image>();
  image->ptx = parsePtx(text);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    image->lines.push_back(line);
  Loader(*image, allocate, context).run();
  return image;
}

} // namespace lathe::emu
