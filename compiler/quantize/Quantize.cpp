// Calibration, parameters, the search for what has to stay float, and the rewriting; each trial works on a clone.
#include "compiler/quantize/Quantize.h"

#include "base/Float.h"
#include "compiler/quantize/Feeds.h"
#include "compiler/quantize/Observe.h"
#include "compiler/quantize/Tail.h"
#include "dialects/graph/Types.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "passes/quantize/Passes.h"
#include "passes/quantize/Taps.h"
#include "passes/simplify/Match.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>

using namespace mlir;

namespace lathe::quantize {
namespace {

double decibels(double signal, double noise) { return noise > 0 ? 10 * std::log10(signal / noise) : INFINITY; }

/// What compares results with those of the float model.
struct Comparison {
  double signal = 0, noise = 0, largest = 0, low = 0, high = 0; ///< the range is that of all feeds
  int64_t differ = 0, count = 0;
  bool real = true;
  std::vector<double> peaks; ///< the largest difference of each feed

  void add(const Tensor &want, const Tensor &got) {
    count += want.numElements();
    real = want.dtype() == DType::Float32;
    if (!real) {
      const size_t size = dtypeSize(want.dtype());
      auto *w = static_cast<const char *>(want.data()), *g = static_cast<const char *>(got.data());
      for (int64_t i = 0; i < want.numElements(); ++i)
        differ += got.numElements() != want.numElements() || std::memcmp(w + i * size, g + i * size, size) != 0;
      return;
    }
    double &peak = peaks.emplace_back(0);
    for (int64_t i = 0; i < want.numElements(); ++i) {
      const double w = want.data<float>()[i], d = double(got.data<float>()[i]) - w;
      signal += w * w;
      noise += d * d;
      peak = std::isnan(d) && !std::isnan(w) ? INFINITY : std::max(peak, std::abs(d));
    }
    largest = std::max(largest, peak);
  }
  /// Largest error as a share of the range, or the share of integers that differ. The range of an output that hardly changes (one
  /// number, say) says nothing of what is large: then the share is that of its size.
  double error() const {
    if (!real)
      return count ? double(differ) / double(count) : 0;
    return share(largest);
  }
  /// What 99 of 100 inputs stay below.
  ErrorLimit limit() const {
    if (!real)
      return {error()};
    const double feeds = static_cast<double>(std::max<size_t>(peaks.size(), 1)), numbers = static_cast<double>(std::max<int64_t>(count, 1));
    ErrorLimit l = errorLimit(peaks, noise / numbers, numbers / feeds);
    l.value = share(l.value);
    return l;
  }

private:
  double share(double difference) const {
    const double size = std::max(std::abs(low), std::abs(high)), range = high - low;
    return difference == 0 ? 0 : difference / std::max(range > 1e-3 * size ? range : size, 1e-30);
  }
};

/// Weights that a file stores in f16 are constants as others, and so are biases.
LogicalResult widenHalves(ModuleOp module) {
  SmallVector<hlo::ConvertOp> found;
  module.walk([&](hlo::ConvertOp op) {
    if (hlo::elementType(op.getOperand()).isF16() && hlo::elementType(op.getResult()).isF32() && constantValue(op.getOperand()))
      found.push_back(op);
  });
  for (hlo::ConvertOp op : found) {
    auto half = hlo::readConstant(op.getOperand());
    if (failed(half))
      return op.emitError() << "its constant cannot be read";
    auto wide = Tensor::tryAllocate(DType::Float32, half->dims(), int64_t(1) << 40);
    if (!wide.ok())
      return op.emitError() << "there is no room for its constant";
    for (int64_t i = 0; i < half->numElements(); ++i)
      wide->data<float>()[i] = halfToFloat(static_cast<const uint16_t *>(half->data())[i]);
    OpBuilder b(op);
    op.replaceAllUsesWith(hlo::makeConstant(b, op.getLoc(), *wide));
    op.erase();
  }
  return success();
}

class Quantizer {
public:
  Quantizer(ModuleOp module, const Session &session) : module(module), session(session), bits(session.options.kind == "int16x8" ? 16 : 8) {}

  FailureOr<Report> run() {
    auto made = quantizeByKind();
    dropGivenRanges();
    return made;
  }

private:
  void dropGivenRanges() {
    module.walk([](Operation *op) { op->removeAttr(givenAttr); });
    for (auto f : module.getOps<func::FuncOp>())
      for (unsigned i = 0; i < f.getNumArguments(); ++i)
        f.removeArgAttr(i, givenAttr);
  }

  FailureOr<Report> quantizeByKind() {
    report.kind = session.options.kind;
    if (failed(widenHalves(module)))
      return failure();
    if (isWeightsOnly(session.options.kind))
      return weightsOnly();
    auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
    if (functions.size() != 1 || module->hasAttr("hlo.variables"))
      return emitError(module.getLoc()) << "--quantize: expected a model of one entry without variables";
    function = functions.front();
    if (failed(runPasses(module, [&](PassManager &pm) { buildPreparePipeline(pm, session.foldBytes); })))
      return failure();
    original = module.clone(); // rounds where the model does
    auto take = [&](PassManager &pm) {
      pm.addPass(createHloQuantizeRanges());
      buildFoldPipeline(pm, session.foldBytes);
    };
    if (failed(runPasses(module, take)))
      return failure();
    if (session.options.calibrate.empty())
      return byGivenRanges();
    auto feeds = readFeeds(function, session.options.calibrate, session.maxBytes);
    if (failed(feeds))
      return failure();
    if (feeds->empty())
      return emitError(module.getLoc()) << "--calibrate: there are no feeds";
    // What seen inputs leave of a range tells nothing where its ends are made for those to come, and roundings do not know what was
    // seen: then all feeds say both.
    if (session.options.maxError >= 0 && widensRanges(session.options) && feeds->size() >= fewestSamples) {
      calibration = heldOut = *feeds;
    } else {
      for (auto [i, feed] : llvm::enumerate(*feeds))
        (i % 2 ? heldOut : calibration).push_back(feed);
      if (heldOut.empty())
        heldOut = calibration;
    }
    report.feeds = feeds->size();
    report.heldOut = heldOut.size();
    return quantize();
  }

  ModuleOp module;
  const Session &session;
  int64_t bits;
  func::FuncOp function;
  OwningOpRef<ModuleOp> original; ///< the float model as it is given, simplified
  Report report;
  std::vector<Feed> calibration, heldOut;
  std::vector<std::vector<Tensor>> reference; ///< the float model's results on held-out feeds
  std::vector<std::pair<double, double>> ends; ///< the lowest and highest number of each of its results on all feeds
  std::vector<KernelTime> floatTimes, times;  ///< of the float model and of the form that was accepted
  using Kept = std::vector<bool>;             ///< which units stay float

  /// Without feeds: by what the model says of its ranges, as long as that is enough. Nothing is measured.
  FailureOr<Report> byGivenRanges() {
    bool any = false;
    module.walk([&](Operation *op) { any |= op->hasAttr(givenAttr); });
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      any |= bool(function.getArgAttr(i, givenAttr));
    const bool measures = session.options.maxError >= 0 || session.options.keepFaster;
    if (!any || measures) {
      const std::string asks = measures ? "--max-error and --keep-faster" : "--quantize " + session.options.kind;
      return emitError(module.getLoc()) << asks << ": expected --calibrate FEEDS.npz, inputs that say which numbers there are"
                                        << (any ? "" : "; the model says no ranges itself");
    }
    if (failed(select(module)))
      return failure();
    for (const Unit &unit : chosenUnits(function))
      report.units.push_back(lineOf(unit));
    addFloatProducts();
    progress("quantize");
    if (failed(rewrite(module, session.options.io, session.annotate ? Form::Annotated : Form::Whole)))
      return emitError(module.getLoc()) << "--calibrate FEEDS.npz gives ranges to values of which the model says none";
    return std::move(report);
  }

  /// No feeds are needed; where there are some, they say how much the outputs differ.
  FailureOr<Report> weightsOnly() {
    auto prepare = [&](PassManager &pm) {
      buildPreparePipeline(pm, session.foldBytes);
      buildFoldPipeline(pm, session.foldBytes);
    };
    if (failed(runPasses(module, prepare)))
      return failure();
    auto narrow = [&](PassManager &pm) {
      HloQuantizeWeightsOptions o;
      o.kind = report.kind;
      pm.addPass(createHloQuantizeWeights(o));
    };
    if (!session.options.calibrate.empty()) {
      auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
      if (functions.size() != 1 || module->hasAttr("hlo.variables"))
        return emitError(module.getLoc()) << "--calibrate: expected a model of one entry without variables";
      function = functions.front();
      auto feeds = readFeeds(function, session.options.calibrate, session.maxBytes);
      if (failed(feeds))
        return failure();
      heldOut = std::move(*feeds);
      report.feeds = report.heldOut = heldOut.size();
      OwningOpRef<ModuleOp> clone = module.clone();
      if (failed(keepReference()) || failed(runPasses(*clone, narrow)) || failed(compare(std::move(clone), report.outputs)))
        return failure();
      for (const OutputReport &o : report.outputs)
        if (session.options.maxError >= 0 && !o.exact && o.likelyError > session.options.maxError)
          return emitError(module.getLoc()) << "--max-error " << session.options.maxError << ": output '" << o.name << "' is off by "
                                            << o.likelyError << " of its range; --quantize " << report.kind << " keeps no nodes float";
    }
    if (!session.annotate && failed(runPasses(module, narrow)))
      return failure();
    return std::move(report);
  }

  LogicalResult runPasses(ModuleOp on, llvm::function_ref<void(PassManager &)> build) {
    PassManager pm(on.getContext());
    if (session.configurePassManager && failed(session.configurePassManager(pm)))
      return failure();
    build(pm);
    return pm.run(on);
  }
  LogicalResult select(ModuleOp on) {
    return runPasses(on, [&](PassManager &pm) {
      HloQuantizeSelectOptions o;
      o.bits = bits;
      pm.addPass(createHloQuantizeSelect(o));
    });
  }
  /// From marks with ranges to integers; annotated: to types on the marked ops.
  enum class Form { Whole, Isolated, Mixed, Annotated };
  LogicalResult rewrite(ModuleOp on, const std::string &io, Form form) {
    return runPasses(on, [&](PassManager &pm) {
      HloQuantizeParametersOptions p;
      p.bits = bits;
      pm.addPass(createHloQuantizeParameters(p));
      if (form == Form::Annotated)
        return;
      HloQuantizeRewriteOptions r;
      r.io = io;
      r.isolate = form == Form::Isolated;
      r.mix = form == Form::Mixed;
      r.fastMath = session.options.math == "fast";
      pm.addPass(createHloQuantizeRewrite(r));
    });
  }
  void progress(const std::string &what) {
    if (session.progress)
      session.progress(what);
  }

  FailureOr<Report> quantize() {
    progress("calibrate");
    const std::vector<Feed> others = report.heldOut < report.feeds ? heldOut : std::vector<Feed>();
    if (failed(select(module)) || failed(observe(function, calibration, others, session, report.outside)) ||
        failed(select(module)))
      return failure();
    report.unreached = llvm::count_if(findUnits(function), [](const Unit &unit) { return unit.last()->hasAttr(unreachedAttr); });
    if (failed(keepReference()))
      return failure();
    std::vector<Unit> units = chosenUnits(function); // before anything is kept
    if (failed(measureUnits(units)))
      return failure();

    auto kept = search(units);
    if (succeeded(kept) && session.options.keepFaster)
      kept = keepFaster(units, *kept);
    if (failed(kept))
      return failure();
    std::vector<double> before = secondsOf(units, floatTimes, report.floatSeconds), after = secondsOf(units, times, report.seconds);
    for (size_t i = 0; i < units.size(); ++i)
      std::tie(report.units[i].floatSeconds, report.units[i].seconds) = {before[i], after[i]};
    keepFloat(units, *kept);
    if (failed(select(module)))
      return failure();
    for (auto [unit, line] : llvm::zip_equal(units, report.units)) {
      line.quantized = unit.last()->hasAttr(markAttr);
      if (!line.quantized)
        line.bytes = line.floatBytes;
    }
    addFloatProducts();
    progress("quantize");
    // with no bound to keep, what was held out to tell the errors is worth more as a part of the ranges
    if (session.options.maxError < 0 && report.feeds > report.heldOut) {
      std::vector<Feed> all = calibration;
      all.insert(all.end(), heldOut.begin(), heldOut.end());
      double outside = 0;
      if (failed(observe(function, all, {}, session, outside)))
        return failure();
    }
    if (failed(rewrite(module, session.options.io, session.annotate ? Form::Annotated : Form::Whole)))
      return failure();
    return std::move(report);
  }

  /// The units in the order in which they are kept float: those first by which the outputs are off most for the work that they do. A
  /// thousandth of all work is what a unit costs at least.
  std::vector<size_t> searchOrder(ArrayRef<double> influence) const {
    double all = 0;
    for (const UnitReport &line : report.units)
      all += double(line.multiplyAdds);
    auto rank = [&](size_t i) { return influence[i] / ((all > 0 ? double(report.units[i].multiplyAdds) / all : 0) + 1e-3); };
    std::vector<size_t> order(report.units.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    llvm::sort(order, [&](size_t a, size_t b) { return std::make_pair(-rank(a), a) < std::make_pair(-rank(b), b); });
    return order;
  }

  /// For each unit: the square of the outputs' largest error where this unit alone is computed in integers, as a share of their ranges,
  /// over some feeds. Squares, since roundings that know nothing of each other add so. Where that takes too many runs for the model's
  /// work, neighbours are measured together, and share what they do to the outputs.
  FailureOr<std::vector<double>> influences(const std::vector<Unit> &units) {
    constexpr size_t fewestRuns = 64, mostRuns = 1024, mostFeeds = 8;
    constexpr double mostWork = 2e12; // multiply-adds: a minute or two
    progress("measure what each node does to the outputs");
    OwningOpRef<ModuleOp> clone = module.clone();
    if (failed(rewrite(*clone, "float", Form::Mixed)))
      return failure();
    double work = 1;
    for (const UnitReport &line : report.units)
      work += double(line.multiplyAdds);
    const size_t budget = std::clamp<size_t>(size_t(mostWork / work), fewestRuns, mostRuns);
    const size_t together = std::max<size_t>(1, llvm::divideCeil(2 * units.size(), budget)), groups = llvm::divideCeil(units.size(), together);
    const size_t forms = groups + 1, count = std::min(heldOut.size(), std::clamp<size_t>(budget / forms, 2, mostFeeds));
    std::vector<Feed> runs;
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < forms; ++k) { // none, then each
        Tensor shares = Tensor::allocate(DType::Float32, {int64_t(units.size())});
        for (size_t u = 0; u < units.size(); ++u)
          shares.data<float>()[u] = k > 0 && u / together == k - 1;
        runs.push_back(heldOut[i]);
        runs.back().push_back(std::move(shares));
      }
    std::vector<double> influence(units.size(), 0);
    std::vector<Tensor> exact;
    auto take = [&](size_t run, std::vector<Tensor> &results) {
      if (run % forms == 0) {
        exact.clear();
        for (const Tensor &t : results)
          exact.push_back(t.clone());
        return;
      }
      for (size_t k = 0; k < results.size(); ++k) {
        Comparison c;
        std::tie(c.low, c.high) = ends[k];
        c.add(exact[k], results[k]);
        const size_t first = (run % forms - 1) * together, behind = std::min(first + together, units.size());
        for (size_t u = first; c.real && u < behind; ++u)
          influence[u] += c.error() * c.error() / double(count * (behind - first));
      }
    };
    if (failed(runOn(std::move(clone), runs, session, take)))
      return failure();
    return influence;
  }

  /// The float model's results on the held-out feeds, and their ranges on all of them.
  LogicalResult keepReference() {
    ends.assign(function.getNumResults(), {INFINITY, -INFINITY});
    auto keep = [&](size_t i, std::vector<Tensor> &results) {
      results.resize(function.getNumResults());
      for (auto [t, range] : llvm::zip_equal(results, ends)) {
        if (t.dtype() == DType::Float32)
          for (float v : ArrayRef(t.data<float>(), t.numElements()))
            if (std::isfinite(v))
              range = {std::min<double>(range.first, v), std::max<double>(range.second, v)};
        if (i < heldOut.size())
          t = t.clone();
      }
      if (i < heldOut.size())
        reference.push_back(std::move(results));
    };
    std::vector<Feed> all = heldOut;
    if (report.feeds > report.heldOut)
      all.insert(all.end(), calibration.begin(), calibration.end());
    return runOn(original ? std::move(original) : OwningOpRef<ModuleOp>(module.clone()), all, session, keep, &floatTimes);
  }

  /// Results of another form of the model against those.
  LogicalResult compare(OwningOpRef<ModuleOp> other, std::vector<OutputReport> &outputs, std::vector<KernelTime> *took = nullptr) {
    std::vector<Comparison> all(function.getNumResults());
    for (auto [c, range] : llvm::zip_equal(all, ends))
      std::tie(c.low, c.high) = range;
    auto take = [&](size_t i, std::vector<Tensor> &results) {
      for (size_t k = 0; k < all.size(); ++k)
        all[k].add(reference[i][k], results[k]);
    };
    if (failed(runOn(std::move(other), heldOut, session, take, took)))
      return failure();
    for (auto [k, c] : llvm::enumerate(all)) {
      auto name = function.getResultAttrOfType<StringAttr>(k, "hlo.name");
      const ErrorLimit limit = c.limit();
      outputs.push_back({name ? name.getValue().str() : std::to_string(k), decibels(c.signal, c.noise), c.error(), limit.value, limit.law, !c.real});
    }
    return success();
  }

  static int64_t bytesOf(Value v) {
    auto type = v ? cast<RankedTensorType>(v.getType()) : RankedTensorType();
    return type && type.hasStaticShape() ? type.getNumElements() * 4 : 0;
  }

  UnitReport lineOf(const Unit &unit) {
    UnitReport line;
    line.node = graph::getNodeName(unit.root->getLoc()).str();
    line.kind = unitName(unit.kind).str();
    line.multiplyAdds = multiplyAdds(unit);
    line.floatBytes = bytesOf(unit.weights);
    line.bytes = line.floatBytes / 4;
    line.sqnr = line.largestError = line.seconds = line.floatSeconds = NAN;
    return line;
  }

  /// Lines for products that were never chosen: they count in the share.
  void addFloatProducts() {
    llvm::DenseSet<Operation *> listed;
    for (const Unit &unit : findUnits(function))
      if (unit.isProduct() && !unit.last()->hasAttr(rangesAttr) && !unit.last()->hasAttr(markAttr)) {
        UnitReport line = lineOf(unit);
        line.quantized = false;
        line.bytes = line.floatBytes;
        report.units.push_back(line);
      }
  }

  /// Each unit alone, on float inputs: one run of all of them beside the float model.
  LogicalResult measureUnits(const std::vector<Unit> &units) {
    for (const Unit &unit : units)
      report.units.push_back(lineOf(unit));
    progress("measure");
    OwningOpRef<ModuleOp> clone = module.clone();
    if (failed(rewrite(*clone, "float", Form::Isolated)))
      return failure();
    const size_t own = function.getNumResults();
    std::vector<size_t> lines; // those of the top block have results
    for (size_t i = 0; i < units.size(); ++i)
      if (units[i].last()->getBlock() == &function.getBody().front())
        lines.push_back(i);
    std::vector<double> signal(lines.size(), 0), noise(lines.size(), 0), largest(lines.size(), 0);
    auto take = [&](size_t, std::vector<Tensor> &results) {
      for (size_t k = 0; k < lines.size(); ++k) {
        signal[k] += results[own + 3 * k].data<float>()[0];
        noise[k] += results[own + 3 * k + 1].data<float>()[0];
        largest[k] = std::max<double>(largest[k], results[own + 3 * k + 2].data<float>()[0]);
      }
    };
    if (failed(runOn(std::move(clone), heldOut, session, take)))
      return failure();
    for (auto [k, i] : llvm::enumerate(lines)) {
      report.units[i].sqnr = decibels(signal[k], noise[k]);
      auto ranges = units[i].last()->getAttrOfType<DenseF64ArrayAttr>(rangesAttr);
      const double width = ranges[ranges.size() - 1] - ranges[ranges.size() - 2];
      report.units[i].largestError = largest[k] == 0 ? 0 : largest[k] / std::max(width, 1e-30);
    }
    return success();
  }

  static void keepFloat(const std::vector<Unit> &units, const Kept &kept) {
    for (size_t i = 0; i < units.size(); ++i) {
      if (kept[i])
        units[i].last()->setAttr(keepAttr, UnitAttr::get(units[i].root->getContext()));
      else
        units[i].last()->removeAttr(keepAttr);
    }
  }

  /// The model with these units float and the others integers.
  FailureOr<OwningOpRef<ModuleOp>> formWith(const std::vector<Unit> &units, const Kept &kept) {
    keepFloat(units, kept);
    OwningOpRef<ModuleOp> clone = module.clone();
    if (failed(select(*clone)) || failed(rewrite(*clone, "float", Form::Whole)))
      return failure();
    return clone;
  }

  /// Whether the model keeps the bound on held-out feeds with these units float. Where it does, its errors and times are reported.
  FailureOr<bool> holds(const std::vector<Unit> &units, const Kept &kept) {
    Trial &trial = report.trials.emplace_back();
    trial.kept = llvm::count(kept, true);
    progress("compare with " + std::to_string(trial.kept) + " nodes kept float");
    auto form = formWith(units, kept);
    std::vector<OutputReport> outputs;
    std::vector<KernelTime> took;
    if (failed(form) || failed(compare(std::move(*form), outputs, &took)))
      return failure();
    bool fine = true;
    for (const OutputReport &o : outputs) {
      if (o.exact)
        continue;
      trial.largestError = std::max(trial.largestError, o.largestError);
      trial.likelyError = std::max(trial.likelyError, o.likelyError);
      fine &= session.options.maxError < 0 || o.likelyError <= session.options.maxError;
    }
    if (fine) {
      report.outputs = std::move(outputs);
      times = std::move(took);
    }
    return fine;
  }

  /// Which units stay float: the fewest of an order with which the bound holds, by doubling and halving.
  FailureOr<Kept> search(const std::vector<Unit> &units) {
    const Kept none(units.size(), false);
    auto first = this->holds(units, none);
    if (failed(first))
      return failure();
    if (*first)
      return none;
    auto influence = influences(units);
    if (failed(influence))
      return failure();
    const std::vector<size_t> order = searchOrder(*influence);
    auto firstOf = [&](size_t count) {
      Kept kept = none;
      for (size_t i : ArrayRef(order).take_front(count))
        kept[i] = true;
      return kept;
    };
    auto holds = [&](size_t count) { return this->holds(units, firstOf(count)); };
    size_t bad = 0, good = 0;
    for (good = 1;; good = std::min(2 * good, units.size())) {
      auto now = holds(good);
      if (failed(now))
        return failure();
      if (*now)
        break;
      bad = good;
      if (good == units.size())
        return emitError(module.getLoc()) << "--max-error " << session.options.maxError << ": not even the float model keeps it";
    }
    while (good - bad > 1) {
      const size_t middle = bad + (good - bad) / 2;
      auto now = holds(middle);
      if (failed(now))
        return failure();
      (*now ? good : bad) = middle;
    }
    return firstOf(good);
  }

  /// The time of each unit's kernels; NaN where it has none of its own. A kernel is that of the first product among the units whose
  /// nodes it computes, or else of the first unit. `total`: of all kernels.
  static std::vector<double> secondsOf(const std::vector<Unit> &units, ArrayRef<KernelTime> times, double &total) {
    llvm::StringMap<size_t> owners;
    for (size_t i = 0; i < units.size(); ++i)
      for (Operation *op : units[i].ops) {
        auto [known, added] = owners.try_emplace(graph::getNodeName(op->getLoc()), i);
        if (!added && units[i].isProduct() && !units[known->second].isProduct())
          known->second = i;
      }
    std::vector<double> seconds(units.size(), NAN);
    total = 0;
    for (const KernelTime &kernel : times) {
      total += kernel.seconds;
      SmallVector<StringRef> nodes;
      StringRef(kernel.nodes).split(nodes, ';', -1, /*KeepEmpty=*/false);
      std::optional<size_t> owner;
      for (StringRef node : nodes)
        if (auto known = owners.find(node); known != owners.end())
          if (!owner || (units[known->second].isProduct() && !units[*owner].isProduct()))
            owner = known->second;
      if (owner)
        seconds[*owner] = (std::isnan(seconds[*owner]) ? 0 : seconds[*owner]) + kernel.seconds;
    }
    return seconds;
  }

  /// How long a form's kernels take in code for the target.
  FailureOr<std::vector<KernelTime>> timeOf(OwningOpRef<ModuleOp> form) {
    constexpr int runs = 8;
    std::vector<KernelTime> took;
    if (failed(runOn(std::move(form), std::vector<Feed>(runs, heldOut.front()), session, [](size_t, std::vector<Tensor> &) {}, &took,
                     /*forTarget=*/true)))
      return failure();
    return took;
  }

  /// Keeps float, beside `kept`, the units that are faster so, or all of them, or none more: what is fastest as a whole.
  FailureOr<Kept> keepFaster(const std::vector<Unit> &units, const Kept &kept) {
    constexpr double worth = 0.95; // of the time: less is noise
    progress("measure times");
    auto allFloat = timeOf(OwningOpRef<ModuleOp>(module.clone()));
    if (failed(allFloat))
      return failure();
    struct Choice {
      Kept kept;
      std::vector<KernelTime> times;
      double seconds = 0;
      std::vector<double> units;
    };
    auto timed = [&](const Kept &set) -> FailureOr<Choice> {
      auto form = formWith(units, set);
      if (failed(form))
        return failure();
      auto took = timeOf(std::move(*form));
      if (failed(took))
        return failure();
      Choice c{set, std::move(*took), 0, {}};
      c.units = secondsOf(units, c.times, c.seconds);
      return c;
    };
    auto best = timed(kept);
    if (failed(best))
      return failure();
    double floatSeconds = 0;
    const std::vector<double> floats = secondsOf(units, *allFloat, floatSeconds);
    Kept more = kept;
    for (size_t i = 0; i < units.size(); ++i)
      more[i] = more[i] || floats[i] < worth * best->units[i];
    if (more != kept) {
      auto mixed = timed(more);
      if (failed(mixed))
        return failure();
      if (mixed->seconds < worth * best->seconds) {
        auto fine = holds(units, more);
        if (failed(fine))
          return failure();
        if (*fine)
          *best = std::move(*mixed);
      }
    }
    if (floatSeconds < worth * best->seconds) {
      const Kept all(units.size(), true);
      auto fine = holds(units, all);
      if (failed(fine))
        return failure();
      best->kept = all;
      best->times = *allFloat;
    }
    floatTimes = std::move(*allFloat);
    times = std::move(best->times);
    return best->kept;
  }
};

} // namespace

FailureOr<Report> quantizeEntry(ModuleOp module, const Session &session) { return Quantizer(module, session).run(); }

} // namespace lathe::quantize
