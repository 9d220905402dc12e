// Windows of convolutions and pooling.
#include "passes/legalize/nn/Window.h"

#include "passes/legalize/SizeReader.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {

FailureOr<DataFormat> DataFormat::parse(Emitter &c, StringRef format, int64_t rank) {
  DataFormat f;
  if (format.empty())
    format = rank == 5 ? "NDHWC" : "NHWC";
  bool channelsLast = format.ends_with("C") || format == "CHANNELS_LAST";
  if (format != "NHWC" && format != "NCHW" && format != "NDHWC" && format != "NCDHW" && format != "CHANNELS_LAST" &&
      format != "CHANNELS_FIRST")
    return c.error("data format '" + format + "' is not supported");
  if (!format.starts_with("CHANNELS") && int64_t(format.size()) != rank)
    return c.error("expected an input of rank " + Twine(format.size()) + " for data format " + format +
                   ", found rank " + Twine(rank));
  if (rank < 3)
    return c.error("expected an input of rank 3 at least, found rank " + Twine(rank));
  f.feature = channelsLast ? rank - 1 : 1;
  for (int64_t i = channelsLast ? 1 : 2; i < (channelsLast ? rank - 1 : rank); ++i)
    f.spatial.push_back(i);
  return f;
}

LogicalResult checkWindow(Emitter &c, ArrayRef<WindowDim> dims) {
  constexpr int64_t limit = int64_t(1) << 24;
  for (const WindowDim &d : dims) {
    if (d.stride <= 0 || d.dilation <= 0 || d.size < 0 || d.stride > limit || d.dilation > limit || d.size > limit)
      return c.error("window sizes, strides and dilations must be positive (and below 2^24)");
    if (d.low < -limit || d.high < -limit || d.low > limit || d.high > limit)
      return c.error("padding is out of range");
  }
  return success();
}

/// What SAME adds to a dimension of open size n: the last window begins (n - 1) mod stride before its end.
static AffineExpr openPadding(Emitter &c, const WindowDim &d) {
  AffineExpr total = hlo::simplify(d.effective() - 1 - (d.input - 1) % d.stride);
  if (d.effective() >= d.stride)
    return total;
  Type i64 = c.b.getI64Type();
  auto sizes = readSizes(c.ctx, c.loc, c.nodeName, c.max(c.sizeValue(total, i64), c.scalarInt(0, i64)));
  return sizes ? (*sizes)[0] : AffineExpr();
}

Value padOpen(NodeContext &c, Value x, Value with, ArrayRef<int64_t> spatial, ArrayRef<WindowDim> dims) {
  for (auto [axis, d] : llvm::zip(spatial, dims))
    if (d.openLow)
      x = padBySizes(c, x, with, axis, {{d.openLow, d.openHigh}});
  return x;
}

LogicalResult computePadding(Emitter &c, const DataFormat &format, MutableArrayRef<WindowDim> dims,
                             StringRef padding, ArrayRef<int64_t> explicitPaddings, bool mayBeOpen) {
  if (failed(checkWindow(c, dims)))
    return failure();
  if (padding == "EXPLICIT") {
    if (explicitPaddings.size() != size_t(2 * format.rank()))
      return c.error("expected " + Twine(2 * format.rank()) + " explicit paddings, found " +
                     Twine(explicitPaddings.size()));
    for (auto [i, d] : llvm::enumerate(dims)) {
      d.low = explicitPaddings[2 * format.spatial[i]];
      d.high = explicitPaddings[2 * format.spatial[i] + 1];
      if (d.low < 0 || d.high < 0)
        return c.error("explicit paddings must not be negative");
    }
    return checkWindow(c, dims);
  }
  if (padding == "VALID") {
    for (auto [i, d] : llvm::enumerate(dims))
      if (auto n = constantOf(d.input); n && *n > 0 && *n - d.effective() + d.stride < 0)
        return c.error("spatial size " + Twine(*n) + " is smaller than the window " + Twine(d.effective()));
    return success();
  }
  if (padding != "SAME")
    return c.error("padding '" + padding + "' is not supported");
  for (WindowDim &d : dims) {
    int64_t total;
    if (auto n = constantOf(d.input)) {
      int64_t out = (*n + d.stride - 1) / d.stride;
      total = std::max<int64_t>((out - 1) * d.stride + d.effective() - *n, 0);
    } else if (d.stride == 1) {
      total = d.effective() - 1;
    } else if (d.input.isMultipleOf(d.stride)) {
      total = std::max<int64_t>(d.effective() - d.stride, 0);
    } else if (AffineExpr open = mayBeOpen ? openPadding(c, d) : AffineExpr()) {
      d.openLow = hlo::simplify(open.floorDiv(2));
      d.openHigh = hlo::simplify(open - d.openLow);
      continue;
    } else {
      return c.error("SAME padding with stride " + Twine(d.stride) +
                     " needs a spatial size known at compile time");
    }
    d.low = total / 2;
    d.high = total - d.low;
  }
  return success();
}

} // namespace lathe::legalize
