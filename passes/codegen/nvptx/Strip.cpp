// Poolings and depthwise convolutions over two dimensions whose windows overlap: a thread makes a strip of neighbouring pixels, four
// channels of each. What it reads of a row of the window it reads at once, and once for all pixels of the strip, and so it does the
// filter. A block makes strips one below the other, which read the same rows. Where there are too few pixels for that a strip is one, and
// its thread reads several rows at once.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/plain/Core.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::ElementEmitter;
using codegen::KernelBuilder;

constexpr int64_t lanes = 4, widestStrip = 4;

namespace {

/// Windows along a dimension of the images.
struct Windows {
  int64_t in, out, taps, stride, low, dilation;
};

struct Strip {
  Windows down, across;
  int64_t channels, inputChannels;
  int64_t each() const { return channels / inputChannels; } ///< results of a channel
  int64_t pixels;               ///< of a strip
  SmallVector<int64_t> columns; ///< that a strip reads, from the first of its first pixel's window on, in order
  int64_t bandRows;             ///< neighbouring rows of the result, whose strips follow each other
  int64_t vectors;              ///< of channels, whose strips follow each other
  int64_t rowsAtOnce = 1;       ///< of a window, which are loaded before any is computed
  int64_t threads, residents;   ///< of a block, and blocks of a multiprocessor

  void setPixels(int64_t count);
  int64_t strips() const { return llvm::divideCeil(across.out, pixels); }
  int64_t bands() const { return llvm::divideCeil(down.out, bandRows); }
  /// Vectors of four elements that a thread holds at a time.
  int64_t held(Operation *filter) const { return static_cast<int64_t>(columns.size()) + pixels + (filter ? across.taps : 0); }
  /// Loads for a row of the result, but for the rows of the window.
  int64_t loads(Operation *filter) const { return strips() * (held(filter) - pixels); }
};

} // namespace

void Strip::setPixels(int64_t count) {
  pixels = count;
  columns.clear();
  for (int64_t p = 0; p < count; ++p)
    for (int64_t t = 0; t < across.taps; ++t)
      columns.push_back(p * across.stride + t * across.dilation);
  llvm::sort(columns);
  columns.erase(llvm::unique(columns), columns.end());
}

static RankedTensorType resultOf(Operation *op) {
  auto conv = dyn_cast<kernel::DepthwiseConvOp>(op);
  return conv ? conv.getAccType() : cast<kernel::PoolOp>(op).getAccType();
}

static Windows windowsOf(Operation *op, int64_t i) {
  auto of = [&](auto o, int64_t taps, ArrayRef<int64_t> dilation) {
    return Windows{hlo::tensorType(op->getOperand(0)).getDimSize(i + 1), resultOf(op).getDimSize(i + 1), taps, o.getStrides()[i],
                   o.getPadding()[2 * i], dilation[i]};
  };
  if (auto conv = dyn_cast<kernel::DepthwiseConvOp>(op))
    return of(conv, hlo::tensorType(conv.getFilter()).getDimSize(i), conv.getRhsDilation());
  auto pool = cast<kernel::PoolOp>(op);
  return of(pool, pool.getWindow()[i], pool.getWindowDilation());
}

/// How many rows a block's strips lie in: few are left over, and several read the same.
static int64_t rowsOfBand(int64_t rows) {
  constexpr int64_t fewest = 4, most = 8;
  int64_t best = std::min(rows, most);
  for (int64_t n = best - 1; n >= fewest; --n)
    if (llvm::alignTo(rows, n) < llvm::alignTo(rows, best))
      best = n;
  return best;
}

/// Vectors of a pixel that a block does together: a warp's at most, so that it has rows of several strips, and whole lines of memory.
static int64_t vectorsTogether(int64_t vectors) {
  if (vectors <= warpThreads)
    return vectors;
  for (int64_t step : {8, 4, 2})
    for (int64_t n = warpThreads; n >= 8; n -= step)
      if (vectors % n == 0)
        return n;
  return vectors;
}

/// The strips of an op; or why there are none.
static std::string plan(Operation *op, Strip &s) {
  if (!isa<kernel::PoolOp, kernel::DepthwiseConvOp>(op))
    return "no pooling and no depthwise convolution";
  if (std::string why = whyNoWide(op); !why.empty())
    return why;
  auto conv = dyn_cast<kernel::DepthwiseConvOp>(op);
  RankedTensorType in = hlo::tensorType(op->getOperand(0)), out = resultOf(op);
  if (in.getRank() != 4)
    return "other than two dimensions of an image";
  auto isKnown = [](RankedTensorType type) { return llvm::all_of(type.getShape().drop_front(), [](int64_t d) { return d > 0; }); };
  if (!isKnown(in) || !isKnown(out) || (conv && !hlo::tensorType(conv.getFilter()).hasStaticShape()))
    return "sizes but the batch's that are known at run time only, or none";
  if (conv && llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return "a dilated input";
  s.down = windowsOf(op, 0);
  s.across = windowsOf(op, 1);
  s.channels = out.getDimSize(3);
  s.inputChannels = in.getDimSize(3);
  constexpr int64_t manyTaps = 64; // longer sums are made in blocks, see LongSums.h
  if (s.down.taps < 1 || s.across.taps < 1 || s.down.taps > manyTaps || s.across.taps > manyTaps / s.down.taps)
    return "windows of many elements, or none";
  if (!conv && (s.across.taps - 1) * s.across.dilation < s.across.stride)
    return "windows that do not overlap";
  // offsets in 64 bits, whatever they are multiplied by
  constexpr int64_t far = int64_t(1) << 20, large = int64_t(1) << 30;
  for (const Windows &w : {s.down, s.across})
    if (w.stride > far || w.dilation > far || std::abs(w.low) > far)
      return "windows far apart";
  if (s.down.in > large / s.inputChannels / s.across.in)
    return "large images";
  // Each thread has the work of several pixels: a device needs enough of them.
  constexpr int64_t fewest = 132 * 1024, fourBlocks = 13, twoBlocks = 20;
  const int64_t threeBlocks = conv ? 16 : 14;
  const int64_t lines = std::max<int64_t>(1, in.getDimSize(0)) * s.down.out * (s.channels / lanes);
  int64_t best = 0, loads = 0;
  for (int64_t n = 2; n <= widestStrip; ++n) {
    s.setPixels(n);
    if (lines * s.strips() < fewest || s.held(conv) > twoBlocks || (best && s.loads(conv) >= loads))
      continue;
    best = n;
    loads = s.loads(conv);
  }
  // Few threads have registers enough, and nothing else to do while they wait.
  constexpr int64_t mostLoaded = 24;
  if (best) {
    s.setPixels(best);
  } else {
    s.setPixels(1);
    const int64_t row = s.held(conv) - 1;
    if (!in.hasStaticShape() || lines * s.strips() >= 2 * fewest || row > mostLoaded)
      return "few strips, or too much to hold";
    s.rowsAtOnce = std::min(mostLoaded / row, s.down.taps);
  }
  s.threads = best ? 256 : 128;
  s.residents = s.held(conv) <= fourBlocks || !best ? 4 : s.held(conv) <= threeBlocks ? 3 : 2;
  s.bandRows = rowsOfBand(s.down.out);
  s.vectors = vectorsTogether(s.channels / lanes);
  return {};
}

std::string whyNoStrip(Operation *op) {
  Strip strip;
  return plan(op, strip);
}

namespace {

/// The code of a strip.
class StripEmitter {
public:
  StripEmitter(Operation *op, KernelBuilder &b, const Strip &s);
  /// The results of the pixels from `index` on, four channels each; some may lie outside.
  SmallVector<Value> at(ArrayRef<Value> index);

private:
  /// Whether the place of the image that lies `offset` from the first of a window is in it; null if it is for all up to the last
  /// result. `pixel`: the window's place, but for the padding.
  Value inside(const Windows &w, int64_t lastResult, int64_t offset, Value pixel);
  /// Adds so many rows of the window from `first` on. `rows`: which of them are in the image; empty if all are.
  SmallVector<Value> add(int64_t first, int64_t count, ArrayRef<Value> rows, ValueRange sums);
  size_t column(int64_t pixel, int64_t tap) const {
    return llvm::find(s.columns, pixel * s.across.stride + tap * s.across.dilation) - s.columns.begin();
  }
  /// How many of these are in the image.
  Value count(ArrayRef<Value> insides);

  Operation *op;
  KernelBuilder &b;
  const Strip &s;
  std::optional<codegen::Accumulator> products; ///< of a convolution
  std::optional<plain::Pooling> pooling;
  Value feature;       ///< the first one's number
  Value pixel, filter; ///< pointers: where the first pixel's window begins, but for the padding, and the filter of the channels
  SmallVector<Value> columnInside;
};

} // namespace

StripEmitter::StripEmitter(Operation *op, KernelBuilder &b, const Strip &s) : op(op), b(b), s(s) {
  auto type = [&](unsigned i) { return hlo::elementType(op->getOperand(i)); };
  if (auto pool = dyn_cast<kernel::PoolOp>(op))
    pooling.emplace(pool, b);
  else
    products.emplace(b, type(0), type(1), resultOf(op).getElementType());
}

Value StripEmitter::inside(const Windows &w, int64_t lastResult, int64_t offset, Value pixel) {
  const int64_t apart = offset - w.low;
  if (apart >= 0 && lastResult * w.stride + apart < w.in)
    return {};
  return b.inRange(b.add(pixel, b.i64(apart)), b.i64(0), b.i64(w.in));
}

Value StripEmitter::count(ArrayRef<Value> insides) {
  Value n = b.i64(0);
  for (Value in : insides)
    n = b.add(n, in ? b.select(in, b.i64(1), b.i64(0)) : b.i64(1));
  return n;
}

SmallVector<Value> StripEmitter::add(int64_t first, int64_t count, ArrayRef<Value> rows, ValueRange before) {
  struct Place {
    Value element, inside;
  };
  SmallVector<Place> places; // [row, column]
  SmallVector<Value> weights, sums(before);
  Value image = op->getOperand(0);
  Type type = codegen::regType(hlo::elementType(image), lanes);
  for (int64_t t = first; t < first + count; ++t) {
    for (auto [offset, column] : llvm::zip(s.columns, columnInside)) {
      Value row = rows.empty() ? Value() : rows[t - first], in = row && column ? b.both(row, column) : row ? row : column;
      const int64_t apart = (t * s.down.dilation - s.down.low) * s.across.in + offset - s.across.low;
      auto get = [&] {
        Value place = b.i64(apart * s.inputChannels);
        return SmallVector<Value>{codegen::loadChannels(b, hlo::elementType(image), pixel, place, feature, s.each(), lanes)};
      };
      // what is not in the image is not loaded: one instruction whose predicate is false
      Value x = in ? b.ifElse(in, type, get, [&] { return SmallVector<Value>{b.cstI(type, 0)}; })[0] : get()[0];
      places.push_back({x, in});
    }
    for (int64_t u = 0; products && u < s.across.taps; ++u)
      weights.push_back(b.loadElem(hlo::elementType(op->getOperand(1)), filter, b.i64((t * s.across.taps + u) * s.channels), lanes));
  }
  if (pooling)
    for (Place &p : places) { // what is outside changes nothing
      p.element = pooling->element(p.element);
      p.element = p.inside ? b.select(p.inside, p.element, pooling->begin(lanes)) : p.element;
    }
  for (int64_t t = 0; t < count; ++t)
    for (int64_t u = 0; u < s.across.taps; ++u)
      for (auto [p, sum] : llvm::enumerate(sums)) {
        const Place &place = places[t * s.columns.size() + column(p, u)];
        if (pooling) {
          sum = pooling->add(sum, place.element);
          continue;
        }
        Value more = products->step(sum, place.element, weights[t * s.across.taps + u]);
        sum = place.inside ? b.select(place.inside, more, sum) : more; // a product with zero might change the sum's sign, or be no number
      }
  return sums;
}

SmallVector<Value> StripEmitter::at(ArrayRef<Value> index) {
  auto scaled = [&](const Windows &w, Value result) { return b.mul(result, b.i64(w.stride)); };
  Value y = scaled(s.down, index[1]), x = scaled(s.across, index[2]), in = op->getOperand(0);
  feature = index[3];
  Value channel = b.divU(feature, b.i64(s.each()));
  pixel = b.ptrAt(b.operands[0], hlo::elementType(in), b.linearize({index[0], y, x, channel}, b.dims(hlo::tensorType(in))));
  filter = products ? b.ptrAt(b.operands[1], hlo::elementType(op->getOperand(1)), index[3]) : Value();
  columnInside.clear();
  for (int64_t offset : s.columns)
    columnInside.push_back(inside(s.across, (s.strips() - 1) * s.pixels, offset, x));
  SmallVector<Value> sums(s.pixels, products ? products->zero(lanes) : pooling->begin(lanes)), rowInside;
  for (int64_t t = 0; t < s.down.taps; t += s.rowsAtOnce) {
    const int64_t count = std::min(s.rowsAtOnce, s.down.taps - t);
    for (int64_t u = t; u < t + count; ++u)
      rowInside.push_back(inside(s.down, s.down.out - 1, u * s.down.dilation, y));
    if (s.rowsAtOnce > 1)
      sums = add(t, count, ArrayRef<Value>(rowInside).slice(t, count), sums);
    else if (rowInside[t])
      sums = b.ifElse(rowInside[t], ValueRange(sums).getTypes(), [&] { return add(t, 1, {}, sums); }, [&] { return sums; });
    else
      sums = add(t, 1, {}, sums);
  }
  Value rows;
  for (auto [p, sum] : llvm::enumerate(sums)) {
    if (products) {
      sum = products->finish(sum);
      continue;
    }
    sum = pooling->finish(sum, [&, p = p] {
      SmallVector<Value> taps;
      for (int64_t t = 0; t < s.across.taps; ++t)
        taps.push_back(columnInside[column(p, t)]);
      rows = rows ? rows : count(rowInside);
      return b.mul(rows, count(taps));
    });
  }
  return sums;
}

LogicalResult emitStrip(Operation *op, KernelBuilder &b) {
  Strip s;
  plan(op, s);
  plain::Elements elements = plain::bindOperands(op, b);
  ElementEmitter &e = *elements.emitter;
  RankedTensorType type = resultOf(op);
  Value sums = kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : Value(op->getResult(0));
  BlockFrame frame(b, s.threads);
  frame.setResidents(s.residents);
  // numbered so that neighbouring threads have neighbouring channels, then rows below each other, then strips side by side
  auto known = [&](int64_t n) { return b.getAffineConstantExpr(n); };
  SmallVector<AffineExpr> counts{hlo::getDim(type, 0), known(s.bands()), known(s.channels / lanes / s.vectors), known(s.strips()),
                                 known(s.bandRows), known(s.vectors)};
  const AffineExpr units = hlo::numElements(counts, b.getContext());
  frame.setBlocks(units.ceilDiv(s.threads));
  b.setWork(s.pixels * lanes * 64);
  SmallVector<Value> sizes;
  for (AffineExpr count : counts)
    sizes.push_back(b.dim(count));
  Value unit = b.add(b.mul(frame.block(), b.i64(s.threads)), frame.thread);
  SmallVector<Value> place = b.delinearize(unit, sizes), resultSizes = b.dims(type);
  Value batch = place[0], strip = place[3], y = b.add(b.mul(place[1], b.i64(s.bandRows)), place[4]);
  Value vector = b.add(b.mul(place[2], b.i64(s.vectors)), place[5]);
  SmallVector<Value> index{batch, y, b.mul(strip, b.i64(s.pixels)), b.mul(vector, b.i64(lanes))};
  LogicalResult ok = success();
  // all is read before anything is written: a result may lie where an operand does
  auto store = [&](ArrayRef<Value> results, int64_t from, int64_t to) {
    ElementEmitter::Scope scope(e);
    SmallVector<SmallVector<Value>> values;
    SmallVector<Value> at(index), places;
    for (int64_t p = from; p < to; ++p) {
      at[2] = b.add(index[2], b.i64(p));
      places.push_back(b.linearize(at, resultSizes));
      e.bindElement(sums, [sum = results[p]](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return sum; });
      values.emplace_back();
      for (Value root : elements.roots) {
        FailureOr<Value> v = e.emit(root, at, lanes);
        if (failed(v)) {
          ok = failure();
          return;
        }
        values.back().push_back(*v);
      }
    }
    for (auto [pixel, at] : llvm::zip(values, places))
      for (auto [root, v, pointer] : llvm::zip(elements.roots, pixel, b.results))
        b.storeElem(hlo::elementType(root), v, pointer, at);
  };
  auto all = [&] {
    SmallVector<Value> results = StripEmitter(op, b, s).at(index);
    const int64_t left = s.across.out % s.pixels; // pixels of the last strip, if it has fewer
    store(results, 0, left ? left : s.pixels);
    if (left)
      b.ifThen(b.lt(strip, b.i64(s.strips() - 1)), [&] { store(results, left, s.pixels); });
  };
  Value exists;
  auto needs = [&](Value condition) { exists = exists ? b.both(exists, condition) : condition; };
  if (auto n = hlo::constantValue(units); !n || *n % s.threads != 0)
    needs(b.lt(batch, sizes[0]));
  if (s.down.out % s.bandRows != 0)
    needs(b.lt(y, b.i64(s.down.out)));
  if (exists)
    b.ifThen(exists, all);
  else
    all();
  alignVectors(b, lanes);
  return ok;
}

} // namespace lathe::nvptx
