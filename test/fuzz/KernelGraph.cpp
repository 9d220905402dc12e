#include "KernelGraph.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"

#include "mlir/IR/Location.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace lathe::fuzz {

static const KernelLevel levels[] = {
    {"v2", "x86-64-v2", "", false, 4, false, false},
    {"v3", "x86-64-v3", "", false, 8, false, false},
    {"v4", "x86-64-v4", "", false, 16, false, false},
    {"vnni", "x86-64-v4", "+avx512vnni", false, 16, true, false},
    {"bf16", "x86-64-v4", "+avx512vnni,+avx512bf16", true, 16, true, false},
    {"amx", "x86-64-v4", "+avx512vbmi,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16", false, 16, true, true},
    {"amx-bf16", "x86-64-v4", "+avx512vbmi,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16", true, 16, true, true},
};
ArrayRef<KernelLevel> kernelLevels() { return levels; }

bool KernelCase::fits(const KernelLevel &level, Kind kind) const {
  auto asks = [&](Needs what) { return (needs & what) != 0; };
  return make && !(kind == Kind::Elementwise && !asks(anyValues)) &&
         !(asks(exactKind) && kind != Kind::Exact) && !(asks(realKind) && kind != Kind::Real) &&
         !(asks(plain) && level.bf16) && !(asks(rounded) && !level.bf16) && !(asks(vnni) && !level.vnni) &&
         !(asks(noVnni) && level.vnni) && !(asks(amx) && !level.amx) && !(asks(noAmx) && level.amx);
}

ArrayRef<KernelCase> kernelCases() {
  static const std::vector<KernelCase> all = [] {
    std::vector<KernelCase> cases;
    addProductCases(cases);
    addWindowCases(cases);
    addRowCases(cases);
    return cases;
  }();
  return all;
}

static const char *const sizeNames[] = {"one", "few", "odd", "vectors", "above", "many"};
static const char *const epilogueNames[] = {"none",  "bias",   "relu",    "residual",
                                            "scale", "second", "convert", "quantize"};

KernelGraph::KernelGraph(ModuleOp module, StringRef name, uint64_t seed, Kind kind, const KernelLevel &level)
    : GraphBuilder(module, name, seed, kind), level(level), type(b.getF32Type()), module(module) {
  b.setLoc(NameLoc::get(b.getStringAttr(name))); // by which remarks find the graph
  sizeClass = below(std::size(sizeNames));
  epilogueKind = below(std::size(epilogueNames));
  cell = {"f32", "", sizeNames[sizeClass], epilogueNames[epilogueKind]};
}

Type KernelGraph::typeOf(StringRef name) {
  if (name == "c64")
    return ComplexType::get(b.getF32Type());
  if (name == "bf16")
    return b.getBF16Type();
  unsigned width = 0;
  (void)name.substr(name.find_first_of("0123456789")).getAsInteger(10, width);
  if (name.starts_with("f"))
    return width == 16 ? Type(b.getF16Type()) : width == 32 ? Type(b.getF32Type()) : Type(b.getF64Type());
  return name.starts_with("u") ? b.getIntegerType(width, /*isSigned=*/false) : b.getIntegerType(width);
}

Type KernelGraph::pickType(ArrayRef<StringRef> names) {
  SmallVector<StringRef> open;
  for (StringRef n : names)
    if (kind != Kind::Real || n == "f32" || n == "f64")
      open.push_back(n);
  StringRef name = open.empty() ? names[0] : open[below(open.size())];
  cell[0] = name.str();
  return type = typeOf(name);
}

int64_t KernelGraph::lanesOf(Type t) const {
  const int64_t bits =
      isa<FloatType>(t) ? std::max(32u, t.getIntOrFloatBitWidth()) : std::max(8u, t.getIntOrFloatBitWidth());
  return level.lanes * 32 / bits;
}

int64_t KernelGraph::size() {
  static const int64_t few[] = {2, 3, 4, 5, 7}, odd[] = {9, 13, 15, 17, 31, 33},
                       vectors[] = {8, 16, 32, 48, 64}, above[] = {18, 34, 65, 66, 97},
                       many[] = {100, 127, 128, 160, 257};
  switch (sizeClass) {
  case 0:
    return chance(92) ? 1 : 0;
  case 1:
    return few[below(5)];
  case 2:
    return odd[below(6)];
  case 3:
    return vectors[below(5)];
  case 4:
    return above[below(5)];
  default:
    return many[below(5)];
  }
}

int64_t KernelGraph::size(int64_t least, int64_t most) {
  const int64_t n = size();
  if (n >= least && n <= most)
    return n;
  return n < least ? std::min(most, least - 1 + n) : least + n % (most - least + 1);
}

int64_t KernelGraph::longest(Type t) const {
  return kind == Kind::Real ? 4096 : static_cast<int64_t>(std::min(exactLimit(t) / 16, 1e6));
}

SmallVector<int64_t> KernelGraph::batch(int64_t rank) {
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < rank; ++i)
    sizes.push_back(between(1, 3));
  return sizes;
}

Tensor KernelGraph::filled(ArrayRef<int64_t> shape, Type elem, int64_t bound) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  if (auto complex = dyn_cast<ComplexType>(elem)) {
    Tensor t = Tensor::allocate(hlo::toDType(elem), dims);
    dims.push_back(2);
    Tensor parts = Tensor::allocate(hlo::toDType(complex.getElementType()), dims);
    fillRandom(parts, kind, bound, random);
    std::memcpy(t.data(), parts.data(), t.sizeBytes());
    return t;
  }
  Tensor t = Tensor::allocate(hlo::toDType(elem), dims);
  fillRandom(t, kind, bound, random);
  return t;
}

SmallVector<int64_t> KernelGraph::sizesOf(RankedTensorType t) const {
  SmallVector<int64_t> sizes;
  for (AffineExpr e : hlo::getDims(t))
    sizes.push_back(hlo::evaluate(e, symbols).value_or(0));
  return sizes;
}

/// Numbers of all bits where sums wrap anyway.
static int64_t largest(Type elem) {
  auto type = dyn_cast<IntegerType>(elem);
  return !type || type.getWidth() == 1 ? 4 : int64_t(1) << std::min(40u, type.getWidth() - (type.isUnsigned() ? 0 : 1));
}

Known KernelGraph::fedAs(RankedTensorType t) {
  const int64_t bound = chance(40) ? largest(t.getElementType()) : 4;
  const unsigned at = function.getNumArguments();
  (void)function.insertArgument(at, t, b.getDictionaryAttr({}), b.getLoc());
  inputs.push_back(filled(sizesOf(t), t.getElementType(), bound));
  values.push_back({function.getArgument(at), double(bound)});
  return values.back();
}

Known KernelGraph::fed(ArrayRef<int64_t> shape, ArrayRef<int64_t> dynamic, Type elem) {
  if (!elem)
    elem = type;
  if (dynamic.empty())
    return fedAs(tensor(shape, elem));
  SmallVector<AffineExpr> dims;
  for (int64_t d : shape)
    dims.push_back(hlo::constantExpr(b.getContext(), d));
  for (int64_t d : dynamic) {
    const unsigned symbol = hlo::addInputSymbol(module, "s" + std::to_string(symbols.size()));
    symbols.resize(std::max<size_t>(symbols.size(), symbol + 1), 0);
    symbols[symbol] = shape[d];
    dims[d] = hlo::symbolExpr(b.getContext(), symbol);
  }
  return fedAs(hlo::makeType(dims, elem));
}

Known KernelGraph::fixed(ArrayRef<int64_t> shape, Type elem, int64_t bound) {
  if (!elem)
    elem = type;
  if (!bound)
    bound = chance(40) ? std::max<int64_t>(3, largest(elem)) : 3;
  values.push_back({hlo::makeConstant(b, b.getLoc(), filled(shape, elem, bound)), double(bound)});
  return values.back();
}

Known KernelGraph::right(Right how, ArrayRef<int64_t> shape, Type elem) {
  return how == Right::Constant || (how == Right::Either && chance(60)) ? fixed(shape, elem)
                                                                        : fed(shape, {}, elem);
}

Known KernelGraph::spoilt(ArrayRef<int64_t> shape) {
  Tensor t = filled(shape, type, 3);
  for (int64_t i = 0; i < t.numElements(); i += 2)
    t.data<float>()[i] = i % 4 ? 3e38f : -3e38f;
  values.push_back({hlo::makeConstant(b, b.getLoc(), t), 3});
  return values.back();
}

bool KernelGraph::keep(Value value, double bound) {
  return (kind != Kind::Exact || fits(getElementTypeOrSelf(value.getType()), bound)) && push(value, bound);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

template <typename Op>
static SmallVector<Value> combine(OpBuilder &b, Location l, ValueRange a) {
  return {Op::create(b, l, a[0], a[1])};
}

bool KernelGraph::dot(Known x, Known y, int64_t batch, int64_t leftDim, int64_t rightDim, Type result) {
  SmallVector<int64_t> lead = llvm::to_vector(llvm::seq<int64_t>(0, batch));
  auto numbers = hlo::DotDimensionNumbersAttr::get(b.getContext(), lead, lead, ArrayRef<int64_t>{leftDim},
                                                   ArrayRef<int64_t>{rightDim});
  cell[1] = std::to_string(x.rank());
  if (level.bf16 && std::max(x.bound, y.bound) > 256) // not exact any more
    return false;
  const int64_t steps = sizesOf(x.type())[leftDim];
  return keep(hlo::DotGeneralOp::create(b, x.value, y.value, numbers, result ? result : Type()),
              x.bound * y.bound * double(steps));
}

bool KernelGraph::dot(const DotSpec &s) {
  const int64_t r = s.batch.size();
  SmallVector<int64_t> left(s.batch), second(s.batch);
  left.append(s.leftTurned ? SmallVector<int64_t>{s.k, s.m} : SmallVector<int64_t>{s.m, s.k});
  second.append(s.rightTurned ? SmallVector<int64_t>{s.n, s.k} : SmallVector<int64_t>{s.k, s.n});
  Known x = fed(left, s.dynamic, s.left), y = right(s.right, second, s.rightElem);
  return dot(x, y, r, s.leftTurned ? r : r + 1, s.rightTurned ? r + 1 : r, s.result);
}

bool KernelGraph::conv(Known x, Known f, const ConvSpec &s) {
  if (level.bf16 && std::max(x.bound, f.bound) > 256)
    return false;
  hlo::ConvWindow w;
  const size_t spatial = x.rank() - 2;
  double steps = double(s.ic / s.groups);
  for (size_t i = 0; i < spatial; ++i) {
    w.strides.push_back(s.strides.empty() ? 1 : s.strides[i]);
    w.rhsDilation.push_back(s.dilation.empty() ? 1 : s.dilation[i]);
    w.lhsDilation.push_back(s.inDilation.empty() ? 1 : s.inDilation[i]);
    w.padding.push_back(s.padding.empty() ? std::pair<int64_t, int64_t>{0, 0} : s.padding[i]);
    w.reversal.push_back(false);
    steps *= double(s.taps.empty() ? 1 : s.taps[i]);
  }
  const int64_t n = spatial;
  SmallVector<int64_t> middle = llvm::to_vector(llvm::seq<int64_t>(1, n + 1)),
                       first = llvm::to_vector(llvm::seq<int64_t>(0, n));
  auto numbers =
      hlo::ConvDimensionNumbersAttr::get(b.getContext(), 0, n + 1, middle, n, n + 1, first, 0, n + 1, middle);
  cell[1] = std::to_string(n + 2);
  return keep(hlo::ConvolutionOp::create(b, x.value, f.value, w, numbers, s.groups, s.batchGroups,
                                         s.result ? s.result : Type()),
              x.bound * f.bound * steps);
}

bool KernelGraph::conv(const ConvSpec &s) {
  SmallVector<int64_t> input = {s.images}, filter(s.taps);
  input.append(s.sizes);
  if (filter.empty())
    filter.assign(s.sizes.size(), 1);
  input.push_back(s.ic);
  filter.append({s.ic / s.groups, s.oc});
  Known x = fed(input, s.dynamic, s.left), f = right(s.right, filter, s.rightElem);
  if (!s.border || s.padding.empty())
    return conv(x, f, s);
  SmallVector<int64_t> low = {0}, high = {0};
  for (auto [before, behind] : s.padding) {
    low.push_back(before);
    high.push_back(behind);
  }
  low.push_back(0);
  high.push_back(0);
  Value number = hlo::makeSplat(b, b.getLoc(), *s.border, RankedTensorType::get({}, x.type().getElementType()));
  Value padded = hlo::PadOp::create(b, x.value, number, low, high, SmallVector<int64_t>(low.size(), 0));
  if (!push(padded, std::max(x.bound, double(std::abs(*s.border)))))
    return false;
  ConvSpec rest = s;
  rest.padding.clear();
  return conv(last(), f, rest);
}

bool KernelGraph::pool(ArrayRef<int64_t> shape, ArrayRef<int64_t> window, ArrayRef<int64_t> strides,
                       bool padded, ArrayRef<int64_t> dynamic) {
  Known x = fed(shape, dynamic);
  SmallVector<int64_t> dims = {1};
  hlo::ReduceWindow w;
  w.strides.push_back(1);
  w.padding.push_back({0, 0});
  double taps = 1;
  for (auto [k, s] : llvm::zip(window, strides)) {
    dims.push_back(k);
    w.strides.push_back(s);
    w.padding.push_back({padded ? below(k) : 0, padded ? below(k) : 0});
    taps *= double(k);
  }
  dims.push_back(1);
  w.strides.push_back(1);
  w.padding.push_back({0, 0});
  w.windowDilations.assign(dims.size(), 1);
  cell[1] = std::to_string(shape.size());
  const bool most = kind == Kind::Elementwise || chance(50) || (kind == Kind::Exact && !fits(type, x.bound * taps));
  Value init = most ? hlo::makeLowest(b, b.getLoc(), type) : hlo::makeScalar(b, b.getLoc(), 0, type);
  auto op = hlo::ReduceWindowOp::create(b, ValueRange(x.value), ValueRange(init), dims, w,
                                        most ? combine<hlo::MaxOp> : combine<hlo::AddOp>);
  return keep(op.getResult(0), most ? x.bound : x.bound * taps);
}

bool KernelGraph::reduce(Known x, ArrayRef<int64_t> dims, bool most) {
  double n = 1;
  for (int64_t d : dims)
    n *= double(std::max<int64_t>(sizesOf(x.type())[d], 1));
  Type t = x.element();
  if (isBool(t)) {
    auto any = hlo::ReduceOp::create(b, ValueRange(x.value), ValueRange(hlo::makeScalar(b, b.getLoc(), 0, t)),
                                     dims, combine<hlo::OrOp>);
    return keep(any.getResult(0), 1);
  }
  Value init = most ? hlo::makeLowest(b, b.getLoc(), t) : hlo::makeScalar(b, b.getLoc(), 0, t);
  auto op = hlo::ReduceOp::create(b, ValueRange(x.value), ValueRange(init), dims,
                                  most ? combine<hlo::MaxOp> : combine<hlo::AddOp>);
  return keep(op.getResult(0), most ? x.bound : x.bound * n);
}

bool KernelGraph::rows(Known x, int64_t trailing, bool most) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(x.rank() - trailing, x.rank()));
  auto lead = b.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, x.rank() - trailing)));
  if (!reduce(x, dims, most))
    return false;
  Known r = last();
  Value spread = hlo::BroadcastInDimOp::create(b, x.type(), r.value, lead);
  Value less = hlo::SubtractOp::create(b, x.value, spread);
  if (kind == Kind::Exact || !most)
    return keep(less, x.bound + r.bound);
  Value e = hlo::ExpOp::create(b, less);
  if (!push(e, 1) || !reduce(last(), dims, false))
    return false;
  return push(hlo::DivOp::create(b, e, hlo::BroadcastInDimOp::create(b, x.type(), last().value, lead)), 1);
}

bool KernelGraph::bias(Known x) {
  if (x.rank() == 0)
    return false;
  AffineExpr size = hlo::getDims(x.type()).back();
  Known c = hlo::constantValue(size) ? right(Right::Either, sizesOf(x.type()).back(), x.element())
                                     : fedAs(hlo::makeType(ArrayRef<AffineExpr>{size}, x.element()));
  Value spread = hlo::BroadcastInDimOp::create(b, x.type(), c.value, b.getDenseI64ArrayAttr({x.rank() - 1}));
  return keep(hlo::AddOp::create(b, x.value, spread), x.bound + c.bound);
}

void KernelGraph::epilogue() {
  Known x = last();
  Type t = x.element();
  const Location loc = b.getLoc();
  const bool complex = isa<ComplexType>(t);
  auto splat = [&](double v, Type elem) {
    return hlo::makeSplat(b, loc, v, hlo::withElementType(x.type(), elem));
  };
  if (isBool(t) || (complex && epilogueKind != 3))
    epilogueKind = 0;
  if (epilogueKind == 7 && (kind != Kind::Exact || !fits(b.getF32Type(), x.bound) ||
                            !(t.isF32() || t.isInteger(32)) || x.rank() == 0))
    epilogueKind = 4;
  cell[3] = epilogueNames[epilogueKind];
  switch (epilogueKind) {
  case 1:
    (void)bias(x);
    return;
  case 2:
    if (bias(x))
      x = last();
    (void)push(hlo::MaxOp::create(b, x.value, splat(0, t)), x.bound);
    return;
  case 3: {
    Known y = fedAs(x.type());
    (void)keep(hlo::AddOp::create(b, x.value, y.value), x.bound + y.bound);
    return;
  }
  case 4:
    (void)keep(hlo::MulOp::create(b, x.value, splat(2, t)), 2 * x.bound);
    return;
  case 5: // a result beside the first one
    if (!t.isUnsignedInteger() && push(hlo::NegOp::create(b, x.value), x.bound))
      alsoResult(x);
    return;
  case 6: {
    Type to = t.isF32() ? Type(x.bound <= 256 ? b.getBF16Type() : b.getF64Type()) : Type(b.getF32Type());
    if (kind == Kind::Exact &&
        fits(to, x.bound)) // others would be compared as if their new type had computed them
      (void)push(hlo::ConvertOp::create(b, x.value, to), x.bound);
    return;
  }
  case 7: { // factors of channels, rounded to bytes: halves are ties
    Type f32 = b.getF32Type();
    Value v = t.isF32() ? x.value : Value(hlo::ConvertOp::create(b, x.value, f32));
    AffineExpr size = hlo::getDims(x.type()).back();
    if (std::optional<int64_t> n = hlo::constantValue(size)) {
      Tensor factors = Tensor::allocate(DType::Float32, {*n});
      static const float some[] = {0.5f, 0.25f, 1, 2, 0.125f};
      for (int64_t i = 0; i < *n; ++i)
        factors.data<float>()[i] = some[below(5)];
      Value c = hlo::makeConstant(b, loc, factors);
      v = hlo::MulOp::create(b, v,
                             hlo::BroadcastInDimOp::create(b, hlo::withElementType(x.type(), f32), c,
                                                           b.getDenseI64ArrayAttr({x.rank() - 1})));
    } else {
      v = hlo::MulOp::create(b, v, splat(0.5, f32));
    }
    v = hlo::RoundNearestEvenOp::create(b, v);
    v = hlo::ClampOp::create(b, hlo::makeScalar(b, loc, -128.0, f32), v, hlo::makeScalar(b, loc, 127.0, f32));
    (void)push(hlo::ConvertOp::create(b, v, b.getIntegerType(8)), 128);
    return;
  }
  default:
    return;
  }
}

void KernelGraph::join() {
  Known part = last();
  if (!chance(25) || part.rank() < 2 || !part.type().hasStaticShape() || isa<ComplexType>(part.element()) || isBool(part.element()))
    return;
  SmallVector<int64_t> shape(part.shape());
  shape.back() = between(1, 40);
  Known other = fed(shape, {}, part.element());
  // of a kernel of its own, as arguments are copied
  Value beside = hlo::MaxOp::create(b, other.value, hlo::makeSplat(b, b.getLoc(), 1, other.type()));
  SmallVector<Value> parts = {part.value, beside};
  if (chance(50))
    std::swap(parts[0], parts[1]);
  if (!push(hlo::ConcatenateOp::create(b, parts, part.rank() - 1), std::max(part.bound, other.bound)))
    return;
  cell[3] += "+joined";
  const Known whole = last();
  Type element = type;
  type = part.element();
  const int64_t columns = part.shape().back();
  if (chance(40)) {
    (void)keep(hlo::AddOp::create(b, part.value, fed(part.shape(), {}, type).value), part.bound + double(largest(type)));
  } else if (kind == Kind::Elementwise) {
    // no sums
  } else if (part.rank() == 4 && (isa<FloatType>(type) || type.isInteger(32)) && chance(50)) {
    ConvSpec s;
    s.ic = columns;
    (void)conv(part, right(Right::Either, {1, 1, columns, between(1, 20)}), s);
  } else if (part.rank() == 2 && (isa<FloatType>(type) || type.isInteger(32))) {
    (void)dot(part, right(Right::Either, {columns, between(1, 40)}), 0, 1, 0);
  }
  type = element;
  alsoResult(whole);
}

Graph KernelGraph::finish() {
  SmallVector<Value> results;
  for (Known &k : values)
    if (!isa<BlockArgument>(k.value) && k.value.use_empty() && !k.value.getDefiningOp<hlo::ConstantOp>() &&
        !llvm::is_contained(results, k.value))
      results.push_back(k.value);
  for (Value v : more)
    if (!llvm::is_contained(results, v))
      results.push_back(v);
  if (results.empty())
    results.push_back(values.back().value);
  func::ReturnOp::create(b, results);
  SmallVector<Type> types;
  for (Value v : results)
    types.push_back(v.getType());
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), types));
  return {function, std::move(inputs), kind};
}

} // namespace lathe::fuzz
