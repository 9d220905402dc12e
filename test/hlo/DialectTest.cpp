#include "TestContext.h"
#include "dialects/hlo/Constants.h"

#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::hlo;
using namespace mlir;

namespace {

// Builders report what does not fit and go on.
TEST(HloBuilders, FailedInferenceIsADiagnostic) {
  TestContext test;
  OpBuilder b(&test.context);
  Location loc = b.getUnknownLoc();
  auto module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module.getBody());
  Value x = makeSplat(b, loc, 1.0, makeType(ArrayRef<int64_t>{2, 3}, b.getF32Type()));
  Value y = makeSplat(b, loc, 1.0, makeType(ArrayRef<int64_t>{3, 2}, b.getF32Type()));
  Value bad = AddOp::create(b, loc, x, y);
  EXPECT_TRUE(isInvalid(bad));
  EXPECT_NE(test.messages.find("shapes differ in dimension 0: 2 and 3"), std::string::npos) << test.messages;
  test.messages.clear();
  Value next = TanhOp::create(b, loc, bad);
  EXPECT_TRUE(isInvalid(next));
  EXPECT_EQ(test.messages, "");
  module.erase();
}

TEST(HloBuilders, InferSymbolicSizes) {
  TestContext test;
  OpBuilder b(&test.context);
  Location loc = b.getUnknownLoc();
  AffineExpr s0 = symbolExpr(&test.context, 0);
  auto type = makeType({s0, constantExpr(&test.context, 6)}, b.getF32Type());
  Block block;
  Value x = block.addArgument(type, loc);
  b.setInsertionPointToStart(&block);
  Value both = ConcatenateOp::create(b, loc, ValueRange{x, x}, 0);
  EXPECT_EQ(getDims(tensorType(both))[0], simplify(s0 * 2));
  Value half = SliceOp::create(b, loc, both, {s0, constantExpr(&test.context, 0)},
                               {s0 * 2, constantExpr(&test.context, 6)}, ArrayRef<int64_t>{1, 2});
  EXPECT_EQ(tensorType(half), makeType({s0, constantExpr(&test.context, 3)}, b.getF32Type()));
  Value zero = makeScalar(b, loc, 0.0, b.getF32Type());
  auto sum = ReduceOp::create(b, loc, ValueRange{x}, ValueRange{zero}, ArrayRef<int64_t>{1},
                              [](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
                                return {AddOp::create(b, loc, args[0], args[1])};
                              });
  EXPECT_EQ(sum.getResult(0).getType(), makeType(ArrayRef<AffineExpr>{s0}, b.getF32Type()));
  EXPECT_TRUE(succeeded(sum.verifyInvariants()));
  Value product = DotGeneralOp::create(b, loc, x, x, DotDimensionNumbersAttr::get(&test.context, {}, {}, {1}, {1}));
  EXPECT_EQ(product.getType(), makeType({s0, s0}, b.getF32Type()));
  EXPECT_EQ(test.messages, "");
  block.dropAllReferences();
  while (!block.empty())
    block.back().erase();
}

TEST(HloConstants, RoundTrip) {
  TestContext test;
  for (int64_t count : {0, 1, 5, 200}) {
    Tensor t = Tensor::allocate(DType::Int16, {count});
    for (int64_t i = 0; i < count; ++i)
      t.data<int16_t>()[i] = i * 7 - 3;
    auto attr = makeElements(&test.context, t);
    EXPECT_EQ(isa<DenseResourceElementsAttr>(attr), count > 64);
    auto back = readConstant(attr);
    ASSERT_TRUE(succeeded(back));
    EXPECT_EQ(back->dims(), t.dims());
    EXPECT_EQ(memcmp(back->data(), t.data(), t.sizeBytes()), 0);
  }
  Tensor b = Tensor::allocate(DType::Bool, {100});
  b.data<uint8_t>()[99] = 1;
  EXPECT_EQ(readConstant(makeElements(&test.context, b))->data<uint8_t>()[99], 1);
  Tensor s = Tensor::allocate(DType::Complex64, {100});
  EXPECT_TRUE(isa<SplatElementsAttr>(makeElements(&test.context, s)));
  EXPECT_EQ(readConstant(makeElements(&test.context, s))->numElements(), 100);
}

TEST(HloConstants, SplatsOfEachType) {
  TestContext test;
  OpBuilder b(&test.context);
  auto module = ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToStart(module.getBody());
  for (DType type : {DType::Bool, DType::Int4, DType::UInt8, DType::Int64, DType::UInt64, DType::Float16,
                     DType::BFloat16, DType::Float8E4M3FN, DType::Float64, DType::Complex64}) {
    Type element = toElementType(&test.context, type);
    EXPECT_EQ(toDType(element), type);
    Value v = makeScalar(b, b.getUnknownLoc(), 1, element);
    ASSERT_TRUE(succeeded(v.getDefiningOp<ConstantOp>().verifyInvariants()));
    EXPECT_TRUE(succeeded(readConstant(v)));
    if (!isa<ComplexType>(element))
      EXPECT_TRUE(makeLowest(b, b.getUnknownLoc(), element));
  }
  EXPECT_EQ(test.messages, "");
  module.erase();
}

} // namespace
