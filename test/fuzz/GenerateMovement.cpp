// Ops that move elements: views, slices, pads, updates, gathers.
#include "GraphBuilder.h"

#include "dialects/hlo/Constants.h"

#include <algorithm>

using namespace mlir;

namespace lathe::fuzz {

static bool reshape(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> shape(x.shape());
  if (!shape.empty() && g.chance(50)) { // join two
    int64_t i = g.below(x.rank() - 1);
    if (i + 1 < static_cast<int64_t>(shape.size())) {
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + i + 1);
    }
  }
  if (shape.size() < 5 && g.chance(60)) { // split one, or insert a 1
    int64_t i = g.below(shape.size());
    int64_t f = 1;
    for (int64_t d : {7, 5, 4, 3, 2})
      if (!shape.empty() && shape[i] > 0 && shape[i] % d == 0 && g.chance(50))
        f = d;
    if (!shape.empty())
      shape[i] /= f;
    shape.insert(shape.begin() + i, f);
  }
  return g.push(hlo::ReshapeOp::create(g.b, x.value, ArrayRef<int64_t>(shape)), x.bound);
}

static bool transpose(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> p;
  for (int64_t i = 0; i < x.rank(); ++i)
    p.push_back(i);
  std::shuffle(p.begin(), p.end(), g.random);
  return x.rank() > 1 && g.push(hlo::TransposeOp::create(g.b, x.value, p), x.bound);
}

static bool slice(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> starts, limits, strides;
  for (int64_t d : x.shape()) {
    int64_t start = g.chance(50) ? 0 : g.below(d + 1), limit = g.chance(50) ? d : g.between(start, d);
    starts.push_back(start);
    limits.push_back(limit);
    strides.push_back(g.chance(70) ? 1 : g.between(1, 4));
  }
  return x.rank() > 0 && g.push(hlo::SliceOp::create(g.b, x.value, ArrayRef<int64_t>(starts), ArrayRef<int64_t>(limits), ArrayRef<int64_t>(strides)), x.bound);
}

static bool pad(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> low, high, interior;
  for (int64_t d : x.shape()) {
    int64_t in = g.chance(80) ? 0 : g.between(1, 2);
    int64_t size = d + std::max<int64_t>(d - 1, 0) * in;
    int64_t lo = g.chance(40) ? 0 : g.between(-2, 3), hi = g.chance(40) ? 0 : g.between(-2, 3);
    if (size + lo < 0)
      lo = 0;
    if (size + lo + hi < 0)
      hi = 0;
    low.push_back(lo);
    high.push_back(hi);
    interior.push_back(in);
  }
  Known value = g.chance(70) ? g.constant(g.tensor({}, x.element())) : g.match(g.tensor({}, x.element()));
  return x.rank() > 0 && g.push(hlo::PadOp::create(g.b, x.value, value.value, low, high, interior), std::max(x.bound, value.bound));
}

static bool broadcast(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> shape, dims;
  for (int64_t d : x.shape()) {
    if (shape.size() < 4 && g.chance(30))
      shape.push_back(g.randomDim());
    dims.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(d == 1 && g.chance(50) ? g.randomDim() : d);
  }
  if (shape.size() < 4 && g.chance(40))
    shape.push_back(g.randomDim());
  RankedTensorType type = g.tensor(shape, x.element());
  if (type.getNumElements() > 20000)
    return false;
  return g.push(hlo::BroadcastInDimOp::create(g.b, type, x.value, g.b.getDenseI64ArrayAttr(dims)), x.bound);
}

static bool concatenate(GraphBuilder &g, const Known &x) {
  if (x.rank() == 0)
    return false;
  int64_t dim = g.below(x.rank()), n = g.between(1, 4);
  SmallVector<Value> parts = {x.value};
  double bound = x.bound;
  for (int64_t i = 1; i < n; ++i) {
    SmallVector<int64_t> shape(x.shape());
    if (g.chance(50))
      shape[dim] = g.randomDim() % 20;
    Known y = g.match(g.tensor(shape, x.element()));
    parts.insert(parts.begin() + g.below(parts.size() + 1), y.value);
    bound = std::max(bound, y.bound);
  }
  return g.push(hlo::ConcatenateOp::create(g.b, parts, dim), bound);
}

static bool reverse(GraphBuilder &g, const Known &x) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (g.chance(60))
      dims.push_back(i);
  return !dims.empty() && g.push(hlo::ReverseOp::create(g.b, x.value, dims), x.bound);
}

static bool iota(GraphBuilder &g) {
  SmallVector<int64_t> shape = g.randomShape(3);
  Type t = g.randomElement();
  if (shape.empty() || g.isBool(t))
    return false;
  int64_t dim = g.below(shape.size());
  if (g.isFloat(t) && shape[dim] > g.exactLimit(t))
    return false;
  return g.push(hlo::IotaOp::create(g.b, g.tensor(shape, t), g.b.getI64IntegerAttr(dim)), double(shape[dim]));
}

bool addMovement(GraphBuilder &g) {
  if (g.chance(5))
    return iota(g);
  Known x = g.pick();
  switch (g.below(8)) {
  case 0: return transpose(g, x);
  case 1: return slice(g, x);
  case 2: return pad(g, x);
  case 3: return broadcast(g, x);
  case 4: return concatenate(g, x);
  case 5: return reverse(g, x);
  case 6: return transpose(g, x);
  default: return reshape(g, x);
  }
}

bool addUpdate(GraphBuilder &g) {
  auto x = g.pickIf([](const Known &k) { return k.rank() > 0; });
  if (!x)
    return false;
  SmallVector<int64_t> sizes;
  SmallVector<Value> starts;
  for (int64_t d : x->shape()) {
    sizes.push_back(g.chance(40) ? d : g.below(d + 1));
    Known at = g.indices({}, d - sizes.back() + 1);
    // all starts have one type
    starts.push_back(at.element().isInteger(64) ? at.value : hlo::ConvertOp::create(g.b, at.value, g.b.getI64Type()).getResult());
  }
  if (g.chance(50))
    return g.push(hlo::DynamicSliceOp::create(g.b, x->value, starts, ArrayRef<int64_t>(sizes)), x->bound);
  Known update = g.match(g.tensor(sizes, x->element()));
  return g.push(hlo::DynamicUpdateSliceOp::create(g.b, x->value, update.value, starts), std::max(x->bound, update.bound));
}

static bool gather(GraphBuilder &g, const Known &x) {
  // rows along one axis: [.., d, ..] and indices [s...] to [s..., the other dimensions]
  int64_t axis = g.below(x.rank());
  SmallVector<int64_t> indexShape = g.randomShape(2), sizes(x.shape());
  if (x.shape()[axis] == 0)
    return false;
  sizes[axis] = 1;
  int64_t elements = 1;
  for (int64_t d : indexShape)
    elements *= d;
  for (int64_t d : sizes)
    elements *= d;
  if (elements > 20000)
    return false;
  Known at = g.indices(indexShape, x.shape()[axis]);
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i + 1 < x.rank(); ++i)
    offsets.push_back(static_cast<int64_t>(indexShape.size()) + i);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(g.b.getContext(), offsets, {axis}, {}, {}, {axis},
                                                      static_cast<int64_t>(indexShape.size()));
  return g.push(hlo::GatherOp::create(g.b, x.value, at.value, numbers, g.b.getDenseI64ArrayAttr(sizes)), x.bound);
}

// Adds rows along one axis (sums of integers are exact in any order).
static bool scatter(GraphBuilder &g, const Known &x) {
  int64_t axis = g.below(x.rank()), n = g.between(0, 9);
  if (g.kind != Kind::Exact || x.shape()[axis] == 0)
    return false;
  SmallVector<int64_t> shape(x.shape()), window, others;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin(), n);
  for (int64_t i = 1; i < x.rank(); ++i)
    window.push_back(i);
  Known at = g.indices({n}, x.shape()[axis]);
  Known update = g.match(g.tensor(shape, x.element()));
  double bound = x.bound + double(n) * update.bound;
  if (!g.fits(x.element(), bound))
    return false;
  auto numbers = hlo::ScatterDimensionNumbersAttr::get(g.b.getContext(), window, {axis}, {}, {}, {axis}, 1);
  bool most = g.chance(40);
  auto op = hlo::ScatterOp::create(g.b, x.value, at.value, update.value, numbers, false, false,
                                   [&](OpBuilder &b, Location l, ValueRange a) -> SmallVector<Value> {
                                     if (g.isBool(x.element()))
                                       return {hlo::OrOp::create(b, l, a[0], a[1])};
                                     if (most)
                                       return {hlo::MaxOp::create(b, l, a[0], a[1])};
                                     return {hlo::AddOp::create(b, l, a[0], a[1])};
                                   });
  return g.push(op.getResult(0), bound);
}

bool addIndexed(GraphBuilder &g) {
  auto x = g.pickIf([](const Known &k) { return k.rank() > 0; });
  if (!x)
    return false;
  return g.chance(60) ? gather(g, *x) : scatter(g, *x);
}

} // namespace lathe::fuzz
