#include "GraphBuilder.h"

#include "base/Float.h"
#include "dialects/hlo/Constants.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace lathe::fuzz {

const char *kindName(Kind kind) {
  return kind == Kind::Exact ? "exact" : kind == Kind::Elementwise ? "elementwise" : "real";
}

static double randomFloat(Kind kind, std::mt19937_64 &random) {
  double u = static_cast<double>(random() >> 11) / double(1ull << 53);
  if (kind == Kind::Real)
    return 2 * u - 1;
  static const double special[] = {0.0,  -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-45, 3.4e38, -3.4e38,
                                   0.5,  2.0,  1e10, -1e10, 65504, 1e-8, 88.8, -104.0, 3.14159265, 1e300};
  switch (random() % 8) {
  case 0:
    return special[random() % std::size(special)];
  case 1:
    return (u - 0.5) * 200;
  case 2: // any magnitude
    return std::ldexp(2 * u - 1, static_cast<int>(random() % 60) - 30);
  default:
    return 8 * (u - 0.5);
  }
}

void fillRandom(Tensor &tensor, Kind kind, int64_t bound, std::mt19937_64 &random) {
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    int64_t n = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * bound + 1)) - bound;
    double d = kind == Kind::Exact ? static_cast<double>(n) : randomFloat(kind, random);
    switch (tensor.dtype()) {
    case DType::Float32: tensor.data<float>()[i] = static_cast<float>(d); break;
    case DType::Float64: tensor.data<double>()[i] = d; break;
    case DType::Float16: tensor.data<uint16_t>()[i] = floatToHalf(static_cast<float>(d)); break;
    case DType::BFloat16: tensor.data<uint16_t>()[i] = floatToBFloat16(static_cast<float>(d)); break;
    case DType::Bool: tensor.data<uint8_t>()[i] = random() & 1; break;
    case DType::Int8: tensor.data<int8_t>()[i] = static_cast<int8_t>(n); break;
    case DType::UInt8: tensor.data<uint8_t>()[i] = static_cast<uint8_t>(std::abs(n)); break;
    case DType::Int16: tensor.data<int16_t>()[i] = static_cast<int16_t>(n); break;
    case DType::UInt16: tensor.data<uint16_t>()[i] = static_cast<uint16_t>(std::abs(n)); break;
    case DType::Int32: tensor.data<int32_t>()[i] = static_cast<int32_t>(n); break;
    case DType::UInt32: tensor.data<uint32_t>()[i] = static_cast<uint32_t>(std::abs(n)); break;
    case DType::Int64: tensor.data<int64_t>()[i] = n; break;
    case DType::UInt64: tensor.data<uint64_t>()[i] = static_cast<uint64_t>(std::abs(n)); break;
    default: break;
    }
  }
}

GraphBuilder::GraphBuilder(ModuleOp module, StringRef name, uint64_t seed, Kind kind)
    : kind(kind), b(UnknownLoc::get(module.getContext()), module.getContext()), random(seed * 0x9e3779b97f4a7c15ull + 1) {
  b.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(b, name, b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
}

int64_t GraphBuilder::randomDim() {
  static const int64_t dims[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 47, 64, 65, 100, 130};
  if (chance(2))
    return 0;
  return chance(60) ? dims[below(10)] : dims[below(std::size(dims))];
}

SmallVector<int64_t> GraphBuilder::randomShape(int64_t maxRank) {
  SmallVector<int64_t> shape;
  int64_t rank = std::min(below(maxRank + 1), maxRank), limit = chance(5) ? 60000 : 3000, n = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t d = randomDim();
    while (n * d > limit)
      d = (d + 1) / 2;
    n *= std::max<int64_t>(d, 1);
    shape.push_back(d);
  }
  return shape;
}

Type GraphBuilder::randomElement() {
  Type f32 = b.getF32Type();
  if (kind == Kind::Real)
    return chance(85) ? f32 : Type(b.getF64Type());
  switch (below(kind == Kind::Elementwise ? 9 : 16)) {
  case 5: return b.getF64Type();
  case 6: return b.getF16Type();
  case 7: return b.getBF16Type();
  case 8: return b.getI32Type();
  case 9: return b.getI64Type();
  case 10: return b.getIntegerType(8);
  case 11: return b.getIntegerType(16);
  case 12: return b.getIntegerType(8 << below(4), /*isSigned=*/false);
  case 13: return b.getI1Type();
  default: return f32;
  }
}

double GraphBuilder::exactLimit(Type t) const {
  if (auto f = dyn_cast<FloatType>(t))
    return std::ldexp(1.0, static_cast<int>(f.getFPMantissaWidth()));
  return INFINITY;
}

static double boundOfType(Type t) {
  auto i = dyn_cast<IntegerType>(t);
  return i ? std::ldexp(1.0, static_cast<int>(i.getWidth())) : INFINITY;
}

Known GraphBuilder::input(RankedTensorType type) {
  unsigned at = function.getNumArguments();
  (void)function.insertArgument(at, type, b.getDictionaryAttr({}), b.getLoc());
  Tensor t = Tensor::allocate(hlo::toDType(type.getElementType()), {type.getShape().begin(), type.getShape().end()});
  int64_t bound = isFloat(type.getElementType()) ? 4 : chance(50) ? 4 : 120;
  fillRandom(t, kind, bound, random);
  inputs.push_back(t);
  values.push_back({function.getArgument(at), double(bound)});
  return values.back();
}

Known GraphBuilder::constant(RankedTensorType type) {
  Tensor t = Tensor::allocate(hlo::toDType(type.getElementType()), {type.getShape().begin(), type.getShape().end()});
  if (chance(50) && t.numElements() > 0) { // a splat
    Tensor one = Tensor::allocate(t.dtype(), {1});
    fillRandom(one, kind, 3, random);
    size_t size = one.sizeBytes();
    for (int64_t i = 0; i < t.numElements(); ++i)
      memcpy(t.data<char>() + i * size, one.data(), size);
  } else {
    fillRandom(t, kind, 3, random);
  }
  values.push_back({hlo::makeConstant(b, b.getLoc(), t), 3});
  return values.back();
}

Known GraphBuilder::pick() {
  if (values.empty() || chance(4))
    return input(tensor(randomShape(), randomElement()));
  // late values more often, so that chains get long
  int64_t n = static_cast<int64_t>(values.size());
  return values[std::max(below(n), below(n))];
}

std::optional<Known> GraphBuilder::pickIf(llvm::function_ref<bool(const Known &)> ok) {
  for (int i = 0; i < 8; ++i) {
    Known k = pick();
    if (ok(k))
      return k;
  }
  return std::nullopt;
}

Known GraphBuilder::match(RankedTensorType type) {
  if (chance(70))
    for (int i = 0; i < 12 && !values.empty(); ++i) {
      int64_t n = static_cast<int64_t>(values.size());
      Known k = values[std::max(below(n), below(n))];
      if (k.type() == type)
        return k;
      if (k.element() != type.getElementType() || k.rank() > type.getRank())
        continue;
      // dimensions in order, each equal or 1
      SmallVector<int64_t> dims;
      int64_t at = 0;
      for (int64_t d : k.shape()) {
        while (at < type.getRank() && d != type.getDimSize(at) && d != 1)
          ++at;
        if (at == type.getRank())
          break;
        dims.push_back(at++);
      }
      if (static_cast<int64_t>(dims.size()) != k.rank())
        continue;
      Value v = hlo::BroadcastInDimOp::create(b, type, k.value, b.getDenseI64ArrayAttr(dims));
      values.push_back({v, k.bound});
      return values.back();
    }
  return chance(50) ? constant(type) : input(type);
}

Known GraphBuilder::indices(ArrayRef<int64_t> shape, int64_t limit) {
  static const unsigned widths[] = {32, 32, 64, 8};
  Type t = b.getIntegerType(widths[below(4)]);
  RankedTensorType type = tensor(shape, t);
  unsigned at = function.getNumArguments();
  (void)function.insertArgument(at, type, b.getDictionaryAttr({}), b.getLoc());
  Tensor data = Tensor::allocate(hlo::toDType(t), {shape.begin(), shape.end()});
  bool wild = chance(25);
  for (int64_t i = 0; i < data.numElements(); ++i) {
    int64_t v = wild ? between(-2, limit + 2) : below(limit);
    if (wild && chance(5))
      v = chance(50) ? INT64_MAX : INT64_MIN;
    if (t.isInteger(8))
      data.data<int8_t>()[i] = static_cast<int8_t>(v);
    else if (t.isInteger(32))
      data.data<int32_t>()[i] = static_cast<int32_t>(v);
    else
      data.data<int64_t>()[i] = v;
  }
  inputs.push_back(data);
  return {function.getArgument(at), boundOfType(t)};
}

bool GraphBuilder::push(Value value, double bound) {
  if (hlo::isInvalid(value))
    return false;
  auto type = cast<RankedTensorType>(value.getType());
  if (type.hasStaticShape() && type.getNumElements() > 200000)
    return false;
  values.push_back({value, std::min(bound, boundOfType(type.getElementType()))});
  return true;
}

static bool addOp(GraphBuilder &g) {
  int64_t n = g.below(100);
  if (n < 22)
    return addUnary(g);
  if (n < 48)
    return addBinary(g);
  if (n < 54)
    return addTernary(g);
  if (n < 58)
    return addConvert(g);
  if (n < 74)
    return addMovement(g);
  if (n < 77)
    return addUpdate(g);
  if (n < 81)
    return addIndexed(g);
  if (n < 83)
    return addSort(g);
  if (g.kind == Kind::Elementwise)
    return addBinary(g);
  if (n < 90)
    return addReduce(g);
  if (n < 95)
    return addProduct(g);
  return n < 97 ? addWindow(g) : addConvolution(g);
}

Graph generateGraph(ModuleOp module, StringRef name, uint64_t seed, Kind kind) {
  GraphBuilder g(module, name, seed, kind);
  int64_t wanted = g.chance(50) ? g.between(2, 8) : g.between(8, 30), made = 0;
  int64_t starts = g.between(1, 3);
  for (int64_t i = 0; i < starts; ++i)
    g.input(g.tensor(g.randomShape(), g.randomElement()));
  for (int attempts = 0; made < wanted && attempts < 200; ++attempts)
    made += addOp(g);

  // results: the last value, values nobody reads, and some others
  SmallVector<Value> results;
  for (Known &k : g.values) {
    bool last = &k == &g.values.back();
    if ((!isa<BlockArgument>(k.value) || last) && results.size() < 6 && (last || k.value.use_empty() || g.chance(5)) &&
        !llvm::is_contained(results, k.value))
      results.push_back(k.value);
  }
  if (!llvm::is_contained(results, g.values.back().value))
    results.push_back(g.values.back().value);
  func::ReturnOp::create(g.b, results);
  SmallVector<Type> types;
  for (Value v : results)
    types.push_back(v.getType());
  g.function.setFunctionType(g.b.getFunctionType(g.function.getArgumentTypes(), types));
  return {g.function, std::move(g.inputs), g.kind};
}

} // namespace lathe::fuzz
