// Cases of loops, reductions and rows.
#include "KernelGraph.h"

#include "dialects/hlo/Constants.h"

using namespace mlir;

namespace lathe::fuzz {
namespace {

const StringRef numbers[] = {"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u32"};
const StringRef floats[] = {"f32", "f32", "f64", "f16", "bf16"};

/// Rows of a few elements, enough of them for vectors of any type.
SmallVector<int64_t> shortRows(KernelGraph &g) {
  return g.chance(50) ? SmallVector<int64_t>{2 * g.size(64, 130), g.between(2, 7)}
                      : SmallVector<int64_t>{g.between(2, 3), g.size(64, 130), g.between(2, 7)};
}

bool rank(KernelGraph &g, Known x) {
  g.cell[1] = std::to_string(x.rank());
  return true;
}

/// Elements and a number for each column.
bool shortLoop(KernelGraph &g, ArrayRef<StringRef> types) {
  g.pickType(types);
  Known x = g.fed(shortRows(g));
  return rank(g, x) && g.bias(x);
}

bool anyRows(KernelGraph &g, ArrayRef<int64_t> shape, int64_t trailing, ArrayRef<int64_t> dynamic = {}) {
  Known x = g.fed(shape, dynamic);
  double n = 1;
  for (int64_t d : ArrayRef(shape).take_back(trailing))
    n *= double(d);
  const bool most = g.kind == Kind::Real || g.chance(50) || !g.fits(g.type, x.bound * (n + 1));
  return rank(g, x) && g.rows(x, trailing, most);
}

bool transpose(KernelGraph &g, Known x, ArrayRef<int64_t> order) {
  return rank(g, x) && g.keep(hlo::TransposeOp::create(g.b, x.value, order), x.bound);
}

bool reduction(KernelGraph &g, bool last) {
  g.pickType({"f32", "f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u32", "i1"});
  const int64_t n = g.between(1, 4);
  SmallVector<int64_t> shape, dims;
  for (int64_t i = 0; i < n; ++i)
    shape.push_back(g.between(1, 5));
  const int64_t at = last ? n - 1 : g.below(n - 1);
  if (!last && n == 1)
    shape.push_back(1);
  shape.back() = g.size();
  shape[at] = std::min(last ? shape[at] : g.size(1, 130), std::max<int64_t>(1, g.longest()));
  for (int64_t i = 0; i < int64_t(shape.size()); ++i)
    if (i == at || (i + 1 < int64_t(shape.size()) && g.chance(30)))
      dims.push_back(i);
  Known x = g.fed(shape, g.chance(15) ? ArrayRef<int64_t>{at} : ArrayRef<int64_t>());
  double terms = 1;
  for (int64_t d : dims)
    terms *= double(shape[d]);
  return rank(g, x) && g.reduce(x, dims, g.chance(40) || !g.fits(g.type, x.bound * terms));
}

/// A look-up by bytes in a table of bytes.
bool table(KernelGraph &g, int64_t entries, int64_t run) {
  g.pickType({"i8", "u8"});
  Known x = g.right(Right::Either, {entries * run}), i = g.fed({g.between(1, 3), g.size(), g.size(1, 70)}, {}, g.typeOf("u8"));
  rank(g, i);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(g.b.getContext(), {}, {0}, {}, {}, {0}, 3);
  if (run == 1)
    return g.push(hlo::GatherOp::create(g.b, x.value, i.value, numbers, g.b.getDenseI64ArrayAttr({1})), x.bound);
  numbers = hlo::GatherDimensionNumbersAttr::get(g.b.getContext(), {3}, {}, {}, {}, {0}, 3);
  return g.push(hlo::GatherOp::create(g.b, x.value, i.value, numbers, g.b.getDenseI64ArrayAttr({run})), x.bound);
}

bool loop(KernelGraph &g, ArrayRef<int64_t> shape, bool spread) {
  Known x = g.fed(shape, g.chance(15) && !shape.empty() ? ArrayRef<int64_t>{0} : ArrayRef<int64_t>());
  rank(g, x);
  if (spread)
    return g.bias(x);
  return g.keep(hlo::AddOp::create(g.b, x.value, x.value), 2 * x.bound);
}

} // namespace

void addRowCases(std::vector<KernelCase> &cases) {
  using G = KernelGraph;
  const KernelCase all[] = {
      {"short-rows", "", anyValues, [](G &g) { return shortLoop(g, numbers); }},
      {"short-rows", "", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, shortRows(g), 1);
       }},
      {"short-rows", "there are no rows", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, {g.size()}, 1);
       }},
      {"short-rows", "rows are long", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, {g.between(1, 40), g.size(17, 200)}, 1);
       }},
      {"short-rows", "complex numbers have no lanes here", exactKind,
       [](G &g) { return shortLoop(g, {"c64"}); }},
      {"short-rows", "operands of less than a byte", exactKind,
       [](G &g) {
         g.pickType({"f32", "i8", "i32"});
         SmallVector<int64_t> shape = shortRows(g);
         Known x = g.fed(shape), mask = g.fed(shape, {}, g.typeOf("i1"));
         rank(g, x);
         Known row = g.fed({shape.back()});
         Value spread = hlo::BroadcastInDimOp::create(g.b, x.type(), row.value,
                                                      g.b.getDenseI64ArrayAttr({x.rank() - 1}));
         return g.keep(hlo::SelectOp::create(g.b, mask.value, x.value, spread), std::max(x.bound, row.bound));
       }},
      {"short-rows", "results of other rows, or of less than a byte", exactKind,
       [](G &g) {
         g.pickType({"f32", "i8", "i32", "f64"});
         Known x = g.fed(shortRows(g));
         rank(g, x);
         Known row = g.fed({x.shape().back()});
         Value spread = hlo::BroadcastInDimOp::create(g.b, x.type(), row.value,
                                                      g.b.getDenseI64ArrayAttr({x.rank() - 1}));
         return g.keep(hlo::CompareOp::create(g.b, x.value, spread, hlo::ComparisonDirection::LT), 1);
       }},
      {"short-rows", "a reduction is not along the rows", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, {g.size(2, 40), g.between(2, 5), g.between(2, 5)}, 2);
       }},
      {"short-rows", "an operation is none of elements, reductions or broadcasts", anyBatch,
       [](G &g) {
         g.pickType(numbers);
         Known x = g.fed(shortRows(g));
         rank(g, x);
         return g.keep(hlo::ReverseOp::create(g.b, x.value, ArrayRef<int64_t>{g.below(x.rank())}), x.bound) &&
                g.bias(g.last());
       }},
      {"short-rows", "vectors are short, or rows few", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, {g.between(1, 3), g.between(2, 7)}, 1);
       }},

      {"interleave", "", anyValues,
       [](G &g) {
         g.pickType(numbers);
         const int64_t run = g.oneOf({1, 1, 2, 3}), few = g.oneOf({2, 3, 4}), many = g.size(16, 257);
         if (run == 1)
           return g.chance(50) ? transpose(g, g.fed({many, few}), {1, 0})
                               : transpose(g, g.fed({few, many}), {1, 0});
         return g.chance(50) ? transpose(g, g.fed({many, few, run}), {1, 0, 2})
                             : transpose(g, g.fed({2, few, many, run}), {0, 2, 1, 3});
       }},
      {"interleave", "there is more than a transpose between elements", anyValues,
       [](G &g) {
         g.pickType(numbers);
         Known x = g.fed({g.size(), g.size()});
         rank(g, x);
         return g.keep(hlo::ReverseOp::create(g.b, x.value, ArrayRef<int64_t>{0, 1}), x.bound);
       }},
      {"interleave", "it reads more than one operand", anyValues,
       [](G &g) {
         g.pickType(numbers);
         SmallVector<int64_t> shape = {g.size(16, 257), g.oneOf({2, 3, 4})};
         Known x = g.fed(shape), y = g.fed(shape);
         return g.keep(hlo::AddOp::create(g.b, x.value, y.value), x.bound + y.bound) &&
                transpose(g, g.last(), {1, 0});
       }},
      {"interleave", "sizes are known at run time, or 0", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return transpose(g, g.fed({g.size(), g.oneOf({2, 3, 4})}, {0}), {1, 0});
       }},
      {"interleave", "it moves no elements past others", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return transpose(g, g.fed({g.size(), 1}), {1, 0});
       }},
      {"interleave", "runs are long, or far apart", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return transpose(g, g.fed({g.between(2, 5), g.between(2, 5), g.size(64, 130)}), {1, 0, 2});
       }},
      {"interleave", "vectors are short", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return transpose(g, g.fed({g.oneOf({2, 3}), g.oneOf({2, 3})}), {1, 0});
       }},
      {"interleave", "elements are complex numbers, or less than a byte", exactKind,
       [](G &g) {
         g.pickType({"c64", "i1"});
         return transpose(g, g.fed({g.size(16, 257), g.oneOf({2, 3, 4})}), {1, 0});
       }},

      {"turned-squares", "", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return g.chance(50)
                    ? transpose(g, g.fed({g.size(1, 130), g.size(33, 130)}), {1, 0})
                    : transpose(g, g.fed({g.between(2, 5), g.size(33, 70), g.size(33, 70)}), {0, 2, 1});
       }},
      {"turned-squares", "other operations than those of elements follow, or transposes differ", anyValues,
       [](G &g) {
         g.pickType(numbers);
         const int64_t n = g.size(33, 40), k = g.size(33, 40);
         Known x = g.fed({n, k});
         return transpose(g, x, {1, 0}) &&
                g.keep(hlo::ReverseOp::create(g.b, g.last().value, ArrayRef<int64_t>{g.below(2)}), x.bound);
       }},
      {"turned-squares", "complex numbers are not turned in registers", exactKind,
       [](G &g) {
         g.pickType({"c64"});
         return transpose(g, g.fed({g.size(1, 60), g.size(33, 60)}), {1, 0});
       }},

      {"rows", "", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return g.chance(50) ? anyRows(g, {g.between(1, 3), g.size(17, 257)}, 1)
                             : anyRows(g, {g.between(2, 5), g.between(2, 5), g.size()}, 2);
       }},
      {"rows-together", "", anyBatch,
       [](G &g) {
         g.pickType(floats);
         return anyRows(g, {g.size(4, 40), g.size(17, 257)}, 1,
                        g.chance(20) ? ArrayRef<int64_t>{g.below(2)} : ArrayRef<int64_t>());
       }},
      {"reduce-rows", "", anyBatch, [](G &g) { return reduction(g, true); }},
      {"reduce-strips", "", anyBatch, [](G &g) { return reduction(g, false); }},
      {"byte-table", "", exactKind | amx, [](G &g) { return table(g, 256, 1); }},
      {"byte-table", "it is no table of bytes by bytes", exactKind,
       [](G &g) { return table(g, g.between(100, 255), 1); }},
      {"byte-table", "it is no look-up of single elements", exactKind, [](G &g) { return table(g, 128, 2); }},
      {"byte-table", "the target looks up no bytes in vectors", exactKind | noAmx,
       [](G &g) { return table(g, 256, 1); }},
      {"loop-flat", "", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return loop(g, {g.size(), g.size()}, false);
       }},
      {"loop-rows", "", anyValues,
       [](G &g) {
         g.pickType(numbers);
         return loop(g, {g.size(), g.size()}, true);
       }},
      {"loop-turned", "", plain | exactKind,
       [](G &g) {
         g.pickType({"f32", "f64", "i8", "i32", "i64", "c64", "i1"});
         return transpose(g, g.fed({g.size(), g.size()}), {1, 0});
       }},
  };
  cases.insert(cases.end(), std::begin(all), std::end(all));
}

} // namespace lathe::fuzz
