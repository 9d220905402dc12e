// kernel.conv with narrow groups: as many input as output channels in each, and fewer than a vector has lanes.
//
// The lanes are output channels of several groups. What they multiply are vectors of the input at the same channels,
// in which each group's lanes repeat one of its channels: a shuffle a channel and pixel, shared by the taps of a row.
// A unit is one row of output pixels; the filter is read as it is, [taps, channels of a group, output channels].
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Conv.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

struct Dim : WindowSteps {
  int64_t taps = 1;
  Value in, out, step;
  std::optional<int64_t> inSize, outSize;
  Position position; // of the result being computed
};

class GroupedEmitter {
public:
  GroupedEmitter(kernel::ConvOp op, KernelBuilder &b) : op(op), b(b), epilogue(b, op) {}
  LogicalResult emit();

private:
  void emitTiles(Value channel, unsigned lanes);
  void emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes);
  void multiplyRow(Value offset, Value tap, Value x, int64_t known, Value channel, unsigned lanes, SmallVector<Value> &sums);

  kernel::ConvOp op;
  KernelBuilder &b;
  Epilogue epilogue;
  LogicalResult ok = success();
  SmallVector<Dim> dims;
  int64_t width = 1; // channels of a group
  Value channels, imageOffset;
  SmallVector<Value> outIndex;
  Type elem;
};

/// One row of taps for the pixels from x on.
void GroupedEmitter::multiplyRow(Value offset, Value tap, Value x, int64_t known, Value channel, unsigned lanes,
                                 SmallVector<Value> &sums) {
  Dim &d = dims.back();
  const int64_t height = sums.size();
  Value first = b.add(offset, b.mul(b.sub(b.mul(x, b.i64(d.stride)), b.i64(d.padLow)), d.step));
  for (int64_t j = 0; j < width; ++j) {
    SmallVector<Value> weights;
    for (int64_t k = 0; k < d.taps; ++k) {
      Value row = b.add(b.mul(b.add(b.mul(tap, b.i64(d.taps)), b.i64(k)), b.i64(width)), b.i64(j));
      weights.push_back(b.loadElem(elem, b.operands[1], b.add(b.mul(row, channels), channel), lanes));
    }
    SmallVector<int64_t> pick(lanes);
    for (unsigned l = 0; l < lanes; ++l)
      pick[l] = l / width * width + j;
    for (int64_t p = 0; p <= (height - 1) * d.stride + (d.taps - 1) * d.dilation; ++p) {
      const int64_t at = known * d.stride - d.padLow + p;
      if (known >= 0 && (at < 0 || at >= *d.inSize))
        continue;
      Value in;
      for (int64_t k = 0; k < d.taps; ++k) {
        const int64_t r = p - k * d.dilation;
        if (r < 0 || r % d.stride || r / d.stride >= height)
          continue;
        if (!in) {
          Value v = b.loadElem(elem, b.operands[0], b.add(b.add(first, b.mul(b.i64(p), d.step)), channel), lanes);
          in = vector::ShuffleOp::create(b, v, v, pick);
        }
        sums[r / d.stride] = multiplyAdd(b, in, weights[k], sums[r / d.stride], elem);
      }
    }
  }
}

/// Pixels [x, x + height) of one vector of channels. `known`: x if static, else -1 and all taps are inside.
void GroupedEmitter::emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes) {
  SmallVector<Value> sums(height, b.cst(regType(elem, lanes), 0.0));
  std::function<SmallVector<Value>(unsigned, SmallVector<Value>, Value, Value)> level =
      [&](unsigned i, SmallVector<Value> now, Value offset, Value tap) {
        if (i + 1 == dims.size()) {
          multiplyRow(offset, tap, x, known, channel, lanes, now);
          return now;
        }
        Dim &d = dims[i];
        return b.loop(d.position.firstTap, d.position.lastTap, b.i64(1), now, [&](Value t, ValueRange in) {
          Value at = b.add(d.position.start, b.mul(t, b.i64(d.dilation)));
          return level(i + 1, SmallVector<Value>(in), b.add(offset, b.mul(at, d.step)), b.add(b.mul(tap, b.i64(d.taps)), t));
        });
      };
  sums = level(0, sums, imageOffset, b.i64(0));
  auto index = [&](Value r) {
    SmallVector<Value> at(outIndex);
    at.append({b.add(x, r), channel});
    return at;
  };
  if (failed(epilogue.emitTile({height, 1, lanes}, sums, op.getAccType().getRank() - 1, Value(), index)))
    ok = failure();
}

/// A row of pixels; tiles at the border leave out taps at compile time.
void GroupedEmitter::emitTiles(Value channel, unsigned lanes) {
  Dim &d = dims.back();
  RowTiles tiles(d.outSize, std::clamp<int64_t>(b.target.numVectorRegs - d.taps - 3, 4, 14));
  tiles.forEachInside(
      b, [&](int64_t x, int64_t height) { return d.inside(x, height, d.taps, *d.inSize); },
      [&](Value x, unsigned height, int64_t known) { emitTile(x, height, known, channel, lanes); });
}

LogicalResult GroupedEmitter::emit() {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  elem = acc.getElementType();
  SmallVector<AffineExpr> inDims = hlo::getDims(input), outDims = hlo::getDims(acc);
  width = filter.getDimSize(filter.getRank() - 2);
  channels = b.dim(outDims.back());
  int64_t taps = 1;
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    Dim d;
    d.stride = op.getStrides()[i];
    d.padLow = op.getPadding()[2 * i];
    d.dilation = op.getRhsDilation()[i];
    d.taps = filter.getDimSize(i);
    d.in = b.dim(inDims[i + 1]);
    d.out = b.dim(outDims[i + 1]);
    d.inSize = hlo::constantValue(inDims[i + 1]);
    d.outSize = hlo::constantValue(outDims[i + 1]);
    taps *= d.taps;
    dims.push_back(d);
  }
  Value step = channels;
  for (Dim &d : llvm::reverse(dims)) {
    d.step = step;
    step = b.mul(step, d.in);
  }
  AffineExpr units = getAffineConstantExpr(1, b.getContext());
  for (AffineExpr e : ArrayRef<AffineExpr>(outDims).drop_back(2))
    units = units * e;
  b.setExtent(hlo::simplify(units));
  const int64_t oc = filter.getShape().back();
  b.setWork(2 * taps * width * oc * *dims.back().outSize);
  SmallVector<Value> sizes = b.dims(acc);
  sizes.truncate(dims.size());
  b.units([&](Value unit) {
    outIndex = b.delinearize(unit, sizes);
    imageOffset = b.mul(outIndex[0], step);
    for (size_t i = 0; i + 1 < dims.size(); ++i)
      dims[i].position = dims[i].at(b, outIndex[i + 1], b.i64(dims[i].taps), dims[i].in);
    // narrower vectors for channels that fill none
    int64_t done = 0;
    for (int64_t lanes = b.target.lanes(elem); done < oc; lanes /= 2) {
      const int64_t end = oc / lanes * lanes;
      if (end > done)
        b.loop(b.i64(done), b.i64(end), b.i64(lanes), [&](Value c) { emitTiles(c, lanes); });
      done = std::max(done, end);
    }
  });
  return ok;
}

} // namespace

WhyNot whyNotNarrowGroups(kernel::ConvOp op, const KernelTarget &target) {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  const int64_t rank = filter.getRank(), lanes = target.lanes(acc.getElementType()), groups = op.getGroups();
  if (groups < 2 || op.getBatchGroups() != 1)
    return WhyNot::notMeant("it has no groups, or groups of the batch");
  if (op.getLayout())
    return WhyNot::notMeant("its filter is packed");
  if (op.getBf16() || !acc.getElementType().isF32() || !input.getElementType().isF32() || !filter.getElementType().isF32())
    return WhyNot::notMeant("operands are not f32, or rounded to bf16");
  if (rank < 3 || !filter.hasStaticShape() || filter.getNumElements() == 0)
    return WhyNot::notMeant("the filter's sizes are known at run time only, or 0");
  const int64_t width = filter.getDimSize(rank - 2), oc = filter.getDimSize(rank - 1), row = filter.getDimSize(rank - 3);
  auto atLeastOne = [](int64_t size) { return !ShapedType::isDynamic(size) && size > 0; };
  if (width < 2 || width >= lanes || lanes % width != 0 || oc != width * groups)
    return WhyNot::notMeant("groups do not share vectors evenly");
  if (row > 9)
    return WhyNot::notMeant("rows of taps are long");
  if (!atLeastOne(input.getDimSize(rank - 2)) || !atLeastOne(acc.getDimSize(rank - 2)))
    return WhyNot::notMeant("the width of images is known at run time only, or 0");
  if (llvm::any_of(op.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return WhyNot::notMeant("the input is dilated");
  return WhyNot::none();
}

LogicalResult emitGroupedConv(kernel::ConvOp op, KernelBuilder &b) { return GroupedEmitter(op, b).emit(); }

} // namespace lathe::cpu
