// kernel.conv with a filter transformed for Winograd's algorithm; see Winograd.h for the words.
//
// Units are numbered (block, group), the group innermost. A call transforms the input of each block it enters
// to scratch, [point][tile][channel]; then for each unit the products go to scratch,
// [point][panel][tile][column], from where the tiles are transformed back and handed to the epilogue. All of
// it is meant to stay in L2. Tiles are numbered over all images, so that small images fill the blocks too.
// With dilated taps the pixels of each phase (those a multiple of the dilation apart) are an image of their
// own: tiles step over the others.
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>

using namespace mlir;

namespace lathe::cpu {
namespace {

class WinogradEmitter {
public:
  WinogradEmitter(kernel::ConvOp op, KernelBuilder &b)
      : op(op), b(b), epilogue(b, op), integers(isa<IntegerType>(op.getAccType().getElementType())), pairs(op.getBf16() || integers),
        sumElem(op.getAccType().getElementType()), workElem(integers ? Type(b.getI16Type()) : b.getF32Type()),
        operandElem(op.getBf16() ? Type(b.getBF16Type()) : workElem), inElem(cast<RankedTensorType>(op.getInput().getType()).getElementType()),
        tile(WinogradSizes::of(op).tile(*winogradTile(op))), inRows(tile.down.points()),
        inColumns(tile.across.points()), points(tile.points()) {}
  LogicalResult emit();

private:
  /// Where a tile's first output pixel lies.
  struct Place {
    Value image, y, x;
  };

  void plan();
  Place locate(Value number);
  void transformInput();
  Value patchOf(Place at, Value top, Value left);
  void products(Value group);
  void transformOutput(Value panelInGroup, Value panelNumber, Value validColumns);
  Value combine(ArrayRef<double> coefficients, ArrayRef<Value> d);
  SmallVector<Value> inputRow(const WinogradAxis &axis, ArrayRef<Value> d);
  SmallVector<Value> outputRow(const WinogradAxis &axis, ArrayRef<Value> s);

  // of floats alone: exact tiles have no other factors than 1 and -1
  Value scaled(double f, Value x, Value y) { return multiplyAdd(b, b.cst(x.getType(), f), x, y, sumElem); }
  Value times(double f, Value x) { return arith::MulFOp::create(b, x, b.cst(x.getType(), f)); }
  Value plus(Value x, Value y) { return integers ? arith::AddIOp::create(b, x, y).getResult() : arith::AddFOp::create(b, x, y); }
  Value minus(Value x, Value y) { return integers ? arith::SubIOp::create(b, x, y).getResult() : arith::SubFOp::create(b, x, y); }
  Value toWork(Value v);

  kernel::ConvOp op;
  KernelBuilder &b;
  Epilogue epilogue;
  const bool integers, pairs;
  const Type sumElem;     // f32 or i32
  const Type workElem;    // in which the input is transformed: f32 or i16
  const Type operandElem; // of transformed input and filter: that, or bf16
  const Type inElem;      // f32, bf16 or f16, or a byte
  LogicalResult ok = success();

  WinogradTile tile;
  const int64_t inRows, inColumns, points; // of a tile
  int64_t ic = 0, paired = 0; // paired: with the zero behind an odd number of integers
  int64_t oc = 0, panel = 0, panelsPerUnit = 1, groups = 1, tilesPerBlock = 1;
  int64_t rowStride = 0, pointStride = 0;         // of transformed input, in elements
  int64_t sumsPanelStride = 0, sumsPointStride = 0;
  int64_t down = 1, across = 1; // dilation of the taps: distance of a tile's pixels
  Value height, width, outHeight, outWidth, tileRows, tileColumns, images, tiles;
  AffineExpr tilesExpr;
  TileShape shape;
  RowTiles rows;
  Value patch, transformed, sums, pixels;

  // of the block being computed
  Value firstTile, count;
};

void WinogradEmitter::plan() {
  const int64_t m = *winogradTile(op);
  panel = *panelColumns(op);
  auto input = cast<RankedTensorType>(op.getInput().getType());
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  groups = filter.getDimSize(0);
  panelsPerUnit = filter.getDimSize(2);
  WinogradSizes sizes = WinogradSizes::of(op);
  ic = sizes.inChannels;
  oc = sizes.outChannels;
  WinogradPlan best = planWinograd(b.target, sizes, m, panel, panelsPerUnit);
  tilesPerBlock = best.tilesPerBlock;
  const KernelPlan given = KernelPlan::of(op);
  if (given.block && b.target.threads <= 1)
    tilesPerBlock = std::min(*given.block, std::max<int64_t>(1, winogradTiles(sizes, m)));
  shape = panelTile(tileTarget(b.target, sizes), sumElem, panel, tilesPerBlock, given);
  rows = RowTiles(tilesPerBlock, shape.rows);

  SmallVector<AffineExpr> in = hlo::getDims(input), out = hlo::getDims(op.getAccType());
  down = sizes.rowDilation;
  across = sizes.columnDilation;
  AffineExpr high = hlo::ceilDiv(hlo::ceilDiv(out[1], down), tile.down.m),
             wide = hlo::ceilDiv(hlo::ceilDiv(out[2], across), tile.across.m);
  tilesExpr = hlo::simplify(out[0] * (high * down) * (wide * across));
  images = b.dim(out[0]);
  height = b.dim(in[1]);
  width = b.dim(in[2]);
  outHeight = b.dim(out[1]);
  outWidth = b.dim(out[2]);
  tileRows = b.max(b.dim(high), b.i64(1));
  tileColumns = b.max(b.dim(wide), b.i64(1));
  tiles = b.dim(tilesExpr);

  // Rows and planes an odd number of cache lines apart, so that what is used together falls in different L1 sets.
  paired = pairs ? llvm::alignTo(ic, 2) : ic;
  const int64_t line = 64 / elemBytes(operandElem);
  auto oddLines = [&](int64_t elements, int64_t line) {
    int64_t lines = llvm::divideCeil(elements, line);
    return (lines | 1) * line;
  };
  rowStride = llvm::alignTo(ic, line);
  if (rowStride % (32 * line) == 0)
    rowStride += line;
  pointStride = oddLines(tilesPerBlock * rowStride, line);
  sumsPanelStride = tilesPerBlock * panel;
  sumsPointStride = oddLines(panelsPerUnit * sumsPanelStride, 16);
  int64_t offset = 0;
  auto take = [&](int64_t elements, int64_t bytes = 4) {
    Value at = b.ptrBytes(b.scratch, b.i64(offset));
    offset += llvm::alignTo(elements * bytes, 64);
    return at;
  };
  transformed = take(points * pointStride, elemBytes(operandElem));
  sums = take(points * sumsPointStride);
  patch = take(points * ic);
  pixels = take(tile.pixels() * panel);
  b.setScratch(offset);
  b.setWork(b.multiplyAddWork(points * tilesPerBlock * ic * panel * panelsPerUnit / (pairs ? 2 : 1)));
  b.setExtent(hlo::simplify(hlo::ceilDiv(tilesExpr, tilesPerBlock) * groups));
}

WinogradEmitter::Place WinogradEmitter::locate(Value number) {
  SmallVector<Value> at = b.delinearize(number, {images, b.i64(down), tileRows, b.i64(across), tileColumns});
  auto first = [&](Value phase, Value index, int64_t step) {
    return b.add(b.mul(index, b.i64(step)), phase);
  };
  return {at[0], first(at[1], at[2], tile.down.m * down), first(at[3], at[4], tile.across.m * across)};
}

/// The sum of `d` times `coefficients`, one of which is 1, from the last one on.
Value WinogradEmitter::combine(ArrayRef<double> coefficients, ArrayRef<Value> d) {
  int64_t start = coefficients.size() - 1;
  while (coefficients[start] != 1)
    --start;
  Value sum = d[start];
  for (int64_t i = coefficients.size() - 1; i >= 0; --i)
    if (const double c = coefficients[i]; i != start && c != 0)
      sum = c == 1 ? plus(d[i], sum) : c == -1 ? minus(sum, d[i]) : scaled(c, d[i], sum);
  return sum;
}

/// B^T times a column of the input tile.
SmallVector<Value> WinogradEmitter::inputRow(const WinogradAxis &axis, ArrayRef<Value> d) {
  if (axis.r == 1)
    return SmallVector<Value>(d);
  SmallVector<Value> rows = {combine(axis.zeroRow(), d)};
  for (double p : axis.pairs()) {
    const std::vector<double> terms = axis.oddTerms(p);
    Value even = combine(ArrayRef(terms).drop_back(), d.drop_front()), odd = combine(terms, d);
    if (p == 1)
      llvm::append_values(rows, plus(even, odd), minus(even, odd));
    else
      llvm::append_values(rows, scaled(p, odd, even), scaled(-p, odd, even));
  }
  rows.push_back(combine(axis.infinityRow(), d));
  return rows;
}

/// A^T times a column of sums.
SmallVector<Value> WinogradEmitter::outputRow(const WinogradAxis &axis, ArrayRef<Value> s) {
  if (axis.r == 1)
    return SmallVector<Value>(s);
  SmallVector<Value> sums, differences;
  for (size_t i = 0; i < axis.pairs().size(); ++i) {
    sums.push_back(plus(s[2 * i + 1], s[2 * i + 2]));
    differences.push_back(minus(s[2 * i + 1], s[2 * i + 2]));
  }
  SmallVector<Value> rows;
  for (int64_t row = 0; row < axis.m; ++row) {
    Value sum = row ? Value() : s[0];
    for (auto [i, p] : llvm::enumerate(axis.pairs())) {
      Value part = row % 2 ? differences[i] : sums[i];
      const double factor = std::pow(p, row);
      if (!sum)
        sum = factor == 1 ? part : times(factor, part);
      else
        sum = factor == 1 ? plus(sum, part) : scaled(factor, part, sum);
    }
    if (row == axis.m - 1)
      sum = axis.infinitySign() > 0 ? plus(sum, s.back()) : minus(sum, s.back());
    rows.push_back(sum);
  }
  return rows;
}

/// Copies a tile that reaches over the border, with zeros there.
Value WinogradEmitter::patchOf(Place at, Value top, Value left) {
  Value zero = b.i64(0), edge = b.i64(inColumns), channels = b.i64(ic);
  Type bits = inElem.isF32() ? inElem : integers ? b.getI8Type() : b.getI16Type();
  auto steps = [&](Value n) { return b.divU(b.add(b.max(n, zero), b.i64(across - 1)), b.i64(across)); };
  Value low = b.min(steps(b.sub(zero, left)), edge);
  Value high = b.max(low, b.min(edge, steps(b.sub(width, left))));
  b.loop(zero, b.i64(inRows), [&](Value i) {
    Value y = b.add(top, b.mul(i, b.i64(down))), to = b.ptrAt(patch, inElem, b.mul(i, b.i64(inColumns * ic)));
    auto fill = [&](Value from, Value until) {
      Value at = b.ptrAt(to, inElem, b.mul(from, channels)), count = b.mul(b.sub(until, from), channels);
      if (integers)
        repeatInFormat(b, {OperandFormat::Kind::Bytes}, sumElem, static_cast<int8_t>(padValueOf(op)), at, count);
      else
        zeroRun(b, bits, at, count);
    };
    b.ifElse(
        b.inRange(y, zero, height), TypeRange{},
        [&] {
          fill(zero, low);
          auto copy = [&](Value from, Value count) {
            Value x = b.add(left, b.mul(from, b.i64(across)));
            Value pixel = b.add(b.mul(b.add(b.mul(at.image, height), y), width), x);
            copyRun(b, bits, b.ptrAt(b.operands[0], inElem, b.mul(pixel, channels)), bits,
                    b.ptrAt(to, inElem, b.mul(from, channels)), b.mul(count, channels));
          };
          if (across == 1)
            copy(low, b.sub(high, low));
          else
            b.loop(low, high, [&](Value j) { copy(j, b.i64(1)); });
          fill(high, edge);
          return SmallVector<Value>();
        },
        [&] {
          fill(zero, edge);
          return SmallVector<Value>();
        });
  });
  return patch;
}

/// An element of the input as it is transformed.
Value WinogradEmitter::toWork(Value v) {
  if (!integers)
    return toAccumulator(b, v, inElem, sumElem);
  Type wide = isa<VectorType>(v.getType()) ? cast<VectorType>(v.getType()).clone(workElem) : workElem;
  return inElem.isUnsignedInteger() ? arith::ExtUIOp::create(b, wide, v).getResult() : arith::ExtSIOp::create(b, wide, v);
}

void WinogradEmitter::transformInput() {
  unsigned lanes = b.target.lanes(workElem);
  while (lanes > ic)
    lanes /= 2;
  b.loop(b.i64(0), count, [&](Value t) {
    Place at = locate(b.add(firstTile, t));
    Value top = b.sub(at.y, b.i64(op.getPadding()[0])), left = b.sub(at.x, b.i64(op.getPadding()[2]));
    auto fits = [&](Value start, Value size, int64_t pixels, int64_t step) {
      return b.both(b.ge(start, b.i64(0)), b.ge(b.sub(size, b.i64((pixels - 1) * step + 1)), start));
    };
    Value inside = b.both(fits(top, height, inRows, down), fits(left, width, inColumns, across));
    Value base = b.ifElse(
        inside, TypeRange{b.scratch.getType()},
        [&] {
          Value pixel = b.add(b.mul(b.add(b.mul(at.image, height), top), width), left);
          return SmallVector<Value>{b.ptrAt(b.operands[0], inElem, b.mul(pixel, b.i64(ic)))};
        },
        [&] { return SmallVector<Value>{patchOf(at, top, left)}; })[0];
    Value step = b.select(inside, b.mul(width, b.i64(ic * down)), b.i64(inColumns * ic));
    Value pixelStep = across == 1 ? b.i64(ic) : b.select(inside, b.i64(ic * across), b.i64(ic));
    Value to = b.ptrAt(transformed, operandElem, b.mul(t, b.i64(rowStride)));
    SmallVector<Value> lines;
    for (int64_t i = 0; i < inRows; ++i)
      lines.push_back(b.ptrAt(base, inElem, b.mul(b.i64(i), step)));
    b.loop(b.i64(0), b.i64(ic), b.i64(lanes), [&](Value c) {
      // the last vector may overlap the one before
      Value channel = ic % lanes ? b.min(c, b.i64(ic - lanes)) : c;
      SmallVector<SmallVector<Value>> columns;
      for (int64_t j = 0; j < inColumns; ++j) {
        SmallVector<Value> d;
        for (int64_t i = 0; i < inRows; ++i)
          d.push_back(toWork(b.loadElem(inElem, lines[i], b.add(channel, b.mul(b.i64(j), pixelStep)), lanes)));
        columns.push_back(inputRow(tile.down, d));
      }
      for (int64_t i = 0; i < inRows; ++i) {
        SmallVector<Value> d;
        for (int64_t j = 0; j < inColumns; ++j)
          d.push_back(columns[j][i]);
        for (auto [j, v] : llvm::enumerate(inputRow(tile.across, d)))
          b.storeElem(operandElem, v, to, b.add(channel, b.i64((i * inColumns + j) * pointStride)));
      }
    });
  });
}

/// The sums of a group at all points.
void WinogradEmitter::products(Value group) {
  // tiles of rows that hold the block's tiles; what the last one computes beyond is never read
  int64_t highRows = rows.numHigh * (rows.low + 1);
  auto needed = [&](Value n, int64_t h) { return b.divU(b.add(n, b.i64(h - 1)), b.i64(h)); };
  Value last = needed(b.max(b.sub(count, b.i64(highRows)), b.i64(0)), rows.low);
  if (rows.numHigh)
    last = b.add(last, b.min(needed(count, rows.low + 1), b.i64(rows.numHigh)));

  const int64_t panelSize = paired * panel;
  // long sums are cut so that a block of the panel stays in L1
  const int64_t perStep = pairs ? 2 : 1, most = 512 * perStep;
  const int64_t parts = llvm::divideCeil(paired, most), depth = llvm::alignTo(llvm::divideCeil(paired, parts), 4 * perStep);
  Value filters =
      b.ptrAt(b.operands[1], operandElem, b.mul(group, b.i64(points * panelsPerUnit * panelSize)));
  b.loop(b.i64(0), b.i64(points), [&](Value point) {
    Value in = b.ptrAt(transformed, operandElem, b.mul(point, b.i64(pointStride)));
    Value out = b.ptrAt(sums, sumElem, b.mul(point, b.i64(sumsPointStride)));
    Value filter = b.ptrAt(filters, operandElem, b.mul(point, b.i64(panelsPerUnit * panelSize)));
    b.loop(b.i64(0), b.i64(panelsPerUnit), [&](Value p) {
      Value panelStart = b.ptrAt(filter, operandElem, b.mul(p, b.i64(panelSize)));
      Value to = b.ptrAt(out, sumElem, b.mul(p, b.i64(sumsPanelStride)));
      for (int64_t k0 = 0; k0 < paired; k0 += depth) {
        int64_t left = std::min(depth, paired - k0), steps = left / perStep;
        TileOperands operands;
        operands.aElem = operands.bElem = operandElem;
        operands.pairs = pairs;
        operands.aRowStride = b.i64(rowStride);
        operands.b = b.ptrAt(panelStart, operandElem, b.i64(k0 * panel));
        // the tiles together fetch what comes next, which lies right behind
        operands.prefetchLines = llvm::divideCeil(panel / 4, std::max<int64_t>(1, rows.numTiles));
        Value next = b.ptrAt(operands.b, operandElem, b.i64(left * panel));
        rows.forEach(b, b.i64(0), last, [&](unsigned tileRowCount, Value row) {
          TileShape s = shape;
          s.rows = tileRowCount;
          operands.a = b.ptrAt(in, operandElem, b.add(b.mul(row, b.i64(rowStride)), b.i64(k0)));
          Value share = b.i64(steps / 4 * 64 * operands.prefetchLines);
          operands.prefetch = b.ptrBytes(next, b.mul(b.divU(row, b.i64(rows.low)), share));
          Value target = b.ptrAt(to, sumElem, b.mul(row, b.i64(panel)));
          ReductionLoop reduction{b.i64(steps), b.i64(perStep), b.i64(perStep * panel)};
          SmallVector<Value> accs = emitTile(b, s, sumElem, operands, reduction);
          if (k0)
            addToTile(b, s, sumElem, accs, target);
          else
            storeTile(b, s, sumElem, accs, target);
        });
      }
    });
  });
}

/// One panel of the group: back to pixels, and the epilogue.
void WinogradEmitter::transformOutput(Value panelInGroup, Value panelNumber, Value validColumns) {
  unsigned lanes = shape.lanes;
  Value column = b.mul(panelNumber, b.i64(panel));
  Value source = b.ptrAt(sums, sumElem, b.mul(panelInGroup, b.i64(sumsPanelStride)));
  b.loop(b.i64(0), count, [&](Value t) {
    Value from = b.ptrAt(source, sumElem, b.mul(t, b.i64(panel)));
    b.loop(b.i64(0), b.i64(shape.vecs), [&](Value v) {
      Value lane = b.mul(v, b.i64(lanes));
      SmallVector<SmallVector<Value>> columns;
      for (int64_t j = 0; j < inColumns; ++j) {
        SmallVector<Value> d;
        for (int64_t i = 0; i < inRows; ++i)
          d.push_back(
              b.loadElem(sumElem, from, b.add(lane, b.i64((i * inColumns + j) * sumsPointStride)), lanes));
        columns.push_back(outputRow(tile.down, d));
      }
      for (int64_t i = 0; i < tile.down.m; ++i) {
        SmallVector<Value> d;
        for (int64_t j = 0; j < inColumns; ++j)
          d.push_back(columns[j][i]);
        for (auto [j, sum] : llvm::enumerate(outputRow(tile.across, d))) {
          Value value = sum;
          if (integers) // the halves of the filter's transforms; nothing is lost
            value = arith::ShRSIOp::create(b, sum, b.cstI(sum.getType(), tile.halvings()));
          b.storeElem(sumElem, value, pixels, b.add(lane, b.i64((i * tile.across.m + j) * panel)));
        }
      }
    });
    Place at = locate(b.add(firstTile, t));
    // a phase may have a pixel less than the first, or none
    auto inResult = [&](Value size, Value first, int64_t m, int64_t step) {
      Value left = b.sub(size, first);
      return b.min(b.i64(m), step == 1 ? left : b.divU(b.add(b.max(left, b.i64(0)), b.i64(step - 1)), b.i64(step)));
    };
    Value columns = inResult(outWidth, at.x, tile.across.m, across);
    b.loop(b.i64(0), inResult(outHeight, at.y, tile.down.m, down), [&](Value i) {
      Value line = b.ptrAt(pixels, sumElem, b.mul(i, b.i64(tile.across.m * panel)));
      auto index = [&](Value r) {
        return SmallVector<Value>{at.image, b.add(at.y, b.mul(i, b.i64(down))), b.add(at.x, b.mul(r, b.i64(across))), column};
      };
      if (failed(epilogue.emitBuffered(shape, line, columns, 3, validColumns, index)))
        ok = failure();
    });
  });
}

LogicalResult WinogradEmitter::emit() {
  plan();
  Value groupCount = b.i64(groups), perBlock = b.i64(tilesPerBlock);
  Value firstBlock = b.divU(b.begin, groupCount), lastBlock = b.divU(b.add(b.end, b.i64(groups - 1)), groupCount);
  const int64_t tail = oc % panel;
  b.loop(firstBlock, lastBlock, [&](Value block) {
    firstTile = b.mul(block, perBlock);
    count = b.min(perBlock, b.sub(tiles, firstTile));
    transformInput();
    Value base = b.mul(block, groupCount);
    b.loop(b.max(b.sub(b.begin, base), b.i64(0)), b.min(b.sub(b.end, base), groupCount), [&](Value group) {
      products(group);
      b.loop(b.i64(0), b.i64(panelsPerUnit), [&](Value p) {
        Value number = b.add(b.mul(group, b.i64(panelsPerUnit)), p);
        auto full = [&] {
          transformOutput(p, number, Value());
          return SmallVector<Value>();
        };
        auto last = [&] {
          transformOutput(p, number, b.i64(tail));
          return SmallVector<Value>();
        };
        if (!tail)
          full();
        else if (oc < panel)
          last();
        else
          b.ifElse(b.eq(number, b.i64(groups * panelsPerUnit - 1)), TypeRange{}, last, full);
      });
    });
  });
  return ok;
}

} // namespace

LogicalResult emitWinograd(kernel::ConvOp op, KernelBuilder &b) {
  for (AffineExpr e : hlo::getDims(op.getAccType()))
    if (hlo::constantValue(e) == 0) {
      b.setExtent(getAffineConstantExpr(0, b.getContext()));
      return success();
    }
  return WinogradEmitter(op, b).emit();
}

} // namespace lathe::cpu
