// Running the evaluator on the text of a function in tests.
#ifndef LATHE_TEST_HLO_EVALTEST_H
#define LATHE_TEST_HLO_EVALTEST_H

#include "TestContext.h"
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"
#include "dialects/hlo/Evaluator.h"

#include <gtest/gtest.h>

struct EvalTest : testing::Test {
  TestContext test;

  /// A tensor of the values, converted to the dtype.
  template <typename T = double>
  static lathe::Tensor make(lathe::DType type, std::vector<int64_t> dims, std::vector<T> values) {
    lathe::Tensor t = lathe::Tensor::allocate(type, dims);
    EXPECT_EQ(t.numElements(), static_cast<int64_t>(values.size()));
    using namespace lathe::hlo::eval;
    if (kindOf(type) == Kind::Float) {
      std::vector<double> v(values.begin(), values.end());
      storeFloats(type, v.data(), v.size(), t.data());
    } else {
      std::vector<int64_t> v(values.begin(), values.end());
      storeInts(type, v.data(), v.size(), t.data());
    }
    return t;
  }
  static lathe::Tensor f32(std::vector<int64_t> dims, std::vector<double> values) {
    return make(lathe::DType::Float32, dims, values);
  }
  static lathe::Tensor i32(std::vector<int64_t> dims, std::vector<int64_t> values) {
    return make<int64_t>(lathe::DType::Int32, dims, values);
  }
  static lathe::Tensor i64(std::vector<int64_t> dims, std::vector<int64_t> values) {
    return make<int64_t>(lathe::DType::Int64, dims, values);
  }

  /// The results of the only function of the text; a failed expectation on error.
  std::vector<lathe::Tensor> run(llvm::StringRef text, std::vector<lathe::Tensor> inputs = {},
                                 const lathe::hlo::EvalOptions &options = {}) {
    auto module = test.parse(text);
    EXPECT_TRUE(module) << test.messages;
    if (!module)
      return {};
    auto f = *module->getOps<mlir::func::FuncOp>().begin();
    auto results = lathe::hlo::evaluateFunction(f, inputs, options);
    EXPECT_TRUE(mlir::succeeded(results)) << test.messages;
    if (mlir::failed(results))
      return {};
    return {results->begin(), results->end()};
  }
  /// The same for a text that must fail; returns what was said.
  std::string fails(llvm::StringRef text, std::vector<lathe::Tensor> inputs = {},
                    const lathe::hlo::EvalOptions &options = {}) {
    auto module = test.parse(text);
    EXPECT_TRUE(module) << test.messages;
    if (!module)
      return {};
    test.messages.clear();
    auto f = *module->getOps<mlir::func::FuncOp>().begin();
    EXPECT_TRUE(mlir::failed(lathe::hlo::evaluateFunction(f, inputs, options)));
    return test.messages;
  }
  static void expect(const lathe::Tensor &t, std::vector<int64_t> dims, std::vector<double> values,
                     double tolerance = 0) {
    using namespace lathe::hlo::eval;
    EXPECT_EQ(t.dims(), dims);
    ASSERT_EQ(t.numElements(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      double value = 0;
      if (kindOf(t.dtype()) == Kind::Float)
        value = loadFloats(t)[i];
      else
        value = static_cast<double>(loadInts(t)[i]);
      if (std::isnan(values[i]))
        EXPECT_TRUE(std::isnan(value)) << "element " << i;
      else
        EXPECT_LE(std::abs(value - values[i]), tolerance * std::max(1.0, std::abs(values[i])))
            << "element " << i << ": " << value << " and " << values[i];
    }
  }
};

#endif
