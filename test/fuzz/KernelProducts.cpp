// Cases of products, alone and in chains: few columns, Strassen, operands rounded to bf16, tile registers,
// attention, a depthwise convolution behind.
#include "KernelGraph.h"

using namespace mlir;

namespace lathe::fuzz {
namespace {

constexpr unsigned plainExact = plain | exactKind, plainReal = plain | realKind;

/// A product of any sizes that do not take long.
DotSpec anyDot(KernelGraph &g, int64_t mostBatch = 2) {
  DotSpec s;
  s.batch = g.batch(g.below(mostBatch + 1));
  s.m = g.size();
  s.n = g.size();
  s.k = std::min(g.size(), g.longest());
  while (s.m * s.n * s.k > 400000)
    (s.m > s.n ? s.m : s.n) /= 2;
  return s;
}

bool product(KernelGraph &g, Right right) {
  g.pickType({"f32", "f32", "f64", "f16", "bf16", "i32", "i64", "u32", "c64"});
  DotSpec s = anyDot(g);
  s.leftTurned = g.chance(30);
  s.rightTurned = g.chance(30);
  s.right = right;
  if (right == Right::Fed && g.chance(15))
    s.dynamic = {int64_t(s.batch.size()) + (s.leftTurned ? 1 : 0)};
  return g.dot(s);
}

bool deep(KernelGraph &g) {
  g.pickType({"f32", "f64", "i32"});
  DotSpec s;
  s.m = g.size(26, 80);
  s.n = g.size(9, 24);
  s.k = 1025 + g.below(200);
  return g.dot(s);
}

/// Bytes or words; `tall`: as tile registers want them.
bool integers(KernelGraph &g, bool tall, bool rank3 = false) {
  g.pickType(tall ? ArrayRef<StringRef>{"i8", "u8"} : ArrayRef<StringRef>{"i8", "u8", "i16"});
  DotSpec s;
  if (rank3 || g.chance(25))
    s.batch = g.batch(1);
  s.m = tall ? g.size(4, 100) : g.size(1, 100);
  s.n = tall ? g.size(16, 160) : g.size(1, 100);
  s.k = tall ? g.size(32, 260) : g.size(1, 260);
  s.right = tall ? Right::Constant : Right::Either;
  s.rightElem = tall ? g.typeOf("i8") : g.typeOf(std::array<StringRef, 3>{"i8", "u8", "i16"}[g.below(3)]);
  s.result = g.typeOf("i32");
  s.leftTurned = g.chance(20);
  s.rightTurned = g.chance(30);
  if (tall && g.chance(20))
    s.dynamic = {int64_t(s.batch.size()) + (s.leftTurned ? 1 : 0)};
  return g.dot(s);
}

/// Narrow integers that are both arguments. `few`: of rows, columns or steps.
bool bothFed(KernelGraph &g, bool few, bool dynamicColumns = false) {
  g.pickType({"i8", "u8", "i16"});
  Type second = g.typeOf(std::array<StringRef, 3>{"i8", "u8", "i16"}[g.below(3)]);
  SmallVector<int64_t> batch = g.batch(g.below(3));
  const int64_t which = few ? g.below(3) : -1, r = batch.size();
  const int64_t m = which == 0 ? g.between(1, 3) : g.size(4, 100), n = which == 1 ? g.between(1, 3) : g.size(4, 100),
                k = which == 2 ? g.between(1, 3) : g.size(4, 200);
  const bool leftTurned = g.chance(30), rightTurned = g.chance(40);
  SmallVector<int64_t> left(batch), right(batch), dynamic;
  left.append(leftTurned ? SmallVector<int64_t>{k, m} : SmallVector<int64_t>{m, k});
  right.append(rightTurned ? SmallVector<int64_t>{n, k} : SmallVector<int64_t>{k, n});
  if (!few && !dynamicColumns && g.chance(20))
    dynamic = {r + (leftTurned ? 1 : 0)};
  Known x = g.fed(left, dynamic);
  Known y = g.fed(right, dynamicColumns ? ArrayRef<int64_t>{r + (rightTurned ? 0 : 1)} : ArrayRef<int64_t>(), second);
  return g.dot(x, y, r, leftTurned ? r : r + 1, rightTurned ? r + 1 : r, g.typeOf("i32"));
}

bool columns(KernelGraph &g, ArrayRef<StringRef> types, int64_t m, int64_t n, int64_t k,
             Right right = Right::Constant) {
  g.pickType(types);
  DotSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.right = right;
  return g.dot(s);
}

/// Large enough for Strassen's algorithm on any level.
bool large(KernelGraph &g, StringRef type, bool spoil) {
  g.pickType({type});
  const int64_t m = g.oneOf({192, 210, 256}), n = g.oneOf({384, 400, 512}), k = g.oneOf({256, 257, 320});
  Known x = g.fed({m, k});
  return g.dot(x, spoil ? g.spoilt({k, n}) : g.fixed({k, n}), 0, 1, 0);
}

//===----------------------------------------------------------------------===//
// Rounded to bf16
//===----------------------------------------------------------------------===//

bool pairs(KernelGraph &g) {
  g.pickType({"f32", "bf16"});
  DotSpec s;
  s.batch = g.batch(g.below(3));
  s.m = g.size(8, 100);
  s.n = g.size(8, 100);
  s.k = std::min<int64_t>(g.size(8, 260), g.type.isBF16() ? 12 : 260);
  s.leftTurned = g.chance(20);
  s.rightTurned = g.chance(30);
  return g.dot(s);
}

ConvSpec image(KernelGraph &g) {
  ConvSpec s;
  s.images = g.between(1, 2);
  s.sizes = {g.between(4, 9), g.between(4, 17)};
  s.taps = {g.between(1, 3), g.between(1, 3)};
  s.ic = g.size(8, 48);
  s.oc = g.size(8, 48);
  s.right = Right::Constant;
  return s;
}

template <typename Change>
bool pairConv(KernelGraph &g, Change change) {
  ConvSpec s = image(g);
  change(s);
  return g.conv(s);
}

template <typename Change>
bool byteConv(KernelGraph &g, Change change) {
  g.pickType({"i8", "u8"});
  ConvSpec s = image(g);
  s.ic = g.size(16, 80);
  s.oc = g.size(16, 80);
  s.taps = {2, g.between(1, 3)};
  s.rightElem = g.typeOf("i8");
  s.result = g.typeOf("i32");
  s.padding = {{g.below(2), g.below(2)}, {g.below(2), g.below(2)}};
  s.strides = {g.oneOf({1, 1, 2}), g.oneOf({1, 1, 2})};
  if (g.chance(50))
    s.border = g.between(0, 127);
  change(s);
  return g.conv(s);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct Heads {
  int64_t m = 0, n = 0, d = 0, e = 0;
  int64_t trailing = 1; ///< dimensions of the rows
  bool fixedValues = false, turned = false, asRight = false;
  SmallVector<int64_t> dynamic;
};

bool attention(KernelGraph &g, ArrayRef<StringRef> types, Heads h) {
  g.pickType(types);
  const int64_t batch = g.between(1, 2);
  h.m = h.m ? h.m : g.size(42, 100);
  h.n = h.n ? h.n : g.size(17, 70);
  h.d = g.between(1, 8);
  h.e = g.size(1, 40);
  const bool narrow = g.type.getIntOrFloatBitWidth() < 32;
  if (narrow || g.level.bf16) // sums stay exact
    h.d = 1;
  Known q = g.fed({batch, h.m, h.d}, h.dynamic), k = g.fed({batch, h.n, h.d});
  if (!(h.turned ? g.dot(k, q, 1, 2, 2) : g.dot(q, k, 1, 2, 2)))
    return false;
  if (h.turned &&
      !g.keep(hlo::TransposeOp::create(g.b, g.last().value, ArrayRef<int64_t>{0, 2, 1}), g.last().bound))
    return false;
  if (!g.rows(g.last(), h.trailing, g.kind == Kind::Real || g.level.bf16 || g.chance(70)))
    return false;
  Known weights = g.last();
  if (h.asRight) // e rows of m numbers times [m, n]
    return g.dot(g.fed({batch, h.e, h.m}), weights, 1, 2, 1);
  Known v = h.fixedValues ? g.fixed({batch, h.n, h.e}) : g.fed({batch, h.n, h.e});
  return g.dot(weights, v, 1, 2, 1);
}

/// The complex type has no width to ask for.
bool complexAttention(KernelGraph &g) {
  g.pickType({"c64"});
  const int64_t m = g.size(42, 60), n = g.size(17, 40), d = g.between(1, 4);
  Known q = g.fed({1, m, d}), k = g.fed({1, n, d});
  if (!g.dot(q, k, 1, 2, 2) || !g.rows(g.last(), 1, /*most=*/false))
    return false;
  Known weights = g.last();
  return g.dot(weights, g.fed({1, n, 3}), 1, 2, 1);
}

//===----------------------------------------------------------------------===//
// Products and the depthwise convolutions behind them
//===----------------------------------------------------------------------===//

struct Link {
  int64_t images = 3; ///< as many as there are threads, or one image is shared
  int64_t height = 0, width = 0, ic = 0, channels = 0;
  bool residual = false;
  SmallVector<int64_t> dynamic;
};

bool chain(KernelGraph &g, ArrayRef<StringRef> types, Link s) {
  g.pickType(types);
  s.height = s.height ? s.height : g.between(3, 9);
  s.width = s.width ? s.width : g.between(3, 9);
  s.ic = s.ic ? s.ic : g.size(2, 33);
  s.channels = s.channels ? s.channels : g.size(9, 100);
  const int64_t pixels = s.images * s.height * s.width;
  Known x = g.fed({pixels, s.ic}, s.dynamic);
  if (!g.dot(x, g.right(s.ic > 200 ? Right::Constant : Right::Either, {s.ic, s.channels}), 0, 1, 0))
    return false;
  if (s.residual) {
    Known y = g.fed({pixels, s.channels});
    Known before = g.values[g.values.size() - 2];
    if (!g.keep(hlo::AddOp::create(g.b, before.value, y.value), before.bound + y.bound))
      return false;
  } else if (g.chance(50)) {
    (void)g.bias(g.last());
  }
  Known product = g.last();
  if (!g.keep(hlo::ReshapeOp::create(g.b, product.value,
                                     ArrayRef<int64_t>{s.images, s.height, s.width, s.channels}),
              product.bound))
    return false;
  ConvSpec c;
  c.ic = c.oc = c.groups = s.channels;
  c.taps = {g.between(2, 3), g.between(1, 3)};
  c.strides = {g.between(1, 2), g.between(1, 2)};
  c.padding = {{g.below(2), g.below(2)}, {g.below(2), g.below(2)}};
  Known image = g.last();
  return g.conv(image, g.right(Right::Either, {c.taps[0], c.taps[1], 1, s.channels}), c);
}

} // namespace

void addProductCases(std::vector<KernelCase> &cases) {
  using G = KernelGraph;
  const KernelCase all[] = {
      {"product", "", plain, [](G &g) { return product(g, Right::Fed); }},
      {"product-packed", "", plain, [](G &g) { return product(g, Right::Constant); }},
      {"product-deep", "", plain, [](G &g) { return deep(g); }},
      {"product-groups", "", exactKind | noAmx, [](G &g) { return integers(g, false); }},
      {"product-groups", "", rounded | noAmx, [](G &g) { return pairs(g); }},

      {"run-time-groups", "", exactKind, [](G &g) { return bothFed(g, false); }},
      {"run-time-groups", "depth or columns are known at run time only", exactKind,
       [](G &g) { return bothFed(g, false, true); }},
      {"run-time-groups", "few rows, columns or steps of the sum", exactKind, [](G &g) { return bothFed(g, true); }},
      {"run-time-groups", "operands are not narrow integers, or sums not of 32 bits", anyBatch, nullptr,
       "only asked for these"},

      {"few-columns", "", plain,
       [](G &g) {
         return columns(g, {"f32"}, g.size(32, 130), g.between(1, 4), g.size(17, 260), Right::Either);
       }},
      {"few-columns", "columns are many, rows few, or there are no vectors", plain,
       [](G &g) {
         return columns(g, {"f32", "f64"}, g.size(1, 7), g.size(9, 100), g.size(1, 100));
       }},
      {"few-columns", "operands or sums are not f32", plain,
       [](G &g) {
         return columns(g, {"f64", "f64", "i32"}, g.size(8, 100), g.between(1, 8), g.size(8, 100),
                        Right::Constant);
       }},
      {"few-columns", "a step of the sum fills vectors as well", plain,
       [](G &g) {
         return columns(g, {"f32"}, g.size(32, 100), g.oneOf({16, 32, 48, 64}), g.size(8, 200),
                        Right::Either);
       }},

      {"strassen", "", plainReal, [](G &g) { return large(g, "f32", false); }},
      {"strassen", "exact results are asked for, or sums are of integers", plainExact,
       [](G &g) {
         return columns(g, {"f32", "i32"}, g.size(9, 100), g.size(16, 100), g.size(9, 100));
       }},
      {"strassen", "it is estimated to be no faster", plainReal,
       [](G &g) {
         return columns(g, {"f32", "f64"}, g.size(9, 100), g.size(16, 100), g.size(9, 100));
       }},
      {"strassen", "operands or sums are not f32", plainReal, [](G &g) { return large(g, "f64", false); }},
      {"strassen", "the right operand would lose too much accuracy", plainReal,
       [](G &g) { return large(g, "f32", true); }},

      {"bf16", "", rounded, [](G &g) { return pairs(g); }},
      {"bf16", "", rounded,
       [](G &g) {
         return pairConv(g, [&](ConvSpec &s) { s.padding = {{g.below(2), g.below(2)}, {g.below(2), 0}}; });
       }},
      {"bf16", "operands or sums are not f32", rounded,
       [](G &g) {
         return columns(g, {"f64", "f16", "i32"}, g.size(8, 40), g.size(8, 40), 8);
       }},
      {"bf16", "it has no elements", rounded,
       [](G &g) { return columns(g, {"f32"}, 0, g.size(8, 40), g.size(8, 40)); }},
      {"bf16", "depth or columns are known at run time only", rounded,
       [](G &g) {
         DotSpec s = anyDot(g, 0);
         Known x = g.fed({s.m, s.k}), y = g.fed({s.k, s.n}, {1});
         return g.dot(x, y, 0, 1, 0);
       }},
      {"bf16", "depth or columns are fewer than a vector", rounded,
       [](G &g) {
         return columns(g, {"f32"}, g.size(8, 40), g.between(1, 7), g.size(1, 40), Right::Either);
       }},
      {"bf16", "too few rows for a right operand that is not constant", rounded,
       [](G &g) { return columns(g, {"f32"}, g.between(1, 7), g.size(8, 40), g.size(8, 40), Right::Fed); }},
      {"bf16", "the filter is not constant", rounded,
       [](G &g) { return pairConv(g, [](ConvSpec &s) { s.right = Right::Fed; }); }},
      {"bf16", "image sizes are known at run time only", rounded,
       [](G &g) { return pairConv(g, [](ConvSpec &s) {
                    s.dynamic = {1, 2};
                  }); }},
      {"bf16", "it has batch groups or a dilated input", rounded,
       [](G &g) { return pairConv(g, [](ConvSpec &s) {
                    s.inDilation = {2, 1};
                  }); }},
      {"bf16", "a group has fewer channels than a vector", rounded,
       [](G &g) { return pairConv(g, [&](ConvSpec &s) { s.oc = g.between(1, 7); }); }},
      {"bf16", "a group has few or an odd number of input channels", rounded,
       [](G &g) {
         return pairConv(g, [&](ConvSpec &s) {
           s.groups = 2;
           s.ic = 2 * g.oneOf({3, 5, 6, 9});
           s.oc = 2 * g.between(8, 20);
         });
       }},
      {"bf16", "it is packed", anyBatch, nullptr, "the pass that asks runs before packing"},
      {"bf16", "it is no product", anyBatch, nullptr, "only products and convolutions are asked"},

      {"tiles", "", amx | exactKind, [](G &g) { return integers(g, true); }},
      {"tiles", "", amx | exactKind, [](G &g) { return byteConv(g, [](ConvSpec &) {}); }},
      {"tiles-product", "", amx | exactKind, [](G &g) { return integers(g, true, g.chance(40)); }},
      {"tiles-product", "", amx | rounded, [](G &g) { return pairs(g); }},
      {"tiles-conv", "", amx | exactKind, [](G &g) { return byteConv(g, [](ConvSpec &) {}); }},
      {"conv-slab", "", noAmx | exactKind, [](G &g) { return byteConv(g, [](ConvSpec &) {}); }},
      {"tiles-conv", "", amx | rounded, [](G &g) { return pairConv(g, [](ConvSpec &) {}); }},
      {"tiles", "it has no elements", amx | exactKind,
       [](G &g) {
         g.pickType({"i8", "u8"});
         DotSpec s;
         s.m = 0;
         s.n = g.size(16, 60);
         s.k = g.size(32, 60);
         s.right = Right::Constant;
         s.rightElem = g.typeOf("i8");
         s.result = g.typeOf("i32");
         return g.dot(s);
       }},
      {"tiles", "few rows, columns or steps of the sum", amx | exactKind,
       [](G &g) {
         g.pickType({"i8", "u8"});
         DotSpec s;
         const int64_t which = g.below(3);
         s.m = which == 0 ? g.between(1, 3) : g.size(4, 60);
         s.n = which == 1 ? g.between(1, 15) : g.size(16, 60);
         s.k = which == 2 ? g.between(1, 31) : g.size(32, 100);
         s.right = Right::Constant;
         s.rightElem = g.typeOf("i8");
         s.result = g.typeOf("i32");
         return g.dot(s);
       }},
      {"tiles", "image sizes are known at run time only", amx | exactKind,
       [](G &g) { return byteConv(g, [](ConvSpec &s) {
                    s.dynamic = {1, 2};
                  }); }},
      {"tiles", "it has batch groups or a dilated input", amx | exactKind,
       [](G &g) {
         return byteConv(g, [&](ConvSpec &s) {
           if (g.chance(50)) {
             s.inDilation = {2, 1};
           } else {
             s.images = s.batchGroups = 2;
             s.oc = 2 * g.between(8, 30);
           }
         });
       }},
      {"tiles", "few columns or steps of the sum", amx | exactKind,
       [](G &g) { return byteConv(g, [&](ConvSpec &s) { s.oc = g.between(1, 15); }); }},
      {"tiles", "a group has few input channels, or no whole groups of four", amx | exactKind,
       [](G &g) {
         return byteConv(g, [&](ConvSpec &s) {
           s.groups = 2;
           s.ic = 2 * g.oneOf({17, 20, 33, 35});
           s.oc = 2 * g.between(16, 30);
         });
       }},
      {"tiles", "the target has no AMX_INT8", anyBatch, nullptr, "only asked where the target has it"},
      {"tiles", "operands are no bytes", anyBatch, nullptr, "only asked for the format of bytes"},
      {"tiles", "depth or columns are known at run time only", anyBatch, nullptr,
       "a constant right operand has both"},

      {"attention", "", plain, [](G &g) { return attention(g, {"f32"}, {}); }},
      {"attention", "sizes are known at run time, or 0", plain,
       [](G &g) {
         Heads h;
         h.dynamic = {1};
         return attention(g, {"f32"}, h);
       }},
      {"attention", "better apart", plain,
       [](G &g) {
         Heads h;
         h.m = g.between(1, 9);
         return attention(g, {"f32", "f64"}, h);
       }},
      {"attention", "scores are not f32", plain,
       [](G &g) {
         return attention(g, {"f64", "f64", "f16"}, {});
       }},
      {"attention", "there are no vectors", plainExact, [](G &g) { return complexAttention(g); }},
      {"attention", "expected one result of each part", anyBatch, nullptr,
       "fusion gives a product one result"},
      {"attention", "expected products of f32 operands that are not packed", anyBatch,
       [](G &g) {
         Heads h;
         h.fixedValues = true;
         return attention(g, {"f32"}, h);
       }},
      {"attention",
       "expected rows that read the scores once, and a product that reads their result as left operand",
       plain,
       [](G &g) {
         Heads h;
         h.asRight = true;
         return attention(g, {"f32"}, h);
       }},
      {"attention", "expected static shapes", anyBatch, nullptr, "asked before"},
      {"attention", "expected operands and scores of f32", plainExact,
       [](G &g) {
         return attention(g, {"i32", "i64"}, {});
       }},
      {"attention", "expected scores [batch..., m, n] that keep this order of dimensions", plain,
       [](G &g) {
         Heads h;
         h.turned = true;
         return attention(g, {"f32"}, h);
       }},
      {"attention", "expected rows along the last dimension that depend on no other row of the scores", plain,
       [](G &g) {
         Heads h;
         h.trailing = 2;
         return attention(g, {"f32"}, h);
       }},

      {"chain", "", plain, [](G &g) { return chain(g, {"f32"}, {}); }},
      {"chain", "Strassen's algorithm saves more", plainReal,
       [](G &g) {
         Link s;
         s.height = s.width = 11;
         s.ic = 256;
         s.channels = 384;
         return chain(g, {"f32"}, s);
       }},
      {"chain", "sizes are known at run time, or 0", plain,
       [](G &g) {
         Link s;
         s.images = 0;
         return chain(g, {"f32"}, s);
       }},
      {"chain", "not rows of pixels through a product, and windows over these", plain,
       [](G &g) {
         Link s;
         s.residual = true;
         return chain(g, {"f32"}, s);
       }},
      {"chain", "better apart", plain,
       [](G &g) {
         Link s;
         s.images = g.between(1, 2);
         return chain(g, {"f32"}, s);
       }},
      {"chain", "bf16 operands that do not come by pairs", rounded,
       [](G &g) {
         Link s;
         s.ic = 2 * g.between(4, 6) + 1;
         return chain(g, {"f32"}, s);
       }},
      {"chain", "operands or results are not f32", plain,
       [](G &g) {
         return chain(g, {"f64", "f64", "f16"}, {});
       }},
  };
  cases.insert(cases.end(), std::begin(all), std::end(all));
}

} // namespace lathe::fuzz
