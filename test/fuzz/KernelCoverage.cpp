#include "KernelCoverage.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe::fuzz {

/// Finds the graph by the name in the op's location.
class KernelCoverage::Streamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Streamer(KernelCoverage &coverage) : coverage(coverage) {}
  void streamOptimizationRemark(const remark::detail::Remark &r) override {
    if (!coverage.listening)
      return;
    std::string reason;
    for (const auto &arg : r.getArgs())
      if (arg.key == "Reason")
        reason = arg.val;
    r.getLocation()->walk([&](Location l) {
      auto name = dyn_cast<NameLoc>(l);
      auto graph = name ? coverage.current.find(name.getName().getValue()) : coverage.current.end();
      if (graph == coverage.current.end())
        return WalkResult::advance();
      graph->second.answers.insert({r.getRemarkName().str(), reason});
      return WalkResult::interrupt();
    });
  }

private:
  KernelCoverage &coverage;
};

void KernelCoverage::listenTo(MLIRContext &context) {
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.analysis = "kernel";
  (void)remark::enableOptimizationRemarks(context, std::make_unique<Streamer>(*this),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

void KernelCoverage::drawn(StringRef graph, const KernelCase &c, const KernelCell &cell,
                           const KernelLevel &level) {
  Drawn d{&c, {}, {}};
  std::copy(cell.begin(), cell.end(), d.cell.begin());
  d.cell.back() = level.name;
  current[graph.str()] = d;
}

void KernelCoverage::count() {
  for (auto &[name, d] : current) {
    const Answer wanted = {d.meant->form, d.meant->reason};
    auto &[all, hit] = meant[wanted];
    ++all;
    hit += d.answers.count(wanted);
    for (const Answer &a : d.answers)
      ++graphs[a];
    if (!d.answers.count({d.meant->form, ""}))
      continue;
    Pairs &p = pairs[d.meant->form];
    for (size_t i = 0; i < d.cell.size(); ++i) {
      p.values[i].insert(d.cell[i]);
      for (size_t k = i + 1; k < d.cell.size(); ++k)
        p.met.insert({std::to_string(i), std::to_string(k), d.cell[i], d.cell[k]});
    }
  }
  current.clear();
}

int KernelCoverage::report(ArrayRef<bool> levels, StringRef prefix) const {
  int missing = 0;
  std::set<Answer> known;
  for (const KernelCase &c : kernelCases()) {
    if (!known.insert({c.form, c.reason}).second || !StringRef(c.form).starts_with(prefix))
      continue;
    bool here = false;
    for (const KernelCase &other : kernelCases())
      for (auto [level, available] : llvm::zip(kernelLevels(), levels))
        for (Kind kind : {Kind::Exact, Kind::Real, Kind::Elementwise})
          here |= available && StringRef(other.form) == c.form && StringRef(other.reason) == c.reason &&
                  other.fits(level, level.bf16 ? Kind::Exact : kind);
    auto found = graphs.find({c.form, c.reason});
    const int64_t n = found == graphs.end() ? 0 : found->second;
    auto drawnFor = meant.find({c.form, c.reason});
    const auto [all, hit] = drawnFor == meant.end() ? std::pair<int64_t, int64_t>() : drawnFor->second;
    llvm::outs() << llvm::formatv("{0,-16} {1,8}  {2}", c.form, n,
                                  *c.reason ? StringRef("not: " + std::string(c.reason)).str() : "taken");
    if (!c.make)
      llvm::outs() << " (not drawn: " << c.unreachable << ")";
    else if (!here)
      llvm::outs() << " (no such processor here)";
    else
      llvm::outs() << " (" << hit << " of " << all << " that were drawn for it)";
    if (auto p = pairs.find(c.form); !*c.reason && p != pairs.end()) {
      size_t total = 0;
      for (size_t i = 0; i < p->second.values.size(); ++i)
        for (size_t k = i + 1; k < p->second.values.size(); ++k)
          total += p->second.values[i].size() * p->second.values[k].size();
      llvm::outs() << ", " << p->second.met.size() << " of " << total << " pairs";
    }
    if (here && n == 0 && ++missing)
      llvm::outs() << " MISSING";
    llvm::outs() << "\n";
  }
  for (auto &[answer, n] : graphs)
    if (!known.count(answer) && ++missing)
      llvm::outs() << llvm::formatv("{0,-16} {1,8}  not: {2} UNKNOWN\n", answer.first, n, answer.second);
  return missing;
}

} // namespace lathe::fuzz
