// Shape arithmetic of the graph (Shape, StridedSlice, Pack, Mul ...) done on expressions instead of tensors, by ops/SizeValues.h. What it
// handles leaves no hlo behind; a tensor is made only where something else reads the value.
#include "dialects/hlo/Shape.h"
#include "ops/SizeValues.h"
#include "passes/legalize/NodeContext.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

using ops::SizeOp;

/// A node as SizeArithmetic sees it.
class Tracker {
public:
  using Element = AffineExpr;
  using Ints = ops::SizeTensor<AffineExpr>;

  Tracker(LegalizeContext &ctx, graph::NodeOp node) : ctx(ctx), node(node) {}

  bool run();

  /// Above this the tensor form is the better one.
  size_t limit() const { return 256; }
  std::string_view op() {
    StringRef name = node.getOp();
    return {name.data(), name.size()};
  }
  int numInputs() { return static_cast<int>(node.getInputs().size()); }
  int numOutputs() { return static_cast<int>(node.getOutputs().size()); }
  int64_t intAttr(StringRef name) {
    auto a = node.getNodeAttr<IntegerAttr>(name);
    return a ? a.getInt() : 0;
  }
  bool boolAttr(StringRef name) {
    auto a = node.getNodeAttr<BoolAttr>(name);
    return a && a.getValue();
  }
  std::vector<int64_t> intsAttr(StringRef name);
  std::optional<Ints> input(int i);
  std::optional<Ints> constant();
  std::optional<std::vector<AffineExpr>> dims(int i);
  std::optional<std::vector<int64_t>> outputShape() { return std::nullopt; }

  AffineExpr number(int64_t value) { return ctx.constant(value); }
  std::optional<int64_t> numberOf(AffineExpr e) { return constantOf(e); }
  AffineExpr countOf(ArrayRef<AffineExpr> dims) { return productOf(dims, ctx.getContext()); }
  std::optional<AffineExpr> apply(SizeOp op, AffineExpr a, AffineExpr b);

private:
  bool isIndexType(unsigned result) {
    Type element = cast<TensorType>(node.getOutputs()[result].getType()).getElementType();
    return element.isSignlessInteger(32) || element.isSignlessInteger(64);
  }
  AffineExpr product(AffineExpr a, AffineExpr b);
  AffineExpr quotient(AffineExpr a, AffineExpr b);
  AffineExpr remainder(AffineExpr a, AffineExpr b);
  AffineExpr extreme(AffineExpr a, AffineExpr b, bool wantMax);
  std::optional<Ints> clamped();

  LegalizeContext &ctx;
  graph::NodeOp node;
};

std::vector<int64_t> Tracker::intsAttr(StringRef name) {
  std::vector<int64_t> out;
  if (auto dense = node.getNodeAttr<DenseI64ArrayAttr>(name))
    out.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
  else if (auto list = node.getNodeAttr<ArrayAttr>(name))
    for (Attribute element : list)
      if (auto value = dyn_cast<IntegerAttr>(element))
        out.push_back(value.getInt());
  return out;
}

std::optional<Tracker::Ints> Tracker::input(int i) {
  GraphValue v = ctx.lookup(node.getInputs()[i]);
  if (!v.isTensor() || !v.sizes)
    return std::nullopt;
  Dims exprs = ctx.resolve(*v.sizes);
  return Ints{{exprs.begin(), exprs.end()}, {v.sizesShape.begin(), v.sizesShape.end()}};
}

std::optional<Tracker::Ints> Tracker::constant() {
  auto value = node.getNodeAttr<DenseElementsAttr>("value");
  Type element = cast<TensorType>(node.getOutputs()[0].getType()).getElementType();
  if (!value || value.getElementType() != element || value.getNumElements() > static_cast<int64_t>(limit()))
    return std::nullopt;
  Ints out{{}, value.getType().getShape().vec()};
  for (const APInt &v : value.getValues<APInt>())
    out.elements.push_back(ctx.constant(v.getSExtValue()));
  return out;
}

std::optional<std::vector<AffineExpr>> Tracker::dims(int i) {
  if (i >= numInputs())
    return std::nullopt;
  GraphValue v = ctx.lookup(node.getInputs()[i]);
  if (v.kind == GraphValue::Kind::Reference) {
    auto current = ctx.readVariable(v.name, node.getLoc());
    if (failed(current))
      return std::nullopt;
    v = *current;
  }
  if (!v.isTensor())
    return std::nullopt;
  std::vector<AffineExpr> out;
  if (!v.tensor) {
    for (int64_t d : v.sizesShape)
      out.push_back(ctx.constant(d));
    return out;
  }
  for (AffineExpr e : hlo::getDims(cast<RankedTensorType>(v.tensor.getType())))
    out.push_back(ctx.resolve(e));
  return out;
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

std::optional<AffineExpr> Tracker::apply(SizeOp op, AffineExpr a, AffineExpr b) {
  AffineExpr e;
  switch (op) {
  case SizeOp::Add:
    e = hlo::simplify(a + b);
    break;
  case SizeOp::Sub:
    e = hlo::simplify(a - b);
    break;
  case SizeOp::Mul:
    e = product(a, b);
    break;
  case SizeOp::FloorDiv:
  case SizeOp::TruncateDiv:
    e = quotient(a, b);
    break;
  case SizeOp::FloorMod:
  case SizeOp::TruncateMod:
    e = remainder(a, b);
    break;
  case SizeOp::Max:
  case SizeOp::Min:
    e = extreme(a, b, op == SizeOp::Max);
    break;
  }
  return e ? std::optional<AffineExpr>(e) : std::nullopt;
}

/// A number between two bounds that meet, whatever it is: how many bins a bincount has whose least and greatest length are the same.
std::optional<Tracker::Ints> Tracker::clamped() {
  const bool wantsMax = op() == "Maximum";
  if ((!wantsMax && op() != "Minimum") || numInputs() != 2)
    return std::nullopt;
  auto scalarOf = [&](Value v) -> std::optional<int64_t> {
    GraphValue value = ctx.lookup(v);
    if (!value.isTensor() || !value.sizes || !value.sizesShape.empty())
      return std::nullopt;
    return constantOf(ctx.resolve((*value.sizes)[0]));
  };
  for (int i = 0; i < 2; ++i) {
    auto bound = scalarOf(node.getInputs()[i]);
    auto inner = node.getInputs()[1 - i].getDefiningOp<graph::NodeOp>();
    if (!bound || !inner || inner.getOp() != (wantsMax ? "Minimum" : "Maximum") || inner.getInputs().size() != 2)
      continue;
    GraphValue held = ctx.lookup(node.getInputs()[1 - i]);
    if (!held.isTensor() || !held.tensor || cast<RankedTensorType>(held.tensor.getType()).getRank() != 0)
      continue;
    for (Value v : inner.getInputs())
      if (auto other = scalarOf(v); other && (wantsMax ? *other <= *bound : *other >= *bound))
        return Ints{{ctx.constant(*bound)}, {}};
  }
  return std::nullopt;
}

bool Tracker::run() {
  const int count = numOutputs();
  if (!count || !ops::SizeArithmetic<Tracker>::follows(op()))
    return false;
  GraphValues values;
  for (int i = 0; i < count; ++i) {
    std::optional<Ints> value = isIndexType(i) ? ops::sizeValue(*this, i) : std::nullopt;
    if (!value && isIndexType(i))
      value = clamped();
    if (!value)
      return false;
    Type element = cast<TensorType>(node.getOutputs()[i].getType()).getElementType();
    // Constant arithmetic wraps as the tensors would.
    if (element.isInteger(32))
      for (AffineExpr &e : value->elements)
        if (auto c = constantOf(e))
          e = ctx.constant(static_cast<int32_t>(*c));
    values.push_back(GraphValue::ofSizes(Dims(value->elements.begin(), value->elements.end()), value->shape, element));
  }
  for (auto [output, value] : llvm::zip_equal(node.getOutputs(), values))
    ctx.assign(output, value);
  return true;
}

} // namespace

bool trackSizes(LegalizeContext &context, graph::NodeOp node) { return Tracker(context, node).run(); }

} // namespace lathe::legalize
