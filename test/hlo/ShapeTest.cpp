#include "TestContext.h"
#include "dialects/hlo/Shape.h"

#include <gtest/gtest.h>

using namespace lathe::hlo;
using namespace mlir;

namespace {

struct ShapeTest : testing::Test {
  TestContext test;
  MLIRContext *c = &test.context;
  AffineExpr s0 = symbolExpr(c, 0), s1 = symbolExpr(c, 1), s2 = symbolExpr(c, 2);
  AffineExpr k(int64_t value) { return constantExpr(c, value); }
};

TEST_F(ShapeTest, NormalFormOfProducts) {
  EXPECT_TRUE(equalDims((s0 + 1) * s1, s1 * s0 + s1));
  EXPECT_TRUE(equalDims((s0 + s1) * (s0 + s1), s0 * s0 + s0 * s1 * 2 + s1 * s1));
  EXPECT_FALSE(equalDims(s0 * s1, s0 * s2));
  EXPECT_TRUE(differentDims(s0, s0 + 1));
  EXPECT_FALSE(differentDims(s0, s1));
}

TEST_F(ShapeTest, Divisions) {
  EXPECT_EQ(simplify((s0 * 4).floorDiv(4)), s0);
  EXPECT_EQ(simplify((s0 * 4 + 5).floorDiv(4)), simplify(s0 + 1));
  EXPECT_EQ(simplify((s0 * 2 + 1).floorDiv(2)), s0);
  EXPECT_EQ(simplify((s0 * 2).ceilDiv(2)), s0);
  EXPECT_TRUE(equalDims(s0.ceilDiv(2), (s0 + 1).floorDiv(2)));
  EXPECT_TRUE(equalDims(s0 % 4 + s0.floorDiv(4) * 4, s0));
  EXPECT_EQ(simplify((s0 * s1).floorDiv(s1)), s0);
  EXPECT_EQ(evaluate(simplify(s0.ceilDiv(2)), {5}), 3);
  EXPECT_EQ(evaluate(s0.floorDiv(s1), {5, 0}), std::nullopt);
}

TEST_F(ShapeTest, NormalFormIsStable) {
  AffineExpr e = ((s0 + s1 * 3) * 2 + s2.floorDiv(3) * s0).ceilDiv(7) + s1 * s1 - s0;
  AffineExpr once = simplify(e);
  EXPECT_EQ(simplify(once), once);
  for (int64_t a = 0; a < 5; ++a)
    for (int64_t b = 0; b < 5; ++b)
      EXPECT_EQ(evaluate(e, {a, b, a * b}), evaluate(once, {a, b, a * b}));
}

TEST_F(ShapeTest, Types) {
  Type f32 = Float32Type::get(c);
  EXPECT_TRUE(makeType({s0 - s0 + 3, k(2)}, f32).hasStaticShape());
  auto type = makeType({s1 + s0, k(8)}, f32);
  EXPECT_EQ(getDims(type)[0], simplify(s0 + s1));
  EXPECT_EQ(numElements(type), simplify(s0 * 8 + s1 * 8));
  EXPECT_EQ(makeType({AffineExpr(), s0}, f32).getEncoding(), Attribute());
  // text and back gives the same type
  std::string text;
  llvm::raw_string_ostream(text) << makeType({(s0 * s1).ceilDiv(3) + 1, s2}, f32);
  auto module = test.parse("func.func private @f(" + text + ")");
  ASSERT_TRUE(module);
  auto f = *module->getOps<func::FuncOp>().begin();
  EXPECT_EQ(f.getArgumentTypes()[0], makeType({(s0 * s1).ceilDiv(3) + 1, s2}, f32));
}

TEST_F(ShapeTest, SymbolTable) {
  auto module = ModuleOp::create(UnknownLoc::get(c));
  EXPECT_EQ(addInputSymbol(module, "batch"), 0u);
  EXPECT_EQ(addInputSymbol(module, "batch"), 0u);
  EXPECT_EQ(addDataSymbol(module, "unique", 10), 1u);
  EXPECT_EQ(addDataSymbol(module, "where", simplify(s0 * 4)), 2u);
  EXPECT_EQ(upperBound(s0, module), std::nullopt);
  EXPECT_EQ(upperBound(s1 * 3 + 1, module), 31);
  setSymbolBound(module, 0, 16);
  EXPECT_EQ(upperBound(s0.ceilDiv(3), module), 6);
  EXPECT_EQ(upperBound(s2, module), 64);
  EXPECT_EQ(upperBound(symbolExpr(c, 7), module), std::nullopt);
  EXPECT_EQ(lookupSymbol(module, 1)->name, "unique");
  module.erase();
}

} // namespace
