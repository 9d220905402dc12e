// kernel.depthwise_conv: windows over images with the lanes along the channels (see Window.h).
//
// Where windows overlap and L1 holds what they share, a vector of channels is done for a few rows one after the other.
// Images of static width keep a run of pixels in registers and load each input vector once; the tiles at the border
// leave out taps at compile time.
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/Window.h"
#include "passes/codegen/cpu/passes/Chain.h"
#include "passes/codegen/cpu/product/Product.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

class WindowEmitter : WindowKernel {
public:
  WindowEmitter(Operation *op, KernelBuilder &b) : WindowKernel(op, b) {}
  void readConv(kernel::DepthwiseConvOp conv, std::optional<ChannelSlice> part = {});
  LogicalResult emit();

private:
  void emitRow();
  /// The lines of one vector of channels that a tile and the one below it read.
  int64_t linesShared() const;
  bool rowsOverlap() const;
  int64_t rowsTogether() const;
  void emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes);
  RowTiles pixelTiles() const;
  void emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes);
  Value zero(unsigned lanes) { return b.cst(regType(accElem, lanes), 0.0); }
  bool hasTiles() const;

  Type bElem;
};

void WindowEmitter::readConv(kernel::DepthwiseConvOp conv, std::optional<ChannelSlice> part) {
  slice = part;
  bElem = readDepthwise(conv).getElementType();
}

void WindowEmitter::emitPixel(Value x, Value channel, unsigned vecs, unsigned lanes) {
  setPosition(dims.back(), x);
  SmallVector<Value> accs(vecs, zero(lanes));
  accs = overTaps(dims.size(), accs, imageOffset, b.i64(0), [&](Value offset, Value tap, SmallVector<Value> now) {
    for (unsigned v = 0; v < vecs; ++v) {
      Value c = b.add(channel, b.i64(v * lanes));
      Value in = loadInput(offset, c, lanes);
      Value w = b.loadElem(bElem, b.operands[1], b.add(b.mul(tap, outChannels), c), lanes);
      now[v] = multiplyAdd(b, in, toAccumulator(b, w, bElem, accElem), now[v], accElem);
    }
    return now;
  }, isa<FloatType>(accElem));
  finishPixels({1, vecs, lanes}, x, channel, accs);
}

/// Pixels [x, x + height) of one vector of channels. `known`: x if static, else -1 and all taps are inside.
void WindowEmitter::emitTile(Value x, unsigned height, int64_t known, Value channel, unsigned lanes) {
  WindowDim &d = dims.back();
  int64_t taps = *d.tapSize, width = *d.inSize;
  SmallVector<Value> accs(height, zero(lanes));
  Value start = b.sub(b.mul(x, b.i64(d.stride)), b.i64(d.padLow));
  accs = overTaps(dims.size() - 1, accs, imageOffset, b.i64(0), [&](Value offset, Value tap, SmallVector<Value> now) {
    SmallVector<Value> weights;
    for (int64_t k = 0; k < taps; ++k) {
      Value at = b.add(b.mul(b.add(b.mul(tap, d.taps), b.i64(k)), outChannels), channel);
      weights.push_back(toAccumulator(b, b.loadElem(bElem, b.operands[1], at, lanes), bElem, accElem));
    }
    Value first = b.add(offset, b.mul(start, d.inStep));
    for (int64_t p = 0; p <= (height - 1) * d.stride + (taps - 1) * d.dilation; ++p) {
      int64_t at = known * d.stride - d.padLow + p;
      if (known >= 0 && (at < 0 || at >= width))
        continue;
      Value in;
      for (int64_t k = 0; k < taps; ++k) {
        int64_t r = p - k * d.dilation;
        if (r < 0 || r % d.stride || r / d.stride >= height)
          continue;
        if (!in)
          in = loadInput(b.add(first, b.mul(b.i64(p), d.inStep)), channel, lanes);
        now[r / d.stride] = multiplyAdd(b, in, weights[k], now[r / d.stride], accElem);
      }
    }
    return now;
  }, isa<FloatType>(accElem), taps);
  finishPixels({height, 1, lanes}, x, channel, accs);
}

bool WindowEmitter::hasTiles() const {
  const WindowDim &d = dims.back();
  return d.inSize && d.outSize && d.tapSize && *d.tapSize <= 9 && *d.tapSize > 0;
}

RowTiles WindowEmitter::pixelTiles() const {
  const WindowDim &d = dims.back();
  // accumulators, the taps of a row, and a few inputs
  return RowTiles(d.outSize, std::clamp<int64_t>(b.target.numVectorRegs - *d.tapSize - 3, 4, 14));
}

void WindowEmitter::emitRow() {
  if (hasTiles())
    return forEachChannel(1, [&](Value c, unsigned, unsigned lanes) {
      forEachTile(pixelTiles(), [&](Value x, unsigned height, int64_t known) { emitTile(x, height, known, c, lanes); });
    });
  forEachChannel(4, [&](Value c, unsigned vecs, unsigned lanes) {
    b.loop(b.i64(0), dims.back().out, [&](Value x) { emitPixel(x, c, vecs, lanes); });
  });
}

int64_t WindowEmitter::linesShared() const {
  const WindowDim &y = dims[dims.size() - 2], &x = dims.back();
  const int64_t across = (pixelTiles().height - 1) * x.stride + (*x.tapSize - 1) * x.dilation + 1;
  return (y.reach(*y.tapSize) + y.stride) * across;
}

/// Whether a row of results reads again most of what the row above it has read.
bool WindowEmitter::rowsOverlap() const {
  if (!hasTiles() || dims.size() < 2 || !channelCount || *channelCount == 0)
    return false;
  const WindowDim &y = dims[dims.size() - 2];
  return y.tapSize && *y.tapSize > 0 && y.reach(*y.tapSize) >= 2 * y.stride;
}

/// How many rows a vector of channels is done for at once.
int64_t WindowEmitter::rowsTogether() const {
  return !rowsOverlap() || linesShared() > setsUsed() * b.target.l1Ways ? 1 : rowsInL2();
}

LogicalResult WindowEmitter::emit() {
  prepareRows();
  chooseSpecial(b, rowsTogether() > 1 ? "windows-together" : hasTiles() ? "windows-tiles" : "windows-pixels", WhyNot::none());
  if (const int64_t together = rowsTogether(); together > 1)
    emitRowsTogether(pixelTiles(), together, [&](Value x, unsigned height, int64_t known, Value c, unsigned lanes) {
      emitTile(x, height, known, c, lanes);
    });
  else
    b.units([&](Value unit) {
      setRow(unit);
      emitRow();
    });
  return ok;
}

} // namespace

WhyNot whyNotWindows(kernel::DepthwiseConvOp conv) {
  RankedTensorType acc = conv.getAccType();
  if (llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return WhyNot::notMeant("the input is dilated");
  if (isa<ComplexType>(acc.getElementType()) || acc.getElementType().isInteger(1))
    return WhyNot::notMeant("channels are complex numbers or bits");
  if (acc.getRank() < 3 || conv.getBatchGroups() != 1)
    return WhyNot::notMeant("there are no images, or groups of them");
  return WhyNot::none();
}

LogicalResult emitDepthwiseConv(Operation *op, KernelBuilder &b) {
  auto conv = cast<kernel::DepthwiseConvOp>(op);
  if (!chooseSpecial(b, "windows", whyNotWindows(conv)))
    return emitConv(op, b);
  if (chooseSpecial(b, "byte-windows", whyNotByteWindows(conv, b.target)))
    return emitByteWindows(conv, b);
  WindowEmitter emitter(op, b);
  emitter.readConv(conv);
  return emitter.emit();
}

LogicalResult emitDepthwiseRows(kernel::DepthwiseConvOp conv, KernelBuilder &b, const ChannelSlice &slice) {
  if (!hasWindows(conv))
    return conv.emitOpError("not by rows");
  WindowEmitter emitter(conv, b);
  emitter.readConv(conv, slice);
  return emitter.emit();
}

} // namespace lathe::cpu
