// A kernel.conv in tile registers, as an implicit product. 1x1 convolutions are plain products. Otherwise units of work are numbered
// (image, block of rows, panel of output channels), the panel innermost, and the left operand of a block is
//   - the input in place, when it has the format's elements and the window never leaves it; or
//   - the slab: the input rows of the block in scratch, converted, with their border; or
//   - rows gathered from either, one output pixel's taps each, for channel counts that fit no tile and for strided
//     1x1 windows.
// Pixels of a tile run along an image row; in a slab, where this needs fewer tiles, along its rows laid end to end,
// and the sums of what lies between the rows are dropped.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Amx.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

struct Spatial {
  int64_t in = 1, out = 1, taps = 1, stride = 1, padLow = 0, padHigh = 0, dilation = 1;
  int64_t resultDim = -1; ///< -1: a dimension that only exists here
  int64_t extent = 1;     ///< input positions that a block needs
  int64_t step = 0;       ///< elements from one to the next, in what the tiles read
};

class AmxConvEmitter {
public:
  AmxConvEmitter(kernel::ConvOp op, KernelBuilder &b)
      : op(op), b(b), epilogue(b, op), layout(amxLayout(op)),
        tiles(b, layout, epilogue, op.getAccType().getRank() - 1) {}
  LogicalResult emit();

private:
  void readOp();
  bool isPointwise() const;
  LogicalResult emitProductOfPixels();
  void plan();
  LogicalResult emitGroup(Value group, Value firstPanel, Value lastPanel);
  void fillSlab(ArrayRef<Value> positions, Value firstRow, Value rowCount);
  void gather(Value rowCount);
  AmxRows describeRows(Value firstRow, Value rowCount);
  SmallVector<Value> resultIndex(Value row, Value pixel);

  kernel::ConvOp op;
  KernelBuilder &b;
  Epilogue epilogue;
  AmxLayout layout;
  AmxTiles tiles;

  Type aElem, elem; ///< of the input; of what tiles read
  SmallVector<Spatial> dims; // rows and pixels last
  AffineExpr images;
  int64_t channels = 0, groupChannels = 0, groups = 1, groupColumns = 0, panelsPerGroup = 1;
  bool slab = false, flat = false;
  int64_t blockRows = 1, rowBlocks = 1, pitch = 0; // pitch: pixels from row to row where rows are laid end to end
  int64_t slabElements = 0;
  unsigned height = 16;
  Value gathered; // scratch
  // of the group being emitted
  Value image, aBase, column;
  SmallVector<Value> outer; // positions in the dimensions before the rows
};

void AmxConvEmitter::readOp() {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  aElem = input.getElementType();
  elem = layout.elem(b);
  images = hlo::getDims(acc)[0];
  groups = op.getGroups();
  channels = input.getShape().back();
  groupChannels = channels / groups;
  groupColumns = acc.getShape().back() / groups;
  panelsPerGroup = llvm::divideCeil(groupColumns, layout.panel);
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    Spatial d;
    d.in = input.getDimSize(i + 1);
    d.out = acc.getDimSize(i + 1);
    d.taps = op.getLayout() ? (*op.getKernelShape())[i] : filter.getDimSize(i);
    d.stride = op.getStrides()[i];
    d.padLow = op.getPadding()[2 * i];
    d.padHigh = op.getPadding()[2 * i + 1];
    d.dilation = op.getRhsDilation()[i];
    d.resultDim = i + 1;
    dims.push_back(d);
  }
  while (dims.size() < 2)
    dims.insert(dims.begin(), Spatial());
}

bool AmxConvEmitter::isPointwise() const {
  // the pixels of strided windows are gathered for all panels at once
  return groups == 1 && llvm::all_of(dims, [](const Spatial &d) { return d.taps == 1 && d.stride == 1 && d.padLow == 0 && d.padHigh == 0; });
}

LogicalResult AmxConvEmitter::emitProductOfPixels() {
  ProductSpec spec;
  RankedTensorType acc = op.getAccType();
  SmallVector<AffineExpr> accDims = hlo::getDims(acc);
  spec.aElem = aElem;
  spec.bElem = elem;
  spec.accElem = acc.getElementType();
  spec.a = b.operands[0];
  spec.b = b.operands[1];
  spec.m = hlo::numElements(ArrayRef<AffineExpr>(accDims).drop_back(), b.getContext());
  spec.n = accDims.back();
  spec.k = getAffineConstantExpr(layout.run * layout.runs, b.getContext());
  spec.aRow = b.i64(channels);
  spec.aStep = b.i64(1);
  spec.panel = *panelColumns(op);
  spec.columnDim = accDims.size() - 1;
  spec.resultRow = b.i64(acc.getShape().back());
  SmallVector<Value> sizes = b.dims(acc);
  sizes.pop_back();
  spec.index = [&, sizes](ValueRange, Value row, Value column) {
    SmallVector<Value> index = b.delinearize(row, sizes);
    index.push_back(column);
    return index;
  };
  return emitAmxProduct(b, spec, layout, epilogue);
}

void AmxConvEmitter::plan() {
  Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  for (const Spatial &d : dims)
    slab |= d.padLow != 0 || d.padHigh > 0;
  bool window = llvm::any_of(dims, [](const Spatial &d) { return d.taps > 1; });
  const int64_t bytes = layout.elemBytes();
  const bool converts = !layout.isBytes() && !aElem.isBF16(), aliasing = (channels * pixel.stride * bytes) % 4096 == 0;
  slab |= layout.gathered ? window && converts : converts || aliasing;

  // Rows of a block: what fits half of L2, and enough blocks for some threads.
  int64_t rowBytes = pixel.in * row.stride * channels * bytes + (layout.gathered ? pixel.out * layout.paddedRun() * bytes : 0);
  int64_t fitting = std::max<int64_t>(1, b.target.ofL2(b.target.l2Rows) / std::max<int64_t>(rowBytes, 1));
  int64_t count = llvm::divideCeil(row.out, fitting), others = panelsPerGroup * groups;
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    others *= dims[i].out;
  if (others * count < 16)
    count = std::max(count, std::min<int64_t>(llvm::divideCeil(16, others), row.out / 8));
  blockRows = llvm::divideCeil(row.out, count);
  rowBlocks = llvm::divideCeil(row.out, blockRows);

  for (size_t i = 0; i < dims.size(); ++i) {
    Spatial &d = dims[i];
    int64_t positions = i + 1 == dims.size() ? d.out : i + 2 == dims.size() ? blockRows : 1;
    d.extent = slab ? (positions - 1) * d.stride + (d.taps - 1) * d.dilation + 1 : d.in;
  }
  if (slab)
    pixel.extent = llvm::alignTo(pixel.extent, pixel.stride);
  int64_t step = channels;
  if (slab && !layout.gathered && aliasing)
    step += layout.fullStep();
  for (size_t i = dims.size(); i-- > 0;) {
    dims[i].step = step;
    step *= dims[i].extent;
  }
  constexpr unsigned most = AmxTiles::maxHeight;
  int64_t rowTiles = llvm::divideCeil(pixel.out, most);
  if (layout.gathered) {
    pitch = pixel.out;
    height = std::min<int64_t>(most, blockRows * pixel.out);
    flat = true;
  } else {
    pitch = row.stride * pixel.extent / pixel.stride;
    int64_t flatTiles = llvm::divideCeil((blockRows - 1) * pitch + pixel.out, most), own = blockRows * rowTiles;
    flat = slab && row.stride * pixel.extent % pixel.stride == 0 && flatTiles < own;
    height = flat ? most : llvm::divideCeil(pixel.out, rowTiles);
  }
  // tiles may read (and drop) some pixels behind the last one
  slabElements = slab ? llvm::alignTo(step + height * pixel.stride * pixel.step + layout.paddedRun() + (layout.isBytes() ? 64 : 0), 64) : 0;
  int64_t scratch = slabElements * bytes;
  gathered = b.ptrBytes(b.scratch, b.i64(scratch));
  if (layout.gathered)
    scratch += ((blockRows * pixel.out + height) * llvm::alignTo(layout.paddedRun(), layout.fullStep()) + 64) * bytes;
  b.setScratch(scratch);
  AffineExpr units = images * (rowBlocks * groups * panelsPerGroup);
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    units = units * dims[i].out;
  b.setExtent(hlo::simplify(units));
  b.setWork(layout.depth() * layout.panel * blockRows * pixel.out / (4 * layout.group));
}

void AmxConvEmitter::fillSlab(ArrayRef<Value> positions, Value firstRow, Value rowCount) {
  Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  SmallVector<Value> extents;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    extents.push_back(b.i64(dims[i].extent));
  extents.back() = b.add(b.mul(b.sub(rowCount, b.i64(1)), b.i64(row.stride)), b.i64((row.taps - 1) * row.dilation + 1));
  // columns: border, input, border
  int64_t low = std::clamp<int64_t>(pixel.padLow, 0, pixel.extent), skipped = std::max<int64_t>(-pixel.padLow, 0);
  int64_t count = std::clamp<int64_t>(pixel.in - skipped, 0, pixel.extent - low);
  auto border = [&, value = padValueOf(op)](Value to, int64_t n) { repeatInRow(b, layout, value, to, b.i64(n)); };
  b.nest(extents, [&](ValueRange at) {
    Value inside, from = image, to = b.i64(0);
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      Spatial &d = dims[i];
      Value position = b.sub(b.add(b.mul(i + 2 == dims.size() ? firstRow : positions[i], b.i64(d.stride)), at[i]), b.i64(d.padLow));
      Value valid = b.inRange(position, b.i64(0), b.i64(d.in));
      inside = inside ? b.both(inside, valid) : valid;
      from = b.add(b.mul(from, b.i64(d.in)), b.max(position, b.i64(0)));
      to = b.add(to, b.mul(at[i], b.i64(d.step)));
    }
    Value target = b.ptrAt(b.scratch, elem, to);
    Value source = b.ptrAt(b.operands[0], aElem, b.mul(b.add(b.mul(from, b.i64(pixel.in)), b.i64(skipped)), b.i64(channels)));
    auto targetAt = [&](int64_t x) { return b.ptrAt(target, elem, b.i64(x * pixel.step)); };
    b.ifElse(
        inside, TypeRange{},
        [&] {
          // what a copy writes beyond its end, the next one or the border overwrites
          if (pixel.step == channels)
            copyToRow(b, layout, aElem, source, targetAt(low), b.i64(count * channels));
          else
            b.loop(b.i64(0), b.i64(count), [&](Value x) {
              copyToRow(b, layout, aElem, b.ptrAt(source, aElem, b.mul(x, b.i64(channels))),
                         b.ptrAt(targetAt(low), elem, b.mul(x, b.i64(pixel.step))), b.i64(channels));
            });
          border(target, low * pixel.step);
          border(targetAt(low + count), (pixel.extent - low - count) * pixel.step);
          return SmallVector<Value>();
        },
        [&] {
          border(target, pixel.extent * pixel.step);
          return SmallVector<Value>();
        });
  });
}

/// One row of scratch for each output pixel: its taps in the filter's order, then zeros.
void AmxConvEmitter::gather(Value rowCount) {
  Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  int64_t rowElements = llvm::alignTo(layout.paddedRun(), layout.fullStep());
  bool whole = pixel.dilation == 1 && pixel.step == channels;
  Type source = slab ? elem : aElem;
  int64_t run = whole ? pixel.taps * channels : channels;
  b.nest({rowCount, b.i64(pixel.out)}, [&](ValueRange at) {
    Value from = b.add(b.mul(at[0], b.i64(row.stride * row.step)), b.mul(at[1], b.i64(pixel.stride * pixel.step)));
    Value to = b.mul(b.add(b.mul(at[0], b.i64(pixel.out)), at[1]), b.i64(rowElements));
    int64_t done = 0, end = 0;
    std::function<void(size_t, int64_t)> taps = [&](size_t i, int64_t offset) {
      if (i == dims.size() || (i + 1 == dims.size() && whole)) {
        copyToRow(b, layout, source, b.ptrAt(aBase, source, b.add(from, b.i64(offset))),
                   b.ptrAt(gathered, elem, b.add(to, b.i64(done))), b.i64(run));
        end = done + llvm::alignTo(run, layout.fullStep());
        done += run;
        return;
      }
      for (int64_t t = 0; t < dims[i].taps; ++t)
        taps(i + 1, offset + t * dims[i].dilation * dims[i].step);
    };
    taps(0, 0);
    if (end < layout.paddedRun())
      repeatInRow(b, layout, 0, b.ptrAt(gathered, elem, b.add(to, b.i64(end))), b.i64(layout.paddedRun() - end));
  });
}

SmallVector<Value> AmxConvEmitter::resultIndex(Value row, Value pixel) {
  SmallVector<Value> index(op.getAccType().getRank(), b.i64(0));
  index[0] = image;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].resultDim >= 0)
      index[dims[i].resultDim] = i + 1 == dims.size() ? pixel : i + 2 == dims.size() ? row : outer[i];
  index.back() = column;
  return index;
}

AmxRows AmxConvEmitter::describeRows(Value firstRow, Value rowCount) {
  Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  AmxRows rows;
  rows.height = height;
  Value h = b.i64(height), width = b.i64(pixel.out);
  int64_t rowElements = layout.gathered ? llvm::alignTo(layout.paddedRun(), layout.fullStep()) : pixel.stride * pixel.step;
  rows.rowStride = b.i64(rowElements);
  Value base = layout.gathered ? gathered : aBase;
  if (flat) {
    Value count = b.add(b.mul(b.sub(rowCount, b.i64(1)), b.i64(pitch)), width);
    rows.tiles = b.divU(b.add(count, b.i64(height - 1)), h);
    rows.pointer = [=](Value tile) { return b.ptrAt(base, elem, b.mul(tile, b.i64(height * rowElements))); };
    rows.bounds = [=](Value tile) -> std::pair<Value, Value> {
      return {b.i64(0), b.min(h, b.sub(count, b.mul(tile, h)))};
    };
    auto position = [=](Value tile, Value r) { return b.add(b.mul(tile, h), r); };
    rows.index = [=](Value tile, Value r) {
      Value p = position(tile, r);
      return resultIndex(b.add(firstRow, b.divU(p, b.i64(pitch))), b.remU(p, b.i64(pitch)));
    };
    if (pitch != pixel.out)
      rows.exists = [=](Value tile, Value r) { return b.lt(b.remU(position(tile, r), b.i64(pitch)), width); };
    return rows;
  }
  // In the last tile of a row some pixels are those of the tile before.
  int64_t perRow = llvm::divideCeil(pixel.out, height);
  rows.tiles = b.mul(rowCount, b.i64(perRow));
  int64_t rowStep = row.stride * row.step, last = pixel.out - height;
  auto firstOf = [=](Value tile) { return b.min(b.mul(b.remU(tile, b.i64(perRow)), h), b.i64(last)); };
  rows.pointer = [=](Value tile) {
    Value y = b.divU(tile, b.i64(perRow));
    return b.ptrAt(base, elem, b.add(b.mul(y, b.i64(rowStep)), b.mul(firstOf(tile), b.i64(rowElements))));
  };
  bool even = pixel.out % height == 0;
  rows.bounds = [=](Value tile) -> std::pair<Value, Value> {
    return {even ? b.i64(0) : b.sub(b.mul(b.remU(tile, b.i64(perRow)), h), firstOf(tile)), h};
  };
  rows.index = [=](Value tile, Value r) {
    return resultIndex(b.add(firstRow, b.divU(tile, b.i64(perRow))), b.add(firstOf(tile), r));
  };
  return rows;
}

LogicalResult AmxConvEmitter::emitGroup(Value group, Value firstPanel, Value lastPanel) {
  Spatial &row = dims[dims.size() - 2];
  SmallVector<Value> sizes = {b.dim(images)};
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    sizes.push_back(b.i64(dims[i].out));
  sizes.push_back(b.i64(rowBlocks));
  SmallVector<Value> index = b.delinearize(group, sizes);
  image = index[0];
  outer.assign(index.begin() + 1, index.end() - 1);
  Value firstRow = b.mul(index.back(), b.i64(blockRows));
  Value rowCount = row.out % blockRows ? b.min(b.i64(blockRows), b.sub(b.i64(row.out), firstRow)) : b.i64(blockRows);
  if (slab) {
    fillSlab(outer, firstRow, rowCount);
    aBase = b.scratch;
  } else {
    Value offset = b.mul(image, b.i64(dims[0].step * dims[0].in));
    for (size_t i = 0; i + 2 < dims.size(); ++i)
      offset = b.add(offset, b.mul(outer[i], b.i64(dims[i].stride * dims[i].step)));
    aBase = b.ptrAt(b.operands[0], aElem, b.add(offset, b.mul(firstRow, b.i64(row.stride * row.step))));
  }
  if (layout.gathered)
    gather(rowCount);
  AmxRows rows = describeRows(firstRow, rowCount);

  // runs, outermost first; those of the channels lie within one tap or, side by side, along a row of taps
  SmallVector<ReductionLoop> runs;
  if (!layout.gathered) {
    int64_t step = layout.paddedRun() * layout.panel;
    bool merged = layout.run != groupChannels;
    for (size_t i = dims.size() - (merged ? 1 : 0); i-- > 0;) {
      runs.insert(runs.begin(), {b.i64(dims[i].taps), b.i64(dims[i].dilation * dims[i].step), b.i64(step)});
      step *= dims[i].taps;
    }
  }
  LogicalResult ok = success();
  int64_t panelElements = layout.depth() * layout.panel, tail = groupColumns % layout.panel;
  bool rowsFirst = groups == 1 && AmxTiles::rowsFirst(b.target, layout, panelsPerGroup);
  auto panelAt = [&](Value p, function_ref<void(const AmxRows &rows, Value panel, int64_t columns, Value next)> body) {
    Value g = b.divU(p, b.i64(panelsPerGroup)), inGroup = b.remU(p, b.i64(panelsPerGroup));
    if (groups == 1) {
      g = b.i64(0);
      inGroup = p;
    }
    column = b.add(b.mul(g, b.i64(groupColumns)), b.mul(inGroup, b.i64(layout.panel)));
    Value panel = b.ptrAt(b.operands[1], elem, b.mul(p, b.i64(panelElements)));
    Value next = b.ptrAt(panel, elem, b.i64(panelElements));
    AmxRows mine = rows;
    if (groups > 1)
      mine.pointer = [&, g](Value tile) { return b.ptrAt(rows.pointer(tile), elem, b.mul(g, b.i64(groupChannels))); };
    auto emit = [&](int64_t columns) {
      body(mine, panel, columns, next);
      return SmallVector<Value>();
    };
    if (!tail || panelsPerGroup == 1)
      emit(tail ? tail : layout.panel);
    else
      b.ifElse(
          b.eq(inGroup, b.i64(panelsPerGroup - 1)), TypeRange{}, [&] { return emit(tail); },
          [&] { return emit(layout.panel); });
  };
  auto sums = [&](const AmxRows &mine, Value tile, unsigned count, Value panel, int64_t columns, Value next) {
    if (failed(tiles.emit(mine, tile, count, panel, columns, runs, next)))
      ok = failure();
  };
  if (rowsFirst)
    tiles.forEachGroup(rows, [&](Value tile, unsigned count) {
      b.loop(firstPanel, lastPanel, [&](Value p) {
        panelAt(p, [&](const AmxRows &mine, Value panel, int64_t columns, Value) {
          sums(mine, tile, count, panel, columns, Value());
        });
      });
    });
  else
    b.loop(firstPanel, lastPanel, [&](Value p) {
      panelAt(p, [&](const AmxRows &mine, Value panel, int64_t columns, Value next) {
        tiles.forEachGroup(mine, [&](Value tile, unsigned count) { sums(mine, tile, count, panel, columns, next); });
      });
    });
  return ok;
}

LogicalResult AmxConvEmitter::emit() {
  readOp();
  if (isPointwise())
    return emitProductOfPixels();
  plan();
  Value panels = b.i64(groups * panelsPerGroup);
  LogicalResult ok = success();
  tiles.begin(height);
  b.loop(b.divU(b.begin, panels), b.divU(b.add(b.end, b.sub(panels, b.i64(1))), panels), [&](Value group) {
    Value base = b.mul(group, panels);
    if (failed(emitGroup(group, b.max(b.sub(b.begin, base), b.i64(0)), b.min(b.sub(b.end, base), panels))))
      ok = failure();
  });
  tiles.end();
  return ok;
}

} // namespace

LogicalResult emitAmxConv(kernel::ConvOp op, KernelBuilder &b) { return AmxConvEmitter(op, b).emit(); }

} // namespace lathe::cpu
