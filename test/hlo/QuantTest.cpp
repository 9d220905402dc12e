// Quantizing and dequantizing: hand-made values, what the fold of a round trip relies on, and the arithmetic that hlo-lower-quantized makes
// against that of the ops.
#include "EvalTest.h"

#include "dialects/hlo/Quant.h"
#include "passes/simplify/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace lathe;
using namespace lathe::hlo;
using namespace mlir;

namespace {

struct Quant : EvalTest {
  /// What the function computes once hlo-lower-quantized has run.
  std::vector<Tensor> lowered(const std::string &text, const std::vector<Tensor> &inputs) {
    auto module = test.parse(text);
    PassManager pm(&test.context);
    pm.addPass(simplify::createHloLowerQuantized());
    if (!module || failed(pm.run(*module))) {
      ADD_FAILURE() << test.messages << text;
      return {};
    }
    auto results = evaluateFunction(*module->getOps<func::FuncOp>().begin(), inputs);
    if (failed(results)) {
      ADD_FAILURE() << test.messages << text;
      return {};
    }
    return {results->begin(), results->end()};
  }
};

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &names) {
  for (const auto &[name, value] : names)
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

/// x to the type QT and its bits, with ROUNDING.
std::string quantizeText(const std::string &count, const std::string &from, const std::string &to, const std::string &storage,
                         const std::string &rounding) {
  return replaced(R"(func.func @f(%x: tensor<NxFROM>) -> tensor<NxSTORE> {
    %0 = hlo.uniform_quantize %x, rounding = ROUNDING : (tensor<NxFROM>) -> tensor<NxTYPE>
    %1 = hlo.bitcast_convert %0 : (tensor<NxTYPE>) -> tensor<NxSTORE>
    return %1 : tensor<NxSTORE> })",
                  {{"<Nx", "<" + count + "x"}, {"FROM", from}, {"TYPE", to}, {"STORE", storage}, {"ROUNDING", rounding}});
}

const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");

TEST_F(Quant, Nearest) {
  auto r = run(quantizeText("9", "f32", "!quant.uniform<i8:f32, 0.5:3>", "i8", "NEAREST_EVEN"),
               {f32({9}, {0, 0.25, 0.75, -0.25, 1, 62.0, 63, -inf, nan})});
  // 3, 3.5, 4.5, 2.5, 5, 127, then clamped
  expect(r[0], {9}, {3, 4, 4, 2, 5, 127, 127, -128, 0});
}

TEST_F(Quant, Away) {
  auto r = run(quantizeText("9", "f32", "!quant.uniform<i8:f32, 0.5:3>", "i8", "AWAY"),
               {f32({9}, {0, 0.25, 0.75, -0.25, 1, 62, 1e30, -inf, nan})});
  expect(r[0], {9}, {3, 4, 5, 2, 5, 127, 127, -128, 3});
}

TEST_F(Quant, Up) {
  auto r = run(quantizeText("9", "f32", "!quant.uniform<i8:f32, 0.5:3>", "i8", "UP"),
               {f32({9}, {0, 0.25, 0.75, -0.25, -0.75, 62, 63, -inf, 1e30})});
  // what 32 bits do not hold is the lowest, as in TensorFlow
  expect(r[0], {9}, {3, 4, 5, 3, 2, 127, 127, -128, -128});
}

TEST_F(Quant, RangesAndSigns) {
  std::vector<double> x = {-1, 0, 1, 7, 7.6, 100};
  expect(run(quantizeText("6", "f32", "!quant.uniform<i4:f32, 1.0>", "i4", "NEAREST_EVEN"), {f32({6}, x)})[0], {6}, {-1, 0, 1, 7, 7, 7});
  expect(run(quantizeText("6", "f32", "!quant.uniform<u4:f32, 1.0:1>", "ui4", "NEAREST_EVEN"), {f32({6}, x)})[0], {6}, {0, 1, 2, 8, 9, 15});
  expect(run(quantizeText("6", "f32", "!quant.uniform<u8<3:8>:f32, 1.0>", "ui8", "AWAY"), {f32({6}, x)})[0], {6}, {3, 3, 3, 7, 8, 8});
  expect(run(quantizeText("6", "f32", "!quant.uniform<u32:f32, 1.0e-08>", "ui32", "AWAY"), {f32({6}, x)})[0], {6},
         {0, 0, 100000000, 700000000, 760000000, 4294967295.0}, 1e-6);
  expect(run(quantizeText("2", "f64", "!quant.uniform<i16:f64, 0.1:-5>", "i16", "NEAREST_EVEN"),
             {make(DType::Float64, {2}, std::vector<double>{0.25, 1e5})})[0],
         {2}, {-2, 32767});
}

TEST_F(Quant, PerAxis) {
  const std::string text = R"(func.func @f(%x: tensor<2x3xf32>, %i: tensor<2x3xui8>) -> (tensor<2x3xi8>, tensor<2x3xf32>) {
    %0 = hlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 0.5:10, 2.0:-1}>>
    %1 = hlo.bitcast_convert %0 : (tensor<2x3x!quant.uniform<i8:f32:1, {1.0, 0.5:10, 2.0:-1}>>) -> tensor<2x3xi8>
    %2 = hlo.bitcast_convert %i : (tensor<2x3xui8>) -> tensor<2x3x!quant.uniform<u8:f32:0, {0.5:128, 0.25}>>
    %3 = hlo.uniform_dequantize %2 : (tensor<2x3x!quant.uniform<u8:f32:0, {0.5:128, 0.25}>>) -> tensor<2x3xf32>
    return %1, %3 : tensor<2x3xi8>, tensor<2x3xf32> })";
  const std::vector<Tensor> inputs = {f32({2, 3}, {1, 2, 4, 10, 20, 40}), make<int64_t>(DType::UInt8, {2, 3}, {0, 128, 255, 0, 128, 255})};
  for (const std::vector<Tensor> &r : {run(text, inputs), lowered(text, inputs)}) {
    ASSERT_EQ(r.size(), 2u);
    expect(r[0], {2, 3}, {1, 14, 1, 10, 50, 19});
    expect(r[1], {2, 3}, {-64, 0, 63.5, 0, 32, 63.75});
  }
}

// Over the floats in between; ops in between see storage.
TEST_F(Quant, Requantize) {
  auto r = run(R"(func.func @f(%i: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi1>) {
    %0 = hlo.bitcast_convert %i : (tensor<4xi8>) -> tensor<4x!quant.uniform<i8:f32, 0.5:1>>
    %1 = hlo.uniform_quantize %0 : (tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4x!quant.uniform<i8:f32, 0.2:-2>>
    %2 = hlo.reverse %1, dims = [0] : (tensor<4x!quant.uniform<i8:f32, 0.2:-2>>) -> tensor<4x!quant.uniform<i8:f32, 0.2:-2>>
    %3 = hlo.compare LT, %1, %2 : (tensor<4x!quant.uniform<i8:f32, 0.2:-2>>, tensor<4x!quant.uniform<i8:f32, 0.2:-2>>) -> tensor<4xi1>
    %4 = hlo.bitcast_convert %2 : (tensor<4x!quant.uniform<i8:f32, 0.2:-2>>) -> tensor<4xi8>
    return %4, %3 : tensor<4xi8>, tensor<4xi1> })",
               {make<int64_t>(DType::Int8, {4}, {1, 2, 3, 100})});
  // 0, 0.5, 1, 49.5 over 0.2
  expect(r[0], {4}, {127, 3, 0, -2});
  expect(r[1], {4}, {1, 1, 0, 0});
}

TEST_F(Quant, OpenAxis) {
  const std::string said =
      fails(R"(func.func @f(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
    %0 = hlo.uniform_quantize %x : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?x!quant.uniform<i8:f32:0, {1.0, 0.5}>, affine_map<()[s0] -> (s0)>>
    %1 = hlo.uniform_dequantize %0 : (tensor<?x!quant.uniform<i8:f32:0, {1.0, 0.5}>, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    return %1 : tensor<?xf32, affine_map<()[s0] -> (s0)>> })",
            {f32({3}, {1, 2, 3})});
  EXPECT_NE(said.find("does not have as many elements as scales"), std::string::npos) << said;
}

//===----------------------------------------------------------------------===//
// All types
//===----------------------------------------------------------------------===//

struct Storage {
  const char *name, *integer;
  DType dtype;
  int64_t low, high;
};
const Storage bytes[] = {{"i8", "i8", DType::Int8, -128, 127}, {"u8", "ui8", DType::UInt8, 0, 255}};
const Storage others[] = {{"i4", "i4", DType::Int4, -8, 7},
                          {"u4", "ui4", DType::UInt4, 0, 15},
                          {"i16", "i16", DType::Int16, -32768, 32767},
                          {"u16", "ui16", DType::UInt16, 0, 65535},
                          {"i32", "i32", DType::Int32, INT32_MIN, INT32_MAX},
                          {"u32", "ui32", DType::UInt32, 0, UINT32_MAX}};
const std::pair<const char *, DType> floats[] = {
    {"f16", DType::Float16}, {"bf16", DType::BFloat16}, {"f32", DType::Float32}, {"f64", DType::Float64}};
const QuantizeRounding roundings[] = {QuantizeRounding::NEAREST_EVEN, QuantizeRounding::AWAY, QuantizeRounding::UP};

std::string typeText(const Storage &s, const std::string &real, double scale, int64_t zero) {
  char text[128];
  std::snprintf(text, sizeof(text), "!quant.uniform<%s:%s, %.17e:%lld>", s.name, real.c_str(), scale, static_cast<long long>(zero));
  return text;
}

// Where the fold says that a round trip is the identity, it is one on all bytes; and it says so for the usual types.
TEST_F(Quant, RoundTripsOfBytes) {
  std::mt19937 random(1);
  int proven = 0, refused = 0, lossy = 0;
  for (const Storage &s : bytes)
    for (auto [real, dtype] : floats)
      for (QuantizeRounding rounding : roundings) {
        if (rounding == QuantizeRounding::UP && dtype != DType::Float32)
          continue;
        for (int trial = 0; trial < 24; ++trial) {
          // scales of any size, also of those that no float of few bits can have; zero points of either end and outside
          const int reach = dtype == DType::Float16 ? 12 : dtype == DType::Float64 ? 1000 : 127;
          const double scale =
              std::ldexp(1 + std::uniform_real_distribution<>(0, 1)(random), static_cast<int>(random() % (2 * reach)) - reach);
          const int64_t zeros[] = {0, s.low, s.high, 3, -300, s.low + static_cast<int64_t>(random() % 256)};
          const int64_t zero = zeros[random() % 6];
          const std::string type = typeText(s, real, scale, zero);
          auto module = test.parse("func.func private @f(tensor<1x" + type + ">)");
          ASSERT_TRUE(module) << type << "\n" << test.messages;
          auto f = *module->getOps<func::FuncOp>().begin();
          const bool claim = roundTrips(cast<RankedTensorType>(f.getArgumentTypes().front()).getElementType(), rounding);
          const std::string text =
              replaced(R"(func.func @f(%i: tensor<256xSTORE>) -> tensor<256xSTORE> {
            %0 = hlo.bitcast_convert %i : (tensor<256xSTORE>) -> tensor<256xTYPE>
            %1 = hlo.uniform_dequantize %0 : (tensor<256xTYPE>) -> tensor<256xREAL>
            %2 = hlo.uniform_quantize %1, rounding = ROUNDING : (tensor<256xREAL>) -> tensor<256xTYPE>
            %3 = hlo.bitcast_convert %2 : (tensor<256xTYPE>) -> tensor<256xSTORE>
            return %3 : tensor<256xSTORE> })",
                       {{"TYPE", type}, {"STORE", s.integer}, {"REAL", real}, {"ROUNDING", stringifyQuantizeRounding(rounding).str()}});
          std::vector<int64_t> all(256);
          for (int64_t i = 0; i < 256; ++i)
            all[i] = s.low + i;
          auto r = run(text, {make<int64_t>(s.dtype, {256}, all)});
          ASSERT_EQ(r.size(), 1u);
          const bool same = eval::loadInts(r[0]) == all;
          EXPECT_TRUE(same || !claim) << type << " " << stringifyQuantizeRounding(rounding).str();
          proven += claim;
          refused += !claim;
          lossy += !same;
          if (std::string(real) == "f32" && zero >= s.low && zero <= s.high && std::abs(std::log2(scale)) < 100)
            EXPECT_TRUE(claim) << type;
        }
      }
  EXPECT_GT(proven, 200);
  EXPECT_GT(lossy, 10); // bf16, scales that overflow: the refusals are no mere caution
  EXPECT_GE(refused, lossy);
}

// What the pass writes computes the bits that the ops have.
TEST_F(Quant, LoweringGivesTheSameBits) {
  std::mt19937 random(2);
  std::vector<Storage> storages(std::begin(bytes), std::end(bytes));
  storages.insert(storages.end(), std::begin(others), std::end(others));
  constexpr int64_t n = 96;
  for (const Storage &s : storages)
    for (auto [real, dtype] : floats)
      for (QuantizeRounding rounding : roundings) {
        if (rounding == QuantizeRounding::UP && (dtype != DType::Float32 || s.dtype == DType::UInt32))
          continue;
        for (int trial = 0; trial < 6; ++trial) {
          const double scale = std::ldexp(1 + std::uniform_real_distribution<>(0, 1)(random), static_cast<int>(random() % 16) - 12);
          const int64_t zeros[] = {0, s.low, s.high, (s.low + s.high) / 2 + 1, 5, s.low + static_cast<int64_t>(random() % 16)};
          std::string type = typeText(s, real, scale, zeros[trial]);
          if (trial % 2) { // a narrower range, with 0 outside of it every other time
            const int64_t low = trial == 1 ? s.low + 1 : std::max<int64_t>(s.low, 1), high = s.high - (trial == 5);
            type = replaced(type, {{std::string("<") + s.name,
                                    "<" + std::string(s.name) + "<" + std::to_string(low) + ":" + std::to_string(high) + ">"}});
          }
          std::vector<double> x = {0,         -0.0,       inf,         -inf,        nan,          1e30,        -1e30,
                                   scale / 2, -scale / 2, scale * 1.5, scale * 2.5, -scale * 1.5, 3e9 * scale, -3e9 * scale};
          while (x.size() < n) // near the range, at halves every third time
            x.push_back(((x.size() % 3 ? 0 : 0.5) + std::floor((std::uniform_real_distribution<>(-1.3, 1.3)(random)) * double(s.high)) -
                         double(zeros[trial])) *
                        scale);
          std::vector<int64_t> q(n);
          for (int64_t &v : q)
            v = s.low + static_cast<int64_t>(random() % static_cast<uint64_t>(s.high - s.low + 1));
          const std::string text =
              replaced(R"(func.func @f(%x: tensor<96xREAL>, %i: tensor<96xSTORE>) -> (tensor<96xSTORE>, tensor<96xREAL>, tensor<96xSTORE>) {
            %0 = hlo.uniform_quantize %x, rounding = ROUNDING : (tensor<96xREAL>) -> tensor<96xTYPE>
            %1 = hlo.bitcast_convert %0 : (tensor<96xTYPE>) -> tensor<96xSTORE>
            %2 = hlo.bitcast_convert %i : (tensor<96xSTORE>) -> tensor<96xTYPE>
            %3 = hlo.uniform_dequantize %2 : (tensor<96xTYPE>) -> tensor<96xREAL>
            %4 = hlo.uniform_quantize %2, rounding = ROUNDING : (tensor<96xTYPE>) -> tensor<96xTYPE>
            %5 = hlo.bitcast_convert %4 : (tensor<96xTYPE>) -> tensor<96xSTORE>
            return %1, %3, %5 : tensor<96xSTORE>, tensor<96xREAL>, tensor<96xSTORE> })",
                       {{"TYPE", type}, {"STORE", s.integer}, {"REAL", real}, {"ROUNDING", stringifyQuantizeRounding(rounding).str()}});
          const std::vector<Tensor> inputs = {make(dtype, {n}, x), make<int64_t>(s.dtype, {n}, q)};
          auto want = run(text, inputs);
          ASSERT_EQ(want.size(), 3u) << text;
          auto got = lowered(text, inputs);
          ASSERT_EQ(got.size(), 3u) << text;
          for (size_t k = 0; k < 3; ++k)
            EXPECT_EQ(std::memcmp(got[k].data(), want[k].data(), want[k].sizeBytes()), 0) << "result " << k << " of " << text;
          for (size_t k : {0u, 2u}) // none leaves its range
            for (int64_t v : eval::loadInts(want[k]))
              EXPECT_TRUE(v >= s.low && v <= s.high && (trial % 2 == 0 || v >= (trial == 1 ? s.low + 1 : std::max<int64_t>(s.low, 1))))
                  << text;
        }
      }
}

} // namespace
