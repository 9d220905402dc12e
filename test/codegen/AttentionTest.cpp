// kernel.attention against its two products and the rows between them: blocks of any height, sizes that fill
// no tile and no panel, operands in place in any order of dimensions, masks in all places where they can be.
#include "Text.h"

namespace lathe::test {
namespace {

enum Mask { None, Padding, Full, Causal };
enum Layout {
  Plain,
  Heads,
  Merged
}; // batch first; heads inside of rows; batch dimensions as one around the rows

struct Attention {
  int64_t batch, heads, m, n, depth, width, blocks;
  Mask mask = None;
  Layout layout = Plain;
  bool transposed = true; ///< keys as [n, depth]
};

/// Sizes of queries, keys, values.
std::vector<std::vector<int64_t>> sizesOf(const Attention &a) {
  if (a.layout == Heads)
    return {
        {a.batch, a.m, a.heads, a.depth}, {a.batch, a.n, a.heads, a.depth}, {a.batch, a.n, a.heads, a.width}};
  return {{a.batch, a.heads, a.m, a.depth},
          {a.batch, a.heads, a.transposed ? a.n : a.depth, a.transposed ? a.depth : a.n},
          {a.batch, a.heads, a.n, a.width}};
}

std::vector<int64_t> maskSizes(const Attention &a) {
  if (a.mask == Full)
    return {a.batch, a.heads, a.m, a.n};
  return {a.batch, 1, 1, a.n};
}

/// softmax(%x) along the last dimension of `full`, to %y; `body` comes before and defines %x.
std::string softmax(const std::string &full, const std::string &rowsType, int64_t rank) {
  std::string lead, last = std::to_string(rank - 1);
  for (int64_t i = 0; i + 1 < rank; ++i)
    lead += (i ? ", " : "") + std::to_string(i);
  auto reduce = [&](const char *name, const char *of, const char *op, const char *init) {
    return std::string("%") + name + "i = \"hlo.constant\"() {value = dense<" + init +
           "> : tensor<f32>} : () -> tensor<f32>\n%" + name + " = \"hlo.reduce\"(%" + of + ", %" + name +
           "i) ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = \"hlo." + op +
           "\"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n\"hlo.return\"(%s) : (tensor<f32>) -> "
           "()\n}) {dimensions = array<i64: " +
           last + ">} : (" + full + ", tensor<f32>) -> " + rowsType + "\n%" + name +
           "b = \"hlo.broadcast_in_dim\"(%" + name + ") {broadcast_dimensions = array<i64: " + lead +
           ">} : (" + rowsType + ") -> " + full + "\n";
  };
  auto two = [&](const char *name, const char *op, const char *x, const char *y) {
    return std::string("%") + name + " = \"hlo." + op + "\"(%" + x + ", %" + y + ") : (" + full + ", " +
           full + ") -> " + full + "\n";
  };
  return reduce("max", "x", "maximum", "0xFF800000") + two("d", "subtract", "x", "maxb") +
         "%e = \"hlo.exponential\"(%d) : (" + full + ") -> " + full + "\n" +
         reduce("sum", "e", "add", "0.0") + two("y", "divide", "e", "sumb");
}

std::string text(const Attention &a) {
  const bool heads = a.layout == Heads, merged = a.layout == Merged,
             masked = a.mask == Padding || a.mask == Full;
  auto sizes = sizesOf(a);
  const std::string q = type(sizes[0]), k = type(sizes[1]), v = type(sizes[2]), mask = type(maskSizes(a));
  const std::string scores = type({a.batch, a.heads, a.m, a.n});
  const std::string full = merged ? type({a.batch * a.heads, a.m, a.n}) : scores;
  const std::string rowsType = merged ? type({a.batch * a.heads, a.m}) : type({a.batch, a.heads, a.m});
  const std::string result =
      heads ? type({a.batch, a.m, a.heads, a.width}) : type({a.batch, a.heads, a.m, a.width});
  std::vector<std::string> types = {q, k, v};
  if (masked)
    types.push_back(mask);
  std::string names, args, all;
  for (size_t i = 0; i < types.size(); ++i) {
    names += (i ? ", %x" : "%x") + std::to_string(i);
    args += (i ? ", %a" : "%a") + std::to_string(i) + ": " + types[i];
    all += (i ? ", " : "") + types[i];
  }
  // a mask of the whole is added as the scores are made, one of columns by the rows
  const bool early = a.mask == Full || merged, late = a.mask == Padding && !merged;
  auto addMask = [&](const char *name, const char *to, const char *from) {
    return std::string("%mb = \"hlo.broadcast_in_dim\"(%") + from +
           ") {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (" + mask + ") -> " + scores + "\n%" + name +
           " = \"hlo.add\"(%" + to + ", %mb) : (" + scores + ", " + scores + ") -> " + scores + "\n";
  };
  std::string first = "%half = \"hlo.constant\"() {value = dense<0.5> : " + scores + "} : () -> " + scores +
                      "\n%scaled = \"hlo.multiply\"(%acc, %half) : (" + scores + ", " + scores + ") -> " +
                      scores + "\n";
  std::string end = "%scaled";
  if (masked && early) {
    first += addMask("masked", "scaled", "e0");
    end = "%masked";
  }
  if (a.mask == Causal) {
    const std::string ints = type({a.batch, a.heads, a.m, a.n}, "i32"),
                      bools = type({a.batch, a.heads, a.m, a.n}, "i1");
    first += "%i = \"hlo.iota\"() {iota_dimension = 2 : i64} : () -> " + ints +
             "\n%j = \"hlo.iota\"() {iota_dimension = 3 : i64} : () -> " + ints +
             "\n%c = \"hlo.compare\"(%i, %j) {comparison_direction = #hlo<comparison_direction GE>} : (" +
             ints + ", " + ints + ") -> " + bools +
             "\n%low = \"hlo.constant\"() {value = dense<-1.0e9> : " + scores + "} : () -> " + scores +
             "\n%masked = \"hlo.select\"(%c, %scaled, %low) : (" + bools + ", " + scores + ", " + scores +
             ") -> " + scores + "\n";
    end = "%masked";
  }
  const bool extraScores = masked && early, extraRows = masked && late;
  std::string body = "%0 = kernel.dot(%a0, %a1" + std::string(extraScores ? ", %a3" : "") +
                     ") {lhs_dims = " + (heads ? list({0, 2, 1, 3}) : list({0, 1, 2, 3})) + ", rhs_dims = " +
                     (heads          ? list({0, 2, 3, 1})
                      : a.transposed ? list({0, 1, 3, 2})
                                     : list({0, 1, 2, 3})) +
                     ", result_dims = " + list({0, 1, 2, 3}) + "} : (" + q + ", " + k +
                     (extraScores ? ", " + mask : "") + ") -> " + scores + " {\n^bb0(%acc: " + scores +
                     (extraScores ? ", %e0: " + mask : "") + "):\n" + first + "kernel.yield " + end + " : " +
                     scores + "\n}\n";
  std::string in = "%0", out = "%2";
  if (merged) {
    body += "%1 = \"hlo.reshape\"(%0) : (" + scores + ") -> " + full + "\n";
    in = "%1";
  }
  body += "%2 = kernel.rows(" + in + (extraRows ? ", %a3" : "") + ") : (" + full +
          (extraRows ? ", " + mask : "") + ") -> " + full + " {\n^bb0(%in: " + full +
          (extraRows ? ", %me: " + mask : "") + "):\n" +
          (extraRows
               ? addMask("x", "in", "me")
               : "%one = \"hlo.constant\"() {value = dense<1.5> : " + full + "} : () -> " + full +
                     "\n%x = \"hlo.multiply\"(%in, %one) : (" + full + ", " + full + ") -> " + full + "\n") +
          softmax(full, rowsType, merged ? 3 : 4) + "kernel.yield %y : " + full + "\n}\n";
  if (merged) {
    body += "%3 = \"hlo.reshape\"(%2) : (" + full + ") -> " + scores + "\n";
    out = "%3";
  }
  body += "%4 = kernel.dot(" + out + ", %a2) {lhs_dims = " + list({0, 1, 2, 3}) +
          ", rhs_dims = " + (heads ? list({0, 2, 1, 3}) : list({0, 1, 2, 3})) +
          ", result_dims = " + (heads ? list({0, 2, 1, 3}) : list({0, 1, 2, 3})) + "} : (" + scores + ", " +
          v + ") -> " + result + " {\n^bb0(%acc: " + result + "):\n%t = \"hlo.tanh\"(%acc) : (" + result +
          ") -> " + result + "\nkernel.yield %t : " + result + "\n}\n";
  return function(types, result,
                  "%r = kernel.attention(" + names + ") {blocks = " + std::to_string(a.blocks) +
                      " : i64} : (" + all + ") -> " + result + " {\n^bb0(" + args + "):\n" + body +
                      "kernel.yield %4 : " + result + "\n}");
}

class AttentionTest : public testing::TestWithParam<Attention> {};

TEST_P(AttentionTest, MatchesItsParts) {
  const Attention &a = GetParam();
  auto sizes = sizesOf(a);
  std::vector<Tensor> inputs;
  for (const auto &dims : sizes)
    inputs.push_back(randomTensor(DType::Float32, dims, 1 + inputs.size(), 1));
  if (a.mask == Padding || a.mask == Full)
    inputs.push_back(randomTensor(DType::Float32, maskSizes(a), 7, 3));
  EXPECT_MATCH(text(a), inputs, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Blocks, AttentionTest,
    testing::Values(
        Attention{1, 1, 64, 64, 32, 32, 1},                  // one block
        Attention{2, 3, 40, 48, 16, 16, 2, Padding},         // some entries and blocks
        Attention{1, 2, 53, 37, 20, 24, 3, Full},            // nothing fills tiles or panels
        Attention{1, 3, 61, 61, 16, 40, 4, Causal},          // indices of rows
        Attention{2, 2, 33, 50, 8, 17, 33, Padding, Heads},  // as many blocks as tiles; operands in place
        Attention{1, 4, 197, 197, 64, 64, 5, None, Heads},   // sizes of a vision transformer
        Attention{2, 2, 30, 70, 12, 33, 3, Padding, Merged}, // reshapes between the parts
        Attention{1, 2, 26, 128, 16, 16, 2, Causal, Plain, false}, // keys that lie as they are read
        Attention{1, 1, 20, 1100, 8, 16, 2, None},                 // sums by blocks
        Attention{1, 2, 5, 20, 4, 3, 2, Full},              // tiles of a few rows, columns of no vector
        Attention{3, 1, 1, 9, 5, 2, 1, Padding},            // single rows
        Attention{1, 1, 48, 16, 64, 100, 4, None, Heads})); // short rows, wide values

} // namespace
} // namespace lathe::test
