//===- SimplifyAlgebra.cpp - neutral and inverse ops ------------------------===//
//
// Before and after: hlo. The pattern families are in Algebra*.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/simplify/Algebra.h"
#include "passes/simplify/Passes.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSIMPLIFYALGEBRA
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {
struct HloSimplifyAlgebra : lathe::simplify::impl::HloSimplifyAlgebraBase<HloSimplifyAlgebra> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    lathe::populateArithmeticPatterns(set, exact);
    lathe::populateShapePatterns(set);
    lathe::populateMovePatterns(set);
    lathe::populateReducePatterns(set);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(true);
    // constants stay where they are used; moving them to the top would only stretch their lives
    config.enableFolding(true);
    config.enableConstantCSE(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // Reaching the iteration limit leaves valid IR.
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
