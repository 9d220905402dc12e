// Graphs around one kernel: an emitter's op of a size class and a type, and what is computed with its result there. Small spaces
// where few draws see every pair.
#include "GenerateKernels.h"

#include "GraphBuilder.h"

#include "dialects/hlo/Constants.h"

using namespace mlir;

namespace lathe::fuzz {
namespace {

const char *const emitterNames[] = {"product", "batch", "few-columns", "few-rows", "conv",   "depthwise", "grouped", "pool",
                                    "reduce",  "rows",  "norm",        "transpose", "gather", "running",   "loop",    "attention"};
const char *const sizeNames[] = {"one", "few", "odd", "vectors", "above", "many"};
const char *const epilogueNames[] = {"none", "bias", "relu", "residual", "scale", "second"};

struct KernelGraph {
  GraphBuilder &g;
  Type type;
  int64_t sizeClass;
  /// How many numbers a sum may have that stays exact: operands are at most 4 in magnitude, constants 3.
  int64_t longest() const {
    return g.kind == Kind::Real ? 4096 : static_cast<int64_t>(std::min(g.exactLimit(type) / 16, 1e6));
  }
  int64_t size() {
    static const int64_t few[] = {2, 3, 4, 5, 7}, odd[] = {9, 13, 15, 17, 31, 33}, vectors[] = {8, 16, 32, 48, 64},
                         above[] = {18, 34, 65, 66, 97}, many[] = {100, 127, 128, 160, 257};
    switch (sizeClass) {
    case 0: return g.chance(90) ? 1 : 0;
    case 1: return few[g.below(5)];
    case 2: return odd[g.below(6)];
    case 3: return vectors[g.below(5)];
    case 4: return above[g.below(5)];
    default: return many[g.below(5)];
    }
  }
  int64_t sum() { return std::min(size(), longest()); }
  int64_t small() { return g.between(1, 6); }
  int64_t oneOf(std::initializer_list<int64_t> sizes) { return sizes.begin()[g.below(sizes.size())]; }
  Known fed(ArrayRef<int64_t> shape) { return g.input(g.tensor(shape, type)); }
  Known weights(ArrayRef<int64_t> shape) {
    return g.chance(60) ? g.constant(g.tensor(shape, type)) : fed(shape);
  }
  bool product(ArrayRef<int64_t> batch, int64_t m, int64_t n, int64_t k);
  bool convolution(int64_t groups, bool depthwise);
  bool pool();
  bool reduce();
  bool rows(bool norm);
  bool transpose();
  bool gather();
  bool running();
  bool attention();
  bool emit(int64_t emitter);
  void epilogue(int64_t which);
  Known last() const { return g.values.back(); }
};

template <typename Op>
SmallVector<Value> combine(OpBuilder &b, Location l, ValueRange a) {
  return {Op::create(b, l, a[0], a[1])};
}

bool KernelGraph::product(ArrayRef<int64_t> batch, int64_t m, int64_t n, int64_t k) {
  const int64_t r = batch.size();
  SmallVector<int64_t> lead = llvm::to_vector(llvm::seq<int64_t>(0, r)), left(batch), right(batch);
  const bool ta = g.chance(30), tb = g.chance(30);
  left.append(ta ? SmallVector<int64_t>{k, m} : SmallVector<int64_t>{m, k});
  right.append(tb ? SmallVector<int64_t>{n, k} : SmallVector<int64_t>{k, n});
  Known x = fed(left), y = weights(right);
  auto numbers = hlo::DotDimensionNumbersAttr::get(g.b.getContext(), lead, lead, ArrayRef<int64_t>{ta ? r : r + 1}, ArrayRef<int64_t>{tb ? r + 1 : r});
  return g.push(hlo::DotGeneralOp::create(g.b, x.value, y.value, numbers), x.bound * y.bound * double(k));
}

bool KernelGraph::convolution(int64_t groups, bool depthwise) {
  const int64_t k = oneOf({1, 3, g.between(2, 5)}), in = depthwise ? groups : std::max<int64_t>(1, std::min(size(), longest() / (k * k)));
  const int64_t channels = depthwise ? groups : in * groups, out = groups * (depthwise ? g.between(1, 2) : std::max<int64_t>(1, size() / groups));
  hlo::ConvWindow w;
  for (int i = 0; i < 2; ++i) {
    w.strides.push_back(g.chance(70) ? 1 : 2);
    w.rhsDilation.push_back(g.chance(85) ? 1 : 2);
    w.lhsDilation.push_back(g.chance(90) ? 1 : 2);
    w.padding.push_back({g.below(k), g.below(k)});
    w.reversal.push_back(false);
  }
  const int64_t reach = (k - 1) * 2 + 1;
  Known x = fed({g.between(1, 2), g.between(reach, reach + 9), g.between(reach, reach + 9), channels});
  Known f = weights({k, k, channels / groups, out});
  auto numbers = hlo::ConvDimensionNumbersAttr::get(g.b.getContext(), 0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2});
  return g.push(hlo::ConvolutionOp::create(g.b, x.value, f.value, w, numbers, groups, 1), x.bound * f.bound * double(k * k * in));
}

bool KernelGraph::pool() {
  const int64_t k = g.between(2, 4);
  Known x = fed({g.between(1, 2), g.between(k, 12), g.between(k, 12), size()});
  hlo::ReduceWindow w;
  for (int64_t s : {int64_t(1), g.between(1, 3), g.between(1, 3), int64_t(1)})
    w.strides.push_back(s);
  w.windowDilations.assign(4, 1);
  w.padding = {{0, 0}, {g.below(k), g.below(k)}, {g.below(k), g.below(k)}, {0, 0}};
  const bool most = g.chance(50);
  Value init = most ? hlo::makeLowest(g.b, g.b.getLoc(), type) : hlo::makeScalar(g.b, g.b.getLoc(), 0, type);
  auto op = hlo::ReduceWindowOp::create(g.b, ValueRange(x.value), ValueRange(init), {1, k, k, 1}, w,
                                        most ? combine<hlo::MaxOp> : combine<hlo::AddOp>);
  return g.push(op.getResult(0), most ? x.bound : x.bound * double(k * k));
}

bool KernelGraph::reduce() {
  // the reduced dimension first, in the middle or last
  SmallVector<int64_t> shape = {small(), size(), small()};
  const int64_t dim = g.below(3);
  shape[dim] = sum();
  Known x = fed(shape);
  const bool most = g.chance(30);
  Value init = most ? hlo::makeLowest(g.b, g.b.getLoc(), type) : hlo::makeScalar(g.b, g.b.getLoc(), 0, type);
  auto op = hlo::ReduceOp::create(g.b, ValueRange(x.value), ValueRange(init), {dim}, most ? combine<hlo::MaxOp> : combine<hlo::AddOp>);
  return g.push(op.getResult(0), most ? x.bound : x.bound * double(shape[dim]));
}

/// A reduction along rows and its result beside each number: the maximum taken off, or the sum multiplied.
bool KernelGraph::rows(bool norm) {
  const int64_t length = norm ? sum() : size();
  Known x = fed({oneOf({1, 40, small()}), length});
  Value init = norm ? hlo::makeScalar(g.b, g.b.getLoc(), 0, type) : hlo::makeLowest(g.b, g.b.getLoc(), type);
  auto r = hlo::ReduceOp::create(g.b, ValueRange(x.value), ValueRange(init), {1}, norm ? combine<hlo::AddOp> : combine<hlo::MaxOp>);
  Value spread = hlo::BroadcastInDimOp::create(g.b, x.type(), r.getResult(0), g.b.getDenseI64ArrayAttr({0}));
  const double bound = x.bound * (norm ? double(std::max<int64_t>(length, 1)) : 1) + x.bound;
  return length > 0 && g.fits(type, bound) && g.push(hlo::SubtractOp::create(g.b, x.value, spread), bound);
}

bool KernelGraph::transpose() {
  SmallVector<int64_t> shape = {small(), size(), size()}, order = {0, 1, 2};
  std::shuffle(order.begin(), order.end(), g.random);
  Known x = fed(shape);
  return g.push(hlo::TransposeOp::create(g.b, x.value, order), x.bound);
}

bool KernelGraph::gather() {
  Known x = fed({size() + 1, size()});
  Known i = g.indices({small(), small(), 1}, x.shape()[0]);
  auto numbers = hlo::GatherDimensionNumbersAttr::get(g.b.getContext(), {2}, {0}, {}, {}, {0}, 2);
  return g.push(hlo::GatherOp::create(g.b, x.value, i.value, numbers, g.b.getDenseI64ArrayAttr({1, x.shape()[1]})), x.bound);
}

/// A sum over all elements before each.
bool KernelGraph::running() {
  const int64_t n = std::max<int64_t>(sum(), 1), dim = g.below(2);
  SmallVector<int64_t> shape = {small(), small()}, window = {1, 1};
  shape[dim] = window[dim] = n;
  Known x = fed(shape);
  hlo::ReduceWindow w;
  w.strides.assign(2, 1);
  w.windowDilations.assign(2, 1);
  w.padding.assign(2, {0, 0});
  w.padding[dim] = {n - 1, 0};
  Value zero = hlo::makeScalar(g.b, g.b.getLoc(), 0, type);
  auto op = hlo::ReduceWindowOp::create(g.b, ValueRange(x.value), ValueRange(zero), window, w, combine<hlo::AddOp>);
  return g.push(op.getResult(0), x.bound * double(n));
}

/// Two products with rows between them.
bool KernelGraph::attention() {
  const int64_t heads = g.between(1, 3), q = small(), d = g.between(1, 8);
  const int64_t limit = std::max<int64_t>(1, longest() / (d * 64)), n = std::max<int64_t>(1, std::min(size(), limit));
  if (!product({heads}, q, n, d))
    return false;
  Known scores = last();
  Value init = hlo::makeLowest(g.b, g.b.getLoc(), type);
  auto r = hlo::ReduceOp::create(g.b, ValueRange(scores.value), ValueRange(init), {scores.rank() - 1}, combine<hlo::MaxOp>);
  Value spread = hlo::BroadcastInDimOp::create(g.b, scores.type(), r.getResult(0), g.b.getDenseI64ArrayAttr({0, 1}));
  Value less = hlo::SubtractOp::create(g.b, scores.value, spread);
  Known values = fed({heads, n, small()});
  const double bound = 2 * scores.bound * values.bound * double(n);
  auto numbers = hlo::DotDimensionNumbersAttr::get(g.b.getContext(), {0}, {0}, {2}, {1});
  return g.fits(type, bound) && g.push(hlo::DotGeneralOp::create(g.b, less, values.value, numbers), bound);
}

bool KernelGraph::emit(int64_t emitter) {
  switch (emitter) {
  case 0: return product({}, size(), size(), sum());
  case 1: return product({small()}, size(), small(), sum());
  case 2: return product({}, size(), g.between(1, 8), sum());
  case 3: return product({}, g.between(1, 4), size(), sum());
  case 4: return convolution(1, false);
  case 5: return convolution(std::max<int64_t>(size(), 1), true);
  case 6: return convolution(2, false);
  case 7: return pool();
  case 8: return reduce();
  case 9: return rows(false);
  case 10: return rows(true);
  case 11: return transpose();
  case 12: return gather();
  case 13: return running();
  case 14: return fed({size(), size()}), true;
  default: return attention();
  }
}

void KernelGraph::epilogue(int64_t which) {
  Known x = last();
  auto with = [&](auto make, Known y, double bound) {
    if (g.fits(type, bound))
      g.push(make(x.value, y.value), bound);
  };
  auto add = [&](Value a, Value c) -> Value { return hlo::AddOp::create(g.b, a, c); };
  switch (which) {
  case 1: // along the last dimension
  case 2: {
    if (x.rank() == 0)
      return;
    Known bias = weights({x.shape().back()});
    Value spread = hlo::BroadcastInDimOp::create(g.b, x.type(), bias.value, g.b.getDenseI64ArrayAttr({x.rank() - 1}));
    with(add, {spread, bias.bound}, x.bound + bias.bound);
    if (which == 2) {
      Known y = last();
      Value zero = hlo::makeScalar(g.b, g.b.getLoc(), 0, type);
      Value zeros = hlo::BroadcastInDimOp::create(g.b, y.type(), zero, g.b.getDenseI64ArrayAttr({}));
      g.push(hlo::MaxOp::create(g.b, y.value, zeros), y.bound);
    }
    return;
  }
  case 3: {
    Known y = fed(x.shape());
    return with(add, y, x.bound + y.bound);
  }
  case 4: {
    Known y = g.constant(x.type());
    return with([&](Value a, Value c) -> Value { return hlo::MulOp::create(g.b, a, c); }, y, x.bound * y.bound);
  }
  case 5: // a result beside the first one
    if (!type.isUnsignedInteger())
      g.push(hlo::NegOp::create(g.b, x.value), x.bound);
    return;
  default:
    return;
  }
}

std::string nameOf(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

} // namespace

bool kernelTakes(llvm::StringRef emitter, llvm::StringRef type) {
  const bool isFloat = type.starts_with("f") || type.starts_with("b");
  if (llvm::is_contained({"conv", "depthwise", "grouped"}, emitter))
    return isFloat;
  if (llvm::is_contained({"product", "batch", "few-columns", "few-rows", "attention"}, emitter))
    return isFloat || type == "i32";
  return true;
}

Graph generateKernelGraph(ModuleOp module, StringRef name, uint64_t seed, Kind kind, KernelCell &cell) {
  GraphBuilder g(module, name, seed, kind);
  const int64_t emitter = g.below(std::size(emitterNames)), size = g.below(std::size(sizeNames)), after = g.below(std::size(epilogueNames));
  KernelGraph k{g, g.randomElement(), size};
  while (g.isBool(k.type) || !kernelTakes(emitterNames[emitter], nameOf(k.type)))
    k.type = g.randomElement();
  bool made = false;
  for (int attempt = 0; attempt < 8 && !made; ++attempt)
    made = k.emit(emitter);
  if (made)
    k.epilogue(after);
  cell = {made ? emitterNames[emitter] : "", nameOf(k.type), sizeNames[size], epilogueNames[after]};
  return finishGraph(g);
}

} // namespace lathe::fuzz
