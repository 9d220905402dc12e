// kernel.pool: windows over images with the lanes along the channels (see Window.h).
//
// Blocks of a few rows and pixels are done for all channels before the next block: each vector is loaded once
// for the windows of a block, what each column of the input gives is made once for each row, and memory is
// read and written in long runs.
//
// Otherwise, where windows overlap and the first cache holds what they share, a vector of channels is done
// for a few rows one after the other, a run of pixels at once: first what each column of the input gives,
// each vector loaded once, then the windows from the columns they share. The tiles at the border leave out
// columns at compile time.
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Window.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;

namespace lathe::cpu {
namespace {

enum class Kind { Max, MaxNumber, Min, Sum, Average };

class PoolEmitter : WindowKernel {
public:
  PoolEmitter(Operation *op, KernelBuilder &b) : WindowKernel(op, b) {}
  void readPool(kernel::PoolOp pool);
  LogicalResult emit();

private:
  void emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes);
  /// What keeps rows from tiles; else sets the height of the highest whose columns the registers hold, and the first cache until
  /// the next row.
  WhyNot whyNotTiles(int64_t &height) const;
  void emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes);
  void emitRow();
  /// What keeps images from blocks; else sets rows and pixels of one.
  WhyNot whyNotBlocks(TileShape &shape) const;
  void emitBlock(Value y, unsigned height, int64_t knownY, Value x, unsigned width, int64_t knownX);
  void emitBlocks(TileShape most);
  /// a / max(taps, 1)
  Value average(Value a, Value taps, unsigned lanes);
  Value initial(unsigned lanes);
  Value combine(Value acc, Value x);
  bool addsFloats() const { return (kind == Kind::Sum || kind == Kind::Average) && isa<FloatType>(accElem); }

  Kind kind = Kind::Max;
};

void PoolEmitter::readPool(kernel::PoolOp pool) {
  input = cast<RankedTensorType>(pool.getInput().getType());
  StringRef name = pool.getKind();
  kind = name == "max"   ? Kind::Max
         : name == "max_number" ? Kind::MaxNumber
         : name == "min" ? Kind::Min
         : name == "sum" ? Kind::Sum
                         : Kind::Average;
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    WindowDim d;
    d.taps = b.i64(pool.getWindow()[i]);
    d.stride = pool.getStrides()[i];
    d.padLow = pool.getPadding()[2 * i];
    d.dilation = pool.getWindowDilation()[i];
    dims.push_back(d);
  }
  readTypes(1);
}

Value PoolEmitter::initial(unsigned lanes) {
  Type t = regType(accElem, lanes);
  if (kind == Kind::MaxNumber)
    return b.cst(t, APFloat::getLargest(cast<FloatType>(aElem).getFloatSemantics(), /*Negative=*/true).convertToDouble());
  if (kind != Kind::Max && kind != Kind::Min)
    return b.cst(t, 0.0);
  bool isMax = kind == Kind::Max;
  if (isa<FloatType>(getElementTypeOrSelf(t)))
    return b.cst(t, isMax ? -INFINITY : INFINITY);
  unsigned width = getElementTypeOrSelf(t).getIntOrFloatBitWidth();
  APInt v = isUnsignedElem(accElem) ? (isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                    : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return b.cstI(t, v.getSExtValue());
}

Value PoolEmitter::combine(Value a, Value x) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType())), isUnsigned = isUnsignedElem(accElem);
  switch (kind) {
  case Kind::MaxNumber: // one instruction
    return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, a), x, a);
  case Kind::Max:
    if (isFloat)
      return arith::MaximumFOp::create(b, a, x);
    return isUnsigned ? arith::MaxUIOp::create(b, a, x).getResult() : arith::MaxSIOp::create(b, a, x);
  case Kind::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, a, x);
    return isUnsigned ? arith::MinUIOp::create(b, a, x).getResult() : arith::MinSIOp::create(b, a, x);
  default:
    return isFloat ? arith::AddFOp::create(b, a, x).getResult() : arith::AddIOp::create(b, a, x);
  }
}

Value PoolEmitter::average(Value a, Value taps, unsigned lanes) {
  Value count = b.max(taps, b.i64(1));
  if (isa<FloatType>(regType(accElem))) { // one division for all vectors: within a unit and a half
    Value divisor = arith::SIToFPOp::create(b, regType(accElem), count);
    Value share = arith::DivFOp::create(b, b.cst(divisor.getType(), 1.0), divisor);
    return arith::MulFOp::create(b, a, b.splat(share, lanes));
  }
  Value divisor = arith::TruncIOp::create(b, regType(accElem), count);
  return arith::DivSIOp::create(b, a, b.splat(divisor, lanes));
}

void PoolEmitter::emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes) {
  setPosition(dims.back(), x);
  SmallVector<Value> accs(vecs, initial(lanes));
  accs = overTaps(dims.size(), accs, imageOffset, b.i64(0), [&](Value offset, Value, SmallVector<Value> now) {
    for (unsigned v = 0; v < vecs; ++v) {
      Value c = b.add(channel, b.i64(v * lanes));
      Value in = loadInput(offset, c, lanes);
      now[v] = combine(now[v], in);
    }
    return now;
  }, addsFloats());
  if (kind == Kind::Average) {
    Value count = b.i64(1);
    for (WindowDim &d : dims)
      count = b.mul(count, b.max(b.sub(d.position.lastTap, d.position.firstTap), b.i64(0)));
    for (Value &a : accs)
      a = average(a, count, lanes);
  }
  finishPixels({1, vecs, lanes}, x, channel, accs);
}

WhyNot PoolEmitter::whyNotTiles(int64_t &height) const {
  if (dims.size() != 2 || !channelCount || *channelCount == 0)
    return WhyNot::notMeant("there are not two dimensions of pixels, or channels are known at run time only");
  const WindowDim &y = dims[0], &x = dims[1];
  // Rows that share less are better read one after the other, as they lie: 3 x 3 windows two pixels apart take 0.9 of the
  // time from the second cache, but 1.15 from beyond it.
  if (!x.inSize || x.outSize.value_or(0) == 0 || *x.tapSize <= 0 || *y.tapSize <= 0)
    return WhyNot::notMeant("rows of pixels are of no known length");
  if (y.reach(*y.tapSize) < 2 * y.stride)
    return WhyNot::notMeant("windows share few rows");
  // Pixels of few distances fall into few sets of all caches, where the strip's results push out what it reads: 256 channels
  // take 2.4 times as long as pixel by pixel, 192 and 288 0.7 times.
  constexpr int64_t fewestSets = 8, mostPixels = 14;
  if (setsUsed() < fewestSets)
    return WhyNot::notMeant("pixels fall into few sets of the caches");
  const int64_t rows = y.reach(*y.tapSize) + y.stride;
  const int64_t columns = std::min<int64_t>(b.target.numVectorRegs - 4, setsUsed() * b.target.l1Ways / rows);
  height = std::min(mostPixels, (columns - x.reach(*x.tapSize)) / x.stride + 1);
  if (columns < x.reach(*x.tapSize) || height < std::min<int64_t>(2, *x.outSize))
    return WhyNot::notMeant("registers do not hold the columns of windows");
  return WhyNot::none();
}

/// Pixels [x, x + height) of one vector of channels. `known`: x if static, else -1 and all taps are inside.
void PoolEmitter::emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes) {
  WindowDim &d = dims.back();
  const int64_t taps = *d.tapSize, width = *d.inSize;
  auto isInside = [&](int64_t column) {
    const int64_t at = known * d.stride - d.padLow + column;
    return known < 0 || (at >= 0 && at < width);
  };
  llvm::MapVector<int64_t, unsigned> columns; // those that a window reads, counted from the first tap of the first
  for (unsigned r = 0; r < height; ++r)
    for (int64_t k = 0; k < taps; ++k)
      if (const int64_t column = r * d.stride + k * d.dilation; isInside(column))
        columns.insert({column, columns.size()});
  Value start = b.sub(b.mul(x, b.i64(d.stride)), b.i64(d.padLow));
  SmallVector<Value> sums(columns.size(), initial(lanes));
  sums = overTaps(dims.size() - 1, sums, imageOffset, b.i64(0), [&](Value offset, Value, SmallVector<Value> now) {
    Value first = b.add(offset, b.mul(start, d.inStep));
    for (auto [column, place] : columns)
      now[place] = combine(now[place], loadInput(b.add(first, b.mul(b.i64(column), d.inStep)), channel, lanes));
    return now;
  }, addsFloats());
  Value others = b.i64(1); // taps of the other dimensions
  for (WindowDim &o : MutableArrayRef<WindowDim>(dims).drop_back())
    others = b.mul(others, b.max(b.sub(o.position.lastTap, o.position.firstTap), b.i64(0)));
  SmallVector<Value> accs;
  for (unsigned r = 0; r < height; ++r) {
    Value sum;
    int64_t count = 0;
    for (int64_t k = 0; k < taps; ++k)
      if (auto found = columns.find(r * d.stride + k * d.dilation); found != columns.end()) {
        sum = sum ? combine(sum, sums[found->second]) : sums[found->second];
        ++count;
      }
    if (!sum)
      sum = initial(lanes);
    accs.push_back(kind == Kind::Average ? average(sum, b.mul(others, b.i64(count)), lanes) : sum);
  }
  finishPixels({height, 1, lanes}, x, channel, accs);
}

WhyNot PoolEmitter::whyNotBlocks(TileShape &shape) const {
  const int64_t lanes = b.target.lanes(accElem);
  if (dims.size() != 2)
    return WhyNot::notMeant("there are not two dimensions of pixels");
  if (lanes == 1 || channelCount.value_or(0) < lanes)
    return WhyNot::notMeant("channels fill no vector");
  // code for whole vectors, and at most for one narrower one
  if (const int64_t rest = *channelCount % lanes; rest != 0 && (rest < 4 || !llvm::isPowerOf2_64(rest)))
    return WhyNot::notMeant("channels behind whole vectors fill none");
  for (const WindowDim &d : dims)
    if (!d.inSize || d.outSize.value_or(0) == 0 || d.tapSize.value_or(0) <= 0)
      return WhyNot::notMeant("images are of no known size");
  // A few channels leave no runs to speak of: 147x147x64 with stride 2 takes 481 us from memory instead of 311.
  if (*channelCount <= 4 * lanes && llvm::any_of(dims, [](const WindowDim &d) { return d.stride > 1; }))
    return WhyNot::notMeant("few channels are strided over");
  // Results of a block, and the vectors of a column, stay in registers.
  const int64_t side = b.target.numVectorRegs >= 32 ? 4 : 3;
  int64_t height = std::min(*dims[0].outSize, side), width = std::min(*dims[1].outSize, side);
  auto reads = [](const WindowDim &d, int64_t count) { return (count - 1) * d.stride + d.reach(*d.tapSize); };
  constexpr int64_t mostLoads = 80; // in line
  for (; reads(dims[0], height) * reads(dims[1], width) > mostLoads; height > 1 ? --height : --width)
    if (height * width == 1)
      return WhyNot::notMeant("windows are large");
  shape = TileShape{unsigned(height), unsigned(width), 1};
  return WhyNot::none();
}

/// Rows [y, y + height) and pixels [x, x + width) of all channels. `knownY`, `knownX`: y and x if static,
/// else -1 and all taps are inside.
void PoolEmitter::emitBlock(Value y, unsigned height, int64_t knownY, Value x, unsigned width,
                            int64_t knownX) {
  const WindowDim &rows = dims[0], &columns = dims[1];
  auto isInside = [](const WindowDim &d, int64_t known, int64_t place) {
    const int64_t at = known * d.stride - d.padLow + place;
    return known < 0 || (at >= 0 && at < *d.inSize);
  };
  // the taps of each result that are inside, counted from the first one's first
  auto tapsOf = [&](const WindowDim &d, int64_t known, unsigned count) {
    SmallVector<SmallVector<int64_t>> taps(count);
    for (unsigned i = 0; i < count; ++i)
      for (int64_t k = 0; k < *d.tapSize; ++k)
        if (const int64_t place = i * d.stride + k * d.dilation; isInside(d, known, place))
          taps[i].push_back(place);
    return taps;
  };
  const auto rowTaps = tapsOf(rows, knownY, height), columnTaps = tapsOf(columns, knownX, width);
  auto startOf = [&](const WindowDim &d, Value first) {
    return b.mul(b.sub(b.mul(first, b.i64(d.stride)), b.i64(d.padLow)), d.inStep);
  };
  Value start = b.add(imageOffset, b.add(startOf(rows, y), startOf(columns, x)));
  forEachChannel(1, [&](Value channel, unsigned, unsigned lanes) {
    SmallVector<SmallVector<Value>> accs(height, SmallVector<Value>(width));
    for (int64_t column = 0; column < int64_t(width - 1) * columns.stride + columns.reach(*columns.tapSize);
         ++column) {
      SmallVector<unsigned> readers;
      for (unsigned i = 0; i < width; ++i)
        if (llvm::is_contained(columnTaps[i], column))
          readers.push_back(i);
      if (readers.empty())
        continue;
      llvm::DenseMap<int64_t, Value> loaded;
      for (unsigned r = 0; r < height; ++r) {
        Value sum;
        for (int64_t row : rowTaps[r]) {
          Value &v = loaded[row];
          if (!v)
            v = loadInput(
                b.add(start, b.add(b.mul(b.i64(row), rows.inStep), b.mul(b.i64(column), columns.inStep))),
                channel, lanes);
          // a NaN is no number to start with
          sum = sum ? combine(sum, v) : kind == Kind::MaxNumber ? combine(initial(lanes), v) : v;
        }
        for (unsigned i : readers)
          if (sum)
            accs[r][i] = accs[r][i] ? combine(accs[r][i], sum) : sum;
      }
    }
    for (unsigned r = 0; r < height; ++r) {
      for (unsigned i = 0; i < width; ++i) {
        Value &acc = accs[r][i];
        if (!acc)
          acc = initial(lanes);
        if (kind == Kind::Average)
          acc = average(acc, b.i64(rowTaps[r].size() * columnTaps[i].size()), lanes);
      }
      outIndex.back() = b.add(y, b.i64(r));
      finishPixels({width, 1, lanes}, x, channel, accs[r]);
    }
  });
}

void PoolEmitter::emitBlocks(TileShape most) {
  const RowTiles rows(dims[0].outSize, most.rows), pixels(dims[1].outSize, most.vecs);
  const WindowDim &d = dims[0];
  b.setExtent(hlo::simplify(hlo::getDims(acc)[0] * rows.numTiles));
  b.setWork(2 * *dims[0].tapSize * *dims[1].tapSize * *channelCount * *dims[1].outSize * rows.height);
  Value count = b.i64(rows.numTiles);
  b.loop(b.divU(b.begin, count), b.divU(b.add(b.end, b.sub(count, b.i64(1))), count), [&](Value image) {
    Value before = b.mul(image, count);
    rows.forEachInside(
        b, [&](int64_t y, int64_t height) { return d.inside(y, height, *d.tapSize, *d.inSize); },
        [&](Value y, unsigned height, int64_t knownY) {
          setRow(b.add(b.mul(image, d.out), y));
          forEachTile(pixels, [&](Value x, unsigned width, int64_t knownX) {
            emitBlock(y, height, knownY, x, width, knownX);
          });
        },
        b.max(b.sub(b.begin, before), b.i64(0)), b.min(b.sub(b.end, before), count));
  });
}

void PoolEmitter::emitRow() {
  forEachChannel(4, [&](Value c, unsigned vecs, unsigned lanes) {
    b.loop(b.i64(0), dims.back().out, [&](Value x) { emitPixel(x, c, vecs, lanes); });
  });
}

LogicalResult PoolEmitter::emit() {
  prepareRows();
  if (TileShape shape; chooseSpecial(b, "pool-blocks", whyNotBlocks(shape))) {
    emitBlocks(shape);
    return ok;
  }
  if (int64_t height = 0; chooseSpecial(b, "pool-tiles", whyNotTiles(height))) {
    // fewer rows would fetch those that they share more often
    emitRowsTogether(RowTiles(dims[1].outSize, height), rowsInL2(),
                     [&](Value x, unsigned count, int64_t known, Value c, unsigned lanes) { emitTile(x, count, known, c, lanes); });
    return ok;
  }
  chooseSpecial(b, "pool-pixels", WhyNot::none());
  b.units([&](Value unit) {
    setRow(unit);
    emitRow();
  });
  return ok;
}

} // namespace

LogicalResult emitPool(Operation *op, KernelBuilder &b) {
  auto pool = cast<kernel::PoolOp>(op);
  if (isa<ComplexType>(pool.getAccType().getElementType()))
    return op->emitOpError("pooling of complex numbers is not supported on CPUs");
  if (pool.getAccType().getRank() < 3)
    return op->emitOpError("pooling needs a spatial dimension");
  PoolEmitter emitter(op, b);
  emitter.readPool(pool);
  return emitter.emit();
}

} // namespace lathe::cpu
