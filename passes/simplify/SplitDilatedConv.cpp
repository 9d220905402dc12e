//===- SplitDilatedConv.cpp - transposed convolutions without their zeros ---===//
//
// Before: a convolution whose input has s - 1 zeros between its pixels. After:
// dense convolutions of the input itself. Output pixel s * q + r meets only the
// taps k with k = (low - r) mod s, so each phase r has a filter of its own.
//
// The phases are one convolution with s times the output channels, or one each
// where the taps they do not share would cost more than the wider panels save.
// A bias and an activation behind them are done in each, before they are joined.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSPLITDILATEDCONV
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

/// One phase of one dimension: tap `first + s * j` reads input pixel q + j + `shift` for output pixel s * q + r.
struct Phase {
  int64_t first, taps, shift;
};

/// One spatial dimension; one phase where the input is not dilated.
struct Dimension {
  int64_t dilation, taps, input, output;
  SmallVector<Phase> phases;
  int64_t count() const { return llvm::divideCeil(output, dilation); } // output pixels of a phase
  int64_t firstShift() const {
    return llvm::min_element(phases, [](auto &a, auto &b) { return a.shift < b.shift; })->shift;
  }
  /// Taps of a filter that covers every phase.
  int64_t sharedTaps() const {
    int64_t end = firstShift();
    for (const Phase &p : phases)
      end = std::max(end, p.shift + p.taps);
    return end - firstShift();
  }
};

class Splitter {
public:
  explicit Splitter(hlo::ConvolutionOp op) : op(op), b(op), loc(op.getLoc()) {}
  bool run();

private:
  bool read();
  bool sharesOneFilter();
  Value filterOf(ArrayRef<int64_t> phase, bool shared);
  Value convolve(Value filter, ArrayRef<int64_t> shifts, ArrayRef<int64_t> taps);
  Value convolveTogether();
  Value convolveApart();
  void findFollowers();
  Value follow(Value y);
  Value slice(Value v, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
    return hlo::SliceOp::create(b, loc, v, starts, limits, strides);
  }
  /// Calls `fn` with each combination of phases, the last dimension's fastest.
  template <typename Fn>
  void forEachPhase(Fn fn) const {
    SmallVector<int64_t> at(dims.size(), 0);
    for (;;) {
      fn(at);
      size_t i = dims.size();
      while (i && ++at[i - 1] == static_cast<int64_t>(dims[i - 1].phases.size()))
        at[--i] = 0;
      if (!i)
        return;
    }
  }
  int64_t phaseCount() const {
    int64_t n = 1;
    for (const Dimension &d : dims)
      n *= d.phases.size();
    return n;
  }

  hlo::ConvolutionOp op;
  OpBuilder b;
  Location loc;
  RankedTensorType input, filter, result;
  SmallVector<Dimension> dims;
  int64_t outputs = 0; // channels
  SmallVector<Operation *> followers; // elementwise, each the only reader of what is before it
};

bool Splitter::read() {
  input = cast<RankedTensorType>(op.getLhs().getType());
  filter = cast<RankedTensorType>(op.getRhs().getType());
  result = cast<RankedTensorType>(op.getType());
  size_t spatial = input.getRank() - 2;
  SmallVector<int64_t> dilation = hlo::getListOr(op.getLhsDilation(), spatial, 1);
  if (!spatial || llvm::all_of(dilation, [](int64_t v) { return v == 1; }) || op.getBatchGroupCount() != 1 ||
      !filter.hasStaticShape() || filter.getNumElements() == 0 || !hlo::hasKnownDims(input) || !hlo::hasKnownDims(result))
    return false;
  if (op.getDimensionNumbers() != plainConvDimensions(op.getContext(), input.getRank()) || op.getWindowReversal())
    return false;
  SmallVector<int64_t> strides = hlo::getListOr(op.getWindowStrides(), spatial, 1),
                       rhsDilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
  hlo::PaddingList padding = hlo::getPadding(op.getPaddingAttr(), spatial);
  for (size_t i = 0; i < spatial; ++i) {
    if (strides[i] != 1 || rhsDilation[i] != 1 || input.isDynamicDim(i + 1) || result.isDynamicDim(i + 1))
      return false;
    Dimension dim{dilation[i], filter.getDimSize(i), input.getDimSize(i + 1), result.getDimSize(i + 1), {}};
    if (dim.input == 0 || dim.output == 0)
      return false;
    int64_t low = padding[i].first;
    for (int64_t r = 0; r < dim.dilation; ++r) {
      int64_t first = (((low - r) % dim.dilation) + dim.dilation) % dim.dilation;
      int64_t taps = std::max<int64_t>(0, (dim.taps - first + dim.dilation - 1) / dim.dilation);
      dim.phases.push_back({first, taps, (r + first - low) / dim.dilation});
    }
    dims.push_back(std::move(dim));
  }
  outputs = filter.getShape().back();
  return true;
}

/// Compares multiplications, panels of 16 channels filled up.
bool Splitter::sharesOneFilter() {
  if (op.getFeatureGroupCount() != 1)
    return false;
  int64_t shared = llvm::divideCeil(outputs * phaseCount(), 16), apart = llvm::divideCeil(outputs, 16);
  for (const Dimension &d : dims) {
    int64_t taps = 0;
    for (const Phase &p : d.phases)
      taps += p.taps;
    shared *= d.sharedTaps();
    apart *= taps;
  }
  return shared <= apart;
}

/// The taps of a phase, null without any; with zeros to where the shared filter begins and ends.
Value Splitter::filterOf(ArrayRef<int64_t> phase, bool shared) {
  SmallVector<int64_t> starts(filter.getRank(), 0), limits(filter.getShape()), strides(filter.getRank(), 1);
  SmallVector<int64_t> low(filter.getRank(), 0), high(filter.getRank(), 0);
  bool none = false;
  for (auto [i, d] : llvm::enumerate(dims)) {
    const Phase &p = d.phases[phase[i]];
    none |= p.taps == 0;
    starts[i] = std::min(p.first, d.taps);
    strides[i] = d.dilation;
    low[i] = p.shift - d.firstShift();
    high[i] = d.sharedTaps() - low[i] - p.taps;
  }
  if (none) {
    if (!shared)
      return {};
    SmallVector<int64_t> shape(filter.getShape());
    for (auto [i, d] : llvm::enumerate(dims))
      shape[i] = d.sharedTaps();
    return hlo::makeSplat(b, loc, 0.0, RankedTensorType::get(shape, filter.getElementType()));
  }
  Value taps = slice(op.getRhs(), starts, limits, strides);
  if (!shared || (llvm::all_of(low, [](int64_t v) { return v == 0; }) && llvm::all_of(high, [](int64_t v) { return v == 0; })))
    return taps;
  Value zero = hlo::makeScalar(b, loc, 0, filter.getElementType());
  return hlo::PadOp::create(b, loc, taps, zero, low, high, SmallVector<int64_t>(filter.getRank(), 0));
}

/// All output pixels of a phase.
Value Splitter::convolve(Value w, ArrayRef<int64_t> shifts, ArrayRef<int64_t> taps) {
  hlo::ConvWindow window;
  for (auto [i, d] : llvm::enumerate(dims))
    window.padding.push_back({-shifts[i], d.count() + taps[i] - 1 - d.input + shifts[i]});
  auto made = hlo::ConvolutionOp::create(b, loc, op.getLhs(), w, window, op.getDimensionNumbers(),
                                         op.getFeatureGroupCount(), 1, result.getElementType());
  made.setPrecisionConfigAttr(op.getPrecisionConfigAttr());
  return made;
}

/// [batch, q..., phases * channels] to [batch, q0, r0, q1, r1 ..., channels].
Value Splitter::convolveTogether() {
  SmallVector<Value> filters;
  forEachPhase([&](ArrayRef<int64_t> phase) { filters.push_back(filterOf(phase, true)); });
  Value w = filters.size() == 1 ? filters[0] : hlo::ConcatenateOp::create(b, loc, filters, filter.getRank() - 1).getResult();
  SmallVector<int64_t> shifts, taps;
  for (const Dimension &d : dims) {
    shifts.push_back(d.firstShift());
    taps.push_back(d.sharedTaps());
  }
  Value y = convolve(w, shifts, taps);
  MLIRContext *context = b.getContext();
  int64_t spatial = dims.size();
  SmallVector<AffineExpr> split = {hlo::getDim(result, 0)};
  for (const Dimension &d : dims)
    split.push_back(hlo::constantExpr(context, d.count()));
  for (const Dimension &d : dims)
    split.push_back(hlo::constantExpr(context, d.phases.size()));
  split.push_back(hlo::constantExpr(context, outputs));
  y = hlo::ReshapeOp::create(b, loc, y, split);
  SmallVector<int64_t> order = {0};
  for (int64_t i = 0; i < spatial; ++i)
    order.append({1 + i, 1 + spatial + i});
  order.push_back(1 + 2 * spatial);
  SmallVector<AffineExpr> sizes;
  for (int64_t i : order)
    sizes.push_back(split[i]);
  return hlo::TransposeOp::create(b, loc, hlo::makeType(sizes, result.getElementType()), y, b.getDenseI64ArrayAttr(order));
}

/// Elementwise ops behind the convolution that take nothing else than constants, the same for all pixels.
void Splitter::findFollowers() {
  const int64_t channels = result.getRank() - 1;
  for (Value v = op.getResult(); v.hasOneUse(); v = followers.back()->getResult(0)) {
    Operation *user = *v.user_begin();
    auto fits = [&](Value o) {
      if (o == v)
        return true;
      std::optional<ChannelConstant> constant = matchChannelConstant(o);
      return constant && sameSizes(o.getType(), v.getType()) &&
             (constant->dim < 0 || (constant->dim == channels && cast<RankedTensorType>(constant->value.getType()).getRank() == 1));
    };
    if (!user->hasTrait<hlo::HloElementwise>() || user->getNumResults() != 1 || user->getBlock() != op->getBlock() ||
        !sameSizes(user->getResult(0).getType(), v.getType()) || !llvm::all_of(user->getOperands(), fits))
      return;
    followers.push_back(user);
  }
}

/// What they compute from the pixels of a phase.
Value Splitter::follow(Value y) {
  Value before = op.getResult();
  for (Operation *follower : followers) {
    auto shape = cast<RankedTensorType>(y.getType());
    SmallVector<Value> operands;
    for (Value o : follower->getOperands()) {
      RankedTensorType type = shapeLike(shape, cast<RankedTensorType>(o.getType()).getElementType());
      if (o == before) {
        operands.push_back(y);
        continue;
      }
      ChannelConstant constant = *matchChannelConstant(o);
      if (constant.dim < 0)
        operands.push_back(makeSplatLike(b, loc, type, splatElement(constant.value)));
      else
        operands.push_back(hlo::BroadcastInDimOp::create(b, loc, type, constant.value, ArrayRef<int64_t>{constant.dim}));
    }
    before = follower->getResult(0);
    y = rebuild(b, follower, operands, shape)->getResult(0);
  }
  return y;
}

/// The same from a convolution for each phase, and from what follows it.
Value Splitter::convolveApart() {
  findFollowers();
  if (!followers.empty()) // their constants are there
    b.setInsertionPoint(followers.back());
  MLIRContext *context = b.getContext();
  AffineExpr one = hlo::constantExpr(context, 1);
  SmallVector<AffineExpr> sizes = {hlo::getDim(result, 0)};
  for (const Dimension &d : dims)
    sizes.append({hlo::constantExpr(context, d.count()), one});
  sizes.push_back(hlo::constantExpr(context, outputs));
  SmallVector<Value> parts;
  forEachPhase([&](ArrayRef<int64_t> phase) {
    Value w = filterOf(phase, false);
    if (!w) {
      SmallVector<AffineExpr> pixels = hlo::getDims(result);
      for (auto [i, d] : llvm::enumerate(dims))
        pixels[1 + i] = hlo::constantExpr(context, d.count());
      Value zeros = hlo::makeSplat(b, loc, 0.0, hlo::makeType(pixels, result.getElementType()));
      parts.push_back(hlo::ReshapeOp::create(b, loc, follow(zeros), sizes));
      return;
    }
    SmallVector<int64_t> shifts, taps;
    for (auto [i, d] : llvm::enumerate(dims)) {
      shifts.push_back(d.phases[phase[i]].shift);
      taps.push_back(d.phases[phase[i]].taps);
    }
    parts.push_back(hlo::ReshapeOp::create(b, loc, follow(convolve(w, shifts, taps)), sizes));
  });
  // the last dimension's phases first
  for (size_t i = dims.size(); i-- > 0;) {
    size_t n = dims[i].phases.size();
    SmallVector<Value> joined;
    for (size_t k = 0; k < parts.size(); k += n)
      joined.push_back(n == 1 ? parts[k]
                              : hlo::ConcatenateOp::create(b, loc, ArrayRef<Value>(parts).slice(k, n), 2 + 2 * i).getResult());
    parts = std::move(joined);
  }
  return parts.front();
}

bool Splitter::run() {
  if (!read())
    return false;
  Value y = sharesOneFilter() ? convolveTogether() : convolveApart();
  // phases of the last pixels may lie outside the result
  SmallVector<AffineExpr> whole = {hlo::getDim(result, 0)};
  SmallVector<AffineExpr> starts(result.getRank(), hlo::constantExpr(b.getContext(), 0));
  bool cut = false;
  for (const Dimension &d : dims) {
    int64_t size = d.count() * d.dilation;
    cut |= size != d.output;
    whole.push_back(hlo::constantExpr(b.getContext(), size));
  }
  whole.push_back(hlo::constantExpr(b.getContext(), outputs));
  y = hlo::ReshapeOp::create(b, loc, y, whole);
  if (cut)
    y = hlo::SliceOp::create(b, loc, y, starts, hlo::getDims(result), SmallVector<int64_t>(result.getRank(), 1));
  Operation *last = followers.empty() ? op.getOperation() : followers.back();
  last->getResult(0).replaceAllUsesWith(y);
  for (Operation *follower : llvm::reverse(followers))
    follower->erase();
  op.erase();
  return true;
}

struct HloSplitDilatedConv : simplify::impl::HloSplitDilatedConvBase<HloSplitDilatedConv> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<hlo::ConvolutionOp> found;
    getOperation()->walk([&](hlo::ConvolutionOp op) { found.push_back(op); });
    for (hlo::ConvolutionOp op : found)
      numSplit += Splitter(op).run();
  }
};

} // namespace
