#include "compiler/driver/Timing.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe {

void NamedTimes::add(llvm::StringRef name, double seconds) {
  auto found = llvm::find_if(entries, [&](const auto &entry) { return entry.first == name; });
  if (found == entries.end())
    entries.emplace_back(name, seconds);
  else
    found->second += seconds;
}

namespace {

// The pass manager calls it under a lock.
class PassClock : public PassInstrumentation {
public:
  explicit PassClock(NamedTimes &times) : times(times) {}

  void runBeforePass(Pass *pass, Operation *) override {
    if (!pass->getArgument().empty()) // else it is the manager of others
      begun[pass] = std::chrono::steady_clock::now();
  }
  void runAfterPass(Pass *pass, Operation *) override { end(pass); }
  void runAfterPassFailed(Pass *pass, Operation *) override { end(pass); }

private:
  void end(Pass *pass) {
    auto found = begun.find(pass);
    if (found == begun.end())
      return;
    times.add(pass->getArgument(), std::chrono::duration<double>(std::chrono::steady_clock::now() - found->second).count());
    begun.erase(found);
  }

  NamedTimes &times;
  llvm::DenseMap<Pass *, std::chrono::steady_clock::time_point> begun; ///< each function's passes are objects of their own
};

void printLine(llvm::StringRef indent, llvm::StringRef name, double seconds, int64_t kernels = 0) {
  llvm::errs() << indent << llvm::left_justify(name, 36 - indent.size()) << llvm::format(" %8.3f s", seconds);
  if (kernels)
    llvm::errs() << "  " << kernels << (kernels == 1 ? " kernel" : " kernels");
  llvm::errs() << "\n";
}

/// The slowest first.
void printGroups(const lower::KernelTimes &times, llvm::StringRef what) {
  std::vector<std::pair<llvm::StringRef, lower::KernelTime>> sorted(times.begin(), times.end());
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return a.second.seconds > b.second.seconds; });
  for (const auto &[group, time] : sorted)
    printLine("    ", (what + (group.empty() ? llvm::StringRef("the rest") : group)).str(), time.seconds, time.kernels);
}

} // namespace

std::unique_ptr<PassInstrumentation> makePassClock(NamedTimes &times) { return std::make_unique<PassClock>(times); }

void Timing::print(Phase phase, double seconds) {
  printLine("", phaseName(phase), seconds);
  for (const auto &[name, time] : passes.entries)
    printLine("  ", name, time);
  passes.entries.clear();
  if (phase == Phase::Lower)
    printGroups(emitted, "emit ");
  if (phase != Phase::Emit)
    return;
  double all = 0;
  for (const auto &[group, time] : optimized)
    all += time.seconds;
  printLine("  ", "optimize", all);
  printGroups(optimized, "optimize ");
  printLine("  ", "codegen", codegen);
}

} // namespace lathe
