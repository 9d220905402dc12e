// kernel.chain: for each strip of an image's pixels and each panel of channels, what the product makes of
// them goes to scratch, where the convolution of these channels reads it while it is near and side by side.
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Chain.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Product.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// The product on some rows and columns, on values of a block that belongs to nothing.
class PartialProduct {
public:
  PartialProduct(kernel::DotOp whole, int64_t rows, int64_t columns)
      : dot(whole.clone()), rows(rows), columns(columns) {
    shape = whole.getAccType().getShape();
    SmallVector<Value> operands;
    for (Value v : whole->getOperands())
      operands.push_back(values.addArgument(v.getType(), v.getLoc()));
    auto lhs = cast<RankedTensorType>(whole.getLhs().getType()),
         rhs = cast<RankedTensorType>(whole.getRhs().getType());
    operands[0].setType(RankedTensorType::get({rows, lhs.getDimSize(1)}, lhs.getElementType()));
    if (columns < shape[1]) // one of its panels
      operands[1].setType(
          RankedTensorType::get({1, rhs.getDimSize(1), rhs.getDimSize(2)}, rhs.getElementType()));
    for (Value v : ArrayRef(operands).drop_front(2))
      resize(v);
    dot->setOperands(operands);
    llvm::for_each(dot->getResults(), [&](Value v) { resize(v); });
    llvm::for_each(dot.getBody().front().getArguments(), [&](Value v) { resize(v); });
    for (Operation &op : dot.getBody().front()) {
      llvm::for_each(op.getResults(), [&](Value v) { resize(v); });
      if (auto constant = dyn_cast<hlo::ConstantOp>(op))
        if (auto splat = dyn_cast<DenseElementsAttr>(constant.getValue()); splat && splat.isSplat())
          constant->setAttr("value", splat.resizeSplat(cast<ShapedType>(constant.getType())));
    }
  }
  ~PartialProduct() { dot->destroy(); }
  PartialProduct(const PartialProduct &) = delete;
  kernel::DotOp dot;

private:
  void resize(Value v) {
    auto type = cast<RankedTensorType>(v.getType());
    if (type.getShape() == shape)
      v.setType(RankedTensorType::get({rows, columns}, type.getElementType()));
    else if (type.getRank() == 1 && type.getDimSize(0) == shape[1])
      v.setType(RankedTensorType::get({columns}, type.getElementType()));
  }
  int64_t rows, columns;
  ArrayRef<int64_t> shape;
  Block values;
};

/// An image's rows of pixels through a product, a strip of tiles at a time, and the rows of the convolution's
/// result that are complete with each.
struct Strips {
  int64_t height, width, outHeight, stride, padLow, reach;
  RowTiles tiles; ///< over the pixels of an image
  int64_t count, tilesEach;

  Strips(kernel::DepthwiseConvOp conv, const RowTiles &tiles, int64_t count);
  /// The tile and the pixel that a strip begins with.
  Value firstTile(KernelBuilder &b, Value strip) const;
  Value firstPixel(KernelBuilder &b, Value strip) const {
    return tiles.rowAt(b, firstTile(b, strip));
  }
  /// The first row of the result that the strips before do not complete, and the first row of pixels that it
  /// reads.
  Value firstResult(KernelBuilder &b, Value strip) const;
  Value firstRead(KernelBuilder &b, Value strip) const;
  /// Pixels before those of a strip that it may read.
  int64_t keptPixels() const { return count > 1 ? reach * width : 0; }
};

Strips::Strips(kernel::DepthwiseConvOp conv, const RowTiles &tiles, int64_t wanted) : tiles(tiles) {
  auto images = cast<RankedTensorType>(conv.getInput().getType());
  height = images.getDimSize(1);
  width = images.getDimSize(2);
  outHeight = conv.getAccType().getDimSize(1);
  stride = conv.getStrides()[0];
  padLow = conv.getPadding()[0];
  reach = reachOfRows(conv);
  tilesEach = llvm::divideCeil(tiles.numTiles, std::max<int64_t>(1, wanted));
  count = llvm::divideCeil(tiles.numTiles, tilesEach);
}

Value Strips::firstTile(KernelBuilder &b, Value strip) const {
  return b.min(b.mul(strip, b.i64(tilesEach)), b.i64(tiles.numTiles));
}

Value Strips::firstResult(KernelBuilder &b, Value strip) const {
  // results that end within the whole rows above the strip's first pixel
  Value rows = b.divU(firstPixel(b, strip), b.i64(width));
  Value complete = b.divU(b.max(b.add(rows, b.i64(padLow - reach + stride)), b.i64(0)), b.i64(stride));
  Value last = b.i64(outHeight);
  return b.select(b.lt(strip, b.i64(count)), b.select(b.lt(b.i64(0), strip), b.min(complete, last), b.i64(0)),
                  last);
}

Value Strips::firstRead(KernelBuilder &b, Value strip) const {
  Value first = b.sub(b.mul(firstResult(b, strip), b.i64(stride)), b.i64(padLow));
  return b.max(b.i64(0), b.min(first, b.i64(height)));
}

/// Emits the units of a chain: images, strips of an image, chunks of channels, these innermost.
class ChainEmitter {
public:
  ChainEmitter(kernel::ChainOp op, KernelBuilder &b)
      : b(b), dot(op.getDot()), conv(op.getConv()), images(cast<RankedTensorType>(conv.getInput().getType())),
        result(conv.getAccType()), width(images.getDimSize(2)), channels(images.getDimSize(3)),
        multiplier(result.getDimSize(3) / channels), chunk(chunkColumns(dot)),
        chunks(llvm::divideCeil(channels, chunk)), elem(images.getElementType()),
        strips(conv, tilesOf(images.getDimSize(1) * width), op.getStrips()), operands(b.operands),
        results(b.results), begin(b.begin), end(b.end), scratch(b.scratch) {}
  LogicalResult emit();

private:
  RowTiles tilesOf(int64_t pixels) {
    PartialProduct part(dot, pixels, chunk);
    return RowTiles(pixels, productTile(b, dotSpec(part.dot, b)).rows);
  }
  void emitChunk(Value unit, int64_t columns);
  void fetchFilter(int64_t columns);
  void emitProduct(Value firstTile, Value lastTile, int64_t columns);
  void copyPixels(Value to, Value from, Value count, int64_t columns) {
    copyRun(b, elem, from, elem, to, b.mul(count, b.i64(columns)));
  }
  /// Where scratch has a pixel of the image.
  Value pixelAt(Value pixel, int64_t columns) {
    return b.ptrAt(scratch, elem, b.mul(b.sub(pixel, firstBuffered), b.i64(columns)));
  }
  Value pointerOf(Value v) const { return operands[cast<BlockArgument>(v).getArgNumber()]; }
  /// An operand's pointer, moved to the chunk where it has as many elements as there are channels.
  Value pointerToChunk(Value v) {
    auto type = cast<RankedTensorType>(v.getType());
    const bool byChannel = type.getRank() == 1 && type.getDimSize(0) == channels;
    return byChannel ? b.ptrAt(pointerOf(v), type.getElementType(), firstChannel) : pointerOf(v);
  }

  KernelBuilder &b;
  kernel::DotOp dot;
  kernel::DepthwiseConvOp conv;
  RankedTensorType images, result;
  int64_t width, channels, multiplier, chunk, chunks;
  Type elem;
  Strips strips;
  const SmallVector<Value> operands, results;
  const Value begin, end, scratch;
  Value keptPixels, productScratch;
  // of the unit being emitted
  Value image, strip, firstChannel, chunkIndex;
  Value firstRow, firstBuffered; ///< of the image that scratch has, and its first pixel
  int64_t innerScratch = 0, work = 0;
  LogicalResult ok = success();
};

/// The product of some tiles of the image's pixels with a chunk of columns, to their place in scratch.
void ChainEmitter::emitProduct(Value firstTile, Value lastTile, int64_t columns) {
  const int64_t pixels = images.getDimSize(1) * width;
  PartialProduct part(dot, pixels, columns);
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType()),
       rhs = cast<RankedTensorType>(dot.getRhs().getType());
  Value firstPixel = b.mul(image, b.i64(pixels)), depth = b.i64(lhs.getDimSize(1));
  b.operands = {b.ptrAt(pointerOf(dot.getLhs()), lhs.getElementType(), b.mul(firstPixel, depth)),
                b.ptrAt(pointerOf(dot.getRhs()), rhs.getElementType(), b.mul(firstChannel, depth))};
  for (Value extra : dot.getExtras())
    b.operands.push_back(pointerToChunk(extra));
  b.results = {pixelAt(b.i64(0), columns)};
  b.scratch = productScratch;
  ProductSpec product = dotSpec(part.dot, b);
  product.resultRow = Value(); // rows of scratch need no fetching ahead
  product.tiles = {firstTile, lastTile, strips.tilesEach};
  product.panelsFollow = columns < channels;
  if (result.getShape().drop_back() == images.getShape().drop_back()) {
    // the lines of the convolution's results, which its stores would wait for
    const int64_t bytes = elemBytes(result.getElementType()), placed = kernel::resultRow(conv->getResult(0)),
                  row = placed ? placed : result.getDimSize(3);
    Value at = b.add(b.mul(firstPixel, b.i64(row)), b.mul(firstChannel, b.i64(multiplier)));
    product.fetched = {b.ptrAt(results[0], result.getElementType(), at), b.i64(row * bytes),
                       columns * multiplier * bytes};
  }
  Epilogue epilogue(b, part.dot);
  if (failed(cpu::emitProduct(b, product, epilogue)))
    ok = failure();
  innerScratch = std::max(innerScratch, b.attribute("kernel.scratch"));
}

/// Asks for the chunk's part of the filter, short runs far apart, so that it is there when the product is
/// done.
void ChainEmitter::fetchFilter(int64_t columns) {
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  const int64_t bytes = elemBytes(filter.getElementType()), row = filter.getDimSize(3) * bytes;
  Value first =
      b.ptrAt(pointerOf(conv.getFilter()), filter.getElementType(), b.mul(firstChannel, b.i64(multiplier)));
  b.loop(b.i64(0), b.i64(filter.getDimSize(0) * filter.getDimSize(1)), [&](Value tap) {
    Value at = b.ptrBytes(first, b.mul(tap, b.i64(row)));
    for (int64_t line = 0; line < columns * multiplier * bytes; line += 64)
      LLVM::Prefetch::create(b, b.ptrBytes(at, b.i64(line)), 0, 3, 1);
  });
}

void ChainEmitter::emitChunk(Value unit, int64_t columns) {
  Value next = b.add(strip, b.i64(1)), firstTile = strips.firstTile(b, strip),
        lastTile = strips.firstTile(b, next);
  Value readRow = strips.firstRead(b, strip), read = b.mul(readRow, b.i64(width)),
        added = strips.firstPixel(b, strip);
  Value kept = b.ptrAt(keptPixels, elem, b.mul(chunkIndex, b.i64(strips.keptPixels() * chunk)));
  if (strips.count > 1) {
    // what it reads before its own pixels: from the strip above if this call has done it
    Value known = b.both(b.lt(b.i64(0), strip), b.ge(b.sub(unit, b.i64(chunks)), begin));
    firstTile = b.select(known, firstTile, b.min(firstTile, strips.tiles.tileAt(b, read)));
    firstRow = b.divU(b.min(read, strips.tiles.rowAt(b, firstTile)), b.i64(width));
    firstBuffered = b.mul(firstRow, b.i64(width));
    Value count = b.select(known, b.max(b.sub(added, read), b.i64(0)), b.i64(0));
    copyPixels(pixelAt(read, columns), kept, count, columns);
  } else {
    firstRow = firstBuffered = b.i64(0);
  }
  fetchFilter(columns);
  emitProduct(firstTile, lastTile, columns);
  const int64_t productWork = b.attribute("kernel.work");

  b.operands = {scratch};
  for (Value v : conv->getOperands().drop_front())
    b.operands.push_back(pointerOf(v));
  b.results = results;
  Value row = b.mul(image, b.i64(strips.outHeight));
  b.begin = b.add(row, strips.firstResult(b, strip));
  b.end = b.add(row, strips.firstResult(b, next));
  if (failed(emitDepthwiseRows(conv, b, {firstRow, firstChannel, columns})))
    ok = failure();
  work = std::max(work, productWork + int64_t(llvm::divideCeil(strips.outHeight, strips.count)) *
                                          b.attribute("kernel.work"));

  if (strips.count > 1) {
    Value from = b.mul(strips.firstRead(b, next), b.i64(width));
    Value count = b.max(b.sub(strips.firstPixel(b, next), from), b.i64(0));
    copyPixels(kept, pixelAt(from, columns), b.select(b.lt(next, b.i64(strips.count)), count, b.i64(0)),
               columns);
  }
}

LogicalResult ChainEmitter::emit() {
  const int64_t tail = channels % chunk, full = channels / chunk, bytes = elemBytes(elem);
  // one more tile where a strip starts by itself, and the pixels before it in its row
  const int64_t most = strips.tilesEach * strips.tiles.height;
  const int64_t buffered = strips.count > 1 ? most + strips.keptPixels() + strips.tiles.height + width
                                            : images.getDimSize(1) * width;
  const int64_t bufferBytes = llvm::alignTo(buffered * chunk * bytes, 64);
  const int64_t keptBytes = llvm::alignTo(chunks * strips.keptPixels() * chunk * bytes, 64);
  keptPixels = b.ptrBytes(scratch, b.i64(bufferBytes));
  productScratch = b.ptrBytes(scratch, b.i64(bufferBytes + keptBytes));
  b.loop(begin, end, [&](Value unit) {
    chunkIndex = b.remU(unit, b.i64(chunks));
    Value group = b.divU(unit, b.i64(chunks));
    strip = b.remU(group, b.i64(strips.count));
    image = b.divU(group, b.i64(strips.count));
    firstChannel = b.mul(chunkIndex, b.i64(chunk));
    if (tail == 0)
      return emitChunk(unit, chunk);
    if (full > 0)
      b.ifThen(b.lt(chunkIndex, b.i64(full)), [&] { emitChunk(unit, chunk); });
    b.ifThen(b.ge(chunkIndex, b.i64(full)), [&] { emitChunk(unit, tail); });
  });
  b.operands = operands;
  b.results = results;
  b.begin = begin;
  b.end = end;
  b.scratch = scratch;
  b.setExtent(getAffineConstantExpr(images.getDimSize(0) * strips.count * chunks, b.getContext()));
  b.setScratch(bufferBytes + keptBytes + innerScratch);
  b.setWork(work);
  return ok;
}

} // namespace

int64_t reachOfRows(kernel::DepthwiseConvOp conv) {
  WindowSteps steps;
  steps.dilation = conv.getRhsDilation()[0];
  return steps.reach(cast<RankedTensorType>(conv.getFilter().getType()).getDimSize(0));
}

int64_t chunkColumns(kernel::DotOp dot) {
  const int64_t columns = dot.getAccType().getShape().back();
  const bool steps = dot.getBf16() || panelGroup(dot) == 1;
  return panelColumns(dot) && steps ? std::min<int64_t>(*panelColumns(dot), columns) : columns;
}

LogicalResult emitChain(kernel::ChainOp op, KernelBuilder &b) {
  if (cast<RankedTensorType>(op.getConv().getInput().getType()).getNumElements() == 0 ||
      op.getConv().getAccType().getNumElements() == 0)
    return op.emitOpError("of nothing");
  return ChainEmitter(op, b).emit();
}

} // namespace lathe::cpu
