// Reductions, windows, products, convolutions, sorting.
#include "GraphBuilder.h"

#include "dialects/hlo/Constants.h"

using namespace mlir;

namespace lathe::fuzz {

using Body = llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

template <typename Op>
static SmallVector<Value> combine(OpBuilder &b, Location l, ValueRange a) {
  return {Op::create(b, l, a[0], a[1])};
}

bool addReduce(GraphBuilder &g) {
  Known x = g.pick();
  Type t = x.element();
  if (x.rank() == 0)
    return false;
  SmallVector<int64_t> dims;
  double n = 1;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (g.chance(50)) {
      dims.push_back(i);
      n *= double(x.shape()[i]);
    }
  auto reduce = [&](Value start, double bound, Body body) {
    return g.fits(t, bound) && g.push(hlo::ReduceOp::create(g.b, ValueRange(x.value), ValueRange(start), dims, body).getResult(0), bound);
  };
  auto scalar = [&](int64_t v) { return hlo::makeScalar(g.b, g.b.getLoc(), v, t); };
  if (g.isBool(t))
    return g.chance(50) ? reduce(scalar(0), 1, combine<hlo::OrOp>) : reduce(scalar(1), 1, combine<hlo::AndOp>);
  switch (g.below(5)) {
  case 0: return reduce(hlo::makeLowest(g.b, g.b.getLoc(), t), x.bound, combine<hlo::MaxOp>);
  case 1: return reduce(hlo::makeHighest(g.b, g.b.getLoc(), t), x.bound, combine<hlo::MinOp>);
  case 2:
    if (g.isInt(t))
      return reduce(scalar(1), INFINITY, combine<hlo::MulOp>);
    [[fallthrough]];
  default: {
    int64_t start = g.chance(80) ? 0 : 3;
    return reduce(scalar(start), n * x.bound + double(start), combine<hlo::AddOp>);
  }
  }
}

bool addWindow(GraphBuilder &g) {
  auto found = g.pickIf([&](const Known &k) { return k.rank() > 0 && !g.isBool(k.element()); });
  if (!found)
    return false;
  Known x = *found;
  SmallVector<int64_t> size;
  hlo::ReduceWindow window;
  double n = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    size.push_back(g.chance(50) ? 1 : g.between(1, 4));
    n *= double(size.back());
    window.strides.push_back(g.chance(60) ? 1 : g.between(1, 3));
    window.windowDilations.push_back(g.chance(90) ? 1 : 2);
    window.padding.push_back({g.chance(60) ? 0 : g.below(size.back()), g.chance(60) ? 0 : g.below(size.back())});
    int64_t reach = (size.back() - 1) * window.windowDilations.back() + 1;
    if (x.shape()[i] + window.padding.back().first + window.padding.back().second < reach)
      return false;
  }
  bool most = g.chance(50);
  double bound = most ? x.bound : n * x.bound;
  if (!g.fits(x.element(), bound))
    return false;
  Value init = most ? hlo::makeLowest(g.b, g.b.getLoc(), x.element()) : hlo::makeScalar(g.b, g.b.getLoc(), 0, x.element());
  auto op = hlo::ReduceWindowOp::create(g.b, ValueRange(x.value), ValueRange(init), size, window,
                                        most ? combine<hlo::MaxOp> : combine<hlo::AddOp>);
  return g.push(op.getResult(0), bound);
}

bool addProduct(GraphBuilder &g) {
  auto found = g.pickIf([&](const Known &k) { return k.rank() > 0 && (g.isFloat(k.element()) || k.element().isInteger(32)); });
  if (!found)
    return false;
  Known x = *found;
  // dimensions of x: some batch, one or two contracted, the rest free
  SmallVector<int64_t> order, batch, contract, shape, otherBatch, otherContract;
  for (int64_t i = 0; i < x.rank(); ++i)
    order.push_back(i);
  std::shuffle(order.begin(), order.end(), g.random);
  int64_t contracted = std::min<int64_t>(g.chance(85) ? 1 : 2, x.rank()), batches = std::min<int64_t>(g.chance(60) ? 0 : 1, x.rank() - contracted);
  double k = 1;
  for (int64_t i = 0; i < contracted; ++i)
    contract.push_back(order[i]);
  for (int64_t i = contracted; i < contracted + batches; ++i)
    batch.push_back(order[i]);
  struct Dim { int64_t size, role, of; };
  SmallVector<Dim> dims;
  for (auto [i, d] : llvm::enumerate(contract)) {
    dims.push_back({x.shape()[d], 1, int64_t(i)});
    k *= double(x.shape()[d]);
  }
  for (auto [i, d] : llvm::enumerate(batch))
    dims.push_back({x.shape()[d], 2, int64_t(i)});
  for (int64_t i = g.below(3); i > 0; --i)
    dims.push_back({g.randomDim(), 0, 0});
  std::shuffle(dims.begin(), dims.end(), g.random);
  otherContract.resize(contract.size());
  otherBatch.resize(batch.size());
  int64_t elements = 1;
  for (auto [i, d] : llvm::enumerate(dims)) {
    shape.push_back(d.size);
    elements *= d.size;
    if (d.role == 1)
      otherContract[d.of] = i;
    if (d.role == 2)
      otherBatch[d.of] = i;
  }
  double work = double(x.type().getNumElements()) * double(elements) / std::max(k, 1.0);
  if (elements > 20000 || work > 3e6)
    return false;
  Known y = g.match(g.tensor(shape, x.element()));
  double bound = x.bound * y.bound * k;
  if (!g.fits(x.element(), bound))
    return false;
  if (g.chance(30)) {
    auto numbers = hlo::DotDimensionNumbersAttr::get(g.b.getContext(), otherBatch, batch, otherContract, contract);
    return g.push(hlo::DotGeneralOp::create(g.b, y.value, x.value, numbers), bound);
  }
  auto numbers = hlo::DotDimensionNumbersAttr::get(g.b.getContext(), batch, otherBatch, contract, otherContract);
  return g.push(hlo::DotGeneralOp::create(g.b, x.value, y.value, numbers), bound);
}

bool addConvolution(GraphBuilder &g) {
  int64_t spatial = g.chance(75) ? 2 : g.chance(60) ? 1 : 3;
  Type t = g.kind == Kind::Exact && g.chance(15) ? g.b.getF64Type() : g.chance(10) && g.kind == Kind::Exact ? Type(g.b.getF16Type()) : Type(g.b.getF32Type());
  auto found = g.pickIf([&](const Known &k) { return k.rank() == spatial + 2 && k.element() == t && k.type().getNumElements() < 5000; });
  static const int64_t channels[] = {1, 2, 3, 4, 5, 8, 16, 17, 32};
  Known x = found ? *found : Known{};
  if (!found) {
    SmallVector<int64_t> shape = {g.between(1, 3)};
    for (int64_t i = 0; i < spatial; ++i)
      shape.push_back(g.between(1, spatial == 3 ? 6 : 14));
    shape.push_back(channels[g.below(9)]);
    x = g.input(g.tensor(shape, t));
  }
  int64_t in = x.shape().back(), groups = 1;
  bool depthwise = g.chance(25);
  if (depthwise)
    groups = in;
  else if (g.chance(20))
    groups = in % 2 == 0 && in > 0 ? 2 : 1;
  if (in == 0)
    return false;
  int64_t out = depthwise ? groups * g.between(1, 2) : groups * channels[g.below(9)];
  SmallVector<int64_t> kernel;
  hlo::ConvWindow w;
  double n = double(in / groups);
  for (int64_t i = 0; i < spatial; ++i) {
    static const int64_t sizes[] = {1, 1, 2, 3, 3, 3, 4, 5, 7};
    int64_t k = sizes[g.below(9)], dilation = g.chance(80) ? 1 : g.between(2, 3), base = g.chance(90) ? 1 : 2;
    kernel.push_back(k);
    n *= double(k);
    w.strides.push_back(g.chance(60) ? 1 : g.between(2, 3));
    w.rhsDilation.push_back(dilation);
    w.lhsDilation.push_back(base);
    w.padding.push_back({g.chance(50) ? 0 : g.between(0, k), g.chance(50) ? 0 : g.between(0, k)});
    w.reversal.push_back(g.chance(5));
    int64_t size = x.shape()[1 + i];
    if (size > 0 && (size - 1) * base + 1 + w.padding.back().first + w.padding.back().second < (k - 1) * dilation + 1)
      return false;
  }
  kernel.push_back(in / groups);
  kernel.push_back(out);
  RankedTensorType type = g.tensor(kernel, t);
  if (type.getNumElements() > 60000)
    return false;
  Known filter = g.chance(60) ? g.constant(type) : g.match(type);
  double bound = x.bound * filter.bound * n;
  if (!g.fits(t, bound))
    return false;
  SmallVector<int64_t> middle, first;
  for (int64_t i = 0; i < spatial; ++i) {
    middle.push_back(1 + i);
    first.push_back(i);
  }
  auto numbers = hlo::ConvDimensionNumbersAttr::get(g.b.getContext(), 0, spatial + 1, middle, spatial, spatial + 1, first, 0, spatial + 1, middle);
  return g.push(hlo::ConvolutionOp::create(g.b, x.value, filter.value, w, numbers, groups, 1), bound);
}

bool addSort(GraphBuilder &g) {
  auto found = g.pickIf([&](const Known &k) { return k.rank() > 0 && !g.isBool(k.element()) && k.shape().back() > 0 && k.type().getNumElements() < 3000; });
  if (!found || g.kind != Kind::Exact)
    return false;
  Known x = *found;
  if (g.chance(40)) {
    auto op = hlo::TopKOp::create(g.b, x.value, static_cast<uint64_t>(g.between(1, x.shape().back())));
    return g.push(op->getResult(0), x.bound) && g.push(op->getResult(1), double(x.shape().back()));
  }
  int64_t dim = g.below(x.rank());
  SmallVector<Value> operands = {x.value};
  double bound = 0;
  if (g.chance(50)) {
    Known y = g.match(x.type());
    operands.push_back(y.value);
    bound = y.bound;
  }
  bool descending = g.chance(50);
  auto op = hlo::SortOp::create(g.b, operands, dim, true, [&](OpBuilder &b, Location l, ValueRange a) -> SmallVector<Value> {
    auto direction = descending ? hlo::ComparisonDirection::GT : hlo::ComparisonDirection::LT;
    return {hlo::CompareOp::create(b, l, a[0], a[1], direction)};
  });
  bool ok = g.push(op->getResult(0), x.bound);
  return operands.size() > 1 ? ok && g.push(op->getResult(1), bound) : ok;
}

} // namespace lathe::fuzz
