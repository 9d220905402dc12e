// Shape arithmetic of the graph (Shape, StridedSlice, Pack, Mul ...) done on expressions instead of tensors. What it
// handles leaves no hlo behind; a tensor is made only where something else reads the value.
#include "dialects/hlo/Shape.h"
#include "ops/Flags.h"
#include "passes/legalize/NodeContext.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// Above this the tensor form is the better one.
constexpr int64_t kMaxTracked = 256;

struct Ints {
  Dims exprs;
  SmallVector<int64_t, 2> shape;
};

class Tracker {
public:
  Tracker(LegalizeContext &ctx, graph::NodeOp node) : ctx(ctx), node(node) {}

  bool run();

private:
  bool isIndexType(unsigned result) {
    element = cast<TensorType>(node.getOutputs()[result].getType()).getElementType();
    return element.isSignlessInteger(32) || element.isSignlessInteger(64);
  }
  std::optional<Ints> ints(unsigned i) {
    if (i >= node.getInputs().size())
      return std::nullopt;
    GraphValue v = ctx.lookup(node.getInputs()[i]);
    if (!v.isTensor() || !v.sizes)
      return std::nullopt;
    return Ints{ctx.resolve(*v.sizes), v.sizesShape};
  }
  std::optional<SmallVector<int64_t>> constants(unsigned i) {
    auto v = ints(i);
    if (!v)
      return std::nullopt;
    SmallVector<int64_t> result;
    for (AffineExpr e : v->exprs) {
      auto c = constantOf(e);
      if (!c)
        return std::nullopt;
      result.push_back(*c);
    }
    return result;
  }
  int64_t attrInt(StringRef name, int64_t otherwise = 0) {
    auto a = node.getNodeAttr<IntegerAttr>(name);
    return a ? a.getInt() : otherwise;
  }
  bool attrBool(StringRef name) {
    auto a = node.getNodeAttr<BoolAttr>(name);
    return a && a.getValue();
  }
  bool set(unsigned i, Dims exprs, ArrayRef<int64_t> shape) {
    if (int64_t(exprs.size()) > kMaxTracked)
      return false;
    // Constant arithmetic wraps as the tensors would.
    if (element.isInteger(32))
      for (AffineExpr &e : exprs)
        if (auto c = constantOf(e))
          e = ctx.constant(int32_t(*c));
    ctx.assign(node.getOutputs()[i], GraphValue::ofSizes(std::move(exprs), shape, element));
    return true;
  }
  std::optional<Dims> dimsOf(unsigned i);

  bool shape();
  bool constant();
  bool stridedSlice();
  bool binary(llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> fn);
  bool reduce(llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> fn, int64_t start);
  bool gather();
  bool concat();
  bool sliceOf(unsigned i, int64_t n, int64_t begin, int64_t end, int64_t stride, SmallVectorImpl<int64_t> &at, bool &shrinks);
  bool pack();
  bool stitch();
  bool slice();
  bool invertPermutation();
  bool identity();
  bool unpack();
  bool ones();
  bool negate();
  bool reshape();
  bool expandDims();
  bool squeeze();
  bool fill();
  bool range();
  std::optional<bool> arithmetic();
  AffineExpr product(AffineExpr a, AffineExpr b);
  AffineExpr quotient(AffineExpr a, AffineExpr b);
  AffineExpr remainder(AffineExpr a, AffineExpr b);
  AffineExpr extreme(AffineExpr a, AffineExpr b, bool wantMax);

  LegalizeContext &ctx;
  graph::NodeOp node;
  Type element;
};

std::optional<Dims> Tracker::dimsOf(unsigned i) {
  GraphValue v = ctx.lookup(node.getInputs()[i]);
  if (v.kind == GraphValue::Kind::Reference) {
    auto current = ctx.readVariable(v.name, node.getLoc());
    if (failed(current))
      return std::nullopt;
    v = *current;
  }
  if (!v.isTensor())
    return std::nullopt;
  Dims dims;
  if (!v.tensor) {
    for (int64_t d : v.sizesShape)
      dims.push_back(ctx.constant(d));
    return dims;
  }
  for (AffineExpr e : hlo::getDims(cast<RankedTensorType>(v.tensor.getType())))
    dims.push_back(ctx.resolve(e));
  return dims;
}

bool Tracker::shape() {
  StringRef op = node.getOp();
  for (unsigned i = 0; i < node.getOutputs().size(); ++i) {
    if (i >= node.getInputs().size() || !isIndexType(i))
      return false;
    auto dims = dimsOf(i);
    if (!dims)
      return false;
    if (op == "Size") {
      if (!set(i, {productOf(*dims, ctx.getContext())}, {}))
        return false;
    } else if (op == "Rank") {
      if (!set(i, {ctx.constant(dims->size())}, {}))
        return false;
    } else if (!set(i, *dims, {int64_t(dims->size())})) {
      return false;
    }
  }
  return true;
}

bool Tracker::constant() {
  auto value = node.getNodeAttr<DenseElementsAttr>("value");
  if (!value || !isIndexType(0) || value.getElementType() != element || value.getNumElements() > kMaxTracked)
    return false;
  Dims exprs;
  for (const APInt &v : value.getValues<APInt>())
    exprs.push_back(ctx.constant(v.getSExtValue()));
  return set(0, exprs, value.getType().getShape());
}

/// What StridedSlice takes of one dimension of `n` elements: the positions, and whether the dimension goes.
bool Tracker::sliceOf(unsigned i, int64_t n, int64_t begin, int64_t end, int64_t stride, SmallVectorImpl<int64_t> &at, bool &shrinks) {
  auto has = [&](StringRef mask) { return (attrInt(mask) >> i) & 1; };
  shrinks = has("shrink_axis_mask");
  if (stride == 0)
    return false;
  if (shrinks) {
    at.push_back(begin < 0 ? begin + n : begin);
    return at[0] >= 0 && at[0] < n;
  }
  auto clamp = [&](int64_t x) {
    if (x < 0)
      x += n;
    return stride > 0 ? std::clamp<int64_t>(x, 0, n) : std::clamp<int64_t>(x, -1, n - 1);
  };
  int64_t from = has("begin_mask") ? (stride > 0 ? 0 : n - 1) : clamp(begin);
  int64_t to = has("end_mask") ? (stride > 0 ? n : -1) : clamp(end);
  // a stride beyond the size takes one element, so that the position cannot overflow
  stride = std::clamp<int64_t>(stride, -n - 1, n + 1);
  for (int64_t k = from; stride > 0 ? k < to : k > to; k += stride)
    at.push_back(k);
  return true;
}

bool Tracker::stridedSlice() {
  auto v = ints(0);
  auto begin = constants(1), end = constants(2), strides = constants(3);
  if (!v || !begin || !end || !strides || begin->size() != end->size() || begin->size() != strides->size() ||
      begin->size() > v->shape.size() || attrInt("ellipsis_mask") || attrInt("new_axis_mask"))
    return false;
  // row-major places of what is taken, a dimension at a time
  SmallVector<int64_t> places{0}, shape;
  for (auto [i, n] : llvm::enumerate(v->shape)) {
    SmallVector<int64_t> at;
    bool shrinks = false;
    if (i >= begin->size())
      llvm::append_range(at, llvm::seq<int64_t>(0, n));
    else if (!sliceOf(i, n, (*begin)[i], (*end)[i], (*strides)[i], at, shrinks))
      return false;
    if (!shrinks)
      shape.push_back(at.size());
    SmallVector<int64_t> inner;
    for (int64_t place : places)
      for (int64_t k : at)
        inner.push_back(place * n + k);
    places = std::move(inner);
  }
  return set(0, llvm::map_to_vector(places, [&](int64_t place) { return v->exprs[place]; }), shape);
}

bool Tracker::binary(llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> fn) {
  auto a = ints(0), b = ints(1);
  if (!a || !b)
    return false;
  if (a->shape != b->shape && a->exprs.size() != 1 && b->exprs.size() != 1)
    return false;
  if (a->shape != b->shape && a->shape.size() == b->shape.size() && !a->shape.empty() && a->shape.size() > 1)
    return false;
  bool useA = a->exprs.size() > b->exprs.size() ||
              (a->exprs.size() == b->exprs.size() && a->shape.size() >= b->shape.size());
  if (a->shape != b->shape && (useA ? a->shape.size() < b->shape.size() : b->shape.size() < a->shape.size()))
    return false;
  ArrayRef<int64_t> shape = useA ? a->shape : b->shape;
  size_t n = useA ? a->exprs.size() : b->exprs.size();
  if (a->exprs.empty() || b->exprs.empty())
    n = 0;
  Dims result;
  for (size_t i = 0; i < n; ++i) {
    AffineExpr e = fn(a->exprs[a->exprs.size() == 1 ? 0 : i], b->exprs[b->exprs.size() == 1 ? 0 : i]);
    if (!e)
      return false;
    result.push_back(e);
  }
  if (result.size() != size_t(ShapedType::getNumElements(shape)))
    return false;
  return set(0, result, shape);
}

bool Tracker::reduce(llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> fn, int64_t start) {
  auto v = ints(0);
  auto axes = constants(1);
  if (!v || !axes || v->shape.size() != 1 || axes->size() != 1 || ((*axes)[0] != 0 && (*axes)[0] != -1))
    return false;
  AffineExpr result = ctx.constant(start);
  for (auto [i, e] : llvm::enumerate(v->exprs)) {
    result = i == 0 && start != 1 ? e : fn(result, e);
    if (!result)
      return false;
  }
  return attrBool("keep_dims") ? set(0, {result}, {1}) : set(0, {result}, {});
}

bool Tracker::gather() {
  auto v = ints(0);
  auto indices = ints(1);
  auto chosen = constants(1);
  if (!v || !chosen || v->shape.size() != 1 || indices->shape.size() > 1 || attrInt("batch_dims"))
    return false;
  if (node.getInputs().size() > 2) {
    auto axis = constants(2);
    if (!axis || axis->size() != 1 || ((*axis)[0] != 0 && (*axis)[0] != -1))
      return false;
  }
  Dims result;
  for (int64_t i : *chosen) {
    if (i < 0 || i >= v->shape[0])
      return false;
    result.push_back(v->exprs[i]);
  }
  return set(0, result, indices->shape);
}

bool Tracker::concat() {
  unsigned n = node.getInputs().size();
  bool first = node.getOp() == "Concat";
  if (n < 2)
    return false;
  auto axis = constants(first ? 0 : n - 1);
  if (!axis || axis->size() != 1 || ((*axis)[0] != 0 && (*axis)[0] != -1))
    return false;
  Dims result;
  for (unsigned i = first; i < n - !first; ++i) {
    auto v = ints(i);
    if (!v || v->shape.size() != 1)
      return false;
    result.append(v->exprs);
  }
  int64_t count = result.size();
  return set(0, result, {count});
}

bool Tracker::pack() {
  auto first = ints(0);
  int64_t n = node.getInputs().size(), rank = first->shape.size() + 1, axis = attrInt("axis");
  if (axis < -rank || axis >= rank)
    return false;
  axis += axis < 0 ? rank : 0;
  int64_t inner = 1;
  for (int64_t d : ArrayRef<int64_t>(first->shape).drop_front(axis))
    inner *= d;
  SmallVector<Dims> parts;
  for (int64_t i = 0; i < n; ++i) {
    auto v = ints(i);
    if (!v || v->shape != first->shape)
      return false;
    parts.push_back(v->exprs);
  }
  Dims result;
  int64_t total = parts[0].size();
  for (int64_t outer = 0; outer < total; outer += inner)
    for (const Dims &part : parts)
      result.append(part.begin() + outer, part.begin() + outer + inner);
  SmallVector<int64_t> shape(first->shape.begin(), first->shape.end());
  shape.insert(shape.begin() + axis, n);
  return set(0, result, shape);
}

/// Positions are constants, what goes there may be sizes; later pieces win. No holes.
bool Tracker::stitch() {
  unsigned n = node.getInputs().size() / 2;
  Dims result;
  for (unsigned i = 0; i < n; ++i) {
    auto at = constants(i);
    auto v = ints(n + i);
    if (!at || !v || v->shape != ints(i)->shape)
      return false;
    for (auto [k, position] : llvm::enumerate(*at)) {
      if (position < 0 || position >= kMaxTracked)
        return false;
      if (position >= int64_t(result.size()))
        result.resize(position + 1);
      result[position] = v->exprs[k];
    }
  }
  int64_t count = result.size();
  return llvm::all_of(result, [](AffineExpr e) { return bool(e); }) && set(0, result, {count});
}

bool Tracker::slice() {
  auto v = ints(0);
  auto begin = constants(1), size = constants(2);
  if (!begin || !size || v->shape.size() != 1 || begin->size() != 1 || size->size() != 1)
    return false;
  int64_t from = (*begin)[0], n = v->shape[0];
  if (from < 0 || from > n || (*size)[0] < -1 || (*size)[0] > n - from)
    return false;
  int64_t count = (*size)[0] < 0 ? n - from : (*size)[0];
  return set(0, Dims(ArrayRef<AffineExpr>(v->exprs).slice(from, count)), {count});
}

bool Tracker::invertPermutation() {
  auto order = constants(0);
  if (!order || ints(0)->shape.size() != 1)
    return false;
  Dims result(order->size());
  for (auto [i, to] : llvm::enumerate(*order)) {
    if (to < 0 || to >= int64_t(order->size()) || result[to])
      return false;
    result[to] = ctx.constant(i);
  }
  return set(0, result, {int64_t(order->size())});
}

bool Tracker::unpack() {
  auto v = ints(0);
  if (v->shape.size() != 1 || v->exprs.size() != node.getOutputs().size())
    return false;
  for (auto [i, e] : llvm::enumerate(v->exprs))
    if (!set(i, {e}, {}))
      return false;
  return true;
}

bool Tracker::identity() {
  auto v = ints(0);
  return set(0, v->exprs, v->shape);
}

/// OnesLike, ZerosLike.
bool Tracker::ones() {
  auto v = ints(0);
  return set(0, Dims(v->exprs.size(), ctx.constant(node.getOp() == "OnesLike")), v->shape);
}

bool Tracker::negate() {
  auto v = ints(0);
  for (AffineExpr &e : v->exprs)
    e = hlo::simplify(ctx.constant(0) - e);
  return set(0, v->exprs, v->shape);
}

bool Tracker::reshape() {
  auto v = ints(0);
  auto dims = constants(1);
  if (!dims)
    return false;
  int64_t known = 1, free = -1, total = v->exprs.size();
  for (auto [i, d] : llvm::enumerate(*dims)) {
    if (d < 0)
      free = i;
    else
      known *= d;
  }
  if (free >= 0)
    (*dims)[free] = known ? total / known : 0;
  if (ShapedType::getNumElements(*dims) != total || llvm::any_of(*dims, [](int64_t d) { return d < 0; }))
    return false;
  return set(0, v->exprs, *dims);
}

bool Tracker::expandDims() {
  auto v = ints(0);
  auto axis = constants(1);
  if (!axis || axis->size() != 1)
    return false;
  int64_t at = (*axis)[0] < 0 ? (*axis)[0] + int64_t(v->shape.size()) + 1 : (*axis)[0];
  if (at < 0 || at > int64_t(v->shape.size()))
    return false;
  v->shape.insert(v->shape.begin() + at, 1);
  return set(0, v->exprs, v->shape);
}

bool Tracker::squeeze() {
  auto v = ints(0);
  auto list = node.getNodeAttr<ArrayAttr>("squeeze_dims");
  if ((list && !list.empty() && v->shape.size() != 1) || v->exprs.size() != 1)
    return false;
  return set(0, v->exprs, {});
}

bool Tracker::fill() {
  auto dims = constants(0);
  auto v = ints(1);
  if (!dims || !v || v->exprs.size() != 1)
    return false;
  int64_t n = 1;
  for (int64_t d : *dims)
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > kMaxTracked)
      return false;
  return set(0, Dims(n, v->exprs[0]), *dims);
}

bool Tracker::range() {
  auto start = constants(0), limit = constants(1), delta = constants(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1 || !(*delta)[0])
    return false;
  Dims result;
  for (int64_t i = (*start)[0]; (*delta)[0] > 0 ? i < (*limit)[0] : i > (*limit)[0]; i += (*delta)[0]) {
    if (int64_t(result.size()) >= kMaxTracked)
      return false;
    result.push_back(ctx.constant(i));
  }
  int64_t count = result.size();
  return set(0, result, {count});
}

AffineExpr Tracker::product(AffineExpr a, AffineExpr b) {
  auto small = [](AffineExpr e) { // products of constants stay clear of overflow
    auto c = constantOf(e);
    return !c || (*c < (int64_t(1) << 31) && *c > -(int64_t(1) << 31));
  };
  return small(a) && small(b) ? productOf({a, b}, ctx.getContext()) : AffineExpr();
}

/// Sizes are not negative, so that floor and truncation agree; other constants go the general way.
AffineExpr Tracker::quotient(AffineExpr a, AffineExpr b) {
  auto d = constantOf(b);
  auto n = constantOf(a);
  if ((d && *d <= 0) || (n && *n < 0))
    return {};
  AffineExpr exact = divideExactly(a, b);
  return d || !exact || exact.getKind() != AffineExprKind::FloorDiv ? exact : AffineExpr();
}

AffineExpr Tracker::remainder(AffineExpr a, AffineExpr b) {
  auto d = constantOf(b);
  auto n = constantOf(a);
  return !d || *d <= 0 || (n && *n < 0) ? AffineExpr() : hlo::simplify(a % *d);
}

/// The larger or the smaller one, where that is known.
AffineExpr Tracker::extreme(AffineExpr a, AffineExpr b, bool wantMax) {
  if (a == b)
    return a;
  if (auto difference = constantOf(hlo::simplify(a - b)))
    return (*difference > 0) == wantMax ? a : b;
  // A size against a small constant.
  auto ca = constantOf(a), cb = constantOf(b);
  if (cb && *cb <= 0 && isa<AffineSymbolExpr>(a))
    return wantMax ? a : b;
  if (ca && *ca <= 0 && isa<AffineSymbolExpr>(b))
    return wantMax ? b : a;
  auto ua = ctx.upperBound(a), ub = ctx.upperBound(b);
  if (ua && cb && *ua <= *cb)
    return wantMax ? b : a;
  if (ub && ca && *ub <= *ca)
    return wantMax ? a : b;
  return {};
}

/// Ops of two lists, element by element, and sums, products and extremes of one.
std::optional<bool> Tracker::arithmetic() {
  using Expr = AffineExpr;
  StringRef op = node.getOp();
  auto add = [](Expr a, Expr b) { return hlo::simplify(a + b); };
  auto multiply = [&](Expr a, Expr b) { return product(a, b); };
  auto max = [&](Expr a, Expr b) { return extreme(a, b, true); };
  auto min = [&](Expr a, Expr b) { return extreme(a, b, false); };
  if (op == "AddV2" || op == "Add")
    return binary(add);
  if (op == "Sub")
    return binary([](Expr a, Expr b) { return hlo::simplify(a - b); });
  if (op == "Mul")
    return binary(multiply);
  if (op == "FloorDiv" || op == "Div" || op == "RealDiv" || op == "TruncateDiv")
    return binary([&](Expr a, Expr b) { return quotient(a, b); });
  if (op == "FloorMod" || op == "Mod" || op == "TruncateMod")
    return binary([&](Expr a, Expr b) { return remainder(a, b); });
  if (op == "Maximum")
    return binary(max);
  if (op == "Minimum")
    return binary(min);
  if (op == "Prod")
    return reduce(multiply, 1);
  if (op == "Sum")
    return reduce(add, 0);
  if (op == "Max" || op == "Min") {
    if (ints(0)->exprs.empty())
      return false;
    return op == "Max" ? reduce(max, 0) : reduce(min, 0);
  }
  return std::nullopt;
}

bool Tracker::run() {
  StringRef op = node.getOp();
  if (node.getOutputs().empty())
    return false;
  if (ops::is(op, ops::Flag::Sizes))
    return shape();
  if (!isIndexType(0))
    return false;
  if (op == "Const")
    return constant();
  if (!ints(0) && op != "Concat")
    return false;
  if (op == "Cast" || (ops::is(op, ops::Flag::Passes) && node.getOutputs().size() == 1))
    return identity();
  if (std::optional<bool> done = arithmetic())
    return *done;
  using Method = bool (Tracker::*)();
  Method method = llvm::StringSwitch<Method>(op)
                      .Case("Unpack", &Tracker::unpack)
                      .Case("StridedSlice", &Tracker::stridedSlice)
                      .Case("Pack", &Tracker::pack)
                      .Cases({"ConcatV2", "Concat"}, &Tracker::concat)
                      .Cases({"Gather", "GatherV2"}, &Tracker::gather)
                      .Cases({"DynamicStitch", "ParallelDynamicStitch"}, &Tracker::stitch)
                      .Case("Slice", &Tracker::slice)
                      .Case("InvertPermutation", &Tracker::invertPermutation)
                      .Cases({"OnesLike", "ZerosLike"}, &Tracker::ones)
                      .Case("Neg", &Tracker::negate)
                      .Case("Reshape", &Tracker::reshape)
                      .Case("ExpandDims", &Tracker::expandDims)
                      .Case("Squeeze", &Tracker::squeeze)
                      .Case("Fill", &Tracker::fill)
                      .Case("Range", &Tracker::range)
                      .Default(nullptr);
  return method && (this->*method)();
}

} // namespace

bool trackSizes(LegalizeContext &context, graph::NodeOp node) { return Tracker(context, node).run(); }

} // namespace lathe::legalize
