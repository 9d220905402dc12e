// Convolutions: CONV_2D, DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV, with the bias that is added to them.
#include "compiler/export/tflite/Raiser.h"
#include "compiler/export/tflite/Window.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {

Value matchBias(Value v, RankedTensorType type) {
  auto broadcast = definedBy<hlo::BroadcastInDimOp>(v);
  const int64_t last = type.getRank() - 1;
  if (!broadcast || last < 0 || broadcast.getBroadcastDimensions() != ArrayRef<int64_t>({last}) || type.isDynamicDim(last) ||
      hlo::tensorType(broadcast.getOperand()).getDimSize(0) != type.getDimSize(last))
    return {};
  return broadcast.getOperand();
}

namespace {

/// A convolution whose images are [batch, space..., channels] and whose filters [space..., in, out].
struct Conv {
  Value image, filter;
  SmallVector<int64_t> strides, dilations, inputDilations;
  hlo::PaddingList padding;
  int64_t groups = 1;
  SmallVector<AffineExpr> result; ///< [batch, space..., channels]
  Type element;                   ///< of the result
};

SmallVector<int64_t> join(int64_t first, ArrayRef<int64_t> middle, ArrayRef<int64_t> rest) {
  SmallVector<int64_t> list = {first};
  list.append(middle.begin(), middle.end());
  list.append(rest.begin(), rest.end());
  return list;
}

/// The convolution in plain layout, with one dimension of space made two.
FailureOr<Conv> plain(hlo::ConvolutionOp op, Raiser &r) {
  auto dims = op.getDimensionNumbers();
  ArrayRef<int64_t> space = dims.getInputSpatialDimensions(), filterSpace = dims.getKernelSpatialDimensions();
  const size_t n = space.size();
  if (n == 0 || n > 3)
    return r.refuse("only with one to three dimensions of space");
  if (op.getBatchGroupCount() != 1)
    return r.refuse("the batch is in groups");
  Conv c;
  c.image = r.transpose(op.getLhs(), join(dims.getInputBatchDimension(), space, {dims.getInputFeatureDimension()}));
  SmallVector<int64_t> order(filterSpace.begin(), filterSpace.end());
  order.append({dims.getKernelInputFeatureDimension(), dims.getKernelOutputFeatureDimension()});
  c.filter = r.transpose(op.getRhs(), order);
  if (auto reversal = op.getWindowReversal()) {
    SmallVector<int64_t> flips;
    for (auto [i, flip] : llvm::enumerate(*reversal))
      if (flip)
        flips.push_back(i);
    c.filter = r.reverse(c.filter, flips);
  }
  if (!c.image || !c.filter)
    return failure();
  c.strides = hlo::getListOr(op.getWindowStrides(), n, 1);
  c.dilations = hlo::getListOr(op.getRhsDilation(), n, 1);
  c.inputDilations = hlo::getListOr(op.getLhsDilation(), n, 1);
  c.padding = hlo::getPadding(op.getPaddingAttr(), n);
  c.groups = op.getFeatureGroupCount();
  RankedTensorType type = hlo::tensorType(op.getResult());
  c.element = type.getElementType();
  for (int64_t d : join(dims.getOutputBatchDimension(), dims.getOutputSpatialDimensions(), {dims.getOutputFeatureDimension()}))
    c.result.push_back(hlo::getDim(type, d));
  if (n == 1) {
    auto widen = [&](Value v, int64_t at) {
      SmallVector<AffineExpr> dims = hlo::getDims(hlo::tensorType(v));
      dims.insert(dims.begin() + at, r.expr(1));
      return r.reshape(v, dims);
    };
    c.image = widen(c.image, 1);
    c.filter = widen(c.filter, 0);
    c.result.insert(c.result.begin() + 1, r.expr(1));
    for (auto *list : {&c.strides, &c.dilations, &c.inputDilations})
      list->insert(list->begin(), 1);
    c.padding.insert(c.padding.begin(), {0, 0});
    if (!c.image || !c.filter)
      return failure();
  }
  if (!hlo::tensorType(c.filter).hasStaticShape())
    return r.refuse("the sizes of the filter must be known");
  return c;
}

Value zeroBias(int64_t channels, Raiser &r) {
  return hlo::makeSplat(r.b, r.loc, 0.0, RankedTensorType::get({channels}, r.b.getF32Type()));
}

Value convolution(Conv &c, Value bias, Raiser &r) {
  RankedTensorType image = hlo::tensorType(c.image), filter = hlo::tensorType(c.filter);
  const size_t n = c.strides.size();
  SmallVector<WindowSide> sides;
  for (size_t i = 0; i < n; ++i)
    sides.push_back({hlo::getDim(image, i + 1), c.result[i + 1], filter.getDimSize(i), c.strides[i], c.dilations[i], c.padding[i].first, c.padding[i].second});
  StringRef padding = paddingOf(sides);
  Value x = c.image;
  if (padding.empty()) {
    SmallVector<int64_t> low(n + 2, 0), high(n + 2, 0);
    for (size_t i = 0; i < n; ++i)
      std::tie(low[i + 1], high[i + 1]) = c.padding[i];
    x = r.pad(x, low, high);
    padding = "VALID";
    if (!x)
      return {};
  }
  RankedTensorType type = hlo::makeType(c.result, c.element);
  const int64_t channels = filter.getShape().back(), perGroup = filter.getDimSize(n), in = image.getShape().back();
  if (n == 3) {
    if (c.groups != 1) {
      (void)r.refuse("CONV_3D has no groups");
      return {};
    }
    return r.make("CONV_3D", {x, c.filter, bias ? bias : zeroBias(channels, r)}, type,
                  {{"padding", r.text(padding)}, {"stride_d", r.number(c.strides[0])}, {"stride_h", r.number(c.strides[1])},
                   {"stride_w", r.number(c.strides[2])}, {"dilation_d", r.number(c.dilations[0])}, {"dilation_h", r.number(c.dilations[1])},
                   {"dilation_w", r.number(c.dilations[2])}});
  }
  SmallVector<Raiser::Option> options = {{"padding", r.text(padding)}, {"stride_h", r.number(c.strides[0])}, {"stride_w", r.number(c.strides[1])},
                                         {"dilation_h", r.number(c.dilations[0])}, {"dilation_w", r.number(c.dilations[1])}};
  if (!bias)
    bias = zeroBias(channels, r);
  if (c.groups == in && perGroup == 1 && c.groups > 1) {
    Value weights = r.reshape(c.filter, {r.expr(1), r.expr(filter.getDimSize(0)), r.expr(filter.getDimSize(1)), r.expr(channels)});
    options.push_back({"depth_multiplier", r.number(channels / in)});
    return r.make("DEPTHWISE_CONV_2D", {x, weights, bias}, type, options);
  }
  return r.make("CONV_2D", {x, r.transpose(c.filter, {3, 0, 1, 2}), bias}, type, options);
}

/// Zeros between the image's elements: what TRANSPOSE_CONV computes, whose filter lies the other way round.
Value transposedConvolution(Conv &c, Raiser &r) {
  RankedTensorType image = hlo::tensorType(c.image), filter = hlo::tensorType(c.filter);
  auto one = [](int64_t v) { return v == 1; };
  if (c.strides.size() != 2 || c.groups != 1 || !llvm::all_of(c.strides, one) || !llvm::all_of(c.dilations, one)) {
    (void)r.refuse("TRANSPOSE_CONV has two dimensions of space, no groups and no dilation");
    return {};
  }
  // all that the image reaches, of which the result is a part
  SmallVector<AffineExpr> full = c.result;
  SmallVector<int64_t> low(4, 0), high(4, 0);
  bool same = true;
  for (int i = 0; i < 2; ++i) {
    int64_t size = filter.getDimSize(i), stride = c.inputDilations[i], from = size - 1 - c.padding[i].first;
    AffineExpr in = hlo::getDim(image, i + 1);
    full[i + 1] = hlo::simplify((in - 1) * stride + size);
    low[i + 1] = -from;
    auto rest = hlo::constantValue(hlo::simplify(c.result[i + 1] + from - full[i + 1]));
    if (!rest) {
      (void)r.refuse("a size that is only known when the model runs");
      return {};
    }
    high[i + 1] = *rest;
    auto out = hlo::constantValue(c.result[i + 1]), input = hlo::constantValue(in);
    same &= out && input && (*out + stride - 1) / stride == *input && std::max<int64_t>((*input - 1) * stride + size - *out, 0) / 2 == from;
  }
  bool whole = llvm::all_of(low, [](int64_t v) { return v == 0; }) && llvm::all_of(high, [](int64_t v) { return v == 0; });
  Value weights = r.transpose(r.reverse(c.filter, {0, 1}), {3, 0, 1, 2});
  ArrayRef<AffineExpr> dims = same && !whole ? c.result : full;
  Value y = r.make("TRANSPOSE_CONV", {r.sizes(dims), weights, c.image}, hlo::makeType(dims, c.element),
                   {{"padding", r.text(same && !whole ? "SAME" : "VALID")}, {"stride_h", r.number(c.inputDilations[0])},
                    {"stride_w", r.number(c.inputDilations[1])}});
  return same || whole ? y : r.pad(y, low, high);
}

LogicalResult convolutionOp(Operation *op, Raiser &r) { return r.replace(op, raiseConvolution(cast<hlo::ConvolutionOp>(op), {}, r)); }

/// A product or convolution that something is added to; a reshape may stand between.
LogicalResult addBias(Operation *op, Raiser &r) {
  RankedTensorType type = hlo::tensorType(op->getResult(0));
  for (unsigned i : {0u, 1u}) {
    Value bias = matchBias(op->getOperand(1 - i), type), core = op->getOperand(i);
    if (!bias || !core.hasOneUse())
      continue;
    if (auto reshape = definedBy<hlo::ReshapeOp>(core)) {
      core = reshape.getOperand();
      RankedTensorType before = hlo::tensorType(core);
      if (!core.hasOneUse() || before.getRank() == 0 || before.getShape().back() != type.getShape().back())
        continue;
    }
    if (auto conv = definedBy<hlo::ConvolutionOp>(core)) {
      if (conv.getDimensionNumbers().getOutputFeatureDimension() != hlo::tensorType(core).getRank() - 1 ||
          llvm::any_of(hlo::getListOr(conv.getLhsDilation(), 1, 1), [](int64_t v) { return v != 1; }))
        continue;
      return r.replace(op, r.reshape(raiseConvolution(conv, bias, r), type));
    }
    if (auto dot = definedBy<hlo::DotGeneralOp>(core))
      if (Value v = raiseDot(dot, bias, r))
        return r.replace(op, r.reshape(v, type));
  }
  return failure();
}

} // namespace

Value raiseConvolution(hlo::ConvolutionOp op, Value bias, Raiser &r) {
  auto conv = plain(op, r);
  if (failed(conv))
    return {};
  bool dilated = llvm::any_of(conv->inputDilations, [](int64_t v) { return v != 1; });
  Value y = dilated ? transposedConvolution(*conv, r) : convolution(*conv, bias, r);
  if (!y)
    return {};
  // back to the layout of the result
  auto dims = op.getDimensionNumbers();
  RankedTensorType type = hlo::tensorType(op.getResult());
  SmallVector<int64_t> places = join(dims.getOutputBatchDimension(), dims.getOutputSpatialDimensions(), {dims.getOutputFeatureDimension()});
  SmallVector<AffineExpr> ordered;
  SmallVector<int64_t> permutation(places.size());
  for (auto [i, place] : llvm::enumerate(places)) {
    ordered.push_back(hlo::getDim(type, place));
    permutation[place] = i;
  }
  return r.transpose(r.reshape(y, ordered), permutation);
}

void addConvHandlers(HandlerTable &t) {
  t["add"].push_back(addBias);
  t["convolution"].push_back(convolutionOp);
}

} // namespace lathe::tflwrite
