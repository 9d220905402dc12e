// What the compiler chose for graphs of kernels, as its remarks say, and which pairs of properties met in
// what was taken.
#ifndef LATHE_TEST_FUZZ_KERNELCOVERAGE_H
#define LATHE_TEST_FUZZ_KERNELCOVERAGE_H

#include "KernelGraph.h"

#include <map>
#include <set>

namespace lathe::fuzz {

class KernelCoverage {
public:
  /// Has the context tell its remarks; this must live as long as the context does.
  void listenTo(mlir::MLIRContext &context);
  void setListening(bool on) { listening = on; }

  /// What was drawn, before it is compiled.
  void drawn(llvm::StringRef graph, const KernelCase &c, const KernelCell &cell, const KernelLevel &level);
  /// Counts what the graphs drawn since the last call came to.
  void count();

  /// A table: taken and refused, by form and reason, and pairs. Returns how many cases that can be reached
  /// with `levels`, of forms that begin with `prefix`, have no graph, or answers that no case stands for.
  int report(llvm::ArrayRef<bool> levels, llvm::StringRef prefix) const;

private:
  class Streamer;
  using Answer = std::pair<std::string, std::string>; // form and reason

  struct Drawn {
    const KernelCase *meant;
    std::array<std::string, 5> cell; // with the level
    std::set<Answer> answers;
  };
  struct Pairs {
    std::array<std::set<std::string>, 5> values;
    std::set<std::array<std::string, 4>> met; // two numbers of properties and their values
  };
  bool listening = true;
  std::map<std::string, Drawn, std::less<>> current;
  std::map<Answer, int64_t> graphs;                    // that got the answer
  std::map<Answer, std::pair<int64_t, int64_t>> meant; // drawn for it, of which so many got it
  std::map<std::string, Pairs> pairs;                  // by form
};

} // namespace lathe::fuzz

#endif
