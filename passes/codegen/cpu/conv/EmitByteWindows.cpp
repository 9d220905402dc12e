// kernel.depthwise_conv of bytes: windows over images with the lanes along the channels (see Window.h),
// several taps of a row of the window multiplied at once.
//
// The pixels of a tile are interleaved, so that a lane has one channel of as many neighbours as an
// instruction multiplies: four bytes (vpdpbusd) or two words (vpmaddwd). Each such group is made once and
// read by all results whose windows touch it; where a window begins or ends inside of a group, its weights
// there are zeros. So there is a copy of the weights for each place in a group at which windows begin. They
// are made for a block of channels before its pixels, in scratch, beside the numbers that the epilogue reads.
//
// Pixels outside of the image are constants, and rows of taps outside of it add sums that are made with the
// weights, so that images need no copy with a border.
//
//   pixels  0 1 2 3 | 4 5 . .      taps a b c, stride 1, groups of four
//   result 0: a b c 0               result 2: 0 0 a b | c 0 0 0
//   result 1: 0 a b c               result 3: 0 0 0 a | b c 0 0
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/NarrowEpilogue.h"
#include "passes/codegen/cpu/conv/Window.h"
#include "passes/codegen/cpu/product/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace lathe::cpu {
namespace {

/// Channels of the narrowest block, and the taps of a row that are unrolled at most.
constexpr int64_t fewestChannels = 16, mostTaps = 16;

class ByteWindowEmitter : WindowKernel {
public:
  ByteWindowEmitter(kernel::DepthwiseConvOp conv, KernelBuilder &b);
  LogicalResult emit();

private:
  /// The bytes of one pixel's or tap's channels, or both halves of them as words.
  using Parts = SmallVector<Value, 2>;
  using Vectors = SmallVector<Value, 4>;

  int64_t group() const { return format.group(); }
  int64_t groupsOf(int64_t place) const { return llvm::divideCeil(place + reach, group()); }
  bool startsAt(int64_t place) const;
  int64_t vectorsOfRow() const;
  Parts load(Type elem, Value pointer, Value at) const;
  /// One number for all channels, as it is multiplied.
  Parts splat(int64_t value) const;
  Parts zeros() const { return splat(0); }
  /// What stands for a pixel outside of the image.
  int64_t padBits() const { return format.kind == OperandFormat::Kind::Bytes ? static_cast<int8_t>(padValue) : padValue; }
  Vectors interleave(ArrayRef<Parts> pixels) const;
  Value multiply(Value x, Value weights, Value sum) const;
  void setBlock(unsigned lanes);
  void prepare(Value channel);
  void addRowsOutside(Vectors &sums, unsigned height);
  void emitTile(Value x, unsigned height, int64_t known, Value channel);
  void emitBlocks(Value first, Value last, int64_t begin, int64_t end, unsigned lanes);

  NarrowEpilogue narrow;
  OperandFormat format;
  Type bElem;
  int64_t reach = 1; ///< pixels from the first to the last tap of a row
  int64_t numRows = 1;
  bool padded = false;
  int64_t padValue = 0; ///< outside of the image, as it is multiplied
  // of the block of channels
  UnpackedOrder order;
  Value starts, tables, weights, outside; ///< in scratch; outside: what each row of taps adds where none is inside
};

ByteWindowEmitter::ByteWindowEmitter(kernel::DepthwiseConvOp conv, KernelBuilder &b)
    : WindowKernel(conv, b), narrow(b, conv) {
  RankedTensorType filter = readDepthwise(conv);
  bElem = filter.getElementType();
  for (int64_t size : filter.getShape().drop_back(3))
    numRows *= size;
  reach = dims.back().reach(*dims.back().tapSize);
  format = integerFormat(b.target, aElem, bElem, accElem);
  padded = llvm::any_of(conv.getPadding(), [](int64_t p) { return p > 0; });
  padValue = padValueOf(conv);
  if (format.biased) // of the two numbers with these bits the one that is multiplied
    padValue += 128;
}

/// Whether a window begins at this place of a group.
bool ByteWindowEmitter::startsAt(int64_t place) const {
  return place % std::gcd(dims.back().stride, group()) == 0;
}

int64_t ByteWindowEmitter::vectorsOfRow() const {
  int64_t groups = 0;
  for (int64_t place = 0; place < group(); ++place)
    if (startsAt(place))
      groups += groupsOf(place);
  return groups * order.vectors;
}

ByteWindowEmitter::Parts ByteWindowEmitter::load(Type elem, Value pointer, Value at) const {
  const unsigned count = order.channels();
  if (format.kind == OperandFormat::Kind::Bytes)
    return {b.loadElem(elem, pointer, at, count)};
  Parts halves;
  for (unsigned half = 0; half < 2; ++half) {
    Value v = b.loadElem(elem, pointer, b.add(at, b.i64(half * count / 2)), count / 2);
    Type words = VectorType::get({count / 2}, b.getI16Type());
    if (v.getType() != words)
      v = isUnsignedElem(elem) ? arith::ExtUIOp::create(b, words, v).getResult()
                               : arith::ExtSIOp::create(b, words, v);
    halves.push_back(v);
  }
  return halves;
}

ByteWindowEmitter::Parts ByteWindowEmitter::splat(int64_t value) const {
  const unsigned count = order.channels();
  if (format.kind == OperandFormat::Kind::Bytes)
    return {b.cstI(VectorType::get({count}, b.getI8Type()), static_cast<int8_t>(value))};
  return Parts(2, b.cstI(VectorType::get({count / 2}, b.getI16Type()), value));
}

/// What unpack instructions do: the elements of the lower or the upper half of each 128 bits in turn.
static Value unpack(KernelBuilder &b, Value x, Value y, unsigned elemBits, bool upper) {
  auto type = cast<VectorType>(x.getType());
  const int64_t bits = type.getNumElements() * type.getElementTypeBitWidth(), count = bits / elemBits,
                each = 128 / elemBits;
  auto narrow = VectorType::get({count}, b.getIntegerType(elemBits));
  if (narrow != type) {
    x = vector::BitCastOp::create(b, narrow, x);
    y = vector::BitCastOp::create(b, narrow, y);
  }
  SmallVector<int64_t> pick;
  for (int64_t i = 0; i < count; ++i)
    pick.push_back(i / each * each + (upper ? each / 2 : 0) + i % each / 2 + (i % 2 ? count : 0));
  return vector::ShuffleOp::create(b, x, y, pick);
}

ByteWindowEmitter::Vectors ByteWindowEmitter::interleave(ArrayRef<Parts> pixels) const {
  Vectors all;
  if (format.kind == OperandFormat::Kind::Bytes) {
    for (bool upper : {false, true}) {
      Value low = unpack(b, pixels[0][0], pixels[1][0], 8, upper),
            high = unpack(b, pixels[2][0], pixels[3][0], 8, upper);
      all.push_back(unpack(b, low, high, 16, false));
      all.push_back(unpack(b, low, high, 16, true));
    }
    auto bytes = VectorType::get({order.channels()}, b.getI8Type());
    for (Value &v : all)
      v = vector::BitCastOp::create(b, bytes, v);
    return all;
  }
  for (unsigned half = 0; half < 2; ++half)
    for (bool upper : {false, true})
      all.push_back(unpack(b, pixels[0][half], pixels[1][half], 16, upper));
  return all;
}

Value ByteWindowEmitter::multiply(Value x, Value w, Value sum) const {
  return multiplyGroups(b, format, x, w, sum);
}

void ByteWindowEmitter::setBlock(unsigned lanes) {
  order = {lanes, format.kind == OperandFormat::Kind::Bytes};
  starts = b.scratch;
  tables = b.ptrBytes(starts, b.i64(4 * order.channels()));
  outside = b.ptrBytes(tables, b.i64(llvm::alignTo(narrow.tableBytes(order), 64)));
  weights = b.ptrBytes(outside, b.i64(padded ? numRows * order.channels() * 4 : 0));
}

/// The weights, what sums start with, and the epilogue's numbers.
void ByteWindowEmitter::prepare(Value channel) {
  narrow.prepare(order, channel, tables);
  const Type elem = format.kind == OperandFormat::Kind::Bytes ? Type(b.getI8Type()) : b.getI16Type();
  const int64_t perVector = order.lanes * group(), taps = *dims.back().tapSize,
                dilation = dims.back().dilation;
  auto sum32 = VectorType::get({order.lanes}, b.getI32Type());
  SmallVector<Value> sums(order.vectors, b.cstI(sum32, 0));
  sums = b.loop(b.i64(0), b.i64(numRows), b.i64(1), sums, [&](Value row, ValueRange in) {
    SmallVector<Value> now(in);
    SmallVector<Parts> tapsOfRow;
    for (int64_t k = 0; k < taps; ++k) {
      Value at = b.add(b.mul(b.add(b.mul(row, b.i64(taps)), b.i64(k)), outChannels), channel);
      tapsOfRow.push_back(load(bElem, b.operands[1], at));
    }
    Value to = b.ptrAt(weights, elem, b.mul(row, b.i64(vectorsOfRow() * perVector)));
    int64_t written = 0;
    SmallVector<Value> rowOutside(order.vectors, b.cstI(sum32, 0));
    for (int64_t place = 0; place < group(); ++place) {
      if (!startsAt(place))
        continue;
      for (int64_t g = 0; g < groupsOf(place); ++g) {
        SmallVector<Parts> members;
        for (int64_t i = 0; i < group(); ++i) {
          const int64_t k = g * group() + i - place;
          members.push_back(k >= 0 && k < reach && k % dilation == 0 ? tapsOfRow[k / dilation] : zeros());
        }
        for (auto [v, w] : llvm::enumerate(interleave(members))) {
          b.storeElem(elem, w, to, b.i64(written++ * perVector));
          if (format.biased && place == 0)
            now[v] = multiply(b.cstI(w.getType(), -128), w, now[v]);
          if (padded && place == 0)
            rowOutside[v] = multiply(b.cstI(w.getType(), padBits()), w, rowOutside[v]);
        }
      }
    }
    if (padded)
      for (auto [v, sum] : llvm::enumerate(rowOutside))
        b.storeElem(b.getI32Type(), sum, outside, b.add(b.mul(row, b.i64(order.channels())), b.i64(v * order.lanes)));
    return now;
  });
  for (unsigned v = 0; v < order.vectors; ++v) {
    Value start = narrow.start(order, v);
    // bytes are read plus 128
    Value less = arith::SubIOp::create(b, start ? start : b.cstI(sum32, 0), sums[v]);
    b.storeElem(b.getI32Type(), less, starts, b.i64(v * order.lanes));
  }
}

/// What rows of taps that are outside of the image add to the sums.
void ByteWindowEmitter::addRowsOutside(Vectors &sums, unsigned height) {
  using Sums = SmallVector<Value>;
  auto addRows = [&](Value first, Value last, Sums now) {
    return b.loop(first, last, b.i64(1), now, [&](Value row, ValueRange in) {
      Sums more(in);
      for (unsigned v = 0; v < order.vectors; ++v) {
        Value at = b.add(b.mul(row, b.i64(order.channels())), b.i64(v * order.lanes));
        Value sum = b.loadElem(b.getI32Type(), outside, at, order.lanes);
        for (unsigned i = 0; i < height; ++i)
          more[i * order.vectors + v] = arith::AddIOp::create(b, more[i * order.vectors + v], sum);
      }
      return more;
    });
  };
  // all rows below taps of a dimension that are outside, and the others one dimension further in
  std::function<Sums(unsigned, Value, Sums)> level = [&](unsigned i, Value base, Sums now) -> Sums {
    const WindowDim &d = dims[i];
    Value inner = b.i64(1);
    for (const WindowDim &o : ArrayRef<WindowDim>(dims).slice(i + 1).drop_back())
      inner = b.mul(inner, o.taps);
    // where none is inside, the first one may lie behind the last
    Value first = b.min(d.position.firstTap, d.taps), last = b.max(d.position.lastTap, first);
    now = addRows(base, b.add(base, b.mul(first, inner)), now);
    now = addRows(b.add(base, b.mul(last, inner)), b.add(base, b.mul(d.taps, inner)), now);
    if (i + 2 == dims.size())
      return now;
    return b.loop(first, last, b.i64(1), now, [&](Value tap, ValueRange in) { return level(i + 1, b.add(base, b.mul(tap, inner)), Sums(in)); });
  };
  Sums done = level(0, b.i64(0), Sums(sums.begin(), sums.end()));
  sums.assign(done.begin(), done.end());
}

/// Pixels [x, x + height) of a block of channels. `known`: x if static, else -1 and all taps of a row are inside.
void ByteWindowEmitter::emitTile(Value x, unsigned height, int64_t known, Value channel) {
  const WindowDim &d = dims.back();
  const int64_t perVector = order.lanes * group(), span = (height - 1) * d.stride + reach;
  const Type elem = format.kind == OperandFormat::Kind::Bytes ? Type(b.getI8Type()) : b.getI16Type();
  auto isInside = [&](int64_t place) {
    const int64_t at = known * d.stride - d.padLow + place;
    return known < 0 || (at >= 0 && at < *d.inSize);
  };
  Vectors sums;
  for (unsigned i = 0; i < height; ++i)
    for (unsigned v = 0; v < order.vectors; ++v)
      sums.push_back(b.loadElem(b.getI32Type(), starts, b.i64(v * order.lanes), order.lanes));
  Value start = b.sub(b.mul(x, b.i64(d.stride)), b.i64(d.padLow));
  // where in a row of weights those for a place begin
  SmallVector<int64_t> begins(group(), 0);
  for (int64_t place = 0, at = 0; place < group(); ++place) {
    begins[place] = at;
    if (startsAt(place))
      at += groupsOf(place) * order.vectors;
  }
  if (padded && dims.size() > 1)
    addRowsOutside(sums, height);
  SmallVector<Value> all = overTaps(
      dims.size() - 1, SmallVector<Value>(sums.begin(), sums.end()), imageOffset, b.i64(0),
      [&](Value offset, Value row, SmallVector<Value> now) {
        Value first = b.add(b.add(offset, b.mul(start, d.inStep)), channel);
        Value from = b.ptrAt(weights, elem, b.mul(row, b.i64(vectorsOfRow() * perVector)));
        for (int64_t g = 0; g * group() < span; ++g) {
          SmallVector<unsigned> readers;
          for (unsigned i = 0; i < height; ++i)
            if (const int64_t begin = i * d.stride;
                begin / group() <= g && g < begin / group() + groupsOf(begin % group()))
              readers.push_back(i);
          if (readers.empty())
            continue;
          SmallVector<Parts> pixels;
          for (int64_t p = g * group(); p < (g + 1) * group(); ++p) {
            const bool inside = p < span && isInside(p);
            pixels.push_back(inside ? load(aElem, b.operands[0], b.add(first, b.mul(b.i64(p), d.inStep)))
                                    : splat(p < span ? padBits() : 0));
            if (format.biased && inside)
              pixels.back()[0] =
                  arith::XOrIOp::create(b, pixels.back()[0], b.cstI(pixels.back()[0].getType(), -128));
          }
          Vectors groups = interleave(pixels);
          for (unsigned i : readers) {
            const int64_t place = i * d.stride % group(),
                          at = begins[place] + (g - i * d.stride / group()) * order.vectors;
            for (unsigned v = 0; v < order.vectors; ++v) {
              Value w = b.loadElem(elem, from, b.i64((at + v) * perVector), perVector);
              Value &sum = now[i * order.vectors + v];
              sum = multiply(groups[v], w, sum);
            }
          }
        }
        return now;
      },
      /*adds=*/false);
  for (unsigned i = 0; i < height; ++i) {
    SmallVector<Value> index(outIndex);
    index.append({b.add(x, b.i64(i)), channel});
    if (failed(narrow.emit(order, index, ArrayRef<Value>(all).slice(i * order.vectors, order.vectors))))
      ok = failure();
  }
}

/// Blocks of channels from `begin` to `end`, all rows of [first, last) for each.
void ByteWindowEmitter::emitBlocks(Value first, Value last, int64_t begin, int64_t end, unsigned lanes) {
  setBlock(lanes);
  const RowTiles tiles(dims.back().outSize, b.target.numVectorRegs >= 32 ? 4 : 2);
  b.loop(b.i64(begin), b.i64(end), b.i64(order.channels()), [&](Value channel) {
    prepare(channel);
    b.loop(first, last, [&](Value unit) {
      setRow(unit);
      forEachTile(tiles, [&](Value x, unsigned height, int64_t known) { emitTile(x, height, known, channel); });
    });
  });
}

LogicalResult ByteWindowEmitter::emit() {
  prepareRows();
  setBlock(b.target.lanes(accElem));
  b.setScratch(4 * order.channels() + llvm::alignTo(narrow.tableBytes(order), 64) +
               numRows * (vectorsOfRow() * order.lanes + (padded ? order.channels() : 0)) * 4);
  const int64_t together = dims.size() < 2 ? 1 << 20 : rowsInL2();
  b.loop(b.begin, b.end, b.i64(together), [&](Value first) {
    Value last = b.min(b.end, b.add(first, b.i64(together)));
    const int64_t channels = *channelCount;
    int64_t done = 0;
    for (unsigned lanes = b.target.lanes(accElem); lanes >= 4 && done < channels; lanes /= 2) {
      const int64_t width = 4 * lanes, whole = (channels - done) / width * width;
      if (whole)
        emitBlocks(first, last, done, done + whole, lanes);
      done += whole;
      // a last block that begins inside of the one before it computes some channels twice, the same
      if (const int64_t rest = channels - done;
          rest && channels >= width && (rest > width / 2 || lanes == 4)) {
        emitBlocks(first, last, channels - width, channels, lanes);
        done = channels;
      }
    }
  });
  return ok;
}

} // namespace

WhyNot whyNotByteWindows(kernel::DepthwiseConvOp conv, const KernelTarget &target) {
  auto input = cast<RankedTensorType>(conv.getInput().getType()),
       filter = cast<RankedTensorType>(conv.getFilter().getType());
  RankedTensorType acc = conv.getAccType();
  const int64_t rank = acc.getRank();
  if (!input.getElementType().isInteger(8) || !acc.getElementType().isInteger(32))
    return WhyNot::notMeant("operands are not bytes with sums of 32 bits");
  if (WhyNot why = whyNotWindows(conv); !why.takes())
    return why;
  if (!integerFormat(target, input.getElementType(), filter.getElementType(), acc.getElementType())
           .isInteger() ||
      !target.x86 || target.lanes(acc.getElementType()) < 4)
    return WhyNot::notMeant("the target has no instruction for pairs of products");
  if (WhyNot why = NarrowEpilogue::whyNot(conv); !why.takes())
    return why;
  if (!filter.hasStaticShape() || acc.isDynamicDim(rank - 1) || acc.isDynamicDim(rank - 2) ||
      input.isDynamicDim(rank - 2))
    return WhyNot::lacks("rows of pixels or the filter are of unknown size");
  if (filter.getShape().back() != input.getShape().back())
    return WhyNot::lacks("a channel has several results");
  if (acc.getShape().back() < fewestChannels)
    return WhyNot::notMeant("there are fewer channels than a vector has");
  if (acc.getDimSize(rank - 2) < 1 || llvm::any_of(filter.getShape(), [](int64_t d) { return d < 1; }))
    return WhyNot::notMeant("there is nothing to sum up");
  if ((filter.getDimSize(rank - 3) - 1) * conv.getRhsDilation().back() >= mostTaps)
    return WhyNot::notMeant("a window has more taps in a row than are unrolled");
  return WhyNot::none();
}

LogicalResult emitByteWindows(kernel::DepthwiseConvOp conv, KernelBuilder &b) {
  return ByteWindowEmitter(conv, b).emit();
}

} // namespace lathe::cpu
