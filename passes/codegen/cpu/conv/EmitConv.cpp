// kernel.conv as an implicit product: a register tile holds output pixels of one image row times channels, and
// the reduction runs over the taps and the input channels, which lie together in memory.
//
// Units are numbered (image, row block, panel of output channels), the panel innermost. When the window can leave
// the image, or the input is dilated or narrow, the rows a block needs are first copied to scratch with their
// zeros (the slab), or only what tiles at the border need. Long sums go tap row by tap row over all pixels of the
// block, with sums kept in scratch.
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/ConvEmitter.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/target/Blocking.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::cpu {

/// Steps from which on a sum is cut in parts, which are done for all pixels of a block one after the other.
constexpr int64_t longSum = 768;

void ConvEmitter::readOp() {
  input = attributes.input;
  filter = attributes.filter;
  acc = attributes.acc;
  aElem = input.getElementType();
  bElem = filter.getElementType();
  accElem = acc.getElementType();
  groups = attributes.groups;
  batchGroups = attributes.batchGroups;
  packed = attributes.panel.has_value();
  spread = attributes.spread;
  leftElem = accElem;
  if (auto conv = dyn_cast<kernel::ConvOp>(op); conv && packed) {
    format = conv.getBf16() ? bf16Format() : integerFormat(b.target, aElem, bElem, accElem);
    leftElem = format.leftElem(accElem);
    runs = convRuns(conv);
  }
  accDims = hlo::getDims(acc);
  SmallVector<AffineExpr> inDims = hlo::getDims(input), filterDims = hlo::getDims(filter);
  images = accDims[0];
  channelsExpr = inDims.back();
  groupChannelsExpr = packed ? hlo::simplify(channelsExpr.floorDiv(groups)) : filterDims[filterDims.size() - 2];
  channels = b.dim(channelsExpr);
  groupChannels = b.dim(groupChannelsExpr);
  outChannels = b.dim(accDims.back());
  if (std::optional<int64_t> oc = hlo::constantValue(accDims.back()))
    groupColumns = *oc / (groups * batchGroups);
  groupColumnsValue = groupColumns ? b.i64(*groupColumns) : b.divU(outChannels, b.i64(groups * batchGroups));

  auto one = getAffineConstantExpr(1, b.getContext());
  for (int64_t i = 0; i + 2 < input.getRank(); ++i) {
    Spatial d;
    d.inExpr = inDims[i + 1];
    d.outExpr = accDims[i + 1];
    d.taps = packed ? getAffineConstantExpr(attributes.kernelShape[i], b.getContext()) : filterDims[i];
    d.stride = attributes.strides[i];
    d.padLow = attributes.padding[2 * i];
    d.padHigh = attributes.padding[2 * i + 1];
    d.inDilation = attributes.inDilation[i];
    d.tapDilation = attributes.tapDilation[i];
    d.resultDim = i + 1;
    // sizes of one do not count, so that the pixels of a tile run along a real dimension
    if (d.inExpr == one && d.outExpr == one && d.taps == one && d.padLow == 0)
      continue;
    dims.push_back(d);
  }
  while (dims.size() < 2) {
    Spatial d;
    d.inExpr = d.outExpr = d.taps = one;
    dims.insert(dims.begin(), d);
  }
  for (Spatial &d : dims) {
    d.in = b.dim(d.inExpr);
    d.out = b.dim(d.outExpr);
    d.tapCount = b.dim(d.taps);
  }
}

bool ConvEmitter::isPointwise() const {
  auto one = getAffineConstantExpr(1, b.getContext());
  for (const Spatial &d : dims)
    if (d.taps != one || d.padLow > 0 || d.padHigh > 0 || d.inDilation != 1)
      return false;
  return groups == 1 && batchGroups == 1;
}

bool ConvEmitter::isGathered() const {
  if (format.kind == OperandFormat::Kind::Bf16)
    return gathersPairs(cast<kernel::ConvOp>(op));
  SmallVector<int64_t> taps;
  for (const Spatial &d : dims) {
    std::optional<int64_t> t = hlo::constantValue(d.taps);
    if (!t || d.inDilation != 1)
      return false;
    taps.push_back(*t);
  }
  return dims.back().tapDilation == 1 && gathersWindows(acc, taps, groups * batchGroups);
}

/// A row of the product: the window of one output pixel with its zeros.
void ConvEmitter::fillRow(Value row, Value to) {
  SmallVector<Value> sizes = b.dims(acc);
  sizes.pop_back();
  SmallVector<Value> at = b.delinearize(row, sizes);
  SmallVector<CopiedDim> window;
  for (const Spatial &d : dims) {
    Value x = d.resultDim >= 0 ? at[d.resultDim] : b.i64(0);
    window.push_back({d.in, d.tapCount, b.sub(b.mul(x, b.i64(d.stride)), b.i64(d.padLow)), d.tapDilation});
  }
  if (window.back().dilation != 1) // its taps are no run
    window.push_back({b.i64(1), b.i64(1), b.i64(0), 1, false});
  fillWindow(
      b, window, at[0], channels, leftElem, to,
      [&](Value from, Value target, Value count) {
        copyToFormat(b, format, accElem, aElem, b.ptrAt(b.operands[0], aElem, from), target, count);
      },
      [&](Value target, Value count) { zerosOfFormat(b, format, accElem, target, count); });
  if (const int64_t rest = runs.depth(format) - runs.run * runs.runs)
    zerosOfFormat(b, format, accElem, b.ptrAt(to, leftElem, b.i64(runs.run * runs.runs)), b.i64(rest));
}

/// As a product, of the pixels or of gathered windows.
LogicalResult ConvEmitter::emitPointwise() {
  ProductSpec spec;
  spec.aElem = aElem;
  spec.bElem = bElem;
  spec.accElem = accElem;
  spec.a = b.operands[0];
  spec.b = b.operands[1];
  spec.m = hlo::numElements(ArrayRef<AffineExpr>(accDims).drop_back(), b.getContext());
  spec.n = accDims.back();
  spec.k = channelsExpr;
  for (const Spatial &d : dims)
    spec.k = spec.k * d.taps;
  spec.k = hlo::simplify(spec.k);
  spec.aRow = channels;
  spec.aStep = b.i64(1);
  spec.bStep = outChannels;
  spec.bColumn = b.i64(1);
  if (packed)
    spec.panel = *attributes.panel;
  if (format.isGrouped())
    spec.pairedDepth = runs.depth(format);
  spec.plan = attributes.plan;
  spec.columnDim = accDims.size() - 1;
  spec.resultRow = outChannels;
  SmallVector<Value> sizes = b.dims(acc);
  sizes.pop_back();
  if (!isPointwise())
    spec.fillRow = [&](Value row, Value to) { fillRow(row, to); };
  else if (llvm::any_of(dims, [](const Spatial &d) { return d.stride != 1 || d.padLow || d.padHigh; }))
    spec.aRowStart = [&, sizes](Value row) {
      SmallVector<Value> at = b.delinearize(row, sizes), inSizes = b.dims(input);
      for (const Spatial &d : dims)
        if (d.resultDim >= 0)
          at[d.resultDim] = b.sub(b.mul(at[d.resultDim], b.i64(d.stride)), b.i64(d.padLow));
      inSizes.pop_back();
      return b.mul(b.linearize(at, inSizes), channels);
    };
  spec.index = [&, sizes](ValueRange, Value row, Value column) {
    SmallVector<Value> index = b.delinearize(row, sizes);
    index.push_back(column);
    return index;
  };
  return emitProduct(b, spec, epilogue);
}

void ConvEmitter::plan() {
  Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  positions = spread ? hlo::simplify(pixel.outExpr + (pixel.taps - 1) * pixel.tapDilation) : pixel.outExpr;
  std::optional<int64_t> width = hlo::constantValue(positions);
  tile = groupColumns ? chooseTile(b.target, accElem, width, groupColumns, attributes.plan) : TileShape();
  if (packed)
    tile = panelTile(tileTarget(b.target, format), accElem, *attributes.panel, width, attributes.plan);
  pixels = RowTiles(width, tile.rows);
  int64_t columns = tile.columns();
  tailColumns = groupColumns && !spread ? *groupColumns % columns : 0;
  int64_t panelCount = groupColumns ? llvm::divideCeil(*groupColumns, columns) : 1;
  panelsPerGroup = groupColumns ? b.i64(panelCount) : groupColumnsValue;
  panels = b.max(b.mul(panelsPerGroup, b.i64(groups)), b.i64(1));
  depth = groupChannelsExpr;
  for (size_t i = 0; i + spread < dims.size(); ++i)
    depth = depth * dims[i].taps;
  depth = format.isGrouped() ? getAffineConstantExpr(runs.depth(format), b.getContext()) : hlo::simplify(depth);
  depthValue = b.dim(depth);

  for (Spatial &d : dims)
    slab |= d.padLow != 0 || d.padHigh > 0 || d.inDilation != 1;
  slab |= !isa<ComplexType>(aElem) && memType(aElem) != memType(leftElem) && tile.lanes > 1;
  slab |= format.biased || (format.isGrouped() && runs.run % format.group());
  // pixels a multiple of 4 KiB apart fall in the same L1 sets
  std::optional<int64_t> ic = hlo::constantValue(channelsExpr);
  bool aliasing = ic && !format.isGrouped() && *ic * pixel.stride * elemBytes(accElem) % 4096 == 0;
  trimmed = !spread && tile.lanes > 1 && reachesOut();
  if (trimmed)
    slab = false; // only padding asked for it
  bordered = readsInPlace();
  if (bordered)
    slab = false;
  slab |= aliasing && panelCount >= 4;
  pixelExpr = slab && aliasing ? channelsExpr + 16 : channelsExpr;
  packB = !packed && tile.lanes > 1;

  // Rows of a block: what its share of L2 holds, and enough blocks for the threads.
  int64_t rowBytes = std::max<int64_t>(1, width.value_or(64) * pixel.stride * row.stride * ic.value_or(64) * elemBytes(leftElem));
  int64_t rows = std::max<int64_t>(1, b.target.ofL2(b.target.l2Rows) / rowBytes);
  if (std::optional<int64_t> height = hlo::constantValue(row.outExpr)) {
    int64_t outer = hlo::constantValue(images).value_or(1) * batchGroups;
    for (size_t i = 0; i + 2 < dims.size(); ++i)
      outer *= hlo::constantValue(dims[i].outExpr).value_or(1);
    BlockedWork work;
    work.outer = outer;
    work.rows = std::max<int64_t>(*height, 1);
    work.panels = panelCount * groups;
    const int64_t steps = hlo::constantValue(depth).value_or(512) / format.group();
    work.rowCycles = steps * width.value_or(64) * tile.vecs / b.target.fmas;
    work.rowBytes = rowBytes;
    work.panelBytes = format.isGrouped() ? runs.depth(format) * columns * elemBytes(bElem) : steps * columns * elemBytes(accElem);
    work.enterCycles = slab ? rowBytes / b.target.slabBytes : 0;
    blockRows = rowsPerBlock(b.target, work, rows);
    if (attributes.plan.block && b.target.threads <= 1)
      blockRows = std::clamp<int64_t>(*attributes.plan.block, 1, work.rows);
  } else {
    blockRows = std::min<int64_t>(rows, 8);
  }
  rowBlocks = hlo::ceilDiv(row.outExpr, blockRows);
  std::optional<int64_t> k = hlo::constantValue(depth);
  bool severalTiles = !width || pixels.numTiles * blockRows >= 2;
  blocked = trimmed || (k && *k / format.group() > longSum && tile.lanes > 1 && severalTiles && width && !spread);
  planScratch();
}

/// Whether only tiles at the border read copies of their windows. A slab of whole rows would be copied once for all panels; for
/// a single one, of a first layer, that is a tenth of the work.
bool ConvEmitter::readsInPlace() const {
  if (!slab || spread || format.isGrouped() || tile.lanes == 1 || dims.size() != 2 || groups != 1 || batchGroups != 1 || aElem != accElem ||
      !groupColumns || *groupColumns > tile.columns() || !hlo::constantValue(channelsExpr))
    return false;
  std::optional<int64_t> steps = hlo::constantValue(depth);
  return steps && *steps <= longSum && llvm::all_of(dims, [](const Spatial &d) {
    return d.inDilation == 1 && hlo::constantValue(d.inExpr) && hlo::constantValue(d.outExpr) && hlo::constantValue(d.taps);
  });
}

void ConvEmitter::planScratch() {
  int64_t accBytes = elemBytes(accElem);
  AffineExpr scratch = getAffineConstantExpr(0, b.getContext());
  AffineExpr elements = pixelExpr;
  for (size_t i = dims.size(); i-- > 0;) {
    Spatial &d = dims[i];
    AffineExpr positions = i + 1 == dims.size() ? d.outExpr
                           : i + 2 == dims.size() ? getAffineConstantExpr(blockRows, b.getContext())
                                                  : getAffineConstantExpr(1, b.getContext());
    d.extent = hlo::simplify((positions - 1) * d.stride + (d.taps - 1) * d.tapDilation + 1);
    d.extentValue = b.max(b.dim(d.extent), b.i64(0));
    d.step = slab ? b.dim(hlo::simplify(elements)) : Value();
    elements = elements * d.extent;
  }
  if (slab) // the last group may end behind the last pixel
    scratch = hlo::ceilDiv(hlo::simplify(elements * elemBytes(leftElem) + (format.isGrouped() ? 64 : 0)), 64) * 64;
  pixelStep = slab ? dims.back().step : channels;
  if (!slab) {
    Value step = channels;
    for (size_t i = dims.size(); i-- > 0;) {
      dims[i].step = step;
      step = b.mul(step, dims[i].in);
    }
  }
  if (bordered) {
    int64_t elements = *hlo::constantValue(channelsExpr);
    for (size_t i = 0; i < dims.size(); ++i)
      elements *= reach(dims[i], i + 1 == dims.size() ? pixels.height : 1);
    scratch = scratch + llvm::alignTo(elements * accBytes, 64);
  }
  if (blocked) {
    scratchC = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
    scratch = scratch + dims.back().outExpr * (blockRows * tile.columns() * accBytes);
  }
  if (spread) {
    // the last row's columns are read up to a vector too far
    scratchC = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
    scratch = scratch + positions * (tile.columns() * accBytes) + tile.lanes * accBytes;
    scratchSums = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
    scratch = scratch + dims.back().outExpr * (sumsShape().columns() * accBytes);
  }
  scratchB = b.ptrBytes(b.scratch, b.dim(hlo::simplify(scratch)));
  if (packB)
    scratch = scratch + depth * (tile.columns() * accBytes);
  b.setScratch(hlo::simplify(scratch));

  AffineExpr perGroup = groupColumns ? getAffineConstantExpr(llvm::divideCeil(*groupColumns, tile.columns()), b.getContext())
                                     : hlo::simplify(accDims.back().floorDiv(groups * batchGroups));
  AffineExpr units = images * batchGroups * groups * perGroup * rowBlocks;
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    units = units * dims[i].outExpr;
  b.setExtent(hlo::simplify(units));
  b.setWork(b.multiplyAddWork(hlo::constantValue(depth).value_or(512) / format.group() * tile.columns() * blockRows *
                              hlo::constantValue(dims.back().outExpr).value_or(64)));
}

void ConvEmitter::emitGroup(Value group, Value firstPanel, Value lastPanel) {
  SmallVector<Value> sizes = {b.i64(batchGroups), b.dim(images)};
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    sizes.push_back(dims[i].out);
  sizes.push_back(b.max(b.dim(rowBlocks), b.i64(1)));
  SmallVector<Value> index = b.delinearize(group, sizes);
  batchGroup = index[0];
  image = index[1];
  inputImage = b.add(b.mul(batchGroup, sizes[1]), image);
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    dims[i].position = index[i + 2];
  Spatial &row = dims[dims.size() - 2];
  if (std::optional<int64_t> height = hlo::constantValue(row.outExpr), blocks = hlo::constantValue(rowBlocks); height && blocks && *blocks > 0) {
    firstRow = firstOfBlock(b, index.back(), *blocks, *height);
    rowCount = b.sub(firstOfBlock(b, b.add(index.back(), b.i64(1)), *blocks, *height), firstRow);
  } else {
    firstRow = b.mul(index.back(), b.i64(blockRows));
    rowCount = b.min(b.i64(blockRows), b.sub(row.out, firstRow));
  }
  row.position = firstRow;
  if (slab) {
    fillSlab();
    aBase = b.scratch;
  } else {
    Value offset = b.mul(inputImage, b.mul(dims[0].step, dims[0].in));
    for (size_t i = 0; i < dims.size(); ++i) {
      Value first = i + 1 < dims.size() ? b.mul(dims[i].position, b.i64(dims[i].stride)) : b.i64(0);
      // what would be padding is not read
      offset = b.add(offset, b.mul(trimmed || bordered ? b.sub(first, b.i64(dims[i].padLow)) : first, dims[i].step));
    }
    aBase = b.ptrAt(b.operands[0], aElem, offset);
  }
  b.loop(firstPanel, lastPanel, [&](Value p) {
    Value g = b.divU(p, panelsPerGroup), panel = b.remU(p, panelsPerGroup);
    if (groups == 1) {
      g = b.i64(0);
      panel = p;
    }
    TileShape shape = tile;
    auto tail = [&] {
      shape.vecs = llvm::divideCeil(tailColumns, tile.lanes);
      emitPanel(g, panel, shape, b.i64(tailColumns));
      return SmallVector<Value>();
    };
    auto full = [&] {
      emitPanel(g, panel, tile, Value());
      return SmallVector<Value>();
    };
    if (!tailColumns)
      full();
    else if (*groupColumns < tile.columns())
      tail();
    else
      b.ifElse(b.eq(panel, b.sub(panelsPerGroup, b.i64(1))), TypeRange{}, tail, full);
  });
}

void ConvEmitter::fillSlab() {
  SmallVector<Value> extents;
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    extents.push_back(dims[i].extentValue);
  Spatial &row = dims[dims.size() - 2];
  Value lastTap = b.mul(b.sub(row.tapCount, b.i64(1)), b.i64(row.tapDilation));
  extents.push_back(b.add(b.mul(b.sub(rowCount, b.i64(1)), b.i64(row.stride)), b.add(lastTap, b.i64(1))));
  b.nest(extents, [&](ValueRange at) {
    Value inside, from = inputImage, to = b.i64(0);
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      Spatial &d = dims[i];
      Value position = b.sub(b.add(b.mul(d.position, b.i64(d.stride)), at[i]), b.i64(d.padLow));
      Value limit = b.add(b.mul(b.sub(d.in, b.i64(1)), b.i64(d.inDilation)), b.i64(1));
      Value valid = b.inRange(position, b.i64(0), limit);
      Value source = b.max(position, b.i64(0));
      if (d.inDilation != 1) {
        valid = b.both(valid, b.eq(b.remU(source, b.i64(d.inDilation)), b.i64(0)));
        source = b.divU(source, b.i64(d.inDilation));
      }
      inside = inside ? b.both(inside, valid) : valid;
      from = b.add(b.mul(from, d.in), source);
      to = b.add(to, b.mul(at[i], d.step));
    }
    Value target = b.ptrAt(b.scratch, leftElem, to);
    from = b.mul(b.mul(from, dims.back().in), channels);
    b.ifElse(
        inside, TypeRange{},
        [&] {
          fillSlabRow(b.ptrAt(b.operands[0], aElem, from), target);
          return SmallVector<Value>();
        },
        [&] {
          repeatInFormat(b, format, accElem, padValueOf(op), target, b.mul(dims.back().extentValue, pixelStep));
          return SmallVector<Value>();
        });
  });
}

/// One row of pixels with the border on both sides and, for a dilated input, zeros between the pixels.
void ConvEmitter::fillSlabRow(Value from, Value to) {
  Spatial &d = dims.back();
  Value width = d.extentValue, zero = b.i64(0);
  auto pixelAt = [&](Value buffer, Type elem, Value x, Value step) { return b.ptrAt(buffer, elem, b.mul(x, step)); };
  if (d.inDilation == 1) {
    Value low = b.min(b.max(b.i64(d.padLow), zero), width), skipped = b.max(b.i64(-d.padLow), zero);
    Value count = b.max(b.min(b.sub(d.in, skipped), b.sub(width, low)), zero);
    Value high = b.add(low, count);
    repeatInFormat(b, format, accElem, padValueOf(op), to, b.mul(low, pixelStep));
    if (pixelExpr == channelsExpr)
      copyToFormat(b, format, accElem, aElem, pixelAt(from, aElem, skipped, channels), pixelAt(to, leftElem, low, pixelStep),
                   b.mul(count, channels));
    else
      b.loop(zero, count, [&](Value x) {
        copyToFormat(b, format, accElem, aElem, pixelAt(from, aElem, b.add(x, skipped), channels),
                     pixelAt(to, leftElem, b.add(x, low), pixelStep), channels);
      });
    repeatInFormat(b, format, accElem, padValueOf(op), pixelAt(to, leftElem, high, pixelStep), b.mul(b.sub(width, high), pixelStep));
    return;
  }
  zerosOfFormat(b, format, accElem, to, b.mul(width, pixelStep));
  Value first = b.i64(d.padLow < 0 ? llvm::divideCeil(-d.padLow, d.inDilation) : 0);
  Value room = b.max(b.add(b.sub(width, b.i64(d.padLow)), b.i64(d.inDilation - 1)), zero);
  Value last = b.min(d.in, b.divU(room, b.i64(d.inDilation)));
  b.loop(first, last, [&](Value x) {
    Value target = b.add(b.mul(x, b.i64(d.inDilation)), b.i64(d.padLow));
    copyToFormat(b, format, accElem, aElem, pixelAt(from, aElem, x, channels), pixelAt(to, leftElem, target, pixelStep), channels);
  });
}

/// What the sums of a tile start with; nothing where it is zeros.
SmallVector<Value> ConvEmitter::startOf(const TileShape &shape) const {
  return head ? loadHead(b, shape, accElem, head) : SmallVector<Value>();
}

SmallVector<Value> ConvEmitter::resultIndex(Value row, Value pixel, Value column) {
  SmallVector<Value> index(accDims.size(), b.i64(0));
  index[0] = image;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].resultDim >= 0)
      index[dims[i].resultDim] = i + 1 == dims.size() ? pixel : i + 2 == dims.size() ? row : dims[i].position;
  index.back() = column;
  return index;
}

/// Input positions between the first and behind the last tap of so many results.
int64_t ConvEmitter::reach(const Spatial &d, int64_t results) const {
  return (results - 1) * d.stride + (*hlo::constantValue(d.taps) - 1) * d.tapDilation + 1;
}

/// Where a tile finds its pixels, and the distance of its rows of taps: in the image, or in a copy with zeros around it.
std::pair<Value, Value> ConvEmitter::windowOf(unsigned height, Value y, Value x, Value inImage) {
  Value inside;
  SmallVector<CopiedDim> window;
  for (auto [i, d] : llvm::enumerate(dims)) {
    const int64_t length = reach(d, i == 0 ? 1 : height);
    Value start = b.sub(b.mul(i == 0 ? b.add(firstRow, y) : x, b.i64(d.stride)), b.i64(d.padLow));
    window.push_back({d.in, b.i64(length), start, 1, d.padLow > 0 || d.padHigh > 0});
    if (window.back().leaves) {
      Value here = b.inRange(start, b.i64(0), b.sub(d.in, b.i64(length - 1)));
      inside = inside ? b.both(inside, here) : here;
    }
  }
  Value inImageStep = b.mul(b.i64(dims[0].tapDilation), dims[0].step);
  if (!inside)
    return {inImage, inImageStep};
  SmallVector<Value> found = b.ifElse(
      inside, TypeRange{inImage.getType(), inImageStep.getType()}, [&] { return SmallVector<Value>{inImage, inImageStep}; },
      [&] {
        fillWindow(
            b, window, inputImage, channels, accElem, b.scratch,
            [&](Value from, Value to, Value count) {
              copyRun(b, aElem, b.ptrAt(b.operands[0], aElem, from), accElem, to, count);
            },
            [&](Value to, Value count) { zeroRun(b, accElem, to, count); });
        return SmallVector<Value>{b.scratch, b.mul(b.mul(window[1].taps, channels), b.i64(dims[0].tapDilation))};
      });
  return {found[0], found[1]};
}

/// What the tiles to come write, and what they read besides the filter where it is read once.
SmallVector<TileOperands::Stream, 2> ConvEmitter::streamsOf(TileShape shape, Value y, Value x, Value column) {
  SmallVector<TileOperands::Stream, 2> streams;
  std::optional<int64_t> steps = constantOf(depthValue), channelCount = constantOf(channels);
  if (shape.lanes == 1 || !steps || !channelCount || !hlo::constantValue(positions))
    return streams;
  const int64_t ahead = rowsAhead(b.target, shape, *steps / format.group());
  SmallVector<Value> at = resultIndex(b.add(firstRow, y), b.add(x, b.i64(ahead)), column);
  for (const Epilogue::Stream &stream : epilogue.streams())
    streams.push_back({epilogue.streamAt(stream, at), epilogue.streamStep(stream, outChannels),
                       elemBytes(stream.elem) * shape.columns()});
  // the rows that the next row of results, or the next block's slab, reads and this one does not
  const Spatial &row = dims[dims.size() - 2], &pixel = dims.back();
  std::optional<int64_t> taps = constantOf(row.tapCount);
  if (!ahead || dims.size() != 2 || constantOf(panels) != 1 || !taps || row.inDilation * pixel.inDilation != 1)
    return streams;
  Value next = b.add(b.mul(b.add(b.add(firstRow, y), b.i64(slab ? blockRows : 1)), b.i64(row.stride)),
                     b.i64((*taps - 1) * row.tapDilation + 1 - row.stride - row.padLow));
  for (int64_t i = 0; i < row.stride; ++i) {
    Value from = b.add(b.mul(b.add(b.add(b.mul(inputImage, row.in), next), b.i64(i)), pixel.in), b.mul(x, b.i64(pixel.stride)));
    const int64_t lines = llvm::divideCeil(shape.rows * pixel.stride * *channelCount * elemBytes(aElem), 64);
    streams.push_back({b.ptrAt(b.operands[0], aElem, b.mul(from, channels)), b.i64(64), 64, lines});
  }
  return streams;
}

void ConvEmitter::emitPanel(Value group, Value panel, TileShape shape, Value validColumns) {
  Value filterGroup = b.add(group, batchGroup);
  Value column = b.add(b.mul(filterGroup, groupColumnsValue), b.mul(panel, b.i64(tile.columns())));
  TileOperands operands;
  operands.aElem = slab ? leftElem : aElem;
  operands.pairs = format.isGrouped();
  operands.bElem = packB ? accElem : bElem;
  operands.aRowStride = b.mul(b.i64(dims.back().stride), pixelStep);
  Value bStep = outChannels;
  if (packed) {
    Value steps = format.biased ? b.i64(runs.depth(format) + format.headSteps()) : depthValue;
    Value at = b.mul(b.add(b.mul(filterGroup, panelsPerGroup), panel), b.mul(steps, b.i64(tile.columns())));
    operands.b = b.ptrAt(b.operands[1], bElem, at);
    if (format.biased) {
      head = operands.b;
      operands.b = b.ptrAt(operands.b, bElem, b.i64(format.headSteps() * tile.columns()));
    }
    bStep = b.i64(tile.columns());
  } else {
    operands.b = b.ptrAt(b.operands[1], bElem, column);
    if (packB) {
      packPanel(b, shape, accElem, {bElem, operands.b, depthValue, outChannels, b.i64(1), validColumns}, scratchB);
      operands.b = scratchB;
      bStep = b.i64(shape.columns());
    }
  }

  // taps, outermost first; those of a row and the channels are one run where they touch; spread, they are columns
  SmallVector<ReductionLoop> loops;
  Value inner = b.mul(groupChannels, bStep);
  bool merged = !spread && groups == 1 && dims.back().tapDilation == 1 && constantOf(pixelStep) && constantOf(pixelStep) == constantOf(channels);
  if (format.isGrouped()) {
    const int64_t group = format.group(), padded = format.paddedDepth(runs.run);
    merged = runs.merged;
    loops.push_back({b.i64(padded / group), b.i64(group), b.mul(bStep, b.i64(group))});
    inner = b.mul(b.i64(padded), bStep);
  } else {
    loops.push_back({merged ? b.mul(dims.back().tapCount, channels) : groupChannels, b.i64(1), bStep});
  }
  for (size_t i = dims.size() - spread; i-- > 0;) {
    Spatial &d = dims[i];
    const bool inRun = merged && i + 1 == dims.size();
    if (!inRun)
      loops.insert(loops.begin(), {d.tapCount, b.mul(b.i64(d.tapDilation), d.step), inner});
    if (!inRun || !format.isGrouped())
      inner = b.mul(inner, d.tapCount);
  }
  Value a = b.ptrAt(aBase, operands.aElem, b.mul(group, groupChannels));
  if (spread)
    return emitSpread(shape, operands, loops, a);
  if (blocked)
    return emitBlocked(shape, operands, loops, a, column, validColumns);

  Spatial &rowDim = dims[dims.size() - 2];
  b.loop(b.i64(0), rowCount, [&](Value y) {
    Value rowBase = b.ptrAt(a, operands.aElem, b.mul(b.mul(y, b.i64(rowDim.stride)), rowDim.step));
    Value last = pixels.isStatic ? b.i64(pixels.numTiles) : dims.back().out;
    pixels.forEach(b, b.i64(0), last, [&](unsigned height, Value x) {
      TileShape s = shape;
      s.rows = height;
      operands.a = b.ptrAt(rowBase, operands.aElem, b.mul(x, operands.aRowStride));
      if (bordered)
        std::tie(operands.a, loops.front().aStride) = windowOf(height, y, x, operands.a);
      operands.streams = streamsOf(s, y, x, column);
      SmallVector<Value> accs = emitTile(b, s, accElem, operands, loops, startOf(s));
      auto index = [&](Value r) { return resultIndex(b.add(firstRow, y), b.add(x, r), column); };
      if (failed(epilogue.emitTile(s, accs, accDims.size() - 1, validColumns, index)))
        ok = failure();
    });
  });
}

LogicalResult ConvEmitter::emit() {
  readOp();
  for (AffineExpr e : accDims)
    if (hlo::constantValue(e) == 0) {
      b.setExtent(getAffineConstantExpr(0, b.getContext()));
      return success();
    }
  if (isPointwise() || isGathered()) {
    chooseSpecial(b, isPointwise() ? "conv-product" : "conv-gathered", WhyNot::none());
    return emitPointwise();
  }
  plan();
  chooseSpecial(b, spread ? "conv-spread" : trimmed ? "conv-trimmed" : bordered ? "conv-bordered" : slab ? "conv-slab" : "conv-direct", WhyNot::none());
  Value firstGroup = b.divU(b.begin, panels);
  Value lastGroup = b.divU(b.add(b.end, b.sub(panels, b.i64(1))), panels);
  b.loop(firstGroup, lastGroup, [&](Value group) {
    Value base = b.mul(group, panels);
    emitGroup(group, b.max(b.sub(b.begin, base), b.i64(0)), b.min(b.sub(b.end, base), panels));
  });
  return ok;
}

static ConvRuns runsOf(kernel::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType()), filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  ConvRuns runs;
  const int64_t spatial = input.getRank() - 2, channels = input.getShape().back();
  if (ShapedType::isDynamic(channels) || !filter.hasStaticShape() || op.getBatchGroups() != 1)
    return runs;
  SmallVector<int64_t> taps(op.getLayout() ? *op.getKernelShape() : filter.getShape().take_front(spatial));
  runs.run = channels / op.getGroups();
  runs.runs = 1;
  // as in readOp: the last dimension that counts
  int64_t last = -1;
  for (int64_t i = 0; i < spatial; ++i) {
    runs.runs *= taps[i];
    if (input.getDimSize(i + 1) != 1 || acc.getDimSize(i + 1) != 1 || taps[i] != 1 || op.getPadding()[2 * i] != 0)
      last = i;
  }
  runs.merged = op.getGroups() == 1 && (last < 0 || op.getRhsDilation()[last] == 1);
  if (runs.merged && last >= 0 && taps[last] > 0) {
    runs.run *= taps[last];
    runs.runs /= taps[last];
  }
  runs.isStatic = runs.run > 0 && runs.runs > 0;
  return runs;
}

ConvRuns convRuns(kernel::ConvOp op) {
  ConvRuns runs = runsOf(op);
  if (op.getBf16() && gathersPairs(op))
    runs = {runs.isStatic, false, runs.run * runs.runs, 1};
  return runs;
}

bool gathersPairs(kernel::ConvOp op) {
  SmallVector<int64_t> taps = op.getLayout() ? SmallVector<int64_t>(*op.getKernelShape())
                                             : SmallVector<int64_t>(cast<RankedTensorType>(op.getFilter().getType()).getShape().drop_back(2));
  return op.getGroups() == 1 && (runsOf(op).run % 2 || (op.getRhsDilation().back() == 1 && gathersWindows(op.getAccType(), taps, 1)));
}

bool gathersWindows(RankedTensorType acc, ArrayRef<int64_t> taps, int64_t allGroups) {
  int64_t count = 1;
  for (int64_t t : taps)
    count *= ShapedType::isDynamic(t) ? 1 : t;
  ArrayRef<int64_t> shape = acc.getShape();
  if (acc.getRank() != 4 || count < 2 || allGroups != 1 || !acc.getElementType().isF32())
    return false;
  return shape[2] > 0 && shape[2] <= gatheredWidth && (ShapedType::isDynamic(shape[1]) || shape[1] > 1) && shape[3] >= gatheredChannels;
}

std::optional<int64_t> rowsOfTiles(kernel::ConvOp op) {
  auto isOne = [](int64_t v) { return v == 1; };
  const SmallVector<int64_t> taps(cast<RankedTensorType>(op.getFilter().getType()).getShape().drop_back(2));
  const ArrayRef<int64_t> sizes = op.getAccType().getShape().drop_back();
  const int64_t groups = op.getGroups() * op.getBatchGroups();
  bool isProduct = groups == 1 && llvm::all_of(taps, isOne) && llvm::all_of(op.getPadding(), [](int64_t p) { return p <= 0; }) &&
                   llvm::all_of(op.getLhsDilation(), isOne);
  isProduct |= op.getBf16() ? gathersPairs(op) : gathersWindows(op.getAccType(), taps, groups);
  if (!isProduct)
    return ShapedType::isDynamic(sizes.back()) ? std::nullopt : std::optional(sizes.back());
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return std::nullopt;
  int64_t rows = 1;
  for (int64_t s : sizes)
    rows *= s;
  return rows;
}

int64_t padValueOf(Operation *conv) {
  auto value = conv->getAttrOfType<IntegerAttr>(padValueAttr);
  return value ? value.getInt() : 0;
}

bool takesBorder(kernel::ConvOp conv, const KernelTarget &target) {
  auto isOne = [](int64_t v) { return v == 1; };
  return hlo::elementType(conv.getInput()).isInteger(8) && conv.getAccType().getElementType().isInteger(32) && conv.getLayout() &&
         !ConvAttributes(conv).spread && !hasNarrowGroups(conv, target) && conv.getBatchGroups() == 1 &&
         llvm::all_of(conv.getLhsDilation(), isOne) && !llvm::all_of(*conv.getKernelShape(), isOne);
}

LogicalResult emitConv(Operation *op, KernelBuilder &b) {
  auto conv = dyn_cast<kernel::ConvOp>(op); // or a depthwise convolution
  if (conv && hasNarrowGroups(conv, b.target))
    return emitGroupedConv(conv, b);
  return conv && winogradTile(conv) ? emitWinograd(conv, b) : ConvEmitter(op, b).emit();
}

} // namespace lathe::cpu
