// Windows: MAX_POOL_2D, AVERAGE_POOL_2D, CUMSUM.
#include "compiler/export/tflite/Raiser.h"
#include "compiler/export/tflite/Window.h"

#include "dialects/hlo/MaxNumber.h"
#include "dialects/hlo/Running.h"
#include "passes/simplify/Match.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflwrite {

StringRef paddingOf(ArrayRef<WindowSide> sides) {
  bool valid = true, same = true;
  for (const WindowSide &s : sides) {
    const int64_t reach = (s.size - 1) * s.dilation + 1;
    auto in = hlo::constantValue(s.in), out = hlo::constantValue(s.out);
    if (in && out) {
      valid &= s.low == 0 && *in >= reach && *out == (*in - reach) / s.stride + 1;
      int64_t ceil = (*in + s.stride - 1) / s.stride;
      int64_t total = std::max<int64_t>((ceil - 1) * s.stride + reach - *in, 0);
      same &= *out == ceil && s.low == total / 2;
    } else {
      valid &= s.low == 0 && s.high == 0;
      same &= s.stride == 1 && s.low == (reach - 1) / 2 && s.low + s.high == reach - 1;
    }
  }
  return valid ? "VALID" : same ? "SAME" : "";
}

namespace {

enum class Kind { Max, Min, Sum };

std::optional<Kind> kindOf(hlo::ReduceWindowOp op) {
  if (hlo::isMaxNumber(op.getBody()))
    return Kind::Max;
  Operation *combiner = simpleCombiner(op.getBody());
  if (!combiner)
    return std::nullopt;
  auto init = splatNumber(op.getInitValues()[0]);
  const double largest = 3.4028234663852886e38;
  if (isa<hlo::MaxOp>(combiner) && init && *init <= -largest)
    return Kind::Max;
  if (isa<hlo::MinOp>(combiner) && init && *init >= largest)
    return Kind::Min;
  if (isa<hlo::AddOp>(combiner) && init && *init == 0)
    return Kind::Sum;
  return std::nullopt;
}

/// A window over one or two dimensions of a tensor.
struct Pool {
  SmallVector<int64_t> dims;
  SmallVector<WindowSide> sides;
  int64_t count = 1; ///< elements of a window
};

/// What no element is below: of quantized numbers the lowest integer.
Value lowest(Type element, Raiser &r) {
  auto type = dyn_cast<quant::UniformQuantizedType>(element);
  if (!type)
    return r.scalar(-std::numeric_limits<double>::infinity(), element);
  Tensor t = Tensor::allocate(type.getStorageTypeIntegralWidth() == 16 ? DType::Int16 : DType::Int8, {});
  if (t.dtype() == DType::Int16)
    t.data<int16_t>()[0] = int16_t(type.getStorageTypeMin());
  else
    t.data<int8_t>()[0] = int8_t(type.getStorageTypeMin());
  return r.quantized(t, element);
}

/// The tensor as an image whose space is the window's dimensions, and the way back.
Value pooled(Value x, const Pool &pool, RankedTensorType type, Kind kind, bool average, Raiser &r) {
  RankedTensorType from = hlo::tensorType(x);
  const int64_t rank = from.getRank();
  // [batch, height, width, channels] as it lies, where it lies so
  SmallVector<int64_t> before, after, order;
  const int64_t first = pool.dims.front(), last = pool.dims.back();
  bool neighbours = last - first == static_cast<int64_t>(pool.dims.size()) - 1;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(pool.dims, d))
      (neighbours && d > last ? after : before).push_back(d);
  order = before;
  order.append(pool.dims);
  order.append(after);
  auto image = [&](RankedTensorType shape) {
    auto product = [&](ArrayRef<int64_t> dims) {
      SmallVector<AffineExpr> sizes;
      for (int64_t d : dims)
        sizes.push_back(hlo::getDim(shape, d));
      return hlo::numElements(sizes, r.b.getContext());
    };
    SmallVector<AffineExpr> dims = {product(before)};
    if (pool.dims.size() == 1)
      dims.push_back(r.expr(1));
    for (int64_t d : pool.dims)
      dims.push_back(hlo::getDim(shape, d));
    dims.push_back(product(after));
    return dims;
  };
  SmallVector<AffineExpr> inDims = image(from), outDims = image(type);
  if (llvm::is_contained(inDims, AffineExpr()) || llvm::is_contained(outDims, AffineExpr())) {
    (void)r.refuse("a size that is not known");
    return {};
  }
  Value y = r.reshape(r.transpose(x, order), inDims);
  SmallVector<WindowSide> sides = pool.sides;
  if (sides.size() == 1)
    sides.insert(sides.begin(), {r.expr(1), r.expr(1), 1, 1, 1, 0, 0});
  StringRef padding = paddingOf(sides);
  if (kind == Kind::Min)
    y = y ? r.make("NEG", y, hlo::tensorType(y)) : y;
  // an average pool does not count what lies outside
  if (padding.empty() || (kind == Kind::Sum && padding == "SAME")) {
    Value outside = kind == Kind::Sum ? Value() : lowest(from.getElementType(), r);
    y = r.pad(y, {0, sides[0].low, sides[1].low, 0}, {0, sides[0].high, sides[1].high, 0}, outside);
    padding = "VALID";
  }
  RankedTensorType result = hlo::makeType(outDims, from.getElementType());
  y = y ? r.make(kind == Kind::Sum ? "AVERAGE_POOL_2D" : "MAX_POOL_2D", y, result,
                 {{"padding", r.text(padding)}, {"stride_h", r.number(sides[0].stride)}, {"stride_w", r.number(sides[1].stride)},
                  {"filter_height", r.number(sides[0].size)}, {"filter_width", r.number(sides[1].size)}})
        : y;
  if (y && kind == Kind::Sum && !average)
    y = r.binary("MUL", y, r.scalar(double(pool.count), from.getElementType()), result);
  if (y && kind == Kind::Min)
    y = r.make("NEG", y, result);
  SmallVector<AffineExpr> ordered;
  SmallVector<int64_t> back(rank);
  for (auto [i, d] : llvm::enumerate(order)) {
    ordered.push_back(hlo::getDim(type, d));
    back[d] = i;
  }
  return r.transpose(r.reshape(y, ordered), back);
}

} // namespace

Value raisePool(hlo::ReduceWindowOp op, bool average, Raiser &r) {
  auto refuse = [&](const Twine &why) {
    (void)r.refuse(why);
    return Value();
  };
  auto kind = op.getInputs().size() == 1 ? kindOf(op) : std::nullopt;
  if (!kind)
    return refuse("its body is no sum, minimum or maximum");
  Value x = op.getInputs()[0];
  RankedTensorType from = hlo::tensorType(x), to = hlo::tensorType(op.getResult(0));
  const int64_t rank = from.getRank();
  auto one = [](int64_t v) { return v == 1; };
  if (!llvm::all_of(hlo::getListOr(op.getBaseDilations(), rank, 1), one) || !llvm::all_of(hlo::getListOr(op.getWindowDilations(), rank, 1), one))
    return refuse("the window is dilated");
  if (!isReal(from.getElementType()))
    return refuse("windows are of f32 only");
  ArrayRef<int64_t> window = op.getWindowDimensions();
  SmallVector<int64_t> strides = hlo::getListOr(op.getWindowStrides(), rank, 1);
  auto padding = hlo::getPadding(op.getPaddingAttr(), rank);
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    if (window[d] != 1 || strides[d] != 1 || padding[d] != std::make_pair<int64_t, int64_t>(0, 0))
      dims.push_back(d);
  if (dims.empty())
    return x;
  if (dims.size() > 2 && average)
    return refuse("an average over three dimensions");
  // windows over more dimensions are taken two at a time
  SmallVector<AffineExpr> sizes = hlo::getDims(from);
  for (size_t i = 0; i < dims.size() && x; i += 2) {
    Pool pool;
    for (int64_t d : ArrayRef<int64_t>(dims).slice(i, std::min<size_t>(2, dims.size() - i))) {
      pool.dims.push_back(d);
      pool.sides.push_back({sizes[d], hlo::getDim(to, d), window[d], strides[d], 1, padding[d].first, padding[d].second});
      pool.count *= window[d];
      sizes[d] = hlo::getDim(to, d);
    }
    x = pooled(x, pool, hlo::makeType(sizes, from.getElementType()), *kind, average, r);
  }
  return x;
}

namespace {

LogicalResult running(Operation *op, Raiser &r) {
  auto windows = cast<hlo::ReduceWindowOp>(op);
  if (windows.getInputs().size() != 1)
    return failure();
  auto window = hlo::runningWindow(windows);
  Operation *combiner = simpleCombiner(windows.getBody());
  if (!window || !combiner || !isa<hlo::AddOp>(combiner) || !isSplat(windows.getInitValues()[0], 0))
    return failure();
  Value axis = r.reshape(r.numbers({window->dim}), ArrayRef<AffineExpr>());
  return r.replace(op, r.make("CUMSUM", {windows.getInputs()[0], axis}, hlo::tensorType(op->getResult(0)),
                              {{"exclusive", r.flag(window->exclusive)}, {"reverse", r.flag(window->reverse)}}));
}

LogicalResult pool(Operation *op, Raiser &r) { return r.replace(op, raisePool(cast<hlo::ReduceWindowOp>(op), false, r)); }

/// A sum of windows divided by their size.
LogicalResult averagePool(Operation *op, Raiser &r) {
  auto number = splatNumber(op->getOperand(1));
  auto windows = definedBy<hlo::ReduceWindowOp>(op->getOperand(0));
  if (!number || !windows || !windows->hasOneUse() || windows.getInputs().size() != 1 || kindOf(windows) != Kind::Sum ||
      hlo::runningWindow(windows))
    return failure();
  double count = 1;
  for (int64_t size : windows.getWindowDimensions())
    count *= double(size);
  if (*number != (isa<hlo::DivOp>(op) ? count : double(float(1 / count))))
    return failure();
  return r.replace(op, raisePool(windows, true, r));
}

} // namespace

void addWindowHandlers(HandlerTable &t) {
  t["reduce_window"].push_back(running);
  t["reduce_window"].push_back(pool);
  t["multiply"].push_back(averagePool);
  t["divide"].push_back(averagePool);
}

} // namespace lathe::tflwrite
