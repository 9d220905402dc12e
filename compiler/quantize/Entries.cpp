// Models of several entries: each is quantized as a module of its own.
#include "compiler/quantize/Quantize.h"

#include "dialects/hlo/Shape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>

using namespace mlir;

namespace lathe::quantize {
namespace {

/// Several entries, each with feeds of its own.
class Entries {
public:
  Entries(ModuleOp module, const Session &session) : module(module), session(session) {
    for (auto f : module.getOps<func::FuncOp>())
      if (f.isPublic() && !f.isExternal())
        keys.push_back(f.getName().str());
  }
  size_t count() const { return keys.size(); }

  FailureOr<Report> run() {
    for (const std::string &key : keys)
      if (hasVariables(module.lookupSymbol<func::FuncOp>(key)))
        return emitError(module.getLoc()) << "signature '" << key
                                          << "' has variables, which are not quantized; --signature KEY takes one signature alone";
    if (failed(sortFeeds()))
      return failure();
    Report all;
    all.kind = session.options.kind;
    for (const std::string &key : keys) {
      auto report = quantize(key);
      if (failed(report))
        return failure();
      add(all, *report, key);
    }
    return all;
  }

private:
  ModuleOp module;
  const Session &session;
  std::vector<std::string> keys;
  llvm::StringMap<std::vector<std::string>> feeds; ///< by key

  static bool hasVariables(func::FuncOp f) {
    for (unsigned i = 0; i < f.getNumArguments(); ++i)
      if (f.getArgAttr(i, "hlo.variable"))
        return true;
    for (unsigned i = 0; i < f.getNumResults(); ++i)
      if (f.getResultAttr(i, "hlo.variable"))
        return true;
    return false;
  }

  /// KEY=PATH names the entry; feeds without a key are the first one's.
  LogicalResult sortFeeds() {
    for (StringRef given : session.options.calibrate) {
      auto [key, path] = given.split('=');
      const bool isKey = llvm::is_contained(keys, key);
      if (!isKey && given.contains('=') && !llvm::sys::fs::exists(given))
        return emitError(module.getLoc()) << "--calibrate " << given << ": there is no signature '" << key
                                          << "', there are: " << llvm::join(keys, ", ");
      feeds[isKey ? key : StringRef(keys.front())].push_back((isKey ? path : given).str());
    }
    return success();
  }

  /// One entry as a module of its own, which then takes the place of the entry. What sizes are called is the module's, and grows.
  FailureOr<Report> quantize(const std::string &key) {
    OwningOpRef<ModuleOp> own = module.clone();
    for (auto f : llvm::to_vector(own->getOps<func::FuncOp>()))
      if (f.isPublic() && !f.isExternal() && f.getName() != key)
        f.erase();
    Session of = session;
    of.options.calibrate = feeds[key];
    if (of.options.calibrate.empty() && of.options.maxError >= 0)
      return noFeeds(key);
    if (session.progress)
      of.progress = [&](const std::string &what) { session.progress(key + ": " + what); };
    auto report = quantizeEntry(*own, of);
    if (failed(report) && of.options.calibrate.empty())
      return noFeeds(key);
    if (failed(report))
      return failure();
    auto before = module->getAttrOfType<ArrayAttr>(hlo::symbolsAttrName), after = (*own)->getAttrOfType<ArrayAttr>(hlo::symbolsAttrName);
    if (before && (!after || after.size() < before.size() || after.getValue().take_front(before.size()) != before.getValue()))
      return emitError(module.getLoc()) << "--quantize: the sizes of entry '" << key << "' were named anew";
    if (after)
      module->setAttr(hlo::symbolsAttrName, after);
    auto place = module.lookupSymbol<func::FuncOp>(key), made = own->lookupSymbol<func::FuncOp>(key);
    made->remove();
    place->getBlock()->getOperations().insert(place->getIterator(), made);
    place.erase();
    return report;
  }

  InFlightDiagnostic noFeeds(const std::string &key) {
    return emitError(module.getLoc()) << "signature '" << key << "' has no feeds: --calibrate " << key
                                      << "=FEEDS.npz gives it some; --signature KEY takes one signature alone";
  }

  static void add(Report &all, Report &one, const std::string &key) {
    for (UnitReport &unit : one.units)
      unit.node = key + ": " + unit.node;
    for (OutputReport &output : one.outputs)
      output.name = key + ": " + output.name;
    llvm::append_range(all.units, one.units);
    llvm::append_range(all.outputs, one.outputs);
    llvm::append_range(all.trials, one.trials);
    all.feeds += one.feeds;
    all.heldOut += one.heldOut;
    all.unreached += one.unreached;
    all.outside = std::max(all.outside, one.outside);
    all.floatSeconds += one.floatSeconds;
    all.seconds += one.seconds;
  }
};

} // namespace

FailureOr<Report> quantizeModule(ModuleOp module, const Session &session) {
  Entries entries(module, session);
  const bool alike = isWeightsOnly(session.options.kind) && session.options.calibrate.empty(); // nothing runs
  return entries.count() > 1 && !alike ? entries.run() : quantizeEntry(module, session);
}

} // namespace lathe::quantize
