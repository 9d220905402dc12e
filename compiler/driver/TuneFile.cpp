#include "compiler/driver/TuneFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;

namespace lathe {

static constexpr const char *versionKey = "lathe_tuning";
static constexpr uint64_t maxBytes = 64 << 20;
static constexpr int maxDepth = 8;

/// LLVM's parser recurses with the nesting of the text.
static bool isShallow(StringRef text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > maxDepth)
      return false;
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return true;
}

/// What is wrong with the entry, or "".
static std::string readKernel(const json::Value &value, TunedKernel &kernel) {
  const json::Object *entry = value.getAsObject();
  const json::Object *plan = entry ? entry->getObject("plan") : nullptr;
  if (!plan)
    return "it has no plan";
  for (const auto &[name, item] : *plan) {
    std::optional<int64_t> number = item.getAsInteger();
    if (!number)
      return "'" + name.str() + "' is no integer";
    if (std::string wrong = kernel.plan.set(name, *number); !wrong.empty())
      return wrong;
  }
  kernel.us = entry->getNumber("ns").value_or(0) * 1e-3;
  kernel.estimatedUs = entry->getNumber("estimated_ns").value_or(0) * 1e-3;
  return "";
}

Expected<TuneFile> TuneFile::read(const std::string &path, bool mayLack, std::string &warnings) {
  TuneFile file;
  if (mayLack && !sys::fs::exists(path))
    return file;
  auto problem = [&](const Twine &what) { return createStringError("tuning file '" + path + "': " + what); };
  uint64_t size = 0;
  if (std::error_code error = sys::fs::file_size(path, size))
    return problem(error.message());
  if (size > maxBytes)
    return problem("more than 64 MB");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return problem(buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  if (!isShallow(text))
    return problem("not a tuning file: nested too deeply");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return problem("not a tuning file: " + llvm::toString(value.takeError()));
  const json::Object *top = value->getAsObject();
  std::optional<int64_t> found = top ? top->getInteger(versionKey) : std::nullopt;
  if (!found)
    return problem(Twine("not a tuning file: it has no '") + versionKey + "'");
  auto warn = [&](const Twine &what) { warnings += ("tuning file '" + path + "': " + what + "\n").str(); };
  if (*found != version) {
    warn("version " + Twine(*found) + " instead of " + Twine(version) + ": ignored");
    return file;
  }
  const json::Object *all = top->getObject("targets");
  if (!all)
    return problem("not a tuning file: it has no 'targets'");
  for (const auto &[target, list] : *all) {
    const json::Object *kernels = list.getAsObject();
    if (!kernels) {
      warn("target '" + target.str() + "' is no object: ignored");
      continue;
    }
    for (const auto &[signature, entry] : *kernels) {
      TunedKernel kernel;
      if (std::string wrong = readKernel(entry, kernel); !wrong.empty())
        warn("kernel '" + signature.str() + "': " + wrong + ": ignored");
      else
        file.targets[target.str()][signature.str()] = kernel;
    }
  }
  return file;
}

Error TuneFile::write(const std::string &path) const {
  json::Object all;
  for (const auto &[target, kernels] : targets) {
    json::Object list;
    for (const auto &[signature, kernel] : kernels) {
      json::Object plan;
      for (auto [name, value] : kernel.plan.items())
        plan[name] = value;
      list[signature] = json::Object{
          {"plan", std::move(plan)}, {"ns", std::llround(kernel.us * 1e3)}, {"estimated_ns", std::llround(kernel.estimatedUs * 1e3)}};
    }
    all[target] = std::move(list);
  }
  json::Value top = json::Object{{versionKey, version}, {"targets", std::move(all)}};
  Error error = writeToOutput(path, [&](raw_ostream &os) {
    os << formatv("{0:2}", top) << '\n';
    return Error::success();
  });
  if (error)
    return createStringError("cannot write tuning file '" + path + "': " + llvm::toString(std::move(error)));
  return Error::success();
}

codegen::PlanTable TuneFile::plansFor(const std::string &target) const {
  codegen::PlanTable plans;
  if (auto found = targets.find(target); found != targets.end())
    for (const auto &[signature, kernel] : found->second)
      plans[signature] = kernel.plan;
  return plans;
}

} // namespace lathe
