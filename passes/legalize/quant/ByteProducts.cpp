#include "passes/legalize/quant/ByteProducts.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

Type i32Of(Emitter &c) { return c.b.getI32Type(); }

bool isByte(Value v) { return v && Emitter::elementType(v).isInteger(8); }

/// A zero that is one number, known now.
std::optional<int64_t> knownZero(Emitter &c, const Offset &x) {
  auto t = x.zero ? c.ctx.fold(x.zero) : std::nullopt;
  if (!t || t->numElements() == 0)
    return std::nullopt;
  const int32_t *zeros = t->data<int32_t>();
  return llvm::all_equal(ArrayRef(zeros, t->numElements())) ? std::optional<int64_t>(zeros[0]) : std::nullopt;
}

/// x - zero in integers of this type, the entries of zero along `axis` of x.
Value centred(Emitter &c, const Offset &x, int64_t axis, Type type) {
  Value zero = c.convert(x.zero, type);
  return c.sub(c.convert(x.q, type), x.axis < 0 ? zero : c.broadcastInDim(zero, c.dims(x.q), {axis}));
}

/// The type for both operands around their zeros: 16 bits, which processors multiply two by two, where these are known to do.
Type wordOf(Emitter &c, const Offset &x, const Offset &y) {
  auto fits = [&](const Offset &o) {
    const std::optional<int64_t> zero = knownZero(c, o);
    return isByte(o.q) && zero && *zero >= -128 && *zero <= 255;
  };
  return fits(x) && fits(y) ? c.b.getIntegerType(16) : i32Of(c);
}

/// Bytes without sign as signed ones: what instructions multiply on the right.
Offset asSigned(Emitter &c, const Offset &x) {
  if (!Emitter::isUnsigned(x.q))
    return x;
  Value flipped = c.binary<hlo::XorOp>(x.q, c.likeInt(x.q, 128));
  return {c.make<hlo::BitcastConvertOp>(flipped, c.b.getIntegerType(8)), c.sub(x.zero, c.likeInt(x.zero, 128)), x.axis};
}

/// sums - zero(y) * sums of x - zero(x) * (sums of y - steps * zero(y)), each spread over the result. Sums of one operand may be null,
/// where the other's zero is 0; `sumsOfX` has its dimensions `xAxes` of the result.
Value withoutZeros(Emitter &c, Value sums, const Offset &x, const Offset &y, Value sumsOfX, ArrayRef<int64_t> xAxes, Value sumsOfY,
                   int64_t yAxis, Value steps) {
  const Dims dims = c.dims(sums);
  auto spread = [&](const Offset &o) { return o.axis < 0 ? o.zero : c.broadcastInDim(o.zero, dims, {o.axis}); };
  if (sumsOfX)
    sums = c.sub(sums, c.mul(c.broadcastInDim(sumsOfX, dims, xAxes), spread(y)));
  if (sumsOfY) {
    Value less = sumsOfX ? c.sub(sumsOfY, c.mul(y.zero, steps)) : sumsOfY;
    if (x.axis < 0)
      less = c.mul(less, x.zero);
    less = c.broadcastInDim(less, dims, {yAxis});
    sums = c.sub(sums, x.axis < 0 ? less : c.mul(less, spread(x)));
  }
  return sums;
}

Value sumOf(Emitter &c, Value v, ArrayRef<int64_t> axes) { return c.reduceSum(c.convert(v, i32Of(c)), axes); }

} // namespace

Value offsetProduct(Emitter &c, const Offset &x, const Offset &y, int64_t xContract, int64_t yContract) {
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), {}, {}, {xContract}, {yContract});
  if (!isByte(x.q) || !isByte(y.q))
    return c.make<hlo::DotGeneralOp>(centred(c, x, 1 - xContract, i32Of(c)), centred(c, y, 1 - yContract, i32Of(c)), numbers, i32Of(c));
  const Offset right = asSigned(c, y);
  Value sums = c.make<hlo::DotGeneralOp>(x.q, right.q, numbers, i32Of(c));
  Value sumsOfX = knownZero(c, right) == 0 ? Value() : sumOf(c, x.q, {xContract});
  Value sumsOfY = knownZero(c, x) == 0 ? Value() : sumOf(c, right.q, {yContract});
  return withoutZeros(c, sums, x, right, sumsOfX, {0}, sumsOfY, 1, c.sizeValue(c.dim(x.q, xContract), i32Of(c)));
}

Value padImage(Emitter &c, Value image, Value with, ArrayRef<int64_t> space, hlo::ConvWindow &w) {
  SmallVector<int64_t> low(Emitter::rank(image), 0), high(low), interior(low);
  for (auto [i, axis] : llvm::enumerate(space)) {
    if (!w.padding.empty())
      std::tie(low[axis], high[axis]) = w.padding[i];
    interior[axis] = w.lhsDilation.empty() ? 0 : w.lhsDilation[i] - 1;
  }
  w.padding.clear();
  w.lhsDilation.clear();
  return c.pad(image, with, low, high, interior);
}

namespace {

/// A convolution, and what is known of it.
struct Windows {
  Emitter &c;
  const Offset &image, &filter;
  hlo::ConvWindow window;
  hlo::ConvDimensionNumbersAttr numbers;
  int64_t groups, batchGroups;

  Value convolve(Value x, Value y, const hlo::ConvWindow &w) const {
    return c.make<hlo::ConvolutionOp>(x, y, w, numbers, groups, batchGroups, i32Of(c));
  }

  Value inWords() const {
    Type type = wordOf(c, image, filter);
    Value x = centred(c, image, numbers.getInputBatchDimension(), type);
    return convolve(x, centred(c, filter, numbers.getKernelOutputFeatureDimension(), type), window);
  }

  static bool isPadded(const hlo::ConvWindow &w) {
    return llvm::any_of(w.padding, [](auto p) { return p.first || p.second; }) || llvm::any_of(w.lhsDilation, [](int64_t d) { return d != 1; });
  }

  /// Sums of the image over each window: those of its pixels first.
  Value sumsOfWindows(Value x, const hlo::ConvWindow &w) const {
    const int64_t rank = Emitter::rank(x);
    hlo::ReduceWindow config;
    SmallVector<int64_t> sizes(rank, 1);
    config.strides.assign(rank, 1);
    config.baseDilations.assign(rank, 1);
    config.windowDilations.assign(rank, 1);
    config.padding.assign(rank, {0, 0});
    for (auto [i, axis] : llvm::enumerate(numbers.getInputSpatialDimensions())) {
      sizes[axis] = *constantOf(c.dim(filter.q, numbers.getKernelSpatialDimensions()[i]));
      config.strides[axis] = w.strides.empty() ? 1 : w.strides[i];
      config.windowDilations[axis] = w.rhsDilation.empty() ? 1 : w.rhsDilation[i];
      config.baseDilations[axis] = w.lhsDilation.empty() ? 1 : w.lhsDilation[i];
      if (!w.padding.empty())
        config.padding[axis] = w.padding[i];
    }
    const int64_t feature = numbers.getInputFeatureDimension();
    Value pixels = c.keepDims(sumOf(c, x, {feature}), {feature}, rank);
    Value sums = pixels;
    auto isMoreThanOne = [](int64_t n) { return n != 1; };
    if (llvm::any_of(sizes, isMoreThanOne) || llvm::any_of(w.strides, isMoreThanOne) || isPadded(w))
      sums = c.make<hlo::ReduceWindowOp>(ValueRange(pixels), ValueRange(c.scalarInt(0, i32Of(c))), ArrayRef<int64_t>(sizes), config,
                                         [](OpBuilder &b, Location l, ValueRange args) -> SmallVector<Value> {
                                           return {hlo::AddOp::create(b, l, args[0], args[1])};
                                         });
    SmallVector<AffineExpr> kept;
    for (auto [d, size] : llvm::enumerate(c.dims(sums)))
      if (int64_t(d) != feature)
        kept.push_back(size);
    return c.reshape(sums, kept);
  }

  /// With bytes multiplied; what the window adds is filled with the zero's lower bits.
  Value inBytes() const {
    const Offset right = asSigned(c, filter);
    hlo::ConvWindow w = window;
    Value x = image.q;
    const bool isZero = knownZero(c, image) == 0;
    if (isPadded(window) && !isZero)
      x = padImage(c, x, c.convert(image.zero, Emitter::elementType(x)), numbers.getInputSpatialDimensions(), w);
    Value sums = convolve(x, right.q, w);
    Value sumsOfX, sumsOfY;
    SmallVector<int64_t> xAxes, filterAxes;
    if (knownZero(c, right) != 0) {
      sumsOfX = sumsOfWindows(x, w);
      // dimensions of the image but its channels, in order, as ones of the result
      for (int64_t d = 0; d < Emitter::rank(x); ++d) {
        if (d == numbers.getInputBatchDimension())
          xAxes.push_back(numbers.getOutputBatchDimension());
        else if (d != numbers.getInputFeatureDimension())
          xAxes.push_back(numbers.getOutputSpatialDimensions()[llvm::find(numbers.getInputSpatialDimensions(), d) -
                                                               numbers.getInputSpatialDimensions().begin()]);
      }
    }
    AffineExpr count = c.size(1);
    for (int64_t d = 0; d < Emitter::rank(right.q); ++d)
      if (d != numbers.getKernelOutputFeatureDimension()) {
        filterAxes.push_back(d);
        count = count * c.dim(right.q, d);
      }
    if (!isZero)
      sumsOfY = sumOf(c, right.q, filterAxes);
    return withoutZeros(c, sums, image, right, sumsOfX, xAxes, sumsOfY, numbers.getOutputFeatureDimension(),
                        c.sizeValue(hlo::simplify(count), i32Of(c)));
  }

  /// Whether the zero of a byte is one, so that padding with it is padding with 0.
  Value zeroIsByte() const {
    const bool isUnsigned = Emitter::isUnsigned(image.q);
    return c.logicalAnd(c.compare(Compare::GE, image.zero, c.likeInt(image.zero, isUnsigned ? 0 : -128)),
                        c.compare(Compare::LE, image.zero, c.likeInt(image.zero, isUnsigned ? 255 : 127)));
  }
};

} // namespace

Value offsetConvolution(Emitter &c, const Offset &image, const Offset &filter, const hlo::ConvWindow &window,
                        hlo::ConvDimensionNumbersAttr numbers, int64_t groups, int64_t batchGroups, Padding padding) {
  const Windows w{c, image, filter, window, numbers, groups, batchGroups};
  if (!isByte(image.q) || !isByte(filter.q))
    return w.inWords();
  // sums of the image under a window would be those of a group
  const std::optional<int64_t> zero = knownZero(c, filter);
  if ((groups > 1 || batchGroups > 1) && (!zero || *zero != (Emitter::isUnsigned(filter.q) ? 128 : 0)))
    return w.inWords();
  for (int64_t d : numbers.getKernelSpatialDimensions())
    if (!constantOf(c.dim(filter.q, d)))
      return w.inWords();
  if (padding == Padding::ZeroAsByte || !Windows::isPadded(window) || image.axis >= 0)
    return w.inBytes();
  Value fits = w.zeroIsByte();
  if (auto known = c.ctx.fold(fits))
    return *known->data<uint8_t>() ? w.inBytes() : w.inWords();
  // where only the run knows it, both ways are there
  auto branch = [&](OperationState &state, llvm::function_ref<Value()> make) {
    OpBuilder::InsertionGuard inside(c.b);
    c.b.createBlock(state.addRegion());
    Value v = make();
    hlo::ReturnOp::create(c.b, c.loc, ValueRange(v));
    return v.getType();
  };
  OperationState state(c.loc, hlo::IfOp::getOperationName());
  state.addOperands(fits);
  state.addTypes(branch(state, [&] { return w.inBytes(); }));
  (void)branch(state, [&] { return w.inWords(); });
  return c.b.create(state)->getResult(0);
}

} // namespace lathe::legalize
