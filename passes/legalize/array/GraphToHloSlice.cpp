// Slice and StridedSlice with all their masks, constant, symbolic and run-time bounds; their gradients and updates.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// One dimension of the input under a StridedSlice.
struct SliceDim {
  /// Constant or symbolic bounds: elements first, first + stride, ... `count` of them.
  AffineExpr first, count;
  /// Where the last element is not known to be first + (count - 1) * stride in a simpler form.
  AffineExpr limit;
  int64_t stride = 1;
  /// The first element where that is a run-time scalar; then `first` is null.
  Value start;
  /// The dimension goes away.
  bool shrink = false;
};

struct SlicePlan {
  SmallVector<SliceDim> dims;
  /// The result's dimensions: that of the input, or -1 for a new one of size 1.
  SmallVector<int64_t> order;
};

/// Entry k of a vector as a scalar.
Value element(NodeContext &c, Value v, int64_t k) {
  return c.reshape(c.sliceDim(v, 0, c.size(k), c.size(k + 1)), ArrayRef<AffineExpr>());
}

/// A count known only at run time: becomes a data symbol.
AffineExpr countSymbol(NodeContext &c, Value count, AffineExpr bound) {
  AffineExpr symbol = c.ctx.newDataSymbol(c.name(), bound);
  hlo::SetSizeOp::create(c.b, c.loc, count, int64_t(cast<AffineSymbolExpr>(symbol).getPosition()), c.name());
  return symbol;
}

class SlicePlanner {
public:
  SlicePlanner(NodeContext &c, const Dims &shape, unsigned firstSpec) : c(c), shape(shape), firstSpec(firstSpec) {}

  FailureOr<SlicePlan> plan() {
    auto strides = c.constantInts(firstSpec + 2);
    if (failed(strides))
      return failure();
    begin = c.trySizes(firstSpec);
    end = c.trySizes(firstSpec + 1);
    beginMask = c.attrInt("begin_mask");
    endMask = c.attrInt("end_mask");
    int64_t ellipsisMask = c.attrInt("ellipsis_mask"), newAxisMask = c.attrInt("new_axis_mask"),
            shrinkMask = c.attrInt("shrink_axis_mask");
    int64_t n = strides->size(), rank = shape.size();
    for (unsigned i = 0; i < 2; ++i) {
      const auto &known = i ? end : begin;
      Value v = c.input(firstSpec + i);
      if (known ? int64_t(known->size()) != n : (c.rank(v) != 1 || constantOf(c.dim(v, 0)) != n))
        return c.error("begin, end and strides differ in size");
    }
    if (n > 63)
      return c.error("too many dimensions");
    int64_t consuming = 0, ellipses = 0;
    for (int64_t k = 0; k < n; ++k) {
      if (ellipsisMask >> k & 1)
        ++ellipses;
      else if (!(newAxisMask >> k & 1))
        ++consuming;
    }
    if (ellipses > 1)
      return c.error("more than one ellipsis");
    if (consuming > rank)
      return c.error("slices " + Twine(consuming) + " dimensions of an input of rank " + Twine(rank));
    SlicePlan plan;
    auto whole = [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        SliceDim d;
        d.first = c.size(0);
        d.count = shape[plan.dims.size()];
        plan.order.push_back(plan.dims.size());
        plan.dims.push_back(d);
      }
    };
    for (int64_t k = 0; k < n; ++k) {
      if (ellipsisMask >> k & 1) {
        whole(rank - consuming);
      } else if (newAxisMask >> k & 1) {
        plan.order.push_back(-1);
      } else {
        auto d = planDim(k, shape[plan.dims.size()], (*strides)[k], shrinkMask >> k & 1);
        if (failed(d))
          return failure();
        if (!d->shrink)
          plan.order.push_back(plan.dims.size());
        plan.dims.push_back(*d);
      }
    }
    whole(rank - plan.dims.size());
    return plan;
  }

private:
  FailureOr<SliceDim> planDim(int64_t k, AffineExpr size, int64_t stride, bool shrink) {
    if (stride == 0)
      return c.error("stride " + Twine(k) + " is 0");
    SliceDim d;
    d.stride = stride;
    d.shrink = shrink;
    bool fromStart = beginMask >> k & 1, toEnd = endMask >> k & 1;
    if (shrink) {
      if (stride < 0)
        return c.error("only stride 1 is allowed where an index takes one element");
      d.stride = 1;
      d.count = c.size(1);
      // TensorFlow takes no notice of the begin mask here
      return planIndex(k, size, d);
    }
    bool beginKnown = fromStart || begin, endKnown = toEnd || end;
    AffineExpr b = fromStart || !begin ? AffineExpr() : (*begin)[k], e = toEnd || !end ? AffineExpr() : (*end)[k];
    if (!beginKnown || !endKnown) {
      auto value = [&](unsigned spec, bool open) { return open ? Value() : element(c, c.input(firstSpec + spec), k); };
      return planClamped(size, b, e, value(0, fromStart), value(1, toEnd), d);
    }
    auto n = constantOf(size);
    auto bc = b ? constantOf(b) : std::nullopt, ec = e ? constantOf(e) : std::nullopt;
    if (n && (!b || bc) && (!e || ec))
      return planConstant(*n, bc, ec, d);
    return planSymbolic(size, b, e, d);
  }

  FailureOr<SliceDim> planIndex(int64_t k, AffineExpr size, SliceDim d) {
    if (!begin) {
      Value v = element(c, c.input(firstSpec), k);
      Value n = c.sizeValue(size, c.elementType(v)), zero = c.scalarInt(0, c.elementType(v));
      d.start = c.select(c.compare(Compare::LT, v, zero), c.add(v, n), v);
      checkRange(c, d.start, size, "slice index is out of range");
      return d;
    }
    d.first = (*begin)[k];
    auto b = constantOf(d.first), n = constantOf(size);
    if (b && n) {
      if (*b < -*n || *b >= *n)
        return c.error("slice index " + Twine(*b) + " of dimension " + Twine(k) + " of size " + Twine(*n) +
                       " is out of range");
      d.first = c.size(*b < 0 ? *b + *n : *b);
      return d;
    }
    if (b && *b < 0)
      d.first = hlo::simplify(size + *b);
    AffineExpr behind = hlo::simplify(size - 1 - d.first);
    if (neverNegative(d.first) && neverNegative(behind))
      return d;
    Type i64 = c.b.getI64Type();
    Value at = c.sizeValue(d.first, i64);
    if (!neverNegative(d.first) && !constantOf(behind)) {
      // it may count from the end
      at = c.select(c.compare(Compare::LT, at, c.scalarInt(0, i64)), c.add(at, c.sizeValue(size, i64)), at);
      d.start = at;
    }
    checkRange(c, at, size, "slice index is out of range");
    return d;
  }

  FailureOr<SliceDim> planConstant(int64_t n, std::optional<int64_t> b, std::optional<int64_t> e, SliceDim d) {
    int64_t lo = d.stride > 0 ? 0 : -1, hi = d.stride > 0 ? n : n - 1;
    auto clamp = [&](int64_t v) { return std::min(std::max(v < 0 ? v + n : v, lo), hi); };
    int64_t from = b ? clamp(*b) : (d.stride > 0 ? lo : hi), to = e ? clamp(*e) : (d.stride > 0 ? hi : lo);
    int64_t by = d.stride > 0 ? d.stride : -d.stride, distance = d.stride > 0 ? to - from : from - to;
    int64_t count = distance <= 0 ? 0 : (distance - 1) / by + 1;
    d.first = c.size(count ? from : 0);
    if (!count)
      d.stride = 1;
    d.count = c.size(count);
    return d;
  }

  /// Whether a size is at least 0 whatever the symbols are.
  bool neverNegative(AffineExpr e) {
    if (auto v = constantOf(e))
      return *v >= 0;
    if (isa<AffineSymbolExpr>(e))
      return true;
    auto binary = dyn_cast<AffineBinaryOpExpr>(e);
    if (!binary)
      return false;
    if (e.getKind() == AffineExprKind::Mod)
      return true;
    if (e.getKind() != AffineExprKind::Add && e.getKind() != AffineExprKind::Mul && !constantOf(binary.getRHS()))
      return false;
    return neverNegative(binary.getLHS()) && neverNegative(binary.getRHS());
  }

  bool atMost(AffineExpr a, AffineExpr b) {
    if (neverNegative(hlo::simplify(b - a)))
      return true;
    auto most = c.ctx.upperBound(a), v = constantOf(b);
    return most && v && *most <= *v;
  }

  /// A bound as a place in 0..size, where that needs no clamping; else null.
  AffineExpr place(AffineExpr bound, AffineExpr size) {
    auto v = constantOf(bound);
    if (v && *v >= 0 && atMost(size, bound))
      return size;
    AffineExpr at = v && *v < 0 ? hlo::simplify(size + *v) : bound;
    return neverNegative(at) && atMost(at, size) ? at : AffineExpr();
  }

  FailureOr<SliceDim> planSymbolic(AffineExpr size, AffineExpr b, AffineExpr e, SliceDim d) {
    if (d.stride < 0 && !b && !e) {
      d.first = size - 1;
      d.count = hlo::simplify((size + (-d.stride - 1)).floorDiv(-d.stride));
      return d;
    }
    if (d.stride > 0) {
      AffineExpr from = b ? place(b, size) : c.size(0), to = e ? place(e, size) : size;
      AffineExpr distance = from && to ? hlo::simplify(to - from) : AffineExpr();
      if (distance && (neverNegative(distance) || constantOf(distance))) {
        d.first = from;
        d.limit = to;
        d.count = hlo::simplify((distance + (d.stride - 1)).floorDiv(d.stride));
        if (auto n = constantOf(d.count); n && *n < 0)
          d.count = c.size(0);
        return d;
      }
    }
    Type i64 = c.b.getI64Type();
    return planClamped(size, b, e, b ? c.sizeValue(b, i64) : Value(), e ? c.sizeValue(e, i64) : Value(), d);
  }

  /// How many elements there are at most.
  AffineExpr mostElements(AffineExpr size, AffineExpr b, AffineExpr e, int64_t by) {
    auto first = b ? constantOf(b) : by > 0 ? std::optional<int64_t>(0) : std::nullopt;
    auto last = e ? constantOf(e) : std::nullopt;
    AffineExpr most = size;
    if (first && last && (*first < 0) == (*last < 0))
      most = c.size(std::max<int64_t>(by > 0 ? *last - *first : *first - *last, 0));
    else if (first && *first < 0 && !e && by > 0)
      most = c.size(-*first);
    else if (e && by > 0 && !constantOf(size) && neverNegative(e))
      most = e;
    if (by < 0)
      by = -by;
    return hlo::simplify((most + (by - 1)).floorDiv(by));
  }

  /// Bounds that only the run clamps: how many elements there are becomes a symbol, and the first one where it is no
  /// expression of that. `b` and `e` are the bounds as far as they are expressions.
  SliceDim planClamped(AffineExpr size, AffineExpr b, AffineExpr e, Value begin, Value end, SliceDim d) {
    Type t = c.b.getI64Type();
    Value n = c.sizeValue(size, t), zero = c.scalarInt(0, t);
    int64_t by = d.stride > 0 ? d.stride : -d.stride;
    Value low = d.stride > 0 ? zero : c.scalarInt(-1, t), high = d.stride > 0 ? n : c.sub(n, c.scalarInt(1, t));
    auto clamp = [&](Value v, Value otherwise) {
      if (!v)
        return otherwise;
      v = c.convert(v, t);
      v = c.select(c.compare(Compare::LT, v, zero), c.add(v, n), v);
      return c.min(c.max(v, low), high);
    };
    Value from = clamp(begin, d.stride > 0 ? low : high), to = clamp(end, d.stride > 0 ? high : low);
    Value distance = c.max(d.stride > 0 ? c.sub(to, from) : c.sub(from, to), zero);
    Value count = by == 1 ? distance : c.div(c.add(distance, c.scalarInt(by - 1, t)), c.scalarInt(by, t));
    d.count = countSymbol(c, count, begin && !b ? size : mostElements(size, b, e, d.stride));
    // where nothing is read, it does not matter from where
    if (d.stride > 0 && (!begin || (b && neverNegative(b)))) {
      d.first = begin ? b : c.size(0);
    } else if (d.stride == 1 && !end) {
      d.first = hlo::simplify(size - d.count);
    } else if (d.stride == 1) {
      d.start = from;
    } else {
      Value lowest = from;
      if (d.stride < 0) // a stride behind `from` where nothing is read, which may lie beyond the dimension
        lowest = c.min(c.max(c.sub(from, c.mul(c.sub(count, c.scalarInt(1, t)), c.scalarInt(by, t))), zero), n);
      AffineExpr symbol = countSymbol(c, lowest, size);
      d.first = d.stride > 0 ? symbol : hlo::simplify(symbol + (d.count - 1) * by);
    }
    return d;
  }

  NodeContext &c;
  const Dims &shape;
  unsigned firstSpec;
  std::optional<Dims> begin, end;
  int64_t beginMask = 0, endMask = 0;
};

/// Where dimensions are read backwards: the lowest element, and the distance.
std::pair<AffineExpr, int64_t> ascending(const SliceDim &d) {
  if (d.stride > 0)
    return {d.first, d.stride};
  return {hlo::simplify(d.first + (d.count - 1) * d.stride), -d.stride};
}

Value applyPlan(NodeContext &c, Value x, const SlicePlan &plan) {
  // Run-time starts first, then constant bounds, then what was read backwards is turned round.
  if (llvm::any_of(plan.dims, [](const SliceDim &d) { return bool(d.start); })) {
    Type index = c.b.getI64Type();
    SmallVector<Value> starts;
    Dims sizes;
    for (auto [i, d] : llvm::enumerate(plan.dims)) {
      starts.push_back(d.start ? c.convert(d.start, index) : c.scalarInt(0, index));
      sizes.push_back(d.start ? d.count : c.dim(x, i));
    }
    x = c.make<hlo::DynamicSliceOp>(x, ValueRange(starts), ArrayRef<AffineExpr>(sizes));
  }
  Dims starts, limits, shape;
  SmallVector<int64_t> strides, backwards;
  for (auto [i, d] : llvm::enumerate(plan.dims)) {
    if (d.start) {
      starts.push_back(c.size(0));
      limits.push_back(c.dim(x, i));
      strides.push_back(1);
      continue;
    }
    auto [first, stride] = ascending(d);
    starts.push_back(first);
    limits.push_back(hlo::simplify(first + (d.count - 1) * stride + 1));
    if (d.limit)
      limits.back() = d.limit;
    if (constantOf(d.count) == int64_t(0))
      limits.back() = first;
    strides.push_back(stride);
    if (d.stride < 0)
      backwards.push_back(i);
  }
  x = c.reverse(c.slice(x, starts, limits, strides), backwards);
  for (int64_t d : plan.order)
    shape.push_back(d < 0 ? c.size(1) : c.dim(x, d));
  return c.reshape(x, shape);
}

/// The part's shape before dimensions were added or removed.
Dims partDims(NodeContext &c, const SlicePlan &plan) {
  Dims dims;
  for (const SliceDim &d : plan.dims)
    dims.push_back(c.ctx.resolve(d.count));
  return dims;
}

/// Puts `stride` - 1 elements of `fill` behind each element of dimension i: their number stays 0 where it is, which padding between elements,
/// whose number is one less, cannot say of a size that only the run knows.
Value spread(NodeContext &c, Value x, int64_t i, int64_t stride, Value fill) {
  Dims dims = c.dims(x), apart = dims;
  apart.insert(apart.begin() + i + 1, c.size(1));
  SmallVector<int64_t> none(apart.size(), 0), high = none;
  high[i + 1] = stride - 1;
  dims[i] = hlo::simplify(dims[i] * stride);
  return c.reshape(c.pad(c.reshape(x, apart), fill, none, high, none), dims);
}

/// `part` (as a StridedSlice would give it) at its place in something of `shape` that is `fill` elsewhere.
Value placePart(NodeContext &c, const Dims &shape, const SlicePlan &plan, Value part, Value fill) {
  Dims visible;
  for (int64_t d : plan.order)
    visible.push_back(d < 0 ? c.size(1) : c.ctx.resolve(plan.dims[d].count));
  part = c.broadcastTo(part, visible);
  if (!part)
    return {};
  part = c.reshape(part, partDims(c, plan));
  SmallVector<int64_t> backwards, low, high, interior;
  // where it begins in dimensions whose bounds only the run knows; those with a stride reach beyond the last element
  SmallVector<Value> placed(plan.dims.size());
  SmallVector<std::pair<int64_t, int64_t>> spreads;
  Dims room = shape;
  for (auto [i, d] : llvm::enumerate(plan.dims)) {
    low.push_back(0);
    high.push_back(0);
    interior.push_back(0);
    if (d.start) {
      placed[i] = c.convert(d.start, c.b.getI64Type());
      continue;
    }
    if (d.stride < 0)
      backwards.push_back(i);
    auto [first, stride] = ascending(d);
    if (d.first == c.size(0) && stride == 1 && c.ctx.resolve(d.count) == c.ctx.resolve(shape[i]))
      continue;
    auto from = constantOf(first), count = constantOf(d.count);
    auto size = constantOf(shape[i]), rest = constantOf(hlo::simplify(shape[i] - first - (d.count - 1) * stride - 1));
    if (count == int64_t(0) && size) {
      high.back() = *size;
      continue;
    }
    if (!from || !rest) {
      if (stride != 1) {
        spreads.emplace_back(i, stride);
        room[i] = hlo::simplify(room[i] + (stride - 1));
      }
      placed[i] = c.sizeValue(first, c.b.getI64Type());
      continue;
    }
    low.back() = *from;
    high.back() = *rest;
    interior.back() = stride - 1;
  }
  part = c.reverse(part, backwards);
  for (auto [i, stride] : spreads)
    part = spread(c, part, i, stride, fill);
  part = c.pad(part, fill, low, high, interior);
  if (llvm::none_of(placed, [](Value v) { return bool(v); }))
    return part;
  for (Value &start : placed)
    if (!start)
      start = c.scalarInt(0, c.b.getI64Type());
  Value whole = c.make<hlo::DynamicUpdateSliceOp>(c.broadcastInDim(fill, room, {}), part, ValueRange(placed));
  return spreads.empty() ? whole : c.slice(whole, Dims(shape.size(), c.size(0)), shape);
}

LogicalResult lowerStridedSlice(NodeContext &c) {
  Value x = c.input(0);
  Dims shape = c.dims(x);
  auto plan = SlicePlanner(c, shape, 1).plan();
  if (failed(plan))
    return failure();
  return c.setResult(0, applyPlan(c, x, *plan));
}

LogicalResult lowerStridedSliceGrad(NodeContext &c) {
  auto shape = c.shapeInput(0);
  if (failed(shape))
    return failure();
  auto plan = SlicePlanner(c, *shape, 1).plan();
  if (failed(plan))
    return failure();
  Value grad = c.input(4);
  return c.setResult(0, placePart(c, *shape, *plan, grad, c.scalar(0, c.elementType(grad))));
}

LogicalResult lowerSlice(NodeContext &c) {
  Value x = c.input(0), begin = c.input(1);
  int64_t rank = c.rank(x);
  auto from = c.trySizes(1), size = c.trySizes(2);
  Value sizeTensor = c.input(2);
  auto expectVector = [&](unsigned i) {
    Value v = c.input(i);
    return c.rank(v) == 1 && c.ctx.unify(c.dim(v, 0), c.size(rank), c.name());
  };
  if (!expectVector(1) || !expectVector(2))
    return c.error("begin and size must be vectors of " + Twine(rank) + " elements");
  if (from && size) {
    Dims limits;
    for (int64_t i = 0; i < rank; ++i) {
      AffineExpr whole = c.dim(x, i), b = (*from)[i], n = (*size)[i];
      limits.push_back(constantOf(n) == int64_t(-1) ? whole : hlo::simplify(b + n));
      auto w = constantOf(whole), l = constantOf(limits[i]), s = constantOf(b);
      if ((w && l && *l > *w) || (s && *s < 0) || (s && l && *l < *s))
        return c.error("dimension " + Twine(i) + " of size " + textOf(whole) + " cannot be sliced from " + textOf(b) +
                       " to " + textOf(limits[i]));
      Type i64 = c.b.getI64Type();
      if ((!w || !l) && limits[i] != whole)
        c.check(c.compare(Compare::GE, c.sizeValue(whole, i64), c.sizeValue(limits[i], i64)), "a slice is out of range");
      if (!s)
        c.check(c.compare(Compare::GE, c.sizeValue(b, i64), c.scalarInt(0, i64)), "a slice is out of range");
      if (!l || !s) // nothing below 0 is read, and no size is negative
        c.check(c.compare(Compare::GE, c.sizeValue(limits[i], i64), c.sizeValue(b, i64)), "a slice is out of range");
    }
    return c.setResult(0, c.slice(x, *from, limits));
  }
  SmallVector<Value> starts;
  Dims sizes;
  Type t = c.elementType(begin);
  for (int64_t i = 0; i < rank; ++i) {
    Value b = from ? c.sizeValue((*from)[i], t) : element(c, begin, i);
    Value whole = c.sizeValue(c.dim(x, i), t), zero = c.scalarInt(0, t);
    starts.push_back(b);
    if (size && constantOf((*size)[i]) != int64_t(-1)) {
      sizes.push_back((*size)[i]);
    } else if (from && size) {
      sizes.push_back(hlo::simplify(c.dim(x, i) - (*from)[i]));
    } else {
      Value rest = c.sub(whole, b), n = rest;
      if (!size) {
        n = element(c, sizeTensor, i);
        n = c.select(c.compare(Compare::EQ, n, c.scalarInt(-1, t)), rest, n);
      }
      c.check(c.compare(Compare::GE, n, zero), "a slice is out of range");
      sizes.push_back(countSymbol(c, n, c.dim(x, i)));
    }
    Value last = c.add(b, c.sizeValue(sizes.back(), t));
    c.check(c.logicalAnd(c.compare(Compare::GE, b, zero), c.compare(Compare::LE, last, whole)), "a slice is out of range");
  }
  return c.setResult(0, c.make<hlo::DynamicSliceOp>(x, ValueRange(starts), ArrayRef<AffineExpr>(sizes)));
}

} // namespace

Value stridedSliceUpdate(NodeContext &c, Value input, unsigned firstSpecInput, Value update) {
  Dims shape = c.dims(input);
  auto plan = SlicePlanner(c, shape, firstSpecInput).plan();
  if (failed(plan))
    return {};
  Value placed = placePart(c, shape, *plan, update, c.scalar(0, c.elementType(input)));
  Type pred = c.b.getI1Type();
  Value mask = placePart(c, shape, *plan, c.scalarInt(1, pred), c.scalarInt(0, pred));
  return placed && mask ? c.select(mask, placed, input) : Value();
}

void registerSlice(HandlerTable &t) {
  t.add("Slice", 3, lowerSlice);
  t.add("StridedSlice", 4, lowerStridedSlice);
  t.add("StridedSliceGrad", 5, lowerStridedSliceGrad);
  t.add("TensorStridedSliceUpdate", 5, [](NodeContext &c) {
    return c.setResult(0, stridedSliceUpdate(c, c.input(0), 1, c.input(4)));
  });
}

} // namespace lathe::legalize
