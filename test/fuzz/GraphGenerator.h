// Random valid hlo functions for differential fuzzing, the same for the same seed.
#ifndef LATHE_TEST_FUZZ_GRAPHGENERATOR_H
#define LATHE_TEST_FUZZ_GRAPHGENERATOR_H

#include "base/Tensor.h"
#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <random>
#include <vector>

namespace lathe::fuzz {

/// What the values of a graph are, which decides what must be equal.
enum class Kind {
  Exact,       ///< small integers in any type: every op is exact in any order, so all variants equal the evaluator's bits
  Elementwise, ///< any floats, NaN and infinities among them; no sums: fusion changes no bit
  Real         ///< floats around 1 through smooth ops, products and reductions: bounds
};

const char *kindName(Kind kind);

struct Graph {
  mlir::func::FuncOp function;
  std::vector<Tensor> inputs;
  Kind kind;
};

/// Adds the public function `name` to the module. 2 to 30 ops.
Graph generateGraph(mlir::ModuleOp module, llvm::StringRef name, uint64_t seed, Kind kind);

/// Fills a tensor: integers of magnitude up to `bound` (Exact), or floats of the kind. Unsigned types get |x|.
void fillRandom(Tensor &tensor, Kind kind, int64_t bound, std::mt19937_64 &random);

} // namespace lathe::fuzz

#endif
