// Kernels whose results lie in a larger tensor, row by row: the same bits as in a dense one, and nothing
// beside the rows.
#include "Text.h"

namespace lathe::test {
namespace {

/// The text with the elements from row to row of each result on its outermost kernel.
std::string apart(const std::string &text, const std::string &rows) {
  const std::string attribute = "kernel.result_rows = array<i64: " + rows + ">";
  std::string s = text;
  const size_t kernel = s.find("kernel."), end = s.find("} : ", kernel), plain = s.find(") : (", kernel);
  if (plain < end)
    s.insert(plain + 1, " {" + attribute + "}");
  else
    s.insert(end, ", " + attribute);
  // the convolution inside of a chain gives its result
  if (const size_t conv = s.find("kernel.depthwise_conv");
      conv != std::string::npos && s.find("kernel.chain") != std::string::npos)
    s.insert(s.find("} : ", conv), ", " + attribute);
  return s;
}

void expectSame(const std::string &text, const std::vector<Tensor> &inputs, const std::string &rows) {
  for (const char *cpu : cpus) {
    if (!hostRuns(cpu))
      continue;
    EXPECT_EQ(compareWithReference(text, inputs, 2e-5, cpu), "") << cpu;
    const KernelRun dense = runKernel(text, inputs, cpu), placed = runKernel(apart(text, rows), inputs, cpu);
    ASSERT_TRUE(dense.ok) << dense.message;
    ASSERT_TRUE(placed.ok) << cpu << ": " << placed.message << "\n" << apart(text, rows);
    ASSERT_EQ(dense.outputs.size(), placed.outputs.size());
    for (size_t i = 0; i < dense.outputs.size(); ++i)
      EXPECT_EQ(difference(dense.outputs[i], placed.outputs[i]), 0) << cpu;
  }
}

TEST(RowsApart, ElementwiseLoops) {
  for (int64_t channels : {3, 8, 16, 33, 100}) {
    const std::string c = std::to_string(channels), t = "tensor<2x5x7x" + c + "xf32>",
                      v = "tensor<" + c + "xf32>";
    const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {2, 5, 7, channels}, 1),
                                        randomTensor(DType::Float32, {channels}, 2)};
    const std::string body = "%s = \"hlo.broadcast_in_dim\"(%a1) {broadcast_dimensions = array<i64: 3>} : (" +
                             v + ") -> " + t + "\n%y = \"hlo.multiply\"(%a0, %s) : (" + t + ", " + t +
                             ") -> " + t;
    expectSame(kernelOf("loop", {t, v}, t, body), inputs, std::to_string(channels + 1));
    expectSame(kernelOf("loop", {t, v}, t, body), inputs, std::to_string(4 * channels + 64));
    // one run otherwise
    expectSame(kernelOf("loop", {t}, t, unaryOp("tanh", t, t)), {inputs[0]}, std::to_string(channels + 5));
  }
}

TEST(RowsApart, NarrowTypes) {
  for (const char *elem : {"bf16", "f16", "i8", "i1", "f64", "complex<f32>"}) {
    const std::string t = std::string("tensor<3x9x21x") + elem + ">";
    expectSame(kernelOf("loop", {t}, t,
                        "%y = \"hlo.reverse\"(%a0) {dimensions = array<i64: 1>} : (" + t + ") -> " + t),
               {randomTensor(dtypeOf(elem), {3, 9, 21}, 1)}, "40");
  }
}

TEST(RowsApart, LoopsThatMove) {
  const std::string t = "tensor<2x6x5x20xf32>";
  const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {2, 6, 5, 20}, 1)};
  // the pixels of an image twice as large, before a reshape
  const std::string large = "tensor<2x6x2x5x2x20xf32>";
  expectSame(
      kernelOf("loop", {t}, large,
               "%y = \"hlo.broadcast_in_dim\"(%a0) {broadcast_dimensions = array<i64: 0, 1, 3, 5>} : (" + t +
                   ") -> " + large),
      inputs, "53");
  const std::string turned = "tensor<2x5x6x20xf32>", last = "tensor<2x6x20x5xf32>";
  expectSame(kernelOf("loop", {t}, turned,
                      "%y = \"hlo.transpose\"(%a0) {permutation = array<i64: 0, 2, 1, 3>} : (" + t + ") -> " +
                          turned),
             inputs, "25");
  expectSame(
      kernelOf("loop", {t}, last,
               "%y = \"hlo.transpose\"(%a0) {permutation = array<i64: 0, 1, 3, 2>} : (" + t + ") -> " + last),
      inputs, "9");
}

TEST(RowsApart, OneOfTwoResults) {
  const std::string t = "tensor<4x9x19xf32>";
  const std::string text = "func.func @f(%x: " + t + ") -> (" + t + ", " + t +
                           ") {\n%r:2 = kernel.loop(%x) : (" + t + ") -> (" + t + ", " + t +
                           ") {\n^bb0(%a: " + t + "):\n%p = \"hlo.tanh\"(%a) : (" + t + ") -> " + t +
                           "\n%q = \"hlo.abs\"(%a) : (" + t + ") -> " + t + "\nkernel.yield %p, %q : " + t +
                           ", " + t + "\n}\nreturn %r#0, %r#1 : " + t + ", " + t + "\n}\n";
  const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {4, 9, 19}, 1)};
  expectSame(text, inputs, "0, 64");
  expectSame(text, inputs, "21, 0");
}

TEST(RowsApart, BatchOfRunTimeSize) {
  const std::string t = "tensor<?x7x33xf32, affine_map<()[s0] -> (s0, 7, 33)>>";
  for (int64_t batch : {1, 5})
    expectSame(kernelOf("loop", {t}, t, unaryOp("abs", t, t)),
               {randomTensor(DType::Float32, {batch, 7, 33}, 1)}, "50");
}

// The convolution's result, from scratch that has one panel of channels.
TEST(RowsApart, Chains) {
  for (int64_t channels : {32, 40, 80}) {
    const std::string c = std::to_string(channels), x = "tensor<160x5xf32>", w = "tensor<5x" + c + "xf32>",
                      f = "tensor<3x3x1x" + c + "xf32>", p = "tensor<160x" + c + "xf32>",
                      image = "tensor<2x10x8x" + c + "xf32>";
    const std::string text =
        function({x, w, f}, image,
                 "%r = kernel.chain(%x0, %x1, %x2) {strips = 3 : i64} : (" + x + ", " + w + ", " + f +
                     ") -> " + image + " {\n^bb0(%a: " + x + ", %b: " + w + ", %d: " + f +
                     "):\n%0 = kernel.dot(%a, %b) {lhs_dims = array<i64: 0, 1>, rhs_dims = array<i64: 0, 1>, "
                     "result_dims = array<i64: 0, 1>} : (" +
                     x + ", " + w + ") -> " + p + " {\n^bb0(%acc: " + p + "):\nkernel.yield %acc : " + p +
                     "\n}\n%1 = \"hlo.reshape\"(%0) : (" + p + ") -> " + image +
                     "\n%2 = kernel.depthwise_conv(%1, %d) {groups = " + c +
                     " : i64, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, strides = "
                     "array<i64: 1, 1>, "
                     "padding = array<i64: 1, 1, 1, 1>} : (" +
                     image + ", " + f + ") -> " + image + " {\n^bb0(%acc: " + image +
                     "):\nkernel.yield %acc : " + image + "\n}\nkernel.yield %2 : " + image + "\n}");
    expectSame(text,
               {randomTensor(DType::Float32, {160, 5}, 1), randomTensor(DType::Float32, {5, channels}, 2),
                randomTensor(DType::Float32, {3, 3, 1, channels}, 3)},
               std::to_string(channels + 7));
  }
}

void expectSameRead(const std::string &text, const std::vector<Tensor> &inputs,
                    const std::string &operandRows, const std::string &resultRows = "0",
                    double tolerance = 0) {
  for (const char *cpu : cpus) {
    if (!hostRuns(cpu))
      continue;
    const std::string placed = apart(text, resultRows + ">, kernel.operand_rows = array<i64: " + operandRows);
    const KernelRun dense = runKernel(text, inputs, cpu), run = runKernel(placed, inputs, cpu);
    ASSERT_TRUE(dense.ok) << dense.message;
    ASSERT_TRUE(run.ok) << cpu << ": " << run.message << "\n" << placed;
    EXPECT_LE(difference(dense.outputs[0], run.outputs[0]), tolerance) << cpu << placed;
  }
}

TEST(RowsApart, LoopsThatRead) {
  for (int64_t channels : {16, 33, 100}) {
    const std::string c = std::to_string(channels), t = "tensor<2x5x7x" + c + "xf32>",
                      v = "tensor<" + c + "xf32>", row = std::to_string(channels + 11);
    const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {2, 5, 7, channels}, 1),
                                        randomTensor(DType::Float32, {channels}, 2),
                                        randomTensor(DType::Float32, {2, 5, 7, channels}, 3)};
    const std::string body = "%s = \"hlo.broadcast_in_dim\"(%a1) {broadcast_dimensions = array<i64: 3>} : (" +
                             v + ") -> " + t + "\n%m = \"hlo.multiply\"(%a0, %s) : (" + t + ", " + t +
                             ") -> " + t + "\n%y = \"hlo.add\"(%m, %a2) : (" + t + ", " + t + ") -> " + t;
    const std::string text = kernelOf("loop", {t, v, t}, t, body);
    expectSameRead(text, inputs, row + ", 0, 0");
    expectSameRead(text, inputs, "0, 0, " + row);
    expectSameRead(text, inputs, row + ", 0, 256", "301");
    expectSameRead(kernelOf("loop", {t}, t, unaryOp("abs", t, t)), {inputs[0]}, row);
    const std::string small = "tensor<2x4x5x" + c + "xf32>", moved = "tensor<2x7x5x" + c + "xf32>";
    expectSameRead(kernelOf("loop", {t}, small,
                            "%y = \"hlo.slice\"(%a0) {start_indices = array<i64: 0, 1, 2, 0>, limit_indices "
                            "= array<i64: 2, 5, 7, " +
                                c + ">, strides = array<i64: 1, 1, 1, 1>} : (" + t + ") -> " + small),
                   {inputs[0]}, row);
    expectSameRead(kernelOf("loop", {t}, moved,
                            "%y = \"hlo.transpose\"(%a0) {permutation = array<i64: 0, 2, 1, 3>} : (" + t +
                                ") -> " + moved),
                   {inputs[0]}, row);
  }
}

TEST(RowsApart, WindowsThatRead) {
  for (int64_t channels : {3, 16, 64, 70}) {
    const std::string c = std::to_string(channels), x = "tensor<2x9x8x" + c + "xf32>",
                      row = std::to_string(channels + 13), f = "tensor<3x3x1x" + c + "xf32>";
    const Tensor image = randomTensor(DType::Float32, {2, 9, 8, channels}, 1);
    for (const char *kind : {"max", "avg"}) {
      const std::string text =
          function({x}, x,
                   "%r = kernel.pool(%x0) {kind = \"" + std::string(kind) +
                       "\", window = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, "
                       "1, 1, 1>, window_dilation = "
                       "array<i64: 1, 1>} : (" +
                       x + ") -> " + x + " {\n^bb0(%acc: " + x + "):\nkernel.yield %acc : " + x + "\n}");
      expectSameRead(text, {image}, row);
      // pixels so far apart that windows are better summed up one by one
      expectSameRead(text, {image}, "256", "128", 1e-6);
    }
    const std::string text = function({x, f, x}, x,
                                      "%r = kernel.depthwise_conv(%x0, %x1, %x2) {groups = " + c +
                                          " : i64, lhs_dilation = array<i64: 1, 1>, rhs_dilation = "
                                          "array<i64: 1, 1>, strides = array<i64: 1, 1>, padding = "
                                          "array<i64: 1, 1, 1, 1>} : (" +
                                          x + ", " + f + ", " + x + ") -> " + x + " {\n^bb0(%acc: " + x +
                                          ", %e: " + x + "):\n%s = \"hlo.add\"(%acc, %e) : (" + x + ", " + x +
                                          ") -> " + x + "\nkernel.yield %s : " + x + "\n}");
    const std::vector<Tensor> inputs = {image, randomTensor(DType::Float32, {3, 3, 1, channels}, 2),
                                        randomTensor(DType::Float32, {2, 9, 8, channels}, 3)};
    expectSameRead(text, inputs, row + ", 0, 0");
    expectSameRead(text, inputs, "0, 0, " + row, row);
  }
}

TEST(RowsApart, ProductsThatRead) {
  for (auto [m, k, n] : {std::tuple(1, 40, 20), {30, 37, 100}, {40, 64, 24}, {64, 1100, 70}}) {
    const std::string M = std::to_string(m), K = std::to_string(k), N = std::to_string(n),
                      x = "tensor<" + M + "x" + K + "xf32>", w = "tensor<" + K + "x" + N + "xf32>",
                      z = "tensor<" + M + "x" + N + "xf32>";
    const std::string text = function({x, w, z}, z,
                                      "%r = kernel.dot(%x0, %x1, %x2) {lhs_dims = array<i64: 0, 1>, rhs_dims "
                                      "= array<i64: 0, 1>, result_dims = array<i64: 0, 1>} : (" +
                                          x + ", " + w + ", " + z + ") -> " + z + " {\n^bb0(%acc: " + z +
                                          ", %e: " + z + "):\n%s = \"hlo.add\"(%acc, %e) : (" + z + ", " + z +
                                          ") -> " + z + "\nkernel.yield %s : " + z + "\n}");
    const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {m, k}, 1),
                                        randomTensor(DType::Float32, {k, n}, 2),
                                        randomTensor(DType::Float32, {m, n}, 3)};
    expectSameRead(text, inputs, "2048, 0, 0");
    expectSameRead(text, inputs, std::to_string(k + 3) + ", 0, " + std::to_string(n + 5),
                   std::to_string(n + 1));
  }
}

TEST(RowsApart, ConcatenationsThatRead) {
  const std::string x = "tensor<6x20xf32>", y = "tensor<6x7xf32>", z = "tensor<6x27xf32>";
  const std::string text = function(
      {x, y}, z, "%r = \"hlo.concatenate\"(%x0, %x1) {dimension = 1 : i64} : (" + x + ", " + y + ") -> " + z);
  const std::vector<Tensor> inputs = {randomTensor(DType::Float32, {6, 20}, 1),
                                      randomTensor(DType::Float32, {6, 7}, 2)};
  for (const char *rows : {"31, 0", "0, 9", "64, 65"}) {
    std::string placed = text;
    placed.insert(placed.find("} : "),
                  std::string(", kernel.result_rows = array<i64: 40>, kernel.operand_rows = array<i64: ") +
                      rows + ">");
    const KernelRun run = runKernel(placed, inputs);
    ASSERT_TRUE(run.ok) << run.message;
    EXPECT_EQ(difference(run.outputs[0], runReference(text, inputs).outputs[0]), 0);
  }
}

// What lies in the result is left alone; a row of it may have any number of parts.
TEST(RowsApart, ConcatenationOfTheRest) {
  for (int64_t rows : {1, 6})
    for (int64_t parts : {3, 40}) {
      std::vector<std::string> types;
      std::vector<Tensor> inputs;
      std::string list, names, flags;
      int64_t columns = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t width = 3 + i % 5;
        columns += width;
        types.push_back("tensor<" + std::to_string(rows) + "x" + std::to_string(width) + "xf32>");
        inputs.push_back(randomTensor(DType::Float32, {rows, width}, i));
        list += (i ? ", " : "") + types.back();
        names += (i ? ", %x" : "%x") + std::to_string(i);
        flags += std::string(i ? ", " : "") + (i % 3 == 1 ? "true" : "false");
      }
      const std::string result = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
      auto text = [&](const std::string &more) {
        return function(types, result,
                        "%r = \"hlo.concatenate\"(" + names + ") {dimension = 1 : i64" + more + "} : (" +
                            list + ") -> " + result);
      };
      EXPECT_MATCH(text(""), inputs, 0);
      const KernelRun run = runKernel(text(", kernel.joined = array<i1: " + flags + ">"), inputs);
      ASSERT_TRUE(run.ok) << run.message;
      const Tensor expected = runReference(text(""), inputs).outputs[0];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0, at = 0; i < parts; at += inputs[i].dim(1), ++i)
          for (int64_t j = 0; j < inputs[i].dim(1); ++j) {
            const float *got = run.outputs[0].data<float>() + r * columns + at + j;
            if (i % 3 == 1)
              EXPECT_EQ(*reinterpret_cast<const uint32_t *>(got), 0xA5A5A5A5u);
            else
              EXPECT_EQ(*got, expected.data<float>()[r * columns + at + j]);
          }
    }
}

} // namespace
} // namespace lathe::test
