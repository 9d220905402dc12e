// Products of narrow integers whose right operand is known at run time only, for several processors, against a plain loop. Sums wrap
// in 32 bits, so every result is one number.
#include "KernelRunner.h"

#include "dialects/kernel/Kernel.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

namespace {

/// One of the element types, its size and sign.
struct Narrow {
  const char *name;
  int64_t bytes;
  bool isSigned;
  int64_t read(const std::vector<uint8_t> &data, int64_t i) const {
    if (bytes == 2)
      return static_cast<int16_t>(data[2 * i] | data[2 * i + 1] << 8);
    return isSigned ? int64_t(static_cast<int8_t>(data[i])) : int64_t(data[i]);
  }
};
constexpr Narrow i8 = {"i8", 1, true}, ui8 = {"ui8", 1, false}, i16 = {"i16", 2, true};

struct IntegerDot {
  Narrow left, right;
  int64_t batch, m, k, n;
  bool leftTurned = false, rightTurned = false, dynamicRows = false;
};

std::vector<uint8_t> randomBytes(std::mt19937 &random, int64_t count, bool ends) {
  std::vector<uint8_t> v(count);
  for (uint8_t &x : v)
    x = ends ? (random() % 2 ? 0x80 : 0x7f) : random();
  return v;
}

std::string textOf(const IntegerDot &c) {
  auto type = [&](bool turned, int64_t rows, int64_t columns, bool openRows, const char *elem) {
    std::string sizes[] = {std::to_string(rows), std::to_string(columns)}, exprs[] = {sizes[0], sizes[1]};
    if (openRows)
      sizes[0] = "?", exprs[0] = "s0";
    const std::string batch = std::to_string(c.batch);
    std::string text = "tensor<" + batch + "x" + sizes[turned] + "x" + sizes[!turned] + "x" + elem;
    if (openRows)
      text += ", affine_map<()[s0] -> (" + batch + ", " + exprs[turned] + ", " + exprs[!turned] + ")>";
    return text + ">";
  };
  const std::string lhs = type(c.leftTurned, c.m, c.k, c.dynamicRows, c.left.name), rhs = type(c.rightTurned, c.k, c.n, false, c.right.name),
                    acc = type(false, c.m, c.n, c.dynamicRows, "i32");
  return "func.func @main(%x: " + lhs + ", %y: " + rhs + ") -> " + acc + " { %0 = kernel.dot(%x, %y) {lhs_dims = array<i64: 0, " +
         (c.leftTurned ? "2, 1" : "1, 2") + ">, rhs_dims = array<i64: 0, " + (c.rightTurned ? "2, 1" : "1, 2") +
         ">, result_dims = array<i64: 0, 1, 2>} : (" + lhs + ", " + rhs + ") -> " + acc + " {\n^bb0(%a: " + acc + "):\n kernel.yield %a : " + acc +
         "\n}\n return %0 : " + acc + " }";
}

void check(const IntegerDot &c, const Processor &processor, unsigned seed, bool ends = false) {
  if (!processor.isRunnable())
    return;
  const std::string text = textOf(c);
  SCOPED_TRACE(processor.cpu + " " + processor.features + ": " + text.substr(0, text.find("->")));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &testContext());
  ASSERT_TRUE(module);
  kernel::DotOp op;
  module->walk([&](kernel::DotOp found) { op = found; });
  CompiledKernel *kernel = CompiledKernel::compileOnce(op, processor);
  ASSERT_TRUE(kernel);
  std::mt19937 random(seed);
  std::vector<uint8_t> x = randomBytes(random, c.batch * c.m * c.k * c.left.bytes, ends), y = randomBytes(random, c.batch * c.k * c.n * c.right.bytes, ends);
  constexpr int32_t untouched = -77;
  std::vector<int32_t> z(c.batch * c.m * c.n + 64, untouched), want(z);
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        uint32_t sum = 0;
        for (int64_t s = 0; s < c.k; ++s)
          sum += static_cast<uint32_t>(c.left.read(x, (b * c.m * c.k) + (c.leftTurned ? s * c.m + i : i * c.k + s)) *
                                       c.right.read(y, (b * c.k * c.n) + (c.rightTurned ? j * c.k + s : s * c.n + j)));
        want[(b * c.m + i) * c.n + j] = static_cast<int32_t>(sum);
      }
  const std::vector<int64_t> symbols = {c.m};
  EXPECT_EQ(kernel->run({x.data(), y.data()}, {z.data()}, symbols), 0);
  EXPECT_EQ(z, want);
  std::vector<int32_t> w(z.size(), untouched);
  const int64_t units = kernel->units(symbols);
  for (int64_t from = 0, step = 1; from < units; from += step, step = step % 3 + 1)
    kernel->run({x.data(), y.data()}, {w.data()}, symbols, from, std::min(units, from + step));
  EXPECT_EQ(w, want) << "in parts";
  if (!c.dynamicRows)
    EXPECT_EQ(compareRowsApart(op, processor, {x.data(), y.data()}, z.data(), symbols), "");
}

std::vector<Processor> processors() { return {Processor::baseline(), Processor::avx2(), {"skylake-avx512", ""}, {"icelake-server", ""}}; }

TEST(KernelIntegerDot, SizesAndLayouts) {
  unsigned seed = 0;
  for (const Processor &p : processors())
    for (bool turned : {false, true})
      for (auto [m, k, n] : {std::tuple(4, 4, 4), std::tuple(5, 7, 9), std::tuple(17, 33, 65), std::tuple(64, 130, 48)}) {
        ++seed;
        check({i16, i16, 2, m, k, n, seed % 2 == 0, turned}, p, seed);
      }
}

TEST(KernelIntegerDot, Types) {
  unsigned seed = 100;
  for (const Processor &p : processors())
    for (Narrow left : {i8, ui8, i16})
      for (Narrow right : {i8, ui8, i16}) {
        ++seed;
        check({left, right, 1, 9, 35, 21, false, right.bytes == 2}, p, seed, /*ends=*/seed % 3 == 0);
      }
}

TEST(KernelIntegerDot, RandomSizes) {
  std::mt19937 random(7);
  const std::vector<Processor> all = processors();
  const Narrow types[] = {i8, ui8, i16};
  auto size = [&]() -> int64_t { return 1 + random() % (random() % 3 ? 40 : 150); };
  for (unsigned i = 0; i < 32; ++i) {
    IntegerDot c = {types[random() % 3], types[random() % 3], 1 + int64_t(random() % 3), size(), size(), size()};
    c.leftTurned = random() % 2;
    c.rightTurned = random() % 2;
    c.dynamicRows = random() % 4 == 0;
    check(c, all[i % all.size()], i, random() % 5 == 0);
  }
}

TEST(KernelIntegerDot, LongSumsAndFewRows) {
  unsigned seed = 300;
  for (const Processor &p : processors()) {
    check({i16, i16, 1, 40, 3001, 70}, p, ++seed, true);
    check({i8, i8, 1, 3, 64, 64}, p, ++seed);
    check({i8, i8, 1, 64, 64, 3, false, true}, p, ++seed);
    check({i16, i8, 1, 64, 3, 64}, p, ++seed);
  }
}

/// Pairs are multiplied by one instruction, which with VNNI adds too.
TEST(KernelIntegerDot, Instructions) {
  auto assembly = [](const Processor &p) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(textOf({i16, i16, 1, 32, 64, 64}), &testContext());
    std::string text;
    module->walk([&](kernel::DotOp op) { text = CompiledKernel::compileOnce(op, p)->assembly(); });
    return text;
  };
  EXPECT_NE(assembly(Processor::baseline()).find("pmaddwd"), std::string::npos);
  EXPECT_NE(assembly(Processor::avx2()).find("vpmaddwd"), std::string::npos);
  EXPECT_NE(assembly({"icelake-server", ""}).find("vpdpwssd"), std::string::npos);
}

} // namespace
