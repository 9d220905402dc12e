// Cases of convolutions and windows.
#include "KernelGraph.h"

#include "dialects/hlo/Constants.h"

using namespace mlir;

namespace lathe::fuzz {
namespace {

constexpr unsigned plainExact = plain | exactKind, plainReal = plain | realKind;

/// An image of one to three dimensions, some taps and channels of the size class.
ConvSpec anyConv(KernelGraph &g, int64_t spatial = 2) {
  ConvSpec s;
  s.images = g.between(1, 2);
  for (int64_t i = 0; i < spatial; ++i) {
    s.sizes.push_back(g.between(5, spatial == 3 ? 7 : 19));
    s.taps.push_back(g.between(1, 3));
  }
  int64_t taps = 1;
  for (int64_t t : s.taps)
    taps *= t;
  s.ic = std::max<int64_t>(1, std::min(g.size(1, 40), g.longest() / taps));
  s.oc = g.size(1, 70);
  return s;
}

void pad(KernelGraph &g, ConvSpec &s) {
  for (int64_t t : s.taps)
    s.padding.push_back({g.below(t), g.below(t)});
}

/// What keeps Winograd's algorithm away in graphs of real numbers.
bool conv(KernelGraph &g, bool padded, int64_t mostColumns = 70) {
  g.pickType({"f32", "f32", "f64", "f16", "bf16", "i32", "c64", "i8", "u8", "i16"});
  ConvSpec s = anyConv(g, g.oneOf({1, 2, 2, 2, 3}));
  if (g.type.isInteger(8) || g.type.isInteger(16)) {
    s.rightElem = g.typeOf(std::array<StringRef, 3>{"i8", "u8", "i16"}[g.below(3)]);
    s.result = g.typeOf("i32");
    s.right = g.chance(80) ? Right::Constant : Right::Fed;
    if (g.chance(20)) {
      s.groups = 2;
      s.ic = 2 * g.size(1, 24);
    }
  }
  s.oc = s.groups * g.size(1, mostColumns);
  s.taps.back() = g.between(2, 3);
  if (padded) {
    pad(g, s);
    s.padding.front() = {1, 0};
  }
  if (g.chance(30))
    s.strides.assign(s.sizes.size(), g.between(1, 2));
  if (g.chance(20))
    s.dilation.assign(s.sizes.size(), 2);
  if (g.chance(15) && padded)
    s.inDilation.assign(s.sizes.size(), 2);
  return g.conv(s);
}

template <typename Change>
bool changed(KernelGraph &g, ArrayRef<StringRef> types, Change change) {
  g.pickType(types);
  ConvSpec s = anyConv(g);
  change(s);
  return g.conv(s);
}

/// A window that Winograd's algorithm takes where it is faster.
ConvSpec winogradWindow(KernelGraph &g) {
  ConvSpec s;
  const int64_t side = g.oneOf({14, 20, 28});
  s.sizes = {side, side};
  s.taps = {3, 3};
  s.padding = {{1, 1}, {1, 1}};
  s.ic = g.oneOf({16, 24, 32});
  s.oc = g.oneOf({32, 48, 64});
  s.right = Right::Constant;
  return s;
}

bool winograd(KernelGraph &g, ArrayRef<StringRef> types, bool spoil) {
  g.pickType(types);
  ConvSpec s = winogradWindow(g);
  Known x = g.fed({1, s.sizes[0], s.sizes[1], s.ic});
  return g.conv(x, spoil ? g.spoilt({3, 3, s.ic, s.oc}) : g.fixed({3, 3, s.ic, s.oc}), s);
}

/// A window of bytes that Winograd's algorithm takes where it is faster: borders of any number, filters of bytes or words; or taps that are
/// too large for it.
bool integerWinograd(KernelGraph &g, bool large = false) {
  g.pickType({"i8", "u8"});
  ConvSpec s = winogradWindow(g);
  if (g.chance(50))
    s.sizes = {g.between(9, 30), g.between(9, 30)};
  s.images = g.between(1, 2);
  s.ic = g.oneOf({24, 31, 32, 33, 48});
  s.oc = g.oneOf({31, 40, 48, 64});
  if (g.chance(25)) {
    s.taps = g.chance(50) ? SmallVector<int64_t>{1, 3} : SmallVector<int64_t>{3, 1};
    s.padding = {{0, s.taps[0] / 2}, {s.taps[1] / 2, 0}};
    s.oc = 64;
  } else if (g.chance(30)) {
    s.padding = {{g.below(3), g.below(3)}, {g.below(3), g.below(3)}};
  }
  if (g.chance(20))
    s.dilation = {g.between(1, 2), 2};
  if (g.chance(40))
    s.border = g.type.isUnsignedInteger() ? g.below(3) : g.between(-2, 2);
  if (g.chance(20))
    s.dynamic = g.chance(50) ? SmallVector<int64_t>{0} : SmallVector<int64_t>{0, 1, 2};
  s.rightElem = g.typeOf(large || g.chance(30) ? "i16" : "i8");
  s.result = g.typeOf("i32");
  if (!large)
    return g.conv(s);
  Known x = g.fed({s.images, s.sizes[0], s.sizes[1], s.ic});
  return g.conv(x, g.fixed({s.taps[0], s.taps[1], s.ic, s.oc}, s.rightElem, 4000), s);
}

/// Few output channels, so that taps of a row are columns beside each other.
ConvSpec spreadWindow(KernelGraph &g) {
  ConvSpec s;
  s.images = g.between(1, 2);
  s.sizes = {g.between(6, 12), g.between(20, 40)};
  s.taps = {g.between(2, 7), g.oneOf({4, 5, 7})};
  s.padding = {{1, 1}, {g.below(3), g.below(3)}};
  s.ic = g.size(5, 24);
  s.oc = g.between(1, 2);
  s.right = Right::Constant;
  return s;
}

/// Groups of 2 to 4 channels that share vectors.
ConvSpec narrowGroups(KernelGraph &g) {
  ConvSpec s;
  const int64_t width = g.level.lanes == 4 ? 2 : g.oneOf({2, 4});
  s.groups = g.size(2, 20);
  s.images = g.between(1, 2);
  s.sizes = {g.between(3, 9), g.between(3, 19)};
  s.taps = {g.between(1, 3), g.between(1, 3)};
  s.ic = s.oc = width * s.groups;
  return s;
}

bool depthwise(KernelGraph &g, ArrayRef<StringRef> types, ArrayRef<int64_t> taps, bool dynamicWidth = false,
               int64_t inDilation = 1) {
  g.pickType(types);
  ConvSpec s;
  if (g.type.isInteger(8)) {
    s.rightElem = g.typeOf(g.chance(70) ? "i8" : "u8");
    s.result = g.typeOf("i32");
  }
  s.images = g.between(1, 2);
  const int64_t spatial = taps.size();
  for (int64_t t : taps)
    s.sizes.push_back(t + g.between(2, 12));
  s.taps.assign(taps.begin(), taps.end());
  s.groups = s.ic = g.size(2, 100);
  s.oc = s.ic * g.oneOf({1, 1, 2});
  pad(g, s);
  if (g.chance(40))
    s.strides.assign(spatial, g.between(1, 2));
  if (g.chance(20))
    s.dilation.assign(spatial, 2);
  if (inDilation > 1)
    s.inDilation.assign(spatial, inDilation);
  if (dynamicWidth)
    s.dynamic = {spatial};
  if (!s.dilation.empty())
    for (int64_t &d : s.sizes)
      d += 9;
  return g.conv(s);
}

/// A depthwise convolution of bytes whose sums become bytes again, or what `end` says.
struct ByteWindows {
  int64_t channels = 0, multiplier = 1, mostTaps = 5;
  bool padded = false, empty = false;
  bool clamped = true, residual = false;
  StringRef filter;
  enum { Bytes, Sums, Wide } end = Bytes; ///< Wide: numbers of 64 bits
};

bool byteWindows(KernelGraph &g, ByteWindows s) {
  g.pickType({"i8", "u8"});
  ConvSpec c;
  c.images = g.between(1, 2);
  c.taps = {g.between(1, 3), g.between(std::max<int64_t>(1, s.mostTaps - 4), s.mostTaps)};
  c.dilation = {g.oneOf({1, 1, 2}), s.mostTaps > 9 ? 1 : g.oneOf({1, 1, 2, 3})};
  for (size_t i = 0; i < 2; ++i)
    c.sizes.push_back((c.taps[i] - 1) * c.dilation[i] + g.between(1, 13));
  if (s.empty)
    c.sizes[1] = (c.taps[1] - 1) * c.dilation[1];
  c.strides = {g.between(1, 2), g.oneOf({1, 1, 2, 3})};
  if (s.padded)
    c.padding = {{g.below(2), 1}, {g.below(3), g.below(3)}};
  c.groups = c.ic = s.channels ? s.channels : g.size(16, 150);
  c.oc = c.ic * s.multiplier;
  c.rightElem = g.typeOf(!s.filter.empty() ? s.filter : StringRef(g.chance(80) ? "i8" : "u8"));
  Type i32 = g.typeOf("i32"), f32 = g.typeOf("f32");
  c.result = i32;
  if (!g.conv(c))
    return false;
  const Location loc = g.b.getLoc();
  auto keep = [&](Value v) { return g.push(v, 1 << 24); };
  if (g.chance(60)) {
    g.type = i32;
    if (!g.bias(g.last()))
      return false;
  }
  auto splat = [&](int64_t v) { return hlo::makeSplat(g.b, loc, v, g.last().type()); };
  if (s.residual && !keep(hlo::AddOp::create(g.b, g.last().value, g.fed(g.last().shape(), {}, i32).value)))
    return false;
  if (s.end == ByteWindows::Sums)
    return true;
  g.noEpilogue();
  if (s.end == ByteWindows::Wide)
    return keep(hlo::ConvertOp::create(g.b, g.last().value, g.typeOf("f64")));
  if (g.chance(70)) {
    Value real = hlo::ConvertOp::create(g.b, g.last().value, f32);
    Tensor factors = Tensor::allocate(DType::Float32, {c.oc});
    for (int64_t i = 0; i < c.oc; ++i)
      factors.data<float>()[i] = 1.f / float(int64_t(1) << g.between(1, 8));
    Value each = hlo::BroadcastInDimOp::create(g.b, real.getType(), hlo::makeConstant(g.b, loc, factors),
                                               g.b.getDenseI64ArrayAttr({3}));
    real = hlo::MulOp::create(g.b, real, each);
    if (!keep(hlo::ConvertOp::create(g.b, hlo::RoundNearestEvenOp::create(g.b, real), i32)))
      return false;
  }
  if (g.chance(50) && !keep(hlo::AddOp::create(g.b, g.last().value, splat(g.between(-20, 20)))))
    return false;
  const bool isUnsigned = g.chance(30);
  const int64_t low = isUnsigned ? g.between(0, 9) : g.between(-128, -100), high = isUnsigned ? g.between(200, 255) : 127;
  for (bool upper : {g.chance(50), true})
    if (s.clamped && !keep(upper ? Value(hlo::MinOp::create(g.b, g.last().value, splat(high)))
                                 : Value(hlo::MaxOp::create(g.b, g.last().value, splat(low)))))
      return false;
  // whichever came first
  if (s.clamped && !keep(hlo::MaxOp::create(g.b, g.last().value, splat(low))))
    return false;
  return keep(hlo::ConvertOp::create(g.b, g.last().value, g.typeOf(isUnsigned ? "u8" : "i8")));
}

const StringRef poolTypes[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "u16"};

/// Channels that fill whole vectors.
int64_t wholeVectors(KernelGraph &g) { return g.lanesOf(g.type) * g.between(1, 3); }

} // namespace

void addWindowCases(std::vector<KernelCase> &cases) {
  using G = KernelGraph;
  const KernelCase all[] = {
      {"conv-direct", "", plain, [](G &g) { return conv(g, false); }},
      {"conv-slab", "", plain, [](G &g) { return conv(g, true); }},
      {"conv-bordered", "", plain,
       [](G &g) {
         return changed(g, {"f32", "f64"}, [&](ConvSpec &s) {
           s.sizes = {g.between(5, 9), g.between(20, 40)};
           s.taps = {3, 3};
           s.padding = {{1, 1}, {1, 1}};
           s.strides = {2, 2};
           s.ic = g.size(1, 20);
           s.oc = g.lanesOf(g.type) * 2;
         });
       }},
      {"conv-trimmed", "", plain,
       [](G &g) {
         return changed(g, {"f32", "f64"}, [&](ConvSpec &s) {
           const int64_t far = g.between(4, 7);
           s.sizes = {g.between(6, 9), g.between(9, 14)};
           s.taps = {3, 3};
           s.dilation = {far, far};
           s.padding = {{far, far}, {far, far}};
           s.ic = g.size(32, 48);
           s.oc = g.size(16, 64);
         });
       }},
      {"conv-product", "", plain,
       [](G &g) {
         return changed(g, {"f32", "f64", "f16", "bf16", "i32"}, [&](ConvSpec &s) {
           s.taps = {1, 1};
           s.strides = {g.between(1, 2), g.between(1, 2)};
         });
       }},
      {"conv-gathered", "", plain,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.sizes = {g.between(4, 9), g.between(5, 10)};
           s.taps = {g.between(2, 3), g.between(2, 3)};
           s.strides = {2, 1};
           pad(g, s);
           s.ic = g.size(1, 20);
           s.oc = g.size(64, 90);
         });
       }},
      {"conv-spread", "", plainReal,
       [](G &g) {
         g.pickType({"f32"});
         return g.conv(spreadWindow(g));
       }},

      {"winograd", "", plainReal, [](G &g) { return winograd(g, {"f32"}, false); }},
      {"winograd", "", exactKind | noVnni, [](G &g) { return integerWinograd(g); }},
      {"winograd", "exact results are asked for", plainExact,
       [](G &g) {
         return winograd(g, {"f32", "f16", "bf16"}, false);
       }},
      {"winograd", "not a window of known size and stride 1 without groups", plainReal,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.taps = {3, 3};
           s.right = Right::Constant;
           if (g.chance(50)) {
             s.strides = {2, 2};
           } else {
             s.groups = 2;
             s.ic = 2 * g.between(8, 20) + 2;
             s.oc = 2 * g.between(1, 40);
           }
         });
       }},
      {"winograd", "operands are not f32", plainReal, [](G &g) { return winograd(g, {"f64"}, false); }},
      {"winograd", "direct code is estimated to be as fast", plainReal,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.taps = {3, 3};
           s.ic = 1;
           s.oc = g.size(3, 40);
           s.right = Right::Constant;
         });
       }},
      {"winograd", "the filter would lose too much accuracy", plainReal,
       [](G &g) { return winograd(g, {"f32"}, true); }},
      {"winograd", "integers might not fit once they are transformed", exactKind | noVnni, [](G &g) { return integerWinograd(g, true); }},
      {"winograd", "the target has no vectors of f32", anyBatch, nullptr, "every processor has some"},
      {"winograd", "operands are not f32, or narrower floats summed up in f32", anyBatch, nullptr,
       "told as 'operands are not f32'"},
      {"winograd", "chosen", anyBatch, nullptr, "no refusal"},

      {"spread", "", plainReal,
       [](G &g) {
         g.pickType({"f32"});
         return g.conv(spreadWindow(g));
       }},
      {"spread", "exact results are asked for", plainExact,
       [](G &g) {
         g.pickType({"f32", "f64"});
         return g.conv(spreadWindow(g));
       }},
      {"spread", "operands are not f32, or rounded to bf16", plainReal,
       [](G &g) {
         g.pickType({"f64"});
         return g.conv(spreadWindow(g));
       }},
      {"spread", "it has groups", plainReal,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.groups = 2;
           s.ic = 2 * g.between(9, 20);
           s.oc = 2 * g.between(1, 30);
           s.right = Right::Constant;
         });
       }},
      {"spread", "it has strides, or a dilated input", plainReal,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = spreadWindow(g);
         if (g.chance(50))
           s.strides = {1, 2};
         else
           s.inDilation = {2, 1};
         return g.conv(s);
       }},
      {"spread", "rows of taps and channels are one, or more than four vectors", plainReal,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.taps = {g.between(1, 3), 5};
           s.padding = {{0, 0}, {2, 2}};
           s.oc = g.size(65, 90);
           s.right = Right::Constant;
         });
       }},
      {"spread", "channels fill vectors as well", plainReal,
       [](G &g) {
         return changed(g, {"f32"}, [&](ConvSpec &s) {
           s.taps = {g.between(1, 2), 2};
           s.oc = g.level.lanes;
           s.right = Right::Constant;
         });
       }},
      {"spread", "there is no row of taps and channels of known sizes", anyBatch, nullptr,
       "convolutions have a row, and constant filters channels"},
      {"spread", "the target has no vectors of f32", anyBatch, nullptr, "every processor has some"},

      {"narrow-groups", "", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         pad(g, s);
         if (g.chance(40))
           s.strides = {g.between(1, 2), g.between(1, 2)};
         if (g.chance(20)) {
           s.dilation = {2, 2};
           s.sizes[0] += 4;
           s.sizes[1] += 4;
         }
         return g.conv(s);
       }},
      {"narrow-groups", "it has no groups, or groups of the batch", plain,
       [](G &g) {
         return changed(g, {"f32", "f64"}, [&](ConvSpec &s) {
           if (g.chance(50)) {
             s.images = s.batchGroups = 2;
             s.oc = 2 * g.between(1, 30);
           }
         });
       }},
      {"narrow-groups", "operands are not f32, or rounded to bf16", plain,
       [](G &g) {
         g.pickType({"f64", "f64", "f16", "bf16", "i32"});
         return g.conv(narrowGroups(g));
       }},
      {"narrow-groups", "the filter's sizes are known at run time only, or 0", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         s.ic = 4 * s.groups;
         s.oc = 0;
         return g.conv(s);
       }},
      {"narrow-groups", "groups do not share vectors evenly", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         s.ic = 3 * s.groups;
         s.oc = g.between(1, 5) * s.groups;
         return g.conv(s);
       }},
      {"narrow-groups", "rows of taps are long", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         s.taps = {1, g.between(10, 12)};
         s.sizes[1] = g.between(12, 30);
         return g.conv(s);
       }},
      {"narrow-groups", "the width of images is known at run time only, or 0", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         s.dynamic = {2};
         return g.conv(s);
       }},
      {"narrow-groups", "the input is dilated", plain,
       [](G &g) {
         g.pickType({"f32"});
         ConvSpec s = narrowGroups(g);
         s.inDilation = {g.between(1, 2), 2};
         return g.conv(s);
       }},
      {"narrow-groups", "its filter is packed", anyBatch, nullptr, "asked before packing"},

      {"windows", "", anyBatch,
       [](G &g) {
         return depthwise(g, {"f32", "f64", "f16", "bf16", "i32", "i8", "u8"},
                          {g.between(1, 3), g.between(1, 5)});
       }},
      {"windows-together", "", anyBatch,
       [](G &g) {
         return depthwise(g, {"f32", "f64", "bf16"}, {g.between(3, 5), 3});
       }},
      {"windows-tiles", "", anyBatch,
       [](G &g) {
         return depthwise(g, {"f32", "f64", "f16", "i32"}, {g.between(2, 9)});
       }},
      {"windows-pixels", "", anyBatch,
       [](G &g) {
         return g.chance(50) ? depthwise(g, {"f32", "f64", "i32"}, {2, g.between(10, 12)})
                             : depthwise(g, {"f32", "f64", "f16"}, {g.between(1, 3), g.between(1, 3)},
                                         /*dynamicWidth=*/true);
       }},
      {"windows", "the input is dilated", anyBatch,
       [](G &g) {
         return depthwise(g, {"f32", "f64", "i32"}, {g.between(1, 3), 3}, false, 2);
       }},
      {"windows", "channels are complex numbers or bits", exactKind,
       [](G &g) {
         return depthwise(g, {"c64"}, {g.between(1, 3), 3});
       }},
      {"windows", "there are no images, or groups of them", anyBatch, nullptr,
       "fusion leaves such convolutions alone"},

      {"byte-windows", "", exactKind,
       [](G &g) {
         ByteWindows s;
         s.padded = g.chance(50);
         s.end = g.chance(70) ? ByteWindows::Bytes : ByteWindows::Sums;
         return byteWindows(g, s);
       }},
      {"byte-windows", "operands are not bytes with sums of 32 bits", anyBatch,
       [](G &g) { return depthwise(g, {"f32", "f64", "i32"}, {g.between(1, 3), g.between(1, 3)}); }},
      {"byte-windows", "the target has no instruction for pairs of products", exactKind,
       [](G &g) {
         ByteWindows s;
         s.filter = "i32";
         return byteWindows(g, s);
       }},
      {"byte-windows", "its result is not one of bytes or of 32 bits", exactKind,
       [](G &g) {
         ByteWindows s;
         s.end = ByteWindows::Wide;
         return byteWindows(g, s);
       }},
      {"byte-windows", "its result is not clamped to bytes", exactKind,
       [](G &g) {
         ByteWindows s;
         s.clamped = false;
         return byteWindows(g, s);
       }},
      {"byte-windows", "the epilogue reads more than numbers for each channel", exactKind,
       [](G &g) {
         ByteWindows s;
         s.residual = true;
         return byteWindows(g, s);
       }},
      {"byte-windows", "rows of pixels or the filter are of unknown size", anyBatch, nullptr,
       "limits of results of unknown size are broadcasts, which do not count as clamping"},
      {"byte-windows", "a channel has several results", exactKind,
       [](G &g) {
         ByteWindows s;
         s.multiplier = 2;
         return byteWindows(g, s);
       }},
      {"byte-windows", "there are fewer channels than a vector has", exactKind,
       [](G &g) {
         ByteWindows s;
         s.channels = g.between(2, 15);
         return byteWindows(g, s);
       }},
      {"byte-windows", "there is nothing to sum up", exactKind,
       [](G &g) {
         ByteWindows s;
         s.empty = true;
         return byteWindows(g, s);
       }},
      {"byte-windows", "a window has more taps in a row than are unrolled", exactKind,
       [](G &g) {
         ByteWindows s;
         s.mostTaps = 22;
         return byteWindows(g, s);
       }},
      {"byte-windows", "the epilogue has more than functions of single elements", anyBatch, nullptr,
       "fusion takes nothing else into it"},
      {"byte-windows", "the epilogue has functions that vectors do not", anyBatch, nullptr,
       "those are of complex numbers"},

      {"pool-blocks", "", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({g.between(1, 2), g.between(3, 9), g.between(3, 9), wholeVectors(g)},
                       {g.between(1, 3), g.between(1, 3)}, {1, 1}, g.chance(60));
       }},
      {"pool-blocks", "there are not two dimensions of pixels", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.chance(50) ? g.pool({g.between(1, 2), g.between(4, 20), g.size()}, {g.between(2, 4)},
                                      {g.between(1, 2)}, g.chance(60))
                             : g.pool({1, g.between(3, 5), g.between(3, 5), g.between(3, 5), g.size(1, 64)},
                                      {2, g.between(1, 2), 2}, {1, g.between(1, 2), 1}, g.chance(60));
       }},
      {"pool-blocks", "channels fill no vector", anyValues,
       [](G &g) {
         g.pickType({"f32", "i8", "u8", "i16", "i32", "bf16"});
         return g.pool(
             {g.between(1, 2), g.between(3, 19), g.between(3, 19), g.between(1, g.lanesOf(g.type) - 1)},
             {g.between(2, 3), g.between(2, 3)}, {g.between(1, 2), g.between(1, 2)}, g.chance(60));
       }},
      {"pool-blocks", "channels behind whole vectors fill none", anyValues,
       [](G &g) {
         g.pickType({"f32", "i32", "i8", "f16"});
         return g.pool({g.between(1, 2), g.between(3, 9), g.between(3, 9), wholeVectors(g) + g.between(1, 3)},
                       {g.between(2, 3), 3}, {g.between(1, 2), 1}, g.chance(60));
       }},
      {"pool-blocks", "images are of no known size", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({1, g.between(3, 9), g.between(3, 9), wholeVectors(g)}, {2, g.between(2, 3)},
                       {1, g.between(1, 2)}, false, {1});
       }},
      {"pool-blocks", "few channels are strided over", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({g.between(1, 2), g.between(4, 19), g.between(4, 19), wholeVectors(g)},
                       {g.between(2, 3), g.between(2, 3)}, {2, 2}, g.chance(60));
       }},
      {"pool-blocks", "windows are large", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({1, g.between(10, 12), g.between(10, 12), wholeVectors(g)}, {9, g.between(9, 10)},
                       {1, 1}, g.chance(60));
       }},
      {"pool-tiles", "", anyValues,
       [](G &g) {
         g.pickType({"f32", "f64", "i32", "i8", "u8", "f16"});
         return g.pool({g.between(1, 2), g.between(3, 12), g.between(4, 20), g.between(1, 7)},
                       {g.between(2, 3), g.between(1, 3)}, {1, g.between(1, 2)}, g.chance(60));
       }},
      {"pool-tiles", "there are not two dimensions of pixels, or channels are known at run time only",
       anyBatch,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({g.between(1, 2), g.between(4, 20), g.size()}, {g.between(2, 4)}, {1}, g.chance(60));
       }},
      {"pool-tiles", "rows of pixels are of no known length", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({1, g.between(3, 9), g.between(3, 9), g.size(1, 70)}, {2, g.between(2, 3)}, {1, 1},
                       false, {2});
       }},
      {"pool-tiles", "windows share few rows", anyValues,
       [](G &g) {
         g.pickType({"f32", "i32", "i8"});
         return g.pool({1, g.between(4, 19), g.between(4, 19), g.between(1, 3)}, {2, 2}, {2, 2},
                       g.chance(60));
       }},
      {"pool-tiles", "pixels fall into few sets of the caches", anyValues,
       [](G &g) {
         g.pickType({"f32"});
         return g.pool({1, g.between(10, 11), 10, 1024}, {9, 9}, {1, 1}, false);
       }},
      {"pool-tiles", "registers do not hold the columns of windows", anyValues,
       [](G &g) {
         g.pickType({"f32", "i32", "f64"});
         return g.pool({1, g.between(4, 6), g.between(40, 50), g.between(1, 3)}, {2, g.between(33, 36)},
                       {1, 1}, g.chance(60));
       }},
      {"pool-pixels", "", anyValues,
       [](G &g) {
         g.pickType(poolTypes);
         return g.pool({g.between(1, 2), g.between(4, 20), g.size()}, {g.between(2, 4)}, {g.between(1, 3)},
                       g.chance(60));
       }},
  };
  cases.insert(cases.end(), std::begin(all), std::end(all));
}

} // namespace lathe::fuzz
