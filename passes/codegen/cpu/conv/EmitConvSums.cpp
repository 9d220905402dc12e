// Sums of kernel.conv that stay in scratch for a while: spread filters, long sums in parts, and tap by tap.
//
// Results of few channels would leave most lanes of a tile idle. Their filters come spread: the taps along a row are
// columns of the tile, which then holds what each input pixel gives to the results around it; a second loop over the
// row adds up what belongs to one result.
//
// Where many taps lie beside the image (dilated ones with a large reach), each tap is done by itself for the pixels that
// it has; nothing is padded.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/conv/ConvEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::cpu {

/// A row of images at a time: what each input pixel gives, then the sums of what belongs together.
void ConvEmitter::emitSpread(TileShape shape, TileOperands operands, ArrayRef<ReductionLoop> loops, Value a) {
  Spatial &rowDim = dims[dims.size() - 2], &pixel = dims.back();
  const int64_t taps = *hlo::constantValue(pixel.taps), columns = *groupColumns;
  const TileShape sums = sumsShape();
  b.loop(b.i64(0), rowCount, [&](Value y) {
    Value rowBase = b.ptrAt(a, operands.aElem, b.mul(b.mul(y, b.i64(rowDim.stride)), rowDim.step));
    Value last = pixels.isStatic ? b.i64(pixels.numTiles) : b.dim(positions);
    pixels.forEach(b, b.i64(0), last, [&](unsigned height, Value x) {
      TileShape s = shape;
      s.rows = height;
      operands.a = b.ptrAt(rowBase, operands.aElem, b.mul(x, operands.aRowStride));
      storeTile(b, s, accElem, emitTile(b, s, accElem, operands, loops), b.ptrAt(scratchC, accElem, b.mul(x, b.i64(shape.columns()))));
    });
    b.loop(b.i64(0), pixel.out, [&](Value x) {
      for (unsigned v = 0; v < sums.vecs; ++v) {
        Value sum;
        for (int64_t t = 0; t < taps; ++t) {
          Value at = b.add(b.mul(x, b.i64(shape.columns())), b.i64(t * pixel.tapDilation * shape.columns() + t * columns + v * sums.lanes));
          Value part = b.loadElem(accElem, scratchC, at, sums.lanes);
          sum = sum ? arith::AddFOp::create(b, sum, part).getResult() : part;
        }
        b.storeElem(accElem, sum, scratchSums, b.add(b.mul(x, b.i64(sums.columns())), b.i64(v * sums.lanes)));
      }
    });
    auto index = [&](Value x) { return resultIndex(b.add(firstRow, y), x, b.i64(0)); };
    if (failed(epilogue.emitBuffered(sums, scratchSums, pixel.out, accDims.size() - 1, b.i64(columns), index)))
      ok = failure();
  });
}

/// All pixels of the block for one part of the sum after the other.
void ConvEmitter::emitBlocked(TileShape shape, TileOperands operands, SmallVector<ReductionLoop> loops, Value a,
                              Value column, Value validColumns) {
  Value width = dims.back().out, pixelCount = b.mul(rowCount, width);
  if (!head) {
    zeroRun(b, accElem, scratchC, b.mul(pixelCount, b.i64(shape.columns())));
  } else {
    TileShape row = shape;
    row.rows = 1;
    b.loop(b.i64(0), pixelCount, [&](Value p) {
      storeTile(b, row, accElem, startOf(row), b.ptrAt(scratchC, accElem, b.mul(p, b.i64(shape.columns()))));
    });
  }
  if (trimmed)
    sumTrimmed(shape, operands, a);
  else
    sumBlocked(shape, operands, std::move(loops), a);
  auto index = [&](Value r) { return resultIndex(b.add(firstRow, b.divU(r, width)), b.remU(r, width), column); };
  if (failed(epilogue.emitBuffered(shape, scratchC, pixelCount, accDims.size() - 1, validColumns, index)))
    ok = failure();
}

/// Steps of a run, a divisor of it, that are done for all pixels before the next ones.
static int64_t blockOfRun(int64_t run) {
  int64_t block = run;
  for (int64_t count = llvm::divideCeil(run, 384); block > 512 && count <= int64_t(llvm::divideCeil(run, 128)); ++count)
    if (run % (4 * count) == 0)
      block = run / count;
  return std::max<int64_t>(block, 1);
}

void ConvEmitter::sumBlocked(TileShape shape, TileOperands operands, SmallVector<ReductionLoop> loops, Value a) {
  Value width = dims.back().out;
  ReductionLoop inner = loops.pop_back_val();
  const int64_t block = blockOfRun(constantOf(inner.trips).value_or(0));
  Spatial &rowDim = dims[dims.size() - 2];
  std::function<void(unsigned, Value, Value)> level = [&](unsigned i, Value aNow, Value bNow) {
    if (i < loops.size()) {
      if (constantOf(loops[i].trips) == 1)
        return level(i + 1, aNow, bNow);
      return b.loop(b.i64(0), loops[i].trips, [&](Value t) {
        level(i + 1, b.ptrAt(aNow, operands.aElem, b.mul(t, loops[i].aStride)),
              b.ptrAt(bNow, operands.bElem, b.mul(t, loops[i].bStride)));
      });
    }
    b.loop(b.i64(0), inner.trips, b.i64(block), [&](Value k0) {
      Value aBlock = b.ptrAt(aNow, operands.aElem, b.mul(k0, inner.aStride));
      operands.b = b.ptrAt(bNow, operands.bElem, b.mul(k0, inner.bStride));
      Value next = b.ptrAt(operands.b, operands.bElem, b.mul(b.i64(block), inner.bStride));
      operands.prefetchLines = llvm::divideCeil(shape.columns() / 4, pixels.numTiles * blockRows);
      b.loop(b.i64(0), rowCount, [&](Value y) {
        Value rowBase = b.ptrAt(aBlock, operands.aElem, b.mul(b.mul(y, b.i64(rowDim.stride)), rowDim.step));
        pixels.forEach(b, b.i64(0), b.i64(pixels.numTiles), [&](unsigned height, Value x) {
          TileShape s = shape;
          s.rows = height;
          Value pixel = b.add(b.mul(y, width), x);
          if (packed) {
            Value done = b.mul(b.divU(pixel, b.i64(pixels.low)), b.i64(block / 4 * 64 * operands.prefetchLines));
            operands.prefetch = b.ptrBytes(next, done);
          }
          operands.a = b.ptrAt(rowBase, operands.aElem, b.mul(x, operands.aRowStride));
          Value sums = b.ptrAt(scratchC, accElem, b.mul(pixel, b.i64(shape.columns())));
          ReductionLoop part{b.i64(block), inner.aStride, inner.bStride};
          addToTile(b, s, accElem, emitTile(b, s, accElem, operands, part), sums);
        });
      });
    });
  };
  level(0, a, operands.b);
}

/// Output positions [first, second) whose tap at `offset` is inside the image, were there no end to them on the right.
static std::pair<int64_t, int64_t> positionsOf(int64_t in, int64_t stride, int64_t padLow, int64_t offset) {
  auto from = [&](int64_t x) { return int64_t(llvm::divideCeil(std::max<int64_t>(x, 0), stride)); };
  return {from(padLow - offset), from(in + padLow - offset)};
}

/// A fifth of the multiplications or more would be with padding, and each tap is long enough to be worth the traffic
/// of sums.
bool ConvEmitter::reachesOut() const {
  constexpr int64_t leastChannels = 32;
  std::optional<int64_t> ic = hlo::constantValue(channelsExpr);
  if (dims.size() != 2 || groups != 1 || batchGroups != 1 || !ic || *ic < leastChannels || isa<ComplexType>(aElem) ||
      memType(aElem) != memType(accElem) || format.isGrouped())
    return false;
  double share = 1;
  for (const Spatial &d : dims) {
    std::optional<int64_t> in = hlo::constantValue(d.inExpr), out = hlo::constantValue(d.outExpr), taps = hlo::constantValue(d.taps);
    if (!in || !out || !taps || *out < 1 || *taps < 1 || d.inDilation != 1 || d.padLow < 0)
      return false;
    int64_t inside = 0;
    for (int64_t k = 0; k < *taps; ++k) {
      auto [first, last] = positionsOf(*in, d.stride, d.padLow, k * d.tapDilation);
      inside += std::max<int64_t>(0, std::min(last, *out) - first);
    }
    share *= double(inside) / (*taps * *out);
  }
  return share < 0.8;
}

/// Tap by tap, for the rows and pixels that have it.
void ConvEmitter::sumTrimmed(TileShape shape, TileOperands operands, Value a) {
  const Spatial &row = dims[0], &pixel = dims[1];
  const int64_t taps = *hlo::constantValue(pixel.taps), block = blockOfRun(*hlo::constantValue(channelsExpr));
  const int64_t outWidth = *hlo::constantValue(pixel.outExpr);
  Value bStep = packed ? b.i64(tile.columns()) : packB ? b.i64(shape.columns()) : outChannels, zero = b.i64(0);
  b.loop(zero, row.tapCount, [&](Value t) {
    // rows of the block
    Value offset = b.sub(b.i64(row.padLow), b.mul(t, b.i64(row.tapDilation)));
    auto from = [&](Value x) { return b.divU(b.add(b.max(x, zero), b.i64(row.stride - 1)), b.i64(row.stride)); };
    Value lo = b.max(b.sub(from(offset), firstRow), zero), hi = b.min(b.sub(from(b.add(row.in, offset)), firstRow), rowCount);
    for (int64_t k = 0; k < taps; ++k) {
      auto [first, last] = positionsOf(*hlo::constantValue(pixel.inExpr), pixel.stride, pixel.padLow, k * pixel.tapDilation);
      last = std::min(last, outWidth);
      if (first >= last)
        continue;
      const RowTiles here(last - first, shape.rows);
      Value x0 = b.i64(first);
      Value aTap = b.add(b.mul(b.mul(t, b.i64(row.tapDilation)), row.step), b.mul(b.i64(k * pixel.tapDilation), pixelStep));
      Value bTap = b.mul(b.mul(b.add(b.mul(t, b.i64(taps)), b.i64(k)), channels), bStep);
      Value aNow = b.ptrAt(a, operands.aElem, aTap), bNow = b.ptrAt(operands.b, operands.bElem, bTap);
      b.loop(zero, channels, b.i64(block), [&](Value k0) {
        Value aBlock = b.ptrAt(aNow, operands.aElem, k0);
        TileOperands part = operands;
        part.b = b.ptrAt(bNow, operands.bElem, b.mul(k0, bStep));
        b.loop(lo, hi, [&](Value y) {
          Value rowBase = b.ptrAt(aBlock, operands.aElem, b.mul(b.mul(y, b.i64(row.stride)), row.step));
          here.forEach(b, zero, b.i64(here.numTiles), [&](unsigned height, Value r) {
            TileShape s = shape;
            s.rows = height;
            Value x = b.add(r, x0);
            part.a = b.ptrAt(rowBase, operands.aElem, b.mul(x, operands.aRowStride));
            Value sums = b.ptrAt(scratchC, accElem, b.mul(b.add(b.mul(y, pixel.out), x), b.i64(shape.columns())));
            addToTile(b, s, accElem, emitTile(b, s, accElem, part, ReductionLoop{b.i64(block), b.i64(1), bStep}), sums);
          });
        });
      });
    }
  });
}

WhyNot whyNotSpread(kernel::ConvOp op, const KernelTarget &target, double &share) {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  const int64_t rank = filter.getRank(), lanes = target.lanes(acc.getElementType());
  if (rank < 3 || !filter.hasStaticShape() || input.isDynamicDim(rank - 1))
    return WhyNot::notMeant("there is no row of taps and channels of known sizes");
  if (op.getBf16() || !acc.getElementType().isF32() || !input.getElementType().isF32() || !filter.getElementType().isF32())
    return WhyNot::notMeant("operands are not f32, or rounded to bf16");
  if (lanes < 4)
    return WhyNot::notMeant("the target has no vectors of f32");
  if (op.getGroups() != 1 || op.getBatchGroups() != 1)
    return WhyNot::notMeant("it has groups");
  if (op.getStrides().back() != 1 || llvm::any_of(op.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return WhyNot::notMeant("it has strides, or a dilated input");
  const int64_t taps = filter.getDimSize(rank - 3), oc = filter.getDimSize(rank - 1);
  if (taps < 2 || oc < 1 || taps * oc > 4 * lanes)
    return WhyNot::notMeant("rows of taps and channels are one, or more than four vectors");
  // multiply-adds of a pixel, and the additions behind them, which wait for memory
  const double steps = double(filter.getNumElements()) / (taps * oc);
  double direct = steps * taps * llvm::divideCeil(oc, lanes), spread = steps * llvm::divideCeil(taps * oc, lanes);
  if (!acc.isDynamicDim(rank - 2)) {
    const double width = std::max<int64_t>(1, acc.getDimSize(rank - 2));
    spread *= (width + (taps - 1) * op.getRhsDilation().back()) / width;
  }
  share = (spread + 3 * taps) / direct;
  return share < 0.8 ? WhyNot::none() : WhyNot::notMeant("channels fill vectors as well");
}

} // namespace lathe::cpu
