// Compiles graphs in several ways and compares what they compute.
#ifndef LATHE_TEST_FUZZ_CHECK_H
#define LATHE_TEST_FUZZ_CHECK_H

#include "GraphGenerator.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace lathe::fuzz {

struct CheckOptions {
  std::string cpu = "host", features;
  int optLevel = 0;
  bool simplify = false;   ///< before fusion; Exact graphs only
  bool exact = false;      ///< no algorithm that trades accuracy for speed: Exact graphs, where Winograd would round
  bool bf16 = false;       ///< products of operands rounded to bf16: Exact graphs, whose numbers it holds
  std::string sanitize;
};

/// What is wrong with graph i, empty for nothing:
/// - fused code on one thread and on three (chunks in another order): equal bits;
/// - Exact: fused and unfused code equal the reference evaluator;
/// - Elementwise: fused and unfused code have equal bits;
/// - Elementwise and Real: each op of the unfused code, on the operands that it had there, is within its op's bound of
///   the evaluator (see Bounds.cpp); Real: fused code is within 1e-3 (f64: 1e-9) of the largest magnitude of unfused code.
std::vector<std::string> checkGraphs(mlir::ModuleOp module, llvm::ArrayRef<Graph> graphs, const CheckOptions &options);

/// The smallest part of a failing graph that still fails, as a module of its own.
struct Reduced {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Graph graph;
  std::string problem;
};
Reduced reduceGraph(Graph graph, const CheckOptions &options);

/// Text of the values for a reproducer.
std::string describe(const Tensor &tensor);

// Bounds.cpp
/// Compares the results of one op; `got` was computed from `operands`. `symbols` are the values of sizes known at run time only.
std::string compareOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, llvm::ArrayRef<Tensor> got, const std::vector<int64_t> &symbols = {});
/// Equal numbers: NaN equals NaN and, unless `bits`, -0 equals 0. Empty if all are.
std::string compareEqual(const Tensor &got, const Tensor &want, bool bits);
/// Within `tolerance` times the largest magnitude (integers and bool: equal).
std::string compareNear(const Tensor &got, const Tensor &want, double tolerance);
/// Element i of a tensor of a real type.
double valueAt(const Tensor &tensor, int64_t i);

} // namespace lathe::fuzz

#endif
