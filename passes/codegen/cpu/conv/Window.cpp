// See Window.h.
#include "passes/codegen/cpu/conv/Window.h"

#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/element/LongSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

RankedTensorType WindowKernel::readDepthwise(kernel::DepthwiseConvOp conv) {
  input = cast<RankedTensorType>(conv.getInput().getType());
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  SmallVector<Value> filterDims = b.dims(filter);
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    WindowDim d;
    d.taps = filterDims[i];
    d.stride = conv.getStrides()[i];
    d.padLow = conv.getPadding()[2 * i];
    d.dilation = conv.getRhsDilation()[i];
    dims.push_back(d);
  }
  readTypes(filter.getShape().back() / input.getShape().back());
  return filter;
}

void WindowKernel::readTypes(int64_t mult) {
  multiplier = mult;
  acc = cast<RankedTensorType>(op->getRegion(0).getArgument(0).getType());
  aElem = input.getElementType();
  accElem = acc.getElementType();
  SmallVector<AffineExpr> inDims = hlo::getDims(input), outDims = hlo::getDims(acc);
  inPixel = slice ? b.i64(slice->count) : b.rowDims(input, kernel::operandRow(op, 0)).back();
  outChannels = b.dim(outDims.back());
  channelCount = slice ? slice->count * multiplier : hlo::constantValue(outDims.back());
  firstChannel = slice ? b.mul(slice->first, b.i64(multiplier)) : b.i64(0);
  for (auto [i, d] : llvm::enumerate(dims)) {
    d.inExpr = inDims[i + 1];
    d.outExpr = outDims[i + 1];
    d.in = b.dim(d.inExpr);
    d.out = b.dim(d.outExpr);
    d.inSize = hlo::constantValue(d.inExpr);
    d.outSize = hlo::constantValue(d.outExpr);
    d.tapSize = constantOf(d.taps);
  }
  Value step = inPixel;
  for (WindowDim &d : llvm::reverse(dims)) {
    d.inStep = step;
    step = b.mul(step, d.in);
  }
}

void WindowKernel::prepareRows() {
  SmallVector<AffineExpr> outDims = hlo::getDims(acc);
  AffineExpr units = getAffineConstantExpr(1, b.getContext());
  for (AffineExpr e : ArrayRef<AffineExpr>(outDims).drop_back(dims.empty() ? 1 : 2))
    units = units * e;
  b.setExtent(hlo::simplify(units));
  int64_t taps = 1;
  for (const WindowDim &d : dims)
    taps *= d.tapSize.value_or(3);
  b.setWork(2 * taps * channelCount.value_or(64) * (dims.empty() ? 1 : dims.back().outSize.value_or(64)));
  unitSizes = b.dims(acc);
  unitSizes.truncate(dims.empty() ? 1 : dims.size());
  imageElements = inPixel;
  for (WindowDim &d : dims)
    imageElements = b.mul(imageElements, d.in);
}

void WindowKernel::setRow(Value unit) {
  outIndex = b.delinearize(unit, unitSizes);
  imageOffset = slice ? b.sub(b.i64(0), b.mul(slice->firstRow, dims[0].inStep)) : b.mul(outIndex[0], imageElements);
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    setPosition(dims[i], outIndex[i + 1]);
}

SmallVector<Value>
WindowKernel::overTaps(unsigned numDims, SmallVector<Value> accs, Value offset, Value tap,
                       function_ref<SmallVector<Value>(Value, Value, SmallVector<Value>)> body, bool adds, int64_t additions) {
  std::function<SmallVector<Value>(unsigned, SmallVector<Value>, Value, Value)> level =
      [&](unsigned i, SmallVector<Value> now, Value at, Value tapNow) -> SmallVector<Value> {
    if (i == numDims)
      return body(at, tapNow, now);
    WindowDim &d = dims[i];
    auto step = [&](Value t, ValueRange in) {
      Value pos = b.add(d.position.start, b.mul(t, b.i64(d.dilation)));
      return level(i + 1, SmallVector<Value>(in), b.add(at, b.mul(pos, d.inStep)), b.add(b.mul(tapNow, d.taps), t));
    };
    // how many taps are inside is known at run time alone, but no more than the window has
    SmallVector<Value> inner;
    for (const WindowDim &o : ArrayRef<WindowDim>(dims).slice(i + 1, numDims - i - 1))
      inner.push_back(o.taps);
    SumBlocks how;
    how.perStep = std::min<int64_t>(additions * additionsIn(inner), 1 << 20);
    if (!adds || additionsIn(d.taps) * how.perStep <= how.inRow)
      return b.loop(d.position.firstTap, d.position.lastTap, b.i64(1), now, step);
    return sumLoop(b, d.position.firstTap, d.position.lastTap, 1, now, how, step);
  };
  return level(0, accs, offset, tap);
}

void WindowKernel::forEachTile(const RowTiles &tiles, TileOfPixels emit) {
  const WindowDim &d = dims.back();
  tiles.forEachInside(
      b, [&](int64_t x, int64_t height) { return d.inside(x, height, *d.tapSize, *d.inSize); }, emit);
}

int64_t WindowKernel::rowsInL2() const {
  const WindowDim &y = dims[dims.size() - 2], &x = dims.back();
  const int64_t rowBytes = *x.inSize * *channelCount / multiplier * elemBytes(aElem) * y.stride;
  return std::max<int64_t>(1, b.target.ofL2(b.target.l2Rows) / std::max<int64_t>(1, rowBytes));
}

void WindowKernel::emitRowsTogether(const RowTiles &tiles, int64_t together,
                                    function_ref<void(Value, unsigned, int64_t, Value, unsigned)> emit) {
  b.loop(b.begin, b.end, b.i64(together), [&](Value first) {
    Value last = b.min(b.end, b.add(first, b.i64(together)));
    forEachChannel(1, [&](Value c, unsigned, unsigned lanes) {
      forEachTile(tiles, [&](Value x, unsigned height, int64_t known) {
        b.loop(first, last, [&](Value unit) {
          setRow(unit);
          emit(x, height, known, c, lanes);
        });
      });
    });
  });
}

void WindowKernel::finishPixels(TileShape shape, Value x, Value channel, ValueRange accs) {
  auto index = [&](Value r) {
    SmallVector<Value> at(outIndex);
    at.append({b.add(x, r), channel});
    return at;
  };
  if (failed(epilogue.emitTile(shape, accs, acc.getRank() - 1, Value(), index)))
    ok = failure();
}

Value WindowKernel::loadInput(Value offset, Value channel, unsigned lanes) {
  channel = b.sub(channel, firstChannel);
  Value from = multiplier == 1 ? channel : b.divU(channel, b.i64(multiplier));
  unsigned count = std::max<unsigned>(1, lanes / multiplier);
  Value x = toAccumulator(b, b.loadElem(aElem, b.operands[0], b.add(offset, from), count), aElem, accElem);
  if (count == lanes)
    return x;
  if (count == 1)
    return b.splat(x, lanes);
  SmallVector<int64_t> pick(lanes);
  for (unsigned i = 0; i < lanes; ++i)
    pick[i] = i / multiplier;
  return vector::ShuffleOp::create(b, x, x, pick);
}

int64_t WindowKernel::setsUsed() const {
  const int64_t row = slice ? 0 : kernel::operandRow(op, 0);
  const int64_t pixel = (row ? row : *channelCount / multiplier) * elemBytes(aElem);
  return b.target.l1SetsBetween(pixel);
}

void WindowKernel::forEachChannel(unsigned maxVecs, function_ref<void(Value, unsigned, unsigned)> emitAt) {
  auto emit = [&](Value c, unsigned vecs, unsigned lanes) { emitAt(b.add(firstChannel, c), vecs, lanes); };
  unsigned lanes = std::max(1u, b.target.lanes(accElem));
  if (multiplier > 1 && (lanes % multiplier || (channelCount && *channelCount % lanes)))
    lanes = 1;
  if (!channelCount) {
    Value whole = b.mul(b.divU(outChannels, b.i64(lanes)), b.i64(lanes));
    if (lanes > 1)
      b.loop(b.i64(0), whole, b.i64(lanes), [&](Value c) { emit(c, 1, lanes); });
    b.loop(lanes > 1 ? whole : b.i64(0), outChannels, [&](Value c) { emit(c, 1, 1); });
    return;
  }
  int64_t done = 0;
  for (unsigned vecs = maxVecs; vecs > 0 && lanes > 1; vecs /= 2) {
    int64_t block = vecs * lanes, count = (*channelCount - done) / block;
    if (count > 1)
      b.loop(b.i64(done), b.i64(done + count * block), b.i64(block), [&](Value c) { emit(c, vecs, lanes); });
    else if (count == 1)
      emit(b.i64(done), vecs, lanes);
    done += count * block;
  }
  for (unsigned narrow = lanes / 2; narrow >= 4; narrow /= 2)
    if (*channelCount - done >= narrow) {
      emit(b.i64(done), 1, narrow);
      done += narrow;
    }
  if (done < *channelCount)
    b.loop(b.i64(done), b.i64(*channelCount), [&](Value c) { emit(c, 1, 1); });
}

} // namespace lathe::cpu
